"""Duality of convex programs: weak always, strong under Slater, a gap without; multipliers as rates of change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from learnable.core.errors import DataError, ParameterError
from learnable.solvers import (
    ConvexProgram,
    QuadraticProgram,
    dual_value,
    duality_gap,
    kkt_report,
    lagrangian,
    quadratic_program,
    set_optimality,
    slater_point,
)


def ball_program(seed, radius=1.0, n=3):
    """Return min ½‖x − c‖² + Σ exp(aᵀx) over a ball."""
    rng = np.random.default_rng(seed)
    c, a = 3.0 * rng.normal(size=n), rng.normal(size=n)
    return ConvexProgram(
        lambda x: 0.5 * (x - c) @ (x - c) + np.exp(a @ x),
        lambda x: x - c + a * np.exp(a @ x),
        lambda x: np.array([x @ x - radius**2]),
        lambda x: 2.0 * x[None, :],
    )


def solve(program, n=3):
    """Return the optimum by a solver that knows nothing of this library."""
    constraint = {
        "type": "ineq",
        "fun": lambda x: -program.inequality(x),
        "jac": lambda x: -program.inequality_jacobian(x),
    }
    options = {"ftol": 1e-15, "maxiter": 500}
    return minimize(program.objective, np.zeros(n), jac=program.gradient, constraints=constraint, options=options).x


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), strength=st.floats(0.0, 10.0), point=st.floats(-0.5, 0.5))
def test_weak_duality_always(seed, strength, point):
    program = ball_program(seed)
    x = np.full(3, point)
    found = dual_value(program, np.zeros(3), [strength])
    assert found.slope <= 1e-6
    assert found.value <= program.objective(x) + 1e-9 * (1 + abs(program.objective(x)))
    assert found.value <= lagrangian(program, x, [strength]) + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_strong_duality_under_slater(seed):
    program = ball_program(seed)
    assert slater_point(program, np.full(3, 2.0)).holds
    x = solve(program)
    report = duality_gap(program, x, tolerance=1e-5)
    assert report.strong
    assert kkt_report(program, x, tolerance=1e-5).holds(1e-5)
    assert not duality_gap(program, 0.9 * x, tolerance=1e-5).strong


@pytest.mark.parametrize("seed", range(3))
def test_minus_the_multiplier_is_the_rate_of_change(seed):
    strength = duality_gap(ball_program(seed), solve(ball_program(seed)), tolerance=1e-5).inequality[0]
    step = 1e-3

    def optimum(u):
        program = ball_program(seed, radius=np.sqrt(1.0 + u))
        return program.objective(solve(program))

    assert (optimum(step) - optimum(-step)) / (2 * step) == pytest.approx(-strength, rel=1e-3, abs=1e-4)


def test_without_slater_no_multiplier_closes_the_gap():
    """min x subject to x² ≤ 0: p* = 0, and d(λ) = −1/(4λ) is below it for every λ."""
    program = ConvexProgram(lambda x: x[0], lambda x: np.ones(1), lambda x: x @ x, lambda x: 2.0 * x[None, :])
    assert not slater_point(program, [1.0]).holds
    for strength in (0.1, 1.0, 50.0):
        assert dual_value(program, [1.0], [strength]).value == pytest.approx(-1.0 / (4.0 * strength), rel=1e-6)
        assert not duality_gap(program, [0.0], [strength]).strong
    assert not kkt_report(program, [0.0]).holds(1e-3)


def test_a_lagrangian_that_falls_without_end():
    program = ConvexProgram(lambda x: -x[0], lambda x: -np.ones(1), lambda x: x[0] - 1.0, lambda x: np.ones((1, 1)))
    assert dual_value(program, [0.0], [0.5]).value == -np.inf
    assert dual_value(program, [0.0], [1.0]).value == pytest.approx(-1.0)


def test_quadratic_programs_have_the_dual_of_their_solver():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    program = QuadraticProgram(
        root @ root.T + np.eye(4), rng.normal(size=4), A=np.ones((1, 4)), b=[1.0], lower=np.zeros(4)
    )
    solution = quadratic_program(program.P, program.q, A=program.A, b=program.b, lower=program.lower)
    report = duality_gap(program, solution.x, tolerance=1e-5)
    assert report.strong
    assert report.dual == pytest.approx(solution.report.value, rel=1e-5)


def test_a_bound_within_a_radius():
    program = ball_program(1)
    found = dual_value(program, np.zeros(3), [0.7])
    loose = type(found)(found.value + 0.1, found.point, 0.2)
    assert loose.bound(1.0) == pytest.approx(found.value - 0.1)


@pytest.mark.parametrize("seed", range(3))
def test_optimality_over_a_set(seed):
    program = ball_program(seed)

    def onto_ball(z):
        return z / max(1.0, np.linalg.norm(z))

    x = solve(program)
    assert set_optimality(program.gradient, x, onto_ball) <= 1e-5
    assert set_optimality(program.gradient, 0.5 * x, onto_ball) > 1e-2


def test_bad_multipliers_are_told():
    program = ball_program(0)
    with pytest.raises(ParameterError, match="must be >= 0"):
        dual_value(program, np.zeros(3), [-1.0])
    with pytest.raises(DataError, match="must be 1 finite numbers"):
        lagrangian(program, np.zeros(3), [1.0, 2.0])
