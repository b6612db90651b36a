"""The table that boosting reads: every value as one byte, by rows and by columns.

`Bins` says how values become bytes and is found from at most 200,000 rows, drawn by their number in the whole table, so
that blocks from disk give the edges of the table in memory. `BinnedTable` holds the bytes twice: row by row in groups
of at most 16 columns (histograms read all columns of few rows) and column by column (a split reads one column of many).

- A number has at most 255 bins of about equal weight, one for each value where there are few; x is in bin b when
  edge[b−1] < x <= edge[b]. Missing values have the code after the last bin.
- A level of a category has a bin of its own; where there are more levels than bins, rare ones that are alike share
  (`sharing`).
- Columns of a sparse table that are never non-zero in the same row share a byte ("exclusive feature bundling", Ke et
  al., LightGBM, NIPS 2017): code 0 says that all are zero, and each has codes for its other bins.

How to use it:

    bins = Bins.fit(X, max_bins=255, categorical=mask, weight=None, seed=0, n_threads=2)   # or of a sample of rows
    table = bins.encode(X, n_threads=2)                     # BinnedTable; BinnedTable.build(X, ...) does both
    rows = sample_rows(n_rows, seed)                        # which rows `Bins.fit` looks at, ascending

Memory: two bytes per cell (columns in groups of less than 16 are padded).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import Array, NDArray, ParameterError, run_tasks
from ...core.jit import kernel, lean_kernel
from .sharing import bundle, level_bins, transpose

# --------------------------------------------------------------------------------------------------------------------
# Edges between the bins of a column of numbers: values of large weight have bins of their own.
#
# With equal shares alone, a column that is zero in nine of ten rows would spend nine of ten bins on that one value.
# So a value that has the weight of a bin or more gets its own, and the other bins share what is left, as in LightGBM
# (Ke et al., NIPS 2017).


#: Rows from which the edges of bins are computed; more would not move them visibly.
SAMPLE_ROWS = 200_000


def midpoints(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (a + b)/2 without overflow, and below b."""
    middle = a / 2 + b / 2
    return np.where((middle >= b) | (middle < a), a, middle)


def bin_edges(values: NDArray[Any], weight: Array | None, max_bins: int) -> Array:
    """Return the edges between at most `max_bins` bins; NaN and rows without weight do not count.

    Examples
    --------
    >>> bin_edges(np.array([0.0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), None, 3).tolist()
    [0.5, 2.5]
    """
    present = ~np.isnan(values) if weight is None else ~np.isnan(values) & (weight > 0)
    x = values if present.all() else values[present]
    if weight is None:
        x = np.sort(x)
        cumulated = None
    else:
        order = np.argsort(x, kind="stable")
        x, cumulated = x[order], np.cumsum(weight[present][order])
    if not len(x):
        return np.zeros(0)
    new = np.r_[True, x[1:] != x[:-1]]
    distinct = x[new].astype(np.float64)
    if len(distinct) <= max_bins:
        return midpoints(distinct[:-1], distinct[1:])
    run = -(-len(x) // max_bins)  # so many equal values in a row fill a bin
    if cumulated is not None or (x[run - 1 :] == x[: len(x) - run + 1]).any():
        ends = np.r_[np.flatnonzero(new)[1:], len(x)]
        total = ends.astype(np.float64) if cumulated is None else cumulated[ends - 1]
        mass = np.diff(total, prepend=0.0)
        heavy = mass >= total[-1] / max_bins
        if heavy.any():
            last = _last_of_bins(mass, heavy, max_bins)
            return midpoints(distinct[last], distinct[last + 1])
    share = np.linspace(0, 1, max_bins + 1)[1:-1]
    if cumulated is None:
        at = (share * len(x)).astype(np.int64)
    else:
        at = np.minimum(np.searchsorted(cumulated, share * cumulated[-1], side="right"), len(x) - 1)
    above = np.cumsum(new)[at] - 1  # numbers of the distinct values that begin the bins
    above = np.unique(above[above > 0])
    return midpoints(distinct[above - 1], distinct[above])


def _last_of_bins(mass: Array, heavy: NDArray[np.bool_], max_bins: int) -> NDArray[np.int64]:
    """Return the numbers of the distinct values that end a bin, the last bin excepted.

    A bin ends when it has its share of the light weight that is left, at a heavy value, or before one if it is half
    full by then.
    """
    light = np.cumsum(np.where(heavy, 0.0, mass))
    heavy_at = np.flatnonzero(heavy).tolist()
    last: list[int] = []
    first, taken, passed = 0, 0.0, 0
    while len(last) < max_bins - 1 and first < len(mass):
        bins_left = max_bins - len(last) - (len(heavy_at) - passed)
        share = (light[-1] - taken) / max(1, bins_left)
        # A thousandth less: sums of shares must not miss a value by rounding.
        end = max(first, int(np.searchsorted(light, taken + 0.999 * share)))
        if passed < len(heavy_at) and heavy_at[passed] <= end:
            at = heavy_at[passed]
            before = float(light[at]) - taken
            if at > first and before >= 0.5 * share:
                end = at - 1
            else:
                end = at
                passed += 1
        if end >= len(mass) - 1:
            break
        last.append(end)
        first, taken = end + 1, float(light[end])
    return np.array(last, dtype=np.int64)


# --------------------------------------------------------------------------------------------------------------------
# Values become bytes.


Bytes = NDArray[np.uint8]

_BLOCK = 256  # rows of a column that are searched together


@lean_kernel
def find_bin(x: Any, edges: Any) -> Any:
    """Return how many of 255 ascending edges are below x, by eight halvings without a branch."""
    at = np.uint64(0)
    for k in range(7, -1, -1):
        step = np.uint64(1 << k)
        at += step if x > edges[at + step - np.uint64(1)] else np.uint64(0)
    return at


@lean_kernel
def level_code(x: Any, levels: Any, missing: Any) -> Any:
    """Return the bin of level x, that of missing values if it was not seen."""
    if x >= 0 and x < levels.size:
        found = np.int64(levels[np.int64(x)])
        return found if found >= 0 else missing
    return missing


@kernel
def bin_rows(
    X: Any, lo: Any, edges: Any, n_bins: Any, categorical: Any, level_start: Any, level_bin: Any, position: Any,
    rows: Bytes, columns: Bytes,
) -> None:  # fmt: skip
    """Write the codes of rows lo, lo + 1, …, given as X, to both copies of the table."""
    code = np.empty(_BLOCK, np.uint8)
    for begin in range(0, X.shape[0], _BLOCK):
        part = X[begin : begin + _BLOCK]
        out = rows[lo + begin : lo + begin + _BLOCK]
        m = part.shape[0]
        for j in range(X.shape[1]):
            own, missing = edges[j], n_bins[j]
            if categorical[j]:
                levels = level_bin[level_start[j] : level_start[j + 1]]
                for r in range(m):
                    code[r] = level_code(part[r, j], levels, missing)
            else:
                for r in range(m):
                    x = part[r, j]
                    code[r] = np.uint8(find_bin(x, own)) if x == x else np.uint8(missing)
            to = columns[j, lo + begin : lo + begin + m]
            at = position[j]
            for r in range(m):
                to[r] = code[r]
                out[r, at] = code[r]


@lean_kernel
def code_entries(
    values: Any, rows: Any, edges: Any, levels: Any, categorical: bool, n_bins: Any, first: Any, default: Any,
    column: Bytes,
) -> None:  # fmt: skip
    """Write the codes of the stored entries of one column of a sparse table."""
    for i in range(values.size):
        x = values[i]
        if categorical:
            b = np.int64(level_code(x, levels, n_bins))
        else:
            b = np.int64(find_bin(x, edges)) if x == x else np.int64(n_bins)
        if default >= 0:
            if b == default:
                continue
            b -= 1 if b > default else 0
        column[rows[i]] = np.uint8(first + b)


MOST_BINS = 255  # bins of a column: a byte, less the code of missing values
GROUP = 16  #: bytes of a group of columns in a row
#: Rows of one task. One round on 60,000 × 12: 53.2, 52.3 and 53.2 ms of processor time with 1,024, 8,192 and 65,536.
_CHUNK_ROWS = 8192


def sample_rows(n_rows: int, seed: int = 0) -> NDArray[np.int64] | None:
    """Return the numbers of the rows that edges are computed from, ascending; None: all of them."""
    if n_rows <= SAMPLE_ROWS:
        return None
    return np.sort(np.random.default_rng(seed).choice(n_rows, SAMPLE_ROWS, replace=False, shuffle=False))


@dataclass(frozen=True)
class Bins:
    """How values become codes.

    Attributes
    ----------
    categorical : (d,) bool
        Which columns have no order.
    n_bins : (d,) int64
        Bins of each column, without the one of missing values.
    edge_start, edges : (d+1,) int64, float64
        Upper ends of the bins of column j but the last: edges[edge_start[j] : edge_start[j+1]].
    level_start, level_bin : (d+1,) int64, int16
        Bin of level v of a category: level_bin[level_start[j] + v]; −1 for levels that were not seen.
    stored, first : (d,) int64
        Where the codes of column j are: bin b is code first + b of stored column `stored`, missing first + n_bins.
    default : (d,) int64
        Of a column that shares a byte: the bin of zero, which has no code (bins above it have the code before); else
        −1.
    can_miss : (d,) bool
        Whether a missing value has a code; a column that shares a byte has one only if `fit` saw a missing value.
    """

    categorical: NDArray[np.bool_]
    n_bins: NDArray[np.int64]
    edge_start: NDArray[np.int64]
    edges: Array
    level_start: NDArray[np.int64]
    level_bin: NDArray[np.int16]
    stored: NDArray[np.int64]
    first: NDArray[np.int64]
    default: NDArray[np.int64]
    can_miss: NDArray[np.bool_]

    @property
    def n_columns(self) -> int:
        """Number of columns d."""
        return len(self.n_bins)

    @property
    def n_stored(self) -> int:
        """Number of stored columns: bytes per row without padding."""
        return int(self.stored.max(initial=-1)) + 1

    @cached_property
    def group_start(self) -> NDArray[np.int64]:
        """First stored column of each group; groups have about equal size, so that threads have equal work."""
        s = self.n_stored
        count = max(1, -(-s // GROUP))
        count += count % 2 if s >= 8 else 0  # two threads are the common case
        return np.array([s * g // count for g in range(count + 1)], np.int64)

    @cached_property
    def position(self) -> NDArray[np.int64]:
        """Byte of each stored column in a row."""
        start = self.group_start
        group = np.repeat(np.arange(len(start) - 1), np.diff(start))
        return np.arange(self.n_stored) - start[group] + GROUP * group

    @property
    def missing_code(self) -> NDArray[np.int64]:
        """Code of a missing value of each column."""
        return self.first + self.n_bins - (self.default >= 0)

    @staticmethod
    def fit(
        X: Any,
        *,
        max_bins: int = MOST_BINS,
        categorical: NDArray[np.bool_] | None = None,
        weight: Array | None = None,
        target: NDArray[Any] | None = None,
        seed: int = 0,
        n_threads: int = 1,
        owner: str = "Bins",
        level_bins_of: Sequence[NDArray[np.int16]] | None = None,
    ) -> Bins:
        """Find the bins of X.

        Parameters
        ----------
        X : (n, d) float array, CSR or CSC array
            NaN is a missing value. Of more than 200,000 rows a sample is looked at (categories: all).
        max_bins : int
            Most bins of a column, 2 … 255.
        categorical : (d,) bool or None
            Columns whose values are codes of categories: whole numbers from 0 to 65535.
        weight : (n,) float64 or None
            Bins have about equal weight.
        target : (n,) numbers, class codes, or None
            Rare levels of a category that have too many are grouped by it; see `sharing.level_bins`.
        seed : int
            Of the sample.
        n_threads : int
            Columns are independent.
        owner : str
            In whose name errors speak.
        level_bins_of : sequence of arrays, optional
            The bins of the levels of each category, where X has only a sample of the rows.
        """
        if not 2 <= max_bins <= MOST_BINS:
            raise ParameterError(f"{owner}: max_bins must be 2 … {MOST_BINS}, got {max_bins!r}.")
        n, d = X.shape
        is_category = np.zeros(d, bool) if categorical is None else np.asarray(categorical, bool)
        sparse = sp.issparse(X)
        X = X.tocsc() if sparse else X
        chosen = sample_rows(n, seed)
        w = None if weight is None else np.asarray(weight, np.float64)[slice(None) if chosen is None else chosen]
        used = X if chosen is None else X[chosen]
        used = used.tocsc() if sparse else used

        small = sparse and used.nnz < d * _MANY_ENTRIES  # threads would wait for the interpreter's lock

        def one(j: int) -> _Column:
            values, weights = _of_column(used, j, w, sparse)
            if is_category[j] and level_bins_of is not None:
                return _Column(np.zeros(0), level_bins_of[int(is_category[:j].sum())])
            if is_category[j]:
                whole, _ = _of_column(X, j, None, sparse)
                alike = None if sparse else target  # zeros that are not stored have no rows
                return _Column(np.zeros(0), level_bins(whole, alike, max_bins, f"{owner}: column {j}"))
            return _Column(bin_edges(values, weights, max_bins), _NO_LEVELS)

        found = _map(one, d, 1 if small else n_threads)
        n_bins = np.array([max(1, c.levels.max(initial=-1) + 1) if k else len(c.edges) + 1
                           for c, k in zip(found, is_category, strict=True)], np.int64)  # fmt: skip
        edge_start = np.r_[0, np.cumsum([len(c.edges) for c in found])].astype(np.int64)
        level_start = np.r_[0, np.cumsum([len(c.levels) for c in found])].astype(np.int64)
        edges = np.concatenate([c.edges for c in found]) if d else np.zeros(0)
        levels = np.concatenate([c.levels for c in found]) if d else _NO_LEVELS
        zeros = np.zeros(d, np.int64)
        bins = Bins(
            is_category,
            n_bins,
            edge_start,
            edges,
            level_start,
            levels,
            np.arange(d, dtype=np.int64),
            zeros,
            zeros - 1,
            np.ones(d, bool),
        )
        return _bundled(bins, X) if sparse else bins

    def encode(self, X: Any, *, n_threads: int = 1) -> BinnedTable:
        """Return the codes of X; a sparse X must be the table of `fit`, because others may not be exclusive."""
        n = X.shape[0]
        rows = np.zeros((n, GROUP * (len(self.group_start) - 1)), np.uint8)
        columns = np.empty((self.n_stored, n), np.uint8)
        if sp.issparse(X):
            self._encode_sparse(X.tocsc(), rows, columns, n_threads)
            return BinnedTable(self, rows, columns)
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        edges = self._padded_edges(dtype)

        def chunk(i: int) -> None:
            lo = i * _CHUNK_ROWS
            part = np.ascontiguousarray(X[lo : lo + _CHUNK_ROWS], dtype)
            bin_rows(part, lo, edges, self.n_bins, self.categorical, self.level_start, self.level_bin, self.position,
                     rows, columns)  # fmt: skip

        _map(chunk, -(-n // _CHUNK_ROWS), n_threads)
        return BinnedTable(self, rows, columns)

    def _padded_edges(self, dtype: Any) -> NDArray[Any]:
        """Return 255 edges per column, infinite ones at the end; x <= edge is the same in both precisions."""
        padded = np.full((self.n_columns, 256), np.inf, dtype)
        for j in range(self.n_columns):
            own = self.edges[self.edge_start[j] : self.edge_start[j + 1]]
            near = own.astype(dtype)
            padded[j, : len(own)] = np.where(near > own, np.nextafter(near, dtype(-np.inf)), near)
        return padded

    def _encode_sparse(self, X: Any, rows: Bytes, columns: Bytes, n_threads: int) -> None:
        zero = np.zeros(1)
        edges = self._padded_edges(np.float64)
        columns[:] = 0
        data = X.data.astype(np.float64, copy=False)
        for j in range(self.n_columns):
            begin, end = X.indptr[j], X.indptr[j + 1]
            base = self.level_bin[self.level_start[j] : self.level_start[j + 1]]
            if self.default[j] < 0:
                code = np.empty(1, np.uint8)
                code_entries(zero, np.zeros(1, np.int64), edges[j], base, self.categorical[j], self.n_bins[j], 0, -1,
                             code)  # fmt: skip
                columns[self.stored[j]] = code[0]
            code_entries(data[begin:end], X.indices[begin:end].astype(np.int64), edges[j], base, self.categorical[j],
                         self.n_bins[j], self.first[j], self.default[j], columns[self.stored[j]])  # fmt: skip
        n = rows.shape[0]
        _map(
            lambda i: transpose(columns, self.position, i * _CHUNK_ROWS, min(n, (i + 1) * _CHUNK_ROWS), rows),
            -(-n // _CHUNK_ROWS),
            n_threads,
        )


@dataclass(frozen=True)
class BinnedTable:
    """The codes of a table.

    Attributes
    ----------
    bins : Bins
        What the codes mean.
    rows : (n, 16 × groups) uint8
        Row by row; stored column s is byte bins.position[s].
    columns : (s, n) uint8
        Column by column.

    Examples
    --------
    >>> import numpy as np
    >>> table = BinnedTable.build(np.array([[0.5], [2.0], [np.nan], [0.5]]))
    >>> table.columns.tolist(), table.bins.edges.tolist()
    ([[0, 1, 2, 0]], [1.25])
    """

    bins: Bins
    rows: Bytes
    columns: Bytes

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of columns of the table, not of stored ones."""
        return self.bins.n_columns

    @cached_property
    def has_missing(self) -> NDArray[np.bool_]:
        """Whether each column has a missing value."""
        bins, found = self.bins, np.zeros(self.n_columns, bool)
        for j in np.flatnonzero(bins.can_miss):
            code = bins.missing_code[j]
            found[j] = code < 256 and bool((self.columns[bins.stored[j]] == code).any())
        return found

    @staticmethod
    def build(
        X: Any,
        *,
        max_bins: int = MOST_BINS,
        categorical: NDArray[np.bool_] | None = None,
        weight: Array | None = None,
        target: NDArray[Any] | None = None,
        seed: int = 0,
        n_threads: int = 1,
        owner: str = "BinnedTable",
    ) -> BinnedTable:
        """Find the bins of X and encode it; the parameters are those of `Bins.fit`."""
        bins = Bins.fit(
            X,
            max_bins=max_bins,
            categorical=categorical,
            weight=weight,
            target=target,
            seed=seed,
            n_threads=n_threads,
            owner=owner,
        )
        return bins.encode(X, n_threads=n_threads)


class _Column(NamedTuple):
    edges: Array
    levels: NDArray[np.int16]


_NO_LEVELS = np.zeros(0, np.int16)
_MANY_ENTRIES = 10_000  # stored numbers per sparse column from which threads gain on the interpreter's lock


def _map(function: Callable[[int], Any], count: int, n_threads: int) -> list[Any]:
    """Return function(0), …, function(count − 1); threads take runs of them, because to hand over one takes long."""
    if n_threads <= 1 or count < 2:
        return [function(j) for j in range(count)]
    pieces = min(count, 8 * n_threads)
    runs = [range(count * i // pieces, count * (i + 1) // pieces) for i in range(pieces)]
    return [one for found in run_tasks(lambda i: [function(j) for j in runs[i]], pieces, n_threads) for one in found]


def _of_column(X: Any, j: int, weight: Array | None, sparse: bool) -> tuple[NDArray[Any], Array | None]:
    """Return values and weights of a column; zeros that are not stored come as one value with all their weight."""
    if not sparse:
        return X[:, j], weight
    values, rows = X.data[X.indptr[j] : X.indptr[j + 1]], X.indices[X.indptr[j] : X.indptr[j + 1]]
    n = X.shape[0]
    if len(values) == n:
        return values, None if weight is None else weight[rows]
    own = np.ones(len(rows)) if weight is None else weight[rows]
    whole = float(n) if weight is None else float(weight.sum())
    return np.append(values, values.dtype.type(0)), np.append(own, whole - own.sum())


def _bundled(bins: Bins, X: Any) -> Bins:
    """Let columns that are never non-zero in one row share a byte."""
    n, d = X.shape
    zero_bin = np.array([_bin_of_zero(bins, j) for j in range(d)], np.int64)
    missing = np.array([np.isnan(X.data[X.indptr[j] : X.indptr[j + 1]]).any() for j in range(d)], bool)
    size = bins.n_bins - 1 + missing
    order = np.argsort(-np.diff(X.indptr), kind="stable").astype(np.int64)
    stored, first = np.empty(d, np.int64), np.zeros(d, np.int64)
    taken = np.zeros((d, -(-n // 8)), np.uint8)
    bundle(X.indptr.astype(np.int64), X.indices.astype(np.int64), order, size.astype(np.int64), taken,
           np.zeros(d, np.int64), stored, first)  # fmt: skip
    alone = np.bincount(stored, minlength=d)[stored] == 1
    default = np.where(alone, -1, zero_bin)
    first[alone] = 0
    return Bins(bins.categorical, bins.n_bins, bins.edge_start, bins.edges, bins.level_start, bins.level_bin, stored,
                first, default, missing | alone)  # fmt: skip


def _bin_of_zero(bins: Bins, j: int) -> int:
    if bins.categorical[j]:
        levels = bins.level_bin[bins.level_start[j] : bins.level_start[j + 1]]
        return int(max(levels[0], 0)) if len(levels) else 0
    return int(np.searchsorted(bins.edges[bins.edge_start[j] : bins.edge_start[j + 1]], 0.0))
