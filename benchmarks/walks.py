"""Through how many files of this package a fit walks.

    python -m benchmarks.walks [--list]

A third fit of each model below is watched: every Python function of the package that it calls counts its file, and so
does every compiled kernel that Python calls, and every one that such a kernel calls. Two fits before it have done
what happens once in a process: imports, loading of compiled kernels. The limits are those that the design sets.
"""

from __future__ import annotations

import argparse
import io
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import numpy as np

import learnable as ln
from learnable.core.jit import Kernel

HOME = Path(ln.__file__).parent
#: Most files of each walk.
LIMITS = {"Lasso": 12, "SVC": 12, "GaussianHMM": 12, "HistGradientBoostingClassifier": 20}


def fits() -> dict[str, Callable[[], Any]]:
    """Return one fit per model, on tables of a few hundred rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    trend = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=len(X))
    classes = (trend > 0.0).astype(int)
    return {
        "Lasso": lambda: ln.Lasso(alpha=0.05).fit(X, trend),
        "SVC": lambda: ln.SVC().fit(X, classes),
        "GaussianHMM": lambda: ln.GaussianHMM(n_components=2, random_state=0).fit(X[:, :2]),
        "HistGradientBoostingClassifier": lambda: ln.HistGradientBoostingClassifier(max_iter=5).fit(X, classes),
    }


def walked(fit: Callable[[], Any]) -> list[str]:
    """Return the files of the package whose functions a fit calls, in the order in which it reaches them."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            files[frame.f_code.co_filename] = None
            if frame.f_code is Kernel.__call__.__code__:
                files.update(dict.fromkeys(_sources(frame.f_locals["self"].py_func)))

    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):  # a terminal would show the line of progress
        warnings.simplefilter("ignore")
        for _ in range(2):  # the first loads Numba, the second the kernels that the first did without
            fit()
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            fit()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return [str(Path(file).relative_to(HOME)) for file in files if Path(file).is_relative_to(HOME)]


def _sources(kernel: FunctionType) -> list[str]:
    """Return the file of a compiled kernel, and those of all kernels that it names."""
    found: dict[FunctionType, None] = {}
    waiting = [kernel]
    while waiting:
        function = waiting.pop()
        if function not in found:
            found[function] = None
            named = (function.__globals__.get(name) for name in function.__code__.co_names)
            waiting += [inner.py_func for inner in named if isinstance(inner, Kernel)]
    return [function.__code__.co_filename for function in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the files")
    listed = parser.parse_args().list
    for name, fit in fits().items():
        files = walked(fit)
        shared = sum(file.startswith(("core", "data")) for file in files)
        print(f"{name}: {len(files)} files (at most {LIMITS[name]}), {shared} of them in core and data")
        if listed:
            print("\n".join(f"    {file}" for file in files))


if __name__ == "__main__":
    main()
