"""Bandits and grids: regret within its bounds, and values whose proven error is no smaller than the true one."""

import numpy as np

from learnable.decisions.mdp import policy_iteration
from learnable.lab import SCENES


def test_regret_is_at_most_that_of_the_worst_arm():
    means, _ = SCENES["bandit"].read()
    steps = SCENES["bandit"].steps(horizon=100)
    rounds = [1, 2, 5, 10, 20, 50, 100]
    for step, n in zip(steps, rounds, strict=True):
        regrets = np.array(list(step.numbers.values()))
        assert (regrets >= 0).all() and (regrets <= n * np.ptp(means) + 1e-9).all()
        assert "Proved for UCB: at most" in step.note


def test_the_proven_error_of_the_values_is_an_upper_bound():
    mdp, shape, letters = SCENES["values"].read()
    assert shape == (5, 9) and len(letters) == 45
    truth = policy_iteration(mdp)
    steps = SCENES["values"].steps()
    start = np.array([step.numbers["value at the start"] for step in steps])
    bounds = np.array([step.certificates["solution"].bound for step in steps])
    assert (np.abs(start - mdp.start @ truth.values) <= bounds + 1e-9).all()
    assert (np.diff(bounds) < 0).all() and steps[-1].certificates["solution"].holds


def test_a_grid_of_ones_own():
    steps = SCENES["values"].steps([["S", ".", "."], ["#", "#", "."], ["g", ".", "."]])
    assert steps[-1].certificates["solution"].holds and steps[-1].numbers["value at the start"] > 0
