"""Compiled kernels of squared shortfalls: one sweep over the rows gives loss, gradient and the rows that fall short.

The plain `Risk` of the same loss is their reference (`tests/risk/test_shortfall.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop
Mask = NDArray[np.uint8]


@kernel
def shortfall_point(z: float, y: float, epsilon: float, regression: bool) -> tuple[float, float]:
    """Return by how much a score misses, v = max(0, 1 − yz) or max(0, |z − y| − ε), and dv/dz."""
    if regression:
        r = z - y
        v = abs(r) - epsilon
        return (v, 1.0 if r > 0 else -1.0) if v > 0 else (0.0, 0.0)
    v = 1.0 - y * z
    return (v, -y) if v > 0 else (0.0, 0.0)


@kernel
def squared_dense(
    X: Array,
    y: Array,
    cost: Array,
    w: Array,
    level: float,
    epsilon: float,
    regression: bool,
    slope: Array,
    active: Mask,
) -> tuple[float, float]:
    """Return Σ c v² and Σ 2cv·v′. OUT slope (d,) += Σ 2cv·v′·x; active (n,): whether v > 0. One sweep."""
    n, d = X.shape
    loss = 0.0
    total = 0.0
    for i in range(n):
        row = X[i]
        z = level
        for j in range(d):
            z += row[j] * w[j]
        v, direction = shortfall_point(z, y[i], epsilon, regression)
        active[i] = v > 0
        if v > 0:
            r = 2.0 * cost[i] * v * direction
            for j in range(d):
                slope[j] += r * row[j]
            loss += cost[i] * v * v
            total += r
    return loss, total


@kernel
def squared_sparse(
    data: Array,
    indices: Index,
    indptr: Index,
    y: Array,
    cost: Array,
    w: Array,
    level: float,
    epsilon: float,
    regression: bool,
    slope: Array,
    active: Mask,
) -> tuple[float, float]:
    """Return the same sums for CSR rows."""
    loss = 0.0
    total = 0.0
    for i in range(indptr.size - 1):
        z = level
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        v, direction = shortfall_point(z, y[i], epsilon, regression)
        active[i] = v > 0
        if v > 0:
            r = 2.0 * cost[i] * v * direction
            for k in range(indptr[i], indptr[i + 1]):
                slope[indices[k]] += r * data[k]
            loss += cost[i] * v * v
            total += r
    return loss, total


@kernel
def curvature_sparse(
    data: Array, indices: Index, indptr: Index, weight: Array, v: Array, level: float, z: Array, out: Array
) -> float:
    """Return Σ hz of z = level + xᵀv. OUT z (n,): hz; out (d,) += Σ hz·x; rows of curvature h = 0 are skipped.

    Two loops instead of one: v and out, each as long as a row is wide, take turns in the cache.
    """
    n = indptr.size - 1
    total = 0.0
    for i in range(n):
        z[i] = 0.0
        if weight[i] != 0.0:
            s = level
            for k in range(indptr[i], indptr[i + 1]):
                s += data[k] * v[indices[k]]
            z[i] = weight[i] * s
            total += z[i]
    for i in range(n):
        if z[i] != 0.0:
            s = z[i]
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += s * data[k]
    return total
