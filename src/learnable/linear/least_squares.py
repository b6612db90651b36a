r"""Ordinary and weighted least squares, with the inference that the normal linear model gives.

    min_{b, β}  Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)²

The solution satisfies the normal equations Σᵢ wᵢ rᵢ (xᵢ − x̄) = 0, Σᵢ wᵢ rᵢ = 0; their relative residual is the
certificate. Where the columns are linearly dependent, the solution of minimum norm is returned.

If yᵢ = b + xᵢᵀβ + εᵢ with independent εᵢ ~ N(0, σ²/wᵢ), then (β̂ⱼ − βⱼ)/se(β̂ⱼ) is Student-t with n − rank − 1 degrees of
freedom, and so is a new observation around its prediction.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular, svdvals
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.parameters import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Number,
    Options,
    Rule,
    optional,
)
from ..core.run import Run
from ..data.door import Table, door, read_features
from ..data.sources import NamedScore, rowwise
from ..probability.student_t import StudentT
from ..solvers.least_squares import least_squares
from ..solvers.nonnegative import nonnegative_fit
from ..solvers.residuals import CLOSED_FORM_TOLERANCE
from ._base import LinearRegressorModel
from .descent import BATCH_SIZE
from .descent import SOLVERS as DESCENT
from .inference import RegressionSummary, regression_summary, row_norms

Array = NDArray[np.float64]


class LinearRegression(NamedScore, MultiOutputMixin, RegressorMixin, LinearRegressorModel):
    r"""Least squares: minimise Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)².

    In the form n⁻¹ΣV + λΩ this is the squared loss with λ = 0. Dense problems are solved exactly, in O(nd²) time and
    O(nd + d²) memory (O(d²) besides the data when n ≫ d); wide sparse ones by conjugate gradients to `tol`.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether b is free or zero.
    copy_X : bool, default=True
        Kept for compatibility; X is never changed.
    tol : float, default=1e-6
        Relative residual at which conjugate gradients stop; the exact paths reach 1e-12.
    n_jobs : int or None, default=None
        Threads; None uses all that BLAS may use. The result does not depend on it.
    positive : bool, default=False
        Constrain β ≥ 0 (the certificate is then the KKT residual).
    max_iter : int or None, default=None
        Most conjugate-gradient steps; of "gd" steps (10,000), of "sgd" epochs (100).
    max_seconds : float or None, default=None
        Time after which an iterative method returns the best so far.
    solver : {"auto", "gd", "sgd"}, default="auto"
        "auto" is direct where it can be. "gd" is gradient descent with a line search, "sgd" descent on mini-batches
        (rows in memory only), both in scaled columns: slower, for study; they warn with what they reached.
    batch_size : int, default=32
        Rows of a mini-batch of "sgd"; an epoch has exactly ⌊n/batch_size⌋.
    random_state : int, generator or None, default=None
        Order of the rows in "sgd".

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        β.
    intercept_ : float or array of shape (n_targets,)
        b.
    rank_ : int
        Rank of the centred X, decided after scaling its columns; after a direct fit only.
    singular_ : array
        Singular values of the centred, weighted X (computed when asked for).
    residual_std_ : array of shape (n_targets,)
        σ̂; NaN without residual degrees of freedom, and where a fit was constrained or iterative.
    df_resid_ : int
        n − rank − 1 (n − rank without intercept); 0 where the rank is not known.
    certificate_ : Certificate
        Relative residual of the normal equations.

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

    _parameters: ClassVar[dict[str, Rule]] = {
        "fit_intercept": Boolean(),
        "copy_X": Boolean(),
        "tol": TOLERANCE,
        "n_jobs": N_JOBS,
        "positive": Boolean(),
        "max_iter": optional(Number(low=1, integer=True)),
        "max_seconds": MAX_SECONDS,
        "solver": Options("auto", *DESCENT),
        "batch_size": MAX_ITER,
        "random_state": RANDOM_STATE,
    }
    _door = staticmethod(door(target="numeric", multi_output=True))

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        solver: str = "auto",
        batch_size: int = BATCH_SIZE,
        random_state: Any = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.solver = solver
        self.batch_size = batch_size
        self.random_state = random_state

    def _fit(self, table: Table, run: Run) -> Certificate:
        blocks, intercept = table.blocks, self.fit_intercept
        kind, tolerance = "closed-form", CLOSED_FORM_TOLERANCE
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
            self.rank_, self.gram_factor_ = fit.rank, fit.factor
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
        lower, upper = summary.lower[:, skip:], summary.upper[:, skip:]
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
        check_is_fitted(self)
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

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "coef_"):
            return
        for name in ("df_resid_", "n_rows_", *(["rank_"] if hasattr(self, "gram_factor_") else [])):
            if not isinstance(getattr(self, name, None), int):
                raise ModelFileError(f"load: {name} must be an integer.")
        if not hasattr(self, "gram_factor_") and self.df_resid_ != 0:
            raise ModelFileError("load: a fit that knows its degrees of freedom has gram_factor_; this file has not.")
        d, k = self.n_features_in_, 1 if self.coef_.ndim == 1 else len(self.coef_)
        shapes: dict[str, tuple[int, ...]] = {"residual_norm_": (k,), "x_mean_": (d,)}
        if hasattr(self, "gram_factor_"):
            size = d if self.rank_ == d else len(self.gram_factor_)
            shapes["gram_factor_"] = (size, size)
        for name, shape in shapes.items():
            array = getattr(self, name, None)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
                raise ModelFileError(f"load: {name} must be a float64 array of shape {shape}.")
        if not isinstance(getattr(self, "weight_sum_", None), float) or not self.weight_sum_ > 0:
            raise ModelFileError("load: weight_sum_ must be a positive number.")
