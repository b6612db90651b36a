"""Sums of one class each, and log-densities of rows under every class.

Class codes are unsigned, so that indexing needs no test for negative ones. X is C-contiguous float64 or CSR.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Array, NDArray
from ..core.jit import kernel

Codes = NDArray[np.uint64]


@kernel
def add_moments(X: Array, y: Codes, w: Array, shift: Array, count: Array, sums: Array, squares: Array) -> None:
    """Add w, w(x − shift) and w(x − shift)² of every row to those of its class."""
    m, d = X.shape
    for i in range(m):
        c, wi = y[i], w[i]
        x, s, t, q = X[i], shift[c], sums[c], squares[c]
        count[c] += wi
        for j in range(d):
            z = x[j] - s[j]
            t[j] += wi * z
            q[j] += wi * z * z


@kernel
def add_observed_moments(
    X: Array, y: Codes, w: Array, shift: Array, count: Array, sums: Array, squares: Array, observed: Array
) -> None:
    """Do the same for the entries that are not NaN, and add up their weights."""
    m, d = X.shape
    for i in range(m):
        c, wi = y[i], w[i]
        count[c] += wi
        for j in range(d):
            z = X[i, j] - shift[c, j]
            if z == z:
                sums[c, j] += wi * z
                squares[c, j] += wi * z * z
                observed[c, j] += wi


@kernel
def normal_scores(X: Array, mean: Array, half_precision: Array, constant: Array, out: Array) -> None:
    """OUT: log Π_j N(x_j; mean_kj, 1/(2 half_precision_kj)) + what `constant` holds besides, for every class k."""
    m, d = X.shape
    for i in range(m):
        x = X[i]
        for k in range(mean.shape[0]):
            mu, p = mean[k], half_precision[k]
            s = 0.0
            for j in range(d):
                z = x[j] - mu[j]
                s += p[j] * z * z
            out[i, k] = constant[k] - s


@kernel
def observed_normal_scores(
    X: Array, mean: Array, half_precision: Array, constant: Array, half_log: Array, out: Array
) -> None:
    """Do the same with the entries that are not NaN: each brings its own ½ log(2πσ²)."""
    m, d = X.shape
    for i in range(m):
        for k in range(mean.shape[0]):
            s = 0.0
            for j in range(d):
                z = X[i, j] - mean[k, j]
                if z == z:
                    s += half_precision[k, j] * z * z + half_log[k, j]
            out[i, k] = constant[k] - s


@kernel
def student_scores(X: Array, loc: Array, scale: Array, df: Array, constant: Array, each: Array, out: Array) -> None:
    """OUT: the same for Student-t densities, whose logarithms have the constants `each`; NaN is left out."""
    m, d = X.shape
    for i in range(m):
        for k in range(loc.shape[0]):
            s = 0.0
            for j in range(d):
                z = (X[i, j] - loc[k, j]) / scale[k, j]
                if z == z:
                    s += each[k, j] - 0.5 * (df[k, j] + 1.0) * np.log1p(z * z / df[k, j])
            out[i, k] = constant[k] + s


@kernel
def add_rows(X: Array, y: Codes, w: Array, sums: Array) -> float:
    """Add w·x of every row to the sums of its class; return the least entry of X."""
    m, d = X.shape
    least = 0.0
    for i in range(m):
        x, t, wi = X[i], sums[y[i]], w[i]
        low = 0.0
        for j in range(d):
            t[j] += wi * x[j]
            low = min(low, x[j])
        least = min(least, low)
    return least


@kernel
def add_sparse_rows(data: Array, indices: Any, indptr: Any, y: Codes, w: Array, sums: Array) -> None:
    """Add w·x of every CSR row to the sums of its class."""
    for i in range(y.size):
        t, wi = sums[y[i]], w[i]
        for p in range(indptr[i], indptr[i + 1]):
            t[indices[p]] += wi * data[p]


@kernel
def add_exceeding(X: Array, y: Codes, w: Array, threshold: float, ones: Array, gaps: Array) -> None:
    """Add the weights of entries above the threshold, and of NaN, to those of the row's class."""
    m, d = X.shape
    for i in range(m):
        x, t, g, wi = X[i], ones[y[i]], gaps[y[i]], w[i]
        for j in range(d):
            t[j] += wi if x[j] > threshold else 0.0
            g[j] += wi if x[j] != x[j] else 0.0


@kernel
def add_categories(X: Array, y: Codes, w: Array, offset: Any, n_classes: int, counts: Array) -> None:
    """Add weights to counts[offset_j + category·n_classes + class]; NaN is left out."""
    m, d = X.shape
    for i in range(m):
        c, wi = y[i], w[i]
        for j in range(d):
            if X[i, j] == X[i, j]:
                counts[offset[j] + np.uint64(X[i, j]) * np.uint64(n_classes) + c] += wi


@kernel
def category_scores(X: Array, offset: Any, log_prob: Array, out: Array) -> None:
    """Add log_prob[offset_j + category] of every entry that is not NaN to the scores, class by class."""
    m, d = X.shape
    K = out.shape[1]
    for i in range(m):
        s = out[i]
        for j in range(d):
            if X[i, j] == X[i, j]:
                row = log_prob[offset[j] + np.uint64(X[i, j])]
                for k in range(K):
                    s[k] += row[k]


@kernel
def sparse_scores(data: Array, indices: Any, indptr: Any, weights: Array, out: Array) -> None:
    """Add Σ_j x_j weights[j, k] of CSR rows to the scores; an entry that is zero adds nothing, whatever its weight."""
    K = out.shape[1]
    total = np.zeros(K)  # of its own, so that the inner loop need not fear that source and destination overlap
    for i in range(out.shape[0]):
        total[:] = 0.0
        first = indptr[i]
        n = indptr[i + 1] - first
        values, columns = data[first : first + n], indices[first : first + n]
        for p in range(n):
            v, row = values[p], weights[columns[p]]
            if v != 0.0:
                for k in range(K):
                    total[k] += v * row[k]
        for k in range(K):
            out[i, k] += total[k]
