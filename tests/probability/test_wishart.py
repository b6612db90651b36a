"""Wishart and inverse Wishart distributions against SciPy, in one dimension, and at their edges."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Gamma, InverseGamma, InverseWishart, MultivariateNormal, Wishart

V = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.5]])


@pytest.mark.parametrize("ours, theirs", [(Wishart, stats.wishart), (InverseWishart, stats.invwishart)])
@pytest.mark.parametrize("df", [4.0, 9.3, 200.0])
def test_functions_against_scipy(ours, theirs, df):
    ours, theirs = ours(df, V), theirs(df, V)
    x = ours.sample(4, random_state=0)
    np.testing.assert_allclose(ours.logpdf(x), [theirs.logpdf(m) for m in x], rtol=1e-10)
    if df > 6:
        np.testing.assert_allclose(ours.mean, theirs.mean(), rtol=1e-12)
        np.testing.assert_allclose(ours.variance, theirs.var(), rtol=1e-12)
    if isinstance(ours, Wishart):  # SciPy 1.17's entropy of the inverse is wrong; test_families simulates ours
        assert ours.entropy() == pytest.approx(theirs.entropy(), rel=1e-11)


def test_one_dimension_is_gamma():
    x = np.array([0.3, 1.0, 4.0])
    np.testing.assert_allclose(Wishart(3.0, [[2.0]]).logpdf(x[:, None, None]), Gamma(1.5, 0.25).logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(
        InverseWishart(3.0, [[2.0]]).logpdf(x[:, None, None]), InverseGamma(1.5, 1.0).logpdf(x), rtol=1e-13
    )


def test_it_is_the_distribution_of_scatter_matrices():
    x = MultivariateNormal(np.zeros(3), V).sample((20_000, 5), random_state=0)
    log_det = np.linalg.slogdet(np.swapaxes(x, 1, 2) @ x)[1]
    ours = np.linalg.slogdet(Wishart(5.0, V).sample(20_000, random_state=1))[1]
    assert stats.ks_2samp(log_det, ours).pvalue > 1e-3


def test_inverse_samples_are_inverses():
    direct = np.linalg.inv(Wishart(6.5, np.linalg.inv(V)).sample(20_000, random_state=0))
    ours = InverseWishart(6.5, V).sample(20_000, random_state=1)
    for i, j in ((0, 0), (0, 1), (2, 1)):
        assert stats.ks_2samp(direct[:, i, j], ours[:, i, j]).pvalue > 1e-3


def test_support_and_refusals():
    assert Wishart(4.0, V).logpdf(-np.eye(3)) == -np.inf
    assert Wishart(4.0, V).logpdf([[1.0, 0.5, 0], [0.0, 1.0, 0], [0, 0, 1.0]]) == -np.inf  # not symmetric
    with pytest.raises(ParameterError, match=r"Wishart: df must be > 2, the size less one, and finite, got 2\.0"):
        Wishart(2.0, V)
    with pytest.raises(ParameterError, match="InverseWishart: scale must be symmetric and positive definite"):
        InverseWishart(5.0, -V)
    with pytest.raises(ParameterError, match=r"Wishart: scale must be a square matrix, got shape \(1, 2\)"):
        Wishart(5.0, [[1.0, 2.0]])
    with pytest.raises(DataError, match="Wishart: fit_mle needs two distinct matrices"):
        Wishart.fit_mle([V, V])
