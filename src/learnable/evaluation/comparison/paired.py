"""What a score on new rows is worth: its interval, and by how much one prediction of the same rows is better.

Paired, because rows that are hard for one are hard for the other: what counts is the difference row by row. Scores that
are means (accuracy, MAE, log loss) have Student's interval of the rows; R² is made linear in the rows first; others are
resampled, both predictions together. Where rows come in groups, the groups are what varies, not the rows; where they
have a time, rows near each other are alike, and stretches of time are what varies (batch means).

Reference: on batch means, J. Flegal and G. Jones, Batch means and spectral variance estimators in Markov chain Monte
Carlo, Annals of Statistics 38, 2010: about √n batches.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..intervals import Interval, score_interval
from .measures import Measure, Prediction

Array = NDArray[np.float64]
_RESAMPLES: Final = 400


class Units(NamedTuple):
    """What varies as a whole: each row's group or stretch of time, and what these are called."""

    codes: NDArray[np.int64]
    word: str

    def members(self) -> list[NDArray[np.intp]]:
        """Return the rows of each unit."""
        return [np.flatnonzero(self.codes == code) for code in np.unique(self.codes)]


def stretches(times: NDArray[Any]) -> Units:
    """Return stretches of time, about as many as each has distinct times; rows of one time stay together.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.paired import stretches
    >>> stretches(np.array([3, 1, 2, 2, 4, 5, 6, 7, 8, 9])).codes
    array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    """
    distinct, place = np.unique(times, return_inverse=True)
    count = max(1, math.isqrt(len(distinct)))
    return Units((place * count // len(distinct)).astype(np.int64), "stretches of time")


def holdout_interval(
    measure: Measure, y: NDArray[Any], prediction: Prediction, level: float, seed: int, units: Units | None = None
) -> Interval:
    """Return the interval of a measure on new rows, within what the measure can be.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.measures import Prediction, ranking_measure
    >>> from learnable.evaluation.comparison.paired import holdout_interval
    >>> y = np.array([0, 1, 1, 0])
    >>> holdout_interval(ranking_measure("binary"), y, Prediction(y), 0.95, 0).method
    'exact binomial'
    """
    if len(y) < 2:
        return Interval(-math.inf, math.inf, level, "one row")
    if measure.name == "accuracy" and units is None:
        return score_interval((y == prediction.values).astype(float), level=level)
    if measure.name == "r2" and float(np.ptp(y)) == 0.0:
        return Interval(-math.inf, math.inf, level, "constant target")
    if measure.name == "rmse":
        squares = np.asarray((y - prediction.values) ** 2)
        found = _student(squares, float(squares.mean()), level, units, "")
        low, high = (math.sqrt(max(end, 0.0)) for end in (found.low, found.high))
        return Interval(low, high, level, f"root of the t-interval{_of(units)}")
    parts = row_scores(measure, y, prediction)
    if parts is None:
        found = _resampled(lambda rows: measure.function(y[rows], _take(prediction, rows)), len(y), level, seed, units)
        return found._replace(method=f"bootstrap{_of(units)}")
    score = measure.function(y, prediction)
    name = "t of the linearised score" if measure.name == "r2" else "t"
    return _student(parts, score, level, units, f"{name}{_of(units)}").clipped(measure.low, measure.high)


def paired_interval(
    measure: Measure,
    y: NDArray[Any],
    better: Prediction,
    worse: Prediction,
    level: float,
    seed: int = 0,
    units: Units | None = None,
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
    one, other = (row_scores(measure, y, prediction) for prediction in (better, worse))
    if one is not None and other is not None:
        name = "t of the paired rows" if units is None else f"t of paired {units.word}"
        return difference, _student(sign * (one - other), difference, level, units, name)

    def of_rows(rows: NDArray[np.intp]) -> float:
        a, b = (measure.function(y[rows], _take(prediction, rows)) for prediction in (better, worse))
        return sign * (a - b)

    found = _resampled(of_rows, len(y), level, seed, units)
    return difference, found._replace(method=f"paired bootstrap{_of(units)}")


def row_scores(measure: Measure, y: NDArray[Any], prediction: Prediction) -> Array | None:
    """Return numbers, one per row, whose mean is the score; None if there are none.

    R² is no mean; (1 − R²)(y − ȳ)²/s² − (y − ŷ)²/s² + R² has its value and, for many rows, its variance.
    """
    if measure.name == "accuracy":
        return (y == prediction.values).astype(np.float64)
    if measure.name == "mae":
        return np.asarray(np.abs(y - prediction.values))
    if measure.name == "log_loss" and prediction.probabilities is not None:
        p = prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
        return np.asarray(-np.log(np.clip(p, 1e-15, 1.0)))
    if measure.name == "r2":
        deviation = (y - y.mean()) ** 2
        spread = float(deviation.mean())
        if spread == 0.0:
            return None
        error = (y - prediction.values) ** 2
        ratio = float(error.mean()) / spread
        return np.asarray(1.0 + (ratio * (deviation - spread) - error) / spread)
    return None


def _of(units: Units | None) -> str:
    return "" if units is None else f" of {units.word}"


def _student(parts: Array, mean: float, level: float, units: Units | None, method: str) -> Interval:
    """Return Student's interval of a mean over rows, or over units of rows."""
    centred = parts - parts.mean()
    if units is None:
        n = len(parts)
        total = float(centred @ centred)
    else:
        sums = np.bincount(np.unique(units.codes, return_inverse=True)[1], weights=centred)
        n = len(sums)
        total = float(sums @ sums)
    if n < 2:
        return Interval(-math.inf, math.inf, level, "one group")
    half = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(n / (n - 1) * total) / len(parts)
    return Interval(mean - half, mean + half, level, method)


def _resampled(statistic: Any, n: int, level: float, seed: int, units: Units | None) -> Interval:
    """Return percentiles of a statistic over resampled rows, or units of rows."""
    rng = np.random.default_rng(seed)
    members = None if units is None else units.members()
    if members is not None and len(members) < 2:
        return Interval(-math.inf, math.inf, level, "")
    found = []
    for _ in range(_RESAMPLES):
        if members is None:
            rows = rng.integers(n, size=n)
        else:
            rows = np.concatenate([members[k] for k in rng.integers(len(members), size=len(members))])
        found.append(statistic(rows))
    known = [value for value in found if math.isfinite(value)]
    if not known:
        return Interval(-math.inf, math.inf, level, "")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "")


def _take(prediction: Prediction, rows: NDArray[np.intp]) -> Prediction:
    p = prediction.probabilities
    return Prediction(prediction.values[rows], None if p is None else p[rows])
