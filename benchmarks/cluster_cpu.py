"""Fits on a Dask cluster of two workers of one thread against the same fits in memory, by processor time.

    python -m benchmarks.cluster_cpu                        # k-means, logistic regression and boosting, 300,000 rows
    python -m benchmarks.cluster_cpu boosting --rows 2e6

The processor time of a fit on the cluster is that of the client, which has the scheduler in it, and of both workers.
From it is taken what the same processes use in the same time when nothing is asked of them (heartbeats, clocks), which
on a busy machine, where everything takes longer, would be counted ten times. In memory a fit has one thread. Contenders
take turns, and the least of the rounds counts. Peers of boosting are LightGBM's and XGBoost's own Dask versions.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import boosting_cluster
from .boosting_cluster import Spread

COLUMNS = 20
PARTS = 8
CLUSTERS = 16


class Contender(NamedTuple):
    """A fit, and whether it is on the cluster."""

    fit: Callable[[Spread], Any]
    on_cluster: bool


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster_cpu", description=__doc__.split("\n")[0])
    parser.add_argument("jobs", nargs="*", choices=[[], *JOBS], help="all if none")
    parser.add_argument("--rows", type=float, default=3e5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", message="Sending large graph")
    print("| job | contender | processor time (s) | as a multiple of ours in memory | quality |\n|---|---|---|---|---|")
    for name in options.jobs or JOBS:
        make, contenders, quality = JOBS[name]
        data = make(int(options.rows))
        idle = idle_rates(data.client)
        best: dict[str, float] = {}
        said: dict[str, str] = {}
        for number in range(options.rounds + 1):
            for contender, (fit, on_cluster) in contenders.items():
                took, model = processor_time(partial(fit, data), data.client if on_cluster else None, idle)
                said[contender] = quality(model, data)
                if number:  # the first call compiles
                    best[contender] = min(took, best.get(contender, np.inf))
        for contender, took in best.items():
            ratio = took / best["in memory"]
            print(f"| {name} | {contender} | {took:.2f} | {ratio:.2f} | {said[contender]} |", flush=True)
    return 0


def processor_time(call: Callable[[], Any], client: Any, idle: tuple[float, float]) -> tuple[float, Any]:
    """Return what a call takes in this process and, with a client, in the workers; and what it returns."""
    before = times(client)
    found = call()
    after = times(client)
    wall = after[2] - before[2]
    of_client, of_workers = (b - a - rate * wall for a, b, rate in zip(before[:2], after[:2], idle, strict=True))
    return of_client + (0.0 if client is None else of_workers), found


def times(client: Any) -> tuple[float, float, float]:
    """Return the processor time of this process and of the workers, and the clock."""
    workers = 0.0 if client is None else sum(client.run(time.process_time).values())
    return time.process_time(), workers, time.monotonic()


def idle_rates(client: Any, seconds: float = 4.0) -> tuple[float, float]:
    """Return the processor time per second of the client and of the workers when nothing is asked of them."""
    before = times(client)
    time.sleep(seconds)
    after = times(client)
    wall = after[2] - before[2]
    return (after[0] - before[0]) / wall, (after[1] - before[1]) / wall


def spread(X: Any, y: Any, n_test: int) -> Spread:
    """Return rows in memory and on the cluster; the last ones are to be judged on."""
    import dask.array as da
    from distributed import wait

    client = boosting_cluster.cluster()
    n = len(X) - n_test
    lazy_X = da.from_array(X[:n], chunks=(-(-n // PARTS), X.shape[1])).persist()
    lazy_y = da.from_array(y[:n], chunks=-(-n // PARTS)).persist()
    wait([lazy_X, lazy_y])
    return Spread(X[:n], y[:n], lazy_X, lazy_y, X[n:], y[n:], client)


def clusters(n: int) -> Spread:
    """Return rows around some centres, which overlap."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLUSTERS, COLUMNS))
    codes = rng.integers(CLUSTERS, size=n)
    return spread(centres[codes] + rng.normal(size=(n, COLUMNS)), codes, 0)


def two_classes(n: int) -> Spread:
    """Return rows of two classes by a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    score = X @ rng.normal(size=COLUMNS)
    return spread(X, (score + rng.logistic(size=n) > 0).astype(np.int64), 0)


def boosting_rows(n: int) -> Spread:
    """Return the rows of `boosting_cluster`, and a tenth more to be judged on."""
    X, y = boosting_cluster.rows(n + n // 10)
    return spread(X, y, n // 10)


def k_means(X: Any) -> Any:
    """Fit k-means with one thread."""
    from learnable import KMeans

    return KMeans(CLUSTERS, random_state=0, n_jobs=1).fit(X)


def logistic(X: Any, y: Any) -> Any:
    """Fit logistic regression with one thread."""
    from learnable import LogisticRegression

    return LogisticRegression(n_jobs=1).fit(X, y)


def boosting_in_memory(data: Spread) -> Any:
    """Fit boosting with one thread."""
    from learnable import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=boosting_cluster.TREES, early_stopping=False, random_state=0, n_jobs=1
    )
    return model.fit(data.X, data.y)


def auc_of(model: Any, data: Spread) -> str:
    """Return the loss of unseen rows in words."""
    return f"1 − AUC {boosting_cluster.quality(model, data)['loss']:.5f}"


JOBS: dict[str, tuple[Callable[[int], Spread], dict[str, Contender], Callable[[Any, Spread], str]]] = {
    "k-means": (
        clusters,
        {
            "on the cluster": Contender(lambda data: k_means(data.lazy_X), True),
            "in memory": Contender(lambda data: k_means(data.X), False),
        },
        lambda model, data: f"inertia {model.inertia_:.10g}, {model.n_iter_} iterations",
    ),
    "logistic": (
        two_classes,
        {
            "on the cluster": Contender(lambda data: logistic(data.lazy_X, data.lazy_y), True),
            "in memory": Contender(lambda data: logistic(data.X, data.y), False),
        },
        lambda model, data: f"gap {model.certificate_.value:.1e}",
    ),
    "boosting": (
        boosting_rows,
        {
            "on the cluster": Contender(boosting_cluster.ours, True),
            "in memory": Contender(boosting_in_memory, False),
            "LightGBM, Dask": Contender(boosting_cluster.lightgbm, True),
            "XGBoost, Dask": Contender(boosting_cluster.xgboost, True),
        },
        auc_of,
    ),
}


if __name__ == "__main__":
    raise SystemExit(main())
