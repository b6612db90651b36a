r"""What the posterior of a linear regression answers: predictions, intervals, draws of coefficients and of functions.

Everything is a function of the eigenvalues s and the basis V of the Gram matrix, the ratio ρ and the noise:
(S + ρI)⁻¹ = V diag(1/(s + ρ)) Vᵀ + (I − VVᵀ)/ρ, where the last term is the prior in the directions that no row has.

Bayesian linear regression: a normal prior of the coefficients, normal noise.

    y = b + xᵀβ + ε,   ε ~ N(0, σ²),   β ~ N(0, τ²I),   b flat (or zero).

Given σ and τ, the posterior is normal: with S the centred Gram matrix, c the centred XᵀY and ρ = σ²/τ²,

    β | y ~ N((S + ρI)⁻¹c, σ²(S + ρI)⁻¹),   y* | y ~ N(b + x*ᵀβ, σ²(1 + 1/W + (x* − x̄)ᵀ(S + ρI)⁻¹(x* − x̄))).

Its mean is the ridge regression with the penalty ρ: it tends to least squares as τ → ∞, to the prior's mean as τ → 0.
With unknown noise, σ² ~ IG(a, b) and β | σ² ~ N(0, σ²τ²I), the same formulas hold with σ² replaced by its
posterior, and predictions are Student-t. Or σ and τ are those of greatest evidence p(y | σ, τ) (`evidence.py`).

A weight of 2 counts as the same row twice: likelihoods are raised to the weights.

Reference: C. Bishop, Pattern Recognition and Machine Learning, 2006, sections 3.3 to 3.5.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ...core import (
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    Number,
    Options,
    Run,
    check_parameters,
    fitted,
    interruptible,
    law,
    laws,
    one_thread_blas,
    param,
)
from ...data.blocks import Scan, whole_checksum
from ...data.door import Table, door, read_features, refuse_extreme_sizes, refuse_tiny_sizes
from ...data.sources import NamedScore, rowwise
from ...probability import InverseGamma, MultivariateNormal, MultivariateStudentT, Normal, StudentT
from ...solvers.systems.least_squares import dense_rows, least_squares
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE, centred_moments, relative_residual, residual_sums
from ...solvers.systems.orthogonal import eliminate_intercept, weighted_mean
from ..base import LinearModel
from .evidence import Problem, RowMoments, maximise, merge, problem_of, spectral, stationarity, thin

#: Numbers of a posterior that must be positive; the last two belong to unknown noise.
_SCALES = ("weight_sum_", "alpha_", "lambda_", "ratio_", "shape_", "rate_")


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
            Whether to return a pair of arrays; of a Dask array or frame lazy arrays or series.
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
        V = self.basis_
        s = self.eigenvalues_
        rho = self.ratio_
        if V.shape[1] == V.shape[0]:
            return np.asarray(interruptible(np.matmul, V / (s + rho), V.T))
        # What the data do not see keeps the prior: 1/ρ less what they have taken away.
        inside = interruptible(np.matmul, V * (s / (s + rho) / rho), V.T)
        return np.asarray(np.eye(len(V)) / rho - inside)

    def sample_coefficients(self, size: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw coefficients (size, n_features) and intercepts (size,) from the posterior."""
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        V = self.basis_
        s = self.eigenvalues_
        rho = self.ratio_
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

    _laws = laws(
        law(
            "eigenvalues_ must be positive, at most one per feature",
            lambda model: len(model.eigenvalues_) <= model.n_features_in_ and (model.eigenvalues_ > 0).all(),
            "coef_",
        ),
        law(
            "weight_sum_, alpha_, lambda_, ratio_, and with unknown noise shape_ and rate_, must be positive numbers",
            lambda model: all(
                isinstance(value := getattr(model, name), float) and 0.0 < value < math.inf
                for name in _SCALES[: None if model.noise == "unknown" else 4]
            ),
            "coef_",
        ),
        law("n_rows_ must be an integer", lambda model: isinstance(model.n_rows_, int), "coef_"),
    )


_POSITIVE = Number(low=0.0, low_open=True, high=1e100)
_ONE_SWEEP_RESIDUAL = 1e-6  # of y's square that must be left for its digits to be found in the moments alone
_MAX_PASSES = 4  # of refinement over the rows, at most
_LARGEST_BASIS = 4e8  # numbers, 3.2 GB


class BayesianLinearRegression(NamedScore, RegressorMixin, LinearPosterior):
    r"""Bayesian linear regression with known, unknown or estimated noise.

    One pass over the rows and an eigendecomposition: O(nd·min(n, d)) time, O(d·min(n, d)) memory besides the data.
    The posterior mean is `Ridge(alpha=ρ)`, ρ = σ²/τ²; in the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖²), λ = ρ/n.

    Examples
    --------
    >>> from learnable import BayesianLinearRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.1, 1.1, 1.9, 3.2]
    >>> model = BayesianLinearRegression(noise="known", noise_std=0.2, prior_std=2.0).fit(X, y)
    >>> model.predict_dist([[4.0]])
    Normal(mean=[4.095], std=[0.3161])
    >>> BayesianLinearRegression().fit(X, y).certificate_.kind
    'stationarity'
    """

    _theory = "bayes-linear"

    noise_std: float = param(_POSITIVE, "σ, if known.", default=1.0)
    prior_std: float = param(_POSITIVE, "τ, in units of y over x, or, with unknown noise, of σ over x.", default=1.0)
    shape: float = param(
        _POSITIVE,
        "a of the inverse-Gamma prior IG(a, b) of σ²: what 2a observations with the sum of squares 2b would say.",
        default=1.0,
    )
    rate: float = param(_POSITIVE, "b of that prior.", default=1.0)
    tol: float = param(TOLERANCE, "Relative residual of the equations of greatest evidence.", default=1e-8)
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form` residual of (S + ρI)β = c, or `stationarity` of the evidence."
    )

    _door = staticmethod(door(target="numeric"))
    _remedy = "scale the columns of X"
    max_seconds = None

    def _fit(self, table: Table, run: Run) -> Certificate:
        return self._learn(self._moments(table), table.blocks)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from some more rows; the result is that of one fit on all rows, in any order.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            More rows.
        y : array of shape (n_samples,) or str
            Their targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows.

        Returns
        -------
        self
            If something is wrong with the rows, the estimator stays as it was.
        """
        if not hasattr(self, "coef_"):
            return self.fit(X, y, sample_weight)
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        draft = self._draft()
        run = Run(None, None, None, self.n_jobs)
        table = type(self)._door(draft, X, y, sample_weight, run)
        self._require_same_columns(draft)
        moments = merge(self._stored(), draft._moments(table), self.fit_intercept)
        certificate = draft._learn(moments, None)
        d = self.n_features_in_
        n = self.n_rows_ + table.n_rows
        rows = sum(_rows_checksum(f, m, d) for f, m in
                   ((self.certificate_.fingerprint, self.n_rows_), (table.fingerprint, table.n_rows)))  # fmt: skip
        checksum = whole_checksum(Scan(rows, 0), (n, d, 1), None)
        draft.certificate_ = replace(certificate, seconds=run.seconds, fingerprint=f"{checksum:016x}")
        draft._warn_unless_certificate_holds()
        self.__dict__.update(draft.__dict__)
        return self

    def _require_same_columns(self, other: Any) -> None:
        """Raise a DataError unless another table has the columns of the fit."""
        mine, theirs = (getattr(model, "feature_names_in_", None) for model in (self, other))
        same_names = mine is None or theirs is None or list(mine) == list(theirs)
        if other.n_features_in_ != self.n_features_in_ or not same_names:
            raise DataError(
                f"{type(self).__name__}: X has {other.n_features_in_} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input, those of the first rows in their order."
            )
        if theirs is None and mine is not None:
            other.feature_names_in_ = mine

    def _moments(self, table: Table) -> RowMoments:
        """Return the moments of a table, through the smaller of its two Gram matrices."""
        blocks = table.blocks
        intercept = self.fit_intercept
        owner = type(self).__name__
        n = blocks.n_rows if blocks.in_memory else blocks.n_columns
        d = blocks.n_columns
        if min(n, d) * d > _LARGEST_BASIS:
            raise DataError(
                f"{owner}: the posterior of {d} coefficients from {n} rows needs {min(n, d)} directions of them, more "
                f"than {_LARGEST_BASIS:g} numbers; use Ridge, or fewer columns."
            )
        if blocks.in_memory:
            refuse_extreme_sizes(table.X, table.weight, owner)
            refuse_tiny_sizes(owner, X=table.X.data if blocks.sparse else table.X, y=table.y)
        if blocks.in_memory and blocks.n_rows < blocks.n_columns:
            X, y, weight = dense_rows(blocks)
            x_mean = weighted_mean(X, weight, intercept)
            y_mean = weighted_mean(y, weight, intercept)
            with one_thread_blas():
                Z, t = eliminate_intercept(X, y, weight, x_mean, y_mean, intercept)
                cross = Z.T @ t[:, 0]
            found = thin(blocks.n_rows, table.weight_sum, x_mean, float(y_mean[0]), Z, cross, float(t[:, 0] @ t[:, 0]))
        else:
            sums = centred_moments(blocks, intercept=intercept, n_jobs=self.n_jobs)
            if not np.isfinite(sums.gram).all() or not np.isfinite(sums.y_square).all():
                raise DataError(f"{owner}: sums of squares overflow; rescale X and y, for example by StandardScaler.")
            mean = sums.x_mean if intercept else np.zeros(blocks.n_columns)
            level = float(sums.y_mean[0]) if intercept else 0.0
            square = max(float(sums.y_square[0]), 0.0)
            found = spectral(sums.n_rows, sums.weight, mean, level, sums.gram, sums.cross[:, 0], square)
        if not np.isfinite(found.y_square) or not np.isfinite(found.cross).all():
            raise DataError(f"{owner}: sums of squares overflow; rescale X and y, for example by StandardScaler.")
        return found

    def _learn(self, moments: RowMoments, blocks: Any) -> Certificate:
        """Set the fitted attributes; where the rows are at hand, refine by their residuals."""
        intercept = self.fit_intercept
        if moments.weight - intercept <= 0.0 and self.noise != "known":
            raise DataError(
                f"{type(self).__name__}: one sample, or a total weight of {moments.weight:g}, leaves nothing to learn "
                "the noise from; pass at least two rows, or noise='known'."
            )
        problem = problem_of(moments, intercept)
        rho = self._choose_ratio(problem)
        coef = _mean_of(moments, moments.cross, rho)
        level = moments.y_mean
        residuals = _from_moments(moments, coef)
        value = self._residual(moments, residuals, coef, level, rho)
        sweep = blocks is not None and (
            blocks.in_memory or residuals[2] < _ONE_SWEEP_RESIDUAL * moments.y_square or value > 1e-13
        )
        for left in range(_MAX_PASSES - 1 if sweep else -1, -1, -1):
            sums = residual_sums(blocks, moments.x_mean, np.array([level]), coef[:, None], n_jobs=self.n_jobs)
            total = float(sums.total[0]) if intercept else 0.0
            residuals = sums.cross[:, 0], total, float(sums.square[0])
            inside = problem.squares * np.square(rho / (problem.values + rho))
            problem = problem_of(moments, intercept, residuals[2] - float(inside.sum()))
            before = rho
            rho = self._choose_ratio(problem)
            value = self._residual(moments, residuals, coef, level, rho)
            if left == 0 or (value <= 0.1 * CLOSED_FORM_TOLERANCE and abs(rho / before - 1.0) < 1e-12):
                break
            coef = coef + _mean_of(moments, residuals[0] - rho * coef, rho)
            level = level + (total / moments.weight if intercept else 0.0)
        if sweep and value > CLOSED_FORM_TOLERANCE:  # too ill-conditioned for the eigenvectors of a Gram matrix
            fit = least_squares(blocks, rho, intercept=intercept, n_jobs=self.n_jobs)
            if fit is not None:
                coef = fit.coef[:, 0].copy()
                value = fit.value
                level = float(fit.intercept[0]) + float(moments.x_mean @ coef)
        self._store_moments(moments)
        self.coef_ = coef
        self.intercept_ = float(level - moments.x_mean @ coef) if intercept else 0.0
        return self._set_scales(problem, rho, value)

    def _choose_ratio(self, problem: Problem) -> float:
        """Return ρ = λ/α."""
        if self.noise == "known":
            return (self.noise_std / self.prior_std) ** 2
        return 1.0 / self.prior_std**2 if self.noise == "unknown" else maximise(problem)

    def _set_scales(self, problem: Problem, rho: float, residual: float) -> Certificate:
        """Set what is known about the noise, and the evidence."""
        self.effective_parameters_ = float(problem.gamma(rho))
        self.ratio_ = float(rho)
        if self.noise == "unknown":
            self.shape_ = self.shape + 0.5 * problem.n
            self.rate_ = self.rate + 0.5 * float(problem.q(rho))
            self.alpha_ = self.shape_ / self.rate_
            self.log_marginal_likelihood_ = problem.log_evidence_unknown(self.shape, self.rate, rho)
        else:
            self.alpha_ = 1.0 / self.noise_std**2 if self.noise == "known" else problem.n / float(problem.q(rho))
            self.log_marginal_likelihood_ = problem.log_evidence(self.alpha_, rho)
        self.lambda_ = self.alpha_ * self.ratio_
        if self.noise != "evidence":
            return Certificate("closed-form", residual, CLOSED_FORM_TOLERANCE)
        value = max(residual, stationarity(problem, self.alpha_, rho))
        return Certificate("stationarity", value, max(self.tol, CLOSED_FORM_TOLERANCE))

    def _residual(self, m: RowMoments, residuals: Any, coef: Array, level: float, rho: float) -> float:
        cross, total, _ = residuals
        spread = np.sqrt(np.einsum("ij,ij,j->i", m.basis, m.basis, m.values)), m.x_mean
        value = relative_residual(
            (cross - rho * coef)[:, None],
            np.array([total]),
            x=spread,
            y=(np.sqrt([max(m.y_square, 0.0)]), np.array([m.y_mean])),
            coef=coef[:, None],
            intercept=np.array([level - m.x_mean @ coef]),
            penalty=rho * np.abs(coef).max(initial=0.0),
            weight=m.weight,
        )
        return float(value.max(initial=0.0))

    def _store_moments(self, m: RowMoments) -> None:
        self.n_rows_ = int(m.rows)
        self.weight_sum_ = float(m.weight)
        self.x_mean_ = m.x_mean
        self.y_mean_ = float(m.y_mean)
        self.eigenvalues_ = m.values
        self.basis_ = m.basis
        self.cross_ = m.cross
        self.y_square_ = float(m.y_square)

    def _stored(self) -> RowMoments:
        return RowMoments(
            self.n_rows_,
            self.weight_sum_,
            self.x_mean_,
            self.y_mean_,
            self.eigenvalues_,
            self.basis_,
            self.cross_,
            self.y_square_,
        )


def _mean_of(m: RowMoments, cross: Array, rho: float) -> Array:
    """Return (S + ρI)⁻¹c for a c in the span of the rows."""
    with one_thread_blas():
        return np.asarray(m.basis @ ((m.basis.T @ cross) / (m.values + rho)))


def _from_moments(m: RowMoments, coef: Array) -> tuple[Array, float, float]:
    """Return Σ w r (x − x̄), Σ w r and Σ w r² without looking at the rows."""
    with one_thread_blas():
        inside = m.basis @ (m.values * (m.basis.T @ coef))
    return m.cross - inside, 0.0, m.y_square - float(coef @ (2.0 * m.cross - inside))


def _rows_checksum(fingerprint: str, n: int, d: int) -> int:
    """Return the part of a fingerprint that comes from the rows, which adds."""
    return int(fingerprint, 16) - whole_checksum(Scan(0, 0), (n, d, 1), None)
