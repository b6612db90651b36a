r"""The joint support vector machine of all classes, after Crammer and Singer.

    min_W  ½ Σₖ ‖wₖ‖² + C Σᵢ sᵢ max_k (1[k ≠ yᵢ] + wₖᵀxᵢ − w_{yᵢ}ᵀxᵢ)

with x = (intercept_scaling, x), so that intercepts are penalised too. In the form n⁻¹ΣV + λΩ with Ω = ½‖W‖², λ =
1/(nC). The dual

    D(α) = −½ Σₖ ‖Σᵢ αᵢₖxᵢ‖² − Σᵢ Σ_{k≠yᵢ} αᵢₖ,     Σₖ αᵢₖ = 0,   αᵢₖ ≤ C sᵢ 1[k = yᵢ],

has one simplex for every row. Coordinate descent takes one row's αᵢ at a time to its optimum: a projection onto that
simplex, by sorting.

References: K. Crammer and Y. Singer, JMLR 2, 2001; S. Keerthi et al., A sequential dual method for large
scale multi-class linear SVMs, KDD 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel
from ..core.run import Progress
from .dual_descent import as_rows, pieces
from .margin import relative_gap
from .svm_solvers import MarginFit

Array = NDArray[np.float64]


def fit_crammer_singer(
    blocks: Any,
    n_classes: int,
    *,
    C: float,
    bias: float,
    rng: np.random.Generator,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> list[MarginFit]:
    """Return one fit a class, all with the gap of the joint problem; for two classes the one difference w₁ − w₀."""
    X, y, weight = blocks.joined()
    y = np.asarray(y, dtype=np.int64)
    n = len(y)
    cost = C * (np.ones(n) if weight is None else weight)
    data, indices, indptr = as_rows(X)
    norms = np.add.reduceat(np.r_[data * data, 0.0], np.minimum(indptr[:-1].astype(np.int64), len(data)))
    norms[np.diff(indptr.astype(np.int64)) == 0] = 0.0
    norms += bias**2
    alpha, W = np.zeros((n, n_classes)), np.zeros((X.shape[1] + 1, n_classes))
    best, primal, dual, gap, next_look, n_iter = W, np.inf, -np.inf, np.inf, 1, 0
    best_alpha, width = alpha, len(data) // n
    for n_iter in range(1, max_iter + 1):
        cut = False
        for part in pieces(rng.permutation(n), width * n_classes):
            cut = cut or progress(n_iter, gap)
            if not cut:
                joint_pass(data, indices, indptr, part, y, cost, norms, bias, alpha, W)
        if cut or n_iter >= next_look or n_iter == max_iter:
            next_look = max(n_iter + 2, n_iter * 5 // 4)
            W = _weights_of(X, alpha, bias)
            p, d = _values(X, y, cost, alpha, W, bias)
            if p < primal:
                best, primal = W.copy(), p
            if d > dual:
                best_alpha, dual = alpha.copy(), d
            gap = relative_gap(primal, dual, float(cost.sum()))
            if cut or gap <= tol or progress(n_iter, gap):
                break
    if n_classes == 2:  # Σₖ wₖ = 0, so that the difference is all
        return [MarginFit(best[:, 1] - best[:, 0], gap, n_iter, best_alpha[:, 1].copy())]
    return [MarginFit(best[:, k].copy(), gap, n_iter, best_alpha[:, k].copy()) for k in range(n_classes)]


def _weights_of(X: Any, alpha: Array, bias: float) -> Array:
    return np.ascontiguousarray(np.vstack([bias * alpha.sum(axis=0), X.T @ alpha]), dtype=np.float64)


def _values(X: Any, y: NDArray[np.int64], cost: Array, alpha: Array, W: Array, bias: float) -> tuple[float, float]:
    """Return P(W) and D(α) for W = W(α)."""
    rows = np.arange(len(y))
    scores = X @ W[1:] + bias * W[0]
    own = scores[rows, y]
    scores = scores + 1.0
    scores[rows, y] = own
    square = 0.5 * float((W * W).sum())
    others = alpha.sum() - alpha[rows, y].sum()
    return square + float(cost @ (scores.max(axis=1) - own)), -square - float(others)


@kernel
def solve_simplex(slope: Array, size: float, y: int, cost: float, alpha: Array, ordered: Array) -> None:
    """OUT alpha minimises ½·size·‖α‖² + slopeᵀα over Σα = 0, αₖ ≤ cost·1[k = y]; `ordered` is scratch."""
    n_classes = slope.size
    ordered[:] = slope
    ordered[y] += size * cost
    ordered[:] = np.sort(ordered)[::-1]
    level = ordered[0] - size * cost
    r = 1
    while r < n_classes and level < r * ordered[r]:
        level += ordered[r]
        r += 1
    level /= r
    for k in range(n_classes):
        alpha[k] = min(cost if k == y else 0.0, (level - slope[k]) / size)


@kernel
def joint_pass(
    data: Array,
    indices: NDArray[Any],
    indptr: NDArray[Any],
    order: NDArray[np.int64],
    y: NDArray[np.int64],
    cost: Array,
    norms: Array,
    bias: float,
    alpha: Array,
    W: Array,
) -> None:
    """One pass over the rows (CSR), each αᵢ to its optimum. IN/OUT alpha (n, K), W (1 + d, K) = (bias·Σα, Σ α⊗x)."""
    n_classes = alpha.shape[1]
    slope, new, ordered = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for i in order:
        if norms[i] == 0.0:  # the row has no say in the scores: its loss is one
            alpha[i, y[i]] = cost[i]
            alpha[i, 1 if y[i] == 0 else 0] = -cost[i]
            continue
        for k in range(n_classes):
            slope[k] = bias * W[0, k] + (0.0 if k == y[i] else 1.0) - norms[i] * alpha[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            row = W[1 + indices[e]]
            for k in range(n_classes):
                slope[k] += data[e] * row[k]
        solve_simplex(slope, norms[i], y[i], cost[i], new, ordered)
        changed = False
        for k in range(n_classes):
            old = alpha[i, k]
            alpha[i, k] = new[k]
            new[k] -= old
            changed = changed or new[k] != 0.0
        if changed:
            for e in range(indptr[i], indptr[i + 1]):
                row = W[1 + indices[e]]
                for k in range(n_classes):
                    row[k] += data[e] * new[k]
            for k in range(n_classes):
                W[0, k] += bias * new[k]
