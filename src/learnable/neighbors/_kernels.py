"""Loops of the search for neighbours: distances in float64, the k best so far, and scans that call them.

A *key* orders the rows as their distances do, and costs less: Σ|qᵢ − xᵢ|^p for a Minkowski distance, in units `unit`
that keep the powers in range. The k best rows of a query are a heap of (key, row), the worst first; between equal keys
the lower row number is better. Absent entries are (inf, `NO_ROW`).

`power` says which key: 1, 2 or another p for Minkowski, `CHEBYSHEV` for the largest difference, `HAMMING` for the
number of coordinates that differ.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ..core import AnyArray
from ..core.jit import kernel

NO_ROW: Final = 2**62  # number of a neighbour that is not there

CHEBYSHEV: Final = 0.0  # the power that stands for the largest difference

HAMMING: Final = -1.0  # the power that stands for the share of different entries

_STRIP: Final = 64  # bounds that are compared at once

_RUN: Final = 256  # rows that are measured at once

_LEAST_SQUARE: Final = 1e-280  # below, squares may have lost digits to underflow


@kernel
def square_of(q: AnyArray, X: AnyArray, row: int, unit: float) -> float:
    """Return Σ(qᵢ − xᵢ·unit)² for a row of X; q is in units of 1/unit already.

    (The row is a number, not a view: views are counted references, which cost more than a short row.)
    """
    key = 0.0
    for i in range(q.size):
        gap = q[i] - X[row, i] * unit
        key += gap * gap
    return key


@kernel
def sparse_square_of(q_at: AnyArray, q: AnyArray, x_at: AnyArray, x: AnyArray, unit: float) -> float:
    """Return Σ(qᵢ − xᵢ·unit)² of two sparse rows with sorted column numbers."""
    key, a, b = 0.0, 0, 0
    while a < q_at.size or b < x_at.size:
        if b == x_at.size or (a < q_at.size and q_at[a] < x_at[b]):
            gap = q[a]
            a += 1
        elif a == q_at.size or x_at[b] < q_at[a]:
            gap = x[b] * unit
            b += 1
        else:
            gap = q[a] - x[b] * unit
            a += 1
            b += 1
        key += gap * gap
    return key


@kernel
def offer(keys: AnyArray, rows: AnyArray, key: float, row: int) -> None:
    """Put (key, row) in the place of the worst, if it is better."""
    if key > keys[0] or (key == keys[0] and row >= rows[0]):
        return
    place, size = 0, keys.size
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (keys[other] > keys[child] or (keys[other] == keys[child] and rows[other] > rows[child])):
            child = other
        if key > keys[child] or (key == keys[child] and row > rows[child]):
            break
        keys[place], rows[place] = keys[child], rows[child]
        place = child
    keys[place], rows[place] = key, row


@kernel
def sort_heaps(keys: AnyArray, rows: AnyArray) -> None:
    """Turn each heap into a list from the best to the worst."""
    for i in range(keys.shape[0]):
        for size in range(keys.shape[1] - 1, 0, -1):
            key, row = keys[i, 0], rows[i, 0]
            last_key, last_row = keys[i, size], rows[i, size]
            keys[i, size], rows[i, size] = np.inf, NO_ROW  # out of the heap: `offer` sees only the first `size`
            keys[i, 0], rows[i, 0] = np.inf, NO_ROW
            offer(keys[i, :size], rows[i, :size], last_key, last_row)
            keys[i, size], rows[i, size] = key, row


@kernel
def scan_bounds(
    bounds: AnyArray,
    first: int,
    order: AnyArray,
    X: AnyArray,
    Q: AnyArray,
    units: AnyArray,
    own: AnyArray,
    scale: AnyArray,
    floor: AnyArray,
    keys: AnyArray,
    rows: AnyArray,
) -> None:
    """Offer every row whose lower bound does not exclude it.

    IN  bounds (m, t) float32: at most ½‖q − x‖² in the units of the screening, for queries 0…m−1 and rows
        order[first…first + t − 1] of X; Q, units: the queries in units of their keys; own: a row that a query must
        not get; a key in units of the screening is key·scale + floor, rounded up.
    OUT keys, rows (m, k): the heaps.

    The scan compares bits: the level is not negative, and then floats are ordered as their bits, read as integers.
    """
    level = np.empty(1, np.float32)
    level_bits = level.view(np.int32)
    for i in range(bounds.shape[0]):
        row_bits, q, unit, skipped = bounds[i].view(np.int32), Q[i], units[i], own[i]
        heap_keys, heap_rows = keys[i], rows[i]
        level[0] = keys[i, 0] * scale[i] + floor[i]
        for start in range(0, row_bits.size, _STRIP):
            strip = row_bits[start : start + _STRIP]
            lowest = strip[0]
            for j in range(strip.size):
                lowest = min(lowest, strip[j])
            if lowest > level_bits[0]:
                continue
            for j in range(strip.size):
                if strip[j] > level_bits[0]:
                    continue
                row = order[first + start + j]
                if row == skipped:
                    continue
                key = square_of(q, X, row, unit)
                if key <= heap_keys[0]:
                    offer(heap_keys, heap_rows, key, row)
                    level[0] = heap_keys[0] * scale[i] + floor[i]


@kernel
def scan_sparse_bounds(
    bounds: AnyArray,
    first: int,
    indptr: AnyArray,
    indices: AnyArray,
    data: AnyArray,
    q_indptr: AnyArray,
    q_indices: AnyArray,
    q_data: AnyArray,
    units: AnyArray,
    own: AnyArray,
    scale: AnyArray,
    floor: AnyArray,
    keys: AnyArray,
    rows: AnyArray,
) -> None:
    """Do what `scan_bounds` does for sparse rows first…first + t − 1 and float64 bounds (t, m)."""
    for j in range(bounds.shape[0]):
        row = first + j
        for i in range(bounds.shape[1]):
            if bounds[j, i] > keys[i, 0] * scale[i] + floor[i] or row == own[i]:
                continue
            q_a, q_b, a, b = q_indptr[i], q_indptr[i + 1], indptr[row], indptr[row + 1]
            key = sparse_square_of(q_indices[q_a:q_b], q_data[q_a:q_b], indices[a:b], data[a:b], units[i])
            offer(keys[i], rows[i], key, row)


@kernel
def keys_of_run(
    q: AnyArray, columns: AnyArray, first: int, last: int, unit: float, power: float, out: AnyArray
) -> None:
    """Write the keys of rows first…last − 1, given by columns (d, n): a column at a time, many rows at once."""
    keys = out[: last - first]
    keys[:] = 0.0
    for i in range(q.size):
        column, at = columns[i, first:last], q[i]
        if power == 2.0:
            for j in range(keys.size):
                gap = at - column[j] * unit
                keys[j] += gap * gap
        elif power == 1.0:
            for j in range(keys.size):
                keys[j] += abs(at - column[j] * unit)
        elif power == CHEBYSHEV:
            for j in range(keys.size):
                keys[j] = max(keys[j], abs(at - column[j] * unit))
        elif power == HAMMING:
            for j in range(keys.size):
                keys[j] += at != column[j]
        else:
            for j in range(keys.size):
                keys[j] += abs(at - column[j] * unit) ** power


@kernel
def scan_rows(
    columns: AnyArray, Q: AnyArray, units: AnyArray, own: AnyArray, power: float, keys: AnyArray, rows: AnyArray
) -> None:
    """Offer every row of a table that is given by columns (d, n)."""
    n = columns.shape[1]
    run = np.empty(_RUN)
    for i in range(Q.shape[0]):
        q, unit, skipped, heap_keys, heap_rows = Q[i], units[i], own[i], keys[i], rows[i]
        for first in range(0, n, _RUN):
            last = min(n, first + _RUN)
            keys_of_run(q, columns, first, last, unit, power, run)
            for j in range(last - first):
                if run[j] <= heap_keys[0] and first + j != skipped:
                    offer(heap_keys, heap_rows, run[j], first + j)


@kernel
def scan_keys(given: AnyArray, first: int, own: AnyArray, keys: AnyArray, rows: AnyArray) -> None:
    """Offer rows first…first + t − 1, whose keys (m, t) are given."""
    for i in range(given.shape[0]):
        skipped, heap_keys, heap_rows = own[i], keys[i], rows[i]
        for j in range(given.shape[1]):
            if given[i, j] <= heap_keys[0] and first + j != skipped:
                offer(heap_keys, heap_rows, given[i, j], first + j)


@kernel
def present_distance(Q: AnyArray, i: int, X: AnyArray, j: int) -> float:
    """Return √(d/c·Σ(qᵢ − xᵢ)²) over the c of d columns that are missing in neither row; infinite if there are none."""
    total, largest, count = 0.0, 0.0, 0
    for column in range(X.shape[1]):
        gap = abs(Q[i, column] - X[j, column])
        if gap == gap:
            total += gap * gap
            largest = max(largest, gap)
            count += 1
    if count == 0:
        return np.inf
    share = X.shape[1] / count
    if (total > _LEAST_SQUARE and total < np.inf) or largest == 0.0 or largest == np.inf:
        return np.sqrt(total * share)
    total = 0.0
    for column in range(X.shape[1]):
        gap = (Q[i, column] - X[j, column]) / largest
        if gap == gap:
            total += gap * gap
    return largest * np.sqrt(total * share)


@kernel
def present_distances(Q: AnyArray, X: AnyArray, out: AnyArray) -> None:
    """Write the distances (m, n) of queries and rows that may hold NaN."""
    for i in range(Q.shape[0]):
        for j in range(X.shape[0]):
            out[i, j] = present_distance(Q, i, X, j)


@kernel
def squares_of_pairs(
    X: AnyArray, Q: AnyArray, units: AnyArray, queries: AnyArray, rows: AnyArray, out: AnyArray
) -> None:
    """Write the keys of the pairs (queries[j], rows[j])."""
    for j in range(rows.size):
        i = queries[j]
        out[j] = square_of(Q[i], X, rows[j], units[i])


@kernel
def sparse_squares_of_pairs(
    indptr: AnyArray,
    indices: AnyArray,
    data: AnyArray,
    q_indptr: AnyArray,
    q_indices: AnyArray,
    q_data: AnyArray,
    units: AnyArray,
    queries: AnyArray,
    rows: AnyArray,
    out: AnyArray,
) -> None:
    """Write the keys of the pairs (queries[j], rows[j]) of sparse rows."""
    for j in range(rows.size):
        i, row = queries[j], rows[j]
        q_a, q_b, a, b = q_indptr[i], q_indptr[i + 1], indptr[row], indptr[row + 1]
        out[j] = sparse_square_of(q_indices[q_a:q_b], q_data[q_a:q_b], indices[a:b], data[a:b], units[i])


# A k-d tree: rows in boxes, halved at the median of the widest side, and the walk that finds the nearest.
#
# The tree is complete: node i has the children 2i + 1 and 2i + 2, and holds rows order[starts[i]…ends[i]). A box is
# skipped only if its least key, with a margin for rounding, exceeds the worst of the k best so far; the walk is
# therefore
# exact.
#
# Reference: J. Friedman, J. Bentley and R. Finkel, An algorithm for finding best matches in logarithmic expected
# time,
# ACM Transactions on Mathematical Software 3 (1977), 209–226.


@kernel
def build_tree(X: AnyArray, order: AnyArray, starts: AnyArray, ends: AnyArray, low: AnyArray, high: AnyArray) -> None:
    """Order the rows and write each node's range and box; OUT order (n,), starts, ends (m,), low, high (m, d)."""
    n, d = X.shape
    n_nodes = starts.size
    for i in range(n):
        order[i] = i
    starts[0], ends[0] = 0, n
    for node in range(n_nodes):
        a, b = starts[node], ends[node]
        for c in range(d):
            low[node, c], high[node, c] = X[order[a], c], X[order[a], c]
        for i in range(a + 1, b):
            row = X[order[i]]
            for c in range(d):
                low[node, c], high[node, c] = min(low[node, c], row[c]), max(high[node, c], row[c])
        if 2 * node + 2 < n_nodes:
            widest = 0
            for c in range(d):
                if high[node, c] - low[node, c] > high[node, widest] - low[node, widest]:
                    widest = c
            middle = (a + b) // 2
            select_middle(X, order, a, b - 1, middle, widest)
            starts[2 * node + 1], ends[2 * node + 1] = a, middle
            starts[2 * node + 2], ends[2 * node + 2] = middle, b


@kernel
def select_middle(X: AnyArray, order: AnyArray, left: int, right: int, middle: int, column: int) -> None:
    """Reorder order[left…right] until the entry at `middle` is where sorting by the column would put it (Hoare)."""
    while left < right:
        pivot = X[order[(left + right) // 2], column]
        i, j = left, right
        while i <= j:
            while X[order[i], column] < pivot:
                i += 1
            while X[order[j], column] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@kernel
def key_of_box(q: AnyArray, low: AnyArray, high: AnyArray, node: int, unit: float, power: float) -> float:
    """Return the least key of a point in the box."""
    key = 0.0
    for i in range(q.size):
        gap = max(0.0, max(low[node, i] * unit - q[i], q[i] - high[node, i] * unit))
        if power == 2.0:
            key += gap * gap
        elif power == 1.0:
            key += gap
        elif power == CHEBYSHEV:
            key = max(key, gap)
        else:
            key += gap**power
    return key


@kernel
def walk_tree(
    columns: AnyArray,
    order: AnyArray,
    starts: AnyArray,
    ends: AnyArray,
    low: AnyArray,
    high: AnyArray,
    Q: AnyArray,
    units: AnyArray,
    own: AnyArray,
    power: float,
    margin: float,
    keys: AnyArray,
    rows: AnyArray,
) -> int:
    """Find the k best rows of every query; return how many rows were looked at.

    IN  columns: X[order].T; Q, units: the queries in units of their keys; own: a row that a query must not get;
        margin: one less the rounding of a key.
    OUT keys, rows (m, k): the heaps.
    """
    seen = 0
    n_nodes = starts.size
    nodes, least = np.empty(128, np.int64), np.empty(128)
    run = np.empty(np.max(ends[n_nodes // 2 :] - starts[n_nodes // 2 :]))
    for i in range(Q.shape[0]):
        q, unit, skipped, heap_keys, heap_rows = Q[i], units[i], own[i], keys[i], rows[i]
        nodes[0], least[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            node = nodes[depth]
            if least[depth] > heap_keys[0]:
                continue
            while 2 * node + 2 < n_nodes:
                a, b = 2 * node + 1, 2 * node + 2
                key_a = key_of_box(q, low, high, a, unit, power) * margin
                key_b = key_of_box(q, low, high, b, unit, power) * margin
                if key_b < key_a:
                    a, b, key_a, key_b = b, a, key_b, key_a
                if key_b <= heap_keys[0]:
                    nodes[depth], least[depth] = b, key_b
                    depth += 1
                node = a
                if key_a > heap_keys[0]:
                    break
            else:
                seen += ends[node] - starts[node]
                first, last = starts[node], ends[node]
                keys_of_run(q, columns, first, last, unit, power, run)
                for j in range(last - first):
                    if run[j] <= heap_keys[0] and order[first + j] != skipped:
                        offer(heap_keys, heap_rows, run[j], order[first + j])
    return seen
