r"""Functions in the Hilbert space of a kernel: f = Σᵢ cᵢ k(·, xᵢ).

Their inner product is ⟨Σ aᵢ k(·, xᵢ), Σ bⱼ k(·, zⱼ)⟩ = Σᵢⱼ aᵢ bⱼ k(xᵢ, zⱼ), so that evaluation is an inner product too:
f(x) = ⟨f, k(·, x)⟩, the reproducing property, and |f(x)| ≤ ‖f‖ √k(x, x).

By the representer theorem the minimiser of any loss of values f(xᵢ) plus an increasing function of ‖f‖ has this form,
with the xᵢ themselves: what is orthogonal to all k(·, xᵢ) changes no value and only raises the norm.

Reference: G. Kimeldorf and G. Wahba, Some results on Tchebycheffian spline functions, 1971.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.errors import DataError
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
        points, c = read_points(self.points), np.asarray(self.coefficients, dtype=np.float64)
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
