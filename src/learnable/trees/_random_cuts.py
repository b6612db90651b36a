"""Kernels of the random splitter: one cut drawn for each candidate column of a node, and the best of them.

The values of a column are gathered and their ends are found, a threshold is drawn between them, and the sums on its
left are taken in one more pass over the gathered values. Those of the best column so far stay, so that the division of
the rows need not gather them again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._random import mix, next_random
from ._sorting import Int
from ._sweeps import mass

Array = NDArray[np.float64]


@lean_kernel
def search_node(
    columns: Array, index: NDArray[np.int32], y: Array, weight: Array, seed: Any, totals: Array, rule: Any, scratch: Any
) -> tuple[Int, float, float, Int, Int]:
    """Return column (−1: none), threshold, score and rows on the left of the best cut, and the line with its values.

    `columns` holds column after column, in which `index` counts. They are drawn until `max_features` were looked at and
    one of them was not constant, or nothing can be better.
    """
    n, d = index.size, columns.shape[0]
    order, sides, every = scratch.order, scratch.sides, rule.max_features >= d
    state, u, w_all, enough = seed, 0.0, totals[totals.size - 1], _best_possible(n, totals, rule)
    best, best_score, best_threshold, best_left = np.int64(-1), -np.inf, 0.0, np.int64(0)
    visited, useful, line = 0, False, np.int64(0)
    while visited < d and (visited < rule.max_features or not useful) and best_score < enough:
        if every:
            u = np.float64(mix(seed + np.uint64(visited)) >> np.uint64(11)) / 9007199254740992.0
        else:
            state, u = next_random(state)
            pick = visited + np.int64(u * (d - visited))
            order[visited], order[pick] = order[pick], order[visited]
            scratch.picks[visited] = pick
            state, u = next_random(state)
        column = np.int64(order[visited])
        visited += 1
        values = scratch.values[line][:n]
        low, high = _gather(columns[column], index, values)
        if low == high:
            continue
        useful = True
        threshold = draw_between(low, high, u)
        if rule.pairs:
            rows, w, score = _judge_pairs(values, y, weight, threshold, totals, rule.unit)
        else:
            rows, w, score = _judge_classes(values, y, weight, threshold, totals, rule.gini, rule.bits, sides)
        if min(rows, n - rows) < rule.min_leaf or min(w, w_all - w) < rule.min_weight:
            continue
        if score > best_score:
            best, best_score, best_threshold, best_left = column, score, threshold, rows
            line = 1 - line
    if not every:
        for v in range(visited - 1, -1, -1):  # undo, so that every node draws from the same order
            order[v], order[scratch.picks[v]] = order[scratch.picks[v]], order[v]
    return best, best_threshold, best_score, best_left, 1 - line


@lean_kernel
def _best_possible(n: Int, totals: Array, rule: Any) -> float:
    """Return the score that no split can exceed: that of two pure sides, where it is known."""
    if n == 2:
        return -1e300  # all splits are the same
    if rule.pairs:
        return totals[0] if rule.n_classes > 0 else np.inf
    return totals[totals.size - 1] if rule.gini else 0.0


@lean_kernel
def draw_between(low: float, high: float, u: float) -> float:
    """Return the threshold that u draws: at least `low`, below `high`."""
    threshold = low * (1.0 - u) + high * u
    return low if threshold >= high or threshold < low else threshold


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
