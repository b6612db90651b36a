"""The tree of `histogram.grower`, grown on rows that lie in several places: parts sum, part 0 searches.

    each part    statistics of its derivatives → all; rounds them; sums the first node → part 0
    part 0       adds the sums, finds the best split of each new node, chooses leaves to divide → all
    each part    divides its rows of those leaves, sums the smaller children → part 0
    at the end   part 0 sends the tree; all add their sums of the leaves

Histograms of rounded derivatives, and sums of leaves, are integers: the tree is, to the bit, the one that a table in
one place gives, for any number of parts. Where sums are float64 (`HistogramRule.histogram`) they are added in the
order of the parts.

Part 0 divides leaves in the order of the table in one place, but asks for several at once, by their gains so far:
the leaf that comes next, and those that most likely follow. What it does not need yet it keeps until it does. So a tree
of 31 leaves takes 10 to 15 exchanges, not 31; each leaf is 2 KB per column to part 0, and 300 bytes from it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.any_order import World
from ..growth import Grown, GrowthStopped
from ._kernels import CODES, Fields, Limits, Task
from ._leafwise import COUNT, LEAST_H, SLOT, TOP_G, TOP_H
from ._merged import (
    BATCH,
    BOTH,
    ENTRY,
    LEAVES_TOLD,
    LEFT_CHILD,
    MESSAGE,
    NODE,
    NODES,
    NODES_TOLD,
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
    tell_leaves,
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
        self._middle = np.zeros(len(self._space.part[0]), np.int64)  # where the rows of right children begin
        self._judge = Judge(self) if world.rank == 0 else None
        self._own_sums = np.empty(0, np.int64)

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
        space, world, head = self._space, self.world, self._judge
        message = np.zeros(MESSAGE, np.int64)
        size = (3 if f.exact else 1) * CODES * self.binned.bins.n_stored
        if head is not None:
            head.open(task, f, limits)
        sums = self._room(1 + size)
        sums[0] = 0  # rows to the left of the first node; zero has the same bits in float64
        begin, end = space.part[0, 0, 0].tolist()
        sum_part(begin, end, self._table, task, space, f, sums[1:])
        while True:
            merged = world.sum_at_root(sums.view(np.float64) if f.exact else sums)
            if merged is not None and head is not None:
                head.take(merged.view(np.int64), message)
                if stop is not None and stop[0]:
                    message[LEAVES_TOLD] = STOPPED
            message = world.from_root(message)
            if message[LEAVES_TOLD] <= 0:
                break
            sums = self._room(_size_of(message, size))
            divide_part(message, self._table, task, space, f, space.part[0], self._middle, sums)
        if message[LEAVES_TOLD] == STOPPED:
            raise GrowthStopped
        return int(message[NODES_TOLD])

    def _room(self, size: int) -> NDArray[np.int64]:
        """Return memory for sums; in part 0 it stays as long as sums in it wait to be used."""
        if self._judge is not None:
            return self._judge.room(size)
        if len(self._own_sums) < size:
            self._own_sums = np.empty(size, np.int64)
        return self._own_sums[:size]

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
        sum_part_leaves(n_nodes, f, task, space, self._works, space.link[0], space.part[0], self._middle)
        limbs = space.leaf_limbs[0, :n_nodes]
        limbs[:] = world.sum(limbs)
        end_tree(n_nodes, self._table, task, space, f, space.part[0], self._out)


class Ready(NamedTuple):
    """The sums of a leaf's children, which wait until it is the leaf's turn."""

    memory: int  #: number of the piece of memory that they lie in
    sums: NDArray[np.int64]
    which: int


class Judge:
    """What part 0 does besides: it finds the splits from the sums of all parts, and says which leaves to divide.

    Parameters
    ----------
    grower : MergedGrower
        Of part 0.
    """

    def __init__(self, grower: MergedGrower) -> None:
        self._table, self._space, self._works = grower._table, grower._space, grower._works
        n_nodes = len(self._space.part[0])
        self._everywhere = np.zeros_like(self._space.part[0])  # segments as if all rows lay in one place
        self._above = np.full((n_nodes, 2), -1, np.int64)
        self._told = np.zeros(n_nodes, np.uint8)
        self._ready: dict[int, Ready] = {}
        self._pieces: list[NDArray[np.int64]] = []
        self._piece = 0  # the one that was handed out last

    def open(self, task: Task, f: Fields, limits: Limits) -> None:
        """Begin a tree."""
        self._task, self._f, self._limits = task, f, limits
        self._memory = np.array([1, 1, self._space.n_slots, 0], np.int64)  # NODES, LEAVES, FREE, OLDEST
        self._everywhere[0, 0] = 0, int(self._space.stats[0, COUNT])
        self._told[:] = 0
        self._ready.clear()
        self._asked = [(-1, LEFT_CHILD)]
        self._next = -1

    def room(self, size: int) -> NDArray[np.int64]:
        """Return memory that no sums wait in."""
        taken = {own.memory for own in self._ready.values()}
        self._piece = next(k for k in range(len(taken) + 1) if k not in taken)
        if self._piece == len(self._pieces):
            self._pieces.append(np.empty(0, np.int64))
        if len(self._pieces[self._piece]) < size:
            self._pieces[self._piece] = np.empty(size, np.int64)
        return self._pieces[self._piece][:size]

    def take(self, merged: NDArray[np.int64], message: NDArray[np.int64]) -> None:
        """Take the sums that were asked for, go on with the tree as far as they reach, and write what to do next."""
        size = (3 if self._f.exact else 1) * CODES * len(self._table.columns)
        at = 0
        for node, which in self._asked:
            end = at + 1 + size * _COUNT[which]
            self._ready[node] = Ready(self._piece, merged[at:end], which)
            at = end
        node = self._next
        while node in self._ready and not self._gave_way(node):
            own = self._ready.pop(node)
            left_rows = np.int64(own.sums[:1].view(np.float64)[0] if self._f.exact else own.sums[0])
            node = int(
                judge(np.int64(node), np.int64(own.which), left_rows, own.sums[1:], self._table, self._task,
                      self._limits, self._space, self._works, self._f, self._everywhere, self._memory, self._above)
            )  # fmt: skip
        self._next = node
        message[LEAVES_TOLD], message[NODES_TOLD] = 0, self._memory[NODES]
        if node >= 0:
            tell_leaves(np.int64(node), self._table, self._task, self._space, self._works, self._f, self._memory,
                        self._above, self._told, message)  # fmt: skip
            self._asked = [(int(entry[NODE]), int(entry[WHICH])) for entry in _entries(message)]

    def _gave_way(self, node: int) -> bool:
        """Tell whether a leaf's histogram has been forgotten since it was named: both children must be summed then."""
        if node < 0 or self._ready[node].which in (NONE, BOTH) or self._space.link[0, node, SLOT] >= 0:
            return False
        del self._ready[node]
        self._told[node] = 0
        return True


#: Histograms that are summed, by what part 0 says.
_COUNT = {NONE: 0, LEFT_CHILD: 1, RIGHT_CHILD: 1, BOTH: 2}


def _entries(message: NDArray[np.int64]) -> NDArray[np.int64]:
    return message[2:].reshape(BATCH, ENTRY)[: message[LEAVES_TOLD]]


def _size_of(message: NDArray[np.int64], size: int) -> int:
    """Return how many numbers a part answers with, `size` in each histogram."""
    return sum(1 + size * _COUNT[which] for which in _entries(message)[:, WHICH].tolist())


def _bits(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.ascontiguousarray(values).reshape(-1).view(np.int64)
