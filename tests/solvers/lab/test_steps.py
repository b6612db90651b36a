"""Step rules: their formulas, their memory, and what they refuse."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.solvers import (
    Backtracking,
    Constant,
    CosineDecay,
    ExponentialDecay,
    InverseDecay,
    InverseRoot,
    NormalisedGradient,
    OneCycle,
    Plateau,
    minimize,
    rates,
)

T = np.arange(6)


@pytest.mark.parametrize(
    "rule, expected",
    [
        (Constant(0.3), np.full(6, 0.3)),
        (InverseDecay(0.3, 0.7), 0.3 / (1 + 0.7 * T)),
        (ExponentialDecay(0.3, 0.7), 0.3 / np.exp(0.7 * T)),
        (InverseRoot(0.3), 0.3 / np.sqrt(T + 1)),
        (NormalisedGradient(0.3), np.full(6, 0.3 / (1e-8 + 5.0))),
    ],
)
def test_formulas(rule, expected):
    np.testing.assert_allclose(rates(rule, 6, gradient=[3.0, -4.0]), expected, rtol=1e-15)


def test_plateau_drops_after_patience_and_a_fall_resets_it():
    values = [5, 4, 4, 4, 3, 3, 3, 3, 3, 3]
    found = rates(Plateau(1.0, factor=0.1, patience=3), 10, values=values)
    np.testing.assert_allclose(found, [1, 1, 1, 1, 1, 1, 1, 0.1, 0.1, 0.1])


def test_plateau_counts_a_fall_only_beyond_the_threshold():
    values = 1.0 - 1e-6 * np.arange(9)
    assert rates(Plateau(1.0, patience=4, threshold=1e-4), 9, values=values)[-1] == 0.25
    assert rates(Plateau(1.0, patience=4, threshold=1e-7), 9, values=values)[-1] == 1.0


def test_plateau_counts_epochs_not_batches():
    x = np.linspace(-1, 1, 12)
    steps = minimize(
        lambda w, rows: 1.0 + 0 * float(w[0]) + 0 * x[rows].sum(), [1.0], lambda w, rows: np.array([1e-3]),
        method="sgd", n_rows=12, batch_size=2, step=Plateau(0.5, patience=2), max_iter=6, random_state=0,
    ).trace.step  # fmt: skip
    np.testing.assert_allclose(steps, [0, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125])


def test_one_rule_serves_many_runs():
    rule = Plateau(1.0, patience=1)
    assert np.array_equal(rates(rule, 5), rates(rule, 5))


def test_backtracking_obeys_armijo_and_is_at_least_shrink_over_smoothness():
    A = np.diag([1.0, 40.0])
    rule = Backtracking(rate=7.0, shrink=0.6, decrease=0.5)
    found = minimize(lambda x: 0.5 * x @ A @ x, [1.0, 1.0], lambda x: A @ x, step=rule, max_iter=30)
    path, value, step = found.trace.path, found.trace.value, found.trace.step[1:]
    slopes = np.sum((path[:-1] @ A) ** 2, axis=1)
    assert (value[1:] <= value[:-1] - 0.5 * step * slopes * (1 - 1e-12)).all()
    assert (step >= 0.6 / 40 * (1 - 1e-12)).all()
    assert len(set(step)) > 3  # it adapts in both directions


@pytest.mark.parametrize("method", ["momentum", "adam", "sgd"])
def test_a_line_search_is_refused_where_there_is_no_line(method):
    with pytest.raises(ParameterError, match="line search"):
        minimize(
            lambda x, rows: x @ x,
            [1.0],
            lambda x, rows: 2 * x,
            method=method,
            step=Backtracking(),
            n_rows=4,
            batch_size=2,
        )


@pytest.mark.parametrize(
    "build",
    [
        lambda: Constant(0.0),
        lambda: Constant(np.nan),
        lambda: Constant("fast"),
        lambda: InverseDecay(0.1, -1.0),
        lambda: ExponentialDecay(np.inf, 1.0),
        lambda: Plateau(0.1, factor=1.0),
        lambda: Plateau(0.1, patience=0),
        lambda: Backtracking(shrink=1.5),
        lambda: NormalisedGradient(0.1, epsilon=0.0),
    ],
)
def test_numbers_out_of_range_are_refused(build):
    with pytest.raises(ParameterError, match="must be"):
        build()


def test_rules_are_immutable():
    with pytest.raises(FrozenInstanceError):
        Constant(0.1).rate = 0.2


def test_one_cycle_rises_to_its_rate_and_falls_to_almost_nothing():
    steps = rates(OneCycle(rate=0.5, length=100, warm=0.3), 120)
    assert steps[0] == pytest.approx(0.02)
    assert steps.max() == steps[30] == pytest.approx(0.5)
    assert (np.diff(steps[:31]) > 0).all()
    assert (np.diff(steps[30:101]) < 0).all()
    np.testing.assert_allclose(steps[100:], 0.5e-4)


def test_cosine_decay_is_half_a_cosine_and_then_its_floor():
    steps = rates(CosineDecay(rate=2.0, length=10, floor=0.1), 15)
    t = np.arange(15)
    expected = np.where(t < 10, 0.2 + 0.9 * (1 + np.cos(np.pi * t / 10)), 0.2)
    np.testing.assert_allclose(steps, expected)
