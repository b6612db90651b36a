"""Search in a sparse graph of distances."""

import numpy as np
import pytest

from learnable import NearestNeighbors, verify
from learnable.core.errors import DataError


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4))


def test_a_sparse_graph_of_distances():
    X, Q = rows(50), rows(10, 1)
    full = NearestNeighbors(n_neighbors=9).fit(X)
    graph, queries = full.kneighbors_graph(X, mode="distance"), full.kneighbors_graph(Q, mode="distance")
    model = NearestNeighbors(n_neighbors=5, metric="precomputed").fit(graph)
    assert model.certificate_.holds and verify(model, graph).ok
    assert (model.kneighbors(queries)[1] == full.kneighbors(Q, 5)[1]).all()
    np.testing.assert_array_equal(model.kneighbors()[1], full.kneighbors(n_neighbors=5)[1])
    near = model.radius_neighbors(queries, 0.5)[1]
    expected = full.radius_neighbors(Q, 0.5)[1]
    assert all(set(a) <= set(b) for a, b in zip(near, expected, strict=True))
    with pytest.raises(DataError, match="10 neighbors per samples are required, but some samples have only 9"):
        model.kneighbors(queries, 10)
