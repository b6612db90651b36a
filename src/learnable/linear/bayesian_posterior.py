r"""What the posterior of a linear regression answers: predictions, intervals, draws of coefficients and of functions.

Everything is a function of the eigenvalues s and the basis V of the Gram matrix, the ratio ρ and the noise:
(S + ρI)⁻¹ = V diag(1/(s + ρ)) Vᵀ + (I − VVᵀ)/ρ, where the last term is the prior in the directions that no row has.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.declare import fitted, param
from ..core.errors import ModelFileError
from ..core.parameters import Boolean, Options
from ..core.threads import interruptible
from ..data.door import read_features
from ..data.sources import rowwise
from ..probability.gamma import InverseGamma
from ..probability.multivariate_normal import MultivariateNormal
from ..probability.multivariate_t import MultivariateStudentT
from ..probability.normal import Normal
from ..probability.student_t import StudentT
from ._base import LinearModel

Array = NDArray[np.float64]


class LinearPosterior(LinearModel):
    """A linear regression with a posterior distribution of its coefficients."""

    noise: str = param(
        Options("evidence", "known", "unknown"),
        '"known": σ is `noise_std`, the prior is β ~ N(0, τ²I) with τ = `prior_std`; predictions are '
        'normal. "unknown": σ² ~ IG(`shape`, `rate`) and β | σ² ~ N(0, σ²τ²I); predictions are Student-t. '
        '"evidence": σ and τ are those that make the data most probable (empirical Bayes, as in '
        "scikit-learn's `BayesianRidge`, without its hyperpriors, and the global maximum).",
        default="evidence",
        kw_only=False,
    )
    fit_intercept: bool = param(Boolean(), "Whether b is free, with a flat prior, or zero.", default=True)
    coef_: Any = fitted("(n_features,)", "Posterior mean of β.")
    intercept_: Any = fitted("()", "Posterior mean of b.")
    alpha_: float = fitted("()", "Precision 1/σ² of the noise: known, estimated, or its posterior mean.")
    lambda_: float = fitted("()", "Precision 1/τ² of the prior: known, estimated, or `alpha_`/τ².")
    shape_: float = fitted("()", "a of the posterior IG(a, b) of σ²; with unknown noise only.", optional=True)
    rate_: float = fitted("()", "b of that posterior; with unknown noise only.", optional=True)
    log_marginal_likelihood_: float = fitted(
        "()", "log p(y), the coefficients integrated out; a flat intercept counts with the density one."
    )
    effective_parameters_: float = fitted("()", "γ = Σ s/(s + ρ) over the eigenvalues s of the Gram matrix.")
    ratio_: float = fitted("()", "ρ = σ²/τ².")
    n_rows_: int = fitted("int", "How many rows there were.")
    weight_sum_: float = fitted("()", "The sum of their weights.")
    x_mean_: Array = fitted("(n_features,)", "Weighted mean of the rows; zero without an intercept.")
    y_mean_: float = fitted("()", "Weighted mean of the targets; zero without an intercept.")
    y_square_: float = fitted("()", "Weighted sum of squares of the centred targets.")
    eigenvalues_: Array = fitted("(rank,)", "The positive eigenvalues s of the Gram matrix.", low=0.0)
    basis_: Array = fitted("(n_features, rank)", "Their eigenvectors.")
    cross_: Array = fitted("(n_features,)", "Products of the centred columns with the targets.")

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the means of the predictive distributions, and with `return_std` their standard deviations.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows.
        return_std : bool
            Whether to return a pair of arrays; lazy Dask arrays for a Dask collection.
        """
        return (self._predict_mean(X), self._predict_std(X)) if return_std else self._predict_mean(X)

    @rowwise
    def _predict_mean(self, X: Any) -> Array:
        return self._score_rows(X)

    @rowwise
    def _predict_std(self, X: Any) -> Array:
        return np.asarray(self.predict_dist(X).std)

    def predict_dist(self, X: Any) -> Normal | StudentT:
        """Return the distribution of a new observation at each row of X: normal, or Student-t with unknown noise."""
        return self._at_rows(X, new_observation=True)

    def predict_function(self, X: Any) -> Normal | StudentT:
        """Return the distribution of the regression function b + xᵀβ at each row of X, without the noise."""
        return self._at_rows(X, new_observation=False)

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends that hold a new observation with the probability `level`."""
        return self._predict_end(X, level, 0), self._predict_end(X, level, 1)

    @rowwise
    def _predict_end(self, X: Any, level: float, end: int) -> Array:
        return np.asarray(self.predict_dist(X).interval(level)[end])

    def _at_rows(self, X: Any, *, new_observation: bool) -> Normal | StudentT:
        check_is_fitted(self)
        X = read_features(self, X)
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        loc = np.asarray(X @ self.coef_ + self.intercept_)
        common = float(new_observation) + (1.0 / self.weight_sum_ if self.fit_intercept else 0.0)
        return self._with_noise(loc, common + self._spread(X - self.x_mean_))

    def _spread(self, Z: Array) -> Array:
        """Return zᵀ(S + ρI)⁻¹z for every row z."""
        inside = Z @ self.basis_
        spread = np.square(inside) @ (1.0 / (self.eigenvalues_ + self.ratio_))
        if len(self.eigenvalues_) < self.n_features_in_:  # where the data say nothing the prior stands
            left = Z - inside @ self.basis_.T
            spread += np.einsum("ij,ij->i", left, left) / self.ratio_
        return np.asarray(spread)

    def _with_noise(self, loc: Array, variance: Array) -> Normal | StudentT:
        """Return distributions whose variances are multiples of that of the noise."""
        scale = np.sqrt(variance / self.alpha_)
        scale = np.maximum(scale, np.finfo(float).tiny)
        return StudentT(2.0 * self.shape_, loc, scale) if self.noise == "unknown" else Normal(loc, scale)

    def coef_dist(self) -> Normal | StudentT:
        """Return the posterior distribution of each coefficient by itself."""
        check_is_fitted(self)
        unit = np.square(self.basis_) @ (1.0 / (self.eigenvalues_ + self.ratio_))
        if len(self.eigenvalues_) < self.n_features_in_:
            unit += np.maximum(1.0 - np.sum(np.square(self.basis_), axis=1), 0.0) / self.ratio_
        return self._with_noise(self.coef_, unit)

    def coef_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends that hold each coefficient with the posterior probability `level`."""
        lower, upper = self.coef_dist().interval(level)
        return np.asarray(lower), np.asarray(upper)

    def noise_dist(self) -> InverseGamma:
        """Return the posterior distribution of σ²; with unknown noise only."""
        check_is_fitted(self)
        if self.noise != "unknown":
            raise AttributeError("BayesianLinearRegression: σ² has a distribution with noise='unknown' only.")
        return InverseGamma(self.shape_, self.rate_)

    def posterior(self) -> MultivariateNormal | MultivariateStudentT:
        """Return the joint posterior distribution of the coefficients."""
        scale = self._unit_covariance() / self.alpha_
        if self.noise == "unknown":
            return MultivariateStudentT(2.0 * self.shape_, self.coef_, scale)
        return MultivariateNormal(self.coef_, scale)

    @property
    def sigma_(self) -> Array:
        """Posterior covariance matrix of the coefficients, computed when asked for."""
        share = 1.0
        if self.noise == "unknown":
            share = self.shape_ / (self.shape_ - 1.0) if self.shape_ > 1.0 else math.inf
        return share * self._unit_covariance() / self.alpha_

    def _unit_covariance(self) -> Array:
        """Return (S + ρI)⁻¹."""
        check_is_fitted(self)
        V, s, rho = self.basis_, self.eigenvalues_, self.ratio_
        if V.shape[1] == V.shape[0]:
            return np.asarray(interruptible(np.matmul, V / (s + rho), V.T))
        # What the data do not see keeps the prior: 1/ρ less what they have taken away.
        inside = interruptible(np.matmul, V * (s / (s + rho) / rho), V.T)
        return np.asarray(np.eye(len(V)) / rho - inside)

    def sample_coefficients(self, size: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw coefficients (size, n_features) and intercepts (size,) from the posterior."""
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        V, s, rho = self.basis_, self.eigenvalues_, self.ratio_
        std = np.full(size, 1.0 / math.sqrt(self.alpha_))
        if self.noise == "unknown":
            std = np.sqrt(self.noise_dist().sample(size, rng))
        inside = (rng.standard_normal((size, len(s))) / np.sqrt(s + rho)) @ V.T
        if len(s) < len(V):
            free = rng.standard_normal((size, len(V)))
            inside += (free - (free @ V) @ V.T) / math.sqrt(rho)
        coef = self.coef_ + std[:, None] * inside
        level = np.zeros(size)
        if self.fit_intercept:
            level = self.intercept_ + std * rng.standard_normal(size) / math.sqrt(self.weight_sum_)
            level = level - (coef - self.coef_) @ self.x_mean_
        return coef, level

    def sample_functions(self, X: Any, size: int = 1, random_state: Any = None) -> Array:
        """Draw regression functions b + xᵀβ from the posterior; returns their values (size, n_samples) at rows X."""
        coef, level = self.sample_coefficients(size, random_state)
        X = read_features(self, X)
        return np.asarray((X @ coef.T).T + level[:, None])

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "coef_"):
            return
        if len(self.eigenvalues_) > self.n_features_in_ or (self.eigenvalues_ <= 0).any():
            raise ModelFileError("load: eigenvalues_ must be positive, at most one a feature.")
        names = ["weight_sum_", "alpha_", "lambda_", "ratio_"]
        names += ["shape_", "rate_"] if self.noise == "unknown" else []
        for name in names:
            value = getattr(self, name, None)
            if not isinstance(value, float) or not 0.0 < value < math.inf:
                raise ModelFileError(f"load: {name} must be a positive number.")
        if not isinstance(getattr(self, "n_rows_", None), int):
            raise ModelFileError("load: n_rows_ must be an integer.")
