"""The Beta–binomial and Dirichlet–multinomial distributions against SciPy and by summation."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import ParameterError
from learnable.probability import BetaBinomialCount, DirichletMultinomialCounts


def test_beta_binomial_against_scipy():
    ours, theirs = BetaBinomialCount(12, 0.7, 2.5), stats.betabinom(12, 0.7, 2.5)
    x = np.arange(-1, 14)
    np.testing.assert_allclose(ours.logpmf(x), theirs.logpmf(x), rtol=1e-11)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ours.quantile([0.1, 0.5, 0.99]), theirs.ppf([0.1, 0.5, 0.99]))
    assert (ours.mean, ours.variance) == (pytest.approx(theirs.mean()), pytest.approx(theirs.var()))
    p = ours.pmf(np.arange(13))
    assert ours.entropy() == pytest.approx(-(p * np.log(p)).sum())
    other = BetaBinomialCount(12, [0.7, 2.0], 2.5)
    np.testing.assert_allclose(ours.kl(other), [0.0, (p * np.log(p / other[1].pmf(np.arange(13)))).sum()], atol=1e-12)
    assert stats.kstest(ours.cdf(ours.sample(500, random_state=0)), "uniform").statistic < 0.4


def test_an_array_of_them():
    both = BetaBinomialCount([3.0, 5.0], 1.0, [1.0, 2.0])
    table = both.cdf(np.arange(6)[:, None])
    for j in range(2):
        np.testing.assert_allclose(table[:, j], both[j].cdf(np.arange(6)))
    assert np.isnan(both.cdf(np.nan)).all()


def test_dirichlet_multinomial_sums_to_one():
    d = DirichletMultinomialCounts(4, [0.5, 1.0, 2.0])
    x = np.array([(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)])
    p = d.pmf(x)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(p @ x, d.mean)
    np.testing.assert_allclose((x.T * p) @ x - np.outer(d.mean, d.mean), d.covariance, atol=1e-12)
    assert d.entropy() == pytest.approx(-(p * np.log(p)).sum())
    other = DirichletMultinomialCounts(4, [1.0, 1.0, 1.0])
    assert d.kl(other) == pytest.approx((p * np.log(p / other.pmf(x))).sum())
    assert d.logpmf([1.0, 1.0, 1.0]) == -np.inf
    draws = d.sample(20_000, random_state=0)
    assert np.all(draws.sum(axis=1) == 4) and np.allclose(draws.mean(axis=0), d.mean, atol=0.06)


def test_refusals():
    with pytest.raises(ParameterError, match="sums at most"):
        BetaBinomialCount(1e9, 1.0, 1.0).cdf(3.0)
    with pytest.raises(ParameterError, match="same number of trials"):
        BetaBinomialCount(3, 1.0, 1.0).kl(BetaBinomialCount(4, 1.0, 1.0))
    with pytest.raises(ParameterError, match="use samples"):
        DirichletMultinomialCounts(1e6, np.ones(4)).entropy()
