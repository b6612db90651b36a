"""Readers of genotypes: PLINK's .bed, STRUCTURE's .str, VCF and tables; an error names file, line and column.

Files are read row by row, and what was read is kept in two bits per cell where that is enough (`cells`); a .bed file
stays where it is. So a table needs little more memory than its packed genotypes.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import DataError
from ..data.door import is_frame
from .cells import CELLS_AT_ONCE, CellTable, LociBuilder, add_coded
from .genotypes import Genotypes
from .table_readers import read_csv, read_frame, read_parquet, with_groups

_MAGIC = b"\x6c\x1b"
_SEPARATORS = re.compile(r"[/|:]")
#: Copies of the second of two alleles by VCF's calls.
_CALLS = {
    f"{a}{mark}{b}": -1 if a == "." else int(a) + int(b)
    for mark in "/|"
    for a, b in [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"), (".", ".")]
}
_CALLS["."] = -1
#: Columns that are looked at for labels, and loci whose cells are unpacked at once.
_MOST_LABELS = 6
_LOCI_AT_ONCE = 1024


def read_genotypes(source: Any, *, groups: Any = None, **options: Any) -> Genotypes:
    """Read genotypes from a file or a dataframe.

    Parameters
    ----------
    source : path or dataframe
        `.bed` (PLINK, with .bim and .fam beside it; the ending may be left out), `.str` (STRUCTURE), `.vcf` or
        `.vcf.gz`, `.csv`, `.parquet`, or a dataframe with one column per locus ("136/146", or copies of the second
        allele) or two columns per locus ("fca8_1", "fca8_2").
    groups : str, path or sequence, optional
        Where individuals were sampled: one label each, a file with one per line, or the name of a column.
    **options
        Of .str files: `n_labels` (columns before the loci, 3 by default: name, group, flag; fewer where the file has
        fewer), `ploidy` (2), `missing` (-9), `one_row` (whether all copies of a locus stand side by side in one row).
        Of tables: `ignore` (names of columns that are no loci), `ploidy`.

    Returns
    -------
    Genotypes
        The table. An error names the file, the line and the column.

    Examples
    --------
    >>> import pandas as pd
    >>> from learnable.topics import read_genotypes
    >>> frame = pd.DataFrame({"cat": ["a", "b"], "fca8": ["136/146", "146/146"], "fca23": ["139/139", None]})
    >>> read_genotypes(frame, ignore=["cat"])
    Genotypes(2 individuals × 2 loci × 2 copies, 3 alleles, 25 % missing)
    """
    if isinstance(source, Genotypes):
        return source
    if is_frame(source):
        return read_frame(source, groups, **options)
    if not isinstance(source, (str, Path)):
        raise DataError(f"read_genotypes: expected a path or a dataframe; got {type(source).__name__}.")
    path = Path(source)
    name = path.name.lower()
    if name.endswith((".bim", ".fam")) or (not path.exists() and path.with_name(path.name + ".bed").exists()):
        path = path.with_suffix(".bed") if name.endswith((".bim", ".fam")) else path.with_name(path.name + ".bed")
        name = path.name.lower()
    if not path.exists():
        raise DataError(f"read_genotypes: there is no file {path}.")
    if name.endswith(".bed"):
        found = read_plink(path, **options)
    elif name.endswith((".vcf", ".vcf.gz")):
        found = read_vcf(path, **options)
    elif name.endswith((".csv", ".csv.gz", ".tsv")):
        return read_csv(path, groups, **options)
    elif name.endswith(".parquet"):
        return read_parquet(path, groups, **options)
    else:
        found = read_structure(path, **options)
    return found if groups is None else with_groups(found, groups)


# ---- PLINK ----


def read_plink(path: Any) -> Genotypes:
    """Read PLINK's .bed with its .bim and .fam; allele 0 is A1, allele 1 is A2."""
    bed = Path(path)
    loci = []
    alleles = []
    for number, fields in _fields_of(bed.with_suffix(".bim"), 6):
        if len(fields) != 6:
            raise DataError(
                f"{bed.with_suffix('.bim')}, line {number}: expected 6 columns (chromosome, name, position in "
                f"morgans, position, A1, A2); got {len(fields)}."
            )
        loci.append(fields[1])
        alleles.append((fields[4], fields[5]))
    people = [fields for _, fields in _fields_of(bed.with_suffix(".fam"), 6)]
    n = len(people)
    width = (n + 3) // 4
    with open(bed, "rb") as file:
        raw = file.read(3)
    size = bed.stat().st_size
    if raw[:2] != _MAGIC:
        raise DataError(f"{bed}: this is no PLINK .bed file: it begins with {raw[:2].hex()}, not with 6c1b.")
    if raw[2:3] not in (b"", b"\x01"):
        raise DataError(
            f"{bed}, byte 3: the file is ordered by individuals; write it by loci (plink --make-bed, version 1.9)."
        )
    expected = 3 + width * len(loci)
    if size != expected:
        raise DataError(
            f"{bed}: {size} bytes instead of {expected} for {n} individuals (.fam) and {len(loci)} loci (.bim); "
            "the file is truncated, or the three files do not belong together."
        )
    # The file stays where it is: pages of it are read when a block of loci is asked for, and may be given back.
    packed = np.memmap(bed, dtype=np.uint8, mode="r", offset=3, shape=(len(loci), width)).view(np.ndarray)
    names = tuple(fields[1] for fields in people)
    families = tuple(fields[0] for fields in people)
    repeated = 2 <= len(set(families)) <= n // 4  # a family number per sampled population; else it is of relatives
    return Genotypes(
        np.full(len(loci), 2, dtype=np.int64),
        names,
        tuple(loci),
        families if repeated else None,
        tuple(alleles),
        packed,
    )


def _fields_of(path: Path, least: int) -> Iterator[tuple[int, list[str]]]:
    if not path.exists():
        raise DataError(f"read_genotypes: {path} is missing; .bed, .bim and .fam belong together.")
    found = False
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) < least:
                raise DataError(f"{path}, line {number}: expected {least} columns; got {len(fields)}.")
            found = True
            yield number, fields
    if not found:
        raise DataError(f"{path}: the file is empty.")


# ---- STRUCTURE ----


def read_structure(
    path: Any, *, n_labels: int | None = None, ploidy: int = 2, missing: str | int = -9, one_row: bool = False
) -> Genotypes:
    """Read STRUCTURE's input: `ploidy` rows per individual, or one row with the copies of a locus side by side.

    A first row that is shorter than the others by the columns of labels holds the names of the loci. The file is read
    twice: once for its form, once for its alleles.
    """
    source = Path(path)
    rows_each = 1 if one_row else ploidy
    names, width, n_rows, guessed = _form_of_structure(source, rows_each)
    labels = n_labels
    if labels is None:
        labels = guessed if names is None else width - len(names) * (ploidy if one_row else 1)
    n_columns = width - labels
    if n_columns < 1 or labels < 0 or (one_row and n_columns % ploidy):
        raise DataError(
            f"{source}: {n_columns} columns of alleles after {labels} columns of labels; set n_labels, ploidy."
        )
    cells = CellTable(n_columns, {str(missing)})
    heads: list[list[str]] = []
    waiting: list[list[str]] = []
    for number, fields in _rows_of(source, names is not None):
        if len(heads) % rows_each and labels and fields[0] != heads[-1][0]:
            raise DataError(
                f"{source}, line {number}, column 1: the individual {fields[0]!r} follows {heads[-1][0]!r}, "
                f"which has fewer than {ploidy} rows; set ploidy, or one_row=True."
            )
        heads.append(fields[: min(labels, 2)])
        waiting.append(fields[labels:])
        if len(waiting) * n_columns >= CELLS_AT_ONCE:
            cells.add(waiting)
            waiting = []
    if waiting:
        cells.add(waiting)
    n = n_rows // rows_each
    first = heads[::rows_each]
    individuals = [own[0] for own in first] if labels else None
    groups = [own[1] for own in first] if labels >= 2 else None
    if groups is not None and len(set(groups)) in (1, n):
        groups = None
    builder = LociBuilder(n)
    L = n_columns // ploidy if one_row else n_columns
    for start in range(0, L, _LOCI_AT_ONCE):
        end = min(start + _LOCI_AT_ONCE, L)
        if one_row:
            values = cells.columns(start * ploidy, end * ploidy).reshape(n, end - start, ploidy)
        else:
            values = cells.columns(start, end).reshape(n, ploidy, end - start).transpose(0, 2, 1)
        for j in range(end - start):
            add_coded(builder, values[:, j], cells.values)
    builder.loci = names[-L:] if names is not None and len(names) >= L else None
    return builder.finish(individuals=individuals, groups=groups)


def _rows_of(source: Path, skips_first: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of each line that has any."""
    try:
        with _open_text(source) as file:
            for number, line in enumerate(file, 1):
                fields = line.split()
                if fields and not skips_first:
                    yield number, fields
                skips_first = skips_first and not fields
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{source}: the file is damaged: {error}") from error


def _form_of_structure(source: Path, rows_each: int) -> tuple[list[str] | None, int, int, int]:
    """Return the names of loci, the columns, the rows of individuals, and how many columns look like labels.

    Labels agree in the rows of an individual; at most three columns do by design.
    """
    names = None
    before: list[str] = []
    width = n_rows = last = 0
    agreeing = _MOST_LABELS
    for number, fields in _rows_of(source, False):
        if n_rows == 1 and names is None and len(before) < len(fields) and width == len(before):
            names = before
            n_rows = 0
        if not n_rows:
            width = len(fields)
        if len(fields) != width:
            raise DataError(f"{source}, line {number}: {len(fields)} columns, where the first row has {width}.")
        if n_rows % 2:
            same = [a == b for a, b in zip(before[:agreeing], fields[:agreeing], strict=True)]
            agreeing = same.index(False) if False in same else agreeing
        before = fields
        n_rows += 1
        last = number
    if n_rows + (names is not None) < 2:
        raise DataError(
            f"{source}: the file has {n_rows + (names is not None)} rows; at least one individual is needed."
        )
    if n_rows % rows_each:
        raise DataError(
            f"{source}, line {last}: {n_rows} rows are no multiple of {rows_each} rows per individual; set "
            "ploidy, or one_row=True."
        )
    return names, width, n_rows, min(agreeing, width - 1, 3)


# ---- VCF ----


def _open_text(path: Path) -> Any:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def read_vcf(path: Any) -> Genotypes:
    """Read the genotypes (GT) of a VCF file, plain or gzipped, line by line; allele 0 is REF, 1, 2, … are ALT."""
    source = Path(path)
    individuals: list[str] = []
    loci: list[str] = []
    builder = LociBuilder(0)
    try:
        with _open_text(source) as file:
            for number, line in enumerate(file, 1):
                if line.startswith("##"):
                    continue
                fields = line.rstrip("\r\n").split("\t")
                if line.startswith("#CHROM"):
                    individuals = fields[9:]
                    builder = LociBuilder(len(individuals))
                    continue
                if not line.strip():
                    continue
                if not individuals:
                    raise DataError(f"{source}, line {number}: no line #CHROM with the individuals' names before it.")
                _add_line(builder, source, number, fields)
                loci.append(fields[2] if fields[2] != "." else f"{fields[0]}:{fields[1]}")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{source}: the file is damaged after {len(loci)} loci: {error}") from error
    if not loci:
        raise DataError(f"{source}: there is not a single locus.")
    builder.loci = loci
    return builder.finish(individuals=individuals)


def _add_line(builder: LociBuilder, source: Path, number: int, fields: list[str]) -> None:
    """Add the genotypes of one line."""
    n = builder.n
    if len(fields) != 9 + n:
        raise DataError(f"{source}, line {number}: {len(fields)} columns instead of {9 + n}.")
    form = fields[8].split(":")
    if "GT" not in form:
        raise DataError(f"{source}, line {number}, column 9: the format {fields[8]!r} has no GT.")
    names = (fields[3], *(fields[4].split(",") if fields[4] != "." else ()))
    if form[0] == "GT" and len(names) == 2:
        try:  # whole calls of two copies
            dosage = [_CALLS[cell.partition(":")[0]] for cell in fields[9:]]
        except KeyError:
            pass
        else:
            builder.add_dosage(np.array(dosage, dtype=np.int8), names)
            return
    at = form.index("GT")
    found = [_read_call(source, number, column, cell, at, names) for column, cell in enumerate(fields[9:], 10)]
    most = max(len(copies) for copies in found)
    alleles = np.array([copies + [-1] * (most - len(copies)) for copies in found], dtype=np.int16)
    builder.add_alleles(alleles, names)


def _read_call(source: Path, number: int, column: int, cell: str, at: int, names: tuple[str, ...]) -> list[int]:
    """Return the alleles of one genotype, −1 where missing."""
    parts = cell.split(":")
    call = _SEPARATORS.split(parts[at]) if at < len(parts) else ["."]
    try:
        copies = [-1 if copy == "." else int(copy) for copy in call]
    except ValueError:
        copies = [len(names)]
    if max(copies) >= len(names) or min(copies) < -1:
        raise DataError(
            f"{source}, line {number}, column {column}: the genotype {cell!r} names no allele of the line, which "
            f"has {len(names)}."
        )
    return copies
