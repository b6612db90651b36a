r"""What every Mercer kernel can do.

A kernel k(x, z) is symmetric, and for any points the matrix of its values is positive semidefinite: it is an inner
product of features of x and of z. Kernels are immutable; they add, multiply, and can be scaled:

    3.0 * Gaussian(2.0) + Linear() * Periodic(1.0, period=12.0) + White(0.1)

Their hyperparameters are positive, so that optimisers move their logarithms θ. `gradient` has one matrix ∂K/∂θⱼ for
each; `weighted_gradient` has only Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ, which is all that a marginal likelihood needs.

A product of two kernels is one by Schur's theorem; a sum of two, trivially.

Reference: B. Schölkopf and A. Smola, Learning with Kernels, 2002, §2 and §13.

The names by which scikit-learn's Gaussian processes know a kernel, in terms of what every kernel here has.

A kernel's own words are `value`, `with_theta`, `diagonal`, …; scikit-learn's are `constant_value`, `clone_with_theta`,
`diag`, `hyperparameters`, `k1`, … Both work on the same object. `get_params` and `set_params` use scikit-learn's names,
so that searches over `kernel__k1__constant_value` need no change.
"""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.errors import DataError, ParameterError
from ...data.blocks import map_reduce
from .tiles import TILE, symmetric_matrix, symmetric_products

Array: TypeAlias = NDArray[np.float64]

_BLOCK = 2**21  # entries of the kernel matrix that exist at a time, for each thread


class PeerInterface:
    """Scikit-learn's interface of a kernel; base of `Kernel`."""

    #: Fields whose name scikit-learn knows by another one.
    _peer_names: ClassVar[dict[str, str]] = {}
    #: Kernels inside this one: scikit-learn's name and ours.
    _peer_parts: ClassVar[dict[str, str]] = {}

    requires_vector_input: ClassVar[bool] = True

    if TYPE_CHECKING:
        _positive: ClassVar[tuple[str, ...]]
        fixed: tuple[str, ...]
        limits: tuple[Limit, ...]

        @property
        def theta(self) -> Array:
            """The logarithms of the free hyperparameters."""

        def with_theta(self, theta: Any) -> Self:
            """Return the kernel with other hyperparameters."""

        def diagonal(self, X: Any) -> Array:
            """Return k(xᵢ, xᵢ)."""

        def _is_invariant(self) -> bool: ...

    else:

        def __getattr__(self, name: str) -> Any:
            """Return what scikit-learn calls otherwise, such as `constant_value`, `noise_level_bounds` or `k1`."""
            if not name.startswith("_"):
                if name in self._peer_parts:
                    return getattr(self, self._peer_parts[name])
                for own in self._positive:
                    peer = self._peer_names.get(own, own)
                    if name == peer:
                        return getattr(self, own)
                    if name == f"{peer}_bounds":
                        return self._stated_bounds(own)
                    if name == f"hyperparameter_{peer}":
                        return next(h for h in self.hyperparameters if h.name == peer)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # -- hyperparameters ----------------------------------------------------------------------------------------------

    @property
    def bounds(self) -> Array:
        """Logarithms of the bounds of θ, of shape (p, 2); those that nobody stated hold the value as it is."""
        rows: list[Any] = []
        for one in self._parameters():
            if isinstance(one.bounds, str):
                continue
            value = np.atleast_1d(one.value)
            low, high = one.bounds.T
            if not one.stated:
                low, high = np.minimum(low, value), np.maximum(high, value)
            rows.append(np.column_stack([low, high]))
        with np.errstate(divide="ignore"):
            return np.log(np.concatenate(rows)) if rows else np.zeros((0, 2))

    @property
    def hyperparameters(self) -> list[Any]:
        """All hyperparameters, held ones too, as scikit-learn's `Hyperparameter`."""
        from sklearn.gaussian_process.kernels import Hyperparameter

        return [
            Hyperparameter(one.name, "numeric", one.bounds, n_elements=int(np.size(one.value)))
            for one in self._parameters()
        ]

    @property
    def n_dims(self) -> int:
        """The number of hyperparameters that are free."""
        return len(self.theta)

    def within(self, **bounds: Any) -> Self:
        """Return the kernel with bounds for its hyperparameters, between which a search stays.

        Parameters
        ----------
        **bounds : (low, high)
            For each name a pair of positive numbers; for a hyperparameter of several entries also an array of pairs.

        Examples
        --------
        >>> from learnable.risk.kernels import Gaussian
        >>> Gaussian(1.0).within(length_scale=(0.1, 10.0)).bounds.round(2)
        array([[-2.3,  2.3]])
        """
        limits = {name: (name, low, high) for name, low, high in self.limits}
        for name, given in bounds.items():
            if name not in self._positive:
                raise ParameterError(f"{type(self).__name__}: there is no hyperparameter {name} to bound.")
            low, high = np.atleast_2d(np.asarray(given, dtype=np.float64)).T
            low = np.maximum(low, 0.0)  # as hyperparameters are positive, no bound is zero
            least, most = (float(end[0]) if len(end) == 1 else tuple(end.tolist()) for end in (low, high))
            limits[name] = (name, least, most)
        return dataclasses.replace(self, limits=tuple(limits.values()))  # type: ignore[type-var]

    def _parameters(self) -> list[Parameter]:
        """Return the hyperparameters of this kernel and of those inside it, in the order of θ."""
        found = []
        stated = {name for name, _, _ in self.limits}
        for own in self._positive:
            bounds = "fixed" if own in self.fixed else self._limit(own)
            found.append(Parameter(self._peer_names.get(own, own), getattr(self, own), bounds, own in stated))
        for peer, own in self._peer_parts.items():
            found += [one._replace(name=f"{peer}__{one.name}") for one in getattr(self, own)._parameters()]
        return found

    def _limit(self, own: str) -> Array:
        """Return the bounds of a hyperparameter, of shape (n_elements, 2)."""
        low, high = next(((low, high) for name, low, high in self.limits if name == own), DEFAULT_BOUNDS)
        size = np.size(getattr(self, own))
        return np.column_stack([np.broadcast_to(end, (size,)) for end in (low, high)]).astype(np.float64)

    def _stated_bounds(self, own: str) -> Any:
        """Return "fixed", a pair, or a pair for each entry, as scikit-learn's constructors take them."""
        if own in self.fixed:
            return "fixed"
        pairs = tuple((low, high) for low, high in self._limit(own).tolist())
        return pairs[0] if len(pairs) == 1 else pairs

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

    # -- methods by scikit-learn's names ------------------------------------------------------------------------------

    def clone_with_theta(self, theta: Any) -> Self:
        """Return the kernel with other hyperparameters; `with_theta` by scikit-learn's name."""
        return self.with_theta(theta)

    def diag(self, X: Any) -> Array:
        """Return k(xᵢ, xᵢ); `diagonal` by scikit-learn's name."""
        return self.diagonal(X)

    def is_stationary(self) -> bool:
        """Tell whether moving all points by the same vector changes nothing."""
        return self._is_invariant()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by scikit-learn's names, bounds and those of kernels inside included."""
        params: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            own = field.name
            if own in ("fixed", "limits") or own in self._peer_parts.values():
                continue
            peer = self._peer_names.get(own, own)
            params[peer] = getattr(self, own)
            if own in self._positive:
                params[f"{peer}_bounds"] = self._stated_bounds(own)
        for peer, own in self._peer_parts.items():
            params[peer] = getattr(self, own)
            if deep:
                params |= {f"{peer}__{key}": value for key, value in params[peer].get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, as a search over `kernel__length_scale` asks for; names of both libraries do."""
        known, changes, inner = self._changeable(), {}, dict[str, dict[str, Any]]()
        fixed, limits = list(self.fixed), {name: (name, low, high) for name, low, high in self.limits}
        for key, value in params.items():
            head, _, tail = key.partition("__")
            if key in known:
                changes[known[key]] = value
            elif key.endswith("_bounds") and known.get(key.removesuffix("_bounds")) in self._positive:
                own = known[key.removesuffix("_bounds")]
                fixed = [name for name in fixed if name != own]
                if isinstance(value, str):
                    fixed.append(own)
                else:
                    limits[own] = next(one for one in self.within(**{own: value}).limits if one[0] == own)
            elif tail and head in self._peer_parts:
                inner.setdefault(head, {})[tail] = value
            else:
                raise ParameterError(
                    f"Invalid parameter {key!r} for kernel {type(self).__name__}; it has {', '.join(known)}."
                )
        new = dataclasses.replace(self, fixed=tuple(fixed), limits=tuple(limits.values()), **changes)  # type: ignore[type-var]
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, field.name, getattr(new, field.name))
        for head, values in inner.items():
            getattr(self, self._peer_parts[head]).set_params(**values)
        return self

    def _changeable(self) -> dict[str, str]:
        """Return the fields by both of their names."""
        own = [f.name for f in dataclasses.fields(self) if f.name not in ("fixed", "limits")]  # type: ignore[arg-type]
        return (
            {name: name for name in own} | {self._peer_names.get(name, name): name for name in own} | self._peer_parts
        )

    def __sklearn_clone__(self) -> Self:
        return copy.deepcopy(self)


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
        X, V = self._read(X), np.asarray(V, dtype=np.float64)
        other = X if Z is None else self._read(Z, X)
        if V.ndim not in (1, 2) or len(V) != other.shape[0]:
            raise DataError(f"{type(self).__name__}: V must have {other.shape[0]} rows; got shape {V.shape}.")
        own = self._diagonal(X) if Z is None else None
        if single and not sp.issparse(X) and not sp.issparse(other) and self._is_invariant():
            centre = other.mean(axis=0)
            X, V = (X - centre).astype(np.float32), V.astype(np.float32)
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
        theta, at = np.asarray(theta, dtype=np.float64), 0
        changes: dict[str, Any] = {}
        if theta.shape != self.theta.shape:
            raise ParameterError(f"{type(self).__name__}: theta must have shape {self.theta.shape}; got {theta.shape}.")
        for name in self._free():
            size = np.size(getattr(self, name))
            value = np.exp(theta[at : at + size])
            changes[name], at = (float(value[0]) if np.ndim(getattr(self, name)) == 0 else value), at + size
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
        from .dot import Constant

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


#: scikit-learn's bounds of every hyperparameter, unless others are stated.
DEFAULT_BOUNDS = (1e-5, 1e5)
#: Name, lower and upper bound of a hyperparameter; the bounds are numbers or one for each entry.
Limit = tuple[str, Any, Any]


class Parameter(NamedTuple):
    """One hyperparameter of a kernel, as scikit-learn's `Hyperparameter` states it."""

    name: str
    value: Any  #: a number or an array of one dimension
    bounds: Any  #: (n_elements, 2) array, or "fixed"
    stated: bool  #: whether somebody gave these bounds
