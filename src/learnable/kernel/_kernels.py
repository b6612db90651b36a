"""From inner products to kernel values, a tile at a time, in loops that vectorise.

`dots` holds ⟨a, z⟩ for some rows a and a tile of columns z; values go to store[slots[a], start:]. The
exponential of float32 is a polynomial and a power of two made from its bits, to 2 units in the last place.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..core.jit import intrinsic, kernel, strict_kernel
from ..core.simd import exp

_LOG2E: Final = 1.4426950408889634
_HIGH32, _LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)  # log 2 in two pieces
_F = np.float32


float_of = intrinsic("float_of")  #: int32 → the float32 with these bits


@strict_kernel
def gauss_tile(dots: Any, own: Any, other: Any, store: Any, slots: Any, start: int) -> None:
    """Write exp(2⟨a, z⟩ − ‖a‖² − ‖z‖²), float32; `own` and `other` are the squares."""
    width = other.size
    for a in range(slots.size):
        line, out, square = dots[a], store[slots[a], start : start + width], own[a]
        for c in range(width):
            x = (line[c] - square) + (line[c] - other[c])
            x = min(max(x, _F(-87.0)), _F(0.0))
            k = np.floor(x * _F(_LOG2E) + _F(0.5))
            r = (x - k * _HIGH32) - k * _LOW32
            p = _F(1.9875691500e-4)
            p = p * r + _F(1.3981999507e-3)
            p = p * r + _F(8.3334519073e-3)
            p = p * r + _F(4.1665795894e-2)
            p = p * r + _F(1.6666665459e-1)
            p = p * r + _F(5.0000001201e-1)
            p = p * (r * r) + (r + _F(1.0))
            out[c] = p * float_of(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))


@strict_kernel
def gauss_tile64(dots: Any, own: Any, other: Any, store: Any, slots: Any, start: int) -> None:
    """Write exp(2⟨a, z⟩ − ‖a‖² − ‖z‖²), float64."""
    width = other.size
    for a in range(slots.size):
        line, out, square = dots[a], store[slots[a], start : start + width], own[a]
        for c in range(width):
            out[c] = exp(min((line[c] - square) + (line[c] - other[c]), 0.0))


@strict_kernel
def power_tile(dots: Any, shift: Any, degree: int, store: Any, slots: Any, start: int) -> None:
    """Write (⟨a, z⟩ + shift)^degree."""
    width = dots.shape[1]
    for a in range(slots.size):
        line, out = dots[a], store[slots[a], start : start + width]
        if degree == 2:
            for c in range(width):
                x = line[c] + shift
                out[c] = x * x
        elif degree == 3:
            for c in range(width):
                x = line[c] + shift
                out[c] = x * x * x
        else:
            for c in range(width):
                x = line[c] + shift
                power = x
                for _ in range(degree - 1):
                    power *= x
                out[c] = power


@kernel
def add_weighted(values: Any, c: Any, out: Any) -> None:
    """Add Σⱼ values[i, j] c[j] to out[i], in float64."""
    for i in range(out.size):
        line, total = values[i, : c.size], 0.0
        for j in range(c.size):
            total += np.float64(line[j]) * c[j]
        out[i] += total


@strict_kernel
def sparse_dots(data: Any, indices: Any, indptr: Any, columns: Any, rows_of: Any, ends: Any, out: Any) -> None:
    """Add ⟨x, z⟩ of some sparse rows x with all rows z, given by columns (CSC), to the rows of `out`.

    The cost is the number of entries that the columns of x have.
    """
    for r in range(out.shape[0]):
        line = out[r]
        for p in range(indptr[r], indptr[r + 1]):
            x, j = data[p], indices[p]
            for s in range(ends[j], ends[j + 1]):
                line[rows_of[s]] += x * columns[s]
