"""Kernels of Gaussian processes."""

from __future__ import annotations

from typing import Any

from ..core.jit import kernel

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
