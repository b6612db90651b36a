"""Kernels of forests: rows grouped by leaf, weighted quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array, NDArray
from ...core.jit import kernel


@kernel
def group_by_leaf(leaf_of_row: NDArray[np.int32], rows: Any, counts: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    """Write the rows of each leaf, leaf by leaf; counts (nodes + 1 zeros) is scratch."""
    for k in range(rows.size):
        counts[leaf_of_row[rows[k]] + 1] += 1
    for i in range(1, counts.size):
        counts[i] += counts[i - 1]
    for k in range(rows.size):
        leaf = leaf_of_row[rows[k]]
        out[counts[leaf]] = rows[k]
        counts[leaf] += 1


@kernel
def leaf_quantiles(
    leaves: NDArray[np.int32],
    start: NDArray[np.int64],
    begin: NDArray[np.int64],
    rows: NDArray[np.int32],
    weight: Array,
    rank: NDArray[np.int32],
    y_sorted: Array,
    levels: Array,
    lo: int,
    hi: int,
    out: Array,
) -> None:
    """Write the quantiles of the targets in the leaves of rows lo … hi − 1.

    Node i of all trees holds the training rows rows[begin[i]:begin[i + 1]]; levels ascend. The mass of a target is
    its weight in its leaf divided by the leaf's weight, summed over the trees.
    """
    mass = np.zeros(rank.size)
    touched = np.empty(rank.size, np.int32)
    for r in range(lo, hi):
        n_touched = 0
        whole = 0.0
        for t in range(start.size - 1):
            i = start[t] + leaves[r, t]
            total = 0.0
            for e in range(begin[i], begin[i + 1]):
                total += weight[rows[e]]
            for e in range(begin[i], begin[i + 1]):
                place = rank[rows[e]]
                if mass[place] == 0.0:
                    touched[n_touched] = place
                    n_touched += 1
                mass[place] += weight[rows[e]] / total
            whole += 1.0
        order = np.sort(touched[:n_touched])
        below, at = 0.0, 0
        for q in range(levels.size):
            wanted = levels[q] * whole * (1.0 - 1e-12)
            while at < n_touched - 1 and below + mass[order[at]] < wanted:
                below += mass[order[at]]
                at += 1
            out[r, q] = y_sorted[order[at]]
        for k in range(n_touched):
            mass[order[k]] = 0.0


# --------------------------------------------------------------------------------------------------------------------
# Kernels of `shards`: rows of a part of the table, in the nodes of a tree that is still growing.


@kernel
def place_rows(
    codes: NDArray[np.uint8], n_codes: NDArray[np.int64], counts: NDArray[np.int64], feature: Any, cut: Any,
    missing_left: Any, left: Any, right: Any, node: NDArray[np.int32],
) -> None:  # fmt: skip
    """OUT node: where each row is so far; −1 for rows that are not in the bag."""
    for i in range(counts.size):
        at = np.int32(-1)
        if counts[i] > 0:
            at = np.int32(0)
            while left[at] >= 0:
                j = feature[at]
                c = np.int64(codes[j, i])
                goes_left = missing_left[at] != 0 if c == n_codes[j] else c <= cut[at]
                at = left[at] if goes_left else right[at]
        node[i] = at


@kernel
def count_codes(
    codes: NDArray[np.uint8], node: NDArray[np.int32], slot: NDArray[np.int32], counts: NDArray[np.int64],
    labels: NDArray[np.int64], rows: NDArray[np.int64], sums: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add the rows of the nodes that have a slot: rows[slot, code] += 1, sums[slot, code, class] += count."""
    for i in range(node.size):
        if node[i] >= 0:
            s = slot[node[i]]
            if s >= 0:
                rows[s, codes[i]] += 1
                sums[s, codes[i], labels[i]] += counts[i]
