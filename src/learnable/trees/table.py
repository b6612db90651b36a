"""The table a grower reads: every column as small integers, built once and shared by all trees.

A split of a number needs only the order of its values, so each column becomes *codes*: the rank of the value among the
distinct ones (exact), or the number of one of at most 255 bins. Code c stands for the values in [low[c], high[c]]; with
ranks both ends are the value itself. The cut between two codes that are neighbours in a node is the midpoint of
high[left] and low[right]: scikit-learn's threshold, and the edge of a bin. Missing values have the code n_codes, above
all others; categories are their own codes.

Memory: one or four bytes per cell, or eight bytes for each stored entry of a sparse table; and eight bytes for each
distinct value, which are as many as cells where all values differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.jit import kernel
from ..core.threads import run_tasks
from .histogram.bins import SAMPLE_ROWS, midpoints
from .histogram.sharing import category_codes

# --------------------------------------------------------------------------------------------------------------------
# Kernels of `Columns`: ranks of sorted values, numbers of bins.


@kernel
def rank_sorted(
    x: NDArray[Any], order: NDArray[np.int64], codes: NDArray[np.uint32], distinct: NDArray[np.float64]
) -> int:
    """Write the rank of each value; NaN, sorted last, gets one rank above all. Return the number of values."""
    n_codes = 0
    last = 0.0
    for i in range(order.size):
        v = np.float64(x[order[i]])
        if v != v:
            for k in range(i, order.size):
                codes[order[k]] = np.uint32(n_codes)
            return n_codes
        if i == 0 or v != last:
            distinct[n_codes] = v
            n_codes += 1
            last = v
        codes[order[i]] = np.uint32(n_codes - 1)
    return n_codes


@kernel
def bin_column(x: NDArray[Any], edges: NDArray[np.float64], n_bins: int, codes: NDArray[np.uint8]) -> None:
    """Write the number of edges below each value; NaN gets `n_bins`."""
    n = edges.size
    for i in range(x.size):
        v = np.float64(x[i])
        if v != v:
            codes[i] = np.uint8(n_bins)
            continue
        below = 0
        size = n
        while size > 0:
            half = size >> 1
            go = edges[below + half] < v
            below = below + half + 1 if go else below
            size = size - half - 1 if go else half
        codes[i] = np.uint8(below)


_WORTH_A_THREAD = 1 << 16  # cells
_MANY_CELLS = 1 << 24  # from here on one byte per cell is worth kernels of its own


@dataclass(frozen=True)
class Columns:
    """Codes of all columns.

    Attributes
    ----------
    codes : (d, n) uint8 or uint32; (0, 0) if sparse
        One row per column of the table.
    entries, rows, start : (nnz,) uint32, (nnz,) int32, (d+1,) int64
        Of a sparse table: codes and (ascending) row numbers of the stored entries of each column.
    zero : (d,) int64
        Of a sparse table: the code of what is not stored.
    n_codes : (d,) int64
        Codes of column j are 0 … n_codes[j] − 1; n_codes[j] is the code of a missing value.
    categorical : (d,) bool
        Whether the codes have no order.
    offset, low, high : (d+1,) int64, float64, float64
        Smallest and largest value of code c of column j: low[offset[j] + c], high[offset[j] + c].
    n_rows : int
        Rows of the table.
    """

    codes: NDArray[Any]
    entries: NDArray[np.uint32]
    rows: NDArray[np.int32]
    start: NDArray[np.int64]
    zero: NDArray[np.int64]
    n_codes: NDArray[np.int64]
    categorical: NDArray[np.bool_]
    offset: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_rows: int

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.n_codes)

    @property
    def sparse(self) -> bool:
        """Whether only entries that are not zero are stored."""
        return self.codes.shape != (self.n_columns, self.n_rows)

    @staticmethod
    def build(
        X: Any,
        *,
        max_bins: int | None = None,
        categorical: NDArray[np.bool_] | None = None,
        n_threads: int = 1,
        owner: str = "Columns",
    ) -> Columns:
        """Return the codes of X.

        Parameters
        ----------
        X : (n, d) float array, CSR or CSC array
            NaN is a missing value.
        max_bins : int or None
            At most this many codes per column (2 … 255), by quantiles; None: one code for each distinct value.
        categorical : (d,) bool or None
            Columns whose values are codes of categories: whole numbers from 0 to 65535.
        n_threads : int
            Columns are independent.
        owner : str
            In whose name errors speak.
        """
        n, d = X.shape
        n_threads = n_threads if n * d >= _WORTH_A_THREAD else 1
        is_category = np.zeros(d, bool) if categorical is None else np.asarray(categorical, bool)
        sparse = sp.issparse(X)
        X = X.tocsc() if sparse else X

        codes = np.empty((0, 0) if sparse else (d, n), np.uint32 if max_bins is None or is_category.any() else np.uint8)

        def encode(j: int) -> _Coded:
            values = X.data[X.indptr[j] : X.indptr[j + 1]] if sparse else X[:, j]
            has_zero = sparse and len(values) < n
            if is_category[j]:
                coded = _encode_categories(values, has_zero, f"{owner}: column {j}")
            else:
                coded = _encode_numbers(values, n if has_zero else len(values), max_bins)
            if sparse:
                return coded
            codes[j] = coded.codes
            return coded._replace(codes=codes[j])

        coded = run_tasks(encode, d, n_threads)
        n_codes = np.array([len(c.low) for c in coded], dtype=np.int64)
        offset = np.r_[0, np.cumsum(n_codes)].astype(np.int64)
        low = np.empty(offset[-1])
        high = low if max_bins is None else np.empty(offset[-1])

        def store(j: int) -> None:
            low[offset[j] : offset[j + 1]] = coded[j].low
            high[offset[j] : offset[j + 1]] = coded[j].high

        run_tasks(store, d, n_threads)
        entries = np.zeros(0, np.uint32)
        rows = np.zeros(0, np.int32)
        start = np.zeros(d + 1, np.int64)
        if sparse:
            entries = np.concatenate([c.codes for c in coded]).astype(np.uint32)
            rows = X.indices.astype(np.int32)
            start = X.indptr.astype(np.int64)
        elif n_codes.max() < 256 and (max_bins is not None or n * d >= _MANY_CELLS):
            codes = codes.astype(np.uint8, copy=False)
        zero = np.array([c.zero for c in coded], dtype=np.int64)
        return Columns(codes, entries, rows, start, zero, n_codes, is_category, offset, low, high, n)


class _Coded(NamedTuple):
    codes: NDArray[Any]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    zero: int = 0


def _encode_numbers(values: NDArray[Any], n_rows: int, max_bins: int | None) -> _Coded:
    """Code the stored values of one column; if there are fewer than rows, the rest are zeros."""
    implicit = n_rows > len(values)
    x = np.ascontiguousarray(values)
    if implicit:
        x = np.append(x, x.dtype.type(0))
    coded = _rank(x) if max_bins is None else _bin(x, n_rows - len(x), max_bins)
    if implicit:
        return _Coded(coded.codes[:-1], coded.low, coded.high, int(coded.codes[-1]))
    return coded


def _rank(x: NDArray[Any]) -> _Coded:
    order = np.argsort(x)
    codes = np.empty(len(x), np.uint32)
    distinct = np.empty(len(x), np.float64)
    low = distinct[: rank_sorted(x, order, codes, distinct)]
    return _Coded(codes, low, low)


def _bin(x: NDArray[Any], n_more_zeros: int, max_bins: int) -> _Coded:
    """Cut one column into bins of about equal size; few distinct values have a bin each."""
    present = x[~np.isnan(x)].astype(np.float64)
    step = sample_step(len(present) + n_more_zeros)
    edges = bin_edges(np.sort(present[::step]), max_bins, n_more_zeros // step)
    n_bins = len(edges) + 1 if len(present) else 0
    codes = np.empty(len(x), np.uint8)
    bin_column(x, edges, n_bins, codes)
    if not n_bins:
        return _Coded(codes, np.zeros(0), np.zeros(0))
    low = np.r_[present.min(), edges]
    high = np.r_[edges, present.max()]
    return _Coded(codes, low, high)


def sample_step(n_present: int) -> int:
    """Return of how many values of a column one decides about its bins."""
    return -(-n_present // SAMPLE_ROWS) or 1


def bin_edges(sample: NDArray[np.float64], max_bins: int, n_more_zeros: int = 0) -> NDArray[np.float64]:
    """Return the edges of bins of about equal size, of a sorted sample and zeros that are not in it.

    Examples
    --------
    >>> bin_edges(np.array([0.0, 1.0, 1.0, 4.0]), 255).tolist()
    [0.5, 2.5]
    """
    distinct = sample[np.r_[True, sample[1:] != sample[:-1]]] if len(sample) else sample
    if len(distinct) <= max_bins:
        return midpoints(distinct[:-1], distinct[1:])
    if n_more_zeros:  # those that are not stored weigh as much as the others
        sample = np.sort(np.r_[sample, np.zeros(n_more_zeros)])
    at = np.linspace(0, len(sample), max_bins + 1)[1:-1].astype(np.int64)
    above = sample[at]
    below = distinct[np.maximum(np.searchsorted(distinct, above) - 1, 0)]
    edges = midpoints(below, above)
    return edges[np.r_[True, edges[1:] > edges[:-1]] & (edges >= distinct[0]) & (edges < distinct[-1])]


def _encode_categories(values: NDArray[Any], has_zero: bool, who: str) -> _Coded:
    known, given = category_codes(values, who)
    n_codes = int(given.max()) + 1 if given.size else int(has_zero)
    codes = np.full(len(known), n_codes, np.uint32)
    codes[known] = given
    levels = np.arange(n_codes, dtype=np.float64)
    return _Coded(codes, levels, levels)
