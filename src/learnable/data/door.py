"""The one door for data: arrays, lists, sparse arrays and any dataframe come in, a `Table` comes out.

Everything a model may assume about its data is established here, once: shapes agree, numbers are finite,
weights are positive, classes are counted. What is wrong is said with the estimator's name, the place, and the
remedy. Tables on disk and on Dask enter here too, as further sources of blocks; small files are read whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils.validation import validate_data

from ..core.errors import DataError, DataTypeError
from .arrays import as_array, as_csr, as_numbers, bound_infinity, check_shape, refuse_sparse, require_finite
from .blocks import Blocks, Part
from .dask_blocks import is_dask
from .files import Files
from .fingerprint import scan
from .frames import is_frame, open_frame, read_frame, take_named_columns
from .sources import is_external, open_files, open_source, read_files
from .targets import Target, check_count, check_two_classes, drop_absent_labels, read_target, read_weight

__all__ = ["Table", "door", "read_features", "take_named_columns"]


@dataclass(frozen=True)
class Table:
    """Clean training data.

    Attributes
    ----------
    blocks : Blocks, or another source of blocks
        The rows on the fixed grid. Fits that are sums over rows need nothing else.
    classes : array, list of arrays, or None
        The labels, sorted; `y` holds positions in it. A list if `y` has several columns of labels.
    X : (n, d) float64 or float32 array, or CSR array; None if the rows are not in memory
        As it came where possible: a float array is not copied. CSR indices are sorted, without duplicates.
    y : (n,) or (n, k) float64, or (n,) int64 class codes, or None
        Targets.
    weight : (n,) float64 or None
        Positive weights; None means one each.
    kept : (n_given,) bool or None
        Which of the rows given are here; None if all are. Splitters number the rows as they were given.
    class_weight : (K,) float64 or None
        Total weight of each class, where the rows are not in memory.
    """

    blocks: Any
    classes: Any = None
    X: Any = None
    y: Any = None
    weight: NDArray[np.float64] | None = None
    kept: NDArray[np.bool_] | None = None
    class_weight: NDArray[np.float64] | None = None
    checksum: int | None = None

    @property
    def in_memory(self) -> bool:
        """Whether X, y and weight are arrays."""
        return bool(self.blocks.in_memory)

    @property
    def fingerprint(self) -> str:
        """Checksum of the rows, the targets, the weights and the labels."""
        if self.checksum is not None:
            return f"{self.checksum:016x}"
        return str(self.blocks.fingerprint(self.classes))

    @property
    def n_rows(self) -> int:
        """Number of rows with positive weight."""
        return int(self.blocks.n_rows)

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.blocks.n_columns)

    @property
    def y_shape(self) -> tuple[int, ...]:
        """Shape of one row's target: () or (k,)."""
        return tuple(self.y.shape[1:]) if self.y is not None else ()

    @property
    def weight_sum(self) -> float:
        """Sum of the weights."""
        if not self.in_memory:
            return float(self.blocks.scanned().weight)
        return float(self.n_rows if self.weight is None else self.weight.sum())


def door(
    *,
    target: Target = "numeric",
    sparse: bool = True,
    multi_output: bool = False,
    missing: bool = False,
    infinite: bool = False,
    one_class: bool = False,
) -> Callable[..., Table]:
    """Return the door of one kind of estimator: a function of (estimator, X, y, sample_weight, run).

    Parameters
    ----------
    target : {"numeric", "classes", "none"}
        What `y` is.
    sparse : bool
        Whether sparse input stays sparse, as CSR; otherwise it is refused.
    multi_output : bool
        Whether `y` may have several columns; of several columns of labels, `classes` is a list of their labels.
    missing : bool
        Whether X may hold NaN.
    infinite : bool
        Whether X may hold infinity, too, which becomes the largest number of float64 (`arrays.bound_infinity`). In
        blocks from files and Dask it stays what it is.
    one_class : bool
        Whether all rows in memory may have the same label.
    """

    def read(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        owner = type(estimator).__name__
        if is_external(X):
            X = X if is_dask(X) else open_files(owner, X)
            if not (isinstance(X, Files) and X.is_small()):
                return _read_external(estimator, X, y, sample_weight, target, missing, infinite)
            X = read_files(owner, X)
        X, y, sample_weight = take_named_columns(owner, X, y, sample_weight)
        given = X
        X = read_features(estimator, X, sparse=sparse, reset=True, check_finite=False)
        y, classes = read_target(owner, y, target, multi_output)
        weight = read_weight(owner, sample_weight, X.shape[0])
        if y is not None:
            check_count(owner, X.shape[0], len(y))
        kept = None
        if weight is not None and not weight.all():
            _require_allowed(estimator, X, missing, infinite)  # the rows that are left out, too
            kept = weight > 0  # a row without weight is no row: ranks and degrees of freedom ignore it
            X = X[kept]
            weight = weight[kept]
            y = None if y is None else y[kept]
            if classes is not None:
                y, classes = drop_absent_labels(y, classes)
        if classes is not None and not one_class:
            for labels in classes if isinstance(classes, list) else [classes]:
                check_two_classes(owner, labels)
        blocks = Blocks([Part(X, y, weight)])
        if kept is None and getattr(given, "format", "") == "csc" and given.nnz == X.nnz:  # without duplicates
            blocks.by_columns = sp.csc_array(given)
        checksum, bad_rows = scan(blocks, getattr(run, "n_jobs", None), classes)
        if bad_rows:
            _require_allowed(estimator, X, missing, infinite)
        if bad_rows and infinite:
            X = bound_infinity(X)
            blocks = Blocks([Part(X, y, weight)])
        return Table(blocks, classes, X, y, weight, kept, checksum=checksum)

    return read


def _read_external(
    estimator: Any, X: Any, y: Any, sample_weight: Any, target: Target, missing: bool, infinite: bool
) -> Table:
    """Open a table that stays where it is; what is wrong with its numbers is found in the first sweep."""
    owner = type(estimator).__name__
    opened = open_source(owner, X, y, sample_weight, target)
    if opened.classes is not None:
        check_two_classes(owner, opened.classes)
    opened.blocks.let_pass(missing, infinite)
    estimator.n_features_in_ = opened.blocks.n_columns
    if opened.names is not None:
        estimator.feature_names_in_ = np.asarray(opened.names, dtype=object)
    return Table(opened.blocks, opened.classes, class_weight=opened.class_weight)


def read_features(
    estimator: Any,
    X: Any,
    *,
    sparse: bool = True,
    reset: bool = False,
    check_finite: bool = True,
    missing: bool = False,
    infinite: bool = False,
) -> Any:
    """Return X as a float array or CSR array whose columns are those of the fit.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are compared with X.
    X : array, sparse array, list of rows or dataframe
        Float64 and float32 arrays are returned as they are.
    sparse : bool
        Whether sparse input stays sparse, as CSR; otherwise it is refused.
    reset : bool
        Whether this is a fit, which sets those attributes instead.
    check_finite : bool
        Whether NaN and infinity are looked for here; a fit finds them in its scan.
    missing : bool
        Whether NaN is allowed.
    infinite : bool
        Whether infinity is allowed, too; it becomes the largest number of float64.
    """
    owner = type(estimator).__name__
    if is_frame(X):
        frame = open_frame(owner, X)
        match_columns(estimator, X, reset)
        table = read_frame(owner, frame)
    else:
        table = X
    if sp.issparse(table):
        if not sparse:
            refuse_sparse(owner, table, "X")
        table = as_csr(owner, table)
        check_shape(owner, table.shape)
    else:
        table = as_array(owner, table, "X")
        check_shape(owner, table.shape, X)
        table = as_numbers(owner, table, "X")
    if not is_frame(X):
        match_columns(estimator, table, reset)
    if check_finite and not get_config()["assume_finite"]:
        _require_allowed(estimator, table, missing, infinite)
    return bound_infinity(table) if infinite else table


def _require_allowed(estimator: Any, X: Any, missing: bool, infinite: bool) -> None:
    if missing and infinite:
        return
    require_finite(type(estimator).__name__, X, "X", _feature_names(estimator), missing=missing)


def match_columns(estimator: Any, X: Any, reset: bool) -> None:
    """Compare the number and the names of the columns with those of the fit, or set them."""
    nameless = isinstance(X, np.ndarray) and X.ndim == 2 and not hasattr(estimator, "feature_names_in_")
    if nameless:
        if reset:
            estimator.n_features_in_ = X.shape[1]
            return
        if X.shape[1] == getattr(estimator, "n_features_in_", None):
            return
    try:
        validate_data(estimator, X=X, reset=reset, skip_check_array=True)
    except TypeError as error:
        raise DataTypeError(f"{type(estimator).__name__}: {error}") from error
    except ValueError as error:
        raise DataError(f"{type(estimator).__name__}: {error}") from error


def _feature_names(estimator: Any) -> Any:
    return getattr(estimator, "feature_names_in_", None)
