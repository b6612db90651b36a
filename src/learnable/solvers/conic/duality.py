r"""Lagrange duality of any convex program: the dual function, the gap of a given point, Slater's condition.

For  p* = min f(x)  subject to  g(x) ≤ 0, h(x) = 0  and multipliers λ ≥ 0, ν:

    L(x, λ, ν) = f + λᵀg + νᵀh,      d(λ, ν) = inf_x L(x, λ, ν) ≤ p* ≤ f(x) of every feasible x.

With a point that satisfies g < 0 strictly (Slater) the best d equals p* and is attained; without one there may be a
gap. −λᵢ is the rate at which p* changes as constraint i is loosened to gᵢ ≤ u. The points and multipliers may come from
anywhere. d is computed by descent on L: its `slope` says how well, and `bound(radius)` is a proof for every minimiser
within that radius.

Reference: S. Boyd and L. Vandenberghe, Convex Optimization, 2004, chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import Array, DataError, ParameterError
from ..derivatives import as_point
from ..problem import Evaluation
from ..smooth.quasi_newton import lbfgs
from .kkt import Program, kkt_report

_SLOPE = 1e-9  # relative gradient at which a dual problem counts as solved
_MOST_STEPS = 2000  # for it; the gap that is left is reported, whatever it is
_RAYS = (1e3, 1e6, 1e9)  # lengths at which a Lagrangian that falls without end is told from one that is hard


@dataclass(frozen=True)
class DualValue:
    """The infimum of a Lagrangian.

    Attributes
    ----------
    value : float
        d(λ, ν) as it was found; −inf where the Lagrangian falls without end.
    point : (n,) array
        Where it was found.
    slope : float
        ‖∇L‖ there: zero at the infimum.
    """

    value: float
    point: Array
    slope: float

    def bound(self, radius: float) -> float:
        """Return what L is at least anywhere within `radius` of the point: a convex function is above its tangent."""
        return self.value - self.slope * radius


@dataclass(frozen=True)
class DualityReport:
    """A point and multipliers beside each other.

    Attributes
    ----------
    primal : float
        f(x).
    dual : float
        d(λ, ν).
    gap : float
        f(x) − d(λ, ν): for a feasible x it bounds f(x) − p*.
    violation : float
        Largest relative violation of a constraint at x.
    inequality, equality : arrays
        λ and ν; minus them are the rates of change of p* with the constraints, where the gap is zero.
    tolerance : float
        Below which gap (relative to max(1, |f|)) and violation count as zero.
    """

    primal: float
    dual: float
    gap: float
    violation: float
    inequality: Array
    equality: Array
    tolerance: float

    @property
    def strong(self) -> bool:
        """Whether the point is feasible and the gap closed: then both are optimal."""
        size = self.tolerance * max(1.0, abs(self.primal))
        return self.violation <= self.tolerance and abs(self.gap) <= size

    def __repr__(self) -> str:
        verdict = "a gap" if self.violation <= self.tolerance else "not feasible"
        if self.strong:
            verdict = "strong duality"
        return f"duality: f = {self.primal:.6g}, d = {self.dual:.6g}, gap {self.gap:.2g}; {verdict}"


@dataclass(frozen=True)
class Sensitivity:
    """How the optimum of a program answers to its constraints being moved: g(x) ≤ u, h(x) = v.

    Attributes
    ----------
    value : float
        p*(0, 0), the optimum of the program as it is.
    inequality, equality : arrays
        −λ and −ν: the rates at which p* changes with u and v, where it has a derivative.
    gap : float
        Duality gap of the point and the multipliers; the bounds below are lowered by it.
    """

    value: float
    inequality: Array
    equality: Array
    gap: float

    def bound(self, u: Any = 0.0, v: Any = 0.0) -> float:
        """Return what p*(u, v) is at least, however large the change: p* is convex, and above its tangent."""
        first = float(np.sum(self.inequality * np.asarray(u, dtype=np.float64)))
        second = float(np.sum(self.equality * np.asarray(v, dtype=np.float64)))
        return self.value - max(self.gap, 0.0) + first + second


@dataclass(frozen=True)
class SlaterReport:
    """Whether a point is strictly feasible.

    Attributes
    ----------
    point : (n,) array
        The point found.
    margin : float
        −max gᵢ there, against the size of each; positive if it is strictly feasible. Inf without inequalities.
    residual : float
        Largest relative violation of an equality.
    """

    point: Array
    margin: float
    residual: float
    tolerance: float = 1e-7

    @property
    def holds(self) -> bool:
        """Whether all inequalities are strict and the equalities hold."""
        return self.margin > self.tolerance and self.residual <= self.tolerance


class _Lagrangian:
    """L(·, λ, ν) as a smooth problem."""

    def __init__(self, program: Program, inequality: Array, equality: Array) -> None:
        self.program = program
        self.inequality = inequality
        self.equality = equality

    def evaluate(self, x: Array) -> Evaluation:
        """Return L, its gradient and the gradient's norm."""
        goal = self.program.goal(x)
        below = self.program.inequalities(x)
        equal = self.program.equalities(x)
        value = goal.value + float(self.inequality @ below.value) + float(self.equality @ equal.value)
        gradient = goal.gradient + below.jacobian.T @ self.inequality + equal.jacobian.T @ self.equality
        if not np.isfinite(value):
            return Evaluation(float("inf"), gradient, float("inf"))
        return Evaluation(value, gradient, float(np.linalg.norm(gradient)))


def lagrangian(program: Program, x: Any, inequality: Any = None, equality: Any = None) -> float:
    """Return L(x, λ, ν) = f(x) + λᵀg(x) + νᵀh(x).

    Parameters
    ----------
    program : Program
        A `ConvexProgram` or `QuadraticProgram`.
    x : (n,) array
        The point.
    inequality, equality : arrays, optional
        λ and ν; none are zeros.

    Examples
    --------
    >>> from learnable.solvers import ConvexProgram, lagrangian
    >>> program = ConvexProgram(lambda x: x @ x, inequality=lambda x: 1.0 - x[0])
    >>> lagrangian(program, [0.5], [2.0])
    1.25
    """
    point = as_point("lagrangian", x)
    lam, nu = _multipliers("lagrangian", program, point, inequality, equality)
    return float(_Lagrangian(program, lam, nu).evaluate(point).value)


def dual_value(program: Program, start: Any, inequality: Any = None, equality: Any = None) -> DualValue:
    """Return d(λ, ν) = inf over x of L(x, λ, ν), by descent from a start.

    Parameters
    ----------
    program : Program
        A `ConvexProgram` or `QuadraticProgram`.
    start : (n,) array
        Where the descent starts; it need not be feasible.
    inequality, equality : arrays, optional
        λ ≥ 0 and ν; none are zeros.

    Examples
    --------
    >>> from learnable.solvers import ConvexProgram, dual_value
    >>> program = ConvexProgram(lambda x: x @ x, inequality=lambda x: 1.0 - x[0])  # min x², x ≥ 1
    >>> [round(dual_value(program, [3.0], [strength]).value, 6) for strength in (0.0, 1.0, 2.0, 3.0)]
    [0.0, 0.75, 1.0, 0.75]
    """
    point = as_point("dual_value", start)
    lam, nu = _multipliers("dual_value", program, point, inequality, equality)
    if (lam < 0).any():
        raise ParameterError(f"dual_value: inequality multipliers must be >= 0; the least is {lam.min():.3g}.")
    problem = _Lagrangian(program, lam, nu)
    with np.errstate(over="ignore", invalid="ignore"):
        found = lbfgs(problem, point, tol=_SLOPE, max_iter=_MOST_STEPS)
        x = np.asarray(found.x)
        now = problem.evaluate(x)
        if now.measure > 1e-4 and _falls_without_end(problem, x, now):
            return DualValue(-np.inf, x, now.measure)
    return DualValue(float(now.value), x, float(now.measure))


def duality_gap(
    program: Program, x: Any, inequality: Any = None, equality: Any = None, *, tolerance: float = 1e-6
) -> DualityReport:
    """Compare a point with multipliers: f(x) − d(λ, ν).

    Parameters
    ----------
    program : Program
        A `ConvexProgram` or `QuadraticProgram`.
    x : (n,) array
        The point.
    inequality, equality : arrays, optional
        λ and ν; without both, those that come closest to stationarity at x.
    tolerance : float
        Below which gap and violation count as zero.

    Examples
    --------
    >>> from learnable.solvers import ConvexProgram, duality_gap
    >>> program = ConvexProgram(lambda x: x @ x, inequality=lambda x: 1.0 - x[0])
    >>> duality_gap(program, [1.0], [2.0]).strong, round(duality_gap(program, [1.5], [1.0]).gap, 6)
    (True, 1.5)
    """
    report = kkt_report(program, x, inequality, equality, tolerance=tolerance)
    found = dual_value(program, x, np.maximum(report.inequality, 0.0), report.equality)
    return DualityReport(
        report.value,
        found.value,
        report.value - found.value,
        report.primal,
        report.inequality,
        report.equality,
        tolerance,
    )


def sensitivity(
    program: Program, x: Any, inequality: Any = None, equality: Any = None, *, tolerance: float = 1e-6
) -> Sensitivity:
    """Return the rates at which the optimum changes as constraints are loosened, and a bound for every change.

    Parameters
    ----------
    program : Program
        A `ConvexProgram` or `QuadraticProgram`.
    x : (n,) array
        An optimal point, from anywhere.
    inequality, equality : arrays, optional
        λ and ν; without both, those that come closest to stationarity at x.
    tolerance : float
        How near to zero an inequality counts as active.

    Examples
    --------
    min x² subject to x ≥ 1; loosened to x ≥ 1 − u the optimum is (1 − u)²:

    >>> from learnable.solvers import ConvexProgram, sensitivity
    >>> program = ConvexProgram(lambda x: x @ x, inequality=lambda x: 1.0 - x[0])
    >>> found = sensitivity(program, [1.0])
    >>> found.inequality.round(6), round(found.bound(0.5), 6), 0.5**2
    (array([-2.]), 0.0, 0.25)
    """
    report = duality_gap(program, x, inequality, equality, tolerance=tolerance)
    return Sensitivity(report.primal, -np.maximum(report.inequality, 0.0), -report.equality, report.gap)


def slater_point(program: Program, start: Any) -> SlaterReport:
    """Look for a strictly feasible point: minimise the largest inequality, subject to the equalities.

    Parameters
    ----------
    program : Program
        A `ConvexProgram` or `QuadraticProgram`. Affine inequalities need not be strict for strong duality; the report
        does not know which they are.
    start : (n,) array
        Where the search starts.

    Examples
    --------
    >>> from learnable.solvers import ConvexProgram, slater_point
    >>> slater_point(ConvexProgram(lambda x: x[0], inequality=lambda x: x @ x - 1.0), [2.0, 0.0]).holds
    True
    >>> slater_point(ConvexProgram(lambda x: x[0], inequality=lambda x: x @ x), [2.0, 0.0]).holds
    False
    """
    from scipy.optimize import minimize

    x = as_point("slater_point", start)
    n = len(x)
    below = program.inequalities(x)
    equal = program.equalities(x)
    constraints: list[dict[str, Any]] = []
    level = 0.0
    if len(below.value):
        level = float(below.value.max())
        constraints.append({"type": "ineq", "fun": lambda z: z[n] - program.inequalities(z[:n]).value})
    if len(equal.value):
        constraints.append({"type": "eq", "fun": lambda z: program.equalities(z[:n]).value})
    if constraints:
        bounds = [(None, None)] * n + [(-1.0, None)]  # no more than −1 is asked for: there may be no least value
        found = minimize(lambda z: z[n], np.r_[x, level], method="SLSQP", bounds=bounds, constraints=constraints)
        x = np.asarray(found.x[:n], dtype=np.float64)
        below = program.inequalities(x)
        equal = program.equalities(x)
    margin = float((-below.value / below.size).min(initial=np.inf))
    residual = float((np.abs(equal.value) / np.where(equal.size > 0, equal.size, 1.0)).max(initial=0.0))
    return SlaterReport(x, margin, residual)


def set_optimality(gradient: Callable[[Array], Any], x: Any, project: Callable[[Array], Any]) -> float:
    """Return ‖x − Π(x − ∇f(x))‖/max(1, ‖x‖): zero exactly where x minimises a convex f over a convex set.

    That is the variational inequality ∇f(x)ᵀ(z − x) ≥ 0 for every z of the set, in one number.

    Parameters
    ----------
    gradient : function
        x ↦ ∇f(x).
    x : (n,) array
        A point of the set.
    project : function
        Π, the projection onto the set.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import set_optimality
    >>> set_optimality(lambda x: 2 * (x - 3.0), [1.0], lambda z: np.clip(z, 0.0, 1.0))
    0.0
    """
    point = as_point("set_optimality", x)
    away = point - np.asarray(project(point - np.asarray(gradient(point), dtype=np.float64)), dtype=np.float64)
    return float(np.linalg.norm(away) / max(1.0, float(np.linalg.norm(point))))


def _multipliers(owner: str, program: Program, x: Array, inequality: Any, equality: Any) -> tuple[Array, Array]:
    """Return λ and ν with the right lengths; zeros for those that are not given."""
    found = []
    for name, given, rows in (
        ("inequality", inequality, program.inequalities(x)),
        ("equality", equality, program.equalities(x)),
    ):
        count = len(rows.value)
        values = np.zeros(count) if given is None else np.atleast_1d(np.asarray(given, dtype=np.float64))
        if values.shape != (count,) or not np.isfinite(values).all():
            raise DataError(f"{owner}: {name} must be {count} finite numbers; got shape {values.shape}.")
        found.append(values)
    return found[0], found[1]


def _falls_without_end(problem: _Lagrangian, x: Array, now: Evaluation) -> bool:
    """Tell whether L keeps at least half its slope along the ray of steepest descent."""
    slope = float(now.gradient @ now.gradient)
    return all(problem.evaluate(x - s * now.gradient).value <= now.value - 0.5 * s * slope for s in _RAYS)
