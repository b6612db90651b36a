"""The Dirichlet distribution against SciPy and at its edges; the laws of all families are in test_families."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Beta, Dirichlet


@pytest.mark.parametrize("alpha", [[1.0, 2.0, 5.0], [0.1, 0.2, 0.3], [1.0, 1.0], [40.0, 2.0, 7.0, 0.5]])
def test_functions_against_scipy(alpha):
    ours, theirs = Dirichlet(alpha), stats.dirichlet(alpha)
    x = ours.sample(5, random_state=0)
    np.testing.assert_allclose(ours.logpdf(x), [theirs.logpdf(row / row.sum()) for row in x], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(ours.covariance, theirs.cov(), rtol=1e-11, atol=1e-16)
    np.testing.assert_allclose(ours.variance, theirs.var(), rtol=1e-12)


def test_entries_are_beta_distributed():
    d = Dirichlet([2.0, 0.8, 3.5])
    x = d.sample(20_000, random_state=0)
    for k in range(3):
        assert stats.kstest(x[:, k], Beta(*d.marginal(k)).cdf).pvalue > 1e-3


def test_tiny_concentrations_do_not_underflow():
    x = Dirichlet([1e-3, 1e-3]).sample(1000, random_state=0)
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=1e-12)
    assert abs(x[:, 0].mean() - 0.5) < 0.06


def test_boundary():
    assert Dirichlet([1.0, 1.0, 1.0]).logpdf([0.0, 0.5, 0.5]) == pytest.approx(np.log(2.0))
    assert Dirichlet([2.0, 1.0]).logpdf([0.0, 1.0]) == -np.inf
    assert Dirichlet([0.5, 1.0]).logpdf([0.0, 1.0]) == np.inf
    assert Dirichlet([2.0, 1.0]).logpdf([0.5, 0.4]) == -np.inf


def test_refusals():
    with pytest.raises(ParameterError, match=r"Dirichlet: alpha must be > 0 and finite, got -1\.0"):
        Dirichlet([1.0, -1.0])
    with pytest.raises(ParameterError, match=r"Dirichlet: alpha must be a vector, or an array of such, got shape \(\)"):
        Dirichlet(1.0)
    with pytest.raises(DataError, match="Dirichlet: samples must be positive with the sum 1"):
        Dirichlet.fit_mle([[0.5, 0.4], [0.2, 0.8]])
