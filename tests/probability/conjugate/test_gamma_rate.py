"""Priors of a rate: counts of 10⁹, one observation, and what is refused."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import GammaExponential, GammaPoisson


def test_predictions_against_scipy():
    theirs = stats.nbinom(2.5, 1.3 / 2.3)
    np.testing.assert_allclose(GammaPoisson(2.5, 1.3).predictive().logpmf(np.arange(9)), theirs.logpmf(np.arange(9)))
    lomax = stats.lomax(2.5, scale=1.3)
    np.testing.assert_allclose(GammaExponential(2.5, 1.3).predictive().cdf([0.1, 3.0]), lomax.cdf([0.1, 3.0]))


def test_counts_of_a_billion_keep_their_digits():
    # With α = 1 the next count is geometric: P(x) = β/(β + 1)^(x + 1).
    x, beta = 1e9, 1e-9
    expected = np.log(beta) - (x + 1.0) * np.log1p(beta)
    assert GammaPoisson(1.0, beta).log_marginal_likelihood([x]) == pytest.approx(expected, rel=1e-11)
    low, high = GammaPoisson(1.0, beta).update([x]).interval(0.95)
    assert (high - low) / 2.0 == pytest.approx(1.96 * np.sqrt(x), rel=1e-3)


def test_refusals():
    with pytest.raises(DataError, match=r"GammaPoisson: observations must be whole numbers >= 0, got 0\.5"):
        GammaPoisson().update([0.5])
    with pytest.raises(DataError, match=r"GammaExponential: observations must be >= 0, got -1\.0"):
        GammaExponential().update([-1.0])
    with pytest.raises(ParameterError, match="map needs shape > 1"):
        GammaPoisson().map()
    with pytest.raises(DataError, match="sums of counts"):
        GammaPoisson().update(statistics=(1.0, [-3.0]))
