"""Populations without admixture by maximum likelihood: a mixture of products of frequencies, equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .genotypes import Genotypes
from .structure_ml import LEAST, Fit, blocks_of

Array = NDArray[np.float64]


def scores_of(genotypes: Genotypes, P: Array) -> Array:
    """Return log p(genotypes of i | population k) − log K, (n, K)."""
    logs = np.log(np.maximum(P, LEAST))
    starts = genotypes.starts
    found = np.zeros((genotypes.n_individuals, P.shape[1]))
    for loci in blocks_of(genotypes):
        found += genotypes.counts(loci).astype(np.float64) @ logs[starts[loci.start] : starts[loci.stop]]
    return found - np.log(P.shape[1])


def chances_of(genotypes: Genotypes, P: Array) -> Array:
    """Return the probabilities of the populations, (n, K)."""
    scores = scores_of(genotypes, P)
    return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))


def levels_of(genotypes: Genotypes, P: Array) -> Array:
    """Return the log-likelihood of each individual."""
    return np.asarray(logsumexp(scores_of(genotypes, P), axis=1))


def frequencies_given(genotypes: Genotypes, Q: Array, before: Array | None) -> Array:
    """Return the weighted allele frequencies; where a population has no copy, those of before."""
    parts = [genotypes.counts(loci).T.astype(np.float64) @ Q for loci in blocks_of(genotypes)]
    found = np.concatenate(parts)
    total = np.repeat(np.add.reduceat(found, genotypes.starts[:-1], axis=0), genotypes.n_alleles, axis=0)
    equal = np.repeat(1.0 / genotypes.n_alleles, genotypes.n_alleles)[:, None]
    fallback = equal if before is None else before
    found = np.maximum(np.where(total > 0, found / np.where(total > 0, total, 1.0), fallback), LEAST)
    sums = np.repeat(np.add.reduceat(found, genotypes.starts[:-1], axis=0), genotypes.n_alleles, axis=0)
    return np.asarray(found / sums)


def maximise_mixture(
    genotypes: Genotypes, K: int, rng: np.random.Generator, *, tol: float, max_iter: int, n_init: int, run: Any
) -> Fit:
    """Climb by EM from random starts; the best is kept."""
    best: Fit | None = None
    for _ in range(n_init if K > 1 else 1):
        P = frequencies_given(genotypes, rng.dirichlet(np.ones(K), size=genotypes.n_individuals), None)
        history = [float(levels_of(genotypes, P).sum())]
        rise = np.inf
        n_iter = 0
        while n_iter < max_iter:
            n_iter += 1
            new = frequencies_given(genotypes, chances_of(genotypes, P), P)
            value = float(levels_of(genotypes, new).sum())
            rise = max(0.0, value - history[-1]) / max(abs(history[-1]), 1e-300)
            if rise <= tol or value < history[-1]:
                break
            P = new
            history.append(value)
            if run.progress(n_iter, value):
                break
        found = Fit(chances_of(genotypes, P), P, np.array(history), rise, n_iter)
        if best is None or found.history[-1] > best.history[-1]:
            best = found
    assert best is not None
    return best
