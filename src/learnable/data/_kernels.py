"""One pass over the rows: which are finite, and what is their checksum; and rows made of columns.

The checksum of the rows is Σᵢ mix(Σⱼ fold(bits xᵢⱼ)·mⱼ + tailᵢ) mod 2⁶⁴, with odd mⱼ from a counter-based
generator. It does not depend on the order of the rows, on how they are cut into blocks, on the container,
or on the storage: zero has zero bits, so that a sparse row and its dense twin agree. `fold`, `mix` and the
product with an odd number are bijections, so that the change of a single element always changes the sum.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import intrinsic, kernel, numba_is_loaded

Bits = NDArray[np.uint64]

_EXPONENT = np.uint64(0x7FF0000000000000)
_SIGN_BIT = np.uint64(0x8000000000000000)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_S16, _S32 = np.uint64(16), np.uint64(32)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WIDTH = np.uint64(8)  # bytes of a float64
_FEW_SCANS, _FEW_NUMBERS = 20, 50_000  # of a process that NumPy scans in less than a tenth of what loading Numba takes
_TILE_ROWS = 256  # of the rows that are written at a time: they stay in the cache until all columns have come

_numbers_at = intrinsic("numbers_at")  #: uint64 → a pointer to the float64 at this address
_array_at = intrinsic("array_at")  #: (pointer, n) → the array of n numbers from there on


@kernel
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@kernel
def fold(bits: np.uint64) -> np.uint64:
    """Bring every bit down to the lowest sixteen as well.

    A small integer has all its bits at the top of a float64, where a product mod 2⁶⁴ keeps only twelve bits
    of the multiplier: without folding, swapping two columns of zeros and ones would often go unnoticed.
    """
    bits ^= bits >> _S32
    return bits ^ (bits >> _S16)


_scans = itertools.count()


def scan_rows(bits: Bits, multipliers: Bits, tail: Bits) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns; small tables of a process without Numba do not wait for its import."""
    if bits.size > _FEW_NUMBERS or numba_is_loaded() or next(_scans) >= _FEW_SCANS:
        return scan_dense(bits, multipliers, tail)
    return scan_by_numpy(bits, multipliers, tail)


def scan_by_numpy(bits: Bits, multipliers: Bits, tail: Bits) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns, to the bit: all of it are integers mod 2⁶⁴."""
    bits = np.where(bits == _SIGN_BIT, _ZERO, bits)
    n_bad = np.int64(((bits & _EXPONENT) == _EXPONENT).any(axis=1).sum())
    bits ^= bits >> _S32
    bits ^= bits >> _S16
    h = (bits * multipliers).sum(axis=1, dtype=np.uint64) + tail
    h = (h ^ (h >> _S30)) * _M1
    h = (h ^ (h >> _S27)) * _M2
    return np.uint64((h ^ (h >> _S31)).sum(dtype=np.uint64)), n_bad


@kernel
def scan_dense(bits: Bits, multipliers: Bits, tail: Bits) -> tuple[np.uint64, np.int64]:
    """Return the checksum of the rows and the number of rows that are not finite.

    IN bits (n, d): the float64 rows seen as integers; multipliers (d,); tail (n,): the rest of a row's sum.
    """
    n, d = bits.shape
    total = _ZERO
    n_bad = np.int64(0)
    for i in range(n):
        row = bits[i]
        h = _ZERO
        bad = _ZERO
        for j in range(d):
            b = row[j]
            # −0.0 is the only number whose bits are the sign alone; it equals 0.0 and must hash alike.
            b = b if b != _SIGN_BIT else _ZERO
            h += fold(b) * multipliers[j]
            bad |= _ONE if (b & _EXPONENT) == _EXPONENT else _ZERO
        n_bad += np.int64(bad)
        total += mix(h + tail[i])
    return total, n_bad


@kernel
def scan_columns(bits: Bits, start: int, multipliers: Bits, sums: Bits) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns, for some rows of a table that lies by columns.

    IN bits (d, n): the columns; start: the first of the rows. IN/OUT sums (m,): the rest of a row's sum, then all.
    """
    bad = np.zeros(sums.size, dtype=np.uint64)
    for j in range(bits.shape[0]):
        column, multiplier = bits[j, start : start + sums.size], multipliers[j]
        for i in range(sums.size):
            b = column[i]
            b = b if b != _SIGN_BIT else _ZERO
            sums[i] += fold(b) * multiplier
            bad[i] |= _ONE if (b & _EXPONENT) == _EXPONENT else _ZERO
    total = _ZERO
    n_bad = np.int64(0)
    for i in range(sums.size):
        total += mix(sums[i])
        n_bad += np.int64(bad[i])
    return total, n_bad


@kernel
def scan_sparse(
    bits: Bits, indices: NDArray[Any], indptr: NDArray[Any], multipliers: Bits, tail: Bits
) -> tuple[np.uint64, np.int64]:
    """Return what `scan_dense` returns, for the rows of a CSR matrix."""
    total = _ZERO
    n_bad = np.int64(0)
    for i in range(indptr.size - 1):
        h = _ZERO
        bad = _ZERO
        for k in range(indptr[i], indptr[i + 1]):
            b = bits[k]
            b = b if b != _SIGN_BIT else _ZERO
            h += fold(b) * multipliers[indices[k]]
            bad |= _ONE if (b & _EXPONENT) == _EXPONENT else _ZERO
        n_bad += np.int64(bad)
        total += mix(h + tail[i])
    return total, n_bad


@kernel
def rows_of_columns(addresses: Bits, out: NDArray[np.float64]) -> None:
    """OUT out (m, d): the rows of a table whose columns are runs of m float64 numbers at the addresses (d,)."""
    m, d = out.shape
    for start in range(0, m, _TILE_ROWS):
        height = min(_TILE_ROWS, m - start)
        rows = out[start : start + height]
        for j in range(d):
            begin = addresses[j] + _WIDTH * np.uint64(start)
            column = _array_at(_numbers_at(begin), height)
            for i in range(height):
                rows[i, j] = column[i]
