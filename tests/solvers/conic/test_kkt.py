"""The conditions of optimality: zero at optima, and each one large where it alone is broken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.solvers.program_cases import parts, random_program

from learnable.core.errors import LearnableError
from learnable.solvers import ConvexProgram, QuadraticProgram, kkt_report, quadratic_program

BOX = QuadraticProgram([[2.0, 0.0], [0.0, 2.0]], [-2.0, -5.0], lower=[0.0, 0.0], upper=[2.0, 1.0])


def test_the_textbook_example_of_a_disc():
    """min x₁ + x₂ on the disc of radius √2: x = (−1, −1), λ = ½."""
    disc = ConvexProgram(lambda x: x[0] + x[1], lambda x: np.ones(2), lambda x: x @ x - 2.0, lambda x: 2 * x)
    report = kkt_report(disc, [-1.0, -1.0])
    assert report.holds(1e-12)
    assert report.inequality == pytest.approx([0.5])
    assert report.active.tolist() == [True]
    assert "1 of 1 inequalities active" in repr(report)


def test_derivatives_by_differences_are_as_good_as_their_digits():
    disc = ConvexProgram(lambda x: x[0] + x[1], inequality=lambda x: x @ x - 2.0)
    assert kkt_report(disc, [-1.0, -1.0]).holds(1e-8)


def test_equalities_of_functions():
    """The largest entropy with a given mean is a geometric law: multipliers found from the point alone."""
    values = np.arange(4.0)
    p = np.exp(-0.4 * values) / np.exp(-0.4 * values).sum()
    program = ConvexProgram(
        lambda x: float(x @ np.log(x)),
        lambda x: np.log(x) + 1,
        A=[np.ones(4), values],
        b=[1.0, p @ values],
    )
    report = kkt_report(program, p)
    assert report.holds(1e-12)
    assert report.equality[1] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("x", "inequality", "broken"),
    [
        ([1.0, 1.0], [0.0, 0.0, 0.0, 3.0], None),
        ([0.5, 1.0], [0.0, 0.0, 0.0, 3.0], "stationarity"),
        ([1.0, 1.0], [0.0, 0.0, 0.0, 2.0], "stationarity"),
        ([1.0, 1.1], [0.0, 0.0, 0.0, 3.0], "primal"),
        ([1.0, 1.0], [0.0, 0.0, -1.0, 3.0], "dual"),
        ([1.0, 0.5], [0.0, 0.0, 0.0, 4.0], "complementarity"),
    ],
)
def test_each_condition_is_seen_when_it_is_broken(x, inequality, broken):
    report = kkt_report(BOX, x, inequality, [])
    assert report.holds(1e-15) == (broken is None)
    if broken is not None:
        assert getattr(report, broken) > 0.04


def test_the_gap_bounds_the_distance_to_the_optimum():
    """At a stationary point of the Lagrangian, f(x) − gap is the dual value, below every feasible value."""
    program = QuadraticProgram(np.eye(2), [-1.0, -2.0], [[1.0, 1.0]], [1.0])
    best = quadratic_program(np.eye(2), [-1.0, -2.0], [[1.0, 1.0]], [1.0]).value
    for z in (0.5, 0.8, 1.0, 1.4):
        x = np.array([1.0, 2.0]) - z  # where Px + q + Gᵀz = 0
        report = kkt_report(program, x, [z], [])
        assert report.stationarity <= 1e-15
        assert program.value(x) + z * (x.sum() - 1.0) <= best + 1e-12


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_multipliers_found_from_the_point_alone_certify_an_optimum(seed):
    program = random_program(seed)
    found = quadratic_program(**parts(program))
    assert kkt_report(program, found.x, tolerance=1e-9).worst <= 1e-7


@given(st.integers(0, 10_000), st.floats(1e-3, 0.5))
def test_a_point_that_is_not_optimal_is_told(seed, share):
    """Moving from the optimum towards another feasible point of a strictly convex program breaks a condition."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    program = QuadraticProgram(np.eye(n), 3 * rng.normal(size=n), lower=-np.ones(n), upper=np.ones(n))
    best = np.clip(-program.q, -1.0, 1.0)
    other = rng.uniform(-1.0, 1.0, n)
    x = best + share * (other - best)
    rise = program.value(x) - program.value(best)
    report = kkt_report(program, x)
    if rise > 1e-6:
        assert report.worst > 1e-9


def test_units_do_not_matter():
    plain = kkt_report(BOX, [0.9, 1.0], [0.0, 0.0, 0.0, 3.0], [])
    for x_unit, cost in ((1e100, 1.0), (1e-120, 1e-50), (2.0**-400, 2.0**-300)):
        scaled = QuadraticProgram(
            cost * BOX.P / x_unit / x_unit, cost * BOX.q / x_unit, lower=BOX.lower * x_unit, upper=BOX.upper * x_unit
        )
        other = kkt_report(scaled, np.array([0.9, 1.0]) * x_unit, np.array([0, 0, 0, 3.0]) * cost / x_unit, [])
        for name in ("stationarity", "primal", "dual", "complementarity", "gap"):
            assert getattr(other, name) == pytest.approx(getattr(plain, name), rel=1e-9), name


def test_bad_calls_are_refused():
    with pytest.raises(LearnableError, match="program must be"):
        kkt_report(lambda x: x, [1.0])
    with pytest.raises(LearnableError, match="inequality must be 4 finite numbers"):
        kkt_report(BOX, [1.0, 1.0], [1.0], [])
    with pytest.raises(LearnableError, match="inequality must have 4 multipliers"):
        kkt_report(BOX, [1.0, 1.0], equality=[])
    with pytest.raises(LearnableError, match="finite"):
        kkt_report(BOX, [1.0, np.nan])
    with pytest.raises(LearnableError, match="gradient must have the shape"):
        kkt_report(ConvexProgram(lambda x: 0.0, lambda x: np.ones(3)), [1.0])
    with pytest.raises(LearnableError, match="inequality_jacobian"):
        kkt_report(ConvexProgram(lambda x: 0.0, None, lambda x: x, lambda x: np.ones((3, 1))), [1.0])
    with pytest.raises(LearnableError, match="A and b"):
        kkt_report(ConvexProgram(lambda x: 0.0, A=np.ones((2, 2)), b=[1.0]), [1.0])
