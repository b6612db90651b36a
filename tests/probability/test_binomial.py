"""Bernoulli and binomial distributions against SciPy and at their edges."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Bernoulli, Binomial


@pytest.mark.parametrize("n, p", [(10, 0.3), (1, 0.5), (200, 0.01), (10**6, 0.4), (5, 0.0), (5, 1.0)])
def test_functions_against_scipy(n, p):
    ours, theirs = Binomial(n, p), stats.binom(n, p)
    x = np.r_[-1, np.unique(np.linspace(0, n, 7).astype(int)), n + 1]
    np.testing.assert_allclose(ours.logpmf(x), theirs.logpmf(x), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-9, atol=1e-12)
    if p > 0:
        q = np.array([1e-9, 0.1, 0.5, 0.9, 1.0])
        np.testing.assert_array_equal(ours.quantile(q), theirs.ppf(q))


def test_a_billion_trials():
    n, k = 10**9, 300_010_000
    with mpmath.workdps(40):
        log_p, log_q = mpmath.log(mpmath.mpf(0.3)), mpmath.log(1 - mpmath.mpf(0.3))
        exact = mpmath.log(mpmath.binomial(n, k)) + k * log_p + (n - k) * log_q
    assert Binomial(n, 0.3).logpmf(k) == pytest.approx(float(exact), rel=1e-12)
    # The entropy of a normal distribution, with the first term of the expansion in 1/n.
    expected = 0.5 * np.log(2 * np.pi * np.e * n * 0.21) + (4 * 0.21 - 1) / (12 * n * 0.21)
    assert Binomial(n, 0.3).entropy() == pytest.approx(expected, rel=1e-12)


def test_quantile_is_the_least_count():
    d = Binomial(20, 0.37)
    for p in np.linspace(0.001, 0.999, 57):
        k = d.quantile(p)
        assert d.cdf(k) >= p and (k == 0 or d.cdf(k - 1) < p)


def test_bernoulli_is_one_trial():
    np.testing.assert_allclose(Bernoulli([0.2, 0.7]).logpmf([[0], [1]]), Binomial(1, [0.2, 0.7]).logpmf([[0], [1]]))
    assert Bernoulli(0.5).entropy(base=2) == pytest.approx(1.0, rel=1e-14)
    assert Bernoulli(1.0).kl(Bernoulli(0.0)) == np.inf and Bernoulli(0.0).kl(Bernoulli(0.0)) == 0.0


def test_shares_at_the_ends_are_fitted():
    assert Bernoulli.fit_mle([0, 0, 0]).p == 0.0
    assert Binomial.fit_mle([4, 4], n=4).p == 1.0
    assert Binomial.fit_mle([10**9, 0], n=10**9).p == 0.5


def test_refusals():
    with pytest.raises(ParameterError, match=r"Binomial: n must be a whole number >= 0, got 2\.5"):
        Binomial(2.5, 0.5)
    with pytest.raises(ParameterError, match=r"Bernoulli: p must be in \[0, 1\], got 1\.5"):
        Bernoulli(1.5)
    with pytest.raises(DataError, match=r"Bernoulli: samples must be 0 or 1, got 2\.0"):
        Bernoulli.fit_mle([0, 1, 2])
    with pytest.raises(DataError, match=r"Binomial: samples must be whole numbers from 0 to n, got 5\.0"):
        Binomial.fit_mle([5.0], n=4)
