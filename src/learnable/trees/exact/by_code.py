"""The best split of a node from sums by code alone: for rows that lie in several places, whose sums were added.

The steps are those of `_search` for a node with many more rows than codes: the same columns in the same order, the same
thresholds, the same scores. Counts of classes are whole numbers, so that the split is the one that the rows in one
place give, to the bit; sums of numbers are exact (`data.any_order`) where the grower adds in the order of the rows, and
scores differ in their last digits at most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray
from .._random import mix, next_random
from ..criteria import Target
from ..growth import Limits
from ._nodes import Level, judge_splits, place_thresholds, summarise
from ._search import draw_cut, judge_cut
from ._sweeps import COLUMN, CUT, FOUND_SIZE, LEVEL, MISSING_LEFT, N_LEFT, NEXT, SCORE, THRESHOLD, record, sweep_groups
from .workspace import CodeTable, Goal

_FREE = np.zeros(3)  # no monotone constraint
_NO_CODES = np.zeros(65, np.uint32)  # more than `_search.SMALL`: the cut is searched among all codes


class CodeSums(NamedTuple):
    """Sums of one column in one node, by code; the missing values have the code `n_codes`."""

    rows: NDArray[np.int64]  #: (256,)
    sums: Array  #: (256, K) weights of the classes, or (256, 2) of (W, S)


class Split(NamedTuple):
    """How a node is divided."""

    column: int
    cut: int  #: last code that goes left
    threshold: float
    missing_left: bool
    n_left: int


class NodeSums(NamedTuple):
    """What is known of a node besides its columns."""

    n_rows: int
    totals: Array  #: (n_channels,) the weight last
    value: Array
    impurity: float
    is_pure: bool


class CodeSearch:
    """Finds splits of one tree.

    Parameters
    ----------
    columns : CodeTable
        Codes of the columns; the cells are not read.
    target : Target
        The criterion; its rows are not read.
    limits : Limits
        Of the tree.
    drawn : bool
        Whether thresholds are drawn.
    """

    def __init__(self, columns: CodeTable, target: Target, limits: Limits, drawn: bool) -> None:
        self.columns = columns
        self.target = target
        self.limits = limits
        self.drawn = drawn
        self.d = len(columns.n_codes)
        self.by_class = bool(target.n_classes[0]) and not limits.two

    # Which columns

    def candidates(self, seed: int) -> list[tuple[int, float]]:
        """Return all columns in the order in which a node looks at them, and the number that draws its threshold."""
        d = self.d
        found = []
        if self.limits.max_features >= d:
            for j in range(d):
                bits = int(mix(np.uint64((seed + j) % 2**64)))
                found.append((j, float(bits >> 11) / 9007199254740992.0))
            return found
        order = list(range(d))
        state: Any = seed
        for visited in range(d):
            state, u = next_random(np.uint64(state))
            pick = visited + int(u * (d - visited))
            order[visited], order[pick] = order[pick], order[visited]
            state, u = next_random(np.uint64(state))
            found.append((order[visited], float(u)))
        return found

    def visited(self, varies: list[bool]) -> int | None:
        """Return how many candidates a node looks at, given which of the first ones vary; None: more must be known."""
        first = self.limits.max_features
        if len(varies) < min(first, self.d):
            return None
        if self.limits.max_features >= self.d or any(varies[:first]):
            return first
        for k in range(first, len(varies)):
            if varies[k]:
                return k + 1
        return self.d if len(varies) == self.d else None

    # What a node is

    def describe_classes(self, n_rows: int, counts: Array) -> NodeSums:
        """Return value and impurity of a node of classes: those of one row per class that has its weight."""
        K = len(counts)
        goal = self.goal()._replace(labels=np.arange(K, dtype=np.int32)[:, None], weight=np.asarray(counts, np.float64))
        return self.describe(goal, np.flatnonzero(goal.weight > 0).astype(np.int32), n_rows)

    def describe(self, goal: Goal, rows: NDArray[np.int32], n_rows: int) -> NodeSums:
        """Return value and impurity of a node of rows."""
        totals = np.empty((1, self.target.n_channels))
        value = np.empty((1, self.target.width))
        impurity = np.empty(1)
        pure = np.empty(1, bool)
        begin = np.zeros(1, np.int64)
        end = np.array([len(rows)], np.int64)
        none = np.empty((1, 0))
        summarise(goal, self.limits.reg_lambda, rows, begin, end, none, totals, value, impurity, pure)
        return NodeSums(n_rows, totals[0], value[0], float(impurity[0]), bool(pure[0]))

    def goal(self) -> Goal:
        """Return the target as kernels see it."""
        t = self.target
        return Goal(t.kind, t.labels, t.y, t.hessian, t.weight, t.n_classes)

    def may_split(self, node: NodeSums, depth: int) -> bool:
        """Tell whether a node may be divided at all."""
        limits = self.limits
        heavy = node.totals[-1] >= 2 * limits.min_weight
        return not node.is_pure and node.n_rows >= limits.min_split and depth < limits.max_depth and bool(heavy)

    # The best split

    def best(self, node: NodeSums, columns: list[tuple[int, float, CodeSums]]) -> Split | None:
        """Return the best split by the columns that a node looks at; None if it gains too little, or there is none."""
        found = np.zeros(FOUND_SIZE)
        found[SCORE] = found[LEVEL] = -np.inf
        for column, u, sums in columns:
            self._search(node, column, u, sums, found)
        if found[SCORE] == -np.inf:
            return None
        zero = np.zeros(1, np.int64)
        level = Level(zero, zero + node.n_rows, np.zeros(1, np.uint64), _FREE[None], node.totals[None])
        gain = np.empty(1)
        impurity = np.array([node.impurity])
        judge_splits(self.goal(), self.limits, level, impurity, np.array([found[SCORE]]), gain)
        if gain[0] == -np.inf:
            return None
        threshold = np.empty(1)
        place_thresholds(self.columns, np.zeros(self.d, bool), found[None], threshold)
        left = int(found[N_LEFT])
        return Split(int(found[COLUMN]), int(found[CUT]), float(threshold[0]), bool(found[MISSING_LEFT]), left)

    def _search(self, node: NodeSums, column: int, u: float, given: CodeSums, found: Array) -> None:
        """Compare the column's candidates with the best so far; see `_search.search_column`."""
        missing = int(self.columns.n_codes[column])
        n_missing = int(given.rows[missing])
        here = np.flatnonzero(given.rows[:missing])
        if not varies(given, missing):
            return
        low = int(here[0])
        high = int(here[-1])
        before = found[SCORE]
        n = node.n_rows
        rows = given.rows[: missing + 1]
        sums = given.sums[: missing + 1]
        cut = -1
        after = -1
        threshold = np.nan
        if self.drawn and high > low:
            cut, threshold = draw_cut(self.columns, column, _NO_CODES, np.int64(low), np.int64(high), u)
            after = int(here[here > cut][0])
            left = slice(0, cut + 1)
            right = slice(cut + 1, missing)
            rows = np.array([rows[left].sum(), rows[right].sum(), rows[missing]])
            sums = np.array([sums[left].sum(axis=0), sums[right].sum(axis=0), sums[missing]])
            low = 0
            high = 1
            if n_missing == 0 and not self.by_class:
                w, s = _pair(sums[0], self.limits.two)
                w_all, s_all = self._whole(node)
                judge_cut(np.int64(n), np.int64(cut), np.int64(after), rows[0], w, s, w_all, s_all, self.limits, _FREE,
                          found)  # fmt: skip
                if found[SCORE] > before:
                    found[COLUMN] = column
                    found[THRESHOLD] = threshold
                    found[MISSING_LEFT] = 1.0 if 2 * found[N_LEFT] > n else 0.0
                return
        at = [*range(low, high + 1), len(rows) - 1]
        if self.by_class:
            self._sweep_classes(rows[at], sums[at], low, missing, node, found)
        else:
            stat = np.empty((len(at), 3))
            stat[:, 0] = rows[at]
            stat[:, 1], stat[:, 2] = _pair(sums[at].T, self.limits.two)
            w_all, s_all = self._whole(node)
            sweep_groups(stat, np.int64(low), np.int64(missing), np.int64(n), w_all, s_all, self.limits, _FREE, found)
        if not found[SCORE] > before:
            return
        found[COLUMN] = column
        if after >= 0:
            if found[NEXT] != missing:
                found[CUT] = cut
                found[NEXT] = after
                found[THRESHOLD] = threshold
            else:  # the missing rows against all others
                found[CUT] = missing - 1
        if n_missing == 0:
            found[MISSING_LEFT] = 1.0 if 2 * found[N_LEFT] > n else 0.0

    def _whole(self, node: NodeSums) -> tuple[float, float]:
        total = node.totals
        return (total[2], total[1]) if self.limits.two else (total[1], total[0])

    def _sweep_classes(
        self, rows: NDArray[np.int64], counts: Array, low: int, missing: int, node: NodeSums, found: Array
    ) -> None:
        """Gini or entropy of any number of classes; the last line is that of the missing values."""
        limits = self.limits
        n = node.n_rows
        whole = node.totals[:-1]
        n_missing = int(rows[-1])
        present = np.flatnonzero(rows[:-1])
        for side in range(1 if n_missing == 0 else 2):
            start = counts[-1] if side else np.zeros(len(whole))
            left = start + np.cumsum(counts[present], axis=0)
            n_left = np.cumsum(rows[present]) + (n_missing if side else 0)
            cuts = len(present) if n_missing and not side else len(present) - 1
            if cuts < 1:
                continue
            left = left[:cuts]
            n_left = n_left[:cuts]
            right = whole - left
            wl = left.sum(axis=1)
            wr = right.sum(axis=1)
            if limits.gini:
                score = (left * left).sum(axis=1) / wl + (right * right).sum(axis=1) / wr
            else:
                score = _logs(left).sum(axis=1) + _logs(right).sum(axis=1) - wl * np.log2(wl) - wr * np.log2(wr)
            fits = np.minimum(n_left, n - n_left) >= limits.min_leaf
            fits &= np.minimum(wl, wr) >= limits.min_weight
            score = np.where(fits, score, -np.inf)
            best = int(score.argmax())
            if score[best] > found[SCORE]:
                after = missing if best + 1 == len(present) else low + int(present[best + 1])
                cut = low + int(present[best])
                record(found, score[best], np.int64(cut), np.int64(after), np.int64(side), n_left[best])


def varies(given: CodeSums, missing: int) -> bool:
    """Tell whether a column has more than one code in a node, that of the missing values included."""
    return bool(np.count_nonzero(given.rows[: missing + 1]) > 1)


def _pair(sums: Array, two: bool) -> tuple[Any, Any]:
    """Return W and S: the weight, and that of the second of two classes or of the numbers."""
    return (sums[0] + sums[1], sums[1]) if two else (sums[0], sums[1])


def _logs(counts: Array) -> Array:
    return np.where(counts > 0, counts * np.log2(np.where(counts > 0, counts, 1.0)), 0.0)
