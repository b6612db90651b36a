"""Bins for the levels of a category: one each or, where there are more levels than bins, one for levels that are alike.

With B bins, the B/2 most frequent levels keep one each. The others are put in the order of their mean target (shrunk
towards the mean of all rows, because few rows say little), and neighbours share a bin until it has its part of the
rows. Of several classes the first principal direction of the classes' shares gives the order (Coppersmith, Hong and
Hosking, Partitioning nominal attributes in decision trees, 1999), which for two classes is the share of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .columns import MOST_CATEGORIES

Array = NDArray[np.float64]

_OWN_SHARE = 10.0  # rows of the whole table's kind that a level is thought to have besides its own


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
    x = np.asarray(values, np.float64)
    known = ~np.isnan(x)
    given = x[known]
    if given.size and (given.min() < 0 or given.max() >= MOST_CATEGORIES or (given != np.trunc(given)).any()):
        raise DataError(
            f"{who} is categorical, so its values must be codes 0, 1, … {MOST_CATEGORIES - 1}; got values from "
            f"{given.min():g} to {given.max():g}. Encode it, for example with sklearn.preprocessing.OrdinalEncoder."
        )
    code = given.astype(np.int64)
    counts = np.bincount(code)
    bins = np.full(len(counts), -1, np.int16)
    seen = np.flatnonzero(counts)
    if len(seen) <= max_bins:
        bins[seen] = np.arange(len(seen))
        return bins
    own = max_bins - 1 if target is None else max_bins // 2
    by_count = seen[np.argsort(-counts[seen], kind="stable")]
    frequent, rare = np.sort(by_count[:own]), np.sort(by_count[own:])
    bins[frequent] = np.arange(own)
    bins[rare] = own
    if target is not None:
        rare = rare[np.argsort(_place(code, target[known], counts)[rare], kind="stable")]
        before = np.cumsum(counts[rare]) - counts[rare]
        bins[rare] = own + before * (max_bins - own) // counts[rare].sum()
    return bins


def _place(code: NDArray[np.int64], target: NDArray[Any], counts: NDArray[np.int64]) -> Array:
    """Return the place of every level on the line along which the levels' targets differ most."""
    columns = [target] if target.dtype.kind == "f" else [target == c for c in np.unique(target)]
    sums = np.stack([np.bincount(code, column, len(counts)) for column in columns], axis=1)
    scale = np.abs(sums).max()
    sums = sums / scale if scale > 0 else sums  # squares of very large sums would not be numbers
    mean = sums.sum(axis=0) / counts.sum()
    centred = (sums + _OWN_SHARE * mean) / (counts + _OWN_SHARE)[:, None] - mean
    if centred.shape[1] == 1:
        return np.asarray(centred[:, 0])
    _, vectors = np.linalg.eigh((centred * counts[:, None]).T @ centred)
    return np.asarray(centred @ vectors[:, -1])
