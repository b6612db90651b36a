"""Tables in other files than CSV, Parquet and Arrow: JSON records, JSON lines and Excel sheets. They are read whole.

A JSON file holds a list of objects, or one object per line; what an object lacks is missing. Of an Excel workbook the
first sheet that is not empty is read: its first row holds the names of the columns.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

from ..core.errors import DataError
from .csv_dialect import NULLS

#: Memory that a workbook may unpack to: a small file can hold a very large sheet.
_MOST_CELLS = 50_000_000


def read_json(path: Path) -> Any:
    """Return a file of JSON records or JSON lines, also compressed, as a pyarrow.Table."""
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        text = _decoded(path, stream.read())
    if text.lstrip()[:1] == "[":
        records = _loads(path, text, 1)
    else:
        records = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                records.append(_loads(path, line, number))
    if len(records) == 1 and isinstance(records[0], dict) and isinstance(records[0].get("data"), list):
        records = records[0]["data"]  # {"data": [...]}, as some services answer
    if not records:
        raise DataError(f"{path.name}: the file holds no records. Pass a list of objects, or one object per line.")
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            shown = json.dumps(record)[:40]
            raise DataError(f"{path.name}: record {number} is {shown}, no object of names and values.")
    names = list(dict.fromkeys(str(name) for record in records for name in record))
    return _table(path, {name: [record.get(name) for record in records] for name in names})


def read_excel(path: Path) -> Any:
    """Return the first sheet of an Excel workbook that is not empty as a pyarrow.Table."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise DataError(
            f"{path.name}: reading Excel files needs openpyxl, which is not installed: pip install openpyxl, or save "
            "the sheet as CSV."
        ) from error
    try:
        book = load_workbook(path, read_only=True, data_only=True)
        rows: list[tuple[Any, ...]] = []
        for sheet in book.worksheets:
            rows = _rows(path, sheet)
            if rows:
                break
        book.close()
    except DataError:
        raise
    except Exception as error:  # a damaged workbook fails in many ways: zip, XML, missing parts
        raise DataError(f"{path.name} cannot be read: it is no sound Excel workbook ({error}).") from error
    if len(rows) < 2:
        raise DataError(f"{path.name}: no sheet has a row of names and rows of values.")
    width = max(j + 1 for row in rows for j, cell in enumerate(row) if cell is not None)
    header = [*rows[0], *[None] * width][:width]
    names = [f"column {j + 1}" if name is None else str(name).strip() for j, name in enumerate(header)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path.name}: the column name {twice[0]!r} occurs more than once. Rename the columns.")
    cells = [[*row, *[None] * width][:width] for row in rows[1:]]
    return _table(path, {name: [row[j] for row in cells] for j, name in enumerate(names)})


def _rows(path: Path, sheet: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet that are not empty."""
    rows, n_cells = [], 0
    for row in sheet.iter_rows(values_only=True):
        n_cells += len(row)
        if n_cells > _MOST_CELLS:
            raise DataError(f"{path.name}: the sheet has more than {_MOST_CELLS:,} cells. Save it as Parquet or CSV.")
        if any(cell is not None for cell in row):
            rows.append(row)
    return rows


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{path.name}, line {line}: JSON files must be encoded in UTF-8.") from error


def _loads(path: Path, text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path.name}, line {line + error.lineno - 1}: {error.msg} (column {error.colno}).") from error
    except RecursionError as error:
        raise DataError(f"{path.name}, line {line}: the values are nested too deeply to be a table.") from error


def _table(path: Path, columns: dict[str, list[Any]]) -> Any:
    """Return lists as a pyarrow.Table: numbers where all values are numbers, dates where all are dates, else text."""
    import pyarrow as pa

    return pa.table({name: _column(path, name, values) for name, values in columns.items()})


def _column(path: Path, name: str, values: list[Any]) -> Any:
    import pyarrow as pa

    values = [None if isinstance(value, str) and value.strip() in NULLS else value for value in values]
    for number, value in enumerate(values, 1):
        if isinstance(value, (dict, list)):
            what = "a list" if isinstance(value, list) else "an object"
            raise DataError(f"{path.name}: the cell of {name!r} in record {number} is {what}; flatten the records.")
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present):
        return pa.array(values, pa.bool_())
    if all(type(value) is int and abs(value) < 2**63 for value in present):
        return pa.array(values, pa.int64())
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if all(isinstance(value, (date, datetime)) for value in present):
        return pa.array([_moment(value) for value in values], pa.timestamp("us"))
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _moment(value: date | None) -> datetime | None:
    """Return a date as its first moment; a moment as it is."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day)
