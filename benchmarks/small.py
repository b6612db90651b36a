"""Small tables and serving: fits of 150 and 1,000 rows, predictions of one row and of 100, against scikit-learn.

What is measured is the fixed cost of a call: checks, fingerprint, certificate, thread limits. Both sides run warm, in
one process, interleaved; the fastest of many calls counts, by processor time. Ours also computes its certificate and
the data's fingerprint in these times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row
from .linear import SKLEARN

SIZES = {"tiny": (150, 4), "small": (1_000, 20)}
ROWS_TO_PREDICT = (1, 100)
RATIO = 1 / 1.5  # ours may take one and a half times as long


class Model(NamedTuple):
    """One class of both libraries and the job it is measured on."""

    name: str
    module: str  #: where scikit-learn, or another peer, has it
    target: str | None  #: "numbers", "classes", or None without a target
    parameters: Mapping[str, Any] = MappingProxyType({})
    required: bool = True  #: whether the ratio is asked for; the others are measured only


class Fitted(NamedTuple):
    """Both libraries' fitted models and the rows to predict."""

    models: dict[str, Any]
    X: Any


MODELS = [
    Model("LinearRegression", "sklearn.linear_model", "numbers"),
    Model("Ridge", "sklearn.linear_model", "numbers"),
    Model("Lasso", "sklearn.linear_model", "numbers", {"alpha": 0.1}),
    Model("LogisticRegression", "sklearn.linear_model", "classes"),
    Model("GaussianNB", "sklearn.naive_bayes", "classes"),
    Model("KMeans", "sklearn.cluster", None, {"n_clusters": 3, "random_state": 0}),
    Model("DecisionTreeClassifier", "sklearn.tree", "classes", {"random_state": 0}),
    Model("DecisionTreeRegressor", "sklearn.tree", "numbers", {"random_state": 0}),
    Model("ElasticNet", "sklearn.linear_model", "numbers", {"alpha": 0.1}, required=False),
    Model("SVC", "sklearn.svm", "classes", required=False),
    Model("SVR", "sklearn.svm", "numbers", required=False),
    Model("KNeighborsClassifier", "sklearn.neighbors", "classes", required=False),
    Model("KNeighborsRegressor", "sklearn.neighbors", "numbers", required=False),
    Model("LinearDiscriminantAnalysis", "sklearn.discriminant_analysis", "classes", required=False),
    Model("KernelRidge", "sklearn.kernel_ridge", "numbers", {"kernel": "rbf"}, required=False),
    Model("RandomForestClassifier", "sklearn.ensemble", "classes", {"n_estimators": 10, "random_state": 0}, False),
    Model("HistGradientBoostingClassifier", "sklearn.ensemble", "classes", {"max_iter": 20, "random_state": 0}, False),
    Model("HistGradientBoostingRegressor", "sklearn.ensemble", "numbers", {"max_iter": 20, "random_state": 0}, False),
    Model("GaussianMixture", "sklearn.mixture", None, {"n_components": 3, "random_state": 0}, required=False),
    Model("GaussianHMM", "hmmlearn.hmm", None, {"n_components": 3, "random_state": 0}, required=False),
]


def rows(model: Model, n: int, d: int, quick: bool = False) -> tuple[Any, ...]:
    """Return X, or X and y, drawn with one seed: three groups about three deviations apart, a linear target."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, n)
    X = rng.standard_normal((n, d)) + 3.0 / np.sqrt(2 * d) * rng.standard_normal((3, d))[codes]
    if model.target is None:
        return (X,)
    return X, codes if model.target == "classes" else X @ rng.standard_normal(d) + rng.standard_normal(n)


def build(model: Model, library: str) -> Any:
    """Return an unfitted model of one of the libraries."""
    module = import_module("learnable" if library == OURS else model.module)
    return getattr(module, model.name)(**model.parameters)


def fit(model: Model, library: str, data: tuple[Any, ...]) -> Any:
    return build(model, library).fit(*data)


def fit_both(model: Model, n_rows: int, quick: bool) -> Fitted:
    """Fit both on 1,000 rows and return them with the rows to predict."""
    data = rows(model, *SIZES["small"])
    models = {}
    for library in libraries(model):
        with suppress(ImportError):
            models[library] = fit(model, library, data)
    return Fitted(models, data[0][:n_rows].copy())


def call(method: str, library: str, data: Fitted) -> Any:
    if library not in data.models:
        raise ImportError(library)
    getattr(data.models[library], method)(data.X)
    return data.models[library]


def libraries(model: Model) -> tuple[str, str]:
    return OURS, SKLEARN if model.module.startswith("sklearn") else model.module.partition(".")[0]


def row(model: Model, name: str, job: str, size: str, make: Callable[[bool], Any], run: Any, calls: int) -> Row:
    """Return a row that compares times only: what is computed is the matter of each family's own rows."""
    contenders = {library: partial(run, library) for library in libraries(model)}
    asked = {SKLEARN: RATIO} if model.required else {}
    return Row(name, job, size, make, contenders, lambda model, data: {}, asked, compared=None, calls=calls)


def fit_row(model: Model, size: str) -> Row:
    n, d = SIZES[size]
    name = f"fit_{size}_{model.name}"
    return row(model, name, f"{model.name}.fit", f"{n:,} × {d}", partial(rows, model, n, d), partial(fit, model), 30)


def predict_row(model: Model, method: str, n_rows: int) -> Row:
    name = f"{method}_{n_rows}_{model.name}"
    make = partial(fit_both, model, n_rows)
    return row(
        model, name, f"{model.name}.{method}", f"{n_rows} × {SIZES['small'][1]}", make, partial(call, method), 100
    )


def methods(model: Model) -> list[str]:
    return ["predict", "predict_proba"] if model.target == "classes" and model.name != "SVC" else ["predict"]


ROWS = [
    *(fit_row(model, size) for size in SIZES for model in MODELS),
    *(predict_row(model, method, n) for n in ROWS_TO_PREDICT for model in MODELS for method in methods(model)),
]
