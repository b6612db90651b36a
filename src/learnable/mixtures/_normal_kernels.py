"""Loops of Gaussian mixtures: log-densities and weighted second moments, many rows at once.

Rows come by columns, (d, m), so that every inner loop runs over rows; a strip of them stays in the cache.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import ieee_kernel, kernel, lean_kernel
from ..core.simd import add, exp, fma, larger, load, mul, spread, store, sub

Array = NDArray[Any]

_STRIP: Final = 128


@kernel
def log_normals(Xt: Array, means: Array, roots: Array, constants: Array, out: Array) -> None:
    """Write constantₖ − ½‖Wₖ(x − μₖ)‖².

    IN  Xt (d, m), means (K, d), roots (K, d, d) lower triangular W with WᵀW = Σ⁻¹, constants (K,). OUT out (K, m).
    """
    d, m = Xt.shape
    z, square = np.zeros(d * _STRIP), np.empty(_STRIP)
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            for a in range(d):
                za, xa, mu = z[a * _STRIP : (a + 1) * _STRIP], Xt[a, start : start + size], means[k, a]
                for t in range(size):
                    za[t] = xa[t] - mu
            _whitened_squares(z, roots[k], square)
            of_strip = out[k, start : start + size]
            for t in range(size):
                of_strip[t] = constants[k] - 0.5 * square[t]


@lean_kernel
def _whitened_squares(z: Array, root: Array, square: Array) -> None:
    """Write ‖Wz‖² of a strip of rows, sixteen at a time; z (d · strip,) by columns, OUT square (strip,)."""
    d = root.shape[0]
    for t in range(0, _STRIP, 16):
        s0, s1, s2, s3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        for a in range(d):
            row = root[a]
            y0, y1, y2, y3 = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for b in range(a + 1):
                w, at = spread(row[b]), b * _STRIP + t
                y0, y1 = fma(w, load(z, at), y0), fma(w, load(z, at + 4), y1)
                y2, y3 = fma(w, load(z, at + 8), y2), fma(w, load(z, at + 12), y3)
            s0, s1, s2, s3 = fma(y0, y0, s0), fma(y1, y1, s1), fma(y2, y2, s2), fma(y3, y3, s3)
        store(square, t, s0)
        store(square, t + 4, s1)
        store(square, t + 8, s2)
        store(square, t + 12, s3)


@ieee_kernel
def normalise_columns(log_joint: Array, tops: Array, inverse: Array) -> None:
    """Replace each column by its exponentials divided by their sum, eight columns, a line of the cache, at a time.

    IN/OUT log_joint (K, m), m a multiple of eight. OUT tops (m,) the greatest logarithm, inverse (m,) of the sum of
    the exponentials less that: log Σₖ exp is tops − log(inverse).
    """
    K, m = log_joint.shape
    for t in range(0, m, 8):
        best0, best1 = spread(-np.inf), spread(-np.inf)
        for k in range(K):
            row = log_joint[k]
            best0, best1 = larger(load(row, t), best0), larger(load(row, t + 4), best1)
        store(tops, t, best0)
        store(tops, t + 4, best1)
        sum0, sum1 = spread(0.0), spread(0.0)
        for k in range(K):
            row = log_joint[k]
            share0, share1 = exp(sub(load(row, t), best0)), exp(sub(load(row, t + 4), best1))
            sum0, sum1 = add(sum0, share0), add(sum1, share1)
            store(row, t, share0)
            store(row, t + 4, share1)
        store(inverse, t, sum0)
        store(inverse, t + 4, sum1)
        for i in range(t, t + 8):
            inverse[i] = 1.0 / inverse[i]
        scale0, scale1 = load(inverse, t), load(inverse, t + 4)
        for k in range(K):
            row = log_joint[k]
            store(row, t, mul(load(row, t), scale0))
            store(row, t + 4, mul(load(row, t + 4), scale1))


@kernel
def log_normals_diagonal(Xt: Array, means: Array, precisions: Array, constants: Array, out: Array) -> None:
    """Write constantₖ − ½Σⱼ pₖⱼ(xⱼ − μₖⱼ)²; precisions (K, d), the rest as in `log_normals`."""
    d, m = Xt.shape
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            square = out[k, start : start + size]
            square[:] = 0.0
            for a in range(d):
                xa, mu, p = Xt[a, start : start + size], means[k, a], precisions[k, a]
                for t in range(size):
                    gap = xa[t] - mu
                    square[t] += p * gap * gap
            for t in range(size):
                square[t] = constants[k] - 0.5 * square[t]


@kernel
def add_moments(Xt: Array, means: Array, r: Array, first: Array, second: Array) -> None:
    """Add Σ r(x − μ) and Σ r(x − μ)(x − μ)ᵀ, its lower triangle, of every component.

    IN  Xt (d, m), means (K, d), r (K, m) weights of the rows. OUT first (K, d), second (K, d, d).
    """
    d, m = Xt.shape
    z, rz = np.empty((d, _STRIP)), np.empty(_STRIP)
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            rk = r[k, start : start + size]
            for a in range(d):
                za, xa, mu = z[a], Xt[a, start : start + size], means[k, a]
                total = 0.0
                for t in range(size):
                    za[t] = xa[t] - mu
                    rz[t] = rk[t] * za[t]
                    total += rz[t]
                first[k, a] += total
                for b in range(a + 1):
                    zb, product = z[b], 0.0
                    for t in range(size):
                        product += rz[t] * zb[t]
                    second[k, a, b] += product


@kernel
def add_moments_diagonal(Xt: Array, means: Array, r: Array, first: Array, second: Array) -> None:
    """Add Σ r(x − μ) and Σ r(x − μ)², column by column; second (K, d), the rest as in `add_moments`."""
    d, m = Xt.shape
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            rk = r[k, start : start + size]
            for a in range(d):
                xa, mu, total, square = Xt[a, start : start + size], means[k, a], 0.0, 0.0
                for t in range(size):
                    gap = xa[t] - mu
                    rz = rk[t] * gap
                    total += rz
                    square += rz * gap
                first[k, a] += total
                second[k, a] += square


@ieee_kernel
def invert_lower(factors: Array, inverses: Array) -> None:
    """Write the inverses of lower triangular matrices, column by column. IN factors, OUT inverses (K, d, d)."""
    for k in range(factors.shape[0]):
        L, W = factors[k], inverses[k]
        for j in range(L.shape[0]):
            W[j, j] = 1.0 / L[j, j]
            for i in range(j + 1, L.shape[0]):
                total = 0.0
                for b in range(j, i):
                    total += L[i, b] * W[b, j]
                W[i, j] = -total / L[i, i]
