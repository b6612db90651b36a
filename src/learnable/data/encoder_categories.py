r"""Levels of a column of text, and the mean target of each: counted over rows that arrive in any pieces.

A column with few levels becomes one column a level. With many, the level is replaced by its mean target, drawn to the
overall mean as in scikit-learn's `TargetEncoder` (empirical Bayes):

    λ ȳ_level + (1 − λ) ȳ,    λ = σ² n / (σ² n + s²),

with n rows of the level, s² their variance and σ² the variance of all targets. A training row must not see its own
target: the level's mean is then taken over the rows of the other four folds, and the fold of a row is its number mod 5.

Reference: D. Micci-Barreca, A preprocessing scheme for high-cardinality categorical attributes in classification and
prediction problems, SIGKDD Explorations 3 (2001), equations 5 and 6.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .encoder_read import Labels

Array = NDArray[np.float64]

FOLDS: Final = 5
MOST_LEVELS: Final = 2**16  # a column with more is free text


class EncoderTarget(NamedTuple):
    """The targets of some rows, as target encoding wants them."""

    values: NDArray[Any]  #: (n, k) float64, or (n,) class codes
    n_classes: int  #: 0 for regression


class Level(NamedTuple):
    """Totals of the levels of one column; L levels, sorted, and a last one for missing values."""

    names: list[str]
    weight: Array  #: (L + 1, FOLDS)
    sums: Array  #: (L + 1, FOLDS, k), of the target minus `shift`
    squares: Array  #: (L + 1, FOLDS, k)
    shift: Array  #: (k,)


class CategoryStatistics:
    """Levels of one column, with their weight and their targets in each fold."""

    def __init__(self, n_targets: int = 0, n_classes: int = 0) -> None:
        self.n_classes = n_classes
        self.k = (1 if n_classes == 2 else n_classes) if n_classes else n_targets
        self.position: dict[str, int] = {}
        self.n_rows = self.missing = self.words = self.letters = 0
        self.overflow = False
        self.shift: Array | None = None
        self.weight = np.zeros((1, FOLDS))  # row 0 is for missing values
        self.sums = np.zeros((1, FOLDS, self.k))
        self.squares = np.zeros((1, FOLDS, self.k))

    def update(self, labels: Labels, target: EncoderTarget | None, weight: Array | None, first_row: int) -> None:
        """Take note of the next rows."""
        codes = labels.codes
        if weight is not None and not weight.all():
            codes = np.where(weight > 0, codes, -2)  # a row of weight zero counts as none
        counts = np.bincount(codes[codes >= 0], minlength=len(labels.values))
        self.n_rows += int((codes >= -1).sum())
        self.missing += int((codes == -1).sum())
        for value, count in zip(labels.values, counts.tolist(), strict=True):
            if count:
                self.words += count * len(value.split())
                self.letters += count * len(value)
        if self.overflow:
            return
        lookup = np.zeros(len(labels.values) + 2, dtype=np.int64)
        for code in np.flatnonzero(counts).tolist():
            lookup[code] = 1 + self.position.setdefault(labels.values[code], len(self.position))
        if len(self.position) > MOST_LEVELS:
            self.overflow = True
            self.position = {}
            self.weight, self.sums, self.squares = self.weight[:0], self.sums[:0], self.squares[:0]
            return
        self._grow()
        folds = (first_row + np.arange(len(codes))) % FOLDS
        rows = slice(None) if (codes >= -1).all() else np.flatnonzero(codes >= -1)
        w = np.ones(len(codes)) if weight is None else weight
        if target is not None and self.shift is None and len(codes):
            self.shift = np.zeros(self.k) if self.n_classes else np.array(target.values[0], dtype=np.float64)
        self._add(lookup[codes[rows]], folds[rows], w[rows], None if target is None else target.values[rows])

    def _grow(self) -> None:
        needed = len(self.position) + 1
        if needed > len(self.weight):
            size = max(needed, 2 * len(self.weight))
            for name in ("weight", "sums", "squares"):
                old = getattr(self, name)
                new = np.zeros((size, *old.shape[1:]))
                new[: len(old)] = old
                setattr(self, name, new)

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is refused where it is used
    def _add(self, levels: NDArray[np.int64], folds: NDArray[np.int64], w: Array, y: NDArray[Any] | None) -> None:
        # add.at adds row after row onto the running totals, so that pieces do not change the order of the sum.
        np.add.at(self.weight, (levels, folds), w)
        if y is None or not self.k:
            return
        if self.n_classes:
            if self.n_classes == 2:
                levels, folds, w, y = levels[y == 1], folds[y == 1], w[y == 1], y[y == 1] - 1
            np.add.at(self.sums, (levels, folds, y), w)
            return
        for j in range(self.k):
            deviation = y[:, j] - (0.0 if self.shift is None else self.shift[j])
            np.add.at(self.sums[:, :, j], (levels, folds), w * deviation)
            np.add.at(self.squares[:, :, j], (levels, folds), w * deviation * deviation)

    def finish(self) -> Level:
        """Return the totals, levels sorted."""
        names = sorted(self.position)
        order = np.array([1 + self.position[name] for name in names] + [0], dtype=np.int64)
        weight, sums = self.weight[order], self.sums[order]
        squares = sums if self.n_classes else self.squares[order]
        return Level(names, weight, sums, squares, np.zeros(self.k) if self.shift is None else self.shift)


@np.errstate(over="ignore", invalid="ignore")
def target_means(level: Level) -> Array:
    """Return the smoothed mean targets, shape (FOLDS + 1, L + 2, k).

    Row f < FOLDS leaves out fold f; the last one is over all rows. The two last levels are missing and unseen.
    """
    n_levels, _, k = level.sums.shape
    means = np.empty((FOLDS + 1, n_levels + 1, k))
    for fold in range(FOLDS + 1):
        others = [f for f in range(FOLDS) if f != fold]
        if not level.weight[:, others].any():
            others = list(range(FOLDS))
        n = level.weight[:, others].sum(axis=1)[:, None]
        sums, squares = level.sums[:, others].sum(axis=1), level.squares[:, others].sum(axis=1)
        overall, total = sums.sum(axis=0) / n.sum(), n.sum()
        variance = np.maximum(squares.sum(axis=0) / total - overall**2, 0.0)
        size = np.where(n > 0, n, 1.0)
        mean = sums / size
        within = np.maximum(squares / size - mean**2, 0.0)
        denominator = variance * n + within
        trust = np.divide(variance * n, denominator, out=np.zeros_like(mean), where=denominator > 0)
        means[fold, :-1] = overall + np.where(n > 0, trust, 0.0) * (mean - overall)
        means[fold, -1] = overall
    return means + level.shift


def choose_levels(level: Level, most: int) -> NDArray[np.int64]:
    """Return for each level (the last is missing) its one-hot column, −1 for none.

    At most `most` columns: the most frequent levels have their own, all others share the last one.
    """
    total = level.weight.sum(axis=1)
    present = np.flatnonzero(total > 0)
    columns = np.full(len(total), -1, dtype=np.int64)
    if len(present) <= most:
        columns[present] = np.arange(len(present))
        return columns
    rare_first = present[np.argsort(total[present], kind="stable")]  # ties as in OneHotEncoder
    own = np.sort(rare_first[len(present) - most + 1 :])
    columns[present] = most - 1
    columns[own] = np.arange(most - 1)
    return columns
