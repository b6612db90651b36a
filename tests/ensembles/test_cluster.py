"""Forests on a Dask cluster are those of the table in memory."""

import numpy as np
import pytest

from learnable import (
    BaggingRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    Ridge,
    verify,
)
from learnable.core.errors import DataError
from learnable.ensembles import _cluster

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

TREES = ("start", "feature", "threshold", "left", "right", "missing_left", "value", "n_rows")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + 0.1 * rng.normal(size=300)
    return X, y, rng.random(300) + 0.5


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (RandomForestClassifier, {"oob_score": True, "max_bins": 32}),
        (ExtraTreesClassifier, {"class_weight": "balanced"}),
        (RandomForestRegressor, {"oob_score": True}),
    ],
)
def test_a_forest_on_a_cluster_is_that_of_memory(table, client, model, settings):
    X, y, w = table
    y = y if model is RandomForestRegressor else np.where(y > 0, "up", "down")
    lazy = [da.from_array(a, chunks=(110, *a.shape[1:])) for a in (X, y, w)]
    settings = {"n_estimators": 25, "random_state": 0, **settings}
    wanted = model(**settings).fit(X, y, w)
    found = model(**settings).fit(*lazy)
    for name in TREES:
        np.testing.assert_array_equal(getattr(found.trees_, name), getattr(wanted.trees_, name), err_msg=name)
    assert found.certificate_.fingerprint == wanted.certificate_.fingerprint
    if "oob_score" in settings:
        assert found.oob_score_ == wanted.oob_score_
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))
    assert verify(found, X, y, w)


def test_bagging_on_a_cluster_is_that_of_memory(table, client):
    X, y, w = table
    X = np.nan_to_num(X)
    settings = {"estimator": Ridge(), "n_estimators": 6, "random_state": 0, "oob_score": True}
    wanted = BaggingRegressor(**settings).fit(X, y, w)
    lazy = [da.from_array(a, chunks=(110, *a.shape[1:])) for a in (X, y, w)]
    found = BaggingRegressor(**settings).fit(*lazy)
    assert found.oob_score_ == wanted.oob_score_
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))


def test_a_table_that_does_not_fit_a_worker_is_refused(table, client, monkeypatch):
    X, y, _ = table
    monkeypatch.setattr(_cluster, "_ROOM", 1e9)
    with pytest.raises(DataError, match=r"every worker has to hold all rows, .* GB"):
        RandomForestRegressor(n_estimators=2).fit(da.from_array(X, chunks=100), da.from_array(y, chunks=100))


def test_without_a_cluster_a_forest_needs_rows_in_memory(table, monkeypatch):
    X, y, _ = table
    monkeypatch.setattr(_cluster, "current_client", lambda: None)
    with pytest.raises(DataError, match="a forest needs all rows in memory"):
        RandomForestRegressor(n_estimators=2).fit(da.from_array(X, chunks=100), da.from_array(y, chunks=100))
