"""Kernels of the random splitter: one tree, depth first, without leaving the kernel.

The rows of a node are `index[begin:end]`, ascending, with targets and weights beside them in the same order. Once a
node fits into a block of the cache, its whole subtree grows in it. Nodes get their numbers in the order of the walk: a
parent, its left subtree, the right one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._random import mix
from ._random_cuts import IN_BLOCK, IN_CODES, IN_ROWS, count_classes, load_block, search_node
from ._sorting import Int
from ._sweeps import mass

Array = NDArray[np.float64]

_LEFT = np.uint64(0x632BE59BD9B4E019)  # of `_random.child_seeds`
_EPSILON = 2.220446049250313e-16


@lean_kernel
def grow_tree(
    table: Any, rows: Any, spare: Any, block: Any, scratch: Any, stack: Any, nodes: Any, rule: Any, leaf_of_row: Any,
    stop: Any,
) -> Int:  # fmt: skip
    """Grow the tree of all rows; return the number of nodes, −1 if the flag was raised."""
    stack.begin[0], stack.end[0], stack.depth[0], stack.parent[0] = 0, rows.number.size, 0, -1
    size, count = 1, np.int64(0)
    block_begin, block_end = np.int64(0), np.int64(0)
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
        where = IN_BLOCK if block_begin <= begin and end <= block_end else IN_CODES if n >= table.many else IN_ROWS
        column, threshold, left = np.int64(-1), 0.0, np.int64(0)
        if not pure and n >= rule.min_split and depth < rule.max_depth and nodes.weight[count] >= 2.0 * rule.min_weight:
            if where != IN_BLOCK and n <= block.origin.size:
                load_block(table.X, index, block)
                block_begin, block_end, where = begin, end, IN_BLOCK
            column, threshold, score, left = search_node(
                table, block, where, index, y, weight, seed, totals, rule, scratch
            )
            if column >= 0 and not _is_enough(score, totals, nodes.impurity[count], rule):
                column, threshold = np.int64(-1), 0.0
        nodes.feature[count], nodes.threshold[count] = column, threshold
        nodes.right[count] = -1
        nodes.missing_left[count] = 1 if column >= 0 and 2 * left > n else 0
        if column >= 0:
            cut = 0.5 if where == IN_CODES else threshold
            _divide(scratch.values[scratch.slots[scratch.slots.size - 1]], cut, index, y, weight, spare)
            middle = begin + left
            for side in range(1, -1, -1):  # the left one is taken next
                stack.begin[size], stack.end[size] = middle if side else begin, end if side else middle
                stack.depth[size], stack.parent[size] = depth + 1, count if side else -1
                stack.seed[size] = mix(seed * np.uint64(2) + np.uint64(side) + _LEFT)
                size += 1
        elif where == IN_BLOCK:
            for i in range(n):
                leaf_of_row[block.origin[index[i]]] = count
        else:
            for i in range(n):
                leaf_of_row[index[i]] = count
        count += 1
    return count


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
def _is_enough(score: float, totals: Array, impurity: float, rule: Any) -> bool:
    """Tell whether a split lowers the impurity as much as the rule wants; see `grower`."""
    w = totals[totals.size - 1]
    if rule.pairs:
        gain = (score - totals[0] * totals[0] / w) * (2.0 if rule.n_classes == 2 else 1.0)
    else:
        gain = score - w * (1.0 - impurity) if rule.gini else score + w * impurity
    gain *= rule.scale
    if gain < rule.min_gain:
        return False
    return gain / rule.whole + _EPSILON * max(1.0, rule.scale) >= rule.min_decrease


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
