"""Priors of a normal scale with a known mean."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.probability import GammaNormal, InverseGammaNormal

X = [2.0, 1.1, -2.5]


def test_two_parametrisations_of_one_belief():
    one, other = GammaNormal(2.5, 1.3, 0.5), InverseGammaNormal(2.5, 1.3, 0.5)
    assert one.log_marginal_likelihood(X) == pytest.approx(other.log_marginal_likelihood(X), rel=1e-12)
    low, high = one.update(X).interval(0.9)
    assert other.update(X).interval(0.9) == pytest.approx((1.0 / high, 1.0 / low), rel=1e-9)
    assert one.update(X).map().variance != pytest.approx(other.update(X).map().variance, rel=1e-3)


def test_worked_update():
    posterior = GammaNormal(1.0, 1.0, mean=2.0).update([1.0, 2.0, 5.0])
    assert (posterior.shape, posterior.rate) == (2.5, 6.0)


def test_refusals():
    with pytest.raises(ParameterError, match="map needs shape > 1"):
        GammaNormal(1.0, 1.0).map()
    with pytest.raises(DataError, match="statistics must have"):
        GammaNormal(mean=1.0).update(statistics=(2.0, np.array([10.0, 1.0])))
