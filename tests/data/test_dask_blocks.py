"""Dask: the partitions are summed where they lie; a dead worker costs time, a dead cluster is told."""

import os
import signal
import threading
import time
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.on_disk import numbers

from learnable import LinearRegression, LogisticRegression, Ridge, RidgeCV
from learnable.core.errors import DataError, DataTypeError
from learnable.data import dask_blocks
from learnable.data.blocks import Blocks, Part, map_reduce, scan
from learnable.data.dask_blocks import run_on_partitions
from learnable.data.door import is_dask, is_dask_frame
from learnable.data.sources import open_source

pytestmark = pytest.mark.threaded  # BLAS with all its threads

FRAME = numbers(900, d=3).assign(w=np.random.default_rng(1).integers(0, 3, 900) / 2)
FRAME["c"] = np.where(FRAME.y + 2 * np.random.default_rng(2).normal(size=900) > 3, "yes", "no")


def blocks_of(X, y="y", weight=None, target="numeric", rows=None):
    blocks = open_source("Model", X, y, weight, target).blocks
    blocks.rows = rows or blocks.rows
    return blocks


def table_of(parts):
    """Return a Dask frame of these partitions, as they are."""
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False)


def rows_of(block):
    return [block]


def join(a, b):
    return a + b


# What it is.


def test_what_is_dask():
    frame = dd.from_pandas(FRAME, npartitions=2)
    array = da.ones((4, 2), chunks=2)
    for X in (frame, frame.y, array):
        assert is_dask(X)
    for X in (FRAME, FRAME.y, FRAME.to_numpy(), dask.delayed(3), "rows.csv", None):
        assert not is_dask(X)
    assert is_dask_frame(frame) and not is_dask_frame(array) and not is_dask_frame(frame.y)


# Without a cluster.


@settings(deadline=None, max_examples=20)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(sum),
    rows=st.integers(1, 40),
    zeros=st.floats(0, 0.9),
    seed=st.integers(0, 99),
)
def test_blocks_hold_the_rows_in_order_whatever_the_partitions(sizes, rows, zeros, seed):
    n, rng = sum(sizes), np.random.default_rng(seed)
    frame = numbers(n, d=2, seed=seed).assign(w=np.where(rng.uniform(size=n) < zeros, 0.0, rng.uniform(1, 2, n)))
    frame.loc[rng.integers(n), "w"] = 1.0
    edges = np.cumsum([0, *sizes])
    table = table_of([frame.iloc[start:stop] for start, stop in pairwise(edges)])
    kept = frame[frame.w > 0]
    whole = Part(kept[["x0", "x1"]].to_numpy(), kept.y.to_numpy(), kept.w.to_numpy())
    blocks = blocks_of(table, weight="w", rows=rows)
    head = blocks.head()
    assert len(head.X) > 0 and np.array_equal(head.X, whole.X[: len(head.X)])
    found = map_reduce(blocks, rows_of, join)
    for position, column in enumerate(whole):
        assert np.array_equal(np.concatenate([block[position] for block in found]), column)
    assert blocks.n_rows == len(kept)
    assert blocks.fingerprint(None) == f"{scan(Blocks([whole]))[0]:016x}"
    for stride in (1, 3, 8):
        for one, other in zip(blocks.every(stride), Blocks([whole]).every(stride), strict=True):
            assert np.array_equal(one, other)


def test_after_the_first_sweep_blocks_are_numbered_through():
    frame = numbers(30, d=1).assign(w=np.r_[np.zeros(12), np.full(18, 0.5)], y=np.arange(30) % 2)
    table = table_of([frame[:10], frame[10:11], frame[11:21], frame[21:]])
    blocks = blocks_of(table, weight="w", target="classes", rows=4)
    blocks.scanned()
    assert map_reduce(blocks, lambda block: [block.start], join) == [0, 4, 8, 9, 13, 17]
    weighted = blocks.reweighted(np.array([2.0, 20.0]))
    assert map_reduce(weighted, lambda block: [block.start], join) == [0, 9]  # of the usual grid
    assert weighted.every(1).weight.tolist() == [1.0, 10.0] * 9
    assert weighted.scanned() is blocks.scanned()


@pytest.mark.parametrize("kind", ["frame", "array", "unknown chunks", "narrow chunks"])
def test_every_kind_of_collection_gives_the_rows(kind):
    features = ["x0", "x1", "x2"]
    frame = dd.from_pandas(FRAME, npartitions=4)
    match kind:
        case "frame":
            X, y, w = frame[features], frame.y, frame.w
        case "array":
            X, y, w = da.from_array(FRAME[features].to_numpy(), chunks=(200, 3)), FRAME.y.to_numpy(), FRAME.w.to_numpy()
        case "unknown chunks":
            X, y, w = frame[features].values, frame.y.values, frame.w.values
            assert np.isnan(X.shape[0])
        case "narrow chunks":
            X, y = da.from_array(FRAME[features].to_numpy(), chunks=(200, 2)), da.from_array(FRAME.y.to_numpy())
            w = da.from_array(FRAME.w.to_numpy(), chunks=33)
    blocks = blocks_of(X, y, w)
    kept = (FRAME.w > 0).to_numpy()
    whole = blocks.every(1)
    assert np.array_equal(whole.X, FRAME[features].to_numpy()[kept])
    assert np.array_equal(whole.y, FRAME.y[kept]) and np.array_equal(whole.weight, FRAME.w[kept])


def test_y_beside_a_frame_by_the_name_of_a_column_or_as_a_series():
    frame = dd.from_pandas(FRAME[["x0", "x1", "y", "w"]], npartitions=3)
    prints = {
        blocks_of(frame, "y", "w").fingerprint(None),
        blocks_of(frame[["x0", "x1"]], frame.y, frame.w).fingerprint(None),
        blocks_of(frame[["x0", "x1", "w"]], frame.y, "w").fingerprint(None),
        blocks_of(frame[["x0", "x1"]], frame.y.to_dask_array(), frame.w.to_dask_array()).fingerprint(None),
    }
    assert len(prints) == 1


def test_numbers_of_other_types_and_a_sparse_frame():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "y": [1.0, 2.0, 3.0]}).astype({"a": "int8"})
    assert blocks_of(table_of([frame, frame])).every(1).X.tolist() == [[1, 1], [2, 0], [3, 1]] * 2
    sparse = frame[["a", "b"]].astype(pd.SparseDtype("float", 0.0)).assign(y=frame.y.astype("Sparse[float]"))
    assert blocks_of(table_of([sparse])).every(1).X.tolist() == [[1, 1], [2, 0], [3, 1]]


def test_empty_partitions_and_partitions_without_weight():
    nothing = FRAME[:0]
    weightless = FRAME[100:200].assign(w=0.0)
    table = table_of([nothing, weightless, FRAME[:50], nothing, FRAME[50:100]]).drop(columns="c")
    blocks = blocks_of(table, weight="w")
    assert blocks.n_rows == (FRAME.w[:100] > 0).sum()
    for parts in ([nothing, nothing], [weightless, nothing]):
        empty = blocks_of(table_of(parts).drop(columns="c"), weight="w")
        for ask in (empty.head, empty.scanned):
            with pytest.raises(DataError, match="Model: the table has no rows of positive weight"):
                ask()


def test_the_head_of_a_partition_that_begins_without_weight():
    frame = numbers(1500).assign(w=np.r_[np.zeros(1200), np.ones(300)])
    assert np.array_equal(blocks_of(table_of([frame]), weight="w").head().y, frame.y[1200:])


# What is wrong.


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize(
    "column, word, value", [("x1", "X contains NaN", np.nan), ("x2", "X contains inf", -np.inf), ("y", "y", np.nan)]
)
def test_a_gap_is_named_by_partition_row_and_column(weight, number, column, word, value):
    frame = FRAME.drop(columns="c") if weight else FRAME.drop(columns=["c", "w"])
    parts = [frame[:300].copy(), frame[300:301].copy(), frame[301:].copy()]
    parts[number].iloc[5, parts[number].columns.get_loc(column)] = value
    blocks = blocks_of(table_of([frame[:0], *parts]), weight=weight, rows=64)
    with pytest.raises(DataError, match=f"Model: Input {word}.*: row 5 of partition {number + 1}, column '{column}'"):
        blocks.scanned()
    if number == 0:
        with pytest.raises(DataError, match="row 5 of partition 1"):
            blocks.head()


def test_a_gap_in_an_array_is_named_by_number():
    X = FRAME[["x0", "x1"]].to_numpy().copy()
    X[450, 1] = np.nan
    with pytest.raises(DataError, match="row 50 of partition 2, column 1"):
        blocks_of(da.from_array(X, chunks=(200, 1)), FRAME.y.to_numpy()).scanned()


@pytest.mark.parametrize("column", ["x1", "y", "w"])
def test_a_partition_with_other_columns_is_named(column):
    frame = FRAME[["x0", "x1", "x2", "y", "w"]]
    table = table_of([frame[:300], frame[300:600].drop(columns=column), frame[600:]])
    with pytest.raises(DataError, match=f"Model: partition 1 has no column '{column}'; its columns are 'x0'"):
        blocks_of(table, weight="w").scanned()


def test_a_partition_with_its_columns_in_another_order_is_read_by_name():
    frame = FRAME[["x0", "x1", "y"]]
    blocks = blocks_of(table_of([frame[:300], frame[300:][["y", "x1", "x0"]]]))
    assert np.array_equal(blocks.every(1).X, frame[["x0", "x1"]])


def test_text_in_a_partition_is_named():
    frame = FRAME[["x0", "x1", "y"]]
    with pytest.raises(DataTypeError, match="Model: column 'x1' is of type String, not a number"):
        blocks_of(table_of([frame[:300], frame[300:].astype({"x1": str})])).scanned()


def test_weights_out_of_range_are_named():
    frame = FRAME[["x0", "y", "w"]].copy()
    frame.loc[700, "w"] = -1.0
    with pytest.raises(DataError, match=r"sample_weight must be 0 or between .*; column 'w' holds -1"):
        blocks_of(dd.from_pandas(frame, npartitions=3), weight="w").scanned()


def explode(part):
    raise OSError("the disk is on fire\nand so is the house")


def test_a_partition_that_cannot_be_computed_is_told():
    table = dd.from_pandas(FRAME, npartitions=3).map_partitions(explode, meta=FRAME.iloc[:0])
    with pytest.raises(DataError, match=r"Model: a partition could not be computed: the disk is on fire$"):
        blocks_of(table[["x0", "y"]]).scanned()


def test_labels_that_change_between_two_sweeps_are_told():
    changed = []

    def fickle(part):
        return part.assign(c="other") if changed else part

    table = dd.from_pandas(FRAME[["x0", "c"]], npartitions=2).map_partitions(fickle, meta=FRAME[["x0", "c"]].iloc[:0])
    with dask.config.set(scheduler="synchronous"):
        blocks = blocks_of(table, "c", target="classes")
        changed.append(True)
        with pytest.raises(DataError, match=r"Model: the labels of partition \d changed between two sweeps"):
            blocks.scanned()


def test_ctrl_c_passes_through():
    def interrupted(block):
        raise KeyboardInterrupt

    with dask.config.set(scheduler="synchronous"), pytest.raises(KeyboardInterrupt):
        map_reduce(blocks_of(dd.from_pandas(FRAME[["x0", "y"]], npartitions=2)), interrupted, join)


def test_results_come_in_the_order_of_the_partitions():
    def slow_first(part, number):
        time.sleep(0.02 if number % 4 == 0 else 0.0)
        return number, part

    parts = [dask.delayed(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]
    found = list(run_on_partitions("Model", slow_first, parts, first_number=5))
    assert found == list(enumerate("abcdefghijklmnopqrstuvwxyz", 5))


# With a cluster of two processes.


@pytest.fixture(scope="module")
def client():
    settings = {"distributed.comm.timeouts.connect": "10s", "distributed.scheduler.allowed-failures": 3}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


MODELS = {
    "least squares": (LinearRegression(), "y"),
    "ridge, svd": (Ridge(solver="svd"), "y"),
    "ridge cv": (RidgeCV(), "y"),
    "logistic": (LogisticRegression(), "c"),
}
SLOWER_MODELS = {
    "ridge": (Ridge(alpha=3.0), "y"),
    "ridge, positive": (Ridge(positive=True), "y"),
    "ridge, conjugate gradients": (Ridge(solver="sparse_cg", tol=1e-14), "y"),
    "logistic, likelihood": (LogisticRegression(C=np.inf), "c"),
    "logistic, balanced": (LogisticRegression(class_weight="balanced", solver="newton-cg"), "c"),
}


def assert_same_fit(found, expected):
    size = np.abs(expected.coef_).max()
    assert np.abs(found.coef_ - expected.coef_).max() <= 1e-10 * size
    assert found.certificate_.kind == expected.certificate_.kind and found.certificate_.holds
    assert found.certificate_.fingerprint == expected.certificate_.fingerprint


def test_a_series_is_no_table():
    frame = dd.from_pandas(FRAME, npartitions=2)
    with pytest.raises(DataError, match="Ridge: a Dask X must be a dataframe or a 2-D array"):
        Ridge().fit(frame.x0, frame.y)


@pytest.mark.parametrize("name", [*MODELS, *(pytest.param(name, marks=pytest.mark.long) for name in SLOWER_MODELS)])
def test_a_cluster_gives_the_result_of_memory(name, client):
    model, y = (MODELS | SLOWER_MODELS)[name]
    frame = FRAME.drop(columns="c" if y == "y" else "y")
    expected = model.fit(frame, y, "w")
    coef, intercept, certificate = expected.coef_, expected.intercept_, expected.certificate_
    table = dd.from_pandas(frame, npartitions=3)
    found = model.fit(table, y, "w")
    assert np.abs(found.coef_ - coef).max() <= 1e-10 * np.abs(coef).max()
    assert np.allclose(found.intercept_, intercept, rtol=1e-9)
    assert found.certificate_.kind == certificate.kind and found.certificate_.holds
    assert found.certificate_.fingerprint == certificate.fingerprint
    assert np.array_equal(model.predict(table).compute(), model.predict(frame[["x0", "x1", "x2"]]))


def test_errors_on_a_worker_keep_their_words(client):
    frame = FRAME[["x0", "x1", "y"]]
    bad = frame.copy()
    bad.iloc[700, 1] = np.nan
    with pytest.raises(DataError, match="Ridge: Input X contains NaN: row 100 of partition 2, column 'x1'"):
        Ridge().fit(table_of([bad[:300], bad[300:600], bad[600:]]), "y")
    with pytest.raises(DataError, match="Ridge: partition 1 has no column 'x1'"):
        Ridge().fit(table_of([frame[:300], frame[300:].drop(columns="x1")]), "y")
    exploding = dd.from_pandas(frame, npartitions=3).map_partitions(explode, meta=frame.iloc[:0])
    with pytest.raises(DataError, match=r"Ridge: .*(went away|the disk is on fire)"):
        Ridge().fit(exploding, "y")


def slowly(part, folder, seconds):
    """Say that work has begun, and take a while."""
    with open(os.path.join(folder, f"{os.getpid()}-{time.monotonic()}"), "w"):
        time.sleep(seconds)
    return part


def slow_table(folder, seconds, npartitions=6):
    frame = FRAME[["x0", "x1", "x2", "y"]]
    table = dd.from_pandas(frame, npartitions=npartitions)
    return frame, table.map_partitions(slowly, str(folder), seconds, meta=frame.iloc[:0])


def once_it_has_begun(folder, act, tasks=2):
    """Do something on a thread when so many partitions have been begun; return the thread."""

    def watch():
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            begun = os.listdir(folder)
            if len(begun) >= tasks:
                act([int(name.split("-")[0]) for name in begun])
                return
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_an_interrupted_fit_leaves_the_cluster_and_the_model_alone(client, tmp_path, monkeypatch):
    frame, table = slow_table(tmp_path, 0.1, npartitions=20)
    model = Ridge().fit(frame, "y")
    before = dict(vars(model))
    taken = []

    def result(client, future, gone):
        taken.append(future)
        if len(taken) == 2:  # the first one is for the head of the table
            raise KeyboardInterrupt
        return future.result()

    monkeypatch.setattr(dask_blocks, "_result", result)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table, "y")
    assert vars(model) == before
    assert taken[1].cancelled()
    assert len(os.listdir(tmp_path)) < 20


def test_a_worker_that_is_killed_costs_time_and_not_the_result(client, tmp_path):
    frame, table = slow_table(tmp_path, 0.2)
    expected = Ridge().fit(frame, "y")
    killed = []

    def kill_one(pids):
        os.kill(pids[-1], signal.SIGKILL)
        killed.append(pids[-1])

    killer = once_it_has_begun(tmp_path, kill_one, tasks=3)
    found = Ridge().fit(table, "y")
    killer.join()
    assert len(killed) == 1
    begun = [int(name.split("-")[0]) for name in os.listdir(tmp_path)]
    assert len(begun) > 6 and killed[0] in begun  # what it held was computed again
    assert_same_fit(found, expected)
    client.wait_for_workers(2, timeout=60)


def killed_again_and_again(part):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_partition_that_kills_every_worker_is_told(client):
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        frame = FRAME[["x0", "y"]]
        table = dd.from_pandas(frame, npartitions=1).map_partitions(killed_again_and_again, meta=frame.iloc[:0])
        with pytest.raises(DataError, match="Ridge: workers died again and again over one partition"):
            Ridge().fit(table, "y")
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    client.wait_for_workers(2, timeout=60)


def test_a_result_that_comes_with_the_timeout_is_no_loss():
    class Late:
        calls = 0

        def result(self, timeout=None):
            self.calls += 1
            if self.calls == 1:
                raise TimeoutError
            return 7

        def done(self):
            return True

    assert dask_blocks._result(None, Late(), "gone") == 7


@pytest.fixture
def short_patience(monkeypatch):
    monkeypatch.setattr(dask_blocks, "_PATIENCE", 1.0)
    monkeypatch.setattr(dask_blocks, "_POLL", 0.1)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("how", ["all workers leave", "the cluster closes", "the client closes"])
def test_a_cluster_that_goes_away_is_told_and_nothing_hangs(how, tmp_path, short_patience):
    frame, table = slow_table(tmp_path, 0.5, npartitions=8)
    model = Ridge().fit(frame, "y")
    before = dict(vars(model))
    with (
        LocalCluster(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as own,
    ):
        acts = {"all workers leave": lambda _: cluster.scale(0), "the cluster closes": lambda _: cluster.close()}
        acts["the client closes"] = lambda _: own.close()
        thread = once_it_has_begun(tmp_path, acts[how])
        with pytest.raises(DataError, match="Ridge: the Dask cluster went away before the work was done"):
            model.fit(table, "y")
        thread.join()
    assert vars(model) == before
    again = Ridge().fit(dd.from_pandas(frame, npartitions=2), "y")  # without any client: by threads
    assert_same_fit(again, model)
