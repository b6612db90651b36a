"""Compiled sweeps over tokens; the laws are tested by enumerating all assignments of tiny corpora.

Words of a corpus belong to groups in which frequencies sum to one: all words to one group in a topic model, the alleles
of a locus to one group in a population model. Random numbers are keyed by the step and the document (or the topic), and
counts are whole numbers, so that documents may be swept by any number of threads with the same result.

The sparse partially collapsed sampler (Magnusson, Jonsson, Villani and Broman, arXiv 1506.03784) draws Φ and integrates
θ out: given Φ the documents are independent, and
p(z = k) ∝ φ_{kw}α_k + φ_{kw}n_{dk}. The first part is the same in all documents, one alias table per word; the second
has as many terms as the document has topics. So a token costs O(topics in the document), and the sampler is exact.
"""

from __future__ import annotations

import math
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


@lean_kernel
def small_gamma(stream: Words, shape: float) -> float:
    """Return a gamma number of a shape below 1/2 (Liu, Martin and Syring, Computational Statistics 32, 2017).

    With X = e^{−Z/shape}, Z has the density ∝ e^{−z − e^{−z/shape}}: almost an exponential, which is proposed. Words
    that a topic does not have come by the million, and this takes a third of the time of a general gamma number.
    """
    rate = 1.0 / shape - 1.0
    weight = shape / (math.e * (1.0 - shape))
    ratio = 1.0 / (1.0 + weight)
    while True:
        u = uniform(stream)
        if u <= ratio:
            z = -math.log(u / ratio)
            power = z / shape
            if power > 37.0:  # e^{−37} is below the rounding of one: accepted without a further number
                return math.exp(-power)
            x = math.exp(-power)
            if math.log(uniform(stream)) < -x:
                return x
        else:
            z = math.log(uniform(stream)) / rate
            x = math.exp(-z / shape)
            height = weight * rate * math.exp(rate * z)
            if height * uniform(stream) < math.exp(-z - x):
                return x


@kernel
def count_words(tokens: Topics, z: Topics, out: NDArray[np.int32]) -> None:
    """OUT out (V, K): how often each topic has each word."""
    out[:] = 0
    for i in range(tokens.size):
        out[tokens[i], z[i]] += 1


@kernel
def count_topics(starts: Starts, z: Topics, out: NDArray[np.int32]) -> None:
    """OUT out (D, K): how often each document has each topic."""
    out[:] = 0
    for d in range(starts.size - 1):
        for i in range(starts[d], starts[d + 1]):
            out[d, z[i]] += 1


@lean_kernel
def count_gamma(stream: Words, shape: float, count: int) -> float:
    """Return a gamma number of shape `shape` + `count`, never quite zero.

    Few counts are as many exponential numbers more: their sum is the logarithm of one product.
    """
    if shape >= 0.5 or count > 4:
        return max(gamma(stream, shape + count), 1e-300)
    x = small_gamma(stream, shape)
    if count > 0:
        product = 1.0
        for _ in range(count):
            product *= uniform(stream)
        x -= math.log(product)
    return max(x, 1e-300)


@kernel
def draw_gammas(counts: NDArray[np.int32], beta: Array, words: Words, first: int, last: int, phi: Array) -> None:
    """OUT phi (V, K): gamma numbers of shape β + n for words first … last − 1, each word from its own stream.

    Divided by their sums over a group they are φ ~ Dirichlet(β + n). IN beta (V, K) or (1, 1).
    """
    K = counts.shape[1]
    stream = np.empty(4, dtype=np.uint64)
    whole = beta.shape[0] > 1
    for w in range(first, last):
        key_stream(words, w, stream)
        for k in range(K):
            phi[w, k] = count_gamma(stream, beta[w, k] if whole else beta[0, 0], counts[w, k])


@lean_kernel
def _attempt(stream: Words, shape: float, x: float) -> float:
    """Return a gamma number of a shape of at least one; the first attempt takes the normal number x."""
    d = shape - 1.0 / 3.0
    t = 1.0 + x / math.sqrt(9.0 * d)
    v = t * t * t
    if v > 0.0:
        u = uniform(stream)
        if u < 1.0 - 0.0331 * (x * x) * (x * x) or math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v
    return gamma(stream, shape)


@kernel
def draw_pairs(counts: NDArray[np.int32], beta: Array, words: Words, first: int, last: int, phi: Array) -> None:
    """OUT phi (2L, K): φ ~ Dirichlet(β + n) of the two words of groups first … last − 1, each from its own stream.

    Both gamma numbers take their normal numbers from one pair of the polar method. IN beta (2L, K) or (1, 1).
    """
    K = counts.shape[1]
    stream = np.empty(4, dtype=np.uint64)
    whole = beta.shape[0] > 1
    for g in range(first, last):
        key_stream(words, g, stream)
        for k in range(K):
            one = beta[2 * g, k] if whole else beta[0, 0]
            other = beta[2 * g + 1, k] if whole else beta[0, 0]
            if min(one + counts[2 * g, k], other + counts[2 * g + 1, k]) < 1.0:
                x = count_gamma(stream, one, counts[2 * g, k])
                y = count_gamma(stream, other, counts[2 * g + 1, k])
            else:
                u = 2.0 * uniform(stream) - 1.0
                v = 2.0 * uniform(stream) - 1.0
                s = u * u + v * v
                while s >= 1.0 or s == 0.0:
                    u = 2.0 * uniform(stream) - 1.0
                    v = 2.0 * uniform(stream) - 1.0
                    s = u * u + v * v
                scale = math.sqrt(-2.0 * math.log(s) / s)
                x = _attempt(stream, one + counts[2 * g, k], u * scale)
                y = _attempt(stream, other + counts[2 * g + 1, k], v * scale)
            phi[2 * g, k] = x / (x + y)
            phi[2 * g + 1, k] = y / (x + y)


@kernel
def draw_proportions(
    counts: NDArray[np.int32], alpha: Array, words: Words, first: int, last: int, theta: Array
) -> None:
    """OUT theta (D, K): θ_d ~ Dirichlet(α + n_d) for documents first … last − 1."""
    K = counts.shape[1]
    stream = np.empty(4, dtype=np.uint64)
    for d in range(first, last):
        key_stream(words, d, stream)
        total = 0.0
        for k in range(K):
            theta[d, k] = count_gamma(stream, alpha[k], counts[d, k])
            total += theta[d, k]
        for k in range(K):
            theta[d, k] /= total


@kernel
def build_aliases(
    phi: Array, alpha: Array, used: NDArray[np.uint8], first: int, last: int, share: Array, other: Topics, mass: Array
) -> None:
    """OUT share, other (V, K), mass (V,): the alias table of φ_{kw}α_k for each word that occurs (Vose 1991)."""
    K = phi.shape[1]
    small, large = np.empty(K, dtype=np.int32), np.empty(K, dtype=np.int32)
    for w in range(first, last):
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
def weigh_topics(phi: Array, w: int, own: Array, terms: Array) -> float:
    """OUT terms (K,) = φ_{kw}(n_k + α_k) for the counts `own` of a document. Return their sum."""
    total = 0.0
    for k in range(len(terms)):
        terms[k] = phi[w, k] * own[k]
        total += terms[k]
    return total


@kernel
def draw_term(terms: Array, total: float, stream: Words) -> int:
    """Return k with a chance in proportion to terms[k]."""
    u = uniform(stream) * total - terms[0]
    k = 0
    while u >= 0.0 and k < len(terms) - 1:
        k += 1
        u -= terms[k]
    return k


@kernel
def sweep_dense(
    tokens: Topics, starts: Starts, first: int, last: int, phi: Array, alpha: Array, words: Words, z: Topics
) -> None:
    """Draw from the law of `sweep_sparse` with all K terms at once: faster where K is small. IN/OUT z."""
    K = phi.shape[1]
    own, terms = np.empty(K), np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    for d in range(first, last):
        key_stream(words, d + K, stream)
        for k in range(K):
            own[k] = alpha[k]
        for i in range(starts[d], starts[d + 1]):
            own[z[i]] += 1.0
        for i in range(starts[d], starts[d + 1]):
            w = tokens[i]
            own[z[i]] -= 1.0
            total = weigh_topics(phi, w, own, terms)
            k = draw_term(terms, total, stream)
            z[i] = k
            own[k] += 1.0


@kernel
def sweep_plain(
    tokens: Topics,
    starts: Starts,
    first: int,
    last: int,
    theta: Array,
    phi: Array,
    words: Words,
    z: Topics,
    level: Array,
) -> None:
    """Draw z given θ and Φ for documents first … last − 1. OUT z, level (D,): log p(words of d | θ_d, Φ)."""
    K = phi.shape[1]
    terms = np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    for d in range(first, last):
        key_stream(words, d + K, stream)
        product, found = 1.0, 0.0
        for i in range(starts[d], starts[d + 1]):
            w = tokens[i]
            total = 0.0
            for k in range(K):
                total += theta[d, k] * phi[w, k]
                terms[k] = total
            u = uniform(stream) * total
            k = 0
            while k < K - 1 and terms[k] <= u:
                k += 1
            z[i] = k
            product *= total
            if product < 1e-200:
                found += math.log(product)
                product = 1.0
        level[d] = found + math.log(product)


@kernel
def sweep_whole(
    tokens: Topics,
    starts: Starts,
    first: int,
    last: int,
    logs: Array,
    prior: Array,
    words: Words,
    z: Topics,
    chances: Array,
    level: Array,
) -> None:
    """Draw one topic for all tokens of each document. IN logs (V, K) of Φ, prior (K,) logarithms of the weights.

    OUT z (D,), chances (D, K): p(z_d | Φ), level (D,): log p(words of d | Φ).
    """
    K = logs.shape[1]
    stream = np.empty(4, dtype=np.uint64)
    for d in range(first, last):
        key_stream(words, d + K, stream)
        for k in range(K):
            chances[d, k] = prior[k]
        for i in range(starts[d], starts[d + 1]):
            for k in range(K):
                chances[d, k] += logs[tokens[i], k]
        most = chances[d, 0]
        for k in range(1, K):
            most = max(most, chances[d, k])
        total = 0.0
        for k in range(K):
            chances[d, k] = math.exp(chances[d, k] - most)
            total += chances[d, k]
        level[d] = most + math.log(total)
        left = uniform(stream)
        z[d] = K - 1
        drawn = False
        for k in range(K):
            chances[d, k] /= total
            left -= chances[d, k]
            if left < 0.0 and not drawn:
                z[d] = k
                drawn = True


@kernel
def sweep_collapsed(
    tokens: Topics,
    starts: Starts,
    group_of: Topics,
    counts: NDArray[np.int32],
    sizes: Array,
    width: Array,
    alpha: Array,
    beta: float,
    power: float,
    words: Words,
    z: Topics,
) -> None:
    """Draw each z given all others, Φ and θ integrated out (Griffiths and Steyvers 2004), p(w | z) to a power.

    IN group_of (V,), width (groups,): β times the words of each group. IN/OUT counts (V, K), sizes (groups, K), z.
    """
    K = counts.shape[1]
    own, terms = np.zeros(K), np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    key_stream(words, 0, stream)
    for d in range(starts.size - 1):
        for k in range(K):
            own[k] = alpha[k]
        for i in range(starts[d], starts[d + 1]):
            own[z[i]] += 1.0
        for i in range(starts[d], starts[d + 1]):
            w, k = tokens[i], z[i]
            g = group_of[w]
            own[k] -= 1.0
            sizes[g, k] -= 1.0
            counts[w, k] -= 1
            total = 0.0
            if power == 1.0:
                for j in range(K):
                    terms[j] = own[j] * (counts[w, j] + beta) / (sizes[g, j] + width[g])
                    total += terms[j]
            else:
                for j in range(K):
                    seen = (counts[w, j] + beta) / (sizes[g, j] + width[g])
                    terms[j] = own[j] * math.exp(power * math.log(seen))
                    total += terms[j]
            k = draw_term(terms, total, stream)
            z[i] = k
            own[k] += 1.0
            sizes[g, k] += 1.0
            counts[w, k] += 1


@kernel
def left_to_right(
    tokens: Topics, starts: Starts, first: int, last: int, phi: Array, alpha: Array, n_particles: int, words: Words,
    level: Array,
) -> None:  # fmt: skip
    """OUT level (D,): an estimate of log p(words of d | Φ, α), θ integrated out (Wallach et al., ICML 2009).

    Position after position, the topics before it are drawn anew in every particle, and the probability of the next word
    is averaged over the particles: unbiased for the probability of the document.
    """
    K = phi.shape[1]
    own, terms = np.empty(K), np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    total_alpha = alpha.sum()
    longest = 0
    for d in range(first, last):
        longest = max(longest, starts[d + 1] - starts[d])
    z = np.empty(longest, dtype=np.int32)
    sums = np.empty(longest)
    for d in range(first, last):
        key_stream(words, d, stream)
        length = starts[d + 1] - starts[d]
        for n in range(length):
            sums[n] = 0.0
        for _ in range(n_particles):
            for k in range(K):
                own[k] = alpha[k]
            for n in range(length):
                for m in range(n):
                    w = tokens[starts[d] + m]
                    own[z[m]] -= 1.0
                    total = weigh_topics(phi, w, own, terms)
                    k = draw_term(terms, total, stream)
                    z[m] = k
                    own[k] += 1.0
                w = tokens[starts[d] + n]
                total = weigh_topics(phi, w, own, terms)
                sums[n] += total / (n + total_alpha)
                k = draw_term(terms, total, stream)
                z[n] = k
                own[k] += 1.0
        level[d] = 0.0
        for n in range(length):
            level[d] += math.log(sums[n] / n_particles)


@kernel
def draw_documents(
    tokens: Topics, starts: Starts, first: int, last: int, phi: Array, alpha: Array, n_warmup: int, words: Words,
    out: Array,
) -> None:  # fmt: skip
    """OUT out (S, D, K): draws of θ given Φ, by sweeps with θ integrated out and θ ~ Dirichlet(α + n) after each."""
    K = phi.shape[1]
    own, terms = np.empty(K), np.empty(K)
    stream = np.empty(4, dtype=np.uint64)
    longest = 0
    for d in range(first, last):
        longest = max(longest, starts[d + 1] - starts[d])
    z = np.empty(longest, dtype=np.int32)
    for d in range(first, last):
        key_stream(words, d, stream)
        length = starts[d + 1] - starts[d]
        for k in range(K):
            own[k] = alpha[k]
        for n in range(length):
            z[n] = min(int(uniform(stream) * K), K - 1)
            own[z[n]] += 1.0
        for s in range(n_warmup + out.shape[0]):
            for n in range(length):
                w = tokens[starts[d] + n]
                own[z[n]] -= 1.0
                total = weigh_topics(phi, w, own, terms)
                k = draw_term(terms, total, stream)
                z[n] = k
                own[k] += 1.0
            if s >= n_warmup:
                total = 0.0
                for k in range(K):
                    terms[k] = gamma(stream, own[k])
                    total += terms[k]
                for k in range(K):
                    out[s - n_warmup, d, k] = terms[k] / total
