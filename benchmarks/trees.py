"""Single decision trees against scikit-learn; the quality is the error on rows that no contender has seen."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .forests import test_error, training_rows
from .harness import OURS, Row
from .linear import SKLEARN

MODULES = {OURS: "learnable.trees", SKLEARN: "sklearn.tree"}
DEPTH = 12


def tree(library: str, name: str, **parameters: Any) -> Callable[[Any], Any]:
    """Return the function that imports a class, builds it and fits it; ours uses all cores by default."""

    def fit(data: Any) -> Any:
        return getattr(import_module(MODULES[library]), name)(random_state=0, **parameters).fit(data.X, data.y)

    return fit


def contenders(name: str, **parameters: Any) -> dict[str, Callable[[Any], Any]]:
    return {library: tree(library, name, max_depth=DEPTH, **parameters) for library in (OURS, SKLEARN)}


ROWS = [
    Row(
        "decision_tree",
        f"DecisionTreeClassifier, exact, depth {DEPTH}",
        "200,000 × 30",
        training_rows(200_000),
        contenders("DecisionTreeClassifier"),
        test_error,
        {SKLEARN: 3.0},
        compared="error",
        tolerance=0.01,
    ),
    Row(
        "decision_tree_regressor",
        f"DecisionTreeRegressor, exact, depth {DEPTH}",
        "200,000 × 30",
        training_rows(200_000, classes=False),
        contenders("DecisionTreeRegressor"),
        test_error,
        {SKLEARN: 3.0},
        compared="error",
        tolerance=0.01,
    ),
]
