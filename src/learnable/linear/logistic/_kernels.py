"""Compiled kernels of the L1-penalised logistic model: epochs over sparse columns of its quadratic model at a point.

The model of the loss is ½Σᵢ uᵢᵀHᵢuᵢ − Σᵢ ρᵢᵀuᵢ, uᵢ = b + δᵀxᵢ: for two classes ρ = s(y − p) and H = D = s·p(1 − p), for
more ρ = s(e_y − p) and H = s(diag p − ppᵀ). Epochs keep ρ − Hu up to date and never divide by a row's curvature.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.jit import kernel
from ...risk._class_kernels import logistic_point
from ...solvers.composite._kernels import shrunk

Array = NDArray[np.float64]
Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop


Visited = NDArray[np.uint64]


@kernel
def logistic_rows(z: Array, y: Array, weight: Array, rho: Array, D: Array) -> float:
    """Return Σ s·loss of the scores z (n,). OUT rho = s(y − p) and D = s·p(1 − p)."""
    loss = 0.0
    for i in range(z.size):
        value, slope, bend = logistic_point(z[i], y[i])
        loss += weight[i] * value
        rho[i], D[i] = -weight[i] * slope, weight[i] * bend
    return loss


@kernel
def logistic_loss(z: Array, y: Array, weight: Array) -> float:
    """Return Σ s·loss alone."""
    loss = 0.0
    for i in range(z.size):
        loss += weight[i] * logistic_point(z[i], y[i])[0]
    return loss


@kernel
def curved_moments(data: Array, indices: Index, indptr: Index, D: Array, moments: Array) -> None:
    """OUT moments (2, k): Σ D x and Σ D x² of CSC columns."""
    for j in range(moments.shape[1]):
        first = 0.0
        second = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            v = D[indices[p]] * data[p]
            first += v
            second += v * data[p]
        moments[0, j], moments[1, j] = first, second


@kernel
def curved_epoch(
    data: Array, indices: Index, indptr: Index, D: Array, l1: float, l2: float,
    moments: Array, visited: Visited, w: Array, rho: Array, total: Array,
) -> float:  # fmt: skip
    """One epoch over the visited columns for two classes, the intercept eliminated; return a slope's largest change.

    IN/OUT w (k,), rho = ρ − D·Xδ (n,), total = (Σ rho, 1/ΣD), or (…, 0) without an intercept. IN moments (2, k): XᵀD,
    and the curvatures that eliminating the intercept leaves.
    """
    largest = 0.0
    for j in visited:
        h = moments[1, j]
        if h <= 0.0:
            continue
        u = h * w[j] - moments[0, j] * total[0] * total[1]
        for p in range(indptr[j], indptr[j + 1]):
            u += data[p] * rho[indices[p]]
        new = shrunk(u, l1, h + l2, False)
        step = new - w[j]
        if step != 0.0:
            w[j] = new
            for p in range(indptr[j], indptr[j + 1]):
                rho[indices[p]] -= step * D[indices[p]] * data[p]
            total[0] -= step * moments[0, j]
            largest = max(largest, abs(step) * (h + l2))
    return largest


@kernel
def softmax_moments(data: Array, indices: Index, indptr: Index, P: Array, weight: Array, curvature: Array) -> None:
    """OUT curvature (k, K): Σ s·p(1 − p)x² of CSC columns, for class probabilities P (n, K)."""
    n_classes = P.shape[1]
    for j in range(curvature.shape[0]):
        for c in range(n_classes):
            curvature[j, c] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            v = weight[i] * data[p] * data[p]
            for c in range(n_classes):
                curvature[j, c] += v * P[i, c] * (1.0 - P[i, c])


@kernel
def softmax_epoch(
    data: Array, indices: Index, indptr: Index, P: Array, weight: Array, l1: float, l2: float,
    curvature: Array, W: Array, R: Array,
) -> float:  # fmt: skip
    """One epoch for K classes. IN/OUT W (k, K) and R = ρ − HXδ (n, K). Returns the largest change of a slope."""
    n_classes = W.shape[1]
    largest = 0.0
    for j in range(W.shape[0]):
        for c in range(n_classes):
            h = curvature[j, c]
            if h <= 0.0:
                continue
            u = h * W[j, c]
            for p in range(indptr[j], indptr[j + 1]):
                u += data[p] * R[indices[p], c]
            new = shrunk(u, l1, h + l2, False)
            step = new - W[j, c]
            if step != 0.0:
                W[j, c] = new
                for p in range(indptr[j], indptr[j + 1]):
                    i = indices[p]
                    v = step * data[p] * weight[i] * P[i, c]
                    for m in range(n_classes):
                        R[i, m] += v * P[i, m]
                    R[i, c] -= v
                largest = max(largest, abs(step) * (h + l2))
        recentre(W[j], l1, l2)
    return largest


@kernel
def recentre(v: Array, l1: float, l2: float) -> None:
    """IN/OUT v (K,): add the c that minimises λ₁Σ|v + c| + ½λ₂Σ(v + c)².

    The softmax does not see a common shift of the scores. c is where a coefficient becomes zero, or a stationary point
    between two such places, where m coefficients are positive.
    """
    n_classes = v.size
    total = 0.0
    least = 0.0
    moved = False
    for k in range(n_classes):
        total += v[k]
        least += l1 * abs(v[k]) + 0.5 * l2 * v[k] * v[k]
        moved = moved or v[k] != 0.0
    if not moved:
        return
    best = 0.0
    for m in range(n_classes if l2 == 0.0 else 2 * n_classes + 1):
        c = -v[m] if m < n_classes else -(l1 / l2 * (2 * (m - n_classes) - n_classes) + total) / n_classes
        value = 0.0
        for k in range(n_classes):
            value += l1 * abs(v[k] + c) + 0.5 * l2 * (v[k] + c) ** 2
        if value < least:
            best, least = c, value
    for k in range(n_classes):
        v[k] += best


@kernel
def recentre_rows(W: Array, l1: float, l2: float) -> None:
    """IN/OUT W (d, K): the same for every row."""
    for j in range(W.shape[0]):
        recentre(W[j], l1, l2)
