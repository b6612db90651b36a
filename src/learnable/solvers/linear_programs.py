r"""Linear programs, by SciPy's HiGHS, with multipliers, KKT residuals and duality gap.

    min cᵀx   subject to   Gx ≤ h,   Ax = b,   l ≤ x ≤ u

The dual program is  max −hᵀz − bᵀν + lᵀλ − uᵀμ  subject to  c + Gᵀz + Aᵀν = λ − μ,  z, λ, μ ≥ 0; at the optimum the two
values are equal. Where there is no optimum, two further linear programs prove it: the smallest overall violation of the
constraints, whose multipliers contradict them, and the steepest direction in which nothing stops the objective.

Reference: Q. Huangfu and J. Hall, Parallelizing the dual revised simplex method, Math. Prog. Comp. 10, 2018.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.certificate import Certificate
from ..core.errors import LearnableError
from ..core.parameters import MAX_ITER, MAX_SECONDS, TOLERANCE, check_parameters, optional
from .equilibration import equilibrate
from .kkt import kkt_report
from .programs import InfeasibleError, Multipliers, ProgramSolution, QuadraticProgram, UnboundedError, largest

Array = NDArray[np.float64]

_TIGHTEST: Final = 1e-10  # feasibility tolerance that HiGHS accepts
_VIOLATION: Final = 1e-8  # in balanced units: a smaller violation of the constraints is rounding
_FLAT: Final = 1e-12  # of the largest entry of P: a smaller Pd is zero
_LIMITS: Final = {"tol": TOLERANCE, "max_iter": optional(MAX_ITER), "max_seconds": MAX_SECONDS}


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
    check_parameters("linear_program", {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds}, _LIMITS)
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
    j, n = int(crossed[0]), len(program.q)
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
    n, low, high = len(program.q), program.bounded_below, program.bounded_above
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
    proof.lower[low], proof.upper[high] = lower, upper
    return proof, float(found.x[-1])


def _descent_without_end(program: QuadraticProgram) -> Array | None:
    """Return the steepest d in [−1, 1]ⁿ with Pd = 0, Ad = 0 and Gd ≤ 0 that no bound stops, if it descends."""
    n = len(program.q)
    low, high = np.full(n, -1.0), np.full(n, 1.0)
    low[program.bounded_below], high[program.bounded_above] = 0.0, 0.0
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
    lower, upper = np.asarray(found.lower.marginals), -np.asarray(found.upper.marginals)
    return Multipliers(np.maximum(z, 0.0), nu, np.maximum(lower, 0.0), np.maximum(upper, 0.0))
