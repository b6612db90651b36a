"""The tree of `histogram.grower`, grown on rows that lie in several places: parts sum, part 0 searches.

    each part    statistics of its derivatives → all; rounds them; sums the first node → part 0
    part 0       adds the sums, finds the best split of each new node, chooses the leaf to divide → all
    each part    divides its rows of that leaf, sums the smaller child → part 0
    at the end   part 0 sends the tree; all add their sums of the leaves

Histograms of rounded derivatives, and sums of leaves, are integers: the tree is, to the bit, the one that a table in
one place gives, for any number of parts. Where sums are float64 (`HistogramRule.histogram`) they are added in the
order of the parts. One split is one exchange: 2 KB per column to part 0, 300 bytes from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.any_order import World
from ..growth import Grown, GrowthStopped
from ._kernels import CODES, Fields, Limits, Task
from ._leafwise import COUNT, LEAST_H, TOP_G, TOP_H
from ._merged import (
    BOTH,
    CODES_LEFT,
    COLUMN,
    LEFT_CHILD,
    MESSAGE,
    NODE,
    NONE,
    RIGHT_CHILD,
    STOPPED,
    WHICH,
    divide_part,
    end_tree,
    judge,
    measure_part,
    open_tree,
    sum_part,
    sum_part_leaves,
)
from .bins import BinnedTable
from .grower import HistogramGrower, HistogramRule

#: A sample without rows of this part: one row that no part has, because an empty sample stands for all rows.
_NO_ROWS = np.array([0xFFFFFFFF], np.uint32)


class MergedGrower(HistogramGrower):
    """One part's share in growing trees; all parts call the same functions in the same order.

    Parameters
    ----------
    binned : BinnedTable
        The rows of this part, in the bins of the whole table.
    rule : HistogramRule
        When to stop.
    world : World
        The other parts.
    """

    def __init__(self, binned: BinnedTable, rule: HistogramRule, world: World) -> None:
        self.world = world
        counts = np.zeros(world.size, np.int64)
        counts[world.rank] = binned.n_rows
        self._counts = world.sum(counts)
        super().__init__(binned, rule)
        self._everywhere = np.zeros_like(self._space.part[0])  # of part 0: segments as if all rows lay in one place
        self._sums = np.empty(1 + 2 * 3 * CODES * binned.bins.n_stored, np.int64)

    def _n_rows(self) -> int:
        return int(self._counts.sum())

    def _has_missing(self) -> NDArray[np.bool_]:
        return np.asarray(self.world.sum(self.binned.has_missing.astype(np.int64)) > 0)

    def grow(
        self,
        gradient: NDArray[Any],
        hessian: NDArray[Any],
        *,
        rows: NDArray[Any] | None = None,
        seed: int = 0,
        stop: NDArray[np.int64] | None = None,
    ) -> Grown:
        """Grow one tree; the parameters are those of `HistogramGrower.grow`, for the rows of this part."""
        sample = np.zeros(0, np.uint32)
        if rows is not None:
            sample = np.ascontiguousarray(rows, np.uint32) if len(rows) else _NO_ROWS
        first = int(self._counts[: self.world.rank].sum())
        task = self._task(gradient, hessian, sample, first, seed)
        f, limits = self._open(task)
        n_nodes = self._divide(task, f, limits, stop)
        self._finish(n_nodes, task, f)
        return Grown(self._tree(), self._space.leaf_of_row)

    def _open(self, task: Task) -> tuple[Fields, Limits]:
        """Bring together the statistics of the derivatives, and list the rows of the first node."""
        space, world = self._space, self.world
        measure_part(task, space, self._works)
        stats, ledgers = space.stats[0], space.ledgers[0]
        ends = world.most(np.array([stats[TOP_G], stats[TOP_H], -stats[LEAST_H]]))
        sums = world.sum(np.append(ledgers.reshape(-1), np.int64(stats[COUNT])))
        stats[TOP_G], stats[TOP_H], stats[LEAST_H], stats[COUNT] = ends[0], ends[1], -ends[2], sums[-1]
        ledgers[:] = sums[:-1].reshape(ledgers.shape)
        fields, limits = open_tree(task, stats, ledgers, space, self._works)
        return Fields(*fields), Limits(*limits)

    def _divide(self, task: Task, f: Fields, limits: Limits, stop: NDArray[np.int64] | None) -> int:
        """Divide leaves until part 0 says that it is enough; return the number of nodes."""
        space, table, part, world = self._space, self._table, self._space.part[0], self.world
        memory = np.array([1, 1, space.n_slots, 0], np.int64)  # NODES, LEAVES, FREE, OLDEST
        everywhere = self._everywhere
        everywhere[0, 0] = 0, int(space.stats[0, COUNT])
        message = np.zeros(MESSAGE, np.int64)
        parent, which, n_nodes = -1, LEFT_CHILD, 1
        sums = self._sum([0], 0, task, f)
        while True:
            merged = world.sum_at_root(sums)
            if merged is not None:
                left_rows, given = np.int64(merged[0]), merged[1:].view(np.int64)
                judge(np.int64(parent), np.int64(which), left_rows, given, table, task, limits, space, self._works, f,
                      everywhere, memory, message)  # fmt: skip
                if stop is not None and stop[0]:
                    message[NODE] = STOPPED
            message = world.from_root(message)
            parent, which = int(message[NODE]), int(message[WHICH])
            if parent < 0:
                break
            a, b = n_nodes, n_nodes + 1
            n_nodes += 2
            begin, end = part[parent, 0].tolist()
            column = table.columns[table.stored[message[COLUMN]]]
            left_rows = divide_part(column, begin, end, space, message[CODES_LEFT:].view(np.uint8))
            part[a, 0] = begin, begin + left_rows
            part[b, 0] = begin + left_rows, end
            sums = self._sum(_SUMMED[which](a, b), left_rows, task, f)
        if parent == STOPPED:
            raise GrowthStopped
        return n_nodes

    def _sum(self, nodes: list[int], left_rows: int, task: Task, f: Fields) -> NDArray[Any]:
        """Return how many rows went left, and the histograms of some nodes, over the rows of this part."""
        size = (3 if f.exact else 1) * CODES * self.binned.bins.n_stored
        sums = self._sums[: 1 + size * len(nodes)]
        typed = sums.view(np.float64) if f.exact else sums
        typed[0] = left_rows
        for k, node in enumerate(nodes):
            begin, end = self._space.part[0, node, 0].tolist()
            hist = sums[1 + size * k : 1 + size * (k + 1)]
            sum_part(begin, end, self._table, task, self._space, f, hist)
        return typed

    def _finish(self, n_nodes: int, task: Task, f: Fields) -> None:
        """Let all parts have the nodes of part 0, and the sums of the leaves of all parts."""
        space, world = self._space, self.world
        link, number, words = space.link[0, :n_nodes], space.number[0, :n_nodes], space.words[0, :n_nodes]
        packed = np.concatenate([link.reshape(-1), _bits(number), _bits(words)])
        packed = world.from_root(packed)
        sizes = np.cumsum([link.size, number.size])
        link[:] = packed[: sizes[0]].reshape(link.shape)
        number[:] = packed[sizes[0] : sizes[1]].view(np.float64).reshape(number.shape)
        words[:] = packed[sizes[1] :].view(np.uint32).reshape(words.shape)
        sum_part_leaves(n_nodes, f, task, space, self._works, space.link[0], space.part[0])
        limbs = space.leaf_limbs[0, :n_nodes]
        limbs[:] = world.sum(limbs)
        end_tree(n_nodes, self._table, task, space, f, space.part[0], self._out)


#: Which children are summed, by what part 0 says.
_SUMMED: dict[int, Callable[[int, int], list[int]]] = {
    NONE: lambda a, b: [],
    LEFT_CHILD: lambda a, b: [a],
    RIGHT_CHILD: lambda a, b: [b],
    BOTH: lambda a, b: [a, b],
}


def _bits(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.ascontiguousarray(values).reshape(-1).view(np.int64)
