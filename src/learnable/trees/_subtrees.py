"""Kernel of the grower: whole subtrees, depth first, without leaving the kernel.

Level by level, the interpreter needs half a millisecond a level, however few rows are left. So small tables, and the
small nodes of large ones, are grown here. The steps are those of `grower`, node by node: the tree is the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._nodes import divide, gather_pairs, gather_payload, is_enough, summarise
from ._random import child_seed
from ._search import search_columns, search_nodes
from ._sorting import Int
from ._sweeps import COLUMN, CUT, MISSING_LEFT, NEXT, SCORE, THRESHOLD
from .criteria import ABSOLUTE, ENTROPY, GINI, GRADIENT, MISCLASSIFICATION, POISSON

Array = NDArray[np.float64]


class Level(NamedTuple):
    """The open nodes."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    seed: NDArray[np.uint64]
    bounds: Array  #: (·, 3) lowest and highest value, and a place for the sign of the column's slope
    totals: Array  #: (·, n_channels) sums, the weight last


class Stops(NamedTuple):
    """When a node stays a leaf."""

    max_depth: int
    min_split: int
    min_gain: float
    min_decrease: float
    scale: float  #: of gains
    whole: float  #: weight of all rows, times the number of outputs


class NodeArrays(NamedTuple):
    """The arrays of a `NodeStore`."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    depth: NDArray[np.int32]
    seed: NDArray[np.uint64]
    feature: NDArray[np.int32]
    threshold: Array
    cut: NDArray[np.int64]
    missing_left: NDArray[np.uint8]
    gain: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    impurity: Array
    weight: Array
    value: Array


class OneNode(NamedTuple):
    """Memory for the node at hand."""

    totals: Array  #: (1, n_channels)
    found: Array  #: (1, FOUND_SIZE)
    sets: NDArray[np.uint32]  #: (1, 0)
    bounds: Array  #: (1, 3)
    centres: Array  #: (1, 0)
    pure: NDArray[np.bool_]
    middle: NDArray[np.int64]
    stack: NDArray[np.int64]
    constant: NDArray[np.uint8]  #: (·, d) columns that are constant in the node at hand, by depth; the first is zero


@lean_kernel
def grow_subtrees(
    cols: Any, sparse: Any, limits: Any, goal: Any, sums: Any, payload: Any, packed: Any, pair: Any, pairs: Any,
    rows: Any, spare: Any, scratch: Any, stops: Any, own: Any, nodes: Any, size: Int, count: Int, stop: Any,
) -> Int:  # fmt: skip
    """Grow the subtrees of the `size` nodes on the stack, adding nodes from number `count`; return the next number."""
    d = cols.n_codes.size
    while size > 0:
        if stop[0] != 0:
            break
        size -= 1
        node = own.stack[size]
        at = slice(node, node + 1)
        begin, end = nodes.begin[at], nodes.end[at]
        summarise(
            goal, limits.reg_lambda, rows, begin, end, own.centres, own.totals, nodes.value[at], nodes.impurity[at],
            own.pure,
        )  # fmt: skip
        total = own.totals[0]
        nodes.weight[node] = total[total.size - 1]
        least = total[goal.n_classes.size] if goal.kind == GRADIENT else nodes.weight[node]
        n_rows = end[0] - begin[0]
        if own.pure[0] or n_rows < stops.min_split or least < 2.0 * limits.min_weight:
            continue
        if nodes.depth[node] >= stops.max_depth:
            continue
        if packed is not None:
            gather_payload(payload, rows, begin, end, packed)
        if pairs is not None:
            gather_pairs(pair, rows, begin, end, pairs)
        found = own.found[0]
        found[:] = 0.0
        found[SCORE] = -np.inf
        level = Level(begin, end, nodes.seed[at], own.bounds, own.totals)
        known = own.constant[_inherit(own.constant, np.int64(nodes.depth[node]))]
        if limits.max_features >= d:
            search_columns(
                cols, sparse, None, limits, level, rows, packed, pairs, sums, None, scratch, known, 0, d, own.found,
                own.sets, stop,
            )  # fmt: skip
        else:
            search_nodes(
                cols, sparse, None, limits, level, rows, packed, pairs, sums, None, scratch, known, 0, 1, own.found,
                own.sets, stop,
            )  # fmt: skip
        if found[SCORE] == -np.inf or stop[0] != 0:
            continue
        gain = gain_of(goal, limits, total, nodes.impurity[node], found[SCORE])
        if not is_enough(gain, stops):
            continue
        column, cut = np.int64(found[COLUMN]), np.int64(found[CUT])
        nodes.feature[node], nodes.cut[node], nodes.gain[node] = column, cut, gain
        nodes.missing_left[node] = 1 if found[MISSING_LEFT] != 0.0 else 0
        nodes.threshold[node] = threshold_of(cols, column, cut, np.int64(found[NEXT]), found[THRESHOLD])
        divide(
            cols, sparse, None, rows, spare, scratch.code, begin, end, nodes.feature[at], nodes.cut[at],
            nodes.missing_left[at], own.sets, own.middle,
        )  # fmt: skip
        for side in range(2):
            child = count + side
            nodes.begin[child] = own.middle[0] if side else begin[0]
            nodes.end[child] = end[0] if side else own.middle[0]
            nodes.depth[child] = nodes.depth[node] + 1
            nodes.seed[child] = child_seed(nodes.seed[node], side)
            nodes.feature[child] = nodes.left[child] = nodes.right[child] = -1
            nodes.threshold[child], nodes.cut[child], nodes.missing_left[child] = 0.0, 0, 0
            nodes.gain[child] = -np.inf
            own.stack[size + 1 - side] = child  # the left one is taken next: its rows are in the cache
        nodes.left[node], nodes.right[node] = count, count + 1
        count += 2
        size += 2
    return count


@lean_kernel
def _inherit(constant: NDArray[np.uint8], depth: Int) -> Int:
    """Copy what is known to be constant from the parent, and return in which line; too deep nodes begin anew."""
    last = constant.shape[0] - 1
    line, above = min(depth + 1, last), depth if depth < last else 0
    own, inherited = constant[line], constant[above]
    for j in range(own.size):
        own[j] = inherited[j]
    return line


@lean_kernel
def gain_of(goal: Any, limits: Any, total: Array, impurity: float, score: float) -> float:
    """Return by how much a split lowers the weighted impurity, summed over outputs (gradients: raises the score)."""
    m, w = goal.n_classes.size, total[total.size - 1]
    if limits.two:  # Σ cₖ²/W of two classes is 2S²/W − 2S + W
        return 2.0 * (score - total[1] ** 2 / w)
    if goal.kind in (GINI, MISCLASSIFICATION):
        return score - m * w * (1.0 - impurity)
    if goal.kind in (ENTROPY, ABSOLUTE):
        return score + m * w * impurity
    gain = score  # of counts, the sweep has compared with the node already
    for k in range(m if goal.kind != POISSON else 0):
        gain -= total[k] ** 2 / (total[m + k] + limits.reg_lambda if goal.kind == GRADIENT else w)
    return gain


@lean_kernel
def judge_splits(goal: Any, limits: Any, stops: Any, level: Any, impurity: Array, score: Array, gain: Array) -> None:
    """OUT gain: what the best split of each open node gains, −inf where it is not enough."""
    for i in range(score.size):
        gain[i] = -np.inf
        if score[i] > -np.inf:
            found = gain_of(goal, limits, level.totals[i], impurity[i], score[i])
            gain[i] = found if is_enough(found, stops) else -np.inf


@lean_kernel
def place_thresholds(cols: Any, categorical: Any, found: Array, threshold: Array) -> None:
    """OUT threshold: where the splits found cut; zero for categories."""
    for i in range(threshold.size):
        column = np.int64(found[i, COLUMN])
        after = np.int64(found[i, NEXT])
        threshold[i] = 0.0
        if not categorical[column] or not np.isnan(found[i, THRESHOLD]):
            threshold[i] = threshold_of(cols, column, np.int64(found[i, CUT]), after, found[i, THRESHOLD])


@lean_kernel
def threshold_of(cols: Any, column: Int, cut: Int, after: Int, drawn: float) -> float:
    """Return the midpoint between the codes on both sides of the cut, unless a threshold was drawn."""
    if not np.isnan(drawn):
        return drawn
    if after == cols.n_codes[column]:
        return np.inf
    a, b = cols.high[cols.offset[column] + cut], cols.low[cols.offset[column] + after]
    middle = a / 2.0 + b / 2.0
    return middle if a <= middle < b else a
