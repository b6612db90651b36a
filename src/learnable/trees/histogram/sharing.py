"""What shares a code: levels of a category a bin, columns of a sparse table a byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array, DataError, NDArray
from ...core.jit import lean_kernel
from ...data.any_order import sums_by_group

# --------------------------------------------------------------------------------------------------------------------
# Bins for the levels of a category: one each or, where there are more levels than bins, one for levels that are
# alike.
#
# With B bins, the B/2 most frequent levels keep one each. The others are put in the order of their mean target
# (shrunk towards the mean of all rows, because few rows say little), and neighbours share a bin until it has its part
# of the rows. Of several classes the first principal direction of the classes' shares gives the order (Coppersmith,
# Hong and Hosking, Partitioning nominal attributes in decision trees, 1999), which for two classes is the share of
# one.


Bytes = NDArray[np.uint8]

MOST_CATEGORIES = 65_536  # codes that fit into 16 bits
_OWN_SHARE = 10.0  # rows of the whole table's kind that a level is thought to have besides its own


def category_codes(values: NDArray[Any], who: str) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which values are there, and their codes; DataError unless they are whole numbers from 0 to 65535."""
    x = np.asarray(values, np.float64)
    known = ~np.isnan(x)
    given = x[known]
    if given.size and (given.min() < 0 or given.max() >= MOST_CATEGORIES or (given != np.trunc(given)).any()):
        raise DataError(
            f"{who} is categorical, so its values must be codes 0, 1, … {MOST_CATEGORIES - 1}; got values from "
            f"{given.min():g} to {given.max():g}. Encode it, for example with sklearn.preprocessing.OrdinalEncoder."
        )
    return known, given.astype(np.int64)


def level_bins(values: NDArray[Any], target: NDArray[Any] | None, max_bins: int, who: str) -> NDArray[np.int16]:
    """Return the bin of each level, −1 for levels that were not seen.

    Parameters
    ----------
    values : (n,) float array
        Codes of the levels; NaN is missing.
    target : (n,) numbers, class codes (integers), or None
        What levels should be alike in; None: the most frequent levels have a bin each and the rest share one.
    max_bins : int
        Most bins.
    who : str
        In whose name errors speak.
    """
    known, code = category_codes(values, who)
    counts = np.bincount(code)
    crowded = len(np.flatnonzero(counts)) > max_bins
    sums = None if target is None or not crowded else target_sums(code, target[known], len(counts))
    return bins_of_levels(counts, sums, max_bins)


def bins_of_levels(counts: NDArray[np.int64], sums: Array | None, max_bins: int) -> NDArray[np.int16]:
    """Return the bin of each level from the number of its rows and, if there are too many, from its target's sums."""
    bins = np.full(len(counts), -1, np.int16)
    seen = np.flatnonzero(counts)
    if len(seen) <= max_bins:
        bins[seen] = np.arange(len(seen))
        return bins
    own = max_bins - 1 if sums is None else max_bins // 2
    by_count = seen[np.argsort(-counts[seen], kind="stable")]
    frequent, rare = np.sort(by_count[:own]), np.sort(by_count[own:])
    bins[frequent] = np.arange(own)
    bins[rare] = own
    if sums is not None:
        rare = rare[np.argsort(_place(sums, counts)[rare], kind="stable")]
        before = np.cumsum(counts[rare]) - counts[rare]
        bins[rare] = own + before * (max_bins - own) // counts[rare].sum()
    return bins


def target_sums(code: NDArray[np.int64], target: NDArray[Any], n_levels: int) -> Array:
    """Return Σy of each level, (levels, 1), or how many of its rows each class has, (levels, K)."""
    if target.dtype.kind == "f":
        return sums_by_group(code, target, n_levels)[:, None]
    return np.stack([np.bincount(code, target == c, n_levels) for c in np.unique(target)], axis=1)


def _place(sums: Array, counts: NDArray[np.int64]) -> Array:
    """Return the place of every level on the line along which the levels' targets differ most."""
    scale = np.abs(sums).max()
    sums = sums / scale if scale > 0 else sums  # squares of very large sums would not be numbers
    mean = sums.sum(axis=0) / counts.sum()
    centred = (sums + _OWN_SHARE * mean) / (counts + _OWN_SHARE)[:, None] - mean
    if centred.shape[1] == 1:
        return np.asarray(centred[:, 0])
    _, vectors = np.linalg.eigh((centred * counts[:, None]).T @ centred)
    return np.asarray(centred @ vectors[:, -1])


# --------------------------------------------------------------------------------------------------------------------
# Columns that are never non-zero in the same row share a byte.


_TRIES = 200  # bundles that a column is tried with


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
