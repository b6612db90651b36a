"""Readers of genotypes: PLINK's .bed, STRUCTURE's .str, VCF and tables; an error names file, line and column."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import DataError, ParameterError
from ..data.door import is_frame
from .genotypes import Genotypes

_MAGIC = b"\x6c\x1b"
_MISSING = {"", ".", "-9", "-1", "NA", "na", "NaN", "nan", "?"}
_SEPARATORS = re.compile(r"[/|:]")


def read_genotypes(source: Any, *, groups: Any = None, **options: Any) -> Genotypes:
    """Read genotypes from a file or a dataframe.

    Parameters
    ----------
    source : path or dataframe
        `.bed` (PLINK, with .bim and .fam beside it; the ending may be left out), `.str` (STRUCTURE), `.vcf` or
        `.vcf.gz`, `.csv`, or a dataframe with one column per locus ("136/146", or copies of the second allele) or two
        columns per locus ("fca8_1", "fca8_2").
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
        return _read_frame("the dataframe", source, groups, **options)
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
        return _read_csv(path, groups, **options)
    else:
        found = read_structure(path, **options)
    return found if groups is None else _with_groups(found, groups)


def _with_groups(table: Genotypes, groups: Any) -> Genotypes:
    labels = groups
    if isinstance(groups, (str, Path)):
        labels = [line.split()[-1] for line in Path(groups).read_text(encoding="utf-8").splitlines() if line.strip()]
    labels = tuple(str(label) for label in labels)
    if len(labels) != table.n_individuals:
        raise DataError(f"read_genotypes: {len(labels)} groups for {table.n_individuals} individuals.")
    return Genotypes(
        table.n_alleles, table.individuals, table.loci, labels, table.allele_names, table.packed, table._alleles
    )


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
    if raw[2:3] != b"\x01":
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

    A first row that is shorter than the others by the columns of labels holds the names of the loci.
    """
    source = Path(path)
    lines = []
    with _open_text(source) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                lines.append((number, line.split()))
    if len(lines) < 2:
        raise DataError(f"{source}: the file has {len(lines)} rows; at least one individual is needed.")
    width = len(lines[1][1])
    names = None
    if len(lines[0][1]) < width:
        names = lines[0][1]
        lines = lines[1:]
    labels = n_labels
    if labels is None:
        labels = _guess_labels(lines) if names is None else width - len(names) * (ploidy if one_row else 1)
    rows_each = 1 if one_row else ploidy
    if len(lines) % rows_each:
        raise DataError(
            f"{source}, line {lines[-1][0]}: {len(lines)} rows are no multiple of {rows_each} rows per individual; set "
            "ploidy, or one_row=True."
        )
    for number, fields in lines:
        if len(fields) != width:
            raise DataError(f"{source}, line {number}: {len(fields)} columns, where the first row has {width}.")
    n_columns = width - labels
    if n_columns < 1 or (one_row and n_columns % ploidy):
        raise DataError(
            f"{source}: {n_columns} columns of alleles after {labels} columns of labels; set n_labels, ploidy."
        )
    n = len(lines) // rows_each
    table = np.array([fields[labels:] for _, fields in lines])
    if one_row:
        values = table.reshape(n, n_columns // ploidy, ploidy)
    else:
        values = table.reshape(n, ploidy, n_columns).transpose(0, 2, 1)
        for i in range(n):
            own = [lines[i * rows_each + c] for c in range(rows_each)]
            if labels and len({fields[0] for _, fields in own}) > 1:
                raise DataError(
                    f"{source}, line {own[1][0]}, column 1: the individual {own[1][1][0]!r} follows {own[0][1][0]!r}, "
                    f"which has fewer than {ploidy} rows; set ploidy, or one_row=True."
                )
    first = [lines[i * rows_each][1] for i in range(n)]
    individuals = [fields[0] for fields in first] if labels else None
    groups = [fields[1] for fields in first] if labels >= 2 else None
    if groups is not None and len(set(groups)) in (1, n):
        groups = None
    loci = names[-values.shape[1] :] if names is not None and len(names) >= values.shape[1] else None
    return _coded(values, {str(missing)}, individuals, loci, groups)


def _guess_labels(lines: list[tuple[int, list[str]]]) -> int:
    """Return how many columns hold labels: names that are no numbers, and columns that agree in pairs of rows."""
    rows = [fields for _, fields in lines]
    pairs = list(zip(rows[::2], rows[1::2], strict=False))
    columns = 0
    for j in range(min(6, len(rows[0]) - 1)):
        agree = all(a[j] == b[j] for a, b in pairs)
        if not agree:
            break
        columns += 1
    return min(columns, 3)


def _coded(values: Any, missing: set[str], individuals: Any, loci: Any, groups: Any) -> Genotypes:
    """Return genotypes of names of alleles, (n, loci, ploidy); numbers are ordered as numbers."""
    L = values.shape[1]
    alleles = np.full(values.shape, -1, dtype=np.int16)
    names = []
    counts = np.ones(L, dtype=np.int64)
    for j in range(L):
        column = values[:, j]
        known = ~np.isin(column, list(missing))
        found = sorted({str(name) for name in column[known].tolist()}, key=_as_number)
        place = {name: k for k, name in enumerate(found)}
        alleles[:, j][known] = [place[str(name)] for name in column[known].tolist()]
        names.append(tuple(found))
        counts[j] = max(1, len(found))
    return Genotypes.from_alleles(
        alleles, individuals=individuals, loci=loci, groups=groups, allele_names=tuple(names), n_alleles=counts
    )


def _as_number(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


# ---- VCF ----


def _open_text(path: Path) -> Any:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def read_vcf(path: Any) -> Genotypes:
    """Read the genotypes (GT) of a VCF file, plain or gzipped, line by line; allele 0 is REF, 1, 2, … are ALT."""
    source = Path(path)
    individuals: list[str] = []
    loci = []
    names = []
    rows = []
    ploidy = 0
    try:
        with _open_text(source) as file:
            for number, line in enumerate(file, 1):
                if line.startswith("##"):
                    continue
                fields = line.rstrip("\n").split("\t")
                if line.startswith("#CHROM"):
                    individuals = fields[9:]
                    continue
                if not line.strip():
                    continue
                if not individuals:
                    raise DataError(f"{source}, line {number}: no line #CHROM with the individuals' names before it.")
                calls, n_found = _read_calls(source, number, fields, len(individuals))
                ploidy = max(ploidy, n_found)
                loci.append(fields[2] if fields[2] != "." else f"{fields[0]}:{fields[1]}")
                names.append((fields[3], *(fields[4].split(",") if fields[4] != "." else ())))
                rows.append(calls)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{source}: the file is damaged after {len(rows)} loci: {error}") from error
    if not rows:
        raise DataError(f"{source}: there is not a single locus.")
    alleles = np.full((len(individuals), len(rows), ploidy), -1, dtype=np.int16)
    for j, calls in enumerate(rows):
        alleles[:, j, : calls.shape[1]] = calls
    return Genotypes.from_alleles(
        alleles,
        individuals=individuals,
        loci=loci,
        allele_names=tuple(names),
        n_alleles=np.array([len(found) for found in names]),
    )


def _read_calls(source: Path, number: int, fields: list[str], n: int) -> tuple[Any, int]:
    """Return the calls of one line, (n, copies), and how many copies there are."""
    if len(fields) != 9 + n:
        raise DataError(f"{source}, line {number}: {len(fields)} columns instead of {9 + n}.")
    form = fields[8].split(":")
    if "GT" not in form:
        raise DataError(f"{source}, line {number}, column 9: the format {fields[8]!r} has no GT.")
    at = form.index("GT")
    n_alleles = 1 + (0 if fields[4] == "." else fields[4].count(",") + 1)
    found = []
    for column, cell in enumerate(fields[9:], 10):
        parts = cell.split(":")
        call = _SEPARATORS.split(parts[at]) if at < len(parts) else ["."]
        try:
            copies = [-1 if copy == "." else int(copy) for copy in call]
        except ValueError:
            copies = [n_alleles]
        if max(copies) >= n_alleles or min(copies) < -1:
            raise DataError(
                f"{source}, line {number}, column {column}: the genotype {cell!r} names no allele of the line, which "
                f"has {n_alleles}."
            )
        found.append(copies)
    most = max(len(copies) for copies in found)
    return np.array([copies + [-1] * (most - len(copies)) for copies in found], dtype=np.int16), most


# ---- tables ----


def _read_csv(path: Path, groups: Any, **options: Any) -> Genotypes:
    import pandas as pd

    try:
        frame = pd.read_csv(path, sep="\t" if path.name.lower().endswith(".tsv") else ",", dtype=str)
    except (ValueError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
    return _read_frame(str(path), frame, groups, **options)


def _read_frame(owner: str, frame: Any, groups: Any, *, ignore: Any = (), ploidy: int = 2) -> Genotypes:
    """Read a table: columns "name_1", "name_2", … are copies of one locus; others are whole genotypes or dosages."""
    import narwhals as nw

    columns = nw.from_native(frame, eager_only=True)
    columns = columns.rename({name: str(name) for name in columns.columns})
    names = list(columns.columns)
    skip = {ignore} if isinstance(ignore, str) else set(ignore)
    labels = None
    if isinstance(groups, str) and groups in names:
        labels = [str(value) for value in columns[groups].to_list()]
        skip.add(groups)
    elif groups is not None:
        labels = groups
    unknown = skip - set(names)
    if unknown:
        raise ParameterError(f"read_genotypes: {owner} has no column {sorted(unknown)[0]!r}.")
    text = {name: [_cell(value) for value in columns[name].to_list()] for name in names if name not in skip}
    individuals = None
    first = names[0]
    if first in text and _are_names(text[first]):
        individuals = text.pop(first)
    if not text:
        raise DataError(f"read_genotypes: {owner} has no column of genotypes.")
    loci: dict[str, list[str]] = {}
    for name in text:
        stem, _, copy = name.rpartition("_")
        paired = stem and copy.isdigit() and f"{stem}_1" in text and f"{stem}_2" in text
        loci.setdefault(stem if paired else name, []).append(name)
    if all(len(own) == 1 for own in loci.values()) and all(
        value in _MISSING or (_is_number(value) and 0 <= float(value) <= ploidy) for v in text.values() for value in v
    ):
        dosage = [[np.nan if value in _MISSING else float(value) for value in text[name]] for name in text]
        return _finished(
            Genotypes.from_dosage(np.array(dosage).T, ploidy, individuals=individuals, loci=list(text)), labels
        )
    cells = []
    for own in loci.values():
        copies = [_copies(owner, name, row, value) for name in own for row, value in enumerate(text[name], 1)]
        n = len(text[own[0]])
        cells.append([[c for part in range(len(own)) for c in copies[part * n + i]] for i in range(n)])
    most = max(len(cell) for column in cells for cell in column)
    values = np.array([[cell + ["."] * (most - len(cell)) for cell in column] for column in cells], dtype=object)
    return _finished(_coded(values.transpose(1, 0, 2), _MISSING, individuals, list(loci), None), labels)


def _are_names(values: list[str]) -> bool:
    """Tell whether the values are names of individuals: all different, and neither numbers nor genotypes."""
    genotypes = all(_is_number(value) or _SEPARATORS.search(value) or value in _MISSING for value in values)
    return len(set(values)) == len(values) and not genotypes


def _finished(table: Genotypes, labels: Any) -> Genotypes:
    return table if labels is None else _with_groups(table, labels)


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _copies(owner: str, name: str, row: int, value: str) -> list[str]:
    if value in _MISSING:
        return ["."]
    parts = [part.strip() for part in _SEPARATORS.split(value)]
    if any(part == "" for part in parts):
        raise DataError(f"{owner}, row {row}, column {name!r}: {value!r} is no genotype; write it as 136/146.")
    return parts
