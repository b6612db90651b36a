"""Kernels of the solvers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Index = NDArray[np.int32] | NDArray[np.int64]


@kernel
def sparse_normal_product(
    data: Array, indices: Index, indptr: Index, weight: Array, v: Array, offset: float, out: Array
) -> float:
    """Return Σ wᵢzᵢ for zᵢ = xᵢᵀv − offset. OUT out (d,) += Σ wᵢ zᵢ xᵢ. One sweep over CSR rows."""
    total = 0.0
    for i in range(indptr.size - 1):
        z = -offset
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * v[indices[k]]
        z *= weight[i]
        total += z
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += z * data[k]
    return total
