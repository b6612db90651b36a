"""What must hold of the records of a loaded `TableEncoder`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core.errors import ModelFileError
from .encoder_categories import FOLDS
from .encoder_output import Record, features

_INPUT_OF: Final[dict[str, set[str]]] = {
    "number": {"number", "duration"},
    "boolean": {"boolean"},
    "date": {"date"},
    "category": {"text", "mixed"},
    "text": {"text", "mixed"},
    "constant": {"number", "boolean", "date", "duration", "text", "mixed"},
    "empty": {"number", "boolean", "date", "duration", "text", "mixed", "empty"},
}


def check_records(encoder: Any) -> None:
    """Raise ModelFileError unless the fitted attributes are ones that a fit could have left."""
    try:
        sound = _are_sound(encoder)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"load: TableEncoder: columns_ is not what a fit leaves: {error!r}") from error
    if not sound:
        raise ModelFileError("load: TableEncoder: sources_ or sparse_ does not fit columns_.")


def _are_sound(encoder: Any) -> bool:
    records = encoder.columns_
    if type(records) is not list or len(records) != encoder.n_features_in_:
        return False
    for record in records:
        if not _is_sound(record):
            name = record.get("name") if isinstance(record, dict) else None
            raise ModelFileError(f"load: TableEncoder: the record of column {name!r} is not what a fit leaves.")
    widths = [len(features(record)) for record in records]
    sources = np.repeat(np.arange(len(records)), widths)
    return type(encoder.sparse_) is bool and np.array_equal(encoder.sources_, sources)


def _is_sound(record: Record) -> bool:
    kind = record["kind"]
    if type(record["name"]) is not str or type(record["missing"]) is not int or record["input"] not in _INPUT_OF[kind]:
        return False
    if kind in ("number", "boolean", "date"):
        numbers = [record[key] for key in ("fill", "mean", "scale")]
        truths = [record["varies"], record["flag"], *([record["clock"]] if kind == "date" else [])]
        if not isinstance(record.get("zone"), str | None):
            return False
        return _are_finite(numbers) and record["scale"] > 0 and all(type(truth) is bool for truth in truths)
    if kind == "text":
        known = record["analyzer"] in ("words", "characters") and type(record["flag"]) is bool
        sized = type(record["n_features"]) is int and 0 <= record["n_features"] <= 2**20
        return known and sized and _is_sound_reduction(record)
    return _is_sound_category(record) if kind == "category" else True


def _is_sound_reduction(record: Record) -> bool:
    if "reduction" not in record:
        return True
    vectors = record["reduction"]
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float64 or vectors.ndim != 2:
        return False
    fits = vectors.shape[0] == record["n_features"] and 0 < vectors.shape[1] <= vectors.shape[0]
    return bool(fits and np.isfinite(vectors).all())


def _is_sound_category(record: Record) -> bool:
    levels = record["levels"]
    if "prefix" in record:
        inside = record["prefix"]
        if record["encoding"] != "target" or "prefix" in inside or inside["kind"] != "category":
            return False
        if not _is_sound_category(inside):
            return False
    if levels.dtype != object or levels.ndim != 1 or not all(type(level) is str for level in levels.tolist()):
        return False
    if record["encoding"] == "target":
        values, k = record["values"], record["values"].shape[-1]
        shapes = values.shape == (FOLDS + 1, len(levels) + 2, k) and record["mean"].shape == record["scale"].shape == (
            k,
        )
        labels = type(record["targets"]) is list and len(record["targets"]) == (k if k > 1 else 0)
        return bool(
            shapes
            and labels
            and np.isfinite(values).all()
            and np.isfinite(record["mean"]).all()
            and (record["scale"] > 0).all()
        )
    columns = record["columns"]
    used = np.unique(columns[columns >= 0])
    fits = columns.dtype == np.int64 and columns.shape == (len(levels) + 1,) and record["encoding"] == "onehot"
    return bool(fits and columns.min() >= -1 and np.array_equal(used, np.arange(len(used))))


def _are_finite(numbers: list[Any]) -> bool:
    return all(type(number) is float and np.isfinite(number) for number in numbers)
