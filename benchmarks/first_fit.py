"""The first fit of every registered model in a fresh process, by where its compiled kernels come from.

    python -m benchmarks.first_fit [--wheel FILE] [--zipped] [--models A B ...] [--repeats 3] [--cold] [--json FILE]

Columns, in seconds of processor time from the start of Python to the end of the first fit and its prediction:

- *source*: this environment with an empty cache, so that every kernel is compiled (`--cold`; minutes in all);
- *wheel*: a new virtual environment with the wheel, or with the wheel's files in a zip file, and an empty cache;
- *warm*: this environment with the user's cache, after one fit has filled it;
- *scikit-learn*: its model of the same name, where it has one, in the wheel's environment, or in this one.

The parts of the wheel's column are *imports* (Python, NumPy, SciPy, scikit-learn, the model's own modules), *Numba*
(its import), *loading* (of compiled kernels, and how many), and *fit* (the rest). *Again* is a second fit in the same
process. *Difference* is the largest relative difference between the predictions of the wheel's code and of this
processor's own. Processor time is the same on a busy machine, but for the caches that processes share; elapsed time is
written to the JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .harness import environment

#: What a fresh process runs. It must not know this package: it may run in an environment that has only the wheel.
_FIT = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
name, task, target = sys.argv[1:]
spent = {"Numba": 0.0, "loading": 0.0, "compiling": 0.0}

def timed(function, key):
    def run(*args):
        began = time.process_time()
        value = function(*args)
        spent[key if value is not None or key != "loading" else "compiling"] += time.process_time() - began
        return value
    return run

import numpy as np
from learnable.core import jit
from learnable.core.registry import registered_class
from learnable.evaluation.comparison import warm

model = warm._brief(warm._built(name))
X = np.random.default_rng(0).normal(size=(300, 5))
imports = time.process_time()

make, first = jit._make_dispatcher, True

def make_dispatcher(*args):
    global first
    if first:
        first = False
        began = time.process_time()
        from learnable.core import kernel_cache
        spent["Numba"] = time.process_time() - began
        cache = kernel_cache.KernelCache
        cache.load_overload = timed(cache.load_overload, "loading")
    return make(*args)

jit._make_dispatcher = make_dispatcher
found = warm._fit_and_predict(model, X, task)
total = time.process_time()
warm._fit_and_predict(warm._brief(warm._built(name)), X, task)
again = time.process_time() - total
kernels = dict(sys.modules["learnable.core.kernel_cache"].origins) if not first else {}
fit = total - imports - spent["Numba"] - spent["loading"]

def numbers_in(value):
    if isinstance(value, tuple | list):
        return np.concatenate([numbers_in(part) for part in value])
    return np.asarray(value, dtype=float).ravel()

np.save(target, numbers_in(found))
print(json.dumps({"imports": imports, **spent, "fit": fit, "total": total, "again": again, "kernels": kernels}))
"""

_PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
module, name, task, _ = sys.argv[1:]
import numpy as np
from importlib import import_module
model = getattr(import_module(module), name)()
X = np.random.default_rng(0).normal(size=(300, 5))
rows = np.arange(300)
y = rows % {"binary": 2, "multiclass": 3}[task] if task != "regression" else 1.0 + rows % 5
if name in ("MultinomialNB", "ComplementNB", "CategoricalNB", "NMF", "LatentDirichletAllocation"):
    X = np.floor(np.abs(X))
if name.startswith("MultiTask"):
    y = np.column_stack([y, -y])
model.fit(X, y)
for method in ("predict_proba", "predict", "transform", "kneighbors"):
    if hasattr(model, method):
        getattr(model, method)(X)
        break
print(json.dumps({"total": time.process_time()}))
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.first_fit", description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="made by `make wheel`")
    parser.add_argument("--zipped", action="store_true", help="put the wheel's files into a zip file")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="default: every registered one")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="processes each, the best counts")
    parser.add_argument("--cold", action="store_true", help="also compile everything from an empty cache")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    options = parser.parse_args(arguments)

    from learnable.core.registry import estimator_names

    names = options.models or list(estimator_names())
    with tempfile.TemporaryDirectory(prefix="learnable-first-fit-") as folder:
        work = Path(folder)
        wheel = install(options.wheel, work, zipped=options.zipped) if options.wheel else None
        results = {}
        for name in names:
            results[name] = measure(name, work, wheel, repeats=options.repeats, cold=options.cold)
            print(to_row(name, results[name]), flush=True)
    print("\n" + to_table(results))
    if options.json:
        options.json.write_text(json.dumps({"environment": environment(), "models": results}, indent=1) + "\n")
    return 0


def install(wheel: Path, work: Path, *, zipped: bool) -> tuple[Path, dict[str, str]]:
    """Install the wheel in a new environment; return its Python and the variables it is to run with."""
    home = work / "environment"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    variables = {"PYTHONPATH": ""}
    if zipped:
        subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "learnable"], check=True)
        with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(work / "site.zip", "w") as target:
            for name in source.namelist():
                target.writestr(name, source.read(name))
        variables["PYTHONPATH"] = str(work / "site.zip")
    return python, variables


def measure(
    name: str, work: Path, wheel: tuple[Path, dict[str, str]] | None, *, repeats: int, cold: bool
) -> dict[str, Any]:
    """Fit one model in fresh processes of every kind."""
    from learnable.core.registry import REGISTRY

    traits = REGISTRY[name].traits
    task = traits.tasks[0] if traits else "regression" if name.endswith("Regressor") else "binary"
    ours = [_FIT, name, task, str(work / "found.npy")]
    result: dict[str, Any] = {}
    here = Path(sys.executable)
    if cold:
        with tempfile.TemporaryDirectory(dir=work) as empty:
            result["source"] = run(here, ours, {"NUMBA_CACHE_DIR": empty})
    runs = [run(here, ours, {}) for _ in range(repeats)]
    if all(one["kernels"].get("compiled") for one in runs):  # the cache was empty, and is full now
        runs = [run(here, ours, {})]
    result["warm"] = best(runs)
    expected = np.load(work / "found.npy")
    if wheel:
        python, variables = wheel
        runs = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory(dir=work) as empty:
                runs.append(run(python, ours, {**variables, "NUMBA_CACHE_DIR": empty}))
        result["wheel"] = best(runs)
        result["difference"] = difference(expected, np.load(work / "found.npy"))
    home = peer_module(name)
    if home:
        peer = [_PEER, home, name, task, ""]
        python, variables = wheel or (here, {})  # beside pandas, scikit-learn's own import takes half a second more
        try:
            result["scikit-learn"] = best([run(python, peer, variables) for _ in range(repeats)])
        except SystemExit as failure:  # a meta-estimator needs another, which ours has by default
            print(f"scikit-learn's {name} is left out: {str(failure).strip().splitlines()[-1]}", file=sys.stderr)
    return result


def run(python: Path, arguments: list[str], variables: dict[str, str]) -> dict[str, Any]:
    """Run a fresh process; return what it printed, and what it took as the system saw it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [python, "-c", *arguments], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    elapsed = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments[1:-1])} failed:\n{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**json.loads(done.stdout), "elapsed": elapsed, "used": used}


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return min(runs, key=lambda one: one["total"])


def difference(expected: np.ndarray, found: np.ndarray) -> float:
    """Return the largest difference, relative to the largest number."""
    if np.array_equal(expected, found, equal_nan=True):
        return 0.0
    return float(np.nanmax(np.abs(expected - found)) / max(float(np.nanmax(np.abs(expected))), 1e-300))


def peer_module(name: str) -> str | None:
    """Return the public module of scikit-learn that has a model of this name."""
    from sklearn.utils import all_estimators

    found = dict(all_estimators()).get(name)
    return found.__module__.partition("._")[0] if found else None


HEAD = ("model", "source", "wheel", "imports", "Numba", "loading", "fit", "again", "difference", "warm", "scikit-learn")


def to_row(name: str, result: dict[str, Any]) -> str:
    """Return one row of the table."""
    wheel = result.get("wheel", {})
    cells = [name, seconds(result, "source"), seconds(result, "wheel")]
    cells += [f"{wheel[part]:.2f}" if wheel else "–" for part in ("imports", "Numba")]
    cells.append(f"{wheel['loading']:.2f} ({kernels_of(wheel)})" if wheel else "–")
    cells += [f"{wheel[part]:.2f}" if wheel else "–" for part in ("fit", "again")]
    cells.append(f"{result['difference']:.0e}" if result.get("difference") else "same bits" if wheel else "–")
    cells += [seconds(result, "warm"), seconds(result, "scikit-learn")]
    return "| " + " | ".join(cells) + " |"


def seconds(result: dict[str, Any], place: str) -> str:
    return f"{result[place]['total']:.2f}" if place in result else "–"


def kernels_of(wheel: dict[str, Any]) -> str:
    """Return how many kernels were loaded, and how many had to be compiled although the wheel should have them."""
    compiled = wheel["kernels"].get("compiled", 0)
    return f"{wheel['kernels'].get('shipped', 0)}" + (f", {compiled} COMPILED" if compiled else "")


def to_table(results: dict[str, Any]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += [to_row(name, result) for name, result in results.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
