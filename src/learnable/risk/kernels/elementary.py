"""Kernels by formula: of inner products, constant and white, of distances besides the Gaussian, of periods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.errors import ParameterError
from .base import Array, Kernel, Stationary, dense, inner, shown, squares


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """k(x, z) = ⟨x, z⟩: the features are the coordinates.

    Examples
    --------
    >>> Linear()([[1.0, 2.0], [3.0, 4.0]])
    array([[ 5., 11.],
           [11., 25.]])
    """

    def _between(self, X: Any, Z: Any) -> Array:
        return inner(X, Z)

    def _diagonal(self, X: Any) -> Array:
        return squares(X)

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return "⟨x, z⟩"


@dataclass(frozen=True, eq=False)
class Polynomial(Kernel):
    """k(x, z) = (γ⟨x, z⟩ + c)^p: the features are all monomials up to degree p (exactly p if c = 0).

    Parameters
    ----------
    degree : int
        p ≥ 1.
    gamma : float
        γ > 0.
    coef0 : float
        c ≥ 0: below zero the kernel is not Mercer's.

    Examples
    --------
    >>> Polynomial(2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    _positive: ClassVar[tuple[str, ...]] = ("gamma",)

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.degree, bool) or not isinstance(self.degree, (int, np.integer)) or self.degree < 1:
            raise ParameterError(f"Polynomial: degree must be a whole number >= 1; got {self.degree!r}.")
        if not (np.isfinite(self.coef0) and self.coef0 >= 0.0):
            raise ParameterError(f"Polynomial: coef0 must be finite and >= 0; got {self.coef0!r}.")

    def _between(self, X: Any, Z: Any) -> Array:
        K = inner(X, Z)
        K *= self.gamma
        K += self.coef0
        return K**self.degree

    def _diagonal(self, X: Any) -> Array:
        return np.asarray((self.gamma * squares(X) + self.coef0) ** self.degree)

    def _gradients(self, X: Any) -> list[Array]:
        if not self._free():
            return []
        product = self.gamma * inner(X, X)
        return [self.degree * product * (product + self.coef0) ** (self.degree - 1)]

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return f"({shown(self.gamma)}⟨x, z⟩ + {shown(self.coef0)})^{self.degree}"


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """k(x, z) = c: a random level that all points share.

    Examples
    --------
    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    _positive: ClassVar[tuple[str, ...]] = ("value",)
    _peer_names: ClassVar[dict[str, str]] = {"value": "constant_value"}

    value: float = 1.0

    def _between(self, X: Any, Z: Any) -> Array:
        return np.full((X.shape[0], Z.shape[0]), self.value)

    def _is_invariant(self) -> bool:
        return True

    def _diagonal(self, X: Any) -> Array:
        return np.full(X.shape[0], self.value)

    def _gradients(self, X: Any) -> list[Array]:
        return [self._between(X, X)] if self._free() else []

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return shown(self.value)


@dataclass(frozen=True, eq=False)
class White(Kernel):
    """k(x, z) = σ² where x and z are the same point, else 0: noise of variance σ².

    Examples
    --------
    >>> White(2.0)([[0.0], [0.0]])
    array([[2., 0.],
           [0., 2.]])
    """

    _positive: ClassVar[tuple[str, ...]] = ("noise",)
    _peer_names: ClassVar[dict[str, str]] = {"noise": "noise_level"}

    noise: float = 1.0

    def _between(self, X: Any, Z: Any) -> Array:
        return np.zeros((X.shape[0], Z.shape[0]))

    def _is_invariant(self) -> bool:
        return True

    def _diagonal(self, X: Any) -> Array:
        return np.full(X.shape[0], self.noise)

    def _gradients(self, X: Any) -> list[Array]:
        return [np.diag(self._diagonal(X))] if self._free() else []

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return f"{shown(self.noise)}·[x is z]"


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
        parts = []
        K = self._between(X, X)
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
