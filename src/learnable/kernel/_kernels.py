"""From inner products to kernel values, a tile at a time, in loops that vectorise.

`dots` holds ⟨a, z⟩ for some rows a and a tile of columns z; values go to store[slots[a], start:]. The
exponential of float32 is a polynomial and a power of two made from its bits, to 2 units in the last place.

Sums of Gaussian kernel values while they are in the first-level cache: a tile serves above and below the diagonal.

`dots` holds ⟨a, z⟩ for some rows a and a tile of columns z of embedded points, as in `_kernels`; a line of values is
made, summed both ways and forgotten.

Kernels of Gaussian processes.
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


@kernel
def _sum_line(line: Any, weight: Any, weights: Any, below: Any) -> Any:
    """Return Σ line·weights, and add weight·line to `below`."""
    total = weights[0] - weights[0]
    for c in range(line.size):
        total += line[c] * weights[c]
        below[c] += line[c] * weight
    return total


@kernel
def gauss_sums(dots: Any, own: Any, other: Any, line: Any, slot: Any, v: Any, w: Any, beside: Any, below: Any) -> None:
    """Add Σ_z k(a, z) w(z) to `beside` (float64) and Σ_a k(a, z) v(a) to `below` (float32); `line` is (1, width)."""
    for a in range(own.size):
        gauss_tile(dots[a : a + 1], own[a : a + 1], other, line, slot, 0)
        beside[a] += _sum_line(line[0], v[a], w, below)


@kernel
def gauss_sums64(
    dots: Any, own: Any, other: Any, line: Any, slot: Any, v: Any, w: Any, beside: Any, below: Any
) -> None:
    """Do the same in float64."""
    for a in range(own.size):
        gauss_tile64(dots[a : a + 1], own[a : a + 1], other, line, slot, 0)
        beside[a] += _sum_line(line[0], v[a], w, below)


_TILE = 64  # 32 kB of doubles: a tile and its mirror image stay in the cache


@kernel
def mirror(A: Any) -> None:
    """Copy the upper triangle of a square matrix to the lower one, tile by tile.

    IN/OUT  A  (n, n)
    """
    n = A.shape[0]
    for i0 in range(0, n, _TILE):
        for j0 in range(i0, n, _TILE):
            for j in range(j0, min(j0 + _TILE, n)):
                for i in range(i0, min(i0 + _TILE, j)):
                    A[j, i] = A[i, j]


@kernel
def multiply_rows(T: Any, K: Any, share: Any, M: Any, sums: Any) -> None:
    """Write share[i] T[i, k] K[i, k], and the sums over k of T[i, k] K[i, k].

    IN   T, K  (c, m);  share  (c,)
    OUT  M  (c, m);  sums  (c,)
    """
    for i in range(share.size):
        left, right, out, factor, total = T[i], K[i], M[i], share[i], 0.0
        for k in range(left.size):
            product = left[k] * right[k]
            total += product
            out[k] = factor * product
        sums[i] = total
