"""The search as an estimator, and the rows within a radius."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors as Reference

import learnable as ln
from learnable import NearestNeighbors
from learnable.core.errors import ParameterError


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
def test_balls_are_scikit_learns(algorithm):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(400, 3)), rng.normal(size=(50, 3))
    ours, theirs = (cls(radius=0.7, algorithm=algorithm).fit(X) for cls in (NearestNeighbors, Reference))
    for query in (Q, None):
        found, expected = (
            ours.radius_neighbors(query, sort_results=True),
            theirs.radius_neighbors(query, sort_results=True),
        )
        for i in range(len(found[0])):
            assert found[1][i].tolist() == expected[1][i].tolist()
            np.testing.assert_allclose(found[0][i], expected[0][i], rtol=1e-10)
        graphs = (m.radius_neighbors_graph(query, mode="distance").toarray() for m in (ours, theirs))
        np.testing.assert_allclose(*graphs, rtol=1e-10)
    assert [len(rows) for rows in ours.radius_neighbors(Q + 100, return_distance=False)] == [0] * 50


def test_a_row_at_exactly_the_radius_is_within():
    model = NearestNeighbors().fit([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    assert model.radius_neighbors([[0.0, 0.0]], radius=5.0, return_distance=False)[0].tolist() == [0, 1]
    assert model.radius_neighbors([[0.0, 0.0]], radius=np.inf, return_distance=False)[0].tolist() == [0, 1, 2]
    assert model.radius_neighbors([[0.0, 0.0]], radius=np.nextafter(5, 0), return_distance=False)[0].tolist() == [0]


def test_mistakes_are_said():
    model = NearestNeighbors().fit(np.eye(3))
    with pytest.raises(ParameterError, match="radius"):
        model.radius_neighbors(radius=-1.0)
    with pytest.raises(ParameterError, match="sort_results"):
        model.radius_neighbors(sort_results=True, return_distance=False)
    with pytest.raises(ParameterError, match="mode"):
        model.radius_neighbors_graph(mode="near")


def test_files_and_verification(tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = NearestNeighbors(metric="minkowski", p=3).fit(X)
    ln.save(model, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    assert (loaded.kneighbors(X)[0] == model.kneighbors(X)[0]).all()
    assert bool(ln.verify(loaded, X)) and not bool(ln.verify(loaded, X + 1e-9))
