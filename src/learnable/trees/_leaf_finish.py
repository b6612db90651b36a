"""Kernels of `histogram_grower`: the exact numbers of a grown tree, and the leaf of every row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.jit import ieee_kernel
from ._histogram_kernels import clipped_score
from ._leafwise import (
    FEATURE,
    HIGH,
    LEFT,
    LOW,
    RIGHT,
    ROWS,
    SPLIT_AT,
    TO_LEFT,
    _bin_goes_left,
    share_rows,
)
from ._leafwise_arrays import Fields, Space, Table, Task

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
def sum_leaves(t: Int, n_threads: Int, n_nodes: Int, task: Task, space: Space, link: Any, part: Any) -> None:
    """Write G and H of each leaf for each block of the thread's rows: a fixed order of additions."""
    lo, hi = share_rows(t, n_threads, space)
    shift, low = np.uint64(space.block_shift), np.uint64(0xFFFFFFFF)
    sums = space.block_sums
    for block in range(lo >> space.block_shift, (hi + (1 << space.block_shift) - 1) >> space.block_shift):
        for i in range(n_nodes):
            sums[block, i, 0] = sums[block, i, 1] = 0.0
    for i in range(n_nodes):
        if link[i, LEFT] >= 0:
            continue
        entries = space.order[part[i, t, 0] : part[i, t, 1]]
        g, h = 0.0, 0.0
        piece = np.uint64(0)
        for p in range(entries.size):
            r = entries[p] & low
            if r >> shift != piece:
                if p > 0:
                    sums[piece, i, 0], sums[piece, i, 1] = g, h
                g, h, piece = 0.0, 0.0, r >> shift
            g += np.float64(task.gradient[r])
            h += np.float64(task.hessian[r])
        if entries.size:
            sums[piece, i, 0], sums[piece, i, 1] = g, h


@ieee_kernel
def finish(n_nodes: Int, table: Table, task: Task, space: Space, f: Fields, out: Any) -> None:
    """Compute sums, values and gains of all nodes; splits that only the rounding made look good are taken back."""
    link, number = space.link[0], space.number[0]
    n_blocks = ((space.leaf_of_row.size - 1) >> space.block_shift) + 1
    exact, lam = space.exact, task.limits.reg_lambda
    for i in range(n_nodes - 1, -1, -1):
        low, high = number[i, LOW], number[i, HIGH]
        if link[i, LEFT] < 0:
            g = h = 0.0
            for k in range(n_blocks):
                g += space.block_sums[k, i, 0]
                h += space.block_sums[k, i, 1]
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
    size, count = 1, 0
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
