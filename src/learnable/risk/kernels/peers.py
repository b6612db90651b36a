"""The names by which scikit-learn's Gaussian processes know a kernel, in terms of what every kernel here has.

A kernel's own words are `value`, `with_theta`, `diagonal`, …; scikit-learn's are `constant_value`, `clone_with_theta`,
`diag`, `hyperparameters`, `k1`, … Both work on the same object. `get_params` and `set_params` use scikit-learn's names,
so that searches over `kernel__k1__constant_value` need no change.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ParameterError

Array: TypeAlias = NDArray[np.float64]
#: scikit-learn's bounds of every hyperparameter, unless others are stated.
DEFAULT_BOUNDS = (1e-5, 1e5)
#: Name, lower and upper bound of a hyperparameter; the bounds are numbers or one for each entry.
Limit = tuple[str, Any, Any]


class Parameter(NamedTuple):
    """One hyperparameter of a kernel, as scikit-learn's `Hyperparameter` states it."""

    name: str
    value: Any  #: a number or an array of one dimension
    bounds: Any  #: (n_elements, 2) array, or "fixed"
    stated: bool  #: whether these bounds were given


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
        """Logarithms of the bounds of θ, of shape (p, 2); where no bounds were given, both equal the value."""
        rows: list[Any] = []
        for one in self._parameters():
            if isinstance(one.bounds, str):
                continue
            value = np.atleast_1d(one.value)
            low, high = one.bounds.T
            if not one.stated:
                low = np.minimum(low, value)
                high = np.maximum(high, value)
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
        known = self._changeable()
        changes = {}
        inner = dict[str, dict[str, Any]]()
        fixed = list(self.fixed)
        limits = {name: (name, low, high) for name, low, high in self.limits}
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
