r"""What every distribution can do, and what distributions on the line and exponential families can do besides.

A distribution object is immutable. Its parameters may be arrays: their leading axes are broadcast against each
other, and the object then stands for an array of independent distributions, of shape `batch_shape`. One draw has
shape `event_shape`: () on the line, (d,) for a vector, (d, d) for a matrix. Every method works entry by entry: it
takes arguments whose last axes are the event's and broadcasts the others against the batch; scalar
parameters and a scalar argument give a scalar. With K distributions and n points, `logpdf(x[:, None])` is (n, K).

An exponential family has densities

$$ \log p(x) = \log h(x) + \langle\eta, t(x)\rangle - A(\eta). $$

Its statistics t(x) are plain arrays: sums of them over blocks of data add up to the sum over the data, and the
maximum-likelihood fit needs nothing else (Fisher–Neyman factorisation: given Σt(x), the likelihood's shape is known).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import DataError, NotExponentialFamilyError, ParameterError

#: Real numbers; a NumPy scalar if parameters and argument are scalars.
Array: TypeAlias = NDArray[np.float64]
#: What `numpy.random.default_rng` takes; a Generator is used as it is.
RandomState: TypeAlias = int | np.random.Generator | None
#: How many draws: a number or a shape.
Size: TypeAlias = int | tuple[int, ...]


class Frozen(ABC):
    """An immutable object, or an array of them, that consists of named parameters."""

    #: How many trailing axes of a parameter belong to one object; 0 for those that are not listed.
    _event_ranks: ClassVar[Mapping[str, int]] = {}
    _parameters: dict[str, Array]

    def _store(self, **parameters: ArrayLike) -> None:
        """Keep read-only copies of the parameters, broadcast to one batch; the one place that writes to the object."""
        owner = type(self).__name__
        arrays = {}
        batches = []
        for name, values in parameters.items():
            rank = self._event_ranks.get(name, 0)
            try:
                array = np.array(values, dtype=np.float64)
            except (TypeError, ValueError):
                raise ParameterError(f"{owner}: {name} must be a number or an array, got {values!r}.") from None
            if array.ndim < rank or 0 in array.shape[array.ndim - rank :]:
                kind = "a vector" if rank == 1 else "a matrix"
                raise ParameterError(f"{owner}: {name} must be {kind}, or an array of such, got shape {array.shape}.")
            array.flags.writeable = False
            arrays[name] = array
            batches.append(array.shape[: array.ndim - rank])
        try:
            batch = np.broadcast_shapes(*batches)
        except ValueError:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise ParameterError(f"{owner}: parameters must be arrays whose shapes broadcast, got {shapes}.") from None
        for name, array in arrays.items():
            rank = self._event_ranks.get(name, 0)
            arrays[name] = np.broadcast_to(array, batch + array.shape[array.ndim - rank :])[()]  # 0-d: a scalar
        object.__setattr__(self, "_parameters", arrays)
        object.__setattr__(self, "_batch_shape", batch)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__} is immutable: build a new one to change {name!r}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._parameters)

    def __getitem__(self, index: Any) -> Self:
        """Return some of an array of distributions; the index is one of the batch's axes."""
        if not self.batch_shape:
            raise IndexError(f"{type(self).__name__}: a single one is no array of them; it has no {index!r}.")
        cells = np.arange(math.prod(self.batch_shape)).reshape(self.batch_shape)[index]
        n_batch = len(self.batch_shape)
        return type(self)(
            **{name: p.reshape(-1, *p.shape[n_batch:])[cells] for name, p in self._parameters.items()}  # type: ignore[arg-type]
        )

    @property
    def parameters(self) -> Mapping[str, Array]:
        """The parameters by name, as the constructor takes them."""
        return MappingProxyType(self._parameters)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the array of distributions; () for a single one."""
        return self._batch_shape  # type: ignore[attr-defined, no-any-return]

    def _sample_shape(self, size: Size) -> tuple[int, ...]:
        """Return `size` followed by the batch's shape."""
        return (*((size,) if isinstance(size, (int, np.integer)) else size), *self.batch_shape)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={_abbreviate(values)}" for name, values in self._parameters.items())
        return f"{type(self).__name__}({inside})"


class Parameter:
    """A parameter of a distribution, read as an attribute."""

    def __init__(self, meaning: str) -> None:
        self.__doc__ = meaning

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, distribution: None, owner: type) -> Self: ...
    @overload
    def __get__(self, distribution: Frozen, owner: type) -> Array: ...
    def __get__(self, distribution: Frozen | None, owner: type) -> Self | Array:
        return self if distribution is None else distribution._parameters[self._name]


class Distribution(Frozen):
    """Base of every family: moments, density, entropy, divergence, samples."""

    #: Of how many axes one draw has.
    _event_rank: ClassVar[int] = 0
    #: Where the density is not zero, for messages: "samples must be …".
    _support: ClassVar[str] = "finite"

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw from one distribution."""
        return np.shape(self.mean)[len(self.batch_shape) :]

    @property
    @abstractmethod
    def mean(self) -> Array:
        """The expectation."""

    @property
    @abstractmethod
    def variance(self) -> Array:
        """The variance, entry by entry."""

    @property
    def std(self) -> Array:
        """The standard deviation, entry by entry."""
        return np.sqrt(self.variance)

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter of an exponential family; this distribution is none."""
        remedy = "; use fit_mle(x) with the data." if hasattr(self, "fit_mle") else "."
        raise NotExponentialFamilyError(
            f"{type(self).__name__} is no exponential family: it has no natural parameter and no sufficient "
            f"statistic of fixed size{remedy}"
        )

    @abstractmethod
    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density at x; -inf outside the support."""

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x."""
        return np.exp(self.logpdf(x))

    @classmethod
    def fit_map(cls, x: ArrayLike, prior: Any, weights: ArrayLike | None = None, **known: Any) -> Self:
        """Return the member of the family that is most probable after the data; see `fit_map` of this package."""
        from .estimation import fit_map

        return fit_map(cls, x, prior, weights, **known)

    @abstractmethod
    def _entropy_in_nats(self) -> Array: ...

    def entropy(self, base: float = math.e) -> Array:
        """Return the entropy -E[log p(x)]; the differential entropy if there is a density.

        Parameters
        ----------
        base : float
            Of the logarithm: e gives nats, 2 gives bits.
        """
        if not base > 1.0:
            raise ParameterError(f"{type(self).__name__}: base must be > 1, got {base!r}; use e for nats, 2 for bits.")
        return self._entropy_in_nats() / math.log(base)

    def kl(self, other: Any) -> Array:
        """Return the Kullback–Leibler divergence E[log p(x) - log q(x)] from p, this distribution, to q, the other.

        Parameters
        ----------
        other : a distribution of the same family
            Its batch broadcasts against this one's.
        """
        if type(other) is not type(self) or other.event_shape != self.event_shape:
            raise ParameterError(
                f"{type(self).__name__}: other must be a {type(self).__name__} with draws of shape {self.event_shape}, "
                f"got {other!r}."
            )
        return self._kl(other)

    @abstractmethod
    def _kl(self, other: Any) -> Array: ...

    @abstractmethod
    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples.

        Parameters
        ----------
        size : int or tuple of int
            How many from each distribution: the result has shape `size`, then the batch's, then the event's.
        random_state : int, Generator or None
            The same integer gives the same samples.
        """


class Univariate(Distribution):
    """A distribution, or an array of distributions, on the real line."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of a value of at most x."""

    @abstractmethod
    def quantile(self, p: ArrayLike) -> Array:
        """Return the least x at which the cdf is at least p, for p in [0, 1]."""

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


class Multivariate(Distribution):
    """A distribution, or an array of distributions, of vectors."""

    _event_rank = 1

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """The covariance matrix, of shape (..., d, d)."""

    @property
    def variance(self) -> Array:
        """The diagonal of the covariance matrix."""
        return np.diagonal(self.covariance, axis1=-2, axis2=-1).copy()


class Discrete(Distribution):
    """A distribution on whole numbers; its density is that with respect to counting, the probability mass."""

    @abstractmethod
    def logpmf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the probability of x; -inf if x is impossible."""

    def pmf(self, x: ArrayLike) -> Array:
        """Return the probability of x."""
        return np.exp(self.logpmf(x))

    def logpdf(self, x: ArrayLike) -> Array:
        """Return `logpmf(x)`, under the name that code for any distribution uses."""
        return self.logpmf(x)


class ExponentialFamily(Distribution):
    """A family of the form log p(x) = log h(x) + ⟨η, t(x)⟩ - A(η); the last axis of η and t runs over their entries."""

    #: Parameters that are known, not estimated, such as a number of trials.
    _known: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def natural_parameter(self) -> Array:
        """The natural parameter η, of shape (..., S)."""

    @property
    @abstractmethod
    def log_partition(self) -> Array:
        """The log-partition function A(η), whose gradient is the mean of t(x)."""

    @property
    @abstractmethod
    def mean_statistic(self) -> Array:
        """The expectation of t(x), of shape (..., S)."""

    @abstractmethod
    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x), of shape (..., S)."""

    @abstractmethod
    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x); -inf outside the support."""

    @classmethod
    @abstractmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike, *args: Any, **known: Any) -> Self:
        """Return the member of the family whose natural parameter is η."""

    @classmethod
    @abstractmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike, *args: Any, **known: Any) -> Self:
        """Return the member of the family whose mean of t(x) is given: with the mean over data, the MLE."""

    @property
    def known(self) -> dict[str, Array]:
        """The parameters that are known rather than estimated, as `from_mean_statistic` takes them."""
        return {name: self._parameters[name] for name in self._known}

    def sum_statistic(self, x: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, Array]:
        """Return the total weight and the weighted sum of t(x) over the first axis; sums of blocks add."""
        x, w = check_sample(self, x, weights, rank=self._event_rank)
        return float(w.sum()), np.tensordot(w, self.sufficient_statistic(x), axes=1)

    def _kl(self, other: Any) -> Array:
        # ⟨η_p - η_q, E_p t⟩ - A_p + A_q: the Bregman divergence of A.
        change = np.sum((self.natural_parameter - other.natural_parameter) * self.mean_statistic, axis=-1)
        return np.maximum(change - self.log_partition + other.log_partition, 0.0)


class LinearFamily(ExponentialFamily):
    """An exponential family of numbers whose statistic is the number itself."""

    @property
    def mean_statistic(self) -> Array:
        """The mean of t(x) = x, along a last axis of length 1."""
        return np.asarray(self.mean)[..., None]

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x) = x, along a new last axis of length 1."""
        return np.asarray(x, dtype=np.float64)[..., None]


def require(owner: object, name: str, values: Array, holds: NDArray[np.bool_], rule: str) -> None:
    """Raise a ParameterError about the first of `values` for which the rule does not hold."""
    if not np.all(holds):
        values, holds = np.broadcast_arrays(values, holds)
        first = float(values[~holds][0])
        raise ParameterError(f"{type(owner).__name__}: {name} must be {rule}, got {first!r}.")


def require_positive(owner: object, **parameters: Array) -> None:
    """Raise a ParameterError unless the parameters are positive and finite."""
    for name, values in parameters.items():
        require(owner, name, values, (values > 0.0) & np.isfinite(values), "> 0 and finite")


def check_sample(owner: Any, x: ArrayLike, weights: ArrayLike | None, rank: int = 0) -> tuple[Array, Array]:
    """Return the samples of positive weight along the first axis, and their weights.

    Parameters
    ----------
    owner : type or object
        Named in errors.
    rank : int
        How many trailing axes one sample has.
    """
    name = owner if isinstance(owner, str) else (owner if isinstance(owner, type) else type(owner)).__name__
    x = np.asarray(x, dtype=np.float64)
    if x.ndim <= rank or x.shape[0] == 0:
        raise DataError(f"{name}: fit_mle needs an array of at least one sample, got shape {x.shape}.")
    w = np.ones(x.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != x.shape[:1]:
        raise DataError(f"{name}: weights must have one entry per sample, shape {x.shape[:1]}, got {w.shape}.")
    if not np.all((w >= 0.0) & np.isfinite(w)) or not np.any(w > 0.0):
        raise DataError(f"{name}: weights must be finite, >= 0 and not all zero, got {w!r}.")
    if not np.all(w > 0.0):
        x = x[w > 0.0]
        w = w[w > 0.0]
    if not np.all(np.isfinite(x)):
        raise DataError(f"{name}: samples must be finite, got NaN or infinity; leave them out or give them weight 0.")
    return x, w


def require_support(owner: type[Distribution], x: Array, inside: NDArray[np.bool_]) -> None:
    """Raise a DataError about the first sample that is impossible under every member of the family."""
    if not np.all(inside):
        first = x[~np.broadcast_to(inside, x.shape[: np.ndim(inside)])][0]
        raise DataError(f"{owner.__name__}: samples must be {owner._support}, got {first!s}.")


def weighted_mean(x: Array, weights: Array) -> Array:
    """Return the weighted mean over the first axis; the weights' scale, however large or small, does not matter."""
    share = weights / weights.max()
    mean: Array = np.tensordot(share / share.sum(), x, axes=1)[()]
    return mean


def _rebuild(cls: type[Frozen], parameters: dict[str, Array]) -> Frozen:
    return cls(**parameters)  # type: ignore[call-arg]


def _abbreviate(values: Array) -> str:
    if np.ndim(values) == 0:
        return repr(float(values))
    if np.ndim(values) == 1:
        return np.array2string(values, precision=4, threshold=5, edgeitems=2, separator=", ")
    return f"<array of shape {np.shape(values)}>"
