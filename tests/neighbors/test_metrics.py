"""Every metric against scikit-learn's distances, and what cannot be measured."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import DistanceMetric, pairwise_distances
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors import NearestNeighbors as Reference
from tests.oracles.neighbors import first_k

from learnable import NearestNeighbors, verify
from learnable.core.errors import DataError, ParameterError
from learnable.neighbors.metrics import resolve_metric


def rows(m, seed=0):
    return np.random.default_rng(seed).normal(size=(m, 4))


def furthest_difference(a, b):
    return np.abs(a - b).max()


CASES = [
    ("euclidean", {}),
    ("l2", {}),
    ("sqeuclidean", {}),
    ("manhattan", {}),
    ("cityblock", {}),
    ("l1", {}),
    ("chebyshev", {}),
    ("minkowski", {"p": 3}),
    ("minkowski", {"p": 1.5}),
    ("minkowski", {"p": 2, "w": np.array([1.0, 2.0, 0.0, 3.0])}),
    ("cosine", {}),
    ("correlation", {}),
    ("canberra", {}),
    ("braycurtis", {}),
    ("hamming", {}),
    ("jaccard", {}),
    ("mahalanobis", {"VI": np.diag([1.0, 2.0, 3.0, 4.0])}),
    ("seuclidean", {"V": np.array([1.0, 2.0, 3.0, 4.0])}),
    (furthest_difference, {}),
]


@pytest.mark.filterwarnings("ignore:.*was converted to boolean")
@pytest.mark.parametrize(("metric", "parameters"), CASES)
def test_distances_are_those_of_the_metric(metric, parameters):
    X, Q = rows(120), rows(30, 1)
    if metric in ("hamming", "jaccard"):
        X, Q = X > 0, Q > 0
    true = pairwise_distances(Q, X, metric=metric, **parameters)
    model = NearestNeighbors(n_neighbors=6, metric=metric, metric_params=parameters).fit(X)
    found, numbers = model.kneighbors(Q)
    np.testing.assert_allclose(found, np.sort(true, axis=1)[:, :6], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(np.take_along_axis(true, numbers, axis=1), found, rtol=1e-12, atol=1e-15)
    assert model.certificate_.holds
    radius = float(np.median(found))
    inside = model.radius_neighbors(Q, radius, return_distance=False)
    sizes = np.array([len(found) for found in inside])
    assert (np.abs(sizes - (true <= radius).sum(axis=1)) <= (np.abs(true - radius) < 1e-12).sum(axis=1)).all()


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan", "cosine"])
def test_sparse_rows_have_the_distances_of_dense_ones(metric):
    X, Q = (np.where(abs(Z) > 1.0, Z, 0.0) for Z in (rows(150), rows(20, 1)))  # with empty rows
    dense = NearestNeighbors(metric=metric).fit(X)
    sparse = NearestNeighbors(metric=metric).fit(sp.csr_array(X))
    for Z in (sp.csr_array(Q), sp.csc_matrix(Q), Q):
        found, numbers = sparse.kneighbors(Z)
        np.testing.assert_allclose(found, dense.kneighbors(Q)[0], rtol=1e-12, atol=1e-15)
        if metric != "cosine":
            assert (numbers == dense.kneighbors(Q)[1]).all()
    assert (dense.kneighbors(sp.csr_array(Q))[1] == dense.kneighbors(Q)[1]).all()


def test_rows_of_zeros_are_at_cosine_distance_one():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [1e-200, 1e-200], [1e200, 0.0]])
    distances, numbers = NearestNeighbors(n_neighbors=5, metric="cosine").fit(X).kneighbors([[0.0, 0.0], [1e300, 0.0]])
    assert distances[0].tolist() == [1.0] * 5 and numbers[0].tolist() == [0, 1, 2, 3, 4]
    assert numbers[1].tolist() == [1, 4, 3, 0, 2]
    np.testing.assert_allclose(distances[1], [0, 0, 1 - np.sqrt(0.5), 1, 2], rtol=1e-15, atol=1e-15)


def test_precomputed_distances():
    X, Q = rows(50), rows(10, 1)
    D, E = pairwise_distances(X), pairwise_distances(Q, X)
    model = NearestNeighbors(metric="precomputed").fit(D)
    assert (model.kneighbors(E)[1] == first_k(E, 5)).all()
    assert (model.kneighbors()[1] == Reference(metric="precomputed").fit(D).kneighbors()[1]).all()
    with pytest.raises(DataError, match="square"):
        NearestNeighbors(metric="precomputed").fit(E)
    with pytest.raises(DataError, match="Negative values"):
        NearestNeighbors(metric="precomputed").fit(-D)
    with pytest.raises(DataError, match="Negative values"):
        NearestNeighbors(metric="precomputed").fit(sp.csr_array(-D))


def test_a_power_below_one_is_no_metric_but_orders_rows():
    X, Q = rows(40), rows(5, 1)
    with pytest.warns(UserWarning, match="not distance metrics"):
        model = NearestNeighbors(p=0.5).fit(X)
    D = (np.abs(Q[:, None] - X) ** 0.5).sum(axis=2) ** 2
    assert (model.kneighbors(Q)[1] == first_k(D, 5)).all() and verify(model, X).ok
    with pytest.raises(ParameterError, match="does not support 0 < p < 1"):
        NearestNeighbors(p=0.5, algorithm="kd_tree").fit(X)


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "canberra"])
def test_metric_objects_and_fitted_trees(name):
    X, Q = rows(40), rows(5, 1)
    model = NearestNeighbors(metric=DistanceMetric.get_metric(name)).fit(X)
    assert (model.kneighbors(Q)[1] == NearestNeighbors(metric=name).fit(X).kneighbors(Q)[1]).all()
    for index in (KDTree(X), BallTree(X), Reference().fit(X), model):
        assert (NearestNeighbors(metric=name).fit(index).kneighbors(Q)[1] == model.kneighbors(Q)[1]).all()


@pytest.mark.parametrize(
    ("given", "named"), [(1, "manhattan"), (2, "euclidean"), (np.inf, "chebyshev"), (3, "minkowski")]
)
def test_effective_metrics_are_scikit_learns(given, named):
    metric = resolve_metric("M", "minkowski", given, None)
    reference = Reference(p=given).fit(rows(9))
    assert metric.name == named == reference.effective_metric_
    assert metric.parameters == reference.effective_metric_params_


def test_what_cannot_be_measured_is_said():
    X = rows(9)
    for arguments, words in [
        ({"metric": "euclid"}, "must be one of"),
        ({"metric": "nan_euclidean", "metric_params": {"missing_values": 0}}, "no metric_params"),
        ({"metric": "nan_euclidean", "algorithm": "kd_tree"}, "kd_tree"),
        ({"p": 0}, "p must be"),
        ({"metric": "cosine", "algorithm": "kd_tree"}, "kd_tree"),
        ({"metric": 3}, "metric must be"),
        ({"metric_params": 3}, "metric_params must be"),
    ]:
        with pytest.raises(ParameterError, match=words):
            NearestNeighbors(**arguments).fit(X)
    with pytest.raises(DataError, match="canberra"):
        NearestNeighbors(metric="canberra").fit(sp.csr_array(X))
    with pytest.raises(DataError, match="gives NaN, first between query 0 and training row 0"):
        NearestNeighbors(metric=lambda a, b: np.nan).fit(X)
