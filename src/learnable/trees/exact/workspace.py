"""What the grower's kernels work on: the table, the target and scratch memory, allocated once a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray, on_main_thread, run_tasks
from ..criteria import ABSOLUTE_ERROR, CLASSES, PAIRS, SUMS, TWO, Target
from ..growth import GrowthRule, NodeStore, limits_of
from ..table import Columns
from ._nodes import (
    Level,
    OneNode,
    gather_pairs,
    gather_payload,
    grow_subtrees,
    judge_splits,
    place_thresholds,
    summarise,
    take_rows,
)
from ._search import search
from ._sorting import COUNTS
from ._sweeps import FOUND_SIZE, LEVEL, SCORE, TIE, medians, rank_level

_FEW_CODES = 4096  # columns with up to so many codes may be summed by code
_WORTH_A_THREAD = 1 << 18  # rows times columns
_LONG = 1 << 23  # rows times columns: a tenth of a second
_MOST_KNOWN = 128  # depth up to which constant columns are remembered
# rows, rows, bytes
_SMALL_NODE = 1024
_SMALL_TABLE = 1 << 14
_LARGE_COPY = 1 << 28


class CodeTable(NamedTuple):
    """`Columns`, as kernels see them."""

    codes: NDArray[Any]
    n_codes: NDArray[np.int64]
    offset: NDArray[np.int64]
    low: Array
    high: Array


class SparseCodes(NamedTuple):
    """Stored entries of a sparse table."""

    entries: NDArray[np.uint32]
    rows: NDArray[np.int32]
    start: NDArray[np.int64]
    zero: NDArray[np.int64]


class Goal(NamedTuple):
    """`criteria.Target`, as kernels see it."""

    kind: int
    labels: NDArray[np.int32]
    y: Array
    hessian: Array
    weight: Array
    n_classes: NDArray[np.int64]


class Categories(NamedTuple):
    """What categorical columns need."""

    column: NDArray[np.bool_]
    goal: Goal
    position: NDArray[np.int64]  #: of each category in the order of their means
    profile: Array  #: sums of each category
    present: NDArray[np.int64]
    rank: NDArray[np.int64]
    spare: NDArray[np.int64]
    score: Array
    moments: Array  #: (3 + n_channels, n_channels)


class Absolute(NamedTuple):
    """What the absolute error needs."""

    weight: Array
    rank: NDArray[np.int32]  #: of y in the node
    ordered: Array  #: y of the node, sorted
    tree: Array
    costs: Array


class Scratch(NamedTuple):
    """Memory of one thread."""

    code: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    keys2: NDArray[np.uint64]
    places: NDArray[np.uint32]  #: 0, 1, 2, …
    counts: NDArray[np.int64]
    cells: NDArray[np.int64]
    stat: Array
    classes: NDArray[np.int64]
    sides: Array
    order: NDArray[np.int32]
    picks: NDArray[np.int64]


class Workspace:
    """One tree's arrays."""

    def __init__(
        self, columns: Columns, target: Target, rule: GrowthRule, used: NDArray[np.int32], n_threads: int, stop: Any
    ) -> None:
        c = columns
        d = columns.n_columns
        n = len(used)
        self.columns = CodeTable(c.codes, c.n_codes, c.offset, c.low, c.high)
        self.sparse = SparseCodes(c.entries, c.rows, c.start, c.zero) if c.sparse else None
        self.goal = Goal(target.kind, target.labels, target.y, target.hessian, target.weight, target.n_classes)
        self.limits = limits_of(target, rule, used, d)
        self.drawn = True if rule.splitter == "random" else None  # kernels drop what None guards
        self.n_channels = target.n_channels
        self.is_general = target.family == SUMS
        self.n_words = (int(c.n_codes[c.categorical].max(initial=0)) + 31) // 32
        self.rows = used
        self.spare = np.empty(n, np.int32)
        self.stop = stop
        self.n_threads = max(1, n_threads)
        self.origin: NDArray[np.int32] | None = None
        self.payload = target.payload()
        self.pair = target.pairs()
        self.packed = np.empty(n, np.uint32) if target.family in (TWO, CLASSES) else None
        self.pairs = np.empty((n, 2)) if target.family == PAIRS else None
        is_absolute = target.family == ABSOLUTE_ERROR
        m = target.n_outputs if is_absolute else 0
        self.rank = np.empty((n if m else 0, m), np.int32)
        self.ordered = np.empty((n if m else 0, m))
        self.scratch = [self._new_scratch(c, n) for _ in range(self.n_threads)]
        self.categories = [self._new_categories(c) for _ in range(self.n_threads)]
        self.absolute = [self._new_absolute(n) if m else None for _ in range(self.n_threads)]

    def _new_scratch(self, columns: Columns, n: int) -> Scratch:
        d = columns.n_columns
        channels = self.n_channels
        n_few = min(int(columns.n_codes.max(initial=0)), _FEW_CODES) + 2
        return Scratch(
            np.empty(n, np.uint32),
            np.empty(n, np.uint64),
            np.empty(n, np.uint64),
            np.arange(n, dtype=np.uint32),
            np.empty(COUNTS, np.int64),
            np.empty(n_few, np.int64),
            np.empty((n_few, 3)),
            np.empty((2, channels - 1), np.int64),
            np.empty((2, channels)),
            np.arange(d, dtype=np.int32),
            np.empty(d, np.int64),
        )

    def _new_categories(self, columns: Columns) -> Categories | None:
        if not columns.categorical.any():
            return None
        most = int(columns.n_codes[columns.categorical].max())
        k = self.n_channels
        position, present, rank, spare = np.empty((4, most), np.int64)
        profile = np.empty((most, k))
        moments = np.empty((3 + k, k))
        return Categories(
            columns.categorical, self.goal, position, profile, present, rank, spare, np.empty(most), moments
        )

    def _new_absolute(self, n: int) -> Absolute:
        return Absolute(self.goal.weight, self.rank, self.ordered, np.empty((n + 1, 2)), np.empty((n + 1, 8)))

    def bring_together(self, n_nodes: int) -> None:
        """Once nodes are small, copy the table in the order of the nodes: then a node's codes lie side by side."""
        n = len(self.rows)
        d = len(self.columns.n_codes)
        codes = self.columns.codes
        scattered = self.origin is None and self.sparse is None and n < _SMALL_NODE * n_nodes
        if not scattered or n < _SMALL_TABLE or n * d * codes.itemsize > _LARGE_COPY:
            return
        together = np.empty((d, n), codes.dtype)
        take_rows(codes, self.rows, together)
        self.columns = self.columns._replace(codes=together)
        self.origin = self.rows.copy()
        rowwise = {name: getattr(self.goal, name) for name in ("labels", "y", "hessian", "weight")}
        self.goal = self.goal._replace(**{name: a[self.origin] if len(a) else a for name, a in rowwise.items()})
        self.payload = self.payload[self.origin] if len(self.payload) else self.payload
        self.pair = self.pair[self.origin] if len(self.pair) else self.pair
        self.categories = [own and own._replace(goal=self.goal) for own in self.categories]
        self.absolute = [own and own._replace(weight=self.goal.weight) for own in self.absolute]
        self.rows[:] = np.arange(n, dtype=np.int32)

    def final_rows(self) -> NDArray[np.int32]:
        """Return the rows of the table in the order of the nodes."""
        return self.rows if self.origin is None else self.origin[self.rows]

    def summarise(self, begin: Any, end: Any, width: int) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """Return sums, values and impurities of nodes, and whether they are pure."""
        m = len(begin)
        totals = np.empty((m, self.n_channels))
        value = np.empty((m, width))
        impurity = np.empty(m)
        pure = np.empty(m, bool)
        centres = np.empty((m, self.rank.shape[1]))
        if self.rank.size:
            n = len(self.rows)
            order = np.empty(n, np.int64)
            spare = np.empty(n, np.int64)
            mass = np.empty(n)
            rank_level(self.goal.y, self.rows, begin, end, self.rank, self.ordered, order, spare)
            medians(self.goal.weight, self.rows, begin, end, self.rank, self.ordered, mass, centres)
        lam = self.limits.reg_lambda
        summarise(self.goal, lam, self.rows, begin, end, centres, totals, value, impurity, pure)
        return totals, value, impurity, pure

    def search(self, level: Level) -> tuple[Array, NDArray[np.uint32]]:
        """Return the best split of every open node (positions of `_sweeps`), and its set of categories."""
        self._bring_into_order(level)
        d = len(self.columns.n_codes)
        m = len(level.begin)
        all_columns = self.limits.max_features >= d
        size = d if all_columns else m
        work = int((level.end - level.begin).sum()) * self.limits.max_features
        n_parts = min(self.n_threads, size) if work >= _WORTH_A_THREAD else 1
        cuts = [size * k // n_parts for k in range(n_parts + 1)] if all_columns else _cuts_by_rows(level, n_parts)
        results = []
        for _ in range(n_parts if all_columns else 1):
            found = np.zeros((m, FOUND_SIZE))
            found[:, [SCORE, LEVEL]] = -np.inf
            results.append((found, np.zeros((m, self.n_words), np.uint32)))

        def part(k: int) -> None:
            found, sets = results[k if all_columns else 0]
            own = level._replace(bounds=level.bounds.copy())
            search(
                self.columns, self.sparse, self.categories[k], self.limits, own, self.rows, self.packed,
                self.pairs, self.goal if self.is_general else None, self.absolute[k], self.drawn, self.scratch[k], None,
                cuts[k], cuts[k + 1], found, sets, self.stop,
            )  # fmt: skip

        run_parts(part, n_parts, self.stop, work >= _LONG)
        best, best_sets = results[0]
        for found, sets in results[1:]:  # in the order of the columns: of equals the first wins
            better = found[:, SCORE] > best[:, SCORE]
            if self.rank.size:
                here = found[:, LEVEL]
                top = best[:, LEVEL]
                better = (here > top) | ((here == top) & (found[:, TIE] > best[:, TIE]))
            best[better] = found[better]
            best_sets[better] = sets[better]
        return best, best_sets

    def gains(self, level: Level, impurity: Array, score: Array) -> Array:
        """Return what the splits found gain, −inf where it is not enough."""
        out = np.empty(len(score))
        judge_splits(self.goal, self.limits, level, impurity, np.ascontiguousarray(score), out)
        return out

    def thresholds(self, categorical: NDArray[np.bool_], found: Array) -> Array:
        """Return where the splits found cut."""
        out = np.empty(len(found))
        place_thresholds(self.columns, categorical, found, out)
        return out

    def takes_subtrees(self, n_open: int) -> bool:
        """Tell whether what is left is so small that its nodes are better grown one by one, on one thread."""
        n = len(self.rows)
        known = self.categories[0] is None and self.absolute[0] is None and not self.limits.monotone
        return known and (n < _SMALL_TABLE or (self.n_threads == 1 and n < _SMALL_NODE * n_open))

    def grow_subtrees(self, nodes: NodeStore, batch: NDArray[np.int64]) -> None:
        """Grow the subtrees of open nodes."""
        n = int((nodes.end[batch] - nodes.begin[batch]).sum())
        nodes.reserve(nodes.n + 2 * n)
        stack = np.empty(n + len(batch) + 1, np.int64)
        stack[: len(batch)] = batch[::-1]
        own = OneNode(
            np.empty((1, self.n_channels)), np.empty((1, FOUND_SIZE)), np.zeros((1, 0), np.uint32), np.zeros((1, 3)),
            np.empty((1, 0)), np.empty(1, bool), np.empty(1, np.int64), stack, self._constant(),
        )  # fmt: skip
        count = np.zeros(1, np.int64)

        def whole(part: int) -> None:
            count[0] = grow_subtrees(
                self.columns, self.sparse, self.limits, self.goal, self.goal if self.is_general else None,
                self.payload, self.packed, self.pair, self.pairs, self.rows, self.spare, self.drawn, self.scratch[0],
                own, nodes.arrays, len(batch), nodes.n, self.stop,
            )  # fmt: skip

        run_parts(whole, 1, self.stop, n * self.limits.max_features >= _LONG // 8)
        nodes.n = int(count[0])

    def _constant(self) -> NDArray[np.uint8]:
        """Return lines for the columns that are constant in a node, by depth."""
        return np.zeros((min(len(self.rows), _MOST_KNOWN) + 2, len(self.columns.n_codes)), np.uint8)

    def _bring_into_order(self, level: Level) -> None:
        """Copy what the sweeps need of each row next to its neighbours in the node; ranks are there already."""
        if self.packed is not None:
            gather_payload(self.payload, self.rows, level.begin, level.end, self.packed)
        elif self.pairs is not None:
            gather_pairs(self.pair, self.rows, level.begin, level.end, self.pairs)


def run_parts(part: Callable[[int], None], n_parts: int, stop: NDArray[np.int64], is_long: bool) -> None:
    """Run part(0) … part(n_parts − 1), each on a thread of its own; Ctrl-C raises the stop flag and waits for them.

    The first runs on the caller's thread, unless that is the one that signals reach and the work is long.
    """
    watching = is_long and on_main_thread()
    if n_parts == 1 and not watching:
        part(0)
    else:
        run_tasks(part, n_parts, n_parts, stop=stop, watch=_only_wait if watching else None)


def _only_wait(n_done: int) -> None:
    """Do nothing between two chances for Ctrl-C."""


def _cuts_by_rows(level: Level, n_parts: int) -> list[int]:
    """Cut the nodes into runs with about the same number of rows."""
    rows = np.cumsum(level.end - level.begin)
    inner = np.searchsorted(rows, rows[-1] * np.arange(1, n_parts) / n_parts)
    return [0, *(int(k) for k in inner), len(rows)]
