"""Workers that die, come late or are slow: the fit is the same to the bit. What cannot go on is told, and with what."""

import errno
import time

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from tests.scale.faults import N_PARTS, after, cluster_of, killer, on_dask, refill, rows

from learnable import (
    PCA,
    GaussianMixture,
    GaussianNB,
    KMeans,
    Lasso,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    PoissonRegressor,
    QuadraticDiscriminantAnalysis,
    Ridge,
)
from learnable.core.errors import DataError, LostRowsError
from learnable.data import dask_blocks

X, Y, LABELS = rows()
START = X[[0, 3, 6]]  # of one cluster: several steps are needed
MODELS = {
    "ridge": (Ridge(), Y),
    "lasso": (Lasso(alpha=0.1), Y),
    "logistic": (LogisticRegression(), LABELS),
    "poisson": (PoissonRegressor(alpha=0.1), np.abs(Y).round()),
    "k-means": (KMeans(3, init=START, n_init=1), None),
    "mixture": (GaussianMixture(3, random_state=0), None),
    "naive Bayes": (GaussianNB(), LABELS),
    "linear discriminant": (LinearDiscriminantAnalysis(), LABELS),
    "quadratic discriminant": (QuadraticDiscriminantAnalysis(), LABELS),
    "components": (PCA(2), None),
}
N_WORKERS = 3


@pytest.fixture(scope="module")
def client():
    with cluster_of(N_WORKERS) as client:
        yield client


@pytest.fixture(scope="module")
def undisturbed(client):
    """Return a function that gives the fit of a model on the whole cluster, and how many tasks it took."""
    found = {}

    def fit(name):
        if name not in found:
            with after(client, 0, None) as count:
                found[name] = fitted(name), count.seen
        return found[name]

    return fit


def fitted(name, table=None):
    model, y = MODELS[name]
    table = on_dask(X) if table is None else table
    return clone(model).fit(table, *(() if y is None else (on_dask(y),)))


def assert_same_bits(found, expected):
    compared = 0
    for name, value in vars(expected).items():
        if name.endswith("_") and name != "certificate_":
            assert np.asarray(getattr(found, name)).tobytes() == np.asarray(value).tobytes(), name
            compared += 1
    assert compared >= 3
    assert found.certificate_.fingerprint == expected.certificate_.fingerprint
    assert found.certificate_.value == expected.certificate_.value


def check_a_death(client, name, undisturbed, share):
    expected, n_tasks = undisturbed(name)
    point = max(1, min(n_tasks - 1, round(share * n_tasks)))
    try:
        with after(client, point, killer(client)) as count:
            found = fitted(name)
        assert count.seen >= point
        assert len(client.scheduler_info()["workers"]) == N_WORKERS - 1
        assert_same_bits(found, expected)
    finally:
        refill(client, N_WORKERS)


@pytest.mark.parametrize(
    "name, share", [("ridge", 0.5), ("k-means", 0.7), pytest.param("logistic", 0.35, marks=pytest.mark.long)]
)
def test_a_worker_that_dies_changes_no_bit(name, share, client, undisturbed):
    check_a_death(client, name, undisturbed, share)


@pytest.mark.long
@pytest.mark.parametrize("point", range(10))
@pytest.mark.parametrize("name", MODELS)
def test_a_worker_that_dies_anywhere_changes_no_bit(name, point, client, undisturbed):
    check_a_death(client, name, undisturbed, (point + 0.5) / 10)


def test_one_two_and_three_workers_give_the_same_bits(client, undisturbed):
    for n_workers in (1, 2):
        with cluster_of(n_workers):
            for name in ("logistic", "components"):
                assert_same_bits(fitted(name), undisturbed(name)[0])


def test_a_worker_that_comes_late_changes_no_bit(client, undisturbed):
    expected, n_tasks = undisturbed("k-means")

    async def join(address):
        client.cluster.scale(N_WORKERS + 1)

    with after(client, n_tasks // 2, join):
        found = fitted("k-means")
    assert_same_bits(found, expected)
    client.wait_for_workers(N_WORKERS + 1, timeout=60)
    client.cluster.scale(N_WORKERS)


def slow_on_one(block, block_info=None):
    if block_info is not None and block_info[0]["chunk-location"][0] == 0:
        time.sleep(0.1)
    return block


def test_a_slow_worker_changes_no_bit(client, undisturbed):
    found = fitted("ridge", on_dask(X).map_blocks(slow_on_one, dtype=float))
    assert_same_bits(found, undisturbed("ridge")[0])


# What cannot go on.


def test_partitions_without_another_source_are_told(client):
    """Rows that were sent to the workers exist only there."""
    step = len(X) // N_PARTS
    sent = client.scatter([X[start : start + step] for start in range(0, len(X), step)])
    pieces = [da.from_delayed(_delayed(future), (step, X.shape[1]), float) for future in sent]
    table = da.concatenate(pieces)
    model = KMeans(3, init=START, n_init=1)
    with (
        after(client, 25, killer(client)),
        pytest.raises(LostRowsError, match=r"KMeans: a worker died, .* no other source"),
    ):
        model.fit(table)
    assert not hasattr(model, "cluster_centers_")
    refill(client, N_WORKERS)


def _delayed(future):
    from dask.delayed import Delayed

    return Delayed(future.key, {future.key: future})


def test_a_scheduler_that_restarts_is_told_with_what_is_kept(monkeypatch):
    monkeypatch.setattr(dask_blocks, "_PATIENCE", 1.0)
    wait_for = dask_blocks._result
    seen = []

    def restarted(client, future, gone):
        seen.append(future)
        if len(seen) == 15:  # in the second step or a later one
            client.restart(wait_for_workers=False)
        return wait_for(client, future, gone)

    monkeypatch.setattr(dask_blocks, "_result", restarted)
    model = KMeans(3, init=START, n_init=1)
    with cluster_of(2), pytest.raises(LostRowsError, match="KMeans: the Dask cluster went away before") as lost:
        model.fit(on_dask(X))
    assert not hasattr(model, "cluster_centers_")
    monkeypatch.undo()
    kept = lost.value.kept
    assert kept.shape == START.shape and not np.array_equal(kept, START)
    resumed = KMeans(3, init=kept, n_init=1).fit(on_dask(X))
    expected = KMeans(3, init=START, n_init=1).fit(X)
    np.testing.assert_allclose(resumed.cluster_centers_, expected.cluster_centers_, rtol=1e-12)
    assert resumed.n_iter_ < expected.n_iter_


def full_disk(block):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_of_a_worker_is_told(client):
    model = Ridge().fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(DataError, match=r"Ridge: a partition could not .* the disk of a worker is full\. Free"):
        model.fit(on_dask(X).map_blocks(full_disk, dtype=float), on_dask(Y))
    assert vars(model) == before
