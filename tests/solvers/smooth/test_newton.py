"""Newton's method: its numbers on paper, its quadratic convergence, and its safety far from the optimum."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.solvers.functions import (
    definite_matrix,
    quadratic,
    root_of_one_plus_square,
    soft_plus_sum,
    square_plus_exponential,
)

from learnable.core.errors import LearnableError, NoRootError
from learnable.solvers import newton, newton_root
from learnable.solvers.smooth.newton import factorised


@pytest.mark.parametrize("as_product", [False, True])
def test_a_quadratic_is_solved_at_once(as_product):
    A, b = definite_matrix(0, [1.0, 2.0, 5.0]), np.array([1.0, -2.0, 3.0])
    found = newton(quadratic(A, b, as_product=as_product), np.array([10.0, 20.0, -30.0]), tol=1e-10)
    assert found.n_iter <= (5 if as_product else 1)  # conjugate gradients are stopped early on purpose
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=1e-10)
    assert found.converged


def test_iterates_on_paper():
    """w² + e^w from 0: −.33333, −.35169, −.35173; the minimum is .8271840 at −.3517337."""
    iterates = [newton(square_plus_exponential(), np.zeros(1), tol=0.0, max_iter=k).x[0] for k in (1, 2, 3)]
    assert iterates == pytest.approx([-1 / 3, -0.35169, -0.35173], abs=6e-6)
    found = newton(square_plus_exponential(), np.zeros(1), tol=1e-14)
    assert found.x[0] == pytest.approx(-0.3517337, abs=5e-8)
    assert found.value == pytest.approx(0.8271840, abs=5e-8)


def test_convergence_is_quadratic():
    optimum = newton(square_plus_exponential(), np.zeros(1), tol=1e-15).x[0]
    errors = [abs(newton(square_plus_exponential(), np.ones(1), tol=0.0, max_iter=k).x[0] - optimum) for k in (1, 2, 3)]
    # e₊ ≈ ½ f‴/f″ e², and ½ f‴/f″ = ½ e^w/(2 + e^w) is about .13 here.
    for before, after in pairwise(errors):
        assert 0.08 < after / before**2 < 0.2


@pytest.mark.parametrize("start", [1.5, -20.0, 1e3])
def test_line_search_rescues_a_start_from_which_full_steps_diverge(start):
    problem = root_of_one_plus_square()
    x = np.array([start])
    full_step = x - problem.evaluate(x).gradient / problem.hessian(x)[0]
    assert abs(full_step[0]) > abs(start)
    found = newton(problem, x, tol=1e-12)
    assert found.converged
    assert abs(found.x[0]) <= 1e-12


def test_the_value_never_rises():
    values = [newton(soft_plus_sum(), np.full(5, 10.0), tol=0.0, max_iter=k).value for k in range(1, 12)]
    assert all(later <= earlier for earlier, later in pairwise(values))


def test_hessian_as_a_product_reaches_the_same_optimum():
    as_matrix = newton(soft_plus_sum(), np.zeros(5), tol=1e-12)
    as_product = newton(soft_plus_sum(as_product=True), np.zeros(5), tol=1e-12)
    assert as_matrix.converged and as_product.converged
    np.testing.assert_allclose(as_product.x, as_matrix.x, rtol=1e-10)


def test_chord_steps_reach_the_same_optimum_with_fewer_hessians():
    always, chord = soft_plus_sum(), soft_plus_sum()
    one = newton(always, np.zeros(5), tol=1e-12)
    other = newton(chord, np.zeros(5), tol=1e-12, refresh_cost=20.0)
    assert one.converged and other.converged
    np.testing.assert_allclose(other.x, one.x, rtol=1e-10)
    assert always.hessians == one.n_iter
    assert chord.hessians < always.hessians


def test_progress_sees_every_step_and_can_stop_it():
    seen = []

    def progress(iteration, measure):
        seen.append((iteration, measure))
        return iteration == 2

    found = newton(soft_plus_sum(), np.full(5, 3.0), tol=1e-12, progress=progress)
    assert [iteration for iteration, _ in seen] == [1, 2]
    assert seen[-1][1] == found.measure
    assert found.n_iter == 2
    assert not found.converged


def test_a_start_at_the_optimum_needs_no_step():
    A = np.eye(2)
    found = newton(quadratic(A, np.array([1.0, 2.0])), np.array([1.0, 2.0]))
    assert found.n_iter == 0
    assert found.converged


def test_max_iter_is_respected_and_reported():
    found = newton(soft_plus_sum(), np.full(5, 10.0), tol=0.0, max_iter=1)
    assert found.n_iter == 1
    assert not found.converged


def test_an_unreachable_tolerance_ends_at_rounding():
    found = newton(soft_plus_sum(), np.zeros(5), tol=0.0, max_iter=1000)
    assert found.n_iter < 1000
    assert found.measure <= 1e-12


def test_solution_describes_its_own_point():
    problem = soft_plus_sum()
    found = newton(problem, np.zeros(5), tol=1e-10)
    at = problem.evaluate(found.x)
    assert (found.value, found.measure) == (at.value, at.measure)
    assert np.array_equal(found.gradient, at.gradient)


def test_start_is_not_overwritten():
    start = np.zeros(5)
    newton(soft_plus_sum(), start)
    assert not start.any()


def test_a_wildly_scaled_hessian_is_still_factorised():
    scale = np.array([1e150, 1.0, 1e-150])
    A = definite_matrix(1, [1.0, 2.0, 3.0])
    g = scale * np.array([1.0, 2.0, 3.0])
    x = factorised(A * np.outer(scale, scale))(g)
    np.testing.assert_allclose(x * scale, np.linalg.solve(A, [1.0, 2.0, 3.0]), rtol=1e-13)


@pytest.mark.parametrize("A", [np.diag([1.0, 0.0]), np.ones((2, 2)), np.array([[1.0, 1 + 1e-15], [1 + 1e-15, 1.0]])])
def test_a_singular_hessian_still_gives_descent(A):
    for g in (np.array([1.0, 0.5]), np.array([1.0, -1.0])):
        step = -factorised(A)(g)
        assert np.isfinite(step).all()
        assert g @ step < 0


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_root_of_a_square(a, start):
    found = newton_root(lambda x: x * x - a, lambda x: 2 * x, start)
    assert found == pytest.approx(a**0.5, rel=1e-9)


def test_root_of_two():
    assert newton_root(lambda x: x * x - 2, lambda x: 2 * x, 1.0) == pytest.approx(2**0.5, rel=1e-15)


@pytest.mark.parametrize("start", [2.0, -5.0, 100.0])
def test_root_is_found_where_full_steps_overshoot(start):
    full_step = start - np.arctan(start) * (1 + start**2)
    assert abs(full_step) > abs(start)
    assert newton_root(np.arctan, lambda x: 1 / (1 + x * x), start) == pytest.approx(0.0, abs=1e-12)


def test_a_start_at_the_root_is_the_root():
    assert newton_root(lambda x: x, lambda x: 1.0, 0.0) == 0.0
    assert newton_root(lambda x: x**2, lambda x: 2 * x, 0.0) == 0.0


def test_a_flat_start_that_is_no_root_is_refused():
    with pytest.raises(LearnableError, match="newton_root"):
        newton_root(lambda x: x * x - 2, lambda x: 2 * x, 0.0)


def test_a_function_without_root_is_refused():
    with pytest.raises(LearnableError, match="newton_root"):
        newton_root(lambda x: x * x + 1, lambda x: 2 * x, 3.0)


def test_a_start_where_the_function_is_not_finite_is_refused():
    with pytest.raises(NoRootError, match="f = nan"):
        newton_root(lambda x: np.nan, lambda x: 1.0, 1.0)


def test_a_step_out_of_the_domain_is_halved():
    def log_minus_one(x):
        return np.log(x) - 1 if x > 0 else np.nan

    assert newton_root(log_minus_one, lambda x: 1 / x, 20.0) == pytest.approx(np.e, rel=1e-12)


def test_the_decrement_stops_before_the_step_it_judges():
    problem = square_plus_exponential()
    found = newton(problem, np.zeros(1), tol=0.0, decrement=1e-3)
    assert found.converged
    H, g = problem.hessian(found.x)[0, 0], found.gradient[0]
    assert 0.5 * g**2 / H <= 1e-3
    before = newton(problem, np.zeros(1), tol=0.0, max_iter=found.n_iter - 1) if found.n_iter else found
    assert 0.5 * before.gradient[0] ** 2 / problem.hessian(before.x)[0, 0] > 1e-3
    # On a self-concordant scale the decrement is the decrease itself.
    best = newton(problem, np.zeros(1), tol=1e-14).value
    assert found.value - best <= 2e-3


def circle_and_parabola(z):
    return np.array([z[0] ** 2 + z[1] ** 2 - 4, z[1] - z[0] ** 2])


def its_jacobian(z):
    return np.array([[2 * z[0], 2 * z[1]], [-2 * z[0], 1.0]])


@pytest.mark.parametrize("jacobian", [its_jacobian, None])
def test_root_of_a_system(jacobian):
    """x² + y² = 4, y = x²: y = (√17 − 1)/2."""
    y = (np.sqrt(17) - 1) / 2
    found = newton_root(circle_and_parabola, jacobian, [1.0, 1.0])
    np.testing.assert_allclose(found, [np.sqrt(y), y], rtol=1e-12)


def test_convergence_to_the_root_of_a_system_is_quadratic():
    y = (np.sqrt(17) - 1) / 2
    root, errors = np.array([np.sqrt(y), y]), []
    for steps in (1, 2, 3):
        z = np.array([1.0, 1.0])
        for _ in range(steps):
            z = z - np.linalg.solve(its_jacobian(z), circle_and_parabola(z))
        errors.append(np.abs(z - root).max())
    assert errors[2] < errors[1] ** 1.7 and errors[1] < errors[0] ** 1.5
    seen = []
    newton_root(lambda z: (seen.append(z.copy()), circle_and_parabola(z))[1], its_jacobian, [1.0, 1.0])
    assert any(np.allclose(z, seen[0]) for z in seen)
    assert len(seen) <= 8


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(-100, 100))
def test_a_linear_system_needs_one_step(seed, far):
    A = definite_matrix(seed, [1.0, 4.0, 9.0])
    b = np.random.default_rng(seed).normal(size=3)
    np.testing.assert_allclose(
        newton_root(lambda z: A @ z - b, lambda z: A, np.full(3, far)), np.linalg.solve(A, b), atol=1e-9
    )


def test_systems_without_a_root_say_so():
    with pytest.raises(NoRootError, match=r"stopped at x = \("):
        newton_root(lambda z: z**2 + 1, lambda z: np.diag(2 * z), [1.0, 2.0])
    with pytest.raises(NoRootError):
        newton_root(lambda z: np.array([z[0] + z[1], z[0] + z[1] - 1]), lambda z: np.ones((2, 2)), [1.0, 2.0])


def test_systems_of_the_wrong_shape_are_refused():
    with pytest.raises(LearnableError, match="as many numbers"):
        newton_root(lambda z: z[:1], lambda z: np.eye(2), [1.0, 2.0])
    with pytest.raises(LearnableError, match="Jacobian"):
        newton_root(lambda z: z, lambda z: np.eye(3), [1.0, 2.0])


def test_a_scalar_root_without_a_derivative():
    assert newton_root(lambda x: x**3 - 8, None, 1.0) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("shift", [1.0, 1e-3, 1e-6])
def test_a_flat_valley_above_zero_is_no_root(shift):
    with pytest.raises(NoRootError):
        newton_root(lambda x: x * x + shift, lambda x: 2 * x, 0.7, max_iter=1000)
