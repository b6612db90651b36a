r"""Bayesian linear regression: a normal prior of the coefficients, normal noise.

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

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import DataError
from ..core.parameters import TOLERANCE, Number, check_parameters
from ..core.run import Run
from ..core.threads import one_thread_blas
from ..data.door import Table, door
from ..data.fingerprint import Scan, whole_checksum
from ..data.sources import NamedScore
from ..solvers.least_squares import dense_rows, least_squares
from ..solvers.moments import centred_moments
from ..solvers.orthogonal import eliminate_intercept, weighted_mean
from ..solvers.residuals import CLOSED_FORM_TOLERANCE, relative_residual, residual_sums
from ._base import refuse_extreme_sizes, refuse_tiny_sizes
from .bayesian_posterior import LinearPosterior
from .evidence import Problem, RowMoments, maximise, merge, problem_of, spectral, stationarity, thin

Array = NDArray[np.float64]

_POSITIVE = Number(low=0.0, low_open=True, high=1e100)
_ONE_SWEEP_RESIDUAL = 1e-6  # of y's square that must be left for its digits to be found in the moments alone
_MAX_PASSES = 4
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
        d, n = self.n_features_in_, self.n_rows_ + table.n_rows
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
        blocks, intercept = table.blocks, self.fit_intercept
        owner = type(self).__name__
        n, d = blocks.n_rows if blocks.in_memory else blocks.n_columns, blocks.n_columns
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
            x_mean, y_mean = weighted_mean(X, weight, intercept), weighted_mean(y, weight, intercept)
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
        coef, level = _mean_of(moments, moments.cross, rho), moments.y_mean
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
            before, rho = rho, self._choose_ratio(problem)
            value = self._residual(moments, residuals, coef, level, rho)
            if left == 0 or (value <= 0.1 * CLOSED_FORM_TOLERANCE and abs(rho / before - 1.0) < 1e-12):
                break
            coef = coef + _mean_of(moments, residuals[0] - rho * coef, rho)
            level = level + (total / moments.weight if intercept else 0.0)
        if sweep and value > CLOSED_FORM_TOLERANCE:  # too ill-conditioned for the eigenvectors of a Gram matrix
            fit = least_squares(blocks, rho, intercept=intercept, n_jobs=self.n_jobs)
            if fit is not None:
                coef, value = fit.coef[:, 0].copy(), fit.value
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
            self.shape_, self.rate_ = self.shape + 0.5 * problem.n, self.rate + 0.5 * float(problem.q(rho))
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
        self.weight_sum_, self.x_mean_, self.y_mean_ = float(m.weight), m.x_mean, float(m.y_mean)
        self.eigenvalues_, self.basis_, self.cross_ = m.values, m.basis, m.cross
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
