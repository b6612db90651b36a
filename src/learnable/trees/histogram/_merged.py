"""Kernels of `histogram.merged`: a part divides and sums its rows; part 0 searches the sums of all.

They are the steps of `_worker.grow_tree`, cut where parts that do not share memory have to talk to each other.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core.jit import ieee_kernel
from ._kernels import CODES, Fields, Limits, Space, Table, Task, Work, add_rows, clear, subtract
from ._leafwise import (
    FEATURE,
    SLOT,
    build_lut,
    choose_fields,
    divide_rows,
    measure,
    merge_blocks,
    search,
    usable_columns,
    write_entries,
)
from ._worker import (
    add_children,
    choose_leaf,
    finish,
    free_slots,
    give_slots,
    label_rows,
    may_split,
    open_root,
    own_limits,
    place,
    sum_leaves,
    take_best,
)

Int = Any

#: What part 0 tells the others: the node to divide (−1: the tree is done, −2: stop), by which column, which children to
#: sum, and the codes that go left, eight to an integer.
NODE, COLUMN, WHICH, CODES_LEFT = range(4)
MESSAGE: Final = 3 + CODES // 8
STOPPED: Final = -2
#: Which children are summed.
NONE, LEFT_CHILD, RIGHT_CHILD, BOTH = range(4)
#: What part 0 remembers of a tree: nodes, leaves, pieces of memory that are free, the oldest open leaf.
NODES, LEAVES, FREE, OLDEST = range(4)


@ieee_kernel
def one_of(works: Work) -> Work:
    """Return the scratch of the only thread."""
    return Work(
        works.bins[0], works.sorted[0], works.prefix[0], works.g[0], works.h[0], works.n_left[0], works.n_right[0],
        works.score[0], works.score_bits[0], works.order[0], works.lut[0], works.masks[0], works.sums[0],
    )  # fmt: skip


@ieee_kernel
def measure_part(task: Task, space: Space, works: Work) -> None:
    """Write the statistics of the part's derivatives to the first block."""
    measure(np.int64(0), np.int64(1), task, space, one_of(works))
    merge_blocks(space)


@ieee_kernel
def open_tree(task: Task, stats: Any, ledgers: Any, space: Space, works: Work) -> tuple[Fields, Limits]:
    """Round the derivatives by the statistics of all parts, and make the first node."""
    work = one_of(works)
    link, number, part = space.link[0], space.number[0], space.part[0]
    f, constant = choose_fields(task, stats, ledgers, number[0])
    write_entries(np.int64(0), np.int64(1), task, space, f)
    open_root(np.int64(1), task, space, link, number, part, space.free[0], space.active[0], work)
    return f, own_limits(task.limits, f, constant)


@ieee_kernel
def divide_part(column: Any, begin: Int, end: Int, space: Space, lut: Any) -> Int:
    """Divide the rows of a node, and return how many go left."""
    return divide_rows(column, space.order[begin:end], space.spare[begin:end], lut)


@ieee_kernel
def sum_part(begin: Int, end: Int, table: Table, task: Task, space: Space, f: Fields, hist: Any) -> None:
    """Write the histograms of some rows."""
    clear(hist)
    zero = np.int64(0)
    add_rows(table, task, space.order[begin:end], zero, table.group_start.size - 1, hist, zero, f)


@ieee_kernel
def judge(
    parent: Int, which: Int, left_rows: Int, given: Any, table: Table, task: Task, limits: Limits, space: Space,
    works: Work, f: Fields, part: Any, memory: Any, message: Any,
) -> None:  # fmt: skip
    """Search the children of `parent` (−1: the first node) by the sums of all parts, and say what comes next.

    IN given: the histograms that `which` says. `part` counts the rows of all parts as if they lay in one place. IN/OUT
    memory. OUT message.
    """
    work = one_of(works)
    link, number, words, free = space.link[0], space.number[0], space.words[0], space.free[0]
    one = np.int64(1)
    a, b = np.int64(0), np.int64(-1)
    if parent >= 0:
        a, b = memory[NODES], memory[NODES] + 1
        space.middle[0, 0] = part[parent, 0, 0] + left_rows
        memory[NODES] += 2
        memory[LEAVES] += 1
        add_children(parent, a, b, one, np.int64(0), table, task, space, link, number, words, part, space.active[0])
    goes_on = memory[LEAVES] < task.max_leaves
    want_a = goes_on and may_split(a, task, link)
    want_b = goes_on and b >= 0 and may_split(b, task, link)
    if want_a or want_b:
        memory[FREE] = give_slots(parent, a, b, memory[NODES], link, number, free, memory[FREE])
        keep_sums(parent, a, b, which, given, table, space, f, link)
        for side in range(2):
            node = a if side == 0 else b
            if (want_a if side == 0 else want_b) and node >= 0:
                at = place(space, link[node, SLOT], np.int64(0), f)
                n_stored = np.int64(table.columns.shape[0])
                hist = space.pool[at : at + place(space, np.int64(0), n_stored, f)]
                usable_columns(node, task, link, space.active[0], work.masks)
                found, sets = space.found[0, side], space.found_words[0, side]
                zero = np.int64(0)
                search(hist, zero, n_stored, work.masks[1], table, limits, number[node], f, work, found, sets)
                take_best(node, side, one, task, space, f, link, number, words)
    memory[FREE] = free_slots(parent, a, b, link, number, free, memory[FREE])
    message[NODE] = -1
    if goes_on:
        node, memory[OLDEST] = choose_leaf(memory[NODES], memory[OLDEST], task.breadth_first, link, number)
        message[NODE] = node
        if node >= 0:
            tell(node, memory[LEAVES] + 1 < task.max_leaves, table, task, space, f, link, words, work, message)


@ieee_kernel
def keep_sums(
    parent: Int, a: Int, b: Int, which: Int, given: Any, table: Table, space: Space, f: Fields, link: Any
) -> None:
    """Put the histograms of both children where they belong: those that came, and what they leave of the parent."""
    size = place(space, np.int64(0), np.int64(table.columns.shape[0]), f)
    first = a if which != RIGHT_CHILD else b
    at = place(space, link[first, SLOT], np.int64(0), f)
    if b >= 0 and which != BOTH:
        other = b if first == a else a
        to = place(space, link[other, SLOT], np.int64(0), f)
        if link[first, SLOT] == link[parent, SLOT]:  # the sums of the parent lie where those that came will be
            for i in range(size):
                space.pool[to + i] = space.pool[at + i]
        subtract(space.pool[to : to + size], given[:size], f.exact)
    for i in range(size):
        space.pool[at + i] = given[i]
    if which == BOTH:
        to = place(space, link[b, SLOT], np.int64(0), f)
        for i in range(size):
            space.pool[to + i] = given[size + i]


@ieee_kernel
def tell(
    node: Int, search_on: bool, table: Table, task: Task, space: Space, f: Fields, link: Any, words: Any, work: Work,
    message: Any,
) -> None:  # fmt: skip
    """Write which codes of the node's column go left, and which child is likely the smaller one, to be summed."""
    j = link[node, FEATURE]
    build_lut(j, node, table, link, words, work.lut)
    for k in range(CODES // 8):
        packed = np.uint64(0)
        for i in range(8):
            packed |= np.uint64(work.lut[8 * k + i]) << np.uint64(8 * i)
        message[CODES_LEFT + k] = np.int64(packed)
    message[COLUMN], message[WHICH] = j, NONE
    if search_on:
        message[WHICH] = BOTH
        if link[node, SLOT] >= 0:
            at = place(space, link[node, SLOT], table.stored[j], f)
            left = weigh_left(space.pool[at : at + place(space, np.int64(0), np.int64(1), f)], f, work.lut)
            message[WHICH] = LEFT_CHILD if left <= 0.5 else RIGHT_CHILD


@ieee_kernel
def weigh_left(hist: Any, f: Fields, lut: Any) -> float:
    """Return the share of a node's rows (exact sums) or hessians (packed) whose codes go left."""
    left, whole = 0.0, 0.0
    mask = (np.int64(1) << f.h_bits) - 1
    for c in range(CODES):
        own = hist[3 * c + 2 : 3 * c + 3].view(np.float64)[0] if f.exact else np.float64(hist[c] & mask)
        whole += own
        left += own if lut[c] else 0.0
    return left / whole if whole > 0.0 else 0.0


@ieee_kernel
def sum_part_leaves(n_nodes: Int, f: Fields, task: Task, space: Space, works: Work, link: Any, part: Any) -> None:
    """Write the limbs of Σg and Σh of the part's rows in each leaf."""
    sum_leaves(n_nodes, f, task, space.order, link, part[:, 0], one_of(works), space.leaf_limbs[0])


@ieee_kernel
def end_tree(n_nodes: Int, table: Table, task: Task, space: Space, f: Fields, part: Any, out: Any) -> None:
    """Compute the finished tree from the sums of all parts, and the leaf of each row of this one."""
    link, words = space.link[0], space.words[0]
    finish(n_nodes, table, task, space, f, out)
    label_rows(np.int64(0), np.int64(1), n_nodes, table, task, space, link, words, part, out)
