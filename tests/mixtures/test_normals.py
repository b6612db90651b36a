"""The two steps of a Gaussian mixture: the M-step is the maximum, numerically."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.data import Blocks, Part
from learnable.mixtures.normals import Density, Mixture, NormalMixture, Prior, normalise, restrict

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]])
PRIOR = Prior(2.0, 5.0, np.array([1.0, 2.0]), np.array([0.5, 0.0]), 1.5)


def start(kind):
    shapes = {"full": np.stack([np.eye(2)] * 2), "tied": np.eye(2), "diag": np.ones((2, 2)), "spherical": np.ones(2)}
    return Mixture(np.array([0.4, 0.6]), X[:2].copy(), shapes[kind])


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_no_nearby_parameters_have_a_greater_expected_objective(kind):
    problem, old = NormalMixture(kind, 2, 2, 80.0, 0.01, PRIOR), start(kind)
    block = Blocks([Part(X)])[0]
    r = normalise(Density(kind, old).log_joint(np.ascontiguousarray(X.T)))[1]
    new = problem.maximisation(problem.expectation(block, old)[0], old)

    def expected(mixture):
        log_joint = Density(kind, mixture).log_joint(np.ascontiguousarray(X.T))
        return float((r * log_joint).sum()) + problem.log_prior(mixture)

    best = expected(new)
    for _ in range(200):
        weights = np.abs(new.weights * (1 + 1e-3 * RNG.normal(size=2)))
        means = new.means + 1e-3 * RNG.normal(size=(2, 2))
        noise = RNG.normal(size=new.covariances.shape)
        noise = noise + np.swapaxes(noise, -1, -2) if kind in ("full", "tied") else noise
        other = Mixture(weights / weights.sum(), means, new.covariances + 1e-3 * noise)
        assert expected(other) <= best + 1e-9


def test_a_singular_covariance_is_named():
    with pytest.raises(DataError, match="component 1 is singular"):
        Density("full", Mixture(np.ones(2) / 2, np.zeros((2, 2)), np.stack([np.eye(2), np.ones((2, 2))])))
    with pytest.raises(DataError, match="component 0 is singular"):
        Density("spherical", Mixture(np.ones(1), np.zeros((1, 2)), np.zeros(1)))


def test_known_components_leave_no_choice():
    log_joint = restrict(np.zeros((3, 2)), np.array([-1, 2]))
    total, r = normalise(log_joint)
    np.testing.assert_allclose(r.T, [[1 / 3, 1 / 3, 1 / 3], [0, 0, 1]])
    np.testing.assert_allclose(total, [np.log(3), 0.0])
