r"""Dual functions in closed form, beside the numeric ones of `duality.py`.

    program                                            dual function
    min ½xᵀPx + qᵀx,  Jx ≤ c,  Ax = b                  −½rᵀP⁺r − λᵀc − νᵀb,  r = q + Jᵀλ + Aᵀν in the range of P
    min ½‖y − Xw‖² + ½α‖w‖²                            yᵀθ − ½‖θ‖² − ‖Xᵀθ‖²/(2α)
    min ½‖y − Xw‖² + α‖w‖₁                             yᵀθ − ½‖θ‖²               on ‖Xᵀθ‖∞ ≤ α
    min ½‖w‖² + C Σ max(0, 1 − yᵢ(xᵢᵀw + b))           Σθᵢ − ½‖Σθᵢyᵢxᵢ‖²         on 0 ≤ θ ≤ C, Σθᵢyᵢ = 0
    min ½α‖w‖² + Σ log(1 + exp(−yᵢxᵢᵀw))               Σ H(θᵢ) − ‖Σθᵢyᵢxᵢ‖²/(2α) on 0 ≤ θ ≤ 1, H the entropy

A dual function is −inf outside its domain. Each value is a lower bound on the optimum of its program.

Reference: S. Boyd and L. Vandenberghe, Convex Optimization, 2004, sections 5.1 and 5.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from ...core import Array, DataError, ParameterError
from .programs import QuadraticProgram

_ROUNDING = 1e-9  # relative violation of a dual constraint that counts as none


def quadratic_dual(program: QuadraticProgram, inequality: Any = None, equality: Any = None) -> float:
    """Return the dual function of a linear or quadratic program.

    Parameters
    ----------
    program : QuadraticProgram
        Its inequalities are, in this order, Gx ≤ h, the lower bounds and the upper bounds.
    inequality, equality : arrays, optional
        λ ≥ 0 and ν; none are zeros.

    Returns
    -------
    float
        inf over x of L(x, λ, ν): −inf where the Lagrangian falls without end.

    Examples
    --------
    >>> from learnable.solvers import QuadraticProgram, quadratic_dual
    >>> program = QuadraticProgram([[2.0]], [0.0], lower=[1.0])  # min x², x ≥ 1
    >>> [quadratic_dual(program, [strength]) for strength in (0.0, 1.0, 2.0, 3.0)]
    [0.0, 0.75, 1.0, 0.75]
    """
    zero = np.zeros(len(program.q))
    below = program.inequalities(zero)
    equal = program.equalities(zero)
    lam = _given("inequality", inequality, len(below.value))
    nu = _given("equality", equality, len(equal.value))
    if (lam < 0.0).any():
        raise ParameterError(f"quadratic_dual: inequality multipliers must be >= 0; the least is {lam.min():.3g}.")
    slope = program.q + below.jacobian.T @ lam + equal.jacobian.T @ nu
    constant = float(lam @ below.value + nu @ equal.value)  # at x = 0 the constraints have the values −c and −b
    terms = np.abs(program.q) + abs(below.jacobian).T @ lam + abs(equal.jacobian).T @ np.abs(nu)
    if program.P is None:
        return constant if (np.abs(slope) <= _ROUNDING * terms + 1e-300).all() else -math.inf
    P = np.asarray(program.P.toarray() if sp.issparse(program.P) else program.P)
    x = -np.linalg.lstsq(P, slope, rcond=1e-12)[0]
    if (np.abs(P @ x + slope) > _ROUNDING * (terms + np.abs(P) @ np.abs(x)) + 1e-300).any():
        return -math.inf
    return constant + 0.5 * float(slope @ x)


@dataclass(frozen=True)
class PrimalDual:
    """A problem of learning with both of its functions.

    Attributes
    ----------
    primal : function
        Weights to the objective.
    dual : function
        A dual point to a lower bound on the optimum; −inf outside the domain.
    point : function
        Weights to the dual point that the optimality conditions pair with them; at the optimum both values agree.
    """

    primal: Callable[[Any], float]
    dual: Callable[[Any], float]
    point: Callable[[Any], Array]

    def gap(self, w: Any, theta: Any = None) -> float:
        """Return primal(w) − dual(θ), by default at the dual point of w."""
        return self.primal(w) - self.dual(self.point(w) if theta is None else theta)


def ridge_duality(X: Any, y: Any, alpha: float) -> PrimalDual:
    """Return min ½‖y − Xw‖² + ½α‖w‖² with its dual.

    Examples
    --------
    >>> from learnable.solvers import ridge_duality
    >>> problem = ridge_duality([[1.0], [2.0]], [1.0, 1.0], alpha=1.0)
    >>> problem.gap([0.5]), round(problem.gap([0.0]), 4)
    (0.0, 4.5)
    """
    X, y = _table(X, y)
    _positive(alpha)

    def dual(theta: Any) -> float:
        t = np.asarray(theta, dtype=np.float64)
        pull = X.T @ t
        return float(y @ t - 0.5 * (t @ t) - 0.5 * (pull @ pull) / alpha)

    def primal(w: Any) -> float:
        r = y - X @ np.asarray(w, dtype=np.float64)
        return float(0.5 * (r @ r) + 0.5 * alpha * np.dot(w, w))

    return PrimalDual(primal, dual, lambda w: np.asarray(y - X @ np.asarray(w, dtype=np.float64)))


def lasso_duality(X: Any, y: Any, alpha: float) -> PrimalDual:
    """Return min ½‖y − Xw‖² + α‖w‖₁ with its dual; the dual point is the residual, scaled into the domain.

    Examples
    --------
    >>> from learnable.solvers import lasso_duality
    >>> problem = lasso_duality([[1.0], [2.0]], [1.0, 1.0], alpha=1.0)
    >>> round(problem.gap([0.4]), 12), problem.dual([9.0, 9.0])
    (0.0, -inf)
    """
    X, y = _table(X, y)
    _positive(alpha)

    def dual(theta: Any) -> float:
        t = np.asarray(theta, dtype=np.float64)
        inside = float(np.abs(X.T @ t).max(initial=0.0)) <= alpha * (1.0 + _ROUNDING)
        return float(y @ t - 0.5 * (t @ t)) if inside else -math.inf

    def primal(w: Any) -> float:
        r = y - X @ np.asarray(w, dtype=np.float64)
        return float(0.5 * (r @ r) + alpha * np.abs(w).sum())

    def point(w: Any) -> Array:
        r = np.asarray(y - X @ np.asarray(w, dtype=np.float64))
        largest = float(np.abs(X.T @ r).max(initial=0.0))
        return r * min(1.0, alpha / largest) if largest > 0.0 else r

    return PrimalDual(primal, dual, point)


def svm_duality(X: Any, y: Any, C: float) -> PrimalDual:
    """Return min ½‖w‖² + C Σ max(0, 1 − yᵢ(xᵢᵀw + b)) with its dual; the weights are (b, w), y is ±1.

    The dual point of weights has θᵢ = C inside the margin and 0 outside, with the heavier class scaled down until the
    classes balance.

    Examples
    --------
    >>> from learnable.solvers import svm_duality
    >>> problem = svm_duality([[-1.0], [1.0]], [-1.0, 1.0], C=1.0)
    >>> problem.primal([0.0, 1.0]), problem.dual([0.5, 0.5]), problem.dual([0.5, 0.4])
    (0.5, 0.5, -inf)
    """
    X, y = _table(X, y)
    _positive(C)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise DataError("svm_duality: y must hold -1 and 1 only.")

    def dual(theta: Any) -> float:
        t = np.asarray(theta, dtype=np.float64)
        inside = t.min() >= -_ROUNDING * C and t.max() <= C * (1.0 + _ROUNDING)
        if not inside or abs(float(t @ y)) > _ROUNDING * max(float(np.abs(t).sum()), 1e-300):
            return -math.inf
        pull = X.T @ (t * y)
        return float(t.sum() - 0.5 * (pull @ pull))

    def primal(w: Any) -> float:
        v = np.asarray(w, dtype=np.float64)
        return float(0.5 * (v[1:] @ v[1:]) + C * np.maximum(0.0, 1.0 - y * (X @ v[1:] + v[0])).sum())

    def point(w: Any) -> Array:
        v = np.asarray(w, dtype=np.float64)
        t = np.where(y * (X @ v[1:] + v[0]) < 1.0, C, 0.0)
        up = float(t[y > 0].sum())
        down = float(t[y < 0].sum())
        least = min(up, down)
        return np.where(y > 0, t * (least / up if up else 0.0), t * (least / down if down else 0.0))

    return PrimalDual(primal, dual, point)


def logistic_duality(X: Any, y: Any, alpha: float) -> PrimalDual:
    """Return min ½α‖w‖² + Σ log(1 + exp(−yᵢxᵢᵀw)) with its dual; y is ±1.

    Examples
    --------
    >>> from learnable.solvers import logistic_duality
    >>> problem = logistic_duality([[-1.0], [1.0]], [-1.0, 1.0], alpha=1.0)
    >>> round(problem.primal([0.0]), 4), round(problem.dual([0.5, 0.5]), 4)
    (1.3863, 0.8863)
    """
    X, y = _table(X, y)
    _positive(alpha)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise DataError("logistic_duality: y must hold -1 and 1 only.")

    def dual(theta: Any) -> float:
        t = np.asarray(theta, dtype=np.float64)
        if t.min() < -_ROUNDING or t.max() > 1.0 + _ROUNDING:
            return -math.inf
        t = np.clip(t, 0.0, 1.0)
        pull = X.T @ (t * y)
        return float((entr(t) + entr(1.0 - t)).sum() - 0.5 * (pull @ pull) / alpha)

    def primal(w: Any) -> float:
        v = np.asarray(w, dtype=np.float64)
        return float(0.5 * alpha * (v @ v) + np.logaddexp(0.0, -y * (X @ v)).sum())

    return PrimalDual(primal, dual, lambda w: np.asarray(1.0 / (1.0 + np.exp(y * (X @ np.asarray(w))))))


def _given(name: str, values: Any, count: int) -> Array:
    if values is None:
        return np.zeros(count)
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.shape != (count,) or not np.isfinite(array).all():
        raise DataError(f"quadratic_dual: {name} must be {count} finite numbers; got shape {array.shape}.")
    return array


def _table(X: Any, y: Any) -> tuple[Array, Array]:
    rows = np.asarray(X, dtype=np.float64)
    targets = np.asarray(y, dtype=np.float64)
    if rows.ndim != 2 or targets.shape != (len(rows),):
        raise DataError(f"X must be a table and y one number per row; got shapes {rows.shape} and {targets.shape}.")
    return rows, targets


def _positive(strength: float) -> None:
    if not 0.0 < strength < math.inf:
        raise ParameterError(f"the strength must be > 0 and finite; got {strength!r}.")
