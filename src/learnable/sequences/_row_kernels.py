"""Loops over rows: densities, likelihoods, moments, sums by symbol, and simulated chains."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel, lean_kernel
from ..core.simd import add, exp, fma, larger, load, mul, spread, store, sub, top

TILE = 256  # rows that stay in the nearest cache


@kernel
def walk(start, P, u, path):  # type: ignore[no-untyped-def]
    """Simulate chains. IN cumulated start (K,) and rows P (K, K), u (paths, steps) uniform; OUT path, as u."""
    for n in range(u.shape[0]):
        for t in range(u.shape[1]):
            row = start if t == 0 else P[path[n, t - 1]]
            path[n, t] = np.searchsorted(row, u[n, t], side="right")


@lean_kernel
def log_normal_rows(X, mean, half, constant, out):  # type: ignore[no-untyped-def]
    """Set out_tk = Σ_j constant_jk − half_jk (x_tj − mean_jk)²; a missing entry counts nothing.

    IN X (n, d), mean, half (half the precision) and constant (d · M,), M a multiple of four; OUT out (n · M,).
    """
    n, d = X.shape
    M = mean.size // d
    for t in range(n):
        row = X[t]
        for q in range(0, M, 4):
            logs = spread(0.0)
            for j in range(d):
                if not np.isnan(row[j]):
                    z = sub(spread(row[j]), load(mean, j * M + q))
                    logs = add(logs, load(constant, j * M + q))
                    logs = sub(logs, mul(mul(load(half, j * M + q), z), z))
            store(out, t * M + q, logs)


@lean_kernel
def scatter_rows(X, gamma, centre, weight, first, second):  # type: ignore[no-untyped-def]
    """Add Σ_t γ_tk, Σ_t γ_tk (x_tj − c_jk) and Σ_t γ_tk (x_tj − c_jk)² over entries that are there.

    IN X (n, d), gamma (n · M,), centre (d · M,), M a multiple of four; OUT weight, first, second (d · M,).
    """
    n, d = X.shape
    M = centre.size // d
    for lo in range(0, n, TILE):
        hi = min(lo + TILE, n)
        for j in range(d):
            for q in range(0, M, 4):
                c, w, a, b = load(centre, j * M + q), spread(0.0), spread(0.0), spread(0.0)
                for t in range(lo, hi):
                    x = X[t, j]
                    if not np.isnan(x):
                        g, z = load(gamma, t * M + q), sub(spread(x), c)
                        w, gz = add(w, g), mul(g, z)
                        a, b = add(a, gz), fma(gz, z, b)
                store(weight, j * M + q, add(load(weight, j * M + q), w))
                store(first, j * M + q, add(load(first, j * M + q), a))
                store(second, j * M + q, add(load(second, j * M + q), b))


@lean_kernel
def likelihood_rows(log, padding, b, offset):  # type: ignore[no-untyped-def]
    """Set b_tk = exp(log_tk − offset_t) with offset_t the greatest of the row; the padding of a row is zero.

    IN log (n · M,), padding (M,): zeros, and −inf beyond the states; OUT b (n · M,), offset (n,). A row of −inf, which
    is impossible, has offset −inf and b zero.
    """
    M = padding.size
    for t in range(offset.size):
        at = t * M
        best = spread(-np.inf)
        for q in range(0, M, 4):
            best = larger(add(load(log, at + q), load(padding, q)), best)
        peak = top(best)
        offset[t] = peak
        shift = spread(peak if peak > -np.inf else 0.0)
        for q in range(0, M, 4):
            store(b, at + q, exp(sub(add(load(log, at + q), load(padding, q)), shift)))


@lean_kernel
def sum_by_code(codes, gamma, out):  # type: ignore[no-untyped-def]
    """Add the rows of gamma (n · M,) that have the same code. OUT out (lines · M,)."""
    M = gamma.size // codes.size
    for t in range(codes.size):
        line = codes[t] * M
        for q in range(0, M, 4):
            store(out, line + q, add(load(out, line + q), load(gamma, t * M + q)))
