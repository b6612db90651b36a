r"""Factors and inverses of large matrices, the same bits on any number of threads.

LAPACK's own threads cut a matrix according to their number, and the order of its sums with it. Here the cut is fixed:
tiles of 256 rows, each worked on by one thread with BLAS of one thread, several of them at a time.

    A = LLᵀ, block by block:   Lₖₖ of the corner,   Lᵢₖ = Aᵢₖ Lₖₖ⁻ᵀ,   Aᵢⱼ ← Aᵢⱼ − Lᵢₖ Lⱼₖᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dtrtri

from ..core.threads import one_thread_blas
from ..data.blocks import map_reduce

Array = NDArray[np.float64]

_TILE = 256


def lower_factor(A: Array) -> Array | None:
    """Return L, lower triangular with zeros above, in the memory of a symmetric A; None unless positive definite."""
    with one_thread_blas():
        return _lower_factor(A)


def _lower_factor(A: Array) -> Array | None:
    n = len(A)
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        corner, info = dpotrf(A[start:stop, start:stop], lower=1, clean=1)
        if info != 0:
            return None
        A[start:stop, start:stop] = corner
        A[start:stop, stop:] = 0.0
        _each(range(stop, n, _TILE), _Panel(A, corner, start, stop))
        _each(range(stop, n, _TILE), _Update(A, start, stop))
    return A


def inverse_of_lower(L: Array) -> Array:
    """Return L⁻¹, lower triangular with zeros above."""
    n = len(L)
    out = np.zeros((n, n))

    def fill(start: int) -> None:
        stop = min(start + _TILE, n)
        right = np.zeros((n - start, stop - start), order="F")
        np.fill_diagonal(right, 1.0)
        # Row by row in memory, L is the upper triangular Lᵀ column by column.
        out[start:, start:stop] = dtrsm(1.0, L[start:, start:].T, right, lower=0, trans_a=1, overwrite_b=1)

    _each(range(0, n, _TILE), fill)
    return out


def inverse_from_factor(L: Array) -> Array:
    """Return (LLᵀ)⁻¹, all of it, in the memory of L."""
    n, X = len(L), inverse_of_lower(L)
    out = L

    def fill(start: int) -> None:
        stop = min(start + _TILE, n)
        np.matmul(X[start:, start:stop].T, X[start:, :stop], out=out[start:stop, :stop])

    def mirror(start: int) -> None:
        stop = min(start + _TILE, n)
        out[start:stop, stop:] = out[stop:, start:stop].T

    _each(range(0, n, _TILE), fill)
    _each(range(0, n, _TILE), mirror)
    return out


class _Panel:
    """The tiles below a corner: Aᵢₖ Lₖₖ⁻ᵀ."""

    def __init__(self, A: Array, corner: Array, start: int, stop: int) -> None:
        self.A, self.start, self.stop = A, start, stop
        inverse, _ = dtrtri(corner, lower=1)
        self.right = np.ascontiguousarray(np.tril(inverse).T)

    def __call__(self, row: int) -> None:
        part = self.A[row : row + _TILE, self.start : self.stop]
        part[:] = part @ self.right


class _Update:
    """The tiles behind a panel: Aᵢⱼ − Lᵢₖ Lⱼₖᵀ."""

    def __init__(self, A: Array, start: int, stop: int) -> None:
        self.A, self.start, self.stop = A, start, stop

    def __call__(self, row: int) -> None:
        end = min(row + _TILE, len(self.A))
        panel = self.A[:, self.start : self.stop]
        self.A[row:end, self.stop : end] -= panel[row:end] @ panel[self.stop : end].T


def _each(starts: Sequence[int], work: Callable[[int], None]) -> None:
    if len(starts):
        with one_thread_blas():
            map_reduce(list(starts), work, lambda a, b: None)
