"""What columns of text are taken for: dates, amounts or text; by their values, unless the caller says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...core.errors import DataError, ParameterError
from ...data.encoder_read import Labels, read_labels
from ...data.readings import DATES, NUMBERS, READINGS, Found, as_datetimes, find_readings, read_as, recognise

#: What a caller may say of a column of text.
KINDS_OF_TEXT: Final = ("text", "date", "number", *READINGS)


def find_texts(
    owner: str, table: Any, kinds: Mapping[str, str], dayfirst: bool | None, leave: Sequence[str] = ()
) -> dict[str, Found]:
    """Return what the columns of text hold that are dates or amounts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from learnable.evaluation.comparison.taken_for import find_texts
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
