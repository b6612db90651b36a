"""The kernel of `histogram.grower` that every thread runs: grow one tree.

root      derivatives are rounded, rows are listed, histograms are summed and searched
repeat    take the open leaf of the largest gain (or the oldest); divide its rows; sum the smaller child, subtract
for the larger one; search both
end       exact sums of every leaf in float64, values, and which leaf each row is in
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.jit import ieee_kernel
from ...data.any_order import LIMBS, add_limbs, join_limbs
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
    add_rows,
    add_to,
    clear,
    clipped_score,
    meet,
    subtract,
)
from ._leafwise import (
    DEPTH,
    FEATURE,
    GAIN,
    HIGH,
    LEFT,
    LOW,
    RIGHT,
    ROWS,
    SLOT,
    SOME_MISSING,
    SPLIT_AT,
    TO_LEFT,
    WORDS,
    G,
    H,
    N,
    _bin_goes_left,
    build_lut,
    choose_fields,
    divide_rows,
    draw_columns,
    measure,
    merge_blocks,
    search,
    share_entries,
    share_rows,
    usable_columns,
    write_entries,
)

# --------------------------------------------------------------------------------------------------------------------
# Kernels of `histogram.grower`: the exact numbers of a grown tree, and the leaf of every row.


Int = Any
_UNKNOWN = np.int64(1) << np.int64(40)


class Out(NamedTuple):
    """The tree in its final order: a parent, its left subtree, its right subtree."""

    count: Any  #: [0] nodes, [1] whether histograms were exact
    feature: Any
    threshold: Any
    left: Any
    right: Any
    missing_left: Any
    n_rows: Any
    sums: Any  #: G, H, value, gain
    source: Any  #: number of the node while it grew
    number: Any  #: the way back


@ieee_kernel
def sum_leaves(n_nodes: Int, f: Fields, task: Task, order: Any, link: Any, part: Any, work: Work, limbs: Any) -> None:
    """Write G and H of each leaf over some rows, `part` of the order, as integers: (nodes, 2, 3)."""
    g, h, low = work.g, work.h, np.uint64(0xFFFFFFFF)
    g_scale, h_scale = 1.0 / f.g_unit, 1.0 / f.h_unit
    for i in range(n_nodes):
        for k in range(LIMBS):
            limbs[i, 0, k] = limbs[i, 1, k] = 0
        if link[i, LEFT] >= 0:
            continue
        entries = order[part[i, 0] : part[i, 1]]
        for begin in range(0, entries.size, CODES):
            tile = entries[begin : begin + CODES]
            for p in range(tile.size):
                r = tile[p] & low
                g[p], h[p] = np.float64(task.gradient[r]), np.float64(task.hessian[r])
            add_limbs(g, tile.size, g_scale, limbs[i, 0])
            add_limbs(h, tile.size, h_scale, limbs[i, 1])


@ieee_kernel
def merge_leaves(n_nodes: Int, limbs: Any) -> None:
    """Add the integers of all threads to those of the first."""
    for t in range(1, limbs.shape[0]):
        for i in range(n_nodes):
            for k in range(LIMBS):
                limbs[0, i, 0, k] += limbs[t, i, 0, k]
                limbs[0, i, 1, k] += limbs[t, i, 1, k]


@ieee_kernel
def finish(n_nodes: Int, table: Table, task: Task, space: Space, f: Fields, out: Any) -> None:
    """Compute sums, values and gains of all nodes; splits that only the rounding made look good are taken back."""
    link, number, limbs = space.link[0], space.number[0], space.leaf_limbs[0]
    exact, lam = space.exact, task.limits.reg_lambda
    for i in range(n_nodes - 1, -1, -1):
        low, high = number[i, LOW], number[i, HIGH]
        if link[i, LEFT] < 0:
            g = join_limbs(limbs[i, 0, 0], limbs[i, 0, 1], limbs[i, 0, 2], f.g_unit)
            h = join_limbs(limbs[i, 1, 0], limbs[i, 1, 1], limbs[i, 1, 2], f.h_unit)
        else:
            g = exact[link[i, LEFT], 0] + exact[link[i, RIGHT], 0]
            h = exact[link[i, LEFT], 1] + exact[link[i, RIGHT], 1]
        exact[i, 0], exact[i, 1] = g, h
        exact[i, 2] = min(max(-g / (h + lam), low), high) if h + lam > 0.0 else 0.0
        exact[i, 3] = clipped_score(g, h, lam, low, high) if h + lam > 0.0 else 0.0
        exact[i, 4] = 0.0
        if link[i, LEFT] >= 0:
            a, b = link[i, LEFT], link[i, RIGHT]
            both = exact[a, 3] + exact[b, 3]
            exact[i, 4] = 0.5 * (both - exact[i, 3]) - task.gamma
            if not f.exact and link[a, FEATURE] < 0 and link[b, FEATURE] < 0 and exact[i, 4] <= 1e-13 * both:
                link[i, FEATURE] = -1
        else:
            link[i, FEATURE] = -1
    out.count[0], out.count[1] = _number(n_nodes, table, link, exact, space.stack, out), 1 if f.exact else 0


@ieee_kernel
def _number(n_nodes: Int, table: Table, link: Any, exact: Any, stack: Any, out: Any) -> Int:
    """Write the nodes in their final order and return how many they are."""
    for i in range(n_nodes):
        out.number[i] = _UNKNOWN
    stack[0, 0], stack[0, 1] = 0, -1
    size = 1
    count = np.int64(0)  # typed: a literal would be compiled apart
    while size > 0:
        size -= 1
        i, parent = stack[size, 0], stack[size, 1]
        out.number[i], out.source[count] = count, i
        if parent >= 0:
            out.right[parent] = count
        for k in range(3):
            out.sums[count, k] = exact[i, k]
        out.sums[count, 3] = exact[i, 4]
        out.n_rows[count] = link[i, ROWS]
        j = link[i, FEATURE]
        out.feature[count], out.threshold[count] = j, 0.0
        out.left[count] = out.right[count] = -1
        out.missing_left[count] = 0
        if j >= 0:
            cut = link[i, SPLIT_AT]
            out.missing_left[count] = link[i, TO_LEFT]
            if not table.categorical[j]:
                out.threshold[count] = np.inf if cut >= table.n_bins[j] - 1 else table.edges[table.edge_start[j] + cut]
            out.left[count] = count + 1
            stack[size, 0], stack[size, 1] = link[i, RIGHT], count
            stack[size + 1, 0], stack[size + 1, 1] = link[i, LEFT], -1
            size += 2
        elif link[i, LEFT] >= 0:
            _absorb(i, count, link, out.number[:n_nodes])
        count += 1
    return count


@ieee_kernel
def _absorb(top: Int, count: Int, link: Any, number: Any) -> None:
    """Give all nodes below a split that was taken back its number; both children are leaves by then, or taken back."""
    number[link[top, LEFT]] = -1 - count
    number[link[top, RIGHT]] = -1 - count
    for i in range(top + 1, number.size):
        if number[i] == -1 - count:
            number[i] = count
            if link[i, LEFT] >= 0:
                number[link[i, LEFT]] = number[link[i, RIGHT]] = -1 - count


@ieee_kernel
def label_rows(
    t: Int, n_threads: Int, n_nodes: Int, table: Table, task: Task, space: Space, link: Any, words: Any, part: Any,
    out: Any,
) -> None:  # fmt: skip
    """Write the leaf of each row of the thread's range; rows that took no part walk down the tree."""
    low = np.uint64(0xFFFFFFFF)
    labels = space.leaf_of_row
    lo, hi = share_rows(t, n_threads, space)
    if task.sample.size:
        for r in range(lo, hi):
            labels[r] = -1
    for i in range(n_nodes):
        if link[i, LEFT] >= 0:
            continue
        leaf = np.int32(out.number[i])
        entries = space.order[part[i, t, 0] : part[i, t, 1]]
        for p in range(entries.size):
            labels[entries[p] & low] = leaf
    if task.sample.size:
        for r in range(lo, hi):
            if labels[r] < 0:
                labels[r] = np.int32(out.number[walk(r, table, link, words)])


@ieee_kernel
def walk(r: Int, table: Table, link: Any, words: Any) -> Int:
    """Return the node without children, as it was grown, where row r of the table ends."""
    i = 0
    while link[i, LEFT] >= 0:
        j = link[i, FEATURE]
        if j < 0:  # taken back: any leaf below has its number
            i = link[i, LEFT]
            continue
        code = np.int64(table.columns[table.stored[j], r])
        first, default = table.first[j], table.default[j]
        if code == table.missing[j] and (default < 0 or table.has_missing[j]):
            left = link[i, TO_LEFT] != 0
        else:
            b = code - first
            if default >= 0:
                if b < 0 or b >= table.n_bins[j] - 1:
                    b = default
                elif b >= default:
                    b += 1
            left = _bin_goes_left(b, link[i, SPLIT_AT], table.categorical[j], words[i])
        i = link[i, LEFT] if left else link[i, RIGHT]
    return i


_FEW_ROWS = 1024  # so few are not cut into a slice for each thread


@ieee_kernel
def grow_tree(
    t: Int, n_threads: Int, table: Table, task: Task, space: Space, works: Work, out: Any, meeting: Any, stop: Any
) -> None:
    """Grow a tree as thread t of n_threads."""
    work = Work(
        works.bins[t], works.sorted[t], works.prefix[t], works.g[t], works.h[t], works.n_left[t], works.n_right[t],
        works.score[t], works.score_bits[t], works.order[t], works.lut[t], works.masks[t], works.sums[t],
    )  # fmt: skip
    link, number, words, part = space.link[t], space.number[t], space.words[t], space.part[t]
    free = space.free[t]
    measure(t, n_threads, task, space, work)
    count = np.int64(1)  # typed: a literal would be compiled apart
    if not meet(meeting, stop, n_threads, count):
        return
    if t == 0:
        merge_blocks(space)
    count += 1
    if not meet(meeting, stop, n_threads, count):
        return
    f, constant = choose_fields(task, space.stats[0], space.ledgers[0], number[0])
    limits = own_limits(task.limits, f, constant)
    write_entries(t, n_threads, task, space, f)
    open_root(n_threads, task, space, link, number, part, free, space.active[t], work)
    count += 1
    if not meet(meeting, stop, n_threads, count):
        return
    n_free, n_nodes, n_leaves = space.n_slots, np.int64(1), np.int64(1)
    parity, oldest = np.int64(0), np.int64(0)
    parent, a, b = np.int64(-1), np.int64(0), np.int64(-1)
    while True:
        # Children a and b of `parent` (or the root) are new: search those that may be split further.
        goes_on = n_leaves < task.max_leaves
        want_a = goes_on and may_split(a, task, link)
        want_b = goes_on and b >= 0 and may_split(b, task, link)
        if want_a or want_b:
            n_free = give_slots(parent, a, b, n_nodes, link, number, free, n_free)
            small, large = (a, b) if b < 0 or link[a, ROWS] <= link[b, ROWS] else (b, a)
            by_groups = is_by_groups(n_threads, table, link[small, ROWS], f)
            s_from, s_to = own_columns(t, n_threads, table, by_groups)
            count += sum_rows(t, n_threads, small, by_groups, table, task, space, part, link, f, meeting, stop, count)
            from_parent = parent >= 0 and link[parent, SLOT] >= 0
            if large >= 0 and not from_parent:
                count += sum_rows(
                    t, n_threads, large, by_groups, table, task, space, part, link, f, meeting, stop, count
                )
            elif large >= 0:
                at, other = place(space, link[large, SLOT], s_from, f), place(space, link[small, SLOT], s_from, f)
                size = place(space, np.int64(0), s_to - s_from, f)
                subtract(space.pool[at : at + size], space.pool[other : other + size], f.exact)
            for side in range(2):
                node = a if side == 0 else b
                if (want_a if side == 0 else want_b) and node >= 0:
                    slot = link[node, SLOT]
                    hist = space.pool[place(space, slot, s_from, f) : place(space, slot, s_to, f)]
                    usable_columns(node, task, link, space.active[t], work.masks)
                    found, sets = space.found[t, side], space.found_words[t, side]
                    search(hist, s_from, s_to, work.masks[1], table, limits, number[node], f, work, found, sets)
            count += 1
            if not meet(meeting, stop, n_threads, count):
                return
            for side in range(2):
                node = a if side == 0 else b
                if (want_a if side == 0 else want_b) and node >= 0:
                    take_best(node, side, n_threads, task, space, f, link, number, words)
        n_free = free_slots(parent, a, b, link, number, free, n_free)
        if not goes_on:
            break
        parent, oldest = choose_leaf(n_nodes, oldest, task.breadth_first, link, number)
        if parent < 0:
            break
        build_lut(link[parent, FEATURE], parent, table, link, words, work.lut)
        begin, end = part[parent, t, 0], part[parent, t, 1]
        column = table.columns[table.stored[link[parent, FEATURE]]]
        space.middle[parity, t] = begin + divide_rows(column, space.order[begin:end], space.spare[begin:end], work.lut)
        count += 1
        if not meet(meeting, stop, n_threads, count):
            return
        a, b = n_nodes, n_nodes + 1
        n_nodes += 2
        n_leaves += 1
        add_children(parent, a, b, n_threads, parity, table, task, space, link, number, words, part, space.active[t])
        parity = 1 - parity
    sum_leaves(n_nodes, f, task, space.order, link, part[:, t], work, space.leaf_limbs[t])
    count += 1
    if not meet(meeting, stop, n_threads, count):
        return
    if t == 0:
        merge_leaves(n_nodes, space.leaf_limbs)
        finish(n_nodes, table, task, space, f, out)
    count += 1
    if not meet(meeting, stop, n_threads, count):
        return
    label_rows(t, n_threads, n_nodes, table, task, space, link, words, part, out)


@ieee_kernel
def own_limits(rule: Limits, f: Fields, constant: bool) -> Limits:
    """Return the limits of a tree: rounded hessians need a few steps."""
    least = rule.min_hessian if f.exact or constant else max(rule.min_hessian, 4.0 * f.h_step)
    return Limits(rule.min_rows, least, rule.reg_lambda, rule.smoothing, rule.monotone)


@ieee_kernel
def open_root(
    n_threads: Int, task: Task, space: Space, link: Any, number: Any, part: Any, free: Any, active: Any, work: Work
) -> None:
    """Make the first node, of all rows and all columns that the tree may use."""
    for k in range(link.shape[1]):
        link[0, k] = -1
    link[0, DEPTH], link[0, ROWS] = 0, np.int64(number[0, N])
    number[0, GAIN], number[0, LOW], number[0, HIGH] = -np.inf, -np.inf, np.inf
    for u in range(n_threads):
        part[0, u, 0], part[0, u, 1] = share_entries(u, n_threads, task, space)
    for k in range(space.n_slots):
        free[k] = space.n_slots - 1 - k
    for s in range(task.sets.shape[0]):
        active[0, s] = 1
    mask = work.masks[0]
    for j in range(mask.size):
        mask[j] = 1
    if task.shares[0] < 1.0:
        draw_columns(mask, task.shares[0], task.seed + np.uint64(1))


@ieee_kernel
def may_split(node: Int, task: Task, link: Any) -> bool:
    """Tell whether a node is large and shallow enough to have children."""
    return link[node, DEPTH] < task.max_depth and link[node, ROWS] >= max(2, 2 * task.limits.min_rows)


@ieee_kernel
def give_slots(parent: Int, a: Int, b: Int, n_nodes: Int, link: Any, number: Any, free: Any, n_free: Int) -> Int:
    """Give the larger child the memory of its parent, the smaller one a free piece; return how many are left.

    When none is free, the open leaf of the smallest gain loses its histogram; should it be split, both children are
    summed.
    """
    small, large = (a, b) if b < 0 or link[a, ROWS] <= link[b, ROWS] else (b, a)
    if parent >= 0 and link[parent, SLOT] >= 0:
        link[large, SLOT] = link[parent, SLOT]
    for node in (small, large):
        if node < 0 or link[node, SLOT] >= 0:
            continue
        if n_free == 0:
            worst = -1
            for i in range(n_nodes):
                other = i != parent and i != a and i != b and link[i, SLOT] >= 0
                if other and (worst < 0 or number[i, GAIN] < number[worst, GAIN]):
                    worst = i
            free[0] = link[worst, SLOT]
            link[worst, SLOT] = -1
            n_free = 1
        n_free -= 1
        link[node, SLOT] = free[n_free]
    return n_free


@ieee_kernel
def free_slots(parent: Int, a: Int, b: Int, link: Any, number: Any, free: Any, n_free: Int) -> Int:
    """Take back the memory of nodes that will not be split."""
    inherited = b >= 0 and parent >= 0 and (link[a, SLOT] == link[parent, SLOT] or link[b, SLOT] == link[parent, SLOT])
    if parent >= 0:
        if link[parent, SLOT] >= 0 and not inherited:
            free[n_free] = link[parent, SLOT]
            n_free += 1
        link[parent, SLOT] = -1
    for node in (a, b):
        if node >= 0 and link[node, SLOT] >= 0 and link[node, FEATURE] < 0:
            free[n_free] = link[node, SLOT]
            n_free += 1
            link[node, SLOT] = -1
    return n_free


@ieee_kernel
def is_by_groups(n_threads: Int, table: Table, rows: Int, f: Fields) -> bool:
    """Tell whether threads share the groups of columns, and not the rows, of a histogram."""
    n_groups = table.group_start.size - 1
    return f.exact or rows < _FEW_ROWS or n_groups % n_threads == 0 or n_groups >= 4 * n_threads


@ieee_kernel
def own_columns(t: Int, n_threads: Int, table: Table, by_groups: bool) -> tuple[Int, Int]:
    """Return the first stored column of a thread and the one after the last."""
    if by_groups:
        n = table.group_start.size - 1
        return table.group_start[n * t // n_threads], table.group_start[n * (t + 1) // n_threads]
    n = table.columns.shape[0]
    return n * t // n_threads, n * (t + 1) // n_threads


@ieee_kernel
def place(space: Space, slot: Int, column: Int, f: Fields) -> Int:
    """Return where the histogram of a stored column begins."""
    return slot * space.slot_size + column * (3 * CODES if f.exact else CODES)


@ieee_kernel
def sum_rows(
    t: Int, n_threads: Int, node: Int, by_groups: bool, table: Table, task: Task, space: Space, part: Any, link: Any,
    f: Fields, meeting: Any, stop: Any, count: Int,
) -> Int:  # fmt: skip
    """Sum the thread's columns of a node's histogram; return how many meetings that took."""
    n_groups = table.group_start.size - 1
    s_from, s_to = own_columns(t, n_threads, table, by_groups)
    hist = space.pool[place(space, link[node, SLOT], s_from, f) : place(space, link[node, SLOT], s_to, f)]
    clear(hist)
    if by_groups:
        g_from, g_to = n_groups * t // n_threads, n_groups * (t + 1) // n_threads
        for u in range(n_threads):
            add_rows(table, task, space.order[part[node, u, 0] : part[node, u, 1]], g_from, g_to, hist, s_from, f)
        return 0
    own = space.private[t]
    clear(own)
    zero = np.int64(0)
    add_rows(table, task, space.order[part[node, t, 0] : part[node, t, 1]], zero, n_groups, own, zero, f)
    meet(meeting, stop, n_threads, count + 1)
    for u in range(n_threads):
        add_to(hist, space.private[u, s_from * CODES : s_to * CODES])
    return 1


@ieee_kernel
def take_best(
    node: Int, side: Int, n_threads: Int, task: Task, space: Space, f: Fields, link: Any, number: Any, words: Any
) -> None:
    """Write down the best split that the threads have found; of equals, that of the first column."""
    best = -1
    for u in range(n_threads):
        found = space.found[u, side]
        if found[SUMS] > 0.0 and not f.exact:
            number[node, G], number[node, H] = found[SUMS + 1], found[SUMS + 2]
        if found[COLUMN] >= 0.0:
            top = space.found[best, side] if best >= 0 else found
            if best < 0 or found[SCORE] > top[SCORE] or (found[SCORE] == top[SCORE] and found[COLUMN] < top[COLUMN]):
                best = u
    link[node, FEATURE] = -1
    number[node, GAIN] = -np.inf
    if best < 0:
        return
    found = space.found[best, side]
    own = clipped_score(number[node, G], number[node, H], task.limits.reg_lambda, number[node, LOW], number[node, HIGH])
    gain = 0.5 * (found[SCORE] - own) - task.gamma
    if not gain > 0.0:
        return
    number[node, GAIN] = gain
    link[node, FEATURE], link[node, SPLIT_AT] = np.int64(found[COLUMN]), np.int64(found[CUT])
    link[node, TO_LEFT], link[node, SOME_MISSING] = np.int64(found[MISSING_LEFT]), np.int64(found[HAS_MISSING])
    number[node, N + 1], number[node, N + 2] = found[LEFT_SUMS], found[LEFT_SUMS + 1]
    for k in range(2 * WORDS):
        words[node, k] = space.found_words[best, side, k]


@ieee_kernel
def choose_leaf(n_nodes: Int, oldest: Int, breadth_first: bool, link: Any, number: Any) -> tuple[Int, Int]:
    """Return the open leaf to split next, or −1; and before which node none is open."""
    best = -1
    while oldest < n_nodes and (link[oldest, FEATURE] < 0 or link[oldest, LEFT] >= 0):
        oldest += 1
    if breadth_first:
        return (oldest if oldest < n_nodes else -1), oldest
    for i in range(oldest, n_nodes):
        if link[i, FEATURE] >= 0 and link[i, LEFT] < 0 and (best < 0 or number[i, GAIN] > number[best, GAIN]):
            best = i
    return best, oldest


@ieee_kernel
def add_children(
    parent: Int, a: Int, b: Int, n_threads: Int, parity: Int, table: Table, task: Task, space: Space, link: Any,
    number: Any, words: Any, part: Any, active: Any,
) -> None:  # fmt: skip
    """Make the children a (left) and b of a node whose rows have been divided."""
    feature = link[parent, FEATURE]
    link[parent, LEFT], link[parent, RIGHT] = a, b
    for node in (a, b):
        for k in range(link.shape[1]):
            link[node, k] = -1
        link[node, DEPTH], link[node, ROWS] = link[parent, DEPTH] + 1, 0
        number[node, GAIN] = -np.inf
        number[node, LOW], number[node, HIGH] = number[parent, LOW], number[parent, HIGH]
        for s in range(task.sets.shape[0]):
            active[node, s] = active[parent, s] & task.sets[s, feature]
    for u in range(n_threads):
        middle = space.middle[parity, u]
        part[a, u, 0], part[a, u, 1] = part[parent, u, 0], middle
        part[b, u, 0], part[b, u, 1] = middle, part[parent, u, 1]
        link[a, ROWS] += part[a, u, 1] - part[a, u, 0]
        link[b, ROWS] += part[b, u, 1] - part[b, u, 0]
    number[a, G], number[a, H], number[a, N] = number[parent, N + 1], number[parent, N + 2], link[a, ROWS]
    number[b, G], number[b, H] = number[parent, G] - number[a, G], number[parent, H] - number[a, H]
    number[b, N] = link[b, ROWS]
    if link[parent, SOME_MISSING] == 0:  # nothing was missing here: what comes later follows the majority
        link[parent, TO_LEFT] = 1 if link[a, ROWS] >= link[b, ROWS] else 0
    if table.categorical[feature] and link[parent, TO_LEFT]:
        for k in range(WORDS):  # levels that are not in the node go where missing values go
            words[parent, k] |= ~words[parent, WORDS + k]
    sign = table.sign[feature]
    if sign != 0:
        lam, low, high = task.limits.reg_lambda, number[parent, LOW], number[parent, HIGH]
        left = min(max(-number[a, G] / (number[a, H] + lam), low), high)
        right = min(max(-number[b, G] / (number[b, H] + lam), low), high)
        middle_value = 0.5 * (left + right)
        rising, falling = (a, b) if sign > 0 else (b, a)
        number[rising, HIGH] = number[falling, LOW] = middle_value
