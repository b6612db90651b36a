"""Compiled: replicas at several temperatures that walk and change places."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel, lean_kernel
from ._metropolis_kernels import adapt_factor
from ._target_kernels import Problem, evaluate
from .random import fill_normal, uniform

Array = NDArray[np.float64]
Words = NDArray[np.uint64]


@lean_kernel
def move_ladder(betas: Array, rates: Array, count: int) -> None:
    """OUT betas: gaps of log(1/β) grow where exchanges are frequent; both ends stay. Scratch: rates is overwritten.

    The step falls like 1/count (Vousden et al., with t₀ = 100 exchanges): a ladder that settles.
    """
    K = betas.size
    step = 1.0 / (1.0 + count / 100.0)
    mean = 0.0
    for k in range(K - 1):
        mean += rates[k] / (K - 1)
    total = 0.0
    whole = -math.log(betas[K - 1])
    above = 0.0
    for k in range(K - 1):
        now = -math.log(betas[k + 1])
        gap = (now - above) * math.exp(step * (rates[k] - mean))
        above = now
        rates[k] = gap
        total += gap
    level = 0.0
    for k in range(K - 2):
        level += rates[k] * whole / total
        betas[k + 1] = math.exp(-level)


@kernel
def temper(
    target: Problem,
    words: Words,
    u: Array,
    values: Array,
    factors: Array,
    betas: Array,
    clock: NDArray[np.int64],
    n_inner: int,
    aim: float,
    draws: Array,
    infos: Array,
    stop: NDArray[np.int64],
) -> None:
    """Take n_inner Metropolis steps of each replica and one round of exchanges for each row of words.

    IN/OUT u (K, d), values (K,), factors (K, d, d), betas (K,), clock = [steps done, steps of warm-up]. OUT draws
    (n, d) of the first replica, infos (n, 3): acceptance there, log density, share of pairs exchanged.
    """
    K, d = u.shape
    z, proposed, gradient, rates = np.empty(d), np.empty(d), np.empty(d), np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    for t in range(words.shape[0]):
        if stop[0] != 0 or target.failed[0] != 0:
            return
        for k in range(4):
            stream[k] = words[t, k]
        warming = clock[0] < clock[1]
        accepted = 0.0
        for k in range(K):
            S = factors[k]
            for inner in range(n_inner):
                fill_normal(stream, z)
                for i in range(d):
                    total = u[k, i]
                    for j in range(i + 1):
                        total += S[i, j] * z[j]
                    proposed[i] = total
                new = evaluate(target, proposed, gradient)
                change = betas[k] * (new - values[k])
                accept = 1.0 if change >= 0.0 else math.exp(change)
                if uniform(stream) < accept:
                    for i in range(d):
                        u[k, i] = proposed[i]
                    values[k] = new
                if k == 0:
                    accepted += accept / n_inner
                if warming:
                    adapt_factor(S, z, accept, aim, clock[0] * n_inner + inner + 1, proposed)
        exchanged, pairs = 0.0, 0
        for k in range(K - 1):
            change = (betas[k] - betas[k + 1]) * (values[k + 1] - values[k])
            rates[k] = 1.0 if change >= 0.0 else math.exp(change)
        for k in range(clock[0] % 2, K - 1, 2):
            pairs += 1
            if uniform(stream) < rates[k]:
                exchanged += 1.0
                for i in range(d):
                    u[k, i], u[k + 1, i] = u[k + 1, i], u[k, i]
                values[k], values[k + 1] = values[k + 1], values[k]
        if warming:
            move_ladder(betas, rates, clock[0])
        clock[0] += 1
        draws[t] = u[0]
        infos[t, 0] = accepted
        infos[t, 1] = values[0]
        infos[t, 2] = exchanged / max(pairs, 1)
