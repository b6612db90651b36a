r"""Gaussian mixtures with distributions over their parameters, by variational EM.

    π ~ Dirichlet or Dirichlet process,   (μₖ, Λₖ) ~ Normal–Wishart,   xᵢ | zᵢ = k ~ N(μₖ, Λₖ⁻¹)

The fit maximises the evidence bound F(q) ≤ log p(x) over factorised posteriors (`VariationalMixture` has the model
and the two steps, `solvers/em.py` the driver). No component can collapse, components that the rows do not need lose
their weight, and bounds of different K can be compared.

Reference: C. Bishop, Pattern Recognition and Machine Learning (2006), section 10.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, multigammaln
from sklearn.utils.validation import check_is_fitted

from ..core import (
    AnyArray,
    ArrayLike,
    Certificate,
    DataError,
    Number,
    Options,
    ParameterError,
    fitted,
    is_array,
    law,
    laws,
    optional,
    param,
)
from ..data import Blocks, Part, Table, door, map_reduce, read_features
from ..data.sources import rowwise
from ..meta.splits import as_generator
from ..probability import Beta, MultivariateStudentT, StudentT
from ..solvers.em import em_in_time
from .base import MixtureBase, log_sums, precisions_of
from .narration import VERBOSE, MixtureNarrator
from .normals import Density, Mixture, NormalMixture, Prior
from .starts import (
    check_enough_rows,
    covariances_of,
    from_responsibilities,
    responsibilities,
    sample_rows,
    seconds_left,
    table_moments,
)

_POSITIVE = optional(Number(low=0.0, low_open=True))


class VariationalGaussianMixture(MixtureBase):
    """A Bayesian mixture of normal densities: max F(q) ≤ log p(x) over q(z) q(π) Πₖ q(μₖ, Λₖ).

    scikit-learn's `BayesianGaussianMixture`, parameter for parameter. What differs: `lower_bound_` is the evidence
    bound with all its constants, and never falls; `score_samples` is the log of the predictive density, a mixture of
    Student t; for tied, diagonal and spherical covariances the posterior is exact for a stated model
    (`Hyperparameters`), where scikit-learn takes the constants of the full one; `reg_covar` is added to the
    prior's covariance, once. Memory besides X: O(Kd²) and a few thousand rows.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import VariationalGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(80, 2)), rng.normal(size=(40, 2)) + 6])
    >>> model = VariationalGaussianMixture(3, weight_concentration_prior=1e-3, tol=1e-6, random_state=0).fit(X)
    >>> np.sort(model.counts_).round()
    array([ 0., 40., 80.])
    """

    _theory = "variational"

    n_components: int = param(
        Number(low=1, integer=True),
        "K, the most components; those that are not needed get little weight.",
        default=1,
        kw_only=False,
    )
    covariance_type: str = param(
        Options("full", "tied", "diag", "spherical"),
        "Λₖ free; one Λ for all; diagonal; a multiple of the identity.",
        default="full",
    )
    reg_covar: float = param(Number(low=0.0), "Added to the diagonal of `covariance_prior`.", default=1e-6)
    weight_concentration_prior_type: str = param(
        Options("dirichlet_process", "dirichlet_distribution"), "The prior of the weights.", default="dirichlet_process"
    )
    weight_concentration_prior: float | None = param(
        _POSITIVE, "α₀; by default 1/K. Small values favour few components.", default=None
    )
    mean_precision_prior: float | None = param(_POSITIVE, "β₀; by default 1.", default=None)
    mean_prior: Any = param(optional(ArrayLike()), "m₀; by default the mean of X.", default=None)
    degrees_of_freedom_prior: float | None = param(
        _POSITIVE, "ν₀ > d − 1 (> 0 for diagonal types); by default d.", default=None
    )
    covariance_prior: Any = param(
        optional(ArrayLike() | Number(low=0.0, low_open=True)),
        "Ψ₀: (d, d), (d,) if diagonal, a number if spherical; by default the covariance of X, its diagonal, "
        "or the mean of the latter.",
        default=None,
    )
    verbose: int = param(
        VERBOSE, "1 prints the starts and every `verbose_interval` steps, 2 their time and rise, too.", default=0
    )
    verbose_interval: int = param(Number(low=1, integer=True), "Steps between two lines that are printed.", default=10)
    weights_: AnyArray = fitted("(n_components,)", "E[π], scaled to the sum one.", kind="f8")
    counts_: AnyArray = fitted("(n_components,)", "The expected weight of each component's rows.", kind="f8")
    means_: AnyArray = fitted("(n_components, n_features)", "m.", kind="f8")
    covariances_: AnyArray = fitted("array", "Ψ/ν = E[Λ]⁻¹ in the shape of the covariance type.")
    precisions_: AnyArray = fitted("array", "The inverse of `covariances_`.")
    precisions_cholesky_: AnyArray = fitted("array", "Upper triangular U with UUᵀ equal to it.")
    weight_concentration_: Any = fitted(
        "array of shape (n_components,), or a pair of such",
        "Of the Dirichlet distribution, or of the Beta distributions of the sticks.",
    )
    mean_precision_: AnyArray = fitted("(n_components,)", "β.", kind="f8")
    degrees_of_freedom_: Any = fitted("array of shape (n_components,), or float", "ν; one number if tied.")
    weight_concentration_prior_: float = fitted("float", "α₀, as all priors here as it was used.")
    mean_precision_prior_: float = fitted("float", "β₀.")
    mean_prior_: AnyArray = fitted("(n_features,)", "m₀.", kind="f8")
    degrees_of_freedom_prior_: float = fitted("float", "ν₀.")
    covariance_prior_: Any = fitted("array or float", "Ψ₀/ν₀ by covariance type, with `reg_covar` in it.")
    lower_bound_: float = fitted("float", "The evidence bound F.")
    certificate_: Certificate = fitted(
        "Certificate", "`ascent`: what one more step would add to the bound, per unit of weight."
    )
    _sizes = ("n_components",)

    _door = staticmethod(door(target="none", sparse=False))
    _remedy = "raise max_iter or tol"

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner = type(self).__name__
        K = self.n_components
        check_enough_rows(owner, table.n_rows, max(2, K), "n_components" if K > 1 else "2 rows; n_components")
        if table.X is not None and not float(np.abs(table.X).max(initial=0.0)) < 1e150:
            raise DataError(f"{owner}: X has numbers whose squares overflow. Divide the columns by their spread.")
        blocks, known = self._blocks(table)
        weight = float(table.weight_sum)
        problem = VariationalMixture(
            self.covariance_type, K, table.n_columns, self._hyperparameters(blocks, table.n_columns, weight)
        )
        if self.warm_start and hasattr(run.previous, "counts_"):
            starts = iter([run.previous._posterior()])
        else:
            starts = self._starts(problem, blocks, known, weight, run)
        narrator = MixtureNarrator(self.verbose, self.verbose_interval, weight)
        found = em_in_time(
            problem,
            blocks,
            map(narrator.begin, starts),
            run.should_stop if self.max_seconds is not None else None,
            owner=type(self).__name__,
            rounding=1e-8 * weight,  # columns that repeat each other cost digits
            tol=self.tol * weight,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            flag=run.flag,
            progress=narrator.report(run.progress),
        )
        narrator.end(bool(found.converged))
        self._set_posterior(problem, found.parameters)
        if known is not None:
            self.known_labels_ = known
        self.converged_ = bool(found.converged)
        self.n_iter_ = max(1, found.n_iter)
        self.lower_bound_ = found.bound
        self.bound_history_ = found.history
        rise = max(found.rise, 0.0) / weight
        return Certificate("ascent", value=rise, tolerance=self.tol, n_iter=self.n_iter_)

    @rowwise
    def score_samples(self, X: Any) -> AnyArray:
        """Return the log of the predictive density: what the posterior expects of a new row."""
        X = read_features(self, X, sparse=False)
        with np.errstate(divide="ignore"):
            logs = np.repeat(np.log(self.weights_)[:, None], len(X), axis=1)
        for k, density in enumerate(self.predictive()):
            values = density.logpdf(X)
            logs[k] += values if np.ndim(values) == 1 else values.sum(axis=1)
        return log_sums(logs)

    def predictive(self) -> list[Any]:
        """Return the predictive density of each component: Student t, of the row or of each column if diagonal."""
        check_is_fitted(self)
        kind = self.covariance_type
        d = self.n_features_in_
        nu = np.broadcast_to(self.degrees_of_freedom_, self.n_components)
        found: list[Any] = []
        for k in range(self.n_components):
            wider = 1 + 1 / self.mean_precision_[k]
            cov = self.covariances_ if kind == "tied" else self.covariances_[k]
            if kind == "diag":
                found.append(StudentT(nu[k], self.means_[k], np.sqrt(wider * cov)))
            elif kind == "spherical":
                found.append(MultivariateStudentT(d * nu[k], self.means_[k], wider * cov * np.eye(d)))
            else:
                df = nu[k] + 1 - d
                found.append(MultivariateStudentT(df, self.means_[k], wider * (nu[k] / df) * cov))
        return found

    def _draw(self, counts: AnyArray, rng: np.random.Generator) -> AnyArray:
        """Draw from the predictive density."""
        rows = [density.sample(int(n), rng) for density, n in zip(self.predictive(), counts, strict=True) if n > 0]
        return np.concatenate(rows)

    def _log_joint(self, X: Any) -> AnyArray:
        """Return E[log πₖ N(x; μₖ, Λₖ⁻¹)], (K, n): its softmax are the responsibilities."""
        X = read_features(self, X, sparse=False)
        density = Density(self.covariance_type, self._problem().surrogate(self._posterior()), type(self).__name__)
        out = np.empty((self.n_components, X.shape[0]))

        def work(block: Any) -> None:
            rows = np.ascontiguousarray(np.asarray(block.X, dtype=np.float64).T)
            out[:, block.start : block.start + len(block.X)] = density.log_joint(rows)

        map_reduce(Blocks([Part(X)]), work, lambda a, b: None, n_jobs=self.n_jobs)
        return out

    def _starts(
        self, problem: VariationalMixture, blocks: Any, known: AnyArray | None, weight: float, run: Any
    ) -> Iterator[Posterior]:
        rng = as_generator(self.random_state)
        K = self.n_components
        X, w = sample_rows(blocks, int(blocks.n_rows))
        X = np.asarray(X, dtype=np.float64)
        for _ in range(self.n_init):
            r = responsibilities(self.init_params, X, w, K, rng, seconds_left(self.max_seconds, run))
            if known is not None and len(known) == len(X):
                given = np.flatnonzero(known >= 0)
                r[given] = np.eye(K)[known[given]]
            yield from_responsibilities(problem, X, r * w[:, None] * (weight / w.sum()))

    def _hyperparameters(self, blocks: Any, d: int, weight: float) -> Hyperparameters:
        """Return the prior, with defaults from the rows; and keep it in attributes."""
        owner = type(self).__name__
        kind = self.covariance_type
        K = self.n_components
        mean, cov = table_moments(blocks, self.n_jobs)
        cov = cov * (weight / (weight - 1) if weight > 1 else 1.0)
        shape = covariances_of(kind, 1, d)[int(kind != "tied") :]
        default = {"full": cov, "tied": cov, "diag": np.diag(cov), "spherical": np.diag(cov).mean()}[kind]
        scale = np.array(default if self.covariance_prior is None else self.covariance_prior, dtype=np.float64)
        if scale.shape != shape:
            raise ParameterError(f"{owner}: covariance_prior must have shape {shape}; got {scale.shape}.")
        scale = scale + self.reg_covar * (np.eye(d) if scale.ndim == 2 else 1.0)
        values = np.linalg.eigvalsh(scale) if scale.ndim == 2 else scale
        if not (values > 0).all() or not np.allclose(scale, scale.T):
            raise DataError(
                f"{owner}: covariance_prior, by default the covariance of X, must be symmetric and positive definite. "
                "Leave out columns that are constant or depend on others, or raise reg_covar."
            )
        center = mean if self.mean_prior is None else np.array(self.mean_prior, dtype=np.float64)
        if center.shape != (d,):
            raise ParameterError(f"{owner}: mean_prior must have shape {(d,)}; got {center.shape}.")
        least = d - 1 if kind in ("full", "tied") else 0
        dof = float(d if self.degrees_of_freedom_prior is None else self.degrees_of_freedom_prior)
        if not dof > least:
            raise ParameterError(f"{owner}: degrees_of_freedom_prior must be > {least}; got {dof:g}.")
        alpha = self.weight_concentration_prior
        beta = self.mean_precision_prior
        self.weight_concentration_prior_ = 1.0 / K if alpha is None else float(alpha)
        self.mean_precision_prior_ = 1.0 if beta is None else float(beta)
        self.mean_prior_ = center
        self.degrees_of_freedom_prior_ = dof
        self.covariance_prior_ = float(scale) if kind == "spherical" else scale
        return self._prior()

    def _prior(self) -> Hyperparameters:
        return Hyperparameters(
            self.weight_concentration_prior_type == "dirichlet_process",
            self.weight_concentration_prior_,
            self.mean_precision_prior_,
            self.mean_prior_,
            self.degrees_of_freedom_prior_,
            np.asarray(self.covariance_prior_),
        )

    def _problem(self) -> VariationalMixture:
        return VariationalMixture(self.covariance_type, self.n_components, self.n_features_in_, self._prior())

    def _posterior(self) -> Posterior:
        return Posterior(self.counts_, self.means_, self.covariances_)

    def _set_posterior(self, problem: VariationalMixture, posterior: Posterior) -> None:
        self.counts_, self.means_, self.covariances_ = (np.ascontiguousarray(each) for each in posterior)
        nu = problem.dof(posterior)
        self.degrees_of_freedom_ = float(nu[0]) if self.covariance_type == "tied" else np.array(nu)
        self.mean_precision_ = self.mean_precision_prior_ + self.counts_
        if problem.prior.process:
            a, b = problem.sticks(posterior)
            self.weight_concentration_: Any = (a, b)
            weights = a / (a + b) * np.r_[1.0, np.cumprod(b / (a + b))[:-1]]
        else:
            self.weight_concentration_ = weights = self.weight_concentration_prior_ + self.counts_
        self.weights_ = weights / weights.sum()
        found = precisions_of(type(self).__name__, self.covariance_type, self.covariances_)
        self.precisions_, self.precisions_cholesky_ = found

    _laws = laws(
        law(
            "{owner}: covariances_ must be a finite float64 array of the shape of {model.covariance_type}",
            lambda m: is_array(
                m.covariances_, covariances_of(m.covariance_type, m.n_components, m.n_features_in_), finite=True
            ),
        ),
    )


# A Gaussian mixture with distributions over its parameters, as the two steps of variational EM.
#
#     π ~ Dirichlet(α₀, …)  or  πₖ = vₖ Πⱼ<ₖ(1 − vⱼ), vₖ ~ Beta(1, α₀)      weights, or sticks of a Dirichlet process
#     Λₖ ~ Wishart(ν₀, Ψ₀⁻¹),   μₖ | Λₖ ~ N(m₀, (β₀Λₖ)⁻¹),   xᵢ | zᵢ = k ~ N(μₖ, Λₖ⁻¹)
#
# The posterior is approximated by q(z) q(π) Πₖ q(μₖ, Λₖ), which maximises the evidence bound
#
#     F = E_q[log p(x, z, π, μ, Λ)] − E_q[log q] ≤ log p(x).
#
# E-step: rᵢₖ ∝ ρᵢₖ = exp E[log πₖ N(xᵢ; μₖ, Λₖ⁻¹)], a normal density with the covariance Ψₖ/νₖ and another constant,
# so
# that the sums are those of `normals.py`; after it F = Σᵢ wᵢ log Σₖ ρᵢₖ − KL(q(π, μ, Λ) ‖ prior). M-step: q has the
# form
# of the prior, with N rows more: βₖ = β₀ + Nₖ, νₖ = ν₀ + Nₖ, and mₖ, Ψₖ/νₖ are means and covariances of MAP-EM under
# a
# prior of suitable degrees of freedom. So a posterior is (N, m, Ψ/ν), and everything else follows.
#
# A tied covariance has one Wishart factor (ν₀ + ΣN degrees of freedom), a diagonal one a factor with d = 1 for each
# column, a spherical one a single factor with d = 1, ν and Ψ then times d. Sticks beyond K have their prior: the
# bound is
# one of the infinite mixture.
#
# References: C. Bishop, Pattern Recognition and Machine Learning (2006), section 10.2; D. Blei and M. Jordan,
# Variational
# inference for Dirichlet process mixtures, Bayesian Analysis 1 (2006), 121–143.


class Posterior(NamedTuple):
    """What the approximate posterior depends on."""

    counts: AnyArray  #: (K,) N, the expected weight of each component's rows
    means: AnyArray  #: (K, d) m
    covariances: AnyArray  #: Ψ/ν = E[Λ]⁻¹: full (K, d, d), tied (d, d), diag (K, d), spherical (K,)


class Hyperparameters(NamedTuple):
    """The prior."""

    process: bool  #: whether weights are sticks of a Dirichlet process
    concentration: float  #: α₀
    mean_precision: float  #: β₀
    mean: AnyArray  #: m₀ (d,)
    dof: float  #: ν₀
    scale: AnyArray  #: Ψ₀: (d, d), (d,) for diagonal and () for spherical covariances


class VariationalMixture:
    """The two steps; knows the kind of covariances and the prior."""

    def __init__(self, kind: str, K: int, d: int, prior: Hyperparameters) -> None:
        self.kind = kind
        self.K = K
        self.d = d
        self.prior = prior
        nu = prior.dof
        scale = prior.scale
        # The degrees of freedom with which MAP-EM divides by ν = ν₀ + N.
        dof = {"full": nu - d - 2, "tied": nu - d - 1 - K, "diag": nu - 3, "spherical": d * nu - d - 2}[kind]
        scale = np.full(d, d * float(scale)) if kind == "spherical" else scale
        self.steps = NormalMixture(kind, K, d, 1.0, 0.0, Prior(1.0, dof, scale, prior.mean, prior.mean_precision))

    def expectation(self, block: Any, posterior: Posterior) -> tuple[tuple[Any, ...], float]:
        """Return N, s and S of a block's rows, and Σ w log Σₖ ρₖ."""
        return self.steps.expectation(block, self.surrogate(posterior))

    def maximisation(self, statistics: tuple[Any, ...], posterior: Any) -> Posterior:
        """Return the posterior under the responsibilities."""
        centred = Mixture(np.empty(0), posterior.means, np.empty(0))
        found = self.steps.maximisation(statistics, centred)
        return Posterior(statistics[0], found.means, found.covariances)

    def log_prior(self, posterior: Posterior) -> float:
        """Return −KL(q(π, μ, Λ) ‖ prior)."""
        p = self.prior
        d = self.d
        beta = p.mean_precision + posterior.counts
        nu = self.dof(posterior)
        density = Density(self.kind, Mixture(np.ones(self.K), posterior.means, posterior.covariances))
        ratio = p.mean_precision / beta
        of_means = d * (ratio - 1 - np.log(ratio)) + p.mean_precision * density.squares(posterior.means - p.mean)
        scale = np.full(d, float(p.scale)) if self.kind == "spherical" else p.scale
        trace = density.trace_inverse(scale) / nu  # tr Ψ₀Ψ⁻¹
        if self.kind in ("full", "tied"):
            log_ratio = np.linalg.slogdet(p.scale)[1] - (density.log_det + d * np.log(nu))  # log|Ψ₀Ψ⁻¹|
            of_precisions = wishart_divergence(nu, p.dof, log_ratio, trace, d)
            of_precisions = of_precisions[:1] if self.kind == "tied" else of_precisions
        elif self.kind == "diag":
            ratios = scale * density.precisions / nu[:, None]
            of_precisions = wishart_divergence(nu[:, None], p.dof, np.log(ratios), ratios, 1)
        else:
            of_precisions = wishart_divergence(d * nu, d * p.dof, np.log(trace / d), trace / d, 1)
        return -float(self._weight_divergence(posterior) + 0.5 * of_means.sum() + of_precisions.sum())

    def dof(self, posterior: Posterior) -> AnyArray:
        """Return ν, (K,)."""
        counts = posterior.counts.sum() if self.kind == "tied" else posterior.counts
        return np.broadcast_to(self.prior.dof + counts, self.K)

    def sticks(self, posterior: Posterior) -> tuple[AnyArray, AnyArray]:
        """Return the two parameters of the Beta distribution of each stick."""
        after = np.cumsum(posterior.counts[::-1])[::-1] - posterior.counts
        return 1.0 + posterior.counts, self.prior.concentration + np.maximum(after, 0.0)

    def log_weights(self, posterior: Posterior) -> AnyArray:
        """Return E[log πₖ]."""
        if not self.prior.process:
            alpha = self.prior.concentration + posterior.counts
            return np.asarray(digamma(alpha) - digamma(alpha.sum()))
        a, b = self.sticks(posterior)
        taken = digamma(a) - digamma(a + b)
        left = digamma(b) - digamma(a + b)
        return np.asarray(taken + np.r_[0.0, np.cumsum(left)[:-1]])

    def surrogate(self, posterior: Posterior) -> Mixture:
        """Return the normal densities, with weights, that are ρₖ(x)."""
        nu = self.dof(posterior)
        d = self.d
        if self.kind in ("full", "tied"):
            bend = digamma(0.5 * (nu[:, None] - np.arange(d))).sum(axis=1) - d * np.log(0.5 * nu)
        elif self.kind == "diag":
            bend = d * (digamma(0.5 * nu) - np.log(0.5 * nu))
        else:
            bend = d * (digamma(0.5 * d * nu) - np.log(0.5 * d * nu))
        constants = self.log_weights(posterior) + 0.5 * bend - 0.5 * d / (self.prior.mean_precision + posterior.counts)
        return Mixture(np.exp(constants), posterior.means, posterior.covariances)

    def _weight_divergence(self, posterior: Posterior) -> float:
        alpha0 = self.prior.concentration
        K = self.K
        if self.prior.process:
            return float(np.sum(Beta(*self.sticks(posterior)).kl(Beta(1.0, alpha0))))
        alpha = alpha0 + posterior.counts
        constant = gammaln(alpha.sum()) - gammaln(alpha).sum() - gammaln(K * alpha0) + K * gammaln(alpha0)
        return float(constant + posterior.counts @ self.log_weights(posterior))


def wishart_divergence(nu: AnyArray, nu0: float, log_ratio: AnyArray, trace: AnyArray, d: int) -> AnyArray:
    """Return KL(Wishart(ν, Ψ⁻¹) ‖ Wishart(ν₀, Ψ₀⁻¹)) from log|Ψ₀Ψ⁻¹| and tr Ψ₀Ψ⁻¹."""
    psi = digamma(0.5 * (np.asarray(nu)[..., None] - np.arange(d))).sum(axis=-1)
    constant = multigammaln(0.5 * nu0, d) - multigammaln(0.5 * np.asarray(nu), d)
    return np.asarray(-0.5 * nu0 * log_ratio + 0.5 * nu * (trace - d) + constant + 0.5 * (nu - nu0) * psi)
