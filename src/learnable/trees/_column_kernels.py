"""Kernels of `columns`: ranks of sorted values, numbers of bins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel


@kernel
def rank_sorted(
    x: NDArray[Any], order: NDArray[np.int64], codes: NDArray[np.uint32], distinct: NDArray[np.float64]
) -> int:
    """Write the rank of each value; NaN, sorted last, gets one rank above all. Return the number of values."""
    n_codes = 0
    last = 0.0
    for i in range(order.size):
        v = np.float64(x[order[i]])
        if v != v:
            for k in range(i, order.size):
                codes[order[k]] = np.uint32(n_codes)
            return n_codes
        if i == 0 or v != last:
            distinct[n_codes] = v
            n_codes += 1
            last = v
        codes[order[i]] = np.uint32(n_codes - 1)
    return n_codes


@kernel
def bin_column(x: NDArray[Any], edges: NDArray[np.float64], n_bins: int, codes: NDArray[np.uint8]) -> None:
    """Write the number of edges below each value; NaN gets `n_bins`."""
    n = edges.size
    for i in range(x.size):
        v = np.float64(x[i])
        if v != v:
            codes[i] = np.uint8(n_bins)
            continue
        below, size = 0, n
        while size > 0:
            half = size >> 1
            go = edges[below + half] < v
            below = below + half + 1 if go else below
            size = size - half - 1 if go else half
        codes[i] = np.uint8(below)
