r"""The conditions of Karush, Kuhn and Tucker, evaluated at a point.

For a convex program  min f(x)  subject to  g(x) ≤ 0,  h(x) = 0  with affine h, a point x and multipliers λ, ν are

    stationary        ∇f + Σ λᵢ∇gᵢ + Σ νⱼ∇hⱼ = 0
    feasible          g ≤ 0,  h = 0
    dual feasible     λ ≥ 0
    complementary     λᵢ gᵢ = 0

exactly at an optimum (if Slater's condition holds; for affine g always). Each is reported as a relative residual. The
Lagrangian L(·, λ, ν) is convex, hence above its tangent at x, and never above f on the feasible set:

    f(x) − min f  ≤  (−λᵀg − νᵀh) + ‖∇L‖·‖x − x*‖   for λ ≥ 0.

The first term is the duality gap where x is stationary. Multipliers that are not given are the best ones there are: the
least-squares solution of stationarity over the constraints that hold with equality, λ ≥ 0.

Reference: S. Boyd and L. Vandenberghe, Convex Optimization, 2004, §5.5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from ...core import Array, DataError, NDArray, ParameterError
from ..derivatives import as_point, numerical_jacobian


class Goal(NamedTuple):
    """The objective at one point."""

    value: float
    gradient: Array  #: (n,)
    value_size: float  #: what a difference of values is compared with
    gradient_size: float  #: what a residual of stationarity is compared with


class Rows(NamedTuple):
    """Constraints at one point."""

    value: Array  #: (m,)
    jacobian: Any  #: (m, n), dense or sparse
    size: Array  #: (m,), what a violation is compared with


class Program(Protocol):
    """A convex program: minimise a function, subject to inequalities ≤ 0 and equalities = 0."""

    def goal(self, x: Array, /) -> Goal:
        """Return the objective at x."""

    def inequalities(self, x: Array, /) -> Rows:
        """Return g at x."""

    def equalities(self, x: Array, /) -> Rows:
        """Return h at x."""


@dataclass(frozen=True)
class KKTReport:
    """How far a point is from the conditions of optimality; all residuals are relative, and 0 at an optimum.

    Attributes
    ----------
    value : float
        f(x).
    stationarity : float
        ‖∇f + Jᵀλ + Kᵀν‖∞ against the largest of its terms.
    primal : float
        The largest violation of a constraint, against the size of its terms.
    dual : float
        The most negative λ against the largest.
    complementarity : float
        The largest |λᵢgᵢ| against |f|.
    gap : float
        f(x) − L(x, λ, ν) = −λᵀg − νᵀh against |f|: the duality gap where the point is stationary.
    inequality, equality : (m,) and (k,) arrays
        λ and ν.
    active : (m,) array of bool
        Which inequalities hold with equality, to the tolerance of the report.
    """

    value: float
    stationarity: float
    primal: float
    dual: float
    complementarity: float
    gap: float
    inequality: Array
    equality: Array
    active: NDArray[np.bool_]

    @property
    def worst(self) -> float:
        """The largest of the residuals (NaN counts as infinite)."""
        residuals = (self.stationarity, self.primal, self.dual, self.complementarity, abs(self.gap))
        return max(float("inf") if np.isnan(r) else r for r in residuals)

    def holds(self, tol: float = 1e-8) -> bool:
        """Tell whether every condition holds to `tol`."""
        return self.worst <= tol

    def __repr__(self) -> str:
        return (
            f"KKT: stationarity {self.stationarity:.2g}, primal {self.primal:.2g}, dual {self.dual:.2g}, "
            f"complementarity {self.complementarity:.2g}, gap {self.gap:.2g}; {int(self.active.sum())} of "
            f"{len(self.active)} inequalities active; f = {self.value:.6g}"
        )


@dataclass(frozen=True)
class ConvexProgram:
    """A convex program given by functions.

    Parameters
    ----------
    objective : function
        x ↦ f(x), convex.
    gradient : function, optional
        x ↦ ∇f(x); by differences if there is none, here and for the Jacobians.
    inequality : function, optional
        x ↦ g(x), a vector of convex functions that must be ≤ 0.
    inequality_jacobian : function, optional
        x ↦ J of shape (m, n).
    A, b : (k, n) and (k,) arrays, optional
        The equalities Ax = b.

    Examples
    --------
    >>> import numpy as np
    >>> disc = ConvexProgram(lambda x: x[0] + x[1], inequality=lambda x: x @ x - 2.0)
    >>> report = kkt_report(disc, [-1.0, -1.0])
    >>> report.holds(1e-6), report.inequality.round(6)
    (True, array([0.5]))
    """

    objective: Callable[[Array], Any]
    gradient: Callable[[Array], Any] | None = None
    inequality: Callable[[Array], Any] | None = None
    inequality_jacobian: Callable[[Array], Any] | None = None
    A: Any = None
    b: Any = None

    def goal(self, x: Array) -> Goal:
        """Return f and ∇f at x; their sizes are at least one."""

        def f(z: Array) -> Array:
            return np.array(self.objective(z), dtype=np.float64).reshape(1)

        value = float(f(x)[0])
        gradient = numerical_jacobian(f, x)[0] if self.gradient is None else np.asarray(self.gradient(x), np.float64)
        if gradient.shape != x.shape:
            raise DataError(f"ConvexProgram: gradient must have the shape of x, {x.shape}; got {gradient.shape}.")
        return Goal(value, gradient, max(1.0, abs(value)), max(1.0, _largest(gradient)))

    def inequalities(self, x: Array) -> Rows:
        """Return g and its Jacobian at x."""
        function = self.inequality
        if function is None:
            return Rows(np.zeros(0), np.zeros((0, len(x))), np.zeros(0))

        def g(z: Array) -> Array:
            return np.atleast_1d(np.asarray(function(z), dtype=np.float64))

        value = g(x)
        jacobian = numerical_jacobian(g, x) if self.inequality_jacobian is None else self.inequality_jacobian(x)
        J = np.atleast_2d(np.asarray(jacobian, dtype=np.float64))
        if J.shape != (len(value), len(x)):
            raise DataError(f"ConvexProgram: inequality_jacobian must be {(len(value), len(x))}; got {J.shape}.")
        return Rows(value, J, np.maximum(1.0, np.abs(J).max(axis=1, initial=0.0) * max(1.0, _largest(x))))

    def equalities(self, x: Array) -> Rows:
        """Return Ax − b and A."""
        if self.A is None:
            return Rows(np.zeros(0), np.zeros((0, len(x))), np.zeros(0))
        A = np.atleast_2d(np.asarray(self.A, np.float64))
        b = np.atleast_1d(np.asarray(self.b, np.float64))
        if A.shape != (len(b), len(x)):
            raise DataError(f"ConvexProgram: A and b must be {(len(b), len(x))} and {len(b)}; got A of {A.shape}.")
        return Rows(A @ x - b, A, np.maximum(1.0, np.abs(A).sum(axis=1) * _largest(x) + np.abs(b)))


def kkt_report(
    program: Program,
    x: Any,
    inequality: Any = None,
    equality: Any = None,
    *,
    tolerance: float = 1e-6,
) -> KKTReport:
    """Evaluate the conditions of optimality of a convex program at a point.

    Parameters
    ----------
    program : Program
        A `ConvexProgram`, a `QuadraticProgram`, or any object with `goal`, `inequalities` and `equalities`.
    x : (n,) array
        The point.
    inequality, equality : (m,) and (k,) arrays, optional
        λ and ν. If neither is given, those that come closest to stationarity.
    tolerance : float
        How near to zero an inequality counts as active, relative to the size of its terms.

    Returns
    -------
    KKTReport
        Five residuals, the multipliers and the active constraints.

    Examples
    --------
    >>> from learnable.solvers import QuadraticProgram, kkt_report
    >>> program = QuadraticProgram([[2.0]], [-4.0], upper=[1.0])  # min x² − 4x, x ≤ 1
    >>> kkt_report(program, [1.0])
    KKT: stationarity 0, primal 0, dual 0, complementarity 0, gap 0; 1 of 1 inequalities active; f = -3
    >>> kkt_report(program, [0.5]).stationarity
    0.75
    """
    if not all(hasattr(program, name) for name in ("goal", "inequalities", "equalities")):
        raise ParameterError(f"kkt_report: program must be a ConvexProgram or a QuadraticProgram; got {program!r}.")
    point = as_point("kkt_report", x)
    goal = program.goal(point)
    below = program.inequalities(point)
    equal = program.equalities(point)
    with np.errstate(invalid="ignore", divide="ignore"):
        active = np.abs(below.value) <= tolerance * below.size
    if inequality is None and equality is None:
        lam, nu = _best_multipliers(goal, below, equal, active | (below.value > 0))
    else:
        lam = _multipliers("inequality", inequality, len(below.value))
        nu = _multipliers("equality", equality, len(equal.value))
    return _judge(goal, below, equal, lam, nu, active)


def _judge(goal: Goal, below: Rows, equal: Rows, lam: Array, nu: Array, active: NDArray[np.bool_]) -> KKTReport:
    """Put the residuals together."""
    residual = goal.gradient + below.jacobian.T @ lam + equal.jacobian.T @ nu
    size = max(
        goal.gradient_size, _largest(abs(below.jacobian).T @ abs(lam)), _largest(abs(equal.jacobian).T @ abs(nu))
    )
    violation = np.concatenate([np.maximum(below.value, 0.0), np.abs(equal.value)])
    rows = np.concatenate([below.size, equal.size])
    slack = lam * below.value
    gap = -float(slack.sum()) - float(nu @ equal.value)
    values = max(goal.value_size, abs(goal.value - gap))
    return KKTReport(
        goal.value,
        _ratio(_largest(residual), size),
        max((_ratio(v, s) for v, s in zip(violation.tolist(), rows.tolist(), strict=True)), default=0.0),
        _ratio(-float(lam.min(initial=0.0)), _largest(lam)),
        _ratio(_largest(slack), values),
        gap / values if gap != 0.0 else 0.0,
        lam,
        nu,
        active,
    )


def _best_multipliers(goal: Goal, below: Rows, equal: Rows, usable: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the λ ≥ 0 on usable constraints and the ν that minimise ‖∇f + Jᵀλ + Kᵀν‖."""
    from scipy.optimize import lsq_linear

    lam = np.zeros(len(below.value))
    nu = np.zeros(len(equal.value))
    chosen = np.flatnonzero(usable)
    J = _dense(below.jacobian[chosen])
    K = _dense(equal.jacobian)
    M = np.concatenate([J, K]).T
    if not M.shape[1] or not goal.gradient.any():
        return lam, nu
    length = np.linalg.norm(M / _nonzero(np.abs(M).max(axis=0)), axis=0) * np.abs(M).max(axis=0)
    unit = _nonzero(length)
    scale = float(np.abs(goal.gradient).max())
    low = np.r_[np.zeros(len(chosen)), np.full(len(nu), -np.inf)]
    found = lsq_linear(M / unit, -goal.gradient / scale, (low, np.inf), method="bvls", tol=1e-15)
    both = found.x * scale / unit
    lam[chosen] = both[: len(chosen)]
    nu[:] = both[len(chosen) :]
    return lam, nu


def _multipliers(name: str, values: Any, count: int) -> Array:
    if values is None:
        if count:
            raise ParameterError(
                f"kkt_report: {name} must have {count} multipliers; got None. Pass both kinds, or none."
            )
        return np.zeros(0)
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise ParameterError(f"kkt_report: {name} must be {count} finite numbers; got shape {array.shape}.")
    return array


def _ratio(residual: float, size: float) -> float:
    """Return residual/size, where 0/0 is 0."""
    if residual == 0.0:
        return 0.0
    return residual / size if size > 0.0 else float("inf")


def _largest(values: Any) -> float:
    return float(np.abs(values).max(initial=0.0))


def _nonzero(values: Array) -> Array:
    return np.where(values > 0.0, values, 1.0)


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
