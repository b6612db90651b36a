"""From a table and the name of a column to a learning problem: which rows, which columns, which task, which targets.

Rows whose target is missing are left out. Columns that cannot help are too: the target, groups and times, identifiers
(unless they are wanted), and what the caller drops. Text that holds dates or amounts is read as such; rows that are
copies of each other are kept together. What was decided is written down for people to read.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.declare import Options, check_parameters, optional
from ...core.errors import DataError, DataTypeError, ParameterError
from ...data.door import is_frame
from ...data.files import read_table
from ...data.frames import listed, open_frame
from ...data.profile import profile
from ...data.readings import Found
from .columns import as_read, example_of, find_texts, read_times, tell
from .glance import correlations, find_copies, merge_groups, preview
from .record import DataRecord, plain

FEWEST_ROWS = 10
TASKS = ("regression", "binary", "multiclass")
COPIES = ("together", "apart")


@dataclass(frozen=True)
class Problem:
    """A table that is ready to be learned from.

    Attributes
    ----------
    features : pyarrow.Table
        The columns to learn from; only rows that have a target.
    y : (n,) float64, or (n,) int64 class codes
        Targets.
    labels : array or None
        The classes themselves, sorted; `y` holds positions in it.
    task : {"regression", "binary", "multiclass"}
        What is predicted.
    target : str
        The name of the target's column.
    groups, times : array or None
        The group of each row (its number), and when it was seen; not both.
    data : DataRecord
        What the comparison record says of the table.
    notes : list of str
        What was decided about rows and columns.
    readings : dict
        How columns of text are read that hold dates or amounts, by name.
    grouping : {"groups", "copies"} or None
        Where `groups` come from: a column, or rows that are copies of each other.
    series : array or None
        Of rows in time, the number of the group that each row belongs to.
    places : array or None
        Where the rows stand in the table as it was read, from 0; None if all of them are here.
    """

    features: Any
    y: NDArray[Any]
    labels: NDArray[Any] | None
    task: str
    target: str
    groups: NDArray[Any] | None
    times: NDArray[Any] | None
    data: DataRecord
    notes: list[str]
    readings: dict[str, str] = field(default_factory=dict)
    grouping: str | None = None
    series: NDArray[np.int64] | None = None
    places: NDArray[np.int64] | None = None

    @property
    def classes(self) -> list[str] | None:
        """The classes as text."""
        return None if self.labels is None else [str(label) for label in self.labels.tolist()]

    @property
    def targets(self) -> NDArray[Any]:
        """The targets as a model should learn them: numbers, or the labels of the table."""
        return self.y if self.labels is None else self.labels[self.y]


def open_data(owner: str, data: Any) -> tuple[Any, str]:
    """Return a path, dataframe or Arrow table as a pyarrow.Table, and a name for it."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return _with_unique_columns(owner, data), "table"
    if is_frame(data):
        return _with_unique_columns(owner, open_frame(owner, data).to_arrow()), "table"
    if isinstance(data, (str, os.PathLike)):
        return _with_unique_columns(owner, read_table(data)), Path(os.fspath(data)).name
    raise DataTypeError(f"{owner}: data must be a path, a dataframe or a pyarrow.Table; got {type(data).__name__}.")


def read_problem(
    owner: str,
    data: Any,
    target: str,
    *,
    groups: str | None = None,
    time: str | None = None,
    task: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    source: str | None = None,
    fewest_rows: int = FEWEST_ROWS,
    dayfirst: bool | None = None,
    kinds: Mapping[str, str] | None = None,
    copies: str = "together",
) -> Problem:
    """Read a table and decide what there is to learn.

    Parameters
    ----------
    owner : str
        Who asks; begins every error.
    data : path, dataframe or pyarrow.Table
        The table.
    target : str
        The column to predict.
    groups, time : str, optional
        Columns that say which rows belong together, or when they were seen; they are not learned from. With both, the
        rows are split by time, and the groups are the series that each have a past of their own.
    task : {"regression", "classification"}, optional
        What the target is; by default the profile decides.
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to learn from although they look like identifiers.
    source : str, optional
        The name of the table.
    fewest_rows : int
        Fewer rows with a target are refused.
    dayfirst : bool, optional
        Whether 03/04/2024 is in April, where no row of a column tells.
    kinds : mapping, optional
        What columns of text hold: "text", "date", "number" or one of `learnable.data.readings.READINGS`, by name;
        by default their values decide.
    copies : {"together", "apart"}
        Whether rows that are copies of each other stay on one side of every split.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable.evaluation.comparison.problem import read_problem
    >>> table = pa.table({"x": list(range(20)), "y": ["a", "b"] * 9 + ["a", None]})
    >>> problem = read_problem("compare", table, "y", keep=["x"])
    >>> problem.task, problem.classes, problem.notes
    ('binary', ['a', 'b'], ["1 row without a value in 'y' is left out"])
    """
    table, name = open_data(owner, data)
    first_rows = preview(table)
    names = list(table.column_names)
    for column, role in [(target, "target"), (groups, "groups"), (time, "time"), *((c, "drop") for c in drop)]:
        if column is not None:
            check_column(owner, column, names, role)
    for column in kinds or {}:
        check_column(owner, column, names, "kind")
    check_parameters(
        owner,
        {"task": task, "copies": copies},
        {"task": optional(Options("regression", "classification")), "copies": Options(*COPIES)},
    )
    _check_roles(owner, target, groups, time, drop, keep)
    places = rows_that_stay(table, target)
    table, notes = rows_with_target(owner, table, target, fewest_rows)
    n_notes = len(notes)
    table = table.drop_columns([name for name in drop if name != time])
    when = None if time is None else read_times(owner, table[time], time, dayfirst, places)
    calendar = time if when is not None and when.are_dates and time not in drop else None
    leave = [name for name in (groups, time) if name and name != calendar]
    texts = find_texts(owner, table, kinds or {}, dayfirst, leave=leave)
    if calendar is not None and (kinds or {}).get(calendar) == "text":
        calendar = None
    typed = as_read(table, texts)
    if target in texts:
        table = table.set_column(table.column_names.index(target), target, typed[target])
        notes.append(tell(target, texts[target]))
    record = plain(profile(typed, target, groups=groups, time=time, task=_task(typed[target], task)).to_dict())
    features, left_out = _choose_columns(record, keep, texts, table)
    notes += [tell(name, texts[name]) for name in features if name in texts]
    if calendar is not None:
        features.append(calendar)
        next(column for column in record["profile"] if column["name"] == calendar)["learned"] = True
    if left_out:
        notes.append(f"columns left out because constant, empty or an identifier: {listed(left_out)}")
    if drop:
        notes.append(f"columns left out as asked: {listed(list(drop))}")
    if not features:
        raise DataError(
            f"{owner}: there is no column to learn from: besides {target!r} the table has "
            f"{listed(left_out) + ' (constant, empty or identifiers)' if left_out else 'nothing'}. Use a table with "
            "more columns, or keep one of these."
        )
    refuse_infinity(owner, table, [*features, target], places)
    y, labels = read_targets(owner, table[target], record["task"], target)
    chosen = table.select(features).combine_chunks()
    readings = {name: texts[name].reading for name in features if name in texts}
    codes = None if groups is None else _codes(_values(owner, table[groups], groups))
    data_record = _data_record(record, source or name, target, labels, y)
    data_record["warnings"] = [
        {"kind": "missing", "column": target, "text": note} for note in notes[:n_notes]
    ] + record["warnings"]
    data_record["preview"] = first_rows
    named = None if labels is None else [str(label) for label in labels.tolist()]
    data_record["correlations"] = correlations(table, features, y, named)
    if when is not None:
        learned = "which is not learned from"
        if calendar is not None:
            learned = (
                "of which the date itself and its place in the year, in the week and, with hours, in the day are "
                f"learned from (not with --drop {time})"
            )
        notes.append(f"the rows are ordered by {time!r} ({when.note}), {learned}")
    # Rows of different days are copies of each other all the same.
    others = [name for name in features if name != calendar] or features
    besides = calendar if len(others) < len(features) else None
    told = {name: reading for name, reading in readings.items() if name in others}
    rows_together, grouping = _keep_together(
        data_record, chosen.select(others), told, codes, when is not None, copies, besides
    )
    return Problem(
        chosen,
        y,
        labels,
        record["task"],
        target,
        rows_together,
        None if when is None else when.values,
        data_record,
        notes,
        readings,
        grouping,
        codes if when is not None else None,
        places,
    )


def refuse_infinity(owner: str, table: Any, names: Sequence[str], places: NDArray[np.int64] | None = None) -> None:
    """Raise if a column of numbers holds infinity, with the row of the table as it was read.

    Parameters
    ----------
    owner : str
        Who asks.
    table : pyarrow.Table
        The rows, or those of them that stay.
    names : sequence of str
        The columns to look at.
    places : array of int, optional
        Where the rows stood in the table as it was read, from 0; as they stand by default.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable.evaluation.comparison.problem import refuse_infinity
    >>> refuse_infinity("predict", pa.table({"x": [1.0, float("-inf")]}), ["x"])
    Traceback (most recent call last):
    ...
    learnable.core.errors.DataError: predict: column 'x' holds -inf in row 2 (the first row after the header is 1). ...
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        column = table[name]
        if not pa.types.is_floating(column.type):
            continue
        if pa.types.is_float16(column.type):
            column = pc.cast(column, pa.float32())
        infinite = pc.fill_null(pc.is_inf(column), False)
        place = pc.index(infinite, True).as_py()
        if place < 0:
            continue
        row = place if places is None else int(places[place])
        many = int(pc.sum(infinite).as_py())
        more = "" if many == 1 else f" and in {many - 1} more"
        raise DataError(
            f"{owner}: column {name!r} holds {column[place].as_py():g} in row {row + 1} (the first row after the "
            f"header is 1){more}. Replace it by a number, or by a missing value."
        )


def _choose_columns(
    record: dict[str, Any], keep: Sequence[str], texts: Mapping[str, Found], table: Any
) -> tuple[list[str], list[str]]:
    """Return the columns to learn from and those left out; complete what the record says of each."""
    for column in record["profile"]:
        name = column["name"]
        if name in keep and column["role"] == "dropped" and column["kind"] == "identifier":
            column["role"] = "feature"
        column["example"] = example_of(table[name])
        if name in texts:
            column["notes"] = [*column["notes"], tell(name, texts[name])]
            column["reading"] = texts[name].reading
    features = [column["name"] for column in record["profile"] if column["role"] == "feature"]
    left_out = [column["name"] for column in record["profile"] if column["role"] == "dropped"]
    return features, left_out


def _keep_together(
    data: DataRecord,
    features: Any,
    readings: dict[str, str],
    codes: Any,
    in_time: bool,
    copies: str,
    besides: str | None = None,
) -> tuple[NDArray[np.int64] | None, str | None]:
    """Return the groups of rows that stay on one side of a split, and where they come from; tell it in the record.

    `besides` is a column that is learned from but is not among the features given, in which copies may differ.
    """
    found = find_copies(features, readings)
    data["copies"] = {
        "rows": found.rows,
        "exact": found.exact,
        "near": found.near,
        "kept": "by time" if in_time else copies,
    }
    data["warnings"] = [warning for warning in data["warnings"] if warning["kind"] != "duplicates"]
    if found.rows:
        text = _about_copies(data["copies"], besides)
        data["warnings"].append({"kind": "duplicates", "column": None, "text": text})
    if in_time:
        return None, None
    if not found.rows or copies == "apart":
        return codes, None if codes is None else "groups"
    if codes is None:
        return found.groups, "copies"
    return merge_groups(codes, found.groups), "groups"


def _about_copies(copies: dict[str, Any], besides: str | None) -> str:
    parts = [(copies["exact"], "a copy", "copies"), (copies["near"], "nearly a copy", "nearly copies")]
    told = [
        f"1 row is {one} of another" if count == 1 else f"{count} rows are {many} of others"
        for count, one, many in parts
        if count
    ]
    end = {
        "together": "copies stay on one side of every split, because one among the training rows gives its twin away",
        "apart": "as asked, they may stand on both sides of a split, where one gives its twin away",
        "by time": "rows are split by time, so a later one may have its twin among the training rows",
    }[copies["kept"]]
    but = "" if besides is None else f" other than {besides!r}"
    return f"{' and '.join(told)} in the columns learned from{but}; {end}."


def _codes(values: NDArray[Any]) -> NDArray[np.int64]:
    try:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    except TypeError:  # values of several types
        codes: dict[Any, int] = {}
        return np.array([codes.setdefault(value, len(codes)) for value in values.tolist()], dtype=np.int64)


def _task(column: Any, wanted: str | None) -> str | None:
    """Return the profile's word for what the caller wants to predict."""
    import pyarrow.compute as pc

    if wanted is None or wanted == "regression":
        return wanted
    return "binary" if pc.count_distinct(column).as_py() <= 2 else "multiclass"


def check_column(owner: str, name: str, names: Sequence[str], role: str) -> None:
    """Raise unless the table has the column; suggest the names that are close."""
    if name in names:
        return
    close = difflib.get_close_matches(name, names, 3, 0.6) or [n for n in names if n.lower() == name.lower()]
    shown = listed(names) if len(names) <= 8 else f"{listed(names[:5])}, …, {listed(names[-3:])}"
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"its columns are {shown}."
    raise DataError(f"{owner}: the table has no column {name!r} ({role}); {hint}")


def _check_roles(
    owner: str, target: str, groups: str | None, time: str | None, drop: Sequence[str], keep: Sequence[str]
) -> None:
    for name, role in ((groups, "groups"), (time, "time")):
        if name is not None and name == target:
            raise ParameterError(f"{owner}: {name!r} is the target, so it cannot be {role} too.")
    if groups is not None and groups == time:
        raise ParameterError(f"{owner}: {time!r} cannot be both groups and time; give two columns, or one of them.")
    clash = [name for name in drop if name in (target, groups) or name in keep]
    if clash:
        raise ParameterError(f"{owner}: {clash[0]!r} cannot be dropped: it is needed. Leave it out of drop.")


def rows_with_target(owner: str, table: Any, target: str, fewest: int) -> tuple[Any, list[str]]:
    """Return the rows that have a target, and a note if others were left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.num_rows == 0:
        raise DataError(f"{owner}: the table has no rows, only the columns {listed(table.column_names)}.")
    column = table[target]
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
        table = table.set_column(table.column_names.index(target), target, column)
    missing = _is_missing(column)
    n_missing = int(pc.sum(missing).as_py() or 0)
    notes = []
    if n_missing:
        table = table.filter(pc.invert(missing))
        rows = "row" if n_missing == 1 else "rows"
        notes.append(f"{n_missing} {rows} without a value in {target!r} {'is' if n_missing == 1 else 'are'} left out")
    if table.num_rows < fewest:
        raise DataError(f"{owner}: {table.num_rows} row(s) with a value in {target!r}; at least {fewest} are needed.")
    return table, notes


def rows_that_stay(table: Any, target: str) -> NDArray[np.int64] | None:
    """Return where the rows with a target stand in the table, from 0; None if all have one."""
    missing = np.asarray(_is_missing(table[target]).to_numpy(), dtype=bool)
    return np.flatnonzero(~missing) if missing.any() else None


def _is_missing(column: Any) -> Any:
    """Tell which targets are missing, or blank."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    missing = pc.is_null(column, nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        missing = pc.or_(missing, pc.equal(pc.utf8_trim_whitespace(pc.fill_null(column, "")), ""))
    return missing


def read_targets(owner: str, column: Any, task: str, name: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the targets as numbers, or as codes of the sorted classes, and the classes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if task == "regression":
        column = _amounts(owner, column, name)
        try:
            y = np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
            raise DataTypeError(
                f"{owner}: the target {name!r} is of type {column.type}, not a number, so it cannot be regressed on; "
                "use a model of classes."
            ) from error
        if not np.isfinite(y).all():
            raise DataError(f"{owner}: the target {name!r} has infinite values; replace them.")
        if np.ptp(y) == 0:
            raise DataError(f"{owner}: the target {name!r} is {y[0]:g} in every row: there is nothing to predict.")
        return y, None
    encoded = column.combine_chunks().dictionary_encode()
    labels = np.array(encoded.dictionary.to_pylist())
    if len(labels) < 2:
        raise DataError(
            f"{owner}: the target {name!r} has one class only, {labels.tolist()[0]!r}: there is nothing to predict."
        )
    if 2 * len(labels) > len(column):
        raise DataError(
            f"{owner}: the target {name!r} has {len(labels)} different values in {len(column)} rows, too many for "
            "classes. Is it an identifier, or text?"
        )
    order = np.argsort(labels, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[encoded.indices.to_numpy(zero_copy_only=False)], labels[order]


def _amounts(owner: str, column: Any, name: str) -> Any:
    """Return a column of amounts that are written as text, such as "$1,234", as numbers; others as they are."""
    import pyarrow as pa

    found = find_texts(owner, pa.table({name: column}), {}, None).get(name)
    return column if found is None or found.is_date else as_read(pa.table({name: column}), {name: found})[name]


def _values(owner: str, column: Any, name: str) -> NDArray[Any]:
    if column.null_count:
        raise DataError(
            f"{owner}: column {name!r}, which says how to split the rows, is missing in {column.null_count} of them; "
            "fill it in."
        )
    return np.asarray(column.to_numpy())


def _with_unique_columns(owner: str, table: Any) -> Any:
    names = table.column_names
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise DataError(f"{owner}: the column name {listed(twice)} occurs more than once. Rename the columns.")
    return table


def _data_record(
    record: dict[str, Any], source: str, target: str, labels: NDArray[Any] | None, y: NDArray[Any]
) -> DataRecord:
    counts = None if labels is None else np.bincount(y, minlength=len(labels)).tolist()
    return DataRecord(
        source=source,
        rows=record["rows"],
        columns=record["columns"],
        target=target,
        task=record["task"],
        task_reason=record["task_reason"],
        classes=None if labels is None else [str(label) for label in labels.tolist()],
        class_counts=counts,
        duplicate_rows=record["duplicate_rows"],
        fingerprint="",
        profile=record["profile"],
        warnings=record["warnings"],
    )
