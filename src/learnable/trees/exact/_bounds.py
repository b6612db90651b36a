r"""Kernels of the grower: the best cut of two classes without sorting all rows.

Codes are counted in a few hundred bins. The score of a cut with weight w and weight s of the second class on its left,

    f(w, s) = s²/w + (S − s)²/(W − w),

is convex. Inside a bin that begins at (w₀, s₀) and holds Δs of the second class and Δw − Δs of the first, a cut lies in
the parallelogram whose corners are the ends of the bin and the two orders that put one class first. So no cut inside
is better than the best corner, and only the rows of bins that may hold a better cut than the best end of a bin are
sorted. The cut found is that of `_sweeps.sweep_two`, the first of equals included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.jit import lean_kernel
from ._sorting import Int, sort_keys
from ._sweeps import record

Array = NDArray[np.float64]

#: Rows from which bins are faster than sorting all rows.
LEAST_ROWS = 160
#: Rows for each bin, and bins at most: more bins leave fewer rows to sort, and take longer themselves.
_ROWS_PER_BIN = 5
_MOST_BINS = 512
#: Rows, weight and weight of the second class share an integer: each needs to be below this.
MOST_WEIGHT = 1 << 21
_FIELD = np.int64(MOST_WEIGHT - 1)
_SAFE = 1.0 + 1e-12  # what rounding may take from a bound


@lean_kernel
def split_score(w: float, s: float, w_all: float, s_all: float) -> float:
    """Return S²/W of both sides together."""
    a = s
    b = s_all - s
    wr = w_all - w
    return (a * a * wr + b * b * w) / (w * wr)


@lean_kernel
def search_two(
    code: NDArray[np.uint32], payload: NDArray[np.uint32], low: Int, high: Int, w_all: Int, s_all: Int, scratch: Any,
    limits: Any, found: Array,
) -> None:  # fmt: skip
    """Compare the column's cuts with the best so far: two classes and Gini, nothing missing, no monotone constraint.

    The payload is class << 8 | weight.
    """
    n = code.size
    n_bins = min(np.int64(_MOST_BINS), n // _ROWS_PER_BIN)
    shift = np.uint32(0)
    while (high - low) >> np.int64(shift) >= n_bins:
        shift += np.uint32(1)
    n_bins = ((high - low) >> np.int64(shift)) + 1
    ends = scratch.cells[:n_bins]
    score = scratch.stat[:n_bins]
    _count(code, payload, np.uint32(low), shift, ends)
    best, best_bin = _compare_ends(ends, n, np.float64(w_all), np.float64(s_all), limits, found[0], score)
    marks = scratch.counts[:n_bins]
    if _mark(ends, score, best, np.float64(w_all), np.float64(s_all), marks) > 0:
        m = _collect(code, payload, np.uint32(low), shift, marks, scratch.keys)
        keys = scratch.keys[:m]
        if sort_keys(keys, scratch.keys2[:m], scratch.counts, low, high):
            keys = scratch.keys2[:m]
        if _sweep_inside(keys, low, shift, ends, n, w_all, s_all, best, best_bin, limits, found):
            return
    if best_bin >= 0:
        cut, after = _codes_around(code, np.uint32(low), shift, np.uint32(best_bin))
        record(found, best, cut, after, 0, ends[best_bin] >> np.int64(42))


@lean_kernel
def _count(
    code: NDArray[np.uint32], payload: NDArray[np.uint32], low: np.uint32, shift: np.uint32, ends: NDArray[np.int64]
) -> None:
    """OUT ends: rows << 42 | weight << 21 | weight of the second class, up to the end of each bin."""
    for b in range(ends.size):
        ends[b] = 0
    for i in range(code.size):
        p = np.int64(payload[i])
        w = p & 0xFF
        ends[np.int64((code[i] - low) >> shift)] += (np.int64(1) << 42) | (w << 21) | (w * (p >> 8))
    before = np.int64(0)
    for b in range(ends.size):
        before += ends[b]
        ends[b] = before


@lean_kernel
def _compare_ends(
    ends: NDArray[np.int64], n: Int, w_all: float, s_all: float, limits: Any, best: float, score: Array
) -> tuple[float, Int]:
    """Return the best score of a cut between two bins, if it beats `best`, and the bin before it (−1: none does).

    OUT score: that of each cut, in the first column; zero where there are rows on one side alone.
    """
    best_bin = np.int64(-1)
    for b in range(ends.size):
        w = np.float64((ends[b] >> 21) & _FIELD)
        here = 0.0
        if 0.0 < w < w_all:
            here = split_score(w, np.float64(ends[b] & _FIELD), w_all, s_all)
        score[b, 0] = here
        if here > best:
            rows = ends[b] >> 42
            if min(rows, n - rows) >= limits.min_leaf and min(w, w_all - w) >= limits.min_weight:
                best = here
                best_bin = np.int64(b)
    return best, best_bin


@lean_kernel
def _mark(
    ends: NDArray[np.int64], score: Array, best: float, w_all: float, s_all: float, marks: NDArray[np.int64]
) -> Int:
    """OUT marks: 1 for bins that may hold a cut at least as good as the best; return how many there are."""
    n_marked = np.int64(0)
    before = np.int64(0)
    score_before = 0.0
    for b in range(ends.size):
        inside = ends[b] - before
        marks[b] = 0
        if inside >> 42 > 1:
            w = np.float64((before >> 21) & _FIELD)
            s = np.float64(before & _FIELD)
            dw = np.float64((inside >> 21) & _FIELD)
            ds = np.float64(inside & _FIELD)
            if 0.0 < ds < dw:
                bound = max(split_score(w + ds, s + ds, w_all, s_all), split_score(w + dw - ds, s, w_all, s_all))
                bound = max(bound, score_before, score[b, 0])
            else:  # of one class: on the line between the ends, one row away from them at least
                e = 1.0 if ds > 0.0 else 0.0
                bound = max(
                    split_score(w + 1.0, s + e, w_all, s_all), split_score(w + dw - 1.0, s + ds - e, w_all, s_all)
                )
            if bound * _SAFE >= best:
                marks[b] = 1
                n_marked += 1
        before = ends[b]
        score_before = score[b, 0]
    return n_marked


@lean_kernel
def _collect(
    code: NDArray[np.uint32], payload: NDArray[np.uint32], low: np.uint32, shift: np.uint32, marks: NDArray[np.int64],
    keys: NDArray[np.uint64],
) -> Int:  # fmt: skip
    """Write the keys of the rows in marked bins; return how many there are."""
    m = np.int64(0)
    for i in range(code.size):
        keys[m] = (np.uint64(code[i]) << np.uint64(32)) | np.uint64(payload[i])
        m += marks[np.int64((code[i] - low) >> shift)]
    return m


@lean_kernel
def _sweep_inside(
    keys: NDArray[np.uint64], low: Int, shift: np.uint32, ends: NDArray[np.int64], n: Int, w_all: Int, s_all: Int,
    best: float, best_bin: Int, limits: Any, found: Array,
) -> bool:  # fmt: skip
    """Compare the cuts inside the marked bins with the best at an end; return whether one of them won."""
    whole = np.float64(w_all)
    second = np.float64(s_all)
    at = np.int64(-1)  # the bin of the row at hand
    sums = np.int64(0)
    best_p = np.int64(-1)
    best_rows = np.int64(0)
    for p in range(keys.size - 1):
        c = np.int64(keys[p] >> np.uint64(32))
        bin_here = (c - low) >> np.int64(shift)
        if bin_here != at:
            at = bin_here
            sums = ends[at - 1] if at > 0 else np.int64(0)
        weight = np.int64(keys[p] & np.uint64(0xFF))
        sums += (np.int64(1) << 42) | (weight << 21) | (weight * np.int64((keys[p] >> np.uint64(8)) & np.uint64(1)))
        after = np.int64(keys[p + 1] >> np.uint64(32))
        if after == c or (after - low) >> np.int64(shift) != at:
            continue
        w = np.float64((sums >> 21) & _FIELD)
        score = split_score(w, np.float64(sums & _FIELD), whole, second)
        # of equals the first wins: a cut inside a bin stands before the bin's end
        if score > best or (score == best and at <= best_bin):
            rows = sums >> 42
            if min(rows, n - rows) >= limits.min_leaf and min(w, whole - w) >= limits.min_weight:
                best = score
                best_bin = np.int64(-1)
                best_p = np.int64(p)
                best_rows = rows
    if best_p < 0:
        return False
    cut = np.int64(keys[best_p] >> np.uint64(32))
    record(found, best, cut, np.int64(keys[best_p + 1] >> np.uint64(32)), 0, best_rows)
    return True


@lean_kernel
def _codes_around(code: NDArray[np.uint32], low: np.uint32, shift: np.uint32, last: np.uint32) -> tuple[Int, Int]:
    """Return the largest code in the bins up to `last`, and the smallest beyond."""
    cut = np.uint32(0)
    after = np.uint32(0xFFFFFFFF)
    for i in range(code.size):
        c = code[i]
        left = (c - low) >> shift <= last
        cut = max(cut, c if left else np.uint32(0))
        after = min(after, np.uint32(0xFFFFFFFF) if left else c)
    return np.int64(cut), np.int64(after)
