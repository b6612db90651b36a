r"""Gibbs sampling of population structure (Pritchard, Stephens and Donnelly, Genetics 155, 2000).

Each population k has allele frequencies p_kl ~ Dirichlet(λ, …, λ) at every locus. Without admixture an individual
belongs to one population, all equally likely; with admixture each copy comes from population z ~ q_i, and
q_i ~ Dirichlet(α, …, α). Correlated frequencies (Falush, Stephens and Pritchard 2003) come from an ancestral
population: p_kl ~ Dirichlet(p_Al (1 − F_k)/F_k). Where individuals were sampled may be a prior of q_i (`places`).

A step draws P given z, α given z with Q integrated out, Q given α and z, and z given P and Q; individuals are
independent in the last two. It is the topic model's plain sampler with alleles as words that sum to one in each locus.
Of z only counts enter the next step, so they are what a chain holds (`copies`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..core.threads import run_tasks
from ..sampling.metropolis import step_words
from ..sampling.states import Rng, Sampler, Variable
from . import _kernels as kernels
from . import dirichlet
from .copies import Drawn, copies_of
from .genotypes import Genotypes
from .places import PlacePrior, draw_proportions
from .places import draw as draw_places
from .places import start as start_places
from .sampler import cut_documents, even_cuts

Array = NDArray[np.float64]

#: Numbers of P, or copies without admixture, from which drawing them is worth more than one thread.
_LEAST_DRAWN = 40_000
#: Prior of F: a gamma density with mean 0.01 and standard deviation 0.05, as in STRUCTURE.
_F_SHAPE = (0.01 / 0.05) ** 2
_F_SCALE = 0.05**2 / 0.01


class PopulationState(NamedTuple):
    """Where a chain stands."""

    own: NDArray[np.int32]  #: (n, K), copies that each individual has from each population
    copies: NDArray[np.int32]  #: (n_alleles in all, K), copies of each allele from each population
    alpha: Array  #: one number
    Q: Array  #: (n, K); without admixture p(z_i | P)
    P: Array  #: (n_alleles in all, K)
    level: Array  #: one number, log p(genotypes | Q, P)
    ancestral: Array  #: (n_alleles in all,) of correlated frequencies
    F: Array  #: (K,) of correlated frequencies
    local: Array  #: (n_places, K), α of each place where individuals were sampled
    strength: Array  #: one number, how alike places are


class PopulationSampler(Sampler):
    """The pair `init`, `step` for genotypes; draws hold the log-likelihood, α and the populations' sizes, sorted.

    Memory: one byte per copy (12 with more than two alleles at a locus, or without admixture), 24K per individual and
    per allele of each chain.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.topics import Genotypes, PopulationSampler
    >>> sampler = PopulationSampler(Genotypes.from_dosage([[0, 2, 0], [2, 0, 2]]), 2)
    >>> rng = np.random.default_rng(0)
    >>> state, _ = sampler.step(sampler.init(None, rng), rng)
    >>> state.Q.shape, state.P.shape
    ((2, 2), (6, 2))
    """

    name = "PopulationStructure"

    def __init__(
        self,
        genotypes: Genotypes,
        n_populations: int,
        *,
        admixture: bool = True,
        alpha: float | None = None,
        lam: float = 1.0,
        correlated: bool = False,
        places: NDArray[np.int64] | None = None,
        n_warmup: int = 0,
        threads: int = 1,
    ) -> None:
        self.genotypes = genotypes
        self.places = places
        self.K = int(n_populations)
        self.admixture = admixture
        self.learns_alpha = admixture and alpha is None and self.K > 1
        self.alpha = 1.0 if alpha is None else float(alpha)
        self.lam = float(lam)
        self.correlated = correlated
        self.n_warmup = int(n_warmup)
        self.groups = genotypes.starts
        self.sizes = genotypes.n_alleles
        self._all_two = bool((self.sizes == 2).all())
        self.lengths = genotypes.n_typed
        self.n_words = int(genotypes.starts[-1])
        self.threads = threads
        if admixture:
            self.copies = copies_of(genotypes, threads)
        else:
            self.corpus = genotypes.corpus()
            self._cuts = cut_documents(self.corpus.starts)
        self.variables = (Variable("log_likelihood"), Variable("sizes", (self.K,)))
        if self.learns_alpha:
            self.variables = (*self.variables, Variable("alpha"))
        if correlated:
            self.variables = (*self.variables, Variable("F", (self.K,)))
        if places is not None:
            self.variables = (*self.variables, Variable("strength"))

    # ---- the pair ----

    def init(self, x: Any, rng: Rng) -> PopulationState:
        """Return populations at random, or drawn from the proportions given."""
        n = self.genotypes.n_individuals
        V = self.n_words
        P = np.ones((V, self.K))
        Q = np.full((n, self.K), 1.0 / self.K)
        chances = Q if x is None else np.asarray(x, dtype=np.float64)
        if self.admixture:
            own, copies, _ = self.copies.sweep(P, chances, step_words(rng, 1)[0])  # P says nothing
        elif x is None:
            own, copies = self._counts_of(rng.integers(0, self.K, size=n, dtype=np.int32))
        else:
            z = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
            own, copies = self._counts_of(np.minimum(z, self.K - 1).astype(np.int32))
        alpha = np.array([self.alpha])
        start = copies.sum(axis=1, dtype=np.float64)[:, None] + 1.0
        ancestral = self._within_loci(start)[:, 0] if self.correlated else np.zeros(0)
        F = np.full(self.K, 0.05) if self.correlated else np.zeros(0)
        n_places = 0 if self.places is None else int(self.places.max()) + 1
        prior = start_places(n_places, self.K, self.alpha)
        strength = np.array([prior.strength])
        return PopulationState(own, copies, alpha, Q, P, np.zeros(1), ancestral, F, prior.local, strength)

    def template(self) -> PopulationState:
        """Return a state of the right form."""
        return PopulationState(
            np.zeros((0, 0), dtype=np.int32),
            np.zeros((0, 0), dtype=np.int32),
            np.zeros(1),
            np.zeros((0, 0)),
            np.zeros((0, 0)),
            np.zeros(1),
            np.zeros(0),
            np.zeros(0),
            np.zeros((0, 0)),
            np.zeros(1),
        )

    def step(self, state: PopulationState, rng: Rng) -> tuple[PopulationState, tuple[float, ...]]:
        """Draw P, α, Q and z in turn."""
        words = step_words(rng, 3)
        n = self.genotypes.n_individuals
        ancestral = state.ancestral
        F = state.F
        if self.correlated:
            ancestral, F = self._learn_ancestors(state.copies, ancestral, F, rng)
        P = self._draw_frequencies(state.copies, ancestral, F, words[0])
        alpha = float(state.alpha[0])
        by_place = PlacePrior(state.local, alpha, float(state.strength[0]))
        if not self.admixture:
            Q = np.empty((n, self.K))
            own, copies, level = self._sweep_whole(P, words[2], Q)
        else:
            if self.places is not None:
                by_place = draw_places(by_place, state.own, self.places, rng, learns_alpha=self.learns_alpha)
                alpha = by_place.alpha
                Q = draw_proportions(by_place, state.own, self.places, rng)
            else:
                if self.learns_alpha:
                    alpha = dirichlet.draw_symmetric(state.own, self.lengths, self.K, alpha, rng)
                Q = np.empty((n, self.K))
                kernels.draw_proportions(state.own, np.full(self.K, alpha), words[1], 0, n, Q)
            own, copies, level = self.copies.sweep(P, Q, words[2])
        learned = by_place.local, np.array([by_place.strength])
        return PopulationState(own, copies, np.array([alpha]), Q, P, np.array([level]), ancestral, F, *learned), ()

    def draw(self, state: PopulationState) -> Array:
        """Return the log-likelihood, the sizes of the populations, largest first, and what is learned."""
        order = np.argsort(-state.Q.mean(axis=0), kind="stable")
        learned = [float(state.alpha[0])] if self.learns_alpha else []
        F: Any = state.F[order] if self.correlated else []
        strength: Any = [] if self.places is None else state.strength
        return np.concatenate([state.level, state.Q.mean(axis=0)[order], learned, F, strength])

    # ---- parts of a step ----

    def _sweep_whole(self, P: Array, words: NDArray[np.uint64], Q: Array) -> Drawn:
        """Draw one population for all copies of each individual. OUT Q: the chances."""
        tokens, starts, _ = self.corpus
        n = len(Q)
        logs = np.log(P)
        prior = np.full(self.K, -np.log(self.K))
        z = np.empty(n, dtype=np.int32)
        level = np.empty(n)
        cuts = self._cuts

        def task(t: int) -> None:
            kernels.sweep_whole(tokens, starts, int(cuts[t]), int(cuts[t + 1]), logs, prior, words, z, Q, level)

        if self.threads == 1 or len(tokens) < _LEAST_DRAWN:
            kernels.sweep_whole(tokens, starts, 0, n, logs, prior, words, z, Q, level)
        else:
            run_tasks(task, len(cuts) - 1, self.threads)
        return Drawn(*self._counts_of(z), float(level.sum()))

    def _counts_of(self, z: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the counts of copies by individual and by allele where an individual has one population."""
        own = np.zeros((len(z), self.K), dtype=np.int32)
        own[np.arange(len(z)), z] = self.lengths
        copies = np.empty((self.n_words, self.K), dtype=np.int32)
        kernels.count_words(self.corpus.words, np.repeat(z, self.lengths), copies)
        return own, copies

    def _within_loci(self, gammas: Array) -> Array:
        if self._all_two:
            pairs = gammas.reshape(len(self.sizes), 2, -1)
            return np.asarray(pairs / pairs.sum(axis=1, keepdims=True)).reshape(gammas.shape)
        total = np.add.reduceat(gammas, self.groups[:-1], axis=0)
        return np.asarray(gammas / np.repeat(total, self.sizes, axis=0))

    def _draw_frequencies(
        self, counts: NDArray[np.int32], ancestral: Array, F: Array, words: NDArray[np.uint64]
    ) -> Array:
        V = self.n_words
        prior = np.full((1, 1), self.lam)
        if self.correlated:
            prior = ancestral[:, None] * ((1.0 - F) / F)
        P = np.empty((V, self.K))
        draw = kernels.draw_pairs if self._all_two else kernels.draw_gammas
        groups = len(self.sizes) if self._all_two else V
        if self.threads == 1 or P.size < _LEAST_DRAWN:
            draw(counts, prior, words, 0, groups, P)
        else:
            cuts = even_cuts(groups)
            run_tasks(
                lambda t: draw(counts, prior, words, int(cuts[t]), int(cuts[t + 1]), P), len(cuts) - 1, self.threads
            )
        return P if self._all_two else self._within_loci(P)

    def _learn_ancestors(self, counts: NDArray[np.int32], ancestral: Array, F: Array, rng: Rng) -> tuple[Array, Array]:
        """Draw F and the ancestral frequencies by Metropolis steps, P integrated out."""
        loci = np.repeat(np.arange(len(self.sizes)), self.sizes)
        totals = np.add.reduceat(counts, self.groups[:-1], axis=0).astype(np.float64)

        def by_population(F: Array, own: Array) -> Array:
            strength = (1.0 - F) / F
            shape = own[:, None] * strength
            rising = (gammaln(shape + counts) - gammaln(shape)).sum(axis=0)
            return np.asarray(rising - (gammaln(strength + totals) - gammaln(strength)).sum(axis=0))

        def prior(F: Array) -> Array:
            return np.asarray((_F_SHAPE - 1.0) * np.log(F) - F / _F_SCALE)

        # F: a step of log-odds.
        odds = np.log(F / (1.0 - F)) + 0.3 * rng.standard_normal(self.K)
        new = np.clip(1.0 / (1.0 + np.exp(-odds)), 1e-8, 1.0 - 1e-8)
        jacobian = np.log(new * (1.0 - new)) - np.log(F * (1.0 - F))
        gain = by_population(new, ancestral) + prior(new) - by_population(F, ancestral) - prior(F) + jacobian
        F = np.where(np.log(rng.random(self.K)) < gain, new, F)
        strength = (1.0 - F) / F

        # The ancestral frequencies: a proposal from a Dirichlet around them, locus by locus.
        focus = 300.0

        def by_locus(own: Array) -> Array:
            shape = np.maximum(own, 1e-12)[:, None] * strength
            found = (gammaln(shape + counts) - gammaln(shape)).sum(axis=1) + (self.lam - 1.0) * np.log(own)
            return np.asarray(np.bincount(loci, found, minlength=len(self.sizes)), dtype=np.float64)

        def proposal(to: Array, at: Array) -> Array:
            shape = focus * at + 0.5
            found = (shape - 1.0) * np.log(to) - gammaln(shape)
            ends = np.bincount(loci, shape, minlength=len(self.sizes))
            return np.bincount(loci, found, minlength=len(self.sizes)) + gammaln(ends)

        gammas = np.maximum(rng.standard_gamma(focus * ancestral + 0.5), 1e-300)
        other = np.maximum(self._within_loci(gammas[:, None])[:, 0], 1e-12)
        gain = by_locus(other) - by_locus(ancestral) + proposal(ancestral, other) - proposal(other, ancestral)
        taken = np.log(rng.random(len(self.sizes))) < gain
        return np.where(taken[loci], other, ancestral), F


def log_evidence(
    genotypes: Genotypes,
    n_populations: int,
    *,
    alpha: float = 1.0,
    lam: float = 1.0,
    n_rungs: int = 21,
    n_draws: int = 400,
    n_warmup: int = 200,
    random_state: Any = None,
) -> tuple[float, float]:
    r"""Return log p(genotypes | K) of the admixture model with given α, λ, and its Monte Carlo standard error.

    Thermodynamic integration: with P and Q integrated out, log p(x) = ∫₀¹ E_t[log p(x | z)] dt, where z has the law
    ∝ p(z) p(x | z)^t; R. Verity and R. Nichols, Genetics 203 (2016). The rungs t are powers of four of an even grid,
    and the integral is the trapezoid with its correction by variances (Friel, Hurn and Wyse 2014). One population has
    the closed form, without error.

    Parameters
    ----------
    genotypes : Genotypes
        The table.
    n_populations : int
        K.
    alpha, lam : float
        Dirichlet parameters.
    n_rungs, n_draws, n_warmup : int
        Values of t; sweeps at each after warm-up.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    value, error : float
        The logarithm of the evidence and its standard error.

    Examples
    --------
    >>> from learnable.topics import Genotypes, log_evidence
    >>> value, error = log_evidence(Genotypes.from_dosage([[0, 1], [2, 1]]), 1)
    >>> round(value, 6), error
    (-6.802395, 0.0)
    """
    corpus = genotypes.corpus()
    starts = genotypes.starts
    sizes = genotypes.n_alleles
    group_of = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)

    def log_likelihood(counts: Any) -> float:
        totals = np.add.reduceat(counts, starts[:-1], axis=0)
        found = (gammaln(counts + lam) - gammaln(lam)).sum()
        width = (lam * sizes)[:, None]
        return float(found - (gammaln(totals + width) - gammaln(width)).sum())

    K = int(n_populations)
    counts = np.zeros((corpus.n_words, K), dtype=np.int32)
    if K == 1:
        counts[:, 0] = np.bincount(corpus.words, minlength=corpus.n_words)
        return log_likelihood(counts), 0.0
    rng = np.random.default_rng(random_state)
    z = rng.integers(0, K, size=len(corpus.words), dtype=np.int32)
    rungs = np.linspace(0.0, 1.0, n_rungs) ** 4
    means = np.empty(n_rungs)
    variances = np.empty(n_rungs)
    errors = np.empty(n_rungs)
    given = np.full(K, float(alpha))
    for r, t in enumerate(rungs):
        levels = np.empty(n_draws)
        for s in range(n_warmup + n_draws):
            kernels.count_words(corpus.words, z, counts)
            totals = np.add.reduceat(counts, starts[:-1], axis=0).astype(np.float64)
            kernels.sweep_collapsed(
                corpus.words, corpus.starts, group_of, counts, totals, lam * sizes.astype(np.float64), given, lam,
                float(t), step_words(rng, 1)[0], z,
            )  # fmt: skip
            if s >= n_warmup:
                levels[s - n_warmup] = log_likelihood(counts)
        means[r] = levels.mean()
        variances[r] = levels.var(ddof=1)
        batches = levels[: n_draws // 20 * 20].reshape(20, -1).mean(axis=1)
        errors[r] = batches.std(ddof=1) / np.sqrt(20)
    steps = np.diff(rungs)
    value = float((steps * (means[1:] + means[:-1]) / 2 - steps**2 * (variances[1:] - variances[:-1]) / 12).sum())
    weights = np.r_[steps, 0.0] / 2 + np.r_[0.0, steps] / 2
    return value, float(np.sqrt(((weights * errors) ** 2).sum()))
