"""Kernels of `layout`: rows walk down the trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]


@kernel
def goes_left(x: float, i: int, threshold: Any, missing_left: Any, category: Any, bits: Any) -> bool:
    """Tell whether value x goes left at node i."""
    if category[i] < 0:
        return x <= threshold[i] or (x != x and missing_left[i] != 0)
    at = category[i]
    n_words = np.int64(bits[at])
    if not (x >= 0.0 and x < 32.0 * n_words):  # also when it is missing
        return missing_left[i] != 0
    code = np.int64(x)
    return (bits[at + 1 + (code >> 5)] >> np.uint32(code & 31)) & np.uint32(1) != 0


@kernel
def _leaf_dense(X: Any, r: int, first: int, nodes: Any) -> int:
    feature, threshold, left, right, missing_left, category, bits = nodes
    i = first
    while feature[i] >= 0:
        x = np.float64(X[r, feature[i]])
        i = first + (left[i] if goes_left(x, i, threshold, missing_left, category, bits) else right[i])
    return i


@kernel
def _leaf_sparse(data: Any, indices: Any, begin: int, end: int, first: int, nodes: Any) -> int:
    feature, threshold, left, right, missing_left, category, bits = nodes
    i = first
    while feature[i] >= 0:
        low, high = begin, end
        while low < high:
            middle = (low + high) >> 1
            if indices[middle] < feature[i]:
                low = middle + 1
            else:
                high = middle
        x = np.float64(data[low]) if low < end and indices[low] == feature[i] else 0.0
        i = first + (left[i] if goes_left(x, i, threshold, missing_left, category, bits) else right[i])
    return i


@kernel
def apply_dense(
    X: Any,
    lo: int,
    hi: int,
    start: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    category: Any,
    bits: Any,
    value: Array,
    out: NDArray[np.int32],
) -> None:
    """Write the leaf of rows lo … hi − 1 in every tree, counted within the tree."""
    nodes = (feature, threshold, left, right, missing_left, category, bits)
    for t in range(start.size - 1):
        for r in range(lo, hi):
            out[r, t] = _leaf_dense(X, r, start[t], nodes) - start[t]


@kernel
def apply_sparse(
    data: Any,
    indices: Any,
    indptr: Any,
    lo: int,
    hi: int,
    start: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    category: Any,
    bits: Any,
    value: Array,
    out: NDArray[np.int32],
) -> None:
    """Write the leaf of CSR rows lo … hi − 1 in every tree, counted within the tree."""
    nodes = (feature, threshold, left, right, missing_left, category, bits)
    for t in range(start.size - 1):
        for r in range(lo, hi):
            out[r, t] = _leaf_sparse(data, indices, indptr[r], indptr[r + 1], start[t], nodes) - start[t]


@kernel
def sum_dense(
    X: Any,
    lo: int,
    hi: int,
    start: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    category: Any,
    bits: Any,
    value: Array,
    out: Array,
) -> None:
    """Add the leaf values of every tree to rows lo … hi − 1."""
    nodes = (feature, threshold, left, right, missing_left, category, bits)
    for t in range(start.size - 1):
        for r in range(lo, hi):
            i = _leaf_dense(X, r, start[t], nodes)
            for k in range(value.shape[1]):
                out[r, k] += value[i, k]


@kernel
def sum_sparse(
    data: Any,
    indices: Any,
    indptr: Any,
    lo: int,
    hi: int,
    start: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    category: Any,
    bits: Any,
    value: Array,
    out: Array,
) -> None:
    """Add the leaf values of every tree to CSR rows lo … hi − 1."""
    nodes = (feature, threshold, left, right, missing_left, category, bits)
    for t in range(start.size - 1):
        for r in range(lo, hi):
            i = _leaf_sparse(data, indices, indptr[r], indptr[r + 1], start[t], nodes)
            for k in range(value.shape[1]):
                out[r, k] += value[i, k]


@kernel
def mark_paths(leaves: Any, start: Any, parent: Any, depth: Any, indptr: Any, indices: Any) -> None:
    """Write the nodes that each row passes, ascending."""
    for r in range(leaves.shape[0]):
        at = indptr[r]
        for t in range(leaves.shape[1]):
            i = np.int64(start[t] + leaves[r, t])
            n = depth[i] + 1
            for k in range(n):
                indices[at + n - 1 - k] = i
                i = parent[i]
            at += n
