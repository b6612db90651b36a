"""Student's t distribution of vectors against SciPy."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import MultivariateStudentT, StudentT

S = np.array([[2.0, 0.6], [0.6, 1.0]])


def test_functions_against_scipy():
    ours, theirs = MultivariateStudentT(4.5, [0.5, -1.0], S), stats.multivariate_t([0.5, -1.0], S, df=4.5)
    x = np.random.default_rng(0).normal(size=(7, 2)) * 3.0
    np.testing.assert_allclose(ours.logpdf(x), theirs.logpdf(x), rtol=1e-12)
    assert ours.entropy() == pytest.approx(theirs.entropy(), rel=1e-10)
    np.testing.assert_allclose(ours.covariance, S * 4.5 / 2.5)
    marginal = ours.marginal(1)
    assert isinstance(marginal, StudentT) and marginal.scale == 1.0
    draws = ours.sample(4000, random_state=0)
    assert stats.kstest(marginal.cdf(draws[:, 1]), "uniform").pvalue > 1e-3


def test_an_array_of_them():
    both = MultivariateStudentT([3.0, 5.0], np.zeros(2), S)
    x = np.ones((4, 1, 2))
    np.testing.assert_allclose(both.logpdf(x)[0], [both[0].logpdf([1.0, 1.0]), both[1].logpdf([1.0, 1.0])])
    assert both.sample(3, random_state=0).shape == (3, 2, 2)


def test_refusals():
    with pytest.raises(ParameterError, match="positive definite"):
        MultivariateStudentT(3.0, [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(DataError, match="2 entries along its last axis"):
        MultivariateStudentT(3.0, [0.0, 0.0], S).logpdf([1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match="no closed form"):
        MultivariateStudentT(3.0, [0.0, 0.0], S).kl(MultivariateStudentT(4.0, [0.0, 0.0], S))
