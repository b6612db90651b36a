"""Edges between the bins of a column of numbers: values of large weight have bins of their own.

With equal shares alone, a column that is zero in nine of ten rows would spend nine of ten bins on that one value. So a
value that has the weight of a bin or more gets its own, and the other bins share what is left, as in LightGBM (Ke et
al., NIPS 2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import midpoints

Array = NDArray[np.float64]


def bin_edges(values: NDArray[Any], weight: Array | None, max_bins: int) -> Array:
    """Return the edges between at most `max_bins` bins; NaN and rows without weight do not count.

    Examples
    --------
    >>> bin_edges(np.array([0.0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), None, 3).tolist()
    [0.5, 2.5]
    """
    present = ~np.isnan(values) if weight is None else ~np.isnan(values) & (weight > 0)
    x = values if present.all() else values[present]
    if weight is None:
        x = np.sort(x)
        cumulated = None
    else:
        order = np.argsort(x, kind="stable")
        x, cumulated = x[order], np.cumsum(weight[present][order])
    if not len(x):
        return np.zeros(0)
    new = np.r_[True, x[1:] != x[:-1]]
    distinct = x[new].astype(np.float64)
    if len(distinct) <= max_bins:
        return midpoints(distinct[:-1], distinct[1:])
    run = -(-len(x) // max_bins)  # so many equal values in a row fill a bin
    if cumulated is not None or (x[run - 1 :] == x[: len(x) - run + 1]).any():
        ends = np.r_[np.flatnonzero(new)[1:], len(x)]
        total = ends.astype(np.float64) if cumulated is None else cumulated[ends - 1]
        mass = np.diff(total, prepend=0.0)
        heavy = mass >= total[-1] / max_bins
        if heavy.any():
            last = _last_of_bins(mass, heavy, max_bins)
            return midpoints(distinct[last], distinct[last + 1])
    share = np.linspace(0, 1, max_bins + 1)[1:-1]
    if cumulated is None:
        at = (share * len(x)).astype(np.int64)
    else:
        at = np.minimum(np.searchsorted(cumulated, share * cumulated[-1], side="right"), len(x) - 1)
    above = np.cumsum(new)[at] - 1  # numbers of the distinct values that begin the bins
    above = np.unique(above[above > 0])
    return midpoints(distinct[above - 1], distinct[above])


def _last_of_bins(mass: Array, heavy: NDArray[np.bool_], max_bins: int) -> NDArray[np.int64]:
    """Return the numbers of the distinct values that end a bin, the last bin excepted.

    A bin ends when it has its share of the light weight that is left, at a heavy value, or before one if it is half
    full by then.
    """
    light = np.cumsum(np.where(heavy, 0.0, mass))
    heavy_at = np.flatnonzero(heavy).tolist()
    last: list[int] = []
    first, taken, passed = 0, 0.0, 0
    while len(last) < max_bins - 1 and first < len(mass):
        bins_left = max_bins - len(last) - (len(heavy_at) - passed)
        share = (light[-1] - taken) / max(1, bins_left)
        # A thousandth less: sums of shares must not miss a value by rounding.
        end = max(first, int(np.searchsorted(light, taken + 0.999 * share)))
        if passed < len(heavy_at) and heavy_at[passed] <= end:
            at = heavy_at[passed]
            before = float(light[at]) - taken
            if at > first and before >= 0.5 * share:
                end = at - 1
            else:
                end = at
                passed += 1
        if end >= len(mass) - 1:
            break
        last.append(end)
        first, taken = end + 1, float(light[end])
    return np.array(last, dtype=np.int64)
