"""Kernels of the grower: the best split of each open node among the candidate columns.

Rows of an open node are `rows[begin:end]`, ascending. Numbers with few codes are summed by code, all others are sorted.
What a table or a target does not need (`sparse`, `categories`, the statistics of other criteria) is None, and then its
branch is not even compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.jit import inline_kernel, lean_kernel
from .._random import mix, next_random
from ..criteria import GRADIENT
from ._bounds import LEAST_ROWS, MOST_WEIGHT, search_two
from ._sorting import Int, load_codes, order_of, sort_keys
from ._sweeps import (
    COLUMN,
    CUT,
    MISSING_LEFT,
    N_LEFT,
    NEXT,
    SCORE,
    THRESHOLD,
    add_row,
    allowed,
    record,
    sweep_absolute,
    sweep_classes,
    sweep_groups,
    sweep_pairs,
    sweep_sums,
    sweep_two,
)

# --------------------------------------------------------------------------------------------------------------------
# Kernels of the grower: categories in an order in which they can be cut, and sets of them as bits.
#
# Categories are put into the order of their mean target, in which the best set of them is one of the cuts (Fisher
# 1958; Breiman et al. 1984, theorem 4.5); with several outputs or more than two classes, into the order of the first
# principal component of their mean targets (Coppersmith, Hong and Hosking 1999), in which it nearly always is.


Array = NDArray[np.float64]

_STEPS = 200  # of the power iteration
#: Drawn cuts whose scores differ by no more than this share are equal, and the first of them wins, whatever the order
#: in which numbers were added.
TIE = 1e-12


@lean_kernel
def order_categories(
    categories: Any, lam: float, rows: NDArray[np.int32], code: NDArray[np.uint32], missing: Int
) -> Int:
    """Replace the codes of categories by their position in order of mean target; return how many are here."""
    goal = categories.goal
    profile = categories.profile[:missing]
    position = categories.position
    for c in range(missing):
        for k in range(profile.shape[1]):
            profile[c, k] = 0.0
    for i in range(rows.size):
        if np.int64(code[i]) != missing:
            add_row(goal, rows[i], profile[code[i]])
    width = profile.shape[1] - 1
    present = categories.present
    score = categories.score
    m = 0
    for c in range(missing):
        position[c] = -1
        if profile[c, width] > 0.0:
            present[m] = c
            m += 1
    single = goal.n_classes.size == 1 and goal.n_classes[0] <= 2
    for k in range(m):
        row = profile[present[k]]
        if goal.kind == GRADIENT and single:
            score[k] = row[0] / (row[1] + lam)
        else:
            score[k] = row[1 if goal.n_classes[0] == 2 else 0] / row[width]
    if not single and m > 1:
        principal_scores(profile, present[:m], score, categories.moments)
    rank = categories.rank
    order_of(score[:m], rank, categories.spare)
    for k in range(m):
        position[present[rank[k]]] = k
    for i in range(rows.size):
        if np.int64(code[i]) != missing:
            code[i] = np.uint32(position[code[i]])
    return m


@lean_kernel
def principal_scores(profile: Array, present: NDArray[np.int64], score: Array, moments: Array) -> None:
    """Project the mean targets of the categories on their first principal component (power iteration)."""
    width = profile.shape[1] - 1
    mean = moments[0]
    v = moments[1]
    new = moments[2]
    spread = moments[3:]
    for a in range(width):
        mean[a] = v[a] = 0.0
        for b in range(width):
            spread[a, b] = 0.0
    w_all = 0.0
    for i in range(present.size):
        c = present[i]
        w_all += profile[c, width]
        for k in range(width):
            mean[k] += profile[c, k]
    for i in range(present.size):
        c = present[i]
        w = profile[c, width]
        for a in range(width):
            da = profile[c, a] / w - mean[a] / w_all
            for b in range(width):
                spread[a, b] += w * da * (profile[c, b] / w - mean[b] / w_all)
    top = 0
    for a in range(width):
        top = a if spread[a, a] > spread[top, top] else top
    v[top] = 1.0
    for _ in range(_STEPS):
        size = 0.0
        for a in range(width):
            new[a] = 0.0
            for b in range(width):
                new[a] += spread[a, b] * v[b]
            size += new[a] * new[a]
        if not size > 0.0:
            break
        for a in range(width):
            v[a] = new[a] / np.sqrt(size)
    for k in range(present.size):
        score[k] = 0.0
        for a in range(width):
            score[k] += v[a] * profile[present[k], a] / profile[present[k], width]


@lean_kernel
def write_set(words: NDArray[np.uint32], position: NDArray[np.int64], cut: float, missing_left: float) -> None:
    """Set the bits of the categories up to the cut; those that are not in the node go where missing values go."""
    for k in range(words.size):
        words[k] = 0
    for c in range(position.size):
        known = position[c] >= 0
        if (known and position[c] <= cut) or (not known and missing_left > 0.0):
            words[c >> 5] |= np.uint32(1) << np.uint32(c & 31)


SMALL = 64  # rows up to which a node's own codes are searched


@lean_kernel
def search(
    cols: Any, sparse: Any, categories: Any, limits: Any, level: Any, rows: Any, packed: Any, pair: Any, sums: Any,
    absolute: Any, drawn: Any, scratch: Any, known: Any, first: Int, last: Int, found: Array, sets: NDArray[np.uint32],
    stop: Any,
) -> None:  # fmt: skip
    """Find the best split of open nodes: by columns first … last − 1 in every node, if all columns are candidates.

    Otherwise of nodes first … last − 1, which draw columns until enough were looked at and one was not constant.
    `known` (d,) says which columns are constant in a node above, and learns which are in this one; None with several
    nodes.
    """
    d = cols.n_codes.size
    order = scratch.order
    picks = scratch.picks
    every = limits.max_features >= d
    most = last - first if every else d
    wanted = most if every else np.int64(limits.max_features)
    # One call of `search_column` for both ways: it becomes a part of this kernel, so that its arrays are not passed.
    for node in range(0 if every else first, level.begin.size if every else last):
        if stop[0] != 0:
            return
        state = level.seed[node]
        visited = 0
        useful = 0
        while visited < most and (visited < wanted or useful == 0):
            if every:
                column = first + visited
                u: Any = np.float64(mix(state + np.uint64(column)) >> np.uint64(11)) / 9007199254740992.0
            else:
                state, u = next_random(state)
                pick = visited + np.int64(u * (d - visited))
                order[visited], order[pick] = order[pick], order[visited]
                picks[visited] = pick
                state, u = next_random(state)
                column = np.int64(order[visited])
            visited += 1
            if known is not None:  # noqa: SIM102
                if known[column] != 0:
                    continue
            varies = search_column(
                cols, sparse, categories, limits, level, rows, packed, pair, sums, absolute, drawn, scratch, node,
                column, u, found[node], sets[node],
            )  # fmt: skip
            if known is not None:
                known[column] = 1 - varies
            useful += varies
        for v in range(-1 if every else visited - 1, -1, -1):  # undo: every node draws from the same order
            order[v], order[picks[v]] = order[picks[v]], order[v]


@inline_kernel
def search_column(
    cols: Any, sparse: Any, categories: Any, limits: Any, level: Any, all_rows: Any, packed: Any, pair: Any, sums: Any,
    absolute: Any, drawn: Any, scratch: Any, node: Int, column: Int, u: float, found: Array, words: Any,
) -> Int:  # fmt: skip
    """Compare the column's candidates with the best so far; return 0 if it is constant here, else 1.

    What a fit does not need is None: `sparse`, `categories`, `packed`, `pair`, `absolute`, `sums`, and `drawn`, which
    is True if thresholds are drawn. Tests of arguments against None stand alone, so that the compiler can drop what
    they guard.
    """
    begin = level.begin[node]
    end = level.end[node]
    n = end - begin
    rows = all_rows[begin:end]
    code = scratch.code[:n]
    low, high = load_codes(cols, sparse, column, rows, code)
    if low == high:
        return 0
    missing = cols.n_codes[column]
    n_missing = 0
    if high == missing:
        high, n_missing = _present(code, missing)
    category = False
    if categories is not None:
        category = categories.column[column]
        if category:
            low = 0
            high = order_categories(categories, limits.reg_lambda, rows, code, missing) - 1
    before = found[SCORE]
    bounds = level.bounds[node]
    total = level.totals[node]
    bounds[2] = limits.sign[column] if limits.monotone else 0
    cut: Int = np.int64(-1)
    after: Int = np.int64(-1)
    threshold = np.nan
    if drawn is not None:  # noqa: SIM102
        if high > low:
            if category:
                cut = low + np.int64(u * (high - low))
            else:
                cut, threshold = draw_cut(cols, column, code, low, high, u)
                if n_missing == 0:
                    done = False
                    if packed is not None:  # noqa: SIM102
                        if limits.two:
                            done = try_two(code, packed[begin:end], cut, total[2], total[1], limits, bounds, found)
                    if pair is not None:
                        w_all, s_all = (total[2], total[1]) if limits.two else (total[1], total[0])
                        done = try_pairs(code, pair[begin:end], cut, w_all, s_all, limits, bounds, found)
                    if done:
                        if found[SCORE] > before:
                            found[COLUMN] = column
                            found[THRESHOLD] = threshold
                            found[MISSING_LEFT] = 1.0 if 2 * found[N_LEFT] > n else 0.0
                        return 1
            after = split_codes(code, cut, missing)
            low = 0
            high = 1
    keys = scratch.keys[:n]
    other = scratch.keys2[:n]
    top = missing if n_missing > 0 else high
    if packed is not None:
        own = packed[begin:end]
        if limits.two and few(n, high - low + 1, scratch.stat.shape[0]):
            stat = scratch.stat[: high - low + 2]
            count_two(code, own, low, missing, scratch.cells[: high - low + 2], stat)
            sweep_groups(stat, low, missing, n, total[2], total[1], limits, bounds, found)
        elif limits.two and n >= LEAST_ROWS and total[2] < MOST_WEIGHT and n_missing == 0 and not limits.monotone:
            search_two(code, own, low, high, np.int64(total[2]), np.int64(total[1]), scratch, limits, found)
        else:
            if sort_codes(code, own, keys, other, scratch.counts, low, top):
                keys = other
            if limits.two:
                sweep_two(keys, n_missing, np.int64(total[2]), np.int64(total[1]), limits, bounds, found)
            else:
                sweep_classes(keys, n_missing, total, scratch.classes, limits, found)
    if pair is not None:
        mine = pair[begin:end]
        w_all, s_all = (total[2], total[1]) if limits.two else (total[1], total[0])
        if few(n, high - low + 1, scratch.stat.shape[0]):
            stat = scratch.stat[: high - low + 2]
            count_pairs(code, mine, low, missing, stat)
            sweep_groups(stat, low, missing, n, w_all, s_all, limits, bounds, found)
        else:
            if sort_codes(code, scratch.places, keys, other, scratch.counts, low, top):
                keys = other
            sweep_pairs(keys, mine, n_missing, w_all, s_all, limits, bounds, found)
    better = False
    if absolute is not None:
        if sort_codes(code, scratch.places, keys, other, scratch.counts, low, top):
            keys = other
        ranks = absolute.rank[begin:end]
        ordered = absolute.ordered[begin:end]
        better = sweep_absolute(keys, rows, n_missing, absolute, ranks, ordered, limits, bounds, found)
    if sums is not None:
        if sort_codes(code, scratch.places, keys, other, scratch.counts, low, top):
            keys = other
        sweep_sums(keys, rows, n_missing, sums, total, scratch.sides, limits, bounds, found)
    if not (better or found[SCORE] > before):
        return 1
    found[COLUMN] = column
    if after >= 0:
        if found[NEXT] != missing:
            found[CUT] = cut
            found[NEXT] = after
            found[THRESHOLD] = threshold
        else:  # the missing rows against all others
            found[CUT] = missing - 1
    if n_missing == 0:
        found[MISSING_LEFT] = 1.0 if 2 * found[N_LEFT] > n else 0.0
    if categories is not None:  # noqa: SIM102
        if category:
            write_set(words, categories.position[:missing], found[CUT], found[MISSING_LEFT])
    return 1


@lean_kernel
def few(n: Int, n_codes: Int, room: Int) -> bool:
    """Tell whether summing by code beats sorting: there are few codes."""
    return n_codes <= 2 * n and n_codes < room


@lean_kernel
def sort_codes(
    code: NDArray[np.uint32], payload: NDArray[np.uint32], keys: Any, other: Any, counts: Any, low: Int, high: Int
) -> bool:
    """Write code << 32 | payload in order of the codes; return whether to `other`."""
    for i in range(code.size):
        keys[i] = (np.uint64(code[i]) << np.uint64(32)) | np.uint64(payload[i])
    return sort_keys(keys, other, counts, low, high)


@lean_kernel
def _present(code: NDArray[np.uint32], missing: Int) -> tuple[Int, Int]:
    """Return the largest code that is not missing (−1: none), and how many are."""
    high = np.int64(-1)
    n_missing = 0
    for i in range(code.size):
        c = np.int64(code[i])
        if c == missing:
            n_missing += 1
        else:
            high = max(high, c)
    return high, n_missing


@lean_kernel
def draw_cut(cols: Any, column: Int, code: NDArray[np.uint32], low: Int, high: Int, u: float) -> tuple[int, float]:
    """Draw a threshold between the smallest and the largest value; return the last code below it, and it.

    In a small node only the codes that are there are looked up: the search through all values misses the cache.
    """
    at = cols.offset[column]
    a = cols.low[at + low]
    b = cols.high[at + high]
    threshold = a * (1.0 - u) + b * u
    if threshold >= b or threshold < a:
        threshold = a
    # the last code whose values are all <= threshold; at least `low`, below `high`
    lo = low
    hi = high
    if code.size <= SMALL:
        for i in range(code.size):
            c = np.int64(code[i])
            if lo < c < hi:
                if cols.high[at + c] <= threshold:
                    lo = c
                else:
                    hi = c
        return lo, max(threshold, cols.high[at + lo])
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        if cols.high[at + middle] <= threshold:
            lo = middle
        else:
            hi = middle
    return lo, max(threshold, cols.high[at + lo])


@lean_kernel
def try_two(
    code: NDArray[np.uint32], payload: NDArray[np.uint32], cut: Int, w_all: float, s_all: float, limits: Any,
    bounds: Array, found: Array,
) -> bool:  # fmt: skip
    """Judge one cut of two classes in one pass; the payload is that of `sweep_two`."""
    rows = np.int64(0)
    w = np.int64(0)
    s = np.int64(0)
    after = np.int64(0xFFFFFFFF)
    for i in range(code.size):
        c = np.int64(code[i])
        p = np.int64(payload[i])
        left = np.int64(c <= cut)
        weight = left * (p & 0xFF)
        rows += left
        w += weight
        s += weight * (p >> 8)
        after = min(after, c + (left << 32))
    judge_cut(code.size, cut, after, rows, np.float64(w), np.float64(s), w_all, s_all, limits, bounds, found)
    return True


@lean_kernel
def try_pairs(
    code: NDArray[np.uint32], pair: Array, cut: Int, w_all: float, s_all: float, limits: Any, bounds: Array,
    found: Array,
) -> bool:  # fmt: skip
    """Judge one cut in one pass; pair holds (W, S) of each row."""
    rows = np.int64(0)
    w = 0.0
    s = 0.0
    after = np.int64(0xFFFFFFFF)
    for i in range(code.size):
        c = np.int64(code[i])
        if c <= cut:
            rows += 1
            w += pair[i, 0]
            s += pair[i, 1]
        else:
            after = min(after, c)
    judge_cut(code.size, cut, after, rows, w, s, w_all, s_all, limits, bounds, found)
    return True


@lean_kernel
def judge_cut(
    n: Int, cut: Int, after: Int, rows: Int, w: float, s: float, w_all: float, s_all: float, limits: Any, bounds: Array,
    found: Array,
) -> None:  # fmt: skip
    """Write the cut down if S²/(W + λ), summed over both sides, beats the best so far."""
    lam = limits.reg_lambda
    wr = w_all - w
    sr = s_all - s
    if min(rows, n - rows) < limits.min_leaf or min(w, wr) < limits.min_weight:
        return
    score = s * s / (w + lam) + sr * sr / (wr + lam)
    tie = 0.0 if limits.two else TIE
    better = score - found[SCORE] > tie * abs(score)
    if better and (not limits.monotone or allowed(s / (w + lam), sr / (wr + lam), bounds)):
        record(found, score, cut, after, 0, rows)


@lean_kernel
def split_codes(code: NDArray[np.uint32], cut: Int, missing: Int) -> Int:
    """Replace the codes by 0 up to the cut and 1 beyond it; return the first code beyond."""
    after = np.int64(missing)
    for i in range(code.size):
        c = np.int64(code[i])
        if c != missing:
            after = c if cut < c < after else after
            code[i] = np.uint32(1 if c > cut else 0)
    return after


@lean_kernel
def count_two(
    code: NDArray[np.uint32], payload: NDArray[np.uint32], low: Int, missing: Int, cells: NDArray[np.int64], stat: Array
) -> None:
    """Sum (rows, weight, weight of the second class) by code, in integers; the last line is for the missing."""
    size = cells.size - 1
    for g in range(size + 1):
        stat[g, 0] = 0.0
        cells[g] = 0
    for i in range(code.size):
        c = np.int64(code[i])
        at = size if c == missing else c - low
        p = np.int64(payload[i])
        w = p & 0xFF
        cells[at] += (w << 32) | (w * (p >> 8))
        stat[at, 0] += 1.0
    for g in range(size + 1):
        stat[g, 1] = np.float64(cells[g] >> 32)
        stat[g, 2] = np.float64(cells[g] & 0xFFFFFFFF)


@lean_kernel
def count_pairs(code: NDArray[np.uint32], pair: Array, low: Int, missing: Int, stat: Array) -> None:
    """Sum (rows, W, S) by code; the last line is for the missing."""
    size = stat.shape[0] - 1
    for g in range(size + 1):
        stat[g, 0] = stat[g, 1] = stat[g, 2] = 0.0
    for i in range(code.size):
        c = np.int64(code[i])
        at = size if c == missing else c - low
        stat[at, 0] += 1.0
        stat[at, 1] += pair[i, 0]
        stat[at, 2] += pair[i, 1]
