"""The margin losses, point by point: digits, kinks, probabilities, and how they bound the 0/1 loss."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.risk.losses import (
    ExponentialLoss,
    HingeLoss,
    LogisticLoss,
    PerceptronLoss,
    SquaredHingeLoss,
    ZeroOneLoss,
)

Z = np.linspace(-3.0, 3.0, 61)


@pytest.mark.parametrize(
    "loss, factor",
    [(LogisticLoss(), np.log(2)), (HingeLoss(), 1.0), (SquaredHingeLoss(), 1.0), (ExponentialLoss(), 1.0)],
)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_convex_losses_bound_the_zero_one_loss(loss, factor, y):
    assert np.all(loss.value(y, Z) >= factor * ZeroOneLoss().value(y, Z) - 1e-15)


@pytest.mark.parametrize("loss", [LogisticLoss(), HingeLoss(), SquaredHingeLoss(), ExponentialLoss(), PerceptronLoss()])
def test_losses_depend_on_the_margin_alone(loss):
    assert np.array_equal(loss.value(1.0, Z), loss.value(-1.0, -Z))
    assert np.array_equal(loss.gradient(1.0, Z), -loss.gradient(-1.0, -Z))
    assert np.array_equal(loss.conjugate(1.0, Z), loss.conjugate(-1.0, -Z))


def test_zero_one_counts_a_zero_score_as_negative():
    y, z = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]), np.array([1e-300, 0.0, -2.0, 1e-300, 0.0, -2.0])
    assert np.array_equal(ZeroOneLoss().predict(z), [1, -1, -1, 1, -1, -1])
    assert np.array_equal(ZeroOneLoss().value(y, z), [0, 1, 1, 1, 0, 0])
    assert np.array_equal(ZeroOneLoss().predict(np.array([1e300, -1e300])), [1, -1])


def test_zero_one_has_no_derivatives_and_no_dual():
    assert not any(hasattr(ZeroOneLoss(), name) for name in ("gradient", "curvature", "conjugate", "smoothness"))


def test_perceptron_is_the_hinge_moved_by_one():
    np.testing.assert_allclose(PerceptronLoss().value(1.0, Z), HingeLoss().value(1.0, Z + 1.0), atol=1e-15)


def test_squared_hinge_is_the_hinge_squared():
    assert np.array_equal(SquaredHingeLoss().value(1.0, Z), HingeLoss().value(1.0, Z) ** 2)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_subgradients_chosen_at_kinks(y):
    assert HingeLoss().gradient(y, y) == -y
    assert PerceptronLoss().gradient(y, 0.0) == -y
    assert SquaredHingeLoss().curvature(y, y) == 0.0


def test_logistic_keeps_its_digits_in_both_tails():
    loss = LogisticLoss()
    np.testing.assert_allclose(loss.value(1.0, np.array([40.0, 700.0])), np.exp([-40.0, -700.0]), rtol=1e-15)
    np.testing.assert_allclose(loss.gradient(1.0, np.array([40.0, 700.0])), -np.exp([-40.0, -700.0]), rtol=1e-15)
    np.testing.assert_allclose(loss.curvature(1.0, np.array([-40.0, 40.0])), np.exp(-40.0), rtol=1e-15)
    assert loss.value(1.0, -1e300) == 1e300
    assert loss.gradient(1.0, -1e300) == -1.0


def test_logistic_conjugate_keeps_its_digits_near_both_ends():
    p = 1e-20
    np.testing.assert_allclose(LogisticLoss().conjugate(1.0, -p), p * np.log(p) - p, rtol=1e-15)
    q = 2.0**-52
    np.testing.assert_allclose(LogisticLoss().conjugate(1.0, -(1.0 - q)), q * np.log(q) - q, rtol=1e-15)
    assert LogisticLoss().conjugate(1.0, -0.5) == pytest.approx(-np.log(2), rel=1e-15)


@pytest.mark.parametrize("loss", [LogisticLoss(), ExponentialLoss()])
@given(p=st.floats(0.01, 0.99))
def test_probability_inverts_the_population_minimiser(loss, p):
    def slope_of_the_risk(z):
        return p * loss.gradient(1.0, z) + (1 - p) * loss.gradient(-1.0, z)

    low, high = -10.0, 10.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope_of_the_risk(middle) < 0 else (low, middle)
    assert loss.probability(np.float64(low)) == pytest.approx(p, abs=1e-13)


def test_extreme_probabilities():
    z = np.array([-1e300, 0.0, 1e300])
    for loss in (LogisticLoss(), ExponentialLoss()):
        assert np.array_equal(loss.probability(z), [0.0, 0.5, 1.0])
