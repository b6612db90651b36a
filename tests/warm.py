"""Compile the kernels of half of the models, as `learnable warmup` does of all: two processes share the work.

`python -m tests.warm trees` takes trees, what is made of them, and packages whose kernels no other model needs;
`python -m tests.warm others` takes the rest, boosting by histograms among it. Each takes about half of the time.
"""

from __future__ import annotations

import sys

from learnable.core.registry import REGISTRY, estimator_names
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
#: Packages whose kernels no model of the other half needs.
APART = tuple(f"learnable.{package}." for package in ("manifold", "neural", "sequences", "topics"))


def is_with_trees(name: str) -> bool:
    """Tell whether a model belongs to the half of the trees."""
    return name in TREES or REGISTRY[name].path.startswith(APART)


def main(half: str) -> int:
    """Fit the models to a few rows; return how many could not be fitted."""
    names = estimator_names()
    assert half in ("trees", "others") and set(names) >= TREES
    chosen = [name for name in names if is_with_trees(name) == (half == "trees")]
    failed = 0
    for warmed in warm_cases(chosen, others=half == "others", documented=False):  # examples are tests themselves
        if warmed.failure is not None:
            print(f"{warmed.name}: {warmed.failure}", file=sys.stderr)
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
