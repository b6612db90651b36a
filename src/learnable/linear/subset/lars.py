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
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.base import RegressorMixin

from ...core.declare import MAX_ITER, TOLERANCE, Number, Options, check_parameters, fitted, param
from ...core.errors import ModelFileError, ParameterError
from ...core.estimator import Certificate, Progress, Run, no_progress
from ...data.door import Table, door
from ...data.sources import NamedScore
from ..base import LinearRegressorModel
from .compressed import Compressed, compressed

Array = NDArray[np.float64]

_DEPENDENT = 1e-7  # share of a unit-norm column outside the active ones, below which it does not join
_ZERO = 1e-12  # share of the first correlation at which the path has ended
_METHODS = Options("lasso", "lar")


class LarsPath(NamedTuple):
    """A piecewise linear path."""

    alphas: Array  #: (n_corners,) falling
    active: list[int]  #: columns of the last corner, in the order in which they joined
    coefs: Array  #: (p, n_corners)


class LassoLars(NamedScore, RegressorMixin, LinearRegressorModel):
    r"""Lasso by least angle regression: minimise 1/(2W) Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖₁, W = Σᵢ wᵢ.

    In the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖β‖₁), λ = 2α. One fit has the exact solutions of all larger α, corner
    by corner. O(p·k²) per corner with k active columns, after one QR of the rows, O(np²); memory O(p²) and one β per
    corner. For one α of a wide table `Lasso` is faster.

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
    max_iter: int = param(MAX_ITER, "Most corners.", default=500)
    tol: float = param(TOLERANCE, "Relative duality gap that the end of the path has to reach.", default=1e-6)
    coef_: Any = fitted("(n_features,)", "β at α.")
    alphas_: Any = fitted("(n_corners,)", "α of each corner, from the first column's on.", low=0.0)
    n_iter_: int = fitted("int", "Segments of the path.")
    coef_path_: Any = fitted("(n_features, n_corners)", "β at each corner; between two it is linear in α.")
    certificate_: Certificate = fitted("Certificate", "`gap`: P at α is at most this share above the optimum.")

    _door = staticmethod(door(target="numeric"))
    _remedy = "raise max_iter or max_seconds; where columns depend on each other use Lasso"

    def _fit(self, table: Table, run: Run) -> Certificate:
        problem = compressed(type(self).__name__, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        path = follow(problem, self.alpha, self.max_iter, "lasso", run.progress)
        coef = path.coefs[:, -1]
        self._set_coefficients(coef[:, None].copy(), np.array([problem.y_mean - problem.x_mean @ coef]), ())
        self.alphas_ = path.alphas
        self.coef_path_ = path.coefs
        value = relative_gap(problem, coef, self.alpha)
        self.n_iter_ = max(1, len(path.alphas) - 1)
        return Certificate("gap", value, self.tol, value, self.n_iter_)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if hasattr(self, "alphas_") and (np.diff(self.alphas_) > 0).any():
            raise ModelFileError("load: alphas_ must fall.")


def lars_path(
    X: Any,
    y: Any,
    *,
    method: str = "lar",
    alpha_min: float = 0.0,
    max_iter: int = 500,
    fit_intercept: bool = False,
) -> tuple[Array, list[int], Array]:
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
    rules = {"method": _METHODS, "alpha_min": Number(low=0.0), "max_iter": MAX_ITER}
    check_parameters("lars_path", {"method": method, "alpha_min": alpha_min, "max_iter": max_iter}, rules)
    table = LassoLars._door(LassoLars(), X, y, None)
    if table.y_shape:
        raise ParameterError("lars_path: y must be one column; call it once for each target.")
    problem = compressed("lars_path", table, intercept=fit_intercept, n_jobs=None)
    path = follow(problem, alpha_min, max_iter, method)
    return path.alphas, path.active, path.coefs


def follow(
    problem: Compressed, alpha_min: float, max_iter: int, method: str, progress: Progress = no_progress
) -> LarsPath:
    """Walk from corner to corner until α, the end of the path, or a limit."""
    A, y = problem.rows, problem.target
    W = problem.weight
    norm = np.where((A * A).sum(axis=0) > 0, problem.scale, np.inf)
    beta = np.zeros(A.shape[1])
    correlation = A.T @ y / W
    level = float(np.abs(correlation).max(initial=0.0))
    first = level
    alphas, corners = [level], [beta.copy()]
    active: list[int] = []
    refused = ~np.isfinite(norm)
    left = -1  # the column that has just left may not join in the same corner
    while level > alpha_min and level > _ZERO * first and len(alphas) <= max_iter:
        free = np.setdiff1d(np.flatnonzero(~refused), active)
        joins = free[(np.abs(correlation[free]) >= level * (1.0 - 1e-10)) & (free != left)]
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
        step, leaving = drop, -1
        for j in free.tolist():  # |c_j − γ·slope_j| = level − γ
            for sign in (1.0, -1.0):
                rate = 1.0 - sign * slope[j]
                gamma = (level - sign * correlation[j]) / rate if rate > 1e-14 else np.inf
                here = j == left and gamma <= 1e-10 * level  # where it has just left
                if 0.0 <= gamma < step and not here:
                    step, leaving = gamma, -1
        if method == "lasso":
            with np.errstate(divide="ignore", invalid="ignore"):
                zeros = -beta[active] / direction
            for place in np.flatnonzero((zeros > 1e-14 * first) & (zeros < step)).tolist():
                step, leaving = float(zeros[place]), place
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


def relative_gap(problem: Compressed, coef: Array, alpha: float) -> float:
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
    largest = np.abs(problem.rows.T @ r).max(initial=0.0)
    square = r @ r
    if alpha > 0 and square > 0:
        tau = min(problem.target @ r / square, W * alpha / largest if largest > 0 else np.inf)
        dual = max(dual, tau * (problem.target @ r) - tau**2 * square / 2)
    return float(max(0.0, primal - dual) / max(dual, 1e-8 * start))
