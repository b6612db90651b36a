"""Counts of earthquakes, and the M-step by its formula."""

import numpy as np
import pytest
from scipy.stats import poisson
from tests.sequences.models import given

from learnable import PoissonHMM


@pytest.mark.parametrize(
    "K, log_likelihood, rates",
    [(1, -391.9189, [19.364]), (2, -341.8787, [15.421, 26.018]), (3, -328.5275, [13.134, 19.713, 29.710])],
)
def test_earthquakes(reference_data, K, log_likelihood, rates):
    # Major earthquakes 1900–2006; maximum-likelihood fits of W. Zucchini, I. MacDonald and R. Langrock, Hidden Markov
    # Models for Time Series (2nd ed., 2016), with a free first law.
    X = np.loadtxt(reference_data / "series" / "earthquakes.csv", delimiter=",", skiprows=1)[:, 1:]
    model = PoissonHMM(K, n_iter=2000, tol=1e-8, n_init=8, random_state=0).fit(X)
    assert model.score(X) == pytest.approx(log_likelihood, abs=5e-4)
    np.testing.assert_allclose(np.sort(model.lambdas_[:, 0]), rates, atol=2e-3)


def test_frames_are_scipys():
    model = given("poisson")
    model.lambdas_[1, 0] = 0.0
    X = np.array([[0.0, 3.0], [2.0, 0.0], [np.nan, 5.0]])
    found = model._emission().log_frames(X, (model.lambdas_,))
    expected = poisson.logpmf(X[:2, None, :], model.lambdas_).sum(axis=2)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-12)
    np.testing.assert_allclose(found[2], poisson.logpmf(5, model.lambdas_[:, 1]), rtol=1e-12)


def test_one_state_is_the_mean_and_the_prior_adds_counts():
    X = np.array([[3], [5], [1], [0]])
    assert PoissonHMM(1).fit(X).lambdas_[0, 0] == pytest.approx(9 / 4)
    assert PoissonHMM(1, lambdas_prior=2.0, lambdas_weight=3.0).fit(X).lambdas_[0, 0] == pytest.approx(11 / 7)
