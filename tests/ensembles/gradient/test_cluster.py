"""Boosting on a Dask cluster gives the model of the table in memory, whatever happens to the workers."""

import errno
import time

import numpy as np
import pytest

from learnable import HistGradientBoostingClassifier, HistGradientBoostingRegressor, verify
from learnable.core.errors import DataError, LostRowsError
from learnable.ensembles.gradient import cluster as parts
from learnable.ensembles.gradient import rank
from learnable.ensembles.gradient.cluster import share_out

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

TREES = ("start", "feature", "threshold", "left", "right", "missing_left", "value", "impurity", "n_rows", "bits")
N = 5000
LOSSES = {
    "squared_error": {},
    "absolute_error": {},
    "huber": {},
    "quantile": {"quantile": 0.8},
    "quantiles": {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
    "poisson": {},
    "gamma": {},
    "normal": {},
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2])
    y = np.exp(0.5 * signal + 0.1 * rng.normal(size=N))
    labels = np.array(["a", "b", "c"])[np.digitize(signal, [-0.5, 0.6])]
    return X, y, labels, rng.random(N) + 0.5


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def lazy(array, n_parts):
    rows = -(-N // n_parts)
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


def assert_same(found, wanted):
    for name in TREES:
        np.testing.assert_array_equal(getattr(found.trees_, name), getattr(wanted.trees_, name), err_msg=name)
    for name in ("baseline_", "steps_", "training_loss_", "validation_score_", "train_score_"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
    assert found.certificate_.fingerprint == wanted.certificate_.fingerprint
    assert found.certificate_.value == wanted.certificate_.value


@pytest.mark.parametrize("n_parts", [1, 2, 7])  # on three workers: one, two and three parts
def test_any_number_of_parts_gives_the_model_of_memory(table, client, n_parts):
    X, _, labels, _ = table
    settings = {"max_iter": 4, "random_state": 0, "early_stopping": True}
    wanted = HistGradientBoostingClassifier(**settings).fit(X, labels)
    found = HistGradientBoostingClassifier(**settings).fit(lazy(X, n_parts), lazy(labels, n_parts))
    assert_same(found, wanted)
    np.testing.assert_array_equal(found.predict_proba(X[:50]), wanted.predict_proba(X[:50]))


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_gives_the_model_of_memory(table, client, name):
    X, y, _, _ = table
    settings = {"loss": name, "max_iter": 3, "max_leaf_nodes": 8, "random_state": 1, "early_stopping": False}
    settings |= LOSSES[name]
    wanted = HistGradientBoostingRegressor(**settings).fit(X, y)
    assert_same(HistGradientBoostingRegressor(**settings).fit(lazy(X, 3), lazy(y, 3)), wanted)


@pytest.mark.parametrize(
    "settings",
    [
        {"class_weight": "balanced"},
        {"loss": "exponential", "subsample": 0.5},
        {"direction": "gradient", "step": "line-search"},
        {"leaf": "minimiser", "max_features": 0.5, "growth": "depth"},
    ],
    ids=str,
)
def test_weights_and_settings_give_the_model_of_memory(table, client, settings):
    X, _, labels, w = table
    labels = np.where(labels == "a", "a", "b")
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(k=labels, w=np.where(np.arange(N) % 50, w, 0.0))
    settings = {"max_iter": 3, "max_leaf_nodes": 8, "random_state": 0, "early_stopping": False, **settings}
    wanted = HistGradientBoostingClassifier(**settings).fit(frame, "k", "w")
    found = HistGradientBoostingClassifier(**settings).fit(dd.from_pandas(frame, npartitions=4), "k", "w")
    assert_same(found, wanted)


def test_given_rows_decide_when_to_stop_and_the_model_verifies(table, client):
    X, y, _, _ = table
    settings = {"max_iter": 4, "random_state": 0, "max_leaf_nodes": 8}
    wanted = HistGradientBoostingRegressor(**settings).fit(X, y, X_val=X[:500], y_val=y[:500])
    found = HistGradientBoostingRegressor(**settings).fit(lazy(X, 3), lazy(y, 3), X_val=X[:500], y_val=y[:500])
    assert_same(found, wanted)
    assert verify(found, lazy(X, 2), lazy(y, 2))
    found.trees_.value[1] *= 1.001
    assert not verify(found, lazy(X, 2), lazy(y, 2))


@pytest.mark.parametrize("n_levels", [9, 400])
def test_categories_give_the_model_of_memory(table, client, n_levels):
    X, y, labels, _ = table
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(y=y, k=labels)
    levels = np.array([f"level {k}" for k in range(n_levels)])
    frame["c"] = pd.Categorical(np.where(rng.random(N) < 0.1, None, levels[rng.integers(0, n_levels, N)]))
    settings = {"max_iter": 3, "max_leaf_nodes": 8, "random_state": 0, "early_stopping": True}
    parts = dd.from_pandas(frame, npartitions=3)
    wanted = HistGradientBoostingRegressor(**settings).fit(frame.drop(columns="k"), "y")
    found = HistGradientBoostingRegressor(**settings).fit(parts.drop(columns="k"), "y")
    assert_same(found, wanted)
    assert [own.tolist() for own in found.levels_] == [own.tolist() for own in wanted.levels_]
    np.testing.assert_array_equal(
        np.asarray(found.predict(parts.drop(columns=["k", "y"]))), wanted.predict(frame.drop(columns=["k", "y"]))
    )
    wanted = HistGradientBoostingClassifier(**settings).fit(frame.drop(columns="y"), "k")
    found = HistGradientBoostingClassifier(**settings).fit(parts.drop(columns="y"), "k")
    assert_same(found, wanted)
    assert verify(found, parts.drop(columns="y"), "k")


def test_float64_histograms_agree_to_rounding(table, client):
    X, y, _, _ = table
    settings = {"max_iter": 3, "histogram": "float64", "random_state": 0, "early_stopping": False}
    wanted = HistGradientBoostingRegressor(**settings).fit(X, y)
    found = HistGradientBoostingRegressor(**settings).fit(lazy(X, 3), lazy(y, 3))
    np.testing.assert_array_equal(found.trees_.feature, wanted.trees_.feature)
    np.testing.assert_allclose(found.trees_.value, wanted.trees_.value, rtol=1e-10, atol=1e-12)
    assert found.certificate_.holds


# --------------------------------------------------------------------------------------------------------------------
# Faults.


@pytest.fixture
def slices(monkeypatch):
    """Tasks of one round each, and what to do before the k-th of them."""
    faults = {}
    seen = []
    original = parts._Attempt.next_slice

    def next_slice(self, kept, seconds):
        seen.append(len(kept.steps))
        if len(seen) in faults:
            faults.pop(len(seen))(self)
        return original(self, kept, 0.0)

    monkeypatch.setattr(parts._Attempt, "next_slice", next_slice)
    return faults, seen


def lose_part(attempt):
    """Let a worker forget what it holds, as one that was killed and started again."""
    attempt.client.run(parts.forget, attempt.name, workers=[attempt.ranks[-1]])


@pytest.mark.parametrize("at", [1, 4])
def test_a_lost_part_is_made_again_and_the_model_is_the_same(table, client, slices, at):
    X, _, labels, _ = table
    faults, seen = slices
    settings = {"max_iter": 5, "max_leaf_nodes": 8, "random_state": 0, "early_stopping": True}
    wanted = HistGradientBoostingClassifier(**settings).fit(X, labels)
    faults[at] = lose_part
    found = HistGradientBoostingClassifier(**settings).fit(lazy(X, 4), lazy(labels, 4))
    assert not faults
    assert len(seen) == 5 + 1  # the round that was lost is repeated
    assert_same(found, wanted)


def test_workers_that_leave_and_join_do_not_change_the_model(table, slices):
    X, y, _, _ = table
    faults, _ = slices
    settings = {"max_iter": 6, "max_leaf_nodes": 8, "random_state": 0, "early_stopping": False}
    wanted = HistGradientBoostingRegressor(**settings).fit(X, y)
    sizes = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        faults[2] = lambda attempt: client.retire_workers([attempt.ranks[0]])
        faults[4] = lambda attempt: (cluster.scale(3), client.wait_for_workers(2))
        faults[6] = lambda attempt: sizes.append(len(attempt.ranks))
        found = HistGradientBoostingRegressor(**settings).fit(lazy(X, 4), lazy(y, 4))
    assert sizes[0] > 1  # those that have joined take part
    assert_same(found, wanted)


def test_a_lost_cluster_keeps_its_rounds_in_a_checkpoint(table, client, slices, tmp_path):
    X, y, _, _ = table
    faults, seen = slices
    path = tmp_path / "rounds.npz"
    settings = {"max_iter": 5, "max_leaf_nodes": 8, "early_stopping": True, "checkpoint": path, "random_state": 3}

    def break_down(attempt):
        raise parts.ClusterLostError("it burnt down")

    faults.update(dict.fromkeys(range(3, 20), break_down))
    model = HistGradientBoostingRegressor(**settings)
    with pytest.raises(DataError, match=r"lost after 2 of 5 rounds \(it burnt down\).*goes on after round 2"):
        model.fit(lazy(X, 3), lazy(y, 3))
    faults.clear()
    assert parts.Checkpoint("Model", path).seed() is not None
    before = len(seen)
    with pytest.raises(DataError, match="belongs to another fit"):
        HistGradientBoostingRegressor(**{**settings, "max_leaf_nodes": 7}).fit(lazy(X, 3), lazy(y, 3))
    model.fit(lazy(X, 2), lazy(y, 2))
    assert len(seen) - before == 3  # rounds that were not done yet
    assert not path.exists()
    assert_same(model, HistGradientBoostingRegressor(**settings).fit(X, y))
    path.write_bytes(b"PK nonsense")
    with pytest.raises(DataError, match="is damaged"):
        model.fit(lazy(X, 2), lazy(y, 2))


def test_what_is_wrong_with_the_data_is_said(table, client):
    X, y, _, _ = table
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(y=y)
    other = frame.rename(columns={"r": "x"})
    both = dd.from_delayed(
        [distributed.get_client().submit(lambda f: f, part, pure=False) for part in (frame, other)],
        meta=frame.iloc[:0],
        verify_meta=False,
    )
    with pytest.raises(DataError, match=r"partition 1 has no column 'r'"):
        HistGradientBoostingRegressor(max_iter=2).fit(both, "y")
    with pytest.raises(DataError, match="strictly positive y"):
        HistGradientBoostingRegressor(loss="gamma", max_iter=2).fit(lazy(X, 2), lazy(y - 5.0, 2))
    with pytest.raises(DataError, match="Set scoring='loss'"):
        HistGradientBoostingRegressor(max_iter=2, scoring="r2", early_stopping=True).fit(lazy(X, 2), lazy(y, 2))
    with pytest.raises(DataError, match="sampling='gradient'"):
        HistGradientBoostingRegressor(max_iter=2, sampling="gradient", subsample=0.5).fit(lazy(X, 2), lazy(y, 2))


def test_partitions_are_shared_out_in_order():
    rng = np.random.default_rng(0)
    for _ in range(100):
        heights = rng.integers(0, 50, rng.integers(1, 12)).tolist()
        if not sum(heights):
            continue
        groups = share_out(heights, int(rng.integers(1, 6)))
        assert [number for group in groups for number in group] == list(range(len(heights)))
        assert all(sum(heights[k] for k in group) for group in groups)


SMALL = {"max_iter": 5, "max_leaf_nodes": 8, "random_state": 0, "early_stopping": False}


def slow_first(block, block_info=None):
    if block_info is not None and block_info[0]["chunk-location"][0] == 0:
        time.sleep(0.05)
    return block


def test_a_slow_worker_does_not_change_the_model(table, client, monkeypatch):
    """Slow to read, and slow in every round."""
    X, y, _, _ = table
    original = rank.RankFit.run

    def run(self, seconds):
        time.sleep(0.1 if self.world.rank == 1 else 0.0)
        return original(self, seconds)

    monkeypatch.setattr(rank.RankFit, "run", run)
    found = HistGradientBoostingRegressor(**SMALL).fit(lazy(X, 4).map_blocks(slow_first, dtype=float), lazy(y, 4))
    assert_same(found, HistGradientBoostingRegressor(**SMALL).fit(X, y))


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("when", ["read", "encoded"])
def test_a_full_disk_of_a_worker_is_told(table, client, monkeypatch, when):
    X, y, _, _ = table
    rows = lazy(X, 2)
    if when == "read":
        rows = rows.map_blocks(full_disk, dtype=float, meta=np.empty((0, 0)))
    else:
        monkeypatch.setattr(parts, "encode_partition", full_disk)
    model = HistGradientBoostingRegressor(**SMALL)
    with pytest.raises(DataError, match=r"HistGradientBoostingRegressor: .*the disk of a worker is full\. Free"):
        model.fit(rows, lazy(y, 2))
    assert not hasattr(model, "trees_")


def test_partitions_without_another_source_are_told(table, slices):
    """Rows that were sent to the workers exist only there."""
    from dask.delayed import Delayed

    X, y, _, _ = table
    faults, _ = slices
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        sent = client.scatter([X[: N // 2], X[N // 2 :]])
        pieces = [da.from_delayed(Delayed(own.key, {own.key: own}), (N // 2, 4), float) for own in sent]

        def kill(attempt):
            victim = next(iter(cluster.workers.values()))
            cluster.sync(cluster.scheduler.remove_worker, victim.address, stimulus_id="killed by the test")
            cluster.sync(victim.close, timeout=0, executor_wait=False, nanny=False)

        faults[3] = kill
        model = HistGradientBoostingRegressor(**SMALL)
        with pytest.raises(LostRowsError, match=r"no other source.*2 of 5 rounds"):
            model.fit(da.concatenate(pieces), lazy(y, 2))
    assert not hasattr(model, "trees_")


def test_a_scheduler_that_goes_away_and_comes_back(table, slices, tmp_path, monkeypatch):
    """The rounds so far are in the checkpoint, and a fit on the next cluster goes on from there."""
    monkeypatch.setattr(parts, "_PATIENCE", 1.0)
    X, y, _, _ = table
    faults, seen = slices
    settings = {**SMALL, "checkpoint": tmp_path / "rounds.npz"}
    model = HistGradientBoostingRegressor(**settings)
    few = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    impatient = {"distributed.comm.timeouts.connect": "1s"}  # else a client calls for half a minute, twice
    with dask.config.set(impatient), distributed.LocalCluster(**few) as cluster, distributed.Client(cluster):
        faults[3] = lambda attempt: cluster.sync(cluster.scheduler.close)
        with pytest.raises(DataError, match=r"lost after 2 of 5 rounds.*goes on after round 2"):
            model.fit(lazy(X, 4), lazy(y, 4))
    before = len(seen)
    with distributed.LocalCluster(**few) as cluster, distributed.Client(cluster):
        model.fit(lazy(X, 4), lazy(y, 4))
    assert len(seen) - before == 3
    assert_same(model, HistGradientBoostingRegressor(**SMALL).fit(X, y))


@pytest.mark.long
@pytest.mark.parametrize("at", range(1, 11))
def test_a_worker_killed_at_any_point_costs_a_repetition(table, slices, at):
    import os
    import signal

    X, _, labels, _ = table
    faults, _ = slices
    settings = {"max_iter": 12, "max_leaf_nodes": 8, "random_state": 0, "early_stopping": True}
    wanted = HistGradientBoostingClassifier(**settings).fit(X, labels)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill(attempt):
            pid = client.run(os.getpid, workers=[attempt.ranks[at % 2 - 1]])
            os.kill(next(iter(pid.values())), signal.SIGKILL)

        faults[at] = kill
        found = HistGradientBoostingClassifier(**settings).fit(lazy(X, 4), lazy(labels, 4))
    assert not faults
    assert_same(found, wanted)
