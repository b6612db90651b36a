"""`python -m benchmarks.before_after CHECKOUT [row or family ...] [--rounds 3] [--repeats 3] [--quick] [--cpu]`.

Our own time for every row, with the package of another checkout (before) and of this one (after). The rows are those of
this checkout, so both do the same work. Each measurement is a process of its own, and the two take turns, so that a
busy machine slows both. Prints the ratio after/before of the best times, the worst row and the geometric mean. On a
machine that does other work, `--cpu` compares processor seconds of one thread, which waiting does not change.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import FAMILIES, ROWS
from .harness import OURS, _timed

HERE = Path(__file__).resolve().parents[1]


#: What keeps BLAS, OpenMP and our own threads, whose budget is that of BLAS, to one.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def time_ours(name: str, repeats: int, quick: bool, cpu: bool) -> float:
    """Return our best time for a row, in this process, after one call that compiles and warms caches."""
    warnings.simplefilter("ignore")
    row = ROWS[name]
    data = row.make_data(quick)
    fit = row.contenders[OURS]
    fit(data)
    return min(_processor_time(fit, data) if cpu else _timed(fit, data, row.calls)[0] for _ in range(repeats))


def _processor_time(fit: Callable[[Any], Any], data: Any) -> float:
    start = time.process_time()
    fit(data)
    return time.process_time() - start


def in_process(checkout: Path, name: str, repeats: int, quick: bool, cpu: bool) -> float:
    """Return our best time for a row with the package of a checkout, NaN if it fails there."""
    code = f"from benchmarks.before_after import time_ours; print(time_ours({name!r}, {repeats}, {quick}, {cpu}))"
    paths = os.pathsep.join([str(checkout / "src"), str(HERE)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **(ONE_THREAD if cpu else {}), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{checkout.name}, {name}: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return math.nan
    return float(done.stdout.split()[-1])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.before_after")
    parser.add_argument("before", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("rows", nargs="*", help="rows or families; all without any")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each (default 3)")
    parser.add_argument("--repeats", type=int, default=3, help="timed calls in a process (default 3)")
    parser.add_argument("--quick", action="store_true", help="about fifty times smaller")
    parser.add_argument("--cpu", action="store_true", help="processor seconds of one thread")
    parser.add_argument("--json", type=Path, help="write the times")
    options = parser.parse_args(arguments)
    named = [row.name for given in options.rows for row in FAMILIES.get(given, [ROWS[given]] if given in ROWS else [])]
    ratios = {}
    for name in dict.fromkeys(named or ROWS):
        times: dict[str, list[float]] = {"before": [], "after": []}
        for _ in range(options.rounds):
            for version, checkout in (("before", options.before.resolve()), ("after", HERE)):
                times[version].append(in_process(checkout, name, options.repeats, options.quick, options.cpu))
        before, after = min(times["before"]), min(times["after"])
        ratios[name] = {"before": before, "after": after, "ratio": after / before}
        print(f"{name:28s} {before:9.4g} s {after:9.4g} s   {after / before:6.3f}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(ratios, indent=1))
    known = sorted(entry["ratio"] for entry in ratios.values() if math.isfinite(entry["ratio"]))
    if known:
        mean = math.exp(sum(map(math.log, known)) / len(known))
        slower = sum(ratio > 1.1 for ratio in known)
        print(f"{len(known)} rows: geometric mean {mean:.3f}, worst {known[-1]:.3f}, {slower} slower by more than 10 %")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
