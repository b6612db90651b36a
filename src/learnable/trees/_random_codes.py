"""Kernels of the random splitter: one byte a value in place of eight, while a node has many rows.

The code of a value is the number of edges of its column below it. All rows with a code below that of a threshold are
left of it, all with one above are right; only where the codes are equal are the values themselves read. So the sides
are exact, whatever the edges are, and a large node reads an eighth of the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel
from ._sorting import Int

Array = NDArray[np.float64]
Codes = NDArray[np.uint8]

_CHUNK = 64  # rows that are encoded at a time


@lean_kernel
def code_of(edges: Array, x: float) -> Int:
    """Return how many of 256 ascending edges, the last ones infinite, lie below x."""
    below = np.int64(0)
    for step in (128, 64, 32, 16, 8, 4, 2, 1):
        below += step if edges[below + step - 1] < x else 0
    return below


@lean_kernel
def encode(X: Array, edges: Array, codes: Codes, low: Array, high: Array) -> None:
    """Write the codes of all values, and the smallest and largest value of each code."""
    n, d = X.shape
    for j in range(d):
        for c in range(256):
            low[j, c], high[j, c] = np.inf, -np.inf
    for first in range(0, n, _CHUNK):
        last = min(n, first + _CHUNK)
        for j in range(d):
            own, least, most, out = edges[j], low[j], high[j], codes[j]
            for i in range(first, last):
                x = X[i, j]
                c = code_of(own, x)
                out[i] = np.uint8(c)
                least[c] = min(least[c], x)
                most[c] = max(most[c], x)


@lean_kernel
def gather_codes(table: Any, index: NDArray[np.int32], column: Int, out: Codes) -> tuple[float, float]:
    """Copy the codes of a node's rows; return their smallest and largest value."""
    codes = table.codes[column]
    least, most = np.uint8(255), np.uint8(0)
    for i in range(index.size):
        c = codes[index[i]]
        out[i] = c
        least = min(least, c)
        most = max(most, c)
    low, high = table.high[column, least], table.low[column, most]
    if table.low[column, least] < low:
        for i in range(index.size):
            if out[i] == least:
                low = min(low, table.X[index[i], column])
    if table.high[column, most] > high:
        for i in range(index.size):
            if out[i] == most:
                high = max(high, table.X[index[i], column])
    return low, high


@lean_kernel
def mark_sides(table: Any, index: NDArray[np.int32], column: Int, codes: Codes, threshold: float, sides: Array) -> None:
    """Write 0 for the rows up to the threshold, 1 for the others."""
    cut = code_of(table.edges[column], threshold)
    own = codes[: index.size]
    first_right = cut + 1 if table.high[column, cut] <= threshold else cut
    for i in range(own.size):
        sides[i] = 1.0 if np.int64(own[i]) >= first_right else 0.0
    if table.low[column, cut] <= threshold < table.high[column, cut]:
        for i in range(own.size):
            if np.int64(own[i]) == cut:
                sides[i] = 1.0 if table.X[index[i], column] > threshold else 0.0
