"""Gradient boosting against LightGBM (also with rounded gradients), XGBoost, CatBoost and scikit-learn.

All contenders grow as many trees with as many leaves at the same learning rate on at most 255 bins, with two threads
and no early stopping; the rest are their defaults. They are judged on rows that none has seen, by code that none uses:
one minus the area under the ROC curve, the mean squared error, or the log loss.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .harness import OURS, Row
from .linear import SKLEARN

LIGHTGBM, QUANTISED, XGBOOST, CATBOOST = "LightGBM", "LightGBM (quantised)", "XGBoost", "CatBoost"
PEERS = (LIGHTGBM, QUANTISED, XGBOOST, CATBOOST, SKLEARN)
THREADS = 2
RATE = 0.1


class Split(NamedTuple):
    """Training rows, rows to be judged on, and which columns are categories."""

    X: Any
    y: np.ndarray[Any, Any]
    X_test: Any
    y_test: np.ndarray[Any, Any]
    categorical: tuple[int, ...] = ()


class Fitted(NamedTuple):
    """Fitted models with the rows to predict."""

    models: dict[str, Any]
    X: Any
    y: np.ndarray[Any, Any]


def signal(X: Any, rng: np.random.Generator) -> Any:
    """Return a function of some columns with steps, waves and interactions."""
    f = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + 0.5 * X[:, 4] ** 2 - 0.5
    return f + (X[:, 5] > 0) * X[:, 6] + 0.3 * X[:, 7:12].sum(axis=1)


def divided(X: Any, y: Any, n: int, categorical: tuple[int, ...] = ()) -> Split:
    """Return the first n rows to learn from, the rest to judge."""
    return Split(X[:n], y[:n], X[n:], y[n:], categorical)


def numbers(n: int, d: int, kind: str) -> Callable[[bool], Split]:
    """Return the function that makes float32 rows: two classes, ten classes or numbers."""

    def make(quick: bool) -> Split:
        m = n // 20 if quick and n > 20_000 else n
        rng = np.random.default_rng(0)
        X = rng.standard_normal((m + m // 4, d), dtype=np.float32)
        f = signal(X, rng)
        if kind == "two":
            y = (rng.random(len(f)) < 1 / (1 + np.exp(-f))).astype(np.int64)
        elif kind == "ten":
            shifted = f + rng.logistic(scale=0.3, size=len(f))
            y = np.searchsorted(np.quantile(shifted, np.linspace(0.1, 0.9, 9)), shifted).astype(np.int64)
        else:
            y = f + 0.5 * rng.standard_normal(len(f))
        return divided(X, y, m)

    return make


def mostly_categories(quick: bool) -> Split:
    """Return rows like those of the adult census, twenty times: eight categories of 2 to 42 levels, six numbers."""
    n = 32_561 if quick else 20 * 32_561
    rng = np.random.default_rng(0)
    levels = (9, 16, 7, 15, 6, 5, 2, 42)
    codes = [np.minimum(rng.geometric(min(0.8, 2.5 / k), n + n // 4) - 1, k - 1) for k in levels]
    effects = sum(rng.normal(size=k)[c] for k, c in zip(levels, codes, strict=True))
    other = rng.standard_normal((n + n // 4, 6))
    f = 0.5 * effects + other[:, 0] * (codes[4] == 0) + np.abs(other[:, 1]) - 1.5
    y = (rng.random(len(f)) < 1 / (1 + np.exp(-f))).astype(np.int64)
    X = np.column_stack([*codes, other]).astype(np.float64)
    return divided(X, y, n, tuple(range(8)))


def one_hot(quick: bool) -> Split:
    """Return a sparse table of 50 categories with 100 levels each, one column per level."""
    n = 2_500 if quick else 50_000
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.03, (n + n // 4, 50)) - 1, 99)
    f = rng.normal(size=(50, 100))[np.arange(50), codes][:, :10].sum(axis=1) * 0.7
    y = (rng.random(len(f)) < 1 / (1 + np.exp(-f))).astype(np.int64)
    columns = (codes + 100 * np.arange(50)).reshape(-1)
    X = sp.csr_matrix((np.ones(columns.size), columns, np.arange(0, columns.size + 1, 50)), shape=(len(f), 5000))
    return divided(X, y, n)


def build(library: str, classes: bool, leaves: int, trees: int, categorical: tuple[int, ...]) -> Any:
    """Return the unfitted model of a library."""
    kind = "Classifier" if classes else "Regressor"
    if library in (OURS, SKLEARN):
        module = import_module("learnable.ensembles" if library == OURS else "sklearn.ensemble")
        extra = {"n_jobs": THREADS} if library == OURS else {}
        return getattr(module, f"HistGradientBoosting{kind}")(
            max_iter=trees, max_leaf_nodes=leaves, learning_rate=RATE, early_stopping=False,
            categorical_features=list(categorical) or None, random_state=0, **extra,
        )  # fmt: skip
    if library in (LIGHTGBM, QUANTISED):
        return getattr(import_module("lightgbm"), f"LGBM{kind}")(
            n_estimators=trees, num_leaves=leaves, learning_rate=RATE, max_bin=255, n_jobs=THREADS, verbose=-1,
            random_state=0, use_quantized_grad=library == QUANTISED,
        )  # fmt: skip
    if library == XGBOOST:
        return getattr(import_module("xgboost"), f"XGB{kind}")(
            n_estimators=trees, max_leaves=leaves, max_depth=0, grow_policy="lossguide", tree_method="hist",
            learning_rate=RATE, max_bin=255, n_jobs=THREADS, random_state=0,
        )  # fmt: skip
    return getattr(import_module("catboost"), f"CatBoost{kind}")(
        iterations=trees, max_leaves=leaves, grow_policy="Lossguide", max_depth=16, learning_rate=RATE,
        border_count=254, thread_count=THREADS, verbose=False, allow_writing_files=False, random_seed=0,
    )  # fmt: skip


def fit(library: str, *, leaves: int = 31, trees: int = 100) -> Callable[[Split], Any]:
    """Return the function that builds a library's model and fits it."""

    def run(data: Split) -> Any:
        model = build(library, data.y.dtype.kind == "i", leaves, trees, data.categorical)
        if library in (LIGHTGBM, QUANTISED) and data.categorical:
            return model.fit(data.X, data.y, categorical_feature=list(data.categorical))
        return model.fit(data.X, data.y)

    return run


def one_minus_auc(score: Any, y: Any) -> float:
    """Return one minus the share of pairs of both classes that are in the right order; ties count half."""
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2
    positive = int(y.sum())
    above = rank[place][y == 1].sum() - positive * (positive + 1) / 2
    return float(1.0 - above / (positive * (len(y) - positive)))


def quality(model: Any, data: Split) -> dict[str, float]:
    """Return the loss on the unseen rows."""
    if data.y.dtype.kind != "i":
        return {"loss": float(np.mean((np.ravel(model.predict(data.X_test)) - data.y_test) ** 2))}
    shares = np.asarray(model.predict_proba(data.X_test), np.float64)
    if shares.shape[1] == 2:
        return {"loss": one_minus_auc(shares[:, 1], data.y_test)}
    own = shares[np.arange(len(shares)), data.y_test]
    return {"loss": float(-np.log(np.maximum(own, 1e-15)).mean())}


def fitted(quick: bool) -> Fitted:
    """Return models of 100 trees on the same 100,000 rows, and a million rows to predict."""
    data = numbers(100_000, 28, "two")(quick)
    rows = numbers(10_000 if quick else 1_000_000, 28, "two")(False)
    models = {}
    for library in (OURS, LIGHTGBM, XGBOOST, CATBOOST, SKLEARN):
        try:
            models[library] = fit(library)(data)
        except ImportError:
            continue
    return Fitted(models, rows.X, rows.y)


def predict(library: str) -> Callable[[Fitted], Any]:
    """Return the function that predicts with one library's model."""

    def run(data: Fitted) -> Any:
        if library not in data.models:
            raise ImportError(library)
        return data.models[library].predict_proba(data.X)

    return run


def predicted(shares: Any, data: Fitted) -> dict[str, float]:
    """Return one minus the area under the curve of what was predicted."""
    return {"loss": one_minus_auc(np.asarray(shares, np.float64)[:, 1], data.y)}


_MEASURED = """
import json, sys
from pathlib import Path
from benchmarks.boosting import fit, numbers
library, quick = sys.argv[1], sys.argv[2] == "1"
fit(library, trees=2)(numbers(2_000, 28, "two")(False))  # imports and compiling are no part of it
data = numbers(1_000_000, 28, "two")(quick)
def megabytes(entry):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(entry)) / 1024
Path("/proc/self/clear_refs").write_text("5")
before = megabytes("VmRSS")
fit(library, trees=10)(data)
print(json.dumps(megabytes("VmHWM") - before))
"""


def peak(library: str) -> Callable[[bool], float]:
    """Return the function that measures by how much a fit in a process of its own raises its memory."""

    def run(quick: bool) -> float:
        if library != OURS:
            import_module(library.lower())
        command = [sys.executable, "-c", _MEASURED, library, str(int(quick))]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
        return float(json.loads(done.stdout.splitlines()[-1]))

    return run


def contenders(without: tuple[str, ...] = (), **parameters: Any) -> dict[str, Callable[[Split], Any]]:
    """Return the fits of all libraries but some."""
    return {library: fit(library, **parameters) for library in (OURS, *PEERS) if library not in without}


def at_least(ratio: float, rivals: Any = (LIGHTGBM, XGBOOST, CATBOOST, SKLEARN)) -> dict[str, float]:
    """Return the same target for every peer."""
    return {library: ratio for library in rivals if library not in (OURS, QUANTISED)}


def fit_row(
    name: str, job: str, size: str, data: Any, ratio: float = 1.0, tolerance: float = 0.02, **parameters: Any
) -> Row:
    """Return a row in which all libraries fit."""
    rivals = contenders(**parameters)
    return Row(name, job, size, data, rivals, quality, at_least(ratio, rivals), compared="loss", tolerance=tolerance)


BIG = numbers(1_000_000, 28, "two")
MIDDLE = numbers(200_000, 28, "two")
ROWS = [
    fit_row("boosting", "two classes, 100 trees of 31 leaves", "1,000,000 × 28, float32", BIG, 1.8),
    Row(
        "boosting_prediction",
        "predict_proba of 100 trees of 31 leaves",
        "1,000,000 × 28, float32",
        fitted,
        {library: predict(library) for library in (OURS, LIGHTGBM, XGBOOST, CATBOOST, SKLEARN)},
        predicted,
        at_least(2.0),
        compared="loss",
        tolerance=0.02,
    ),
    Row(
        "boosting_memory",
        "rise of the memory by a fit of 10 trees",
        "1,000,000 × 28, float32",
        lambda quick: quick,
        {OURS: peak(OURS), LIGHTGBM: peak(LIGHTGBM)},
        lambda megabytes, _: {"megabytes": megabytes},
        compared="megabytes",
        tolerance=0.0,
    ),
    fit_row("boosting_wide", "regression, 100 trees of 31 leaves", "200,000 × 200", numbers(200_000, 200, "number")),
    fit_row("boosting_classes", "ten classes, 100 rounds", "100,000 × 50", numbers(100_000, 50, "ten")),
    fit_row("boosting_63", "two classes, 100 trees of 63 leaves", "200,000 × 28", MIDDLE, leaves=63),
    fit_row("boosting_255", "two classes, 100 trees of 255 leaves", "200,000 × 28", MIDDLE, leaves=255),
    fit_row("boosting_categories", "two classes, eight categories", "651,220 × 14", mostly_categories),
    fit_row("boosting_sparse", "two classes, one-hot columns", "50,000 × 5,000, sparse", one_hot, without=(SKLEARN,)),
    fit_row("boosting_small", "two classes, 100 trees of 31 leaves", "5,000 × 20", numbers(5_000, 20, "two"), 1.0, 0.1),
]
