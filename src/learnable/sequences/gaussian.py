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

from ..core.declare import fitted, param
from ..core.errors import DataError, ParameterError
from ..core.parameters import ArrayLike, Number, Options
from .covariances import Covariances, expand, gaussian_frames, gaussian_statistics
from .hmm import LETTERS, HiddenMarkovModel
from .transitions import check_numbers

Array = NDArray[Any]


class GaussianHMM(HiddenMarkovModel):
    """A hidden Markov model with Gaussian emissions.

    Objective: Σ log p(x) plus the log-priors of the module, climbed by expectation–maximisation to a local maximum.
    Names and defaults are hmmlearn's. It differs in two things: a number as `covars_prior` of full matrices is that
    multiple of the identity, where hmmlearn adds it to every entry; and `covars_` always has the compact shape below.
    Memory O(nK).

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

    _theory = "hidden-markov"

    covariance_type: str = param(
        Options("diag", "spherical", "full", "tied"), "Shape of the covariances.", default="diag", kw_only=False
    )
    min_covar: float = param(
        Number(low=0.0), "Added to the diagonal of the first covariances.", default=1e-3, kw_only=False
    )
    means_prior: Any = param(Number() | ArrayLike(), "μ₀ of the module.", default=0, kw_only=False)
    means_weight: Any = param(
        Number(low=0.0) | ArrayLike(Number(low=0.0)), "m of the module.", default=0, kw_only=False
    )
    covars_prior: Any = param(
        Number(low=0.0) | ArrayLike(), "C₀: it keeps every variance above zero.", default=1e-2, kw_only=False
    )
    covars_weight: float = param(Number(), "Degrees of freedom of the prior.", default=1, kw_only=False)
    params: str = param(
        LETTERS, "Which parameters are estimated: s (π), t (A), m (μ), c (Σ).", default="stmc", kw_only=False
    )
    init_params: str = param(
        LETTERS, "Which parameters start anew: s (π), t (A), m (μ), c (Σ).", default="stmc", kw_only=False
    )
    _positional: ClassVar[tuple[str, ...]] = (
        "n_components",
        "covariance_type",
        "min_covar",
        "startprob_prior",
        "transmat_prior",
        "means_prior",
        "means_weight",
        "covars_prior",
        "covars_weight",
        "algorithm",
        "random_state",
        "n_iter",
        "tol",
        "verbose",
        "params",
        "init_params",
        "implementation",
    )

    means_: Array = fitted("(n_components, n_features)", "μ.")
    covars_: Array = fitted(
        "array",
        'Σ: (n_components,) with "spherical", (n_components, n_features) with "diag", (n_components, n_features, '
        'n_features) with "full", (n_features, n_features) with "tied" covariances.',
    )

    _letters: ClassVar[dict[str, str]] = {"m": "means_", "c": "covars_"}

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
