"""The one loop of this package that BLAS does badly: whitening many short rows."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel
from .base import Array

_TILE = 64  # rows worked on side by side: the innermost loop, which vectorises


@kernel
def squared_lengths(X: Array, mean: Array, L: Array, out: Array) -> None:
    """Set out[i] = ‖L⁻¹(x_i - μ)‖² by forward substitution, for a lower triangular L with a positive diagonal.

    IN  X (n, d), mean (d,), L (d, d); OUT out (n,).
    """
    n, d = X.shape
    Z = np.zeros((d, _TILE))
    total = np.empty(_TILE)
    for start in range(0, n, _TILE):
        m = min(_TILE, n - start)
        rows = X[start : start + m]
        total[:] = 0.0
        for j in range(d):
            z = Z[j]
            for r in range(m):
                z[r] = rows[r, j] - mean[j]
            for k in range(j):
                c, earlier = L[j, k], Z[k]
                for r in range(_TILE):
                    z[r] -= c * earlier[r]
            scale = 1.0 / L[j, j]
            for r in range(_TILE):
                z[r] *= scale
                total[r] += z[r] * z[r]
        part = out[start : start + m]
        for r in range(m):
            part[r] = total[r]
