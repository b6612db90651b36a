"""Paths and Dask at the door: names are matched, labels counted, predictions made where the rows are."""

import copy

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from tests.data.on_disk import numbers, streamed, text_file, write, write_parts

from learnable.core.errors import DataError
from learnable.data import Files
from learnable.data.door import is_external
from learnable.data.sources import (
    NamedScore,
    labels_of_files,
    named_columns,
    open_files,
    open_source,
    pieces_of,
    rowwise,
)


class Named(BaseEstimator):
    """Knows its columns, and gives two results a row."""

    def __init__(self, names=("x0", "x1", "x2")):
        self.names = names
        self.feature_names_in_ = np.array(names, dtype=object)

    @rowwise
    def two(self, X, shift=0.0):
        total = np.asarray(X, dtype=float).sum(axis=1)
        return total, np.column_stack([total, total + shift])


class Sum(NamedScore, RegressorMixin, Named):
    """Predicts the sum of the features, times a factor."""

    factor = 1.0

    @rowwise
    def predict(self, X):
        return self.factor * np.asarray(X, dtype=float).sum(axis=1)


class Sign(NamedScore, ClassifierMixin, Named):
    """Predicts whether that sum is positive."""

    @rowwise
    def predict(self, X):
        return np.where(np.asarray(X, dtype=float).sum(axis=1) > 0, "up", "down")


@pytest.fixture(scope="module")
def frame():
    return numbers(500).assign(w=np.random.default_rng(1).integers(0, 3, 500).astype(float))


# What is external.


def test_what_is_external(tmp_path, frame):
    path = text_file(tmp_path / "t.csv", "x,y\n1,2\n")
    for source in (str(path), path, Files(path), dd.from_pandas(frame, npartitions=1), da.ones((3, 2), chunks=1)):
        assert is_external(source)
    for table in (frame, frame.to_numpy(), [[1.0]], None, 3, b"t.csv"):
        assert not is_external(table)


def test_files_are_opened_in_the_estimators_name(tmp_path):
    files = Files(text_file(tmp_path / "t.csv", "x,y\n1,2\n"))
    assert open_files("Model", files) is files
    assert open_files("Model", str(tmp_path / "t.csv")).columns == ["x", "y"]
    with pytest.raises(DataError, match="Model: There is no file"):
        open_files("Model", tmp_path / "none.csv")


# Names of columns.


@pytest.mark.parametrize("kind", ["files", "dask"])
def test_columns_are_matched_by_name(kind, frame, tmp_path):
    source = streamed(frame, tmp_path) if kind == "files" else dd.from_pandas(frame, npartitions=3)
    opened = open_source("Model", source, "y", "w", "numeric")
    assert opened.names == ["x0", "x1", "x2"] and opened.classes is None and opened.class_weight is None
    assert opened.blocks.n_columns == 3 and opened.blocks.n_targets == 1
    assert opened.blocks.n_rows == (frame.w > 0).sum()
    assert open_source("Model", source, "x1", None, "numeric").names == ["x0", "x2", "y", "w"]


@pytest.mark.parametrize("kind", ["files", "dask"])
@pytest.mark.parametrize(
    "y, weight, message",
    [
        ("price", None, "Model: there is no column 'price'. Name one of these: 'x0', 'x1', 'x2', 'y', 'w'"),
        ("y", "mass", "Model: there is no column 'mass'"),
        ("y", "y", "y and sample_weight both name column 'y'"),
        (np.ones(500), None, "y must .*name.* got a numpy ndarray"),
        ("y", np.ones(500), "sample_weight must .*name.* got a numpy ndarray"),
        (None, None, "y"),
    ],
)
def test_names_that_do_not_fit_are_refused(kind, y, weight, message, frame, tmp_path):
    source = streamed(frame, tmp_path) if kind == "files" else dd.from_pandas(frame, npartitions=3)
    with pytest.raises(DataError, match=message):
        open_source("Model", source, y, weight, "numeric")


def test_a_table_of_nothing_but_the_target_is_refused(frame, tmp_path):
    with pytest.raises(DataError, match="no column besides 'y'"):
        open_source("Model", streamed(frame[["y"]], tmp_path), "y", None, "numeric")
    with pytest.raises(DataError, match="X has no columns"):
        open_source("Model", dd.from_pandas(frame[["y"]], npartitions=1), "y", None, "numeric")


def test_names_of_a_dask_frame_must_be_strings(frame):
    table = frame[["x0", "x1"]].set_axis([0, 1], axis=1)
    with pytest.raises(DataError, match="must have strings as names; got 0, 1"):
        open_source("Model", dd.from_pandas(table, npartitions=2), da.ones(500, chunks=250), None, "numeric")


# Labels.

LABELS = {
    "text": np.array(["b", "a", "c"], dtype=object),
    "whole": np.array([7, -2, 3]),
    "float": np.array([1.0, 0.0, 2.0]),
    "truth": np.array([True, False, True]),
    "category": pd.Categorical(["b", "a", "c"]),
}


@pytest.mark.parametrize("kind", ["parquet", "csv", "dask"])
@pytest.mark.parametrize("name", LABELS)
def test_labels_and_their_weights_are_counted(kind, name, frame, tmp_path):
    labels = LABELS[name][np.arange(500) % 3]
    table = frame.assign(y=labels)
    source = streamed(table, tmp_path, 3, kind) if kind != "dask" else dd.from_pandas(table, npartitions=3)
    opened = open_source("Model", source, "y", "w", "classes")
    plain = np.asarray(labels)
    expected = np.unique(plain)
    assert opened.classes.tolist() == expected.tolist()
    totals = [frame.w[plain == label].sum() for label in expected]
    assert np.allclose(opened.class_weight, totals, rtol=1e-14)
    unweighted = open_source("Model", source, "y", None, "classes")
    assert unweighted.class_weight.tolist() == [np.sum(plain == label) for label in expected]


@pytest.mark.parametrize("kind", ["files", "dask"])
def test_a_class_without_weight_is_none(kind, frame, tmp_path):
    table = frame.assign(y=np.where(np.arange(500) % 5 == 0, "ghost", np.where(frame.x0 > 0, "a", "b")))
    table.loc[table.y == "ghost", "w"] = 0.0
    source = streamed(table, tmp_path, 2) if kind == "files" else dd.from_pandas(table, npartitions=3)
    opened = open_source("Model", source, "y", "w", "classes")
    assert opened.classes.tolist() == ["a", "b"]
    assert opened.blocks.n_rows == (table.w > 0).sum()


def test_a_missing_label_is_named(frame, tmp_path):
    table = frame.assign(y=["a", "b"] * 250)
    table.loc[300, "y"] = None
    with pytest.raises(DataError, match=r"Model: Input y contains NaN: row 28 of part-02\.parquet, column 'y'"):
        labels_of_files("Model", streamed(table, tmp_path, 3), "y", None)
    with pytest.raises(DataError, match=r"Model: .*NaN"):
        open_source("Model", dd.from_pandas(table, npartitions=3), "y", None, "classes")


# Dask: y and the weights beside X.


@pytest.mark.parametrize("chunks", [(100, 3), (170, 1), (500, 2)])
def test_an_array_takes_targets_of_any_kind(chunks, frame):
    X = da.from_array(frame[["x0", "x1", "x2"]].to_numpy(), chunks=chunks)
    y, w = frame.y.to_numpy(), frame.w.to_numpy()
    same = dd.from_pandas(frame, npartitions=1).repartition(npartitions=1)
    kinds = [(y, w), (y.tolist(), w), (da.from_array(y, chunks=77), da.from_array(w, chunks=500))]
    if X.numblocks[0] == 1:
        kinds.append((same.y, same.w))
    for target, weight in kinds:
        blocks = open_source("Model", X, target, weight, "numeric").blocks
        assert blocks.n_rows == (w > 0).sum()
        assert blocks.scanned().weight == w.sum()
        assert np.array_equal(blocks.every(1).y, y[w > 0])


def test_sizes_that_differ_are_refused(frame):
    X = da.from_array(frame[["x0", "x1"]].to_numpy(), chunks=(100, 2))
    with pytest.raises(DataError, match="inconsistent numbers of samples: X has 500 rows, y has 499"):
        open_source("Model", X, frame.y.to_numpy()[1:], None, "numeric")
    with pytest.raises(DataError, match="X has 500 rows, sample_weight has 3"):
        open_source("Model", X, frame.y.to_numpy(), [1, 2, 3], "numeric")
    table = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(DataError, match=r"X has 3 partitions, y has 5\. Give both the same"):
        open_source("Model", table, da.ones(500, chunks=100), None, "numeric")
    shifted = dd.from_delayed([part[["y"]] for part in dd.from_pandas(frame[3:], npartitions=3).to_delayed()])
    with pytest.raises(DataError, match=r"Model: partition \d has 16\d rows in X but 16\d in y"):
        open_source("Model", table, shifted.y, None, "numeric").blocks.scanned()


@pytest.mark.parametrize("two", ["frame", "array"])
def test_several_targets_are_refused(two, frame):
    table = dd.from_pandas(frame, npartitions=3)
    y = table[["y", "w"]] if two == "frame" else table[["y", "w"]].to_dask_array()
    for X in (table[["x0"]], table[["x0"]].to_dask_array()):
        with pytest.raises(DataError, match="y must have one dimension on Dask; got 2"):
            open_source("Model", X, y, None, "numeric")


def test_an_array_of_another_shape_is_refused():
    for X in (da.ones(5, chunks=5), da.ones((2, 2, 2), chunks=2)):
        with pytest.raises(DataError, match="a Dask X must be a dataframe or a 2-D array"):
            open_source("Model", X, "y", None, "numeric")


# Methods of one row at a time.


@pytest.mark.parametrize("fmt", ["parquet", "csv"])
def test_a_rowwise_method_on_files(fmt, frame, tmp_path, monkeypatch):
    folder = write_parts(frame, tmp_path, 3, fmt, rows_at_once=60)
    X = frame[["x0", "x1", "x2"]].to_numpy()
    for source in (folder, f"{folder}/*.{fmt}", Files(folder), Files(folder, in_memory_bytes=0)):
        assert np.allclose(Sum().predict(source), X.sum(axis=1), rtol=1e-15)
    one, both = Sum().two(folder, shift=2.0)
    assert both.shape == (500, 2) and np.array_equal(both[:, 1], one + 2.0)
    assert np.array_equal(Sum(("x2", "x0")).predict(folder), X[:, [2, 0]].sum(axis=1))


def test_a_rowwise_method_takes_the_columns_by_name(frame, tmp_path):
    write(frame[:100], tmp_path / "a.parquet")
    write(frame[100:][["w", "x2", "y", "x1", "x0"]], tmp_path / "b.parquet")

    class First(Sum):
        @rowwise
        def predict(self, X):
            return np.asarray(X)[:, 0]

    assert np.array_equal(First().predict(tmp_path), frame.x0)
    with pytest.raises(DataError, match="First: there is no column 'z'"):
        First(("x0", "z")).predict(tmp_path)
    with pytest.raises(DataError, match="First: there is no column 'z'"):
        First(("x0", "z")).predict(dd.from_pandas(frame, npartitions=1))


def test_a_rowwise_method_on_nothing(tmp_path):
    path = text_file(tmp_path / "t.csv", "x0,x1,x2\n")
    with pytest.raises(DataError, match=r"Sum: .* holds no rows"):
        Sum().predict(path)


def test_a_rowwise_method_on_dask_is_lazy(frame):
    X = frame[["x0", "x1", "x2"]].to_numpy()
    loaded = []

    def spy(part):
        loaded.append(len(part))
        return part

    table = dd.from_pandas(frame, npartitions=4).map_partitions(spy, meta=frame.iloc[:0])
    loaded.clear()
    found = Sum().predict(table)
    assert isinstance(found, dd.Series) and found.dtype == float and found.divisions == table.divisions
    assert loaded == []
    assert np.array_equal(found.compute(), X.sum(axis=1)) and sum(loaded) == 500
    array = Sum().predict(da.from_array(X, chunks=(90, 2)))
    assert array.shape == (500,) and array.chunks[0][0] == 90
    assert np.array_equal(array.compute(), X.sum(axis=1))
    words = Sign().predict(table)
    assert words.compute().tolist() == Sign().predict(X).tolist()


def test_lazy_results_keep_the_index_and_say_what_they_are(frame):
    table = dd.from_pandas(frame.set_index(frame.index + 7), npartitions=4)
    one, both = Sum().two(table, shift=2.0)
    assert isinstance(one, dd.Series) and isinstance(both, dd.DataFrame) and list(both.columns) == [0, 1]
    for found in (one, both):
        assert found.divisions == table.divisions
        computed = found.compute()
        assert computed.index.equals(frame.index + 7)
        pd.testing.assert_index_equal(found._meta.index[:0], computed.index[:0])
    assert both.dtypes.tolist() == both.compute().dtypes.tolist() == [float, float]
    joined = table.assign(p=one).compute()  # the same divisions: no shuffle
    assert np.array_equal(joined.p, frame[["x0", "x1", "x2"]].to_numpy().sum(axis=1))
    lower, upper = Sum().two(da.from_array(frame[["x0", "x1", "x2"]].to_numpy(), chunks=(90, 3)), shift=2.0)
    assert lower.chunks == ((90, 90, 90, 90, 90, 50),) and upper.shape == (500, 2)
    assert np.array_equal(upper.compute(), both.compute())


def test_empty_partitions_give_no_predictions(frame):
    table = dd.from_pandas(frame, npartitions=4)
    some = table[table.x0 > frame.x0.quantile(0.999)]  # one row, in one partition
    assert len(Sum().predict(some).compute()) == 1


def test_a_later_change_does_not_reach_lazy_predictions(frame):
    model = Sum()
    lazy = model.predict(dd.from_pandas(frame, npartitions=2))
    model.factor = -1.0
    assert np.array_equal(lazy.compute(), frame[["x0", "x1", "x2"]].to_numpy().sum(axis=1))


def test_pieces_of_a_table(frame, tmp_path):
    X = frame[["x1", "x0"]].to_numpy()
    table = dd.from_pandas(frame, npartitions=3)
    array = da.from_array(X, chunks=(200, 1))
    for source, names in ((streamed(frame, tmp_path, 2), ["x1", "x0"]), (table, ["x1", "x0"]), (array, [])):
        pieces = [np.asarray(piece, dtype=float) for piece in pieces_of("Model", source, names)]
        assert len(pieces) > 1 and np.array_equal(np.concatenate(pieces), X)


# Scores, and columns by name.


def test_named_columns(frame, tmp_path):
    table = dd.from_pandas(frame, npartitions=3)
    for source in (write_parts(frame, tmp_path, 2), streamed(frame, tmp_path, 2), table):
        X, y, weight = named_columns("Model", source, "y", "w")
        assert X is source and np.array_equal(y, frame.y) and np.array_equal(weight, frame.w)
        assert named_columns("Model", source, "y", None)[2] is None
        with pytest.raises(DataError, match="Model: there is no column 'z'"):
            named_columns("Model", source, "z", None)
    X, y, weight = named_columns("Model", frame, "y", "w")
    assert list(X.columns) == ["x0", "x1", "x2"]
    assert np.array_equal(named_columns("Model", table, table.y, table.w)[1], frame.y)
    array = da.from_array(frame[["x0"]].to_numpy(), chunks=100)
    assert np.array_equal(named_columns("Model", array, frame.y, None)[1], frame.y)


@pytest.mark.parametrize("weight", [None, "w"])
def test_scores_are_those_of_scikit_learn(weight, frame, tmp_path):
    X, w = frame[["x0", "x1", "x2"]], None if weight is None else frame.w
    labels = np.where(np.arange(500) % 3 == 0, "up", "down")
    for model, y, metric in ((Sum(), frame.y.to_numpy(), r2_score), (Sign(), labels, accuracy_score)):
        table = frame.assign(y=y)
        expected = metric(y, model.predict(X), sample_weight=w)
        lazy = dd.from_pandas(table, npartitions=3)
        folder = write_parts(table, tmp_path / type(model).__name__, 2)
        for source in (folder, Files(folder, in_memory_bytes=0), lazy):
            assert model.score(source, "y", weight) == pytest.approx(expected, rel=1e-13)
        assert model.score(X, y, w) == pytest.approx(expected, rel=1e-13)
        assert model.score(lazy, lazy.y, None if weight is None else lazy.w) == pytest.approx(expected, rel=1e-13)


def test_a_copy_of_an_estimator_predicts_alike(frame, tmp_path):
    folder = write_parts(frame, tmp_path, 2)
    assert np.array_equal(copy.deepcopy(Sum()).predict(folder), Sum().predict(folder))


def test_what_arrays_have_in_common_is_computed_once():
    loads = []

    def load(block_id=None):
        loads.append(block_id[0])
        return np.random.default_rng(block_id[0]).normal(size=(50, 3))

    X = da.map_blocks(load, chunks=((50,) * 4, (3,)), dtype=float, meta=np.empty((0, 0)))
    y = X.map_blocks(lambda block: block[:, 0], drop_axis=1, dtype=float, meta=np.empty(0))
    loads.clear()
    open_source("Model", X, y, None, "numeric").blocks.scanned()
    assert sorted(loads) == [0, 1, 2, 3]
