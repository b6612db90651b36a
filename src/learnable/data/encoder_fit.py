"""The fit of a `TableEncoder`, piece by piece: statistics of the columns, and the records made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..core import Array, DataError, NDArray
from .encoder_categories import (
    CategoryStatistics,
    EncoderTarget,
    Level,
    TextSample,
    choose_levels,
    is_code,
    merge_prefixes,
    reduction,
    target_means,
)
from .encoder_input import Columns
from .encoder_output import Record, features, vectorizer
from .encoder_read import Type
from .frames import listed
from .sample import RowSample, most_rows

_LONG_LETTERS: Final = 40  # values that are this long on average, and

_LONG_WORDS: Final = 5  # have this many words, are free text even if they repeat

_DENSE: Final = 0.2  # share of entries that are not zero above which a dense array is smaller and faster

_NARROW: Final = 64


class EncoderFit:
    """Statistics of the columns of a table that arrives in consecutive pieces.

    Parameters
    ----------
    owner : str
        Whose errors they are.
    schema : list of (name, type)
        The columns.
    options : mapping
        The parameters of the encoder.
    classes : array or None
        Labels of the target, for classification.
    n_targets : int
        Columns of the target, for regression; zero for none.
    """

    def __init__(
        self,
        owner: str,
        schema: Sequence[tuple[Any, Type]],
        options: Mapping[str, Any],
        classes: NDArray[Any] | None = None,
        n_targets: int = 0,
    ) -> None:
        self.owner = owner
        self.schema = list(schema)
        self.options = options
        self.classes = classes
        n_classes = 0 if classes is None else len(classes)
        self.has_target = bool(n_classes or n_targets)
        self.labels = {
            j: CategoryStatistics(n_targets, n_classes)
            for j, (_, kind) in enumerate(schema)
            if kind in ("text", "mixed")
        }
        self.components = int(options["n_text_components"] or 0)
        self.texts = {j: TextSample() for j in self.labels} if self.components else {}
        self.numeric = [j for j, (_, kind) in enumerate(schema) if kind not in ("text", "mixed", "empty")]
        self.zones: list[str | None] | None = None
        self.numbers = NumberStatistics(owner, [schema[j][0] for j in self.numeric])
        self.n_rows = 0

    def update(self, table: Columns, target: EncoderTarget | None, weight: NDArray[np.float64] | None) -> None:
        """Take note of the next rows."""
        if self.numeric:
            if self.zones is None:
                self.zones = [table.zone(j) for j in self.numeric]
            X = table.numbers(self.numeric, [self.schema[j][1] for j in self.numeric], self.zones)
            self.numbers.update(X, weight)
        for j, statistics in self.labels.items():
            labels = table.labels(j, self.schema[j][1])
            statistics.update(labels, target if self.has_target else None, weight, self.n_rows)
            if j in self.texts:
                self.texts[j].update(labels)
        self.n_rows += table.n_rows

    def finish(self) -> tuple[list[Record], bool]:
        """Return the record of each column, and whether the features are sparse."""
        summary = self.numbers.finish()
        place = {j: at for at, j in enumerate(self.numeric)}
        records = []
        for j, (name, kind) in enumerate(self.schema):
            record: Record = {"name": str(name), "input": kind, "missing": self.n_rows}
            if j in place:
                record |= self._number_record(kind, summary, place[j])
            elif j in self.labels:
                record |= self._label_record(self.labels[j])
                if record["kind"] == "text" and record["n_features"] and j in self.texts:
                    record |= self._reduced(record, self.texts[j])
            else:
                record |= {"kind": "empty"}
            records.append(record)
        if not any(features(record) for record in records):
            rows = "1 sample" if self.n_rows == 1 else f"{self.n_rows} samples"
            raise DataError(
                f"{self.owner}: no column has two values in {rows}; constant or empty: "
                f"{listed([record['name'] for record in records])}. Pass rows that differ."
            )
        return records, self._is_sparse(records)

    def _number_record(self, kind: Type, summary: NumberSummary, at: int) -> Record:
        low = float(summary.low[at])
        high = float(summary.high[at])
        missing = int(summary.missing[at])
        if low > high:
            return {"kind": "empty", "missing": missing}
        if low == high and not missing:
            return {"kind": "constant", "missing": 0, "value": low}
        fill = float(summary.median[at] if self.options["fill"] == "median" else summary.mean[at])
        scaled = self.options["scale"] and kind != "boolean"
        deviation = float(summary.std[at])
        return {
            "kind": {"date": "date", "boolean": "boolean"}.get(kind, "number"),
            "missing": missing,
            "varies": low < high,
            "flag": missing > 0,
            "fill": fill,
            "mean": float(summary.mean[at]) if scaled else 0.0,
            "scale": deviation if scaled and deviation > 0 else 1.0,
            "low": low,
            "high": high,
        } | (
            {"clock": bool(summary.fractional[at]), "zone": self.zones[at] if self.zones else None}
            if kind == "date"
            else {}
        )

    def _label_record(self, statistics: CategoryStatistics) -> Record:
        missing = statistics.missing
        present = statistics.n_rows - statistics.missing
        record: Record = {"missing": missing}
        if not present:
            return record | {"kind": "empty"}
        n_levels = len(statistics.position) + bool(missing)
        if n_levels == 1 and not statistics.overflow:
            return record | {"kind": "constant", "value": next(iter(statistics.position))}
        words = statistics.words / present
        letters = statistics.letters / present
        if self._is_text(statistics, present, words, letters):
            if self.options["text"] == "drop":
                return record | {"kind": "text", "analyzer": "words", "n_features": 0, "flag": False, "words": words}
            by_words = self.options["text"] == "words" or (self.options["text"] != "characters" and words >= 2)
            analyzer = "words" if by_words else "characters"
            width = int(self.options["n_text_features"])
            return record | {
                "kind": "text", "analyzer": analyzer, "n_features": width, "flag": missing > 0, "words": words
            }  # fmt: skip
        level = statistics.finish()
        record |= {"kind": "category", "levels": np.array(level.names, dtype=object)}
        if n_levels <= self.options["max_categories"] or not self.has_target:
            return record | {"encoding": "onehot", "columns": choose_levels(level, self.options["max_categories"])}
        record |= self._target_record(level)
        prefixes = merge_prefixes(level) if is_code(words, letters) else None
        return record if prefixes is None else record | {"prefix": self._prefix_record(prefixes)}

    def _prefix_record(self, level: Level) -> Record:
        """Return the record of how the codes of a column begin: a category of its own."""
        record: Record = {"kind": "category", "levels": np.array(level.names, dtype=object)}
        if len(level.names) < self.options["max_categories"]:
            return record | {"encoding": "onehot", "columns": choose_levels(level, self.options["max_categories"])}
        return record | self._target_record(level)

    def _reduced(self, record: Record, texts: TextSample) -> Record:
        """Return what reduces the hashed columns of free text to a few."""
        found = texts.texts()
        if not found:
            return {}
        hashed = vectorizer(record).transform(found).tocsr()
        vectors = reduction(hashed, self.components, scale=bool(self.options["scale"]))
        return {"reduction": vectors} if vectors.shape[1] else {}

    def _is_text(self, statistics: CategoryStatistics, present: int, words: float, letters: float) -> bool:
        if statistics.overflow:
            return True
        if self.options["text"] == "category":
            return False
        return is_free_text(len(statistics.position), present, words, letters, self.options["max_categories"])

    def _target_record(self, level: Level) -> Record:
        values = target_means(level)
        if not (np.isfinite(level.squares).all() and np.isfinite(values).all()):
            raise DataError(f"{self.owner}: y is so large that its squares overflow; rescale it.")
        k = values.shape[2]
        mean = np.zeros(k)
        scale = np.ones(k)
        if self.options["scale"]:
            share = level.weight.sum(axis=1)[:, None] / level.weight.sum()
            mean = values[-1, -1].copy()
            spread = np.sqrt((share * (values[-1, :-1] - mean) ** 2).sum(axis=0))
            scale = np.where(spread > 0, spread, 1.0)
        labels: list[str] = []
        if self.classes is not None and k > 1:
            labels = [str(label) for label in self.classes.tolist()]
        elif k > 1:
            labels = [str(number) for number in range(k)]
        return {"encoding": "target", "values": values, "mean": mean, "scale": scale, "targets": labels}

    def _is_sparse(self, records: Sequence[Record]) -> bool:
        if self.options["sparse"] != "auto":
            return bool(self.options["sparse"])
        width = 0
        filled = 0.0
        for record in records:
            n_features = len(features(record))
            width += n_features
            if record["kind"] == "text" and "reduction" not in record:
                filled += min(n_features, 2 * record["words"] if record["analyzer"] == "words" else n_features / 8)
            elif record.get("encoding") == "onehot":
                filled += 1
            else:
                filled += n_features
        return width > _NARROW and filled < _DENSE * width


def is_free_text(n_levels: int, n_rows: int, words: float, letters: float, max_categories: int = 20) -> bool:
    """Tell whether a column is free text: most values occur once, or they are long (means over the rows).

    Examples
    --------
    Short codes such as "C85" are categories, however many there are.

    >>> is_free_text(50, 1000, words=1.0, letters=8.0), is_free_text(900, 1000, words=3.0, letters=20.0)
    (False, True)
    >>> is_free_text(900, 1000, words=1.0, letters=4.0)
    False
    """
    if n_levels <= max_categories or is_code(words, letters):
        return False
    return 2 * n_levels > n_rows or (words >= _LONG_WORDS and letters >= _LONG_LETTERS)


# Mean, spread, range, median and gaps of many columns at once, from rows that arrive in any pieces.
#
# Rows are summed on one grid that depends on the number of columns alone, in one layout, and the blocks are merged in
# order (Chan, Golub and LeVeque, 1983): the result has the same bits whatever the pieces.


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
        self.owner = owner
        self.names = list(names)
        self.weight = np.zeros(p)
        self.mean = np.zeros(p)
        self.squares = np.zeros(p)
        self.low = np.full(p, np.inf)
        self.high = np.full(p, -np.inf)
        self.missing = np.zeros(p, dtype=np.int64)
        self.fractional = np.zeros(p, dtype=bool)
        rows = 2 ** max(8, (_BLOCK_ELEMENTS // max(1, p)).bit_length() - 1)
        self._block = np.empty((p, rows))
        self._weights = np.empty(rows)
        self._held = 0
        self._n_rows = 0
        self._weighted = False
        self._sample = RowSample(most_rows(p))
        self._sample_weight = RowSample(most_rows(p))

    def update(self, X: Array, weight: Array | None = None) -> None:
        """Take note of the next rows; a row of weight zero counts as none."""
        self._sample.update(X)
        self._sample_weight.update(np.broadcast_to(1.0 if weight is None else weight, len(X)))
        if weight is not None:
            self._weighted = True
            if not weight.all():
                X = X[weight > 0]
                weight = weight[weight > 0]
        start = 0
        height = self._block.shape[1]
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
        B = self._block[:, : self._held]
        w = self._weights[: self._held]
        low = B.min(axis=1)
        high = B.max(axis=1)
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
        self.low[at] = np.minimum(self.low[at], low)
        self.high[at] = np.maximum(self.high[at], high)
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
    low = np.where(gaps, np.inf, B).min(axis=1)
    high = np.where(gaps, -np.inf, B).max(axis=1)
    return total, mean, squares, low, high, gaps.sum(axis=1), (values != np.floor(values)).any(axis=1)
