"""Kernels of the random splitter: one cut drawn for each candidate column of a node, and the best of them.

The values of up to `GROUP` columns are gathered at a time, their ends are found, a threshold is drawn between them, and
the sums on its left are taken in one more pass over the gathered values. Those of the best column so far stay, so that
the division of the rows need not gather them again.

A node of many rows reads codes (`_random_codes`), one of few rows a copy of its rows that fits into the cache
(`load_block`). Where there are neither, it reads the table, which holds row after row: some rows at a time, so that
what was fetched for one column serves the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._random import mix, next_random
from ._random_codes import gather_codes, mark_sides
from ._sorting import Int
from ._sweeps import mass

Array = NDArray[np.float64]

GROUP = 8
IN_ROWS, IN_BLOCK, IN_CODES = range(3)  # where the values of a node are read
_CHUNK = 64  # rows; times a line of the cache for each column, the fastest cache


@lean_kernel
def search_node(
    table: Any, block: Any, where: Int, index: NDArray[np.int32], y: Array, weight: Array, seed: Any, totals: Array,
    rule: Any, scratch: Any,
) -> tuple[Int, float, float, Int]:  # fmt: skip
    """Return column (−1: none), threshold, score and rows on the left of the best cut.

    Columns are drawn until `max_features` were looked at and one of them was not constant. What tells the sides of the
    best one, its values or marks, stays in slots[GROUP].
    """
    n, d = index.size, scratch.order.size
    every = rule.max_features >= d
    order, picks, slots, ends, sides = scratch.order, scratch.picks, scratch.slots, scratch.ends, scratch.sides
    state, w_all = seed, totals[totals.size - 1]
    best, best_score, best_threshold, best_left = np.int64(-1), -np.inf, 0.0, np.int64(0)
    visited, wanted, useful = 0, min(rule.max_features, d), False
    while visited < wanted:
        size = min(GROUP, wanted - visited)
        for k in range(size):
            if every:
                ends[k, 2] = np.float64(mix(seed + np.uint64(visited)) >> np.uint64(11)) / 9007199254740992.0
            else:
                state, u = next_random(state)
                pick = visited + np.int64(u * (d - visited))
                order[visited], order[pick] = order[pick], order[visited]
                picks[visited] = pick
                state, ends[k, 2] = next_random(state)
            visited += 1
        columns = order[visited - size : visited]
        if where == IN_BLOCK:
            _gather_block(block, index, columns, scratch)
        elif where == IN_ROWS:
            _gather_rows(table.X, index, columns, scratch)
        else:
            for k in range(size):
                ends[k, 0], ends[k, 1] = gather_codes(table, index, columns[k], scratch.codes[k])
        for k in range(size):
            low, high = ends[k, 0], ends[k, 1]
            if low == high:
                continue
            useful = True
            threshold = draw_between(low, high, ends[k, 2])
            values, cut = scratch.values[slots[k]][:n], threshold
            if where == IN_CODES:
                mark_sides(table, index, columns[k], scratch.codes[k], threshold, values)
                cut = 0.5
            if rule.pairs:
                rows, w, score = _judge_pairs(values, y, weight, cut, totals, rule.unit)
            else:
                rows, w, score = _judge_classes(values, y, weight, cut, totals, rule.gini, rule.bits, sides)
            if min(rows, n - rows) < rule.min_leaf or min(w, w_all - w) < rule.min_weight:
                continue
            if score > best_score:
                best, best_score, best_threshold, best_left = np.int64(columns[k]), score, threshold, rows
                slots[k], slots[GROUP] = slots[GROUP], slots[k]
        if visited == wanted and not useful and wanted < d:
            wanted += 1
    if not every:
        for v in range(visited - 1, -1, -1):  # undo, so that every node draws from the same order
            order[v], order[picks[v]] = order[picks[v]], order[v]
    return best, best_threshold, best_score, best_left


@lean_kernel
def draw_between(low: float, high: float, u: float) -> float:
    """Return the threshold that u draws: at least `low`, below `high`."""
    threshold = low * (1.0 - u) + high * u
    return low if threshold >= high or threshold < low else threshold


@lean_kernel
def load_block(table: Array, index: NDArray[np.int32], block: Any) -> None:
    """Copy the rows of a node, column after column; from now on `index` counts within the copy."""
    for i in range(index.size):
        row = table[index[i]]
        for j in range(row.size):
            block.values[j, i] = row[j]
        block.origin[i] = index[i]
        index[i] = i


@lean_kernel
def _gather_block(block: Any, index: NDArray[np.int32], columns: NDArray[np.int32], scratch: Any) -> None:
    for k in range(columns.size):
        source, target = block.values[columns[k]], scratch.values[scratch.slots[k]][: index.size]
        scratch.ends[k, 0], scratch.ends[k, 1] = _gather(source, index, target)


@lean_kernel
def _gather(source: Array, index: NDArray[np.int32], target: Array) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for i in range(index.size):
        v = source[index[i]]
        target[i] = v
        low = v if v < low else low
        high = v if v > high else high
    return low, high


@lean_kernel
def _gather_rows(table: Array, index: NDArray[np.int32], columns: NDArray[np.int32], scratch: Any) -> None:
    n, ends = index.size, scratch.ends
    for k in range(columns.size):
        ends[k, 0], ends[k, 1] = np.inf, -np.inf
    for first in range(0, n, _CHUNK):
        own = index[first : min(n, first + _CHUNK)]
        for k in range(columns.size):
            target, j = scratch.values[scratch.slots[k]][first:n], columns[k]
            low, high = ends[k, 0], ends[k, 1]
            for i in range(own.size):
                v = table[own[i], j]
                target[i] = v
                low = v if v < low else low
                high = v if v > high else high
            ends[k, 0], ends[k, 1] = low, high


@lean_kernel
def _judge_pairs(
    values: Array, y: Array, weight: Array, threshold: float, totals: Array, unit: bool
) -> tuple[Int, float, float]:
    """Return rows and weight on the left, and S²/W summed over both sides: squared error, and two classes and Gini."""
    rows, w, s = np.int64(0), 0.0, 0.0
    if unit:
        for i in range(values.size):
            left = values[i] <= threshold
            rows += 1 if left else 0
            s += y[i] if left else 0.0
        w = np.float64(rows)
    else:
        for i in range(values.size):
            left = values[i] <= threshold
            own = weight[i] if left else 0.0
            rows += 1 if left else 0
            w += own
            s += own * y[i]
    w_right, s_right = totals[totals.size - 1] - w, totals[0] - s
    return rows, w, s * s / w + s_right * s_right / w_right


@lean_kernel
def _judge_classes(
    values: Array, y: Array, weight: Array, threshold: float, totals: Array, gini: bool, bits: Int, left: Array
) -> tuple[Int, float, float]:
    """Return rows and weight on the left, and the score of the classes on both sides."""
    rows = count_classes(values, y, weight, threshold, bits, left)
    w, g_left, g_right = 0.0, 0.0, 0.0
    if gini:
        for c in range(left.size):
            w += left[c]
            g_left += left[c] * left[c]
            g_right += (totals[c] - left[c]) * (totals[c] - left[c])
        return rows, w, g_left / w + g_right / (totals[left.size] - w)
    for c in range(left.size):
        w += left[c]
        g_left += mass(left[c], False)
        g_right += mass(totals[c] - left[c], False)
    return rows, w, g_left + g_right - mass(w, False) - mass(totals[left.size] - w, False)


@lean_kernel
def count_classes(values: Array, y: Array, weight: Array, threshold: float, bits: Int, counts: Array) -> Int:
    """Write the weight of each class up to the threshold; return the rows there.

    Rows that weigh one each may have y = 2^(bits · class): a sum of fewer than 2^bits of them holds all counts.
    """
    rows = np.int64(0)
    for c in range(counts.size):
        counts[c] = 0.0
    if bits == 0:
        for i in range(y.size):
            left = values[i] <= threshold
            counts[np.int64(y[i])] += weight[i] if left else 0.0
            rows += 1 if left else 0
        return rows
    most = np.int64((1 << bits) - 1)
    for first in range(0, y.size, most):
        last = min(y.size, first + most)
        x, own, total = values[first:last], y[first:last], 0.0
        for i in range(own.size):
            total += own[i] if x[i] <= threshold else 0.0
        word = np.int64(total)
        for c in range(counts.size):
            here = (word >> (bits * c)) & most
            counts[c] += np.float64(here)
            rows += here
    return rows
