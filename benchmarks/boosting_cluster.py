"""Boosting where the rows are not in one array: on a Dask cluster of two workers, and from Parquet files.

The cluster has two processes of one thread on this machine; the rows lie on it as float64 in four partitions before any
clock starts. Peers are LightGBM's and XGBoost's own Dask versions, and our fit in memory on two threads. From files the
peer is our fit in memory of the rows that have been read already.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .boosting import LIGHTGBM, RATE, THREADS, XGBOOST, one_minus_auc, signal
from .harness import OURS, Row

IN_MEMORY = "learnable (in memory)"
COLUMNS = 28
LEAVES = 31
TREES = 100
PARTS = 4


class Spread(NamedTuple):
    """Rows in memory, the same rows on a cluster, and rows to be judged on."""

    X: Any
    y: Any
    lazy_X: Any
    lazy_y: Any
    X_test: Any
    y_test: Any
    client: Any


@cache
def cluster() -> Any:
    """Return a client of two workers with one thread each."""
    from distributed import Client, LocalCluster

    started = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    client = Client(started)
    atexit.register(started.close)
    atexit.register(client.close)
    return client


def rows(n: int) -> tuple[Any, Any]:
    """Return n rows of numbers and their classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    return X, (signal(X, rng) + rng.logistic(size=n) > 0).astype(np.int64)


@cache
def spread(quick: bool) -> Spread:
    """Return the rows, a tenth of them to be judged on."""
    import dask.array as da
    from distributed import wait

    n = 40_000 if quick else 2_000_000
    X, y = rows(n + n // 10)
    client = cluster()
    lazy_X = da.from_array(X[:n], chunks=(n // PARTS, COLUMNS)).persist()
    lazy_y = da.from_array(y[:n], chunks=n // PARTS).persist()
    wait([lazy_X, lazy_y])
    return Spread(X[:n], y[:n], lazy_X, lazy_y, X[n:], y[n:], client)


def ours(data: Spread) -> Any:
    """Fit on the cluster."""
    from learnable import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=TREES, early_stopping=False, random_state=0)
    return model.fit(data.lazy_X, data.lazy_y)


def in_memory(data: Spread) -> Any:
    """Fit in this process."""
    from learnable import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=TREES, early_stopping=False, random_state=0, n_jobs=THREADS)
    return model.fit(data.X, data.y)


def lightgbm(data: Spread) -> Any:
    """Do LightGBM's Dask fit by data-parallel histograms (4.7 with rounded gradients fails on several workers)."""
    from lightgbm import DaskLGBMClassifier

    model = DaskLGBMClassifier(
        client=data.client, n_estimators=TREES, num_leaves=LEAVES, learning_rate=RATE, tree_learner="data", n_jobs=1,
        verbose=-1,
    )  # fmt: skip
    return model.fit(data.lazy_X, data.lazy_y).to_local()


def xgboost(data: Spread) -> Any:
    """Do XGBoost's Dask fit, leaf-wise."""
    from xgboost import dask as dxgb

    model = dxgb.DaskXGBClassifier(
        n_estimators=TREES, max_leaves=LEAVES, max_depth=0, grow_policy="lossguide", learning_rate=RATE,
        tree_method="hist", n_jobs=1,
    )  # fmt: skip
    model.client = data.client
    return model.fit(data.lazy_X, data.lazy_y)


def quality(model: Any, data: Spread) -> dict[str, float]:
    """Return one minus the area under the curve of unseen rows."""
    if hasattr(model, "get_booster"):
        import xgboost as xgb

        score = model.get_booster().predict(xgb.DMatrix(data.X_test))
    else:
        score = np.asarray(model.predict_proba(data.X_test))[:, 1]
    return {"loss": one_minus_auc(score, data.y_test)}


class Stored(NamedTuple):
    """Rows in memory, and in files."""

    X: Any
    y: Any
    pattern: str


@cache
def stored(quick: bool) -> Stored:
    """Write a table of 450 MB, or of 4 MB, in four Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(tempfile.mkdtemp(prefix="learnable-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    X, y = rows(20_000 if quick else 2_000_000)
    for number, part in enumerate(np.array_split(np.arange(len(X)), PARTS)):
        columns = {f"x{j:02d}": X[part, j] for j in range(COLUMNS)} | {"y": y[part]}
        pq.write_table(pa.table(columns), folder / f"rows-{number}.parquet", row_group_size=100_000)
    return Stored(X, y, str(folder / "rows-*.parquet"))


def from_files(data: Stored) -> Any:
    """Fit from the files."""
    from learnable import HistGradientBoostingClassifier
    from learnable.data import Files

    model = HistGradientBoostingClassifier(max_iter=TREES, early_stopping=False, random_state=0, n_jobs=THREADS)
    return model.fit(Files(data.pattern, in_memory_bytes=0), "y")


def training_loss(model: Any, data: Stored) -> dict[str, float]:
    """Return the loss reached."""
    return {"loss": float(model.training_loss_[-1])}


ROWS = (
    Row(
        "boosting_cluster",
        "two classes, 100 trees of 31 leaves, two Dask workers of one thread",
        f"2,000,000 × {COLUMNS}",
        spread,
        {
            OURS: ours,
            IN_MEMORY: in_memory,
            LIGHTGBM: lightgbm,
            XGBOOST: xgboost,
        },
        quality,
        targets={IN_MEMORY: 1 / 1.4, LIGHTGBM: 1.5, XGBOOST: 1.5},
        compared="loss",
        tolerance=0.02,
    ),
    Row(
        "boosting_parquet",
        "two classes, 100 trees of 31 leaves, from Parquet files",
        f"2,000,000 × {COLUMNS}, 450 MB",
        stored,
        {OURS: from_files, IN_MEMORY: in_memory},
        training_loss,
        targets={IN_MEMORY: 1 / 2.5},
        compared="loss",
        tolerance=1e-12,
    ),
)
