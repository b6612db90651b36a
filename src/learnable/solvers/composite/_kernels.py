"""Kernels of coordinate descent: epochs over a Gram matrix, over dense columns, over sparse columns.

Every kernel minimises ½‖b − Aw‖² + Σⱼ (λ₁ⱼ|wⱼ| + ½λ₂ⱼwⱼ²) one coordinate at a time. It returns the largest decrease
2ΔP = hδ² of the last epoch, and ends early when that is at most `floor`.
"""

from __future__ import annotations

import numpy as np

from ...core import Array, NDArray
from ...core.jit import kernel

_TILE = 4096  # rows whose residual stays in the first-level cache while columns pass over it
Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop


@kernel
def shrunk(u: float, threshold: float, curvature: float, positive: bool) -> float:
    """Return the minimiser of ½hw² − uw + λ|w|, over w ≥ 0 if `positive`."""
    if u > threshold:
        return (u - threshold) / curvature
    if u < -threshold and not positive:
        return (u + threshold) / curvature
    return 0.0


@kernel
def gram_epochs(
    G: Array, l1: Array, l2: Array, positive: bool, w: Array, g: Array, n_epochs: int, floor: float
) -> float:
    """IN/OUT w (k,) and g = Aᵀ(b − Aw) (k,), with G = AᵀA. One epoch in NumPy: `tests/oracles/coordinate_passes.py`."""
    largest = 0.0
    for _ in range(n_epochs):
        largest = 0.0
        for j in range(w.size):
            own = G[j, j]
            h = own + l2[j]
            if h <= 0.0:
                continue
            new = shrunk(g[j] + own * w[j], l1[j], h, positive)
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                row = G[j]
                for i in range(g.size):
                    g[i] -= step * row[i]
                largest = max(largest, step * step * h)
        if largest <= floor:
            break
    return largest


@kernel
def row_norm(W: Array, G: Array, shift: float, j: int) -> float:
    """Return ‖G[j] − shift·W[j]‖."""
    if W.shape[1] == 1:
        return np.float64(abs(G[j, 0] - shift * W[j, 0]))
    total = 0.0
    for t in range(W.shape[1]):
        total += (G[j, t] - shift * W[j, t]) ** 2
    return np.float64(np.sqrt(total))


@kernel
def gap_terms(
    W: Array, gradient: Array, residual_square: float, l1: Array, l2: Array, positive: bool, size: Array
) -> tuple[float, float, float]:
    """OUT size (d,). Return P, P − D and τ of `penalised_gap` for W and Aᵀ(b − AW) (d, t)."""
    d = W.shape[0]
    fit, total, penalty, most, free = residual_square, residual_square, 0.0, np.inf, 0.0
    ridged = d > 0
    for j in range(d):
        norm, along = row_norm(W, W, 0.0, j), 0.0
        for t in range(W.shape[1]):
            along += W[j, t] * gradient[j, t]
        fit += along
        total += l2[j] * norm * norm
        penalty += l1[j] * norm
        size[j] = gradient[j, 0] - l2[j] * W[j, 0] if positive else row_norm(W, gradient, l2[j], j)
        if size[j] > 0.0:
            most = min(most, l1[j] / size[j])
        ridged = ridged and l2[j] > 0.0
        if ridged:  # the dual without a constraint
            raw = gradient[j, 0] if positive else row_norm(W, gradient, 0.0, j)
            excess = max(raw - l1[j], 0.0)
            free += max(excess * excess / (2.0 * l2[j]) + l1[j] * norm + 0.5 * l2[j] * norm * norm - along, 0.0)
    tau = min(max(fit / total, 0.0), most) if total > 0.0 else 0.0
    gap = 0.5 * (1.0 - tau) * (1.0 - tau) * total
    for j in range(d):
        norm, along = row_norm(W, W, 0.0, j), 0.0
        for t in range(W.shape[1]):
            along += W[j, t] * gradient[j, t]
        gap += max(l1[j] * norm - tau * (along - l2[j] * norm * norm), 0.0)
    return 0.5 * total + penalty, min(gap, free) if ridged else gap, tau


@kernel
def gram_descent(
    G: Array, C: Array, square: float, l1: Array, l2: Array, positive: bool, W: Array, g: Array, size: Array,
    goal: float, floor: float, n_epochs: int,
) -> int:  # fmt: skip
    """IN/OUT W and g (k, 1), size (k,): run epochs until P − D <= goal·max(D, floor), and return how many."""
    for epoch in range(n_epochs):
        residual = square
        for j in range(W.shape[0]):
            residual -= W[j, 0] * (C[j, 0] + g[j, 0])
        primal, gap, _ = gap_terms(W, g, max(residual, 0.0), l1, l2, positive, size)
        if gap <= goal * max(primal - gap, floor):
            return epoch
        gram_epochs(G, l1, l2, positive, W.reshape(-1), g.reshape(-1), 1, 0.0)
    return n_epochs


@kernel
def gram_step(G: Array, step: Array, g: Array) -> None:
    """IN/OUT g (k, t) −= G step, row by row for the rows of step (k, t) that are not zero; G is symmetric."""
    k, t = step.shape
    for j in range(k):
        row = G[j]
        for c in range(t):
            s = step[j, c]
            if s != 0.0:
                for i in range(k):
                    g[i, c] -= s * row[i]


@kernel
def gather_square(G: Array, rows: Index, out: Array) -> None:
    """OUT out (m, m) = rows and columns of G."""
    for a in range(rows.size):
        row, target = G[rows[a]], out[a]
        for b in range(rows.size):
            target[b] = row[rows[b]]


@kernel
def gather_scaled(G: Array, rows: Index, scale: Array, out: NDArray[np.float32]) -> None:
    """OUT upper triangle of out (m, m) = scaleₐ G[a, b] scale_b of some rows and columns of G; its diagonal is one."""
    for a in range(rows.size):
        row, target = G[rows[a]], out[a]
        own = scale[a]
        target[a] = np.float32(1.0)
        for b in range(a + 1, rows.size):
            target[b] = np.float32(own * scale[b] * row[rows[b]])


@kernel
def gram_row_epochs(G: Array, l1: Array, l2: Array, W: Array, g: Array, n_epochs: int, floor: float) -> float:
    """IN/OUT W (k, t) and g (k, t): the same with the penalty Σⱼ λ₁ⱼ‖Wⱼ‖₂ + ½λ₂ⱼ‖Wⱼ‖² of whole rows."""
    k, t = W.shape
    step = np.empty(t)
    largest = 0.0
    for _ in range(n_epochs):
        largest = 0.0
        for j in range(k):
            own = G[j, j]
            h = own + l2[j]
            if h <= 0.0:
                continue
            norm = 0.0
            for c in range(t):
                step[c] = g[j, c] + own * W[j, c]
                norm += step[c] * step[c]
            norm = np.sqrt(norm)
            scale = (1.0 - l1[j] / norm) / h if norm > l1[j] else 0.0
            square = 0.0
            for c in range(t):
                new = scale * step[c]
                step[c] = new - W[j, c]
                square += step[c] * step[c]
                W[j, c] = new
            if square > 0.0:
                row = G[j]
                for i in range(k):
                    for c in range(t):
                        g[i, c] -= row[i] * step[c]
                largest = max(largest, square * h)
        if largest <= floor:
            break
    return largest


@kernel
def column_epochs(
    A: Array, norm: Array, l1: Array, l2: Array, positive: bool, w: Array, r: Array, n_epochs: int, floor: float
) -> float:
    """IN/OUT w (k,) and r = b − Aw (n,); A holds the columns as rows (k, n), norm their squares."""
    largest = 0.0
    for _ in range(n_epochs):
        largest = 0.0
        for j in range(w.size):
            h = norm[j] + l2[j]
            if norm[j] <= 0.0:
                continue
            column = A[j]
            u = norm[j] * w[j]
            for i in range(r.size):
                u += column[i] * r[i]
            new = shrunk(u, l1[j], h, positive)
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                for i in range(r.size):
                    r[i] -= step * column[i]
                largest = max(largest, step * step * h)
        if largest <= floor:
            break
    return largest


@kernel
def sparse_column_epochs(
    data: Array,
    indices: Index,
    indptr: Index,
    sums: Array,
    norm: Array,
    l1: Array,
    l2: Array,
    positive: bool,
    w: Array,
    r: Array,
    offset: Array,
    n_epochs: int,
    floor: float,
) -> float:
    """IN/OUT w (k,), r = b − Xw (n,) and offset = x̄ᵀw (1,): the residual about the mean is r + offset·√s.

    `sums` (2, k) holds √sᵀxⱼ and x̄ⱼ, where X has been multiplied by √s already.
    """
    largest = 0.0
    for _ in range(n_epochs):
        largest = 0.0
        for j in range(w.size):
            h = norm[j] + l2[j]
            if norm[j] <= 0.0:
                continue
            u = norm[j] * w[j] + offset[0] * sums[0, j]
            for p in range(indptr[j], indptr[j + 1]):
                u += data[p] * r[indices[p]]
            new = shrunk(u, l1[j], h, positive)
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                for p in range(indptr[j], indptr[j + 1]):
                    r[indices[p]] -= step * data[p]
                offset[0] += step * sums[1, j]
                largest = max(largest, step * step * h)
        if largest <= floor:
            break
    return largest


@kernel
def sparse_products_with(data: Array, indices: Index, indptr: Index, v: Array, out: Array) -> None:
    """OUT out (d,) = Xᵀv for CSC columns."""
    for j in range(out.size):
        total = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            total += data[p] * v[indices[p]]
        out[j] = total


@kernel
def sparse_column_sums(data: Array, indices: Index, indptr: Index, v: Array, out: Array) -> None:
    """OUT out (2, d) = Xᵀv and the sums of squares of CSC columns."""
    for j in range(out.shape[1]):
        total = 0.0
        square = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            total += data[p] * v[indices[p]]
            square += data[p] * data[p]
        out[0, j], out[1, j] = total, square


@kernel
def column_sums(X: Array, weight: Array, targets: Array, shift: Array, sums: Array) -> None:
    """OUT sums (k, 2 + t) += Σ s(x − shift), Σ s(x − shift)² and Σ (x − shift)v of columns that lie as rows (k, n).

    In tiles of rows, so that weights (n,) and targets v (t, n) stay in the cache.
    """
    k, n = X.shape
    for start in range(0, n, _TILE):
        stop = min(n, start + _TILE)
        s = weight[start:stop]
        for j in range(k):
            x = X[j, start:stop]
            c = shift[j]
            first = 0.0
            second = 0.0
            for i in range(x.size):
                moved = x[i] - c
                first += s[i] * moved
                second += s[i] * moved * moved
            sums[j, 0] += first
            sums[j, 1] += second
            for t in range(targets.shape[0]):
                v = targets[t, start:stop]
                total = 0.0
                for i in range(x.size):
                    total += (x[i] - c) * v[i]
                sums[j, 2 + t] += total


@kernel
def row_sums(X: Array, weight: Array, targets: Array, shift: Array, sums: Array) -> None:
    """OUT sums (2 + t, d) +=: the same of C-contiguous rows (n, d)."""
    n, d = X.shape
    for i in range(n):
        row, s = X[i], weight[i]
        first, second = sums[0], sums[1]
        for j in range(d):
            moved = row[j] - shift[j]
            first[j] += s * moved
            second[j] += s * moved * moved
        for t in range(targets.shape[0]):
            v, out = targets[t, i], sums[2 + t]
            for j in range(d):
                out[j] += (row[j] - shift[j]) * v


@kernel
def column_dots(X: Array, vectors: Array, out: Array) -> None:
    """OUT out (k, t) += Xv of columns that lie as rows (k, n), for vectors (t, n), in tiles of rows."""
    k, n = X.shape
    for start in range(0, n, _TILE):
        stop = min(n, start + _TILE)
        for t in range(vectors.shape[0]):
            v = vectors[t, start:stop]
            for j in range(k):
                x = X[j, start:stop]
                total = 0.0
                for i in range(x.size):
                    total += x[i] * v[i]
                out[j, t] += total


@kernel
def row_dots(X: Array, vectors: Array, out: Array) -> None:
    """OUT out (t, d) += Xᵀv of C-contiguous rows (n, d)."""
    n, d = X.shape
    for i in range(n):
        row = X[i]
        for t in range(vectors.shape[0]):
            v, total = vectors[t, i], out[t]
            for j in range(d):
                total[j] += v * row[j]
