"""Lloyd's steps: bounds change nothing, empty clusters are filled, blocks add."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.data import Blocks, Part
from learnable.mixtures.bounded import BoundedLloyd
from learnable.mixtures.lloyd import Lloyd, distances_to, means_of_clusters, nearest_centres

RNG = np.random.default_rng(0)


def test_bounded_passes_are_plain_passes():
    X, w = RNG.normal(size=(3000, 5)), RNG.uniform(0.5, 2.0, 3000)
    centres = X[:20].copy()
    bounded, plain = BoundedLloyd(X, w, X.mean(axis=0), 20), Lloyd(X.mean(axis=0))
    bounded.restart(centres)
    for _ in range(8):
        found = [bounded.expectation(part, centres) for part in bounded.parts]
        (counts, sums), objective = found[0]
        (expected, expected_sums, _), value = plain.expectation(Blocks([Part(X, None, w)])[0], centres)
        np.testing.assert_allclose(counts, expected, rtol=1e-12)
        np.testing.assert_allclose(sums, expected_sums, atol=1e-9)
        assert objective == pytest.approx(value, rel=1e-11)
        centres = bounded.maximisation((counts, sums), centres)
    labels, inertia = bounded.finish(centres)
    squares = ((X[:, None] - centres) ** 2).sum(axis=2)
    assert labels.tolist() == squares.argmin(axis=1).tolist()
    assert inertia == pytest.approx(w @ squares.min(axis=1))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_nearest_centres_are_the_nearest(offset):
    X, C = RNG.normal(size=(500, 3)) + offset, RNG.normal(size=(9, 3)) + offset
    squares = ((X[:, None] - C) ** 2).sum(axis=2)
    labels, found = nearest_centres(X, C)
    assert labels.tolist() == squares.argmin(axis=1).tolist()
    np.testing.assert_allclose(found, squares.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(distances_to(X, C), np.sqrt(squares), rtol=1e-12)
    if offset == 0.0:
        assert nearest_centres(sp.csr_array(X), C)[0].tolist() == labels.tolist()


def test_ties_go_to_the_lowest_number():
    labels, _ = nearest_centres(np.zeros((3, 2)), np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    assert labels.tolist() == [0, 0, 0]


def test_a_cluster_without_rows_takes_the_farthest():
    X = np.array([[0.0], [1.0], [9.0]])
    plain, centres = Lloyd(np.zeros(1)), np.array([[0.0], [500.0]])
    statistics, _ = plain.expectation(Blocks([Part(X)])[0], centres)
    assert plain.maximisation(statistics, centres).ravel().tolist() == [0.5, 9.0]
    assert means_of_clusters(statistics[0], statistics[1], None, np.zeros(1), centres)[1, 0] == 500.0
