"""The exponential distribution against SciPy and at its edges."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Exponential, Gamma


def test_functions_against_scipy():
    rate, x = np.array([1e-200, 0.5, 3.0]), np.array([-1.0, 0.0, 0.3, 20.0])[:, None]
    ours, theirs = Exponential(rate), stats.expon(scale=1 / rate)
    np.testing.assert_allclose(ours.logpdf(x), theirs.logpdf(x), rtol=1e-14)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-14)
    p = np.array([0.0, 1e-12, 0.4, 1.0])[:, None]
    np.testing.assert_allclose(ours.quantile(p), theirs.ppf(p), rtol=1e-14)


def test_it_is_the_gamma_distribution_of_shape_one():
    x = np.array([0.0, 0.2, 5.0])
    np.testing.assert_allclose(Exponential(2.0).logpdf(x), Gamma(1.0, 2.0).logpdf(x), rtol=1e-14)
    assert Exponential(2.0).kl(Exponential(3.0)) == pytest.approx(Gamma(1.0, 2.0).kl(Gamma(1.0, 3.0)), rel=1e-13)


def test_refusals():
    with pytest.raises(DataError, match="Exponential: the mean must be > 0"):
        Exponential.fit_mle([0.0, 0.0])
    with pytest.raises(ParameterError, match=r"Exponential: rate must be > 0 and finite, got 0\.0"):
        Exponential(0.0)
