"""Kernels of the grower: the best cut of one column in one node.

Rows come in the order of their codes, the missing ones last. A cut lies between two codes; with missing rows it is
tried with them on either side, and all others against them. `found` holds the best split so far (positions below); a
kernel overwrites it when it finds a better one, so that the first of equals stays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.jit import lean_kernel
from ..criteria import ENTROPY, GINI, GRADIENT, MISCLASSIFICATION, POISSON
from ._sorting import Int, order_of

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]

#: Positions in `found`: score of both sides together; column; last code on the left; first code on the right (the code
#: of missing values if only they are right); whether missing values go left; rows on the left; a random threshold, or
#: NaN; of the absolute error, the score and what breaks its ties, on a grid.
SCORE, COLUMN, CUT, NEXT, MISSING_LEFT, N_LEFT, THRESHOLD, LEVEL, TIE = range(9)
FOUND_SIZE = 9

_CODE = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(0xFF)
_EPSILON = 2.220446049250313e-16  # distance from one to the next float64
_NEARLY = 1.0 - 16 * _EPSILON  # what rounding may take from a score


@lean_kernel
def record(found: Array, score: float, cut: Int, after: Int, to_left: Int, n_left: Int) -> None:
    """Write a split down; the caller knows the column."""
    found[0] = score
    found[2] = cut
    found[3] = after
    found[4] = to_left
    found[5] = n_left
    found[6] = np.nan


@lean_kernel
def allowed(left: float, right: float, bounds: Array) -> bool:
    """Tell whether two values keep a monotone constraint: bounds are (lowest, highest, sign of the column's slope).

    A split by a free column need not: values of leaves are clipped to their bounds.
    """
    if bounds[2] == 0.0:
        return True
    inside = min(left, right) >= bounds[0] and max(left, right) <= bounds[1]
    return inside and (left - right) * bounds[2] <= 0.0


@lean_kernel
def sweep_two(keys: Keys, n_missing: Int, w_all: Int, s_all: Int, limits: Any, bounds: Array, found: Array) -> None:
    """Two classes and Gini: maximise S²/W summed over both sides, W the weight and S that of the second class.

    The payload is class << 8 | weight: all sums are integers.
    """
    n = keys.size
    min_leaf = limits.min_leaf
    min_weight = limits.min_weight
    last = n - n_missing
    best = found[0]
    enough = best * _NEARLY
    best_p = -1
    best_side = 0
    for side in range(1 if n_missing == 0 else 2):
        w = np.int64(0)
        s = np.int64(0)
        ahead = 0
        if side == 1:
            ahead = n_missing
            for p in range(last, n):
                weight = np.int64(keys[p] & _BYTE)
                w += weight
                s += weight * np.int64((keys[p] >> np.uint64(8)) & np.uint64(1))
        for p in range(min(last, n - 1) if side == 0 else last - 1):
            key = keys[p]
            weight = np.int64(key & _BYTE)
            w += weight
            s += weight * np.int64((key >> np.uint64(8)) & np.uint64(1))
            if key >> _CODE != keys[p + 1] >> _CODE:
                a = np.float64(s)
                b = np.float64(s_all - s)
                wl = np.float64(w)
                wr = np.float64(w_all - w)
                above = a * a * wr + b * b * wl
                if above >= enough * (wl * wr):  # a product is faster than a quotient, and most cuts are worse
                    score = above / (wl * wr)
                    rows = p + 1 + ahead
                    fits = min(rows, n - rows) >= min_leaf and min(wl, wr) >= min_weight
                    if score > best and fits and (not limits.monotone or allowed(a / wl, b / wr, bounds)):
                        best = score
                        enough = best * _NEARLY
                        best_p = p
                        best_side = side
    if best_p >= 0:
        rows = best_p + 1 + (n_missing if best_side == 1 else 0)
        cut = np.int64(keys[best_p] >> _CODE)
        after = np.int64(keys[best_p + 1] >> _CODE)
        record(found, best, cut, after, best_side, rows)


@lean_kernel
def sweep_pairs(
    keys: Keys, pair: Array, n_missing: Int, w_all: float, s_all: float, limits: Any, bounds: Array, found: Array
) -> None:
    """Maximise S²/(W + λ) summed over both sides; the payload is the row's place in `pair` = (W, S)."""
    n = keys.size
    min_leaf = limits.min_leaf
    min_weight = limits.min_weight
    lam = limits.reg_lambda
    last = n - n_missing
    best = found[0]
    best_p = -1
    best_side = 0
    for side in range(1 if n_missing == 0 else 2):
        w = 0.0
        s = 0.0
        ahead = 0
        if side == 1:
            ahead = n_missing
            for p in range(last, n):
                i = np.int64(keys[p] & _LOW)
                w += pair[i, 0]
                s += pair[i, 1]
        for p in range(min(last, n - 1) if side == 0 else last - 1):
            i = np.int64(keys[p] & _LOW)
            w += pair[i, 0]
            s += pair[i, 1]
            if keys[p] >> _CODE != keys[p + 1] >> _CODE:
                wr = w_all - w
                sr = s_all - s
                score = s * s / (w + lam) + sr * sr / (wr + lam)
                if score > best:
                    rows = p + 1 + ahead
                    fits = min(rows, n - rows) >= min_leaf and min(w, wr) >= min_weight
                    if fits and (not limits.monotone or allowed(s / (w + lam), sr / (wr + lam), bounds)):
                        best = score
                        best_p = p
                        best_side = side
    if best_p >= 0:
        rows = best_p + 1 + (n_missing if best_side == 1 else 0)
        cut = np.int64(keys[best_p] >> _CODE)
        after = np.int64(keys[best_p + 1] >> _CODE)
        record(found, best, cut, after, best_side, rows)


@lean_kernel
def sweep_groups(
    stat: Array, low: Int, n_codes: Int, n: Int, w_all: float, s_all: float, limits: Any, bounds: Array, found: Array
) -> None:
    """Do the same over sums by code: stat holds (rows, W, S) of code low + g, and in its last line of the missing."""
    lam = limits.reg_lambda
    size = stat.shape[0] - 1
    n_missing = np.int64(stat[size, 0])
    n_present = n - n_missing
    for side in range(1 if n_missing == 0 else 2):
        rows = np.int64(0)
        w = 0.0
        s = 0.0
        if side == 1:
            rows = n_missing
            w = stat[size, 1]
            s = stat[size, 2]
        cut = -1  # a cut that beats the others waits for the code that follows it
        for g in range(size):
            here = np.int64(stat[g, 0])
            if here == 0:
                continue
            if cut >= 0 and found[3] < 0:
                found[3] = g + low
            rows += here
            w += stat[g, 1]
            s += stat[g, 2]
            only_missing = rows - (n_missing if side == 1 else 0) == n_present
            if only_missing and (side == 1 or n_missing == 0):
                break
            wr = w_all - w
            sr = s_all - s
            score = s * s / (w + lam) + sr * sr / (wr + lam)
            fits = min(rows, n - rows) >= limits.min_leaf and min(w, wr) >= limits.min_weight
            if score > found[0] and fits:
                if limits.monotone and not allowed(s / (w + lam), sr / (wr + lam), bounds):
                    continue
                cut = g
                record(found, score, g + low, n_codes if only_missing else -1, side, rows)


@lean_kernel
def score_of(kind: Int, counts: Array, w: float, n_classes: NDArray[np.int64], lam: float) -> float:
    """Return the score of a node from its sums; see the table of `criteria`."""
    score = 0.0
    m = n_classes.size
    at = np.int64(0)
    for o in range(m):
        k = n_classes[o]
        if kind == GINI:
            for c in range(k):
                score += counts[at + c] * counts[at + c] / w
        elif kind == ENTROPY:
            for c in range(k):
                if counts[at + c] > 0.0:
                    score += counts[at + c] * math.log2(counts[at + c] / w)
        elif kind == MISCLASSIFICATION:
            top = 0.0
            for c in range(k):
                top = max(top, counts[at + c])
            score += top
        elif kind == GRADIENT:
            score += counts[at] * counts[at] / (counts[m + at] + lam)
        else:
            score += counts[at] * counts[at] / w
        at += max(np.int64(1), k)
    return score


@lean_kernel
def add_row(goal: Any, r: Int, sums: Array) -> None:
    """Add row r to a node's sums; the last entry is the weight, before it come hessians if there are any."""
    m = goal.n_classes.size
    w = goal.weight[r]
    sums[sums.size - 1] += w
    if goal.n_classes[0] > 0:
        at = np.int64(0)
        for o in range(m):
            sums[at + goal.labels[r, o]] += w
            at += goal.n_classes[o]
    else:
        for o in range(m):
            sums[o] += w * goal.y[r, o]
        if goal.kind == GRADIENT:
            for o in range(m):
                sums[m + o] += w * goal.hessian[r, o]


@lean_kernel
def sweep_sums(
    keys: Keys, rows: NDArray[np.int32], n_missing: Int, goal: Any, total: Array, sides: Array, limits: Any,
    bounds: Array, found: Array,
) -> None:  # fmt: skip
    """Any criterion that is a function of sums; the payload is the row's place in the node."""
    n = keys.size
    width = total.size - 1
    left = sides[0]
    right = sides[1]
    last = n - n_missing
    for side in range(1 if n_missing == 0 else 2):
        for k in range(width + 1):
            left[k] = 0.0
        ahead = 0
        if side == 1:
            ahead = n_missing
            for p in range(last, n):
                add_row(goal, rows[np.int64(keys[p] & _LOW)], left)
        for p in range(min(last, n - 1) if side == 0 else last - 1):
            add_row(goal, rows[np.int64(keys[p] & _LOW)], left)
            if keys[p] >> _CODE == keys[p + 1] >> _CODE:
                continue
            n_left = p + 1 + ahead
            w_right = total[width] - left[width]
            if min(n_left, n - n_left) < limits.min_leaf or min(left[width], w_right) < limits.min_weight:
                continue
            for k in range(width):
                right[k] = total[k] - left[k]
            if goal.kind == POISSON:
                if is_starved(left, right, total, n):
                    continue
                score = poisson_gain(left, total, left[width]) + poisson_gain(right, total, w_right)
            else:
                score = score_of(goal.kind, left, left[width], goal.n_classes, limits.reg_lambda)
                score += score_of(goal.kind, right, w_right, goal.n_classes, limits.reg_lambda)
            if score > found[0]:
                at = 1 if goal.n_classes[0] == 2 else 0
                if limits.monotone and not allowed(left[at] / left[width], right[at] / w_right, bounds):
                    continue
                record(found, score, np.int64(keys[p] >> _CODE), np.int64(keys[p + 1] >> _CODE), side, n_left)


@lean_kernel
def poisson_gain(side: Array, total: Array, w: float) -> float:
    """Return what a side adds to the gain of a split of its node: S log(S/(Wm)) − (S − Wm) ≥ 0, m the node's mean.

    Summed over both sides that is the rise of S log(S/W), but small gains are no differences of large numbers.
    """
    gain = 0.0
    width = total.size - 1
    for k in range(width):
        expected = total[k] * (w / total[width])
        u = (side[k] - expected) / expected
        gain += expected * ((1.0 + u) * math.log1p(u) - u)
    return gain


@lean_kernel
def is_starved(left: Array, right: Array, total: Array, n: Int) -> bool:
    """Tell whether a side has a sum of targets that is zero up to rounding: as a leaf it would predict zero."""
    starved = False
    for k in range(total.size - 1):
        starved |= min(left[k], right[k]) <= n * _EPSILON * total[k]
    return starved


@lean_kernel
def sweep_classes(
    keys: Keys, n_missing: Int, total: Array, counts: NDArray[np.int64], limits: Any, found: Array
) -> None:
    """Gini or entropy of any number of classes.

    The payload is class << 8 | weight. Σ g(cₖ) changes in one class at a time, g(c) = c² or c log₂ c.
    """
    n = keys.size
    last = n - n_missing
    gini = limits.gini
    left = counts[0]
    right = counts[1]
    for side in range(1 if n_missing == 0 else 2):
        g_left = 0.0
        g_right = 0.0
        w = np.int64(0)
        w_all = np.int64(0)
        for k in range(left.size):
            left[k] = 0
            right[k] = np.int64(total[k])
            g_right += mass(right[k], gini)
            w_all += right[k]
        for step in range(n_missing if side == 1 else 0, 0, -1):
            g_left, g_right, w = move(keys[n - step], left, right, gini, g_left, g_right, w)
        for p in range(min(last, n - 1) if side == 0 else last - 1):
            g_left, g_right, w = move(keys[p], left, right, gini, g_left, g_right, w)
            if keys[p] >> _CODE == keys[p + 1] >> _CODE:
                continue
            wl = np.float64(w)
            wr = np.float64(w_all - w)
            score = g_left / wl + g_right / wr if gini else g_left + g_right - wl * math.log2(wl) - wr * math.log2(wr)
            if score > found[0]:
                n_left = p + 1 + (n_missing if side == 1 else 0)
                if min(n_left, n - n_left) >= limits.min_leaf and min(wl, wr) >= limits.min_weight:
                    record(found, score, np.int64(keys[p] >> _CODE), np.int64(keys[p + 1] >> _CODE), side, n_left)


@lean_kernel
def mass(count: Int, gini: bool) -> float:
    """Return c² or c log₂ c."""
    c = np.float64(count)
    if gini:
        return c * c
    return c * math.log2(c) if count > 0 else 0.0


@lean_kernel
def move(
    key: Any, left: Any, right: Any, gini: bool, g_left: float, g_right: float, w: Int
) -> tuple[float, float, Int]:
    """Move a row from the right to the left; return Σ g of both sides and the weight on the left."""
    weight = np.int64(key & _BYTE)
    k = np.int64((key & _LOW) >> np.uint64(8))
    g_left -= mass(left[k], gini)
    g_right -= mass(right[k], gini)
    left[k] += weight
    right[k] -= weight
    return g_left + mass(left[k], gini), g_right + mass(right[k], gini), w + weight


# --------------------------------------------------------------------------------------------------------------------
# Kernels of the grower: splits by the absolute error, O(n log n) per column.
#
# Going through the rows in the order of a column, a Fenwick tree over the ranks of y holds Σw and Σwy of those passed
# so far. It gives their weighted median m and Σw|y − m| in O(log n); once from the left, once from the right.
#
# Of equal cuts the first wins, unless none gains anything: of two-valued targets, all cuts whose sides keep the
# node's majority. Then the smallest squared error wins; the first cut would peel off one row after the other. Both
# are compared on a grid far coarser than rounding and far finer than any real difference, so that rounding breaks no
# tie.


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
        mine = rank[begin[node] : end[node]]
        sorted_y = ordered[begin[node] : end[node]]
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
        a = begin[node]
        n = end[node] - begin[node]
        for o in range(out.shape[1]):
            w_all = 0.0
            for i in range(n):
                mass[rank[a + i, o]] = weight[rows[a + i]]
                w_all += weight[rows[a + i]]
            below = mass[0]
            p = 0
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
    weight = absolute.weight
    tree = absolute.tree[: keys.size + 1]
    costs = absolute.costs[: keys.size + 1]
    n = keys.size
    last = keys.size - n_missing
    better = False
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
            found[LEVEL] = level
            found[TIE] = tie
            better = True
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
    w_all = 0.0
    wy_all = 0.0
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
            here = p + 1 if step > 0 else p
            if t < 0:
                here = first if step > 0 else first + 1
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
    at = 0
    w = 0.0
    wy = 0.0
    while step > 0:
        if at + step < n and w + tree[at + step, 0] < share:
            at += step
            w += tree[at, 0]
            wy += tree[at, 1]
        step //= 2
    return min(at, n - 2), w, wy
