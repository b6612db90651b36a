"""Independent check of forward stagewise models: the rounds, replayed on the data.

f follows from the learners and their steps; after every round the mean loss is the one recorded, and the loss does not
fall any more along the learner beyond its step. Of stumps, none of any column has a steeper descent.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from ..core import AnyArray, Recheck
from .verify_adaboost import Rows, _are_best, column_of, read_rows

_NEAR = 1e-9  # relative distance at which two losses are the same
_STEP = 1e-7  # relative distance to both sides of a step at which its slope is looked at


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def stagewise(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a ForwardStagewiseAdditive."""
    rows = read_rows(model, X, y, sample_weight)
    n_classes = len(getattr(model, "classes_", ()))
    loss = law_of(model.loss, n_classes)
    truth = loss.targets(rows.y)
    weight = np.exp(rows.log_weight)
    K = n_classes if loss.kind == "codes" else 1
    f = np.zeros((len(truth), K)) + model.start_
    T = len(model.steps_)
    learners = list(model.stumps_) if model.stumps_ is not None else model.models_
    if len(learners) != T * (1 if model.stumps_ is not None else K) or len(model.train_loss_) != T + 1:
        return Recheck(np.inf, _NEAR, rows.fingerprint)

    def mean_loss(f: AnyArray) -> float:
        return float((weight * loss.value(truth, f if K > 1 else f[:, 0])).sum())

    def slope(f: AnyArray, h: AnyArray) -> float:
        g = loss.gradient(truth, f if K > 1 else f[:, 0]).reshape(f.shape)
        return float((weight[:, None] * g * h).sum())

    scale = max(1.0, float(np.abs(model.train_loss_).max())) if T else 1.0
    losses_agree = abs(mean_loss(f) - model.train_loss_[0]) <= _NEAR * scale
    failed = 0
    residual = 0.0
    for t, beta in enumerate(model.steps_):
        h = _says(model, learners, t, K, rows.X)
        good = True
        if model.step == "line-search":
            there = -slope(f, h)
            left = max(slope(f + beta * (1 - _STEP) * h, h), -slope(f + beta * (1 + _STEP) * h, h), 0.0) / there
            residual = max(residual, left) if there > 0 and left == left else np.inf
            good = left <= 1e-6
            if model.stumps_ is not None:
                good &= _is_steepest(loss, truth, weight, f, rows, learners[t])
        else:
            good = abs(beta - (1.0 if model.step == "fixed" else (t + 1) ** -0.5)) <= _NEAR
        f = f + model.learning_rate * beta * h
        good &= abs(mean_loss(f) - model.train_loss_[t + 1]) <= _NEAR * scale
        failed += not good
    if model.certificate_.kind == "greedy":
        return Recheck((failed + (not losses_agree)) / max(1, T), 0.0, rows.fingerprint)
    return Recheck(residual if losses_agree and not failed else np.inf, _NEAR, rows.fingerprint)


def _says(model: Any, learners: list[Any], t: int, K: int, X: Any) -> AnyArray:
    if model.stumps_ is None:
        parts = [np.asarray(learner.predict(X), dtype=np.float64).ravel() for learner in learners[t * K : t * K + K]]
        return np.stack(parts, axis=1)
    feature, threshold, value = learners[t]
    return np.where((column_of(X, feature) <= threshold)[:, None], value[0], value[1])


def _is_steepest(loss: Any, truth: AnyArray, weight: AnyArray, f: AnyArray, rows: Rows, stump: Any) -> bool:
    """Tell whether no stump ±1 has a larger −⟨g, h⟩: the least error of the labels sign(−g) with the weights |g|."""
    pull = -weight * loss.gradient(truth, f[:, 0])
    labelled = rows._replace(y=(pull > 0).astype(np.int64))
    D = np.abs(pull) / np.abs(pull).sum()
    return bool(_are_best(SimpleNamespace(n_classes_=2, variant="discrete"), labelled, [D], [stump])[0])


# --------------------------------------------------------------------------------------------------------------------
# The losses once more, each as one line of plain NumPy. Scores are (n,), or (n, K) for losses of class codes. A loss of
# the user's own is taken at its word: there is no other definition of it.


class Law(NamedTuple):
    """A loss of the rows, and what its targets and scores look like."""

    value: Callable[[AnyArray, AnyArray], AnyArray]  #: (targets, scores) → (n,)
    gradient: Callable[[AnyArray, AnyArray], AnyArray]  #: (targets, scores) → like the scores
    kind: str  #: "numbers", "signs" or "codes"

    def targets(self, y: AnyArray) -> AnyArray:
        """Return numbers or class codes as the loss takes them."""
        if self.kind == "signs":
            return np.where(y == 1, 1.0, -1.0)
        return y.astype(np.intp if self.kind == "codes" else np.float64)


def law_of(loss: Any, n_classes: int) -> Law:
    """Return the law of a loss, given by name or as an object, for numbers (no classes) or so many classes."""
    name = _NAMES.get(loss, loss) if isinstance(loss, str) else type(loss).__name__
    given = vars(loss) if hasattr(loss, "__dict__") else {}
    if n_classes > 2:
        name = {"LogisticLoss": "SoftmaxLoss", "HingeLoss": "MulticlassHingeLoss"}.get(name, name)
    if name in _MARGINS:
        return Law(*_MARGINS[name], "signs")
    if name in _CODES:
        return Law(*_CODES[name], "codes")
    if name in _NUMBERS:
        return Law(*_NUMBERS[name](given), "numbers")
    ancestors = {kind.__name__ for kind in type(loss).__mro__}
    kind = "signs" if "MarginLoss" in ancestors else "numbers"
    return Law(loss.value, loss.gradient, "codes" if "ArgmaxLoss" in ancestors else kind)


def _best_rival(y: AnyArray, z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the best class other than the true one, and one plus its lead over the true one."""
    every = np.arange(len(y))
    rivals = z.copy()
    rivals[every, y] = -np.inf
    rival = rivals.argmax(axis=1)
    return rival, 1.0 + z[every, rival] - z[every, y]


def _rival_slope(y: AnyArray, z: AnyArray) -> AnyArray:
    every = np.arange(len(y))
    rival, short = _best_rival(y, z)
    slope = np.zeros_like(z)
    slope[every, rival] = short >= 0.0
    slope[every, y] = -(short >= 0.0).astype(np.float64)
    return slope


_NAMES = {
    "squared_error": "SquaredLoss",
    "absolute_error": "AbsoluteLoss",
    "huber": "HuberLoss",
    "epsilon_insensitive": "EpsilonInsensitiveLoss",
    "quantile": "QuantileLoss",
    "poisson": "PoissonLoss",
    "gamma": "GammaLoss",
    "exponential": "ExponentialLoss",
    "log_loss": "LogisticLoss",
    "hinge": "HingeLoss",
    "squared_hinge": "SquaredHingeLoss",
}
_Pair = tuple[Callable[[AnyArray, AnyArray], AnyArray], Callable[[AnyArray, AnyArray], AnyArray]]
_MARGINS: dict[str, _Pair] = {
    "ExponentialLoss": (lambda y, z: np.exp(-y * z), lambda y, z: -y * np.exp(-y * z)),
    "LogisticLoss": (lambda y, z: np.logaddexp(0.0, -y * z), lambda y, z: -y * expit(-y * z)),
    "HingeLoss": (lambda y, z: np.maximum(1.0 - y * z, 0.0), lambda y, z: np.where(y * z <= 1.0, -y, 0.0)),
    "SquaredHingeLoss": (
        lambda y, z: np.maximum(1.0 - y * z, 0.0) ** 2,
        lambda y, z: -2.0 * y * np.maximum(1.0 - y * z, 0.0),
    ),
}
_CODES: dict[str, _Pair] = {
    "SoftmaxLoss": (
        lambda y, z: np.asarray(logsumexp(z, axis=1)) - z[np.arange(len(y)), y],
        lambda y, z: softmax(z, axis=1) - (np.arange(z.shape[1]) == y[:, None]),
    ),
    "MulticlassHingeLoss": (lambda y, z: np.maximum(_best_rival(y, z)[1], 0.0), _rival_slope),
}


def _huber(given: dict[str, Any]) -> _Pair:
    delta = given.get("delta", 1.0)

    def value(y: AnyArray, z: AnyArray) -> AnyArray:
        r = abs(z - y)
        return np.where(r <= delta, r**2 / 2, delta * (r - delta / 2))

    return value, lambda y, z: np.clip(z - y, -delta, delta)


def _tube(given: dict[str, Any]) -> _Pair:
    epsilon = given.get("epsilon", 0.1)
    return (
        lambda y, z: np.maximum(abs(z - y) - epsilon, 0.0),
        lambda y, z: np.sign(z - y) * (abs(z - y) > epsilon),
    )


def _quantile(given: dict[str, Any]) -> _Pair:
    tau = given.get("level", 0.5)
    return (
        lambda y, z: np.maximum(tau * (y - z), (1 - tau) * (z - y)),
        lambda y, z: (1 - tau) * (z > y) - tau * (z < y),
    )


_NUMBERS: dict[str, Callable[[dict[str, Any]], _Pair]] = {
    "SquaredLoss": lambda given: (lambda y, z: (z - y) ** 2 / 2, lambda y, z: z - y),
    "AbsoluteLoss": lambda given: (lambda y, z: abs(z - y), lambda y, z: np.sign(z - y)),
    "HuberLoss": _huber,
    "EpsilonInsensitiveLoss": _tube,
    "QuantileLoss": _quantile,
    "PoissonLoss": lambda given: (lambda y, z: np.exp(z) - y * z, lambda y, z: np.exp(z) - y),
    "GammaLoss": lambda given: (lambda y, z: z + y * np.exp(-z), lambda y, z: 1.0 - y * np.exp(-z)),
}
