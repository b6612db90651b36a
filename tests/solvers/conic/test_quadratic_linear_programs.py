"""Linear programs: known optima, duality, and proofs where there is no optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.solvers.program_cases import combination, random_program

from learnable.core.errors import LearnableError, ParameterError
from learnable.solvers import InfeasibleError, QuadraticProgram, UnboundedError, kkt_report, linear_program


def test_the_wyndor_glass_company():
    """F. Hillier and G. Lieberman, Introduction to Operations Research, §3.1 and §6.2: x = (2, 6), prices 0, 3/2, 1."""
    found = linear_program([-3.0, -5.0], [[1, 0], [0, 2], [3, 2]], [4, 12, 18], lower=0.0)
    assert found.x == pytest.approx([2.0, 6.0])
    assert found.value == pytest.approx(-36.0)
    assert found.dual_value == pytest.approx(-36.0)
    assert found.multipliers.inequality == pytest.approx([0.0, 1.5, 1.0])
    assert found.certificate.holds


def test_bounds_and_equalities_have_the_signs_of_the_lagrangian():
    found = linear_program([1.0, 2.0, -1.0], A=[[1.0, 1.0, 1.0]], b=[1.0], lower=[0.0, 0.0, -1.0], upper=0.5)
    assert found.x == pytest.approx([0.5, 0.0, 0.5])
    low, high = found.multipliers.lower, found.multipliers.upper
    assert np.array([1.0, 2.0, -1.0]) + found.multipliers.equality - low + high == pytest.approx(np.zeros(3), abs=1e-12)
    assert (low >= 0).all() and (high >= 0).all()


@given(st.integers(0, 10_000))
def test_primal_equals_dual_and_the_kkt_conditions_hold(seed):
    given_ = random_program(seed)
    found = linear_program(given_.q, given_.G, given_.h, given_.A, given_.b, given_.lower, given_.upper)
    assert found.certificate.holds
    assert found.value == pytest.approx(found.dual_value, rel=1e-9, abs=1e-9)
    program = QuadraticProgram(None, given_.q, given_.G, given_.h, given_.A, given_.b, given_.lower, given_.upper)
    assert kkt_report(program, found.x, program.flat(found.multipliers), found.multipliers.equality).holds(1e-8)


def test_sparse_is_dense():
    given_ = random_program(7)
    dense = linear_program(given_.q, given_.G, given_.h, lower=given_.lower, upper=given_.upper)
    sparse = linear_program(given_.q, sp.csr_array(given_.G), given_.h, lower=given_.lower, upper=given_.upper)
    assert sparse.x == pytest.approx(dense.x, rel=1e-12)


@pytest.mark.parametrize(
    "constraints",
    [
        {"G": [[1.0, 1.0]], "h": [-1.0], "lower": 0.0},
        {"A": [[1.0, 1.0], [1.0, 1.0]], "b": [1.0, 2.0]},
        {"A": [[1.0, 0.0]], "b": [3.0], "upper": [2.0, 2.0]},
        {"lower": [1.0, 0.0], "upper": [0.0, 1.0]},
        {"G": [[1e8, 0.0], [-1e8, 0.0]], "h": [1.0, -2.0]},
    ],
)
def test_a_contradiction_is_proven(constraints):
    with pytest.raises(InfeasibleError, match="contradict") as caught:
        linear_program([1.0, 1.0], **constraints)
    program = QuadraticProgram(None, [1.0, 1.0], **constraints)
    left, right = combination(program, caught.value.proof)
    size = max(np.abs(value).max(initial=0.0) for value in caught.value.proof)
    assert np.abs(left).max() <= 1e-9 * size * max(1.0, np.abs(program.G).max(initial=0.0))
    assert right < 0
    assert all((caught.value.proof[i] >= 0).all() for i in (0, 2, 3))


@pytest.mark.parametrize(
    "constraints",
    [{"lower": 0.0}, {}, {"G": [[1.0, -1.0]], "h": [1.0], "lower": 0.0}, {"A": [[1.0, 1.0]], "b": [1.0]}],
)
def test_a_fall_without_end_is_proven(constraints):
    with pytest.raises(UnboundedError, match="without end") as caught:
        linear_program([-1.0, -2.0], **constraints)
    program, d = QuadraticProgram(None, [-1.0, -2.0], **constraints), caught.value.direction
    assert program.q @ d < 0
    assert (program.G @ d <= 1e-12).all() and np.abs(program.A @ d).max(initial=0.0) <= 1e-12
    assert (d[program.bounded_below] >= 0).all() and (d[program.bounded_above] <= 0).all()


@pytest.mark.parametrize("unit", [1e-140, 1e140, 1e-20])
def test_units_do_not_matter(unit):
    found = linear_program([-3.0, -5.0], [[1, 0], [0, 2], [3, 2]], np.array([4, 12, 18]) * unit, lower=0.0)
    assert found.x / unit == pytest.approx([2.0, 6.0], rel=1e-12)
    assert found.certificate.holds
    rows = np.array([[1, 0], [0, 2], [3, 2]]) * unit
    assert linear_program([-3.0, -5.0], rows, np.array([4, 12, 18]) * unit, lower=0.0).x == pytest.approx([2.0, 6.0])


def test_limits_and_bad_calls():
    with pytest.raises(ParameterError, match="tol"):
        linear_program([1.0], tol=-1.0)
    with pytest.raises(LearnableError, match="max_iter"):
        linear_program(np.ones(60), -np.random.default_rng(0).random((80, 60)), -np.ones(80), lower=0.0, max_iter=1)
