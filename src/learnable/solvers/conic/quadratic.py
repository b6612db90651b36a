r"""Convex quadratic programs: an interior-point method, finished by an active-set step.

    min ½xᵀPx + qᵀx   subject to   Gx ≤ h,   Ax = b,   l ≤ x ≤ u

With slacks s = h − Gx ≥ 0 (bounds are rows of G here) the optimum is where

    Px + q + Aᵀν + Gᵀz = 0,   Ax = b,   Gx + s = h,   sz = 0,   s, z ≥ 0.

Newton's method on sz = σμ, with Mehrotra's prediction of σ and of the second-order term, needs about twenty steps of
one linear system each. Near the end it is known which constraints are active; treating them as equations gives the
point to the last digits, and where a multiplier or a slack comes out negative, the guess is mended and solved again.

The result is judged on the program as it was given: all conditions of optimality, as relative residuals, and the
duality gap. Where there is no optimum, an error carries the proof (`programs.py`). Dense programs take O(n³ + mn²) a
step and memory O(n² + mn); sparse ones what a sparse factorisation takes.

References: S. Mehrotra, SIAM J. Optim. 2, 1992; J. Nocedal and S. Wright, Numerical Optimization, 2006, §16.6.

Linear programs, by SciPy's HiGHS, with multipliers, KKT residuals and duality gap.

    min cᵀx   subject to   Gx ≤ h,   Ax = b,   l ≤ x ≤ u

The dual program is  max −hᵀz − bᵀν + lᵀλ − uᵀμ  subject to  c + Gᵀz + Aᵀν = λ − μ,  z, λ, μ ≥ 0; at the optimum the two
values are equal. Where there is no optimum, two further linear programs prove it: the smallest overall violation of the
constraints, whose multipliers contradict them, and the steepest direction in which nothing stops the objective.

Reference: Q. Huangfu and J. Hall, Parallelizing the dual revised simplex method, Math. Prog. Comp. 10, 2018.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import (
    MAX_ITER,
    MAX_SECONDS,
    TOLERANCE,
    Array,
    Certificate,
    DataError,
    LearnableError,
    Progress,
    check_parameters,
    no_progress,
    one_thread_blas,
    optional,
)
from .interior_point import CentralPath, Constraints, mehrotra_step, system_of
from .kkt import KKTReport, kkt_report
from .programs import (
    InfeasibleError,
    Multipliers,
    ProgramSolution,
    QuadraticProgram,
    UnboundedError,
    equilibrate,
    largest,
)

_STALLED: Final = 6  # steps without progress: rounding, or no solution
_NEAR: Final = 1e-3  # residual from which the active constraints can be guessed
_GOAL: Final = 1e-12  # of the interior point's own residuals, in balanced units
_MENDS: Final = 12  # guesses of the active set
_EXACT: Final = 1e-13  # residual at which mending ends
_LARGE: Final = 1000  # variables from which a second BLAS thread pays
_FAR: Final = 1e12  # in balanced units: x or multipliers that run away
_LIMITS: Final = {"tol": TOLERANCE, "max_iter": MAX_ITER, "max_seconds": MAX_SECONDS}


class _Arrays(NamedTuple):
    """Where the method stands."""

    x: Array
    nu: Array
    z: Array
    s: Array


class _Point(CentralPath, _Arrays):
    complementary = (("s", "z"),)


def quadratic_program(
    P: Any,
    q: Any,
    G: Any = None,
    h: Any = None,
    A: Any = None,
    b: Any = None,
    lower: Any = None,
    upper: Any = None,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    max_seconds: float | None = None,
    progress: Progress = no_progress,
) -> ProgramSolution:
    """Minimise ½xᵀPx + qᵀx subject to Gx ≤ h, Ax = b and lower ≤ x ≤ upper.

    Parameters
    ----------
    P : (n, n) array or sparse array
        Symmetric, positive semidefinite.
    q : (n,) array
        The linear part.
    G, h : (m, n) and (m,) arrays, optional
        Inequalities; G may be sparse.
    A, b : (k, n) and (k,) arrays, optional
        Equalities; A may be sparse.
    lower, upper : (n,) arrays or numbers, optional
        Bounds; none by default.
    tol : float
        What the largest relative KKT residual has to reach.
    max_iter : int
        Most interior-point steps.
    max_seconds : float, optional
        Time after which the best point so far is returned; its certificate says what it is worth. The clock is asked
        between steps, each of which is one factorisation, O((n + k)³) if dense: of 3,000 variables, about a second.
    progress : callable
        Called as `progress(iteration, residual)`; True stops.

    Returns
    -------
    ProgramSolution
        The point, its multipliers, a `KKTReport` and a certificate.

    Raises
    ------
    InfeasibleError
        If the constraints contradict each other; its `proof` are multipliers that show it.
    UnboundedError
        If the objective falls without end; its `direction` shows where.

    Examples
    --------
    >>> from learnable.solvers import quadratic_program
    >>> found = quadratic_program([[2.0, 0.0], [0.0, 2.0]], [-2.0, -5.0], lower=0.0, upper=[2.0, 1.0])
    >>> found.x, found.value, found.multipliers.upper
    (array([1., 1.]), -5.0, array([0., 3.]))
    >>> found.certificate.holds
    True
    """
    check_parameters("quadratic_program", {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds}, _LIMITS)
    started = time.perf_counter()
    program = QuadraticProgram(P, q, G, h, A, b, lower, upper)
    if program.P is None:
        raise DataError("quadratic_program: P must be a matrix; got None. Use linear_program without P.")
    refuse_crossed_bounds(program, "quadratic_program")
    balanced = equilibrate(program)
    constraints = Constraints.of(balanced.program)
    _refuse_concave(constraints)

    def judged(x: Array, scaled: Multipliers) -> tuple[Array, Multipliers, KKTReport]:
        point = np.clip(balanced.point(x), program.lower, program.upper)
        multipliers = balanced.multipliers(scaled)
        return point, multipliers, kkt_report(program, point, program.flat(multipliers), multipliers.equality)

    def stop(iteration: int, value: float) -> bool:
        late = max_seconds is not None and time.perf_counter() - started > max_seconds
        return progress(iteration, value) or late

    with one_thread_blas() if len(program.q) < _LARGE else nullcontext():
        inner, n_iter, near = _interior_point(balanced.program, constraints, max_iter, stop)
        best = judged(inner.x, constraints.named(inner.nu, np.maximum(inner.z, 0.0)))
        for x, multipliers in _active_set(balanced.program, constraints, inner) if near else ():
            trial = judged(x, multipliers)
            best = trial if trial[2].worst < best[2].worst else best
            if best[2].worst <= _EXACT or stop(n_iter, best[2].worst):
                break
    if best[2].worst > tol and not stop(n_iter, best[2].worst):
        prove_no_solution(program, "quadratic_program")
    x, multipliers, report = best
    certificate = Certificate("stationarity", report.worst, tol, None, n_iter, time.perf_counter() - started)
    return ProgramSolution(
        x, report.value, program.dual_value(x, multipliers), multipliers, report, certificate, n_iter
    )


def _refuse_concave(constraints: Constraints) -> None:
    """Raise DataError unless P is positive semidefinite, to rounding."""
    lowest = constraints.lowest_curvature()
    if lowest < 0.0:
        raise DataError(
            "quadratic_program: P must be positive semidefinite; it has the negative eigenvalue "
            f"{lowest:.3g} (after balancing its diagonal). A program that is not convex may have many local minima."
        )


def _interior_point(
    program: QuadraticProgram, rows: Constraints, max_iter: int, stop: Callable[[int, float], bool]
) -> tuple[_Point, int, bool]:
    """Follow the central path; return the point with the smallest residual, the steps, and whether it is near."""
    point = _start(program, rows)
    best = point
    stalled = 0
    n_iter = 0
    lowest = least = apart = np.inf
    while True:
        r_x = program.curvature(point.x) + program.q + rows.A.T @ point.nu + rows.back(point.z)
        r_nu = rows.A @ point.x - rows.b
        r_z = rows.apply(point.x) + point.s - rows.h
        mu = point.centrality()
        residual = _residual(program, rows, point, r_x, r_nu, r_z)
        # While multipliers grow, the residual may rise though equations come to hold; near the end only it counts.
        broken = max(_largest(r_x), _largest(r_nu), _largest(r_z))
        falls = residual < 0.9 * lowest or (lowest > _NEAR and (mu < 0.9 * least or broken < 0.99 * apart))
        stalled = 0 if falls else stalled + 1
        apart = min(broken, apart)
        best, lowest, least = (point, residual, min(mu, least)) if residual < lowest else (best, lowest, min(mu, least))
        if (
            stop(n_iter, residual)
            or residual <= _GOAL
            or stalled >= _STALLED
            or n_iter >= max_iter
            or _runs_away(rows, point)
        ):
            return best, n_iter, lowest <= _NEAR
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            system = system_of(program.P, rows, point.s / point.z)

        def direction(
            t: Array, at: _Point = point, solve: Any = system.solve, r: tuple[Array, ...] = (r_x, r_nu, r_z)
        ) -> _Point:
            dx, d_nu, dz = solve(-r[0], -r[1], -r[2] - t / at.z)
            return _Point(dx, d_nu, dz, (t - at.s * dz) / at.z)

        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            step = mehrotra_step(point, direction, guarded=True).step
        if not step.is_finite():
            return best, n_iter, lowest <= _NEAR
        point = point.moved(step, point.longest(step))
        n_iter += 1


def _start(program: QuadraticProgram, rows: Constraints) -> _Point:
    """Minimise ½xᵀPx + qᵀx + ½‖Gx − h‖² subject to Ax = b, and move slacks and multipliers off zero."""
    x, nu, z = system_of(program.P, rows, np.ones(len(rows.h))).solve(-program.q, rows.b, rows.h)
    s = -z
    if len(s):
        short = -float(s.min())
        low = -float(z.min())
        s = s if short < 0 else s + (1.0 + short)
        z = z if low < 0 else z + (1.0 + low)
    return _Point(x, nu, z, s)


def _residual(
    program: QuadraticProgram, rows: Constraints, point: _Point, r_x: Array, r_nu: Array, r_z: Array
) -> float:
    """Return the largest residual of the point, where the program's numbers are about one."""
    top = max(1.0, _largest(point.x), _largest(point.nu), _largest(point.z))
    sides = max(_largest(r_nu), _largest(r_z)) / max(1.0, _largest(point.x))
    value = abs(program.value(point.x))
    return max(_largest(r_x) / top, sides, float(point.s @ point.z) / max(1.0, value))


def _runs_away(rows: Constraints, point: _Point) -> bool:
    far = _FAR * max(1.0, _largest(rows.h), _largest(rows.b))
    return max(_largest(point.x), _largest(point.nu), _largest(point.z)) > far


def _active_set(program: QuadraticProgram, rows: Constraints, start: _Point) -> Iterator[tuple[Array, Multipliers]]:
    """Yield points and multipliers of ever better guesses of the active constraints.

    A guess is solved as an equality-constrained program. Then inactive constraints that are violated become active, and
    active ones with a negative multiplier inactive (the primal-dual active-set method).
    """
    active = start.z > start.s
    seen: set[bytes] = set()
    for _ in range(_MENDS):
        if active.tobytes() in seen:
            return
        seen.add(active.tobytes())
        x, nu, z = rows.solved_with(program, active, start.x, start.nu, start.z)
        if not (np.isfinite(x).all() and np.isfinite(z).all() and np.isfinite(nu).all()):
            return
        yield x, rows.named(nu, np.maximum(z, 0.0))
        slack = rows.h - rows.apply(x)
        active = np.where(active, z > 0.0, slack < 0.0)


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))


_TIGHTEST: Final = 1e-10  # feasibility tolerance that HiGHS accepts
_VIOLATION: Final = 1e-8  # in balanced units: a smaller violation of the constraints is rounding
_FLAT: Final = 1e-12  # of the largest entry of P: a smaller Pd is zero
_LINEAR_LIMITS: Final = {"tol": TOLERANCE, "max_iter": optional(MAX_ITER), "max_seconds": MAX_SECONDS}


def linear_program(
    c: Any,
    G: Any = None,
    h: Any = None,
    A: Any = None,
    b: Any = None,
    lower: Any = None,
    upper: Any = None,
    *,
    tol: float = 1e-8,
    max_iter: int | None = None,
    max_seconds: float | None = None,
) -> ProgramSolution:
    """Minimise cᵀx subject to Gx ≤ h, Ax = b and lower ≤ x ≤ upper.

    Parameters
    ----------
    c : (n,) array
        The objective.
    G, h : (m, n) and (m,) arrays, optional
        Inequalities; G may be sparse.
    A, b : (k, n) and (k,) arrays, optional
        Equalities; A may be sparse.
    lower, upper : (n,) arrays or numbers, optional
        Bounds. Unlike in `scipy.optimize.linprog`, variables are free unless bounds are given.
    tol : float
        What the relative KKT residuals have to reach for the certificate to hold.
    max_iter, max_seconds : int and float, optional
        Limits of the simplex method; a program that reaches one has no solution to return.

    Returns
    -------
    ProgramSolution
        The point, its multipliers, a `KKTReport` and a certificate.

    Raises
    ------
    InfeasibleError
        If the constraints contradict each other; its `proof` are multipliers that show it.
    UnboundedError
        If the objective falls without end; its `direction` shows where.

    Examples
    --------
    >>> from learnable.solvers import linear_program
    >>> found = linear_program([-1.0, -2.0], [[1.0, 1.0]], [4.0], lower=0.0, upper=[3.0, 3.0])
    >>> found.x, found.value, found.multipliers.inequality
    (array([1., 3.]), -7.0, array([1.]))
    """
    check_parameters("linear_program", {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds}, _LINEAR_LIMITS)
    started = time.perf_counter()
    program = QuadraticProgram(None, c, G, h, A, b, lower, upper)
    refuse_crossed_bounds(program, "linear_program")
    balanced = equilibrate(program)
    found = _solve(balanced.program, max_iter, max_seconds)
    if found.status in (2, 3, 4):
        prove_no_solution(program, "linear_program")
    if found.x is None or found.status == 1:
        raise LearnableError(f"linear_program: no solution was found: {found.message}; raise max_iter or max_seconds.")
    x = np.clip(balanced.point(found.x), program.lower, program.upper)
    multipliers = balanced.multipliers(_multipliers_of(found, balanced.program))
    report = kkt_report(program, x, program.flat(multipliers), multipliers.equality)
    certificate = Certificate("stationarity", report.worst, tol, None, int(found.nit), time.perf_counter() - started)
    bound = program.dual_value(x, multipliers)
    return ProgramSolution(x, report.value, bound, multipliers, report, certificate, int(found.nit))


def refuse_crossed_bounds(program: QuadraticProgram, owner: str) -> None:
    """Raise InfeasibleError where a lower bound lies above the upper one."""
    crossed = np.flatnonzero(program.lower > program.upper)
    if not len(crossed):
        return
    j = int(crossed[0])
    n = len(program.q)
    one = np.zeros(n)
    one[j] = 1.0
    proof = Multipliers(np.zeros(len(program.h)), np.zeros(len(program.b)), one, one.copy())
    raise InfeasibleError(
        f"{owner}: the constraints contradict each other: lower[{j}] = {program.lower[j]:g} is above upper[{j}] = "
        f"{program.upper[j]:g}.",
        proof,
    )


def prove_no_solution(program: QuadraticProgram, owner: str) -> None:
    """Raise InfeasibleError or UnboundedError if one of them can be proven; return otherwise."""
    balanced = equilibrate(program)
    proof, violation = _contradiction(balanced.program)
    if proof is not None:
        raise InfeasibleError(
            f"{owner}: the constraints contradict each other: every point violates one of them by {violation:.2g} (in "
            "balanced units). The error's `proof` holds multipliers that combine them to 0 ≤ a negative number.",
            balanced.multipliers(proof, cost=1.0),
        )
    direction = _descent_without_end(balanced.program)
    if direction is not None:
        raise UnboundedError(
            f"{owner}: the objective falls without end along the error's `direction`; add constraints or bounds, or "
            "check the sign of the objective.",
            balanced.point(direction),
        )


def _contradiction(program: QuadraticProgram) -> tuple[Multipliers | None, float]:
    """Minimise the largest violation t of the constraints; if t > 0, its multipliers prove that there is no point."""
    n = len(program.q)
    low = program.bounded_below
    high = program.bounded_above
    one = sp.eye_array(n, format="csr")
    A = sp.csr_array(program.A)
    rows = sp.vstack([sp.csr_array(program.G), -one[low], one[high], A, -A], format="csr")
    right = np.concatenate([program.h, -program.lower[low], program.upper[high], program.b, -program.b])
    if not len(right):
        return None, 0.0
    widened = sp.hstack([rows, sp.csr_array(-np.ones((len(right), 1)))], format="csr")
    cost = np.r_[np.zeros(n), 1.0]
    found = _solve(QuadraticProgram(None, cost, widened, right, lower=np.r_[np.full(n, -np.inf), 0.0]), None, None)
    if found.x is None or not found.x[-1] > _VIOLATION:
        return None, 0.0
    z = np.maximum(-found.ineqlin.marginals, 0.0)
    ends = np.cumsum([len(program.h), len(low), len(high), len(program.b)])
    inequality, lower, upper, plus, minus = np.split(z, ends)
    proof = Multipliers(inequality, plus - minus, np.zeros(n), np.zeros(n))
    proof.lower[low] = lower
    proof.upper[high] = upper
    return proof, float(found.x[-1])


def _descent_without_end(program: QuadraticProgram) -> Array | None:
    """Return the steepest d in [−1, 1]ⁿ with Pd = 0, Ad = 0 and Gd ≤ 0 that no bound stops, if it descends."""
    n = len(program.q)
    low = np.full(n, -1.0)
    high = np.full(n, 1.0)
    low[program.bounded_below] = 0.0
    high[program.bounded_above] = 0.0
    level = [sp.csr_array(M) for M in (program.P, program.A) if M is not None]
    flat = sp.vstack(level, format="csr")
    found = _solve(
        QuadraticProgram(
            None, program.q, program.G, np.zeros(len(program.h)), flat, np.zeros(flat.shape[0]), low, high
        ),
        None,
        None,
    )
    if found.x is None or not float(program.q @ found.x) < -_VIOLATION * max(1.0, float(np.abs(program.q).max())):
        return None
    bend = float(np.abs(program.curvature(found.x)).max())
    return np.asarray(found.x) if bend <= _FLAT * largest(program.P) else None  # a slight curvature ends every fall


def _solve(program: QuadraticProgram, max_iter: int | None, max_seconds: float | None) -> Any:
    from scipy.optimize import linprog

    options: dict[str, Any] = {
        "primal_feasibility_tolerance": _TIGHTEST,
        "dual_feasibility_tolerance": _TIGHTEST,
    }
    options |= {} if max_iter is None else {"maxiter": max_iter}
    options |= {} if max_seconds is None else {"time_limit": max_seconds}
    return linprog(
        program.q,
        A_ub=program.G if len(program.h) else None,
        b_ub=program.h if len(program.h) else None,
        A_eq=program.A if len(program.b) else None,
        b_eq=program.b if len(program.b) else None,
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs",
        options=options,
    )


def _multipliers_of(found: Any, program: QuadraticProgram) -> Multipliers:
    """Translate SciPy's sensitivities: ∂f/∂h = −z, ∂f/∂b = −ν, ∂f/∂l = λ, ∂f/∂u = −μ."""
    z = -np.asarray(found.ineqlin.marginals) if len(program.h) else np.zeros(0)
    nu = -np.asarray(found.eqlin.marginals) if len(program.b) else np.zeros(0)
    lower = np.asarray(found.lower.marginals)
    upper = -np.asarray(found.upper.marginals)
    return Multipliers(np.maximum(z, 0.0), nu, np.maximum(lower, 0.0), np.maximum(upper, 0.0))
