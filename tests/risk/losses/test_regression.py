"""The formulas of the regression losses, point by point, and their best constant scores."""

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.risk.losses import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss, PoissonLoss, SquaredLoss


def best_constant(loss, y, low, high):
    """Minimise the empirical risk of a constant score, by ternary search on a convex function."""
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if loss.value(y, a).sum() <= loss.value(y, b).sum():
            high = b
        else:
            low = a
    return 0.5 * (low + high)


Y = np.array([0.0, 1.0, 1.5, 4.0, 30.0])


def test_best_constants():
    # A ternary search compares values, so it finds a flat minimum to the root of the rounding only.
    assert best_constant(SquaredLoss(), Y, -50, 50) == pytest.approx(Y.mean(), abs=1e-6)
    assert best_constant(AbsoluteLoss(), Y, -50, 50) == pytest.approx(np.median(Y), abs=1e-9)
    assert best_constant(PoissonLoss(), Y, -5, 5) == pytest.approx(np.log(Y.mean()), abs=1e-6)
    # Huber: the residuals 2.5 and 28.5 count as 1 each; 3c = 0 + 1 + 1.5 + 2 at the optimum.
    assert best_constant(HuberLoss(1.0), Y[:4], -50, 50) == pytest.approx(1.25, abs=1e-6)
    # ε-insensitive: the middle of the range, once the tube holds all points.
    tube = EpsilonInsensitiveLoss(15.0)
    assert tube.value(Y, 15.0).sum() == 0.0
    assert tube.value(Y, 15.5).sum() == 0.5


def test_squared_is_halved():
    assert SquaredLoss().value(1.0, 4.0) == 4.5


def test_huber_equals_both_neighbours_at_the_joint():
    loss = HuberLoss(2.0)
    assert loss.value(0.0, 2.0) == SquaredLoss().value(0.0, 2.0) == 2.0
    assert loss.value(0.0, 5.0) == 2.0 * (5.0 - 1.0)
    assert loss.value(0.0, -5.0) == 2.0 * (5.0 - 1.0)


def test_huber_tends_to_its_limits():
    z = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(HuberLoss(1e6).value(0.5, z), SquaredLoss().value(0.5, z), rtol=1e-15)
    np.testing.assert_allclose(HuberLoss(1e-9).value(0.5, z) / 1e-9, AbsoluteLoss().value(0.5, z), atol=1e-9)


def test_epsilon_zero_is_the_absolute_loss():
    y, z = np.array([0.0, 1.0, 1.0]), np.array([2.0, 1.0, -0.5])
    for method in ("value", "gradient", "conjugate"):
        assert np.array_equal(getattr(EpsilonInsensitiveLoss(0.0), method)(y, z), getattr(AbsoluteLoss(), method)(y, z))


def test_subgradients_chosen_at_kinks():
    assert AbsoluteLoss().gradient(1.0, 1.0) == 0.0
    assert np.array_equal(EpsilonInsensitiveLoss(0.5).gradient(1.0, np.array([0.5, 1.5])), [0.0, 0.0])
    assert np.array_equal(HuberLoss(0.5).curvature(1.0, np.array([0.5, 1.5])), [1.0, 1.0])


def test_poisson_is_minus_the_log_likelihood_up_to_the_factorial():
    from scipy.stats import poisson

    y, z = np.arange(6.0), np.linspace(-2, 3, 6)
    constant = -poisson.logpmf(y, np.exp(z)) - PoissonLoss().value(y, z)
    np.testing.assert_allclose(constant, np.log([1, 1, 2, 6, 24, 120]), atol=1e-13)


def test_poisson_value_where_both_terms_overflow():
    assert PoissonLoss().value(1e10, 1e300) == np.inf
    assert PoissonLoss().value(3.0, -1e300) == 3e300


def test_predictions():
    z = np.array([-1.0, 0.0, 2.0])
    for loss in (SquaredLoss(), AbsoluteLoss(), HuberLoss(), EpsilonInsensitiveLoss()):
        assert np.array_equal(loss.predict(z), z)
    assert np.array_equal(PoissonLoss().predict(z), np.exp(z))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_huber_rejects(bad):
    with pytest.raises(ParameterError, match="HuberLoss: delta must be > 0 and finite, got"):
        HuberLoss(bad)


@pytest.mark.parametrize("bad", [-1e-9, np.inf, np.nan])
def test_epsilon_insensitive_rejects(bad):
    with pytest.raises(ParameterError, match="EpsilonInsensitiveLoss: epsilon must be >= 0 and finite, got"):
        EpsilonInsensitiveLoss(bad)
