"""Summaries: intervals of means, and what is said in words."""

import numpy as np
import pytest
from scipy import stats

from learnable.decisions.rl.deep.results import Evaluation, Training, sweep
from learnable.decisions.rl.results import interquartile_mean


def test_the_interval_is_students():
    returns = np.array([1.0, 2.0, 4.0, 8.0, 3.0])
    found = Evaluation(returns, np.ones(5, dtype=int), returns, level=0.9)
    wanted = stats.t.interval(0.9, 4, loc=returns.mean(), scale=stats.sem(returns))
    assert np.allclose(found.interval, wanted)
    assert "90 % interval" in str(found)
    assert np.isnan(Evaluation(returns[:1], np.ones(1), returns[:1]).interval).all()


def test_the_interval_of_a_mean_covers():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        x = rng.normal(3.0, 2.0, 12)
        low, high = Evaluation(x, x, x, 0.8).interval
        inside += low <= 3.0 <= high
    assert abs(inside / 400 - 0.8) < 4.0 * np.sqrt(0.16 / 400)


def test_a_sweep_is_the_interquartile_mean_of_its_seeds():
    evaluations = np.array([[0.0, 1.0, 0.0, 5.0], [100.0, 3.0, 0.0, 5.0]])
    run = Training("DQN", 100, 1.0, 100.0, "steps", np.zeros((0, 3)), evaluations, 3.0, 100)
    scores = [1.0, 2.0, 3.0, 100.0]
    found = sweep("DQN", np.arange(4), [run] * 4, [None] * 4, scores, 0.95)
    assert found.mean == interquartile_mean(scores) == 2.5
    assert found.lower <= found.mean <= found.upper
    steps, middle, low, high = found.curve()
    assert steps.tolist() == [0.0, 100.0]
    assert middle.tolist() == low.tolist() == high.tolist() == [1.0, 3.0]
    assert "one seed" in str(sweep("DQN", np.arange(1), [run], [None], [1.0], 0.95))
    assert pytest.approx(3.0) == run.best_score
    assert "ended by steps" in str(run)
