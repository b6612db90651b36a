"""L-BFGS: it finds minima that others find, and good initial curvature pays."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.solvers.functions import Function, definite_matrix, quadratic, rosenbrock, soft_plus_sum

from learnable.solvers import lbfgs, newton


def test_rosenbrock_valley():
    found = lbfgs(rosenbrock(), np.array([-1.2, 1.0]), tol=1e-10, max_iter=200)
    assert found.converged
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-9)


def test_a_long_curved_valley():
    """The extended Rosenbrock function in twenty dimensions."""
    valley = rosenbrock()
    problem = Function(
        lambda x: sum(valley._value(pair) for pair in x.reshape(-1, 2)),
        lambda x: np.concatenate([valley._gradient(pair) for pair in x.reshape(-1, 2)]),
    )
    found = lbfgs(problem, np.tile([-1.2, 1.0], 10), tol=1e-9, max_iter=500)
    assert found.converged
    np.testing.assert_allclose(found.x, 1.0, atol=1e-8)


def test_a_convex_function_that_is_flat_at_its_minimum():
    problem = Function(lambda x: (x**4).sum(), lambda x: 4 * x**3)
    found = lbfgs(problem, np.array([1.0, -2.0, 3.0]), tol=1e-10, max_iter=300)
    assert found.converged
    assert np.abs(found.x).max() <= 1e-3


def test_agrees_with_newton_and_with_scipy():
    problem = soft_plus_sum()
    found = lbfgs(problem, np.zeros(5), tol=1e-10)
    np.testing.assert_allclose(found.x, newton(soft_plus_sum(), np.zeros(5), tol=1e-12).x, rtol=1e-8)
    theirs = minimize(
        problem._value, np.zeros(5), jac=problem._gradient, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 1e-15}
    )
    np.testing.assert_allclose(found.x, theirs.x, rtol=0, atol=1e-6)
    assert found.value <= theirs.fun + 1e-12


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.floats(0.1, 10.0), min_size=1, max_size=10))
def test_quadratics_of_any_spectrum(seed, eigenvalues):
    A = definite_matrix(seed, eigenvalues)
    rng = np.random.default_rng(seed)
    b, start = rng.normal(size=(2, len(eigenvalues)))
    # Values resolve a minimum of size f to a gradient of √(ε f λ_max), here below 1e-6, and no better.
    found = lbfgs(quadratic(A, b), start, tol=1e-6, max_iter=200)
    assert found.converged
    np.testing.assert_allclose(A @ found.x, b, rtol=0, atol=1e-5)


def test_the_exact_inverse_hessian_solves_a_quadratic_in_one_step():
    A, b = definite_matrix(0, [1.0, 10.0, 1000.0]), np.ones(3)
    found = lbfgs(quadratic(A, b), np.zeros(3), inverse_hessian=lambda g: np.linalg.solve(A, g), tol=1e-10)
    assert found.n_iter == 1


def test_good_initial_curvature_saves_iterations():
    scale = np.logspace(-2, 2, 8)
    A, b = definite_matrix(1, np.linspace(1, 2, 8)) * np.outer(scale, scale), scale
    plain = lbfgs(quadratic(A, b), np.zeros(8), tol=1e-8, max_iter=500)
    helped = lbfgs(quadratic(A, b), np.zeros(8), inverse_hessian=lambda g: g / np.diag(A), tol=1e-8, max_iter=500)
    assert helped.converged
    assert helped.n_iter <= 15
    assert helped.n_iter < plain.n_iter
    np.testing.assert_allclose(helped.x * scale, np.linalg.solve(A / np.outer(scale, scale), np.ones(8)), rtol=1e-5)


def test_more_history_is_no_worse_than_none_on_an_ill_conditioned_quadratic():
    A, b = definite_matrix(2, np.logspace(0, 4, 30)), np.ones(30)
    short, long = (lbfgs(quadratic(A, b), np.zeros(30), history=h, tol=1e-4, max_iter=2000) for h in (1, 20))
    assert long.converged
    assert long.n_iter <= short.n_iter


def test_the_value_never_rises():
    values = [lbfgs(rosenbrock(), np.array([-1.2, 1.0]), tol=0.0, max_iter=k).value for k in range(1, 30)]
    assert all(later <= earlier for earlier, later in pairwise(values))


def test_progress_sees_every_step_and_can_stop_it():
    seen = []

    def progress(iteration, measure):
        seen.append((iteration, measure))
        return iteration == 4

    found = lbfgs(rosenbrock(), np.array([-1.2, 1.0]), progress=progress)
    assert [iteration for iteration, _ in seen] == [1, 2, 3, 4]
    assert seen[-1][1] == found.measure
    assert (found.n_iter, found.converged) == (4, False)


def test_a_start_at_the_minimum_needs_no_step():
    found = lbfgs(rosenbrock(), np.ones(2))
    assert (found.n_iter, found.converged) == (0, True)


def test_an_unreachable_tolerance_ends_at_rounding():
    found = lbfgs(soft_plus_sum(), np.zeros(5), tol=0.0, max_iter=10_000)
    assert found.n_iter < 10_000
    assert found.measure <= 1e-10


def test_solution_describes_its_own_point():
    problem = rosenbrock()
    found = lbfgs(problem, np.array([-1.2, 1.0]), max_iter=10)
    at = problem.evaluate(found.x)
    assert (found.value, found.measure) == (at.value, at.measure)
    assert np.array_equal(found.gradient, at.gradient)


def test_start_and_callers_arrays_are_not_overwritten():
    start, kept = np.array([-1.2, 1.0]), np.array([0.1, 0.01])
    lbfgs(rosenbrock(), start, inverse_hessian=lambda g: kept * g)
    assert np.array_equal(start, [-1.2, 1.0])
    assert np.array_equal(kept, [0.1, 0.01])


@pytest.mark.parametrize("far", [1e3, 1e8])
def test_a_start_far_away(far):
    A = definite_matrix(3, [1.0, 2.0, 3.0])
    found = lbfgs(quadratic(A, np.ones(3)), np.full(3, far), tol=1e-6, max_iter=500)
    assert found.converged
