"""Quasi-Newton steps in a box: the solution of SciPy's, points on bounds, functions that do not exist everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from learnable.solvers.problem import Evaluation
from learnable.solvers.smooth.quasi_newton import bounded_bfgs


class Problem:
    def __init__(self, value, gradient, lower, upper):
        self.value, self.gradient, self.lower, self.upper = value, gradient, lower, upper
        self.seen = []

    def evaluate(self, x):
        self.seen.append(x.copy())
        value, g = float(self.value(x)), np.asarray(self.gradient(x), dtype=float)
        held = ((x <= self.lower) & (g > 0)) | ((x >= self.upper) & (g < 0))
        return Evaluation(value, g, float(np.abs(g[~held]).max(initial=0.0)) if np.isfinite(value) else np.inf)


def run(value, gradient, x0, lower, upper, **options):
    lower, upper = (
        np.broadcast_to(lower, np.shape(x0)).astype(float),
        np.broadcast_to(upper, np.shape(x0)).astype(float),
    )
    problem = Problem(value, gradient, lower, upper)
    return bounded_bfgs(problem, np.asarray(x0, dtype=float), lower, upper, **options), problem


@pytest.mark.parametrize("upper", [2.0, 0.5])
def test_rosenbrock_as_scipy_finds_it(upper):
    found, problem = run(rosen, rosen_der, [-1.2, 0.4, 0.3], -1.5, upper, tol=1e-9, max_iter=400)
    expected = minimize(rosen, [-1.2, 0.4, 0.3], jac=rosen_der, method="L-BFGS-B", bounds=[(-1.5, upper)] * 3,
                        options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    assert found.converged
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    assert all((x >= -1.5).all() and (x <= upper).all() for x in problem.seen)


@given(st.integers(0, 10_000))
def test_a_quadratic_with_its_own_hessian_in_the_box_takes_one_step(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    A = A @ A.T + np.eye(3)
    b = rng.normal(size=3)
    found, _ = run(lambda x: 0.5 * x @ A @ x - b @ x, lambda x: A @ x - b, np.zeros(3), -50.0, 50.0, hessian=A,
                   longest=100.0, tol=1e-8)  # fmt: skip
    assert found.converged and found.n_iter <= 2
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), atol=1e-8)


def test_a_step_into_nothing_is_shortened():
    def value(x):
        return np.inf if x[0] <= 0 else x[0] - np.log(x[0])

    def gradient(x):
        return [1.0 - 1.0 / x[0]] if x[0] > 0 else [0.0]

    found, _ = run(value, gradient, [5.0], -10.0, 10.0, hessian=np.array([[0.01]]), longest=100.0, tol=1e-9)
    assert found.converged
    assert found.x[0] == pytest.approx(1.0, abs=1e-8)


def test_a_start_outside_is_put_into_the_box_and_progress_may_stop():
    found, problem = run(rosen, rosen_der, [-9.0, 9.0], -1.0, 1.0, progress=lambda i, v: True)
    assert found.n_iter == 1
    assert (np.abs(np.array(problem.seen)) <= 1.0).all()


def test_an_infinite_start_ends_at_once():
    found, problem = run(lambda x: np.inf, lambda x: np.zeros(1), [0.0], -1.0, 1.0)
    assert not found.converged and len(problem.seen) == 1


class Rough:
    """A bowl whose values are known to three digits, and whose gradient is exact."""

    hessian = np.diag([1.0, 30.0, 900.0]) + 3.0

    def __init__(self, phase, rounding):
        self.phase, self.rounding = phase, rounding

    def evaluate(self, x):
        g = self.hessian @ (x - 1.0)
        noise = 1e-3 * np.sin(1e9 * x.sum() + self.phase)
        return Evaluation(0.5 * float(g @ (x - 1.0)) + noise, g, float(np.abs(g).max()), self.rounding)


def test_where_values_drown_in_rounding_slopes_decide():
    box = np.full(3, -5.0), np.full(3, 5.0)
    for stated in (2e-3, 0.0):
        ends = [bounded_bfgs(Rough(phase, stated), np.zeros(3), *box, tol=1e-9) for phase in range(8)]
        assert all(end.converged for end in ends) == (stated > 0.0)


@pytest.mark.parametrize("allowed", [0, 1, 2, 5])
def test_stop_is_asked_between_evaluations_and_the_best_is_returned(allowed):
    problem = Problem(rosen, rosen_der, np.full(2, -9.0), np.full(2, 9.0))
    found = bounded_bfgs(
        problem, np.array([-1.2, 1.0]), np.full(2, -9.0), np.full(2, 9.0), tol=1e-12, max_iter=500,
        stop=lambda: len(problem.seen) > allowed,
    )  # fmt: skip
    assert len(problem.seen) <= allowed + 2  # a search may try one step before it asks
    assert found.value <= rosen([-1.2, 1.0]) and not found.converged
    assert any(np.array_equal(found.x, x) for x in problem.seen)
