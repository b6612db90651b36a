"""What every distribution can do, and what a distribution on the real line can do besides.

A distribution object is immutable. Its parameters may be arrays: they are broadcast against each other, and
the object then stands for an array of independent distributions, of shape `shape`. Every method works entry
by entry, broadcasting its argument against that shape; scalar parameters and a scalar argument give a
scalar.

A family subclasses `Distribution` or `Univariate`, passes its parameters to `_store`, checks them with
`require`, and writes its formulas. If it is an exponential family it also has the members of
`ExponentialFamily`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from types import MappingProxyType
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import ParameterError

#: Real numbers; a NumPy scalar if parameters and argument are scalars.
Array: TypeAlias = NDArray[np.float64]
#: What `numpy.random.default_rng` takes.
RandomState: TypeAlias = int | np.random.Generator | None


class ExponentialFamily(Protocol):
    """A family of the form log p(x) = log h(x) + ⟨η, t(x)⟩ - A(η).

    The last axis of η and of t(x) runs over their entries.
    """

    @property
    def natural_parameters(self) -> Array:
        """The natural parameters η."""
        ...

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η), whose gradient is the mean of t(x)."""
        ...

    def sufficient_statistics(self, x: ArrayLike) -> Array:
        """Return t(x)."""
        ...

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x)."""
        ...


class Distribution(ABC):
    """Base of every family: stored parameters, moments, density, entropy, samples."""

    _parameters: dict[str, Array]

    def _store(self, **parameters: Array) -> None:
        """Keep read-only copies of the parameters; the one place that writes to the object."""
        frozen = {}
        for name, values in parameters.items():
            copy = np.array(values, dtype=np.float64)
            copy.flags.writeable = False
            frozen[name] = copy[()]  # a 0-d array becomes a scalar
        object.__setattr__(self, "_parameters", frozen)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__} is immutable: build a new one to change {name!r}.")

    @property
    def parameters(self) -> Mapping[str, Array]:
        """The parameters by name, as the constructor takes them."""
        return MappingProxyType(self._parameters)

    @property
    @abstractmethod
    def mean(self) -> Array:
        """The expectation."""

    @property
    @abstractmethod
    def var(self) -> Array:
        """The variance."""

    @property
    def std(self) -> Array:
        """The standard deviation."""
        return np.sqrt(self.var)

    @abstractmethod
    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density at x."""

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x."""
        return np.exp(self.logpdf(x))

    @abstractmethod
    def _entropy_in_nats(self) -> Array: ...

    def entropy(self, base: float = math.e) -> Array:
        """Return the differential entropy -E[log p(x)].

        Parameters
        ----------
        base : float
            Of the logarithm: e gives nats, 2 gives bits.
        """
        if not base > 1.0:
            raise ParameterError(f"{type(self).__name__}: base must be > 1, got {base!r}; use e for nats, 2 for bits.")
        return self._entropy_in_nats() / math.log(base)

    @abstractmethod
    def sample(self, size: int | tuple[int, ...] = (), random_state: RandomState = None) -> Array:
        """Draw independent samples.

        Parameters
        ----------
        size : int or tuple of int
            How many from each distribution: the result has shape `size`, then the shape of the distribution.
        random_state : int, Generator or None
            The same integer gives the same samples.
        """

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={_abbreviate(values)}" for name, values in self._parameters.items())
        return f"{type(self).__name__}({inside})"


class Univariate(Distribution):
    """A distribution, or an array of distributions, on the real line."""

    def _store(self, **parameters: ArrayLike) -> None:
        """Keep the parameters, broadcast to one shape."""
        try:
            arrays = np.broadcast_arrays(*(np.asarray(values, np.float64) for values in parameters.values()))
        except ValueError:
            shapes = ", ".join(f"{name} {np.shape(values)}" for name, values in parameters.items())
            raise ParameterError(
                f"{type(self).__name__}: parameters must be arrays whose shapes broadcast, got {shapes}."
            ) from None
        super()._store(**dict(zip(parameters, arrays, strict=True)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the parameters; () for a single distribution."""
        return np.shape(next(iter(self._parameters.values())))

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of a value of at most x."""

    @abstractmethod
    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p, for p in [0, 1]."""

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends (lower, upper) of the equal-tailed interval that has probability `level`."""
        tail = self._tail_probability(level)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def _tail_probability(self, level: float) -> float:
        """Return the probability (1 - level)/2 on either side of an equal-tailed interval."""
        if not 0.0 <= level <= 1.0:
            raise ParameterError(f"{type(self).__name__}: level must be in [0, 1], got {level!r}.")
        return 0.5 * (1.0 - level)

    def _as_probabilities(self, p: ArrayLike) -> Array:
        p = np.asarray(p, dtype=np.float64)
        require(self, "p", p, (p >= 0.0) & (p <= 1.0), "in [0, 1]")
        return p

    def _sample_shape(self, size: int | tuple[int, ...]) -> tuple[int, ...]:
        return (*((size,) if isinstance(size, (int, np.integer)) else size), *self.shape)


def require(owner: object, name: str, values: Array, holds: NDArray[np.bool_], rule: str) -> None:
    """Raise a ParameterError about the first of `values` for which the rule does not hold."""
    if not np.all(holds):
        first = float(np.asarray(values)[~np.asarray(holds)][0])
        raise ParameterError(f"{type(owner).__name__}: {name} must be {rule}, got {first!r}.")


def _abbreviate(values: Array) -> str:
    if np.ndim(values) == 0:
        return repr(float(values))
    if np.ndim(values) == 1:
        return np.array2string(values, precision=4, threshold=5, edgeitems=2, separator=", ")
    return f"<array of shape {np.shape(values)}>"
