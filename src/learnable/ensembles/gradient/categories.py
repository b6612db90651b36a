"""Columns of categories become codes 0, 1, … when data come in: at the fit, and the same way at every prediction.

Values may be numbers or strings. The levels are the distinct values of the fit, sorted; what is missing, negative or
was never seen has the code NaN and takes a split's branch of missing values.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.errors import DataError, ModelFileError, ParameterError
from ...data.arrays import as_array
from ...data.frames import is_frame, open_frame, read_series

Array = NDArray[np.float64]


def categorical_columns(owner: str, given: Any, X: Any) -> NDArray[np.bool_] | None:
    """Return which columns of a table hold categories; None if there are none."""
    frame = open_frame(owner, X) if is_frame(X) else None
    names = None if frame is None else list(frame.columns)
    if given is None or (isinstance(given, str) and frame is None):
        return None
    shape = X.shape if hasattr(X, "shape") else as_array(owner, X, "X").shape
    if len(shape) != 2:  # the door says what is wrong
        return None
    n_columns = int(shape[1])
    if isinstance(given, str):
        types = [] if frame is None else frame.schema.values()
        found = np.array([dtype in (nw.Categorical, nw.Enum) for dtype in types], dtype=bool)
        return found if found.any() else None
    marked = _marked(owner, given, n_columns, names)
    return marked if marked.any() else None


def _marked(owner: str, given: Any, n_columns: int, names: list[str] | None) -> NDArray[np.bool_]:
    """Return the mask that numbers, names or truth values of columns stand for."""
    marked, array = np.zeros(n_columns, dtype=bool), np.asarray(given)

    def wrong(rule: str) -> ParameterError:
        return ParameterError(f"{owner}: {rule}. Got {given!r}.")

    if not array.size:
        return marked
    kinds = sorted({type(item).__name__ for item in array.tolist()}) if array.dtype == object else [array.dtype.name]
    if array.dtype.kind not in "OUbiu" or (array.dtype == object and not set(kinds) <= {"bool", "int", "str"}):
        raise ParameterError(
            f"{owner}: categorical_features must be an array-like of bool, int or str, got: {', '.join(kinds)}."
        )
    if array.dtype.kind == "b":
        if array.shape != (n_columns,):
            raise wrong(f"categorical_features set as a boolean mask must have shape (n_features,) = ({n_columns},)")
        return array.copy()
    if array.dtype.kind in "iu":
        if array.max() >= n_columns or array.min() < 0:
            raise wrong(
                f"categorical_features set as integer indices must be in [0, n_features - 1], 0 to {n_columns - 1}"
            )
        marked[array] = True
        return marked
    if names is None:
        raise wrong(
            "categorical_features should be passed as an array of integers or as a boolean mask when the model is "
            "fitted on data without feature names"
        )
    for name in array.tolist():
        if name not in names:
            raise wrong(
                f"categorical_features has an item value {name!r} which is not a valid feature name of the training "
                f"data. Observed feature names: {names!r}"
            )
        marked[names.index(name)] = True
    return marked


def find_levels(owner: str, X: Any, mask: NDArray[np.bool_]) -> list[NDArray[Any]]:
    """Return the sorted levels of each column of categories; empty where the codes are to be used as they are."""
    return [np.zeros(0) if sp.issparse(X) else _levels(_column(owner, X, j)) for j in np.flatnonzero(mask).tolist()]


def encode(owner: str, X: Any, mask: NDArray[np.bool_], levels: list[NDArray[Any]]) -> Any:
    """Return X with codes in place of categories: a frame of numbers, or an array."""
    if sp.issparse(X):
        return X
    columns = np.flatnonzero(mask).tolist()
    if is_frame(X):
        frame = open_frame(owner, X)
        if len(frame.columns) != len(mask):
            return X  # the door says what is wrong
        series = [
            nw.new_series(frame.columns[j], _codes(_column(owner, X, j), own), nw.Float64, backend=frame.implementation)
            for j, own in zip(columns, levels, strict=True)
        ]
        return frame.with_columns(*series).to_native()
    array = as_array(owner, X, "X")
    if array.ndim != 2 or array.shape[1] != len(mask):
        return X
    codes = [_codes(array[:, j], own) for j, own in zip(columns, levels, strict=True)]
    if array.dtype.kind == "f" and all(
        np.array_equal(array[:, j], own, equal_nan=True) for j, own in zip(columns, codes, strict=True)
    ):
        return array
    out = array.astype(object if array.dtype == object else np.float64)
    for j, own in zip(columns, codes, strict=True):
        out[:, j] = own
    return out if out.dtype != object else out.astype(np.float64)


def check_levels(mask: Any, levels: Any, n_features: int) -> None:
    """Raise ModelFileError unless a loaded model's categories fit its columns."""
    if mask is None and levels is None:
        return
    sound = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (n_features,)
    sound = sound and isinstance(levels, list) and len(levels) == int(mask.sum())
    if not sound or not all(isinstance(own, np.ndarray) and own.ndim == 1 for own in levels):
        raise ModelFileError("load: the levels of the categories do not fit the columns.")


def _column(owner: str, X: Any, j: int) -> NDArray[Any]:
    if is_frame(X):
        frame = open_frame(owner, X)
        return read_series(frame.get_column(frame.columns[j]))
    return np.asarray(as_array(owner, X, "X")[:, j])


def _levels(values: NDArray[Any]) -> NDArray[Any]:
    known = values[~_missing(values)]
    if known.dtype != object:
        return np.unique(known)
    try:
        numbers = known.astype(np.float64)
    except (TypeError, ValueError):
        if not all(isinstance(value, str) for value in known.tolist()):
            raise DataError("a column of categories must hold numbers or strings, not both.") from None
        return np.unique(known.astype(str))
    return np.unique(numbers[numbers >= 0])


def _codes(values: NDArray[Any], levels: NDArray[Any]) -> Array:
    """Return the position of each value among the levels; NaN where it is not among them."""
    out = np.full(len(values), np.nan)
    known = np.flatnonzero(~_missing(values))
    if not len(known) or not len(levels):
        return out
    try:
        own = values[known].astype(levels.dtype if levels.dtype.kind == "U" else np.float64)
    except (TypeError, ValueError):
        return out
    if levels.dtype.kind == "U":
        own = values[known].astype(str)  # a longer string must not be cut to the length of a level
    at = np.minimum(np.searchsorted(levels, own), len(levels) - 1)
    found = levels[at] == own
    out[known[found]] = at[found]
    return out


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values) | (values < 0)
    if values.dtype.kind == "i":
        return values < 0
    if values.dtype == object:
        return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    return np.zeros(len(values), dtype=bool)
