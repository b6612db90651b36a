"""One column of a table, described."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .encoder_fit import is_free_text
from .encoder_input import Columns
from .encoder_read import Labels
from .profile_leaks import Values

Array = NDArray[np.float64]

FEW_ROWS: Final = 30
_BINS, _TOP = 20, 10
_UNIQUE = 0.98  # share of distinct values from which a column may be an identifier
_ID_NAME = re.compile(r"(^|[_\W])(id|ids|index|idx|key|uuid|guid|rownum|row|nr|unnamed: ?\d+)$|Id$|ID$", re.ASCII)


@dataclass(frozen=True)
class ColumnProfile:
    """One column.

    Attributes
    ----------
    name : str
        Its name.
    kind : str
        "number", "boolean", "category", "date", "text", "identifier", "constant" or "empty".
    role : str
        "feature", "target", "group", "time" or "dropped".
    missing : int
        Rows without a value.
    distinct : int
        Distinct values (of the rows sampled, for numbers).
    notes : tuple of str
        What a reader should know, in words.
    summary : dict or None
        Mean, standard deviation, minimum, quartiles and maximum of numbers.
    histogram : dict or None
        `edges` and `counts` of at most twenty bins; days since 1970 for dates.
    top : tuple or None
        The ten most frequent values, with their counts.
    """

    name: str
    kind: str
    role: str
    missing: int
    distinct: int
    notes: tuple[str, ...] = ()
    summary: dict[str, float] | None = None
    histogram: dict[str, list[float]] | None = None
    top: tuple[tuple[str, int], ...] | None = None


def describe(table: Columns, position: int, role: str, stride: int) -> tuple[ColumnProfile, Values]:
    """Return the profile of a column, and its values."""
    name, kind = str(table.names[position]), table.type_of(position)
    if kind in ("text", "mixed"):
        labels = table.labels(position, kind)
        return _describe_labels(name, labels, role), labels
    if kind == "empty":
        return ColumnProfile(name, "empty", _kept(role, "empty"), table.n_rows, 0), np.full(table.n_rows, np.nan)
    numbers = table.numbers([position], [kind])[:, 0]
    return _describe_numbers(name, numbers, kind, role, stride), numbers


def _describe_numbers(name: str, numbers: Array, kind: str, role: str, stride: int) -> ColumnProfile:
    present = numbers[~np.isnan(numbers)]
    missing = len(numbers) - len(present)
    if not len(present):
        return ColumnProfile(name, "empty", _kept(role, "empty"), missing, 0)
    finite = present[np.isfinite(present)]
    notes = [f"{len(present) - len(finite)} infinite values"] if len(finite) < len(present) else []
    sample = finite[::stride]
    distinct = count_distinct(sample)
    if not len(finite) or finite.min() == finite.max():
        value = _as_date(present[0]) if kind == "date" else f"{present[0]:g}"
        found = "constant" if not missing else {"date": "date", "boolean": "boolean"}.get(kind, "number")
        return ColumnProfile(name, found, _kept(role, found), missing, distinct, (*notes, _always(value, missing)))
    low, high = float(finite.min()), float(finite.max())
    if kind == "boolean":
        truths = (("True", int((finite == 1).sum())), ("False", int((finite == 0).sum())))
        return ColumnProfile(name, "boolean", role, missing, 2, tuple(notes), top=tuple(sorted(truths, key=_by_count)))
    edges = np.linspace(low, high, _BINS + 1) if high - low < np.inf else np.linspace(low / 2, high / 2, _BINS + 1) * 2
    counts = np.histogram(finite, bins=np.unique(edges))[0] if len(np.unique(edges)) > 1 else np.array([len(finite)])
    histogram = {"edges": np.unique(edges).tolist(), "counts": counts.tolist()}
    if kind == "date":
        notes.append(f"from {_as_date(low)} to {_as_date(high)}")
        return ColumnProfile(name, "date", role, missing, distinct, tuple(notes), None, histogram)
    quartiles = np.quantile(sample, [0.25, 0.5, 0.75]).tolist()
    size = max(abs(low), abs(high))
    mean, std = float((finite / size).mean()) * size, float((finite / size).std()) * size
    summary = dict(
        zip(("mean", "std", "min", "q25", "median", "q75", "max"), (mean, std, low, *quartiles, high), strict=True)
    )
    found = "number"
    if role != "target" and _numbers_rows(name, finite, sample, distinct, missing):
        found, notes = "identifier", [*notes, "a different whole number in every row"]
    return ColumnProfile(name, found, _kept(role, found), missing, distinct, tuple(notes), summary, histogram)


def _numbers_rows(name: str, finite: Array, sample: Array, distinct: int, missing: int) -> bool:
    """Tell whether whole numbers name the rows: all different, and counted from 0 or 1 or called an id."""
    if len(finite) < FEW_ROWS or distinct < _UNIQUE * len(sample) or (finite != np.floor(finite)).any():
        return False
    counted = finite.min() in (0, 1) and finite.max() == finite.min() + len(finite) - 1
    return (distinct == len(sample) and counted and not missing) or is_id_name(name)


def _describe_labels(name: str, labels: Labels, role: str) -> ColumnProfile:
    counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.values))
    present, distinct = int(counts.sum()), int((counts > 0).sum())
    missing = len(labels.codes) - present
    if not present:
        return ColumnProfile(name, "empty", _kept(role, "empty"), missing, 0)
    pairs = [
        (labels.values[code], int(counts[code])) for code in np.argsort(-counts, kind="stable")[: 4 * _TOP].tolist()
    ]
    top = tuple(sorted(((v, c) for v, c in pairs if c), key=_by_count)[:_TOP])
    if distinct == 1:
        found = "category" if missing else "constant"
        return ColumnProfile(name, found, _kept(role, found), missing, 1, (_always(repr(top[0][0]), missing),), top=top)
    words = sum(c * len(v.split()) for v, c in zip(labels.values, counts.tolist(), strict=True)) / present
    letters = sum(c * len(v) for v, c in zip(labels.values, counts.tolist(), strict=True)) / present
    kind: str = "category"
    notes: tuple[str, ...] = ()
    if _names_rows(name, labels.values, present, distinct, words, letters):
        kind, notes = "identifier", ("a different name in (almost) every row",)
    elif is_free_text(distinct, present, words, letters):
        kind = "text"
    return ColumnProfile(name, kind, _kept(role, kind), missing, distinct, notes, top=top)


def _names_rows(name: str, values: Sequence[str], present: int, distinct: int, words: float, letters: float) -> bool:
    """Tell whether words name the rows: (almost) all different, short, one word each, with digits or called an id."""
    if present < FEW_ROWS or distinct < _UNIQUE * present or words > 1.5 or letters > 40:
        return False
    with_digits = sum(any(c.isdigit() for c in value) for value in values)
    return is_id_name(name) or with_digits > 0.9 * len(values)


def count_distinct(values: NDArray[Any]) -> int:
    """Return the number of distinct values, by sorting: NumPy's unique is slower where most are."""
    ordered = np.sort(values)
    return int(len(values) > 0) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def is_id_name(name: str) -> bool:
    """Tell whether a column is called like an identifier.

    Examples
    --------
    >>> is_id_name("customer_id"), is_id_name("PassengerId"), is_id_name("humid"), is_id_name("Unnamed: 0")
    (True, True, False, True)
    """
    return bool(_ID_NAME.search(name) or _ID_NAME.search(name.lower()))


def _always(value: str, missing: int) -> str:
    return f"{value} or missing" if missing else f"always {value}"


def _kept(role: str, kind: str) -> str:
    return "dropped" if role == "feature" and kind in ("identifier", "constant", "empty") else role


def _by_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _as_date(days: float) -> str:
    return str(np.datetime64(0, "s") + np.timedelta64(round(float(days) * 86_400), "s")).removesuffix("T00:00:00")
