"""A k-d tree: rows in boxes, halved at the median of the widest side, and the walk that finds the nearest.

The tree is complete: node i has the children 2i + 1 and 2i + 2, and holds rows order[starts[i]…ends[i]). A box is
skipped only if its least key, with a margin for rounding, exceeds the worst of the k best so far; the walk is therefore
exact.

Reference: J. Friedman, J. Bentley and R. Finkel, An algorithm for finding best matches in logarithmic expected time,
ACM Transactions on Mathematical Software 3 (1977), 209–226.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel
from ._kernels import CHEBYSHEV, keys_of_run, offer

Array = NDArray[Any]


@kernel
def build_tree(X: Array, order: Array, starts: Array, ends: Array, low: Array, high: Array) -> None:
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
def select_middle(X: Array, order: Array, left: int, right: int, middle: int, column: int) -> None:
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
def key_of_box(q: Array, low: Array, high: Array, node: int, unit: float, power: float) -> float:
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
    columns: Array,
    order: Array,
    starts: Array,
    ends: Array,
    low: Array,
    high: Array,
    Q: Array,
    units: Array,
    own: Array,
    power: float,
    margin: float,
    keys: Array,
    rows: Array,
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
