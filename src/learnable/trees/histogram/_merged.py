"""Kernels of `histogram.merged`: a part divides and sums its rows; part 0 searches the sums of all.

They are the steps of `_worker.grow_tree`, cut where parts that do not share memory have to talk to each other.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core.jit import ieee_kernel
from ._kernels import CODES, Fields, Limits, Space, Table, Task, Work, add_rows, clear, subtract
from ._leafwise import (
    DEPTH,
    FEATURE,
    GAIN,
    LEFT,
    RIGHT,
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

#: What part 0 tells the others: how many leaves to divide (0: the tree is done, −1: stop), how many nodes there are,
#: and for each leaf its number, that of its parent and which child of it the leaf is (left 0, right 1), the column,
#: which children to sum, and the codes that go left, eight to an integer.
LEAVES_TOLD, NODES_TOLD = range(2)
NODE, PARENT, SIDE, COLUMN, WHICH, CODES_LEFT = range(6)
ENTRY: Final = 5 + CODES // 8
#: Most leaves of a message. Trees of 31 leaves take 10 to 15 messages with eight, and 31 with one.
BATCH: Final = 8
MESSAGE: Final = 2 + BATCH * ENTRY
STOPPED: Final = -1
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
def sum_part(begin: Int, end: Int, table: Table, task: Task, space: Space, f: Fields, hist: Any) -> None:
    """Write the histograms of some rows."""
    clear(hist)
    zero = np.int64(0)
    add_rows(table, task, space.order[begin:end], zero, table.group_start.size - 1, hist, zero, f)


@ieee_kernel
def divide_part(
    message: Any, table: Table, task: Task, space: Space, f: Fields, part: Any, middle: Any, sums: Any
) -> Int:
    """Divide the part's rows of the leaves that a message names, and sum their children; return the size of the sums.

    IN/OUT part: where the rows of a node are; middle: where those of its right child begin. OUT sums: for each leaf how
    many rows went left, and the histograms that were asked for.
    """
    size = np.int64(table.columns.shape[0]) * (3 * CODES if f.exact else CODES)
    at = np.int64(0)
    for k in range(message[LEAVES_TOLD]):
        entry = message[2 + k * ENTRY : 2 + (k + 1) * ENTRY]
        node, which = entry[NODE], entry[WHICH]
        place_child(node, entry[PARENT], entry[SIDE], part, middle)
        begin, end = part[node, 0, 0], part[node, 0, 1]
        column = table.columns[table.stored[entry[COLUMN]]]
        lut = entry[CODES_LEFT:].view(np.uint8)
        left_rows = divide_rows(column, space.order[begin:end], space.spare[begin:end], lut)
        cut = begin + left_rows
        middle[node] = cut
        if f.exact:
            sums[at : at + 1].view(np.float64)[0] = np.float64(left_rows)
        else:
            sums[at] = left_rows
        at += 1
        if which in (LEFT_CHILD, BOTH):
            sum_part(begin, cut, table, task, space, f, sums[at : at + size])
            at += size
        if which in (RIGHT_CHILD, BOTH):
            sum_part(cut, end, table, task, space, f, sums[at : at + size])
            at += size
    return at


@ieee_kernel
def place_child(node: Int, parent: Int, side: Int, part: Any, middle: Any) -> None:
    """Write where the part's rows of a node are, from those of its parent; the first node knows it."""
    if parent >= 0:
        part[node, 0, 0] = part[parent, 0, 0] if side == 0 else middle[parent]
        part[node, 0, 1] = middle[parent] if side == 0 else part[parent, 0, 1]


@ieee_kernel
def judge(
    parent: Int, which: Int, left_rows: Int, given: Any, table: Table, task: Task, limits: Limits, space: Space,
    works: Work, f: Fields, part: Any, memory: Any, above: Any,
) -> Int:  # fmt: skip
    """Search the children of `parent` (−1: the first node) by the sums of all parts; return the leaf to divide next.

    IN given: the histograms that `which` says. `part` counts the rows of all parts as if they lay in one place. IN/OUT
    memory; above: parent and side of each node.
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
        above[a, 0] = above[b, 0] = parent
        above[a, 1], above[b, 1] = 0, 1
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
    node = np.int64(-1)
    if goes_on:
        node, memory[OLDEST] = choose_leaf(memory[NODES], memory[OLDEST], task.breadth_first, link, number)
    return node


@ieee_kernel
def tell_leaves(
    first: Int, table: Table, task: Task, space: Space, works: Work, f: Fields, memory: Any, above: Any, told: Any,
    message: Any,
) -> None:  # fmt: skip
    """Write a message: divide leaf `first`, and leaves that will most likely be divided after it.

    Of the open leaves in their order, one among the first half of the divisions that are left is nearly always divided
    in the end; level after level, all of them are. What is not divided in the end has cost time, and changes nothing:
    its rows stay together. IN/OUT told: whether a node has been named before.
    """
    work = one_of(works)
    link, number, words = space.link[0], space.number[0], space.words[0]
    left = task.max_leaves - memory[LEAVES]
    likely = min(np.int64(BATCH), left if task.breadth_first else (left + 1) // 2)
    node, place_in_order, count = first, np.int64(0), np.int64(0)
    while node >= 0 and place_in_order < likely:
        if not told[node]:
            told[node] = 1
            entry = message[2 + count * ENTRY : 2 + (count + 1) * ENTRY]
            entry[NODE], entry[PARENT], entry[SIDE] = node, above[node, 0], above[node, 1]
            goes_on = place_in_order + 1 < left and link[node, DEPTH] + 1 < task.max_depth
            tell(node, goes_on, table, space, f, link, words, work, entry)
            count += 1
        place_in_order += 1
        node = next_leaf(node, memory[NODES], task.breadth_first, link, number)
    message[LEAVES_TOLD], message[NODES_TOLD] = count, memory[NODES]


@ieee_kernel
def next_leaf(node: Int, n_nodes: Int, breadth_first: bool, link: Any, number: Any) -> Int:
    """Return the open leaf that comes after an open leaf in the order in which they would be divided, or −1."""
    best = np.int64(-1)
    for i in range(n_nodes):
        if link[i, FEATURE] < 0 or link[i, LEFT] >= 0:
            continue
        if breadth_first:
            if i > node:
                return i
            continue
        gain, own = number[i, GAIN], number[node, GAIN]
        if (gain < own or (gain == own and i > node)) and (best < 0 or gain > number[best, GAIN]):
            best = np.int64(i)
    return best


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
    node: Int, goes_on: bool, table: Table, space: Space, f: Fields, link: Any, words: Any, work: Work, message: Any
) -> None:
    """Write which codes of the node's column go left, and which child is likely the smaller one, to be summed."""
    j = link[node, FEATURE]
    build_lut(j, node, table, link, words, work.lut)
    for k in range(CODES // 8):
        packed = np.uint64(0)
        for i in range(8):
            packed |= np.uint64(work.lut[8 * k + i]) << np.uint64(8 * i)
        message[CODES_LEFT + k] = np.int64(packed)
    message[COLUMN], message[WHICH] = j, NONE
    if goes_on:
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
def sum_part_leaves(
    n_nodes: Int, f: Fields, task: Task, space: Space, works: Work, link: Any, part: Any, middle: Any
) -> None:
    """Write where the part's rows of each node are, and the limbs of Σg and Σh of those in each leaf."""
    for i in range(n_nodes):
        if link[i, LEFT] >= 0:
            place_child(link[i, LEFT], np.int64(i), np.int64(0), part, middle)
            place_child(link[i, RIGHT], np.int64(i), np.int64(1), part, middle)
    sum_leaves(n_nodes, f, task, space.order, link, part[:, 0], one_of(works), space.leaf_limbs[0])


@ieee_kernel
def end_tree(n_nodes: Int, table: Table, task: Task, space: Space, f: Fields, part: Any, out: Any) -> None:
    """Compute the finished tree from the sums of all parts, and the leaf of each row of this one."""
    link, words = space.link[0], space.words[0]
    finish(n_nodes, table, task, space, f, out)
    label_rows(np.int64(0), np.int64(1), n_nodes, table, task, space, link, words, part, out)
