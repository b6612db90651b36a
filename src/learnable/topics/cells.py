"""Tables of text cells in little memory, while they are read row by row: two bits per cell where that is enough.

Columns of genotypes hold few different values. As long as a column has shown at most three beside missing ones, a cell
is two bits; a fourth value turns the table to two bytes per cell (four beyond 65,000 different values in all).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .genotypes import Genotypes, as_copies, pack, unpack

#: Cells that are turned into numbers at once: as text they take some 60 bytes each.
CELLS_AT_ONCE = 50_000
_SLOTS = 3
_MOST_SHORT = 65_000


class CellTable:
    """Cells by row and column; a value is a number, 0 where the cell is missing.

    Parameters
    ----------
    n_columns : int
        Columns of every row.
    missing : set of str
        Values that say that there is none.
    """

    def __init__(self, n_columns: int, missing: Iterable[str]) -> None:
        self.n_columns = n_columns
        self.n_rows = 0
        self.values = [""]
        self._numbers: dict[Any, int] = dict.fromkeys(missing, 0)
        self._slots: NDArray[np.uint32] | None = np.zeros((_SLOTS, n_columns), dtype=np.uint32)
        self._pieces: list[NDArray[Any]] = []
        self._codes: Any = None

    def number(self, value: str) -> int:
        """Return the number of a value."""
        known = self._numbers.get(value)
        if known is None:
            known = len(self.values)
            self.values.append(value)
            self._numbers[value] = known
        return known

    def add(self, rows: list[list[str]]) -> None:
        """Add rows of text."""
        known = self._numbers
        try:
            numbers = [[known[value] for value in row] for row in rows]
        except KeyError:
            numbers = [[self.number(value) for value in row] for row in rows]
        self.add_numbers(np.array(numbers, dtype=np.uint32))

    def add_numbers(self, numbers: NDArray[np.uint32]) -> None:
        """Add rows of numbers of values."""
        self.n_rows += len(numbers)
        if self._slots is not None:
            codes = self._as_slots(numbers)
            if codes is not None:
                self._pieces.append(_pack_rows(codes))
                return
            self._widen()
        self._pieces.append(numbers.astype(np.uint16 if len(self.values) < _MOST_SHORT else np.uint32))

    def _as_slots(self, numbers: NDArray[np.uint32]) -> NDArray[np.uint8] | None:
        """Return the slot of each value in its column, from 1; None if a column has more values than slots."""
        assert self._slots is not None
        codes = np.zeros(numbers.shape, dtype=np.uint8)
        for s, slot in enumerate(self._slots):
            new = (numbers != 0) & (codes == 0)
            empty = (slot == 0) & new.any(axis=0)
            if empty.any():
                first = np.argmax(new, axis=0)
                slot[empty] = numbers[first[empty], np.flatnonzero(empty)]
            codes[new & (numbers == slot)] = s + 1
        return None if ((numbers != 0) & (codes == 0)).any() else codes

    def _widen(self) -> None:
        """Turn all that was packed into numbers of values."""
        kind = np.uint16 if len(self.values) < _MOST_SHORT else np.uint32
        self._pieces = [self._unpacked(piece, 0, self.n_columns).astype(kind) for piece in self._pieces]
        self._slots = None

    def _unpacked(self, piece: NDArray[np.uint8], first: int, last: int) -> NDArray[np.uint32]:
        assert self._slots is not None
        own = piece[:, first // 4 : (last + 3) // 4]
        codes = np.empty((*own.shape, 4), dtype=np.uint8)
        for k in range(4):
            codes[:, :, k] = (own >> np.uint8(2 * k)) & np.uint8(3)
        within = codes.reshape(len(own), -1)[:, first % 4 : first % 4 + last - first]
        table = np.vstack([np.zeros(last - first, dtype=np.uint32), self._slots[:, first:last]])
        return np.asarray(table[within, np.arange(last - first)])

    def columns(self, first: int, last: int) -> NDArray[np.uint32]:
        """Return the numbers of columns first … last − 1, (n_rows, last − first)."""
        if self._slots is not None:
            parts = [self._unpacked(piece, first, last) for piece in self._pieces]
        else:
            parts = [piece[:, first:last].astype(np.uint32) for piece in self._pieces]
        return np.concatenate(parts) if parts else np.zeros((0, last - first), dtype=np.uint32)


def _pack_rows(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    padded = np.zeros((len(codes), 4 * ((codes.shape[1] + 3) // 4)), dtype=np.uint8)
    padded[:, : codes.shape[1]] = codes
    quads = padded.reshape(len(codes), -1, 4)
    return quads[:, :, 0] | quads[:, :, 1] << 2 | quads[:, :, 2] << 4 | quads[:, :, 3] << 6


class LociBuilder:
    """Loci one after the other, in two bits per genotype as long as that is enough.

    It is while no locus has more than two alleles or other than two copies, and no genotype is known by half.
    """

    def __init__(self, n_individuals: int) -> None:
        self.n = n_individuals
        self.n_alleles: list[int] = []
        self.names: list[tuple[str, ...]] = []
        self.are_named = True
        self.loci: list[str] | None = None
        self._packed: list[NDArray[np.uint8]] = []  # locus by locus
        self._wide: list[NDArray[Any]] | None = None

    def add_dosage(self, dosage: NDArray[np.int8], names: tuple[str, ...]) -> None:
        """Add a locus with at most two alleles: copies of the second one, −1 where missing."""
        self.n_alleles.append(max(1, len(names)))
        self.names.append(names)
        if self._wide is None:
            self._packed.append(pack(dosage[None])[0])
        else:
            self._wide.append(as_copies(dosage))

    def add_alleles(self, alleles: NDArray[Any], names: tuple[str, ...]) -> None:
        """Add a locus, (n, copies) of allele numbers, −1 where missing."""
        lacking = (alleles < 0).sum(axis=1)
        if alleles.shape[1] == 2 and len(names) <= 2 and not (lacking == 1).any():
            dosage = np.where(lacking > 0, -1, alleles.sum(axis=1)).astype(np.int8)
            self.add_dosage(dosage, names)
            return
        self.n_alleles.append(max(1, len(names)))
        self.names.append(names)
        if self._wide is None:
            self._wide = [as_copies(unpack(row[None], self.n)[0]) for row in self._packed]
            self._packed = []
        self._wide.append(alleles.astype(np.int8 if len(names) < 128 else np.int16))

    def finish(self, *, individuals: Any = None, groups: Any = None) -> Genotypes:
        """Return the table."""
        counts = np.array(self.n_alleles, dtype=np.int64)
        names = tuple(self.names) if self.are_named else None
        loci = self.loci
        if self._wide is None:
            packed = np.array(self._packed, dtype=np.uint8)
            self._packed = []
            people = individuals or [f"individual {i + 1}" for i in range(self.n)]
            places = loci or [f"locus {j + 1}" for j in range(len(counts))]
            where = None if groups is None else tuple(map(str, groups))
            return Genotypes(counts, tuple(map(str, people)), tuple(map(str, places)), where, names, packed)
        ploidy = max(own.shape[1] for own in self._wide)
        kind = np.int16 if any(own.dtype == np.int16 for own in self._wide) else np.int8
        alleles = np.full((self.n, len(counts), ploidy), -1, dtype=kind)
        for j, own in enumerate(self._wide):
            alleles[:, j, : own.shape[1]] = own
        self._wide = []
        return Genotypes.from_alleles(
            alleles, individuals=individuals, loci=loci, groups=groups, allele_names=names, n_alleles=counts
        )


def add_coded(builder: LociBuilder, numbers: NDArray[np.uint32], values: list[str]) -> None:
    """Add a locus of numbers of values, (n, copies), 0 where missing; alleles that are numbers are ordered as such."""
    seen = np.unique(numbers)
    seen = seen[seen > 0]
    order = sorted(seen.tolist(), key=lambda number: as_number(values[number]))
    table = np.full(int(numbers.max(initial=0)) + 1, -1, dtype=np.int16)
    table[order] = np.arange(len(order))
    builder.add_alleles(table[numbers], tuple(values[number] for number in order))


def as_number(name: str) -> tuple[int, float, str]:
    """Return what names of alleles are sorted by."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
