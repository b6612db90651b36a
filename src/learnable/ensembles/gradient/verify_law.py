"""The law of boosting's rounds once more, for the checker: no round raises the loss, no step is needlessly small.

Nothing here is used by a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_ROUNDING = 1e-9  # relative; what sums in another order may add
_LOGARITHMIC = ("log_loss", "poisson", "gamma", "LogisticLoss", "PoissonLoss", "GammaLoss")


def sizes_agree(model: Any) -> bool:
    """Tell whether there are as many trees, steps and losses as rounds, and whether all are finite."""
    steps, K = np.asarray(model.steps_), int(model.n_trees_per_iteration_)
    rounds = getattr(model, "n_iter_", getattr(model, "n_estimators_", len(steps)))
    whole = model.trees_.n_trees == len(steps) * K and len(model.training_loss_) == len(steps) + 1
    return bool(whole and rounds == len(steps) and len(model.baseline_) == K and np.isfinite(steps).all())


def planned_step(model: Any, m: int) -> float | None:
    """Return the step of round m before any damping; None where it was searched."""
    if model.step == "line-search":
        return None
    return float(model.learning_rate) / (np.sqrt(m + 1.0) if model.step == "sqrt-decay" else 1.0)


def trusted(model: Any, step: Array) -> Array:
    """Return Newton's steps, cut at max(Δ, log(1 + |step|)) on logarithmic scales."""
    name = model.loss if isinstance(model.loss, str) else type(model.loss).__name__
    if name not in _LOGARITHMIC or (not isinstance(model.loss, str) and int(model.n_trees_per_iteration_) > 1):
        return step
    limit = np.maximum(2.0 if model.direction == "newton" else 32.0, np.log(1.0 + np.abs(step)))
    return np.minimum(np.maximum(step, -limit), limit)


def keeps_law(
    value: Callable[[Array, Array], Array], y: Array, F: Array, moves: Array, w: Array, drawn: Array, used: Ids,
    first: float,
) -> Callable[[float, float], bool]:  # fmt: skip
    """Return keeps(factor, slack): whether `factor` times the moves raise the loss by no more than slack.

    Where rows were drawn, either the loss of all rows or that of the drawn ones may be meant.
    """

    def means(scores: Array) -> tuple[float, float]:
        each = value(y, scores)
        return float(w @ each / w.sum()), float(drawn[used] @ each[used] / drawn[used].sum())

    before = means(F)

    def keeps(factor: float, slack: float = _ROUNDING) -> bool:
        after = means(F + factor * moves)
        return any(b <= a + slack * max(abs(a), abs(first)) for a, b in zip(before, after, strict=True))

    return keeps


def step_agrees(step: float, planned: float | None, keeps: Callable[[float, float], bool]) -> bool:
    """Tell whether a step is the planned one, halved only while the law would have been broken."""
    if planned is None or step == planned:
        return True
    if step == 0.0:
        return True  # refused: the moves are zero too, and cannot be tried again
    halvings = np.log2(planned / step) if step > 0 else np.nan
    return bool(halvings == np.rint(halvings) and halvings > 0 and not keeps(2.0, -_ROUNDING))
