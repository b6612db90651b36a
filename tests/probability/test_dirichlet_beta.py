"""The Beta distribution against SciPy and at its edges; the laws of all families are in test_families."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Beta, Dirichlet

A, B = np.array([0.3, 1.0, 3.0, 3.0, 50.0]), np.array([2.0, 0.5, 1.0, 2.0, 7.0])


def test_functions_against_scipy():
    x = np.array([0.0, 1e-5, 0.3, 0.5, 0.99, 1.0])[:, None]
    ours, theirs = Beta(A, B), stats.beta(A, B)
    np.testing.assert_allclose(ours.logpdf(x), theirs.logpdf(x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-11)
    np.testing.assert_allclose(ours.quantile(x), theirs.ppf(x), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-10)
    np.testing.assert_allclose(ours.variance, theirs.var(), rtol=1e-12)


def test_it_is_the_dirichlet_distribution_of_two():
    np.testing.assert_allclose(Beta(2.5, 0.7).logpdf(0.3), Dirichlet([2.5, 0.7]).logpdf([0.3, 0.7]), rtol=1e-13)


def test_support_and_mode():
    assert np.array_equal(Beta(2.0, 2.0).logpdf([-0.1, 1.1]), [-np.inf, -np.inf])
    assert Beta(3.0, 2.0).mode == pytest.approx(2 / 3)
    assert np.isnan(Beta(1.0, 2.0).mode)


def test_refusals():
    with pytest.raises(DataError, match=r"Beta: samples must be between 0 and 1, without the ends, got 1\.0"):
        Beta.fit_mle([0.3, 1.0])
    with pytest.raises(DataError, match=r"Beta: .* of a constant"):
        Beta.fit_mle([0.3, 0.3])
    with pytest.raises(ParameterError, match=r"Beta: a must be > 0 and finite, got 0\.0"):
        Beta(0.0, 1.0)
