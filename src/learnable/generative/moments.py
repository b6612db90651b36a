r"""Moments of the columns within each class, in one pass over the blocks; entries that are NaN are left out.

    n_kj = Σ w,   x̄_kj = Σ w x / n_kj,   S_kj = Σ w (x − x̄_kj)²,   over the rows of class k with a value in column j

Rows are moved by a provisional mean of their class, so that nothing cancels; if the first rows were not like the
others, there is a second pass about the true means. Two such sums merge by the formula of Chan, Golub and
LeVeque (1979).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..data.blocks import Block, map_reduce
from ._kernels import add_moments, add_observed_moments
from .base import EPS, codes_of, weights_of

Array = NDArray[np.float64]

FIRST_ROWS = 1024  # enough for provisional means
MOST_CANCELLATION = 1e4  # of n x̄² against S that is let pass


class ClassMoments(NamedTuple):
    """Sums over the rows of each class."""

    weight: Array  #: (K,), Σ w
    observed: Array  #: (K, d), n
    mean: Array  #: (K, d); 0 where nothing was observed
    square: Array  #: (K, d), S
    rounding: float  #: relative error that S may have

    @property
    def total_variance(self) -> Array:
        """(d,): the variance of each column over all classes."""
        n = self.observed.sum(axis=0)
        whole = np.where(n > 0, n, 1.0)
        centre = (self.observed * self.mean).sum(axis=0) / whole
        return (self.square.sum(axis=0) + (self.observed * (self.mean - centre) ** 2).sum(axis=0)) / whole


def class_moments(owner: str, blocks: Any, n_classes: int, n_jobs: int | None) -> ClassMoments:
    """Return the moments of all rows, class by class."""
    shift = provisional_means(blocks.head(), n_classes)
    for _ in range(2):
        sums = map_reduce(blocks, partial(_block_sums, shift=shift), _add, n_jobs=n_jobs)
        count, observed, first, second = sums
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise DataError(
                f"{owner}: sums of squares of X overflow: its entries, or their weights, reach beyond 1e150; rescale "
                "the columns, for example by StandardScaler."
            )
        n = np.where(observed > 0, observed, 1.0)
        offset = first / n
        cancelled = n * offset**2
        square = second - cancelled
        mean = shift + offset
        if not (cancelled > MOST_CANCELLATION * np.maximum(square, 0.0)).any():
            break
        shift = mean
    mean[observed == 0] = 0.0
    # A spread of the size of the values' own rounding is none: the column is constant.
    square[square <= n * (8 * EPS * mean) ** 2] = 0.0
    lost = float(np.max(np.where(square > 0, second / np.where(square > 0, square, 1.0), 1.0)))
    return ClassMoments(count, observed, mean, square, 4 * EPS * lost)


def merge_moments(a: ClassMoments, b: ClassMoments) -> ClassMoments:
    """Return the moments of the rows of both."""
    n = a.observed + b.observed
    share = b.observed / np.where(n > 0, n, 1.0)
    gap = b.mean - a.mean
    square = a.square + b.square + a.observed * share * gap**2
    return ClassMoments(a.weight + b.weight, n, a.mean + share * gap, square, a.rounding + b.rounding + 4 * EPS)


def provisional_means(head: Block, n_classes: int) -> Array:
    """Return means of the classes among the first rows; exact where a column is constant there."""
    X = head.X[:FIRST_ROWS]
    X = X.toarray() if hasattr(X, "toarray") else X
    y = np.asarray(head.y)[:FIRST_ROWS]
    overall = _column_means(X)
    means = np.tile(overall, (n_classes, 1))
    for k in np.unique(y).tolist():
        found = _column_means(X[y == k])
        means[k] = np.where(np.isnan(found), overall, found)
    return np.where(np.isfinite(means), means, 0.0)


def _column_means(X: Array) -> Array:
    """Return the means of what is there; NaN of nothing, and the value itself of a constant column."""
    there = ~np.isnan(X)
    filled = np.where(there, X, 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=0) / there.sum(axis=0)
    first = filled[there.argmax(axis=0), np.arange(X.shape[1])]
    constant = ((filled == first) | ~there).all(axis=0) & there.any(axis=0)
    return np.where(constant, first, mean)


def _block_sums(block: Block, shift: Array) -> tuple[Array, Array, Array, Array]:
    """Return count, observed, Σ w(x − shift) and Σ w(x − shift)² of one block."""
    y, w = codes_of(block), weights_of(block)
    count, first, second = np.zeros(len(shift)), np.zeros_like(shift), np.zeros_like(shift)
    add_moments(block.X, y, w, shift, count, first, second)
    if not np.isnan(first).any():
        return count, np.repeat(count[:, None], shift.shape[1], axis=1), first, second
    observed = np.zeros_like(shift)
    count[:], first[:], second[:] = 0.0, 0.0, 0.0
    add_observed_moments(block.X, y, w, shift, count, first, second, observed)
    return count, observed, first, second


def _add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    for mine, other in zip(a, b, strict=True):
        mine += other
    return a
