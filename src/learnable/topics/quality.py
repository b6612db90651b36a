r"""How good topics and populations are, and how many there are: coherence, held-out likelihood, masked genotypes.

Coherence of a topic's top words from how often they share a document: NPMI (G. Bouma 2009; J. H. Lau et al. 2014) and
u_mass (D. Mimno et al. 2011). The number of topics by the likelihood of held-out documents, from left to right
(H. Wallach et al. 2009); of populations by predicting masked genotypes (D. Alexander and K. Lange 2011).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..meta.splits import as_generator
from .genotypes import Genotypes
from .lda import LatentDirichletAllocation
from .structure import PopulationStructure

Array = NDArray[np.float64]


def coherence(topics: Sequence[Sequence[int]], X: Any, measure: str = "npmi") -> Array:
    r"""Return the coherence of each topic, of the pairs of its top words.

    Parameters
    ----------
    topics : sequence of sequences of int
        Columns of X: the top words of each topic, the first the most frequent (`top_words`).
    X : array or sparse array of shape (n_documents, n_words)
        Counts of documents in which words are looked for together; new documents, where there are any.
    measure : {"npmi", "u_mass"}
        Mean of log(p(a, b)/(p(a) p(b)))/−log p(a, b), from −1 to 1 (−1 for pairs that never meet, 1 for words that
        always do); or mean of log((D(a, b) + 1)/D(b)) with b the more frequent.

    Examples
    --------
    >>> from learnable.topics import coherence
    >>> coherence([[0, 1], [0, 2]], [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    array([ 1., -1.])
    """
    if measure not in ("npmi", "u_mass"):
        raise ParameterError(f"coherence: measure must be 'npmi' or 'u_mass'; got {measure!r}.")
    present = sp.csc_array(sp.csr_array(X) > 0).astype(np.float64)
    n = present.shape[0]
    found = np.zeros(len(topics))
    for t, words in enumerate(topics):
        columns = present[:, list(words)]
        together = np.asarray((columns.T @ columns).todense())
        alone = np.diag(together)
        pairs = [(a, b) for a in range(len(words)) for b in range(a)]
        values = []
        for a, b in pairs:
            if not alone[a] or not alone[b]:
                continue  # a word that these documents lack says nothing
            if measure == "u_mass":
                values.append(np.log((together[a, b] + 1.0) / alone[b]))
            elif together[a, b] == 0:
                values.append(-1.0)
            elif together[a, b] == n:
                values.append(1.0)
            else:
                joint = together[a, b] / n
                values.append(np.log(joint * n * n / (alone[a] * alone[b])) / -np.log(joint))
        found[t] = np.mean(values) if values else 0.0
    return found


class Choice(NamedTuple):
    """Numbers of topics or populations, and how well each predicts what it has not seen."""

    candidates: list[int]
    scores: Array  #: higher is better: held-out log-likelihood per token or per copy
    errors: Array  #: their standard errors
    best: int
    deviance: Array | None = None  #: of genotypes with two alleles, ADMIXTURE's cross-validation error

    def __repr__(self) -> str:
        lines = [
            f"{k:>4} {score:10.4f} ± {error:.4f}"
            for k, score, error in zip(self.candidates, self.scores, self.errors, strict=True)
        ]
        return "\n".join(["   K   held-out log-likelihood", *lines, f"best: {self.best}"])


def select_topics(
    X: Any,
    candidates: Sequence[int],
    *,
    n_folds: int = 3,
    n_particles: int = 10,
    random_state: Any = None,
    **settings: Any,
) -> Choice:
    """Compare numbers of topics by the likelihood of held-out documents, from left to right.

    Parameters
    ----------
    X : array or sparse array of shape (n_documents, n_words)
        Counts.
    candidates : sequence of int
        Numbers of topics.
    n_folds : int
        Parts; each is held out once.
    n_particles : int
        Of the left-to-right estimate.
    random_state : int, Generator or None
        Seed of the folds and the fits.
    **settings
        Of `LatentDirichletAllocation`.

    Returns
    -------
    Choice
        Log-likelihood per token; errors are those of the mean over documents, paired by nothing.
    """
    rng = as_generator(random_state)
    table = sp.csr_array(X)
    n = table.shape[0]
    if not 2 <= n_folds <= n:
        raise DataError(f"select_topics: n_folds must be from 2 to the number of documents, {n}; got {n_folds}.")
    fold = rng.permutation(n) % n_folds
    lengths = np.asarray(table.sum(axis=1)).ravel()
    seed = int(rng.integers(2**31))
    scores = []
    errors = []
    for K in candidates:
        level = np.zeros(n)
        for f in range(n_folds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = LatentDirichletAllocation(int(K), random_state=seed, **settings).fit(table[fold != f])
            level[fold == f] = model.held_out(table[fold == f], n_particles=n_particles, random_state=seed)
        mean = level.sum() / lengths.sum()
        scores.append(mean)
        # A ratio of sums: its error by the deviations of the documents (the delta method).
        errors.append(np.sqrt(((level - mean * lengths) ** 2).sum()) / lengths.sum())
    best = int(np.argmax(scores))
    return Choice([int(K) for K in candidates], np.array(scores), np.array(errors), int(candidates[best]))


def select_populations(
    genotypes: Genotypes,
    candidates: Sequence[int],
    *,
    n_folds: int = 5,
    random_state: Any = None,
    **settings: Any,
) -> Choice:
    """Compare numbers of populations by predicting genotypes that were masked.

    Parameters
    ----------
    genotypes : Genotypes
        The table.
    candidates : sequence of int
        Numbers of populations.
    n_folds : int
        Parts of the typed genotypes; each is masked once.
    random_state : int, Generator or None
        Seed of the folds and the fits.
    **settings
        Of `PopulationStructure`; by default `method="ml"`.

    Returns
    -------
    Choice
        Log-likelihood per masked copy at the fitted Q and P, and the mean deviance of masked genotypes
        (g log(g/μ) + (m − g) log((m − g)/(m − μ)) with μ = m f) where loci have two alleles.
    """
    rng = as_generator(random_state)
    typed = (genotypes.alleles >= 0).any(axis=2)
    fold = np.where(typed, rng.integers(0, n_folds, size=typed.shape), -1)
    counts = genotypes.counts().astype(np.float64)
    locus = np.repeat(np.arange(genotypes.n_loci), genotypes.n_alleles)
    seed = int(rng.integers(2**31))
    scores = []
    errors = []
    deviances = []
    for K in candidates:
        level = np.zeros(genotypes.n_individuals)
        deviance = 0.0
        for f in range(n_folds):
            hidden = fold == f
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = PopulationStructure(int(K), random_state=seed, **{"method": "ml", **settings}).fit(
                    genotypes.masked(hidden)
                )
            held = np.where(hidden[:, locus], counts, 0.0)
            # A frequency of zero is an estimate from few copies, not a proof: half a copy more of each allele.
            F = np.maximum(model.Q_ @ model.P_.T, 0.5 / (genotypes.ploidy * genotypes.n_individuals))
            level += (held * np.log(F)).sum(axis=1)
            if genotypes.is_biallelic:
                copies = np.add.reduceat(held, genotypes.starts[:-1], axis=1)[:, locus]
                with np.errstate(divide="ignore", invalid="ignore"):
                    part = held * np.log(held / (copies * F))
                deviance += float(np.where(held > 0, part, 0.0).sum())
        copies = counts.sum(axis=1)
        mean = level.sum() / copies.sum()
        scores.append(mean)
        errors.append(np.sqrt(((level - mean * copies) ** 2).sum()) / copies.sum())
        deviances.append(deviance / typed.sum())
    best = int(np.argmax(scores))
    shown = np.array(deviances) if genotypes.is_biallelic else None
    return Choice([int(K) for K in candidates], np.array(scores), np.array(errors), int(candidates[best]), shown)


def evanno(models: Sequence[PopulationStructure]) -> dict[int, float]:
    """Return Evanno's ΔK of sampled models with consecutive numbers of populations: a heuristic, and no evidence.

    ΔK = |L(K + 1) − 2L(K) + L(K − 1)|/sd L(K) with L a chain's mean log-likelihood minus half its variance (G. Evanno
    et al. 2005). It cannot choose the smallest or the largest K, and fails against exact evidence (Verity and Nichols
    2016); `log_evidence` and `select_populations` are what to trust.
    """
    found = {}
    for model in models:
        trace = model.trace_[:, :, 0]
        found[model.n_populations] = trace.mean(axis=1) - trace.var(axis=1) / 2
    out = {}
    for K in sorted(found):
        if K - 1 in found and K + 1 in found:
            bend = abs(found[K + 1].mean() - 2 * found[K].mean() + found[K - 1].mean())
            spread = float(found[K].std(ddof=1)) if len(found[K]) > 1 else 0.0
            out[K] = float(bend / spread) if spread > 0 else float("nan")
    return out
