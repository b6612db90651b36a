"""Kernels of `predictor`: 256 rows become bytes and pass all trees, one node at a time, without a branch.

For each row a word has one bit for each leaf of a tree, from left to right. A node at which the row goes right clears
the bits of the leaves on its left; when all nodes have been asked, in any order, the lowest bit left is the row's leaf
(Lucchese et al., QuickScorer, SIGIR 2015). All rows ask the same node together, which the compiler does in vectors.

With c = (code of the row + bias) mod 256 a row goes right when c >= cut. A missing value has the code 255, which a bias
of one turns to 0: left.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import ieee_kernel
from ._bin_kernels import find_bin

Int = Any
MISSING: Final = 255
BLOCK: Final = 256


@ieee_kernel
def encode(X: Any, column: Any, edges: Any, codes: Any) -> None:
    """Write how many of its column's thresholds are below each value, column by column."""
    for k in range(column.size):
        own, line, j = edges[k], codes[k], column[k]
        for r in range(X.shape[0]):
            x = X[r, j]
            line[r] = np.uint8(find_bin(x, own)) if x == x else np.uint8(MISSING)


@ieee_kernel
def ask(line: Any, cut: Any, bias: Any, mask: Any, words: Any) -> None:
    """Clear the bits outside the mask of those rows that go right at a node."""
    every = ~(mask ^ mask)
    for r in range(BLOCK):
        words[r] &= every if np.uint8(line[r] + bias) < cut else mask


@ieee_kernel
def sum_block(
    X: Any, column: Any, edges: Any, start: Any, place: Any, cut: Any, bias: Any, mask: Any, leaf_start: Any,
    value: Any, codes: Any, words: Any, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add the leaf values of every tree to at most 256 rows of `out`."""
    n = X.shape[0]
    encode(X, column, edges, codes)
    for t in range(start.size - 1):
        for r in range(BLOCK):
            words[r] = ~np.uint64(0)
        for q in range(start[t], start[t + 1]):
            ask(codes[place[q]], cut[q], bias[q], mask[q], words)
        values = value[leaf_start[t] : leaf_start[t + 1]]
        for r in range(n):
            w = np.uint64(words[r])
            low = w & (~w + np.uint64(1))
            exponent = np.float64(low).view(np.int64) >> np.int64(52)  # the place of the bit, plus 1023
            for c in range(value.shape[1]):
                out[r, c] += values[exponent - 1023, c]
