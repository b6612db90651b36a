"""Rows in blocks, sums over them, and the checksum of a table, which is the first such sum of every fit.

`map_reduce(blocks, statistic, merge)` gives the same bits whatever the number of threads, the number of parts
the rows come in, and their memory order, because

- the rows are always cut on one grid that depends on the number of columns alone,
- every block has one layout: C-contiguous float64, or CSR,
- each block is summed by one thread with one-thread BLAS,
- the results are merged in the order of the rows.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core import DataError, StopFlag, one_thread_blas, ordered_map, resolve_n_jobs
from ..core.jit import kernel, numba_is_loaded

S = TypeVar("S")
B = TypeVar("B", covariant=True)

_BLOCK_ELEMENTS = 2**20  # 8 MB of float64: large enough that handing it to a thread costs nothing
_SPARSE_BLOCK_ROWS = 2**15
_AHEAD = 2  # unmerged results per thread: one in work and one in store


class Block(NamedTuple):
    """Some consecutive rows of a table."""

    X: Any  #: (m, d) C-contiguous float64 array, or CSR array
    y: NDArray[Any] | None  #: (m,) or (m, k), C-contiguous
    weight: NDArray[np.float64] | None  #: (m,), positive; None means one each
    start: int  #: number of the first row


class BlockSource(Protocol[B]):
    """What `map_reduce` runs over: numbered blocks that any thread may ask for."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> B: ...


class Part(NamedTuple):
    """A run of rows as it came: in memory there is one; a partitioned table has several."""

    X: Any
    y: NDArray[Any] | None = None
    weight: NDArray[np.float64] | None = None


class Blocks:
    """The rows of one or several parts, re-cut on the fixed grid.

    A block is a view where it can be one, and a copy where it crosses two parts or has to become C-contiguous
    float64.

    Attributes
    ----------
    in_memory : bool
        True; sources of blocks that lie elsewhere say False.
    by_columns : CSC array or None
        All rows as they came, where they came by columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> blocks = Blocks([Part(X[:7]), Part(X[7:])])
    >>> len(blocks), blocks[0].X.shape
    (1, (10, 2))
    """

    in_memory = True
    in_partitions = False
    by_columns: Any = None
    _only: Block | None = None  # the block of a table that has one: cut once, since small fits ask for it many times

    def __init__(self, parts: Sequence[Part], rows: int | None = None) -> None:
        _check_alike(parts)
        # An empty part would turn views into copies; a table without any row keeps one part, for its width.
        self.parts = [part for part in parts if part.X.shape[0]] or list(parts[:1])
        self.sparse = bool(sp.issparse(parts[0].X))
        if self.sparse:
            self.parts = [part._replace(X=sp.csr_array(part.X)) for part in self.parts]
        self.starts = np.array([0, *accumulate(part.X.shape[0] for part in self.parts)])
        self.n_rows = int(self.starts[-1])
        self.n_columns = int(parts[0].X.shape[1])
        self.rows = rows or (_SPARSE_BLOCK_ROWS if self.sparse else grid_rows(self.n_columns))

    def __len__(self) -> int:
        return max(1, -(-self.n_rows // self.rows))

    def __getitem__(self, number: int) -> Block:
        if not 0 <= number < len(self):
            raise IndexError(f"there is no block {number}; there are {len(self)}")
        if self.n_rows > self.rows:
            return self._cut(number)
        if self._only is None:
            self._only = self._cut(0)
        return self._only

    def _cut(self, number: int) -> Block:
        start = number * self.rows
        stop = min(start + self.rows, self.n_rows)
        first = 0
        last = 1
        if len(self.parts) > 1:
            first = max(0, int(np.searchsorted(self.starts[:-1], start, side="right")) - 1)
            last = max(first + 1, int(np.searchsorted(self.starts[:-1], stop, side="left")))
        pieces = [
            _take_rows(part, max(start - offset, 0), min(stop - offset, part.X.shape[0]))
            for part, offset in zip(self.parts[first:last], self.starts[first:last].tolist(), strict=True)
        ]
        X, y, weight = (_join(columns) for columns in zip(*pieces, strict=True))
        # Strided and contiguous vectors take different BLAS kernels: targets and weights get one layout too.
        return Block(
            X.astype(np.float64, copy=False) if self.sparse else np.require(X, np.float64, ["C", "ALIGNED"]),
            None if y is None else np.ascontiguousarray(y),
            None if weight is None else np.ascontiguousarray(weight, dtype=np.float64),
            start,
        )

    def joined(self) -> Part:
        """Return all rows as one part; without a copy if they came as one."""
        return Part(*(_join(columns) for columns in zip(*self.parts, strict=True)))

    def head(self) -> Block:
        """Return the first block."""
        return self[0]

    def every(self, stride: int) -> Part:
        """Return every `stride`-th row, the same rows whatever the parts."""
        picked = [slice(int(-start % stride), None, stride) for start in self.starts[:-1]]
        thinned = [
            tuple(None if column is None else column[rows] for column in part)
            for part, rows in zip(self.parts, picked, strict=True)
        ]
        return Part(*(_join(columns) for columns in zip(*thinned, strict=True)))


def add_each(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the sums of the members of two tuples: the merge of statistics that add."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def unsigned(indices: NDArray[Any]) -> NDArray[Any]:
    """Return CSR indices seen as unsigned: kernels then need no test for negative ones, and run twice as fast."""
    return indices.view(np.uint32 if indices.itemsize == 4 else np.uint64)


def grid_rows(n_columns: int) -> int:
    """Return the height of a block: a power of two that depends on nothing but the number of columns."""
    ideal = _BLOCK_ELEMENTS // max(1, n_columns)
    return int(min(2**16, max(2**8, 2 ** (ideal.bit_length() - 1 if ideal else 0))))


def map_reduce(
    blocks: BlockSource[B],
    statistic: Callable[[B], S],
    merge: Callable[[S, S], S],
    *,
    n_jobs: int | None = None,
    flag: StopFlag | None = None,
) -> S:
    """Compute `statistic` of every block on threads and `merge` the results in order.

    Parameters
    ----------
    blocks : sequence of blocks
        Asked for by number, from the worker threads.
    statistic : function of a block
        Must release the GIL where it works (BLAS and kernels do) and must not change shared state.
    merge : function of two results
        May add the second into the first and return it.
    n_jobs : int or None
        Threads; the result does not depend on it.
    flag : StopFlag, optional
        Raised on Ctrl-C and on any other error, for kernels that poll it.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.ones((100_000, 20))
    >>> float(map_reduce(Blocks([Part(X)]), lambda block: block.X.sum(), lambda a, b: a + b))
    2000000.0
    """
    if not getattr(blocks, "in_memory", True):
        return blocks.map_reduce(statistic, merge, n_jobs=n_jobs, flag=flag)  # type: ignore[attr-defined,no-any-return]
    n_blocks = len(blocks)
    threads = min(resolve_n_jobs(n_jobs), n_blocks)
    if n_blocks == 1:  # a small table: nothing to merge, and nobody to share with
        with one_thread_blas():
            try:
                return statistic(blocks[0])
            except BaseException:
                if flag is not None:
                    flag.raise_()
                raise
    loads = (partial(blocks.__getitem__, number) for number in range(n_blocks))
    return reduce_loads(loads, statistic, merge, threads=threads, flag=flag)


def reduce_loads(
    loads: Iterator[Callable[[], B]],
    statistic: Callable[[B], S],
    merge: Callable[[S, S], S],
    *,
    threads: int,
    flag: StopFlag | None = None,
) -> S:
    """Do what `map_reduce` does, for a stream of blocks of unknown length.

    `loads` is asked for one function after the other; each gives a block when it is called, in a thread of its own.
    """
    with one_thread_blas():
        try:
            return reduce(merge, ordered_map(lambda load: statistic(load()), loads, threads))
        except BaseException:
            if flag is not None:
                flag.raise_()
            raise


def _check_alike(parts: Sequence[Part]) -> None:
    """Raise DataError unless all parts have the same columns, with a target and a weight for each row."""
    if not parts:
        raise DataError("Blocks: there must be at least one part; got none.")
    first = parts[0]
    for number, part in enumerate(parts):
        n_rows, n_columns = part.X.shape
        if n_columns != first.X.shape[1] or sp.issparse(part.X) != sp.issparse(first.X):
            raise DataError(
                f"Blocks: part {number} has {n_columns} columns ({type(part.X).__name__}), but part 0 has "
                f"{first.X.shape[1]} ({type(first.X).__name__}); all parts must have the same."
            )
        for name in ("y", "weight"):
            column = getattr(part, name)
            if (column is None) != (getattr(first, name) is None):
                raise DataError(f"Blocks: every part must have {name}, or none; parts 0 and {number} differ.")
            if column is not None and column.shape[0] != n_rows:
                raise DataError(
                    f"Blocks: part {number} has {n_rows} rows in X but {column.shape[0]} in {name}; they must agree."
                )


def _take_rows(part: Part, start: int, stop: int) -> tuple[Any, Any, Any]:
    take = _view_csr_rows if sp.issparse(part.X) else _view_rows
    return take(part.X, start, stop), _view_rows(part.y, start, stop), _view_rows(part.weight, start, stop)


def _view_rows(column: Any, start: int, stop: int) -> Any:
    return None if column is None else column[start:stop]


def _view_csr_rows(X: Any, start: int, stop: int) -> Any:
    """Return some rows of a CSR array without copying them, as SciPy's own slicing would."""
    first = X.indptr[start]
    last = X.indptr[stop]
    view = sp.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    view.data = X.data[first:last]
    view.indices = X.indices[first:last]
    view.indptr = X.indptr[start : stop + 1] - first
    return view


def _join(columns: tuple[Any, ...]) -> Any:
    if columns[0] is None or len(columns) == 1:
        return columns[0]
    return sp.vstack(columns, format="csr") if sp.issparse(columns[0]) else np.concatenate(columns)


# --------------------------------------------------------------------------------------------------------------------
# A checksum of the training data, computed in the same pass that looks for NaN and infinity.
#
# Equal tables have equal checksums whatever the order of their rows and the container they come in; rows
# without weights count as rows of weight one. It guards against mistakes, not against forgery: it is no
# cryptographic hash.


_COLUMN_ROWS = 4096  # rows of a table by columns whose sums stay in the cache
_KEPT_COLUMNS = 1024  # of a table whose multipliers are worth keeping: computing them takes longer than a small scan
_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's increment
# numbers that no feature has
_WEIGHT_COLUMN = 2**32
_TARGET_COLUMN = 2**33
_SHAPE_COLUMN = 2**34


class Scan(NamedTuple):
    """What one pass over the rows found."""

    checksum: int
    bad_rows: int  #: rows of X that are not finite


def scan(blocks: Blocks, n_jobs: int | None = None, classes: Any = None) -> Scan:
    """Return the checksum of a table and how many of its rows are not finite.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    n_jobs : int or None
        Threads.
    classes : array or list of arrays, optional
        The labels that the targets number, so that renamed classes are other data.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.data import Blocks, Part, scan
    >>> X = np.array([[1.0, 0.0], [2.0, np.nan], [3.0, 4.0]])
    >>> scan(Blocks([Part(X)])).bad_rows
    1
    >>> scan(Blocks([Part(X[::2])])) == scan(Blocks([Part(X[2:]), Part(X[:1])]))
    True
    """
    if _lies_by_columns(blocks):  # blocks of rows would be copies
        starts = list(range(0, blocks.n_rows, _COLUMN_ROWS))
        rows = map_reduce(starts, partial(_scan_columns, blocks.parts[0]), merge_scans, n_jobs=n_jobs)
    else:
        rows = map_reduce(blocks, scan_block, merge_scans, n_jobs=n_jobs)
    y = blocks.parts[0].y
    n_targets = 0 if y is None else len(np.atleast_2d(y.T))
    return Scan(whole_checksum(rows, (blocks.n_rows, blocks.n_columns, n_targets), classes), rows.bad_rows)


def scan_block(block: Block) -> Scan:
    """Return the checksum of some rows."""
    multipliers = _multipliers(0, block.X.shape[1])
    tail = _sum_targets_and_weight(block)
    if hasattr(block.X, "indptr"):
        X = block.X
        checksum, bad = scan_sparse(_bits(X.data), unsigned(X.indices), unsigned(X.indptr), multipliers, tail)
    else:
        checksum, bad = scan_rows(_bits(block.X), multipliers, tail)
    return Scan(int(checksum), int(bad))


def _lies_by_columns(blocks: Blocks) -> bool:
    """Tell whether the rows are one array of float64 columns in memory."""
    X = blocks.parts[0].X if blocks.in_memory and len(blocks.parts) == 1 else None
    return isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.f_contiguous and not X.flags.c_contiguous


def _scan_columns(part: Part, start: int) -> Scan:
    """Return the checksum of some rows of such an array."""
    rows = slice(start, min(start + _COLUMN_ROWS, part.X.shape[0]))
    y, weight = (None if column is None else column[rows] for column in (part.y, part.weight))
    block = Block(part.X[rows], y, weight, start)
    multipliers = _multipliers(0, part.X.shape[1])
    checksum, bad = scan_columns(_bits(part.X.T), start, multipliers, _sum_targets_and_weight(block))
    return Scan(int(checksum), int(bad))


def joined_lists(a: list[Any], b: list[Any]) -> list[Any]:
    """Append b to a and return it: the merge of sums that are lists."""
    a.extend(b)
    return a


def merge_scans(a: Scan, b: Scan) -> Scan:
    """Return the scan of two runs of rows together."""
    return Scan((a.checksum + b.checksum) % 2**64, a.bad_rows + b.bad_rows)


def whole_checksum(rows: Scan, shape: tuple[int, int, int], classes: Any) -> int:
    """Return the checksum of a table from that of its rows, its (n, d, k) and its labels.

    The shape tells a table from the same table with a row, a column or a target of zeros more.
    """
    numbers = _multipliers(_SHAPE_COLUMN, 3).tolist()
    of_shape = sum(int(number) * size for number, size in zip(numbers, shape, strict=True))
    return (rows.checksum + of_shape + _checksum_of_labels(classes)) % 2**64


def _multipliers(first: int, count: int) -> Bits:
    """Return the multipliers of some columns in a row; not to be changed: few are kept from one call to the next."""
    return _kept(first, count) if count <= _KEPT_COLUMNS else odd_numbers(np.arange(first, first + count))


@lru_cache(maxsize=64)
def _kept(first: int, count: int) -> Bits:
    return odd_numbers(np.arange(first, first + count))


def odd_numbers(columns: NDArray[np.int64]) -> Bits:
    """Return one odd multiplier per column, a function of the column's number alone (SplitMix64's sequence)."""
    return _mixed((columns.astype(np.uint64) + _ONE) * np.uint64(_GOLDEN)) | _ONE


def _sum_targets_and_weight(block: Block) -> Bits:
    """Return each row's Σ fold(bits)·m over its targets and its weight."""
    m = block.X.shape[0]
    weight = np.ones(1) if block.weight is None else block.weight
    of_weight = _folded(weight) * _multipliers(_WEIGHT_COLUMN, 1)
    if block.y is None:
        return of_weight if len(of_weight) == m else np.repeat(of_weight, m)
    if block.y.ndim == 1:
        return _folded(block.y) * _multipliers(_TARGET_COLUMN, 1) + of_weight
    numbers = _multipliers(_TARGET_COLUMN, block.y.shape[1])
    return np.asarray((_folded(block.y) * numbers).sum(axis=1, dtype=np.uint64) + of_weight)


def _checksum_of_labels(classes: Any) -> int:
    """Return a checksum of the labels; 1, 1.0 and True are one label, "1" is another."""
    if classes is None:
        return 0
    columns = classes if isinstance(classes, list) else [classes]
    labels: list[Any] = [
        [str(label) if isinstance(label, str) else int(label) for label in column.tolist()] for column in columns
    ]
    labels = labels if isinstance(classes, list) else labels[0]
    return int.from_bytes(hashlib.blake2b(json.dumps(labels).encode(), digest_size=8).digest(), "little")


def _folded(values: NDArray[Any]) -> Bits:
    return _folded_bits(_bits(np.ascontiguousarray(values, dtype=np.float64) + 0.0))  # −0.0 + 0.0 is 0.0


def _folded_bits(bits: Bits) -> Bits:
    """Do for an array what `fold` does for a number."""
    bits = bits ^ (bits >> _S32)
    return bits ^ (bits >> _S16)


def _mixed(x: Bits) -> Bits:
    """Do for an array what `mix` does for a number."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


def _bits(values: NDArray[Any]) -> Bits:
    return values.view(np.uint64)


# --------------------------------------------------------------------------------------------------------------------
# The checksum of the rows is Σᵢ mix(Σⱼ fold(bits xᵢⱼ)·mⱼ + tailᵢ) mod 2⁶⁴, with odd mⱼ from a counter-based
# generator. It does not depend on the order of the rows, on how they are cut into blocks, on the container,
# or on the storage: zero has zero bits, so that a sparse row and its dense twin agree. `fold`, `mix` and the
# product with an odd number are bijections, so that the change of a single element always changes the sum.


Bits = NDArray[np.uint64]

_EXPONENT = np.uint64(0x7FF0000000000000)
_SIGN_BIT = np.uint64(0x8000000000000000)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_S16 = np.uint64(16)
_S32 = np.uint64(32)
_S30 = np.uint64(30)
_S27 = np.uint64(27)
_S31 = np.uint64(31)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
# Scans of a process, and the numbers of one, that NumPy does in less than a tenth of what loading Numba takes.
_FEW_SCANS = 20
_FEW_NUMBERS = 50_000


@kernel
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@kernel
def fold(bits: np.uint64) -> np.uint64:
    """Bring every bit down to the lowest sixteen as well.

    A small integer has all its bits at the top of a float64, where a product mod 2⁶⁴ keeps only twelve bits
    of the multiplier: without folding, swapping two columns of zeros and ones would often go unnoticed.
    """
    bits ^= bits >> _S32
    return bits ^ (bits >> _S16)


_scans = itertools.count()


def scan_rows(bits: Bits, multipliers: Bits, tail: Bits) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns; small tables of a process without Numba do not wait for its import."""
    if bits.size > _FEW_NUMBERS or numba_is_loaded() or next(_scans) >= _FEW_SCANS:
        return scan_dense(bits, multipliers, tail)
    return scan_by_numpy(bits, multipliers, tail)


def scan_by_numpy(bits: Bits, multipliers: Bits, tail: Bits) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns, to the bit: all of it are integers mod 2⁶⁴."""
    bits = np.where(bits == _SIGN_BIT, _ZERO, bits)
    n_bad = np.int64(((bits & _EXPONENT) == _EXPONENT).any(axis=1).sum())
    h = (_folded_bits(bits) * multipliers).sum(axis=1, dtype=np.uint64) + tail
    return np.uint64(_mixed(h).sum(dtype=np.uint64)), n_bad


@kernel
def scan_dense(bits: Bits, multipliers: Bits, tail: Bits) -> tuple[np.uint64, np.int64]:
    """Return the checksum of the rows and the number of rows that are not finite.

    IN bits (n, d): the float64 rows seen as integers; multipliers (d,); tail (n,): the rest of a row's sum.
    """
    n, d = bits.shape
    total = _ZERO
    n_bad = np.int64(0)
    for i in range(n):
        row = bits[i]
        h = _ZERO
        bad = _ZERO
        for j in range(d):
            b = row[j]
            # −0.0 is the only number whose bits are the sign alone; it equals 0.0 and must hash alike.
            b = b if b != _SIGN_BIT else _ZERO
            h += fold(b) * multipliers[j]
            bad |= _ONE if (b & _EXPONENT) == _EXPONENT else _ZERO
        n_bad += np.int64(bad)
        total += mix(h + tail[i])
    return total, n_bad


@kernel
def scan_columns(bits: Bits, start: int, multipliers: Bits, sums: Bits) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns, for some rows of a table that lies by columns.

    IN bits (d, n): the columns; start: the first of the rows. IN/OUT sums (m,): the rest of a row's sum, then all.
    """
    bad = np.zeros(sums.size, dtype=np.uint64)
    for j in range(bits.shape[0]):
        column = bits[j, start : start + sums.size]
        multiplier = multipliers[j]
        for i in range(sums.size):
            b = column[i]
            b = b if b != _SIGN_BIT else _ZERO
            sums[i] += fold(b) * multiplier
            bad[i] |= _ONE if (b & _EXPONENT) == _EXPONENT else _ZERO
    total = _ZERO
    n_bad = np.int64(0)
    for i in range(sums.size):
        total += mix(sums[i])
        n_bad += np.int64(bad[i])
    return total, n_bad


@kernel
def scan_sparse(
    bits: Bits, indices: NDArray[Any], indptr: NDArray[Any], multipliers: Bits, tail: Bits
) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns, for the rows of a CSR matrix."""
    total = _ZERO
    n_bad = np.int64(0)
    for i in range(indptr.size - 1):
        h = _ZERO
        bad = _ZERO
        for k in range(indptr[i], indptr[i + 1]):
            b = bits[k]
            b = b if b != _SIGN_BIT else _ZERO
            h += fold(b) * multipliers[indices[k]]
            bad |= _ONE if (b & _EXPONENT) == _EXPONENT else _ZERO
        n_bad += np.int64(bad)
        total += mix(h + tail[i])
    return total, n_bad
