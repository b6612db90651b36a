"""Gaussian emissions: one state is plain estimation; large means keep their digits; laws of the four shapes."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.sequences.models import given

from learnable import GaussianHMM

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped after")
SHAPES = ("diag", "spherical", "full", "tied")


@pytest.mark.parametrize("shape", SHAPES)
def test_one_state_is_the_plain_estimate(shape):
    X = np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 2.0, 0.5] + [5.0, -1.0, 0.0]
    model = GaussianHMM(1, shape, covars_prior=0.0).fit(X)
    S = np.cov(X.T, bias=True)
    expected = {"diag": np.diag(S)[None], "spherical": [np.diag(S).mean()], "full": S[None], "tied": S}[shape]
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(model.covars_, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shift_of_the_data_shifts_the_means_and_nothing_else(shape):
    X = given(shape).sample(200, random_state=0)[0]
    near, far = (
        clone(given(shape)).set_params(n_iter=30, tol=0.0, random_state=0).fit(X + move) for move in (0.0, 1e6)
    )
    np.testing.assert_allclose(far.means_ - 1e6, near.means_, atol=1e-6)
    np.testing.assert_allclose(far.covars_, near.covars_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_maximum_is_stationary(shape):
    # The objective has no slope at the fit: central differences along every mean.
    X = given(shape, K=2).sample(150, random_state=0)[0]
    model = clone(given(shape, K=2)).set_params(n_iter=3000, tol=1e-10, random_state=0, means_weight=0.5).fit(X)

    def objective():
        return model.score(X) + model._emission().log_prior(model._fitted().emission)

    means = model.means_
    for place in np.ndindex(means.shape):
        values = []
        for step in (1e-4, -1e-4):
            model.means_ = means.copy()
            model.means_[place] += step
            values.append(objective())
        assert abs(values[0] - values[1]) / 2e-4 < 1e-2
    model.means_ = means


def test_missing_entries_of_a_full_covariance_use_the_others():
    model = given("full", K=1)
    X = np.random.default_rng(0).multivariate_normal(model.means_[0], model.covars_[0], 4000)
    gone = X.copy()
    gone[:2000, 1] = np.nan
    fitted = GaussianHMM(1, "full", covars_prior=0.0, n_iter=500, tol=1e-9).fit(gone)
    # Regression of the second column on the first, over the complete rows, gives the same estimate in closed form.
    slope, level = np.polyfit(X[2000:, 0], X[2000:, 1], 1)
    np.testing.assert_allclose(fitted.means_[0, 1], level + slope * X[:, 0].mean(), rtol=1e-5)
    np.testing.assert_allclose(fitted.means_[0, 0], X[:, 0].mean(), rtol=1e-9)
