r"""Kernels of distances: k(x, z) = φ(r²), where r² = Σⱼ ((xⱼ − zⱼ)/ℓⱼ)².

One length scale ℓ for all columns, or one for each. With s = ((xⱼ − zⱼ)/ℓⱼ)² the derivatives are

    ∂k/∂log ℓⱼ = −2 φ′(r²) s,

so that a kernel is φ and φ′. Squared distances come from one matrix product of centred points, clipped at zero; of
points very far apart, from their differences.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from ...core.errors import DataError, ParameterError
from .base import Array, Kernel, read_points, shown
from .dot import inner, squares

_FAR = 1e8  # squared distance from the centre beyond which squares and products have cancelled half of the digits


@dataclass(frozen=True, eq=False)
class Stationary(Kernel):
    """A kernel of distances, with φ(0) = 1.

    Parameters
    ----------
    length_scale : float or (d,) array
        ℓ, for all columns or for each.
    """

    _positive: ClassVar[tuple[str, ...]] = ("length_scale",)

    length_scale: Any = 1.0

    @abstractmethod
    def radial(self, square: Array) -> Array:
        """Return φ of squared distances, which may be overwritten."""

    @abstractmethod
    def slope(self, square: Array) -> Array:
        """Return φ′; where it is infinite at zero, zero, because it is then multiplied with zero."""

    def _between(self, X: Any, Z: Any) -> Array:
        return self.radial(self.squared_distances(X, Z))

    def _diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def _is_invariant(self) -> bool:
        return True

    def squared_distances(self, X: Any, Z: Any) -> Array:
        """Return r² between all points, of shape (n, m)."""
        X, Z = self._scaled(X), self._scaled(Z)
        if not sp.issparse(X) and not sp.issparse(Z):  # far from zero, squares would drown the differences
            centre = X.mean(axis=0) if len(X) else 0.0
            X, Z = X - centre, Z - centre
            if X.dtype == np.float32:  # six digits were asked for, and time
                return _squares_at_once(X, Z)
        own, other = squares(X), squares(Z)
        if not sp.issparse(X) and not sp.issparse(Z) and max(own.max(initial=0.0), other.max(initial=0.0)) > _FAR:
            return np.asarray(cdist(X, Z, "sqeuclidean"))
        out = inner(X, Z)
        out *= -2.0
        out += own[:, None]
        out += other[None, :]
        return np.maximum(out, 0.0, out=out)

    def _scaled(self, X: Any) -> Any:
        scale = self.length_scale
        if np.ndim(scale) and np.size(scale) != X.shape[1]:
            raise DataError(
                f"{type(self).__name__}: length_scale has {np.size(scale)} entries, the points {X.shape[1]} columns."
            )
        return X.multiply(1.0 / np.atleast_1d(scale)[None, :]).tocsr() if sp.issparse(X) else X / scale

    def _gradients(self, X: Any) -> list[Array]:
        if "length_scale" in self.fixed:
            return []
        square = self._own_squares(X)
        slope = -2.0 * self.slope(square.copy())
        if np.ndim(self.length_scale) == 0:
            return [slope * square]
        return [slope * self._column_squares(X, j) for j in range(X.shape[1])]

    def weighted_gradient(self, X: Any, S: Array) -> Array:
        """Return Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ; with a length scale for each column by one matrix product for all of them."""
        X = read_points(X)
        if "length_scale" in self.fixed or np.ndim(self.length_scale) == 0 or sp.issparse(X):
            return super().weighted_gradient(X, S)
        return np.concatenate([self._column_sums(X, S, self._own_squares(X)), self._other_sums(X, S)])

    def _column_sums(self, X: Any, S: Array, square: Array) -> Array:
        """Return Σᵢₖ Mᵢₖ (xᵢⱼ − xₖⱼ)²/ℓⱼ² = 2 Σᵢ mᵢxᵢⱼ² − 2 xⱼᵀMxⱼ of all columns, where M = −2 S∘φ′ and m = M1."""
        M = -2.0 * S * self.slope(square)
        M.flat[:: len(M) + 1] = 0.0  # a point is at no distance of itself: of sums of squares, rounding would be left
        x = self._scaled(X)
        x = x - x.mean(axis=0)
        return np.asarray(2.0 * (M.sum(axis=1) @ (x * x) - np.einsum("ij,ij->j", x, M @ x)))

    def _other_sums(self, X: Any, S: Array) -> Array:
        """Return the same for the hyperparameters after the length scale."""
        return np.zeros(0)

    def _own_squares(self, X: Any) -> Array:
        square = self.squared_distances(X, X)
        square.flat[:: len(square) + 1] = 0.0
        return square

    def _column_squares(self, X: Any, j: int) -> Array:
        x = (X[:, [j]].toarray() if sp.issparse(X) else X[:, [j]])[:, 0] / np.atleast_1d(self.length_scale)[j]
        return np.asarray((x[:, None] - x[None, :]) ** 2)

    def _scale_text(self) -> str:
        return f"/{shown(self.length_scale)}" if np.any(np.asarray(self.length_scale) != 1.0) else ""


@dataclass(frozen=True, eq=False)
class Gaussian(Stationary):
    """k(x, z) = exp(−r²/2): smooth functions of all kinds.

    Examples
    --------
    >>> Gaussian(2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> Gaussian.from_gamma(0.125).length_scale
    2.0
    """

    @classmethod
    def from_gamma(cls, gamma: float) -> Self:
        """Return exp(−γ‖x − z‖²), the form of support vector machines."""
        if not (np.isfinite(gamma) and gamma > 0.0):
            raise ParameterError(f"Gaussian: gamma must be positive and finite; got {gamma!r}.")
        return cls(float(1.0 / np.sqrt(2.0 * gamma)))

    def radial(self, square: Array) -> Array:
        """Return exp(−r²/2)."""
        square *= -0.5
        return np.exp(square, out=square)

    def slope(self, square: Array) -> Array:
        """Return −½ exp(−r²/2)."""
        return -0.5 * np.exp(-0.5 * square)

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return f"exp(−½‖(x − z){self._scale_text()}‖²)"


@dataclass(frozen=True, eq=False)
class DoubleExponential(Stationary):
    """k(x, z) = exp(−r): continuous functions without derivatives, the Matérn kernel of order ½.

    Examples
    --------
    >>> DoubleExponential()([[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def radial(self, square: Array) -> Array:
        """Return exp(−r)."""
        np.negative(np.sqrt(square, out=square), out=square)
        return np.exp(square, out=square)

    def slope(self, square: Array) -> Array:
        """Return −exp(−r)/(2r)."""
        r = np.sqrt(square)
        return np.where(r > 0.0, -0.5 * np.exp(-r) / np.where(r > 0.0, r, 1.0), 0.0)

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return f"exp(−‖(x − z){self._scale_text()}‖)"


@dataclass(frozen=True, eq=False)
class Matern(Stationary):
    """The Matérn kernel of order ν = ½, 3/2 or 5/2: functions with ν − ½ derivatives.

    Parameters
    ----------
    length_scale : float or (d,) array
        ℓ.
    nu : {0.5, 1.5, 2.5}
        ν; ∞ would be the Gaussian kernel.

    Examples
    --------
    >>> Matern(1.0, nu=1.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834],
           [0.4834, 1.    ]])
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise ParameterError(f"Matern: nu must be 0.5, 1.5 or 2.5; got {self.nu!r}.")

    def radial(self, square: Array) -> Array:
        """Return φ(r²)."""
        if self.nu == 0.5:
            return DoubleExponential().radial(square)
        a = np.sqrt(2.0 * self.nu * square)
        front = 1.0 + a if self.nu == 1.5 else 1.0 + a + a * a / 3.0
        return np.asarray(front * np.exp(-a))

    def slope(self, square: Array) -> Array:
        """Return φ′(r²)."""
        if self.nu == 0.5:
            return DoubleExponential().slope(square)
        a = np.sqrt(2.0 * self.nu * square)
        return np.asarray((-1.5 if self.nu == 1.5 else -5.0 / 6.0 * (1.0 + a)) * np.exp(-a))

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        front = {0.5: "", 1.5: "(1 + √3 r) ", 2.5: "(1 + √5 r + 5r²/3) "}[self.nu]
        return f"{front}exp(−√{2 * self.nu:g} r), r = ‖(x − z){self._scale_text()}‖"


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Stationary):
    """k(x, z) = (1 + r²/2α)^−α: a mixture of Gaussian kernels of many length scales.

    Parameters
    ----------
    length_scale : float or (d,) array
        ℓ.
    alpha : float
        α; as it grows, the kernel becomes the Gaussian one.

    Examples
    --------
    >>> RationalQuadratic(1.0, alpha=0.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    _positive: ClassVar[tuple[str, ...]] = ("length_scale", "alpha")

    alpha: float = 1.0

    def radial(self, square: Array) -> Array:
        """Return (1 + r²/2α)^−α."""
        return np.exp(-self.alpha * np.log1p(square / (2.0 * self.alpha)))

    def slope(self, square: Array) -> Array:
        """Return −½ (1 + r²/2α)^(−α − 1)."""
        return np.asarray(-0.5 * np.exp(-(self.alpha + 1.0) * np.log1p(square / (2.0 * self.alpha))))

    def _by_alpha(self, X: Any) -> Array:
        """Return ∂K/∂log α."""
        u = self._own_squares(X) / (2.0 * self.alpha)
        return np.asarray(self.alpha * (u / (1.0 + u) - np.log1p(u)) * np.exp(-self.alpha * np.log1p(u)))

    def _gradients(self, X: Any) -> list[Array]:
        return super()._gradients(X) + ([] if "alpha" in self.fixed else [self._by_alpha(X)])

    def _other_sums(self, X: Any, S: Array) -> Array:
        return np.zeros(0) if "alpha" in self.fixed else np.array([float((S * self._by_alpha(X)).sum())])

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        alpha = shown(self.alpha)
        return f"(1 + ‖(x − z){self._scale_text()}‖²/(2·{alpha}))^−{alpha}"


@dataclass(frozen=True, eq=False)
class Periodic(Kernel):
    """k(x, z) = exp(−2 Σⱼ sin²(π(xⱼ − zⱼ)/p)/ℓ²): what repeats itself with period p in every column.

    In one column it is scikit-learn's `ExpSineSquared`. In several, the sine of a distance would not be Mercer's.

    Parameters
    ----------
    length_scale : float
        ℓ: how smooth it is within a period.
    period : float
        p.

    Examples
    --------
    >>> Periodic(1.0, period=2.0)([[0.0], [1.0], [2.0]]).round(4)
    array([[1.    , 0.1353, 1.    ],
           [0.1353, 1.    , 0.1353],
           [1.    , 0.1353, 1.    ]])
    """

    _positive: ClassVar[tuple[str, ...]] = ("length_scale", "period")
    _peer_names: ClassVar[dict[str, str]] = {"period": "periodicity"}

    length_scale: float = 1.0
    period: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.length_scale) or np.ndim(self.period):
            raise ParameterError(
                "Periodic: length_scale and period must be single numbers; multiply kernels `on` columns."
            )

    def _sines(self, X: Any, Z: Any) -> Array:
        """Return Σⱼ sin²(π(xⱼ − zⱼ)/p) = Σⱼ (1 − cos u cos v − sin u sin v)/2, where u, v = 2πx/p, 2πz/p."""
        u, v = (2.0 * np.pi / self.period * dense(P) for P in (X, Z))
        cosines = np.cos(u) @ np.cos(v).T + np.sin(u) @ np.sin(v).T
        return np.asarray(np.maximum(0.5 * (u.shape[1] - cosines), 0.0))

    def _between(self, X: Any, Z: Any) -> Array:
        return np.exp(-2.0 / self.length_scale**2 * self._sines(X, Z))

    def _diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def _gradients(self, X: Any) -> list[Array]:
        parts, K = [], self._between(X, X)
        if "length_scale" not in self.fixed:
            parts.append(4.0 / self.length_scale**2 * self._sines(X, X) * K)
        if "period" not in self.fixed:
            x = dense(X) * np.pi / self.period
            turned = sum((x[:, [j]] - x[:, j]) * np.sin(2.0 * (x[:, [j]] - x[:, j])) for j in range(x.shape[1]))
            parts.append(2.0 / self.length_scale**2 * turned * K)
        return parts

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return f"exp(−2 Σ sin²(π(x − z)/{shown(self.period)})/{shown(self.length_scale)}²)"


def _squares_at_once(X: Any, Z: Any) -> Array:
    """Return ‖x − z‖² by one matrix product, (−2x, ‖x‖², 1)ᵀ(z, 1, ‖z‖²): no further passes over the result."""
    left = np.column_stack([-2.0 * X, squares(X), np.ones(len(X), dtype=X.dtype)])
    right = np.column_stack([Z, np.ones(len(Z), dtype=Z.dtype), squares(Z)])
    out = left @ right.T
    return np.asarray(np.maximum(out, 0.0, out=out))


def dense(X: Any) -> Array:
    """Return points as a dense matrix."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)
