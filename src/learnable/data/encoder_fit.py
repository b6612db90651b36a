"""The fit of a `TableEncoder`, piece by piece: statistics of the columns, and the records made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .encoder_categories import CategoryStatistics, EncoderTarget, Level, choose_levels, target_means
from .encoder_input import Columns
from .encoder_numbers import NumberStatistics, NumberSummary
from .encoder_output import Record, features, vectorizer
from .encoder_read import Type
from .encoder_text import TextSample, is_code, merge_prefixes, reduction
from .frames import listed

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
        self.owner, self.schema, self.options, self.classes = owner, list(schema), options, classes
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
        low, high, missing = float(summary.low[at]), float(summary.high[at]), int(summary.missing[at])
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
        missing, present = statistics.missing, statistics.n_rows - statistics.missing
        record: Record = {"missing": missing}
        if not present:
            return record | {"kind": "empty"}
        n_levels = len(statistics.position) + bool(missing)
        if n_levels == 1 and not statistics.overflow:
            return record | {"kind": "constant", "value": next(iter(statistics.position))}
        words, letters = statistics.words / present, statistics.letters / present
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
        mean, scale = np.zeros(k), np.ones(k)
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
        width, filled = 0, 0.0
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
