"""Random forests and extremely randomised trees against scikit-learn and scikit-learn-intelex.

The quality is the error on rows that no contender has seen; a contender that errs more than the others does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row
from .linear import SKLEARN

INTELEX = "scikit-learn-intelex"
MODULES = {OURS: "learnable.ensembles", SKLEARN: "sklearn.ensemble", INTELEX: "sklearnex.ensemble"}
#: Errors of forests that differ in their random numbers alone differ by this share.
TOLERANCE = 0.05


class Split(NamedTuple):
    """Training rows and rows to be judged on."""

    X: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]
    X_test: np.ndarray[Any, Any]
    y_test: np.ndarray[Any, Any]


class Forest(NamedTuple):
    """A fitted forest with the rows to predict."""

    models: dict[str, Any]
    X: np.ndarray[Any, Any]
    truth: np.ndarray[Any, Any]


def make_rows(n: int, d: int = 30, *, classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    """Return rows whose target, classes of equal size or (0) a number, depends on ten columns, with interactions.

    A tenth of the labels of two classes is noise; several have none.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) - 0.5 * X[:, 4] ** 2
    f += 0.5 * X[:, 5:10].sum(axis=1) * (X[:, 0] > 0)
    if not classes:
        return X, f + 0.5 * rng.standard_normal(n)
    if classes > 2:
        return X, np.searchsorted(np.quantile(f, np.arange(1, classes) / classes), f)
    labels = (f > np.median(f)).astype(np.int64)
    noisy = rng.random(n) < 0.1
    return X, np.where(noisy, 1 - labels, labels)


def training_rows(n: int, d: int = 30, *, classes: int = 2) -> Callable[[bool], Split]:
    """Return the function that makes n training rows, and half as many to judge on."""

    def make(quick: bool) -> Split:
        m = n // 20 if quick else n
        X, y = make_rows(m + m // 2, d, classes=classes)
        return Split(X[:m], y[:m], X[m:], y[m:])

    return make


def forest(library: str, name: str, **parameters: Any) -> Callable[[Split], Any]:
    """Return the function that imports a class, builds it with all cores and fits it."""

    def fit(data: Split) -> Any:
        module = import_module(MODULES[library])
        return getattr(module, name)(random_state=0, n_jobs=-1, **parameters).fit(data.X, data.y)

    return fit


def test_error(model: Any, data: Split) -> dict[str, float]:
    """Return the share of errors, or the mean squared error, on unseen rows."""
    found = model.predict(data.X_test)
    wrong = found != data.y_test if data.y_test.dtype.kind == "i" else (found - data.y_test) ** 2
    return {"error": float(np.mean(wrong))}


def forests_to_predict(quick: bool) -> Forest:
    """Return forests of 100 trees of both libraries on the same 50,000 rows, and 400,000 rows to predict."""
    n, m = (2_000, 10_000) if quick else (50_000, 400_000)
    X, y = make_rows(n + m)
    split = Split(X[:n], y[:n], X[n:], y[n:])
    models = {library: forest(library, "RandomForestClassifier")(split) for library in (OURS, SKLEARN)}
    return Forest(models, X[n:], y[n:])


def prediction(library: str) -> Callable[[Forest], Any]:
    """Return the function that predicts with one library's forest."""
    return lambda data: data.models[library].predict_proba(data.X)


def prediction_error(shares: Any, data: Forest) -> dict[str, float]:
    """Return the share of errors of what was predicted."""
    return {"error": float(np.mean(shares.argmax(axis=1) != data.truth))}


ROWS = [
    Row(
        "random_forest_exact",
        "RandomForestClassifier, 100 trees, exact; intelex bins",
        "100,000 × 28",
        training_rows(100_000, 28),
        {OURS: forest(OURS, "RandomForestClassifier"), INTELEX: forest(INTELEX, "RandomForestClassifier")},
        test_error,
        {INTELEX: 1.3},
        compared="error",
        tolerance=TOLERANCE,
    ),
    Row(
        "random_forest",
        "RandomForestClassifier, 100 trees, exact",
        "100,000 × 30",
        training_rows(100_000),
        {OURS: forest(OURS, "RandomForestClassifier"), SKLEARN: forest(SKLEARN, "RandomForestClassifier")},
        test_error,
        {SKLEARN: 3.0},
        compared="error",
        tolerance=TOLERANCE,
    ),
    Row(
        "random_forest_binned",
        "RandomForestClassifier, 100 trees, max_bins=255",
        "100,000 × 30",
        training_rows(100_000),
        {
            OURS: forest(OURS, "RandomForestClassifier", max_bins=255),
            SKLEARN: forest(SKLEARN, "RandomForestClassifier"),
            INTELEX: forest(INTELEX, "RandomForestClassifier"),
        },
        test_error,
        {INTELEX: 1.0},
        compared="error",
        tolerance=TOLERANCE,
    ),
    Row(
        "random_forest_regressor",
        "RandomForestRegressor, 50 trees, a third of the columns",
        "50,000 × 30",
        training_rows(50_000, classes=0),
        {
            OURS: forest(OURS, "RandomForestRegressor", n_estimators=50, max_features=1 / 3),
            SKLEARN: forest(SKLEARN, "RandomForestRegressor", n_estimators=50, max_features=1 / 3),
        },
        test_error,
        {SKLEARN: 2.0},
        compared="error",
        tolerance=TOLERANCE,
    ),
    Row(
        "random_forest_small",
        "RandomForestClassifier, 100 trees, exact",
        "3,000 × 30",
        training_rows(3_000),
        {OURS: forest(OURS, "RandomForestClassifier"), SKLEARN: forest(SKLEARN, "RandomForestClassifier")},
        test_error,
        {SKLEARN: 1.0},
        compared="error",
        tolerance=2 * TOLERANCE,
    ),
    Row(
        "extra_trees",
        "ExtraTreesClassifier, 100 trees",
        "100,000 × 30",
        training_rows(100_000),
        {OURS: forest(OURS, "ExtraTreesClassifier"), SKLEARN: forest(SKLEARN, "ExtraTreesClassifier")},
        test_error,
        {SKLEARN: 2.0},
        compared="error",
        tolerance=TOLERANCE,
    ),
    Row(
        "extra_trees_classes",
        "ExtraTreesClassifier, 50 trees, seven classes",
        "100,000 × 30",
        training_rows(100_000, classes=7),
        {
            OURS: forest(OURS, "ExtraTreesClassifier", n_estimators=50),
            SKLEARN: forest(SKLEARN, "ExtraTreesClassifier", n_estimators=50),
        },
        test_error,
        {SKLEARN: 2.0},
        compared="error",
        tolerance=TOLERANCE,
    ),
    Row(
        "extra_trees_regressor",
        "ExtraTreesRegressor, 20 trees",
        "100,000 × 30",
        training_rows(100_000, classes=0),
        {
            OURS: forest(OURS, "ExtraTreesRegressor", n_estimators=20),
            SKLEARN: forest(SKLEARN, "ExtraTreesRegressor", n_estimators=20),
        },
        test_error,
        {SKLEARN: 2.0},
        compared="error",
        tolerance=TOLERANCE,
    ),
    Row(
        "forest_prediction",
        "predict_proba of a forest of 100 trees",
        "400,000 × 30",
        forests_to_predict,
        {OURS: prediction(OURS), SKLEARN: prediction(SKLEARN)},
        prediction_error,
        {SKLEARN: 2.0},
        compared="error",
        tolerance=TOLERANCE,
    ),
]
