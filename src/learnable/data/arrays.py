"""Arrays, lists and sparse arrays as numbers.

Native float64 and float32 arrays are taken as they are, in any memory order; everything else is converted to
float64 once. What is not a number is refused, with its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError, DataTypeError

_CHUNK_ROWS = 4096  # keeps the search for a NaN in the cache


def as_array(owner: str, values: Any, name: str) -> NDArray[Any]:
    """Return `values` as an array of whatever type; masked, sparse and ragged values are refused."""
    if sp.issparse(values):
        refuse_sparse(owner, values, name)
    if np.ma.isMaskedArray(values) and (mask := np.ma.getmaskarray(values)).any():
        place = place_of(np.argwhere(mask)[0])
        raise DataError(
            f"{owner}: {name} has {int(mask.sum())} masked value(s), the first in {place}. "
            "Fill them (filled) or drop their rows."
        )
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and not hasattr(values, "dtype"):
            # A list of strings and numbers: NumPy has made strings of the numbers.
            array = np.asarray(values, dtype=object)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{owner}: {_why_unreadable(values, name, error)}") from error
    return array


def as_numbers(owner: str, array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array as native float64 or float32, copying only what is of another type."""
    kind = array.dtype.kind
    if array.dtype in (np.float64, np.float32):
        return array
    if kind in "biuf":
        with np.errstate(over="ignore"):  # what a long double loses becomes infinity, and is found as such
            return array.astype(np.float64)
    if kind == "c":
        raise DataError(f"{owner}: Complex data not supported; {name} is {array.dtype}. Pass the real part.")
    if kind != "O":
        refuse_type(owner, name, f"it has dtype {array.dtype}")
    return _objects_as_numbers(owner, array, name)


def as_csr(owner: str, X: Any) -> Any:
    """Return a sparse matrix or array as a CSR array with sorted indices, no duplicates, and float data."""
    if X.ndim != 2:
        refuse_shape(owner, X.shape)
    if X.dtype.kind == "c":
        raise DataError(f"{owner}: Complex data not supported; X is {X.dtype}. Pass the real part.")
    if X.dtype.kind not in "biuf":
        refuse_type(owner, "X", f"it has dtype {X.dtype}")
    csr = sp.csr_array(sound_csr(owner, X))
    if csr.dtype not in (np.float64, np.float32):
        csr = csr.astype(np.float64)
    if not csr.has_canonical_format:
        if X.format == "csr" and np.may_share_memory(csr.data, X.data):
            csr = csr.copy()  # the caller's array stays as it is
        csr.sum_duplicates()
    return _with_short_indices(csr)


def sound_csr(owner: str, X: Any) -> Any:
    """Return a sparse matrix or array in CSR form, its structure checked: SciPy and our kernels trust indices.

    This is the door for every sparse table whose rows or columns are taken: with row ends or indices out of range
    SciPy would read memory that is not the array's. What is CSR already comes back as it is.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> X = sp.csr_array([[0.0, 1.0], [2.0, 0.0]])
    >>> sound_csr("Ridge", X) is X
    True
    >>> X.indptr[1] = 9
    >>> sound_csr("Ridge", X)
    Traceback (most recent call last):
    learnable.core.errors.DataError: Ridge: X is a damaged CSR array: ... Build it again.
    """
    try:
        checked = _with_checked_indices(X)
        return X if X.format == "csr" else checked.tocsr()
    except (ValueError, IndexError) as error:
        raise DataError(f"{owner}: X is a damaged {X.format.upper()} array: {error}. Build it again.") from error


def take_sparse_rows(X: Any, rows: Any) -> Any:
    """Return rows of a CSR array; the ends of the rows taken are checked, which costs less than to take them."""
    chosen = np.arange(X.shape[0])[rows]  # numbers, whether rows are numbers, truth values or a slice
    sound = len(X.indptr) == X.shape[0] + 1
    if sound:
        first = X.indptr[chosen]
        last = X.indptr[chosen + 1]
        stored = min(len(X.indices), len(X.data))
        sound = bool(((first >= 0) & (first <= last) & (last <= stored)).all())
    if not sound:
        raise DataError("X is a damaged CSR array: the ends of its rows are out of range. Build it again.")
    return X[rows]


def _with_short_indices(csr: Any) -> Any:
    """Return the array with 32-bit indices where they suffice: sweeps over the rows then read a quarter less."""
    if csr.indices.dtype == np.int32 or max(csr.nnz, csr.shape[1]) >= 2**31:
        return csr
    short = sp.csr_array(csr.shape, dtype=csr.dtype)
    short.data = csr.data
    short.indices = csr.indices.astype(np.int32)
    short.indptr = csr.indptr.astype(np.int32)
    return short


def check_shape(owner: str, shape: tuple[int, ...], X: Any = None) -> None:
    """Raise DataError unless `shape` has two dimensions, rows and columns; X is what it was read from."""
    if len(shape) == 0:
        raise DataTypeError(
            f"{owner}: X must be a table, but it is {kind_of(X)}. "
            "Pass a 2D array, a list of rows, a sparse array or an eager dataframe."
        )
    if len(shape) != 2:
        refuse_shape(owner, shape)
    for size, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise DataError(
                f"{owner}: Found array with 0 {what} (shape={shape}) while a minimum of 1 is required. "
                "Pass X with at least one row and one column."
            )


def refuse_sparse(owner: str, values: Any, name: str) -> NoReturn:
    """Raise the error for sparse data where they are not supported."""
    raise DataTypeError(
        f"{owner}: Sparse data was passed for {name}, but dense data is required; got {kind_of(values)}. "
        f"Pass {name}.toarray()."
    )


def refuse_shape(owner: str, shape: tuple[int, ...]) -> NoReturn:
    """Raise the error for an X that is not two-dimensional."""
    if len(shape) > 2:
        raise DataError(
            f"{owner}: Found array with dim {len(shape)}, while dim <= 2 is required; X has shape {shape}. "
            "Pass one row per sample, for example X.reshape(len(X), -1)."
        )
    raise DataError(
        f"{owner}: Expected 2D array, got {len(shape)}D array instead: X has shape {shape}. "
        "Reshape your data with X.reshape(-1, 1) if it has one feature, or X.reshape(1, -1) if it is one row."
    )


def refuse_type(owner: str, name: str, what: str) -> NoReturn:
    """Raise the error for data that are not numbers; `what` says what they are."""
    raise DataTypeError(
        f"{owner}: {name} is not numeric: {what}; an argument must be free of strings and of anything else "
        "that is not a number. Convert it with astype(float), or let learnable.TableModel encode text, categories and "
        "dates: TableModel(estimator).fit(table, target)."
    )


def require_finite(
    owner: str, values: Any, name: str, columns: Sequence[str] | None = None, *, missing: bool = False
) -> None:
    """Raise DataError if an array or a CSR array holds infinity or, unless it may be `missing`, NaN.

    `columns` are the names of its columns.
    """
    numbers = values.data if sp.issparse(values) else values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(numbers.sum()):  # a sum over NaN or infinity is never finite
            return
    found = _first_not_finite(values, missing)
    if found is None:
        return
    place, value = found
    what, remedy = ("NaN", "Impute it") if np.isnan(value) else ("infinity", "Replace it")
    if what == "NaN" and name == "X":
        remedy += " (sklearn.impute.SimpleImputer)"
    where = place_of(place, columns)
    raise DataError(f"{owner}: Input {name} contains {what}, first in {where}. {remedy} or drop the row.")


def bound_infinity(X: Any) -> Any:
    """Return an array or CSR array with the largest numbers of float64 in place of infinity; X itself if it has none.

    The order of the numbers stays what it is, and every difference has a sign.
    """
    numbers = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(numbers.sum()) or not np.isinf(numbers).any():
            return X
    largest = np.finfo(np.float64).max
    bounded = np.clip(numbers.astype(np.float64), -largest, largest)
    return sp.csr_array((bounded, X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else bounded


def place_of(place: Sequence[int] | NDArray[Any], columns: Sequence[str] | None = None) -> str:
    """Return a row, or a row and a column, in words."""
    words = [f"{axis} {int(at)}" for axis, at in zip(("row", "column"), place, strict=False)]
    if columns is not None and len(place) == 2:
        words[1] = f"column {columns[int(place[1])]!r}"
    return ", ".join(words) or "it"


def kind_of(value: Any) -> str:
    """Return what a value is, in words: "a list", "a pandas DataFrame"."""
    if value is None:
        return "None"
    package = type(value).__module__.partition(".")[0]
    words = type(value).__name__ if package == "builtins" else f"{package} {type(value).__name__}"
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _with_checked_indices(X: Any) -> Any:
    """Return X, sharing its memory where it can, or raise ValueError."""
    if X.format == "coo":
        return sp.coo_array((X.data, (X.row, X.col)), shape=X.shape)
    if X.format in ("csr", "csc", "bsr"):
        X = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[X.format](X)
        X.check_format(full_check=True)
        return X
    csr = sp.csr_array(X)  # lists of lists and dicts are copied without a look at their column numbers
    csr.check_format(full_check=True)
    return csr


def _objects_as_numbers(owner: str, objects: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return the numbers in an object array; None becomes NaN, text is refused even if it spells a number."""
    types = set(map(type, objects.reshape(-1).tolist()))
    strange = {t for t in types if not issubclass(t, Real | Decimal | np.bool_ | type(None))}
    if strange:
        place, value = next((at, v) for at, v in np.ndenumerate(objects) if type(v) in strange)
        if isinstance(value, complex | np.complexfloating):
            raise DataError(
                f"{owner}: Complex data not supported; {name} holds {value} in {place_of(place)}. Pass the real part."
            )
        refuse_type(owner, name, f"{place_of(place)} holds {_shown(value)}, {kind_of(value)}")
    try:
        return objects.astype(np.float64)
    except OverflowError as error:
        raise DataError(f"{owner}: {name} holds an integer that is too large for float64. Scale it down.") from error


def _first_not_finite(values: Any, missing: bool = False) -> tuple[tuple[int, ...], float] | None:
    """Return the place and the value of the first number that is infinite or, unless it may be missing, NaN."""
    is_bad = np.isinf if missing else _is_not_finite
    if sp.issparse(values):
        entries = np.flatnonzero(is_bad(values.data))
        if not entries.size:
            return None
        row = int(np.searchsorted(values.indptr, entries[0], side="right")) - 1
        return (row, int(values.indices[entries[0]])), float(values.data[entries[0]])
    for start in range(0, len(values), _CHUNK_ROWS):
        bad = is_bad(values[start : start + _CHUNK_ROWS])
        if bad.any():
            place = np.argwhere(bad)[0]
            place[0] += start
            return tuple(place.tolist()), float(values[tuple(place)])
    return None


def _is_not_finite(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(~np.isfinite(values))


def _why_unreadable(values: Any, name: str, error: Exception) -> str:
    """Say why NumPy cannot make an array of `values`."""
    if isinstance(values, list | tuple):
        lengths = [len(row) if hasattr(row, "__len__") else None for row in values]
        for number, length in enumerate(lengths):
            if length != lengths[0]:
                first, this = ("no length" if n is None else f"length {n}" for n in (lengths[0], length))
                return f"{name} is ragged: row 0 has {first}, row {number} has {this}. Give all rows the same."
    return f"{name} cannot be read as an array ({kind_of(values)}): {' '.join(str(error).split())}"


def _shown(value: Any, width: int = 40) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"


# --------------------------------------------------------------------------------------------------------------------
# Labels that came as Python objects.


def as_numpy_reads(values: NDArray[Any]) -> NDArray[Any]:
    """Return a list of strings and numbers as what `np.asarray` makes of it: all of them are strings then."""
    if values.dtype.kind != "O":
        return values
    types = set(map(type, values.ravel().tolist()))
    text = {t for t in types if issubclass(t, str)}
    mixed = text and types - text and all(issubclass(t, Real | np.bool_) for t in types - text)
    if not mixed or any(map(_is_missing, values.ravel().tolist())):
        return values
    return np.array(values.tolist())


def settle_objects(owner: str, labels: NDArray[Any]) -> NDArray[Any]:
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
