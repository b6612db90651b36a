r"""Functions in the Hilbert space of a kernel: f = Σᵢ cᵢ k(·, xᵢ).

Their inner product is ⟨Σ aᵢ k(·, xᵢ), Σ bⱼ k(·, zⱼ)⟩ = Σᵢⱼ aᵢ bⱼ k(xᵢ, zⱼ), so that evaluation is an inner product too:
f(x) = ⟨f, k(·, x)⟩, the reproducing property, and |f(x)| ≤ ‖f‖ √k(x, x).

By the representer theorem the minimiser of any loss of values f(xᵢ) plus an increasing function of ‖f‖ has this form,
with the xᵢ themselves: what is orthogonal to all k(·, xᵢ) changes no value and only raises the norm.

Reference: G. Kimeldorf and G. Wahba, Some results on Tchebycheffian spline functions, 1971.

Whether a matrix is that of a Mercer kernel, and a kernel's expansion in its eigenfunctions on a sample.

For points drawn from a distribution, Kx = ∫ k(·, x) f(x) dP(x) has eigenvalues μⱼ and eigenfunctions φⱼ, and

    k(x, z) = Σⱼ μⱼ φⱼ(x) φⱼ(z)        (Mercer, 1909).

With the sample instead of P, μⱼ = λⱼ/n and φⱼ(x) = √n/λⱼ Σᵢ uᵢⱼ k(x, xᵢ), where K u = λ u: on the sample the expansion
is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core.errors import DataError, ParameterError
from .base import Array, Kernel, read_points


@dataclass(frozen=True, eq=False)
class RKHSFunction:
    """A function f = Σᵢ cᵢ k(·, xᵢ), or several with the same points.

    Parameters
    ----------
    kernel : Kernel
        k.
    points : (n, d) array
        xᵢ.
    coefficients : (n,) or (n, t) array
        cᵢ; t functions.

    Examples
    --------
    >>> from learnable.risk.kernels import Linear
    >>> f = RKHSFunction(Linear(), [[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0])
    >>> f([[1.0, 1.0]]), f.norm()
    (array([5.]), 3.605551275463989)
    """

    kernel: Kernel
    points: Any
    coefficients: Array

    def __post_init__(self) -> None:
        points = read_points(self.points)
        c = np.asarray(self.coefficients, dtype=np.float64)
        if c.ndim not in (1, 2) or len(c) != points.shape[0] or not np.isfinite(c).all():
            raise DataError(f"RKHSFunction: there must be a finite coefficient for each of {points.shape[0]} points.")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "coefficients", c)

    def __call__(self, X: Any) -> Array:
        """Return f(x) for every row of X, of shape (len(X),) or (len(X), t); the matrix K is never whole."""
        return self.kernel.products(X, self.coefficients, self.points)

    def inner(self, other: RKHSFunction) -> Any:
        """Return ⟨f, g⟩; of several functions, one for each."""
        self._check_same(other)
        values = other(self.points)
        return (self.coefficients * values).sum(axis=0)[()]

    def norm(self) -> Any:
        """Return ‖f‖; of several functions, one for each."""
        found = np.sqrt(np.maximum(self.inner(self), 0.0))
        return float(found) if np.ndim(found) == 0 else found

    def bound(self, X: Any) -> Array:
        """Return ‖f‖ √k(x, x), which |f(x)| never exceeds."""
        size = np.sqrt(self.kernel.diagonal(X))
        return np.asarray(size * self.norm() if self.coefficients.ndim == 1 else size[:, None] * self.norm())

    def __add__(self, other: RKHSFunction) -> RKHSFunction:
        self._check_same(other)
        points = (sp.vstack if sp.issparse(self.points) else np.vstack)([self.points, other.points])
        return RKHSFunction(self.kernel, points, np.concatenate([self.coefficients, other.coefficients]))

    def __sub__(self, other: RKHSFunction) -> RKHSFunction:
        return self + -1.0 * other

    def __mul__(self, factor: float) -> RKHSFunction:
        return RKHSFunction(self.kernel, self.points, self.coefficients * factor)

    def __rmul__(self, factor: float) -> RKHSFunction:
        return self * factor

    def _check_same(self, other: RKHSFunction) -> None:
        if self.kernel != other.kernel or self.points.shape[1] != other.points.shape[1]:
            raise DataError("RKHSFunction: both functions must be in the space of the same kernel.")


def feature(kernel: Kernel, x: Any) -> RKHSFunction:
    """Return the feature k(·, x) of a point x (d,): its inner product with f is f(x).

    Examples
    --------
    >>> from learnable.risk.kernels import Gaussian
    >>> f, at = RKHSFunction(Gaussian(), [[0.0], [1.0]], [1.0, -1.0]), [0.3]
    >>> bool(np.isclose(f.inner(feature(Gaussian(), at)), f([at])[0]))
    True
    """
    return RKHSFunction(kernel, np.atleast_2d(np.asarray(x, dtype=np.float64)), np.ones(1))


_EPSILON = 2.0**-52  # distance from one to the next float64


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
    values = values[::-1]
    vectors = vectors[:, ::-1]
    n = len(values)
    kept = values > 10.0 * _EPSILON * n * values[0]
    kept[n if n_components is None else n_components :] = False
    return MercerExpansion(kernel, points, values[kept] / n, vectors[:, kept] * (np.sqrt(n) / values[kept]))
