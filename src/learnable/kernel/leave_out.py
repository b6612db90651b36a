r"""The diagonal of (K + D)⁻¹, which is all that exact leave-one-out needs besides the coefficients.

With A = K + D and c = A⁻¹y, the fit to all rows but i predicts yᵢ − cᵢ/(A⁻¹)ᵢᵢ for it. From a Cholesky factor, A = LLᵀ,
(A⁻¹)ᵢᵢ is the squared norm of column i of L⁻¹.

Reference: R. Rifkin and R. Lippert, Notes on regularized least-squares, MIT CSAIL TR-2007-025, section 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ..core.threads import interruptible
from .operators import Operator, Woodbury

Array = NDArray[np.float64]

_SMALLEST_SHARE = 1e-6  # of dᵢ(A⁻¹)ᵢᵢ: below, a difference from one would lose more than ten digits


def inverse_diagonal(operator: Operator, d: Array) -> Array | None:
    """Return the diagonal of (K + D)⁻¹; None if the matrix is singular or not positive definite.

    Parameters
    ----------
    operator : Operator
        K.
    d : (n,) array
        Diagonal of D.
    """
    if operator.matrix is None and operator.is_linear and d.all():
        inverse = Woodbury(operator.X.astype(np.float64), d).diagonal()
        if (inverse * d).min(initial=1.0) > _SMALLEST_SHARE:
            return inverse
    K = operator.matrix if operator.matrix is not None else operator.kernel(operator.X)
    size = operator.diagonal + d
    if not (size > 0).all():
        return None
    scale = 1.0 / np.sqrt(size)
    A = K * (scale[:, None] * scale)
    A.flat[:: len(A) + 1] = 1.0
    L, info = interruptible(lapack.dpotrf, A.T, lower=1, overwrite_a=1, clean=1)
    if info != 0 or np.diag(L).min(initial=1.0) ** 2 < 8.0 * len(A) * 2.0**-52:
        return None
    inverse_root, _ = interruptible(lapack.dtrtri, L, lower=1, overwrite_c=1)
    return np.asarray(np.einsum("ij,ij->j", inverse_root, inverse_root) * scale**2)
