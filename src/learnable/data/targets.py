"""Targets, labels and weights of the rows, checked and in the form the solvers want."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from ..core.errors import DataError
from .arrays import as_array, as_numbers, require_finite
from .frames import listed, read_values

T = TypeVar("T")

Target = Literal["numeric", "classes", "none"]

_EXACT = 2**53  # every integer below it is a float64
_COUNTABLE = 2**16  # integers that spread no further than this are counted rather than sorted


def require_target(owner: str, y: T | None) -> T:
    """Return the target; raise DataError if there is none."""
    if y is None:
        raise DataError(f"{owner}: requires y to be passed, but the target y is None. Pass one target per row.")
    return y


def check_count(owner: str, n_rows: int, n_targets: int) -> None:
    """Raise DataError unless there is a target for each row."""
    if n_targets != n_rows:
        raise DataError(
            f"{owner}: X and y have inconsistent numbers of samples: X has {n_rows} rows, y has {n_targets}. "
            "Found input variables with inconsistent numbers of samples; pass one target per row."
        )


def read_target(owner: str, y: Any, target: Target, multi_output: bool) -> tuple[Any, Any]:
    """Return the targets (float64, or class codes) and the labels (None unless `target` is "classes").

    Of several columns of labels, the labels are a list, one array for each column.
    """
    if target == "none":
        return None, None
    require_target(owner, y)
    has_dtype = hasattr(y, "dtype")
    values = as_array(owner, read_values(owner, y), "y")
    if target == "classes" and not has_dtype:
        values = _as_numpy_reads(values)
    if target == "classes" and multi_output and values.ndim == 2 and values.shape[1] > 1:
        encoded = [encode_classes(owner, values[:, k]) for k in range(values.shape[1])]
        return np.column_stack([codes for codes, _ in encoded]), [classes for _, classes in encoded]
    if target == "classes":
        codes, classes = encode_classes(owner, _as_one_column(owner, values))
        # A list of strings gets NumPy's own string type, as np.asarray would give it.
        return codes, classes if has_dtype or classes.dtype != object else classes.astype(np.str_)
    if not (multi_output and values.ndim == 2 and values.shape[1]):
        values = _as_one_column(owner, values)
    numbers = as_numbers(owner, values, "y").astype(np.float64, copy=False)
    require_finite(owner, numbers, "y")
    if np.abs(numbers).max(initial=0.0) > LARGEST_TARGET:
        raise DataError(f"{owner}: y reaches beyond {LARGEST_TARGET:g}, where differences overflow; rescale it.")
    return numbers, None


LARGEST_WEIGHT = 1e100
LARGEST_TARGET = 1e300


def read_weight(owner: str, weight: Any, n_rows: int, *, whole: bool = True) -> NDArray[np.float64] | None:
    """Return the weights as float64; a single number is every row's weight. A piece of a table may have none at all."""
    if weight is None:
        return None
    name = "sample_weight"
    values = as_numbers(owner, as_array(owner, read_values(owner, weight), name), name)
    values = values.astype(np.float64, copy=False)
    if values.ndim == 0:
        values = np.full(n_rows, float(values))
    if values.shape != (n_rows,):
        raise DataError(f"{owner}: sample_weight must have shape ({n_rows},), one weight per row; got {values.shape}.")
    require_finite(owner, values, name)
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise DataError(
            f"{owner}: sample_weight must be >= 0; row {row} has {values[row]:g}. Use 0 to leave a row out."
        )
    positive = values[values > 0]
    if positive.size and (positive.max() > LARGEST_WEIGHT or positive.min() < 1.0 / LARGEST_WEIGHT):
        raise DataError(
            f"{owner}: sample_weight runs from {positive.min():.3g} to {positive.max():.3g}; beyond 1e-100 and 1e100 "
            "sums of weights mean nothing. Divide them by their mean, or leave rows out with weight 0."
        )
    if whole and not values.any():
        raise DataError(f"{owner}: sample_weight is zero for every row; at least one row needs a positive weight.")
    return values


def encode_classes(owner: str, labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return codes 0…K−1 and the sorted labels, in linear time for integers and for text."""
    if labels.dtype.kind == "O":
        labels = _settle_objects(owner, labels)
    kind = labels.dtype.kind
    if kind in "biu":
        return _encode_integers(labels)
    if kind == "f":
        return _encode_whole_floats(owner, labels)
    if kind in "OUT":
        return _encode_text(labels)
    if kind == "c":
        raise DataError(f"{owner}: Complex data not supported; y is {labels.dtype}. Pass class labels.")
    raise DataError(f"{owner}: Unknown label type: y has dtype {labels.dtype}. Pass integers, booleans or strings.")


def drop_absent_classes(codes: NDArray[np.int64], classes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Renumber the codes without the classes that no row has."""
    present = np.bincount(codes, minlength=len(classes)) > 0
    return (np.cumsum(present) - 1)[codes], classes[present]


def drop_absent_labels(codes: NDArray[np.int64], classes: Any) -> tuple[NDArray[np.int64], Any]:
    """Do the same for one column of codes, or for several with a list of their labels."""
    if not isinstance(classes, list):
        return drop_absent_classes(codes, classes)
    found = [drop_absent_classes(codes[:, k], labels) for k, labels in enumerate(classes)]
    return np.column_stack([column for column, _ in found]), [labels for _, labels in found]


def check_two_classes(owner: str, classes: NDArray[Any]) -> None:
    """Raise DataError if there is only one class."""
    if len(classes) < 2:
        raise DataError(
            f"{owner}: needs at least two classes in y among the rows with positive weight; got 1 class: "
            f"{listed(classes)}. This solver needs samples of at least 2 classes in the data: add rows of another one."
        )


def _as_one_column(owner: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples, ), for example using ravel().",
            DataConversionWarning,
            stacklevel=2,
        )
        return values[:, 0]
    if values.ndim != 1:
        raise DataError(
            f"{owner}: y should be a 1d array, got an array of shape {values.shape} instead. Pass one target per row."
        )
    return values


def _as_numpy_reads(values: NDArray[Any]) -> NDArray[Any]:
    """Return a list of strings and numbers as what `np.asarray` makes of it: all of them are strings then."""
    if values.dtype.kind != "O":
        return values
    types = set(map(type, values.ravel().tolist()))
    text = {t for t in types if issubclass(t, str)}
    mixed = text and types - text and all(issubclass(t, Real | np.bool_) for t in types - text)
    if not mixed or any(map(_is_missing, values.ravel().tolist())):
        return values
    return np.array(values.tolist())


def _settle_objects(owner: str, labels: NDArray[Any]) -> NDArray[Any]:
    """Return an object array of numbers as a numeric one; text stays; mixtures and gaps are refused."""
    values = labels.tolist()
    types = set(map(type, values))
    if all(issubclass(t, str) for t in types):
        return labels
    if all(issubclass(t, Real | np.bool_) for t in types):
        numbers = np.array(values)
        if numbers.dtype != object:
            return numbers
    for row, value in enumerate(values):
        if _is_missing(value):
            raise DataError(
                f"{owner}: Input y contains NaN: row {row} has the missing label {value!r}. Fill it or drop the row."
            )
    raise DataError(
        f"{owner}: Unknown label type: y holds {' and '.join(sorted(t.__name__ for t in types))} objects. "
        "Pass labels of one type: integers, booleans or strings."
    )


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal to itself; an array is no label
        return type(value).__name__ == "NAType"


def _encode_integers(labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    wide = labels.astype(np.uint64 if labels.dtype.kind == "u" else np.int64, copy=False)
    low, high = (int(wide.min()), int(wide.max())) if wide.size else (0, 0)
    if high - low < max(_COUNTABLE, 2 * wide.size):
        shifted = (wide - low).astype(np.int64, copy=False)
        codes, offsets = drop_absent_classes(shifted, np.arange(high - low + 1))
        classes = offsets.astype(wide.dtype) + low
    else:
        classes = np.unique(wide)
        codes = np.searchsorted(classes, wide)
    return codes, classes.astype(labels.dtype)


def _encode_whole_floats(owner: str, labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    require_finite(owner, labels, "y")
    fractions = labels != np.trunc(labels)
    if fractions.any():
        row = int(np.argmax(fractions))
        raise DataError(
            f"{owner}: Unknown label type: continuous; y holds {labels[row]:g} in row {row}, which is no "
            "class. Pass class labels, or use a regressor."
        )
    if labels.size and float(np.abs(labels).max()) >= _EXACT:
        classes, codes = np.unique(labels, return_inverse=True)
        return codes, classes
    codes, whole = _encode_integers(labels.astype(np.int64))
    return codes, whole.astype(labels.dtype)


def _encode_text(labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    words = labels.tolist()
    classes = sorted(set(words))
    code_of = {word: code for code, word in enumerate(classes)}
    codes = np.fromiter(map(code_of.__getitem__, words), np.int64, len(words))
    return codes, np.array(classes, dtype=labels.dtype)
