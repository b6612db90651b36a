"""Folds of `evaluate` and `compare` on a Dask cluster: the scores of this machine."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression as Peer

from learnable import GaussianNB, Ridge
from learnable.core.errors import DataError, ParameterError
from learnable.evaluation import compare, evaluate
from learnable.evaluation.comparison.candidates import candidates_for
from learnable.evaluation.comparison.cluster import ClusterServer
from learnable.evaluation.comparison.race import Outcome
from learnable.evaluation.comparison.workspace import take_predictions

distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=80)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("model", [Ridge(), GaussianNB(), Peer()], ids=str)
def test_folds_on_a_cluster_score_as_here(client, model):
    y = (Y > 0).astype(int) if isinstance(model, GaussianNB) else Y
    weight = None if isinstance(model, Peer) else RNG.random(80)
    settings = {"sample_weight": weight, "n_splits": 4, "repeats": 2}
    here = evaluate(model, X, y, **settings)
    there = evaluate(model, X, y, **settings, client=client)
    assert there.scores.tolist() == here.scores.tolist()
    assert there.train_scores.tolist() == here.train_scores.tolist()
    assert there.interval == here.interval and there.scheme == here.scheme
    found = [None if own is None else own.value for own in there.certificates]
    assert found == [None if own is None else own.value for own in here.certificates]


class Choosy(Ridge):
    """A model that refuses the third fold."""

    def fit(self, X, y):
        """Refuse rows that have the last target."""
        if Y[0] in y and Y[-1] in y and Y[20] not in y:
            raise ValueError("not these rows")
        return super().fit(X, y)


def test_an_error_names_the_fold(client):
    splits = [(np.setdiff1d(np.arange(80), test), test) for test in np.split(np.arange(80), 4)]
    with pytest.raises(DataError, match=r"Choosy failed in fold 2 of 4, which trains on 60 row.*not these rows"):
        evaluate(Choosy(), X, Y, scheme=splits, client=True)
    with pytest.raises(ParameterError, match=r"evaluate: client must be a distributed\.Client"):
        evaluate(Ridge(), X, Y, client="here")


class Here:
    """What runs on this machine."""

    def __init__(self):
        self.jobs = []

    def run(self, job, **kwargs):
        """Note the job."""
        self.jobs.append(job)
        return Outcome("ok", None, [{"split": split} for split in job.get("splits", [])], 0.0)


@pytest.fixture
def folder(tmp_path):
    for split in ("0", "1", "2"):
        test = np.arange(80) % 3 == int(split)
        np.save(tmp_path / f"{split}.train.npy", np.flatnonzero(~test))
        np.save(tmp_path / f"{split}.test.npy", np.flatnonzero(test))
        np.save(tmp_path / f"{split}.X_train.npy", X[~test])
        np.save(tmp_path / f"{split}.X_test.npy", X[test])
    np.save(tmp_path / "y.npy", Y)
    return tmp_path


def job_of(folder, model):
    (candidate, *_) = [one for one in candidates_for("regression", [model], Y) if not one.baseline]
    return {
        "function": "learnable.evaluation.comparison.leaderboard:score_candidate",
        "memory": None, "folder": str(folder), "splits": ["0", "1", "2"], "candidate": candidate,
        "task": "regression", "n_classes": None, "seed": 0, "keep": True,
    }  # fmt: skip


def test_a_candidate_runs_on_the_workers(client, folder):
    here = Here()
    heard = []
    job = job_of(folder, "Ridge")
    found = ClusterServer(here, client).run(job, on_message=heard.append)
    assert found.status == "ok" and [message["split"] for message in heard] == ["0", "1", "2"]
    assert not here.jobs
    expected = Ridge().fit(X[np.arange(80) % 3 != 1], Y[np.arange(80) % 3 != 1])
    test = np.arange(80) % 3 == 1
    assert heard[1]["test"]["r2"] == pytest.approx(expected.score(X[test], Y[test]), rel=1e-12)
    np.testing.assert_allclose(take_predictions(folder, job["candidate"].name, "1").ravel(), expected.predict(X[test]))
    assert ClusterServer(here, client).run({"function": "other"}).status == "ok" and len(here.jobs) == 1


def test_what_goes_wrong_on_the_cluster_is_an_outcome(client, folder, monkeypatch):
    here = Here()
    assert ClusterServer(here, client).run(job_of(folder, "Ridge"), seconds=0.0).status == "timeout"
    found = ClusterServer(here, client).run(job_of(folder, ("broken", Ridge(alpha=-1.0))))
    assert found.status == "failed" and "alpha must be" in found.reason
    here = Here()
    server = ClusterServer(here, client)
    monkeypatch.setattr("learnable.evaluation.comparison.cluster.run_fold", _die)
    assert server.run(job_of(folder, "Ridge")).status == "ok"
    assert [job["splits"] for job in here.jobs] == [["0"], ["1"], ["2"]]  # what the cluster loses is done here


def _die(*args):
    raise MemoryError("gone")


@pytest.mark.long
def test_a_comparison_on_a_cluster_is_that_of_here(client):
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})
    here = compare(table, "y", models=["Ridge", "LinearRegression"], folds=3)
    there = compare(table, "y", models=["Ridge", "LinearRegression"], folds=3, client=client)
    for a, b in zip(here["leaderboard"], there["leaderboard"], strict=True):
        assert a["name"] == b["name"] and a["scores"] == b["scores"] and a["mean"] == b["mean"]
