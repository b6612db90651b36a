r"""One eigendecomposition of a kernel matrix, and from it kernel ridge regression for every penalty.

With √w K √w = U diag(λ) Uᵀ and z = Uᵀ√w y,

    c(α) = √w U (λ + α)⁻¹ z,        (K + αW⁻¹)⁻¹ᵢᵢ = wᵢ Σₖ uᵢₖ²/(λₖ + α),        tr H(α) = Σₖ λₖ/(λₖ + α),

so that a further α costs two products with U: coefficients, exact leave-one-out errors and degrees of freedom.

Reference: R. Rifkin and R. Lippert, Notes on regularized least-squares, MIT CSAIL TR-2007-025, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..core.threads import interruptible, one_thread_blas

Array = NDArray[np.float64]


class KernelSpectrum(NamedTuple):
    """Eigenvalues and eigenvectors of √w K √w, w scaled to at most one, and the targets in their terms."""

    values: Array  #: λ ≥ 0, (n,)
    vectors: Array  #: U, (n, n)
    root: Array  #: √w, (n,)
    weight_scale: float  #: the largest weight: α here is α/weight_scale
    projected: Array  #: Uᵀ√w y, (n, t)

    def coefficients(self, alphas: Array) -> Array:
        """Return c(α) of every α, of shape (n_alphas, n, t)."""
        out = np.empty((len(alphas), *self.projected.shape))
        with one_thread_blas():
            for number, alpha in enumerate(alphas / self.weight_scale):
                out[number] = self.root[:, None] * (self.vectors @ (self.projected / (self.values + alpha)[:, None]))
        return out

    def leave_one_out(self, alphas: Array) -> Array:
        """Return yᵢ − ŷ₍ᵢ₎ of every α > 0, of shape (n, t, n_alphas)."""
        coef, squares = self.coefficients(alphas), self.vectors**2
        out = np.empty((*self.projected.shape, len(alphas)))
        with one_thread_blas():
            for number, alpha in enumerate(alphas / self.weight_scale):
                inverse = self.root**2 * (squares @ (1.0 / (self.values + alpha)))
                out[:, :, number] = coef[number] / inverse[:, None]
        return out

    def residuals(self, alphas: Array) -> Array:
        """Return yᵢ − f(xᵢ) = αcᵢ/wᵢ of every α, of shape (n, t, n_alphas)."""
        scaled = (alphas / self.weight_scale)[:, None, None]
        return np.moveaxis(scaled * self.coefficients(alphas) / self.root[:, None] ** 2, 0, -1)

    def freedom(self, alphas: Array) -> Array:
        """Return the share of degrees of freedom that a fit leaves, 1 − tr H/n, of shape (n_alphas,)."""
        scaled = (alphas / self.weight_scale)[:, None]
        return np.asarray((scaled / (self.values + scaled)).mean(axis=1))

    def inverse(self, R: Array, alpha: float) -> Array:
        """Return (K + αW⁻¹)⁻¹R for R of shape (n, t)."""
        with one_thread_blas():
            z = self.vectors.T @ (self.root[:, None] * R)
            z /= (self.values + alpha / self.weight_scale)[:, None]
            return np.asarray(self.root[:, None] * (self.vectors @ z))


def kernel_spectrum(K: Array, Y: Array, weight: Array | None = None) -> KernelSpectrum:
    """Return the eigendecomposition of a kernel matrix (n, n) with targets (n, t) and weights (n,).

    Examples
    --------
    >>> K, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0], [0.0]])
    >>> kernel_spectrum(K, Y).coefficients(np.array([1.0])).round(4).ravel()
    array([ 0.375, -0.125])
    """
    scale = 1.0 if weight is None else float(weight.max())
    root = np.ones(len(K)) if weight is None else np.sqrt(weight / scale)
    values, vectors = interruptible(eigh, K * (root[:, None] * root), driver="evd", check_finite=False)
    with one_thread_blas():
        projected = vectors.T @ (root[:, None] * Y)
    return KernelSpectrum(np.maximum(values, 0.0), vectors, root, scale, projected)
