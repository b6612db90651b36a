"""The kernel of CV+: one order statistic of many shifted, sorted lists, without forming their union."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@kernel
def select_shifted(shifts: Array, values: Array, ends: Index, rank: int, low: Index, high: Index, out: Array) -> None:
    """OUT out (m,): the rank-th smallest (from 1) of all shifts[i, k] + v, v in fold k. O(K² log² n) a row.

    IN shifts (m, K); values (n,), sorted within each fold; ends (K + 1,), where folds begin and end. low, high (K,):
    work space; the answer is always among values[low[k]:high[k]] of some fold.
    """
    m, n_folds = shifts.shape
    for i in range(m):
        for k in range(n_folds):
            low[k], high[k] = ends[k], ends[k + 1]
        while True:
            widest = 0
            for k in range(1, n_folds):
                if high[k] - low[k] > high[widest] - low[widest]:
                    widest = k
            pivot = shifts[i, widest] + values[(low[widest] + high[widest]) // 2]
            below, up_to = 0, 0
            for k in range(n_folds):
                below += first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, False) - ends[k]
                up_to += first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, True) - ends[k]
            if below < rank <= up_to:
                out[i] = pivot
                break
            for k in range(n_folds):
                if rank <= below:
                    high[k] = min(high[k], first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, False))
                else:
                    low[k] = max(low[k], first_above(values, ends[k], ends[k + 1], shifts[i, k], pivot, True))


@kernel
def first_above(values: Array, begin: int, end: int, shift: float, pivot: float, skip_equal: bool) -> int:
    """Return the first place in values[begin:end], sorted, where shift + v exceeds the pivot (or reaches it)."""
    while begin < end:
        middle = (begin + end) // 2
        v = shift + values[middle]
        if v < pivot or (skip_equal and v == pivot):
            begin = middle + 1
        else:
            end = middle
    return begin
