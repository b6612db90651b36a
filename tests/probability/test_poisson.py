"""The Poisson distribution against SciPy and at its edges."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Poisson


@pytest.mark.parametrize("rate", [0.01, 3.0, 50.0, 1e5])
def test_functions_against_scipy(rate):
    ours, theirs = Poisson(rate), stats.poisson(rate)
    x = np.r_[-1.0, np.floor(rate * np.linspace(0, 2, 7))]
    np.testing.assert_allclose(ours.logpmf(x), theirs.logpmf(x), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-9)
    q = np.array([1e-9, 0.1, 0.5, 0.9, 1.0])
    np.testing.assert_array_equal(ours.quantile(q), theirs.ppf(q))


@pytest.mark.parametrize("rate", [1e4, 1e9, 1e15])
def test_entropy_of_large_counts_is_its_expansion(rate):
    expected = 0.5 * np.log(2 * np.pi * np.e * rate) - 1 / (12 * rate) - 1 / (24 * rate**2)
    assert Poisson(rate).entropy() == pytest.approx(expected, rel=1e-12)


def test_rate_zero():
    assert Poisson(0.0).logpmf(0) == 0.0 and Poisson(0.0).logpmf(1) == -np.inf
    assert Poisson(0.0).entropy() == 0.0 and Poisson.fit_mle([0, 0]).rate == 0.0
    assert Poisson(0.0).kl(Poisson(2.0)) == 2.0 and Poisson(1.0).kl(Poisson(0.0)) == np.inf


def test_refusals():
    with pytest.raises(ParameterError, match=r"Poisson: rate must be >= 0 and finite, got -1\.0"):
        Poisson(-1.0)
    with pytest.raises(DataError, match=r"Poisson: samples must be whole numbers >= 0, got 0\.5"):
        Poisson.fit_mle([1, 0.5])
