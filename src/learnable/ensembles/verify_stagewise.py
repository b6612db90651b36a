"""Independent check of forward stagewise models: the rounds, replayed on the data.

f follows from the learners and their steps; after every round the mean loss is the one recorded, and the loss does not
fall any more along the learner beyond its step. Of stumps, none of any column has a steeper descent.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checking import Recheck
from .verify_adaboost import Rows, _are_best, read_rows
from .verify_losses import law_of

Array = NDArray[np.float64]

_NEAR = 1e-9
_STEP = 1e-7


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

    def mean_loss(f: Array) -> float:
        return float((weight * loss.value(truth, f if K > 1 else f[:, 0])).sum())

    def slope(f: Array, h: Array) -> float:
        g = loss.gradient(truth, f if K > 1 else f[:, 0]).reshape(f.shape)
        return float((weight[:, None] * g * h).sum())

    scale = max(1.0, float(np.abs(model.train_loss_).max())) if T else 1.0
    losses_agree = abs(mean_loss(f) - model.train_loss_[0]) <= _NEAR * scale
    failed, residual = 0, 0.0
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


def _says(model: Any, learners: list[Any], t: int, K: int, X: Any) -> Array:
    if model.stumps_ is None:
        parts = [np.asarray(learner.predict(X), dtype=np.float64).ravel() for learner in learners[t * K : t * K + K]]
        return np.stack(parts, axis=1)
    feature, threshold, value = learners[t]
    column = X[:, [feature]].toarray().ravel() if hasattr(X, "toarray") else np.asarray(X[:, feature])
    return np.where((column <= threshold)[:, None], value[0], value[1])


def _is_steepest(loss: Any, truth: Array, weight: Array, f: Array, rows: Rows, stump: Any) -> bool:
    """Tell whether no stump ±1 has a larger −⟨g, h⟩: the least error of the labels sign(−g) with the weights |g|."""
    pull = -weight * loss.gradient(truth, f[:, 0])
    labelled = rows._replace(y=(pull > 0).astype(np.int64))
    D = np.abs(pull) / np.abs(pull).sum()
    return bool(_are_best(SimpleNamespace(n_classes_=2, variant="discrete"), labelled, [D], [stump])[0])
