r"""Least angle regression: the whole path of the lasso, exactly, from corner to corner.

    min_{b, β}  1/(2W) Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖₁,      W = Σᵢ wᵢ.

Between two corners the active columns have one common |correlation| α, and β moves along G_AA⁻¹ sign(β_A) as α falls. A
corner is where a column joins, or, on the lasso's path, where a coefficient is zero again and its column leaves. Least
angle regression proper (`method="lar"`) lets no column leave.

Reference: B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, Least angle regression, Annals of Statistics 32, 2004.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import MultiOutputMixin, RegressorMixin

from ...core import (
    MAX_ITER,
    RANDOM_STATE,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    Matches,
    ModelFileError,
    Nothing,
    Number,
    Options,
    ParameterError,
    Progress,
    Run,
    check_parameters,
    fitted,
    no_progress,
    optional,
    param,
)
from ...data.door import Table, door
from ...data.sources import NamedScore
from ...risk.objective import relative_gap
from ..base import VERBOSE, LinearRegressorModel
from .compressed import Compressed, compressed, compressed_targets

_DEPENDENT = 1e-7  # share of a unit-norm column outside the active ones, below which it does not join
_ZERO = 1e-12  # share of the first correlation at which the path has ended
_METHODS = Options("lasso", "lar")


class LarsPath(NamedTuple):
    """A piecewise linear path."""

    alphas: Array  #: (n_corners,) falling
    active: list[int]  #: columns of the last corner, in the order in which they joined
    coefs: Array  #: (p, n_corners)


class LarsModel(NamedScore, RegressorMixin, LinearRegressorModel):
    """What the models that follow a path share; of scikit-learn's parameters some are kept for compatibility only."""

    verbose: int = param(VERBOSE, "Kept for compatibility.", default=False)
    precompute: Any = param(
        Boolean() | Options("auto") | Nothing() | Matches(lambda v: hasattr(v, "__array__"), "a Gram matrix"),
        "Kept for compatibility; rows are compressed by a QR decomposition.",
        default="auto",
    )
    max_iter: int = param(MAX_ITER, "Most corners.", default=500)
    eps: float = param(
        Number(low=0.0), "Kept for compatibility; dependent columns do not join.", default=float(np.finfo(float).eps)
    )
    copy_X: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    tol: float = param(TOLERANCE, "Relative duality gap that the end of the path has to reach.", default=1e-6)
    coef_: Any = fitted("(n_features,) or (n_targets, n_features)", "β at the end of the path.")
    alphas_: Any = fitted(
        "array of shape (n_corners,), or a list of one per target", "α of each corner, from the first column's on."
    )
    active_: Any = fitted(
        "array of shape (n_active,), or a list of one per target",
        "The columns that are in at the end, in the order in which they joined.",
    )
    n_iter_: Any = fitted("int, or a list of one per target", "Segments of the path.")
    coef_path_: Any = fitted(
        "array of shape (n_features, n_corners), or a list of one per target",
        "β at each corner; between two it is linear in α.",
    )

    _door = staticmethod(door(target="numeric"))
    _flattens_one_column = True
    _remedy = "raise max_iter or max_seconds; where columns depend on each other use Lasso"

    def _set_path(self, problem: Compressed, path: LarsPath, corner: int = -1) -> None:
        """Store the path of one target, and the coefficients of one of its corners."""
        self._set_paths([problem], [path], (), corner)

    def _set_paths(
        self, problems: list[Compressed], paths: list[LarsPath], y_shape: tuple[int, ...], corner: int = -1
    ) -> None:
        """Store the path of each target, as lists if there are several, and the coefficients of one corner."""
        coef = np.column_stack([path.coefs[:, corner] for path in paths])
        level = [problem.y_mean - problem.x_mean @ coef[:, k] for k, problem in enumerate(problems)]
        self._set_coefficients(coef, np.array(level), y_shape)
        self.alphas_ = [path.alphas for path in paths]
        self.coef_path_ = [path.coefs for path in paths]
        self.active_ = [np.array(path.active, dtype=np.int64) for path in paths]
        self.n_iter_ = [max(1, len(path.alphas) - 1) for path in paths]
        if len(paths) == 1:
            for name in ("alphas_", "coef_path_", "active_", "n_iter_"):
                setattr(self, name, getattr(self, name)[0])

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "coef_"):
            return
        several = np.ndim(self.coef_) == 2
        names = ("alphas_", "coef_path_", "active_", "n_iter_")
        found = [getattr(self, name, None) for name in names]
        if any(isinstance(one, list) != several for one in found):
            raise ModelFileError("load: alphas_, coef_path_, active_ and n_iter_ are lists for several targets alone.")
        listed: list[list[Any]] = [one if isinstance(one, list) else [one] for one in found]
        if any(len(one) != (len(self.coef_) if several else 1) for one in listed):
            raise ModelFileError("load: alphas_, coef_path_, active_ and n_iter_ must have one entry per target.")
        for alphas, coefs, active, n_iter in zip(*listed, strict=True):
            _check_path(alphas, coefs, active, n_iter, int(self.n_features_in_))


def _check_path(alphas: Any, coefs: Any, active: Any, n_iter: Any, p: int) -> None:
    """Refuse a stored path that cannot be one."""
    kinds = ((alphas, "f", 1), (coefs, "f", 2), (active, "iu", 1))
    for array, kind, ndim in kinds:
        if getattr(array, "ndim", -1) != ndim or array.dtype.kind not in kind:
            raise ModelFileError("load: alphas_, coef_path_ and active_ must be arrays of 1, 2 and 1 dimensions.")
    if not (np.isfinite(alphas).all() and np.isfinite(coefs).all()):
        raise ModelFileError("load: alphas_ and coef_path_ must be finite.")
    if len(alphas) == 0 or alphas.min() < 0 or (np.diff(alphas) > 0).any():
        raise ModelFileError("load: alphas_ must fall, and not below zero.")
    if coefs.shape != (p, len(alphas)):
        raise ModelFileError(f"load: coef_path_ must have shape ({p}, {len(alphas)}); it has {coefs.shape}.")
    if active.min(initial=0) < 0 or active.max(initial=-1) >= p:
        raise ModelFileError("load: active_ names a column that the model does not have.")
    if not isinstance(n_iter, int) or n_iter < 1:
        raise ModelFileError(f"load: n_iter_ must be a positive integer; it is {n_iter!r}.")


class LassoLars(MultiOutputMixin, LarsModel):
    r"""Lasso by least angle regression: minimise 1/(2W) Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖₁, W = Σᵢ wᵢ.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖₁), λ = 2α. One fit has the exact solutions of all larger α, corner
    by corner. O(p·k²) per corner with k active columns, after one QR of the rows, O(np²); memory O(p²) and one β per
    corner. For one α of a wide table `Lasso` is faster. Several targets have a path each.

    Examples
    --------
    >>> from learnable import LassoLars
    >>> model = LassoLars(alpha=0.1).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 1.0, 2.0])
    >>> model.coef_.round(4), model.alphas_.round(4)
    (array([0.85, 0.  ]), array([0.6667, 0.1   ]))
    >>> model.certificate_.kind, model.certificate_.holds
    ('gap', True)
    """

    _theory = "lasso"

    alpha: float = param(Number(low=0.0), "α ≥ 0, where the path ends.", default=1.0, kw_only=False)
    fit_path: bool = param(Boolean(), "Kept for compatibility; the path is always stored.", default=True)
    positive: bool = param(Boolean(), "Constrain β ≥ 0.", default=False)
    jitter: float | None = param(optional(Number(low=0.0)), "Kept for compatibility.", default=None)
    random_state: Any = param(RANDOM_STATE, "Kept for compatibility; nothing here is random.", default=None)
    certificate_: Certificate = fitted("Certificate", "`gap`: P at α is at most this share above the optimum.")

    _door = staticmethod(door(target="numeric", multi_output=True))

    def _fit(self, table: Table, run: Run) -> Certificate:
        problems = compressed_targets(type(self).__name__, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        paths = [
            follow(problem, self.alpha, self.max_iter, "lasso", run.progress, positive=self.positive)
            for problem in problems
        ]
        self._set_paths(problems, paths, table.y_shape)
        gaps = [
            lasso_gap(problem, path.coefs[:, -1], self.alpha, positive=self.positive)
            for problem, path in zip(problems, paths, strict=True)
        ]
        return Certificate("gap", max(gaps), self.tol, max(gaps), int(np.sum(self.n_iter_)))


def lars_path(
    X: Any,
    y: Any,
    *,
    method: str = "lar",
    alpha_min: float = 0.0,
    max_iter: int = 500,
    fit_intercept: bool = False,
    positive: bool = False,
    return_path: bool = True,
    return_n_iter: bool = False,
    **kept: Any,
) -> tuple[Any, ...]:
    """Compute the path of least angle regression or of the lasso.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,)
        Targets.
    method : {"lar", "lasso"}
        Whether a column may leave again, as on the lasso's path.
    alpha_min : float
        Where the path ends.
    max_iter : int
        Most corners.
    fit_intercept : bool
        Whether rows and targets are centred first; by default they are taken as they are, as in scikit-learn.
    positive : bool
        Constrain β ≥ 0; the lasso's path only.
    return_path : bool
        Whether to return all corners or the last one.
    return_n_iter : bool
        Whether to return the number of segments too.
    **kept
        `Xy`, `Gram`, `eps`, `copy_X`, `copy_Gram` and `verbose` of scikit-learn; they have no effect.

    Returns
    -------
    alphas : array of shape (n_corners,)
        Greatest correlation divided by the number of rows at each corner.
    active : list of int
        The columns of the last corner, in the order in which they joined.
    coefs : array of shape (n_features, n_corners)
        β at each corner.

    Examples
    --------
    >>> from learnable import lars_path
    >>> alphas, active, coefs = lars_path([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0])
    >>> alphas, active
    (array([1.5, 0.5, 0. ]), [0, 1])
    >>> coefs
    array([[0., 2., 3.],
           [0., 0., 1.]])
    """
    unknown = sorted(set(kept) - {"Xy", "Gram", "eps", "copy_X", "copy_Gram", "verbose"})
    if unknown:
        raise TypeError(f"lars_path: got an unexpected keyword argument {unknown[0]!r}.")
    if positive and method == "lar":
        raise ParameterError("lars_path: Positive constraint not supported for 'lar' coding method; use \"lasso\".")
    rules = {"method": _METHODS, "alpha_min": Number(low=0.0), "max_iter": MAX_ITER}
    check_parameters("lars_path", {"method": method, "alpha_min": alpha_min, "max_iter": max_iter}, rules)
    table = LassoLars._door(LassoLars(), X, y, None)
    if table.y_shape:
        raise ParameterError("lars_path: y must be one column; call it once for each target.")
    problem = compressed("lars_path", table, intercept=fit_intercept, n_jobs=None)
    path = follow(problem, alpha_min, max_iter, method, positive=positive)
    found: tuple[Any, ...] = (path.alphas, path.active, path.coefs)
    if not return_path:
        found = (path.alphas[-1], path.active, path.coefs[:, -1])
    return (*found, max(0, len(path.alphas) - 1)) if return_n_iter else found


def follow(
    problem: Compressed,
    alpha_min: float,
    max_iter: int,
    method: str,
    progress: Progress = no_progress,
    *,
    positive: bool = False,
) -> LarsPath:
    """Walk from corner to corner until α, the end of the path, or a limit."""
    A = problem.rows
    y = problem.target
    W = problem.weight
    norm = np.where((A * A).sum(axis=0) > 0, problem.scale, np.inf)
    beta = np.zeros(A.shape[1])
    correlation = A.T @ y / W
    sides = (1.0,) if positive else (1.0, -1.0)
    level = float(_height(correlation, positive).max(initial=0.0))
    first = level
    alphas = [level]
    corners = [beta.copy()]
    active: list[int] = []
    refused = ~np.isfinite(norm)
    left = -1  # the column that has just left may not join in the same corner
    while level > alpha_min and level > _ZERO * first and len(alphas) <= max_iter:
        free = np.setdiff1d(np.flatnonzero(~refused), active)
        joins = free[(_height(correlation[free], positive) >= level * (1.0 - 1e-10)) & (free != left)]
        for j in joins.tolist():
            if _is_independent(A, norm, active, j):
                active.append(j)
            else:
                refused[j] = True
        free = np.setdiff1d(free, joins)
        if not active:
            break
        part = A[:, active]
        signs = np.sign(correlation[active])
        direction = W * _solve(part, signs)  # dβ_A / d(−α)
        slope = A.T @ (part @ direction) / W
        drop = level - alpha_min
        step = drop
        leaving = -1
        for sign in sides:  # |c_j − γ·slope_j| = level − γ
            rate = 1.0 - sign * slope[free]
            with np.errstate(divide="ignore", invalid="ignore"):
                gammas = np.where(rate > 1e-14, (level - sign * correlation[free]) / rate, np.inf)
            here = (free == left) & (gammas <= 1e-10 * level)  # where it has just left
            gammas = np.where(here | (gammas < 0.0), np.inf, gammas)
            if gammas.min(initial=np.inf) < step:
                step = float(gammas.min())
                leaving = -1
        if method == "lasso":
            with np.errstate(divide="ignore", invalid="ignore"):
                zeros = -beta[active] / direction
            zeros = np.where(zeros > 1e-14 * first, zeros, np.inf)
            if zeros.min() < step:
                leaving = int(np.argmin(zeros))
                step = float(zeros[leaving])
        beta[active] += step * direction
        left = -1
        if leaving >= 0:
            left = active.pop(leaving)
            beta[left] = 0.0
        level -= step
        correlation = A.T @ (y - A @ beta) / W
        if step == drop:
            level = alpha_min
        alphas.append(max(level, 0.0))
        corners.append(beta.copy())
        if progress(len(alphas) - 1, level - alpha_min):
            break
    return LarsPath(np.array(alphas), active, np.column_stack(corners))


def _height(correlation: Array, positive: bool) -> Array:
    """Return how far each column is from the level at which it joins."""
    return correlation if positive else np.abs(correlation)


def _solve(part: Array, right: Array) -> Array:
    """Return (PᵀP)⁻¹ r through the triangle of P."""
    R = np.asarray(np.linalg.qr(part, mode="r"))
    return solve_triangular(R, solve_triangular(R, right, trans="T", check_finite=False), check_finite=False)


def _is_independent(A: Array, norm: Array, active: list[int], j: int) -> bool:
    """Tell whether a column has a part of its own outside the active ones."""
    if not active:
        return True
    Q = np.linalg.qr(A[:, active] / norm[active])[0]
    unit = A[:, j] / norm[j]
    away = unit - Q @ (Q.T @ unit)
    return bool(np.sqrt(away @ away) > _DEPENDENT)


def lasso_gap(problem: Compressed, coef: Array, alpha: float, *, positive: bool = False) -> float:
    """Return (P − D)/max(D, 1e-8·P₀), with the best feasible multiple of the residual as dual point."""
    r = problem.target - problem.rows @ coef
    W = problem.weight
    primal = r @ r / 2 + W * alpha * np.abs(coef).sum()
    start = problem.total / 2
    if start == 0:
        return 0.0
    # The residual of least squares is orthogonal to the columns, so it is a dual point for every α.
    best = problem.target - problem.rows @ problem.coefficients(np.arange(len(coef)))[0]
    dual = best @ best / 2
    largest = float(_height(problem.rows.T @ r, positive).max(initial=0.0))
    square = r @ r
    if alpha > 0 and square > 0:
        most = W * alpha / largest if largest > 0 else np.inf
        tau = min(float(problem.target @ r / square), most)
        dual = max(dual, tau * (problem.target @ r) - tau**2 * square / 2)
    return relative_gap(float(primal), float(dual), float(start))
