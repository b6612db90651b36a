"""Baselines of rows in time: the last value, and the value one season ago.

Both say of a row what the target was before: at the latest earlier time (*last value*), or one season earlier, in the
latest of the rows seven days, twenty-four hours, twelve months … before (*seasonal*). Of several rows at that time the
mean is taken, or the most frequent class. Where the rows are of groups, such as shops, each has its own past. They use
every target before the row, those of test rows too: what is known when each target arrives before the next row. A
row without such a past gets the mean, or the most frequent class, of the training rows.
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..splits import Split
from .leaderboard import fill_row
from .measures import Measure, Prediction, measure_all
from .problem import Problem
from .race import Outcome
from .record import Row, new_row

_SEASONS_BACK: Final = 5  # how many seasons ago a value may be, where the last one has no row


class Season(NamedTuple):
    """How long a season is, in steps of the calendar."""

    unit: str  #: NumPy's unit of a step: "h", "D", "W", "M"
    step: int  #: units a step has: three months are a quarter
    length: int  #: steps of a season
    words: str


_SEASONS: Final = (  # (from, to) days between two times
    ((0.03, 0.055), Season("h", 1, 24, "24 hours before")),
    ((0.9, 1.6), Season("D", 1, 7, "7 days before")),
    ((6.5, 7.5), Season("W", 1, 52, "52 weeks before")),
    ((27.5, 31.5), Season("M", 1, 12, "12 months before")),
    ((88.0, 93.0), Season("M", 3, 4, "4 quarters before")),
)


def season_of(times: NDArray[Any]) -> Season | None:
    """Return the season of rows in time, by the usual distance of two times; None where there is none to expect.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.series import season_of
    >>> season_of(np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]").astype("datetime64[us]")).words
    '7 days before'
    >>> season_of(np.arange(10)) is None
    True
    """
    if times.dtype.kind != "M":
        return None
    distinct = np.unique(times)
    if len(distinct) < 3:
        return None
    days = float(np.median(np.diff(distinct) / np.timedelta64(1, "us"))) / 86_400e6
    return next((season for (low, high), season in _SEASONS if low <= days <= high), None)


def past_names(problem: Problem) -> list[str]:
    """Return the names of the baselines that a problem in time has."""
    if problem.times is None:
        return []
    season = season_of(problem.times)
    return ["baseline: the last value", *([] if season is None else [f"baseline: the value {season.words}"])]


def about_past(problem: Problem, groups: str | None) -> list[str]:
    """Say what the baselines of rows in time use, in one sentence; nothing where there are none."""
    names = [name.removeprefix("baseline: ") for name in past_names(problem)]
    if not names:
        return []
    own = f" of the same {groups!r}" if groups is not None else ""
    return [
        f"baselines in time: {' and '.join(names)}, from the targets{own} before each row, those of test rows too, "
        "which the models do not know"
    ]


def predict_by_past(problem: Problem, name: str, train: NDArray[np.int64], test: NDArray[np.int64]) -> Prediction:
    """Return what a baseline says of the test rows, from the targets of all rows before each."""
    assert problem.times is not None
    rows = np.union1d(train, test)
    series = np.zeros(len(rows), dtype=np.int64) if problem.series is None else problem.series[rows]
    position = np.searchsorted(rows, test)
    season = season_of(problem.times) if name != "baseline: the last value" else None
    values = np.full(len(test), np.nan)
    for one in np.unique(series[position]):
        members = rows[series == one]
        mine = np.flatnonzero(series[position] == one)
        when, level = _levels(problem, members)
        asked = problem.times[test[mine]]
        if season is not None:
            values[mine] = _one_season_ago(when, level, asked, season)
        empty = mine[np.isnan(values[mine])]
        values[empty] = _before(when, level, problem.times[test[empty]])
    return _as_prediction(problem, values, train)


def _levels(problem: Problem, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the distinct times of some rows, and the mean target, or most frequent class, at each."""
    assert problem.times is not None
    when, place = np.unique(problem.times[rows], return_inverse=True)
    y = problem.y[rows]
    if problem.labels is None:
        return when, np.bincount(place, weights=y) / np.bincount(place)
    counts = np.zeros((len(when), len(problem.labels)))
    np.add.at(counts, (place, y.astype(np.intp)), 1.0)
    return when, counts.argmax(axis=1).astype(np.float64)


def _before(when: NDArray[Any], level: NDArray[np.float64], asked: NDArray[Any]) -> NDArray[np.float64]:
    """Return the level at the latest time before each time asked for; NaN where there is none."""
    place = np.searchsorted(when, asked, side="left") - 1
    return np.where(place >= 0, level[np.maximum(place, 0)], np.nan)


def _one_season_ago(
    when: NDArray[Any], level: NDArray[np.float64], asked: NDArray[Any], season: Season
) -> NDArray[np.float64]:
    """Return the level one season before each time asked for, or two, or three …; NaN where there is none."""
    steps, wanted = (_steps(times, season) for times in (when, asked))
    last = np.concatenate([steps[1:] != steps[:-1], [True]])  # of several times in one step the latest counts
    steps = steps[last]
    level = level[last]
    found = np.full(len(asked), np.nan)
    for back in range(1, _SEASONS_BACK + 1):
        target = wanted - back * season.length
        place = np.minimum(np.searchsorted(steps, target), len(steps) - 1)
        there = np.isnan(found) & (steps[place] == target)
        found[there] = level[place[there]]
    return found


def _steps(times: NDArray[Any], season: Season) -> NDArray[np.int64]:
    if season.unit == "W":  # NumPy's weeks begin on Thursdays
        return np.asarray((times.astype("datetime64[D]").astype(np.int64) + 3) // 7)
    return np.asarray(times.astype(f"datetime64[{season.unit}]").astype(np.int64) // season.step)


def _as_prediction(problem: Problem, values: NDArray[np.float64], train: NDArray[np.int64]) -> Prediction:
    gaps = np.isnan(values)
    y = problem.y[train]
    if problem.labels is None:
        return Prediction(np.where(gaps, y.mean(), values))
    k = len(problem.labels)
    shares = np.bincount(y.astype(np.intp), minlength=k) / len(y)
    codes = np.where(gaps, shares.argmax(), values).astype(np.int64)
    # A guess of one class with certainty would have an infinite log loss: half of the weight is the classes' shares.
    probabilities = 0.5 * shares[None, :] + 0.5 * np.eye(k)[codes]
    return Prediction(codes, np.asarray(probabilities))


def constant_prediction(problem: Problem, train: NDArray[np.int64], test: NDArray[np.int64]) -> Prediction:
    """Return the mean, or the shares of the classes, of the training rows for every test row."""
    y = problem.y[train]
    if problem.labels is None:
        return Prediction(np.full(len(test), float(y.mean())))
    shares = np.bincount(y.astype(np.intp), minlength=len(problem.labels)) / len(y)
    return Prediction(np.full(len(test), int(shares.argmax())), np.tile(shares, (len(test), 1)))


def past_rows(problem: Problem, splits: list[Split], measure: Measure, level: float) -> list[Row]:
    """Return the lines of the baselines that know the past, scored on the folds; none where rows have no time."""
    found = []
    for name in past_names(problem):
        messages = []
        for train, test in splits:
            began = time.perf_counter()
            prediction = predict_by_past(problem, name, train, test)
            seconds = time.perf_counter() - began
            on_training_rows = predict_by_past(problem, name, train, train)
            messages.append(
                {
                    "test": measure_all(problem.task, problem.y[test], prediction),
                    "train": measure_all(problem.task, problem.y[train], on_training_rows),
                    "fit_seconds": 0.0,
                    "predict_seconds": seconds,
                    "certificate": None,
                }
            )
        row = new_row(name, "past values", {}, baseline=True)
        sizes = np.array([[len(train), len(test)] for train, test in splits], dtype=np.float64)
        share = float(sizes[:, 1].mean() / sizes.sum(axis=1).mean())
        fill_row(row, Outcome("ok", None, messages), measure, len(splits), share, level)
        found.append(row)
    return found


def baseline_prediction(problem: Problem, name: str, split: Split) -> Prediction:
    """Return what the baseline of a line says of the test rows of a split."""
    train, test = split
    if name in past_names(problem):
        return predict_by_past(problem, name, train, test)
    return constant_prediction(problem, train, test)
