r"""One factorisation for every λ: the singular value decomposition behind ridge paths and exact leave-one-out.

With the weighted, centred rows √w(X − x̄) = U diag(s) Vᵀ, for every α at once

    β(α) = V diag(s/(s² + α)) Uᵀ√w(y − ȳ),   hᵢᵢ(α) = wᵢ/W + Σⱼ u²ᵢⱼ s²ⱼ/(s²ⱼ + α),

and the prediction for row i by the fit without row i misses yᵢ by rᵢ/(1 − hᵢᵢ), exactly. U comes from the
smaller of the two Gram matrices; from an SVD of the rows where α is so small that squaring would lose digits.
Memory: O(nd).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.threads import interruptible, one_thread_blas
from ...solvers.systems.orthogonal import weighted_mean

Array = NDArray[np.float64]

ENORMOUS = 1e300  # a scaled penalty beyond this is as good as infinite


class RidgeSpectrum(NamedTuple):
    """The decomposition, and the data seen through it, all scaled by powers of two to order one."""

    left: Array  #: (n, r), U
    values: Array  #: (r,), s²
    rows: Array  #: (n, d), √w(X − x̄)
    y: Array  #: (n, k), √w(y − ȳ)
    projected: Array  #: (r, k), Uᵀ√w(y − ȳ)
    root_weight: Array  #: (n,), √w
    x_mean: Array  #: (d,), in its own units
    y_mean: Array  #: (k,), in its own units
    intercept: bool
    x_exponent: int  #: rows are X·2^−x_exponent
    y_exponent: int  #: and so on
    weight_exponent: int

    def coefficients(self, alphas: Array) -> Array:
        """Return β(α) = (√w(X − x̄))ᵀ U diag(1/(s² + α)) Uᵀ√w(y − ȳ), of shape (n_alphas, d, k)."""
        k = self.projected.shape[1]
        with np.errstate(all="ignore"):  # beyond float64 the caller sees that the equations do not hold
            scaled = self.projected[:, :, None] / (self.values[:, None, None] + self._scaled(alphas))
            dual = self.left @ scaled.reshape(len(self.values), k * len(alphas))
            coef = (self.rows.T @ dual).reshape(-1, k, len(alphas)).transpose(2, 0, 1)
            return np.ascontiguousarray(np.ldexp(coef, self.y_exponent - self.x_exponent))

    def residuals(self, alphas: Array) -> Array:
        """Return √w(y − ŷ), scaled like `y`, of shape (n, k, n_alphas)."""
        k = self.projected.shape[1]
        kept = self.projected[:, :, None] * self._complement(alphas)[:, None, :]
        inside = (self.left @ kept.reshape(len(self.values), k * len(alphas))).reshape(-1, k, len(alphas))
        outside = 0.0 if self._spans_everything() else (self.y - self.left @ self.projected)[:, :, None]
        return np.asarray(inside + outside)

    def freedom(self, alphas: Array) -> Array:
        """Return 1 − hᵢᵢ of shape (n, n_alphas), formed without cancellation from α/(s² + α)."""
        free = (self.left**2) @ self._complement(alphas)
        if not self._spans_everything():
            w = self.root_weight**2
            used = (self.left**2).sum(axis=1) + (w / w.sum() if self.intercept else 0.0)
            free += np.maximum(1.0 - used, 0.0)[:, None]
        return np.asarray(free)

    def leave_one_out(self, alphas: Array) -> Array:
        """Return the errors (yᵢ − ŷ₍ᵢ₎)·2^−y_exponent, of shape (n, k, n_alphas)."""
        # A row that determines its own fit (h = 1) has no leave-one-out prediction: its error is infinite, not 0/0.
        free = self.freedom(alphas)
        free = np.where(free > 1e-14 * free.max(axis=0), free, np.nan)
        errors = self.residuals(alphas) / (free[:, None, :] * self.root_weight[:, None, None])
        return np.where(np.isnan(errors), np.inf, errors)

    def _spans_everything(self) -> bool:
        """Tell whether U (and the intercept) leave no direction of the rows out: then nothing is outside the fit."""
        return len(self.values) == len(self.y) - self.intercept

    def _complement(self, alphas: Array) -> Array:
        total = self.values[:, None] + self._scaled(alphas)
        return np.where(total > 0, self._scaled(alphas) / np.where(total > 0, total, 1.0), 1.0)

    def _scaled(self, alphas: Array) -> Array:
        with np.errstate(over="ignore"):
            scaled = np.ldexp(alphas, -2 * self.x_exponent - self.weight_exponent)
        return np.minimum(scaled, ENORMOUS)


def extreme_exponent(array: Array) -> int:
    """Return an even power of two that brings extreme numbers to order one; 0 for numbers whose squares are safe."""
    exponent = int(np.frexp(np.abs(array).max(initial=0.0))[1])
    return 2 * (exponent // 2) if abs(exponent) > 100 else 0


def ridge_spectrum(
    X: Array, y: Array, weight: Array | None, *, intercept: bool, smallest_alpha: float
) -> RidgeSpectrum:
    """Decompose dense X (n, d) for targets y (n, k)."""
    x_mean, y_mean = weighted_mean(X, weight, intercept), weighted_mean(y, weight, intercept)
    w = np.ones(len(X)) if weight is None else weight
    x_exponent, y_exponent, weight_exponent = (extreme_exponent(array) for array in (X, y, w))
    root = np.sqrt(np.ldexp(w, -weight_exponent))
    Z = np.ldexp(X, -x_exponent) - np.ldexp(x_mean, -x_exponent) if x_exponent else X - x_mean
    t = root[:, None] * (np.ldexp(y, -y_exponent) - np.ldexp(y_mean, -y_exponent))
    if weight is not None or weight_exponent:
        Z *= root[:, None]
    n, d = Z.shape
    gram = interruptible(np.matmul, Z.T, Z) if d <= n else interruptible(np.matmul, Z, Z.T)
    values, vectors = interruptible(np.linalg.eigh, gram)
    noise = np.finfo(float).eps * max(n, d) * max(values[-1], np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        smallest = float(np.ldexp(smallest_alpha, -2 * x_exponent - weight_exponent))
    if smallest < 1e4 * noise and n * d <= 4e7:
        # Squaring would drown directions that such a small penalty does not: decompose the rows themselves.
        U, s, _ = interruptible(np.linalg.svd, Z, full_matrices=False)
        kept = s > np.finfo(float).eps * max(n, d) * s[0]
        U, values = np.ascontiguousarray(U[:, kept]), s[kept] ** 2
    else:
        kept = values > noise
        values, vectors = values[kept], np.ascontiguousarray(vectors[:, kept])
        U = vectors if d > n else interruptible(np.matmul, Z, vectors / np.sqrt(values))
    scales = (x_exponent, y_exponent, weight_exponent)
    with one_thread_blas():
        projected = U.T @ t
    return RidgeSpectrum(U, values, Z, t, projected, root, x_mean, y_mean, intercept, *scales)
