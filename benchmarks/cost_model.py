"""A model of what a fit on a cluster costs, checked against fits on one and two local processes.

    python -m benchmarks.cost_model [--rows 2000000] [--markdown FILE]

    seconds = L·n·l/w + passes · (n·r/w + p·b·(1/c + m)) + p·o + s + a

    n rows, d columns, w workers of one thread, p partitions;
    passes over the rows, b bytes that a partition sends per pass           (counted in a small fit)
    r seconds of a pass per row                                            (measured in this process, one thread)
    L times that rows are loaded: once if a fit has one pass, or says before it that there are several; else twice
    l seconds to load a row                                                (measured: rows are generated)
    o seconds of Dask's own work per partition, a of a fit without rows    (measured on one process, with few rows)
    m seconds to merge a byte                                              (measured on the client)
    c bytes per second of the network into the client                      (a parameter)
    s seconds that the client works alone, such as starts from a sample    (measured in this process)

All times are processor time, so that a busy machine gives the same numbers. Rows are generated where they are used, and
kept in the workers' memory, where later passes find them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

import learnable as ln
from learnable.data import dask_blocks, external

PARTITION_ROWS = 250_000
NETWORK = 1.25e9  #: bytes per second: ten gigabit
N_COLUMNS = 20


@dataclass(frozen=True)
class Job:
    """A model and its rows."""

    name: str
    make: Callable[[], Any]
    target: str  #: "none", "numbers" or "classes"
    expects_passes: bool = False  #: whether the fit says before its first pass that there are several


JOBS = (
    Job("Ridge", lambda: ln.Ridge(n_jobs=1), "numbers"),
    Job("GaussianNB", lambda: ln.GaussianNB(), "classes"),
    Job("PCA", lambda: ln.PCA(5, n_jobs=1), "none"),
    Job("LogisticRegression", lambda: ln.LogisticRegression(n_jobs=1), "classes", expects_passes=True),
    Job(
        "KMeans",
        lambda: ln.KMeans(8, random_state=0, n_init=1, max_iter=10, n_jobs=1),
        "none",
        expects_passes=True,
    ),
)


@dataclass(frozen=True)
class Constants:
    """What is measured of one job on one thread."""

    passes: int
    loads: int  #: L
    load: float  #: l
    row: float  #: r
    message: float  #: b, the mean over the passes
    merge: float  #: m
    task: float  #: o
    start: float  #: a
    alone: float  #: s
    state: float  #: bytes that a task is sent


def predict(k: Constants, n: float, workers: int, partitions: float, network: float = NETWORK) -> dict[str, float]:
    """Return the seconds of each term."""
    return {
        "load": k.loads * n * k.load / workers,
        "sums": k.passes * n * k.row / workers,
        "tasks": partitions * k.task,
        "network": k.passes * (partitions * k.message + workers * k.state) / network,
        "merge": k.passes * partitions * k.message * k.merge,
        "client": k.alone + k.start,
    }


def blocks_of(seed: int, n: int, d: int) -> Any:
    """Return generated rows: eight overlapping clouds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X += 1.5 * np.random.default_rng(99).standard_normal((8, d))[rng.integers(0, 8, n)]
    return X


def _rows_of_block(block_id: tuple[int, ...], rows: int, d: int) -> Any:
    return blocks_of(block_id[0], rows, d)


def _target_of(X: Any, kind: str) -> Any:
    z = X[:, 0] - X[:, 1] + np.sin(7 * X[:, 2])
    return (z > 0).astype(np.int64) if kind == "classes" else z


def table(n: int, d: int, target: str, partition_rows: int = PARTITION_ROWS) -> tuple[Any, Any]:
    """Return Dask arrays of generated rows and targets."""
    import dask.array as da

    rows = min(n, partition_rows)
    count = -(-n // rows)
    make = partial(_rows_of_block, rows=rows, d=d)
    chunks = ((rows,) * count, (d,))
    X = da.map_blocks(lambda block_id=None: make(block_id), chunks=chunks, dtype=float, meta=np.empty((0, 0)))
    if target == "none":
        return X, None
    kind = np.int64 if target == "classes" else float
    y = X.map_blocks(partial(_target_of, kind=target), drop_axis=1, dtype=kind, meta=np.empty(0, kind))
    return X, y


def calibrate(job: Job, d: int = N_COLUMNS) -> Constants:
    """Measure the constants of a job in this process, on the rows of one partition."""
    import dask

    X, y = table(PARTITION_ROWS, d, job.target)
    load = min(_cpu(lambda: blocks_of(0, PARTITION_ROWS, d)) for _ in range(3)) / PARTITION_ROWS
    held = X.compute(scheduler="synchronous")
    targets = () if y is None else (y.compute(scheduler="synchronous"),)
    import dask.array as da

    table_here = da.from_array(held, chunks=(PARTITION_ROWS // 2, d))
    targets_here = tuple(da.from_array(column, chunks=PARTITION_ROWS // 2) for column in targets)
    sizes: list[float] = []
    states: list[float] = []
    seconds: list[float] = []
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings(), _tapped(sizes, states, seconds):
        warnings.simplefilter("ignore")
        job.make().fit(table_here, *targets_here)  # compiles
        for found in (sizes, states, seconds):
            found.clear()
        whole = _cpu(lambda: job.make().fit(table_here, *targets_here))
    passes = len(sizes)
    summed = sum(seconds)
    array = np.ones(2**20)
    merge = min(_cpu(lambda: cloudpickle.loads(cloudpickle.dumps(array)) + array) for _ in range(3)) / array.nbytes
    return Constants(
        passes,
        1 if job.expects_passes else min(passes, 2),
        load,
        summed / passes / PARTITION_ROWS,
        float(np.mean(sizes)),
        merge,
        *overheads(job, d),
        max(0.0, whole - summed - 3e-3 * passes),
        float(np.mean(states)),
    )


@cache
def constants(job: Job) -> Constants:
    """Return the constants of a job, measured once."""
    return calibrate(job)


@contextmanager
def _tapped(sizes: list[float], states: list[float], seconds: list[float]) -> Iterator[None]:
    """Note what each pass sends, and the time of its sums."""
    run = external.ExternalBlocks.map_reduce
    part = dask_blocks._sum_part
    spent = [0.0]

    def timed(*args: Any) -> Any:
        begin = time.process_time()
        found = part(*args)
        spent[0] += time.process_time() - begin
        sent.append(float(len(cloudpickle.dumps(found))))
        return found

    sent: list[float] = []

    def tapped(self: Any, statistic: Any, merge: Any, **named: Any) -> Any:
        spent[0] = 0.0
        sent.clear()
        states.append(float(len(cloudpickle.dumps(statistic))))
        found = run(self, statistic, merge, **named)
        sizes.append(max(sent))
        seconds.append(spent[0])
        return found

    external.ExternalBlocks.map_reduce = tapped  # type: ignore[method-assign]
    dask_blocks._sum_part = timed
    try:
        yield
    finally:
        external.ExternalBlocks.map_reduce = run  # type: ignore[method-assign]
        dask_blocks._sum_part = part


def _cpu(function: Callable[[], Any]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def _now() -> float:
    return time.process_time()


def overheads(job: Job, d: int) -> tuple[float, float]:
    """Return what Dask takes per partition, and for a fit of nothing, from fits of few rows in few and many parts."""
    few, many = (
        sum(fit_on_processes(job, parts * 1000, 1, d, 1000)[who] for who in ("worker", "client")) for parts in (4, 36)
    )
    task = max(0.0, (many - few) / 32)
    return task, max(0.0, few - 4 * task)


def fit_on_processes(
    job: Job, n: int, workers: int, d: int = N_COLUMNS, partition_rows: int = PARTITION_ROWS
) -> dict[str, float]:
    """Fit on a cluster of local processes; return processor seconds of the busiest worker and of the client."""
    from distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = table(2 * partition_rows, d, job.target, partition_rows)
        job.make().fit(*(column for column in small if column is not None))  # compiles
        X, y = table(n, d, job.target, partition_rows)
        before = client.run(_now)
        own = time.process_time()
        wall = time.perf_counter()
        job.make().fit(*(column for column in (X, y) if column is not None))
        wall = time.perf_counter() - wall
        own = time.process_time() - own
        after = client.run(_now)
    return {"worker": max(after[name] - before[name] for name in after), "client": own, "wall": wall}


def check(jobs: tuple[Job, ...], n: int) -> list[str]:
    """Return lines of a table: predicted and measured processor seconds with one and two processes."""
    lines = [
        "| model | passes | bytes per partition and pass | workers | predicted s | measured s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for job in jobs:
        k = constants(job)
        for workers in (1, 2):
            terms = predict(k, n, workers, n / PARTITION_ROWS)
            predicted = sum(terms.values()) - terms["network"]
            found = fit_on_processes(job, n, workers)
            measured = found["worker"] + found["client"]
            lines.append(
                f"| `{job.name}` | {k.passes} | {k.message:,.0f} | {workers} | {predicted:.2f} | {measured:.2f} | "
                f"{measured / predicted:.2f} |"
            )
            print(lines[-1], flush=True)
    return lines


def extrapolate(jobs: tuple[Job, ...], n: float = 1e10, workers: int = 1600, partition_rows: float = 1e6) -> list[str]:
    """Return lines of a table: the terms for many rows on a hundred machines of sixteen threads."""
    lines = [
        "| model | passes | load | sums | tasks | network | merge | client | together |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for job in jobs:
        k = constants(job)
        terms = predict(k, n, workers, n / partition_rows)
        cells = " | ".join(f"{seconds:,.1f} s" for seconds in terms.values())
        lines.append(f"| `{job.name}` | {k.passes} | {cells} | {sum(terms.values()):,.0f} s |")
        print(lines[-1], flush=True)
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.cost_model", description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", help="; ".join(job.name for job in JOBS))
    parser.add_argument("--rows", type=float, default=2e6, metavar="N", help="rows of the fits on local processes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write both tables")
    options = parser.parse_args(arguments)
    jobs = tuple(job for job in JOBS if not options.models or job.name in options.models)
    lines = [*check(jobs, int(options.rows)), "", *extrapolate(jobs)]
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
