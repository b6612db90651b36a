"""Starts and priors of Gaussian mixtures."""

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.data import Blocks, Part
from learnable.mixtures import GaussianMixture
from learnable.mixtures.normals import NormalMixture
from learnable.mixtures.starts import covariances_of, default_prior, given_prior, start_mixture

X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [9.0]], 30, axis=0)


@pytest.mark.parametrize("how", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_start_is_a_mixture(how, kind):
    model = GaussianMixture(2, covariance_type=kind, init_params=how)
    problem = NormalMixture(kind, 2, 2, 60.0, 1e-3)
    mixture = start_mixture(model, problem, X, np.ones(60), None, np.random.default_rng(0))
    assert mixture.weights.sum() == pytest.approx(1.0) and np.isfinite(mixture.means).all()
    assert mixture.covariances.shape == covariances_of(kind, 2, 2)
    if how == "kmeans":
        np.testing.assert_allclose(np.sort(mixture.means[:, 0]), [X[:30, 0].mean(), X[30:, 0].mean()], atol=1e-8)


def test_the_default_prior_is_fraley_and_rafterys():
    prior = default_prior(Blocks([Part(X)]), 3, "full", None)
    assert prior.dof == 4.0 and prior.kappa == 0.01
    np.testing.assert_allclose(prior.mean, X.mean(axis=0))
    np.testing.assert_allclose(prior.scale, np.cov(X.T, bias=True) / 3)


def test_given_priors_are_checked():
    assert given_prior("G", {"dof": 3, "scale": 2.0}, 2).scale.tolist() == [2.0, 2.0]
    for bad in ({"dof": 3.0}, {"kappa": 1.0}, {"scale": np.ones(3), "dof": 1.0}):
        with pytest.raises(ParameterError, match="prior"):
            given_prior("G", bad, 2)
