"""Compiled loops of random-walk Metropolis and of Gibbs sweeps; the textbook form is `tests/oracles/metropolis.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import intrinsic, kernel, lean_kernel
from ._target_kernels import Problem, evaluate
from .random import fill_normal, uniform

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

call_at = intrinsic("call_at")


@lean_kernel
def update_factor(S: Array, v: Array, sign: float) -> None:
    """OUT S: the lower Cholesky factor of SSᵀ + sign·vvᵀ; v is overwritten. A downdate that would fail is left out."""
    d = v.size
    for k in range(d):
        square = S[k, k] * S[k, k] + sign * v[k] * v[k]
        if square <= 1e-12 * S[k, k] * S[k, k]:
            square = 1e-12 * S[k, k] * S[k, k]
        r = math.sqrt(square)
        c = r / S[k, k]
        s = v[k] / S[k, k]
        S[k, k] = r
        for i in range(k + 1, d):
            S[i, k] = (S[i, k] + sign * s * v[i]) / c
            v[i] = c * v[i] - s * S[i, k]


@lean_kernel
def adapt_factor(S: Array, z: Array, accept: float, target: float, count: int, scratch: Array) -> None:
    """OUT S: one step of robust adaptive Metropolis (Vihola, Statistics and Computing 22, 2012).

    SSᵀ ← S(I + η(α − α*) zzᵀ/‖z‖²)Sᵀ with η = min(1, d·count^(−2/3)).
    """
    d = z.size
    norm = 0.0
    for i in range(d):
        norm += z[i] * z[i]
    eta = min(1.0, d * count ** (-2.0 / 3.0))
    change = eta * (accept - target)
    scale = math.sqrt(abs(change) / norm)
    for i in range(d):
        total = 0.0
        for j in range(i + 1):
            total += S[i, j] * z[j]
        scratch[i] = total * scale
    update_factor(S, scratch, 1.0 if change >= 0.0 else -1.0)


@kernel
def walk(
    target: Problem,
    words: Words,
    u: Array,
    value: Array,
    S: Array,
    counts: NDArray[np.int64],
    aim: float,
    draws: Array,
    infos: Array,
    stop: NDArray[np.int64],
) -> None:
    """Take steps of random-walk Metropolis: propose u + Sz, accept with probability min(1, p(u′)/p(u)).

    IN words (n, 4), aim the acceptance wanted. IN/OUT u (d,), value (1,) its log density, S (d, d), counts = [steps
    done, steps of warm-up]. OUT draws (n, d) on free coordinates, infos (n, 3): acceptance, log density, accepted.
    """
    d = u.size
    z, proposed, gradient = np.empty(d), np.empty(d), np.empty(d)
    stream = np.empty(4, dtype=np.uint64)
    for t in range(words.shape[0]):
        if stop[0] != 0 or target.failed[0] != 0:
            return
        for k in range(4):
            stream[k] = words[t, k]
        fill_normal(stream, z)
        for i in range(d):
            total = u[i]
            for j in range(i + 1):
                total += S[i, j] * z[j]
            proposed[i] = total
        new = evaluate(target, proposed, gradient)
        change = new - value[0]
        accept = 1.0 if change >= 0.0 else math.exp(change)
        taken = uniform(stream) < accept
        if taken:
            u[:] = proposed
            value[0] = new
        counts[0] += 1
        if counts[0] <= counts[1]:
            adapt_factor(S, z, accept, aim, counts[0], proposed)
        draws[t] = u
        infos[t, 0] = accept
        infos[t, 1] = value[0]
        infos[t, 2] = 1.0 if taken else 0.0


@kernel
def sweep(address: Any, data: NDArray[np.int64], words: Words, x: Array, draws: Array, stop: NDArray[np.int64]) -> None:
    """Call a compiled Gibbs sweep for each row of words; IN/OUT x (d,). OUT draws (n, d)."""
    stream = np.empty(4, dtype=np.uint64)
    for t in range(words.shape[0]):
        if stop[0] != 0:
            return
        for k in range(4):
            stream[k] = words[t, k]
        call_at(address, x, stream, data)
        draws[t] = x
