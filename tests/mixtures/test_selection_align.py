"""Label switching: the permutation is found, whatever it was."""

import itertools

import numpy as np
import pytest

from learnable.core.errors import ParameterError
from learnable.mixtures import GaussianMixture, KMeans, align_components


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_permutation_is_undone(order):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 4))
    moved = centres[list(order)] + 0.01 * rng.normal(size=(3, 4))
    np.testing.assert_allclose(moved[align_components(centres, moved)], centres, atol=0.1)
    r = rng.dirichlet([0.2, 0.2, 0.2], size=50)
    np.testing.assert_array_equal(r[:, list(order)][:, align_components(r, r[:, list(order)])], r)


def test_models_are_compared_by_their_centres():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 2)) + 8 * k for k in range(3)])
    mixture, clusters = GaussianMixture(3, random_state=0).fit(X), KMeans(3, random_state=1).fit(X)
    order = align_components(mixture, clusters)
    np.testing.assert_allclose(clusters.cluster_centers_[order], mixture.means_, atol=0.2)


def test_other_shapes_are_refused():
    with pytest.raises(ParameterError, match="one shape"):
        align_components(np.zeros((2, 3)), np.zeros((3, 3)))
