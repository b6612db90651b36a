"""Compiled E-steps over documents as rows of a CSR table; their twins in NumPy stand in `tests/oracles/lda.py`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel, lean_kernel

Array = NDArray[np.float64]
Ints = NDArray[np.int32]
Starts = NDArray[np.int64]

_TINY = 1e-100


@lean_kernel
def digamma(x: float) -> float:
    """Return ψ(x), x > 0: the recurrence up to 8, then the asymptotic series."""
    found = 0.0
    while x < 8.0:
        found -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y / 132.0))))
    return found + math.log(x) - 0.5 / x - series


@kernel
def infer_documents(
    starts: Starts,
    words: Ints,
    counts: Array,
    first: int,
    last: int,
    weights: Array,
    alpha: Array,
    tol: float,
    max_iter: int,
    smooth: bool,
    gamma: Array,
) -> None:
    """IN/OUT gamma (D, K): the fixed point of γ_k = α_k + Σ n φ_k for documents first … last − 1.

    φ_k ∝ weights[w, k] e^{ψ(γ_k)}, or weights[w, k] γ_k if not `smooth` (EM for proportions). Stops when γ changes by
    less than `tol` in the mean.
    """
    K = weights.shape[1]
    own = np.empty(K)
    new = np.empty(K)
    for d in range(first, last):
        for _ in range(max_iter):
            for k in range(K):
                own[k] = math.exp(digamma(gamma[d, k])) if smooth else gamma[d, k]
                new[k] = 0.0
            for i in range(starts[d], starts[d + 1]):
                w = words[i]
                total = 0.0
                for k in range(K):
                    total += own[k] * weights[w, k]
                share = counts[i] / (total + _TINY)
                for k in range(K):
                    new[k] += share * weights[w, k]
            change = 0.0
            for k in range(K):
                value = alpha[k] + own[k] * new[k]
                change += abs(value - gamma[d, k])
                gamma[d, k] = value
            if change < tol * K:
                break


@kernel
def collect(
    starts: Starts, words: Ints, counts: Array, weights: Array, own: Array, stats: Array, by_row: Array
) -> None:
    """OUT stats (V, K): Σ n φ over documents with φ ∝ own[d] weights[w]; by_row (D,): Σ n log Σ_k own weights."""
    K = weights.shape[1]
    stats[:] = 0.0
    for d in range(starts.size - 1):
        level = 0.0
        for i in range(starts[d], starts[d + 1]):
            w = words[i]
            total = _TINY
            for k in range(K):
                total += own[d, k] * weights[w, k]
            share = counts[i] / total
            level += counts[i] * math.log(total)
            for k in range(K):
                stats[w, k] += share * own[d, k] * weights[w, k]
        by_row[d] = level
