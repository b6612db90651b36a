"""Files and Dask give the trees of the table in memory."""

import numpy as np
import pandas as pd
import pytest

from learnable import GradientBoostingRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor, verify
from learnable.core.errors import DataError
from learnable.data.files import Files

NAMES = ("start", "feature", "threshold", "left", "right", "missing_left", "value")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12_000, 4))
    x[rng.random(x.shape) < 0.1] = np.nan
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["y"] = np.nan_to_num(x[:, 0]) * np.nan_to_num(x[:, 1]) + 0.1 * rng.normal(size=len(x))
    return frame


@pytest.fixture
def large_files(monkeypatch):
    monkeypatch.setattr(Files, "is_small", lambda self: False)


def same_trees(a, b):
    return all(np.array_equal(getattr(a.trees_, name), getattr(b.trees_, name)) for name in NAMES)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_files_give_the_trees_of_memory(table, tmp_path, large_files, early_stopping):
    for i in range(3):
        table.iloc[i * 4000 : (i + 1) * 4000].to_parquet(tmp_path / f"{i}.parquet", row_group_size=1500)
    settings = {"max_iter": 5, "random_state": 0, "early_stopping": early_stopping}
    local = HistGradientBoostingRegressor(**settings).fit(table, "y")
    streamed = HistGradientBoostingRegressor(**settings).fit(str(tmp_path / "*.parquet"), "y")
    assert same_trees(local, streamed)
    assert local.certificate_.fingerprint == streamed.certificate_.fingerprint
    assert local.training_loss_.tolist() == streamed.training_loss_.tolist()
    assert verify(streamed, table, "y")
    assert verify(streamed, str(tmp_path / "*.parquet"), "y")
    streamed.trees_.value[3] *= 1.001
    assert not verify(streamed, str(tmp_path / "*.parquet"), "y")
    streamed.trees_.value[3] /= 1.001
    found = streamed.predict(str(tmp_path / "0.parquet"))
    np.testing.assert_array_equal(found, local.predict(table.iloc[:4000, :4]))


def test_dask_gives_the_trees_of_memory_with_weights(table):
    dd = pytest.importorskip("dask.dataframe")
    labelled = table.assign(k=np.where(table["y"] > 0, "up", "down"), w=np.linspace(0.5, 2.0, len(table)))
    labelled = labelled.drop(columns="y")
    settings = {"max_iter": 4, "random_state": 0, "class_weight": "balanced"}
    local = HistGradientBoostingClassifier(**settings).fit(labelled, "k", "w")
    lazy = HistGradientBoostingClassifier(**settings).fit(dd.from_pandas(labelled, npartitions=3), "k", "w")
    assert same_trees(local, lazy)
    assert lazy.classes_.tolist() == ["down", "up"]
    assert verify(lazy, dd.from_pandas(labelled, npartitions=2), "k", "w")
    assert not verify(lazy, dd.from_pandas(labelled.assign(a=0.0), npartitions=2), "k", "w")


def test_what_needs_all_rows_is_refused(table, tmp_path, large_files):
    table.to_parquet(tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="GradientBoostingRegressor: exact splits need all rows in memory"):
        GradientBoostingRegressor().fit(path, "y")
    with pytest.raises(DataError, match="'inner-product' needs all rows in memory"):
        HistGradientBoostingRegressor(direction="inner-product").fit(path, "y")


@pytest.mark.parametrize("given", ["from_dtype", ["c", "e"]])
def test_categories_in_files_give_the_trees_of_memory(table, tmp_path, large_files, given):
    rng = np.random.default_rng(0)
    mixed = table.iloc[:5000].copy()
    mixed["c"] = pd.Categorical(np.array(["red", "green", "blue", None], dtype=object)[rng.integers(0, 4, 5000)])
    mixed["e"] = rng.integers(0, 600, 5000).astype(float)
    for i in range(2):
        mixed.iloc[i * 2500 : (i + 1) * 2500].to_parquet(tmp_path / f"{i}.parquet", row_group_size=1000)
    settings = {"max_iter": 4, "random_state": 0, "early_stopping": True, "categorical_features": given}
    local = HistGradientBoostingRegressor(**settings).fit(mixed, "y")
    streamed = HistGradientBoostingRegressor(**settings).fit(str(tmp_path / "*.parquet"), "y")
    assert same_trees(local, streamed)
    assert local.trees_.bits.tolist() == streamed.trees_.bits.tolist()
    assert local.validation_score_.tolist() == streamed.validation_score_.tolist()
    assert local.certificate_.fingerprint == streamed.certificate_.fingerprint
    assert verify(streamed, str(tmp_path / "*.parquet"), "y")
