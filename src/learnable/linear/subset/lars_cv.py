r"""Models that choose a corner or a point of the path of least angle regression.

    min_{b, β}  1/(2W) Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖₁,      W = Σᵢ wᵢ.

`LassoLarsCV` follows the exact path of every fold and compares errors at the corners of all of them, where alone the
slope of an error changes. `LassoLarsIC` takes the corner with the least n log(2πσ²) + RSS/σ² + c·k, c = 2 (AIC) or
log n (BIC), k nonzero coefficients. `Lars` is least angle regression itself, which lets no column leave.

References: B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, Least angle regression, Annals of Statistics 32, 2004;
H. Zou, T. Hastie and R. Tibshirani, On the degrees of freedom of the lasso, Annals of Statistics 35, 2007.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin

from ...core import (
    MAX_ITER,
    RANDOM_STATE,
    Array,
    Boolean,
    Certificate,
    Matches,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    optional,
    param,
)
from ...data import Blocks, Part, Table, door, map_reduce
from ..choosing import ChoosingModel, Fold
from ..least_squares.ridge_cv import row_order
from .compressed import Compressed, compressed, compressed_targets
from .lars import LarsModel, LarsPath, follow, lasso_gap

#: Share of the level by which the correlation of an active column may differ from it.
EQUIANGULAR = 1e-8


class Lars(MultiOutputMixin, LarsModel):
    r"""Least angle regression: from corner to corner, all active columns with one common |correlation|, none leaves.

    In the form n⁻¹ΣV + λΩ it is a descent of V, the squared loss, that may stop early. O(p·k²) per corner with k active
    columns after one QR of the rows; memory O(p²) and one β per corner. Several targets have a path each.

    Examples
    --------
    >>> from learnable import Lars
    >>> model = Lars(n_nonzero_coefs=1).fit([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]], [-1.1111, 0.0, -1.1111])
    >>> model.coef_.round(4), model.certificate_.kind
    (array([ 0.    , -1.1111]), 'stationarity')
    """

    _theory = "lasso"

    n_nonzero_coefs: float = param(
        Number(low=1, integer=True) | Matches(lambda v: v == np.inf, "infinity"), "Most columns.", default=500
    )
    fit_path: bool = param(Boolean(), "Kept for compatibility; the path is always stored.", default=True)
    jitter: float | None = param(optional(Number(low=0.0)), "Kept for compatibility.", default=None)
    random_state: Any = param(RANDOM_STATE, "Kept for compatibility; nothing here is random.", default=None)
    certificate_: Certificate = fitted(
        "Certificate",
        "`stationarity`: by how much the correlations of active columns differ, and those of others exceed them.",
    )

    max_iter = 500
    _door = staticmethod(door(target="numeric", multi_output=True))

    def _fit(self, table: Table, run: Run) -> Certificate:
        problems = compressed_targets(type(self).__name__, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        most = int(min(self.n_nonzero_coefs, table.n_columns))
        paths = [follow(problem, 0.0, most, "lar", run.progress) for problem in problems]
        self._set_paths(problems, paths, table.y_shape)
        value = max(
            unequal_angles(problem, path.coefs, path.alphas) for problem, path in zip(problems, paths, strict=True)
        )
        return Certificate("stationarity", value, EQUIANGULAR, None, int(np.sum(self.n_iter_)))


def unequal_angles(problem: Compressed, coefs: Array, alphas: Array) -> float:
    """Return by how much correlations differ from what the corners of a path of least angle regression say."""
    correlations = problem.rows.T @ (problem.target[:, None] - problem.rows @ coefs) / problem.weight
    entered = np.cumsum(coefs != 0, axis=1) > 0
    off = np.where(entered, np.abs(np.abs(correlations) - alphas), np.maximum(np.abs(correlations) - alphas, 0.0))
    return float(off.max(initial=0.0) / alphas[0]) if alphas[0] > 0 else 0.0


class LassoLarsCV(ChoosingModel, LarsModel):
    r"""Lasso by least angle regression with α chosen by cross-validation: 1/(2W) Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖₁.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖₁), λ = 2α. The candidates are the corners of the paths of all folds.
    Time and memory of a `LassoLars` per fold.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LassoLarsCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> model = LassoLarsCV(cv=5).fit(X, X[:, 0] + 0.5 * np.cos(np.arange(60)))
    >>> model.mse_path_.shape == (len(model.cv_alphas_), 5), model.certificate_.holds
    (True, True)
    """

    _theory = "lasso"
    max_seconds = None  # paths are followed to their ends, so that all folds have the same penalties

    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        "Folds; None is 5.",
        default=None,
    )
    max_n_alphas: int = param(MAX_ITER, "Most candidates: if there are more corners, some are left out.", default=1000)
    positive: bool = param(Boolean(), "Constrain β ≥ 0.", default=False)
    alpha_: float = fitted("()", "The chosen α.", low=0.0)
    cv_alphas_: Array = fitted("(n_cv_alphas,)", "The candidates, rising.", low=0.0)
    mse_path_: Array = fitted("(n_cv_alphas, n_folds)", "Mean squared errors on the folds.", low=0.0)
    row_order_: int = fitted(
        "int", "Checksum of the targets in their order, by which `verify` knows whether it can draw the folds again."
    )
    certificate_: Certificate = fitted("Certificate", "`gap` of the fit to all rows.")

    _method = "lasso"
    jitter = None
    fit_path = True

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        table.require_memory(f"{owner}: cross-validation needs the rows in memory; use {owner[:-2]} or read the table.")
        folds = self._folds(table, run, self._metadata(table))

        def follow_fold(fold: Fold) -> list[tuple[LarsPath, Compressed]]:
            weight = None if table.weight is None else table.weight[fold.train]
            X = table.X[fold.train]
            y = table.y[fold.train]
            part = replace(table, blocks=Blocks([Part(X, y, weight)]), X=X, y=y, weight=weight, kept=None)
            problem = compressed(owner, part, intercept=self.fit_intercept, n_jobs=1)
            return [(follow(problem, 0.0, self.max_iter, self._method, positive=self.positive), problem)]

        found = map_reduce(folds, follow_fold, lambda a, b: a + b, n_jobs=self.n_jobs)
        alphas = np.unique(np.concatenate([path.alphas for path, _ in found]))
        alphas = alphas[:: max(1, int(len(alphas) / self.max_n_alphas))]
        self.mse_path_ = np.column_stack(
            [_errors(table, fold, path, inner, alphas) for fold, (path, inner) in zip(folds, found, strict=True)]
        )
        self.cv_alphas_ = alphas
        self.alpha_ = float(alphas[np.argmin(self.mse_path_.mean(axis=1))])
        self.row_order_ = row_order(table)
        problem = compressed(owner, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        path = follow(problem, self.alpha_, self.max_iter, self._method, run.progress, positive=self.positive)
        self._set_path(problem, path)
        return self._proof(problem, path)

    def _proof(self, problem: Compressed, path: LarsPath) -> Certificate:
        """Return the certificate of the fit to all rows."""
        value = lasso_gap(problem, path.coefs[:, -1], self.alpha_, positive=self.positive)
        return Certificate("gap", value, self.tol, value, self.n_iter_)


class LarsCV(LassoLarsCV):
    r"""Least angle regression with its end chosen by cross-validation.

    The candidates are the corners of the paths of all folds, given by their common correlation α. In the form
    n⁻¹ΣV + λΩ it is a descent of V, the squared loss, that stops early.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LarsCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> model = LarsCV(cv=5).fit(X, X[:, 0] + 0.5 * np.cos(np.arange(60)))
    >>> model.coef_.shape, model.certificate_.kind
    ((5,), 'stationarity')
    """

    _theory = "lasso"

    certificate_: Certificate = fitted(
        "Certificate",
        "`stationarity`: by how much the correlations of active columns differ, and those of others exceed them.",
    )

    _method = "lar"
    positive = False

    def _proof(self, problem: Compressed, path: LarsPath) -> Certificate:
        value = unequal_angles(problem, path.coefs, path.alphas)
        return Certificate("stationarity", value, EQUIANGULAR, None, self.n_iter_)


def _errors(table: Table, fold: Fold, path: LarsPath, problem: Compressed, alphas: Array) -> Array:
    """Return the mean squared error on the test rows at every α; between corners β is linear in α."""
    falling = path.alphas
    ends = np.minimum(np.searchsorted(-falling, -alphas), len(falling) - 1)  # the corner at or below α
    starts = np.maximum(ends - 1, 0)
    width = falling[starts] - falling[ends]
    share = np.where(width > 0, (alphas - falling[ends]) / np.where(width > 0, width, 1.0), 0.0)
    share = np.clip(share, 0.0, 1.0)
    B = path.coefs[:, ends] + share * (path.coefs[:, starts] - path.coefs[:, ends])
    level = problem.y_mean - problem.x_mean @ B
    residual = table.y[fold.test][:, None] - (table.X[fold.test] @ B + level)
    weight = None if table.weight is None else table.weight[fold.test]
    return np.asarray(np.average(residual**2, axis=0, weights=weight))


class LassoLarsIC(LarsModel):
    r"""Lasso by least angle regression with α chosen by AIC or BIC: n log(2πσ²) + RSS/σ² + c·k over the corners.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖₁), λ = 2α. σ² is that of the least squares fit on all columns, or
    given; n is the sum of the weights; the number k of nonzero coefficients is an unbiased estimate of the lasso's
    degrees of freedom. Time and memory of one `LassoLars`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LassoLarsIC
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> model = LassoLarsIC(criterion="bic").fit(X, X[:, 0] + 0.5 * np.cos(np.arange(60)))
    >>> np.flatnonzero(model.coef_).tolist(), model.certificate_.kind
    ([0, 4], 'gap')
    """

    _theory = "lasso"

    criterion: str = param(Options("aic", "bic"), "c = 2 or log n.", default="aic", kw_only=False)
    positive: bool = param(Boolean(), "Constrain β ≥ 0.", default=False)
    noise_variance: float | None = param(
        optional(Number(low=0.0, low_open=True)), "σ²; needed where columns outnumber rows.", default=None
    )
    alpha_: float = fitted("()", "The chosen α.", low=0.0)
    criterion_: Array = fitted("(n_corners,)", "The criterion at every corner.")
    noise_variance_: float = fitted("()", "σ².", low=0.0)
    certificate_: Certificate = fitted("Certificate", "`gap` at the chosen α.")

    def _fit(self, table: Table, run: Run) -> Certificate:
        problem = compressed(type(self).__name__, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        path = follow(problem, 0.0, self.max_iter, "lasso", run.progress, positive=self.positive)
        n = problem.weight
        self.noise_variance_ = self._variance(problem, path, table.n_columns)
        residual = problem.target[:, None] - problem.rows @ path.coefs
        squares = (residual**2).sum(axis=0)
        counts = (np.abs(path.coefs) > np.finfo(float).eps).sum(axis=0)
        factor = 2.0 if self.criterion == "aic" else float(np.log(n))
        noise = max(self.noise_variance_, np.finfo(float).tiny)
        self.criterion_ = n * np.log(2.0 * np.pi * noise) + squares / noise + factor * counts
        corner = int(np.argmin(self.criterion_))
        self._set_path(problem, path, corner)
        self.alpha_ = float(path.alphas[corner])
        value = lasso_gap(problem, path.coefs[:, corner], self.alpha_, positive=self.positive)
        return Certificate("gap", value, self.tol, value, self.n_iter_)

    def _variance(self, problem: Compressed, path: LarsPath, p: int) -> float:
        """Return σ² as given, or of least squares on all columns, where the path ends."""
        if self.noise_variance is not None:
            return float(self.noise_variance)
        freedom = problem.weight - p - self.fit_intercept
        if freedom <= 0:
            raise ParameterError(
                f"{type(self).__name__}: You are using {type(self).__name__} in the case where the number of samples "
                f"is smaller than the number of features (n_samples={problem.weight:g}). In this "
                "setting, getting a good estimate for the variance of the noise is not possible. Provide an "
                "estimate of the noise variance in the constructor."
            )
        coef = path.coefs[:, -1] if self.positive else problem.coefficients(np.arange(p))[0]
        residual = problem.target - problem.rows @ coef
        return float(residual @ residual / freedom)
