"""A damaged sparse array never reaches SciPy's row selection: every model that takes rows of X refuses it in words."""

import inspect
import itertools
import subprocess
import sys
from pathlib import Path

from learnable.core.registry import estimator_names, registered_class

ROOT = Path(__file__).parents[1]
#: Models that hand rows of X on to other models; the others read X by `data.door`, which they share with these.
WRAPPERS = [
    name
    for name in estimator_names()
    if "estimator" in inspect.signature(registered_class(name)).parameters and name != "TableModel"
]


def test_every_wrapper_refuses_every_damaged_array():
    assert {"CalibratedClassifier", "BaggingClassifier", "OneVsOneClassifier", "ConformalRegressor"} <= set(WRAPPERS)
    command = [sys.executable, "-m", "tests.damaged_sparse", *WRAPPERS, "Ridge", "RandomForestRegressor", "KMeans"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    complaints = [f"{case}:{said}" for case, said in itertools.pairwise(lines) if said.startswith("    ")]
    assert complaints == []
    assert done.returncode == 0, f"ended with {done.returncode} after {lines[-1:]}: {done.stderr[-500:]}"
    assert len(lines) > 100
