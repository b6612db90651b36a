"""Expectations by summation, and quantiles by bisection."""

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.probability import Poisson
from learnable.probability.saddle import expectation, is_count, least_count, require_count


@pytest.mark.parametrize("rate", [1e-3, 0.7, 30.0, 2400.0, 2600.0, 1e8, 1e14])
def test_moments(rate):
    d = Poisson(rate)
    assert d.expect(lambda x: x) == pytest.approx(rate, rel=1e-12)
    assert d.expect(lambda x: np.square(x - rate)) == pytest.approx(rate, rel=1e-10)


def test_arrays_of_distributions():
    rate = np.array([0.0, 1.0, 1e6])
    found = Poisson(rate).expect(lambda x: x)
    np.testing.assert_allclose(found, rate, rtol=1e-12)
    assert expectation(np.zeros(()), np.zeros(()), lambda x: np.where(x == 0, 0.0, -np.inf), lambda x: x + 2.0) == 2.0


def test_least_count():
    table = np.cumsum([0.1, 0.0, 0.4, 0.5])
    cdf = lambda k: table[np.clip(k, 0, 3).astype(int)]  # noqa: E731
    assert np.array_equal(least_count(cdf, np.array([0.0, 0.1, 0.2, 0.5, 0.6]), 3.0), [0, 0, 2, 2, 3])


def test_counts():
    assert np.array_equal(is_count(np.array([0.0, 2.0, 0.5, -1.0, np.inf, np.nan])), [True, True] + [False] * 4)
    with pytest.raises(ParameterError, match="str: n must be a whole number >= 0, got nan"):
        require_count("", "n", np.array([1.0, np.nan]))
