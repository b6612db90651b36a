"""Rademacher averages: simulation against all signs and closed forms; the rules; what they bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import DataError, ParameterError
from learnable.theory import rademacher as r


def test_simulation_is_within_its_error_bar_of_the_closed_form():
    """Where K is diagonal, σᵀKσ is its trace: the average of the ball is B√(tr K)/n exactly."""
    rng = np.random.default_rng(0)
    diagonal = rng.uniform(0.5, 2.0, 50)
    found = r.simulate(r.kernel_ball_maximiser(np.diag(diagonal), 3.0), 50)
    assert found.value == pytest.approx(r.kernel_ball(diagonal.sum(), 50, 3.0)[1])
    X = rng.normal(size=(14, 2))
    truth = r.exact(r.kernel_ball_maximiser(X @ X.T), 14)
    drawn = r.simulate(r.kernel_ball_maximiser(X @ X.T), 14, draws=4000)
    low, high = drawn.interval()
    assert low <= truth.value <= high
    below, above = r.kernel_ball(np.trace(X @ X.T), 14)
    assert below <= truth.value <= above


def test_all_signs_are_a_mean_over_the_cube():
    values = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])
    total = 0.0
    for a in (-1, 1):
        for b in (-1, 1):
            for c in (-1, 1):
                total += max(values @ np.array([a, b, c])) / 3
    assert r.exact(r.finite_maximiser(values), 3).value == pytest.approx(total / 8)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 9), size=st.integers(2, 20))
def test_massart_and_the_l1_ball_are_upper_bounds(seed, n, size):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(size, n))
    assert r.exact(r.finite_maximiser(values), n).value <= r.massart(values) + 1e-12
    X = rng.normal(size=(n, 3))
    hull = r.exact(r.l1_ball_maximiser(X, 2.0), n)
    assert hull.value == pytest.approx(r.exact(r.finite_maximiser(2.0 * np.vstack([X.T, -X.T])), n).value)
    assert hull.value <= r.l1_ball(np.linalg.norm(X, axis=0).max(), 3, n, 2.0) + 1e-12


@pytest.mark.parametrize("n", [10, 60])
def test_the_rules_hold(n):
    values = np.random.default_rng(1).uniform(-1, 1, (30, n))
    rules = r.show_rules(values)
    assert len(rules) == 4
    assert all(rule.holds for rule in rules)
    assert rules[2].left.value < rules[2].right


def test_networks_of_one_layer_are_below_their_bound_and_scale_with_norms():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 4))
    truth = r.simulate(r.kernel_ball_maximiser(X @ X.T), 30)
    assert truth.value <= r.network([1.0], (X**2).sum(), 30)
    assert r.network([2.0, 3.0], 10.0, 10) == pytest.approx(6.0 * r.network([1.0, 1.0], 10.0, 10))


def test_deviations_stay_below_their_bound():
    rng = np.random.default_rng(3)
    n, delta, trials = 100, 0.1, 300
    risks = np.linspace(0.2, 0.5, 60)
    misses = 0
    for trial in range(trials):
        losses = (rng.random((60, n)) < risks[:, None]).astype(float)
        average = r.simulate(r.finite_maximiser(losses), n, draws=200, random_state=trial)
        bound = r.deviation_bound(average.interval()[1], n, delta)
        misses += (risks - losses.mean(axis=1)).max() > bound
    assert misses <= delta * trials


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match="at most 20"):
        r.exact(r.finite_maximiser(np.ones((2, 30))), 30)
    with pytest.raises(DataError):
        r.kernel_ball_maximiser(np.ones((2, 3)))
    with pytest.raises(DataError):
        r.show_rules([[3.0, 1.0]])
    with pytest.raises(ParameterError):
        r.deviation_bound(0.1, 10, 0.0)
    with pytest.raises(DataError):
        r.network([-1.0], 1.0, 3)
    assert math.isfinite(r.massart([[1.0, 2.0]]))
