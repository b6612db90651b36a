"""Which rows are trained on and which are tested: the hold-out, the folds, and further ways to cut the folds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..splits import Split, hold_out, make_splits
from .problem import Problem

HOLDOUT_SHARE: Final = 0.2
WORDS: Final = {"kfold": "", "stratified": "stratified ", "grouped": "grouped ", "time": "forward-in-time "}


def cut(problem: Problem, folds: int, seed: int) -> tuple[str, Split, list[Split]]:
    """Set the hold-out aside and cut the rest into folds; return the scheme, the final split and the folds.

    Copies of a row are where the row is; classes keep their shares all the same.
    """
    final = _whole(problem, _set_aside(problem, seed))
    return scheme_of(problem), final, cut_again(problem, final, folds, seed, 0)


def cut_as_given(problem: Problem, seed: int) -> Split:
    """Set rows aside as if no row were a copy of another."""
    return hold_out(problem.y, share=HOLDOUT_SHARE, task=problem.task, random_state=seed)


def cut_again(problem: Problem, final: Split, folds: int, seed: int, repeat: int) -> list[Split]:
    """Cut the training rows into folds; each `repeat` gives other ones, except by time."""
    rows = final[0]
    scheme = scheme_of(problem)
    first = _first_rows(problem, rows)
    inner = make_splits(
        problem.y[first],
        scheme=scheme,
        n_splits=max(2, min(folds, len(first) // 2)),  # R² needs two rows to test on
        groups=None if scheme != "grouped" or problem.groups is None else problem.groups[first],
        time=None if problem.times is None else problem.times[first],
        random_state=seed + 1 + 1000 * repeat,
    )
    return [
        (_with_copies(problem, rows, first[train]), _with_copies(problem, rows, first[test])) for train, test in inner
    ]


def scheme_of(problem: Problem) -> str:
    """Return how the rows are cut."""
    if problem.times is not None:
        return "time"
    if problem.grouping == "groups":
        return "grouped"
    return "kfold" if problem.labels is None else "stratified"


def _set_aside(problem: Problem, seed: int) -> Split:
    groups = problem.groups if problem.grouping == "groups" else None
    first = _first_rows(problem, np.arange(len(problem.y)))
    train, test = hold_out(
        problem.y[first],
        share=HOLDOUT_SHARE,
        task=problem.task,
        groups=None if groups is None else groups[first],
        time=None if problem.times is None else problem.times[first],
        random_state=seed,
    )
    return first[train], first[test]


def _whole(problem: Problem, split: Split) -> Split:
    everything = np.arange(len(problem.y))
    train, test = (_with_copies(problem, everything, rows) for rows in split)
    return train, test


def _first_rows(problem: Problem, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one row for all that are copies of it; every row where copies need no care."""
    if problem.grouping != "copies" or problem.groups is None:
        return rows
    return rows[np.sort(np.unique(problem.groups[rows], return_index=True)[1])]


def _with_copies(problem: Problem, rows: NDArray[np.int64], chosen: Any) -> NDArray[np.int64]:
    """Return the chosen rows and those of `rows` that are copies of them."""
    if problem.grouping != "copies" or problem.groups is None:
        return np.asarray(chosen)
    return rows[np.isin(problem.groups[rows], problem.groups[chosen])]
