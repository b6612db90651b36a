"""Histogram boosting takes infinity in X: as a number beyond all others."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from learnable import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    verify,
)
from learnable.core.errors import DataError
from learnable.data.files import Files

SHAPE = ("start", "feature", "left", "right", "missing_left", "value")
BEYOND = 1e6  # a finite number beyond all others of the tables here


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    X[rng.random(X.shape) < 0.05] = np.inf
    X[rng.random(X.shape) < 0.05] = -np.inf
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (X[:, 0] == np.inf) - 2.0 * (X[:, 1] == -np.inf) + 3.0 * np.isnan(X[:, 2]) + 0.1 * rng.normal(size=len(X))
    return X, y


@pytest.fixture(scope="module")
def fitted(table):
    return HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(*table)


def same(a, b):
    return all(np.array_equal(getattr(a.trees_, name), getattr(b.trees_, name)) for name in SHAPE)


def test_infinity_counts_as_the_number_beyond_all_others(table, fitted):
    X, y = table
    finite = np.where(np.isinf(X), np.sign(X) * BEYOND, X)
    other = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(finite, y)
    assert same(fitted, other)
    np.testing.assert_array_equal(fitted.predict(X), other.predict(finite))
    assert np.isinf(X).sum() == (np.abs(finite) == BEYOND).sum() > 0  # the caller's table stays as it is


@pytest.mark.parametrize("n", [1, 7, 600])  # the walks of few and of many rows
def test_every_container_predicts_the_same(table, fitted, n):
    X = table[0][:n]
    expected = fitted.predict(X)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(fitted.predict(np.asfortranarray(X)), expected)
    np.testing.assert_array_equal(fitted.predict(sp.csr_array(X)), expected)
    np.testing.assert_array_equal(fitted.predict(X.tolist()), expected)
    np.testing.assert_array_equal(fitted.predict(single), fitted.predict(single.astype(np.float64)))


def test_values_never_seen_before_fall_on_the_right_side():
    X = np.array([0.0, 1.0, 2.0, 3.0])[:, None]
    model = HistGradientBoostingRegressor(min_samples_leaf=1, max_iter=5).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.predict([[-np.inf], [np.inf]]), model.predict([[0.0], [3.0]]))


@pytest.mark.parametrize("X", [np.array([[-np.inf], [0.0], [1.0], [np.inf], [np.nan]])])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_split_separates_infinity_from_numbers_and_from_missing(X, dtype):
    stump = HistGradientBoostingClassifier(min_samples_leaf=1, max_iter=1, learning_rate=1, max_depth=2)
    for y in (X[:, 0] == np.inf, X[:, 0] == -np.inf, np.isnan(X[:, 0]), np.isinf(X[:, 0])):
        model = stump.fit(X.astype(dtype), y)
        assert model.score(X, y) == 1
        assert model.score(X.astype(dtype), y) == 1
        assert verify(model, X.astype(dtype), y)


def test_verify_explanations_and_weights(table, fitted):
    X, y = table
    assert verify(fitted, X, y)
    changed = X.copy()
    changed[np.flatnonzero(X[:, 0] == np.inf)[0], 0] = np.finfo(float).max
    assert not verify(fitted, changed, y)
    shares = fitted.shap_values(X)
    np.testing.assert_allclose(shares.values.sum(axis=1) + shares.base, fitted.predict(X), atol=1e-9)
    weight = np.ones(len(y))
    weight[::3] = 0.0
    kept = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(X[weight > 0], y[weight > 0])
    weighed = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(X, y, weight)
    np.testing.assert_array_equal(kept.predict(X), weighed.predict(X))


def test_files_and_dask_give_the_trees_of_memory(table, tmp_path, monkeypatch):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, w=np.where(np.arange(len(y)) % 4, 1.0, 0.0))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    settings = {"max_iter": 5, "random_state": 0}
    local = HistGradientBoostingRegressor(**settings).fit(frame, "y", "w")
    monkeypatch.setattr(Files, "is_small", lambda self: False)
    path = str(tmp_path / "rows.parquet")
    streamed = HistGradientBoostingRegressor(**settings).fit(path, "y", "w")
    assert same(local, streamed)
    assert local.certificate_.fingerprint == streamed.certificate_.fingerprint
    assert verify(streamed, path, "y", "w")
    np.testing.assert_array_equal(streamed.predict(path), local.predict(frame[list("abc")]))
    dd = pytest.importorskip("dask.dataframe")
    lazy = HistGradientBoostingRegressor(**settings).fit(dd.from_pandas(frame, npartitions=3), "y", "w")
    assert same(local, lazy)


@pytest.mark.parametrize("model", [GradientBoostingRegressor(), RandomForestClassifier()])
def test_models_with_exact_splits_refuse_it_as_before(model):
    with pytest.raises(DataError, match="X contains infinity"):
        model.fit([[0.0], [np.inf]], [0, 1])
    model.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(DataError, match="X contains infinity"):
        model.predict([[np.inf]])


def test_infinity_among_categories_is_a_level():
    X = np.array([0.0, 1.0, np.inf] * 10)[:, None]
    y = (X[:, 0] == np.inf).astype(float)
    model = HistGradientBoostingRegressor(categorical_features=[0], min_samples_leaf=1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)
