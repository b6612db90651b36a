"""The door of support vector machines: rows of any kind where the kernel is a function, and LIBSVM's rule for weights.

A function as kernel may compare whatever it understands: strings, graphs, sparse rows. Where X is no dense table of
numbers, the function is asked once for the matrix of all rows, and the machine is that of a given matrix. A row whose
weight is zero or negative is left out, as in LIBSVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError
from ..data.door import Table, door
from ..data.frames import is_frame, take_named_columns
from ..data.sources import is_external
from ..data.targets import Target
from ..risk.kernels import Kernel
from ..risk.kernels.adopted import is_foreign

Array = NDArray[np.float64]


def svm_door(target: Target) -> Callable[..., Table]:
    """Return the door of machines with this kind of target."""
    read_table = door(target=target)

    def read(model: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        owner = type(model).__name__
        if is_external(X):
            table = read_table(model, X, y, sample_weight, run)
            if not table.in_memory:
                raise DataError(
                    f"{owner}: a kernel machine needs its rows in memory; load them, or fit a sample of them."
                )
            return table
        y = None if target == "none" else y
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        sample_weight = _without_negative_weights(owner, sample_weight)
        if target == "classes":
            _refuse_one_class_left(model, y, sample_weight)
        if is_function(model.kernel) and not _is_table_of_numbers(X):
            model.X_fit_ = X
            X = function_values(owner, model.kernel, X, X)
        return read_table(model, X, y, sample_weight, run)

    return read


def is_function(kernel: Any) -> bool:
    """Tell whether the kernel is a function of two tables."""
    return callable(kernel) and not isinstance(kernel, Kernel) and not is_foreign(kernel)


def function_values(owner: str, kernel: Callable[[Any, Any], Any], X: Any, Z: Any) -> Array:
    """Return the matrix k(xᵢ, zⱼ) of any rows that the function understands."""
    found = kernel(X, Z)
    try:
        K = np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: the kernel must give a matrix of numbers; {error}.") from error
    shape = height_of(X), height_of(Z)
    if K.shape != shape:
        raise DataError(
            f"{owner}: the kernel must give a matrix of shape {shape} for {shape[0]} and {shape[1]} rows; "
            f"got {K.shape}."
        )
    return K


def height_of(X: Any) -> int:
    """Return the number of rows of anything that has rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _is_table_of_numbers(X: Any) -> bool:
    """Tell whether X can be a dense table, which the ordinary door reads."""
    if sp.issparse(X):
        return False
    if is_frame(X) or not hasattr(X, "__len__"):
        return True
    if hasattr(X, "dtype"):
        return not (X.dtype.kind in "OUS" and np.ndim(X) == 1)
    return not len(X) or (not isinstance(X[0], (str, bytes)) and hasattr(X[0], "__len__"))


def _without_negative_weights(owner: str, sample_weight: Any) -> Any:
    """Return the weights with zero for negative ones; raise where none is positive."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return sample_weight  # the ordinary door says what is wrong with them
    if weight.size and (weight <= 0).all():
        raise DataError(
            f"{owner}: Invalid input - all samples have zero or negative weights. sample_weight is zero for every row, "
            "or negative, which leaves a row out; at least one row needs a positive weight."
        )
    return np.where(weight < 0, 0.0, weight) if (weight < 0).any() else sample_weight


def _refuse_one_class_left(model: Any, y: Any, sample_weight: Any) -> None:
    """Raise where weights of zero leave rows of one class only."""
    if sample_weight is None or y is None:
        return
    labels, weight = np.asarray(y).ravel(), np.asarray(sample_weight)
    if weight.shape != labels.shape or not (weight == 0).any() or len(set(labels[weight > 0].tolist())) != 1:
        return
    if len(set(labels.tolist())) == 1:
        return  # it was one class from the start
    nu = "specified nu is infeasible: " if hasattr(model, "nu") else ""
    raise DataError(
        f"{type(model).__name__}: {nu}Invalid input - all samples with positive weights belong to the same class. Give "
        "rows of two classes a positive weight."
    )
