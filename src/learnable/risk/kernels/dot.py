"""Kernels of inner products: linear and polynomial; and the two that look at no coordinates, constant and white."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ...core.errors import ParameterError
from .base import Array, Kernel, shown


def inner(X: Any, Z: Any) -> Array:
    """Return ⟨xᵢ, zⱼ⟩ as a dense matrix."""
    found = X @ Z.T
    return np.asarray(found.toarray() if sp.issparse(found) else found)


def squares(X: Any) -> Array:
    """Return ‖xᵢ‖²."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)


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
