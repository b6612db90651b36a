"""Nonlinear conjugate gradients: the linear ones on a quadratic, and a downhill way elsewhere."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.solvers.functions import definite_matrix, quadratic, root_of_one_plus_square, rosenbrock, soft_plus_sum

from learnable.solvers import Evaluation, conjugate_gradient, newton, nonlinear_cg


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.floats(1.0, 20.0), min_size=1, max_size=8))
def test_p_steps_suffice_on_a_quadratic(seed, eigenvalues):
    A = definite_matrix(seed, eigenvalues)
    b = np.random.default_rng(seed).normal(size=len(eigenvalues))
    found = nonlinear_cg(quadratic(A, b), np.zeros(len(b)), tol=1e-7)
    assert found.converged
    assert found.n_iter <= len(b)


def test_iterates_are_those_of_linear_conjugate_gradients():
    A, b = definite_matrix(1, [1.0, 3.0, 7.0, 12.0, 20.0]), np.arange(1.0, 6.0)
    for k in range(1, 5):
        linear = conjugate_gradient(A, b, tol=0.0, max_iter=k).x
        found = nonlinear_cg(quadratic(A, b), np.zeros(5), tol=0.0, max_iter=k).x
        np.testing.assert_allclose(found, linear, rtol=1e-6)


@pytest.mark.parametrize("problem, start", [
    (rosenbrock(), [-1.2, 1.0]),
    (soft_plus_sum(), [5.0, -5.0, 5.0, -5.0, 5.0]),
    (root_of_one_plus_square(), [1e3]),
])  # fmt: skip
def test_the_minimum_is_found_and_the_value_never_rises(problem, start):
    values = []
    start = np.array(start)
    found = nonlinear_cg(problem, start, tol=1e-9, progress=lambda *_: False)
    for k in range(1, 12):
        values.append(nonlinear_cg(problem, start, tol=1e-9, max_iter=k).value)
    assert found.converged
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(values))


def test_agrees_with_newton():
    one = newton(soft_plus_sum(), np.zeros(5), tol=1e-12)
    other = nonlinear_cg(soft_plus_sum(), np.zeros(5), tol=1e-10)
    np.testing.assert_allclose(other.x, one.x, rtol=1e-7)


def test_points_outside_the_domain_are_stepped_back_from():
    class Barrier:
        def evaluate(self, x):
            with np.errstate(invalid="ignore", divide="ignore"):
                g = 1 - 0.1 / x
                return Evaluation(float((x - 0.1 * np.log(x)).sum()), g, float(np.abs(g).max()))

    found = nonlinear_cg(Barrier(), np.array([5.0, 50.0]), tol=1e-8)
    assert found.converged
    np.testing.assert_allclose(found.x, 0.1, rtol=1e-6)


def test_a_function_without_a_minimum_stops():
    class Slope:
        def evaluate(self, x):
            return Evaluation(float(x.sum()), np.ones(2), 1.0)

    found = nonlinear_cg(Slope(), np.zeros(2), max_iter=5)
    assert not found.converged
    assert found.n_iter <= 5


def test_progress_stops_it():
    found = nonlinear_cg(rosenbrock(), np.array([-1.2, 1.0]), progress=lambda iteration, value: iteration == 3)
    assert found.n_iter == 3
