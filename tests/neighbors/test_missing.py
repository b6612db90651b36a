"""Rows with missing values: metric="nan_euclidean"."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.neighbors import KNeighborsRegressor as Reference

from learnable import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors, load, save, verify
from learnable.core.errors import DataError, ParameterError
from learnable.neighbors._kernels import present_distances

METRIC = {"metric": "nan_euclidean"}


def table(seed, n=120, d=5, share=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < share] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    return X, rng.normal(size=n)


def by_definition(Q, X):
    """Return √(d/c·Σ(q − x)²) over the c columns that are present in both, in extended precision."""
    gaps = Q[:, None].astype(np.longdouble) - X[None]
    count = (~np.isnan(gaps)).sum(axis=2)
    total = np.nansum(gaps**2, axis=2)
    return np.where(count > 0, np.sqrt(total * X.shape[1] / np.maximum(count, 1)), np.inf).astype(np.float64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neighbours_are_those_of_the_definition(seed, dtype):
    X, _ = table(seed)
    X, Q = X[:100].astype(dtype), X[100:].astype(dtype)
    distances, rows = NearestNeighbors(n_neighbors=7, **METRIC).fit(X).kneighbors(Q)
    true = by_definition(Q, X)
    np.testing.assert_array_equal(rows, np.argsort(true, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(distances, np.sort(true, axis=1)[:, :7], rtol=1e-13)
    theirs = nan_euclidean_distances(Q.astype(np.float64), X.astype(np.float64))  # NaN where there is no common column
    np.testing.assert_allclose(true, np.nan_to_num(theirs, nan=np.inf), atol=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_distances_keep_their_digits_over_the_range_of_float64(size):
    X, _ = table(4, n=20)
    found = np.empty((20, 20))
    present_distances(X * size, X * size, found)
    np.testing.assert_allclose(found / size, by_definition(X, X), rtol=1e-13, atol=0)


def test_without_missing_values_it_is_the_euclidean_distance():
    X, _ = table(5, share=0.0)
    plain, lenient = (NearestNeighbors(metric=name).fit(X) for name in ("euclidean", "nan_euclidean"))
    np.testing.assert_array_equal(plain.kneighbors()[1], lenient.kneighbors()[1])
    np.testing.assert_allclose(plain.kneighbors()[0], lenient.kneighbors()[0], rtol=1e-13)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_predictions_are_scikit_learns(weights):
    X, y = table(6, share=0.1)
    ours = KNeighborsRegressor(weights=weights, **METRIC).fit(X[:100], y[:100])
    theirs = Reference(weights=weights, **METRIC).fit(X[:100], y[:100])
    np.testing.assert_allclose(ours.predict(X[100:]), theirs.predict(X[100:]), rtol=1e-6)


def test_rows_without_a_common_column_are_infinitely_far():
    X = np.array([[0.0, np.nan], [np.nan, 1.0], [np.nan, 3.0]])
    search = NearestNeighbors(n_neighbors=3, **METRIC).fit(X)
    assert search.certificate_.holds
    distances, rows = search.kneighbors([[0.0, np.nan]])
    assert distances.tolist() == [[0.0, np.inf, np.inf]]
    assert rows.tolist() == [[0, 1, 2]]
    assert [run.tolist() for run in search.radius_neighbors([[np.nan, 1.0]], radius=10.0)[1]] == [[1, 2]]
    for model in (KNeighborsClassifier(3, weights="distance", **METRIC), KNeighborsRegressor(3, **METRIC)):
        answer = model.fit(X, [0, 1, 1]).predict([[0.0, np.nan], [np.nan, np.nan]])
        assert np.isfinite(answer).all()
    far = KNeighborsRegressor(3, weights="distance", **METRIC).fit(X, [3.0, 6.0, 9.0])
    np.testing.assert_allclose(far.predict([[0.0, np.nan], [np.nan, np.nan]]), [3.0, 6.0])


@pytest.mark.parametrize("Model", [NearestNeighbors, KNeighborsClassifier, KNeighborsRegressor])
def test_such_models_are_verified_saved_and_read_from_tables(Model, tmp_path):
    X, y = table(7)
    y = (y > 0).astype(int)
    data = (X,) if Model is NearestNeighbors else (X, y)
    model = Model(**METRIC).fit(*data)
    assert model.certificate_.holds
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert verify(model, *data)
    changed = X.copy()
    changed[0] = 0.5
    assert not verify(model, changed, *data[1:])
    save(model, tmp_path / "model.safetensors")
    for again in (load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.kneighbors(X)[1], model.kneighbors(X)[1])
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = Model(**METRIC).fit(frame, *data[1:])
    np.testing.assert_array_equal(named.kneighbors(frame)[0], model.kneighbors(X)[0])
    model.rows_[3, 0] = np.inf
    with pytest.raises(ValueError, match="finite"):
        save(model, tmp_path / "bad.safetensors")


def test_other_metrics_and_infinity_are_refused_as_before():
    X = np.array([[0.0], [np.nan], [1.0]])
    with pytest.raises(DataError, match="contains NaN"):
        NearestNeighbors(n_neighbors=1).fit(X)
    with pytest.raises(DataError, match="contains infinity"):
        NearestNeighbors(n_neighbors=1, **METRIC).fit([[0.0], [np.inf]])
    with pytest.raises(DataError, match="sparse"):
        NearestNeighbors(n_neighbors=1, **METRIC).fit(sp.csr_array([[0.0], [1.0]]))
    with pytest.raises(ParameterError, match="kd_tree"):
        NearestNeighbors(n_neighbors=1, algorithm="kd_tree", **METRIC).fit(X)
    assert not NearestNeighbors().__sklearn_tags__().input_tags.allow_nan
