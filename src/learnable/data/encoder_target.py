"""The target as an encoder sees it: what task it makes, and its values."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .arrays import as_array
from .encoder_categories import EncoderTarget
from .encoder_read import is_missing
from .frames import read_values
from .targets import read_target

Task = Literal["regression", "binary", "multiclass"]

_MOST_CLASSES = 20  # more distinct whole numbers are amounts, not names


def guess_task(y: Any) -> tuple[Task, str]:
    """Return what kind of target `y` is, and why.

    Examples
    --------
    >>> guess_task(["yes", "no", "yes"])
    ('binary', '2 distinct labels')
    >>> guess_task([1.5, 2.0, 0.25])
    ('regression', 'numbers with fractions')
    """
    values = as_array("guess_task", read_values("guess_task", y), "y")
    if values.ndim == 2 and values.shape[1] > 1:
        return "regression", f"{values.shape[1]} targets"
    values = values.reshape(-1)
    if values.dtype.kind == "O":
        values = _without_gaps(values)
    if values.dtype.kind not in "iuf":
        count = len(set(values.tolist()))
        what = "truth values" if values.dtype.kind == "b" else f"{count} distinct labels"
        return "binary" if count <= 2 else "multiclass", what
    numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if numbers.dtype.kind == "f" and (numbers != np.trunc(numbers)).any():
        return "regression", "numbers with fractions"
    count = len(np.unique(numbers))
    if count <= 2:
        return "binary", f"{count} distinct whole numbers"
    if count <= min(_MOST_CLASSES, len(numbers) / 3):
        return "multiclass", f"only {count} distinct whole numbers"
    return "regression", f"{count} distinct whole numbers"


def read_encoder_target(
    owner: str, y: Any, task: str, classes: NDArray[Any] | None = None
) -> tuple[EncoderTarget, Any]:
    """Return the targets of the rows and the classes (None for regression).

    Parameters
    ----------
    owner : str
        Whose errors they are.
    y : array of targets
        One a row.
    task : {"auto", "regression", "classification"}
        What they are.
    classes : array, optional
        All labels, sorted, if these rows are only some of them.
    """
    if task == "auto" and classes is None:
        task = "regression" if guess_task(y)[0] == "regression" else "classification"
    if task == "regression":
        values, _ = read_target(owner, y, "numeric", multi_output=True)
        return EncoderTarget(values.reshape(len(values), -1), 0), None
    codes, found = read_target(owner, y, "classes", multi_output=False)
    assert found is not None
    if classes is None:
        return EncoderTarget(codes, len(found)), found
    position = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    unknown = [label for label in found.tolist() if label not in position]
    if unknown:
        raise DataError(f"{owner}: y holds the label {unknown[0]!r}, which is not one of the classes given.")
    return EncoderTarget(
        np.array([position[label] for label in found.tolist()], dtype=np.int64)[codes], len(classes)
    ), classes


def read_rows(owner: str, y: Any, n_rows: int) -> Any:
    """Return targets as an array with one row for each of `n_rows`."""
    values = as_array(owner, read_values(owner, y), "y")
    if values.ndim == 0 or len(values) != n_rows:
        raise DataError(
            f"{owner}: X and y have inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {len(values) if values.ndim else 'no length'}. Pass one target a row."
        )
    return values


def _without_gaps(values: NDArray[Any]) -> NDArray[Any]:
    return np.array([value for value in values.tolist() if not is_missing(value)])
