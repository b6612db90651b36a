"""AdaBoost with stumps against scikit-learn.

The quality is the error on rows that no contender has seen. The stumps differ: ours have the least weighted error,
those of scikit-learn the least Gini impurity.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from .forests import Split, make_rows, training_rows
from .harness import OURS, Row
from .linear import SKLEARN

MODULES = {OURS: "learnable.ensembles", SKLEARN: "sklearn.ensemble"}


def contender(library: str, class_name: str, **parameters: Any) -> Callable[[Split], Any]:
    """Return the function that imports a class, builds it and fits it."""

    def fit(data: Split) -> Any:
        return getattr(import_module(MODULES[library]), class_name)(**parameters).fit(data.X, data.y)

    return fit


def held_out_error(model: Any, data: Split) -> dict[str, float]:
    """Return the share of rows that are named wrongly, and how many learners there are."""
    return {"error": float(np.mean(model.predict(data.X_test) != data.y_test)), "learners": len(model.estimators_)}


def held_out_squares(model: Any, data: Split) -> dict[str, float]:
    """Return the mean squared error as a share of the variance."""
    return {"error": float(np.mean((model.predict(data.X_test) - data.y_test) ** 2) / np.var(data.y_test))}


def letters(quick: bool) -> Split:
    """Return ten classes, told by columns of sixteen values each, as those of the letter data are."""
    n = 2_000 if quick else 50_000
    X, f = make_rows(n + n // 2, classes=False)
    y = np.digitize(f, np.quantile(f, np.linspace(0.1, 0.9, 9)))
    X = np.clip(np.round(3 * X + 8), 0, 15)
    return Split(X[:n], y[:n], X[n:], y[n:])


ROWS = [
    Row(
        "adaboost_stumps",
        "AdaBoost, 200 stumps",
        "100,000 × 30",
        training_rows(100_000),
        {
            OURS: contender(OURS, "AdaBoostClassifier", n_estimators=200),
            SKLEARN: contender(SKLEARN, "AdaBoostClassifier", n_estimators=200),
        },
        held_out_error,
        {SKLEARN: 10.0},
        compared="error",
        tolerance=0.02,
    ),
    Row(
        "adaboost_samme",
        "AdaBoost, 50 stumps, ten classes",
        "50,000 × 30, 16 values a column",
        letters,
        {
            OURS: contender(OURS, "AdaBoostClassifier", n_estimators=50),
            SKLEARN: contender(SKLEARN, "AdaBoostClassifier", n_estimators=50),
        },
        held_out_error,
        {SKLEARN: 3.0},
        compared="error",
        tolerance=0.02,
    ),
    Row(
        "adaboost_regressor",
        "AdaBoost.R2, 50 trees of depth 3",
        "50,000 × 30",
        training_rows(50_000, classes=False),
        {
            OURS: contender(OURS, "AdaBoostRegressor", random_state=0),
            SKLEARN: contender(SKLEARN, "AdaBoostRegressor", random_state=0),
        },
        held_out_squares,
        {SKLEARN: 2.0},
        compared="error",
        tolerance=0.05,
    ),
]
