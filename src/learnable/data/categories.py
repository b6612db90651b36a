"""Tables of categories as codes: strings, truth values and numbers as they are, and a gap is one more value."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..core import Array, ArrayLike, ModelFileError, NDArray, Number, ParameterError
from .arrays import refuse_sparse
from .blocks import Blocks, Part, scan
from .door import (
    check_count,
    drop_absent_classes,
    is_frame,
    match_columns,
    read_target,
    read_weight,
    take_named_columns,
)
from .encoder_input import Columns, open_table, read_whole

_WORDS = {"text", "mixed", "empty"}
_TYPES = {"number", "boolean", "date", "duration"} | _WORDS


class CategoryTable(NamedTuple):
    """Training rows as codes."""

    codes: NDArray[np.int32]  #: (d, n) positions in `categories`
    y: NDArray[np.int64]  #: (n,) positions in `classes`
    weight: Array  #: (n,) positive
    classes: NDArray[Any]
    categories: list[NDArray[Any]]  #: the values of each column, sorted; a missing one last
    types: list[str]
    fingerprint: str

    @property
    def n_levels(self) -> NDArray[np.int64]:
        """Number of categories of each column."""
        return np.array([len(levels) for levels in self.categories], dtype=np.int64)


def read_categories(estimator: Any, X: Any, y: Any, sample_weight: Any, owner: str | None = None) -> CategoryTable:
    """Return the training rows as codes, having checked them; rows of weight zero are left out."""
    owner = owner or type(estimator).__name__
    X, y, sample_weight = take_named_columns(owner, *read_whole(owner, _dense(owner, X), y, sample_weight))
    table = open_table(owner, X)
    match_columns(estimator, _names_and_shape(X, table), reset=True)
    y, classes = read_target(owner, y, "classes", multi_output=False)
    weight = read_weight(owner, sample_weight, table.n_rows)
    check_count(owner, table.n_rows, len(y))
    types: list[str] = list(table.types())
    everything = [_levels_of(table, j, kind) for j, kind in enumerate(types)]
    codes = codes_of(table, everything, types)
    if weight is None:
        weight = np.ones(table.n_rows)
    if not weight.all():
        kept = weight > 0
        codes = codes[:, kept]
        weight = weight[kept]
        y = y[kept]
        y, classes = drop_absent_classes(y, classes)
        for j, levels in enumerate(everything):
            present, codes[j] = np.unique(codes[j], return_inverse=True)
            everything[j] = levels[present]
    return CategoryTable(
        codes, y, weight, classes, everything, types, fingerprint(codes, y, weight, classes, everything)
    )


def check_categories(owner: str, categories: list[Any], types: list[str]) -> None:
    """Raise ModelFileError unless the categories of every column are sorted and of its type."""
    if not set(types) <= _TYPES:
        raise ModelFileError(f"load: {owner}: a column is of no known type.")
    for levels, kind in zip(categories, types, strict=True):
        wanted = "O" if kind in _WORDS else "f"
        if not isinstance(levels, np.ndarray) or levels.ndim != 1 or levels.dtype.kind != wanted:
            raise ModelFileError(f"load: {owner}: the categories of a column must be an array of its type.")
        known = levels.tolist() if wanted == "O" else levels[~np.isnan(levels)].tolist()
        if wanted == "O" and any(type(word) not in (str, type(None)) for word in known):
            raise ModelFileError(f"load: {owner}: the categories of a column of text must be strings.")
        present = [word for word in known if word is not None]
        if any(a >= b for a, b in pairwise(present)) or len(levels) - len(present) > 1:
            raise ModelFileError(f"load: {owner}: the categories of a column must be sorted and distinct.")
        if not present == list(levels[: len(present)]):
            raise ModelFileError(f"load: {owner}: a missing category comes last.")


def fingerprint(codes: Any, y: Any, weight: Any, classes: Any, categories: list[NDArray[Any]]) -> str:
    """Return a checksum of the rows and of the words that the codes stand for."""
    rows = scan(Blocks([Part(np.ascontiguousarray(codes.T, dtype=np.float64), y, weight)]), classes=classes).checksum
    words = json.dumps([[None if word != word else word for word in levels.tolist()] for levels in categories])
    of_words = int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "little")
    return f"{(rows + of_words) % 2**64:016x}"


def read_codes(estimator: Any, X: Any, categories: list[NDArray[Any]], types: list[str]) -> NDArray[np.int32]:
    """Return the (d, n) codes of rows whose columns are those of the fit."""
    owner = type(estimator).__name__
    table = open_table(owner, _dense(owner, X))
    match_columns(estimator, _names_and_shape(X, table), reset=False)
    return codes_of(table, categories, types)


def codes_of(table: Columns, categories: list[NDArray[Any]], types: list[str]) -> NDArray[np.int32]:
    """Return the (d, n) codes of a table; −1 for what is not among the categories."""
    codes = np.empty((len(table.columns), table.n_rows), dtype=np.int32)
    for j, (levels, kind) in enumerate(zip(categories, types, strict=True)):
        if kind in _WORDS:
            labels = table.labels(j, kind if kind != "empty" else "mixed")  # type: ignore[arg-type]
            position = {word: code for code, word in enumerate(levels.tolist())}
            lookup = [position.get(word, -1) for word in labels.values] + [position.get(None, -1)]
            codes[j] = np.array(lookup, dtype=np.int32)[labels.codes]
        elif not len(levels):
            codes[j] = -1
        else:  # NaN sorts last and equals NaN here
            numbers = table.numbers([j], [kind])[:, 0]  # type: ignore[list-item]
            place = np.minimum(np.searchsorted(levels, numbers), len(levels) - 1)
            same = (levels[place] == numbers) | (np.isnan(levels[place]) & np.isnan(numbers))
            codes[j] = np.where(same, place, -1)
    return codes


def class_weights(owner: str, class_weight: Any, table: CategoryTable) -> Array:
    """Return the weight of each class."""
    n_classes = len(table.classes)
    if class_weight is None:
        return np.ones(n_classes)
    if isinstance(class_weight, str):  # "balanced": every class gets the same total
        totals = np.bincount(table.y, table.weight, n_classes)
        balanced: Array = totals.sum() / (n_classes * totals)
        return balanced
    values = [class_weight.get(label, 1.0) for label in table.classes.tolist()]
    if not ArrayLike(Number(low=0.0, low_open=True)).allows(values):
        raise ParameterError(f"{owner}: class_weight must be positive numbers; got {class_weight!r}.")
    return np.array(values, dtype=np.float64)


def _levels_of(table: Columns, j: int, kind: str) -> NDArray[Any]:
    """Return the distinct values of a column, sorted, a missing one last."""
    if kind in _WORDS:
        labels = table.labels(j, kind if kind != "empty" else "mixed")  # type: ignore[arg-type]
        used = np.unique(labels.codes)
        words: list[Any] = sorted(labels.values[code] for code in used.tolist() if code >= 0)
        return np.array([*words, None], dtype=object)[: len(words) + bool((used < 0).any())]
    return np.unique(table.numbers([j], [kind])[:, 0] + 0.0)  # type: ignore[list-item]


def _dense(owner: str, X: Any) -> Any:
    if hasattr(X, "tocsr"):
        refuse_sparse(owner, X, "X")
    return X


def _names_and_shape(X: Any, table: Columns) -> Any:
    """Return what scikit-learn needs to compare columns: the frame, or an array of the table's shape."""
    return X if is_frame(X) else np.empty((table.n_rows, len(table.names)))
