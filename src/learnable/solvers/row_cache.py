"""Rows of a large symmetric matrix, computed tile by tile when they are asked for and kept while there is room.

The matrix is never whole. Rows are computed in tiles on threads; each tile is the work of one thread
with one-thread BLAS, so that the bits do not depend on the number of threads. The rows used longest ago make room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.threads import TaskTeam, resolve_n_jobs
from ._decomposition_kernels import add_rows, gather_block, narrow_rows

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_SUM_TILE = 2048  # columns that one call sums
_FRESH = 2  # blocks of rows that are kept where rows are cheap
_SHORT = 4096  # columns of rows that are read by one thread before others have woken up


class RowSource(Protocol):
    """What can compute rows of a symmetric matrix K (n, n)."""

    dtype: Any  #: of the rows: float32 or float64
    costly: bool  #: whether a row takes longer to compute than memory for it takes to get

    def diagonal(self) -> Array:
        """Return K_ii (n,) in the precision of the rows."""

    def tasks(self, rows: Rows, store: NDArray[Any], slots: Rows) -> tuple[Callable[[int], None], int]:
        """Return a function of a number, and how many there are, that together set store[slots] = K[rows]."""

    def square(self, rows: Rows, out: NDArray[Any]) -> tuple[Callable[[int], None], int] | None:
        """Return such tasks for out = K[rows, rows]; None if it is faster to take them from whole rows."""

    def sums(self, rows: Rows, support: Rows, beta: Array, team: Team) -> Array:
        """Return K[rows, support] β in the precision of rows."""

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in float64, from float64 entries."""

    def part(self, rows: Rows) -> RowSource:
        """Return the source of K[rows, rows]."""


class Team(TaskTeam):
    """The threads of a decomposition, with one thread of BLAS for each.

    Examples
    --------
    >>> with Team(2) as team:
    ...     team.run(abs, 3)
    [0, 1, 2]
    """

    def __init__(self, n_jobs: int | None) -> None:
        super().__init__(resolve_n_jobs(n_jobs))


class RowCache:
    """The matrix as the decomposition sees it: blocks of it, and sums of its rows.

    Parameters
    ----------
    source : RowSource
        Who computes rows.
    n : int
        Size of the matrix.
    megabytes : float
        Most room for rows; at least those of one block are kept, and not many more where they are cheap.
    team : Team
        Threads.
    """

    def __init__(self, source: RowSource, n: int, megabytes: float, team: Team, block: int) -> None:
        itemsize = np.dtype(source.dtype).itemsize
        capacity = int(min(n, max(block, megabytes * 2**20 / max(1, n * itemsize))))
        if not source.costly:
            capacity = min(capacity, _FRESH * block)
        self._settle_in(source, n, team, np.empty(capacity * n, dtype=source.dtype))

    def _settle_in(self, source: RowSource, n: int, team: Team, room: NDArray[Any]) -> None:
        """Start without rows, in the memory given."""
        self.source, self.n, self.team, self._room = source, n, team, room
        capacity = min(n, room.size // max(n, 1))
        self._store = room[: capacity * n].reshape(capacity, n)
        self._slot_of = np.full(n, -1, dtype=np.int64)
        self._row_in = np.full(capacity, -1, dtype=np.int64)
        self._used = np.full(capacity, -1, dtype=np.int64)
        self._clock = 0
        self.n_computed = 0

    def rounding(self) -> bool:
        """Tell whether rows are float32."""
        return bool(np.dtype(self.source.dtype) == np.float32)

    def diagonal(self) -> Array:
        """Return K_ii."""
        return self.source.diagonal()

    def block(self, rows: Rows) -> NDArray[Any]:
        """Return K[rows, rows]; a negative row is padding, of zeros."""
        out = np.empty((len(rows), len(rows)), dtype=self._store.dtype)
        real = rows >= 0
        short = self.n <= _SHORT and bool((self._slot_of[rows[real]] >= 0).all())
        tasks = None if short else self.source.square(rows, out)
        if tasks is not None:
            self.team.run(*tasks)
            out[~real], out[:, ~real] = 0, 0
            return out
        self._fetch(np.unique(rows[real]))
        gather_block(self._store, np.where(real, self._slot_of[rows], -1), rows, out)
        return out

    def add(self, f: Array, rows: Rows, delta: Array) -> None:
        """Add K[:, rows] delta to f; there are at most as many rows as in a block."""
        self._fetch(np.unique(rows))
        slots = self._slot_of[rows]

        def task(number: int) -> None:
            start = number * _SUM_TILE
            add_rows(self._store, slots, delta, start, f[start : start + _SUM_TILE])

        if self.n <= _SHORT:  # sooner done than shared
            add_rows(self._store, slots, delta, 0, f)
        else:
            self.team.run(task, -(-self.n // _SUM_TILE))

    def sums(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in the precision of rows."""
        return self.source.sums(rows, support, beta, self.team)

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in float64."""
        return self.source.exact(rows, support, beta)

    def part(self, rows: Rows) -> RowCache:
        """Return K[rows, rows] in this cache's memory, with those of its rows that were here; here are none then."""
        part = RowCache.__new__(RowCache)
        part._settle_in(self.source.part(rows), len(rows), self.team, self._room)
        slots = np.sort(self._slot_of[rows])
        slots = slots[slots >= 0][: len(part._store)]
        narrow_rows(self._room, self.n, slots, rows, len(rows))
        places = np.searchsorted(rows, self._row_in[slots])
        part._row_in[: len(slots)], part._used[: len(slots)] = places, 0
        part._slot_of[places] = np.arange(len(slots))
        self._settle_in(self.source, self.n, self.team, self._room)
        return part

    def _fetch(self, rows: Rows) -> None:
        """Compute the rows that are not there."""
        self._clock += 1
        slots = self._slot_of[rows]
        self._used[slots[slots >= 0]] = self._clock
        missing = rows[slots < 0]
        if not len(missing):
            return
        self.n_computed += len(missing)
        places = np.argpartition(self._used, len(missing) - 1)[: len(missing)]
        places.sort()
        gone = self._row_in[places]
        self._slot_of[gone[gone >= 0]] = -1
        self._row_in[places], self._slot_of[missing], self._used[places] = missing, places, self._clock
        self.team.run(*self.source.tasks(missing, self._store, places))
