"""Kernels of the solvers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.jit import kernel

Array = NDArray[np.float64]
Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop


@kernel
def cross_products(X: Array, Y: Array, out: Array) -> None:
    """OUT out (k, d) += YᵀX, for a few columns Y: faster than a matrix product, which would pack X first."""
    n, d = X.shape
    k = Y.shape[1]
    for i in range(n):
        row = X[i]
        for c in range(k):
            y = Y[i, c]
            total = out[c]
            for j in range(d):
                total[j] += y * row[j]


@kernel
def residual_rows(
    X: Array, centre: Array, y: Array, weight: Array, level: float, w: Array, cross: Array
) -> tuple[float, float]:
    """Return Σ s r and Σ s r² for r = y − level − (x − centre)ᵀw. OUT cross (d,) += Σ s r (x − centre). One sweep."""
    n, d = X.shape
    total = 0.0
    square = 0.0
    for i in range(n):
        row = X[i]
        z = 0.0
        for j in range(d):
            z += (row[j] - centre[j]) * w[j]
        r = (y[i] - level) - z
        sr = weight[i] * r
        for j in range(d):
            cross[j] += sr * (row[j] - centre[j])
        total += sr
        square += sr * r
    return total, square


@kernel
def sparse_column_moments(
    data: Array,
    indices: Index,
    indptr: Index,
    weight: Array,
    centre: Array,
    first: Array,
    second: Array,
    present: Array,
) -> None:
    """OUT, of every column over its stored entries: first += Σ w(x − c), second += Σ w(x − c)², present += Σ w."""
    for i in range(indptr.size - 1):
        w = weight[i]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            x = data[k] - centre[j]
            first[j] += w * x
            second[j] += w * x * x
            present[j] += w


@kernel
def sparse_residual_rows(
    data: Array, indices: Index, indptr: Index, y: Array, weight: Array, level: float, w: Array, cross: Array
) -> tuple[float, float]:
    """Return Σ s r and Σ s r² for r = y − level − xᵀw. OUT cross (d,) += Σ s r x. One sweep over CSR rows."""
    total = 0.0
    square = 0.0
    for i in range(indptr.size - 1):
        r = y[i] - level
        for k in range(indptr[i], indptr[i + 1]):
            r -= data[k] * w[indices[k]]
        sr = weight[i] * r
        for k in range(indptr[i], indptr[i + 1]):
            cross[indices[k]] += sr * data[k]
        total += sr
        square += sr * r
    return total, square


@kernel
def sparse_normal_product(
    data: Array, indices: Index, indptr: Index, weight: Array, v: Array, offset: float, out: Array
) -> float:
    """Return Σ wᵢzᵢ for zᵢ = xᵢᵀv − offset. OUT out (d,) += Σ wᵢ zᵢ xᵢ. One sweep over CSR rows."""
    total = 0.0
    for i in range(indptr.size - 1):
        z = -offset
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * v[indices[k]]
        z *= weight[i]
        total += z
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += z * data[k]
    return total
