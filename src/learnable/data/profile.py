"""What a table holds, before any model sees it: kinds, gaps, distributions, identifiers, suspected leaks.

Counts are of all rows. Quantiles, distinct numbers and one-column rules come from every 2ᵏ-th row where a table is
longer than 100,000 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .encoder_input import open_table, read_whole
from .encoder_read import Labels
from .encoder_target import Task, guess_task
from .frames import listed
from .profile_columns import FEW_ROWS, ColumnProfile, count_distinct, describe
from .profile_leaks import Values, find_leaks
from .sample import stride_for

SAMPLE_ROWS: Final = 100_000


@dataclass(frozen=True)
class TableProfile:
    """A table.

    Attributes
    ----------
    rows, columns : int
        Its shape.
    target : str or None
        The column to be predicted.
    task : str or None
        "regression", "binary" or "multiclass", and in `task_reason` why.
    classes, class_counts : tuple or None
        The labels, sorted, and their rows.
    duplicate_rows : int
        Rows that are copies of an earlier row.
    profile : tuple of ColumnProfile
        One a column.
    warnings : tuple of dict
        `kind` ("leak", "identifier", "constant", "missing", "duplicates", "imbalance", "size"), `column`, `text`.
    """

    rows: int
    columns: int
    target: str | None
    task: Task | None
    task_reason: str | None
    classes: tuple[str, ...] | None
    class_counts: tuple[int, ...] | None
    duplicate_rows: int
    profile: tuple[ColumnProfile, ...]
    warnings: tuple[dict[str, Any], ...]

    @property
    def features(self) -> list[str]:
        """The names of the columns to learn from."""
        return [column.name for column in self.profile if column.role == "feature"]

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain JSON types."""
        return _plain(asdict(self))  # type: ignore[no-any-return]


def profile(
    frame: Any,
    target: str | None = None,
    *,
    groups: str | None = None,
    time: str | None = None,
    task: str | None = None,
) -> TableProfile:
    """Describe a table.

    Parameters
    ----------
    frame : dataframe, array, list of rows, path or Dask collection
        The table; the columns of an array are called x0, x1, …
    target : str, optional
        The name of the column to be predicted.
    groups, time : str, optional
        Columns that say which rows belong together, or when they were observed; not features.
    task : {"regression", "binary", "multiclass"}, optional
        What to predict; guessed from the target if it is not given.

    Returns
    -------
    TableProfile
        The description; `to_dict()` makes it JSON.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [50.5, 80.0, None], "town": ["A", "B", "B"], "price": [1.5, 2.25, 1.75]})
    >>> found = profile(table, "price")
    >>> found.task, found.task_reason
    ('regression', 'numbers with fractions')
    >>> [(column.name, column.kind, column.missing) for column in found.profile]
    [('size', 'number', 1), ('town', 'category', 0), ('price', 'number', 0)]
    """
    (frame,) = read_whole("profile", frame)
    table = open_table("profile", frame)
    names = [str(name) for name in table.names]
    twins = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twins:
        raise DataError(f"profile: two columns are called {twins[0]!r}. Rename the columns.")
    roles = _roles(names, target, groups, time)
    stride = stride_for(table.n_rows, SAMPLE_ROWS)
    columns, values = [], {}
    for j, name in enumerate(names):
        column, values[name] = describe(table, j, roles.get(name, "feature"), stride)
        columns.append(column)
    answer = _Answer(None, None, None, None) if target is None else _describe_target(values[target], task)
    duplicates = _count_duplicates(list(values.values()))
    warnings = [warning for column in columns for warning in _column_warnings(column, table.n_rows)]
    if target is not None and answer.task is not None:
        leaks = find_leaks(
            {c.name: values[c.name] for c in columns if c.role == "feature"},
            values[target],
            target,
            answer.task,
            stride,
        )
        warnings += [{"kind": "leak", "column": name, "text": text} for name, text in leaks.items()]
        columns = [_noted(c, leaks[c.name]) if c.name in leaks else c for c in columns]
    warnings += _table_warnings(table.n_rows, columns, duplicates, answer)
    return TableProfile(
        table.n_rows, len(names), target, answer.task, answer.reason, answer.classes, answer.counts, duplicates,
        tuple(columns), tuple(warnings),
    )  # fmt: skip


class _Answer(NamedTuple):
    task: Any
    reason: str | None
    classes: tuple[str, ...] | None
    counts: tuple[int, ...] | None


def _roles(names: Sequence[str], target: str | None, groups: str | None, time: str | None) -> dict[str, str]:
    roles = {}
    for name, role in ((groups, "group"), (time, "time"), (target, "target")):
        if name is not None:
            if name not in names:
                raise DataError(f"profile: there is no column {name!r}. Name one of these: {listed(names)}.")
            roles[name] = role
    return roles


def _describe_target(values: Values, task: str | None) -> _Answer:
    if isinstance(values, Labels):
        counts = np.bincount(values.codes[values.codes >= 0], minlength=len(values.values))
        order = [code for code in np.argsort(np.array(values.values, dtype=object)).tolist() if counts[code]]
        labels, of = [values.values[code] for code in order], [int(counts[code]) for code in order]
        found, reason = guess_task(np.array(labels, dtype=object)) if labels else (None, "every target is missing")
    else:
        present = values[~np.isnan(values)]
        found, reason = guess_task(present) if len(present) else (None, "every target is missing")
        labels, of = [], []
        if (task or found) in ("binary", "multiclass"):
            distinct, numbers = np.unique(present, return_counts=True)
            labels, of = [f"{label:g}" for label in distinct.tolist()], numbers.tolist()
    if task is not None:
        found, reason = task, "as asked"  # type: ignore[assignment]
    if found in (None, "regression"):
        return _Answer(found, reason, None, None)
    return _Answer(found, reason, tuple(labels), tuple(of))


def _count_duplicates(columns: Sequence[Values]) -> int:
    """Return how many rows are copies of an earlier one, by a 64-bit checksum of each."""
    if not columns:
        return 0
    bits: NDArray[np.uint64] | None = None
    for values in columns:
        if isinstance(values, Labels):
            word = values.codes.astype(np.uint64)
        else:
            word = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)
        bits = word if bits is None else (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + word
        bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    assert bits is not None
    return len(bits) - count_distinct(bits)


def _column_warnings(column: ColumnProfile, n_rows: int) -> list[dict[str, Any]]:
    name, texts = column.name, []
    if column.kind == "identifier" and column.role == "dropped":
        texts.append(("identifier", f"{name!r} looks like an identifier ({column.notes[-1]}); it is left out."))
    if column.missing and column.role == "target":
        texts.append(("missing", f"{column.missing} rows have no {name!r}; nothing can be learned from them."))
    elif n_rows > column.missing > 0.3 * n_rows:
        texts.append(("missing", f"{name!r} is missing in {100 * column.missing / n_rows:.0f} % of the rows."))
    return [{"kind": kind, "column": name, "text": text} for kind, text in texts]


def _table_warnings(
    n_rows: int, columns: Sequence[ColumnProfile], copies: int, answer: _Answer
) -> list[dict[str, Any]]:
    n_features = sum(column.role == "feature" for column in columns)
    found = []
    for kind, what in (("constant", "one value in every row"), ("empty", "no value in any row")):
        names = [column.name for column in columns if column.kind == kind]
        if names:
            have = "column has" if len(names) == 1 else "columns have"
            found.append(("constant", f"{len(names)} {have} {what}: {listed(names)}."))
    if copies:
        rows = "1 row is a copy of another" if copies == 1 else f"{copies} rows are copies of others"
        text = f"{rows}; in a split, a copy among the training rows gives its twin away."
        found.append(("duplicates", text))
    if answer.counts is not None and answer.counts:
        smallest, label = min(zip(answer.counts, answer.classes or (), strict=True))
        if smallest < 0.2 * sum(answer.counts) / len(answer.counts) or smallest < 5:
            found.append(
                ("imbalance", f"Class {label!r} has {smallest} of {sum(answer.counts)} rows; accuracy hides it.")
            )
        if len(answer.counts) == 1:
            found.append(("imbalance", f"The target has one class only, {label!r}; there is nothing to tell apart."))
    if n_rows < FEW_ROWS:
        found.append(("size", f"There are {n_rows} rows only; no score will be sure."))
    elif n_features > n_rows:
        found.append(("size", f"There are more columns ({n_features}) than rows ({n_rows}); use a penalty."))
    return [{"kind": kind, "column": None, "text": text} for kind, text in found]


def _noted(column: ColumnProfile, note: str) -> ColumnProfile:
    return replace(column, notes=(*column.notes, note))


def _plain(value: Any) -> Any:
    """Return tuples as lists, NumPy numbers as Python's, and what JSON has no word for as None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
