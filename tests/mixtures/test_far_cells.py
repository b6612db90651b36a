"""Clusters of rows among which a few cells are far off: the other rows must not notice."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from learnable import KMeans, MiniBatchKMeans, verify
from learnable.core.errors import DataError
from learnable.mixtures.lloyd import distances_to, nearest_centres

FAR = [1e6, 1e9, 1e12, 1e15, 1e18, 1e30, 1e75, 1e100, 1e140, 1e162, 1e200, 1e250]


def plain_lloyd(X, centres):
    """Lloyd's iterations to the end, in extended precision; the inertia."""
    X, centres = X.astype(np.longdouble), centres.astype(np.longdouble)
    before = np.inf
    while True:
        squares = ((X[:, None] - centres) ** 2).sum(axis=2)
        labels, inertia = squares.argmin(axis=1), squares.min(axis=1).sum()
        if not inertia < before:
            return float(inertia)
        before = inertia
        for k in np.unique(labels):
            centres[k] = X[labels == k].mean(axis=0)


def measured_inertia(X, model):
    gaps = X.astype(np.longdouble) - model.cluster_centers_[model.labels_]
    return float((gaps**2).sum())


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@given(data=st.data())
@settings(max_examples=25)
def test_the_inertia_is_that_of_plain_iterations(container, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, d, K = 60, int(rng.integers(1, 5)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d)) + 6.0 * rng.integers(0, 3, (n, 1))
    rows = rng.choice(n, data.draw(st.integers(1, 2)), replace=False)
    for row in rows:
        X[row, rng.integers(d)] = data.draw(st.sampled_from(FAR)) * rng.choice([-1.0, 1.0])
    start = np.concatenate([X[rows], X[rng.choice(np.setdiff1d(np.arange(n), rows), K, replace=False)]])
    model = KMeans(len(start), init=start, tol=0.0, max_iter=1000).fit(container(X))
    assert model.certificate_.holds and verify(model, container(X)).ok
    assert model.inertia_ == pytest.approx(measured_inertia(X, model), rel=1e-9)
    assert model.inertia_ == pytest.approx(plain_lloyd(X, start), rel=1e-9)
    assert (model.predict(container(X)) == model.labels_).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("far", FAR)
def test_a_far_cell_costs_one_cluster_and_nothing_else(container, far):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 3)) + centre for centre in 20.0 * np.eye(3)])
    X[7, 1] = far
    model = KMeans(4, n_init=3, random_state=0).fit(container(X))
    rest = KMeans(3, n_init=3, random_state=0).fit(np.delete(X, 7, axis=0))
    assert model.inertia_ == pytest.approx(rest.inertia_, rel=1e-6)
    assert model.certificate_.holds and verify(model, container(X)).ok


@pytest.mark.parametrize("far", FAR)
def test_a_wrong_model_is_refused_beside_a_far_cell(far):
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(50, 2)) + centre for centre in ([0, 0], [9, 0], [0, 9])])
    X[3, 0] = far
    model = KMeans(4, n_init=3, random_state=0).fit(X)
    near = np.flatnonzero(np.abs(model.cluster_centers_).max(axis=1) < 100)[0]
    model.cluster_centers_[near] += 0.1
    squares = ((X.astype(np.longdouble)[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    model.labels_, model.inertia_ = squares.argmin(axis=1), float(squares.min(axis=1).sum())
    assert not verify(model, X).ok


@pytest.mark.parametrize("model", [KMeans(3, random_state=0), MiniBatchKMeans(3, random_state=0)])
@pytest.mark.parametrize("column", [0, 2])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_cell_beyond_the_range_is_refused_by_its_column(model, column, container):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[7, column] = 1e300
    with pytest.raises(DataError, match=f"column {column} of X holds a number of size 1e\\+300"):
        model.fit(container(X))


@pytest.mark.parametrize("far", [1e6, 1e18, 1e100, 1e162, 1e250])
def test_mini_batches_never_claim_what_is_not_so(far):
    X = np.random.default_rng(2).normal(size=(200, 3))
    X[9, 2] = far
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MiniBatchKMeans(3, random_state=0).fit(X)
    with np.errstate(over="ignore"):
        true = measured_inertia(X, model)
    assert model.inertia_ == pytest.approx(true, rel=1e-9)
    assert model.certificate_.holds == verify(model, X).ok


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-150, 1.0, 1e150, 1e200, 1e300])
def test_rows_of_any_size_have_the_same_nearest_centres(scale):
    rng = np.random.default_rng(3)
    X, C = rng.normal(size=(50, 3)), rng.normal(size=(4, 3))
    distances = np.sqrt(((X[:, None] - C) ** 2).sum(axis=2))
    labels, _ = nearest_centres(X * scale, C * scale)
    assert labels.tolist() == distances.argmin(axis=1).tolist()
    assert nearest_centres(sp.csr_array(X * scale), C * scale)[0].tolist() == labels.tolist()
    np.testing.assert_allclose(distances_to(X * scale, C * scale), distances * scale, rtol=1e-12)


@pytest.mark.parametrize("scale", [5e-324, 1e-320, 1e-310])
def test_numbers_without_digits_are_refused(scale):
    X = np.random.default_rng(0).normal(size=(50, 3)) * scale
    with pytest.raises(DataError, match="KMeans: X has no number of size 1e-305 or more"):
        KMeans(3, random_state=0).fit(X)
