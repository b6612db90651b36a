"""Tables of genotypes: dataframes, CSV and Parquet files, read by pieces of their rows.

Columns "name_1", "name_2", … are copies of one locus; other columns are whole genotypes ("136/146") or, if all of them
are numbers from 0 to the ploidy, copies of the second allele.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from .cells import CELLS_AT_ONCE, CellTable, LociBuilder, add_coded
from .genotypes import Genotypes

_MISSING = {"", ".", "-9", "-1", "NA", "na", "NaN", "nan", "?"}
_SEPARATORS = re.compile(r"[/|:]")
#: Columns whose cells are unpacked at once.
_AT_ONCE = 512


class Pieces(NamedTuple):
    """A table that is read by pieces of its rows."""

    owner: str  #: what errors call it
    names: list[str]  #: columns
    parts: Iterator[Iterable[Sequence[Any]]]  #: rows after rows, each part as its columns in order
    lines_before: int | None  #: lines of the file before the first row; None if it has no lines


def with_groups(table: Genotypes, groups: Any) -> Genotypes:
    """Return the table with a label per individual: given, or the last word of each line of a file."""
    labels = groups
    if isinstance(groups, (str, Path)):
        labels = [line.split()[-1] for line in Path(groups).read_text(encoding="utf-8").splitlines() if line.strip()]
    labels = tuple(str(label) for label in labels)
    if len(labels) != table.n_individuals:
        raise DataError(f"read_genotypes: {len(labels)} groups for {table.n_individuals} individuals.")
    return Genotypes(
        table.n_alleles, table.individuals, table.loci, labels, table.allele_names, table.packed, table._alleles
    )


def read_csv(path: Path, groups: Any, **options: Any) -> Genotypes:
    """Read a CSV file (.tsv: separated by tabs)."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t" if path.name.lower().endswith(".tsv") else ",")
            names = next(reader, None)
            if not names:
                raise DataError(f"{path}: the file is empty.")
            return _read_pieces(Pieces(str(path), names, _rows_of(path, reader, len(names)), 1), groups, **options)
    except (csv.Error, OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error


def _rows_of(path: Path, reader: Any, width: int) -> Iterator[Iterable[Sequence[str]]]:
    """Yield rows of a CSV file as columns, as many as are turned into numbers at once."""
    rows: list[list[str]] = []
    for row in reader:
        if not row:
            continue
        if len(row) != width:
            raise DataError(f"{path}, line {reader.line_num}: {len(row)} columns, where the first row has {width}.")
        rows.append(row)
        if len(rows) * width >= CELLS_AT_ONCE:
            yield zip(*rows, strict=True)
            rows = []
    if rows:
        yield zip(*rows, strict=True)


def read_parquet(path: Path, groups: Any, **options: Any) -> Genotypes:
    """Read a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            rows = max(1, CELLS_AT_ONCE // max(1, len(names)))
            parts = ((column.to_pylist() for column in batch.columns) for batch in file.iter_batches(batch_size=rows))
            return _read_pieces(Pieces(str(path), names, parts, None), groups, **options)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: {error}") from error


def read_frame(frame: Any, groups: Any, **options: Any) -> Genotypes:
    """Read a dataframe."""
    import narwhals as nw

    columns = nw.from_native(frame, eager_only=True)
    names = [str(name) for name in columns.columns]
    parts = iter([(column.to_list() for column in columns.iter_columns())])
    return _read_pieces(Pieces("the dataframe", names, parts, None), groups, **options)


def _read_pieces(pieces: Pieces, groups: Any, *, ignore: Any = (), ploidy: int = 2) -> Genotypes:
    names = pieces.names
    skip = {ignore} if isinstance(ignore, str) else set(ignore)
    by_column = isinstance(groups, str) and groups in names
    if by_column:
        skip.add(groups)
    unknown = skip - set(names)
    if unknown:
        raise ParameterError(f"read_genotypes: {pieces.owner} has no column {sorted(unknown)[0]!r}.")
    kept = [j for j, name in enumerate(names) if name not in skip]
    # The first column may hold names, of which there are many; it is kept apart until that is known.
    begins_apart = bool(kept) and kept[0] == 0
    cells = CellTable(len(kept) - begins_apart, _MISSING)
    heads: list[str] = []
    labels: list[str] = []
    n_rows = 0
    wanted = set(kept[begins_apart:])
    known: dict[Any, int] = {}
    for part in pieces.parts:
        found = []
        for j, values in enumerate(part):
            if by_column and names[j] == groups:
                labels += [_cell(value) for value in values]
            if begins_apart and j == 0:
                heads += [_cell(value) for value in values]
            if j in wanted:
                found.append(_numbers_of(cells, known, values))
        if found:
            cells.add_numbers(np.column_stack(found))
        n_rows += len(values)
    individuals = heads if begins_apart and _are_names(heads) else None
    if begins_apart and individuals is None:
        apart = np.array([cells.number(value) for value in heads], dtype=np.uint32)
        fields = Fields(pieces, [names[j] for j in kept], cells, apart, n_rows)
    else:
        fields = Fields(pieces, [names[j] for j in kept[begins_apart:]], cells, None, n_rows)
    if not fields.names or not n_rows:
        raise DataError(f"read_genotypes: {pieces.owner} has no column of genotypes, or no rows.")
    builder = _read_dosages(fields, ploidy) if fields.are_dosages(ploidy) else _read_copies(fields)
    table = builder.finish(individuals=individuals)
    given = labels if by_column else groups
    return table if given is None else with_groups(table, given)


def _numbers_of(cells: CellTable, known: dict[Any, int], values: Sequence[Any]) -> NDArray[np.uint32]:
    """Return the numbers of the values of a column. IN/OUT known: numbers of values that were met, NaN apart."""
    out = np.empty(len(values), dtype=np.uint32)
    for row, value in enumerate(values):
        number = known.get(value)
        if number is None:
            number = cells.number(_cell(value))
            if value == value:
                known[value] = number
        out[row] = number
    return out


class Fields:
    """Columns of genotypes; a first one that turned out to hold no names is kept apart from the others."""

    def __init__(
        self, pieces: Pieces, names: list[str], cells: CellTable, apart: NDArray[np.uint32] | None, n_rows: int
    ) -> None:
        self.pieces = pieces
        self.names = names
        self.cells = cells
        self.apart = apart
        self.n_rows = n_rows
        self._at = (0, 0)
        self._block = np.zeros((self.n_rows, 0), dtype=np.uint32)

    def numbers(self, j: int) -> NDArray[np.uint32]:
        """Return the numbers of a column's values."""
        if self.apart is not None:
            if j == 0:
                return self.apart
            j -= 1
        if not self._at[0] <= j < self._at[1]:
            self._at = (j, min(j + _AT_ONCE, self.cells.n_columns))
            self._block = self.cells.columns(*self._at)
        return self._block[:, j - self._at[0]]

    @cached_property
    def loci(self) -> dict[str, list[int]]:
        """Return the columns of each locus, by its name."""
        known = set(self.names)
        found: dict[str, list[int]] = {}
        for j, name in enumerate(self.names):
            stem, _, copy = name.rpartition("_")
            paired = stem and copy.isdigit() and f"{stem}_1" in known and f"{stem}_2" in known
            found.setdefault(stem if paired else name, []).append(j)
        return found

    def are_dosages(self, ploidy: int) -> bool:
        """Tell whether every cell is a number from 0 to the ploidy, and every locus one column."""
        numbers = all(_is_number(value) and 0 <= float(value) <= ploidy for value in self.cells.values[1:])
        return numbers and all(len(own) == 1 for own in self.loci.values())

    def place(self, row: int, j: int) -> str:
        """Return where a cell stands, in words."""
        line = f"row {row + 1}" if self.pieces.lines_before is None else f"line {row + 1 + self.pieces.lines_before}"
        return f"{self.pieces.owner}, {line}, column {self.names[j]!r}"


def _read_dosages(fields: Fields, ploidy: int) -> LociBuilder:
    values = fields.cells.values
    builder = LociBuilder(fields.n_rows)
    known = np.array([-1.0, *(float(value) for value in values[1:])])
    for j in range(len(fields.names)):
        own = known[fields.numbers(j)]
        if (own != np.floor(own)).any():
            row = int(np.argmax(own != np.floor(own)))
            raise DataError(
                f"{fields.place(row, j)}: copies of the second allele must be whole numbers from 0 to the ploidy "
                f"{ploidy}; got {own[row]:g}."
            )
        dosage = own.astype(np.int8)
        if ploidy == 2:
            builder.add_dosage(dosage, ("0", "1"))
        else:
            copies = (np.arange(ploidy) >= ploidy - dosage[:, None]).astype(np.int8)
            copies[dosage < 0] = -1
            builder.add_alleles(copies, ("0", "1"))
    builder.loci = fields.names
    builder.are_named = False
    return builder


def _read_copies(fields: Fields) -> LociBuilder:
    """Add every locus; a cell holds one copy or several."""
    builder = LociBuilder(fields.n_rows)
    builder.loci = list(fields.loci)
    alleles = CellTable(0, _MISSING)  # numbers of the names of alleles
    split: dict[int, list[int]] = {0: [0]}
    for own in fields.loci.values():
        parts = []
        for j in own:
            numbers = fields.numbers(j)
            for number in np.unique(numbers).tolist():
                if number not in split:
                    row = int(np.argmax(numbers == number))
                    split[number] = _copies(fields, row, j, fields.cells.values[number], alleles)
            seen, place = np.unique(numbers, return_inverse=True)
            most = max(len(split[number]) for number in seen.tolist())
            table = np.array([split[number] + [0] * (most - len(split[number])) for number in seen.tolist()])
            parts.append(table[place])
        add_coded(builder, np.hstack(parts).astype(np.uint32), alleles.values)
    return builder


def _copies(fields: Fields, row: int, j: int, value: str, alleles: CellTable) -> list[int]:
    """Return the numbers of the alleles that a cell names."""
    parts = [part.strip() for part in _SEPARATORS.split(value)]
    if any(part == "" for part in parts):
        raise DataError(f"{fields.place(row, j)}: {value!r} is no genotype; write it as 136/146.")
    return [alleles.number(part) for part in parts]


def _are_names(values: list[str]) -> bool:
    """Tell whether the values are names of individuals: all different, and neither numbers nor genotypes."""
    genotypes = all(_is_number(value) or _SEPARATORS.search(value) or value in _MISSING for value in values)
    return len(set(values)) == len(values) and not genotypes


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, (bool, float)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
