r"""Whether a matrix is that of a Mercer kernel, and a kernel's expansion in its eigenfunctions on a sample.

For points drawn from a distribution, Kx = ∫ k(·, x) f(x) dP(x) has eigenvalues μⱼ and eigenfunctions φⱼ, and

    k(x, z) = Σⱼ μⱼ φⱼ(x) φⱼ(z)        (Mercer, 1909).

With the sample instead of P, μⱼ = λⱼ/n and φⱼ(x) = √n/λⱼ Σᵢ uᵢⱼ k(x, xᵢ), where K u = λ u: on the sample the expansion
is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import DataError, ParameterError
from .base import Array, Kernel, read_points

_EPSILON = 2.0**-52


class MercerReport(NamedTuple):
    """What the eigenvalues say; true if the matrix is positive semidefinite, up to rounding."""

    ok: bool
    smallest: float  #: the most negative eigenvalue
    largest: float
    tolerance: float  #: of rounding: a smallest eigenvalue above −tolerance may be zero

    def __bool__(self) -> bool:
        return self.ok


def is_mercer(K: Any, X: Any = None) -> MercerReport:
    """Check that a matrix, or a kernel at points X, is symmetric and positive semidefinite.

    Parameters
    ----------
    K : (n, n) array or Kernel
        A matrix; or a kernel, then X are the points.
    X : (n, d) array, optional
        Points.

    Examples
    --------
    >>> bool(is_mercer([[2.0, 1.0], [1.0, 2.0]])), bool(is_mercer([[1.0, 2.0], [2.0, 1.0]]))
    (True, False)
    """
    if isinstance(K, Kernel):
        if X is None:
            raise ParameterError("is_mercer: a kernel needs points X.")
        K = K(X)
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not len(K) or not np.isfinite(K).all():
        raise DataError(f"is_mercer: K must be a square matrix of finite numbers; got shape {K.shape}.")
    size = float(np.abs(K).max())
    values = np.linalg.eigvalsh((K + K.T) / 2.0)
    tolerance = 10.0 * _EPSILON * len(K) * max(size, float(np.abs(values).max()))
    symmetric = float(np.abs(K - K.T).max()) <= 1e-10 * size
    return MercerReport(bool(symmetric and values[0] >= -tolerance), float(values[0]), float(values[-1]), tolerance)


@dataclass(frozen=True)
class MercerExpansion:
    """Eigenvalues and eigenfunctions of a kernel on a sample.

    Attributes
    ----------
    kernel : Kernel
        k.
    points : (n, d) array
        The sample.
    eigenvalues : (m,) array
        μⱼ, largest first.
    vectors : (n, m) array
        √n/λⱼ uⱼ.
    """

    kernel: Kernel
    points: Any
    eigenvalues: Array
    vectors: Array

    def functions(self, X: Any) -> Array:
        """Return φⱼ(x), of shape (len(X), m)."""
        return np.asarray(self.kernel(X, self.points) @ self.vectors)

    def features(self, X: Any) -> Array:
        """Return √μⱼ φⱼ(x): points whose inner products are, nearly, the kernel."""
        return self.functions(X) * np.sqrt(self.eigenvalues)


def mercer_expansion(kernel: Kernel, X: Any, n_components: int | None = None) -> MercerExpansion:
    """Return the empirical Mercer expansion of a kernel.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : (n, d) array
        The sample.
    n_components : int, optional
        How many eigenfunctions, at most; those of eigenvalues that are zero up to rounding are left out.

    Examples
    --------
    >>> from learnable.risk.kernels import Linear
    >>> mercer_expansion(Linear(), [[1.0], [2.0]]).eigenvalues
    array([2.5])
    """
    points = read_points(X)
    values, vectors = np.linalg.eigh(kernel._between(points, points))
    values, vectors = values[::-1], vectors[:, ::-1]
    n = len(values)
    kept = values > 10.0 * _EPSILON * n * values[0]
    kept[n if n_components is None else n_components :] = False
    return MercerExpansion(kernel, points, values[kept] / n, vectors[:, kept] * (np.sqrt(n) / values[kept]))
