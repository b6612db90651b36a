"""The tool: fits of files larger than memory, the cost of a comparison, the first answer of the command line.

The peer of a fit from files is reading them and doing nothing: pyarrow, batch by batch. Peak memory is that of a fresh
process, libraries included.
"""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .harness import OURS, Row

READING = "pyarrow"
COLUMNS = 100

_FRESH = """
import json, resource, sys
import learnable as ln
model = getattr(ln, sys.argv[1])().fit(sys.argv[2], *sys.argv[3:])
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


@cache
def parquet_files(quick: bool) -> str:
    """Write the table once and return its glob: 4 GB in four files with pyarrow's default row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(tempfile.mkdtemp(prefix="learnable-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rng = np.random.default_rng(0)
    slope = rng.standard_normal(COLUMNS)
    for number in range(4):
        tables = []
        for _ in range(1 if quick else 5):
            X = rng.standard_normal((10_000 if quick else 250_000, COLUMNS)) + np.linspace(-1, 1, COLUMNS)
            y = X @ slope + rng.standard_normal(len(X))
            label = (y + 3 * rng.standard_normal(len(X)) > 0).astype(np.int64)
            tables.append(pa.table({f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y, "label": label}))
        pq.write_table(pa.concat_tables(tables), folder / f"rows-{number}.parquet")
    return str(folder / "rows-*.parquet")


def only_read(*others: str) -> Callable[[str], None]:
    """Return what decodes every column that a fit needs, and throws it away."""

    def read(pattern: str) -> None:
        import pyarrow.parquet as pq

        columns = [*(f"x{j}" for j in range(COLUMNS)), *others]
        for path in sorted(Path(pattern).parent.glob(Path(pattern).name)):
            for _ in pq.ParquetFile(path, pre_buffer=False, buffer_size=2**16).iter_batches(8192, columns=columns):
                pass

    return read


def fit_files(model: str, *target: str) -> Any:
    def fit(pattern: str) -> Any:
        import learnable as ln
        from learnable.data import Files

        return getattr(ln, model)().fit(Files(pattern, in_memory_bytes=0), *target)

    return fit


def peak_of_fresh_process(model: str, *target: str) -> Any:
    def quality(fitted: Any, pattern: str) -> dict[str, float]:
        if fitted is None:
            return {}
        command = [sys.executable, "-c", _FRESH, model, pattern, *target]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return {"process_peak_MB": json.loads(done.stdout)}

    return quality


def table_for_comparison(quick: bool) -> str:
    """Write a classification table of 50k rows and 30 columns, some of them categories, and return its path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(tempfile.mkdtemp(prefix="learnable-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rng = np.random.default_rng(1)
    n = 2_000 if quick else 50_000
    X = rng.standard_normal((n, 27))
    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(27)}
    columns |= {f"c{j}": rng.choice(["red", "green", "blue", "grey"], n) for j in range(3)}
    score = X[:, :5].sum(axis=1) + (columns["c0"] == "red") + 2 * rng.standard_normal(n)
    columns["label"] = np.digitize(score, [-2.0, 0.0, 2.0]).astype(str)
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


def run_comparison(path: str) -> dict[str, Any]:
    """Run the command in a fresh process, as a user does, and return its record."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "learnable.cli", "compare", path, "--target", "label", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def overhead(record: dict[str, Any], path: str) -> dict[str, float]:
    """Return where the time went; the share is the tool's own time against that of the models, final fits included."""
    timing = record["timing"]
    seconds = {f"seconds_{name}": value for name, value in timing.items() if isinstance(value, (int, float))}
    return seconds | {"overhead_share": timing["overhead"] / (timing["models"] + timing["finish"])}


def help_text(data: None) -> None:
    command = [str(Path(sys.executable).with_name("learnable")), "--help"]
    subprocess.run(command, capture_output=True, check=True)


ROWS = (
    Row(
        "ridge_parquet",
        "Ridge from Parquet files, against only reading them",
        f"5M×{COLUMNS}, 4.2 GB",
        parquet_files,
        {OURS: fit_files("Ridge", "y"), READING: only_read("y")},
        peak_of_fresh_process("Ridge", "y"),
        targets={READING: 0.5},
        compared=None,
        limits={"process_peak_MB": 600.0},
    ),
    Row(
        "pca_parquet",
        "PCA from Parquet files, against only reading them",
        f"5M×{COLUMNS + 2}, 4.2 GB",
        parquet_files,
        {OURS: fit_files("PCA"), READING: only_read("y", "label")},
        peak_of_fresh_process("PCA"),
        targets={READING: 0.5},
        compared=None,
        limits={"process_peak_MB": 600.0},
    ),
    Row(
        "logistic_parquet",
        "LogisticRegression from Parquet files, against only reading them once",
        f"5M×{COLUMNS}, 4.2 GB",
        parquet_files,
        {OURS: fit_files("LogisticRegression", "label"), READING: only_read("y")},
        peak_of_fresh_process("LogisticRegression", "label"),
        compared=None,
        limits={"process_peak_MB": 600.0},
    ),
    Row(
        "compare_overhead",
        "`learnable compare`, the whole command",
        "50k×30",
        table_for_comparison,
        {OURS: run_comparison},
        overhead,
        compared=None,
        limits={"overhead_share": 0.15},
    ),
    Row(
        "help",
        "`learnable --help`, Python's start included",
        "–",
        lambda quick: None,
        {OURS: help_text},
        lambda model, data: {},
        compared=None,
        limit_seconds=0.3,
    ),
)
