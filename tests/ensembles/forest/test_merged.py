"""Forests whose rows fit no worker: by merged sums they are those of the table in memory, to the bit."""

import numpy as np
import pytest

from learnable import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    verify,
)
from learnable.core.errors import DataError
from learnable.ensembles import _cluster
from learnable.ensembles.draws import Draw, draw_counts, draw_rows
from learnable.ensembles.forest import growing, merged
from learnable.trees.table import Columns

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

TREES = (
    "start", "feature", "threshold", "left", "right", "missing_left", "value", "n_rows", "impurity", "weight",
)  # fmt: skip
N = 400


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 4] = np.nan  # nothing to split by
    X[:, 5] = 0.0
    signal = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + 0.3 * rng.normal(size=N)
    return X, signal, np.digitize(signal, [-0.3, 0.4])


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def small_workers(monkeypatch):
    """Workers without room for the table, and nodes of more than 50 rows that stay where they are."""
    monkeypatch.setattr(_cluster, "_ROOM", 1e9)
    monkeypatch.setattr(growing, "MOVED_ROWS", 50)


def lazy(array, n_parts):
    return da.from_array(array, chunks=(-(-N // n_parts), *array.shape[1:]))


def assert_same(found, wanted):
    for name in TREES:
        np.testing.assert_array_equal(getattr(found.trees_, name), getattr(wanted.trees_, name), err_msg=name)
    assert found.certificate_.fingerprint == wanted.certificate_.fingerprint


CASES = [
    (RandomForestClassifier, "two", {}),
    (RandomForestClassifier, "classes", {"oob_score": True, "class_weight": "balanced"}),
    (RandomForestClassifier, "classes", {"criterion": "entropy", "max_depth": 4}),
    (ExtraTreesClassifier, "classes", {}),
    (ExtraTreesClassifier, "two", {"min_samples_leaf": 3}),
    (RandomForestRegressor, "numbers", {"oob_score": True, "max_features": 2}),
    (ExtraTreesRegressor, "numbers", {"ccp_alpha": 0.01}),
]


def fitted(table, model, target, settings, n_parts):
    X, y, classes = table
    y = {"two": classes > 0, "classes": classes, "numbers": y}[target]
    settings = {"n_estimators": 4, "random_state": 0, "max_bins": 32, **settings}
    wanted = model(**settings).fit(X, y)
    return model(**settings).fit(lazy(X, n_parts), lazy(y, n_parts)), wanted


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize(("model", "target", "settings"), CASES)
@pytest.mark.sampled(8)
def test_the_forest_is_that_of_memory(table, client, model, target, settings):
    found, wanted = fitted(table, model, target, settings, 5)
    assert_same(found, wanted)
    if target == "numbers":
        np.testing.assert_array_equal(found.leaves_.rows, wanted.leaves_.rows)
    if "oob_score" in settings:
        assert found.oob_score_ == wanted.oob_score_
    assert set(vars(found)) == set(vars(wanted))


@pytest.mark.parametrize("n_parts", [1, 2])  # the test above has three shards
def test_any_number_of_shards_gives_one_forest(table, client, n_parts):
    for model, target, settings in (CASES[3], CASES[6]):
        assert_same(*fitted(table, model, target, settings, n_parts))


def test_a_merged_forest_verifies(table, client):
    found, _ = fitted(table, RandomForestClassifier, "classes", {"n_estimators": 2}, 3)
    assert verify(found, table[0], table[2])


def test_bins_are_those_of_memory(table, client, monkeypatch):
    """Also where only every third value is looked at."""
    X, y, _ = table
    model = RandomForestRegressor(max_bins=16)
    monkeypatch.setattr("learnable.trees.table.SAMPLE_ROWS", 150)
    table = type(model)._door(model._draft(), lazy(X, 3), lazy(y, 3), None)
    found = merged._find_bins(table.blocks, 16)
    wanted = Columns.build(X, max_bins=16)
    for name in ("n_codes", "offset", "low", "high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def test_counts_of_draws_are_those_of_the_rows():
    for weight in (None, np.arange(30.0)):
        draw = Draw(7, 30, 20, True, weight)
        np.testing.assert_array_equal(np.bincount(draw_rows(draw, 3), minlength=30), draw_counts(draw, 3))


@pytest.mark.parametrize(
    "settings",
    [{"max_leaf_nodes": 8}, {"criterion": "absolute_error"}, {"categorical_features": [3]}, {"monotonic_cst": [1] * 6}],
    ids=str,
)
def test_what_needs_rows_in_one_place_is_refused(table, client, settings):
    X, y, _ = table
    model = RandomForestRegressor(2, max_bins=32, **settings)
    with pytest.raises(DataError, match=f"RandomForestRegressor: {next(iter(settings))}.*in one place"):
        model.fit(lazy(X, 2), lazy(y, 2))
    assert not hasattr(model, "trees_")


def test_leaves_that_would_not_fit_the_client_are_not_kept(table, client, monkeypatch):
    X, y, _ = table
    monkeypatch.setattr(merged, "_LEAF_BYTES", 10)
    with pytest.warns(UserWarning, match="predict_quantiles and predict_interval need them"):
        found = RandomForestRegressor(2, max_bins=32, random_state=0).fit(lazy(X, 2), lazy(y, 2))
    np.testing.assert_array_equal(
        found.predict(X), RandomForestRegressor(2, max_bins=32, random_state=0).fit(X, y).predict(X)
    )
    with pytest.raises(DataError, match="the rows of its leaves were not kept"):
        found.predict_interval(X[:3])


@pytest.mark.long
@pytest.mark.parametrize("at", range(1, 11))
def test_a_worker_that_dies_changes_no_bit(table, at):
    from tests.scale.faults import after, cluster_of, killer

    X, _, classes = table
    settings = {"n_estimators": 8, "random_state": 0, "max_bins": 32}
    wanted = RandomForestClassifier(**settings).fit(X, classes)
    with cluster_of(3) as client, after(client, 8 * at, killer(client)) as count:
        found = RandomForestClassifier(**settings).fit(lazy(X, 5), lazy(classes, 5))
    assert count.seen >= 8 * at
    assert_same(found, wanted)
