"""Linear support vector machines and the perceptron against scikit-learn (LIBLINEAR).

The objectives are evaluated here from the coefficients alone, by code that no contender uses.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from .harness import OURS, Row
from .linear import SKLEARN, Data, class_data

MODULES = {
    (OURS, "LinearSVC"): "learnable.linear",
    (OURS, "Perceptron"): "learnable.linear",
    (SKLEARN, "LinearSVC"): "sklearn.svm",
    (SKLEARN, "Perceptron"): "sklearn.linear_model",
}
#: LIBLINEAR ends at 1e-6 above the optimum by default or more, ours at 1e-6 or less.
TOLERANCE = 1e-5


def contender(library: str, class_name: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that imports a class, builds it and fits it."""

    def fit(data: Data) -> Any:
        estimator = getattr(import_module(MODULES[library, class_name]), class_name)
        return estimator(**parameters).fit(data.X, data.y)

    return fit


def sparse_class_data(quick: bool) -> Data:
    """About a hundred entries a row, labels from a noisy linear rule."""
    n, d = (4_000, 2_000) if quick else (100_000, 50_000)
    rng = np.random.default_rng(3)
    X = sp.random_array((n, d), density=100 / d, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return Data(X, (X @ rng.standard_normal(d) + 3.0 * rng.standard_normal(n) > 0).astype(int))


def svc_quality(power: int) -> Callable[[Any, Data], dict[str, float]]:
    """Return ½(‖w‖² + b²) + Σ max(0, 1 − yz)^power as a function of the fitted model."""

    def quality(model: Any, data: Data) -> dict[str, float]:
        w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        short = np.maximum(1.0 - np.where(data.y > 0, 1.0, -1.0) * (data.X @ w + b), 0.0)
        return {"objective": float(0.5 * (w @ w + b * b) + (short**power).sum())}

    return quality


def error_quality(model: Any, data: Data) -> dict[str, float]:
    """Return the share of training rows on the wrong side, and the passes over the rows."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    wrong = ((data.X @ w + b) > 0) != (data.y > 0)
    return {"error": float(np.mean(wrong)), "passes": float(model.n_iter_)}


ROWS = [
    Row(
        "linear_svc",
        "LinearSVC, squared hinge",
        "200,000 × 50",
        class_data(200_000, 50, 2),
        {OURS: contender(OURS, "LinearSVC"), SKLEARN: contender(SKLEARN, "LinearSVC")},
        svc_quality(2),
        {SKLEARN: 2.0},
        tolerance=TOLERANCE,
    ),
    Row(
        "linear_svc_hinge",
        "LinearSVC, hinge",
        "20,000 × 50",
        class_data(20_000, 50, 2),
        {
            OURS: contender(OURS, "LinearSVC", loss="hinge"),
            SKLEARN: contender(SKLEARN, "LinearSVC", loss="hinge"),
            f"{SKLEARN} (max_iter=10000)": contender(SKLEARN, "LinearSVC", loss="hinge", max_iter=10_000),
        },
        svc_quality(1),
        {SKLEARN: 2.0},
        tolerance=1e-3,
    ),
    Row(
        "linear_svc_sparse",
        "LinearSVC, squared hinge, sparse",
        "100,000 × 50,000, 0.2 %",
        sparse_class_data,
        {
            OURS: contender(OURS, "LinearSVC"),
            SKLEARN: contender(SKLEARN, "LinearSVC"),
            f"{SKLEARN} (dual)": contender(SKLEARN, "LinearSVC", dual=True),
        },
        svc_quality(2),
        {SKLEARN: 2.0},
        tolerance=TOLERANCE,
    ),
    Row(
        "perceptron",
        "Perceptron, ten passes",
        "200,000 × 50",
        class_data(200_000, 50, 2),
        {library: contender(library, "Perceptron", tol=None, max_iter=10) for library in (OURS, SKLEARN)},
        error_quality,
        {SKLEARN: 2.0},
        compared=None,
        limits={"error": 0.4},
    ),
]
