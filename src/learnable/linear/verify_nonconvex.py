r"""Independent check of regression with penalties that need not be convex: optimality conditions, or a duality gap.

Nothing here is shared with the fit. The slope of a penalty is its formula, held against differences of the penalty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.checking import Recheck
from ..data.checking import Array, sound
from .verify_subset import problem_of

_SAME = 1e-9  # relative distance at which two values are the same


@sound
@np.errstate(all="ignore")
def nonconvex(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a NonconvexRegression: its optimality conditions along the path, or its gap."""
    problem = problem_of(model, X, y, sample_weight)
    W = problem.weight
    scale = problem.scale / np.sqrt(W) if model.standardize else np.ones(len(problem.scale))
    A = problem.A * problem.scale / scale
    c = A.T @ problem.y / W
    steepest = float(np.abs(c).max(initial=0.0))
    coef = np.asarray(model.coef_, dtype=float)
    alphas = np.asarray(model.alphas_, dtype=float)
    path = np.asarray(model.coef_path_, dtype=float)
    theta = coef * scale
    terms = abs(problem.y_mean) + np.abs(problem.x_mean) @ np.abs(coef) + np.sqrt(problem.total / W)
    level = abs(float(model.intercept_) - (problem.y_mean - problem.x_mean @ coef))
    value = _stationary(model, A, problem.y, W, c, theta, float(model.alpha))
    r = problem.y - A @ theta
    objective = float(r @ r / (2 * W) + _omega(model, np.abs(theta), float(model.alpha)).sum())
    whole = problem.total / (2 * W)
    along = [_stationary(model, A, problem.y, W, c, path[:, k] * scale, alphas[k]) for k in range(len(alphas))]
    sane = (
        coef.shape == (len(scale),)
        and path.shape == (len(scale), len(alphas))
        and (np.diff(alphas) <= 0).all()
        and alphas[-1] == model.alpha
        and level <= 1e-9 * terms
        and model.n_iter_ >= 1
        and abs(objective - model.objective_) <= 1e-9 * (objective + whole)
        and (max(along) <= 10 * model.tol + _SAME or not model.certificate_.holds)
    )
    if model.penalty == "lq" and model.q >= 1:
        value = _power_gap(model, A, problem.y, W, theta, objective, whole)
        return Recheck(value if sane else np.inf, 1e-12 + _SAME * (whole == 0), problem.fingerprint, bound=value)
    if steepest == 0:
        value = float(np.abs(theta).max(initial=0.0))
    return Recheck(value if sane else np.inf, 1e-10, problem.fingerprint)


def _omega(model: Any, v: Array, alpha: float) -> Array:
    if model.penalty == "lq":
        return np.asarray(alpha * v**model.q)
    if model.penalty == "mcp":
        near = np.minimum(v, model.gamma * alpha)
        return np.asarray(alpha * near - near**2 / (2 * model.gamma))
    a = model.a
    middle = (2 * a * alpha * v - v**2 - alpha**2) / (2 * (a - 1))
    return np.where(v <= alpha, alpha * v, np.where(v <= a * alpha, middle, alpha**2 * (a + 1) / 2))


def _stationary(model: Any, A: Array, y: Array, W: float, c: Array, theta: Array, alpha: float) -> float:
    """Return the largest violation of the optimality conditions, relative to max|c|, by numeric slopes of Ω."""
    steepest = float(np.abs(c).max(initial=0.0))
    gradient = -A.T @ (y - A @ theta) / W
    v = np.abs(theta)
    step = 1e-6 * np.maximum(v, 1e-12)
    slope = (_omega(model, v + step, alpha) - _omega(model, v - step, alpha)) / (2 * step)
    exact = {
        "lq": lambda: alpha * model.q * v ** (model.q - 1),
        "mcp": lambda: np.maximum(alpha - v / model.gamma, 0),
        "scad": lambda: np.where(v <= alpha, alpha, np.maximum(model.a * alpha - v, 0) / (model.a - 1)),
    }[model.penalty]()
    inside = np.abs(gradient + np.sign(theta) * exact)
    # The formula of the slope is itself held against differences of Ω, away from the kinks.
    if (np.abs(slope - exact)[theta != 0] > 1e-3 * (exact + alpha)[theta != 0]).any():
        return np.inf
    at_zero = alpha
    if model.penalty == "lq":
        at_zero = np.inf if model.q < 1 else alpha * (model.q == 1)
    outside = np.maximum(np.abs(gradient) - at_zero, 0)
    return float(np.where(theta != 0, inside, outside).max(initial=0.0) / steepest) if steepest > 0 else 0.0


def _power_gap(model: Any, A: Array, y: Array, W: float, theta: Array, primal: float, whole: float) -> float:
    r = y - A @ theta
    slopes = np.abs(A.T @ r / W)
    alpha = float(model.alpha)
    q = float(model.q)
    if q == 1:
        shrink = min(1.0, alpha / slopes.max()) if slopes.max() > 0 else 1.0
        r = shrink * r
        conjugate = 0.0
    else:
        conjugate = float(((1 - 1 / q) * slopes * (slopes / (alpha * q)) ** (1 / (q - 1))).sum())
    dual = float((y @ r - r @ r / 2) / W - conjugate)
    return 0.0 if whole == 0 else max(0.0, primal - dual) / max(dual, 1e-8 * whole)
