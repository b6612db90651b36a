"""What a table holds, before any model sees it: kinds, gaps, distributions, identifiers, suspected leaks.

Counts are of all rows. Quantiles, distinct numbers and one-column rules come from every 2ᵏ-th row where a table is
longer than 100,000 rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from ..core import Array, DataError, NDArray
from .encoder_categories import Task, guess_task
from .encoder_fit import is_free_text
from .encoder_input import Columns, open_table, read_whole
from .encoder_read import Labels
from .frames import listed
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
        One per column.
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
    columns = []
    values = {}
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
        columns = [replace(c, notes=(*c.notes, leaks[c.name])) if c.name in leaks else c for c in columns]
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
        labels = [values.values[code] for code in order]
        of = [int(counts[code]) for code in order]
        found, reason = guess_task(np.array(labels, dtype=object)) if labels else (None, "every target is missing")
    else:
        present = values[~np.isnan(values)]
        found, reason = guess_task(present) if len(present) else (None, "every target is missing")
        labels = []
        of = []
        if (task or found) in ("binary", "multiclass"):
            distinct, numbers = np.unique(present, return_counts=True)
            labels = [f"{label:g}" for label in distinct.tolist()]
            of = numbers.tolist()
    if task is not None:
        found = task  # type: ignore[assignment]
        reason = "as asked"  # type: ignore[assignment]
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
    name = column.name
    texts = []
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


def _plain(value: Any) -> Any:
    """Return tuples as lists, NumPy numbers as Python's, and what JSON has no word for as None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


# Columns that give the target away: what one column alone predicts on rows it was not fitted to.
#
# A rule of one column is fitted to half of the rows and scored on the others: for a category the mean (or most
# frequent)
# target of each level, for a number the same in each of some bins, or the neighbour's target. A column whose rule is
# almost perfect, while the rules of the others are not, is suspected to be made from the target.


Values = Array | Labels

ALMOST: Final = 0.99  # score of one column alone from which it is suspected

_OTHERS: Final = 0.9  # unless half of the other columns score this much as well

_BINS: Final = 64

_LEAST_ROWS: Final = 30

_LEAST_COPIES: Final = 5

_ENOUGH_ROWS: Final = 2**10

_MOST_ELEMENTS: Final = 2**22  # of all columns together: a wide table is judged by fewer rows


def find_leaks(
    features: Mapping[str, Values], target: Values, target_name: str, task: str, stride: int = 1
) -> dict[str, str]:
    """Return the suspected columns, each with the reason in words."""
    y, known = _target_numbers(target, task)
    rows = np.flatnonzero(known)[::stride]
    rows = rows[:: stride_for(len(rows), max(_ENOUGH_ROWS, _MOST_ELEMENTS // max(1, len(features))))]
    y = y[rows]
    found = {}
    scores = {}
    for name, values in features.items():
        x = _numbers_of(values)[rows]
        if _spelled(name) == _spelled(target_name):
            found[name] = f"{name!r} has the name of the target."
        elif _is_copy(values, target, rows):
            found[name] = f"{name!r} is a copy of the target."
        elif len(rows) >= _LEAST_ROWS:
            scores[name] = _score_alone(x, isinstance(values, Labels), y, task)
    for name, score in scores.items():
        others = [other for key, other in scores.items() if key != name]
        if score > ALMOST and others and float(np.median(others)) < _OTHERS:
            what = "R²" if task == "regression" else "share of errors avoided"
            found[name] = (
                f"{name!r} alone predicts the target almost perfectly ({what} {score:.4f}); was it known before?"
            )
    return found


def _score_alone(x: Array, is_label: bool, y: Array, task: str) -> float:
    """Return how much of the error of a constant the best one-column rule avoids on the rows it has not seen."""
    train = _every_other(len(y))
    test = ~train
    x_train = x[train]
    y_train = y[train]
    x_test = x[test]
    y_test = y[test]
    if is_label:
        rules = [_by_level(x_train, y_train, x_test, task)]
    else:
        present = ~np.isnan(x_train)
        if present.sum() < 2:
            return 0.0
        edges = np.unique(np.quantile(x_train[present], np.linspace(0, 1, _BINS + 1)[1:-1]))
        binned = [np.where(np.isnan(v), -1, np.searchsorted(edges, v, side="right")) for v in (x_train, x_test)]
        rules = [_by_level(binned[0].astype(float), y_train, binned[1].astype(float), task)]
        rules.append(_by_neighbour(x_train, y_train, x_test, task))
    constant = _constant(y_train, task)
    base = _error(np.full(len(y_test), constant), y_test, task)
    return max((1 - _error(guess, y_test, task) / base for guess in rules), default=0.0) if base > 0 else 0.0


def _every_other(n: int) -> NDArray[np.bool_]:
    """Return a fixed half of the rows that follows no period of the table's own."""
    mixed = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray((mixed >> np.uint64(40)) % np.uint64(2) == 0)


def _by_level(x: Array, y: Array, x_new: Array, task: str) -> Array:
    levels, codes = np.unique(x, return_inverse=True)
    if task == "regression":
        answers = np.bincount(codes, y) / np.bincount(codes)
    else:
        k = int(y.max()) + 1
        counts = np.bincount(codes * k + y.astype(np.int64), minlength=len(levels) * k).reshape(-1, k)
        answers = counts.argmax(axis=1).astype(float)
    place = np.clip(np.searchsorted(levels, x_new), 0, len(levels) - 1)
    return np.where(levels[place] == x_new, answers[place], _constant(y, task))


def _by_neighbour(x: Array, y: Array, x_new: Array, task: str) -> Array:
    present = ~np.isnan(x)
    order = np.argsort(x[present], kind="stable")
    xs = x[present][order]
    ys = y[present][order]
    constant = _constant(y, task)
    known = ~np.isnan(x_new)
    guess = np.full(len(x_new), constant)
    if task == "regression":
        guess[known] = np.interp(x_new[known], xs, ys)
        return guess
    right = np.clip(np.searchsorted(xs, x_new[known]), 1, len(xs) - 1)
    nearer_left = x_new[known] - xs[right - 1] < xs[right] - x_new[known]
    guess[known] = ys[np.where(nearer_left, right - 1, right)]
    return guess


def _constant(y: Array, task: str) -> float:
    return float(y.mean()) if task == "regression" else float(np.bincount(y.astype(np.int64)).argmax())


def _error(guess: Array, y: Array, task: str) -> float:
    return float(((guess - y) ** 2).mean()) if task == "regression" else float((guess != y).mean())


def _target_numbers(target: Values, task: str) -> tuple[Array, NDArray[np.bool_]]:
    numbers = _numbers_of(target)
    known = np.isfinite(numbers)
    if task != "regression" and known.any():
        codes = np.zeros(len(numbers))
        codes[known] = np.unique(numbers[known], return_inverse=True)[1]
        numbers = codes
    return numbers, known


def _numbers_of(values: Values) -> Array:
    if not isinstance(values, Labels):
        size = np.abs(values).max(initial=0.0, where=np.isfinite(values)) or 1.0
        return np.where(np.isinf(values), np.nan, values) / size  # differences and squares of huge numbers overflow
    return np.where(values.codes < 0, np.nan, values.codes)


def _is_copy(values: Values, target: Values, rows: NDArray[np.int64]) -> bool:
    if isinstance(values, Labels) != isinstance(target, Labels) or len(rows) < _LEAST_COPIES:
        return False
    if isinstance(values, Labels) and isinstance(target, Labels):
        code_of = {value: code for code, value in enumerate(target.values)}
        lookup = np.array([code_of.get(value, -2) for value in values.values] + [-1])
        return bool(np.array_equal(lookup[values.codes[rows]], target.codes[rows]))
    return bool(np.array_equal(np.asarray(values)[rows], np.asarray(target)[rows]))


def _spelled(name: Any) -> str:
    return "".join(character for character in str(name).lower() if character.isalnum())


# One column of a table, described.

FEW_ROWS: Final = 30

_HISTOGRAM_BINS = 20
_TOP = 10

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
    name = str(table.names[position])
    kind = table.type_of(position)
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
    low = float(finite.min())
    high = float(finite.max())
    if kind == "boolean":
        truths = (("True", int((finite == 1).sum())), ("False", int((finite == 0).sum())))
        return ColumnProfile(name, "boolean", role, missing, 2, tuple(notes), top=tuple(sorted(truths, key=_by_count)))
    shrunk = 1.0 if high - low < np.inf else 0.5  # the ends may be too far apart for their difference
    edges = np.linspace(shrunk * low, shrunk * high, _HISTOGRAM_BINS + 1) / shrunk
    counts = np.histogram(finite, bins=np.unique(edges))[0] if len(np.unique(edges)) > 1 else np.array([len(finite)])
    histogram = {"edges": np.unique(edges).tolist(), "counts": counts.tolist()}
    if kind == "date":
        notes.append(f"from {_as_date(low)} to {_as_date(high)}")
        return ColumnProfile(name, "date", role, missing, distinct, tuple(notes), None, histogram)
    quartiles = np.quantile(sample, [0.25, 0.5, 0.75]).tolist()
    size = max(abs(low), abs(high))
    mean = float((finite / size).mean()) * size
    std = float((finite / size).std()) * size
    summary = dict(
        zip(("mean", "std", "min", "q25", "median", "q75", "max"), (mean, std, low, *quartiles, high), strict=True)
    )
    found = "number"
    if role != "target" and _numbers_rows(name, finite, sample, distinct, missing):
        found = "identifier"
        notes = [*notes, "a different whole number in every row"]
    return ColumnProfile(name, found, _kept(role, found), missing, distinct, tuple(notes), summary, histogram)


def _numbers_rows(name: str, finite: Array, sample: Array, distinct: int, missing: int) -> bool:
    """Tell whether whole numbers name the rows: all different, and counted from 0 or 1 or called an id."""
    if len(finite) < FEW_ROWS or distinct < _UNIQUE * len(sample) or (finite != np.floor(finite)).any():
        return False
    counted = finite.min() in (0, 1) and finite.max() == finite.min() + len(finite) - 1
    return (distinct == len(sample) and counted and not missing) or is_id_name(name)


def _describe_labels(name: str, labels: Labels, role: str) -> ColumnProfile:
    counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.values))
    present = int(counts.sum())
    distinct = int((counts > 0).sum())
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
        kind = "identifier"
        notes = ("a different name in (almost) every row",)
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
