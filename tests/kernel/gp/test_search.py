"""The search for hyperparameters: bounds, the optimum that scikit-learn finds or a better one, restarts."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    RationalQuadratic,
    WhiteKernel,
)

from learnable.kernel.gp.likelihood import Objective, Observations
from learnable.kernel.gp.search import log_bounds, maximise
from learnable.risk.kernels import Gaussian, White, as_kernel

RNG = np.random.default_rng(0)


def observations(n, d=2, noise=0.1):
    X = np.random.default_rng(n).uniform(-2, 2, (n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + noise * np.random.default_rng(n + 1).normal(size=n)
    return Observations(X, y[:, None], np.full(n, 1e-10), np.zeros((n, 0)))


def test_bounds_of_our_kernels_hold_their_start():
    kernel = Gaussian([1e-7, 1.0]) + White(1e6)
    expected = np.log([[1e-7, 1e5], [1e-5, 1e5], [1e-5, 1e6]])
    np.testing.assert_allclose(log_bounds(kernel), expected)


def test_bounds_of_scikit_learns_kernels_in_our_order():
    given = ConstantKernel(1.0, (0.5, 2.0)) * RationalQuadratic(
        1.0, 1.0, length_scale_bounds=(0.1, 10.0), alpha_bounds=(0.2, 5.0)
    )
    given = (
        given
        + ExpSineSquared(1.0, 1.0, (0.3, 3.0), "fixed")
        + DotProduct(2.0, (1.0, 4.0))
        + WhiteKernel(0.1, (1e-3, 1.0))
    )
    expected = [(0.5, 2.0), (0.1, 10.0), (0.2, 5.0), (0.3, 3.0), (1.0, 16.0), (1e-3, 1.0)]
    np.testing.assert_allclose(np.exp(log_bounds(as_kernel(given))), expected)


def test_the_optimum_is_scikit_learns_or_better():
    data = observations(120)
    given = ConstantKernel(1.0) * RBF([1.0, 1.0]) + WhiteKernel(0.1)
    kernel = as_kernel(given)
    found = maximise(kernel, data, log_bounds(kernel), tol=1e-6)
    assert found.measure <= 1e-6
    value = -Objective(kernel, data, log_bounds(kernel)).value(found.theta)
    peer = Peer(given).fit(data.X, data.y[:, 0])
    assert value >= peer.log_marginal_likelihood_value_ - 1e-5


def test_a_search_that_began_on_some_rows_ends_stationary_for_all():
    data = observations(640)
    kernel = 1.0 * Gaussian(1.0) + White(0.1)
    bounds = log_bounds(kernel)
    found = maximise(kernel, data, bounds, tol=1e-5)
    assert found.measure <= 1e-5
    worth = Objective(kernel, data, bounds)
    best = worth.value(found.theta)
    for e in np.eye(3):
        assert min(worth.value(found.theta + 0.05 * e), worth.value(found.theta - 0.05 * e)) > best


def test_more_starts_never_make_it_worse_and_seeds_decide():
    data = observations(40, noise=0.3)
    kernel = 1.0 * Gaussian(50.0) + White(1.0)
    bounds = log_bounds(kernel)
    worth = Objective(kernel, data, bounds)
    once = maximise(kernel, data, bounds)
    several = [maximise(kernel, data, bounds, restarts=4, random_state=3) for _ in range(2)]
    np.testing.assert_array_equal(several[0].theta, several[1].theta)
    assert worth.value(several[0].theta) <= worth.value(once.theta) + 1e-9


def test_progress_ends_all_searches():
    data, calls = observations(40), []
    kernel = 1.0 * Gaussian(1.0) + White(0.1)

    def stop(iteration, value):
        calls.append(iteration)
        return True

    maximise(kernel, data, log_bounds(kernel), restarts=5, progress=stop)
    assert calls == [1]


class Clock:
    """Says stop once the objective was evaluated so many times."""

    def __init__(self, monkeypatch, allowed):
        self.seen, evaluate, value = [], Objective.evaluate, Objective.value

        def counted(method):
            def run(objective, theta):
                self.seen.append((len(objective.data.y), theta.copy()))
                return method(objective, theta)

            return run

        monkeypatch.setattr(Objective, "evaluate", counted(evaluate))
        monkeypatch.setattr(Objective, "value", counted(value))
        self.allowed = allowed

    def __call__(self):
        return len(self.seen) >= self.allowed


@pytest.mark.parametrize("allowed", [0, 1, 3, 8, 14])
def test_out_of_time_one_evaluation_of_all_rows_is_left(monkeypatch, allowed):
    data = observations(700)
    kernel = 1.0 * Gaussian([1.0, 1.0]) + White(0.1)
    bounds = log_bounds(kernel)
    clock = Clock(monkeypatch, allowed)
    found = maximise(kernel, data, bounds, restarts=3, random_state=0, stop=clock)
    assert len(clock.seen) <= allowed + 3  # a step that was begun, one evaluation of each number of rows
    assert clock.seen[-1][0] == 700
    assert any(np.array_equal(found.theta, theta) for n, theta in clock.seen if n == 700)
    monkeypatch.undo()
    assert found.measure == pytest.approx(Objective(kernel, data, bounds).evaluate(found.theta).measure)
