r"""Hidden Markov models with Gaussian emissions: x_t | z_t = k ~ N(μ_k, Σ_k).

With S_k = Σ_t γ_t(k)(x_t − μ_k)(x_t − μ_k)ᵀ and n_k = Σ_t γ_t(k), the M-step with the priors below is

$$ \mu_k = \frac{m \mu_0 + \sum_t \gamma_t(k) x_t}{m + n_k}, \qquad
   \Sigma_k = \frac{C_0 + m (\mu_k - \mu_0)(\mu_k - \mu_0)^\top + S_k}{c + n_k}, $$

with m = `means_weight`, C₀ = `covars_prior`, c = max(`covars_weight` − d, 0) (− 1 for diagonals). It maximises the
expected log-likelihood plus −½ Σ_k [c log|Σ_k| + tr Σ_k⁻¹(C₀ + m (μ_k − μ₀)(μ_k − μ₀)ᵀ)]. Second moments are taken
about the means of the last step, so that digits survive a mean that is large against the spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..core.parameters import ArrayLike, Number, Options, Rule
from .covariances import Covariances, expand, gaussian_frames, gaussian_statistics
from .hmm import COMMON_PARAMETERS, HiddenMarkovModel
from .transitions import check_numbers

Array = NDArray[Any]


class GaussianHMM(HiddenMarkovModel):
    """A hidden Markov model with Gaussian emissions.

    Objective: Σ log p(x) plus the log-priors of the module, climbed by expectation–maximisation to a local maximum.
    Names and defaults are hmmlearn's. It differs in two things: a number as `covars_prior` of full matrices is that
    multiple of the identity, where hmmlearn adds it to every entry; and `covars_` always has the compact shape below.
    Memory O(nK).

    Parameters
    ----------
    n_components : int, default=1
        Number of states, K.
    covariance_type : {"diag", "spherical", "full", "tied"}, default="diag"
        Shape of the covariances.
    min_covar : float, default=1e-3
        Added to the diagonal of the first covariances.
    startprob_prior, transmat_prior : float or array, default=1.0
        Dirichlet parameters of π and of the rows of A, ≥ 1.
    means_prior, means_weight : float or array, default=0
        μ₀ and m of the module.
    covars_prior : float or array, default=1e-2
        C₀: it keeps every variance above zero.
    covars_weight : float, default=1
        Degrees of freedom of the prior.
    structure, algorithm, random_state, n_iter, tol, n_init, verbose, implementation, max_seconds, n_jobs
        As in `CategoricalHMM`.
    params, init_params : str, default="stmc"
        Which parameters are estimated, and which start anew: s (π), t (A), m (μ), c (Σ).

    Attributes
    ----------
    startprob_, transmat_, bound_history_, n_iter_, converged_, certificate_
        As in `CategoricalHMM`.
    means_ : array of shape (K, n_features)
        μ.
    covars_ : array of shape (K,) "spherical", (K, d) "diag", (K, d, d) "full" or (d, d) "tied"
        Σ.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, 50), rng.normal(8, 1, 50)][:, None]
    >>> model = GaussianHMM(n_components=2, random_state=0, n_iter=100).fit(X)
    >>> np.flatnonzero(np.diff(model.predict(X)))
    array([49])
    """

    _parameters: ClassVar[Mapping[str, Rule]] = COMMON_PARAMETERS | {
        "covariance_type": Options("diag", "spherical", "full", "tied"),
        "min_covar": Number(low=0.0),
        "means_prior": Number() | ArrayLike(),
        "means_weight": Number(low=0.0) | ArrayLike(Number(low=0.0)),
        "covars_prior": Number(low=0.0) | ArrayLike(),
        "covars_weight": Number(),
    }
    _letters: ClassVar[dict[str, str]] = {"m": "means_", "c": "covars_"}

    means_: Array
    covars_: Array

    def __init__(
        self,
        n_components=1,
        covariance_type="diag",
        min_covar=1e-3,
        startprob_prior=1.0,
        transmat_prior=1.0,
        means_prior=0,
        means_weight=0,
        covars_prior=1e-2,
        covars_weight=1,
        algorithm="viterbi",
        random_state=None,
        n_iter=10,
        tol=1e-2,
        verbose=False,
        params="stmc",
        init_params="stmc",
        implementation="log",
        *,
        structure=None,
        n_init=1,
        max_seconds=None,
        n_jobs=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.min_covar = min_covar
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.means_prior = means_prior
        self.means_weight = means_weight
        self.covars_prior = covars_prior
        self.covars_weight = covars_weight
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.implementation = implementation
        self.structure = structure
        self.n_init = n_init
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs

    def _check_rows(self, X: Array) -> None:
        size = np.nanmax(abs(X), initial=0.0)
        if size > 1e150:
            raise DataError(f"GaussianHMM: squares of X overflow; got a number of size {size:.3g}; divide its column.")

    def _log_frames(self, lines: Array, emission: tuple[Array, ...]) -> Array:
        means, covars = emission
        return gaussian_frames(lines, means, covars, self.covariance_type)

    def _statistics(self, lines: Array, weight: Array, emission: tuple[Array, ...]) -> tuple[Array, ...]:
        means, covars = emission
        return gaussian_statistics(lines, weight, means, covars, self.covariance_type)

    def _update(self, statistics: tuple[Array, ...], emission: tuple[Array, ...]) -> tuple[Array, ...]:
        means, covars = emission
        return self._rule(emission).update(statistics, means, covars, self.params)

    def _log_prior(self, emission: tuple[Array, ...]) -> float:
        return self._rule(emission).log_prior(*emission)

    def _rule(self, emission: tuple[Array, ...]) -> Covariances:
        K, d = emission[0].shape
        try:
            return Covariances.build(
                self.covariance_type, K, d, self.means_prior, self.means_weight, self.covars_prior, self.covars_weight
            )
        except ValueError as error:
            raise ParameterError(f"GaussianHMM: the priors do not fit {K} states of {d} columns: {error}") from error

    def _draw_start(self, X: Array, rng: Any) -> dict[str, Array]:
        from .starts import draw_means, first_covariance

        K = self.n_components
        cov = first_covariance(X, self.min_covar)
        compact = {"full": np.tile(cov, (K, 1, 1)), "tied": cov, "diag": np.tile(np.diag(cov), (K, 1))}
        compact["spherical"] = np.full(K, np.diag(cov).mean())
        return {"means_": draw_means(X, K, rng), "covars_": compact[self.covariance_type]}

    def _emission_of(self, attributes: Mapping[str, Any]) -> tuple[Array, ...]:
        means = np.asarray(attributes["means_"], dtype=float)
        K = self.n_components
        d = getattr(self, "n_features_in_", means.shape[-1] if means.ndim else 1)
        shape = {"spherical": (K,), "diag": (K, d), "full": (K, d, d), "tied": (d, d)}[self.covariance_type]
        means = check_numbers("GaussianHMM", "means_", means, (K, d))
        given = attributes["covars_"]
        if self.covariance_type == "spherical" and np.size(given) == K:  # hmmlearn's forms: (K, 1), (K, 1, 1)
            given = np.reshape(given, K)
        covars = check_numbers("GaussianHMM", "covars_", given, shape)
        full = expand(covars, self.covariance_type, K, d)
        if not np.allclose(full, full.transpose(0, 2, 1), rtol=1e-8, atol=0) or (np.linalg.eigvalsh(full) <= 0).any():
            raise ParameterError(
                "GaussianHMM: covars_ must be symmetric and positive; got one that is not. "
                "Raise covars_prior, or leave constant columns out."
            )
        return means, covars

    def _n_emission_parameters(self) -> int:
        K, d = self.means_.shape
        return int(
            K * d
            + {"spherical": K, "diag": K * d, "full": K * d * (d + 1) // 2, "tied": d * (d + 1) // 2}[
                self.covariance_type
            ]
        )

    def _draw_observations(self, states: Array, rng: Any) -> Array:
        means, covars = self._fitted().emission
        K, d = means.shape
        factors = np.linalg.cholesky(expand(covars, self.covariance_type, K, d))
        noise = rng.standard_normal((len(states), d))
        return means[states] + np.einsum("nij,nj->ni", factors[states], noise)

    def _expected(self, proba: Array) -> Array:
        return proba @ self.means_
