"""Tables in files: CSV, Parquet, Arrow, JSON and Excel, one file or many, read whole or in pieces.

A table on disk is named by a path, a glob or a folder. `read_table` reads it into memory; `Files` streams it, batch
by batch in the order of the file names and the rows. CSV, Parquet and Arrow take memory that does not grow with the
number of rows; JSON and Excel files are read whole.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import DataError, DataTypeError
from .csv_dialect import NULLS, Dialect, sniff
from .frames import listed

#: Makes features of the columns of a pyarrow.Table; the number of its first row tells folds apart.
Encode = Callable[[Any, int], Any]

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # a column that pandas adds by itself

_PARQUET = (".parquet", ".pq")

_ARROW = (".arrow", ".feather", ".ipc")

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".data")

_JSON = (".jsonl", ".ndjson", ".json")

_EXCEL = (".xlsx", ".xlsm")

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")

_BUFFER = 2**14  # bytes of a Parquet column that are read at a time; without it whole row groups are held

_RUN_ROWS = 2**18  # of row groups after which all that Arrow has allocated for them is given back

_CSV_BLOCK = 2**22  # bytes that are parsed at a time

#: Tables whose numbers take less than this are read whole: every method then works on them.
IN_MEMORY_BYTES = 2**27


class Batch(NamedTuple):
    """Some consecutive rows of one file."""

    rows: Any  #: pyarrow.RecordBatch
    path: Path
    start: int  #: number of the first row within the file


class Files:
    r"""A table in one or several files of the same columns.

    Parameters
    ----------
    source : path, glob, folder, or sequence of paths
        CSV and JSON (also compressed), Parquet, Arrow or Excel files. Several files are taken in the order of their
        names.
    delimiter, encoding : str, optional
        Of CSV files; found out from their first rows by default.
    in_memory_bytes : int
        A table of fewer bytes is read whole; 0 always streams.

    Examples
    --------
    >>> import os, tempfile
    >>> from learnable.data import Files
    >>> folder = tempfile.mkdtemp()
    >>> for number in (1, 2):
    ...     with open(os.path.join(folder, f"part-{number}.csv"), "w") as file:
    ...         _ = file.write(f"x;y\n{number};2,5\n3;4,5\n")
    >>> files = Files(os.path.join(folder, "part-*.csv"))
    >>> files.columns, sum(batch.rows.num_rows for batch in files.batches())
    (['x', 'y'], 4)
    """

    def __init__(
        self,
        source: Any,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        in_memory_bytes: int = IN_MEMORY_BYTES,
    ) -> None:
        _need_pyarrow()
        self.paths = find_files(source)
        self.in_memory_bytes = in_memory_bytes
        self._dialects: dict[Path, Dialect] = {}
        self._last_whole: tuple[Path, Any] | None = None
        self._asked = (delimiter, encoding)
        self.schema = self._schema(self.paths[0])
        self.columns: list[str] = [name for name in self.schema.names if not _PANDAS_INDEX.fullmatch(name)]
        self.encode: Encode | None = None
        self.features: list[str] | None = None  # columns that are encoded
        self.width = 0  # of the encoded rows
        _refuse_duplicates(self.paths[0], self.columns)

    def __repr__(self) -> str:
        return f"Files({str(self.paths[0])!r}{f' and {len(self.paths) - 1} more' if len(self.paths) > 1 else ''})"

    def is_small(self) -> bool:
        """Tell whether the numbers of the table take fewer than `in_memory_bytes` bytes."""
        room = self.in_memory_bytes
        for path in self.paths:
            kind, compressed = _kind(path)
            if kind == "parquet":
                with _reading(path), _parquet(path) as file:
                    room -= 8 * file.metadata.num_rows * file.metadata.num_columns
            else:
                room -= os.path.getsize(path) * (8 if compressed else 2)
            if room < 0:
                return False
        return True

    def encoded(self, encode: Encode, columns: Sequence[str], width: int) -> Files:
        """Return the same files whose features are `encode(table, number of the first row)` of some columns."""
        other = copy(self)
        other.encode = encode
        other.width = width
        other.features = list(columns)
        other.in_memory_bytes = 0
        return other

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return all rows as a pyarrow.Table."""
        import pyarrow as pa

        tables = []
        for path in self.paths:
            with _reading(path):
                names = self._columns_of(path, columns)
                table = self._read_one(path, names)
            tables.append(table)
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataTypeError(f"The files do not fit together: {_first_line(error)}") from error

    def batches(
        self,
        columns: Sequence[str] | None = None,
        rows: int = 2**16,
        labels: str | None = None,
        *,
        lane: Sequence[str] | None = None,
    ) -> Iterator[Batch]:
        """Yield the rows in order, at most about `rows` at a time; whole numbers stay whole in the column `labels`.

        A `lane` is those of the columns to read, by the caller's thread alone: others may read the rest meanwhile.
        """
        for path in self.paths:
            start = 0
            with _reading(path):
                names = self._columns_of(path, columns)
                for batch in self._batches_of(path, list(lane or names), rows, labels, threads=lane is None):
                    yield Batch(batch, path, start)
                    start += batch.num_rows

    def lanes(self, columns: Sequence[str], number: int) -> list[list[str]]:
        """Return the columns in at most `number` groups that can be read side by side: one, unless all is Parquet."""
        if any(_kind(path)[0] != "parquet" for path in self.paths):
            return [list(columns)]
        number = min(number, len(columns))
        return [list(columns[lane::number]) for lane in range(number)]

    def _columns_of(self, path: Path, columns: Sequence[str] | None) -> list[str]:
        """Return the columns to read, all of which the file must have."""
        wanted = self.columns if columns is None else list(columns)
        found = self.columns if path == self.paths[0] else list(self._schema(path).names)
        missing = [name for name in wanted if name not in found]
        if missing:
            raise DataError(
                f"{path.name} has no column {listed(missing)}; {self.paths[0].name} has. Its columns are "
                f"{listed(found)}. All files of a table must have the same columns."
            )
        _refuse_duplicates(path, [name for name in found if name in wanted])
        extra = [name for name in found if name not in self.columns]
        if extra and set(wanted) == set(self.columns):
            raise DataError(
                f"{path.name} has the column {listed(extra)}, which {self.paths[0].name} has not. All files of a table "
                "must have the same columns."
            )
        return wanted

    def _schema(self, path: Path) -> Any:
        kind, _ = _kind(path)
        with _reading(path):
            if kind == "parquet":
                with _parquet(path) as file:
                    return file.schema_arrow
            if kind == "arrow":
                import pyarrow as pa

                with pa.memory_map(str(path)) as file:
                    return pa.ipc.open_file(file).schema
            if kind in _WHOLE:
                return self._whole(path, kind).schema
            with self._open_csv(path, None) as reader:
                return reader.schema

    def _read_one(self, path: Path, columns: list[str]) -> Any:
        import pyarrow as pa

        kind, _ = _kind(path)
        if kind == "csv":
            return self._dialect(path).read(path, columns)
        if kind in _WHOLE:
            return self._whole(path, kind).select(columns)
        if kind == "parquet":
            with _parquet(path, whole=True) as file:
                return file.read(columns)
        return pa.Table.from_batches(
            list(self._batches_of(path, columns, 2**16)),
            pa.schema([self._schema(path).field(c) for c in columns]),
        )

    def _batches_of(
        self, path: Path, columns: list[str], rows: int, labels: str | None = None, threads: bool = True
    ) -> Iterator[Any]:
        kind, _ = _kind(path)
        if kind == "parquet":
            with _parquet(path) as file:
                for run in _runs(file.metadata):
                    yield from file.iter_batches(batch_size=rows, row_groups=run, columns=columns, use_threads=threads)
                    release_unused()
        elif kind == "arrow":
            import pyarrow as pa

            with pa.memory_map(str(path)) as mapped:
                file = pa.ipc.open_file(mapped)
                for number in range(file.num_record_batches):
                    yield file.get_batch(number).select(columns)
        elif kind in _WHOLE:
            yield from self._whole(path, kind).select(columns).to_batches(max_chunksize=rows)
        else:
            with self._open_csv(path, columns, labels) as reader:
                yield from reader

    def _whole(self, path: Path, kind: str) -> Any:
        """Return a table that can only be read whole; the last one is kept."""
        if self._last_whole is None or self._last_whole[0] != path:
            self._last_whole = (path, _WHOLE[kind](path))
        return self._last_whole[1]

    def _dialect(self, path: Path) -> Dialect:
        if path not in self._dialects:
            self._dialects[path] = sniff(path, *self._asked)
        return self._dialects[path]

    def _open_csv(self, path: Path, columns: list[str] | None, labels: str | None = None) -> Any:
        types = None
        if columns is not None:  # what is a number in the first block is one to the end; 1 may be followed by 1.5
            types = {name: self.schema.field(name).type for name in columns}
            types = {name: kind if name == labels else _widest(kind) for name, kind in types.items()}
        return self._dialect(path).stream(path, columns, types, _CSV_BLOCK)


def read_table(source: Any, *, delimiter: str | None = None, encoding: str | None = None) -> Any:
    r"""Return the table in a file, in all files of a glob, or in a folder, as a pyarrow.Table.

    Parameters
    ----------
    source : path, glob, folder, or sequence of paths
        CSV and JSON (also compressed: gz, bz2, zst, lz4), Parquet, Arrow or Excel files.
    delimiter, encoding : str, optional
        Of CSV files; found out from their first rows by default.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "table.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("name,age\nAda,36\nKurt,\n")
    >>> read_table(path).to_pydict()
    {'name': ['Ada', 'Kurt'], 'age': [36, None]}
    """
    return Files(source, delimiter=delimiter, encoding=encoding).read()


def find_files(source: Any) -> list[Path]:
    """Return the files that a path, a glob, a folder or a sequence of them names, in order."""
    if isinstance(source, (list, tuple)):
        return [path for item in source for path in find_files(item)]
    text = os.fspath(source)
    path = Path(text).expanduser()
    if path.is_file():
        _kind(path)
        return [path]
    if path.is_dir():
        found = _only_files(p for p in path.iterdir() if _known(p))
        if not found:
            raise DataError(f"The folder {text!r} holds no CSV, Parquet, Arrow, JSON or Excel file.")
        return found
    found = _only_files(Path(name) for name in glob.glob(str(path), recursive=True))
    if not found:
        many = any(mark in text for mark in "*?[")
        what = f"No file matches {text!r}" if many else f"There is no file {text!r}{_similar(path)}"
        raise DataError(f"{what}. Check the path.")
    for file in found:
        _kind(file)
    return found


def _only_files(paths: Iterable[Path]) -> list[Path]:
    """Return those that are files, in order; a link to nothing is an error, because its rows would be missing."""
    for path in (candidates := sorted(paths)):
        if path.is_symlink() and not path.exists():
            raise DataError(f"{str(path)!r} is a link to {os.readlink(path)!r}, which is not there. Mend the link.")
    return [path for path in candidates if path.is_file()]


def _similar(path: Path) -> str:
    import difflib

    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; there is {str(path.parent / close[0])!r}" if close else ""


def _known(path: Path) -> bool:
    suffix = Path(path.stem).suffix.lower() if path.suffix.lower() in _COMPRESSED else path.suffix.lower()
    return suffix in _PARQUET + _ARROW + _TEXT + _JSON + _EXCEL and not path.name.startswith((".", "_"))


def _kind(path: Path) -> tuple[str, bool]:
    """Return "parquet", "arrow", "csv", "json" or "excel", and whether the file is compressed."""
    suffix = path.suffix.lower()
    compressed = False
    if suffix in _COMPRESSED:
        suffix = Path(path.stem).suffix.lower()
        compressed = True
    if suffix in _PARQUET and not compressed:
        return "parquet", False
    if suffix in _ARROW and not compressed:
        return "arrow", False
    if suffix in _EXCEL and not compressed:
        return "excel", True
    if suffix in _JSON:
        return "json", compressed
    if suffix in _TEXT or suffix == "":
        return "csv", compressed
    raise DataError(
        f"{path.name}: files that end in {suffix!r} are not read; use .csv, .tsv, .txt, .jsonl, .json (also "
        "compressed), .parquet, .arrow or .xlsx."
    )


def _parquet(path: Path, whole: bool = False) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(path) if whole else pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)


def _runs(metadata: Any) -> Iterator[list[int]]:
    """Yield the row groups of a Parquet file in runs that are large enough to be read on their own."""
    run = []
    n_rows = 0
    for number in range(metadata.num_row_groups):
        run.append(number)
        n_rows += metadata.row_group(number).num_rows
        if n_rows >= _RUN_ROWS:
            yield run
            run = []
            n_rows = 0
    if run:
        yield run


def release_unused() -> None:
    """Give back the memory of what was read, Arrow's and that of our own blocks: the next sweep leaves other holes."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    """Return glibc's `malloc_trim`, which empties what its arenas keep for every thread; None in other C libraries."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl and macOS have none; Windows has no library without a name
        return None


def _widest(type_: Any) -> Any:
    import pyarrow as pa

    return pa.float64() if pa.types.is_integer(type_) or pa.types.is_null(type_) else type_


def _refuse_duplicates(path: Path, columns: list[str]) -> None:
    twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    if twice:
        raise DataError(f"{path.name}: the column name {listed(twice)} occurs more than once. Rename the columns.")
    if not columns:
        raise DataError(f"{path.name}: the file has no columns.")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one line that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, EOFError, UnicodeError) as error:
        raise DataError(f"{path.name} cannot be read: {_first_line(error)}") from error
    except OSError as error:
        raise DataError(f"{path.name} cannot be read: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(
            "Reading files needs pyarrow, which is not installed: pip install 'learnable[cli]', or read the table "
            "yourself and pass a dataframe."
        ) from error


# Tables in other files than CSV, Parquet and Arrow: JSON records, JSON lines and Excel sheets. They are read whole.
#
# A JSON file holds a list of objects, or one object per line; what an object lacks is missing. Of an Excel workbook
# the
# first sheet that is not empty is read: its first row holds the names of the columns.

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
    rows = []
    n_cells = 0
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


#: Kinds of files that can only be read whole, and their readers.
_WHOLE = {"json": read_json, "excel": read_excel}
