"""Kernel support vector machines against scikit-learn (LIBSVM) and scikit-learn-intelex.

All stop at LIBSVM's default, a violation of 1e-3. The dual objectives are evaluated here, from support vectors and
coefficients alone and in float64, by code that no contender uses.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .harness import OURS, Row
from .linear import SKLEARN, Data

INTELEX = "scikit-learn-intelex"
MODULES = {OURS: "learnable.kernel", SKLEARN: "sklearn.svm", INTELEX: "sklearnex.svm"}
LIBRARIES = (OURS, SKLEARN, INTELEX)
#: Two fits that end at the same violation differ by about 1e-6 in the objective.
TOLERANCE = 1e-5


class Fitted(NamedTuple):
    """One machine a library, and the rows to predict."""

    models: dict[str, Any]
    X: Any


def contender(library: str, class_name: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that imports a class, builds it and fits it."""

    def fit(data: Data) -> Any:
        estimator = getattr(import_module(MODULES[library]), class_name)
        return estimator(**parameters).fit(data.X, data.y)

    return fit


def contenders(class_name: str, **parameters: Any) -> dict[str, Callable[[Data], Any]]:
    """Return the same fit of all libraries."""
    return {library: contender(library, class_name, **parameters) for library in LIBRARIES}


def noisy_data(quick: bool) -> Data:
    """A smooth rule of all columns and of two, a fifth of the labels wrong."""
    n, d = (3_000 if quick else 20_000), 50
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) / np.sqrt(d) + 0.5 * np.sin(2.0 * X[:, 0]) * X[:, 1]
    return Data(X, (score > 0) ^ (rng.random(n) < 0.2))


def ten_classes(quick: bool) -> Data:
    """Ten clouds that overlap a little, in float32."""
    n, d = (3_000 if quick else 30_000), 100
    rng = np.random.default_rng(1)
    y = rng.integers(0, 10, n)
    X = rng.standard_normal((10, d))[y] + 1.6 * rng.standard_normal((n, d))
    return Data(X.astype(np.float32), y)


def cubic_data(quick: bool) -> Data:
    """Labels from products of columns, a twentieth of them wrong."""
    n, d = (2_000 if quick else 10_000), 30
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, d))
    score = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5]
    return Data(X, (score > 0) ^ (rng.random(n) < 0.05))


def curve_data(quick: bool) -> Data:
    """A smooth function of twenty columns with noise."""
    n, d = (2_000 if quick else 10_000), 20
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.3 * rng.standard_normal(n)
    return Data(X, y)


def text_data(quick: bool) -> Data:
    """Rows like documents: words by Zipf's law, of two topics, unit length."""
    n, d, length = (2_000, 5_000, 60) if quick else (10_000, 30_000, 80)
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, n)
    frequency = 1.0 / np.arange(1, d + 1)
    topics = [frequency * np.exp(0.8 * rng.standard_normal(d)) for _ in range(2)]
    words = np.stack([rng.choice(d, length, p=topics[c] / topics[c].sum()) for c in y])
    rows = np.repeat(np.arange(n), length)
    X = sp.csr_array((np.ones(n * length), (rows, words.ravel())), shape=(n, d))
    X.data = (1.0 + np.log(X.data)) * np.log(n / np.maximum(1, np.bincount(X.indices, minlength=d)))[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).ravel()
    X = sp.csr_array(sp.diags_array(1.0 / np.maximum(norms, 1e-12)) @ X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # LIBSVM knows no others
    return Data(X, y)


def kernel_values(model: Any, A: Any, B: Any, gamma: float) -> Any:
    """Return k(a, b) from its formula."""
    dots = A @ B.T
    dots = dots.toarray() if sp.issparse(dots) else dots
    if model.kernel == "poly":
        return (gamma * dots + model.coef0) ** model.degree
    if model.kernel == "linear":
        return dots
    squares = [
        np.asarray(Z.multiply(Z).sum(axis=1)).ravel() if sp.issparse(Z) else np.einsum("ij,ij->i", Z, Z) for Z in (A, B)
    ]
    return np.exp(-gamma * np.maximum(squares[0][:, None] + squares[1] - 2.0 * dots, 0.0))


def quadratic(model: Any, Z: Any, beta: Any, gamma: float) -> float:
    """Return βᵀKβ, some rows at a time."""
    return sum(
        float(beta[i : i + 1000] @ (kernel_values(model, Z[i : i + 1000], Z, gamma) @ beta))
        for i in range(0, len(beta), 1000)
    )


def classifier_quality(model: Any, data: Data) -> dict[str, float]:
    """Return Σ over the pairs of classes of ½βᵀKβ − Σ|β|, and the number of support vectors."""
    X = data.X if sp.issparse(data.X) else np.asarray(data.X, dtype=np.float64)
    spread = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
    gamma, Z = 1.0 / (X.shape[1] * spread), X[np.asarray(model.support_)]
    coef = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else np.asarray(model.dual_coef_, dtype=float)
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    total = 0.0
    for i, j in combinations(range(len(model.n_support_)), 2):
        own = np.r_[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
        first = np.arange(len(own)) < ends[i + 1] - ends[i]
        beta = np.where(first, coef[j - 1, own], coef[i, own])
        own, beta = own[beta != 0], beta[beta != 0]
        total += 0.5 * quadratic(model, Z[own], beta, gamma) - float(np.abs(beta).sum())
    return {"objective": total, "support": float(len(model.support_))}


def regressor_quality(model: Any, data: Data) -> dict[str, float]:
    """Return ½βᵀKβ − Σtβ + ε Σ|β|, and the number of support vectors."""
    X = np.asarray(data.X, dtype=np.float64)
    beta, t = np.ravel(model.dual_coef_), data.y[model.support_]
    square = quadratic(model, X[model.support_], beta, 1.0 / (X.shape[1] * X.var()))
    value = 0.5 * square - float(t @ beta) + model.epsilon * float(np.abs(beta).sum())
    return {"objective": value, "support": float(len(beta))}


def fitted_models(quick: bool) -> Fitted:
    """Machines of all libraries on some of the noisy rows, and all rows to predict."""
    X, y = noisy_data(quick)
    n, models = min(len(X) // 2, 8_000), {}
    for library in LIBRARIES:
        try:
            models[library] = contender(library, "SVC")(Data(X[:n], y[:n]))
        except ImportError:
            continue
    return Fitted(models, X)


def predictor(library: str) -> Callable[[Fitted], Any]:
    """Return the function that scores all rows with a library's own machine."""

    def predict(data: Fitted) -> Any:
        if library not in data.models:
            raise ImportError(library)
        return library, data.models[library].decision_function(data.X)

    return predict


def score_quality(found: Any, data: Fitted) -> dict[str, float]:
    """Return the largest error of a score against the machine's definition, on some rows."""
    library, scores = found
    model, rows = data.models[library], data.X[:: max(1, len(data.X) // 500)]
    fitted = data.X[: model.shape_fit_[0]]
    K = kernel_values(model, rows, data.X[model.support_], 1.0 / (fitted.shape[1] * fitted.var()))
    exact = K @ np.ravel(model.dual_coef_) + float(np.ravel(model.intercept_)[0])
    return {"error": float(np.abs(scores[:: max(1, len(data.X) // 500)] - exact).max())}


ROWS = [
    Row(
        "svc_rbf",
        "SVC, Gaussian kernel, a fifth of the labels wrong",
        "20,000 × 50",
        noisy_data,
        contenders("SVC"),
        classifier_quality,
        {SKLEARN: 12.0, INTELEX: 2.0},
        tolerance=TOLERANCE,
    ),
    Row(
        "svc_predict",
        "SVC, scores of new rows",
        "8,000 × 50 fitted, 20,000 predicted",
        fitted_models,
        {library: predictor(library) for library in LIBRARIES},
        score_quality,
        {SKLEARN: 10.0},
        compared=None,
        limits={"error": 1e-4},
    ),
    Row(
        "svc_ten_classes",
        "SVC, Gaussian kernel, ten classes, float32",
        "30,000 × 100",
        ten_classes,
        contenders("SVC"),
        classifier_quality,
        {SKLEARN: 6.0, INTELEX: 1.5},
        tolerance=TOLERANCE,
    ),
    Row(
        "svc_poly",
        "SVC, cubic kernel",
        "10,000 × 30",
        cubic_data,
        contenders("SVC", kernel="poly", coef0=1.0),
        classifier_quality,
        {SKLEARN: 4.0, INTELEX: 1.3},
        tolerance=TOLERANCE,
    ),
    Row(
        "svr",
        "SVR, Gaussian kernel",
        "10,000 × 20",
        curve_data,
        contenders("SVR"),
        regressor_quality,
        {SKLEARN: 4.0, INTELEX: 1.3},
        tolerance=TOLERANCE,
    ),
    Row(
        "svc_text",
        "SVC, Gaussian kernel, sparse rows like texts",
        "10,000 × 30,000, 80 words a row",
        text_data,
        contenders("SVC"),
        classifier_quality,
        {SKLEARN: 4.0, INTELEX: 1.3},
        tolerance=TOLERANCE,
    ),
]
