"""Kernels made of kernels, and of anything else: sums, products, scalings, some columns, functions, given matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from ...core.errors import DataError, ParameterError
from .base import Array, Kernel, dense, read_points, shown
from .elementary import Constant

_DIAGONAL_ROWS = 32  # points whose whole block is asked for its diagonal: a call costs more than the block


@dataclass(frozen=True, eq=False)
class _Pair(Kernel):
    _peer_parts: ClassVar[dict[str, str]] = {"k1": "left", "k2": "right"}

    left: Kernel = None  # type: ignore[assignment]
    right: Kernel = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for part in (self.left, self.right):
            if not isinstance(part, Kernel):
                raise ParameterError(f"{type(self).__name__}: kernels are combined with kernels; got {part!r}.")

    def _is_pointwise(self) -> bool:
        return self.left._is_pointwise() and self.right._is_pointwise()

    def _is_mercer(self) -> bool:
        return self.left._is_mercer() and self.right._is_mercer()

    def _is_invariant(self) -> bool:
        return self.left._is_invariant() and self.right._is_invariant()

    @property
    def theta(self) -> Array:
        """The logarithms of the free hyperparameters of both."""
        return np.concatenate([self.left.theta, self.right.theta])

    @property
    def theta_names(self) -> list[str]:
        """What they are called."""
        return self.left.theta_names + self.right.theta_names

    def with_theta(self, theta: Any) -> Self:
        """Return the kernel with other hyperparameters."""
        theta = np.asarray(theta, dtype=np.float64)
        size = len(self.left.theta)
        return replace(self, left=self.left.with_theta(theta[:size]), right=self.right.with_theta(theta[size:]))

    def hold(self, *names: str) -> Self:
        """Return the kernel with all hyperparameters fixed; those of one part are held there."""
        if names:
            raise ParameterError(f"{type(self).__name__}: hold names in the parts, before they are combined.")
        return replace(self, left=self.left.hold(), right=self.right.hold())


@dataclass(frozen=True, eq=False)
class Sum(_Pair):
    """k(x, z) = k₁(x, z) + k₂(x, z).

    Examples
    --------
    >>> from learnable.risk.kernels import Constant, Linear
    >>> Linear() + Constant(1.0)
    Linear() + Constant(value=1.0)
    >>> (Linear() + Constant(1.0))([[2.0]])
    array([[5.]])
    """

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"

    def _between(self, X: Any, Z: Any) -> Array:
        return self.left._between(X, Z) + self.right._between(X, Z)

    def _diagonal(self, X: Any) -> Array:
        return self.left._diagonal(X) + self.right._diagonal(X)

    def _gradients(self, X: Any) -> list[Array]:
        return self.left._gradients(X) + self.right._gradients(X)

    def weighted_gradient(self, X: Any, S: Array) -> Array:
        """Return that of one part after the other."""
        return np.concatenate([self.left.weighted_gradient(X, S), self.right.weighted_gradient(X, S)])

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return f"{self.left.formula} + {self.right.formula}"


@dataclass(frozen=True, eq=False)
class Product(_Pair):
    """k(x, z) = k₁(x, z) k₂(x, z).

    Examples
    --------
    >>> from learnable.risk.kernels import Linear
    >>> (Linear() * Linear())([[2.0]])
    array([[16.]])
    """

    def __repr__(self) -> str:
        return f"{_factor(self.left)} * {_factor(self.right)}"

    def _between(self, X: Any, Z: Any) -> Array:
        return self.left._between(X, Z) * self.right._between(X, Z)

    def _diagonal(self, X: Any) -> Array:
        return self.left._diagonal(X) * self.right._diagonal(X)

    def _gradients(self, X: Any) -> list[Array]:
        left = self.left(X)
        right = self.right(X)
        return [part * right for part in self.left._gradients(X)] + [left * part for part in self.right._gradients(X)]

    def weighted_gradient(self, X: Any, S: Array) -> Array:
        """Return that of each part, weighted with the other too."""
        X = read_points(X)
        parts = [self.left.weighted_gradient(X, S * self.right(X)), self.right.weighted_gradient(X, S * self.left(X))]
        return np.concatenate(parts)

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return " · ".join(
            f"({part.formula})" if isinstance(part, Sum) else part.formula for part in (self.left, self.right)
        )


@dataclass(frozen=True, eq=False)
class _Wrapped(Kernel):
    """A kernel around another one, with its symmetries."""

    inner: Kernel = None  # type: ignore[assignment]

    def _is_pointwise(self) -> bool:
        return self.inner._is_pointwise()

    def _is_mercer(self) -> bool:
        return self.inner._is_mercer()

    def _is_invariant(self) -> bool:
        return self.inner._is_invariant()


@dataclass(frozen=True, eq=False)
class Scaled(_Wrapped):
    """k(x, z) = s k₁(x, z): the variance of a process.

    Examples
    --------
    >>> from learnable.risk.kernels import Gaussian
    >>> (4.0 * Gaussian()).diagonal([[0.0]])
    array([4.])
    """

    _positive: ClassVar[tuple[str, ...]] = ("scale",)
    _peer_names: ClassVar[dict[str, str]] = {"scale": "k1__constant_value"}
    _peer_parts: ClassVar[dict[str, str]] = {"k2": "inner"}

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_inner(self)
        if isinstance(self.scale, (str, bytes)) or np.ndim(self.scale):
            raise ParameterError(f"a kernel is multiplied with a positive number or a kernel; got {self.scale!r}.")
        super().__post_init__()

    def __repr__(self) -> str:
        return f"{self.scale!r} * {_factor(self.inner)}"

    @property
    def k1(self) -> Kernel:
        """The scale as a constant kernel, which it is in scikit-learn's products."""
        constant = Constant(self.scale, limits=tuple(("value", low, high) for _, low, high in self.limits))
        return constant.hold() if self.fixed else constant

    def _between(self, X: Any, Z: Any) -> Array:
        K = self.inner._between(X, Z)
        K *= self.scale
        return K

    def _diagonal(self, X: Any) -> Array:
        return self.scale * self.inner._diagonal(X)

    @property
    def theta(self) -> Array:
        """The logarithm of s, then those of the inner kernel."""
        return np.concatenate([super().theta, self.inner.theta])

    @property
    def theta_names(self) -> list[str]:
        """What they are called."""
        return super().theta_names + self.inner.theta_names

    def with_theta(self, theta: Any) -> Self:
        """Return the kernel with other hyperparameters."""
        theta = np.asarray(theta, dtype=np.float64)
        own = len(self._free())
        scale = float(np.exp(theta[0])) if own else self.scale
        return replace(self, scale=scale, inner=self.inner.with_theta(theta[own:]))

    def hold(self, *names: str) -> Self:
        """Return the kernel with its scale fixed, or, without names, everything."""
        return replace(self, fixed=("scale",), inner=self.inner if names else self.inner.hold())

    def _gradients(self, X: Any) -> list[Array]:
        own = [self(X)] if self._free() else []
        return own + [self.scale * part for part in self.inner._gradients(X)]

    def weighted_gradient(self, X: Any, S: Array) -> Array:
        """Return Σ S∘K for the scale, then s times that of the inner kernel."""
        own = [float((S * self(X)).sum())] if self._free() else []
        return np.concatenate([own, self.scale * self.inner.weighted_gradient(X, S)])

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        inner = f"({self.inner.formula})" if isinstance(self.inner, Sum) else self.inner.formula
        return f"{shown(self.scale)} {inner}"


@dataclass(frozen=True, eq=False)
class Restricted(_Wrapped):
    """A kernel that sees only some columns.

    Examples
    --------
    >>> from learnable.risk.kernels import Linear
    >>> Linear().on(1)([[7.0, 2.0]])
    array([[4.]])
    """

    _peer_parts: ClassVar[dict[str, str]] = {"kernel": "inner"}

    columns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_inner(self)
        columns = tuple(int(j) for j in np.atleast_1d(self.columns))
        if not columns or min(columns) < 0:
            raise ParameterError(f"a kernel is restricted to columns >= 0, at least one; got {self.columns!r}.")
        object.__setattr__(self, "columns", columns)

    def _some(self, X: Any) -> Any:
        if max(self.columns) >= X.shape[1]:
            raise DataError(f"the kernel sees column {max(self.columns)}; the points have only {X.shape[1]}.")
        return X[:, list(self.columns)]

    def _between(self, X: Any, Z: Any) -> Array:
        return self.inner._between(self._some(X), self._some(Z))

    def _diagonal(self, X: Any) -> Array:
        return self.inner._diagonal(self._some(X))

    @property
    def theta(self) -> Array:
        """Those of the inner kernel."""
        return self.inner.theta

    @property
    def theta_names(self) -> list[str]:
        """What they are called."""
        return self.inner.theta_names

    def with_theta(self, theta: Any) -> Self:
        """Return the kernel with other hyperparameters."""
        return replace(self, inner=self.inner.with_theta(theta))

    def hold(self, *names: str) -> Self:
        """Return the kernel with hyperparameters of the inner one fixed."""
        return replace(self, inner=self.inner.hold(*names))

    def _gradients(self, X: Any) -> list[Array]:
        return self.inner._gradients(self._some(X))

    def weighted_gradient(self, X: Any, S: Array) -> Array:
        """Return that of the inner kernel."""
        return self.inner.weighted_gradient(self._some(read_points(X)), S)

    @property
    def formula(self) -> str:
        """k(x, z) as text."""
        return f"[{self.inner.formula} of columns {', '.join(map(str, self.columns))}]"


@dataclass(frozen=True, eq=False)
class FunctionKernel(Kernel):
    """Any function as a kernel; `is_mercer` tells whether it is one on given points.

    Parameters
    ----------
    function : callable
        (X, Z) → (n, m) matrix for two matrices of points, or, with `pairwise`, (x, z) → number for two points.
    pairwise : bool
        Whether it takes two points at a time.

    Examples
    --------
    >>> FunctionKernel(lambda x, z: min(x[0], z[0]), pairwise=True)([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    function: Callable[..., Any] = None  # type: ignore[assignment]
    pairwise: bool = False

    def _between(self, X: Any, Z: Any) -> Array:
        shape = X.shape[0], Z.shape[0]
        if self.pairwise:
            X = dense(X)
            Z = dense(Z)
            K = np.array([[self._of_two(x, z) for z in Z] for x in X]).reshape(shape)
        else:
            found = self.function(X, Z)
            K = np.array(found.toarray() if sp.issparse(found) else found, dtype=np.float64)
            if K.shape != shape:
                raise DataError(
                    f"kernel: the function must give a matrix of shape {shape} for {shape[0]} and {shape[1]} points; "
                    f"got {K.shape}."
                )
        if not np.isfinite(K).all():
            i, j = np.argwhere(~np.isfinite(K))[0]
            raise DataError(
                f"kernel: the function must give finite numbers; got {K[i, j]} for the points {_shown(X, i)} and "
                f"{_shown(Z, j)}. Scale the columns, or change the function."
            )
        return K

    def _of_two(self, x: Array, z: Array) -> float:
        found = self.function(x, z)
        if np.ndim(found) != 0:
            raise DataError(
                f"kernel: the function must give one number for two points; got shape {np.shape(found)}. "
                "This model calls it with two rows at a time."
            )
        return float(found)

    def _diagonal(self, X: Any) -> Array:
        step = 1 if self.pairwise else _DIAGONAL_ROWS
        parts = [X[start : start + step] for start in range(0, X.shape[0], step)]
        return np.concatenate([self._between(part, part).diagonal() for part in parts] or [np.zeros(0)])

    def _is_pointwise(self) -> bool:
        return False

    def _is_mercer(self) -> bool:
        return False

    @property
    def formula(self) -> str:
        """The function's name."""
        return f"{getattr(self.function, '__name__', 'function')}(x, z)"


def _factor(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)


def _shown(X: Any, row: int) -> str:
    return np.array2string(dense(X[[row]])[0], precision=3, threshold=6, edgeitems=2)


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """The given matrix is the kernel: `X` holds K(X, training points) itself.

    Examples
    --------
    >>> Precomputed()([[2.0, 1.0], [1.0, 2.0]])
    array([[2., 1.],
           [1., 2.]])
    """

    def _matrix(self, X: Any, Z: Any = None) -> Array:
        """Return X."""
        return np.array(dense(read_points(X)))

    def _between(self, X: Any, Z: Any) -> Array:
        return np.array(dense(X))

    def _diagonal(self, X: Any) -> Array:
        return np.array(dense(X).diagonal())

    def _is_pointwise(self) -> bool:
        return False

    def _is_mercer(self) -> bool:
        return False

    @property
    def formula(self) -> str:
        """K as text."""
        return "K(x, z), given"


def _check_inner(kernel: Scaled | Restricted) -> None:
    if not isinstance(kernel.inner, Kernel):
        raise ParameterError(f"{type(kernel).__name__}: inner must be a kernel; got {kernel.inner!r}.")
