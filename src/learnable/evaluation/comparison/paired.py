"""Two predictions of the same rows: by how much one scores better, with an interval.

Paired, because rows that are hard for one are hard for the other: what counts is the difference row by row. Scores that
are means (accuracy, MAE, log loss) have Student's interval of the differences; R² is made linear in the rows first;
others are resampled, both predictions together. Where rows come in groups, the groups are what varies, not the rows.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..intervals import Interval
from .measures import Measure, Prediction

Array = NDArray[np.float64]
_RESAMPLES: Final = 400


def paired_interval(
    measure: Measure,
    y: NDArray[Any],
    better: Prediction,
    worse: Prediction,
    level: float,
    seed: int = 0,
    groups: NDArray[np.int64] | None = None,
) -> tuple[float, Interval]:
    """Return by how much the first prediction scores better than the second, and an interval of it.

    The sign is such that greater is better for every measure.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.measures import Prediction, ranking_measure
    >>> from learnable.evaluation.comparison.paired import paired_interval
    >>> y = np.arange(20.0)
    >>> difference, interval = paired_interval(
    ...     ranking_measure("regression", "mae"), y, Prediction(y + 1), Prediction(y + 3), 0.95)
    >>> difference, interval.low, interval.high
    (2.0, 2.0, 2.0)
    """
    sign = 1.0 if measure.greater_is_better else -1.0
    difference = sign * (measure.function(y, better) - measure.function(y, worse))
    if len(y) < 2 or not math.isfinite(difference):
        return difference, Interval(-math.inf, math.inf, level, "too few rows")
    parts = _influence(measure, y, better, worse)
    if parts is None:
        return difference, _resampled(measure, y, better, worse, sign, level, seed, groups)
    return difference, _student(parts, difference, level, groups)


def _influence(measure: Measure, y: NDArray[Any], better: Prediction, worse: Prediction) -> Array | None:
    """Return numbers, one per row, whose mean is the difference of the scores; None if there are none."""
    if measure.name == "accuracy":
        return (y == better.values).astype(float) - (y == worse.values)
    if measure.name == "mae":
        return np.asarray(np.abs(y - worse.values) - np.abs(y - better.values))
    if measure.name == "log_loss" and better.probabilities is not None and worse.probabilities is not None:
        rows = np.arange(len(y)), y.astype(np.intp)
        ratio = np.clip(better.probabilities[rows], 1e-15, 1.0) / np.clip(worse.probabilities[rows], 1e-15, 1.0)
        return np.asarray(np.log(ratio))
    if measure.name == "r2":
        deviation = (y - y.mean()) ** 2
        spread = float(deviation.mean())
        if spread == 0.0:
            return None
        gain = ((y - worse.values) ** 2 - (y - better.values) ** 2) / spread
        return np.asarray(gain - gain.mean() * (deviation / spread - 1.0))
    return None


def _student(parts: Array, mean: float, level: float, groups: NDArray[np.int64] | None) -> Interval:
    centred = parts - parts.mean()
    if groups is None:
        n, total = len(parts), float(centred @ centred)
    else:
        sums = np.bincount(np.unique(groups, return_inverse=True)[1], weights=centred)
        n, total = len(sums), float(sums @ sums)
    if n < 2:
        return Interval(-math.inf, math.inf, level, "one group")
    half = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(n / (n - 1) * total) / len(parts)
    return Interval(mean - half, mean + half, level, "t of the paired rows" if groups is None else "t of paired groups")


def _resampled(
    measure: Measure,
    y: NDArray[Any],
    better: Prediction,
    worse: Prediction,
    sign: float,
    level: float,
    seed: int,
    groups: NDArray[np.int64] | None,
) -> Interval:
    rng = np.random.default_rng(seed)
    found = []
    members = None if groups is None else [np.flatnonzero(groups == g) for g in np.unique(groups)]
    for _ in range(_RESAMPLES):
        if members is None:
            rows = rng.integers(len(y), size=len(y))
        else:
            rows = np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))])
        a, b = (measure.function(y[rows], _take(prediction, rows)) for prediction in (better, worse))
        found.append(sign * (a - b))
    known = [value for value in found if math.isfinite(value)]
    if not known:
        return Interval(-math.inf, math.inf, level, "paired bootstrap")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "paired bootstrap")


def _take(prediction: Prediction, rows: NDArray[np.int64]) -> Prediction:
    p = prediction.probabilities
    return Prediction(prediction.values[rows], None if p is None else p[rows])
