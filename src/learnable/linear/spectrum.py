r"""One factorisation for every λ: the singular value decomposition behind ridge paths and exact leave-one-out.

With the weighted, centred rows √w(X − x̄) = U diag(s) Vᵀ, for every α at once

    β(α) = V diag(s/(s² + α)) Uᵀ√w(y − ȳ),   hᵢᵢ(α) = wᵢ/W + Σⱼ u²ᵢⱼ s²ⱼ/(s²ⱼ + α),

and the prediction for row i by the fit without row i misses yᵢ by rᵢ/(1 − hᵢᵢ), exactly. U and V come from the smaller of the
two Gram matrices; from an SVD of the rows where α is so small that squaring would lose digits. Memory: O(nd).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, svd

from ..core.threads import interruptible
from ..solvers.orthogonal import weighted_mean

Array = NDArray[np.float64]


class RidgeSpectrum(NamedTuple):
    """The decomposition, and the data seen through it."""

    left: Array  #: (n, r), U
    values: Array  #: (r,), s²
    right: Array  #: (r, d), diag(1/s)·Vᵀ·s, that is Vᵀ
    projected: Array  #: (r, k), Uᵀ√w(y − ȳ)
    x_mean: Array
    y_mean: Array
    y: Array  #: (n, k), √w(y − ȳ)
    root_weight: Array  #: (n,), √w
    intercept: bool

    def shrinkage(self, alphas: Array) -> Array:
        """Return s²/(s² + α), of shape (r, n_alphas)."""
        return np.asarray(self.values[:, None] / (self.values[:, None] + alphas))

    def coefficients(self, alphas: Array) -> Array:
        """Return β(α) of shape (n_alphas, d, k)."""
        weights = np.sqrt(self.values)[:, None] / (self.values[:, None] + alphas)
        scaled = weights.T[:, :, None] * self.projected  # (n_alphas, r, k)
        return np.asarray(np.einsum("rd,ark->adk", self.right, scaled, optimize=True))

    def fitted(self, alphas: Array) -> Array:
        """Return √w(ŷ − ȳ) of shape (n, k, n_alphas)."""
        scaled = self.projected[:, :, None] * self.shrinkage(alphas)[:, None, :]
        n, k, a = len(self.y), self.projected.shape[1], len(alphas)
        return np.asarray((self.left @ scaled.reshape(len(self.values), k * a)).reshape(n, k, a))

    def leverages(self, alphas: Array) -> Array:
        """Return hᵢᵢ of shape (n, n_alphas)."""
        leverage = (self.left**2) @ self.shrinkage(alphas)
        if self.intercept:
            w = self.root_weight**2
            leverage += (w / w.sum())[:, None]
        return np.asarray(leverage)

    def leave_one_out(self, alphas: Array) -> Array:
        """Return the errors yᵢ − ŷ₍ᵢ₎ of shape (n, k, n_alphas)."""
        residual = self.y[:, :, None] - self.fitted(alphas)
        left = 1.0 - self.leverages(alphas)
        # A row that determines its own fit (h = 1) has no leave-one-out prediction: its error is infinite, not 0/0.
        safe = np.where(left > 1e-12, left, np.nan)
        errors = residual / (safe[:, None, :] * self.root_weight[:, None, None])
        return np.where(np.isnan(errors), np.inf, errors)


def ridge_spectrum(
    X: Array, y: Array, weight: Array | None, *, intercept: bool, smallest_alpha: float
) -> RidgeSpectrum:
    """Decompose dense X (n, d) for targets y (n, k)."""
    x_mean, y_mean = weighted_mean(X, weight, intercept), weighted_mean(y, weight, intercept)
    root = np.ones(len(X)) if weight is None else np.sqrt(weight)
    Z, t = X - x_mean, root[:, None] * (y - y_mean)
    if weight is not None:
        Z *= root[:, None]
    n, d = Z.shape
    gram = interruptible(np.matmul, Z.T, Z) if d <= n else interruptible(np.matmul, Z, Z.T)
    values, vectors = interruptible(eigh, gram, check_finite=False, overwrite_a=True, driver="evd")
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = np.finfo(float).eps * max(n, d) * max(values[0], 0.0)
    if smallest_alpha < 1e4 * noise and n * d <= 4e7:
        # Squaring would drown directions that such a small penalty does not: decompose the rows themselves.
        U, s, Vt = interruptible(svd, Z, full_matrices=False, check_finite=False)
        kept = s > np.finfo(float).eps * max(n, d) * s[0] if len(s) else np.zeros(0, dtype=bool)
        U, values, Vt = U[:, kept], s[kept] ** 2, Vt[kept]
    else:
        kept = values > noise
        values, vectors = values[kept], np.ascontiguousarray(vectors[:, kept])
        if d <= n:
            U, Vt = interruptible(np.matmul, Z, vectors) / np.sqrt(values), vectors.T
        else:
            U, Vt = vectors, (vectors.T @ Z) / np.sqrt(values)[:, None]
    return RidgeSpectrum(U, values, Vt, U.T @ t, x_mean, y_mean, t, root, intercept)
