"""Generative classifiers against scikit-learn: fits, and fits with predictions.

The quality is the negative mean log-likelihood of the training rows' classes under the fitted rule, computed here from
`predict_log_proba` of the first rows.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row
from .linear import SKLEARN

_JUDGED = 2000


class Data(NamedTuple):
    X: Any
    y: np.ndarray


def contender(library: str, name: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that fits the model of one library."""
    modules = {
        "GaussianNB": "sklearn.naive_bayes",
        "MultinomialNB": "sklearn.naive_bayes",
        "LinearDiscriminantAnalysis": "sklearn.discriminant_analysis",
        "QuadraticDiscriminantAnalysis": "sklearn.discriminant_analysis",
    }

    def fit(data: Data) -> Any:
        module = "learnable.generative" if library == OURS else modules[name]
        return getattr(import_module(module), name)(**parameters).fit(data.X, data.y)

    return fit


def with_predictions(fit: Callable[[Data], Any]) -> Callable[[Data], Any]:
    """Return the function that fits, and then predicts all rows."""

    def both(data: Data) -> Any:
        model = fit(data)
        model.predict(data.X)
        return model

    return both


def normal_classes(n: int, d: int, K: int, mix: float = 0.0) -> Callable[[bool], Data]:
    """Return normal classes; with `mix`, of correlated columns."""

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        rows = n // 50 if quick else n
        y = rng.integers(0, K, rows)
        X = rng.standard_normal((rows, d))
        if mix:
            X = X @ (np.eye(d) + mix * rng.standard_normal((d, d)))
        X += rng.standard_normal((K, d))[y]
        return Data(X, y)

    return make


def documents(n: int, d: int, K: int, words: int) -> Callable[[bool], Data]:
    """Return counts of words whose frequencies follow Zipf's law, as CSR rows with 32-bit indices."""
    import scipy.sparse as sp

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        rows = n // 50 if quick else n
        y = rng.integers(0, K, rows)
        places = (rng.zipf(1.3, rows * words) + 17 * np.repeat(y, words) - 1) % d
        X = sp.csr_array((np.ones(rows * words), (np.repeat(np.arange(rows), words), places)), shape=(rows, d))
        X.sum_duplicates()
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return Data(X, y)

    return make


def log_loss(model: Any, data: Data) -> dict[str, float]:
    """Return the mean of −log P(class | x) over some rows."""
    with np.errstate(divide="ignore"):
        log_proba = np.maximum(model.predict_log_proba(data.X[:_JUDGED]), -700.0)
    return {"objective": float(-log_proba[np.arange(len(log_proba)), data.y[:_JUDGED]].mean())}


def rows(name: str, model: str, size: str, make: Callable[[bool], Data], ratio: float) -> list[Row]:
    """Return the row of the fit, for which a ratio is asked, and that of a fit with predictions."""
    fits = {library: contender(library, model) for library in (OURS, SKLEARN)}
    both = {library: with_predictions(fit) for library, fit in fits.items()}
    judged = {"tolerance": 1e-6, "floor": 1e-3}
    return [
        Row(name, model, size, make, fits, log_loss, {SKLEARN: ratio}, **judged),
        Row(f"{name}_predict", f"{model}, fit and predict", size, make, both, log_loss, {SKLEARN: 1.0}, **judged),
    ]


_CORRELATED = normal_classes(300_000, 100, 10, 0.03)
_TEXT = documents(200_000, 50_000, 20, 80)

ROWS = [
    *rows("gaussian_nb", "GaussianNB", "1M × 50, 10 classes", normal_classes(1_000_000, 50, 10), 2.0),
    *rows("multinomial_nb", "MultinomialNB", "200k documents × 50k words, 20 classes", _TEXT, 2.0),
    *rows("lda", "LinearDiscriminantAnalysis", "300k × 100, 10 classes", _CORRELATED, 3.0),
    *rows("qda", "QuadraticDiscriminantAnalysis", "300k × 100, 10 classes", _CORRELATED, 3.0),
]
