"""Compiled kernels of the logistic and softmax losses: one sweep over the rows gives loss, gradient and curvature.

The plain `Risk` of the same loss is their reference (`tests/risk/test_objective.py`).
"""

from __future__ import annotations

from math import exp, log1p

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop


@kernel
def class_products(
    X: Array, shift: Array, codes: NDArray[np.int64], weight: Array, x_sum: Array, square: Array
) -> None:
    """OUT x_sum (K, d) += Σ s (x − shift) by class; square (d,) += Σ s (x − shift)². One sweep."""
    n, d = X.shape
    for i in range(n):
        row, s = X[i], weight[i]
        own = x_sum[codes[i]]
        for j in range(d):
            moved = row[j] - shift[j]
            own[j] += s * moved
            square[j] += s * moved * moved


@kernel
def logistic_point(z: float, y: float) -> tuple[float, float, float]:
    """Return the loss log(1 + e^z) − yz, its slope p − y and its curvature p(1 − p)."""
    e = exp(-abs(z))
    small, large = e / (1.0 + e), 1.0 / (1.0 + e)
    p, q = (large, small) if z >= 0 else (small, large)
    wrong = q if y > 0.5 else p
    # log(1 + e^z) − yz = log(1 + e^{−|z|}) + max(z, 0) − yz, where the last two terms are 0 or |z|.
    excess = abs(z) if (z >= 0) != (y > 0.5) else 0.0
    return log1p(e) + excess, -wrong if y > 0.5 else wrong, small * large


@kernel
def logistic_dense(
    X: Array, centre: Array, y: Array, weight: Array, w: Array, b: float, gradient: Array, curvature: Array
) -> tuple[float, float]:
    """Return Σ s·loss and Σ s·slope. OUT gradient (d,) += Σ s·slope·(x − centre); curvature (n,)."""
    n, d = X.shape
    loss = 0.0
    total = 0.0
    for i in range(n):
        row = X[i]
        z = b
        for j in range(d):
            z += (row[j] - centre[j]) * w[j]
        value, slope, bend = logistic_point(z, y[i])
        r = weight[i] * slope
        for j in range(d):
            gradient[j] += r * (row[j] - centre[j])
        loss += weight[i] * value
        total += r
        curvature[i] = weight[i] * bend
    return loss, total


@kernel
def logistic_sparse(
    data: Array,
    indices: Index,
    indptr: Index,
    y: Array,
    weight: Array,
    w: Array,
    b: float,
    gradient: Array,
    curvature: Array,
) -> tuple[float, float]:
    """Return the same sums for CSR rows; b already holds −centreᵀw, and the gradient is not moved."""
    loss = 0.0
    total = 0.0
    for i in range(indptr.size - 1):
        z = b
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        value, slope, bend = logistic_point(z, y[i])
        r = weight[i] * slope
        for k in range(indptr[i], indptr[i + 1]):
            gradient[indices[k]] += r * data[k]
        loss += weight[i] * value
        total += r
        curvature[i] = weight[i] * bend
    return loss, total


@kernel
def softmax_rows(scores: Array, y: NDArray[np.int64], weight: Array, probability: Array) -> float:
    """Return Σ s·(log Σₖ e^{zₖ} − z_y). IN/OUT scores (n, K) become s·(p − e_y); OUT probability (n, K)."""
    n, n_classes = scores.shape
    loss = 0.0
    for i in range(n):
        z = scores[i]
        top = z[0]
        for k in range(1, n_classes):
            top = max(top, z[k])
        own = z[y[i]]
        norm = 0.0
        others = 0.0
        for k in range(n_classes):
            e = exp(z[k] - top)
            probability[i, k] = e
            norm += e
            others += e if k != y[i] else 0.0
        loss += weight[i] * (np.log(norm) + (top - own))
        for k in range(n_classes):
            probability[i, k] /= norm
            z[k] = weight[i] * probability[i, k]
        # p_y − 1 = −Σ_{k≠y} p_k, without cancellation
        z[y[i]] = -weight[i] * (others / norm)
    return loss
