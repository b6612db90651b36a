"""The compiled sweep over copies of loci with two alleles: a block of loci at a time, in vector registers.

Given P and Q every copy has a population of its own, z = k with chance ∝ q_ik p_lak, and all that is kept of z is how
many copies each individual and each allele have from each population. So 256 loci of a copy are drawn at once: random
words, edges Σ_{j≤k} q_ij p_lja, and how many targets lie above each edge. Edges and targets are float32: their
rounding, 6e-8, is far below what any number of draws can tell. A thread takes whole blocks of loci, and random numbers
are keyed by the step and the block, so that results do not depend on the number of threads.

Measured on 200 × 500 × 2 copies, K = 3, one thread: 0.65 ms per step of the chain, where the sweep from token to token
took 4.4.
The slow twin stands in `tests/oracles/admixture.py`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel, lean_kernel
from ._kernels import key_stream

#: Loci of a block: its edges for a dozen populations stay in the first cache, and a row of them fills whole registers.
LOCI: Final = 256
#: Generators of a block: each gives 64 bits per copy, the draws of two loci.
_LANES: Final = LOCI // 2
#: Counts of a locus are packed: known copies in the lower 16 bits, copies of the second allele in the upper ones.
_SECOND: Final = np.int32(1 << 16)
_LOWER: Final = np.int32(0xFFFF)
#: Copies after which packed counts are unpacked, before the upper half can overflow.
_MOST: Final = 32_000
#: Factors of a product, each at least 1e-45, after which its exponent is taken out.
_FACTORS: Final = 6
_LEAST: Final = 1e-45
_LOG_2: Final = math.log(2.0)


@lean_kernel
def _fill_words(a, b, c, d, out):  # type: ignore[no-untyped-def]
    """OUT out: one word of each generator (xoshiro256++, as in `sampling.random`). IN/OUT a, b, c, d: their states."""
    for j in range(_LANES):
        first = a[j]
        second = b[j]
        third = c[j] ^ first
        fourth = d[j] ^ second
        total = first + d[j]
        out[j] = ((total << np.uint64(23)) | (total >> np.uint64(41))) + first
        a[j] = first ^ fourth
        b[j] = second ^ third
        c[j] = third ^ (second << np.uint64(17))
        d[j] = (fourth << np.uint64(45)) | (fourth >> np.uint64(19))


@lean_kernel
def _spread(codes, kinds):  # type: ignore[no-untyped-def]
    """OUT kinds: what a copy adds to packed counts. IN codes: 0 missing, 1 the first allele, 2 the second."""
    for j in range(LOCI):
        known = np.int32(1) if codes[j] > 0 else np.int32(0)
        second = _SECOND if codes[j] == 2 else np.int32(0)
        kinds[j] = known + second


@lean_kernel
def _add_weights(kinds, first, second, q, total, edge):  # type: ignore[no-untyped-def]
    """IN/OUT total: its running sum over populations. OUT edge: a copy of it."""
    for j in range(LOCI):
        p = first[j]
        other = second[j]
        total[j] += q * (other if kinds[j] >= _SECOND else p)
        edge[j] = total[j]


@lean_kernel
def _set_targets(bits, total, target):  # type: ignore[no-untyped-def]
    """OUT target: uniform on (0, total)."""
    half = np.float32(2.0**-25)
    for j in range(LOCI):
        u = np.float32(np.int32(bits[j] >> np.uint32(8))) * np.float32(2.0**-24) + half
        target[j] = u * total[j]


@lean_kernel
def _count_above(kinds, target, edge, above):  # type: ignore[no-untyped-def]
    """IN/OUT above: packed counts of copies beyond the edge. Return how many of this row are."""
    found = np.int32(0)
    for j in range(LOCI):
        hit = kinds[j] if target[j] >= edge[j] else np.int32(0)
        above[j] += hit
        found += np.int32(hit & _LOWER)
    return found


@lean_kernel
def _add_chances(p, q, chance):  # type: ignore[no-untyped-def]
    """IN/OUT chance: of an allele at each locus, its running sum over populations."""
    for j in range(LOCI):
        chance[j] += q * p[j]


@lean_kernel
def _multiply(kinds, first, second, product):  # type: ignore[no-untyped-def]
    """IN/OUT product: of the chances of the copies seen at each locus."""
    for j in range(LOCI):
        one = first[j]
        other = second[j]
        chance = max(other if kinds[j] >= _SECOND else one, _LEAST)
        product[j] *= chance if kinds[j] > 0 else 1.0


@lean_kernel
def _take_exponents(bits, powers):  # type: ignore[no-untyped-def]
    """IN/OUT bits of positive numbers, which lie between 1 and 2 after it; powers of two that were taken out."""
    for j in range(LOCI):
        powers[j] += (bits[j] >> np.int64(52)) - np.int64(1023)
        bits[j] = (bits[j] & np.int64(0xFFFFFFFFFFFFF)) | np.int64(1023 << 52)


@lean_kernel
def _unpack(above, counts):  # type: ignore[no-untyped-def]
    """IN/OUT counts (K − 1, 2, LOCI): of first and second alleles above each edge; above: zero after it."""
    for k in range(above.shape[0]):
        for j in range(LOCI):
            seconds = above[k, j] >> np.int32(16)
            counts[k, 0, j] += (above[k, j] & _LOWER) - seconds
            counts[k, 1, j] += seconds
            above[k, j] = 0


@kernel
def sweep_copies(
    codes: NDArray[np.uint8],
    P: NDArray[np.float32],
    Q: NDArray[np.float32],
    exact_P: NDArray[np.float64],
    exact_Q: NDArray[np.float64],
    words: NDArray[np.uint64],
    block: int,
    own: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> Any:
    """Draw the populations of all copies of a block of loci. Return the log-likelihood of the copies given P and Q.

    IN codes (n, ploidy, LOCI); P (K, 2, LOCI): frequencies of both alleles; Q (n, K); both again in float64, for the
    log-likelihood. OUT own (n, K − 1), counts (K − 1, 2,
    LOCI): copies whose population comes after each of the first K − 1.
    """
    n, ploidy, _ = codes.shape
    K = P.shape[0]
    stream = np.empty(4, dtype=np.uint64)
    lanes = np.empty((4, _LANES), dtype=np.uint64)
    raw = np.empty(_LANES, dtype=np.uint64)
    bits = raw.view(np.uint32)
    kinds = np.empty(LOCI, dtype=np.int32)
    edges = np.empty((K, LOCI), dtype=np.float32)
    total = np.empty(LOCI, dtype=np.float32)
    target = np.empty(LOCI, dtype=np.float32)
    above = np.zeros((max(K - 1, 0), LOCI), dtype=np.int32)
    chances = np.empty((2, LOCI))
    product = np.ones(LOCI)
    exponents = product.view(np.int64)
    powers = np.zeros(LOCI, dtype=np.int64)
    own[:] = 0
    counts[:] = 0
    for j in range(_LANES):
        key_stream(words, block * _LANES + j, stream)
        for m in range(4):
            lanes[m, j] = stream[m]
    taken = 0
    for i in range(n):
        chances[:] = 0.0
        for k in range(K):
            _add_chances(exact_P[k, 0], exact_Q[i, k], chances[0])
            _add_chances(exact_P[k, 1], exact_Q[i, k], chances[1])
        for c in range(ploidy):
            _fill_words(lanes[0], lanes[1], lanes[2], lanes[3], raw)
            _spread(codes[i, c], kinds)
            total[:] = np.float32(0.0)
            for k in range(K):
                _add_weights(kinds, P[k, 0], P[k, 1], Q[i, k], total, edges[k])
            _set_targets(bits, total, target)
            for k in range(K - 1):
                own[i, k] += _count_above(kinds, target, edges[k], above[k])
            _multiply(kinds, chances[0], chances[1], product)
            taken += 1
            if taken % _FACTORS == 0:
                _take_exponents(exponents, powers)
            if taken % _MOST == 0:
                _unpack(above, counts)
    _unpack(above, counts)
    level = 0.0
    for j in range(LOCI):
        level += math.log(product[j]) + _LOG_2 * powers[j]
    return level
