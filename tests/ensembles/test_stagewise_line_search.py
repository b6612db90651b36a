"""The best step along a direction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.ensembles.stagewise import best_step
from learnable.risk.losses import AbsoluteLoss, ExponentialLoss, HingeLoss, SoftmaxLoss, SquaredLoss


@given(st.integers(0, 10**6), st.sampled_from([1e-150, 1.0, 1e150]))
def test_the_squared_loss_has_a_formula(seed, scale):
    rng = np.random.default_rng(seed)
    y, h, w = rng.standard_normal(20) * scale, rng.standard_normal(20), rng.random(20)
    h = h * np.sign(w @ (h * y))
    found = best_step(SquaredLoss(), y, np.zeros(20), h, w)
    assert found.step == pytest.approx(w @ (h * y) / (w @ (h * h)), rel=1e-9)
    assert found.residual <= 1e-9


def test_kinks_flat_ends_and_directions_that_rise():
    one, w = np.ones(4), np.full(4, 0.25)
    y = np.array([1.0, 2.0, 5.0, 100.0])
    assert 2.0 <= best_step(AbsoluteLoss(), y, 0 * one, one, w).step <= 5.0
    assert best_step(AbsoluteLoss(), -y, 0 * one, one, w, both_ways=True).step <= -2.0
    assert best_step(AbsoluteLoss(), -y, 0 * one, one, w).step == 0.0
    assert best_step(HingeLoss(), one, 0 * one, one, w).step >= 1.0


def test_a_loss_that_falls_for_ever_ends_where_nothing_is_left():
    one = np.ones(3)
    found = best_step(ExponentialLoss(), one, 0 * one, one, one / 3)
    assert 20 < found.step < 1e4 and found.residual < 1e-9


def test_scores_of_many_classes():
    y, h = np.array([0, 1, 2]), np.eye(3)
    h[2] = [1.0, 0.0, 0.0]
    found = best_step(SoftmaxLoss(), y, np.zeros((3, 3)), h, np.ones(3))
    grid = np.linspace(0, 3, 3001)
    losses = [SoftmaxLoss().value(y, b * h).sum() for b in grid]
    assert found.step == pytest.approx(grid[int(np.argmin(losses))], abs=1e-3)
