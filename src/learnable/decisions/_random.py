"""Random numbers inside kernels: one stream of xoshiro256++ per replication, whose whole state is four integers.

A stream that is saved goes on exactly where it was. Streams of replications come from NumPy's `SeedSequence`, and
that of replication i does not depend on how many there are.

Reference: D. Blackman and S. Vigna, Scrambled linear pseudorandom number generators, 2021; G. Marsaglia and W. Tsang, A
simple method for generating gamma variables, 2000.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel, strict_kernel

_SCALE = 2.0**-53


def make_streams(random_state: Any, n_streams: int, purpose: int = 0) -> NDArray[np.uint64]:
    """Return the states of streams, of shape (n_streams, 4); streams of different purposes are independent.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        The seed; None asks the operating system.
    n_streams : int
        How many.
    purpose : int
        Which family of streams.
    """
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**63))
    elif isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    seeds = np.random.SeedSequence(random_state, spawn_key=(purpose,))
    words: NDArray[np.uint64] = np.asarray(seeds.generate_state(4 * n_streams, np.uint64), dtype=np.uint64)
    return words.reshape(n_streams, 4)


@strict_kernel
def _rotate(x, k):  # type: ignore[no-untyped-def]
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@strict_kernel
def uniform(state):  # type: ignore[no-untyped-def]
    """Return a number in [0, 1) and advance the stream. IN/OUT state (4,) uint64."""
    s0 = state[0]
    s1 = state[1]
    s2 = state[2]
    s3 = state[3]
    drawn = _rotate(s0 + s3, 23) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = _rotate(s3, 45)
    state[0] = s0
    state[1] = s1
    state[2] = s2
    state[3] = s3
    return float(drawn >> np.uint64(11)) * _SCALE


@lean_kernel
def normal(state):  # type: ignore[no-untyped-def]
    """Return a standard normal number (polar method; the second of the pair is not kept, so that the state is all)."""
    while True:
        a = 2.0 * uniform(state) - 1.0
        b = 2.0 * uniform(state) - 1.0
        s = a * a + b * b
        if 0.0 < s < 1.0:
            return a * math.sqrt(-2.0 * math.log(s) / s)


@lean_kernel
def gamma(state, shape):  # type: ignore[no-untyped-def]
    """Return a Gamma(shape, 1) number, by Marsaglia and Tsang; for a shape below 1 by theirs for shape + 1."""
    boost = 1.0
    k = shape
    if k < 1.0:
        boost = (1.0 - uniform(state)) ** (1.0 / k)
        k += 1.0
    d = k - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = 1.0 - uniform(state)
        if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v


@lean_kernel
def beta(state, a, b):  # type: ignore[no-untyped-def]
    """Return a Beta(a, b) number."""
    x = gamma(state, a)
    y = gamma(state, b)
    total = x + y
    if total == 0.0:  # both underflow where a and b are tiny: the law is then on the two ends
        return 1.0 if uniform(state) * (a + b) < a else 0.0
    return x / total


@lean_kernel
def pick(state, probabilities):  # type: ignore[no-untyped-def]
    """Return an index with the given probabilities; the last positive one takes what rounding leaves."""
    u = uniform(state)
    total = 0.0
    last = 0
    for i in range(len(probabilities)):
        if probabilities[i] > 0.0:
            last = i
            total += probabilities[i]
            if u < total:
                return i
    return last
