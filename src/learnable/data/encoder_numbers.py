"""Mean, spread, range, median and gaps of many columns at once, from rows that arrive in any pieces.

Rows are summed on one grid that depends on the number of columns alone, in one layout, and the blocks are merged in
order (Chan, Golub and LeVeque, 1983): the result has the same bits whatever the pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .sample import RowSample, most_rows

Array = NDArray[np.float64]

_BLOCK_ELEMENTS = 2**17  # 1 MB: a block stays in the cache while it is read five times
_LARGEST = 1e150  # beyond, squares overflow


class NumberSummary(NamedTuple):
    """What is known of p columns; every field has shape (p,)."""

    mean: Array
    std: Array  #: root of the mean squared deviation, as StandardScaler's
    low: Array  #: inf where every value is missing
    high: Array
    median: Array  #: of a sample of the rows if there are more than it holds
    missing: NDArray[np.int64]
    fractional: NDArray[np.bool_]  #: whether some value is not whole


class NumberStatistics:
    """Statistics of p columns, updated by consecutive rows."""

    def __init__(self, owner: str, names: Sequence[Any]) -> None:
        p = len(names)
        self.owner, self.names = owner, list(names)
        self.weight, self.mean, self.squares = np.zeros(p), np.zeros(p), np.zeros(p)
        self.low, self.high = np.full(p, np.inf), np.full(p, -np.inf)
        self.missing, self.fractional = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=bool)
        rows = 2 ** max(8, (_BLOCK_ELEMENTS // max(1, p)).bit_length() - 1)
        self._block = np.empty((p, rows))
        self._weights = np.empty(rows)
        self._held = 0
        self._n_rows = 0
        self._weighted = False
        self._sample, self._sample_weight = RowSample(most_rows(p)), RowSample(most_rows(p))

    def update(self, X: Array, weight: Array | None = None) -> None:
        """Take note of the next rows; a row of weight zero counts as none."""
        self._sample.update(X)
        self._sample_weight.update(np.broadcast_to(1.0 if weight is None else weight, len(X)))
        if weight is not None:
            self._weighted = True
            if not weight.all():
                X, weight = X[weight > 0], weight[weight > 0]
        start, height = 0, self._block.shape[1]
        while start < len(X):
            taken = min(height - self._held, len(X) - start)
            to = slice(self._held, self._held + taken)
            self._block[:, to] = X[start : start + taken].T
            self._weights[to] = 1.0 if weight is None else weight[start : start + taken]
            self._held += taken
            start += taken
            if self._held == height:
                self._absorb()

    def finish(self) -> NumberSummary:
        """Return the statistics of all rows."""
        self._absorb()
        present = self.weight > 0
        variance = np.divide(self.squares, self.weight, out=np.zeros_like(self.mean), where=present)
        mean = np.where(present, self.mean, 0.0)
        return NumberSummary(
            mean, np.sqrt(variance), self.low, self.high, self._medians(), self.missing, self.fractional
        )

    def _absorb(self) -> None:
        """Merge the block into the sums."""
        if not self._held:
            return
        B, w = self._block[:, : self._held], self._weights[: self._held]
        low, high = B.min(axis=1), B.max(axis=1)
        gappy = np.isnan(low)
        if np.isinf(low).any() or np.isinf(high).any() or (gappy.any() and np.isinf(B[gappy]).any()):
            self._refuse_infinity(B)
        if not (np.fmax(-low, high) <= _LARGEST).all() and np.fmax.reduce(np.abs(B), axis=None) > _LARGEST:
            self._refuse_size(B)
        for columns, count in ((~gappy, self._clean), (gappy, self._gappy)):
            if columns.any():
                chosen = slice(None) if columns.all() else columns
                self._merge(chosen, *count(B[chosen], w))
        self._n_rows += self._held
        self._held = 0

    def _clean(self, B: Array, w: Array) -> tuple[Array, ...]:
        if self._weighted:
            return _weighted_sums(B, np.broadcast_to(w, B.shape))
        mean = B.mean(axis=1)
        deviations = B - mean[:, None]
        size = np.full(len(B), float(B.shape[1]))
        sums = size, mean, np.einsum("ij,ij->i", deviations, deviations), B.min(axis=1), B.max(axis=1)
        return *sums, np.zeros(len(B)), (np.floor(B) != B).any(axis=1)

    def _gappy(self, B: Array, w: Array) -> tuple[Array, ...]:
        return _weighted_sums(B, np.where(np.isnan(B), 0.0, w))

    def _merge(
        self, at: Any, weight: Array, mean: Array, squares: Array, low: Array, high: Array, missing: Array, whole: Array
    ) -> None:
        total = self.weight[at] + weight
        share = np.divide(weight, total, out=np.zeros_like(total), where=total > 0)
        step = mean - self.mean[at]
        self.squares[at] += squares + step * step * share * self.weight[at]
        self.mean[at] += step * share
        self.weight[at] = total
        self.low[at], self.high[at] = np.minimum(self.low[at], low), np.maximum(self.high[at], high)
        self.missing[at] += missing.astype(np.int64)
        self.fractional[at] |= whole.astype(bool)

    def _medians(self) -> Array:
        if not self._sample.n_seen:
            return np.zeros(len(self.names))
        rows = self._sample.rows()
        weight = self._sample_weight.rows() if self._weighted else None
        return np.array([median(rows[:, j], weight) for j in range(rows.shape[1])], dtype=np.float64)

    def _refuse_infinity(self, B: Array) -> None:
        column, row = np.argwhere(np.isinf(B))[0].tolist()
        raise DataError(
            f"{self.owner}: column {self.names[column]!r} contains infinity, first in row {self._n_rows + row}. "
            "Replace it by a number, or by a missing value."
        )

    def _refuse_size(self, B: Array) -> None:
        column, row = np.argwhere(np.abs(B) > _LARGEST)[0].tolist()
        raise DataError(
            f"{self.owner}: column {self.names[column]!r} reaches {B[column, row]:.3g}; squares of numbers beyond "
            f"{_LARGEST:g} overflow. Rescale it."
        )


def median(values: Array, weight: Array | None = None) -> float:
    """Return the (weighted) median of the values that are not missing, or zero if all are.

    Whole weights count as repeated rows.

    Examples
    --------
    >>> median(np.array([3.0, 1.0, np.nan, 2.0, 10.0]))
    2.5
    >>> median(np.array([1.0, 2.0, 10.0]), np.array([1.0, 1.0, 2.0]))
    6.0
    """
    present = ~np.isnan(values)
    if weight is not None:
        present &= weight > 0
    chosen = values if present.all() else values[present]
    if not len(chosen):
        return 0.0
    if weight is None:
        return float(np.median(chosen))
    order = np.argsort(chosen, kind="stable")
    above = np.cumsum(weight[present][order])
    half = above[-1] / 2
    lower, upper = (min(int(np.searchsorted(above, half, side)), len(order) - 1) for side in ("left", "right"))
    return float(0.5 * (chosen[order[lower]] + chosen[order[upper]]))


def _weighted_sums(B: Array, w: Array) -> tuple[Array, ...]:
    """Return weight, mean, squares, low, high, gaps and fractions of the rows of B; a gap has weight zero."""
    gaps = np.isnan(B)
    total = w.sum(axis=1)
    values = np.where(gaps, 0.0, B)
    mean = np.divide((values * w).sum(axis=1), total, out=np.zeros(len(B)), where=total > 0)
    deviations = np.where(gaps, 0.0, B - mean[:, None])
    squares = (w * deviations * deviations).sum(axis=1)
    low, high = np.where(gaps, np.inf, B).min(axis=1), np.where(gaps, -np.inf, B).max(axis=1)
    return total, mean, squares, low, high, gaps.sum(axis=1), (values != np.floor(values)).any(axis=1)
