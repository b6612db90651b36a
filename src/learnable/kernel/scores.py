r"""Sums of kernels at new points: Σⱼ cⱼ k(x, zⱼ), tile by tile on threads.

Kernels of inner products are computed in float32 where their exponents are moderate and the table is large: values are
then right to about 1e-6 Σ|cⱼ|. Sums over the tiles are float64. Small tables, and every other kernel, are float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..risk.kernels import Gaussian, Kernel, Linear, Polynomial
from ..solvers.conic.smo import Team
from .kernel_rows import embed_with, float32_serves, formula_of, products_serve, tile_sums

Array = NDArray[np.float64]

_FEW = 2**22  # kernel values up to which float64 costs nothing that one could notice


def kernel_scores(
    kernel: Kernel, X: Any, Z: Any, coefficients: Array, runs: list[tuple[int, int]], *, n_jobs: int | None = None
) -> list[Array]:
    """Return Σⱼ cⱼ k(xᵢ, zⱼ) over each run of points, of shape (n, t) for coefficients (m, t).

    Memory: copies of X and Z in the precision used, and tiles of 1 MB a thread.
    """
    n, m, t = X.shape[0], Z.shape[0], coefficients.shape[1]
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    if m == 0 or n == 0:
        return [np.zeros((n, t)) for _ in runs]
    if isinstance(kernel, Linear):
        return [np.asarray(X @ (Z[i:j].T @ coefficients[i:j]), dtype=np.float64) for i, j in runs]
    if sp.issparse(X) or sp.issparse(Z) or not isinstance(kernel, (Gaussian, Polynomial)):
        return [
            kernel.products(X, coefficients[i:j], Z[i:j], n_jobs=n_jobs) if j > i else np.zeros((n, t)) for i, j in runs
        ]
    centre = Z.mean(axis=0, dtype=np.float64) if isinstance(kernel, Gaussian) else None
    left, own = embed_with(kernel, X, centre)
    right, other = embed_with(kernel, Z, centre)
    largest = max(float(own.max()), float(other.max()))
    if not products_serve(kernel, largest):
        return [np.asarray(kernel.products(X, coefficients[i:j], Z[i:j], n_jobs=n_jobs)) for i, j in runs]
    single = n * m > _FEW and float32_serves(kernel, largest)
    dtype: Any = np.float32 if single else np.float64
    left, right, own, other = (np.ascontiguousarray(a, dtype=dtype) for a in (left, right, own, other))
    with Team(n_jobs) as team:
        return tile_sums(formula_of(kernel, dtype), (left, own), (right, other), coefficients, runs, team)
