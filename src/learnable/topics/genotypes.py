"""Genotypes of individuals at loci: any ploidy, any number of alleles, missing copies.

Alleles of a locus are numbered 0, 1, …; −1 is a missing copy. All alleles of all loci stand one after the other in one
long list, as the words of a vocabulary do: allele a of locus l has the number `starts[l] + a`. So a table of genotypes
is a corpus whose documents are individuals and whose words are alleles, with frequencies that sum to one in each locus.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from .corpus import Corpus

Ints = NDArray[np.integer[Any]]

#: Of each two bits of PLINK's files: copies of the second allele; −1 for a missing genotype.
_PLINK_DOSAGE = np.array([0, -1, 1, 2], dtype=np.int8)
#: Loci, or individuals, of a packed table that are unpacked at once.
_AT_ONCE = 1024
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Genotypes:
    """A table of genotypes.

    Memory: a quarter of a byte per genotype with two copies of at most two alleles, else one byte per copy (two beyond
    127 alleles of a locus). A .bed file stays on disk and is read by blocks of loci, until `alleles` is asked for.

    Attributes
    ----------
    n_alleles : array of shape (n_loci,)
        How many different alleles each locus has.
    individuals, loci : tuple of str
        Names.
    groups : tuple of str or None
        Where each individual was sampled, if known.
    allele_names : tuple of tuple of str or None
        Names of the alleles of each locus.
    packed : array of shape (n_loci, ⌈n_individuals / 4⌉) or None
        Two bits per genotype as in PLINK's .bed files, where no locus has more than two alleles, all have two copies,
        and none of them is known alone.

    Examples
    --------
    >>> from learnable.topics import Genotypes
    >>> table = Genotypes.from_alleles([[[0, 1], [2, 2]], [[0, 0], [-1, 1]]])  # two individuals, two loci
    >>> table.n_individuals, table.n_loci, table.n_alleles.tolist(), table.ploidy
    (2, 2, [2, 3], 2)
    """

    n_alleles: NDArray[np.int64]
    individuals: tuple[str, ...]
    loci: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    allele_names: tuple[tuple[str, ...], ...] | None = None
    packed: NDArray[np.uint8] | None = None
    _alleles: Ints | None = None

    @classmethod
    def from_alleles(
        cls,
        alleles: Any,
        *,
        individuals: Any = None,
        loci: Any = None,
        groups: Any = None,
        allele_names: Any = None,
        n_alleles: Any = None,
    ) -> Genotypes:
        """Return the table of an array (n_individuals, n_loci, ploidy) of allele numbers, −1 where one is missing."""
        array = np.asarray(alleles)
        if array.ndim != 3 or not array.size or array.dtype.kind not in "iu":
            raise DataError(
                "Genotypes: alleles must be whole numbers of shape (n_individuals, n_loci, ploidy), none of them 0; "
                f"got {array.dtype} of shape {array.shape}."
            )
        if array.min() < -1 or array.max() > 30_000:
            raise DataError(
                f"Genotypes: alleles are numbered from 0 to 30000, −1 is missing; got {array.min()} to {array.max()}."
            )
        n, L, _ = array.shape
        seen = np.maximum(array.max(axis=(0, 2)).astype(np.int64) + 1, 1)
        counts = seen if n_alleles is None else np.asarray(n_alleles, dtype=np.int64)
        if counts.shape != (L,) or (counts < seen).any():
            raise DataError("Genotypes: n_alleles must be at least the largest allele of each locus plus one.")
        names = tuple(f"individual {i + 1}" for i in range(n)) if individuals is None else tuple(map(str, individuals))
        columns = tuple(f"locus {j + 1}" for j in range(L)) if loci is None else tuple(map(str, loci))
        where = None if groups is None else tuple(map(str, groups))
        if len(names) != n or len(columns) != L or (where is not None and len(where) != n):
            raise DataError(f"Genotypes: {n} names of individuals, {L} of loci and {n} groups are needed.")
        kind = np.int8 if array.max() < 128 else np.int16
        return cls(counts, names, columns, where, allele_names, None, array.astype(kind))

    @classmethod
    def from_dosage(cls, dosage: Any, ploidy: int = 2, **names: Any) -> Genotypes:
        """Return the table of copies of the second allele, (n_individuals, n_loci), NaN or −1 where it is missing."""
        table = np.asarray(dosage, dtype=np.float64)
        if table.ndim != 2:
            raise DataError(f"Genotypes: dosages must have shape (n_individuals, n_loci); got {table.shape}.")
        missing = np.isnan(table) | (table == -1)
        whole = np.where(missing, 0, table)
        if (whole < 0).any() or (whole > ploidy).any() or (whole != np.floor(whole)).any():
            bad = np.argwhere((whole < 0) | (whole > ploidy) | (whole != np.floor(whole)))[0]
            raise DataError(
                f"Genotypes: copies of the second allele must be whole numbers from 0 to the ploidy {ploidy}, NaN or "
                f"−1 where missing; row {bad[0]}, column {bad[1]} holds {table[tuple(bad)]:g}. Set ploidy, or pass "
                "alleles to Genotypes.from_alleles."
            )
        alleles = (np.arange(ploidy) >= ploidy - whole[..., None]).astype(np.int8)
        alleles[missing] = -1
        names.setdefault("n_alleles", np.full(table.shape[1], 2))
        return cls.from_alleles(alleles, **names)

    @property
    def n_individuals(self) -> int:
        """Number of individuals."""
        return len(self.individuals)

    @property
    def n_loci(self) -> int:
        """Number of loci."""
        return len(self.loci)

    @property
    def ploidy(self) -> int:
        """Copies per locus, the missing ones included."""
        return 2 if self._alleles is None else int(self._alleles.shape[2])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first allele of each locus, and of all alleles; shape (n_loci + 1,)."""
        return np.r_[0, np.cumsum(self.n_alleles)].astype(np.int64)

    @cached_property
    def alleles(self) -> Ints:
        """Allele numbers within their loci, (n_individuals, n_loci, ploidy); −1 where missing."""
        if self._alleles is not None:
            return self._alleles
        return as_copies(self.dosage)

    def alleles_of(self, loci: slice) -> Ints:
        """Return the allele numbers of some loci; of a packed table only these are unpacked."""
        if self._alleles is not None or "alleles" in self.__dict__:
            return self.alleles[:, loci]
        return as_copies(unpack(self.packed[loci], self.n_individuals).T)  # type: ignore[index]

    @cached_property
    def dosage(self) -> NDArray[np.int8]:
        """Copies of the second allele, −1 where any copy is missing; of tables with two alleles per locus."""
        if self.packed is not None:
            return np.ascontiguousarray(unpack(self.packed, self.n_individuals).T)
        if not self.is_biallelic:
            raise DataError("Genotypes.dosage: some locus has more than two alleles.")
        alleles = self.alleles
        return np.where((alleles < 0).any(axis=2), -1, alleles.sum(axis=2)).astype(np.int8)

    def _dosage_of(self, first: int, last: int) -> NDArray[np.int8]:
        """Return copies of the second allele of some individuals; `first` is a multiple of four."""
        if self.packed is None or "dosage" in self.__dict__:
            return self.dosage[first:last]
        last = min(last, self.n_individuals)
        return unpack(self.packed[:, first // 4 : (last + 3) // 4], last - first).T

    @property
    def is_biallelic(self) -> bool:
        """Whether no locus has more than two alleles."""
        return bool((self.n_alleles <= 2).all())

    @cached_property
    def n_typed(self) -> NDArray[np.int64]:
        """Copies that are known of each individual."""
        if self.packed is not None:
            found = np.zeros(self.n_individuals, dtype=np.int64)
            for first in range(0, self.n_loci, _AT_ONCE):
                found += (unpack(self.packed[first : first + _AT_ONCE], self.n_individuals) >= 0).sum(axis=0)
            return 2 * found
        return (self.alleles >= 0).sum(axis=(1, 2), dtype=np.int64)

    def corpus(self) -> Corpus:
        """Return the known copies as tokens: words are alleles, documents individuals; 4 bytes per copy."""
        places = self.alleles.astype(np.int32) + self.starts[:-1].astype(np.int32)[None, :, None]
        known = self.alleles >= 0
        starts = np.r_[0, np.cumsum(known.sum(axis=(1, 2)))].astype(np.int64)
        return Corpus(places[known], starts, int(self.starts[-1]))

    def counts(self, loci: slice = slice(None)) -> NDArray[np.int16]:
        """Return how many copies of each allele each individual has, (n_individuals, n_alleles of the loci)."""
        sizes = self.n_alleles[loci]
        n = self.n_individuals
        if self.packed is not None:
            dosage = unpack(self.packed[loci], n).T
            out = np.empty((n, 2 * len(sizes)), dtype=np.int16)
            out[:, 1::2] = np.maximum(dosage, 0)
            out[:, 0::2] = np.where(dosage < 0, 0, 2 - dosage)
            one = np.flatnonzero(sizes == 1)
            return np.delete(out, 2 * one + 1, axis=1) if len(one) else out
        alleles = self.alleles[:, loci]
        first = np.r_[0, np.cumsum(sizes)[:-1]]
        width = int(sizes.sum())
        places = alleles + first[None, :, None] + width * np.arange(n)[:, None, None]
        found = np.bincount(places[alleles >= 0], minlength=n * width)
        return found.reshape(n, width).astype(np.int16)

    def select(self, rows: Any) -> Genotypes:
        """Return some of the individuals, by numbers or by a mask."""
        chosen = np.arange(self.n_individuals)[np.asarray(rows)]
        groups = None if self.groups is None else [self.groups[i] for i in chosen]
        return Genotypes.from_alleles(
            self.alleles[chosen],
            individuals=[self.individuals[i] for i in chosen],
            loci=self.loci,
            groups=groups,
            allele_names=self.allele_names,
            n_alleles=self.n_alleles,
        )

    def masked(self, hidden: NDArray[np.bool_]) -> Genotypes:
        """Return the table without the genotypes where `hidden` (n_individuals, n_loci) is true."""
        alleles = self.alleles.copy()
        alleles[hidden] = -1
        return Genotypes(self.n_alleles, self.individuals, self.loci, self.groups, self.allele_names, None, alleles)

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the alleles; names do not count, the order of copies within a genotype neither."""
        found = hashlib.blake2b(digest_size=8)
        found.update(np.asarray([self.n_individuals, self.n_loci, self.ploidy], dtype=np.int64).tobytes())
        found.update(self.n_alleles.astype(np.int64).tobytes())
        if self.ploidy == 2 and self.is_biallelic and not self._has_half_genotypes:
            for first in range(0, self.n_individuals, _ROWS_AT_ONCE):
                found.update(np.ascontiguousarray(self._dosage_of(first, first + _ROWS_AT_ONCE)).tobytes())
        else:
            found.update(np.sort(self.alleles.astype(np.int16), axis=2).tobytes())
        return found.hexdigest()

    @cached_property
    def _has_half_genotypes(self) -> bool:
        if self._alleles is None:
            return False
        missing = (self._alleles < 0).sum(axis=2)
        return bool(((missing > 0) & (missing < self.ploidy)).any())

    def __repr__(self) -> str:
        known = self.n_typed.sum() / max(1, self.n_individuals * self.n_loci * self.ploidy)
        return (
            f"Genotypes({self.n_individuals} individuals × {self.n_loci} loci × {self.ploidy} copies, "
            f"{int(self.starts[-1])} alleles, {100 * (1 - known):.2g} % missing)"
        )


def as_copies(dosage: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return both copies, (n, loci, 2), of copies of the second allele; −1 where they are missing."""
    found = (np.arange(2) >= 2 - dosage[..., None]).astype(np.int8)
    found[dosage < 0] = -1
    return found


def unpack(packed: NDArray[np.uint8], n: int) -> NDArray[np.int8]:
    """Return copies of the second allele, (loci, n), of PLINK's two bits per genotype; −1 where missing."""
    codes = np.empty((packed.shape[0], packed.shape[1], 4), dtype=np.uint8)
    for k in range(4):
        codes[:, :, k] = (packed >> np.uint8(2 * k)) & np.uint8(3)
    return _PLINK_DOSAGE[codes.reshape(len(packed), -1)[:, :n]]


def pack(dosage: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Return PLINK's two bits per genotype of copies of the second allele, (loci, n)."""
    codes = np.array([0, 2, 3, 1], dtype=np.uint8)[dosage]  # −1 is the last one
    padded = np.zeros((len(dosage), 4 * ((dosage.shape[1] + 3) // 4)), dtype=np.uint8)
    padded[:, : dosage.shape[1]] = codes
    quads = padded.reshape(len(dosage), -1, 4)
    return quads[:, :, 0] | quads[:, :, 1] << 2 | quads[:, :, 2] << 4 | quads[:, :, 3] << 6
