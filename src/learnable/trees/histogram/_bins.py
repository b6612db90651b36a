"""Kernels of `bins`: values become bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.jit import kernel, lean_kernel

Bytes = NDArray[np.uint8]

_BLOCK = 256  # rows of a column that are searched together
_TRIES = 200  # bundles that a column is tried with


@lean_kernel
def find_bin(x: Any, edges: Any) -> Any:
    """Return how many of 255 ascending edges are below x, by eight halvings without a branch."""
    at = np.uint64(0)
    for k in range(7, -1, -1):
        step = np.uint64(1 << k)
        at += step if x > edges[at + step - np.uint64(1)] else np.uint64(0)
    return at


@lean_kernel
def level_code(x: Any, levels: Any, missing: Any) -> Any:
    """Return the bin of level x, that of missing values if it was not seen."""
    if x >= 0 and x < levels.size:
        found = np.int64(levels[np.int64(x)])
        return found if found >= 0 else missing
    return missing


@kernel
def bin_rows(
    X: Any, lo: Any, edges: Any, n_bins: Any, categorical: Any, level_start: Any, level_bin: Any, position: Any,
    rows: Bytes, columns: Bytes,
) -> None:  # fmt: skip
    """Write the codes of rows lo, lo + 1, …, given as X, to both copies of the table."""
    code = np.empty(_BLOCK, np.uint8)
    for begin in range(0, X.shape[0], _BLOCK):
        part = X[begin : begin + _BLOCK]
        out = rows[lo + begin : lo + begin + _BLOCK]
        m = part.shape[0]
        for j in range(X.shape[1]):
            own, missing = edges[j], n_bins[j]
            if categorical[j]:
                levels = level_bin[level_start[j] : level_start[j + 1]]
                for r in range(m):
                    code[r] = level_code(part[r, j], levels, missing)
            else:
                for r in range(m):
                    x = part[r, j]
                    code[r] = np.uint8(find_bin(x, own)) if x == x else np.uint8(missing)
            to = columns[j, lo + begin : lo + begin + m]
            at = position[j]
            for r in range(m):
                to[r] = code[r]
                out[r, at] = code[r]


@lean_kernel
def code_entries(
    values: Any, rows: Any, edges: Any, levels: Any, categorical: bool, n_bins: Any, first: Any, default: Any,
    column: Bytes,
) -> None:  # fmt: skip
    """Write the codes of the stored entries of one column of a sparse table."""
    for i in range(values.size):
        x = values[i]
        if categorical:
            b = np.int64(level_code(x, levels, n_bins))
        else:
            b = np.int64(find_bin(x, edges)) if x == x else np.int64(n_bins)
        if default >= 0:
            if b == default:
                continue
            b -= 1 if b > default else 0
        column[rows[i]] = np.uint8(first + b)


@lean_kernel
def transpose(columns: Bytes, position: Any, lo: Any, hi: Any, rows: Bytes) -> None:
    """Write rows lo … hi − 1 from the columns."""
    for begin in range(lo, hi, 64):
        end = min(hi, begin + 64)
        for s in range(columns.shape[0]):
            at = position[s]
            for r in range(begin, end):
                rows[r, at] = columns[s, r]


@lean_kernel
def _is_free(rows: Any, taken: Bytes) -> bool:
    """Tell whether none of the rows has its bit set."""
    i = 0
    while i < rows.size and not taken[rows[i] >> 3] >> np.uint8(rows[i] & 7) & np.uint8(1):
        i += 1
    return i == rows.size


@lean_kernel
def bundle(indptr: Any, indices: Any, order: Any, size: Any, taken: Bytes, codes: Any, stored: Any, first: Any) -> None:
    """Put each column, the densest first, into the first bundle that has codes left and no row in common with it."""
    n_bundles = 0
    for k in range(order.size):
        j = order[k]
        rows = indices[indptr[j] : indptr[j + 1]]
        found = n_bundles
        for b in range(max(0, n_bundles - _TRIES), n_bundles):
            if codes[b] + size[j] <= 256 and _is_free(rows, taken[b]):
                found = b
                break
        if found == n_bundles:
            codes[found] = 1  # code 0: all columns are zero
            n_bundles += 1
        own = taken[found]
        for i in range(rows.size):
            own[rows[i] >> 3] |= np.uint8(1) << np.uint8(rows[i] & 7)
        stored[j], first[j] = found, codes[found]
        codes[found] += size[j]
