"""Rows of a table in whatever container it came, for functions that fit a model on some rows and look at others.

What X may be is the model's business: arrays, sparse arrays, lists, any dataframe. Here names become columns, paths
become tables, and rows are counted and taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import has_fit_parameter

from ..core import Array, DataError, DataTypeError, NDArray
from .arrays import as_array, check_shape, sound_csr, take_sparse_rows
from .blocks import Blocks, Part, scan
from .door import (
    Target,
    check_count,
    check_two_classes,
    drop_absent_classes,
    is_frame,
    read_target,
    read_values,
    read_weight,
    take_named_columns,
)
from .encoder_input import read_whole
from .frames import listed, open_frame, read_series

Rows = NDArray[np.int64]
Codes = NDArray[np.int64]


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
        from .files import read_table

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
                f"{shape}. Pass one value per row."
            )
    return RowTable(X, y, read_weight(owner, sample_weight, n_rows), found)


class ClassTable(NamedTuple):
    """Training rows in their container, with class codes."""

    rows: RowTable
    codes: Codes  #: (n,), or (n, K) zeros and ones if rows have several labels each
    classes: NDArray[Any]
    kept: Codes  #: which of the rows given these are
    n_columns: int | None  #: columns of X, where rows are arrays
    n_given: int  #: rows given, those without weight among them

    @property
    def several(self) -> bool:
        """Whether rows have several labels each."""
        return self.codes.ndim == 2


def read_classes(
    owner: str, X: Any, y: Any, sample_weight: Any, *, several: bool = False, one: bool = False
) -> ClassTable:
    """Return the rows with positive weight, and their classes.

    Parameters
    ----------
    owner : str
        Who asks, for error messages.
    X, y, sample_weight
        The data; y may be an indicator of several labels per row if `several`.
    several, one : bool
        Whether rows may have several labels each; whether all may have the same one.
    """
    X, y, sample_weight = take_named_columns(owner, *read_whole(owner, X, y, sample_weight))
    if several and _is_indicator(owner, y):
        codes = np.asarray(y.toarray() if sp.issparse(y) else y).astype(np.int64)
        classes = np.arange(codes.shape[1])
    else:
        codes, found = read_target(owner, y, "classes", False)
        classes = np.asarray(found)
    table = read_rows(owner, X, None, sample_weight)
    check_count(owner, table.n_rows, len(codes))
    n_given = table.n_rows
    kept = np.arange(n_given)
    shape: tuple[int, ...] = getattr(table.X, "shape", ())
    if table.weight is not None and not table.weight.all():
        kept = np.flatnonzero(table.weight)
        rows, _, weight = table.take(kept)
        table = RowTable(rows, None, weight, {})
        codes = codes[kept]
        if codes.ndim == 1:
            codes, classes = drop_absent_classes(codes, classes)
    if not one:
        check_two_classes(owner, classes)
    return ClassTable(table, codes, classes, kept, int(shape[1]) if len(shape) == 2 else None, n_given)


def _is_indicator(owner: str, y: Any) -> bool:
    """Tell whether y has a column of zeros and ones for each label; raise for several targets per row."""
    try:
        y = y if sp.issparse(y) else np.asarray(y)
    except ValueError:  # rows of different lengths: the reader of labels says what is wrong
        return False
    if y.ndim != 2 or y.shape[1] < 2:
        return False
    kind = type_of_target(y)
    if kind != "multilabel-indicator":
        raise DataError(
            f"{owner}: y should be a 1d array, or an indicator of labels. Multioutput target data is not supported "
            f"with label binarization; got {kind} of shape {np.shape(y)}."
        )
    return True


@dataclass(frozen=True)
class Sample:
    """Training rows with positive weight.

    Attributes
    ----------
    X : any container of n rows
        As it was given, without the rows of weight zero.
    y : (n,) float64, or (n,) int64 class codes
        Targets.
    weight : (n,) float64 or None
        Positive weights; None means one each.
    classes : array or None
        The labels, sorted; `y` holds positions in it.
    fingerprint : str
        Checksum of the targets, the weights and their order: folds are sets of row numbers, so the order counts. A
        frame of text has no numbers to sum; that X is the same shows in the recomputed scores.
    kept : (n_given,) bool or None
        Which of the rows given are here; None if all are.
    """

    X: Any
    y: NDArray[Any]
    weight: Array | None
    classes: NDArray[Any] | None
    fingerprint: str
    kept: NDArray[np.bool_] | None

    @property
    def n_rows(self) -> int:
        """Number of rows with positive weight."""
        return len(self.y)

    def labels(self, rows: Rows) -> NDArray[Any]:
        """Return the targets of some rows as the inner model wants them: numbers, or the user's own labels."""
        return self.y[rows] if self.classes is None else self.classes[self.y[rows]]

    def weights(self, rows: Rows) -> Array | None:
        """Return the weights of some rows."""
        return None if self.weight is None else self.weight[rows]


def sample_door(target: Target) -> Callable[..., Sample]:
    """Return the door of a wrapper: a function of (estimator, X, y, sample_weight, run) that gives a `Sample`."""

    def read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Sample:
        owner = type(estimator).__name__
        if isinstance(X, (str, os.PathLike)):
            from .files import read_table

            X = read_table(X)
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        X = _as_rows(owner, X)
        n = count_rows(X)
        codes, classes = read_target(owner, y, target, multi_output=False)
        check_count(owner, n, len(codes))
        weight = read_weight(owner, sample_weight, n)
        kept = None
        if weight is not None and not weight.all():
            kept = weight > 0
            X = take_rows(X, np.flatnonzero(kept))
            codes = codes[kept]
            weight = weight[kept]
            if classes is not None:
                codes, classes = drop_absent_classes(codes, classes)
        if classes is not None:
            check_two_classes(owner, classes)
        order = np.arange(len(codes), dtype=np.float64)[:, None]
        checksum, _ = scan(Blocks([Part(order, codes, weight)]), None, classes)
        return Sample(X, codes, weight, classes, f"{checksum:016x}", kept)

    return read


def as_container(owner: str, X: Any) -> Any:
    """Return X as something whose rows can be taken: a list becomes an array, a sparse array becomes CSR."""
    if is_frame(X):
        return X
    if sp.issparse(X):
        return sound_csr(owner, X)
    return X if hasattr(X, "shape") else np.asarray(X)


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


def _as_rows(owner: str, X: Any) -> Any:
    if is_frame(X):
        open_frame(owner, X)
        check_shape(owner, X.shape)
        return X
    if sp.issparse(X):
        return as_container(owner, X)
    array = as_array(owner, X, "X")
    if array.ndim == 0 or len(array) == 0:
        check_shape(owner, array.shape if array.ndim != 1 else (0, 1), X)
    return array
