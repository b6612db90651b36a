"""Kernels of the grower: statistics of open nodes, division of their rows, final numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray
from ...core.jit import lean_kernel
from .._random import child_seed
from ..criteria import ABSOLUTE, ENTROPY, GINI, GRADIENT, MISCLASSIFICATION, POISSON
from ._search import search
from ._sorting import Int, load_codes
from ._sweeps import COLUMN, CUT, MISSING_LEFT, NEXT, SCORE, THRESHOLD, add_row, score_of

_EPSILON = 2.220446049250313e-16  # distance from one to the next float64


@lean_kernel
def gather_payload(
    payload: NDArray[np.uint32], rows: NDArray[np.int32], begin: Any, end: Any, out: NDArray[np.uint32]
) -> None:
    """Bring class and weight of the nodes' rows into the order of the rows."""
    for node in range(begin.size):
        for i in range(begin[node], end[node]):
            out[i] = payload[rows[i]]


@lean_kernel
def gather_pairs(pair: Array, rows: NDArray[np.int32], begin: Any, end: Any, out: Array) -> None:
    """Bring (W, S) of the nodes' rows into the order of the rows."""
    for node in range(begin.size):
        for i in range(begin[node], end[node]):
            r = rows[i]
            out[i, 0] = pair[r, 0]
            out[i, 1] = pair[r, 1]


@lean_kernel
def take_rows(codes: NDArray[Any], rows: NDArray[np.int32], out: NDArray[Any]) -> None:
    """Copy some rows of every column."""
    for j in range(codes.shape[0]):
        source = codes[j]
        target = out[j]
        for i in range(rows.size):
            target[i] = source[rows[i]]


@lean_kernel
def summarise(
    goal: Any, lam: float, rows: NDArray[np.int32], begin: Any, end: Any, centres: Array, totals: Array, value: Array,
    impurity: Array, pure: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Write sums, value and impurity of every node, and whether all its targets are equal; centres are the medians."""
    m = goal.n_classes.size
    for node in range(begin.size):
        own = rows[begin[node] : end[node]]
        total = totals[node]
        for k in range(total.size):
            total[k] = 0.0
        if m > 1 or goal.kind == GRADIENT:
            for i in range(own.size):
                add_row(goal, own[i], total)
        elif goal.n_classes[0] > 0:
            for i in range(own.size):
                total[goal.labels[own[i], 0]] += goal.weight[own[i]]
            for k in range(total.size - 1):
                total[total.size - 1] += total[k]
        else:
            for i in range(own.size):
                total[0] += goal.weight[own[i]] * goal.y[own[i], 0]
                total[1] += goal.weight[own[i]]
        w = total[total.size - 1]
        for k in range(value.shape[1]):
            value[node, k] = 0.0
        if goal.n_classes[0] > 0:
            impurity[node], pure[node] = _summarise_classes(goal, total, w, value[node])
            continue
        impurity[node] = 0.0
        pure[node] = goal.kind != GRADIENT
        for o in range(m):
            if goal.kind == GRADIENT:
                value[node, o] = -total[o] / (total[m + o] + lam)
                impurity[node] += total[o] * value[node, o] / w / m
                continue
            centre = centres[node, o] if goal.kind == ABSOLUTE else total[o] / w
            spread, equal = _spread(goal, own, o, centre)
            value[node, o] = goal.y[own[0], o] if equal else centre
            impurity[node] += 0.0 if equal else max(0.0, spread / w / m)
            pure[node] &= equal


@lean_kernel
def _summarise_classes(goal: Any, total: Array, w: float, value: Array) -> tuple[float, bool]:
    m = goal.n_classes.size
    at = np.int64(0)
    widest = value.size // m
    pure = True
    for o in range(m):
        n_present = 0
        for c in range(goal.n_classes[o]):
            value[o * widest + c] = total[at + c] / w
            n_present += 1 if total[at + c] > 0.0 else 0
        at += goal.n_classes[o]
        pure &= n_present == 1
    score = score_of(goal.kind, total, w, goal.n_classes, 0.0)
    impurity = -score / w if goal.kind == ENTROPY else m - score / w
    return 0.0 if pure else max(0.0, impurity / m), pure


@lean_kernel
def _spread(goal: Any, own: NDArray[np.int32], o: Int, centre: float) -> tuple[float, bool]:
    """Return the weighted deviation of the targets from their centre, and whether they are all equal."""
    spread = 0.0
    equal = True
    first = goal.y[own[0], o]
    for i in range(own.size):
        y = goal.y[own[i], o]
        w = goal.weight[own[i]]
        equal &= y == first
        if goal.kind == ABSOLUTE:
            spread += w * abs(y - centre)
        elif goal.kind == POISSON:
            spread += w * y * np.log(y / centre) if y > 0.0 else 0.0
        else:
            spread += w * (y - centre) * (y - centre)
    return spread, equal


@lean_kernel
def divide(
    cols: Any, sparse: Any, categories: Any, rows: NDArray[np.int32], spare: NDArray[np.int32], code: Any,
    begin: Any, end: Any, column: Any, cut: Any, missing_left: Any, sets: NDArray[np.uint32], middle: NDArray[np.int64],
) -> None:  # fmt: skip
    """Move the rows of each node that go left to the front, in order; write where the others begin."""
    for node in range(begin.size):
        own = rows[begin[node] : end[node]]
        n = own.size
        j = np.int64(column[node])
        load_codes(cols, sparse, j, own, code)
        missing = cols.n_codes[j]
        n_left = 0
        n_right = 0
        for i in range(n):  # without branches: write to both, advance one
            c = np.int64(code[i])
            to_left = c <= cut[node]
            if categories is not None:  # noqa: SIM102  stands alone, so that the compiler can drop it
                if c != missing and categories.column[j]:
                    to_left = (sets[node, c >> 5] >> np.uint32(c & 31)) & np.uint32(1) != 0
            to_left = missing_left[node] != 0 if c == missing else to_left
            r = own[i]
            own[n_left] = r
            spare[n_right] = r
            n_left += 1 if to_left else 0
            n_right += 0 if to_left else 1
        for i in range(n_right):
            own[n_left + i] = spare[i]
        middle[node] = begin[node] + n_left


@lean_kernel
def is_enough(gain: float, limits: Any) -> bool:
    """Tell whether a split gains what the rule wants: in the criterion's units, and as a share of all the weight."""
    gain *= limits.scale
    return gain >= limits.min_gain and gain / limits.whole + _EPSILON * max(1.0, limits.scale) >= limits.min_decrease


@lean_kernel
def preorder(left: Any, right: Any, feature: Any, stack: NDArray[np.int32], number: NDArray[np.int32]) -> None:
    """Write the numbers of the nodes, depth first: a parent, then its left subtree, then the right one."""
    stack[0] = 0
    size = 1
    count = 0
    while size > 0:
        size -= 1
        i = stack[size]
        number[i] = count
        count += 1
        if feature[i] >= 0:
            stack[size] = right[i]
            stack[size + 1] = left[i]
            size += 2


@lean_kernel
def label_rows(leaf: Any, begin: Any, end: Any, rows: Any, out: NDArray[np.int32]) -> None:
    """Write the number of each leaf to its rows."""
    for i in range(leaf.size):
        if leaf[i] >= 0:
            for k in range(begin[i], end[i]):
                out[rows[k]] = leaf[i]


# --------------------------------------------------------------------------------------------------------------------
# Kernel of the grower: whole subtrees, depth first, without leaving the kernel.
#
# Level by level, the interpreter needs half a millisecond a level, however few rows are left. So small tables, and
# the small nodes of large ones, are grown here. The steps are those of `grower`, node by node: the tree is the same.


class Level(NamedTuple):
    """The open nodes."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    seed: NDArray[np.uint64]
    bounds: Array  #: (·, 3) lowest and highest value, and a place for the sign of the column's slope
    totals: Array  #: (·, n_channels) sums, the weight last


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
    rows: Any, spare: Any, drawn: Any, scratch: Any, own: Any, nodes: Any, size: Int, count: Int, stop: Any,
) -> Int:  # fmt: skip
    """Grow the subtrees of the `size` nodes on the stack, adding nodes from number `count`; return the next number."""
    d = cols.n_codes.size
    while size > 0:
        if stop[0] != 0:
            break
        size -= 1
        node = own.stack[size]
        at = slice(node, node + 1)
        begin = nodes.begin[at]
        end = nodes.end[at]
        summarise(
            goal, limits.reg_lambda, rows, begin, end, own.centres, own.totals, nodes.value[at], nodes.impurity[at],
            own.pure,
        )  # fmt: skip
        total = own.totals[0]
        nodes.weight[node] = total[total.size - 1]
        least = total[goal.n_classes.size] if goal.kind == GRADIENT else nodes.weight[node]
        n_rows = end[0] - begin[0]
        if own.pure[0] or n_rows < limits.min_split or least < 2.0 * limits.min_weight:
            continue
        if nodes.depth[node] >= limits.max_depth:
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
        search(
            cols, sparse, None, limits, level, rows, packed, pairs, sums, None, drawn, scratch, known, 0,
            d if limits.max_features >= d else 1, own.found, own.sets, stop,
        )  # fmt: skip
        if found[SCORE] == -np.inf or stop[0] != 0:
            continue
        gain = gain_of(goal, limits, total, nodes.impurity[node], found[SCORE])
        if not is_enough(gain, limits):
            continue
        column = np.int64(found[COLUMN])
        cut = np.int64(found[CUT])
        nodes.feature[node] = column
        nodes.cut[node] = cut
        nodes.gain[node] = gain
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
            nodes.threshold[child] = 0.0
            nodes.cut[child] = 0
            nodes.missing_left[child] = 0
            nodes.gain[child] = -np.inf
            own.stack[size + 1 - side] = child  # the left one is taken next: its rows are in the cache
        nodes.left[node] = count
        nodes.right[node] = count + 1
        count += 2
        size += 2
    return count


@lean_kernel
def _inherit(constant: NDArray[np.uint8], depth: Int) -> Int:
    """Copy what is known to be constant from the parent, and return in which line; too deep nodes begin anew."""
    last = constant.shape[0] - 1
    line = min(depth + 1, last)
    above = depth if depth < last else 0
    own = constant[line]
    inherited = constant[above]
    for j in range(own.size):
        own[j] = inherited[j]
    return line


@lean_kernel
def gain_of(goal: Any, limits: Any, total: Array, impurity: float, score: float) -> float:
    """Return by how much a split lowers the weighted impurity, summed over outputs (gradients: raises the score)."""
    m = goal.n_classes.size
    w = total[total.size - 1]
    if limits.two:  # Σ cₖ²/W of two classes is 2S²/W − 2S + W
        return 2.0 * (score - total[1] ** 2 / w)
    if goal.kind == GINI or goal.kind == MISCLASSIFICATION:
        return score - m * w * (1.0 - impurity)
    if goal.kind == ENTROPY or goal.kind == ABSOLUTE:
        return score + m * w * impurity
    gain = score  # of counts, the sweep has compared with the node already
    for k in range(m if goal.kind != POISSON else 0):
        gain -= total[k] ** 2 / (total[m + k] + limits.reg_lambda if goal.kind == GRADIENT else w)
    return gain


@lean_kernel
def judge_splits(goal: Any, limits: Any, level: Any, impurity: Array, score: Array, gain: Array) -> None:
    """OUT gain: what the best split of each open node gains, −inf where it is not enough."""
    for i in range(score.size):
        gain[i] = -np.inf
        if score[i] > -np.inf:
            found = gain_of(goal, limits, level.totals[i], impurity[i], score[i])
            gain[i] = found if is_enough(found, limits) else -np.inf


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
    a = cols.high[cols.offset[column] + cut]
    b = cols.low[cols.offset[column] + after]
    middle = a / 2.0 + b / 2.0
    return middle if a <= middle < b else a
