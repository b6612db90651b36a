"""Ways to cut rows into training and test rows: folds, strata, whole groups, time, and one hold-out.

    kfold       every row is tested once; fold sizes differ by at most one
    stratified  the same, and every class's share too differs by at most one row between folds
    grouped     rows of one group stay together
    time        train on the past, test on what follows; equal times stay together

Rows are numbered as they are given. The result depends on nothing but the arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import RANDOM_STATE, DataError, Number, Options, ParameterError, check_parameters, optional
from ..data.door import read_values

Rows = NDArray[np.int64]
Split = tuple[Rows, Rows]

SCHEMES = ("kfold", "stratified", "grouped", "time")
TASKS = ("regression", "binary", "multiclass", "classification")


def make_splits(
    rows: Any,
    *,
    scheme: str = "kfold",
    n_splits: int = 5,
    repeats: int = 1,
    groups: Any = None,
    time: Any = None,
    random_state: Any = 0,
) -> list[Split]:
    """Return (training rows, test rows) of every fold.

    Parameters
    ----------
    rows : int or array of shape (n_rows,)
        How many rows there are, or their targets. `scheme="stratified"` needs the targets.
    scheme : {"kfold", "stratified", "grouped", "time"}
        How to cut; see the module's table.
    n_splits : int
        Number of folds. By time, the rows are cut into `n_splits + 1` blocks, and all but the first are tested.
    repeats : int
        How often to cut anew, with other random numbers; by time only once.
    groups : array of shape (n_rows,), optional
        The group of each row, for `scheme="grouped"`.
    time : array of shape (n_rows,), optional
        When each row was seen: numbers, dates or text that sorts by time. None is the order of the rows.
    random_state : int, Generator, RandomState or None
        Where randomness comes from.

    Returns
    -------
    list of (train, test)
        Sorted row numbers.

    Examples
    --------
    >>> from learnable.evaluation import make_splits
    >>> [test.tolist() for train, test in make_splits(6, scheme="time", n_splits=2)]
    [[2, 3], [4, 5]]
    >>> [len(test) for train, test in make_splits(["a", "b"] * 5, scheme="stratified", n_splits=5)]
    [2, 2, 2, 2, 2]
    """
    given = {"scheme": scheme, "n_splits": n_splits, "repeats": repeats, "random_state": random_state}
    rules = {
        "scheme": Options(*SCHEMES),
        "n_splits": Number(low=2, integer=True),
        "repeats": Number(low=1, integer=True),
        "random_state": RANDOM_STATE,
    }
    check_parameters("make_splits", given, rules)
    y, n_rows = _targets_and_number("make_splits", rows)
    if n_rows < n_splits:
        raise DataError(
            f"make_splits: {n_rows} row(s) cannot be cut into {n_splits} folds; use at most {max(n_rows, 2)} folds, "
            "or get more rows."
        )
    if scheme == "time":
        if repeats > 1:
            raise ParameterError(f"make_splits: time can be cut in one way only; got repeats={repeats}. Use repeats=1.")
        times = np.arange(n_rows) if time is None else time
        return _time_splits(codes_of("make_splits", times, n_rows, "time"), n_splits)
    generators = as_generator(random_state).spawn(repeats)
    if scheme == "grouped":
        if groups is None:
            raise ParameterError("make_splits: scheme 'grouped' needs groups; pass the group of each row.")
        codes = codes_of("make_splits", groups, n_rows, "groups")
        numbers = [_grouped_folds(codes, n_splits, rng) for rng in generators]
    elif scheme == "stratified":
        if y is None:
            raise ParameterError("make_splits: scheme 'stratified' needs the targets; got a number of rows.")
        codes = codes_of("make_splits", y, n_rows, "y")
        numbers = [_dealt_folds(codes, n_splits, rng) for rng in generators]
    else:
        numbers = [_dealt_folds(np.zeros(n_rows, dtype=np.int64), n_splits, rng) for rng in generators]
    return [_split_of(fold_of == fold) for fold_of in numbers for fold in range(n_splits)]


def hold_out(
    rows: Any,
    *,
    share: float = 0.2,
    task: str | None = None,
    groups: Any = None,
    time: Any = None,
    random_state: Any = 0,
) -> Split:
    """Return training rows and the rows to set aside.

    Parameters
    ----------
    rows : int or array of shape (n_rows,)
        How many rows there are, or their targets.
    share : float
        The share to set aside, at least one row and not all of them.
    task : {"regression", "binary", "multiclass", "classification"} or None
        For classes, each keeps its share within one row, and a class of one member is trained on.
    groups : array of shape (n_rows,), optional
        Whole groups are set aside.
    time : array of shape (n_rows,), optional
        The last rows by time are set aside.
    random_state : int, Generator, RandomState or None
        Where randomness comes from.

    Returns
    -------
    train, test : arrays
        Sorted row numbers.

    Examples
    --------
    >>> from learnable.evaluation import hold_out
    >>> train, test = hold_out(["a", "b"] * 10, share=0.2, task="binary")
    >>> sorted(test % 2)  # two of each class
    [np.int64(0), np.int64(0), np.int64(1), np.int64(1)]
    """
    rules = {
        "share": Number(low=0.0, high=1.0, low_open=True, high_open=True),
        "task": optional(Options(*TASKS)),
        "random_state": RANDOM_STATE,
    }
    check_parameters("hold_out", {"share": share, "task": task, "random_state": random_state}, rules)
    y, n_rows = _targets_and_number("hold_out", rows)
    if n_rows < 2:
        raise DataError(f"hold_out: needs at least 2 rows, one to train on and one to set aside; got {n_rows}.")
    if groups is not None and time is not None:
        raise ParameterError("hold_out: rows can be set aside by groups or by time, not both; pass one of them.")
    rng = as_generator(random_state)
    wanted = int(np.clip(np.floor(share * n_rows + 0.5), 1, n_rows - 1))
    if time is not None:
        codes = codes_of("hold_out", time, n_rows, "time")
        return _split_of(codes >= _cuts_in_time("hold_out", codes, [n_rows - wanted])[0])
    if groups is not None:
        return _split_of(_whole_groups(codes_of("hold_out", groups, n_rows, "groups"), wanted, rng))
    if task in (None, "regression") or y is None:
        held = np.zeros(n_rows, dtype=bool)
        held[rng.permutation(n_rows)[:wanted]] = True
        return _split_of(held)
    return _split_of(_share_of_classes(codes_of("hold_out", y, n_rows, "y"), wanted, rng))


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator from a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    return np.random.default_rng(random_state)


def codes_of(owner: str, values: Any, n_rows: int, name: str) -> NDArray[np.int64]:
    """Return the position of each value among the sorted distinct values; missing values are refused."""
    array = np.asarray(read_values(owner, values))
    if array.shape == (n_rows, 1):
        array = array[:, 0]
    if array.shape != (n_rows,):
        raise DataError(f"{owner}: {name} must have shape ({n_rows},), one value per row; got {array.shape}.")
    missing = array != array  # NaN and NaT differ from themselves
    if array.dtype == object:
        missing = missing | np.array([value is None for value in array])
    if np.any(missing):
        row = int(np.argmax(missing))
        raise DataError(f"{owner}: {name} is missing in row {row}; fill it in, or leave such rows out.")
    try:
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    except TypeError as error:  # numbers among text, for example
        if name == "time":
            raise DataError(f"{owner}: the values of time cannot be compared ({error}); pass one type only.") from error
        codes: dict[Any, int] = {}
        return np.array([codes.setdefault(value, len(codes)) for value in array], dtype=np.int64)


def _targets_and_number(owner: str, rows: Any) -> tuple[Any, int]:
    """Return the targets, if any, and the number of rows."""
    if isinstance(rows, (int, np.integer)) and not isinstance(rows, bool):
        if rows < 1:
            raise DataError(f"{owner}: there must be at least one row; got {rows}.")
        return None, int(rows)
    values = np.asarray(read_values(owner, rows))
    if values.ndim == 0:
        raise DataError(f"{owner}: rows must be a number of rows or their targets; got {rows!r}.")
    if len(values) == 0:
        raise DataError(f"{owner}: there must be at least one row; got an empty array.")
    return values, len(values)


def _split_of(held: NDArray[np.bool_]) -> Split:
    return np.flatnonzero(~held), np.flatnonzero(held)


def _dealt_folds(codes: Rows, n_splits: int, rng: np.random.Generator) -> Rows:
    """Return the fold of each row: shuffled rows, ordered by class, are dealt out like cards."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold_of = np.empty(len(codes), dtype=np.int64)
    fold_of[order] = np.arange(len(codes)) % n_splits
    return fold_of


def _grouped_folds(codes: Rows, n_splits: int, rng: np.random.Generator) -> Rows:
    """Return the fold of each row: groups in random order, the largest first, go where the fewest rows are."""
    sizes = np.bincount(codes)
    if len(sizes) < n_splits:
        raise DataError(
            f"make_splits: {len(sizes)} group(s) cannot be cut into {n_splits} folds; use at most "
            f"{max(len(sizes), 2)} folds, or finer groups."
        )
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of_group = np.empty(len(sizes), dtype=np.int64)
    filled = np.zeros(n_splits, dtype=np.int64)
    for group in order:
        fold_of_group[group] = np.argmin(filled)
        filled[fold_of_group[group]] += sizes[group]
    return np.asarray(fold_of_group[codes])


def _time_splits(codes: Rows, n_splits: int) -> list[Split]:
    n_rows = len(codes)
    block = max(n_rows // (n_splits + 1), 1)
    starts = _cuts_in_time("make_splits", codes, [n_rows - block * left for left in range(n_splits, 0, -1)])
    ends = [*starts[1:], int(codes.max()) + 1]
    return [
        (np.flatnonzero(codes < start), np.flatnonzero((codes >= start) & (codes < end)))
        for start, end in zip(starts, ends, strict=True)
    ]


def _cuts_in_time(owner: str, codes: Rows, wanted: list[int]) -> list[int]:
    """Return increasing times before which there are about `wanted` rows; rows of one time stay together."""
    before = np.concatenate([[0], np.cumsum(np.bincount(codes))[:-1]])  # rows before each time
    n_times = len(before)
    n_cuts = len(wanted)
    if n_times <= n_cuts:
        raise DataError(
            f"{owner}: {n_times} distinct time(s) cannot be cut into {n_cuts + 1} blocks, each after the other; use "
            "fewer folds, or finer times."
        )
    cuts: list[int] = []
    for number, target in enumerate(wanted):
        nearest = int(np.argmin(np.abs(before - target)))
        first = cuts[-1] + 1 if cuts else 1
        cuts.append(int(np.clip(nearest, first, n_times - (n_cuts - number))))
    return cuts


def _whole_groups(codes: Rows, wanted: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Tell which rows to set aside: random groups, as long as each brings their number nearer to `wanted`."""
    sizes = np.bincount(codes)
    if len(sizes) < 2:
        raise DataError("hold_out: all rows are of one group, which cannot be both trained on and set aside.")
    held = np.zeros(len(sizes), dtype=bool)
    total = 0
    for group in rng.permutation(len(sizes)):
        better = abs(total + sizes[group] - wanted) < abs(total - wanted)
        if (better or total == 0) and held.sum() < len(sizes) - 1:
            held[group] = True
            total = total + int(sizes[group])
    return np.asarray(held[codes])


def _share_of_classes(codes: Rows, wanted: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Tell which rows to set aside: every class in proportion, but never the last member of one."""
    counts = np.bincount(codes)
    ideal = wanted * counts / len(codes)
    quota = np.minimum(np.floor(ideal).astype(np.int64), counts - 1)
    while quota.sum() < wanted and (quota < counts - 1).any():
        quota[np.argmax(np.where(quota < counts - 1, ideal - quota, -np.inf))] += 1
    held = np.zeros(len(codes), dtype=bool)
    for number, take in enumerate(quota):
        members = rng.permutation(np.flatnonzero(codes == number))
        held[members[:take]] = True
    if not held.any():  # every row is a class of its own
        held[rng.integers(len(codes))] = True
    return held
