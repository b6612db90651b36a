"""Kernels of `histogram.grower`: sums of gradients by code, and the best cut of a column.

A histogram has 256 entries for each stored column. Quantised: one integer per code that packs three sums,

    count mod 2^c | Σg (offset by its sign) | Σh        from the top bit down, `Fields`

so that one addition updates all and parent − child is a subtraction. The count may wrap around at the top: a side of a
cut has enough rows when either its count, or Σh divided by the largest h, says so. Exact: three float64 per code, g, h
and the count, in the same memory. A row's entry is row | h << 32 | g << 48 (g as int16).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ...core import ABORT, Array
from ...core.jit import ieee_kernel, intrinsic, lean_kernel, lean_strict_kernel

# --------------------------------------------------------------------------------------------------------------------
# Threads that meet inside a kernel: an atomic counter, a short spin, then giving way; and fetching ahead.
#
# `meeting` is an int64 array of `MEETING_SIZE`: [0] counts arrivals, [8] (another cache line) is raised when a thread
# failed, and nobody may wait for it. Each thread counts its own meetings; all have come to meeting k when the counter
# has reached k × threads, so that nothing has to be set back. Every waiting thread also looks at the caller's stop
# flag.


_SPINS: Final = 4000  # turns before the thread gives its core to another

atomic_add = intrinsic("atomic_add")  #: (array, index, value) → what stood there; int64
atomic_load = intrinsic("atomic_load")  #: (array, index) → array[index] as other threads have written it; int64
prefetch = intrinsic("prefetch")  #: (array, index): ask for that cache line; the index may lie outside
_give_way = intrinsic("give_way")


@lean_kernel
def meet(meeting: Any, stop: Any, n_threads: Any, count: Any) -> bool:
    """Wait until all threads have come to their meeting number `count` (1, 2, …); return False if one stopped."""
    atomic_add(meeting, 0, 1)
    goal = n_threads * count
    turns = 0
    while atomic_load(meeting, 0) < goal:
        turns += 1
        if turns > _SPINS:
            if atomic_load(stop, 0) != 0 or atomic_load(meeting, ABORT) != 0:
                return False
            _give_way()
    return atomic_load(stop, 0) == 0 and atomic_load(meeting, ABORT) == 0


# --------------------------------------------------------------------------------------------------------------------
# The bundles of arrays that the kernels of `histogram.grower` hand to each other.


class Fields(NamedTuple):
    """How sums are packed; exact: not at all."""

    exact: Any
    h_bits: Any
    g_bits: Any
    h_most: Any  #: largest h of a row in steps
    g_step: Any
    h_step: Any
    g_unit: Any  #: of `data.any_order`, in which leaves are summed
    h_unit: Any


class Limits(NamedTuple):
    """What a cut must keep."""

    min_rows: Any
    min_hessian: Any
    reg_lambda: Any
    smoothing: Any
    monotone: Any


class Table(NamedTuple):
    """What does not change from tree to tree: codes, and where each column's bins are."""

    rows: Any  #: flat
    stride: Any
    columns: Any
    group_start: Any
    stored: Any
    first: Any
    n_bins: Any
    default: Any
    missing: Any
    categorical: Any
    has_missing: Any
    by_stored: Any
    stored_start: Any
    sign: Any
    edge_start: Any
    edges: Any


class Task(NamedTuple):
    """One tree: derivatives, rows (empty: all), seed and the rule."""

    gradient: Any
    hessian: Any
    sample: Any
    first: Any  #: number of the first row in the whole table
    seed: Any
    max_leaves: Any
    max_depth: Any
    breadth_first: Any
    gamma: Any
    mode: Any  #: 0 choose, 1 quantised, 2 exact
    limits: Any
    shares: Any  #: columns for each tree, level and node
    sets: Any  #: (sets, d) uint8, interactions


class Work(NamedTuple):
    """Scratch of one thread for one column."""

    bins: Any
    sorted: Any
    prefix: Any
    g: Any
    h: Any
    n_left: Any
    n_right: Any
    score: Any
    score_bits: Any
    order: Any
    lut: Any
    masks: Any
    sums: Any


class Space(NamedTuple):
    """What threads share, and their copies of the nodes (first axis: thread)."""

    order: Any
    spare: Any
    pool: Any
    slot_size: Any
    n_slots: Any
    private: Any
    stats: Any
    ledgers: Any  #: of Σ|g|, Σh and Σg, by block of rows
    leaf_limbs: Any  #: of Σg and Σh, by thread and node
    block_shift: Any
    middle: Any
    found: Any
    found_words: Any
    link: Any
    number: Any
    words: Any
    part: Any
    active: Any
    free: Any
    leaf_of_row: Any
    exact: Any
    stack: Any


Int = Any

CODES: Final = 256  # values of a byte
_AHEAD: Final = 16  # rows that are fetched before their turn
_BLOCK: Final = 2048  # rows that all groups of a thread see before the next ones
#: Positions in `found`: score, column, cut, whether missing values go left, whether there are any, G and H of the left
#: side (2); whether G and H of the node follow.
SCORE, COLUMN, CUT, MISSING_LEFT, HAS_MISSING, LEFT_SUMS, _, SUMS = range(8)
FOUND_SIZE: Final = 16
_ROUND: Final = 6755399441055744.0  # 1.5 · 2⁵²
_MAGIC: Final = np.uint64(0x4330000000000000)  # the bits of 2⁵²: below it, or-ing whole numbers in adds them
_TWO_52: Final = 4503599627370496.0  # 2⁵²: from there on the last bit of a float64 stands for one


@ieee_kernel
def scramble(row: Any, key: Any) -> Any:
    """Return 32 random bits for a row (Wellons's `lowbias32`): 32-bit products are vectors on every machine."""
    x = np.uint32(row) ^ np.uint32(key)
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
    x = np.uint32((x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


@ieee_kernel
def quantise(row: Any, number: Any, g: float, h: float, g_scale: float, h_scale: float, key: Any) -> Any:
    """Return the entry of a row: derivatives in steps, rounded up or down at random, right on average.

    `number` is that of the row in the whole table, of which `row` counts within a part. The whole part of x + u, u
    uniform in (0, 1), is x on average. Adding 1.5 · 2⁵² to a whole number leaves its two's complement in the lowest
    bits.
    """
    bits = scramble(number, key)
    u = (np.float64(np.int32(bits & np.uint32(0xFFFF))) + 0.5) * (1.0 / 65536.0)
    v = (np.float64(np.int32(bits >> np.uint32(16))) + 0.5) * (1.0 / 65536.0)
    a = np.float64(np.floor(g * g_scale + u) + _ROUND).view(np.uint64) & np.uint64(0xFFFF)
    b = np.float64(np.floor(h * h_scale + v) + _ROUND).view(np.uint64) & np.uint64(0xFFFF)
    return np.uint64(row) | (b << np.uint64(32)) | (a << np.uint64(48))


@ieee_kernel
def _bump(rows: Any, at: Any, hist: Any, k: Int, count: Int, v: Any) -> None:
    """Add v to the entry of `count` columns from number k on."""
    for j in range(count):
        hist[(np.uint64(k + j) << np.uint64(8)) + np.uint64(rows[at + np.uint64(k + j)])] += v


@ieee_kernel
def add_packed(rows: Any, stride: Int, byte: Int, width: Int, entries: Any, hist: Any, f: Fields) -> None:
    """Add rows to the histograms of one group of `width` columns, which begins at `byte` of each row."""
    n = entries.size
    one = np.int64(1) << np.int64(f.g_bits + f.h_bits)
    g_bits = np.int64(f.h_bits)
    low = np.uint64(0xFFFFFFFF)
    step, first = np.uint64(stride), np.uint64(byte)
    for p in range(n):
        entry = entries[p]
        prefetch(rows, np.int64((entries[min(p + _AHEAD, n - 1)] & low) * step + first))
        at = (entry & low) * step + first
        g = np.int64(entry) >> np.int64(48)
        v = one + (g << g_bits) + np.int64((entry >> np.uint64(32)) & np.uint64(0xFFFF))
        if width == 16:
            _bump(rows, at, hist, 0, 16, v)
        else:
            k = 0
            if width & 8:
                _bump(rows, at, hist, 0, 8, v)
                k = 8
            if width & 4:
                _bump(rows, at, hist, k, 4, v)
                k += 4
            if width & 2:
                _bump(rows, at, hist, k, 2, v)
                k += 2
            if width & 1:
                _bump(rows, at, hist, k, 1, v)


@ieee_kernel
def add_exact(
    rows: Any, stride: Int, byte: Int, width: Int, entries: Any, gradient: Any, hessian: Any, hist: Array
) -> None:
    """Do the same in float64."""
    n = entries.size
    low = np.uint64(0xFFFFFFFF)
    for p in range(n):
        r = entries[p] & low
        ahead = entries[min(p + _AHEAD, n - 1)] & low
        prefetch(rows, np.int64(ahead * np.uint64(stride) + np.uint64(byte)))
        at = r * np.uint64(stride) + np.uint64(byte)
        g, h = np.float64(gradient[r]), np.float64(hessian[r])
        for k in range(width):
            i = ((np.uint64(k) << np.uint64(8)) + np.uint64(rows[at + np.uint64(k)])) * np.uint64(3)
            hist[i] += g
            hist[i + np.uint64(1)] += h
            hist[i + np.uint64(2)] += 1.0


@ieee_kernel
def add_rows(table: Any, task: Any, entries: Any, g_from: Int, g_to: Int, hist: Any, origin: Int, f: Fields) -> None:
    """Add rows to the histograms of groups g_from … g_to − 1; `hist` begins with stored column `origin`."""
    stride = table.stride
    for begin in range(0, entries.size, _BLOCK):
        part = entries[begin : begin + _BLOCK]
        for g in range(g_from, g_to):
            first, width = table.group_start[g], table.group_start[g + 1] - table.group_start[g]
            if f.exact:
                size = 3 * CODES
                to = hist[(first - origin) * size : (first - origin + width) * size].view(np.float64)
                add_exact(table.rows, stride, 16 * g, width, part, task.gradient, task.hessian, to)
            else:
                to = hist[(first - origin) * CODES : (first - origin + width) * CODES]
                add_packed(table.rows, stride, 16 * g, width, part, to, f)


@ieee_kernel
def clear(hist: Any) -> None:
    """Set to zero; the bits of an integer and of a float64 zero are the same."""
    for i in range(hist.size):
        hist[i] = 0


@ieee_kernel
def subtract(hist: Any, other: Any, exact: bool) -> None:
    """Take `other` from `hist`."""
    if exact:
        a, b = hist.view(np.float64), other.view(np.float64)
        for i in range(a.size):
            a[i] -= b[i]
    else:
        for i in range(hist.size):
            hist[i] -= other[i]


@ieee_kernel
def add_to(hist: Any, other: Any) -> None:
    """Add the packed sums of another thread."""
    for i in range(hist.size):
        hist[i] += other[i]


@ieee_kernel
def whole(hist: Any, f: Fields, sums: Array) -> Any:
    """Write G and H of a node from the histogram of one column, and return the packed sum."""
    total = np.int64(0)
    if f.exact:
        values = hist.view(np.float64)
        sums[0] = sums[1] = sums[2] = 0.0
        for i in range(CODES):
            sums[0] += values[3 * i]
            sums[1] += values[3 * i + 1]
            sums[2] += values[3 * i + 2]
        return total
    for i in range(CODES):
        total += hist[i]
    h = total & ((np.int64(1) << f.h_bits) - 1)
    g = ((total - h) << (64 - f.h_bits - f.g_bits)) >> (64 - f.g_bits)
    sums[0], sums[1] = g * f.g_step, h * f.h_step
    return total


@ieee_kernel
def load_bins(hist: Any, table: Any, j: Int, f: Fields, total: Any, sums: Array, work: Any) -> None:
    """Bring the sums by bin of column j, and in the line after the last bin those of the missing, to `work`.

    Of a column that shares a byte, the bin of zero has what the others leave of the node.
    """
    m, first, default = table.n_bins[j], table.first[j], table.default[j]
    n_stored = m if default < 0 else m - 1
    last = n_stored + 1 if first + n_stored < CODES else n_stored  # a column that fills its byte has nothing missing
    if f.exact:
        values, bins = hist.view(np.float64), work.bins.view(np.float64)
        for b in range(m + 1):
            bins[3 * b] = bins[3 * b + 1] = bins[3 * b + 2] = 0.0
        for k in range(last if table.has_missing[j] else n_stored):
            b = k + 1 if 0 <= default <= k else k
            for c in range(3):
                bins[3 * b + c] = values[3 * (first + k) + c]
        if default >= 0:
            for c in range(3):
                rest = sums[c]
                for b in range(m + 1):
                    rest -= bins[3 * b + c] if b != default else 0.0
                bins[3 * default + c] = rest
        return
    bins = work.bins
    bins[m] = 0
    if default < 0:
        for b in range(m):
            bins[b] = hist[b]
        if table.has_missing[j]:
            bins[m] = hist[m]
        return
    rest = total
    bins[default] = 0
    for k in range(last if table.has_missing[j] else n_stored):
        b = k + 1 if default <= k else k
        bins[b] = hist[first + k]
        rest -= bins[b]
    bins[default] = rest


@ieee_kernel
def decode(m: Int, ahead: bool, f: Fields, total: Any, sums: Array, work: Any) -> None:
    """Write G, H left of each cut and a lower bound of the rows on both sides; `ahead`: missing values are left."""
    g, h, n_left, n_right = work.g, work.h, work.n_left, work.n_right
    if f.exact:
        bins = work.bins.view(np.float64)
        a = bins[3 * m] if ahead else 0.0
        b = bins[3 * m + 1] if ahead else 0.0
        c = bins[3 * m + 2] if ahead else 0.0
        for i in range(m):
            a += bins[3 * i]
            b += bins[3 * i + 1]
            c += bins[3 * i + 2]
            g[i], h[i], n_left[i], n_right[i] = a, b, c, sums[2] - c
        return
    prefix = work.prefix
    half = np.uint64(1) << np.uint64(f.g_bits - 1 + f.h_bits)
    run = np.uint64(work.bins[m]) + half if ahead else half
    for i in range(m):
        run += np.uint64(work.bins[i])
        prefix[i] = run
    g_shift, n_shift = np.uint64(f.h_bits), np.uint64(f.h_bits + f.g_bits)
    h_mask, g_mask = (np.uint64(1) << g_shift) - np.uint64(1), (np.uint64(1) << np.uint64(f.g_bits)) - np.uint64(1)
    middle = np.int32(1) << np.int32(f.g_bits - 1)
    all_of = np.uint64(total) + half
    h_all, n_all = np.int32(all_of & h_mask), all_of >> n_shift
    n_mask = (np.uint64(1) << (np.uint64(64) - n_shift)) - np.uint64(1)
    per_row = 1.0 / f.h_most
    for i in range(m):
        s = prefix[i]
        hq = np.int32(s & h_mask)
        count = s >> n_shift
        g[i] = np.float64(np.int32(s >> g_shift & g_mask) - middle) * f.g_step
        h[i] = np.float64(hq) * f.h_step
        n_left[i] = max(np.float64(np.int32(count)), np.float64(hq) * per_row)
        n_right[i] = max(np.float64(np.int32((n_all - count) & n_mask)), np.float64(h_all - hq) * per_row)


@ieee_kernel
def best_packed_cut(
    bins: Any, m: Int, n_cuts: Int, ahead: bool, limits: Limits, f: Fields, total: Any, work: Any
) -> tuple[float, Int]:
    """Do `decode` and `best_cut` in one, on packed sums without monotone constraints: what nearly all time goes to."""
    prefix, score = work.prefix, work.score_bits
    run = np.uint64(bins[m]) if ahead else np.uint64(0)
    for i in range(n_cuts):
        run += np.uint64(bins[i])
        prefix[i] = run
    score_packed(n_cuts, limits, f, total, work)
    best = np.int64(-1)
    for i in range(n_cuts):
        best = max(best, score[i])
    if best >= 0:
        for i in range(n_cuts):
            if score[i] == best:
                return np.int64(best).view(np.float64) * (f.g_step * f.g_step / f.h_step), i
    return -np.inf, np.int64(-1)


@ieee_kernel
def score_codes(hist: Any, limits: Limits, f: Fields, total: Any, work: Any) -> None:
    """Score for each code of a byte the split of its rows from all others, in units of steps."""
    prefix = work.prefix
    for i in range(CODES):
        prefix[i] = np.uint64(hist[i])
    score_packed(np.int64(CODES), limits, f, total, work)  # typed: a literal would be compiled apart


@lean_strict_kernel
def score_packed(n_cuts: Int, limits: Limits, f: Fields, total: Any, work: Any) -> None:
    """Score splits with the sums `work.prefix` on one side, as bits of a float in steps²; −1: a side has too little."""
    prefix, score = work.prefix, work.score_bits
    g_shift, n_shift = np.uint64(f.h_bits), np.uint64(f.h_bits + f.g_bits)
    one = np.uint64(1)
    half = one << (n_shift - one)
    h_mask, g_mask = (one << g_shift) - one, (one << np.uint64(f.g_bits)) - one
    n_mask = (one << (np.uint64(64) - n_shift)) - one
    all_of = np.uint64(total) + half
    n_all = all_of >> n_shift
    middle = _TWO_52 + np.float64(np.int64(one << np.uint64(f.g_bits - 1)))
    H = np.float64(np.int64(all_of & h_mask))
    G = np.uint64((all_of >> g_shift & g_mask) | _MAGIC).view(np.float64) - middle
    lam, least = limits.reg_lambda / f.h_step, limits.min_hessian / f.h_step
    rows, enough = np.float64(limits.min_rows), np.float64(limits.min_rows) * f.h_most
    for i in range(n_cuts):
        s = prefix[i] + half
        h = np.uint64((s & h_mask) | _MAGIC).view(np.float64) - _TWO_52
        g = np.uint64((s >> g_shift & g_mask) | _MAGIC).view(np.float64) - middle
        n_left = np.uint64((s >> n_shift) | _MAGIC).view(np.float64) - _TWO_52
        n_right = np.uint64(((n_all - (s >> n_shift)) & n_mask) | _MAGIC).view(np.float64) - _TWO_52
        k, c = H - h, G - g
        a, b = k + lam, h + lam
        value = (g * g * a + c * c * b) / (a * b)
        fits = ((n_left >= rows) | (h >= enough)) & ((n_right >= rows) | (k >= enough))
        fits &= (h >= least) & (k >= least) & (a * b > 0.0)
        score[i] = np.float64(value).view(np.int64) if fits else np.int64(-1)


@lean_strict_kernel
def clipped_score(g: float, h: float, lam: float, low: float, high: float) -> float:
    """Return −2·(gv + (h + λ)v²/2) at the best v in [low, high]; without bounds it is g²/(h + λ)."""
    v = min(max(-g / (h + lam), low), high)
    return -2.0 * g * v - (h + lam) * v * v


@ieee_kernel
def best_cut(
    n_cuts: Int, limits: Limits, sums: Array, low: float, high: float, sign: Int, work: Any
) -> tuple[float, Int]:
    """Return the best score of the cuts, and which is the first to have it."""
    g, h, n_left, n_right, score = work.g, work.h, work.n_left, work.n_right, work.score
    G, H, lam = sums[0], sums[1], limits.reg_lambda
    least, rows = limits.min_hessian, np.float64(limits.min_rows)
    if limits.monotone:
        for i in range(n_cuts):
            a, b = H - h[i] + lam, h[i] + lam
            fits = n_left[i] >= rows and n_right[i] >= rows and h[i] >= least and H - h[i] >= least
            score[i] = -np.inf
            if fits and a > 0.0 and b > 0.0:
                left = min(max(-g[i] / b, low), high)
                right = min(max(-(G - g[i]) / a, low), high)
                if (left - right) * sign <= 0.0:
                    score[i] = clipped_score(g[i], h[i], lam, low, high)
                    score[i] += clipped_score(G - g[i], H - h[i], lam, low, high)
    else:
        for i in range(n_cuts):
            a, b, c = H - h[i] + lam, h[i] + lam, G - g[i]
            value = (g[i] * g[i] * a + c * c * b) / (a * b)
            fits = (min(n_left[i], n_right[i]) >= rows) & (min(h[i], H - h[i]) >= least)
            score[i] = value if fits else -np.inf
    best = -np.inf
    for i in range(n_cuts):
        best = max(best, score[i])
    if best > -np.inf:
        for i in range(n_cuts):
            if score[i] == best:
                return best, i
    return -np.inf, -1


@ieee_kernel
def order_bins(m: Int, f: Fields, smoothing: float, work: Any) -> Int:
    """Sort the bins of a category that have rows here by −g/(h + smoothing); return how many they are."""
    order, key = work.order, work.score
    count = 0
    middle = np.int64(1) << np.int64(f.h_bits)
    values = work.bins.view(np.float64)
    for b in range(m):
        if f.exact:
            if not values[3 * b + 2] > 0.0:
                continue
            g, h = values[3 * b], values[3 * b + 1]
        else:
            s = work.bins[b]
            if s == 0:
                continue
            hq = s & (middle - 1)
            g = np.float64(((s - hq) << (64 - f.h_bits - f.g_bits)) >> (64 - f.g_bits)) * f.g_step
            h = np.float64(hq) * f.h_step
        value = -g / (h + smoothing) if h + smoothing > 0.0 else 0.0
        i = count
        while i > 0 and key[i - 1] > value:
            key[i], order[i] = key[i - 1], order[i - 1]
            i -= 1
        key[i], order[i] = value, b
        count += 1
    size = 3 if f.exact else 1
    for k in range(count):
        for c in range(size):
            work.sorted[size * k + c] = work.bins[size * order[k] + c]
    for c in range(size):
        work.sorted[size * count + c] = work.bins[size * m + c]
    for i in range(size * (count + 1)):
        work.bins[i] = work.sorted[i]
    return count
