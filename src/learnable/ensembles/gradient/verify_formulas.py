"""The losses of boosted models once more, each as one line of plain NumPy: what the checker knows of them.

Scores are F, (K, n). Nothing here is used by a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

Array = NDArray[np.float64]


class Formulas(NamedTuple):
    """Value and derivatives of a loss, and how its leaves are found."""

    value: Callable[[Array, Array], Array]  #: (y, F) → (n,)
    slope: Callable[[Array, Array], Array]  #: (y, F) → (K, n)
    curvature: Callable[[Array, Array], Array] | None  #: None: h = 1, and leaves minimise the loss
    mass: Callable[[Array], Array] | None = None  #: F → h of rows in the search for splits, where it is not 1


def formulas(model: Any, delta: float = 1.0) -> Formulas:
    """Return the formulas of the loss that a model names; δ of Huber's loss is given."""
    if not isinstance(model.loss, str):
        return _custom(model)
    if getattr(model, "_classes", False):
        return _softmax() if len(model.classes_) > 2 else _margins(model.loss)
    if model.loss == "quantile" and np.ndim(model._level()) > 0:
        return _joint(np.asarray(model._level(), dtype=np.float64))
    tau = float(np.ravel(model._level())[0]) if model.loss == "quantile" else 0.5
    one = np.ones_like
    table: dict[str, Formulas] = {
        "squared_error": Formulas(lambda y, F: (y - F[0]) ** 2 / 2, lambda y, F: F - y, lambda y, F: one(F)),
        "absolute_error": Formulas(lambda y, F: abs(y - F[0]), lambda y, F: np.sign(F - y), None),
        "huber": Formulas(
            lambda y, F: np.where(abs(y - F[0]) <= delta, (y - F[0]) ** 2 / 2, delta * (abs(y - F[0]) - delta / 2)),
            lambda y, F: np.clip(F - y, -delta, delta),
            None,
        ),
        "quantile": Formulas(
            lambda y, F: np.where(y > F[0], tau * (y - F[0]), (1 - tau) * (F[0] - y)),
            lambda y, F: np.where(y < F, 1 - tau, np.where(y > F, -tau, 0.0)),
            None,
        ),
        "poisson": Formulas(lambda y, F: np.exp(F[0]) - y * F[0], lambda y, F: np.exp(F) - y, lambda y, F: np.exp(F)),
        "gamma": Formulas(
            lambda y, F: F[0] + y / np.exp(F[0]), lambda y, F: 1 - y / np.exp(F), lambda y, F: y / np.exp(F)
        ),
        "normal": Formulas(
            lambda y, F: F[1] + ((y - F[0]) / np.exp(F[1])) ** 2 / 2,
            lambda y, F: np.stack([(F[0] - y) / np.exp(2 * F[1]), 1 - ((y - F[0]) / np.exp(F[1])) ** 2]),
            lambda y, F: np.stack([np.exp(-2 * F[1]), 1 + ((y - F[0]) / np.exp(F[1])) ** 2]),
        ),
    }
    return table[model.loss]


def _margins(loss: str) -> Formulas:
    if loss == "exponential":
        return Formulas(lambda y, F: np.exp(-y * F[0]), lambda y, F: -y * np.exp(-y * F), lambda y, F: np.exp(-y * F))
    return Formulas(
        lambda y, F: np.logaddexp(0.0, -y * F[0]),
        lambda y, F: expit(F) - (y > 0),
        lambda y, F: expit(F) * expit(-F),
    )


def _softmax() -> Formulas:
    def chances(F: Array) -> Array:
        return np.asarray(np.exp(F - logsumexp(F, axis=0)))

    return Formulas(
        lambda y, F: np.asarray(logsumexp(F, axis=0)) - F[y, np.arange(F.shape[1])],
        lambda y, F: chances(F) - (np.arange(len(F))[:, None] == y),
        lambda y, F: chances(F) * (1 - chances(F)) * len(F) / (len(F) - 1),
    )


def _joint(levels: Array) -> Formulas:
    c = int(np.argmin(np.abs(levels - 0.5)))
    K = len(levels)

    def quantile(F: Array, k: int) -> Array:
        gaps = [np.exp(F[j]) for j in (range(c + 1, k + 1) if k > c else range(k, c))]
        return np.asarray(F[c] + (1.0 if k > c else -1.0) * sum(gaps, np.zeros(F.shape[1])))

    def slope(y: Array, F: Array) -> Array:
        each = [np.where(quantile(F, k) > y, 1 - levels[k], np.where(quantile(F, k) < y, -levels[k], 0.0))
                for k in range(K)]  # fmt: skip
        out = []
        for k in range(K):
            moved = range(K) if k == c else range(k, K) if k > c else range(k + 1)
            sign = 1.0 if k == c else np.exp(F[k]) if k > c else -np.exp(F[k])
            out.append(sign * sum((each[j] for j in moved), np.zeros(len(y))))
        return np.stack(out)

    return Formulas(
        lambda y, F: np.asarray(
            sum(np.maximum(levels[k] * (y - quantile(F, k)), (levels[k] - 1) * (y - quantile(F, k))) for k in range(K))
        ),
        slope,
        None,
        lambda F: np.stack([np.exp(F[k]) if k != c else np.ones(F.shape[1]) for k in range(K)]),
    )


def _custom(model: Any) -> Formulas:
    loss, several = model.loss, getattr(model, "_classes", False) and len(model.classes_) > 2
    curved = hasattr(loss, "curvature")
    if several:
        return Formulas(
            lambda y, F: loss.value(y, F.T.copy()),
            lambda y, F: np.asarray(loss.gradient(y, F.T.copy())).T,
            (lambda y, F: np.asarray(loss.curvature(y, F.T.copy())).T) if curved else None,
        )
    return Formulas(
        lambda y, F: loss.value(y, F[0]),
        lambda y, F: np.asarray(loss.gradient(y, F[0]))[None],
        (lambda y, F: np.asarray(loss.curvature(y, F[0]))[None]) if curved else None,
    )
