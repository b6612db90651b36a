"""Loops over rows: densities, moments, sums by symbol, and simulated chains."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel


@kernel
def walk(start, P, u, path):  # type: ignore[no-untyped-def]
    """Simulate chains. IN cumulated start (K,) and rows P (K, K), u (paths, steps) uniform; OUT path, as u."""
    for n in range(u.shape[0]):
        for t in range(u.shape[1]):
            row = start if t == 0 else P[path[n, t - 1]]
            path[n, t] = np.searchsorted(row, u[n, t], side="right")


@kernel
def log_normal_rows(X, mean, precision, constant, out):  # type: ignore[no-untyped-def]
    """Set out_tk = constant_k − ½ Σ_j precision_jk (x_tj − mean_jk)²; a missing entry counts nothing.

    IN X (n, d), mean and precision (d, M), constant (d, M): the share of each entry; OUT out (n, M).
    """
    d, M = mean.shape
    for t in range(X.shape[0]):
        row = out[t]
        row[:] = 0.0
        for j in range(d):
            x = X[t, j]
            if np.isnan(x):
                continue
            for k in range(M):
                z = x - mean[j, k]
                row[k] += constant[j, k] - 0.5 * precision[j, k] * z * z


@kernel
def scatter_rows(X, gamma, centre, weight, first, second):  # type: ignore[no-untyped-def]
    """Add Σ_t γ_tk, Σ_t γ_tk (x_tj − c_jk) and Σ_t γ_tk (x_tj − c_jk)² over entries that are there.

    IN X (n, d), gamma (n, M), centre (d, M); OUT weight, first, second (d, M).
    """
    d, M = centre.shape
    for t in range(X.shape[0]):
        for j in range(d):
            x = X[t, j]
            if np.isnan(x):
                continue
            for k in range(M):
                g = gamma[t, k]
                z = x - centre[j, k]
                weight[j, k] += g
                first[j, k] += g * z
                second[j, k] += g * z * z


@kernel
def from_largest(logb, n_states, offset):  # type: ignore[no-untyped-def]
    """Subtract the largest entry of each row, note it in offset (n,), and zero the padding. IN/OUT logb (n, M)."""
    for t in range(logb.shape[0]):
        top = -np.inf
        for k in range(n_states):
            top = max(top, logb[t, k])
        offset[t] = top
        shift_by = top if top > -np.inf else 0.0
        for k in range(n_states):
            logb[t, k] -= shift_by
        for k in range(n_states, logb.shape[1]):
            logb[t, k] = 0.0


@kernel
def sum_by_code(codes, gamma, out):  # type: ignore[no-untyped-def]
    """Add the rows of gamma (n, K) that have the same code. OUT out (lines, K)."""
    K = out.shape[1]
    for t in range(codes.size):
        line = out[codes[t]]
        for k in range(K):
            line[k] += gamma[t, k]
