"""Kernels of `histogram.grower`: one tree, grown by threads that meet at barriers.

All threads take the same decisions, each on its own copy of the nodes. A thread owns a range of rows (it divides them
among the children), a range of stored columns (it searches their splits) and some groups of columns (it adds rows to
their histograms). A node's rows are one segment in each thread's range, in ascending order, so that no order of
additions depends on the number of threads. One split costs two meetings: after the rows are divided, and after the
children have been searched.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core import Array
from ...core.jit import ieee_kernel
from ...data.any_order import add_tile, read_ledger, unit_of
from .._random import mix, next_random
from ._kernels import (
    CODES,
    COLUMN,
    CUT,
    HAS_MISSING,
    LEFT_SUMS,
    MISSING_LEFT,
    SCORE,
    SUMS,
    Fields,
    Limits,
    Space,
    Table,
    Task,
    Work,
    best_cut,
    best_packed_cut,
    decode,
    load_bins,
    order_bins,
    prefetch,
    quantise,
    score_codes,
    whole,
)

Int = Any

#: Columns of Nodes.link.
LEFT, RIGHT, DEPTH, SLOT, FEATURE, SPLIT_AT, TO_LEFT, SOME_MISSING, ROWS = range(9)
LINKS: Final = 9
#: Columns of Nodes.number.
GAIN, G, H, LOW, HIGH, N = range(6)
NUMBERS: Final = 8  # after N: G and H of the left child
WORDS: Final = 8  # of the set of bins that go left; as many follow with the bins that are in the node
#: Columns of Space.stats.
TOP_G, TOP_H, LEAST_H, COUNT = range(4)
STATS: Final = 4
_AHEAD: Final = 24
_TAIL: Final = 512.0  # largest over mean derivative up to which rounding does no harm
_NEVER: Final = -np.inf


@ieee_kernel
def share_rows(t: Int, n_threads: Int, space: Space) -> tuple[Int, Int]:
    """Return the first row of a thread's range and the one after the last."""
    n, shift = space.leaf_of_row.size, space.block_shift
    blocks = ((n - 1) >> shift) + 1
    return min(n, (blocks * t // n_threads) << shift), min(n, (blocks * (t + 1) // n_threads) << shift)


@ieee_kernel
def first_not_below(sample: Any, row: Int) -> Int:
    """Return the position of the first entry of an ascending sample that is `row` or larger."""
    low, high = np.int64(0), np.int64(sample.size)
    while low < high:
        middle = (low + high) >> 1
        if np.int64(sample[middle]) < row:
            low = middle + 1
        else:
            high = middle
    return low


@ieee_kernel
def measure(t: Int, n_threads: Int, task: Task, space: Space, work: Work) -> None:
    """Write max|g|, max h, min h and the count of each block of the thread's rows, and the ledgers of Σ|g|, Σh, Σg.

    Bits of floats that are not negative have the order of the floats, and integers are compared in vectors.
    """
    lo, hi = share_rows(t, n_threads, space)
    size = np.int64(1) << space.block_shift
    for begin in range(lo, hi, size):
        end = min(hi, begin + size)
        block = begin >> space.block_shift
        out, ledgers = space.stats[block], space.ledgers[block]
        for k in range(3):
            for i in range(ledgers.shape[1]):
                ledgers[k, i] = 0
        low, high = begin, end
        if task.sample.size:
            low, high = first_not_below(task.sample, begin), first_not_below(task.sample, end)
        out[TOP_G], out[TOP_H], out[LEAST_H], out[COUNT] = 0.0, 0.0, np.inf, high - low
        for at in range(low, high, CODES):
            measure_tile(at, min(high - at, CODES), task, work, out, ledgers)


@ieee_kernel
def measure_tile(at: Int, n: Int, task: Task, work: Work, out: Any, ledgers: Any) -> None:
    """Add `n` rows, at most 256, to what `measure` writes."""
    g, h, size = work.g, work.h, work.score
    take_tile(at, n, task, g, h)
    top, most, least = np.int64(0), np.int64(0), np.int64(0x7FF0000000000000)
    for i in range(n):
        size[i] = abs(g[i])
        top = max(top, np.float64(size[i]).view(np.int64))
        most, least = max(most, np.float64(h[i]).view(np.int64)), min(least, np.float64(h[i]).view(np.int64))
    out[TOP_G] = max(out[TOP_G], np.int64(top).view(np.float64))
    out[TOP_H] = max(out[TOP_H], np.int64(most).view(np.float64))
    out[LEAST_H] = min(out[LEAST_H], np.int64(least).view(np.float64))
    add_tile(size, n, ledgers[0])
    add_tile(h, n, ledgers[1])
    add_tile(g, n, ledgers[2])


@ieee_kernel
def take_tile(at: Int, n: Int, task: Task, g: Any, h: Any) -> None:
    """Copy the derivatives of rows at … at + n − 1, or of those of the sample."""
    if task.sample.size:
        rows = task.sample[at : at + n]
        for i in range(n):
            g[i], h[i] = np.float64(task.gradient[rows[i]]), np.float64(task.hessian[rows[i]])
    else:
        gs, hs = task.gradient[at : at + n], task.hessian[at : at + n]
        for i in range(n):
            g[i] = np.float64(gs[i])
            h[i] = np.float64(hs[i])


@ieee_kernel
def merge_blocks(space: Space) -> None:
    """Bring the statistics of all blocks to the first."""
    stats, ledgers = space.stats, space.ledgers
    for k in range(1, ((space.leaf_of_row.size - 1) >> space.block_shift) + 1):
        stats[0, TOP_G], stats[0, TOP_H] = max(stats[0, TOP_G], stats[k, TOP_G]), max(stats[0, TOP_H], stats[k, TOP_H])
        stats[0, LEAST_H] = min(stats[0, LEAST_H], stats[k, LEAST_H])
        stats[0, COUNT] += stats[k, COUNT]
        for c in range(3):
            for i in range(ledgers.shape[2]):
                ledgers[0, c, i] += ledgers[k, c, i]


@ieee_kernel
def choose_fields(task: Task, stats: Any, ledgers: Any, root: Array) -> tuple[Fields, bool]:
    """Decide how sums are packed, or that they must not be; and whether all hessians are equal."""
    top, most, least, count = stats[TOP_G], stats[TOP_H], stats[LEAST_H], stats[COUNT]
    a, b, c = read_ledger(ledgers[0]), read_ledger(ledgers[1]), read_ledger(ledgers[2])
    root[G], root[H], root[N] = c, b, count
    n = np.int64(count)
    constant = most == least
    n_bits = np.int64(0)
    while n >> n_bits:
        n_bits += 1
    wanted = np.int64(8)
    while task.limits.min_rows >> wanted:
        wanted += 1
    count_bits = n_bits if n_bits <= 17 else min(wanted, n_bits)
    h_bits = min(np.int64(30), (64 - count_bits) // 2)
    g_bits = min(np.int64(30), 64 - count_bits - h_bits)
    count_bits = 64 - h_bits - g_bits
    room_g, room_h = 2.0 ** (g_bits - 1) - 1.0 - count, 2.0**h_bits - 1.0 - count
    exact = task.mode == 2 or not (room_g > 3.0 * count and room_h > 3.0 * count) or n_bits > 31
    if task.mode == 0 and count > 0.0:  # heavy tails; or a common part that hides the differences
        exact = exact or top > _TAIL * a / count or most > _TAIL * b / count or abs(c) > 0.9 * a
    g_step = max(a / max(room_g, 1.0), top / 32000.0)
    h_step = max(b / max(room_h, 1.0), most / 65000.0)
    if constant:
        h_step = most
    g_step, h_step = g_step if g_step > 0.0 else 1.0, h_step if h_step > 0.0 else 1.0
    h_most = 1.0 if constant else np.ceil(most / h_step) + 1.0
    return Fields(exact, h_bits, g_bits, h_most, g_step, h_step, unit_of(top), unit_of(most)), constant


@ieee_kernel
def share_entries(t: Int, n_threads: Int, task: Task, space: Space) -> tuple[Int, Int]:
    """Return where the entries of a thread's rows are."""
    lo, hi = share_rows(t, n_threads, space)
    if task.sample.size:
        return first_not_below(task.sample, lo), first_not_below(task.sample, hi)
    return lo, hi


@ieee_kernel
def write_entries(t: Int, n_threads: Int, task: Task, space: Space, f: Fields) -> None:
    """Write the entries of the thread's rows."""
    lo, hi = share_entries(t, n_threads, task, space)
    key = np.uint32(mix(task.seed) & np.uint64(0xFFFFFFFF))
    g_scale, h_scale = 1.0 / f.g_step, 1.0 / f.h_step  # where all hessians are equal, each is one step
    if task.sample.size:
        for p in range(lo, hi):
            r = np.int64(task.sample[p])
            if f.exact:
                space.order[p] = np.uint64(r)
            else:
                g, h = np.float64(task.gradient[r]), np.float64(task.hessian[r])
                space.order[p] = quantise(r, task.first + r, g, h, g_scale, h_scale, key)
    elif f.exact:
        for p in range(lo, hi):
            space.order[p] = np.uint64(p)
    else:
        out, gs, hs = space.order[lo:hi], task.gradient[lo:hi], task.hessian[lo:hi]
        for p in range(hi - lo):
            r = lo + p
            out[p] = quantise(r, task.first + r, np.float64(gs[p]), np.float64(hs[p]), g_scale, h_scale, key)


@ieee_kernel
def build_lut(j: Int, node: Int, table: Table, link: Any, words: Any, lut: Any) -> None:
    """Write for each code of the stored column of column j whether its rows go left at the node."""
    m, first, default, cut = table.n_bins[j], table.first[j], table.default[j], link[node, SPLIT_AT]
    to_left = link[node, TO_LEFT]
    zero = np.uint8(0)
    if default >= 0:
        zero = np.uint8(_bin_goes_left(default, cut, table.categorical[j], words[node]))
    for c in range(CODES):
        lut[c] = zero
    n_stored = m if default < 0 else m - 1
    for k in range(n_stored):
        b = k + 1 if 0 <= default <= k else k
        lut[first + k] = np.uint8(_bin_goes_left(b, cut, table.categorical[j], words[node]))
    if table.missing[j] < CODES and (default < 0 or table.has_missing[j]):
        lut[table.missing[j]] = np.uint8(to_left)


@ieee_kernel
def _bin_goes_left(b: Int, cut: Int, categorical: Any, words: Any) -> bool:
    if categorical:
        return (words[b >> 5] >> np.uint32(b & 31)) & np.uint32(1) != 0
    return b <= cut


@ieee_kernel
def divide_rows(column: Any, entries: Any, spare: Any, lut: Any) -> Int:
    """Bring the rows that go left to the front, in order, and return how many they are; nothing is branched upon."""
    n = entries.size
    low = np.uint64(0xFFFFFFFF)
    left, right = np.uint64(0), np.uint64(0)
    for p in range(n):
        prefetch(column, np.int64(entries[min(p + _AHEAD, n - 1)] & low))
        entry = entries[p]
        goes = np.uint64(lut[column[entry & low]])
        entries[left] = entry
        spare[right] = entry
        left += goes
        right += np.uint64(1) - goes
    for p in range(np.int64(right)):
        entries[np.int64(left) + p] = spare[p]
    return np.int64(left)


@ieee_kernel
def draw_columns(mask: Any, share: float, seed: Any) -> None:
    """Keep a share of the columns of the mask, at least one."""
    count = 0
    for j in range(mask.size):
        count += mask[j]
    wanted: Any = max(1, np.int64(np.floor(share * count + 0.5)))
    state = mix(seed)
    for j in range(mask.size):
        if mask[j]:
            state, u = next_random(state)
            if u * count < wanted:
                wanted -= 1
            else:
                mask[j] = 0
            count -= 1


@ieee_kernel
def usable_columns(node: Int, task: Task, link: Any, active: Any, masks: Any) -> None:
    """Write to masks[1] which columns the node may be split by: interactions; draws of tree, level and node."""
    mask = masks[1]
    shares, depth = task.shares, link[node, DEPTH]
    for j in range(mask.size):
        mask[j] = masks[0, j]
    if shares[1] < 1.0:
        draw_columns(mask, shares[1], task.seed * np.uint64(3) + np.uint64(depth + 1))
    if task.sets.shape[0]:
        for j in range(mask.size):
            allowed = np.uint8(0)
            for s in range(task.sets.shape[0]):
                allowed |= active[node, s] & task.sets[s, j]
            mask[j] &= allowed
    if shares[2] < 1.0:
        draw_columns(mask, shares[2], mix(task.seed * np.uint64(5) + np.uint64(node + 1)))


@ieee_kernel
def search(
    hist: Any, s_from: Int, s_to: Int, mask: Any, table: Table, limits: Limits, node: Array, f: Fields, work: Work,
    found: Any, words: Any,
) -> None:  # fmt: skip
    """Write the best split of a node by stored columns s_from … s_to − 1; `hist` begins with the first of them."""
    found[SCORE], found[COLUMN], found[SUMS] = _NEVER, -1.0, 0.0
    if s_from >= s_to:
        return
    sums = work.sums
    sums[0], sums[1], sums[2] = node[G], node[H], node[N]
    size = 3 * CODES if f.exact else CODES
    total = np.int64(0)
    if not f.exact:
        total = whole(hist[:CODES], f, sums)
    found[SUMS], found[SUMS + 1], found[SUMS + 2] = 1.0, sums[0], sums[1]
    packed = not f.exact and not limits.monotone
    for s in range(s_from, s_to):
        own = hist[(s - s_from) * size : (s - s_from + 1) * size]
        begin, end = table.stored_start[s], table.stored_start[s + 1]
        if packed and end - begin > 1:
            search_indicators(own, begin, end, mask, total, table, limits, f, work, found)
        for q in range(begin, end):
            j = table.by_stored[q]
            if mask[j] and not (packed and is_indicator(j, table)):
                search_column(own, j, total, table, limits, node, f, work, found, words)


@ieee_kernel
def is_indicator(j: Int, table: Table) -> bool:
    """Tell whether a column shares its byte and has one value besides zero, as one-hot tables have many."""
    return table.default[j] >= 0 and table.n_bins[j] == 2 and not table.has_missing[j] and not table.categorical[j]


@ieee_kernel
def search_indicators(
    hist: Any, begin: Int, end: Int, mask: Any, total: Any, table: Table, limits: Limits, f: Fields, work: Work,
    found: Any,
) -> None:  # fmt: skip
    """Do `search_column` for all indicators of a byte at once: each splits the rows of one code from all others."""
    score_codes(hist, limits, f, total, work)
    unit = f.g_step * f.g_step / f.h_step
    for q in range(begin, end):
        j = table.by_stored[q]
        bits = work.score_bits[table.first[j]]
        if bits < 0 or not mask[j] or not is_indicator(j, table):
            continue
        score = np.int64(bits).view(np.float64) * unit
        if score > found[SCORE] or (score == found[SCORE] and j < found[COLUMN]):
            found[SCORE], found[COLUMN], found[CUT] = score, j, 0
            found[MISSING_LEFT], found[HAS_MISSING] = 0.0, 0.0


@ieee_kernel
def search_column(
    hist: Any, j: Int, total: Any, table: Table, limits: Limits, node: Array, f: Fields, work: Work, found: Any,
    words: Any,
) -> None:  # fmt: skip
    """Overwrite the best split found so far if one of column j is better, or as good and of an earlier column."""
    m = table.n_bins[j]
    categorical = table.categorical[j]
    if f.exact or categorical or limits.monotone or table.default[j] >= 0:
        load_bins(hist, table, j, f, total, work.sums, work)
        if categorical:
            m = order_bins(m, f, limits.smoothing, work)
        bins = work.bins
    else:
        bins = hist  # the bins of a column that has its own byte are as they should be
    some = bins.view(np.float64)[3 * m + 2] > 0.0 if f.exact else bins[m] != 0
    for side in range(2 if some else 1):
        n_cuts = m if some and side == 0 else m - 1
        if n_cuts < 1:
            continue
        if f.exact or limits.monotone:
            decode(m, side == 1, f, total, work.sums, work)
            score, cut = best_cut(n_cuts, limits, work.sums, node[LOW], node[HIGH], table.sign[j], work)
        else:
            score, cut = best_packed_cut(bins, m, n_cuts, side == 1, limits, f, total, work)
        if cut >= 0 and (score > found[SCORE] or (score == found[SCORE] and j < found[COLUMN])):
            found[SCORE], found[COLUMN], found[CUT] = score, j, cut
            found[MISSING_LEFT], found[HAS_MISSING] = side, 1.0 if some else 0.0
            if f.exact or limits.monotone:
                found[LEFT_SUMS], found[LEFT_SUMS + 1] = work.g[cut], work.h[cut]
            if categorical:
                for k in range(2 * WORDS):
                    words[k] = 0
                for k in range(m):
                    b = work.order[k]
                    bit = np.uint32(1) << np.uint32(b & 31)
                    words[WORDS + (b >> 5)] |= bit
                    if k <= cut:
                        words[b >> 5] |= bit
