"""Rows of a table in whatever container it came, for functions that fit a model on some rows and look at others.

What X may be is the model's business: arrays, sparse arrays, lists, any dataframe. Here names become columns, paths
become tables, and rows are counted and taken.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from ..core.errors import DataError, DataTypeError
from ..data.arrays import as_array, check_shape, sound_csr, take_sparse_rows
from ..data.frames import is_frame, listed, open_frame, read_series, read_values, take_named_columns
from ..data.targets import read_weight

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class RowTable:
    """A table whose rows can be taken.

    Attributes
    ----------
    X : any container of n rows
        As it was given; a list as an array, a sparse array as CSR, a path as an Arrow table.
    y : array of n targets, or None
        As it was given, as an array.
    weight : (n,) float64 or None
        The weights; None means one each.
    columns : dict
        Further columns that were asked for by name or given as arrays, such as groups.
    """

    X: Any
    y: NDArray[Any] | None
    weight: Array | None
    columns: dict[str, NDArray[Any]]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return count_rows(self.X)

    def take(self, rows: Rows) -> tuple[Any, Any, Array | None]:
        """Return X, y and weights of some rows."""
        y, weight = (None if column is None else column[rows] for column in (self.y, self.weight))
        return take_rows(self.X, rows), y, weight


def read_rows(owner: str, X: Any, y: Any = None, sample_weight: Any = None, **columns: Any) -> RowTable:
    """Return a table from X, y, weights and further columns, each an array or the name of a column of X.

    Parameters
    ----------
    owner : str
        Who asks, for error messages.
    X : array, sparse array, list, dataframe, or path or glob of CSV or Parquet files
        The features; named columns are taken out of them.
    y, sample_weight : array, str or None
        Targets and weights.
    **columns : array, str or None
        Whatever else there is for each row.
    """
    if isinstance(X, (str, os.PathLike)):
        from ..data import read_table

        X = read_table(X)
    X, found = _take_further_columns(owner, X, {name: value for name, value in columns.items() if value is not None})
    X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
    X = _as_container(owner, X)
    n_rows = count_rows(X)
    if n_rows == 0:
        raise DataError(f"{owner}: X has no rows (0 samples); there is nothing to learn from.")
    if y is not None:
        y = as_array(owner, read_values(owner, y), "y")
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    for name, column in (("y", y), *found.items()):
        if column is not None and (np.ndim(column) == 0 or len(column) != n_rows):
            shape = np.shape(column)
            raise DataError(
                f"{owner}: X and {name} have inconsistent numbers of samples: X has {n_rows} rows, {name} has shape "
                f"{shape}. Pass one value a row."
            )
    return RowTable(X, y, read_weight(owner, sample_weight, n_rows), found)


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse array, a list or a dataframe."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: Rows) -> Any:
    """Return some rows of X, in the container that X is.

    Examples
    --------
    >>> import numpy as np
    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0]))
    array([[3.],
           [1.]])
    """
    if is_frame(X):
        return nw.from_native(X, eager_only=True)[rows].to_native()
    return take_sparse_rows(X if X.format == "csr" else sound_csr("take_rows", X), rows) if sp.issparse(X) else X[rows]


def take_columns(X: Any, columns: Rows) -> Any:
    """Return some columns of a matrix, dense or sparse."""
    return X[:, columns] if hasattr(X, "shape") else np.asarray(X)[:, columns]


def weight_keyword(owner: str, model: Any) -> str:
    """Return the keyword by which a model's fit takes the weights; raise if it takes none."""
    from sklearn.pipeline import Pipeline

    if has_fit_parameter(model, "sample_weight"):
        return "sample_weight"
    if isinstance(model, Pipeline) and has_fit_parameter(model.steps[-1][1], "sample_weight"):
        return f"{model.steps[-1][0]}__sample_weight"
    raise DataError(
        f"{owner}: {type(model).__name__}.fit takes no sample_weight, so the weights would be lost "
        f"({type(model).__name__} doesn't support sample_weight). Leave them out, or use a model that takes them."
    )


def _take_further_columns(owner: str, X: Any, columns: dict[str, Any]) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return X without the columns named, and all columns as arrays."""
    names = {name: value for name, value in columns.items() if isinstance(value, str)}
    found = {
        name: as_array(owner, read_values(owner, value), name) for name, value in columns.items() if name not in names
    }
    if not names:
        return X, found
    if not is_frame(X):
        first = next(iter(names.items()))
        raise DataError(
            f"{owner}: {first[0]}={first[1]!r} names a column, but X is no dataframe. Pass the values instead."
        )
    frame = open_frame(owner, X)
    for name, column in names.items():
        if column not in frame.columns:
            raise DataError(f"{owner}: {name}={column!r} is no column. Name one of these: {listed(frame.columns)}.")
        found[name] = read_series(frame.get_column(column))
    return frame.drop(list(set(names.values()))).to_native(), found


def _as_container(owner: str, X: Any) -> Any:
    if hasattr(X, "__dask_graph__"):
        raise DataTypeError(
            f"{owner}: X is a Dask collection, whose rows cannot be taken one by one. Pass X.compute(), or the path of "
            "its files."
        )
    if is_frame(X):
        open_frame(owner, X)
        return X
    if sp.issparse(X):
        return sound_csr(owner, X)
    if hasattr(X, "shape") and hasattr(X, "__getitem__") and len(X.shape) > 0:
        _refuse_containers(owner, X)
        return X
    array = as_array(owner, X, "X")
    if array.ndim == 0:
        check_shape(owner, array.shape, X)
    return array


def _refuse_containers(owner: str, X: Any) -> None:
    """Raise where a cell holds several things: whether a model meets that row must not be left to chance."""
    if getattr(getattr(X, "dtype", None), "kind", "") != "O":
        return
    for cell in np.asarray(X).ravel():
        if isinstance(cell, (dict, list, set, tuple)):
            raise DataTypeError(
                f"{owner}: X holds a {type(cell).__name__}: the argument must be a string or a real number."
            )
