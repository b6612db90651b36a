"""Rows in blocks, and sums over them: the loop under every model whose fit is a sum over the data.

`map_reduce(blocks, statistic, merge)` gives the same bits whatever the number of threads, the number of parts
the rows come in, and their memory order, because

- the rows are always cut on one grid that depends on the number of columns alone,
- every block has one layout: C-contiguous float64, or CSR,
- each block is summed by one thread with one-thread BLAS,
- the results are merged in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.run import StopFlag
from ..core.threads import one_thread_blas, ordered_map, resolve_n_jobs

S = TypeVar("S")
B = TypeVar("B", covariant=True)

_BLOCK_ELEMENTS = 2**20  # 8 MB of float64: large enough that handing it to a thread costs nothing
_SPARSE_BLOCK_ROWS = 2**15
_AHEAD = 2  # unmerged results a thread: one in work and one in store


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
    loads = (partial(blocks.__getitem__, number) for number in range(n_blocks))
    return reduce_loads(loads, statistic, merge, threads=min(resolve_n_jobs(n_jobs), n_blocks), flag=flag)


def reduce_loads(
    loads: Iterator[Callable[[], B]],
    statistic: Callable[[B], S],
    merge: Callable[[S, S], S],
    *,
    threads: int,
    flag: StopFlag | None = None,
) -> S:
    """Do what `map_reduce` does for blocks of which nobody knows how many there are.

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
