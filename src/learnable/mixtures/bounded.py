r"""Lloyd's algorithm over dense rows in memory, with bounds that spare most distances (`lloyd.py` has the algorithm).

Every row remembers an upper bound on the distance to its own centre and a lower bound on all others. Centres that moved
far are measured apart, so that they do not spoil the bounds of all rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import AnyArray
from ..data.blocks import grid_rows, map_reduce
from ._kernels import Motion, RowState, assign_rows, fill_panel, screen_rows, squares_to_own
from .lloyd import FLOAT64, TILE, Farthest, Lloyd, extend_centres, gamma_of, nothing, tile_of, unit_of

_TILE_ROWS = 2**12  # rows of a tile, at most
_SAMPLED_ROWS = 2**12  # rows that decide which centres are measured apart
_OVERHEAD = 40  # what a row costs besides its scores, in scores


class Scratch(threading.local):
    """Arrays of each thread that are used again: a worker of Dask gives memory back to the system at once."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}

    def __call__(self, name: str, shape: tuple[int, int], dtype: Any) -> AnyArray:
        """Return an array of this shape with any content."""
        size = shape[0] * shape[1]
        held = self.arrays.get(name)
        if held is None or held.size < size:
            held = np.empty(size, dtype)
            self.arrays[name] = held
        return held[:size].reshape(shape)


class BoundedLloyd(Lloyd):
    """The same over dense rows in memory, with bounds that spare most distances.

    Memory besides X: (d + 2) float32 and 28 bytes for a row, and a K × d array for a block.
    """

    def __init__(
        self,
        X: AnyArray,
        weight: AnyArray | None,
        origin: AnyArray,
        K: int,
        n_jobs: int | None = None,
        spherical: bool = False,
        adds: bool = True,
    ) -> None:
        super().__init__(origin, spherical)
        self.origin: AnyArray = origin
        self.X = np.ascontiguousarray(X)
        self.n_jobs = n_jobs
        self.weight = np.empty(0) if weight is None else weight
        n, d = X.shape
        self.step = grid_rows(d)
        self.parts = [slice(start, min(start + self.step, n)) for start in range(0, n, self.step)]
        self.scatter = np.zeros(len(self.parts))
        # One piece of memory: NumPy asks for large pages from 4 MB on, and those of a partition's labels are smaller.
        memory = np.empty(n * (4 * (d + 2) + 28), np.uint8)
        bounds, squares, panel, labels = np.split(memory, n * np.cumsum([16, 8, 4 * (d + 2)]))
        self.bounds = bounds.view(np.float64).reshape(2, n)
        self.squares = squares.view(np.float64)
        self.panel = panel.view(np.float32).reshape(n, d + 2)
        self.labels = labels.view(np.int32)
        n_sums = K if adds else 0  # where others add up the rows, labels are enough
        self.counts = np.zeros((len(self.parts), n_sums))
        self.sums = np.zeros((len(self.parts), n_sums, d))
        self.scratch = Scratch()
        self._build_panel()
        self.passed: AnyArray | None = None  # the centres of the last pass, which the bounds are about

    def restart(self, centres: AnyArray) -> None:
        """Forget everything about labels and bounds, and begin at these centres."""
        self.labels[:] = -1
        self.counts[:] = 0.0
        self.sums[:] = 0.0
        self.passed = None
        self._prepare(centres, np.zeros(len(centres)))

    def move_to(self, centres: AnyArray) -> None:
        """Let the next pass be at these centres; bounds are kept."""
        moved = np.zeros(centres.shape) if self.passed is None else centres - self.passed
        self._prepare(centres, np.sqrt((moved * moved).sum(axis=1)))

    def expectation(self, part: Any, centres: AnyArray) -> tuple[tuple[Any, ...], float]:
        """Return weights and sums of the clusters of some rows, and −J."""
        self.assign(part, centres)
        number = part.start // self.step
        shifted = centres - self.origin
        counts = self.counts[number].copy()
        sums = self.sums[number].copy()
        inertia = self.scatter[number] - 2 * np.vdot(shifted, sums) + counts @ (shifted * shifted).sum(axis=1)
        return (counts, sums), -float(inertia)

    def assign(self, part: slice, centres: AnyArray) -> None:
        """Give some rows their nearest centres."""
        number = part.start // self.step
        X = self.X[part]
        self.passed = centres
        weight = self.weight[part] if self.weight.size else self.weight
        state = RowState(
            self.labels[part], self.bounds[0, part], self.bounds[1, part], self.counts[number], self.sums[number]
        )
        rows = self.scratch("rows", (2, len(X)), np.int64)
        count = np.empty(2, np.int64)
        screen_rows(X, centres, state, self.motion, rows, count)
        panel = self.panel[part]
        squares = self.squares[part]
        for which, names in enumerate((self.everyone, self.movers)):
            doubtful = rows[which, : count[which]]
            extended = self.extended if which == 0 else self.extended[names]
            for some in tiles_of(doubtful, len(names)):
                if len(doubtful) < len(X):
                    mine = self.scratch("panel", (len(some), panel.shape[1]), np.float32)
                    np.take(panel, some, axis=0, out=mine, mode="clip")
                else:
                    mine = panel[some[0] : some[-1] + 1]
                scores = np.matmul(mine, extended.T, out=self.scratch("scores", (len(some), len(names)), np.float32))
                margin = self.margin_of * (squares[some] + self.longest) + 2.0**-100
                tile = tile_of(scores, names, margin, self.unit)
                assign_rows(tile, some, which == 1, X, centres, weight, self.origin, state)

    def maximisation(self, statistics: tuple[Any, ...], centres: AnyArray) -> AnyArray:
        """Return the means of the clusters, and prepare the next pass."""
        counts, sums = statistics
        far = self._farthest(centres, int((counts <= 0).sum())) if (counts <= 0).any() else None
        stepped = super().maximisation((counts, sums, far), centres)
        self.move_to(stepped)
        return stepped

    def finish(self, centres: AnyArray) -> tuple[AnyArray, float]:
        """Return labels and inertia at these centres, measured."""
        self.move_to(centres)
        map_reduce(self.parts, lambda part: self.assign(part, centres), nothing, n_jobs=self.n_jobs)
        squares = self._squares(centres)
        return self.labels, float(squares @ self.weight if self.weight.size else squares.sum())

    def _squares(self, centres: AnyArray) -> AnyArray:
        squares = np.empty(len(self.X))
        for part in self.parts:
            squares_to_own(self.X[part], centres, self.labels[part], squares[part])
        return squares

    def _farthest(self, centres: AnyArray, n_empty: int) -> Farthest:
        squares = self._squares(centres)
        far = np.argsort(-squares, kind="stable")[:n_empty]
        weight = self.weight[far] if self.weight.size else np.ones(len(far))
        return Farthest(squares[far], self.X[far].astype(np.float64), self.labels[far], weight)

    def _build_panel(self) -> None:
        stretch = 0.5 + 2 * gamma_of(self.X.shape[1])
        self.labels[:] = 0  # distances to the one origin

        def longest_of(part: slice) -> float:
            squares_to_own(self.X[part], self.origin[None], self.labels[part], self.squares[part])
            weighted = self.squares[part] * self.weight[part] if self.weight.size else self.squares[part]
            self.scatter[part.start // self.step] = weighted.sum()
            return float(self.squares[part].max())

        longest = map_reduce(self.parts, longest_of, max, n_jobs=self.n_jobs)
        self.radius = float(np.sqrt(longest))
        self.unit = unit_of(self.radius)
        self.squares *= self.unit * self.unit

        def fill(part: slice) -> None:
            fill_panel(self.X[part], self.origin, self.unit, stretch, self.squares[part], self.panel[part])

        map_reduce(self.parts, fill, nothing, n_jobs=self.n_jobs)

    def _prepare(self, centres: AnyArray, move: AnyArray) -> None:
        """Compute what a pass needs to know of the centres."""
        K, d = centres.shape
        self.extended, squares = extend_centres(centres, self.origin, self.unit)
        self.longest = float(squares.max())
        self.margin_of = 4 * gamma_of(d)
        reach = self.radius + float(np.sqrt(squares.max())) / self.unit
        slack = (1e-12 + 8 * (d + 8) * FLOAT64) * reach
        order = np.argsort(-move, kind="stable")
        mover = int(order[0])
        second = float(move[order[1]]) if K > 1 else 0.0
        apart = self._count_movers(move[order])
        self.everyone = np.arange(K, dtype=np.int32)
        self.movers = np.sort(order[:apart]).astype(np.int32)
        shifted = (centres - self.origin) * self.unit
        gaps = squares[:, None] + squares - 2 * (shifted @ shifted.T) - 64 * d * FLOAT64 * self.longest
        np.fill_diagonal(gaps, np.inf)
        half_gap = 0.5 * np.sqrt(np.maximum(gaps.min(axis=1), 0.0)) / self.unit
        self.motion = Motion(move, float(move[mover]), mover, second, float(move[order[apart]]), half_gap, slack)

    def _count_movers(self, moves: AnyArray) -> int:
        """Return how many of the centres that moved most to measure apart, from what some rows know of the others.

        A row whose bounds are further apart than the most of the moves is not measured. With the p longest moves taken
        out, it is measured against p centres if its bounds are further apart than the rest, and against all if not.
        """
        K = len(moves)
        if self.passed is None or K < 8:
            return 0
        rows = slice(None, None, max(1, len(self.X) // _SAMPLED_ROWS))
        apart = np.sort(self.bounds[1, rows] - self.bounds[0, rows])
        counts = np.array([0, *(2**p for p in range(20) if 2**p <= K // 2)])
        doubtful = np.searchsorted(apart, [moves[0]])[0]
        beaten = np.searchsorted(apart, moves[counts])
        costs = beaten * (K + _OVERHEAD) + (doubtful - beaten) * (counts + _OVERHEAD)
        return int(counts[costs.argmin()])


def tiles_of(rows: AnyArray, width: int) -> Iterator[AnyArray]:
    """Yield some rows at a time, so many that their scores stay in the cache."""
    height = min(_TILE_ROWS, max(32, TILE // max(1, width)))
    for start in range(0, len(rows), height):
        yield rows[start : start + height]
