"""How a CSV file is written: its encoding, its separator and its decimal sign, found out from the first rows."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.errors import DataError

_SAMPLE = 2**18  # bytes that are looked at
_SEPARATORS = ",;\t|"
_COMMA_NUMBER = re.compile(r"-?\d+,\d+")
_POINT_NUMBER = re.compile(r"-?\d+\.\d+")
#: What stands for a missing value, besides nothing at all.
NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "?", "-"]


@dataclass(frozen=True)
class Dialect:
    """How to read one CSV file.

    Attributes
    ----------
    encoding : str
        Of the bytes.
    delimiter : str
        Between the fields.
    decimal : str
        "." or ",".
    newlines : bool
        Whether quoted fields contain line ends; such files cannot be parsed in parallel.
    """

    encoding: str
    delimiter: str
    decimal: str
    newlines: bool
    signs: bool = field(default=False, repr=False, compare=False)  # cells are "+" and "-", so that "-" is a value
    quotes: bool = field(default=False, repr=False, compare=False)  # then line ends may hide in quotes further down

    def read(self, path: Path, columns: Sequence[str] | None = None) -> Any:
        """Return the whole file as a pyarrow.Table; types are those that fit all rows."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        read, parse, convert = self._options(columns, None, None)
        try:
            return arrow_csv.read_csv(path, read_options=read, parse_options=parse, convert_options=convert)
        except pa.ArrowInvalid:
            if self.newlines or not self.quotes:
                raise
            return replace(self, newlines=True).read(path, columns)

    def stream(self, path: Path, columns: Sequence[str] | None, types: dict[str, Any] | None, block: int) -> Any:
        """Return a reader of record batches; types that are not given are those of the first block."""
        from pyarrow import csv as arrow_csv

        read, parse, convert = self._options(columns, types, block)
        return arrow_csv.open_csv(path, read_options=read, parse_options=parse, convert_options=convert)

    def _options(self, columns: Sequence[str] | None, types: dict[str, Any] | None, block: int | None) -> Any:
        from pyarrow import csv as arrow_csv

        extra = {} if block is None else {"block_size": block}
        newlines = self.newlines or (self.quotes and block is not None)  # a stream cannot be read again from the start
        return (
            arrow_csv.ReadOptions(encoding=self.encoding, **extra),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=newlines),
            arrow_csv.ConvertOptions(
                include_columns=columns,
                column_types=types,
                null_values=[word for word in NULLS if not (self.signs and word == "-")],
                strings_can_be_null=True,
                decimal_point=self.decimal,
            ),
        )


def sniff(path: Path, delimiter: str | None = None, encoding: str | None = None) -> Dialect:
    r"""Find out how a CSV file is written; what is given is believed.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_bytes("Größe;Preis\n1,5;20\n".encode("latin-1"))
    >>> sniff(path)
    Dialect(encoding='cp1252', delimiter=';', decimal=',', newlines=False)
    """
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        sample = stream.read(_SAMPLE)
    if not sample.strip():
        raise DataError(f"{path.name}: the file is empty. Pass a table with a header and rows.")
    encoding = encoding or _encoding(path, sample)
    text = sample.decode(encoding, errors="replace")
    lines = text.splitlines()
    if len(sample) == _SAMPLE and len(lines) > 1:
        lines = lines[:-1]  # the last one is cut
    delimiter = delimiter or _delimiter(lines)
    cells = [cell.strip() for row in _split(lines[1:], delimiter) for cell in row]
    commas, points = (sum(bool(p.fullmatch(cell)) for cell in cells) for p in (_COMMA_NUMBER, _POINT_NUMBER))
    decimal = "," if delimiter != "," and commas > points else "."
    return Dialect(encoding, delimiter, decimal, _quotes_cross_lines(lines), "+" in cells, '"' in text)


def _encoding(path: Path, sample: bytes) -> str:
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if sample.startswith(mark):
            return "utf-8" if name == "utf-8-sig" else name  # pyarrow skips the mark of UTF-8 itself
    if b"\x00" in sample:
        raise DataError(f"{path.name}: this is no text file. Pass CSV, Parquet or Arrow files.")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # a character cut at the end is no error
    except UnicodeDecodeError:
        return "cp1252" if _is_cp1252(sample) else "latin-1"
    return "utf-8"


def _is_cp1252(sample: bytes) -> bool:
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(lines: list[str]) -> str:
    """Return the separator that cuts the lines into the same number (> 1) of fields most often."""
    lines = [line for line in lines[:200] if line.strip()]
    best = ","
    best_score = 0.0
    for candidate in _SEPARATORS:
        widths = [len(row) for row in _split(lines, candidate)]
        if not widths or widths[0] < 2:
            continue
        agreement = sum(width == widths[0] for width in widths) / len(widths)
        score = agreement + 1e-3 * min(widths[0], 100)
        if score > best_score:
            best = candidate
            best_score = score
    return best


def _split(lines: list[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the fields of the lines, as far as they are no longer than Python's reader allows."""
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=delimiter)


def _quotes_cross_lines(lines: list[str]) -> bool:
    return any(line.count('"') % 2 for line in lines)
