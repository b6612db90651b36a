r"""Ordinary and weighted least squares, with the inference that the normal linear model gives.

    min_{b, β}  Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)²

The solution satisfies the normal equations Σᵢ wᵢ rᵢ (xᵢ − x̄) = 0, Σᵢ wᵢ rᵢ = 0; their relative residual is the
certificate. Where the columns are linearly dependent, the solution of minimum norm is returned.

If yᵢ = b + xᵢᵀβ + εᵢ with independent εᵢ ~ N(0, σ²/wᵢ), then (β̂ⱼ − βⱼ)/se(β̂ⱼ) is Student-t with n − rank − 1 degrees of
freedom, and so is a new observation around its prediction.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 3.2.

Standard errors, t-tests and confidence intervals of a least squares fit, as a record that prints as a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular, svdvals
from sklearn.utils.validation import check_is_fitted

from ...core import (
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    DataError,
    Options,
    ParameterError,
    Run,
    fitted,
    law,
    laws,
    param,
)
from ...data.door import Table, door, read_features
from ...data.sources import rowwise
from ...probability.student_t import StudentT
from ...solvers.systems.least_squares import least_squares, nonnegative_fit
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE
from ..base import LeastSquaresModel
from ..descent import SOLVERS as DESCENT


class LinearRegression(LeastSquaresModel):
    r"""Least squares: minimise Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)².

    In the form n⁻¹ΣV + λΩ this is the squared loss with λ = 0. Dense problems are solved exactly, in O(nd²) time and
    O(nd + d²) memory (O(d²) besides the data when n ≫ d); wide sparse ones by conjugate gradients to `tol`.

    Examples
    --------
    >>> from learnable import LinearRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.1, 4.9, 7.0]
    >>> model = LinearRegression().fit(X, y)
    >>> model.coef_.round(3)
    array([1.98])
    >>> model.certificate_.holds
    True
    >>> lower, upper = model.predict_interval([[4.0]], level=0.9)
    >>> bool(lower[0] < 8.95 < upper[0])
    True
    """

    _theory = "gauss-markov"

    tol: float = param(
        TOLERANCE, "Relative residual at which conjugate gradients stop; the exact paths reach 1e-12.", default=1e-6
    )
    positive: bool = param(Boolean(), "Constrain β ≥ 0 (the certificate is then the KKT residual).", default=False)
    solver: str = param(
        Options("auto", *DESCENT),
        '"auto" is direct where it can be. "gd" is gradient descent with a line search, "sgd" descent '
        "on mini-batches (rows in memory only), both in scaled columns: slower, for study; they warn with "
        "what they reached.",
        default="auto",
    )
    rank_: int = fitted("int", "Rank of the centred X, decided after scaling its columns; after a direct fit only.")
    df_resid_: int = fitted("int", "n − rank − 1 (n − rank without intercept); 0 where the rank is not known.")
    residual_norm_: Array = fitted("(n_targets,)", "Norm of the weighted residuals of each target.", finite=False)
    x_mean_: Array = fitted("(n_features,)", "Weighted mean of the rows; zero without an intercept.")
    gram_factor_: Array = fitted(
        "(size, size)",
        "Triangular factor of the centred, weighted Gram matrix; after a direct fit only.",
        optional=True,
    )
    certificate_: Certificate = fitted("Certificate", "Relative residual of the normal equations.")

    _door = staticmethod(door(target="numeric", multi_output=True, several_on_dask=True))

    def _fit(self, table: Table, run: Run) -> Certificate:
        blocks = table.blocks
        intercept = self.fit_intercept
        kind = "closed-form"
        tolerance = CLOSED_FORM_TOLERANCE
        if self.positive:
            kind = "stationarity"
            fit = nonnegative_fit(blocks, 0.0, intercept=intercept)
        else:
            descends = self.solver in DESCENT
            direct = None if descends else least_squares(blocks, intercept=intercept, n_jobs=self.n_jobs)
            if direct is None:
                tolerance = self.tol
            fit = direct or self._iterate(blocks, 0.0, run)
        self._set_coefficients(fit.coef, fit.intercept, table.y_shape)
        self.n_iter_ = fit.n_iter if kind == "closed-form" and tolerance == self.tol else 1
        self.residual_norm_ = fit.residual_norm
        self.x_mean_ = fit.x_mean
        self.weight_sum_ = table.weight_sum
        self.n_rows_ = table.n_rows
        self.df_resid_ = 0  # unknown without a factorisation: then nothing is said about the noise
        if fit.factor is not None:
            self.rank_ = fit.rank
            self.gram_factor_ = fit.factor
            self.df_resid_ = table.n_rows - fit.rank - int(intercept)
        return Certificate(kind, fit.value, tolerance, n_iter=fit.n_iter)  # type: ignore[arg-type]

    @property
    def singular_(self) -> Array:
        """Singular values of the centred, weighted X."""
        check_is_fitted(self)
        if not hasattr(self, "gram_factor_"):
            raise AttributeError("singular_ exists after a direct fit only: neither with positive=True nor iterative.")
        values = svdvals(self.gram_factor_)
        return np.pad(values, (0, max(0, min(self.n_rows_, self.n_features_in_) - len(values))))

    @property
    def residual_std_(self) -> Array:
        """σ̂ of each target."""
        check_is_fitted(self)
        if self.df_resid_ <= 0:
            return np.full(len(self.residual_norm_), np.nan)
        return np.asarray(self.residual_norm_ / np.sqrt(self.df_resid_))

    def predict_dist(self, X: Any) -> StudentT:
        """Return the distribution of a new observation (of weight one) at each row of X: Student-t."""
        return self._student_t(X, new_observation=True)

    @rowwise
    def predict_interval(
        self, X: Any, level: float = 0.95, kind: Literal["prediction", "confidence"] = "prediction"
    ) -> tuple[Array, Array]:
        """Return lower and upper ends that hold a new observation (or the mean, `kind="confidence"`) with `level`."""
        if kind not in ("prediction", "confidence"):
            raise ParameterError(f"LinearRegression: kind must be 'prediction' or 'confidence'; got {kind!r}.")
        lower, upper = self._student_t(X, new_observation=kind == "prediction").interval(level)
        return np.asarray(lower), np.asarray(upper)

    def conf_int(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends of the coefficients, in the shape of `coef_`."""
        summary = self.summary(level)
        skip = int(self.fit_intercept)
        lower = summary.lower[:, skip:]
        upper = summary.upper[:, skip:]
        return (lower[0], upper[0]) if self.coef_.ndim == 1 else (lower, upper)

    def summary(self, level: float = 0.95, names: Sequence[str] | None = None) -> RegressionSummary:
        """Return estimates, standard errors, t-tests and intervals of all coefficients, printable as a table.

        Parameters
        ----------
        level : float
            Level of the confidence intervals.
        names : sequence of str, optional
            Names of the columns; by default those of the dataframe that was fitted, or x0, x1, …
        """
        check_is_fitted(self)
        if names is not None and len(names) != self.n_features_in_:
            raise ParameterError(f"LinearRegression: names must hold {self.n_features_in_} names; got {len(names)}.")
        return regression_summary(self, self._inverse_factor(), level, names)

    def _student_t(self, X: Any, *, new_observation: bool) -> StudentT:
        X = read_features(self, X)
        X = X.toarray() if hasattr(X, "toarray") else X
        extra = float(new_observation) + (1.0 / self.weight_sum_ if self.fit_intercept else 0.0)
        spread = (X - self.x_mean_) @ self._inverse_factor()
        scale = row_norms(np.column_stack([np.full(len(X), np.sqrt(extra)), spread]))
        loc = np.asarray(X @ self.coef_.T + self.intercept_)
        std = np.maximum(self.residual_std_, np.finfo(float).tiny)  # a perfect fit has no spread, a distribution some
        return StudentT(self.df_resid_, loc, scale * std[0] if loc.ndim == 1 else scale[:, None] * std)

    def _factor(self) -> Array:
        if not hasattr(self, "gram_factor_") or self.rank_ < self.n_features_in_:
            rank = (
                f"rank {self.rank_} is below {self.n_features_in_} columns"
                if hasattr(self, "rank_")
                else "it is neither"
            )
            why = "positive=True" if self.positive else rank
            raise DataError(
                f"LinearRegression: standard errors and intervals need the full-rank, unconstrained fit of a dense or "
                f"narrow table; here {why}. Drop dependent columns, or use Ridge with ConformalRegressor."
            )
        return self.gram_factor_

    def _inverse_factor(self) -> Array:
        """Return F⁻¹ with FᵀF the centred Gram matrix, so that cov(β̂) = σ² F⁻¹F⁻ᵀ."""
        factor = self._factor()
        if self.df_resid_ <= 0:
            raise DataError(
                f"LinearRegression: {self.n_rows_} rows and rank {self.rank_} leave no residual degrees of freedom, so "
                "the noise cannot be estimated; get more rows or fewer columns."
            )
        return np.asarray(solve_triangular(factor, np.eye(len(factor)), check_finite=False))

    _laws = laws(
        law(
            "df_resid_, n_rows_ and rank_ must be integers",
            lambda model: all(
                isinstance(getattr(model, name), int)
                for name in ("df_resid_", "n_rows_", *(["rank_"] if hasattr(model, "gram_factor_") else []))
            ),
            "coef_",
        ),
        law(
            "a fit that knows its degrees of freedom has gram_factor_; this file has not",
            lambda model: hasattr(model, "gram_factor_") or model.df_resid_ == 0,
            "coef_",
        ),
        law(
            "residual_norm_ must have one number for each target",
            lambda model: len(model.residual_norm_) == (1 if model.coef_.ndim == 1 else len(model.coef_)),
            "coef_",
        ),
        law(
            "gram_factor_ must have one row per column",
            lambda model: model.rank_ != model.n_features_in_ or len(model.gram_factor_) == model.n_features_in_,
            "gram_factor_",
        ),
        law(
            "weight_sum_ must be a positive number",
            lambda model: isinstance(model.weight_sum_, float) and model.weight_sum_ > 0,
            "coef_",
        ),
    )


@dataclass(frozen=True)
class RegressionSummary:
    """One row a coefficient (the intercept first), one table per target.

    Attributes
    ----------
    names : list of str
        Names of the coefficients.
    estimate, std_error, t, p_value, lower, upper : arrays of shape (n_targets, n_coefficients)
        β̂, se(β̂), β̂/se(β̂), P(|T| ≥ |t|) if β were zero, and the ends of the confidence interval.
    residual_std : array of shape (n_targets,)
        σ̂.
    df_resid : int
        Degrees of freedom of the t-distributions.
    level : float
        Level of the intervals.
    """

    names: list[str]
    estimate: Array
    std_error: Array
    t: Array
    p_value: Array
    lower: Array
    upper: Array
    residual_std: Array
    df_resid: int
    level: float

    def __str__(self) -> str:
        width = max(len(name) for name in [*self.names, "coefficient"])
        share = f"{100 * self.level:g}%"
        head = (
            f"{'coefficient':<{width}} {'estimate':>12} {'std. error':>12} {'t':>9} {'P(>|t|)':>9}   {share} interval"
        )
        lines = []
        for target in range(len(self.estimate)):
            if len(self.estimate) > 1:
                lines.append(f"target {target}")
            lines.append(head)
            columns = (self.estimate, self.std_error, self.t, self.p_value, self.lower, self.upper)
            for name, *row in zip(self.names, *(column[target] for column in columns), strict=True):
                est, se, t, p, low, high = row
                lines.append(f"{name:<{width}} {est:>12.6g} {se:>12.4g} {t:>9.3f} {p:>9.2g}   [{low:.6g}, {high:.6g}]")
            lines.append(f"residual std. {self.residual_std[target]:.6g} on {self.df_resid} degrees of freedom")
        return "\n".join(lines)


def row_norms(A: Array) -> Array:
    """Return the length of every row, free of overflow and underflow."""
    exponents = np.frexp(np.abs(A).max(axis=1, initial=0.0))[1]
    return np.asarray(np.ldexp(np.linalg.norm(np.ldexp(A, -exponents[:, None]), axis=1), exponents))


def regression_summary(
    model: Any, inverse_factor: Array, level: float, names: Sequence[str] | None = None
) -> RegressionSummary:
    """Return the summary of a fitted LinearRegression; `inverse_factor` is F⁻¹ with FᵀF the centred Gram matrix."""
    if names is None:
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    names = list(names)
    estimate = np.atleast_2d(model.coef_)
    unit = row_norms(inverse_factor)  # √diag((XᵀX)⁻¹)
    if model.fit_intercept:
        names = ["(intercept)", *names]
        estimate = np.column_stack([np.atleast_1d(model.intercept_), estimate])
        at_zero = np.r_[1.0 / np.sqrt(model.weight_sum_), model.x_mean_ @ inverse_factor]
        unit = np.r_[row_norms(at_zero[None, :]), unit]
    error = np.outer(model.residual_std_, unit)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = estimate / error
    unit_t = StudentT(model.df_resid_, 0.0, 1.0)
    half = error * float(np.asarray(unit_t.interval(level)[1]))
    return RegressionSummary(
        names,
        estimate,
        error,
        t,
        2 * np.asarray(unit_t.cdf(-np.abs(t))),
        estimate - half,
        estimate + half,
        model.residual_std_,
        model.df_resid_,
        level,
    )
