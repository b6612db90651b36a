"""Copies of genotypes as the sampler of populations sees them: how many come from where, given P and Q.

Given P and Q the copies are independent, z = k with chance ∝ q_ik p_lak; the next P, α and Q depend on z only through
the copies that each individual and each allele have from each population, so these counts are the state of a chain.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.threads import run_tasks
from . import _kernels as kernels
from ._copies_kernels import LOCI, count_alleles, count_between, lay_out, sweep_copies
from .genotypes import Genotypes
from .sampler import cut_documents

Array = NDArray[np.float64]
Counts = NDArray[np.int32]

#: Copies from which a sweep is worth more than one thread: a task takes 0.1 ms to hand over.
_LEAST_TOKENS = 40_000
_LEAST_COPIES = 1_000_000


class Drawn(NamedTuple):
    """Where the copies come from."""

    own: Counts  #: (n, K), copies of each individual
    copies: Counts  #: (n_alleles in all, K), copies of each allele
    level: float  #: log p(genotypes | Q, P)


class Copies(Protocol):
    """All copies that were typed."""

    def sweep(self, P: Array, Q: Array, words: NDArray[np.uint64]) -> Drawn:
        """Draw the population of every copy; P (n_alleles in all, K), Q (n, K), words a step's four random words."""


def copies_of(genotypes: Genotypes, threads: int) -> Copies:
    """Return the copies: in blocks of loci where no locus has more than two alleles, else as tokens."""
    return TwoAlleles(genotypes, threads) if genotypes.is_biallelic else AnyAlleles(genotypes, threads)


class TwoAlleles:
    """Copies of loci with at most two alleles, one byte each, swept in blocks of loci."""

    def __init__(self, genotypes: Genotypes, threads: int) -> None:
        n = genotypes.n_individuals
        L = genotypes.n_loci
        self.n_blocks = -(-L // LOCI)
        self.first = np.ascontiguousarray(genotypes.starts[:-1], dtype=np.int64)
        self.n_alleles = np.ascontiguousarray(genotypes.n_alleles, dtype=np.int64)
        self.codes = np.zeros((self.n_blocks, n, genotypes.ploidy, LOCI), dtype=np.uint8)
        for b in range(self.n_blocks):
            part = genotypes.alleles_of(slice(b * LOCI, min((b + 1) * LOCI, L)))
            self.codes[b, :, :, : part.shape[1]] = (part + 1).transpose(0, 2, 1)
        self.typed = np.ascontiguousarray(genotypes.n_typed, dtype=np.int64)
        pairs = [(self.codes == kind).sum(axis=(1, 2), dtype=np.int64).reshape(-1)[:L] for kind in (1, 2)]
        self.seen = np.empty(int(genotypes.starts[-1]), dtype=np.int64)
        self.seen[self.first] = pairs[0]
        two = self.n_alleles == 2
        self.seen[self.first[two] + 1] = pairs[1][two]
        self.threads = threads if self.codes.size >= _LEAST_COPIES else 1

    def sweep(self, P: Array, Q: Array, words: NDArray[np.uint64]) -> Drawn:
        """Draw the population of every copy."""
        n, K = Q.shape
        B = self.n_blocks
        exact = np.zeros((B, K, 2, LOCI))
        tables = np.zeros((B, K, 2, LOCI), dtype=np.float32)
        lay_out(np.ascontiguousarray(P, dtype=np.float64), self.first, self.n_alleles, exact, tables)
        whole = np.ascontiguousarray(Q, dtype=np.float64)
        shares = whole.astype(np.float32)
        beyond = np.empty((B, n, K - 1), dtype=np.int32)
        counts = np.empty((B, K - 1, 2, LOCI), dtype=np.int32)

        def task(b: int) -> float:
            return float(
                sweep_copies(self.codes[b], tables[b], shares, exact[b], whole, words, b, beyond[b], counts[b])
            )

        levels = [task(b) for b in range(B)] if self.threads == 1 else run_tasks(task, B, self.threads)
        own = np.empty((n, K), dtype=np.int32)
        count_between(self.typed, beyond, own)
        copies = np.empty((len(self.seen), K), dtype=np.int32)
        count_alleles(self.seen, self.first, self.n_alleles, counts, copies)
        return Drawn(own, copies, sum(levels))


class AnyAlleles:
    """Copies of any loci as tokens, 8 bytes each."""

    def __init__(self, genotypes: Genotypes, threads: int) -> None:
        self.corpus = genotypes.corpus()
        self.cuts = cut_documents(self.corpus.starts)
        self.threads = threads if len(self.corpus.words) >= _LEAST_TOKENS else 1

    def sweep(self, P: Array, Q: Array, words: NDArray[np.uint64]) -> Drawn:
        """Draw the population of every copy."""
        tokens, starts, V = self.corpus
        n, K = Q.shape
        z = np.empty(len(tokens), dtype=np.int32)
        level = np.empty(n)
        cuts = self.cuts

        def task(t: int) -> None:
            kernels.sweep_plain(tokens, starts, int(cuts[t]), int(cuts[t + 1]), Q, P, words, z, level)

        if self.threads == 1:
            kernels.sweep_plain(tokens, starts, 0, n, Q, P, words, z, level)
        else:
            run_tasks(task, len(cuts) - 1, self.threads)
        own = np.empty((n, K), dtype=np.int32)
        kernels.count_topics(starts, z, own)
        copies = np.empty((V, K), dtype=np.int32)
        kernels.count_words(tokens, z, copies)
        return Drawn(own, copies, float(level.sum()))
