"""Rows of very different sizes: a few far cells must not change what the other rows find."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable import NearestNeighbors, verify
from learnable.neighbors.ranges import pair_distances, scaled_norms, typical_size

SIZES = [1e-300, 1e-200, 1e-160, 1e6, 1e18, 1e80, 1e154, 1e162, 1e250, 1e300]
ORDERS = {"manhattan": 1, "euclidean": 2, "minkowski": 3, "chebyshev": np.inf}


def true_distances(X, Q, metric):
    """All distances in extended precision, whose range is that of float64 many times over."""
    gaps = np.abs(np.asarray(Q, np.longdouble)[:, None] - np.asarray(X, np.longdouble))
    order = ORDERS[metric]
    if np.isinf(order):
        return gaps.max(axis=2)
    return (gaps**order).sum(axis=2) ** (np.longdouble(1) / order)


def search_for(metric, algorithm, k):
    return NearestNeighbors(n_neighbors=k, metric=metric, p=3, algorithm=algorithm)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "auto"])
@pytest.mark.parametrize("metric", ORDERS)
@given(data=st.data())
@settings(max_examples=12)
def test_far_cells_leave_the_other_rows_their_neighbours(metric, algorithm, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, d = int(rng.integers(8, 60)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d)) * data.draw(st.sampled_from([1.0, 1e-6, 1e-100, 1e6]))
    for _ in range(data.draw(st.integers(1, 4))):
        X[rng.integers(n), rng.integers(d)] = data.draw(st.sampled_from(SIZES)) * rng.choice([-1.0, 1.0])
    k = data.draw(st.integers(1, n - 1))
    model = search_for(metric, algorithm, k).fit(X)
    assert model.certificate_.holds and verify(model, X).ok
    true = true_distances(X, X, metric)
    np.fill_diagonal(true, np.inf)
    distances, rows = model.kneighbors()
    best = np.sort(true, axis=1)[:, :k]
    np.testing.assert_allclose(distances, best.astype(float), rtol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(true, rows, axis=1).astype(float), best.astype(float), rtol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("column", [0, 2])
def test_balls_around_rows_of_all_sizes(container, size, column):
    X = np.random.default_rng(3).normal(size=(40, 3))
    X[11, column] = size
    true = true_distances(X, X, "euclidean")
    model = NearestNeighbors().fit(container(X))
    for radius in (0.5, 1e-150, size * 1.001, size * 0.999):
        distances, rows = model.radius_neighbors(container(X), radius)
        for i in range(40):
            assert rows[i].tolist() == np.flatnonzero(true[i] <= radius).tolist()
            np.testing.assert_allclose(distances[i], true[i][rows[i]].astype(float), rtol=1e-12, atol=0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", [1, 5, 39])
def test_sparse_rows_find_what_dense_rows_find(size, k):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.5)
    X[7, 3] = size
    X[8, 3] = -size
    sparse, dense = NearestNeighbors(n_neighbors=k).fit(sp.csr_array(X)), NearestNeighbors(n_neighbors=k).fit(X)
    found, true = sparse.kneighbors(), dense.kneighbors()
    np.testing.assert_allclose(found[0], true[0], rtol=1e-12)
    best = np.sort(true_distances(X, X, "euclidean") + np.diag(np.full(40, np.inf)), axis=1)[:, :k]
    np.testing.assert_allclose(found[0], best.astype(float), rtol=1e-12)


def test_a_high_power_of_small_differences_still_orders_the_rows():
    """(1e-8)⁵⁰ is below the floats; the distance is not."""
    X = np.array([[0.0, 1.0], [1e-8, 1.0], [3e-8, 1.0], [2e-8, 1.0], [5.0, 1.0]])
    model = NearestNeighbors(n_neighbors=4, p=50).fit(X)
    distances, rows = model.kneighbors(X[:1])
    assert rows.tolist() == [[0, 1, 3, 2]]
    np.testing.assert_allclose(distances, [[0.0, 1e-8, 2e-8, 3e-8]], rtol=1e-12)


def test_norms_and_typical_sizes():
    gaps = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0], [5e-324, 0.0]])
    np.testing.assert_allclose(scaled_norms(gaps, 2.0), [5e200, 5e-200, 0.0, 5e-324])
    X = np.array([[1.0, 2.0], [0.0, 0.0], [1e300, 0.0], [2.0, -3.0]])
    assert typical_size(X) == typical_size(sp.csr_array(X)) == 3.0
    assert typical_size(np.zeros((3, 2))) == 0.0
    pairs = pair_distances(X, X, np.array([0, 2]), np.array([3, 1]), 1.0)
    assert pairs.tolist() == [6.0, 1e300]
