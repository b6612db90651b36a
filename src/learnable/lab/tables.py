"""Tables of the scenes: what a user's table has to hold, and the small ones that are built in.

A table is a dataframe, a dict of columns, an array, or the path of a file. A scene takes the first columns that suit
it, and at most `MOST_ROWS` rows: pictures of more would show nothing new.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..core import Array, DataError, NDArray

MOST_ROWS: Final = 300
MOST_CLASSES: Final = 8
_FEWEST_ROWS: Final = 4


def columns_of(owner: str, table: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a table by name; those of an array are called x1, x2 and so on."""
    if isinstance(table, (str, os.PathLike)):
        from ..data.files import read_table

        table = read_table(table)
    if isinstance(table, Mapping):
        columns = {str(name): np.asarray(values) for name, values in table.items()}
    elif hasattr(table, "__array_interface__") or isinstance(table, (list, tuple)):
        try:
            rows = np.asarray(table)
        except ValueError as error:
            raise DataError(f"{owner}: the rows of the table must be of one length; {error}.") from error
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2:
            raise DataError(f"{owner}: the table must have rows and columns; got {rows.ndim} dimensions.")
        columns = {f"x{j + 1}": rows[:, j] for j in range(rows.shape[1])}
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError as error:
            raise DataError(
                f"{owner}: the table must be a dataframe, a dict of columns, an array or the path of a file; "
                f"got {type(table).__name__}."
            ) from error
        columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    if len({len(values) for values in columns.values()}) > 1:
        raise DataError(f"{owner}: the columns of the table must be of one length.")
    return columns


def take_numbers(owner: str, columns: Mapping[str, NDArray[Any]], count: int, least: int = _FEWEST_ROWS) -> list[str]:
    """Return the names of the first `count` columns of different finite numbers; raise if there are fewer."""
    found = [name for name, values in columns.items() if _is_numeric(values)]
    if len(found) < count:
        words = "a column of numbers" if count == 1 else f"{count} columns of numbers"
        raise DataError(f"{owner}: the table must hold {words} that differ, without gaps; it holds {len(found)}.")
    if len(columns[found[0]]) < least:
        raise DataError(f"{owner}: the table must have at least {least} rows; it has {len(columns[found[0]])}.")
    return found[:count]


def points(owner: str, table: Any) -> tuple[Array, list[str]]:
    """Return two columns of numbers as points (n, 2), and the names of the columns."""
    columns = columns_of(owner, table)
    names = take_numbers(owner, columns, 2)
    return thin(np.column_stack([as_floats(columns[name]) for name in names])), names


def labelled_points(owner: str, table: Any, *, two: bool = False) -> tuple[Array, NDArray[Any], list[str]]:
    """Return two columns of numbers, the last column of at most eight classes, and the names of the former.

    Columns of text come before columns of a few different numbers. If the scene needs two classes and there are more,
    the rows of the two most frequent ones are kept.
    """
    columns = columns_of(owner, table)
    labels = [name for name, values in columns.items() if 2 <= len(_classes(values)) <= MOST_CLASSES]
    if not labels:
        raise DataError(
            f"{owner}: the table must hold a column of two to {MOST_CLASSES} classes, beside two columns of numbers."
        )
    labels.sort(key=lambda name: (not _is_numeric(columns[name]), len(_classes(columns[name])) == 2 and two))
    of = columns.pop(labels[-1])  # stable: the last of those that suit best
    names = take_numbers(owner, columns, 2)
    kept = _evenly(len(of))
    X = np.column_stack([as_floats(columns[name]) for name in names])[kept]
    y = np.array([str(value) for value in of[kept]])
    if not two:
        return X, y, names
    classes, counts = np.unique(y, return_counts=True)
    chosen = classes[np.argsort(counts, kind="stable")[-2:]]
    rows = np.isin(y, chosen)
    if not (np.ptp(X[rows], axis=0) > 0).all():
        raise DataError(f"{owner}: a column of numbers does not differ in the rows of the two largest classes.")
    return X[rows], y[rows], names


def thin(rows: Array) -> Array:
    """Return at most `MOST_ROWS` rows, evenly chosen."""
    return np.asarray(rows[_evenly(len(rows))])


def standardised(X: Array) -> Array:
    """Return the columns with mean 0 and variance 1."""
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def as_floats(values: NDArray[Any]) -> Array:
    """Return a column of numbers as floats."""
    return np.asarray(values, dtype=np.float64)


def _evenly(n: int) -> NDArray[np.int64]:
    if n <= MOST_ROWS:
        return np.arange(n, dtype=np.int64)
    return np.linspace(0, n - 1, MOST_ROWS).round().astype(np.int64)


def _is_numeric(values: NDArray[Any]) -> bool:
    try:
        numbers = as_floats(values)
    except (TypeError, ValueError):
        return False
    return bool(len(numbers) and np.isfinite(numbers).all() and np.abs(numbers).max() < 1e100 and np.ptp(numbers) > 0)


def _classes(values: NDArray[Any]) -> set[str]:
    return {str(value) for value in values[_evenly(len(values))]}


# --------------------------------------------------------------------------------------------------------------------
# Built-in tables.

#: Duration of each eruption, in thousandths of a minute, and minutes until the next.
_ERUPTIONS: Final = (
    "3600 1800 3333 2283 4533 2883 4700 3600 1950 4350 1833 3917 4200 1750 4700 2167 1750 4800 1600 4250 1800 1750 "
    "3450 3067 4533 3600 1967 4083 3850 4433 4300 4467 3367 4033 3833 2017 1867 4833 1833 4783 4350 1883 4567 1750 "
    "4533 3317 3833 2100 4633 2000 4800 4716 1833 4833 1733 4883 3717 1667 4567 4317 2233 4500 1750 4800 1817 4400 "
    "4167 4700 2067 4700 4033 1967 4500 4000 1983 5067 2017 4567 3883 3600 4133 4333 4100 2633 4067 4933 3950 4517 "
    "2167 4000 2200 4333 1867 4817 1833 4300 4667 3750 1867 4900 2483 4367 2100 4500 4050 1867 4700 1783 4850 3683 "
    "4733 2300 4900 4417 1700 4633 2317 4600 1817 4417 2617 4067 4250 1967 4600 3767 1917 4500 2267 4650 1867 4167 "
    "2800 4333 1833 4383 1883 4933 2033 3733 4233 2233 4533 4817 4333 1983 4633 2017 5100 1800 5033 4000 2400 4600 "
    "3567 4000 4500 4083 1800 3967 2200 4150 2000 3833 3500 4583 2367 5000 1933 4617 1917 2083 4583 3333 4167 4333 "
    "4500 2417 4000 4167 1883 4583 4250 3767 2033 4433 4083 1833 4417 2183 4800 1833 4800 4100 3966 4233 3500 4366 "
    "2250 4667 2100 4350 4133 1867 4600 1783 4367 3850 1933 4500 2383 4700 1867 3833 3417 4233 2400 4800 2000 4150 "
    "1867 4267 1750 4483 4000 4117 4083 4267 3917 4550 4083 2417 4183 2217 4450 1883 1850 4283 3950 2333 4150 2350 "
    "4933 2900 4583 3833 2083 4367 2133 4350 2200 4450 3567 4500 4150 3817 3917 4450 2000 4283 4767 4533 1850 4250 "
    "1983 2250 4750 4117 2150 4417 1817 4467 "
)
_WAITING: Final = (
    "79 54 74 62 85 55 88 85 51 85 54 84 78 47 83 52 62 84 52 79 51 47 78 69 74 83 55 76 78 79 73 77 66 80 74 52 48 "
    "80 59 90 80 58 84 58 73 83 64 53 82 59 75 90 54 80 54 83 71 64 77 81 59 84 48 82 60 92 78 78 65 73 82 56 79 71 "
    "62 76 60 78 76 83 75 82 70 65 73 88 76 80 48 86 60 90 50 78 63 72 84 75 51 82 62 88 49 83 81 47 84 52 86 81 75 "
    "59 89 79 59 81 50 85 59 87 53 69 77 56 88 81 45 82 55 90 45 83 56 89 46 82 51 86 53 79 81 60 82 77 76 59 80 49 "
    "96 53 77 77 65 81 71 70 81 93 53 89 45 86 58 78 66 76 63 88 52 93 49 57 77 68 81 81 73 50 85 74 55 77 83 83 51 "
    "78 84 46 83 55 81 57 76 84 77 81 87 77 51 78 60 82 91 53 78 46 77 84 49 83 71 80 49 75 64 76 53 94 55 76 50 82 "
    "54 75 78 79 78 78 70 79 70 54 86 50 90 54 54 77 79 64 75 47 86 63 85 82 57 82 67 74 54 83 73 73 88 80 71 83 56 "
    "79 78 84 58 83 43 60 75 81 46 90 46 74 "
)
_QUAKES: Final = (
    "13 14 8 10 16 26 32 27 18 32 36 24 22 23 22 18 25 21 21 14 8 11 14 23 18 17 19 20 22 19 13 26 13 14 "
    "22 24 21 22 26 21 23 24 27 41 31 27 35 26 28 36 39 21 17 22 17 19 15 34 10 15 22 18 15 20 15 22 19 "
    "16 30 27 29 23 20 16 21 21 25 16 18 15 18 14 10 15 8 15 6 11 8 7 18 16 13 12 13 20 15 16 12 18 15 16 "
    "13 15 16 11 11"
)


def old_faithful() -> Array:
    """Return 272 eruptions of the geyser: minutes that each lasted, and minutes until the next.

    From A. Azzalini and A. Bowman, A look at some data on the Old Faithful geyser, Applied Statistics 39 (1990).

    Examples
    --------
    >>> from learnable.lab.tables import old_faithful
    >>> old_faithful().shape
    (272, 2)
    """
    minutes = np.array(_ERUPTIONS.split(), dtype=np.float64) / 1000
    return np.column_stack([minutes, np.array(_WAITING.split(), dtype=np.float64)])


def earthquakes() -> Array:
    """Return the number of major earthquakes in the world of each year from 1900 to 2006 (US Geological Survey).

    Examples
    --------
    >>> from learnable.lab.tables import earthquakes
    >>> earthquakes().shape
    (107,)
    """
    return np.array(_QUAKES.split(), dtype=np.float64)
