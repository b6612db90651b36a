"""Independent check of boosting by majority: every vote's errors, from the rows and the recorded hypotheses alone.

The distributions are derived afresh, top down: under D₂ half of the weight is on the rows that the first hypothesis
gets wrong, under D₃ all of it on the rows where the first two differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Array, NDArray, Recheck
from .verify_adaboost import column_of, read_rows

_ROUNDING = 1e-11  # what rounding may add to a share of rows


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def boost_by_majority(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of a BoostByMajority."""
    rows = read_rows(model, X, y, sample_weight)
    truth = rows.y == 1
    D = np.exp(rows.log_weight)
    says = [_says(model, learner, rows.X) for learner in (model.stumps_ or model.models_ or [])]
    W = len(says)
    worst = 0.0
    shape_agrees = model.vote_errors_.shape == (len(model.votes_), 4)

    def named(h: int) -> NDArray[np.bool_]:
        if h < 0:
            return np.full(len(truth), h == -2)
        if h < W:
            return says[h]
        first, second, third = (named(int(part)) for part in model.votes_[h - W])
        return (first & second) | (first & third) | (second & third)

    waiting: list[tuple[int, Array]] = [(model.root_, D)]
    seen = 0
    while waiting and shape_agrees:
        h, weight = waiting.pop()
        if h < W:
            continue
        one, two, three = (int(part) for part in model.votes_[h - W])
        first = named(one)
        second = named(two)
        wrong = first != truth
        halves = np.where(wrong, weight / (2 * weight[wrong].sum()), weight / (2 * weight[~wrong].sum()))
        differing = np.where(first != second, weight, 0.0) / weight[first != second].sum()
        errors = np.array(
            [
                weight[wrong].sum(),
                halves[second != truth].sum(),
                differing[named(three) != truth].sum(),
                weight[named(h) != truth].sum(),
            ]
        )
        alpha = errors[:3].max()
        above = errors[3] - (3 * alpha**2 - 2 * alpha**3) if alpha < 0.5 else 0.0
        worst = max(worst, above, float(np.abs(errors - model.vote_errors_[h - W]).max()))
        worst = np.inf if np.isnan(errors).any() else worst
        waiting += [(one, weight), (two, halves), (three, differing)]
        seen += 1
    if model.stumps_ is not None:
        worst = max(worst, *(_off_centre(rows.X, feature, threshold) for feature, threshold, _ in model.stumps_))
    worst = max(worst, abs(float(D[named(model.root_) != truth].sum()) - model.error_))
    agrees = shape_agrees and seen == len(model.votes_)
    return Recheck(worst if agrees else np.inf, _ROUNDING, rows.fingerprint)


def _off_centre(X: Any, feature: int, threshold: float) -> float:
    """Return how far a threshold is from where it should be, relative to the values around it.

    That is halfway between two values; the largest value, or just below the smallest, where all rows are on one side.
    """
    column = column_of(X, feature)
    below = column[column <= threshold].max(initial=-np.inf)
    above = column[column > threshold].min(initial=np.inf)
    if np.isfinite(below) and np.isfinite(above):
        away = float(abs(threshold - (below / 2 + above / 2)) / max(abs(below), abs(above)))
        return max(0.0, away - float(np.finfo(X.dtype).eps) / 2) if X.dtype == np.float32 else away
    expected = below if np.isfinite(below) else np.nextafter(above, -np.inf)
    return 0.0 if threshold == expected else np.inf


def _says(model: Any, learner: Any, X: Any) -> NDArray[np.bool_]:
    if model.stumps_ is None:
        return np.asarray(learner.predict(X)) == model.classes_[1]
    feature, threshold, value = learner
    left, right = np.asarray(value)[:, 0] > 0
    return np.where(column_of(X, feature) <= threshold, left, right)
