"""Kernels of the grower: splits by the absolute error, O(n log n) a column.

Going through the rows in the order of a column, a Fenwick tree over the ranks of y holds Σw and Σwy of those passed so
far. It gives their weighted median m and Σw|y − m| in O(log n); once from the left, once from the right.

Of equal cuts the first wins, unless none gains anything: of two-valued targets, all cuts whose sides keep the node's
majority. Then the smallest squared error wins; the first cut would peel off one row after the other. Both are compared
on a grid far coarser than rounding and far finer than any real difference, so that rounding breaks no tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._sorting import Int, order_of
from ._sweeps import LEVEL, TIE, allowed, record

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]

_CODE = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_TIE = 1e-11  # share of the weight by which two halves may differ by rounding and still be halves
_GRID = 2.0**40  # steps into which a node's error is cut to compare cuts


@lean_kernel
def rank_level(
    y: Array,
    rows: NDArray[np.int32],
    begin: Any,
    end: Any,
    rank: NDArray[np.int32],
    ordered: Array,
    order: Any,
    spare: Any,
) -> None:
    """Write the rank of each row's targets in its node, and the node's targets in order."""
    for node in range(begin.size):
        own = rows[begin[node] : end[node]]
        n = own.size
        mine, sorted_y = rank[begin[node] : end[node]], ordered[begin[node] : end[node]]
        for o in range(y.shape[1]):
            for i in range(n):
                sorted_y[i, o] = y[own[i], o]
            order_of(sorted_y[:, o], order[:n], spare)
            for p in range(n):
                mine[order[p], o] = p
            for p in range(n):
                sorted_y[p, o] = y[own[order[p]], o]


@lean_kernel
def medians(
    weight: Array, rows: NDArray[np.int32], begin: Any, end: Any, rank: NDArray[np.int32], ordered: Array, mass: Array,
    out: Array,
) -> None:  # fmt: skip
    """Write the weighted medians of ranked nodes; where every point of an interval is one, its middle."""
    for node in range(begin.size):
        a, n = begin[node], end[node] - begin[node]
        for o in range(out.shape[1]):
            w_all = 0.0
            for i in range(n):
                mass[rank[a + i, o]] = weight[rows[a + i]]
                w_all += weight[rows[a + i]]
            below, p = mass[0], 0
            while below < 0.5 * w_all * (1.0 - _TIE) and p + 1 < n:
                p += 1
                below += mass[p]
            out[node, o] = ordered[a + p, o]
            if below <= 0.5 * w_all * (1.0 + _TIE) and p + 1 < n:
                out[node, o] = 0.5 * ordered[a + p, o] + 0.5 * ordered[a + p + 1, o]


@lean_kernel
def sweep_absolute(
    keys: Keys, rows: NDArray[np.int32], n_missing: Int, absolute: Any, rank: NDArray[np.int32], ordered: Array,
    limits: Any, bounds: Array, found: Array,
) -> bool:  # fmt: skip
    """Minimise Σw|y − median| over both sides, the squared error where nothing helps; return whether a cut was better.

    costs[p] belongs to the cut after p rows in the order of the keys; see `_pass`.
    """
    weight, tree, costs = absolute.weight, absolute.tree[: keys.size + 1], absolute.costs[: keys.size + 1]
    n, last, better = keys.size, keys.size - n_missing, False
    middle = limits.monotone
    for side in range(1 if n_missing == 0 else 2):
        for p in range(costs.shape[0]):
            costs[p, 0] = costs[p, 3] = costs[p, 4] = costs[p, 7] = 0.0
        for o in range(ordered.shape[1]):
            # From the left: rows 0 … p − 1, and the missing ones first if they go left.
            _pass(keys, rows, weight, rank, ordered, tree, costs, o, 0, last, last, n if side == 1 else last, 0, middle)
            _pass(
                keys, rows, weight, rank, ordered, tree, costs, o, last - 1, -1, last, n if side == 0 else last, 4,
                middle,
            )  # fmt: skip
        whole, w_all = (costs[0, 4], costs[0, 6]) if side == 0 else (costs[last, 0], costs[last, 2])
        error_step = _power_of_two(whole) / _GRID
        square_step = error_step * _power_of_two(whole / w_all)
        useless = np.rint(-whole / error_step) + 1.0
        for p in range(1, last + 1 if side == 0 and n_missing > 0 else last):
            if keys[p - 1] >> _CODE == keys[p] >> _CODE:
                continue
            n_left = p + (n_missing if side == 1 else 0)
            score = -costs[p, 0] - costs[p, 4]
            level = np.rint(score / error_step)
            if level < found[LEVEL] or min(n_left, n - n_left) < limits.min_leaf:
                continue
            tie = np.rint((costs[p, 3] + costs[p, 7]) / square_step) if level <= useless else 0.0
            if level == found[LEVEL] and not tie > found[TIE]:
                continue
            if min(costs[p, 2], costs[p, 6]) < limits.min_weight:
                continue
            if limits.monotone and not allowed(costs[p, 1], costs[p, 5], bounds):
                continue
            record(found, score, np.int64(keys[p - 1] >> _CODE), np.int64(keys[p] >> _CODE), side, n_left)
            found[LEVEL], found[TIE], better = level, tie, True
    return better


@lean_kernel
def _power_of_two(size: float) -> float:
    """Return the power of two below `size` > 0."""
    return 2.0 ** np.floor(np.log2(size)) if size > 1e-300 else 1e-300


@lean_kernel
def _pass(
    keys: Keys, rows: NDArray[np.int32], weight: Array, rank: NDArray[np.int32], ordered: Array, tree: Array,
    costs: Array, o: Int, first: Int, stop: Int, ahead_first: Int, ahead_stop: Int, at: Int, middle: bool,
) -> None:  # fmt: skip
    """Write costs[·, at:at + 4] of the rows passed so far: cost, median, weight, S²/W of S = Σw(y − c), c in the node.

    Rows `ahead` are passed first. With `middle`, the median is what `medians` makes of it.
    """
    for k in range(tree.shape[0]):
        tree[k, 0] = tree[k, 1] = 0.0
    w_all, wy_all = 0.0, 0.0
    centre = ordered[ordered.shape[0] // 2, o]
    step = 1 if stop > first else -1
    n_ahead = ahead_stop - ahead_first
    for t in range(-n_ahead, (stop - first) * step):
        p = ahead_first + t + n_ahead if t < 0 else first + t * step
        i = np.int64(keys[p] & _LOW)
        w = weight[rows[i]]
        y = ordered[rank[i, o], o]
        w_all += w
        wy_all += w * y
        _add(tree, rank[i, o], w, w * y)
        if t >= 0 or t == -1:
            at_rank, w_below, wy_below = _rank_of(tree, 0.5 * w_all * (1.0 - _TIE))
            median = ordered[at_rank, o]
            here = first if t < 0 and step > 0 else first + 1 if t < 0 else p + 1 if step > 0 else p
            costs[here, at] += median * w_below - wy_below + (wy_all - wy_below) - median * (w_all - w_below)
            costs[here, at + 1] = median
            costs[here, at + 2] = w_all
            costs[here, at + 3] += (wy_all - centre * w_all) ** 2 / w_all
            if middle:
                above, _, _ = _rank_of(tree, 0.5 * w_all * (1.0 + _TIE))
                costs[here, at + 1] = 0.5 * median + 0.5 * ordered[above, o]


@lean_kernel
def _add(tree: Array, rank: Int, w: float, wy: float) -> None:
    i = rank + 1
    while i < tree.shape[0]:
        tree[i, 0] += w
        tree[i, 1] += wy
        i += i & -i


@lean_kernel
def _rank_of(tree: Array, share: float) -> tuple[int, float, float]:
    """Return the first rank up to which lies at least the `share` of the weight, and Σw and Σwy of what ranks below."""
    n = tree.shape[0]
    step = 1
    while 2 * step < n:
        step *= 2
    at, w, wy = 0, 0.0, 0.0
    while step > 0:
        if at + step < n and w + tree[at + step, 0] < share:
            at += step
            w += tree[at, 0]
            wy += tree[at, 1]
        step //= 2
    return min(at, n - 2), w, wy
