"""Quadratic programs: closed forms, an independent solver, duality, and proofs where there is no optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.isotonic import isotonic_regression
from tests.oracles.programs import brute_force
from tests.solvers.program_cases import combination, parts, random_program

from learnable.core.errors import DataError, ParameterError
from learnable.solvers import InfeasibleError, QuadraticProgram, UnboundedError, quadratic_program


def test_the_example_of_the_book():
    """J. Nocedal and S. Wright, Numerical Optimization, example 16.4: x = (1.4, 1.7), multiplier 0.8."""
    G = [[-1.0, 2.0], [1.0, 2.0], [1.0, -2.0], [-1.0, 0.0], [0.0, -1.0]]
    found = quadratic_program(2 * np.eye(2), [-2.0, -5.0], G, [2.0, 6.0, 2.0, 0.0, 0.0])
    assert found.x == pytest.approx([1.4, 1.7], rel=1e-12)
    assert found.multipliers.inequality == pytest.approx([0.8, 0, 0, 0, 0], abs=1e-12)
    assert found.value == pytest.approx(found.dual_value, rel=1e-12)


def test_without_inequalities_it_is_one_linear_system():
    """Nocedal and Wright, example 16.2: x = (2, −1, 1), ν = (−3, 2) in our sign."""
    P = [[6.0, 2.0, 1.0], [2.0, 5.0, 2.0], [1.0, 2.0, 4.0]]
    found = quadratic_program(P, [-8.0, -3.0, -3.0], A=[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], b=[3.0, 0.0])
    assert found.x == pytest.approx([2.0, -1.0, 1.0], rel=1e-13)
    assert found.multipliers.equality == pytest.approx([-3.0, 2.0], rel=1e-13)
    assert found.n_iter <= 2


def test_a_box_alone_is_clipping():
    rng = np.random.default_rng(0)
    d, q = rng.uniform(0.1, 10, 50), rng.normal(size=50)
    found = quadratic_program(np.diag(d), q, lower=-0.1, upper=0.2)
    np.testing.assert_allclose(found.x, np.clip(-q / d, -0.1, 0.2), atol=1e-14)


def test_nonnegative_least_squares():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 12)), rng.normal(size=40)
    found = quadratic_program(X.T @ X, -X.T @ y, lower=0.0)
    np.testing.assert_allclose(found.x, nnls(X, y)[0], atol=1e-12)


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_every_program_is_certified_to_rounding(seed):
    program = random_program(seed)
    found = quadratic_program(**parts(program))
    assert found.certificate.value <= 1e-9
    assert found.report.gap == pytest.approx(0.0, abs=1e-9)
    assert program.inequalities(found.x).value.max(initial=0.0) <= 1e-9 * (1 + np.abs(found.x).max())


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_small_programs_against_every_active_set(seed):
    program = random_program(seed, most=4)
    found = quadratic_program(**parts(program))
    assert found.value == pytest.approx(brute_force(program), rel=1e-8, abs=1e-8)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_sparse_is_dense(seed):
    program = random_program(seed)
    given_ = parts(program)
    sparse = {name: sp.csr_array(given_[name]) for name in ("P", "G", "A")}
    one, other = quadratic_program(**given_), quadratic_program(**(given_ | sparse))
    assert other.value == pytest.approx(one.value, rel=1e-9, abs=1e-9)
    assert other.certificate.holds


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_no_feasible_point_is_better(seed):
    """The dual value bounds the objective from below at every feasible point."""
    program = random_program(seed)
    found, rng = quadratic_program(**parts(program)), np.random.default_rng(seed)
    ends = [quadratic_program(**(parts(program) | {"q": 10 * rng.normal(size=len(program.q))})).x for _ in range(3)]
    for share in rng.dirichlet(np.ones(3), size=5):
        x = share @ np.array(ends)
        assert program.value(x) >= found.dual_value - 1e-8 * (1 + abs(found.dual_value))


@pytest.mark.parametrize("n", [50, 500, 2000])
def test_isotonic_regression(n):
    """Hundreds of sparse constraints, nearly all active, with multipliers that are sums over the rows."""
    y = np.cumsum(np.random.default_rng(0).normal(size=n))
    D = sp.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[1, 0], shape=(n - 1, n))
    found = quadratic_program(sp.eye_array(n), -y, D, np.zeros(n - 1))
    assert found.certificate.holds
    np.testing.assert_allclose(found.x, isotonic_regression(y), atol=1e-10 * n)


@pytest.mark.parametrize("C", [1e-12, 1.0, 100.0, 1e6, 1e12])
@pytest.mark.parametrize("offset", [True, False])
def test_the_dual_of_a_support_vector_machine(C, offset):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1.0, -1.0)
    Q = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(-1)) * np.outer(y, y)
    equality = {"A": y[None], "b": [0.0]} if offset else {}
    found = quadratic_program(Q, -np.ones(200), lower=0.0, upper=C, **equality)
    assert found.certificate.value <= 1e-9
    assert found.x.min() >= 0.0 and found.x.max() <= C


def test_fixed_variables_are_equations():
    found = quadratic_program(np.eye(3), [-1.0, -1.0, -1.0], lower=[0.5, -np.inf, 0.0], upper=[0.5, np.inf, 0.25])
    assert found.x == pytest.approx([0.5, 1.0, 0.25])
    assert found.multipliers.upper == pytest.approx([0.5, 0.0, 0.75])
    assert found.certificate.holds
    sparse = quadratic_program(sp.eye_array(2), [1.0, 2.0], lower=[1.0, 3.0], upper=[1.0, 3.0])
    assert sparse.x.tolist() == [1.0, 3.0] and sparse.multipliers.lower == pytest.approx([2.0, 5.0])


def test_repeated_constraints_do_no_harm():
    row = [[1.0, 1.0]] * 3
    found = quadratic_program(np.eye(2), [0.0, 0.0], [[-1.0, 0.0]] * 4, [-0.7] * 4, row, [1.0] * 3)
    assert found.x == pytest.approx([0.7, 0.3], rel=1e-10)
    assert found.certificate.holds


def test_one_variable_and_a_flat_objective():
    assert quadratic_program([[0.0]], [0.0], lower=-1.0, upper=1.0).certificate.holds
    assert quadratic_program([[1.0]], [-3.0]).x == pytest.approx([3.0])
    assert quadratic_program([[0.0]], [2.0], lower=-1.0).x == pytest.approx([-1.0])


def test_a_cone_whose_best_point_is_its_tip():
    found = quadratic_program(np.eye(2), [1.0, 1.0], [[-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0])
    assert np.abs(found.x).max() <= 1e-12
    assert found.certificate.holds


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "constraints",
    [
        {"G": [[1.0, 1.0]], "h": [-1.0], "lower": 0.0},
        {"A": [[1.0, 1.0], [1.0, 1.0]], "b": [1.0, 2.0]},
        {"A": [[1.0, 0.0]], "b": [3.0], "upper": [2.0, 2.0]},
        {"lower": [1.0, 0.0], "upper": [0.0, 1.0]},
        {"G": [[1.0, 0.0], [-1.0, 0.0]], "h": [1.0, -1.001]},
    ],
)
def test_a_contradiction_is_proven(constraints, kind):
    with pytest.raises(InfeasibleError, match="quadratic_program: the constraints contradict") as caught:
        quadratic_program(kind(np.eye(2)), [1.0, 1.0], **constraints)
    left, right = combination(QuadraticProgram(None, [1.0, 1.0], **constraints), caught.value.proof)
    assert np.abs(left).max() <= 1e-9 * max(np.abs(value).max(initial=0.0) for value in caught.value.proof)
    assert right < 0


@pytest.mark.parametrize("constraints", [{}, {"lower": 0.0}, {"A": [[1.0, 0.0]], "b": [1.0]}])
def test_a_fall_without_end_is_proven(constraints):
    P, q = np.diag([1.0, 0.0]), np.array([1.0, -1.0])
    with pytest.raises(UnboundedError) as caught:
        quadratic_program(P, q, **constraints)
    d = caught.value.direction
    assert np.abs(P @ d).max() <= 1e-10 * np.abs(d).max() and q @ d < 0


def test_a_flat_direction_that_costs_nothing_is_no_fall():
    found = quadratic_program(np.diag([1.0, 0.0]), [-1.0, 0.0])
    assert found.x[0] == pytest.approx(1.0)
    assert found.certificate.holds


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("P", [np.diag([1.0, -1.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), [[0.0, 1.0], [1.0, 0.0]]])
def test_what_is_not_convex_is_refused(P, kind):
    with pytest.raises(DataError, match=r"positive semidefinite; it has the negative eigenvalue -1"):
        quadratic_program(kind(np.asarray(P)), [0.0, 0.0], lower=-1.0, upper=1.0)


def test_a_gram_matrix_that_rounding_made_indefinite_is_accepted():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    K = X @ X.T
    assert np.linalg.eigvalsh(K)[0] < 0
    assert quadratic_program(K, -np.ones(60), lower=0.0, upper=1.0).certificate.holds


@pytest.mark.parametrize("x_unit", [1e-90, 1e-5, 1e90])
@pytest.mark.parametrize("cost", [1e-100, 1e100])
def test_units_do_not_matter(x_unit, cost):
    G = [[-1.0, 2.0], [1.0, 2.0], [1.0, -2.0], [-1.0, 0.0], [0.0, -1.0]]
    P = 2 * np.eye(2) * cost / x_unit / x_unit
    found = quadratic_program(P, np.array([-2.0, -5.0]) / x_unit * cost, G, np.array([2.0, 6.0, 2.0, 0, 0]) * x_unit)
    assert found.x / x_unit == pytest.approx([1.4, 1.7], rel=1e-9)
    assert found.certificate.holds


def test_limits_return_the_best_so_far_with_its_worth():
    program = random_program(11, most=30)
    found = quadratic_program(**parts(program), max_iter=1)
    assert found.n_iter == 1
    assert np.isfinite(found.x).all()
    seen = []
    quadratic_program(**parts(program), progress=lambda i, value: seen.append((i, value)))
    assert [i for i, _ in seen][:3] == [0, 1, 2]
    assert seen[-1][1] < 1e-6
    timed = quadratic_program(**parts(program), max_seconds=1e-9)
    assert timed.n_iter == 0 and not timed.certificate.holds


def test_bad_calls():
    with pytest.raises(ParameterError, match="max_iter"):
        quadratic_program([[1.0]], [1.0], max_iter=0)
    with pytest.raises(DataError, match="linear_program"):
        quadratic_program(None, [1.0])


def test_steps_that_would_cycle_are_shortened():
    """Plain predictor–corrector steps go round in a circle of four points here, from μ = 0.5 up to 1.7 and back."""
    P = [[1.84604484, -0.97215097], [-0.97215097, 0.98545422]]
    bounds = {"lower": [0.0, -2.78097831], "upper": [0.72535258, 0.0]}
    found = quadratic_program(P, [-1.0, 1.0], A=[[1.0, 1.0]], b=[0.0], **bounds)
    best = 2.0 / (P[0][0] + P[1][1] - 2 * P[0][1])  # on the line x₁ = −x₂, inside the bounds
    assert found.certificate.holds
    assert found.x == pytest.approx([best, -best], rel=1e-9)
