r"""What every Mercer kernel can do.

A kernel k(x, z) is symmetric, and for any points the matrix of its values is positive semidefinite: it is an inner
product of features of x and of z. Kernels are immutable; they add, multiply, and can be scaled:

    3.0 * Gaussian(2.0) + Linear() * Periodic(1.0, period=12.0) + White(0.1)

Their hyperparameters are positive, so that optimisers move their logarithms θ. `gradient` has one matrix ∂K/∂θⱼ for
each; `weighted_gradient` has only Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ, which is all that a marginal likelihood needs.

A product of two kernels is one by Schur's theorem; a sum of two, trivially.

Kernels of distances are k(x, z) = φ(r²), r² = Σⱼ ((xⱼ − zⱼ)/ℓⱼ)², with one length scale ℓ for all columns or one for
each. With s = ((xⱼ − zⱼ)/ℓⱼ)² the derivatives are ∂k/∂log ℓⱼ = −2 φ′(r²) s, so that such a kernel is φ and φ′. Squared
distances come from one matrix product of centred points, clipped at zero; of points very far apart, from their
differences. The Gaussian kernel stands here, others of this kind in `stationary`.

Reference: B. Schölkopf and A. Smola, Learning with Kernels, 2002, §2 and §13.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ...core.errors import DataError, ParameterError
from ...data.blocks import map_reduce
from .peers import Limit, PeerInterface
from .tiles import TILE, symmetric_matrix, symmetric_products

Array: TypeAlias = NDArray[np.float64]

_FAR = 1e8  # squared distance from the centre beyond which squares and products have cancelled half of the digits
_BLOCK = 2**21  # entries of the kernel matrix that exist at a time, for each thread


@dataclasses.dataclass(frozen=True)
class Kernel(PeerInterface, ABC):
    """A Mercer kernel.

    Subclasses are frozen dataclasses. `_positive` names the fields that are hyperparameters; `fixed` those of them
    that are not to be learned; `limits` the bounds between which others are, see `within`.
    """

    _positive: ClassVar[tuple[str, ...]] = ()

    fixed: tuple[str, ...] = dataclasses.field(default=(), kw_only=True, repr=False)
    limits: tuple[Limit, ...] = dataclasses.field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        for name in self._positive:
            try:
                value = np.array(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError):
                value = np.array(np.nan)
            if value.ndim > 1 or not np.all((value > 0.0) & np.isfinite(value)):
                raise ParameterError(
                    f"{type(self).__name__}: {name} must be positive and finite; got {getattr(self, name)!r}."
                )
            value.flags.writeable = False
            object.__setattr__(self, name, float(value) if value.ndim == 0 else value)
        unknown = set(self.fixed) - set(self._positive)
        if unknown:
            raise ParameterError(f"{type(self).__name__}: there is no hyperparameter {', '.join(sorted(unknown))}.")
        self._check_limits()

    def _check_limits(self) -> None:
        """Raise ParameterError unless every pair of bounds belongs to a hyperparameter and is in order."""
        for name, low, high in self.limits:
            if name not in self._positive:
                raise ParameterError(f"{type(self).__name__}: there is no hyperparameter {name} to bound.")
            size = np.size(getattr(self, name))
            if any(np.size(end) not in (1, size) for end in (low, high)):
                raise ParameterError(f"{type(self).__name__}: {name} has {size} entries; its bounds have others.")
            if not (np.all(np.asarray(low) >= 0.0) and np.all(np.asarray(low) <= np.asarray(high))):
                raise ParameterError(
                    f"{type(self).__name__}: bounds of {name} must be 0 <= low <= high; got {low!r}, {high!r}."
                )

    # -- values -------------------------------------------------------------------------------------------------------

    def __call__(self, X: Any, Z: Any = None, eval_gradient: bool = False) -> Any:
        """Return the matrix of k(xᵢ, zⱼ), of shape (n, m); without Z, that of X with itself.

        With itself a point is the same point, which matters to `White`; with Z, even an equal one is another. With
        `eval_gradient`, return also ∂K/∂θⱼ, of shape (n, n, p) as in scikit-learn; there is no Z then.
        """
        if not eval_gradient:
            return self._matrix(X, Z)
        if Z is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        return self._matrix(X), np.moveaxis(self.gradient(X), 0, -1)

    def _matrix(self, X: Any, Z: Any = None) -> Array:
        X = self._read(X)
        if Z is not None:
            return self._between(X, self._read(Z, X))
        if X.shape[0] > TILE and self._is_pointwise():
            return symmetric_matrix(self._between, X, self._diagonal(X))
        K = self._between(X, X)
        K.flat[:: len(K) + 1] = self._diagonal(X)
        return K

    def diagonal(self, X: Any) -> Array:
        """Return k(xᵢ, xᵢ), of shape (n,)."""
        return self._diagonal(self._read(X))

    def products(self, X: Any, V: Any, Z: Any = None, *, single: bool = False, n_jobs: int | None = None) -> Array:
        """Return K(X, Z) V without the matrix: block by block, on threads; without Z each pair of points is seen once.

        Parameters
        ----------
        X, Z : (n, d) and (m, d) points
            Without Z, X itself.
        V : (m,) or (m, t) array
            What the matrix is multiplied with.
        single : bool
            Whether six digits are enough: kernels of differences of points are then evaluated in float32, in half the
            time. The points must not differ by more than 1e15 length scales.
        n_jobs : int or None
            Threads; the result is the same for any number.
        """
        X = self._read(X)
        V = np.asarray(V, dtype=np.float64)
        other = X if Z is None else self._read(Z, X)
        if V.ndim not in (1, 2) or len(V) != other.shape[0]:
            raise DataError(f"{type(self).__name__}: V must have {other.shape[0]} rows; got shape {V.shape}.")
        own = self._diagonal(X) if Z is None else None
        if single and not sp.issparse(X) and not sp.issparse(other) and self._is_invariant():
            centre = other.mean(axis=0)
            X = (X - centre).astype(np.float32)
            V = V.astype(np.float32)
            other = X if Z is None else (other - centre).astype(np.float32)
        if own is not None and self._is_pointwise():
            return symmetric_products(self._between, X, own, V, n_jobs=n_jobs)
        out = np.empty((X.shape[0], *V.shape[1:]))
        step = max(1, _BLOCK // max(1, other.shape[0]))

        def fill(start: int) -> None:
            rows = slice(start, min(start + step, X.shape[0]))
            K = self._between(X[rows], other)
            if own is not None:
                K[np.arange(len(K)), np.arange(rows.start, rows.stop)] = own[rows]
            out[rows] = K @ V

        map_reduce(list(range(0, X.shape[0], step)), fill, lambda a, b: None, n_jobs=n_jobs)
        return out

    def _read(self, X: Any, other: Any = None) -> Any:
        """Return points as a matrix, with the columns of others if there are any."""
        return read_points(X, None if other is None else other.shape[1])

    @abstractmethod
    def _between(self, X: Any, Z: Any) -> Array:
        """Return a new array of k(xᵢ, zⱼ), xᵢ and zⱼ always different points; of float32 points it may be float32."""

    def _is_pointwise(self) -> bool:
        """Tell whether a value depends on two points alone, and is symmetric: tiles may then be computed apart."""
        return True

    def _is_mercer(self) -> bool:
        """Tell whether every matrix of it is positive semidefinite; False where that is not known."""
        return True

    def _is_invariant(self) -> bool:
        """Tell whether moving all points by the same vector changes nothing."""
        return False

    @abstractmethod
    def _diagonal(self, X: Any) -> Array:
        """Return k(xᵢ, xᵢ)."""

    # -- hyperparameters ----------------------------------------------------------------------------------------------

    @property
    def theta(self) -> Array:
        """The logarithms of the hyperparameters that are free, one after the other."""
        parts = [np.log(np.atleast_1d(getattr(self, name))) for name in self._free()]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def theta_names(self) -> list[str]:
        """What the entries of θ are called."""
        names = []
        for name in self._free():
            size = np.size(getattr(self, name))
            own = f"{type(self).__name__}.{name}"
            names += [own] if np.ndim(getattr(self, name)) == 0 else [f"{own}[{i}]" for i in range(size)]
        return names

    def with_theta(self, theta: Any) -> Self:
        """Return the kernel with other hyperparameters, given by their logarithms."""
        theta = np.asarray(theta, dtype=np.float64)
        at = 0
        changes: dict[str, Any] = {}
        if theta.shape != self.theta.shape:
            raise ParameterError(f"{type(self).__name__}: theta must have shape {self.theta.shape}; got {theta.shape}.")
        for name in self._free():
            size = np.size(getattr(self, name))
            value = np.exp(theta[at : at + size])
            changes[name] = float(value[0]) if np.ndim(getattr(self, name)) == 0 else value
            at = at + size
        return dataclasses.replace(self, **changes)

    def hold(self, *names: str) -> Self:
        """Return the kernel with some hyperparameters fixed, by default all: they leave θ."""
        return dataclasses.replace(self, fixed=names or self._positive)

    def _free(self) -> list[str]:
        return [name for name in self._positive if name not in self.fixed]

    def gradient(self, X: Any) -> Array:
        """Return ∂K/∂θⱼ at X, of shape (len(theta), n, n)."""
        X = self._read(X)
        parts = self._gradients(X)
        return np.stack(parts) if parts else np.zeros((0, X.shape[0], X.shape[0]))

    def weighted_gradient(self, X: Any, S: Array) -> Array:
        """Return Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ for a symmetric S (n, n), of shape (len(theta),)."""
        return np.array([float((S * part).sum()) for part in self._gradients(self._read(X))])

    def _gradients(self, X: Any) -> list[Array]:
        """Return the matrices of `gradient`, one after the other."""
        if self._free():
            raise NotImplementedError(f"{type(self).__name__} has no derivatives")
        return []

    # -- algebra ------------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Kernel:
        from .composed import Sum
        from .elementary import Constant

        return Sum(self, other if isinstance(other, Kernel) else Constant(other))

    def __radd__(self, other: Any) -> Kernel:
        return self.__add__(other)

    def __mul__(self, other: Any) -> Kernel:
        from .composed import Product, Scaled

        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    def __rmul__(self, other: Any) -> Kernel:
        return self.__mul__(other)

    def __pow__(self, power: int) -> Kernel:
        if not isinstance(power, (int, np.integer)) or power < 1:
            raise ParameterError(f"a kernel has whole powers from 1; got {power!r}.")
        return self if power == 1 else self * self ** (power - 1)

    def on(self, *columns: int) -> Kernel:
        """Return the kernel that sees only some columns."""
        from .composed import Restricted

        return Restricted(self, columns)

    # -- words --------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def formula(self) -> str:
        """k(x, z) as text."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self))

    def __hash__(self) -> int:
        return hash((type(self), tuple(_frozen(getattr(self, f.name)) for f in dataclasses.fields(self))))


@dataclasses.dataclass(frozen=True, eq=False)
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
        X = given = self._scaled(X)
        Z = others = self._scaled(Z)
        if not sp.issparse(X) and not sp.issparse(Z):  # far from zero, squares would drown the differences
            centre = X.mean(axis=0) if len(X) else 0.0
            X = X - centre
            Z = Z - centre
            if X.dtype == np.float32:  # six digits were asked for, and time
                return _squares_at_once(X, Z)
        own = squares(X)
        other = squares(Z)
        if not sp.issparse(X) and not sp.issparse(Z) and max(own.max(initial=0.0), other.max(initial=0.0)) > _FAR:
            return np.asarray(cdist(given, others, "sqeuclidean"))  # one far point moves the mean away from the others
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


@dataclasses.dataclass(frozen=True, eq=False)
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


def as_kernel(kernel: Any, *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Kernel:
    """Return a kernel of this library.

    Parameters
    ----------
    kernel : Kernel, str, scikit-learn kernel or callable
        One of `adopted.NAMES`; a kernel of `sklearn.gaussian_process.kernels`, whose "fixed" bounds fix the
        hyperparameter; or a function (X, Z) → matrix.
    gamma, degree, coef0 : float, int, float
        What the strings need. `sigmoid` is not Mercer's, and taken as it is.

    Examples
    --------
    >>> as_kernel("rbf", gamma=0.5).formula
    'exp(−½‖(x − z)‖²)'
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in ("rbf", "gaussian"):
        return Gaussian.from_gamma(gamma)
    from .adopted import adopted

    return adopted(kernel, gamma, degree, coef0)


def read_points(X: Any, n_columns: int | None = None) -> Any:
    """Return points as a float64 matrix, dense or CSR, all finite; a vector is a single column."""
    if sp.issparse(X):
        out: Any = sp.csr_array(X, dtype=np.float64)
        data = out.data
    else:
        out = np.asarray(X, dtype=np.float64)
        out = out[:, None] if out.ndim == 1 else out
        data = out
    if out.ndim != 2:
        raise DataError(f"kernels take a matrix, a row for each point; got shape {out.shape}.")
    if not np.isfinite(data).all():
        raise DataError("kernels take finite numbers; got NaN or infinity.")
    if n_columns is not None and out.shape[1] != n_columns:
        raise DataError(f"both sets of points must have {n_columns} columns; got {out.shape[1]}.")
    return out


def shown(value: Any) -> str:
    """Return a hyperparameter as text."""
    if np.ndim(value) == 0:
        return f"{value:.4g}"
    return "(" + ", ".join(f"{v:.4g}" for v in value) + ")"


def _same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)


def _frozen(value: Any) -> Any:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def inner(X: Any, Z: Any) -> Array:
    """Return ⟨xᵢ, zⱼ⟩ as a dense matrix."""
    found = X @ Z.T
    return np.asarray(found.toarray() if sp.issparse(found) else found)


def squares(X: Any) -> Array:
    """Return ‖xᵢ‖²."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)


def _squares_at_once(X: Any, Z: Any) -> Array:
    """Return ‖x − z‖² by one matrix product, (−2x, ‖x‖², 1)ᵀ(z, 1, ‖z‖²): no further passes over the result."""
    left = np.column_stack([-2.0 * X, squares(X), np.ones(len(X), dtype=X.dtype)])
    right = np.column_stack([Z, np.ones(len(Z), dtype=Z.dtype), squares(Z)])
    out = left @ right.T
    return np.asarray(np.maximum(out, 0.0, out=out))


def dense(X: Any) -> Array:
    """Return points as a dense matrix."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)
