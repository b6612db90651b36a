r"""Values of a kernel, and the way back from them to its hyperparameters.

A function of kernel values, F(K), has the derivatives Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ, where S = ∂F/∂K. `record` computes K and keeps
what the way back needs, so that distances and exponentials are computed once, and no matrix ∂K/∂θⱼ exists:

    K, back = record(kernel, X, Z);   back(S) → the derivatives, of shape (len(theta),).

A column's length scale needs Σᵢₖ Mᵢₖ(xᵢⱼ − zₖⱼ)², M = −2 S∘φ′, three sums that one matrix product gives for all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from .base import Array, Gaussian, Kernel, Stationary, dense, inner
from .composed import Product, Restricted, Scaled, Sum
from .elementary import Constant, Linear, Periodic, Polynomial, RationalQuadratic, White

Back = Callable[[Array], Array]


class Tape(NamedTuple):
    """Kernel values and the way back."""

    K: Array  #: (n, m) k(xᵢ, zₖ)
    back: Back  #: S (n, m) ↦ Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ
    free: bool = False  #: whether K may be overwritten: the way back does without it

    def owned(self) -> Array:
        """Return K as an array that may be overwritten."""
        return self.K if self.free else self.K.copy()


def record(kernel: Kernel, X: Any, Z: Any = None) -> Tape:
    """Return k(X, Z) and the way back from it; without Z, of X with itself.

    Parameters
    ----------
    kernel : Kernel
        k.
    X, Z : (n, d) and (m, d) points
        Dense. Without Z a point is the same point as itself, as in `Kernel.__call__`; S must then be symmetric.

    Examples
    --------
    >>> from learnable.risk.kernels import Gaussian
    >>> tape = record(2.0 * Gaussian(1.0), [[0.0], [1.0]], [[0.0]])
    >>> tape.back(np.ones((2, 1))).round(4)
    array([3.2131, 1.2131])
    """
    X = kernel._read(X)
    return _record(kernel, X, X if Z is None else kernel._read(Z, X), Z is None)


@singledispatch
def _record(kernel: Kernel, X: Any, Z: Any, same: bool) -> Tape:
    """Record a kernel through the methods that every kernel has."""
    if same:
        return Tape(kernel(X), lambda S: kernel.weighted_gradient(X, S), True)

    def back(S: Array) -> Array:  # S is a corner of a symmetric matrix over all points
        n = len(X)
        both = np.zeros((len(X) + len(Z),) * 2)
        both[:n, n:] = 0.5 * S
        both[n:, :n] = 0.5 * S.T
        return kernel.weighted_gradient(np.concatenate([X, Z]), both)

    return Tape(kernel._between(X, Z), back, True)


@_record.register
def _(kernel: Sum, X: Any, Z: Any, same: bool) -> Tape:
    if isinstance(kernel.right, White) and same:
        left = _record(kernel.left, X, Z, same)
        noise = kernel.right
        K = left.owned()
        K.flat[:: len(K) + 1] += noise.noise
        level = [noise.noise] if noise._free() else []
        return Tape(K, lambda S: np.r_[left.back(S), [v * float(np.trace(S)) for v in level]], True)
    left = _record(kernel.left, X, Z, same)
    right = _record(kernel.right, X, Z, same)
    return Tape(left.K + right.K, lambda S: np.r_[left.back(S), right.back(S)], True)


@_record.register
def _(kernel: Product, X: Any, Z: Any, same: bool) -> Tape:
    if isinstance(kernel.left, Constant):
        return _scaled(kernel.left.value, bool(kernel.left._free()), _record(kernel.right, X, Z, same))
    left = _record(kernel.left, X, Z, same)
    right = _record(kernel.right, X, Z, same)
    return Tape(left.K * right.K, lambda S: np.r_[left.back(S * right.K), right.back(S * left.K)], True)


@_record.register
def _(kernel: Scaled, X: Any, Z: Any, same: bool) -> Tape:
    return _scaled(kernel.scale, bool(kernel._free()), _record(kernel.inner, X, Z, same))


def _scaled(scale: float, free: bool, of: Tape) -> Tape:
    def back(S: Array) -> Array:
        own = [scale * _dot(S, of.K)] if free else []
        return np.asarray(np.r_[own, scale * of.back(S)])

    return Tape(scale * of.K, back, True)


@_record.register
def _(kernel: Restricted, X: Any, Z: Any, same: bool) -> Tape:
    return _record(kernel.inner, kernel._some(X), kernel._some(Z), same)


@_record.register
def _(kernel: White, X: Any, Z: Any, same: bool) -> Tape:
    if not same:
        return Tape(kernel._between(X, Z), lambda S: np.zeros(len(kernel._free())))
    level = [kernel.noise] if kernel._free() else []
    return Tape(kernel(X), lambda S: np.array([v * float(np.trace(S)) for v in level]))


@_record.register
def _(kernel: Constant, X: Any, Z: Any, same: bool) -> Tape:
    level = [kernel.value] if kernel._free() else []
    return Tape(kernel._between(X, Z), lambda S: np.array([v * float(S.sum()) for v in level]))


@_record.register
def _(kernel: Linear, X: Any, Z: Any, same: bool) -> Tape:
    return Tape(kernel._between(X, Z), lambda S: np.zeros(0))


@_record.register
def _(kernel: Polynomial, X: Any, Z: Any, same: bool) -> Tape:
    product = kernel.gamma * inner(X, Z)

    def back(S: Array) -> Array:
        if not kernel._free():
            return np.zeros(0)
        return np.array([kernel.degree * _dot(S, product * (product + kernel.coef0) ** (kernel.degree - 1))])

    return Tape((product + kernel.coef0) ** kernel.degree, back)


@_record.register
def _(kernel: Periodic, X: Any, Z: Any, same: bool) -> Tape:
    sines = kernel._sines(X, Z)
    K = np.exp(-2.0 / kernel.length_scale**2 * sines)

    def back(S: Array) -> Array:
        parts = []
        S = S * K
        if "length_scale" not in kernel.fixed:
            parts.append(4.0 / kernel.length_scale**2 * _dot(S, sines))
        if "period" not in kernel.fixed:
            x, z = (dense(P) * np.pi / kernel.period for P in (X, Z))
            turns = (x[:, [j]] - z[:, j] for j in range(x.shape[1]))
            parts.append(2.0 / kernel.length_scale**2 * sum(_dot(S, u * np.sin(2.0 * u)) for u in turns))
        return np.array(parts)

    return Tape(K, back)


@_record.register
def _(kernel: Stationary, X: Any, Z: Any, same: bool) -> Tape:
    if isinstance(kernel, Gaussian):
        K = kernel(X) if same else kernel._between(X, Z)
        return Tape(K, lambda S: _of_length_scale(kernel, X, Z, S * K, same))  # φ′ = −K/2 needs no distances
    square = kernel._own_squares(X) if same else kernel.squared_distances(X, Z)
    K = kernel.radial(square.copy())

    def back(S: Array) -> Array:
        own = _of_length_scale(kernel, X, Z, -2.0 * S * kernel.slope(square.copy()), same)
        if not isinstance(kernel, RationalQuadratic) or "alpha" in kernel.fixed:
            return own
        u = square / (2.0 * kernel.alpha)
        by_alpha = kernel.alpha * _dot(S, (u / (1.0 + u) - np.log1p(u)) * K)
        return np.asarray(np.r_[own, by_alpha])

    return Tape(K, back)


def _of_length_scale(kernel: Stationary, X: Any, Z: Any, M: Array, same: bool) -> Array:
    """Return Σᵢₖ Mᵢₖ (xᵢⱼ − zₖⱼ)²/ℓⱼ² of every column, or their sum; M is overwritten."""
    if "length_scale" in kernel.fixed:
        return np.zeros(0)
    if same:
        M.flat[:: len(M) + 1] = 0.0  # a point is at no distance of itself: of sums of squares, rounding would be left
    x = dense(kernel._scaled(X))
    z = dense(kernel._scaled(Z))
    centre = x.mean(axis=0) if len(x) else 0.0
    x = x - centre
    z = z - centre
    right = M @ np.column_stack([np.ones(len(z)), z])  # sums of the rows too, in one pass
    columns = right[:, 0] if same else M.sum(axis=0)
    sums = right[:, 0] @ (x * x) + columns @ (z * z) - 2.0 * np.einsum("ij,ij->j", x, right[:, 1:])
    return np.asarray(sums if np.ndim(kernel.length_scale) else [float(np.sum(sums))])


def _dot(A: Array, B: Array) -> float:
    return float(np.einsum("ij,ij->", A, B))


class DiagonalTape(NamedTuple):
    """The values k(xᵢ, xᵢ) and the way back."""

    k: Array  #: (n,)
    back: Back  #: c (n,) ↦ Σᵢ cᵢ ∂k(xᵢ, xᵢ)/∂θⱼ


def record_diagonal(kernel: Kernel, X: Any, *, noise: bool = True) -> DiagonalTape:
    """Return k(xᵢ, xᵢ) and the way back; without `noise`, white parts count as zero.

    Examples
    --------
    >>> from learnable.risk.kernels import Gaussian, White
    >>> k, back = record_diagonal(3.0 * Gaussian(1.0) + White(0.5), [[0.0], [1.0]])
    >>> k, back(np.ones(2))
    (array([3.5, 3.5]), array([6., 0., 1.]))
    """
    return _diagonal(kernel, kernel._read(X), noise)


def _diagonal(kernel: Kernel, X: Any, noise: bool) -> DiagonalTape:
    if isinstance(kernel, (Sum, Product)):
        left = _diagonal(kernel.left, X, noise)
        right = _diagonal(kernel.right, X, noise)
        if isinstance(kernel, Sum):
            return DiagonalTape(left.k + right.k, lambda c: np.r_[left.back(c), right.back(c)])
        return DiagonalTape(left.k * right.k, lambda c: np.r_[left.back(c * right.k), right.back(c * left.k)])
    if isinstance(kernel, Restricted):
        return _diagonal(kernel.inner, kernel._some(X), noise)
    if isinstance(kernel, Scaled):
        inside = _diagonal(kernel.inner, X, noise)
        scale = kernel.scale
        own = kernel._free()
        return DiagonalTape(
            scale * inside.k, lambda c: np.r_[[scale * float(c @ inside.k)] if own else [], scale * inside.back(c)]
        )
    k = np.zeros(X.shape[0]) if isinstance(kernel, White) and not noise else kernel._diagonal(X)
    if isinstance(kernel, (White, Constant)):
        return DiagonalTape(k, lambda c: np.array([float(c @ k)] if kernel._free() else []))
    if isinstance(kernel, Polynomial) and kernel._free():
        slope = kernel.degree * (k ** (1.0 / kernel.degree) - kernel.coef0) * k ** (1.0 - 1.0 / kernel.degree)
        return DiagonalTape(k, lambda c: np.array([float(c @ slope)]))
    return DiagonalTape(k, lambda c: np.zeros(len(kernel.theta)))  # distances of zero have no scale
