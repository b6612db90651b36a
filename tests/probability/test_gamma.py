"""Gamma and inverse Gamma against SciPy and at their edges; the laws of all families are in test_families."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Gamma, InverseGamma

SHAPE, RATE = np.array([0.3, 1.0, 3.0, 50.0]), np.array([2.0, 0.5, 2.0, 7.0])
X = np.array([1e-5, 0.3, 1.0, 2.5, 40.0])[:, None]


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (Gamma(SHAPE, RATE), stats.gamma(SHAPE, scale=1 / RATE)),
        (InverseGamma(SHAPE, RATE), stats.invgamma(SHAPE, scale=RATE)),
    ],
    ids=["Gamma", "InverseGamma"],
)
def test_functions_against_scipy(ours, theirs):
    np.testing.assert_allclose(ours.logpdf(X), theirs.logpdf(X), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(ours.cdf(X), theirs.cdf(X), rtol=1e-11, atol=1e-300)
    p = np.array([1e-8, 0.2, 0.5, 0.99])[:, None]
    np.testing.assert_allclose(ours.quantile(p), theirs.ppf(p), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-10)


def test_ends_of_the_support():
    assert Gamma(0.5).logpdf(0.0) == np.inf and Gamma(2.0).logpdf(0.0) == -np.inf
    assert Gamma(1.0, 3.0).logpdf(0.0) == np.log(3.0)
    assert np.array_equal(Gamma(2.0).logpdf([-1.0, np.inf]), [-np.inf, -np.inf])
    assert InverseGamma(2.0).cdf(-1.0) == 0.0 and InverseGamma(2.0).quantile(1.0) == np.inf
    assert np.isinf(InverseGamma(1.0).mean) and np.isinf(InverseGamma(2.0).variance)


@pytest.mark.parametrize("scale", [1e-290, 1.0, 1e290])
def test_fit_at_any_scale(scale):
    x = np.array([0.5, 1.0, 1.5, 3.0])
    fit = Gamma.fit_mle(scale * x)
    assert fit.shape == pytest.approx(Gamma.fit_mle(x).shape, rel=1e-12)
    assert fit.rate * scale == pytest.approx(Gamma.fit_mle(x).rate, rel=1e-12)


def test_reciprocals_are_fitted_by_the_reciprocal_distribution():
    x = Gamma(3.0, 2.0).sample(100, random_state=0)
    direct, inverse = Gamma.fit_mle(x), InverseGamma.fit_mle(1 / x)
    np.testing.assert_allclose([inverse.shape, inverse.rate], [direct.shape, direct.rate], rtol=1e-10)


def test_samples_that_hardly_differ():
    x = 1.0 + 1e-5 * np.random.default_rng(0).normal(size=1000)
    assert Gamma.fit_mle(x).std == pytest.approx(x.std(), rel=1e-3)


def test_refusals():
    with pytest.raises(DataError, match="Gamma: fit_mle needs two distinct values"):
        Gamma.fit_mle([2.0, 2.0])
    with pytest.raises(DataError, match=r"Gamma: samples must be > 0, got 0\.0"):
        Gamma.fit_mle([0.0, 2.0])
    with pytest.raises(ParameterError, match=r"InverseGamma: rate must be > 0 and finite, got -1\.0"):
        InverseGamma(1.0, -1.0)
