"""Categorical and multinomial distributions: values by hand, against SciPy, and at their edges."""

import numpy as np
import pytest
from scipy import stats

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Categorical, Multinomial


def test_codes():
    d = Categorical([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    np.testing.assert_allclose(d.pmf(np.arange(4)[:, None]), [[0.5, 0.1], [0.5, 0.2], [0.0, 0.7], [0.0, 0.0]])
    np.testing.assert_allclose(d.mean, [0.5, 1.6])
    np.testing.assert_allclose(d.cdf(1.5), [1.0, 0.3])
    assert np.array_equal(d.mode, [0.0, 2.0])
    assert set(d.sample(1000, random_state=0)[:, 0]) == {0.0, 1.0}


def test_divergence_to_what_lacks_a_category():
    assert Categorical([0.5, 0.5, 0.0]).kl(Categorical([0.2, 0.3, 0.5])) < np.inf
    assert Categorical([0.2, 0.3, 0.5]).kl(Categorical([0.5, 0.5, 0.0])) == np.inf
    with pytest.raises(ParameterError, match="Categorical: other must have 3 categories, got 2"):
        Categorical([0.2, 0.3, 0.5]).kl(Categorical([0.5, 0.5]))


def test_weighted_counts():
    d = Categorical([0.2, 0.3, 0.5])
    n, counts = d.sum_statistic([0, 2, 2, 1], [1.0, 0.5, 2.0, 0.0])
    assert n == 3.5 and np.array_equal(counts, [1.0, 0.0, 2.5])


def test_multinomial_against_scipy():
    ours, theirs = Multinomial(10, [0.2, 0.3, 0.5]), stats.multinomial(10, [0.2, 0.3, 0.5])
    x = ours.sample(6, random_state=0)
    np.testing.assert_allclose(ours.logpmf(x), theirs.logpmf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-12)
    np.testing.assert_allclose(ours.covariance, theirs.cov(), rtol=1e-12)
    assert ours.logpmf([1, 1, 1]) == -np.inf


def test_counts_of_a_billion():
    # Equal counts of two categories: the central binomial coefficient is 4^n/√(πn) (1 - 1/(8n) + …).
    n = 2e9
    assert Multinomial(2 * n, [0.5, 0.5]).logpmf([n, n]) == pytest.approx(
        -0.5 * np.log(np.pi * n) - 1 / (8 * n), rel=1e-13
    )


def test_refusals():
    with pytest.raises(ParameterError, match=r"Categorical: the sum of p must be 1, got 0\.9"):
        Categorical([0.4, 0.5])
    with pytest.raises(ParameterError, match=r"Multinomial: p must be probabilities in \[0, 1\], got -0\.5"):
        Multinomial(3, [-0.5, 1.5])
    with pytest.raises(DataError, match="Categorical: samples must be whole numbers from 0"):
        Categorical.fit_mle([0, 3], n_categories=3)
    with pytest.raises(DataError, match="Multinomial: samples must be vectors of whole numbers >= 0 with the sum n"):
        Multinomial.fit_mle([[1, 2], [2, 2]])
