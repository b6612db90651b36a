"""Compiled kernels of the subset search: the tree of dropped columns, walked depth first, resumable at any node.

A node holds columns S of which the first k are fixed, and the triangle R of the free ones with the rotated target z.
The subsets of the node contain the k fixed columns and lie in S. RSS of the leading columns S[:j] is a sum of z², so a
node tells the best of several sizes at once. Child t drops free column t and fixes those before it; its triangle comes
from one sweep of Givens rotations. RSS(S) bounds everything below a node.

Reference: C. Gatu and E. Kontoghiorghes, Branch-and-bound algorithms for computing the best-subset regression models,
Journal of Computational and Graphical Statistics 15, 2006.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray
from ...core.jit import lean_kernel

Ints = NDArray[np.int64]

DEPTH, NODES, LENGTH, LOST, CUT = range(5)  # places in `Search.state`
FIRST, FREE, FIXED, TURN = range(4)  # columns of `Search.frames`
N_OBS, PENALTY, FLOOR, SLACK = range(4)  # places in `Search.setting`


class Search(NamedTuple):
    """All that the walk reads and writes, so that it can stop and go on."""

    arena: Array  #: triangles of the open nodes, one after another; each (free, free + 1), the last column z
    frames: Ints  #: (levels, 4) per open node: where its triangle starts, free and fixed columns, next child
    rss: Array  #: (levels,) RSS(S)
    names: Ints  #: (levels, p) the free columns
    drops: Array  #: (levels, p) RSS without each free column, where it was computed, else RSS(S)
    fixed: Ints  #: (p,) the fixed columns of the deepest node
    carry: Array  #: (p + 1,) scratch: the row that the rotations push down
    inverse: Array  #: (p, p) scratch: R⁻¹ of a node that is put in order
    best: Array  #: (p + 1,) least RSS found of each size
    sets: Ints  #: (p + 1, p) its columns
    limit: Array  #: (p + 1,) RSS from which a node whose first new size is this one cannot improve on what is known
    lower: Array  #: (p + 1,) least RSS(S) of the closed leaves that hold subsets of this size
    proof: NDArray[np.int16]  #: the tree in order of the walk: a column that is split (out first), or −1 for a leaf
    state: Ints  #: depth, nodes, length of the proof, whether it was lost, leaves closed for want of memory
    setting: Array  #: rows n, penalty per column (negative: every size by itself), least RSS, 1 + tolerance
    low: int  #: smallest size wanted
    high: int  #: largest size wanted
    ordered_from: int  #: free columns from which a node is put in order
    ordered_to: int  #: free columns up to which it is


@lean_kernel
def emit(search: Search, token: int) -> None:
    """Write one step of the proof; beyond its room it is lost."""
    place = search.state[LENGTH]
    if place < search.proof.size:
        search.proof[place] = token
        search.state[LENGTH] = place + 1
    else:
        search.state[LOST] = 1


@lean_kernel
def close_leaf(search: Search, bound: float, n_fixed: int, n_columns: int) -> None:
    """Record a leaf: no subset of it is better than `bound`."""
    emit(search, -1)
    for size in range(max(n_fixed + 1, search.low), min(n_columns, search.high) + 1):
        search.lower[size] = min(search.lower[size], bound)


@lean_kernel
def note(search: Search, level: int, free: int, size: int, rss: float) -> None:
    """Keep the fixed columns and the first `free` others as the best subset of its size, if they are."""
    rss = max(rss, search.setting[FLOOR])
    if rss >= search.best[size]:
        return
    search.best[size] = rss
    k = search.frames[level, FIXED]
    for j in range(k):
        search.sets[size, j] = search.fixed[j]
    for j in range(free):
        search.sets[size, k + j] = search.names[level, j]
    if search.setting[PENALTY] < 0:
        search.limit[size] = rss / search.setting[SLACK]
        return
    if size < search.low or size > search.high:
        return
    n, penalty = search.setting[N_OBS], search.setting[PENALTY]
    for other in range(search.limit.size):
        reach = rss * np.exp((size - other) * penalty / n) / search.setting[SLACK]
        search.limit[other] = min(search.limit[other], reach)


@lean_kernel
def evaluate(search: Search, level: int) -> None:
    """Look at the leading subsets of a node."""
    m, k = search.frames[level, FREE], search.frames[level, FIXED]
    start = search.frames[level, FIRST]
    rss = search.rss[level]
    for j in range(m, 0, -1):
        note(search, level, j, k + j, rss)
        rss += search.arena[start + (j - 1) * (m + 1) + m] ** 2


@lean_kernel
def invert(search: Search, level: int) -> None:
    """Compute R⁻¹ of a node (upper triangular)."""
    m, start = search.frames[level, FREE], search.frames[level, FIRST]
    for i in range(m - 1, -1, -1):
        row = search.arena[start + i * (m + 1) : start + (i + 1) * (m + 1)]
        out = search.inverse[i]
        diagonal = row[i] if row[i] != 0.0 else 1e-300
        for j in range(i, m):
            out[j] = 0.0
        for h in range(i + 1, m):
            below = search.inverse[h]
            factor = row[h]
            for j in range(h, m):
                out[j] -= factor * below[j]
        for j in range(i + 1, m):
            out[j] /= diagonal
        out[i] = 1.0 / diagonal


@lean_kernel
def bound_drops(search: Search, level: int) -> None:
    """Compute RSS(S without s) for every free column s: RSS(S) + βₛ²/((RᵀR)⁻¹)ₛₛ."""
    m, start = search.frames[level, FREE], search.frames[level, FIRST]
    invert(search, level)
    for i in range(m):
        beta = 0.0
        square = 0.0
        for j in range(i, m):
            beta += search.inverse[i, j] * search.arena[start + j * (m + 1) + m]
            square += search.inverse[i, j] ** 2
        search.drops[level, i] = search.rss[level] + beta * beta / square


@lean_kernel
def put_in_order(search: Search, level: int) -> None:
    """Sort the free columns, those that are missed most first, and make the triangle one again by rotations."""
    m, start = search.frames[level, FREE], search.frames[level, FIRST]
    width = m + 1
    for a in range(1, m):  # insertion sort, each swap a permutation of two columns of the triangle
        b = a
        while b > 0 and search.drops[level, b] > search.drops[level, b - 1]:
            search.drops[level, b], search.drops[level, b - 1] = search.drops[level, b - 1], search.drops[level, b]
            search.names[level, b], search.names[level, b - 1] = search.names[level, b - 1], search.names[level, b]
            swap_columns(search.arena[start : start + m * width], width, b - 1)
            b -= 1


@lean_kernel
def swap_columns(triangle: Array, width: int, j: int) -> None:
    """Swap columns j and j + 1 of a triangle, and rotate rows j and j + 1 so that it stays one."""
    triangle[(j + 1) * width + j] = 0.0  # nobody writes below the diagonal
    for i in range(j + 2):
        place = i * width + j
        triangle[place], triangle[place + 1] = triangle[place + 1], triangle[place]
    first = triangle[j * width + j : (j + 1) * width]
    second = triangle[(j + 1) * width + j : (j + 2) * width]
    length = np.sqrt(first[0] ** 2 + second[0] ** 2)
    if length == 0.0:
        return
    c, s = first[0] / length, second[0] / length
    for i in range(first.size):
        x, y = first[i], second[i]
        first[i] = c * x + s * y
        second[i] = c * y - s * x
    second[0] = 0.0


@lean_kernel
def drop_column(search: Search, level: int, t: int) -> None:
    """Write child t of a node onto the next level."""
    m, k, start = search.frames[level, FREE], search.frames[level, FIXED], search.frames[level, FIRST]
    width, rest, child = m + 1, m - t - 1, level + 1
    begin = start + m * width
    carry = search.carry[: rest + 1]
    top = search.arena[start + t * width + t + 1 : start + (t + 1) * width]
    for i in range(rest + 1):
        carry[i] = top[i]
    for j in range(rest):
        row = t + 1 + j
        n = rest + 1 - j
        source = search.arena[start + row * width + row : start + (row + 1) * width]
        target = search.arena[begin + j * (rest + 1) + j : begin + (j + 1) * (rest + 1)]
        pushed = search.carry[j : rest + 1]
        length = np.sqrt(pushed[0] ** 2 + source[0] ** 2)
        c, s = 1.0, 0.0
        if length > 0.0:
            c = pushed[0] / length
            s = source[0] / length
        for i in range(n):
            x, y = pushed[i], source[i]
            target[i] = c * x + s * y
            pushed[i] = c * y - s * x
    search.rss[child] = search.rss[level] + carry[rest] ** 2
    search.frames[child, FIRST] = begin
    search.frames[child, FREE] = rest
    search.frames[child, FIXED] = k + t
    search.frames[child, TURN] = 0
    for j in range(t):
        search.fixed[k + j] = search.names[level, j]
    for j in range(rest):
        search.names[child, j] = search.names[level, t + 1 + j]


@lean_kernel
def enter(search: Search, level: int) -> None:
    """Look at a new node, and put it in order if it is large."""
    m = search.frames[level, FREE]
    if search.ordered_from <= m <= search.ordered_to:
        bound_drops(search, level)
        put_in_order(search, level)
    else:
        for j in range(m):
            search.drops[level, j] = search.rss[level]
    evaluate(search, level)


@lean_kernel
def walk(search: Search, budget: int) -> int:
    """Walk on until the tree is done (1) or about `budget` operations are spent (0)."""
    spent = 0
    state, frames = search.state, search.frames
    floor = search.setting[FLOOR]
    while state[DEPTH] >= 0:
        if spent > budget:
            return 0
        level = state[DEPTH]
        m, k, t = frames[level, FREE], frames[level, FIXED], frames[level, TURN]
        bound = max(search.rss[level], floor)
        first = max(k + t + 1, search.low)
        if t >= m - 1 or k + t >= search.high or k + m <= search.low or bound >= search.limit[first]:
            close_leaf(search, bound, k + t, k + m)
            state[DEPTH] -= 1
            continue
        frames[level, TURN] = t + 1
        emit(search, search.names[level, t])
        below = max(search.drops[level, t], floor)
        rest = m - t - 1
        if below >= search.limit[first]:
            close_leaf(search, below, k + t, k + m - 1)
            continue
        room = frames[level, FIRST] + m * (m + 1) + rest * (rest + 1)
        if room > search.arena.size or level + 1 >= frames.shape[0]:
            state[CUT] += 1
            close_leaf(search, below, k + t, k + m - 1)
            continue
        drop_column(search, level, t)
        enter(search, level + 1)
        state[NODES] += 1
        state[DEPTH] = level + 1
        spent += 4 * rest * rest + 50
        if search.ordered_from <= rest <= search.ordered_to:
            spent += 2 * rest * rest * rest
    return 1


def close_open_nodes(search: Any) -> None:
    """End a walk early: every open node becomes a leaf with its own bound."""
    while search.state[DEPTH] >= 0:
        level = search.state[DEPTH]
        m, k, t = search.frames[level, FREE], search.frames[level, FIXED], search.frames[level, TURN]
        close_leaf(search, max(search.rss[level], search.setting[FLOOR]), k + t, k + m)
        search.state[DEPTH] -= 1


@lean_kernel
def stagewise(gram: Array, correlation: Array, step: float, moves: NDArray[np.int32], n_steps: int) -> int:
    """Move the most correlated column by ±step until no move helps; return how many moves were made.

    IN gram (p, p) of unit-norm columns. IN/OUT correlation (p,). OUT moves: the column plus one, with the sign.
    """
    p = correlation.size
    for i in range(n_steps):
        best = 0
        for j in range(1, p):
            if abs(correlation[j]) > abs(correlation[best]):
                best = j
        if abs(correlation[best]) <= 0.5 * step:  # the move would raise the residual sum of squares
            return i
        sign = 1 if correlation[best] > 0 else -1
        moves[i] = sign * (best + 1)
        row = gram[best]
        for j in range(p):
            correlation[j] -= sign * step * row[j]
    return n_steps
