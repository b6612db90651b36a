"""One column of any table, as numbers or as codes of labels.

A column has one of seven types: number, boolean, date, duration, text, mixed, empty. Text, and a mixture of text and
numbers, is read as codes. Everything else is read as float64: truth values as 0 and 1, dates as days since 1970 on the
clock of their time zone, durations as seconds; what is missing is NaN.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from numbers import Real
from typing import Any, Final, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, DataTypeError
from .arrays import kind_of

Type = Literal["number", "boolean", "date", "duration", "text", "mixed", "empty"]
Numbers = NDArray[np.float64]

_DAY: Final = 86_400.0
_REMEDY: Final = "Leave it out, or turn it into numbers, text, truth values or dates."


class Labels(NamedTuple):
    """A column of text."""

    codes: NDArray[np.int64]  #: (n,), positions in `values`; −1 where there is none
    values: list[str]  #: the distinct values, in any order


def column_type(owner: str, name: Any, column: Any) -> Type:
    """Return the type of a column, or raise DataTypeError naming it."""
    if isinstance(column, np.ndarray):
        return array_type(owner, f"column {name!r}", column)
    dtype = column.dtype
    if dtype.is_numeric():
        return "number"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype == nw.String:
        return "text"
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return "text" if _has_text_categories(column) else "mixed"
    if isinstance(dtype, nw.Date | nw.Datetime):
        return "date"
    if isinstance(dtype, nw.Duration | nw.Time):
        return "duration"
    if column.null_count() == len(column):
        return "empty"
    if isinstance(dtype, nw.Object | nw.Unknown):
        return array_type(owner, f"column {name!r}", column.to_numpy())
    raise DataTypeError(f"{owner}: column {name!r} is of type {dtype}, which has no encoding. {_REMEDY}")


def read_numbers(column: Any, found: Type) -> Numbers:
    """Return a column that is not text as float64, NaN where a value is missing."""
    if isinstance(column, nw.Series):
        column = _series_to_array(column, found)
    kind = column.dtype.kind
    if kind in "Mm":
        return _time_to_numbers(column)
    if kind in "biuf":
        return column.astype(np.float64, copy=False)  # type: ignore[no-any-return]
    if found in ("date", "duration"):
        return np.array([_object_to_number(value) for value in column.tolist()])
    try:
        return np.array([math.nan if is_missing(value) else float(value) for value in column.tolist()])
    except OverflowError:
        raise DataError("holds an integer that is too large for float64. Scale it down.") from None


def read_labels(column: Any, found: Type = "text") -> Labels:
    """Return a column of text as codes and distinct values; numbers in a mixture are spelled out."""
    if isinstance(column, nw.Series):
        native = column.to_native()
        if hasattr(native, "cat") and hasattr(native.cat, "codes"):  # pandas
            categories = [_spelled(value) for value in native.cat.categories.tolist()]
            return _merge_equal(Labels(np.asarray(native.cat.codes, dtype=np.int64), categories))
        by_arrow = None if isinstance(column.dtype, nw.Object) else _arrow_labels(column)
        if by_arrow is not None:
            return by_arrow
        values = column.to_list()
    else:
        values = column.tolist()
    if found == "mixed":  # as keys of a dict, 1, 1.0 and True would be one
        values = [None if is_missing(value) else _spelled(value) for value in values]
    position: dict[Any, int] = {}
    words: dict[str, int] = {}
    codes = np.fromiter((position.setdefault(v, len(position)) for v in values), np.int64, len(values))
    lookup = [-1 if is_missing(value) else words.setdefault(str(value), len(words)) for value in position]
    return Labels(np.array(lookup, dtype=np.int64)[codes] if lookup else codes, list(words))


def _spelled(value: Any) -> str:
    """Return a category as text; whole numbers look the same whether they are floats or not."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _has_text_categories(series: nw.Series[Any]) -> bool:
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "categories"):
        return all(isinstance(value, str) for value in native.cat.categories.tolist())
    if type(native).__module__.partition(".")[0] == "pyarrow":
        return str(native.type.value_type) in ("string", "large_string", "string_view")
    return True


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for a gap: None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        return type(value).__name__ == "NAType"


def _arrow_labels(series: nw.Series[Any]) -> Labels | None:
    """Return the labels by Arrow's dictionaries, many times faster than a loop; None where Arrow cannot."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        chunked = pa.chunked_array(series.to_arrow())
        if not pa.types.is_dictionary(chunked.type):
            chunked = chunked.dictionary_encode()
        array = chunked.unify_dictionaries().combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            return Labels(np.empty(0, np.int64), [])
        codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        values = array.dictionary.to_pylist()
    except (pa.ArrowException, UnicodeError, TypeError, ValueError):
        return None
    gaps = [code for code, value in enumerate(values) if is_missing(value)]
    codes = np.where(np.isin(codes, gaps), -1, codes) if gaps else codes
    return _merge_equal(Labels(codes, [_spelled(value) for value in values]))


def _merge_equal(labels: Labels) -> Labels:
    """Give values that are spelled alike one code."""
    words: dict[str, int] = {}
    lookup = np.array([words.setdefault(value, len(words)) for value in labels.values] + [-1], dtype=np.int64)
    return labels if len(words) == len(labels.values) else Labels(lookup[labels.codes], list(words))


def _series_to_array(series: nw.Series[Any], found: Type) -> NDArray[Any]:
    if found == "date" and isinstance(series.dtype, nw.Date | nw.Datetime):
        if getattr(series.dtype, "time_zone", None) is not None:
            series = series.dt.replace_time_zone(None)  # the clock on the wall
        series = series.cast(nw.Datetime("us"))
    elif series.dtype == nw.Boolean or isinstance(series.dtype, nw.Decimal | nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)
    return series.to_numpy()


def _time_to_numbers(times: NDArray[Any]) -> Numbers:
    """Return days since 1970, or seconds of a duration; NaT is NaN."""
    divisor = np.timedelta64(1, "D" if times.dtype.kind == "M" else "s")
    since = times - np.datetime64(0, "D") if times.dtype.kind == "M" else times
    return np.asarray(since / divisor, dtype=np.float64)


def _object_to_number(value: Any) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(_time_to_numbers(np.array([value]))[0])
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond * 1e-6
    day = (value.date() if isinstance(value, dt.datetime) else value).toordinal() - dt.date(1970, 1, 1).toordinal()
    return day + (_object_to_number(value.time()) / _DAY if isinstance(value, dt.datetime) else 0.0)


_OBJECT_TYPES: Final[tuple[tuple[Type, tuple[type, ...]], ...]] = (
    ("boolean", (bool, np.bool_)),
    ("number", (bool, np.bool_, Real, Decimal)),
    ("text", (str,)),
    ("date", (dt.date, np.datetime64)),
    ("duration", (dt.timedelta, dt.time, np.timedelta64)),
    ("mixed", (str, bool, np.bool_, Real, Decimal)),
)


def array_type(owner: str, what: str, array: NDArray[Any]) -> Type:
    """Return the type of an array; `what` names it in the error."""
    kind = array.dtype.kind
    if kind != "O":
        types: dict[str, Type] = {"f": "number", "i": "number", "u": "number", "b": "boolean", "U": "text", "T": "text"}
        types |= {"M": "date", "m": "duration"}
        if kind in types:
            return types[kind]
        complex_ = "Complex data not supported: " if kind == "c" else ""
        raise DataTypeError(f"{owner}: {complex_}{what} has dtype {array.dtype}, which has no encoding. {_REMEDY}")
    values = array.reshape(-1).tolist()
    kinds = {t for t in set(map(type, values)) if t is not type(None)}
    gaps = {t for t in kinds if t.__name__ in ("NAType", "NaTType")}
    if any(issubclass(t, float) for t in kinds) and all(is_missing(v) for v in values if isinstance(v, float)):
        gaps |= {t for t in kinds if issubclass(t, float)}
    kinds -= gaps
    if not kinds:
        return "empty"
    for name, allowed in _OBJECT_TYPES:
        if all(issubclass(t, allowed) for t in kinds):
            return name
    row, value = next((i, v) for i, v in enumerate(values) if not is_missing(v) and not isinstance(v, str | Real))
    raise DataTypeError(
        f"{owner}: {what} holds {shown(value)}, {kind_of(value)}, in row {row}; an argument must be a string, a "
        f"number, a truth value or a date. {_REMEDY}"
    )


def first_present(column: Any) -> int | None:
    """Return the number of the first row that is not missing."""
    if isinstance(column, np.ndarray):
        return next((row for row, value in enumerate(column.tolist()) if not is_missing(value)), None)
    present = ~column.is_null().to_numpy()
    if column.dtype.is_float():
        present &= ~np.isnan(column.to_numpy().astype(np.float64))
    return int(np.argmax(present)) if present.any() else None


def shown(value: Any, width: int = 40) -> str:
    """Return a value for an error message, in one short line."""
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= width else text[: width - 1] + "…"
