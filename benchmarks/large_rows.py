"""Fits of many generated rows on one and two local processes: passes, bytes, processor time and memory.

    python -m benchmarks.large_rows                         # sums to 10⁸ rows, boosting to 10⁷
    python -m benchmarks.large_rows Ridge --most 1e7

Rows are generated where they are used, in partitions of 250,000 rows of 20 columns, so that no table has to fit into
memory. Time is the processor time of the busiest worker and of the client, which holds the scheduler, and the clock;
memory is the most that a worker process has taken. Bytes are what all partitions, or parts, send in the whole fit.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

import learnable as ln
from learnable.data import dask_blocks

from .cost_model import N_COLUMNS, table

ROUNDS = 30
LEAVES = 31


class Job(NamedTuple):
    """A model, its target, the numbers of rows, and the bytes that parts send in a round if it is made of rounds."""

    make: Callable[[], Any]
    target: str
    sizes: tuple[float, ...]
    by_rounds: bool = False


def boosting() -> Any:
    """Return the model of 30 rounds."""
    return ln.HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=0)


JOBS = {
    "Ridge": Job(lambda: ln.Ridge(n_jobs=1), "numbers", (1e6, 1e7, 1e8)),
    "GaussianNB": Job(ln.GaussianNB, "classes", (1e6, 1e7)),
    "HistGradientBoostingClassifier": Job(boosting, "classes", (1e6, 1e7), True),
}


class Found(NamedTuple):
    """What a fit took."""

    passes: int
    n_bytes: float
    worker: float
    client: float
    wall: float
    memory: float


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.large_rows", description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", choices=[[], *JOBS], help="all if none")
    parser.add_argument("--least", type=float, default=0.0, help="least rows")
    parser.add_argument("--most", type=float, default=1e8, help="most rows")
    options = parser.parse_args(arguments)
    print("| model | rows | processes | passes | bytes sent | worker s | client s | clock s | worker memory |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.models or JOBS:
        for n in JOBS[name].sizes:
            for workers in (2, 1) if options.least <= n <= options.most else ():
                k = measure(JOBS[name], int(n), workers)
                print(
                    f"| `{name}` | {n:.0e} | {workers} | {k.passes} | {k.n_bytes:.2e} | {k.worker:.1f} | "
                    f"{k.client:.1f} | {k.wall:.1f} | {k.memory / 2**20:,.0f} MB |",
                    flush=True,
                )
    return 0


def measure(job: Job, n: int, workers: int) -> Found:
    """Fit on local processes of one thread."""
    from distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job.make().fit(*table(500_000, N_COLUMNS, job.target))  # compiles
        X, y = table(n, N_COLUMNS, job.target)
        received: list[int] = []
        passes: list[int] = []
        counted = dask_blocks.run_on_partitions

        def counting(*args: Any, **named: Any) -> Any:
            if len(args[2]) > 1:
                passes.append(1)
            for found in counted(*args, **named):
                received.append(len(cloudpickle.dumps(found)))
                yield found

        dask_blocks.run_on_partitions = counting
        before = client.run(time.process_time)
        own, wall = time.process_time(), time.perf_counter()
        try:
            model = job.make().fit(X, y)
        finally:
            dask_blocks.run_on_partitions = counted
        wall = time.perf_counter() - wall
        own = time.process_time() - own
        after = client.run(time.process_time)
        memory = max(client.run(most_memory).values())
    n_bytes = float(sum(received))
    if job.by_rounds:  # and the codes are made in one more pass; histograms travel to part 0
        passes.append(1)
        splits = float(np.sum(model.trees_.feature >= 0) + ROUNDS)
        n_bytes += (workers - 1) * splits * 2048.0 * N_COLUMNS
    return Found(len(passes), n_bytes, max(after[name] - before[name] for name in after), own, wall, memory)


def most_memory() -> float:
    """Return the most bytes that this process has had."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    raise SystemExit(main())
