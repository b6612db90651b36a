r"""Newton systems on a support that changes little from one system to the next.

    (G + Λ₂)_SS x = s,      Λ₂ = diag(λ₂)

A Cholesky factor L of half the digits is kept with the columns R it was made of. Columns of S that R lacks are
appended: with T = L⁻¹H_RE, the factor of both has the rows (L, 0) and (Tᵀ, chol(H_EE − TᵀT)). Columns D of R that S
lacks get x_D = 0, as constraints: with V = L⁻¹I_D,

    x = L⁻ᵀ(u − V(VᵀV)⁻¹Vᵀu),      u = L⁻¹s.

Corrections with all digits of G make up for those that L lacks. Along a path of penalties a support of 1,000 columns
changes by about 25: to append them takes 0.5 ms, a new factor 5 ms.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from ...core import Array, NDArray
from ._kernels import gather_scaled

Rows = NDArray[np.intp]
Single = NDArray[np.float32]

_EXACT = 1e-6  # relative residual; 1e-9 takes one correction more, 8 % of the time of a path of 1,500 × 3,000
_CORRECTIONS = 9  # most corrections with one factor
# columns that may be appended, and constrained, as a share of the factor's: beyond that a new factor is cheaper
_MOST_NEW = 0.25
_MOST_GONE = 0.05


class SupportFactor:
    """The factor, which `solve` brings up to date with the support."""

    def __init__(self) -> None:
        self.columns: Rows = np.zeros(0, dtype=np.intp)  # R
        self.L: Single = np.zeros((0, 0), dtype=np.float32)
        self.diagonal: Array = np.zeros(0)  # of G + Λ₂ on R: another one needs another factor

    def solve(self, G: Array, support: Rows, l2: Array, slope: Array) -> Array | None:
        """Return (G + Λ₂)⁻¹ slope on the support, for λ₂ (k,) and slope (|S|,); None if corrections do not converge."""
        diagonal = G.diagonal() + l2
        scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300))  # to columns of unit length
        inside = np.zeros(len(G), dtype=bool)
        inside[support] = True
        if not (self._suits(diagonal, inside) and self._append(G, scale, inside)):
            self._begin(G, scale, support)
        self.diagonal = diagonal[self.columns]
        step = self._corrected(G, support, l2, scale, slope, inside) if len(self.columns) else None
        if step is None:
            self.columns = self.columns[:0]
        return step

    def _suits(self, diagonal: Array, inside: NDArray[np.bool_]) -> bool:
        """Tell whether the factor is of the same matrix, and of columns near enough to the support."""
        if not len(self.columns) or not np.array_equal(self.diagonal, diagonal[self.columns]):
            return False
        size = len(self.columns)
        common = int(np.count_nonzero(inside[self.columns]))
        n_new = int(np.count_nonzero(inside)) - common
        return n_new <= _MOST_NEW * size and size - common <= _MOST_GONE * size

    def _begin(self, G: Array, scale: Array, support: Rows) -> None:
        """Make the factor of the support; it has no columns where that fails."""
        F = np.empty((len(support),) * 2, dtype=np.float32)
        gather_scaled(G, support.astype(np.uint64), scale[support], F)
        self.L, info = lapack.spotrf(F.T, lower=1, overwrite_a=1, clean=0)
        self.columns = support if info == 0 else support[:0]

    def _append(self, G: Array, scale: Array, inside: NDArray[np.bool_]) -> bool:
        """Append the columns that are new; False where they depend on the others."""
        inside = inside.copy()
        inside[self.columns] = False
        new = np.flatnonzero(inside)
        if not len(new):
            return True
        k = len(self.columns)
        size = k + len(new)
        rows = G[new] * scale[new, None]
        T = blas.strsm(1.0, self.L, (rows[:, self.columns] * scale[self.columns]).astype(np.float32).T, lower=1)
        C = (rows[:, new] * scale[new]).astype(np.float32)
        C.flat[:: len(new) + 1] = 1.0
        corner, info = lapack.spotrf(C - T.T @ T, lower=1, clean=0)
        if info != 0:
            return False
        L = np.empty((size, size), dtype=np.float32, order="F")  # what is above the diagonal is never read
        L[:k, :k] = self.L
        L[k:, :k] = T.T
        L[k:, k:] = corner
        self.L = L
        self.columns = np.concatenate([self.columns, new])
        return True

    def _corrected(
        self, G: Array, support: Rows, l2: Array, scale: Array, slope: Array, inside: NDArray[np.bool_]
    ) -> Array | None:
        gone = np.flatnonzero(~inside[self.columns])
        V = np.zeros((len(self.columns), len(gone)), dtype=np.float32, order="F")
        V[gone, np.arange(len(gone))] = 1.0
        if len(gone):
            V = blas.strsm(1.0, self.L, V, lower=1, overwrite_b=1)
        inverse = np.linalg.inv((V.T @ V).astype(np.float64)).astype(np.float32)
        x = np.zeros(len(G))
        rhs = np.zeros(len(G))
        rhs[support] = scale[support] * slope
        residual = rhs
        size = float(np.linalg.norm(rhs))
        goal = _EXACT * size
        for _ in range(_CORRECTIONS):
            if size <= goal:
                return np.asarray(x[support])
            u = blas.strsv(self.L, (residual[self.columns] / size).astype(np.float32), lower=1)
            u -= V @ (inverse @ (V.T @ u))
            found = blas.strsv(self.L, u, lower=1, trans=1)
            found[gone] = 0.0
            x[self.columns] += size * scale[self.columns] * found
            residual = np.where(inside, rhs - scale * (G @ x + l2 * x), 0.0)
            before = size
            size = float(np.linalg.norm(residual))
            if not size < 0.1 * before:
                return None
        return None
