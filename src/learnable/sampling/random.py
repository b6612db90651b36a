"""Random numbers inside compiled functions: a stream is four words that each call moves on.

The words are those of xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021). The driver gives every step of a chain four
fresh words of the chain's own generator, so that what a step draws does not depend on where runs were cut.

Conditionals for `gibbs` that are compiled take such a stream and call these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel

Stream = NDArray[np.uint64]


@lean_kernel
def next_word(stream: Stream) -> Any:
    """Return 64 random bits."""
    total = stream[0] + stream[3]
    found = ((total << np.uint64(23)) | (total >> np.uint64(41))) + stream[0]
    moved = stream[1] << np.uint64(17)
    stream[2] ^= stream[0]
    stream[3] ^= stream[1]
    stream[1] ^= stream[2]
    stream[0] ^= stream[3]
    stream[2] ^= moved
    stream[3] = (stream[3] << np.uint64(45)) | (stream[3] >> np.uint64(19))
    return found


@lean_kernel
def uniform(stream: Stream) -> float:
    """Return a number between 0 and 1, neither included."""
    return (np.float64(next_word(stream) >> np.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)


@lean_kernel
def normal(stream: Stream) -> float:
    """Return a standard normal number (Marsaglia's polar method)."""
    while True:
        u = 2.0 * uniform(stream) - 1.0
        v = 2.0 * uniform(stream) - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            return u * math.sqrt(-2.0 * math.log(s) / s)


@lean_kernel
def fill_normal(stream: Stream, out: NDArray[np.float64]) -> None:
    """OUT out (n,): standard normal numbers, two from each accepted pair."""
    n = out.size
    i = 0
    while i < n:
        u = 2.0 * uniform(stream) - 1.0
        v = 2.0 * uniform(stream) - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            scale = math.sqrt(-2.0 * math.log(s) / s)
            out[i] = u * scale
            if i + 1 < n:
                out[i + 1] = v * scale
            i += 2


@lean_kernel
def exponential(stream: Stream) -> float:
    """Return an exponential number of mean 1."""
    return -math.log(uniform(stream))


@lean_kernel
def gamma(stream: Stream, shape: float) -> float:
    """Return a gamma number with scale 1 (Marsaglia and Tsang, ACM TOMS 26, 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(stream) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = (1.0 + c * x) ** 3
        if v <= 0.0:
            continue
        u = uniform(stream)
        # The first bound implies the second and spares its logarithms 98 times in 100.
        if u < 1.0 - 0.0331 * (x * x) * (x * x) or math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v


@lean_kernel
def beta(stream: Stream, a: float, b: float) -> float:
    """Return a beta number."""
    x = gamma(stream, a)
    return x / (x + gamma(stream, b))


@lean_kernel
def categorical(stream: Stream, weights: NDArray[np.float64]) -> int:
    """Return k with probability weights[k] / Σ weights."""
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    left = uniform(stream) * total
    for k in range(weights.size - 1):
        left -= weights[k]
        if left < 0.0:
            return k
    return weights.size - 1
