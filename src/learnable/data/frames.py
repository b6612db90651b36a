"""Dataframes of any library (through narwhals) as arrays, and columns by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, DataTypeError
from .arrays import as_numbers, check_shape

_NO_NUMPY_TYPE = (nw.Int128, nw.UInt128, nw.Decimal)


def open_frame(owner: str, X: Any) -> nw.DataFrame[Any]:
    """Return X as a narwhals frame, whose column names are unique."""
    try:
        return nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:  # pandas and Arrow allow a name to occur twice
        raise DataError(f"{owner}: {' '.join(str(error).split())}. Rename the columns.") from error


def read_frame(owner: str, frame: nw.DataFrame[Any]) -> Any:
    """Return the numbers of a frame as an array, or as a COO array if all are pandas sparse columns."""
    check_shape(owner, frame.shape)
    _check_column_types(owner, frame)
    to_sparse = getattr(getattr(frame.to_native(), "sparse", None), "to_coo", None)
    if to_sparse is not None:
        with suppress(ValueError):  # a fill value other than zero has no sparse form
            return to_sparse()
    types = set(frame.schema.values())
    if types in ({nw.Float64()}, {nw.Float32()}):
        return frame.to_numpy()  # no copy where the columns already lie together
    numbers = np.empty(frame.shape, order="F")
    for position, name in enumerate(frame.columns):
        numbers[:, position] = as_numbers(owner, read_series(frame.get_column(name)), f"column {name!r} of X")
    return numbers


def read_series(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a column as an array; a missing number is NaN, a missing label None or NaN."""
    missing_truth = series.dtype == nw.Boolean and series.null_count() > 0
    if missing_truth or series.dtype in _NO_NUMPY_TYPE:
        series = series.cast(nw.Float64)
    elif series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)  # Arrow's dictionaries lose their gaps on the way to NumPy
    return series.to_numpy()


def listed(names: Any, most: int = 8) -> str:
    """Return the first few names, quoted."""
    shown = ", ".join(repr(name.item() if isinstance(name, np.generic) else name) for name in list(names)[:most])
    return shown + (", …" if len(names) > most else "")


def _check_column_types(owner: str, frame: nw.DataFrame[Any]) -> None:
    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
            raise DataTypeError(
                f"{owner}: column {name!r} is of type {dtype}, not a number. Wrap the model, which then encodes text, "
                "categories and dates: TableModel(estimator).fit(table, target); or leave the column out."
            )
