"""Compile the kernels of every model for the common levels of processors, into src/learnable/compiled.

`make wheel` runs this before it builds the wheel. For each level that this machine can run:

1. the small cases of `learnable warmup` (fits of every registered model, documented examples, what else has kernels)
   run in processes whose processor is set to the level, which compiles their kernels;
2. the same cases run again in processes without any setting, as a user's will, on the files of step 1. Nothing may be
   compiled there, the predictions must be those of step 1 to the bit, and the first cases of every model those of this
   machine's own code to 1e-12. Other choices may stop a step sooner or later; where they differ by more, it is
   printed. The files that were loaded are the ones to ship: kernels that are only parts of others are in them.

Kernels that no case reaches are named (`tools/kernel_reach.py`); they are compiled on first use.

    python tools/build_kernels.py [--processes 2]
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, this one knows its own folder only
from tools.kernel_reach import missing, take_inventory

HERE = Path(__file__).resolve().parent.parent
TARGET = HERE / "src" / "learnable" / "compiled"
OURS = "learnable."  #: how the names of kernels begin; examples define others
CLOSE = 1e-12  #: difference between processors: sums in another order, hardly more than the last digit so far
#: The cases of a model that must agree between processors.
FIRST_CASE = re.compile(r"^\w+, case \d+$")
#: Further apart are steps in single precision, and hundreds of steps that each start from the last one's rounding.
LOOSER = {"LSTMClassifier": 1e-5, "LSTMRegressor": 1e-5, "MDS": 1e-9}


def main() -> int:
    """Build, or fit one part of the models in a process that a build started."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fit", nargs=3, metavar=("PART", "SHIPPED", "RESULT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        return fit_part(*options.fit)

    from learnable.core.kernel_cache import LEVELS, VERSIONS_FILE, build_versions, levels_here

    for level in LEVELS:
        if level not in levels_here():
            print(f"{level}: this processor cannot run it; its kernels are left out")
    shutil.rmtree(TARGET, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        native = run_parts(options.processes, Path(work), "native", {}, None)
        lost = missing(take_inventory(), native["called"])
        if lost:
            print("no case reaches " + ", ".join(lost))
        for level in levels_here():
            build_level(level, options.processes, Path(work), native)
    (TARGET / VERSIONS_FILE).write_text(json.dumps(dict(build_versions())) + "\n")
    size = sum(file.stat().st_size for file in TARGET.rglob("*.kernel"))
    print(f"{size / 1e6:.1f} MB in {TARGET.relative_to(HERE)}")
    return 0


def build_level(level: str, processes: int, work: Path, native: dict) -> None:
    """Compile, check and keep the kernels of one level."""
    began = time.perf_counter()
    cache = work / f"{level}-cache"
    settings = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    built = run_parts(processes, work, f"{level}-build", settings, None)
    shipped = work / level / level
    shutil.copytree(cache / "learnable", shipped)
    empty = work / f"{level}-empty"
    loaded = run_parts(processes, work, f"{level}-load", {"NUMBA_CACHE_DIR": str(empty)}, shipped.parent)
    if loaded["compiled"]:
        raise SystemExit(f"{level}: had to be compiled although they were built: {', '.join(loaded['compiled'])}")
    compare(built["values"], loaded["values"], 0.0, f"{level}, loaded against built")
    compare(native["values"], loaded["values"], CLOSE, f"{level} against this processor's own code")
    (TARGET / level).mkdir(parents=True)
    for name in sorted(name for name in loaded["files"] if name.startswith(OURS)):
        if (shipped / name).exists():
            shutil.copyfile(shipped / name, TARGET / level / name)  # readable by all, unlike those of a cache
        else:  # a process that a case started compiled it, for arguments that it did not have in step 1
            print(f"{level}: {name} is left out")
    size = sum(file.stat().st_size for file in (TARGET / level).iterdir())
    took = time.perf_counter() - began
    print(f"{level}: {len(loaded['files'])} kernels, {size / 1e6:.1f} MB, {took:.0f} s")


def run_parts(processes: int, work: Path, name: str, settings: dict[str, str], shipped: Path | None) -> dict:
    """Fit all models in several processes; return their predictions, what they loaded and how much they compiled."""
    environment = {**os.environ, **settings}
    running = []
    for part in range(processes):
        result = work / f"{name}-{part}.pickle"
        command = [sys.executable, __file__, "--fit", f"{part}/{processes}", str(shipped or ""), str(result)]
        running.append((subprocess.Popen(command, env=environment), result))
    total: dict = {"values": {}, "files": set(), "called": set(), "compiled": []}
    for process, result in running:
        if process.wait() != 0:
            raise SystemExit(f"{name}: a process failed")
        found = pickle.loads(result.read_bytes())
        total["values"] |= found["values"]
        total["files"] |= set(found["files"])
        total["called"] |= found["called"]
        total["compiled"] += found["compiled"]
    return total


def compare(expected: dict, found: dict, tolerance: float, what: str) -> None:
    """List the predictions that do not agree; stop if one has to: with tolerance zero all, else the first cases."""
    n_wrong = 0
    for case, value in expected.items():
        mine = numbers_of(value)
        other = numbers_of(found[case])
        close = max(tolerance, LOOSER.get(case.split(",")[0], 0.0)) if tolerance else 0.0  # zero asks for equal bits
        if mine.shape == other.shape and np.allclose(mine, other, rtol=close, atol=close, equal_nan=True):
            continue
        must_agree = tolerance == 0.0 or FIRST_CASE.search(case) is not None
        n_wrong += must_agree
        apart = f"by {np.nanmax(np.abs(mine - other)):.3g}" if mine.shape == other.shape else "in shape"
        print(f"{what}: {case} differs {apart}{'' if must_agree else ', and may'}")
    if n_wrong:
        raise SystemExit(f"{what}: {n_wrong} of {len(expected)} predictions differ by more than {tolerance:g}")


def numbers_of(value: object) -> np.ndarray:
    """Return what a model said as one row of numbers: an array, a sparse one, or several."""
    if isinstance(value, tuple | list):
        return np.concatenate([numbers_of(one) for one in value])
    if sp.issparse(value):
        value = value.toarray()
    return np.asarray(value, dtype=np.float64).ravel()


def fit_part(part: str, shipped: str, result: str) -> int:
    """Run every n-th case and write down what came out."""
    from learnable.core import kernel_cache
    from learnable.core.registry import estimator_names
    from learnable.evaluation.comparison.cases import examples, model_cases, other_cases

    if shipped:
        kernel_cache.shipped_folder = Path(shipped).joinpath
    number, count = (int(word) for word in part.split("/"))
    values = {}
    for name in estimator_names()[number::count]:
        values |= dict(model_cases(name))
    if number == 0:
        values |= dict(other_cases())
    if number == count - 1:
        for _ in examples():  # that they print what they say is the tests' matter
            pass
    outcome = {"values": values, "files": kernel_cache.loaded, "called": kernel_cache.called}
    outcome["compiled"] = [name for name in kernel_cache.compiled if name.startswith(OURS)]
    Path(result).write_bytes(pickle.dumps(outcome))
    return 0


if __name__ == "__main__":
    sys.exit(main())
