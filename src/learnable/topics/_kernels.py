"""Compiled sweeps over tokens; the laws are tested by enumerating all assignments of tiny corpora.

The sparse partially collapsed sampler (Magnusson, Jonsson, Villani and Broman, arXiv 1506.03784) draws Φ and integrates
θ out: given Φ the documents are independent, and
p(z = k) ∝ φ_{kw}α_k + φ_{kw}n_{dk}. The first part is the same in all documents, one alias table per word; the second
has as many terms as the document has topics. So a token costs O(topics in the document), and the sampler is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel, lean_kernel
from ..sampling.random import gamma, uniform

Array = NDArray[np.float64]
Topics = NDArray[np.int32]
Starts = NDArray[np.int64]
Words = NDArray[np.uint64]


@lean_kernel
def key_stream(words: Words, place: Any, stream: Words) -> None:
    """OUT stream: a stream of its own for a topic or a document of one step, by its number alone."""
    z = np.uint64(place) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(4):
        z = z + words[k] + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        stream[k] = z


@kernel
def count_words(tokens: Topics, z: Topics, out: NDArray[np.int32]) -> None:
    """OUT out (K, V): how often each topic has each word."""
    for k in range(out.shape[0]):
        for w in range(out.shape[1]):
            out[k, w] = 0
    for i in range(tokens.size):
        out[z[i], tokens[i]] += 1


@kernel
def draw_topics(counts: NDArray[np.int32], beta: float, words: Words, phi: Array) -> None:
    """OUT phi (V, K): φ_k ~ Dirichlet(β + n_k), each topic from a stream of its own."""
    K, V = counts.shape
    stream = np.empty(4, dtype=np.uint64)
    for k in range(K):
        key_stream(words, k, stream)
        total = 0.0
        for w in range(V):
            phi[w, k] = gamma(stream, beta + counts[k, w])
            total += phi[w, k]
        for w in range(V):
            phi[w, k] /= total


@kernel
def build_aliases(phi: Array, alpha: Array, used: NDArray[np.uint8], share: Array, other: Topics, mass: Array) -> None:
    """OUT share, other (V, K), mass (V,): the alias table of φ_{kw}α_k for each word that occurs (Vose 1991)."""
    V, K = phi.shape
    small, large = np.empty(K, dtype=np.int32), np.empty(K, dtype=np.int32)
    for w in range(V):
        if used[w] == 0:
            continue
        total = 0.0
        for k in range(K):
            share[w, k] = phi[w, k] * alpha[k]
            total += share[w, k]
        mass[w] = total
        n_small, n_large = 0, 0
        for k in range(K):
            share[w, k] *= K / total
            other[w, k] = k
            if share[w, k] < 1.0:
                small[n_small] = k
                n_small += 1
            else:
                large[n_large] = k
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            a, b = small[n_small], large[n_large - 1]
            other[w, a] = b
            share[w, b] -= 1.0 - share[w, a]
            if share[w, b] < 1.0:
                n_large -= 1
                small[n_small] = b
                n_small += 1
        for j in range(n_large):
            share[w, large[j]] = 1.0
        for j in range(n_small):
            share[w, small[j]] = 1.0


@kernel
def sweep_sparse(
    tokens: Topics,
    starts: Starts,
    first: int,
    last: int,
    phi: Array,
    share: Array,
    other: Topics,
    mass: Array,
    words: Words,
    z: Topics,
) -> None:
    """Draw the topic of every token of documents first … last − 1 given Φ, θ integrated out. IN/OUT z."""
    K = phi.shape[1]
    counts, place = np.zeros(K, dtype=np.int32), np.zeros(K, dtype=np.int32)
    present = np.empty(K, dtype=np.int32)
    terms = np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    for d in range(first, last):
        key_stream(words, d + K, stream)
        n_present = 0
        for i in range(starts[d], starts[d + 1]):
            k = z[i]
            if counts[k] == 0:
                place[k] = n_present
                present[n_present] = k
                n_present += 1
            counts[k] += 1
        for i in range(starts[d], starts[d + 1]):
            w, k = tokens[i], z[i]
            counts[k] -= 1
            if counts[k] == 0:
                n_present -= 1
                moved = present[n_present]
                present[place[k]] = moved
                place[moved] = place[k]
            total = 0.0
            for j in range(n_present):
                total += phi[w, present[j]] * counts[present[j]]
                terms[j] = total
            u = uniform(stream) * (total + mass[w])
            if u < total:
                j = 0
                while terms[j] <= u:
                    j += 1
                k = present[j]
            else:
                slot = uniform(stream) * K
                cell = min(int(slot), K - 1)
                k = cell if slot - cell < share[w, cell] else other[w, cell]
            z[i] = k
            if counts[k] == 0:
                place[k] = n_present
                present[n_present] = k
                n_present += 1
            counts[k] += 1
        for j in range(n_present):
            counts[present[j]] = 0


@kernel
def sweep_plain(tokens: Topics, starts: Starts, phi: Array, alpha: Array, words: Words, z: Topics) -> None:
    """Draw θ of each document given z, then z given θ and Φ: the three conditionals of the book. IN/OUT z."""
    K = phi.shape[1]
    theta, terms = np.empty(K), np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    for d in range(starts.size - 1):
        key_stream(words, d + K, stream)
        for k in range(K):
            theta[k] = alpha[k]
        for i in range(starts[d], starts[d + 1]):
            theta[z[i]] += 1.0
        for k in range(K):
            theta[k] = gamma(stream, theta[k])
        for i in range(starts[d], starts[d + 1]):
            total = 0.0
            for k in range(K):
                total += theta[k] * phi[tokens[i], k]
                terms[k] = total
            u = uniform(stream) * total
            k = 0
            while k < K - 1 and terms[k] <= u:
                k += 1
            z[i] = k


@kernel
def sweep_collapsed(
    tokens: Topics, starts: Starts, counts: NDArray[np.int32], alpha: Array, beta: float, words: Words, z: Topics
) -> None:
    """Draw each z given all others, Φ and θ integrated out (Griffiths and Steyvers 2004). IN/OUT counts (K, V), z."""
    K, V = counts.shape
    sizes, own, terms = np.zeros(K), np.zeros(K), np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    for k in range(K):
        for w in range(V):
            sizes[k] += counts[k, w]
    key_stream(words, 0, stream)
    for d in range(starts.size - 1):
        for k in range(K):
            own[k] = 0.0
        for i in range(starts[d], starts[d + 1]):
            own[z[i]] += 1.0
        for i in range(starts[d], starts[d + 1]):
            w, k = tokens[i], z[i]
            own[k] -= 1.0
            sizes[k] -= 1.0
            counts[k, w] -= 1
            total = 0.0
            for j in range(K):
                total += (own[j] + alpha[j]) * (counts[j, w] + beta) / (sizes[j] + V * beta)
                terms[j] = total
            u = uniform(stream) * total
            k = 0
            while k < K - 1 and terms[k] <= u:
                k += 1
            z[i] = k
            own[k] += 1.0
            sizes[k] += 1.0
            counts[k, w] += 1
