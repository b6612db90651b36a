"""Sequences for recurrent models: lists of arrays of different lengths, or arrays with a number of steps for each.

| X                                 | meaning                                                             |
|-----------------------------------|---------------------------------------------------------------------|
| (n, T, d) array                   | n sequences of T steps of d numbers; `lengths` says where each ends  |
| list of (Tᵢ, d) or (Tᵢ,) arrays   | sequences of their own lengths                                      |
| (n, T) array, frame or list       | n sequences of T numbers each: rows of a table are series           |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.declare import Number
from ..core.errors import DataError, ParameterError

Array = NDArray[Any]


class Sequences(NamedTuple):
    """Sequences of one padded array."""

    X: Array  #: (n, T, d), zero after the end of each
    lengths: Array  #: (n,) int64, each at least 1


def is_plain_table(X: Any) -> bool:
    """Tell whether X is a table, one sequence of numbers per row, for the door of tables."""
    if isinstance(X, (list, tuple)):
        return not _is_ragged(X) and all(np.ndim(item) <= 1 for item in X)
    return getattr(X, "ndim", 2) != 3


def read_sequences(owner: str, X: Any, lengths: Any = None) -> Sequences:
    """Return 3-D arrays and lists of arrays as one padded array.

    Parameters
    ----------
    owner : str
        Who asks; for errors.
    X : (n, T, d) array, or list of (Tᵢ, d) or (Tᵢ,) arrays
        Sequences.
    lengths : (n,) array of integers, optional
        Steps of each sequence of an array.
    """
    if isinstance(X, (list, tuple)):
        if lengths is not None:
            raise ParameterError(f"{owner}: lengths are for arrays; a list of arrays has its own. Leave lengths out.")
        return _pad(owner, [_as_numbers(owner, item) for item in X])
    array = _as_numbers(owner, X)
    if array.ndim != 3:
        raise DataError(f"{owner}: X must be a list of arrays or an array (n, T, d); got shape {array.shape}.")
    n, T, _ = array.shape
    if 0 in array.shape:
        raise DataError(f"{owner}: X has shape {array.shape}: no numbers. Pass at least one sequence of one step.")
    ends = check_lengths(owner, lengths, n, T)
    padded = array.copy()
    padded[np.arange(T) >= ends[:, None]] = 0.0
    _refuse_gaps(owner, padded)
    return Sequences(padded, ends)


def check_lengths(owner: str, lengths: Any, n: int, T: int) -> Array:
    """Return the number of steps of each of n sequences of at most T."""
    if lengths is None:
        return np.full(n, T, dtype=np.int64)
    ends = np.asarray(lengths)
    if ends.shape != (n,) or ends.dtype.kind not in "iu" or ends.min() < 1 or ends.max() > T:
        raise DataError(f"{owner}: lengths must be {n} integers from 1 to {T}, one for each sequence; got {lengths!r}.")
    return ends.astype(np.int64)


def windows(series: Any, length: int, horizon: int = 1) -> tuple[Array, Array]:
    """Cut a series into pieces to learn forecasting from.

    Parameters
    ----------
    series : (T,) or (T, d) array
        Values in the order of time.
    length : int
        Steps of a piece.
    horizon : int, default=1
        The target is the value so many steps after the piece.

    Returns
    -------
    X : (n, length, d) array
        Pieces, n = T − length − horizon + 1.
    y : (n, d) array
        What followed each; (n,) if the series has one column.

    Examples
    --------
    >>> from learnable.neural import windows
    >>> X, y = windows([1.0, 2.0, 3.0, 4.0, 5.0], length=3)
    >>> X[:, :, 0].tolist(), y.tolist()
    ([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], [4.0, 5.0])
    """
    values = _as_numbers("windows", series)
    flat = values.ndim == 1
    values = values[:, None] if flat else values
    for name, value in (("length", length), ("horizon", horizon)):
        if not Number(low=1, integer=True).allows(value):
            raise ParameterError(f"windows: {name} must be an integer >= 1; got {value!r}.")
    n = len(values) - length - horizon + 1
    if n < 1:
        raise DataError(
            f"windows: a series of {len(values)} steps has no piece of {length} steps with a value {horizon} steps "
            "after it. Pass a longer series."
        )
    X = np.stack([values[k : k + length] for k in range(n)])
    y = values[length + horizon - 1 :]
    return X, y[:, 0] if flat else y


def _is_ragged(X: Any) -> bool:
    sizes = {np.shape(item)[0] if np.ndim(item) else -1 for item in X}
    return len(sizes) > 1


def _pad(owner: str, items: list[Array]) -> Sequences:
    if not items:
        raise DataError(f"{owner}: X has no sequences. Pass at least one.")
    items = [item[:, None] if item.ndim == 1 else item for item in items]
    widths = {item.shape[1:] for item in items}
    if any(item.ndim != 2 for item in items) or len(widths) > 1:
        raise DataError(
            f"{owner}: every sequence must be an array (steps, d) with the same d; got the shapes "
            f"{sorted({item.shape for item in items})[:3]}."
        )
    if min(len(item) for item in items) < 1:
        raise DataError(f"{owner}: a sequence has no steps. Leave it out.")
    lengths = np.array([len(item) for item in items], dtype=np.int64)
    padded = np.zeros((len(items), int(lengths.max()), items[0].shape[1]))
    for k, item in enumerate(items):
        padded[k, : len(item)] = item
    _refuse_gaps(owner, padded)
    return Sequences(padded, lengths)


def _as_numbers(owner: str, X: Any) -> Array:
    try:
        array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: X must hold numbers; {error}.") from error
    return array


def _refuse_gaps(owner: str, X: Array) -> None:
    if not np.isfinite(X).all():
        sequence, step, column = (int(k[0]) for k in np.nonzero(~np.isfinite(X)))
        raise DataError(
            f"{owner}: X contains NaN or infinity: sequence {sequence}, step {step}, column {column}. Fill it, or end "
            "the sequence before it."
        )
