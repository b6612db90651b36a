"""The columns of any table, whose types are compared with those of the fit: what `TableEncoder` reads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np

from ..core.errors import DataError
from .arrays import as_array, check_shape
from .door import is_dask, is_frame
from .encoder_read import (
    Labels,
    Numbers,
    Type,
    array_type,
    column_type,
    first_present,
    read_labels,
    read_numbers,
    shown,
)
from .files import Files
from .frames import listed, open_frame
from .readings import dates_with_the_year_first, read_column
from .sources import open_files

_WORDS: Final[dict[str, str]] = {
    "number": "numbers",
    "boolean": "truth values",
    "date": "dates",
    "duration": "durations",
    "text": "text",
    "mixed": "categories",
    "empty": "nothing",
}


class Columns:
    """The columns of one table, or of one piece of it."""

    def __init__(self, owner: str, names: Sequence[Any], columns: Sequence[Any], n_rows: int, table: Any = None):
        self.owner = owner
        self.names = list(names)
        self.columns = list(columns)
        self.n_rows = n_rows
        self._table = table  #: all of it as one array of numbers, if it came as one

    def types(self) -> list[Type]:
        """Return the type of each column."""
        if self._table is not None:
            return [array_type(self.owner, "X", self._table)] * len(self.columns)
        return [self.type_of(position) for position in range(len(self.columns))]

    def type_of(self, position: int) -> Type:
        """Return the type of one column."""
        return column_type(self.owner, self.names[position], self.columns[position])

    def schema(self) -> list[tuple[Any, Type]]:
        """Return the name and the type of each column."""
        return list(zip(self.names, self.types(), strict=True))

    def select(self, names: Sequence[Any]) -> Columns:
        """Return some columns, by name."""
        if list(names) == self.names:
            return self
        place = {name: position for position, name in enumerate(self.names)}
        absent = [name for name in names if name not in place]
        if absent:
            raise DataError(
                f"{self.owner}: there is no column {absent[0]!r}, which the fit had. The columns are "
                f"{listed(self.names)}."
            )
        return Columns(self.owner, names, [self.columns[place[name]] for name in names], self.n_rows)

    def read_as(self, readings: Mapping[str, str] | None) -> Columns:
        """Return the same columns; text that `readings` names as dates or amounts is read as told."""
        if not readings or not any(name in readings for name in self.names):
            return self
        columns = []
        for name, column in zip(self.names, self.columns, strict=True):
            read = read_column(column, readings[name]) if name in readings else None
            columns.append(column if read is None else read)
        return Columns(self.owner, self.names, columns, self.n_rows)

    def zone(self, position: int) -> str | None:
        """Return the time zone of a column."""
        return getattr(getattr(self.columns[position], "dtype", None), "time_zone", None)

    def numbers(
        self, positions: Sequence[int], types: Sequence[Type], zones: Sequence[str | None] | None = None
    ) -> Numbers:
        """Return some columns as an (n, p) array; `types` and `zones` are those of the fit."""
        table = self._table
        if table is not None and table.dtype == np.float64 and set(types) <= {"number"}:
            return table if len(positions) == len(self.columns) else table[:, positions]  # type: ignore[no-any-return]
        numbers = np.empty((self.n_rows, len(positions)), order="F")
        for place, (position, wanted) in enumerate(zip(positions, types, strict=True)):
            numbers[:, place] = self._read_numbers(position, wanted, zones[place] if zones else None)
        return numbers

    def labels(self, position: int, wanted: Type = "text") -> Labels:
        """Return a column as labels."""
        column = self.columns[position]
        found = self._checked_type(position, wanted)
        return Labels(np.full(self.n_rows, -1), []) if found == "empty" else read_labels(column, found)

    def _read_numbers(self, position: int, wanted: Type, zone: str | None) -> Numbers:
        column = self.columns[position]
        if wanted == "date" and zone is None and self.type_of(position) == "text":
            dates = dates_with_the_year_first(column)
            if dates is not None:  # a CSV file in the fit, the same file read by pandas now
                return read_numbers(dates, "date")
        found = self._checked_type(position, wanted)
        if found == "empty":
            return np.full(self.n_rows, np.nan)
        if zone is not None and self.zone(position) not in (None, zone):
            column = column.dt.convert_time_zone(zone)
        try:
            numbers = read_numbers(column, found)
        except DataError as error:
            raise DataError(f"{self.owner}: column {self.names[position]!r} {error}") from None
        if wanted == "boolean" and found == "number":
            strange = ~(np.isnan(numbers) | (numbers == 0) | (numbers == 1))
            if strange.any():
                row = int(np.argmax(strange))
                raise DataError(
                    f"{self.owner}: column {self.names[position]!r} held truth values in the fit; now row {row} holds "
                    f"{numbers[row]:g}. Pass True and False, or 0 and 1."
                )
        return numbers

    def _checked_type(self, position: int, wanted: Type) -> Type:
        name = self.names[position]
        column = self.columns[position]
        found = column_type(self.owner, name, column)
        if found in (wanted, "empty") or {found, wanted} in ({"number", "boolean"}, {"text", "mixed"}):
            return found
        if wanted == "mixed" and found in ("number", "boolean"):
            return "mixed"
        row = first_present(column)
        if row is None:
            return "empty"
        value = column[row] if isinstance(column, np.ndarray) else column.item(row)
        raise DataError(
            f"{self.owner}: column {name!r} held {_WORDS[wanted]} in the fit; now it holds {_WORDS[found]} "
            f"({shown(value)} in row {row}). Convert it to {_WORDS[wanted]}, or fit again."
        )


def read_whole(owner: str, X: Any, *more: Any) -> tuple[Any, ...]:
    """Return a table, and the columns that go with it, in memory: files are read, Dask collections computed."""
    if isinstance(X, str | os.PathLike | Files):
        X = open_files(owner, X).read()
    return tuple(value.compute() if is_dask(value) else value for value in (X, *more))


def read_schema(owner: str, frame: Any) -> list[tuple[Any, Type]]:
    """Return the name and the type of each column of a dataframe, which may have no rows."""
    return _open_frame(owner, frame).schema()


def open_table(owner: str, X: Any) -> Columns:
    """Return the columns of a dataframe, a 2-D array or a list of rows."""
    if is_frame(X):
        table = _open_frame(owner, X)
        check_shape(owner, (table.n_rows, len(table.names)))
        return table
    array = as_array(owner, X, "X")
    check_shape(owner, array.shape, X)
    names = [f"x{position}" for position in range(array.shape[1])]
    return Columns(owner, names, list(array.T), array.shape[0], None if array.dtype.kind == "O" else array)


def _open_frame(owner: str, X: Any) -> Columns:
    frame = open_frame(owner, X)
    floats = frame.to_numpy() if set(frame.schema.values()) == {nw.Float64()} else None
    if floats is not None and floats.dtype != np.float64:
        floats = None  # pandas' own missing values make objects
    # narwhals guesses the type of pandas objects from the first rows; as an array, all of them are looked at.
    columns = [c.to_numpy() if _is_object(c) else c for c in frame.iter_columns()]
    return Columns(owner, frame.columns, columns, len(frame), floats)


def input_names(estimator: Any, given: Any) -> list[str]:
    """Return the names of the columns of the fit; `given` names those of an array."""
    known = getattr(estimator, "feature_names_in_", None)
    if given is None:
        return [f"x{j}" for j in range(estimator.n_features_in_)] if known is None else list(known)
    names = [str(name) for name in given]
    if known is not None and names != list(known):
        raise DataError(f"{type(estimator).__name__}: input_features is not equal to feature_names_in_. Pass None.")
    if len(names) != estimator.n_features_in_:
        raise DataError(
            f"{type(estimator).__name__}: input_features should have length equal to number of features "
            f"({estimator.n_features_in_}), got {len(names)}."
        )
    return names


def _is_object(series: Any) -> bool:
    dtype = getattr(series.to_native(), "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == "O"
