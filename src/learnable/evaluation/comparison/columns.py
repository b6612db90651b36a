"""The column that says when a row was seen: read as an order, or refused if it is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError, DataTypeError, ParameterError
from ...data.encoder_read import Labels, read_labels
from ...data.frames import listed
from ...data.readings import (
    DATES,
    GAPS,
    NUMBERS,
    READINGS,
    Found,
    as_datetimes,
    find_readings,
    read_as,
    recognise,
    show,
)
from ..splits import Split


class Times(NamedTuple):
    """When the rows were seen."""

    values: NDArray[Any]  #: (n,) datetime64[us], or numbers
    note: str  #: how the column was read, in words

    @property
    def are_dates(self) -> bool:
        """Whether the values are dates rather than numbers."""
        return self.values.dtype.kind == "M"

    def shown(self, position: int) -> str:
        """Return the time of a row for people: a date, with a time of day if some row has one."""
        return show_time(self.values, position)


def read_times(
    owner: str,
    column: Any,
    name: str,
    dayfirst: bool | None = None,
    places: NDArray[np.int64] | None = None,
) -> Times:
    """Return the times of the rows.

    Parameters
    ----------
    owner : str
        Who asks; begins every error.
    column : pyarrow.ChunkedArray
        Dates, numbers, or text that holds dates.
    name : str
        Of the column.
    dayfirst : bool, optional
        Whether 03/04/2024 is in April; needed where no row of the column tells.
    places : array of int, optional
        Where the rows stand in the table as it was read, for errors that name a row.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable.evaluation.comparison.columns import read_times
    >>> read_times("compare", pa.chunked_array([["31/01/2024", "01/02/2024"]]), "day").values.astype("datetime64[D]")
    array(['2024-01-31', '2024-02-01'], dtype='datetime64[D]')
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, kind)
    _refuse_gaps(owner, column, name)
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) and not pa.types.is_time(kind):
        if getattr(kind, "tz", None) is not None:
            column = pc.cast(column, pa.timestamp("us", tz="UTC"))
        return Times(np.asarray(column.to_numpy()).astype("datetime64[us]"), "dates")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind):
        values = np.asarray(column.to_numpy())
        return Times(values, "numbers, in their order")
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataTypeError(f"{owner}: the time column {name!r} is of type {kind}, which is no order; use dates.")
    return _read_text(owner, column, name, dayfirst, places)


def show_time(values: NDArray[Any], position: int) -> str:
    """Return one of several times for people."""
    value = values[position]
    if values.dtype.kind != "M":
        return f"{value:g}" if values.dtype.kind == "f" else str(value)
    whole_days = bool((values == values.astype("datetime64[D]")).all())
    return str(value.astype("datetime64[D]" if whole_days else "datetime64[s]")).replace("T", " ")


def _read_text(owner: str, column: Any, name: str, dayfirst: bool | None, places: NDArray[np.int64] | None) -> Times:
    import narwhals.stable.v2 as nw

    labels = read_labels(nw.from_native(column, series_only=True))
    found = recognise(labels, dayfirst=dayfirst)
    if found is None or not found.is_date:
        raise DataError(
            f"{owner}: the time column {name!r} is no order of rows: {_why(labels)}. Use a column of dates "
            "(2024-01-31, 31/01/2024, 31.01.2024, 01/31/2024, with or without a time of day) or of numbers, or sort "
            "the rows and number them."
        )
    if found.others and dayfirst is None:
        first, second = (show(found.example, reading) for reading in ("day-month-year", "month-day-year"))
        raise DataError(
            f"{owner}: the dates in {name!r} can be read in two ways, and no row tells which: {found.example!r} is "
            f"{first} (--dayfirst) or {second} (--no-dayfirst). Give one of these options (dayfirst=True or False in "
            "Python)."
        )
    days = read_as(labels, found.reading)
    gaps = np.isnan(days)
    if gaps.any():
        first_gap = int(np.argmax(gaps))
        row = first_gap if places is None else int(places[first_gap])
        raise DataError(
            f"{owner}: the time column {name!r} has no date in {int(gaps.sum())} row(s), first "
            f"{labels.values[labels.codes[first_gap]]!r} in row {row + 1} (the first row after the header is 1); fill "
            "them in."
        )
    note = f"dates written {found.reading.replace('-', ', ')}: {found.example!r} is {found.shown()}"
    if dayfirst is not None and found.reading in DATES[1:] and (found.reading == "day-month-year") != dayfirst:
        note += "; the column leaves no other reading"
    return Times(as_datetimes(days), note)


def _why(labels: Labels) -> str:
    """Say what the column holds instead of dates."""
    used = np.unique(labels.codes[labels.codes >= 0])
    values = [labels.values[code] for code in used.tolist() if labels.values[code].strip().lower() not in GAPS]
    odd = next((v for v in values if all(np.isnan(read_as(Labels(np.zeros(1, int), [v]), r))[0] for r in DATES)), None)
    if odd is None:
        return f"its dates are written in several ways, such as {listed(values[:3])}"
    return f"it holds {odd!r}, which is no date"


def _refuse_gaps(owner: str, column: Any, name: str) -> None:
    import pyarrow.compute as pc

    missing = int(pc.sum(pc.is_null(column, nan_is_null=True)).as_py() or 0)
    if missing:
        raise DataError(
            f"{owner}: column {name!r}, which says how to split the rows, is missing in {missing} of them; fill it in."
        )


def periods(times: Any, final: Split) -> dict[str, Any] | None:
    """Return the first and the last time of the training rows and of the hold-out; None without times."""
    if times is None:
        return None
    ends = {}
    for part, rows in zip(("train", "holdout"), final, strict=True):
        order = rows[np.argsort(times[rows], kind="stable")]
        ends[part] = [show_time(times, int(order[0])), show_time(times, int(order[-1]))]
    return ends


# --------------------------------------------------------------------------------------------------------------------
# What columns of text are taken for: dates, amounts or text; by their values, unless the caller says.


#: What a caller may say of a column of text.
KINDS_OF_TEXT: Final = ("text", "date", "number", *READINGS)


def find_texts(
    owner: str, table: Any, kinds: Mapping[str, str], dayfirst: bool | None, leave: Sequence[str] = ()
) -> dict[str, Found]:
    """Return what the columns of text hold that are dates or amounts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable.evaluation.comparison.columns import find_texts
    >>> found = find_texts("compare", pa.table({"cost": ["$1,200", "$80"], "town": ["A", "B"]}), {}, None)
    >>> {name: one.reading for name, one in found.items()}
    {'cost': 'decimal point'}
    """
    for name, kind in kinds.items():
        if kind not in KINDS_OF_TEXT:
            raise ParameterError(f"{owner}: column {name!r} can be taken for {', '.join(KINDS_OF_TEXT)}; got {kind!r}.")
        if name in table.column_names and not _is_text(table[name].type) and name not in leave:
            raise DataError(
                f"{owner}: column {name!r} is of type {table[name].type}, not text; only text can be taken for "
                f"something else, such as {kind!r}."
            )
    names = [n for n in table.column_names if n not in leave and kinds.get(n) != "text" and _is_text(table[n].type)]
    columns = {name: _labels(table[name]) for name in names}
    found = find_readings(names, columns.values(), dayfirst=dayfirst)
    for name in names:
        if name in kinds:
            found[name] = _as_told(owner, name, kinds[name], columns[name], found.get(name))
    return found


def as_read(table: Any, texts: Mapping[str, Found]) -> Any:
    """Return the table with columns of dates and of numbers instead of the texts."""
    return as_numbers(table, {name: found.reading for name, found in texts.items()})


def as_numbers(table: Any, readings: Mapping[str, str]) -> Any:
    """Return the table with columns of text read as dates or numbers, each as told."""
    import pyarrow as pa

    for name, reading in readings.items():
        numbers = read_as(_labels(table[name]), reading)
        values = as_datetimes(numbers) if reading in DATES else numbers
        table = table.set_column(table.column_names.index(name), name, pa.array(values, from_pandas=True))
    return table


def tell(name: str, found: Found) -> str:
    """Say what a column was taken for, with an example and what to say if it is something else."""
    if found.is_date:
        what = f"dates, {found.reading.replace('-', ', ')}"
    else:
        unit = {"": "numbers", "%": "percentages"}.get(found.unit, f"amounts in {found.unit}")
        what = f"{unit} with a {found.reading}"
    other = ""
    if found.others:
        told = "--no-dayfirst" if found.others[0] == "month-day-year" else "--dayfirst"
        option = told if found.is_date else f'--as "{name}={found.others[0]}"'
        other = f"; {option} makes it {found.shown(found.others[0])}"
    quoted = f'"{name}=text"' if not name.isidentifier() else f"{name}=text"
    return f"{name!r} is read as {what}: {found.example!r} is {found.shown()}{other}; --as {quoted} keeps it as text"


def example_of(column: Any, most: int = 24) -> str | None:
    """Return the first value that is there, as text."""
    for chunk in column.chunks:
        valid = chunk.drop_null()
        if len(valid):
            value = valid[0].as_py()
            text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
            return text if len(text) <= most else text[: most - 1] + "…"
    return None


def _as_told(owner: str, name: str, kind: str, labels: Labels, found: Found | None) -> Found:
    """Return the reading that the caller asks for."""
    if kind in READINGS:
        example = found.example if found is not None else next(iter(labels.values), "")
        return Found(kind, (), example)
    wanted = DATES if kind == "date" else NUMBERS
    if found is None or found.reading not in wanted:
        again = recognise(labels)
        held = "text" if again is None else again.reading
        raise DataError(
            f"{owner}: column {name!r} cannot be read as {kind}: it holds {held}, such as "
            f"{next(iter(labels.values), '')!r}. Say how it is written ({', '.join(wanted)}); what is not written so "
            "is then missing."
        )
    return found


def _labels(column: Any) -> Labels:
    import narwhals.stable.v2 as nw

    return read_labels(nw.from_native(column, series_only=True))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
