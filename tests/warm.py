"""Compile the kernels of half of the models, as `learnable warmup` does of all: two processes share the work.

`python -m tests.warm trees` takes trees and what is made of them, half of all compiling; `python -m tests.warm others`
takes the rest, boosting by histograms among it, which hardly needs a kernel of theirs.
"""

from __future__ import annotations

import sys

from learnable.core.registry import estimator_names
from learnable.evaluation.comparison.cases import warm_cases

TREES = {
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ID3Classifier",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BoostByMajority",
    "ForwardStagewiseAdditive",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
}


def main(half: str) -> int:
    """Fit the models to a few rows; return how many could not be fitted."""
    names = estimator_names()
    assert half in ("trees", "others") and set(names) >= TREES
    chosen = [name for name in names if (name in TREES) == (half == "trees")]
    failed = 0
    for warmed in warm_cases(chosen, others=half == "others", documented=False):  # examples are tests themselves
        if warmed.failure is not None:
            print(f"{warmed.name}: {warmed.failure}", file=sys.stderr)
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
