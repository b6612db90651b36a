"""Exact Shapley values of boosted trees against LightGBM, XGBoost and shap.

Each library explains its own model of 100 trees with 31 leaves, fitted to the same rows. The quality is how far the
values and the base are from the sum they must have, the model's score; all of them are exact up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .forests import make_rows
from .harness import OURS, Row

LIGHTGBM, XGBOOST, SHAP = "LightGBM", "XGBoost", "shap"


class Explained(NamedTuple):
    """Fitted models, as far as their libraries are installed, and rows to explain."""

    models: dict[str, Any]
    X: np.ndarray[Any, Any]


class Contributions(NamedTuple):
    """What a library says of the rows."""

    total: np.ndarray[Any, Any]  #: values and base, summed
    score: np.ndarray[Any, Any]


def models_to_explain(quick: bool) -> Explained:
    """Return a model of each library on the same 20,000 rows, and 10,000 rows to explain."""
    n, m = (2_000, 500) if quick else (20_000, 10_000)
    X, y = make_rows(n + m, 28, classes=False)
    models = {}
    for library, fit in FITS.items():
        try:
            models[library] = fit(X[:n], y[:n])
        except ImportError:
            continue
    return Explained(models, X[n:])


def fit_ours(X: Any, y: Any) -> Any:
    """Return our model."""
    ensembles = import_module("learnable.ensembles")
    return ensembles.HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=31, early_stopping=False).fit(X, y)


def fit_lightgbm(X: Any, y: Any) -> Any:
    """Return LightGBM's model."""
    lightgbm = import_module("lightgbm")
    return lightgbm.train({"objective": "regression", "num_leaves": 31, "verbose": -1}, lightgbm.Dataset(X, y), 100)


def fit_xgboost(X: Any, y: Any) -> Any:
    """Return XGBoost's model."""
    xgboost = import_module("xgboost")
    rule = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist", "eta": 0.1}
    return xgboost.train(rule, xgboost.DMatrix(X, y), 100)


def fit_for_shap(X: Any, y: Any) -> Any:
    """Return scikit-learn's model with the explainer of shap, whose own code then does the work."""
    shap = import_module("shap")
    model = import_module("sklearn.ensemble").HistGradientBoostingRegressor(early_stopping=False).fit(X, y)
    return model, shap.TreeExplainer(model)


FITS: dict[str, Callable[[Any, Any], Any]] = {
    OURS: fit_ours,
    LIGHTGBM: fit_lightgbm,
    XGBOOST: fit_xgboost,
    SHAP: fit_for_shap,
}


def explain_ours(data: Explained) -> Contributions:
    """Return our values."""
    found = import_module("learnable.ensembles").shap_values(data.models[OURS], data.X)
    return Contributions(found.values.sum(axis=1) + found.base, data.models[OURS].predict(data.X))


def explain_lightgbm(data: Explained) -> Contributions:
    """Return LightGBM's values."""
    model = _model(data, LIGHTGBM)
    return Contributions(model.predict(data.X, pred_contrib=True).sum(axis=1), model.predict(data.X))


def explain_xgboost(data: Explained) -> Contributions:
    """Return XGBoost's values."""
    model, rows = _model(data, XGBOOST), import_module("xgboost").DMatrix(data.X)
    return Contributions(model.predict(rows, pred_contribs=True).sum(axis=1), model.predict(rows))


def explain_by_shap(data: Explained) -> Contributions:
    """Return shap's values."""
    model, explainer = _model(data, SHAP)
    return Contributions(explainer.shap_values(data.X).sum(axis=1) + explainer.expected_value, model.predict(data.X))


def largest_gap(found: Contributions, data: Explained) -> dict[str, float]:
    """Return how far a sum of values is from the score, relative to the scores' spread."""
    return {"gap": float(np.abs(found.total - found.score).max() / found.score.std())}


def _model(data: Explained, library: str) -> Any:
    if library not in data.models:
        raise ImportError(library)
    return data.models[library]


ROWS = [
    Row(
        "tree_shap",
        "exact Shapley values of 100 boosted trees, 31 leaves",
        "10,000 × 28",
        models_to_explain,
        {OURS: explain_ours, LIGHTGBM: explain_lightgbm, XGBOOST: explain_xgboost, SHAP: explain_by_shap},
        largest_gap,
        {LIGHTGBM: 1.0, XGBOOST: 1.0, SHAP: 1.0},
        compared="gap",
        tolerance=1e-4,
        floor=1.0,
    )
]
