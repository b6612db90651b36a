"""Kernels of the random splitter: one tree, depth first, without leaving the kernel.

The rows of a node are `index[begin:end]`, ascending, with targets and weights beside them in the same order. A node of
many rows reads the whole table, column after column. Once few of the values that come into the cache with each other
are its own, its rows are copied side by side (`outer`), and once more when they fit into the cache (`inner`); then the
subtree grows there, and `index` counts in the copy. Nodes get their numbers in the order of the walk: a parent, its
left subtree, the right one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array, NDArray
from ...core.jit import lean_kernel
from .._random import child_seed, mix, next_random
from ..exact._nodes import is_enough
from ..exact._search import TIE
from ..exact._sorting import Int
from ..exact._sweeps import mass

# --------------------------------------------------------------------------------------------------------------------
# Kernels of the random splitter: one cut drawn for each candidate column of a node, and the best of them.
#
# The values of a column are gathered and their ends are found, a threshold is drawn between them, and the sums on its
# left are taken in one more pass over the gathered values. Those of the best column so far stay, so that the division
# of the rows need not gather them again.


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
    tie = 0.0 if rule.n_classes > 0 else TIE  # weights of classes are added without rounding
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
        if score - best_score > tie * abs(score):
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


@lean_kernel
def grow_tree(
    table: Any, rows: Any, spare: Any, outer: Any, inner: Any, scratch: Any, stack: Any, nodes: Any, rule: Any,
    leaf_of_row: Any, stop: Any,
) -> Int:  # fmt: skip
    """Grow the tree of all rows; return the number of nodes, −1 if the flag was raised."""
    stack.begin[0], stack.end[0], stack.depth[0], stack.parent[0] = 0, rows.number.size, 0, -1
    size, count = 1, np.int64(0)
    outer_begin, outer_end, inner_begin, inner_end = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while size > 0:
        if stop[0] != 0:
            return np.int64(-1)
        size -= 1
        begin, end, depth, seed = stack.begin[size], stack.end[size], stack.depth[size], stack.seed[size]
        if stack.parent[size] >= 0:
            nodes.right[stack.parent[size]] = count
        index, y, weight = rows.number[begin:end], rows.y[begin:end], rows.weight[begin:end]
        n, totals = end - begin, scratch.totals
        nodes.n_rows[count] = n
        pure = _describe(y, weight, rule, totals, nodes, count)
        in_outer = outer_begin <= begin and end <= outer_end
        in_inner = inner_begin <= begin and end <= inner_end
        column, threshold, left, line = np.int64(-1), 0.0, np.int64(0), np.int64(0)
        if not pure and n >= rule.min_split and depth < rule.max_depth and nodes.weight[count] >= 2.0 * rule.min_weight:
            if not in_inner and n <= inner.number.size:
                _load(table.rows, index, outer.number, in_outer, inner)
                inner_begin, inner_end, in_inner = begin, end, True
            elif not in_outer and n <= outer.number.size and n > inner.number.size:
                _load(table.rows, index, outer.number, False, outer)
                outer_begin, outer_end, in_outer = begin, end, True
            columns = inner.values if in_inner else outer.values if in_outer else table.columns
            column, threshold, score, left, line = search_node(columns, index, y, weight, seed, totals, rule, scratch)
            if column >= 0 and not is_enough(_gain(score, totals, nodes.impurity[count], rule), rule):
                column, threshold = np.int64(-1), 0.0
        nodes.feature[count], nodes.threshold[count] = column, threshold
        nodes.right[count] = -1
        nodes.missing_left[count] = 1 if column >= 0 and 2 * left > n else 0
        if column >= 0:
            _divide(scratch.values[line], threshold, index, y, weight, spare)
            middle = begin + left
            for side in range(1, -1, -1):  # the left one is taken next
                stack.begin[size], stack.end[size] = middle if side else begin, end if side else middle
                stack.depth[size], stack.parent[size] = depth + 1, count if side else -1
                stack.seed[size] = child_seed(seed, side)
                size += 1
        else:
            for i in range(n):
                r = np.int64(index[i])
                leaf_of_row[inner.number[r] if in_inner else outer.number[r] if in_outer else r] = count
        count += 1
    return count


@lean_kernel
def _load(table: Array, index: NDArray[np.int32], number: NDArray[np.int32], is_copy: bool, block: Any) -> None:
    """Copy the rows of a node, column after column; from now on `index` counts there."""
    for i in range(index.size):
        r = number[index[i]] if is_copy else index[i]
        row = table[r]
        for j in range(row.size):
            block.values[j, i] = row[j]
        block.number[i] = r
        index[i] = i


@lean_kernel
def _describe(y: Array, weight: Array, rule: Any, totals: Array, nodes: Any, node: Int) -> bool:
    """Write sums (the weight last), weight, value and impurity of a node; return whether all its targets are equal."""
    if rule.n_classes == 0:
        return _describe_numbers(y, weight, totals, nodes, node)
    m, w, score, n_present = rule.n_classes, 0.0, 0.0, 0
    last = totals.size - 1
    if rule.pairs:
        first, second = 0.0, 0.0
        for i in range(y.size):
            first += weight[i] * (1.0 - y[i])
            second += weight[i] * y[i]
        totals[0], totals[1] = first, second
    else:
        count_classes(y, y, weight, np.inf, rule.bits, totals[:m])
    for c in range(m):
        w += totals[c]
    for c in range(m):
        nodes.value[node, c] = totals[c] / w
        n_present += 1 if totals[c] > 0.0 else 0
        score += mass(totals[c], True) / w if rule.gini else mass(totals[c] / w, False) * w
    if rule.pairs:
        totals[0] = totals[1]
    totals[last] = w
    nodes.weight[node] = w
    impurity = 1.0 - score / w if rule.gini else -score / w
    nodes.impurity[node] = 0.0 if n_present == 1 else max(0.0, impurity)
    return n_present == 1


@lean_kernel
def _describe_numbers(y: Array, weight: Array, totals: Array, nodes: Any, node: Int) -> bool:
    w, s, spread = 0.0, 0.0, 0.0
    first, n_equal = y[0], 0
    for i in range(y.size):
        w += weight[i]
        s += weight[i] * y[i]
        n_equal += 1 if y[i] == first else 0
    centre, equal = s / w, n_equal == y.size
    for i in range(y.size):
        spread += weight[i] * (y[i] - centre) * (y[i] - centre)
    totals[0], totals[totals.size - 1] = s, w
    nodes.weight[node], nodes.value[node, 0] = w, first if equal else centre
    nodes.impurity[node] = 0.0 if equal else spread / w
    return equal


@lean_kernel
def _gain(score: float, totals: Array, impurity: float, rule: Any) -> float:
    """Return by how much a split lowers the weighted impurity; see `exact._nodes.gain_of`."""
    w = totals[totals.size - 1]
    if rule.pairs:
        return (score - totals[0] * totals[0] / w) * (2.0 if rule.n_classes == 2 else 1.0)
    return score - w * (1.0 - impurity) if rule.gini else score + w * impurity


@lean_kernel
def _divide(values: Array, threshold: float, index: NDArray[np.int32], y: Array, weight: Array, spare: Any) -> None:
    """Move what goes left to the front, in order: without branches, written to both sides, one of which advances."""
    spare_index, spare_y, spare_weight = spare.number, spare.y, spare.weight
    n_left, n_right = 0, 0
    for i in range(index.size):
        r, own, w = index[i], y[i], weight[i]
        index[n_left], y[n_left], weight[n_left] = r, own, w
        spare_index[n_right], spare_y[n_right], spare_weight[n_right] = r, own, w
        left = values[i] <= threshold
        n_left += 1 if left else 0
        n_right += 0 if left else 1
    for i in range(n_right):
        index[n_left + i], y[n_left + i], weight[n_left + i] = spare_index[i], spare_y[i], spare_weight[i]
