"""The Dirichlet pairs against SciPy, with counts of 10⁹."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import DirichletCategorical, DirichletMultinomial

ALPHA = [0.5, 1.0, 3.0]


def test_evidence_against_scipy():
    x = [2, 0, 7]
    theirs = stats.dirichlet_multinomial(ALPHA, 9).logpmf(x)
    assert DirichletMultinomial(ALPHA).log_marginal_likelihood([x]) == pytest.approx(theirs, rel=1e-11)
    assert DirichletMultinomial(ALPHA).predictive(9).logpmf(x) == pytest.approx(theirs, rel=1e-11)


def test_counts_of_a_billion_keep_their_digits():
    # Flat prior: all (n + 1)(n + 2)/2 vectors of three counts are equally probable.
    n = 1e9
    expected = -np.log((n + 1.0) * (n + 2.0) / 2.0)
    evidence = DirichletMultinomial(np.ones(3)).log_marginal_likelihood([[2e8, 5e8, 3e8]])
    assert evidence == pytest.approx(expected, rel=1e-11)


def test_codes_and_counts_agree():
    codes = [0, 2, 2, 1, 2, 0]
    counts = np.bincount(codes)
    one, other = DirichletCategorical(ALPHA).update(codes), DirichletMultinomial(ALPHA).update([counts])
    assert np.array_equal(one.alpha, other.alpha)
    assert np.array_equal(one.predictive().p, other.predictive().p)
    # The evidence of an order is that of the counts over the number of orders, 6!/(2! 1! 3!).
    difference = other.__class__(ALPHA).log_marginal_likelihood([counts]) - DirichletCategorical(
        ALPHA
    ).log_marginal_likelihood(codes)
    assert difference == pytest.approx(np.log(60.0), rel=1e-12)


def test_smoothing_is_a_prior():
    posterior = DirichletCategorical(np.ones(4)).update([1, 1, 3])
    assert np.allclose(posterior.predictive().p, (np.array([0, 2, 0, 1]) + 1.0) / 7.0)
    low, high = posterior.interval(0.9)
    assert low.shape == high.shape == (4,)
    assert np.all((low < posterior.predictive().p) & (posterior.predictive().p < high))


def test_refusals():
    with pytest.raises(DataError, match=r"observations must be whole numbers from 0 to 2, got 3\.0"):
        DirichletCategorical(ALPHA).update([3])
    with pytest.raises(DataError, match="an observation must have 3 counts, got 2"):
        DirichletMultinomial(ALPHA).update([[1, 2]])
    with pytest.raises(ParameterError, match="map needs every alpha >= 1"):
        DirichletMultinomial(ALPHA).map()
    with pytest.raises(DataError, match="statistics must be counts >= 0"):
        DirichletMultinomial(ALPHA).update(statistics=(1.0, [1.0, -1.0, 0.0]))
