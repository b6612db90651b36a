"""Kernels of the grower: statistics of open nodes, division of their rows, final numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._sorting import Int, load_codes
from ._sweeps import add_row, score_of
from .criteria import ABSOLUTE, ENTROPY, GRADIENT, POISSON

Array = NDArray[np.float64]

_EPSILON = 2.220446049250313e-16


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
        source, target = codes[j], out[j]
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
        own, total = rows[begin[node] : end[node]], totals[node]
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
        impurity[node], pure[node] = 0.0, goal.kind != GRADIENT
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
    at, widest = np.int64(0), value.size // m
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
    spread, equal = 0.0, True
    first = goal.y[own[0], o]
    for i in range(own.size):
        y, w = goal.y[own[i], o], goal.weight[own[i]]
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
        n, j = own.size, np.int64(column[node])
        load_codes(cols, sparse, j, own, code)
        missing = cols.n_codes[j]
        n_left, n_right = 0, 0
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
def is_enough(gain: float, stops: Any) -> bool:
    """Tell whether a split gains what the rule wants: in the criterion's units, and as a share of all the weight."""
    gain *= stops.scale
    return gain >= stops.min_gain and gain / stops.whole + _EPSILON * max(1.0, stops.scale) >= stops.min_decrease


@lean_kernel
def preorder(left: Any, right: Any, feature: Any, stack: NDArray[np.int32], number: NDArray[np.int32]) -> None:
    """Write the numbers of the nodes, depth first: a parent, then its left subtree, then the right one."""
    stack[0] = 0
    size, count = 1, 0
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
