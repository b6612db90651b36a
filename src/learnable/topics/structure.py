r"""Population structure: which populations individuals come from, from their genotypes alone.

At locus l population k has allele frequencies p_kl. Without admixture an individual belongs to one population; with
admixture a share q_ik of its genome comes from population k, and every copy of an allele shows allele a with
probability f = Σ_k q_ik p_kla (J. Pritchard, M. Stephens and P. Donnelly, Genetics 155, 2000). One class gives both
answers: the posterior by Gibbs sampling, and maximum likelihood (D. Alexander et al., Genome Research 19, 2009).
"""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Number,
    Options,
    fitted,
    optional,
    param,
    tags,
)
from ..core.errors import DataError, ParameterError
from ..core.estimator import Estimator, Run
from ..core.loaded import law, laws
from ..core.threads import resolve_n_jobs
from ..data.door import is_frame, read_features
from ..meta.splits import as_generator
from .align import align_draws
from .genotypes import Genotypes
from .readers import read_genotypes
from .sampler import run_chains
from .structure_gibbs import PopulationSampler
from .structure_mixture import chances_of, maximise_mixture
from .structure_ml import LEAST, Likelihood, maximise, project, spectral_start, start_frequencies
from .structure_start import least_squares_start

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GenotypeTable:
    """What the door makes of X."""

    genotypes: Genotypes
    places: NDArray[np.int64] | None = None  #: of each individual
    place_names: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Checksum of the alleles, and of the places where they count."""
        if self.places is None:
            return self.genotypes.fingerprint
        own = zlib.crc32(self.places.tobytes() + "\0".join(self.place_names).encode())
        return f"{self.genotypes.fingerprint}-{own:08x}"

    @property
    def n_columns(self) -> int:
        """Number of loci."""
        return self.genotypes.n_loci


def genotype_door(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> GenotypeTable:
    """Read genotypes from a `Genotypes`, a path, a dataframe, or a table of copies of the second allele."""
    if sample_weight is not None:
        raise ParameterError(f"{type(estimator).__name__}: individuals have no weights; leave sample_weight out.")
    table = read_table(estimator, X, reset=True)
    if not table.n_typed.sum():
        raise DataError(f"{type(estimator).__name__}: all genotypes are missing.")
    if not estimator.place_prior:
        return GenotypeTable(table)
    return GenotypeTable(table, *_read_places(estimator, y, table.n_individuals))


def _read_places(estimator: Any, y: Any, n: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the place of each individual as a number, and the names."""
    owner = type(estimator).__name__
    if estimator.method != "gibbs" or not estimator.admixture:
        raise ParameterError(f"{owner}: place_prior=True needs method='gibbs' and admixture=True.")
    if y is None:
        raise DataError(f"{owner}: place_prior=True needs the place of each individual as y.")
    given = np.asarray(y).ravel()
    if len(given) != n:
        raise DataError(f"{owner}: y must have one place per individual, {n}; it has {len(given)}.")
    labels = np.array(["" if place is None else str(place) for place in given.tolist()])
    if (labels == "").any() or (labels == "nan").any():
        raise DataError(
            f"{owner}: the place of individual {int(np.argmax((labels == '') | (labels == 'nan')))} is missing."
        )
    names, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64), tuple(names.tolist())


def read_table(estimator: Any, X: Any, *, reset: bool) -> Genotypes:
    """Return the genotypes of X, whose loci are those of the fit, or are remembered."""
    owner = type(estimator).__name__
    if isinstance(X, (Genotypes, str)) or hasattr(X, "__fspath__") or (is_frame(X) and not _is_numeric(X)):
        table = read_genotypes(X)
        if reset:
            estimator.n_features_in_ = table.n_loci
        elif table.n_loci != estimator.n_features_in_:
            raise DataError(f"{owner}: X has {table.n_loci} loci, the fit had {estimator.n_features_in_}.")
        return table
    rows = read_features(estimator, X, sparse=False, reset=reset, missing=True)
    if (rows < 0).any():
        raise DataError(
            f"{owner}: Negative values in data passed to X: copies of an allele are counted from 0, and a missing "
            "genotype is NaN."
        )
    return Genotypes.from_dosage(np.asarray(rows, dtype=np.float64), estimator.ploidy)


def _is_numeric(frame: Any) -> bool:
    import narwhals as nw

    return all(kind.is_numeric() for kind in nw.from_native(frame).collect_schema().values())


class PopulationStructure(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    r"""Populations of individuals from genotypes, with or without admixture.

    With f_ila = Σ_k q_ik p_kla the log-likelihood is Σ n_ila log f_ila over the copies that were typed.
    `method="gibbs"` draws from the posterior under p_kl ~ Dirichlet(λ) and q_i ~ Dirichlet(α), with α learned (uniform
    on (0, 10]) unless it is given; `Q_` and `P_` are posterior means and come with intervals. `method="ml"` maximises
    the likelihood over Q and P; it never falls on the way. Populations are numbered by size. Loci may have any number
    of alleles; missing copies are left out, and an individual without any has the prior's proportions.

    Memory of "gibbs": 8 bytes per copy and chain, and 8 · n_kept · K bytes per individual and per allele for the draws
    that are kept; of "ml": a quarter of a byte per genotype where loci have two alleles and individuals two copies.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.topics import PopulationStructure
    >>> rng = np.random.default_rng(0)
    >>> dosage = np.vstack([rng.binomial(2, 0.9, size=(20, 30)), rng.binomial(2, 0.1, size=(20, 30))])
    >>> model = PopulationStructure(2, method="ml", random_state=0).fit(dosage)
    >>> model.labels_[:20].std(), model.labels_[20:].std()
    (np.float64(0.0), np.float64(0.0))
    >>> model.simulate(3, random_state=0)
    Genotypes(3 individuals × 30 loci × 2 copies, 60 alleles, 0 % missing)
    """

    _theory = "population-structure"
    _remedy = "draw more (n_draws), warm up longer (n_warmup), or raise max_iter; chains that disagree may be modes"

    n_populations: int = param(Number(low=1, integer=True), "K.", default=2, kw_only=False)
    admixture: bool = param(Boolean(), "Whether individuals may come from several populations.", default=True)
    method: str = param(Options("gibbs", "ml"), "Posterior by Gibbs sampling, or maximum likelihood.", default="gibbs")
    frequencies: str = param(
        Options("independent", "correlated"),
        'Prior of P ("gibbs"): Dirichlet(λ), or drift from a common ancestor (Falush et al. 2003).',
        default="independent",
    )
    ploidy: int = param(
        Number(low=1, integer=True), "Copies per locus of a table of numbers; other sources know theirs.", default=2
    )
    alpha: float | None = param(
        optional(Number(low=0.0, low_open=True)), "Dirichlet parameter of Q; None learns it.", default=None
    )
    place_prior: bool = param(
        Boolean(),
        'Whether y, the place where each individual was sampled, is a prior of Q ("gibbs" with admixture; Hubisz et '
        "al. 2009): proportions of a place are alike as far as the data say so.",
        default=False,
    )
    lam: float = param(Number(low=0.0, low_open=True), "λ, Dirichlet parameter of P.", default=1.0)
    n_chains: int = param(Number(low=1, integer=True), "Chains, started at random.", default=4)
    n_draws: int = param(Number(low=4, integer=True), "Draws per chain.", default=1000)
    n_warmup: int = param(Number(low=0, integer=True), "Steps of each chain before.", default=500)
    n_kept: int = param(
        Number(low=1, integer=True), "Draws of Q and P that are kept, of all chains together.", default=100
    )
    n_init: int = param(Number(low=1, integer=True), 'Starts of "ml"; the best after ten steps goes on.', default=3)
    max_iter: int = param(MAX_ITER, 'Most iterations of "ml".', default=500)
    tol: float = param(TOLERANCE, 'Relative rise of the log-likelihood at which "ml" stops.', default=1e-9)
    max_seconds: float | None = param(MAX_SECONDS, "Time limit.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; results do not depend on it.", default=None)
    random_state: Any = param(RANDOM_STATE, "Seed.", default=None)

    Q_: Array = fitted("(n_individuals, n_populations)", "Proportions.", low=0.0, high=1.0 + 1e-9)
    P_: Array = fitted("(n_alleles, n_populations)", "Allele frequencies, locus by locus.", low=0.0, high=1.0 + 1e-9)
    labels_: NDArray[np.int64] = fitted("(n_individuals,)", "The largest proportion's population.", kind="i", low=0)
    allele_starts_: NDArray[np.int64] = fitted(
        "(n_starts,)", "First allele of each locus, and the end.", kind="i", low=0
    )
    allele_names_: Any = fitted("list of str", "Names of all alleles; empty if they have none.")
    alpha_: float = fitted("()", "α; its posterior mean where it is learned.", low=0.0)
    log_likelihood_: float = fitted("()", "At Q and P.", high=0.0)
    Q_draws_: Array = fitted("(n_kept, n_individuals, n_populations)", "Draws of Q, aligned.", optional=True, low=0.0)
    P_draws_: Array = fitted("(n_kept, n_alleles, n_populations)", "Draws of P, aligned.", optional=True, low=0.0)
    place_alpha_: Array = fitted(
        "(n_places, n_populations)",
        "Dirichlet parameters of each place, posterior means.",
        optional=True,
        low=0.0,
    )
    place_alpha_draws_: Array = fitted(
        "(n_kept, n_places, n_populations)", "Draws of them, aligned.", optional=True, low=0.0
    )
    places_: Any = fitted("list of str", "Names of the places; empty without `place_prior`.", optional=True)
    kept_: NDArray[np.int64] = fitted("(n_kept, 2)", "Chain and place of each draw.", kind="i", optional=True, low=0)
    trace_: Array = fitted(
        "(n_chains, n_draws, n_numbers)",
        "Log-likelihood, sizes (sorted), learned α, F, and how alike places are, of every draw.",
        optional=True,
    )
    history_: Array = fitted("(n_history,)", 'Log-likelihood after each iteration of "ml".', optional=True)
    n_iter_: int = fitted("int", "Iterations, or steps of each chain.")
    n_features_in_: int = fitted("int", "Number of loci.")
    certificate_: Certificate = fitted(
        "Certificate", "`chain` of the log-likelihood, the sizes and α; `ascent` of maximum likelihood."
    )

    _door = staticmethod(genotype_door)
    _tags = tags(allow_nan=True, positive_only=True, categorical=True, sparse=False)

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Fit the model to genotypes.

        Parameters
        ----------
        X : Genotypes, path, dataframe, or array of shape (n_individuals, n_loci)
            Genotypes; of an array, copies of the second allele, NaN where missing.
        y : array of shape (n_individuals,), optional
            Where each individual was sampled, for `place_prior`; ignored without it.
        """
        return super().fit(X, y if self.place_prior else None)

    def _fit(self, table: GenotypeTable, run: Run) -> Certificate:
        genotypes = table.genotypes
        self.allele_starts_ = genotypes.starts.copy()
        names = genotypes.allele_names
        complete = names is not None and [len(own) for own in names] == genotypes.n_alleles.tolist()
        self.allele_names_ = [name for own in names or () for name in own] if complete else []
        self.places_ = list(table.place_names)
        return self._maximise(genotypes, run) if self.method == "ml" else self._sample(table, run)

    # ---- maximum likelihood ----

    def _maximise(self, genotypes: Genotypes, run: Run) -> Certificate:
        rng = as_generator(self.random_state)
        K = self.n_populations
        if not self.admixture:
            found = maximise_mixture(
                genotypes, K, rng, tol=self.tol, max_iter=self.max_iter, n_init=self.n_init, run=run
            )
        else:
            likelihood = Likelihood(genotypes, run.n_jobs)
            starts = [spectral_start(genotypes, K, rng)]
            starts += [rng.dirichlet(np.ones(K), size=genotypes.n_individuals) for _ in range(self.n_init - 1)]
            for start in starts:
                start[genotypes.n_typed == 0] = 1.0 / K  # nothing moves them from there
            climb = partial(maximise, likelihood, tol=self.tol, progress=run.progress)
            pairs = [(Q, start_frequencies(genotypes, Q)) for Q in (starts if K > 1 else starts[:1])]
            if K > 1:
                pairs[0] = least_squares_start(genotypes, starts[0])
            if len(pairs) > 1:
                tries = [climb(Q, P, max_iter=min(10, self.max_iter)) for Q, P in pairs]
                best = max(tries, key=lambda one: one.history[-1])
                pairs = [(best.Q, best.P)]
            found = climb(*pairs[0], max_iter=self.max_iter)
        order = np.argsort(-found.Q.mean(axis=0), kind="stable")
        self.history_ = found.history
        self.n_iter_ = found.n_iter
        self.alpha_ = 1.0 if self.alpha is None else float(self.alpha)
        self._set(genotypes, found.Q[:, order], found.P[:, order])
        return Certificate("ascent", found.rise, self.tol, n_iter=found.n_iter)

    # ---- posterior ----

    def _sample(self, table: GenotypeTable, run: Run) -> Certificate:
        genotypes = table.genotypes
        threads = resolve_n_jobs(run.n_jobs)
        sampler = PopulationSampler(
            genotypes,
            self.n_populations,
            admixture=self.admixture,
            alpha=self.alpha,
            lam=self.lam,
            correlated=self.frequencies == "correlated",
            places=table.places,
            n_warmup=self.n_warmup,
            threads=threads if self.n_chains == 1 else 1,
        )
        gap = max(4, self.n_draws * self.n_chains // max(self.n_kept, self.n_chains))
        Q: list[Array] = []
        P: list[Array] = []
        alpha: list[float] = []
        local: list[Array] = []
        places: list[tuple[int, int]] = []

        def collect(c: int, place: int, state: Any) -> None:
            Q.append(state.Q)
            P.append(state.P)
            alpha.append(float(state.alpha[0]))
            local.append(state.local)
            places.append((c, place))

        self.trace_, value = run_chains(
            sampler,
            [None] * self.n_chains,
            n_draws=self.n_draws,
            gap=gap,
            random_state=as_generator(self.random_state),
            run=run,
            max_seconds=self.max_seconds,
            watch="log_likelihood",
            collect=collect,
        )
        order = align_draws(np.array(Q))
        self.Q_draws_ = np.array([one[:, own] for one, own in zip(Q, order, strict=True)])
        self.P_draws_ = np.array([one[:, own] for one, own in zip(P, order, strict=True)])
        if table.places is not None:
            self.place_alpha_draws_ = np.array([one[:, own] for one, own in zip(local, order, strict=True)])
            self.place_alpha_ = self.place_alpha_draws_.mean(axis=0)
        self.n_iter_ = self.trace_.shape[1] + self.n_warmup
        self.kept_ = np.array(places, dtype=np.int64)
        learned = self.trace_[:, :, 1 + self.n_populations].mean() if sampler.learns_alpha else np.mean(alpha)
        self.alpha_ = float(learned)
        self._set(genotypes, self.Q_draws_.mean(axis=0), self.P_draws_.mean(axis=0))
        return Certificate("chain", value, 1.0, n_iter=self.n_iter_)

    def _set(self, genotypes: Genotypes, Q: Array, P: Array) -> None:
        self.Q_ = np.ascontiguousarray(Q)
        self.P_ = np.ascontiguousarray(P)
        self.labels_ = Q.argmax(axis=1).astype(np.int64)
        self.log_likelihood_ = log_likelihood(genotypes, self.Q_, self.P_, self.admixture)

    # ---- answers ----

    def Q_interval(self, level: float = 0.9) -> tuple[Array, Array]:  # noqa: N802  the field's letter
        """Return the ends of the central posterior intervals of Q, two arrays of its shape ("gibbs")."""
        return self._interval("Q_draws_", level)

    def P_interval(self, level: float = 0.9) -> tuple[Array, Array]:  # noqa: N802
        """Return the ends of the central posterior intervals of P, two arrays of its shape ("gibbs")."""
        return self._interval("P_draws_", level)

    def _interval(self, name: str, level: float) -> tuple[Array, Array]:
        check_is_fitted(self)
        if not hasattr(self, name):
            raise ParameterError("PopulationStructure: intervals need draws; fit with method='gibbs'.")
        if not 0 < level < 1:
            raise ParameterError(f"PopulationStructure: level must be between 0 and 1; got {level!r}.")
        low, high = np.quantile(getattr(self, name), [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high

    def transform(self, X: Any) -> Array:
        """Return the proportions of individuals given the fitted frequencies, each for itself.

        With admixture these are of maximum likelihood given P, which need no draws; without, the probabilities of the
        populations. An individual without genotypes gets equal proportions.
        """
        check_is_fitted(self)
        genotypes = self._matched(read_table(self, X, reset=False))
        if not self.admixture:
            return chances_of(genotypes, self.P_)
        P = np.maximum(self.P_, LEAST)
        return project(Likelihood(genotypes, self.n_jobs), P, self.n_populations)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the population of the largest proportion of each individual."""
        return np.asarray(self.transform(X).argmax(axis=1), dtype=np.int64)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a copy at the proportions of `transform`."""
        check_is_fitted(self)
        genotypes = self._matched(read_table(self, X, reset=False))
        typed = int(genotypes.n_typed.sum())
        if not typed:
            raise DataError("PopulationStructure: all genotypes are missing.")
        Q = self.transform(genotypes) if self.admixture else np.zeros((0, 0))
        return log_likelihood(genotypes, Q, self.P_, self.admixture) / typed

    def fst(self) -> Array:
        """Return F_ST between the populations, (K, K): Σ(H_between − H_within)/ΣH_between over loci (Hudson)."""
        check_is_fitted(self)
        same = 1.0 - np.add.reduceat(self.P_**2, self.allele_starts_[:-1], axis=0)  # (L, K) expected heterozygosity
        K = self.n_populations
        found = np.zeros((K, K))
        for j in range(K):
            for k in range(j):
                together = np.add.reduceat(self.P_[:, j] * self.P_[:, k], self.allele_starts_[:-1])
                between = float((1.0 - together).sum())
                within = float((0.5 * (same[:, j] + same[:, k])).sum())
                found[j, k] = found[k, j] = (between - within) / between if between > 0 else 0.0
        return found

    def simulate(self, n_individuals: int, random_state: Any = None) -> Genotypes:
        """Return genotypes drawn from the model: proportions from its prior with α, alleles from P."""
        check_is_fitted(self)
        rng = as_generator(random_state)
        K = self.n_populations
        if self.admixture:
            Q = rng.dirichlet(np.full(K, self.alpha_), size=n_individuals)
        else:
            Q = np.eye(K)[rng.integers(0, K, size=n_individuals)]
        return simulate_genotypes(Q, self.P_, self.allele_starts_, self.ploidy, rng)

    def _matched(self, table: Genotypes) -> Genotypes:
        """Return genotypes whose alleles are numbered as in the fit; alleles that it has not seen are missing."""
        names = table.allele_names
        sizes = np.diff(self.allele_starts_)
        if not self.allele_names_ or names is None:
            if (table.n_alleles > sizes).any():
                raise DataError("PopulationStructure: X has more alleles at a locus than the fit; name the alleles.")
            return Genotypes.from_alleles(table.alleles, individuals=table.individuals, n_alleles=sizes)
        alleles = np.full(table.alleles.shape, -1, dtype=np.int16)
        unseen = 0
        for j, own in enumerate(names):
            known = self.allele_names_[self.allele_starts_[j] : self.allele_starts_[j + 1]]
            place = np.array([known.index(name) if name in known else -1 for name in own] + [-1], dtype=np.int16)
            alleles[:, j] = place[table.alleles[:, j]]
            unseen += int(((alleles[:, j] < 0) & (table.alleles[:, j] >= 0)).sum())
        if unseen:
            warnings.warn(
                f"PopulationStructure: {unseen} copies are of alleles that the fit has not seen; they are left out.",
                UserWarning,
                stacklevel=3,
            )
        return Genotypes.from_alleles(alleles, individuals=table.individuals, n_alleles=sizes)

    @property
    def _n_features_out(self) -> int:
        return int(self.P_.shape[1])

    _laws = laws(
        law(
            "the alleles do not fit the loci",
            lambda model: (
                len(model.allele_starts_) == model.n_features_in_ + 1
                and model.allele_starts_[0] == 0
                and (np.diff(model.allele_starts_) > 0).all()
                and model.allele_starts_[-1] == len(model.P_)
                and len(model.labels_) == len(model.Q_)
            ),
        ),
        law(
            "Q and P must have a column for each population",
            lambda model: model.P_.shape[1] == model.Q_.shape[1] == model.n_populations,
        ),
        law("a label names no population", lambda model: (model.labels_ < model.n_populations).all()),
        law(
            "every allele needs a name, or none",
            lambda model: (
                len(model.allele_names_) in (0, len(model.P_)) and all(type(a) is str for a in model.allele_names_)
            ),
        ),
        law(
            "draws are missing",
            lambda model: (
                model.method != "gibbs"
                or all(hasattr(model, name) for name in ("Q_draws_", "P_draws_", "kept_", "trace_"))
            ),
        ),
        law(
            "the parameters of the places are missing",
            lambda model: (
                not model.place_prior or (hasattr(model, "place_alpha_") and hasattr(model, "place_alpha_draws_"))
            ),
        ),
        law(
            "every place needs a name",
            lambda model: (
                len(getattr(model, "places_", ())) == len(getattr(model, "place_alpha_", ()))
                and all(type(name) is str for name in getattr(model, "places_", ()))
            ),
        ),
        law("history_ is missing", lambda model: model.method != "ml" or hasattr(model, "history_")),
    )


def log_likelihood(genotypes: Genotypes, Q: Array, P: Array, admixture: bool = True) -> float:
    """Return log p(genotypes | Q, P); without admixture with the populations equally likely and summed out."""
    if not admixture:
        from .structure_mixture import levels_of

        return float(levels_of(genotypes, P).sum())
    likelihood = Likelihood(genotypes)
    return likelihood.value(np.ascontiguousarray(Q), likelihood.moved(np.clip(P, 1e-300, 1.0)))


def simulate_genotypes(
    Q: Array, P: Array, starts: NDArray[np.int64], ploidy: int = 2, random_state: Any = None
) -> Genotypes:
    """Return genotypes of individuals with proportions Q (n, K) and allele frequencies P (n_alleles in all, K).

    Parameters
    ----------
    Q, P : arrays
        Proportions and frequencies.
    starts : array of shape (n_loci + 1,)
        First allele of each locus, and the end.
    ploidy : int
        Copies per locus.
    random_state : int, Generator or None
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.topics import simulate_genotypes
    >>> simulate_genotypes(np.eye(2), np.array([[0.1, 0.9], [0.9, 0.1]]), np.array([0, 2]), random_state=0).n_loci
    1
    """
    rng = as_generator(random_state)
    n = len(Q)
    L = len(starts) - 1
    alleles = np.empty((n, L, ploidy), dtype=np.int16)
    for j in range(L):
        F = np.asarray(Q) @ np.asarray(P)[starts[j] : starts[j + 1]].T
        edges = np.cumsum(F, axis=1) / F.sum(axis=1, keepdims=True)
        u = rng.random((n, ploidy))
        alleles[:, j] = np.minimum((u[:, :, None] >= edges[:, None, :]).sum(axis=2), F.shape[1] - 1)
    return Genotypes.from_alleles(alleles, n_alleles=np.diff(starts))
