"""Loops of Gaussian mixtures: log-densities and weighted second moments, many rows at once.

Rows come by columns, (d, m), so that every inner loop runs over rows; a strip of them stays in the cache.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[Any]

_STRIP: Final = 128


@kernel
def log_normals(Xt: Array, means: Array, roots: Array, constants: Array, out: Array) -> None:
    """Write constantₖ − ½‖Wₖ(x − μₖ)‖².

    IN  Xt (d, m), means (K, d), roots (K, d, d) lower triangular W with WᵀW = Σ⁻¹, constants (K,). OUT out (K, m).
    """
    d, m = Xt.shape
    z, y = np.empty((d, _STRIP)), np.empty(_STRIP)
    for start in range(0, m, _STRIP):
        size = min(_STRIP, m - start)
        for k in range(means.shape[0]):
            square = out[k, start : start + size]
            square[:] = 0.0
            for a in range(d):
                za, xa, mu = z[a], Xt[a, start : start + size], means[k, a]
                for t in range(size):
                    za[t] = xa[t] - mu
                y[:] = 0.0
                for b in range(a + 1):
                    zb, w = z[b], roots[k, a, b]
                    for t in range(size):
                        y[t] += w * zb[t]
                for t in range(size):
                    square[t] += y[t] * y[t]
            for t in range(size):
                square[t] = constants[k] - 0.5 * square[t]


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
