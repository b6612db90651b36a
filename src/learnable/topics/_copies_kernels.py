"""The compiled sweep over copies of loci with two alleles: a block of loci at a time, in vector registers.

Given P and Q every copy has a population of its own, z = k with chance ∝ q_ik p_lak, and all that is kept of z is how
many copies each individual and each allele have from each population. So 256 loci of a copy are drawn at once: random
words, edges Σ_{j≤k} q_ij p_lja, and how many targets lie above each edge. Edges and targets are float32: their
rounding, 6e-8, is far below what any number of draws can tell. A thread takes whole blocks of loci, and random numbers
are keyed by the step and the block, so that results do not depend on the number of threads.

Measured on 200 × 500 × 2 copies, K = 3, one thread: 0.43 ms per step of the chain, 0.31 of them here, where the sweep
from token to token took 4.4.
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
def _first_edge(kinds, first, second, q, edge):  # type: ignore[no-untyped-def]
    """OUT edge: q·p of the first population."""
    for j in range(LOCI):
        p = first[j]
        other = second[j]
        edge[j] = q * (other if kinds[j] >= _SECOND else p)


@lean_kernel
def _next_edge(kinds, first, second, q, before, edge):  # type: ignore[no-untyped-def]
    """OUT edge: the edge before it, and q·p of one more population."""
    for j in range(LOCI):
        p = first[j]
        other = second[j]
        edge[j] = before[j] + q * (other if kinds[j] >= _SECOND else p)


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
def _first_chances(p, q, chance):  # type: ignore[no-untyped-def]
    """OUT chance: of an allele at each locus, from the first population."""
    for j in range(LOCI):
        chance[j] = q * p[j]


@lean_kernel
def _add_chances(p, q, chance):  # type: ignore[no-untyped-def]
    """IN/OUT chance: its running sum over populations."""
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
    log-likelihood. OUT own (n, K − 1), counts (K − 1, 2, LOCI): copies whose population comes after each of the
    first K − 1.
    """
    n, ploidy, _ = codes.shape
    K = P.shape[0]
    stream = np.empty(4, dtype=np.uint64)
    lanes = np.empty((4, _LANES), dtype=np.uint64)
    raw = np.empty(_LANES, dtype=np.uint64)
    bits = raw.view(np.uint32)
    kinds = np.empty(LOCI, dtype=np.int32)
    edges = np.empty((K, LOCI), dtype=np.float32)
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
        for a in range(2):
            _first_chances(exact_P[0, a], exact_Q[i, 0], chances[a])
            for k in range(1, K):
                _add_chances(exact_P[k, a], exact_Q[i, k], chances[a])
        for c in range(ploidy):
            _fill_words(lanes[0], lanes[1], lanes[2], lanes[3], raw)
            _spread(codes[i, c], kinds)
            _first_edge(kinds, P[0, 0], P[0, 1], Q[i, 0], edges[0])
            for k in range(1, K):
                _next_edge(kinds, P[k, 0], P[k, 1], Q[i, k], edges[k - 1], edges[k])
            _set_targets(bits, edges[K - 1], target)
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


@kernel
def lay_out(
    P: NDArray[np.float64],
    first: NDArray[np.int64],
    n_alleles: NDArray[np.int64],
    exact: NDArray[np.float64],
    tables: NDArray[np.float32],
) -> None:
    """OUT exact, tables (blocks, K, 2, LOCI): frequencies of both alleles, zero where there is none.

    IN P (n_alleles in all, K); first (L,): row of the first allele of each locus; n_alleles (L,): one or two.
    """
    K = P.shape[1]
    for j in range(first.size):
        b = j // LOCI
        at = j % LOCI
        for a in range(n_alleles[j]):
            for k in range(K):
                p = P[first[j] + a, k]
                exact[b, k, a, at] = p
                tables[b, k, a, at] = p


@kernel
def count_between(all_of_them: NDArray[np.int64], beyond: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """OUT out (n, K): copies of each population. IN all (n,), beyond (blocks, n, K − 1): after each of the first."""
    n, K = out.shape
    for i in range(n):
        left = all_of_them[i]
        for k in range(K - 1):
            above = 0
            for b in range(beyond.shape[0]):
                above += beyond[b, i, k]
            out[i, k] = left - above
            left = above
        out[i, K - 1] = left


@kernel
def count_alleles(
    seen: NDArray[np.int64],
    first: NDArray[np.int64],
    n_alleles: NDArray[np.int64],
    beyond: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """OUT out (n_alleles in all, K): copies by allele. IN seen (n_alleles in all,), beyond (blocks, K − 1, 2, LOCI)."""
    K = out.shape[1]
    for j in range(first.size):
        b = j // LOCI
        at = j % LOCI
        for a in range(n_alleles[j]):
            row = first[j] + a
            left = seen[row]
            for k in range(K - 1):
                above = beyond[b, k, a, at]
                out[row, k] = left - above
                left = above
            out[row, K - 1] = left
