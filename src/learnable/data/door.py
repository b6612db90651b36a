"""The one door for data: arrays, lists, sparse arrays and any dataframe come in, a `Table` comes out.

Everything a model may assume about its data is established here, once: shapes agree, numbers are finite, weights are
positive, classes are counted. What is wrong is said with the estimator's name, the place, and the remedy. Tables on
disk and on Dask enter here too, as further sources of blocks; small files are read whole.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core import ArrayLike, DataError, DataTypeError, Number, ParameterError
from .arrays import (
    as_array,
    as_csr,
    as_numbers,
    as_numpy_reads,
    bound_infinity,
    check_shape,
    kind_of,
    refuse_sparse,
    require_finite,
    settle_objects,
)
from .blocks import Blocks, Part, scan
from .files import Files
from .frames import listed, open_frame, read_frame, read_series

_PLAIN = (np.ndarray, list, tuple)  # told at once; narwhals asks every library in turn


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

    def require_memory(self, message: str) -> None:
        """Raise DataError with this message if the rows are in files or on Dask."""
        if not self.in_memory:
            raise DataError(message)

    @property
    def fingerprint(self) -> str:
        """Checksum of the rows, the targets, the weights and the labels."""
        return str(self.blocks.fingerprint(self.classes)) if self.checksum is None else f"{self.checksum:016x}"

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
        return tuple(self.y.shape[1:]) if self.y is not None else tuple(getattr(self.blocks, "y_shape", ()))

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
    several_on_dask: bool = False,
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
    several_on_dask : bool
        Whether a Dask `y` of numbers may have several columns.
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
            from .sources import open_files, read_files  # here, because it needs the readers of targets below

            X = X if is_dask(X) else open_files(owner, X)
            if not (isinstance(X, Files) and X.is_small()):
                return _read_external(estimator, X, y, sample_weight, target, missing, infinite, several_on_dask)
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
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    target: Target,
    missing: bool,
    infinite: bool,
    several: bool = False,
) -> Table:
    """Open a table that stays where it is; what is wrong with its numbers is found in the first sweep."""
    from .sources import open_source

    owner = type(estimator).__name__
    opened = open_source(owner, X, y, sample_weight, target, several)
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
    """Return X as a float array or CSR array whose columns are those of the fit; raise NotFittedError before it.

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
    if not reset and not hasattr(estimator, "n_features_in_"):
        check_is_fitted(estimator)
    if is_plain(X):
        match_columns(estimator, X, reset)
        table = X
    else:
        table = _convert(estimator, X, sparse, reset)
    if check_finite and not get_config()["assume_finite"]:
        _require_allowed(estimator, table, missing, infinite)
    if isinstance(table, np.ndarray) and not table.flags.aligned:
        table = table.copy(
            order="K"
        )  # BLAS takes no odd addresses, as what came over a network may have: other last bits
    return bound_infinity(table) if infinite else table


def is_plain(X: Any) -> bool:
    """Tell whether X is a NumPy array of rows of float64 or float32, which is taken as it is."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in (np.float64, np.float32)


def is_external(X: Any) -> bool:
    """Tell whether X is a path, files, or a Dask collection."""
    return isinstance(X, (str, os.PathLike, Files)) or is_dask(X)


def is_dask(X: Any) -> bool:
    """Tell whether X is a Dask array, dataframe or series."""
    return "dask" in sys.modules and hasattr(X, "__dask_graph__") and hasattr(type(X), "to_delayed")


def is_frame(X: Any) -> bool:
    """Tell whether X is an eager dataframe: pandas, polars, Arrow, Modin, cuDF."""
    return not isinstance(X, _PLAIN) and bool(nw.dependencies.is_into_dataframe(X))


def is_dask_frame(X: Any) -> bool:
    """Tell whether X is a Dask dataframe."""
    return is_dask(X) and hasattr(X, "columns") and X.ndim == 2


def read_values(owner: str, values: Any) -> Any:
    """Return a Series or dataframe of targets as an array; anything else as it is."""
    if isinstance(values, _PLAIN):
        return values
    if nw.dependencies.is_into_series(values):
        return read_series(nw.from_native(values, series_only=True))
    if is_frame(values):
        frame = open_frame(owner, values)
        columns = [read_series(frame.get_column(name)) for name in frame.columns]
        return np.column_stack(columns) if columns else np.empty(frame.shape)
    return values


def take_named_columns(owner: str, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Take the columns that `y` and `sample_weight` name out of the dataframe X."""
    names = [name for name in (y, sample_weight) if isinstance(name, str)]
    if not names:
        return X, y, sample_weight
    if not is_frame(X):
        raise DataError(
            f"{owner}: the column name {names[0]!r} needs a dataframe, but X is {kind_of(X)}. Pass the values instead."
        )
    frame = open_frame(owner, X)
    for name in names:
        if name not in frame.columns:
            raise DataError(f"{owner}: there is no column {name!r}. Name one of these: {listed(frame.columns)}.")
    if len(set(names)) < len(names):
        raise DataError(f"{owner}: y and sample_weight both name column {y!r}. Name two different columns.")
    y, sample_weight = (
        read_series(frame.get_column(name)) if isinstance(name, str) else name for name in (y, sample_weight)
    )
    return frame.drop(names).to_native(), y, sample_weight


def _convert(estimator: Any, X: Any, sparse: bool, reset: bool) -> Any:
    """Return the numbers of a frame, a list, a sparse array or an array of another type."""
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
    return table


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


# --------------------------------------------------------------------------------------------------------------------
# Targets, labels and weights of the rows, checked and in the form the solvers want.


T = TypeVar("T")

Target = Literal["numeric", "classes", "none"]

LARGEST_WEIGHT = 1e100
LARGEST_TARGET = 1e300
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
    values = y if type(y) is np.ndarray else as_array(owner, read_values(owner, y), "y")
    if target == "classes" and not has_dtype:
        values = as_numpy_reads(values)
    if target == "classes" and multi_output and values.ndim == 2 and values.shape[1] > 1:
        encoded = [encode_classes(owner, values[:, k]) for k in range(values.shape[1])]
        return np.column_stack([codes for codes, _ in encoded]), [classes for _, classes in encoded]
    if target == "classes":
        codes, classes = encode_classes(owner, _as_one_column(owner, values))
        # A list of strings gets NumPy's own string type, as np.asarray would give it.
        return codes, classes if has_dtype or classes.dtype != object else classes.astype(np.str_)
    if not (multi_output and values.ndim == 2 and values.shape[1]):
        values = _as_one_column(owner, values)
    if values.dtype != np.float64:
        values = as_numbers(owner, values, "y").astype(np.float64, copy=False)
    if not np.abs(values).max(initial=0.0) <= LARGEST_TARGET:
        require_finite(owner, values, "y")
        raise DataError(f"{owner}: y reaches beyond {LARGEST_TARGET:g}, where differences overflow; rescale it.")
    return values, None


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
        labels = settle_objects(owner, labels)
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


# --------------------------------------------------------------------------------------------------------------------
# What some models ask of a table besides: weights of the classes, and entries whose squares can be summed.


LARGEST_ENTRY = 1e100  # whose squares can still be summed
SMALLEST_ENTRY = 1e-100  # whose squares do not vanish
TOO_LARGE = (
    f"{{owner}}: {{what}} reaches {{size:.3g}}, beyond {LARGEST_ENTRY:g}, so that sums of squares would "
    "overflow; rescale it, for example by StandardScaler."
)


def class_weights(table: Any, class_weight: Any, owner: str) -> NDArray[np.float64] | None:
    """Return the weight of each class of a table's labels, or None if all are one."""
    if class_weight is None:
        return None
    classes = np.asarray(table.classes)
    n_classes = len(classes)
    if isinstance(class_weight, str):  # "balanced": every class gets the same total
        in_memory = table.class_weight is None
        totals = np.bincount(table.y, table.weight, n_classes) if in_memory else np.asarray(table.class_weight)
        return np.asarray(totals.sum() / (n_classes * totals))
    missing = [label for label in classes.tolist() if label not in class_weight]
    unknown = [label for label in class_weight if label not in classes.tolist()]
    if missing and unknown:  # keys of classes that a part of the rows lacks are fine where every class has its own
        raise ParameterError(
            f"{owner}: class_weight must name the classes of y; got {unknown[0]!r}, which is none of them, and nothing "
            f"for {missing[0]!r}. Write the labels as y has them."
        )
    values = [class_weight.get(label, 1.0) for label in classes.tolist()]
    if not ArrayLike(Number(low=0.0)).allows(values) or not any(values):
        raise ParameterError(
            f"{owner}: class_weight must be positive numbers, or zero for some classes; got {class_weight!r}."
        )
    return np.array(values, dtype=np.float64)


def refuse_extreme_sizes(X: Any, weight: NDArray[np.float64] | None, owner: str, name: str = "X") -> None:
    """Raise where sums of squares over the rows would overflow; `name` says what X is."""
    data = X.data if hasattr(X, "indptr") else X
    largest = max(float(data.max(initial=0.0)), -float(data.min(initial=0.0)))
    heaviest = 1.0 if weight is None else float(weight.max())
    for what, size in ((name, largest), ("sample_weight", heaviest)):
        if size > LARGEST_ENTRY:
            raise DataError(TOO_LARGE.format(owner=owner, what=what, size=size))


def refuse_tiny_sizes(owner: str, **columns: Any) -> None:
    """Raise where all squares would underflow to zero."""
    for name, values in columns.items():
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if 0.0 < largest < SMALLEST_ENTRY:
            raise DataError(
                f"{owner}: {name} reaches only {largest:.3g}, below {SMALLEST_ENTRY:g}, so that sums of squares would "
                "underflow; rescale it, for example by StandardScaler."
            )
