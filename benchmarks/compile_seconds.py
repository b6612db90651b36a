"""Seconds that compiling takes, by kernel and signature, for the first fits of models in fresh processes.

    python -m benchmarks.compile_seconds DecisionTreeClassifier HistGradientBoostingClassifier
    python -m benchmarks.compile_seconds --all --json compile.json

Each model is fitted to a few rows of float64 in a process of its own, whose cache is empty, and predicts them. Seconds
are processor time. A kernel's own seconds are those of its compilation without the kernels that it calls, which have
lines of their own; "LLVM" is the part of them that LLVM takes, the rest is Numba's typing and lowering. "Outside" is
what the process took besides: imports, the fit, and writing the compiled code to the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

from learnable.core.registry import REGISTRY, estimator_names


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.compile_seconds", description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="model", help="registered models; trees and boosting if none")
    parser.add_argument("--all", action="store_true", help="every registered model")
    parser.add_argument("--lines", type=int, default=25, metavar="N", help="kernels to show of each model (default 25)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every signature")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(compile_one(options.one)))
        return 0
    names = estimator_names() if options.all else options.models
    names = names or ["DecisionTreeClassifier", "RandomForestClassifier", "HistGradientBoostingClassifier"]
    unknown = set(names) - set(estimator_names())
    if unknown:
        parser.error(f"there is no model {', '.join(sorted(unknown))}")
    found = {}
    for name in names:
        found[name] = in_fresh_process(name)
        print(model_table(name, found[name], options.lines), flush=True)
    print(total_table(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def in_fresh_process(name: str) -> dict[str, Any]:
    """Return what `compile_one` says in a new process without any compiled kernel."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.compile_seconds", "--one", name]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compile_one(name: str) -> dict[str, Any]:
    """Fit one model to a few rows and return the seconds of every signature that was compiled on the way."""
    from numba.core import event

    from learnable.evaluation.comparison.warm import small_fits

    stopwatch = make_stopwatch()
    event.register("numba:compile", stopwatch)
    event.register("numba:llvm_lock", stopwatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in small_fits(name, sparse=False, single=False):
            pass
    return {"process": time.process_time(), "kernels": stopwatch.rows}


def make_stopwatch() -> Any:
    """Return a listener to Numba's events; its `rows` tell every compiled signature with its own seconds."""
    from numba.core import event

    class Stopwatch(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rows: list[dict[str, Any]] = []
            self._open: list[dict[str, Any]] = []  # the compilations under way, the innermost last
            self._locks: list[float] = []

        def on_start(self, event: Any) -> None:
            if event.kind == "numba:llvm_lock":
                self._locks.append(time.thread_time())
            else:
                self._open.append({"began": time.thread_time(), "inner": 0.0, "llvm": 0.0})

        def on_end(self, event: Any) -> None:
            if event.kind == "numba:llvm_lock":
                began = self._locks.pop()
                if self._open and not self._locks:
                    self._open[-1]["llvm"] += time.thread_time() - began
                return
            span = self._open.pop()
            whole = time.thread_time() - span["began"]
            if self._open:
                self._open[-1]["inner"] += whole
            function = event.data["dispatcher"].py_func
            row = {"kernel": f"{function.__module__.removeprefix('learnable.')}.{function.__qualname__}"}
            row |= {"signature": ", ".join(str(kind) for kind in event.data["args"])}
            row |= {"seconds": whole - span["inner"], "llvm": span["llvm"]}
            self.rows.append(row)

    return Stopwatch()


def model_table(name: str, found: dict[str, Any], lines: int) -> str:
    """Return the kernels of one model, the slowest first, and their families."""
    kernels: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in found["kernels"]:
        kernels[row["kernel"]].append(row)
    total = sum(row["seconds"] for row in found["kernels"])
    text = [f"\n### {name}: {total:.1f} s compiling, {found['process'] - total:.1f} s outside\n"]
    text += ["| kernel | signatures | seconds | of these LLVM |", "|---|---|---|---|"]
    ordered = sorted(kernels.items(), key=lambda item: -sum(row["seconds"] for row in item[1]))
    for kernel, rows in ordered[:lines]:
        text.append(f"| {kernel} | {len(rows)} | {_sum(rows, 'seconds'):.2f} | {_sum(rows, 'llvm'):.2f} |")
    rest = [row for _, rows in ordered[lines:] for row in rows]
    if rest:
        text.append(
            f"| {len(ordered) - lines} more | {len(rest)} | {_sum(rest, 'seconds'):.2f} | {_sum(rest, 'llvm'):.2f} |"
        )
    families: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in found["kernels"]:
        families[row["kernel"].split(".")[0]].append(row)
    text += ["", "| family | signatures | seconds | of these LLVM |", "|---|---|---|---|"]
    for family, rows in sorted(families.items(), key=lambda item: -_sum(item[1], "seconds")):
        text.append(f"| {family} | {len(rows)} | {_sum(rows, 'seconds'):.2f} | {_sum(rows, 'llvm'):.2f} |")
    return "\n".join(text)


def total_table(found: dict[str, Any]) -> str:
    """Return one line per model."""
    text = [
        "\n| model | package | signatures | compiling, s | of these LLVM | outside, s |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in found.items():
        package = REGISTRY[name].path.split(".")[1]
        seconds, llvm = _sum(one["kernels"], "seconds"), _sum(one["kernels"], "llvm")
        outside = one["process"] - seconds
        text.append(f"| {name} | {package} | {len(one['kernels'])} | {seconds:.1f} | {llvm:.1f} | {outside:.1f} |")
    return "\n".join(text)


def _sum(rows: list[dict[str, Any]], field: str) -> float:
    return sum(row[field] for row in rows)


if __name__ == "__main__":
    raise SystemExit(main())
