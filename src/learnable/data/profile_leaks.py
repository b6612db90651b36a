"""Columns that give the target away: what one column alone predicts on rows it was not fitted to.

A rule of one column is fitted to half of the rows and scored on the others: for a category the mean (or most frequent)
target of each level, for a number the same in each of some bins, or the neighbour's target. A column whose rule is
almost perfect, while the rules of the others are not, is suspected to be made from the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .encoder_read import Labels
from .sample import stride_for

Array = NDArray[np.float64]
Values = Array | Labels

ALMOST: Final = 0.99  # score of one column alone from which it is suspected
_OTHERS: Final = 0.9  # unless half of the other columns score this much as well
_BINS: Final = 64
_LEAST_ROWS: Final = 30
_LEAST_COPIES: Final = 5
_ENOUGH_ROWS: Final = 2**10
_MOST_ELEMENTS: Final = 2**22  # of all columns together: a wide table is judged by fewer rows


def find_leaks(
    features: Mapping[str, Values], target: Values, target_name: str, task: str, stride: int = 1
) -> dict[str, str]:
    """Return the suspected columns, each with the reason in words."""
    y, known = _target_numbers(target, task)
    rows = np.flatnonzero(known)[::stride]
    rows = rows[:: stride_for(len(rows), max(_ENOUGH_ROWS, _MOST_ELEMENTS // max(1, len(features))))]
    y = y[rows]
    found, scores = {}, {}
    for name, values in features.items():
        x = _numbers_of(values)[rows]
        if _spelled(name) == _spelled(target_name):
            found[name] = f"{name!r} has the name of the target."
        elif _is_copy(values, target, rows):
            found[name] = f"{name!r} is a copy of the target."
        elif len(rows) >= _LEAST_ROWS:
            scores[name] = _score_alone(x, isinstance(values, Labels), y, task)
    for name, score in scores.items():
        others = [other for key, other in scores.items() if key != name]
        if score > ALMOST and others and float(np.median(others)) < _OTHERS:
            what = "R²" if task == "regression" else "share of errors avoided"
            found[name] = (
                f"{name!r} alone predicts the target almost perfectly ({what} {score:.4f}); was it known before?"
            )
    return found


def _score_alone(x: Array, is_label: bool, y: Array, task: str) -> float:
    """Return how much of the error of a constant the best one-column rule avoids on the rows it has not seen."""
    train = _every_other(len(y))
    test = ~train
    x_train, y_train, x_test, y_test = x[train], y[train], x[test], y[test]
    if is_label:
        rules = [_by_level(x_train, y_train, x_test, task)]
    else:
        present = ~np.isnan(x_train)
        if present.sum() < 2:
            return 0.0
        edges = np.unique(np.quantile(x_train[present], np.linspace(0, 1, _BINS + 1)[1:-1]))
        binned = [np.where(np.isnan(v), -1, np.searchsorted(edges, v, side="right")) for v in (x_train, x_test)]
        rules = [_by_level(binned[0].astype(float), y_train, binned[1].astype(float), task)]
        rules.append(_by_neighbour(x_train, y_train, x_test, task))
    constant = _constant(y_train, task)
    base = _error(np.full(len(y_test), constant), y_test, task)
    return max((1 - _error(guess, y_test, task) / base for guess in rules), default=0.0) if base > 0 else 0.0


def _every_other(n: int) -> NDArray[np.bool_]:
    """Return a fixed half of the rows that follows no period of the table's own."""
    mixed = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray((mixed >> np.uint64(40)) % np.uint64(2) == 0)


def _by_level(x: Array, y: Array, x_new: Array, task: str) -> Array:
    levels, codes = np.unique(x, return_inverse=True)
    if task == "regression":
        answers = np.bincount(codes, y) / np.bincount(codes)
    else:
        k = int(y.max()) + 1
        counts = np.bincount(codes * k + y.astype(np.int64), minlength=len(levels) * k).reshape(-1, k)
        answers = counts.argmax(axis=1).astype(float)
    place = np.clip(np.searchsorted(levels, x_new), 0, len(levels) - 1)
    return np.where(levels[place] == x_new, answers[place], _constant(y, task))


def _by_neighbour(x: Array, y: Array, x_new: Array, task: str) -> Array:
    present = ~np.isnan(x)
    order = np.argsort(x[present], kind="stable")
    xs, ys = x[present][order], y[present][order]
    constant = _constant(y, task)
    known = ~np.isnan(x_new)
    guess = np.full(len(x_new), constant)
    if task == "regression":
        guess[known] = np.interp(x_new[known], xs, ys)
        return guess
    right = np.clip(np.searchsorted(xs, x_new[known]), 1, len(xs) - 1)
    nearer_left = x_new[known] - xs[right - 1] < xs[right] - x_new[known]
    guess[known] = ys[np.where(nearer_left, right - 1, right)]
    return guess


def _constant(y: Array, task: str) -> float:
    return float(y.mean()) if task == "regression" else float(np.bincount(y.astype(np.int64)).argmax())


def _error(guess: Array, y: Array, task: str) -> float:
    return float(((guess - y) ** 2).mean()) if task == "regression" else float((guess != y).mean())


def _target_numbers(target: Values, task: str) -> tuple[Array, NDArray[np.bool_]]:
    numbers = _numbers_of(target)
    known = np.isfinite(numbers)
    if task != "regression" and known.any():
        codes = np.zeros(len(numbers))
        codes[known] = np.unique(numbers[known], return_inverse=True)[1]
        numbers = codes
    return numbers, known


def _numbers_of(values: Values) -> Array:
    if not isinstance(values, Labels):
        size = np.abs(values).max(initial=0.0, where=np.isfinite(values)) or 1.0
        return np.where(np.isinf(values), np.nan, values) / size  # differences and squares of huge numbers overflow
    return np.where(values.codes < 0, np.nan, values.codes)


def _is_copy(values: Values, target: Values, rows: NDArray[np.int64]) -> bool:
    if isinstance(values, Labels) != isinstance(target, Labels) or len(rows) < _LEAST_COPIES:
        return False
    if isinstance(values, Labels) and isinstance(target, Labels):
        code_of = {value: code for code, value in enumerate(target.values)}
        lookup = np.array([code_of.get(value, -2) for value in values.values] + [-1])
        return bool(np.array_equal(lookup[values.codes[rows]], target.codes[rows]))
    return bool(np.array_equal(np.asarray(values)[rows], np.asarray(target)[rows]))


def _spelled(name: Any) -> str:
    return "".join(character for character in str(name).lower() if character.isalnum())
