r"""The exponential distribution of waiting times.

$$ p(x) = \lambda e^{-\lambda x}, \qquad x \ge 0 $$

As an exponential family: $t(x) = x$, $\eta = -\lambda$, $h = 1$ and $A = -\log\lambda$.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import DataError
from .base import (
    Array,
    LinearFamily,
    Parameter,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require_positive,
    require_support,
    weighted_mean,
)
from .saddle import deviance, inside_or, kl_by_quadrature


class Exponential(Univariate, LinearFamily):
    """The exponential distribution, or an array of them.

    Parameters
    ----------
    rate : float or array
        λ > 0, finite: the reciprocal of the mean.

    Examples
    --------
    >>> Exponential(rate=2.0).mean
    np.float64(0.5)
    >>> Exponential.fit_mle([1.0, 2.0, 3.0])
    Exponential(rate=0.5)
    """

    _support = ">= 0"

    def __init__(self, rate: ArrayLike = 1.0) -> None:
        self._store(rate=rate)
        require_positive(self, rate=self.rate)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood: that with the mean of the samples.

        Parameters
        ----------
        x : array of shape (n, ...)
            Samples along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights)
        require_support(cls, x, x >= 0.0)
        return cls.from_mean_statistic(weighted_mean(x, w)[..., None])

    rate = Parameter("The rate λ.")

    @property
    def mean(self) -> Array:
        """The mean 1/λ."""
        return 1.0 / self.rate

    @property
    def variance(self) -> Array:
        """The variance 1/λ²."""
        return np.square(1.0 / self.rate)

    @property
    def std(self) -> Array:
        """The standard deviation 1/λ."""
        return 1.0 / self.rate

    @property
    def mode(self) -> Array:
        """The mode 0."""
        return np.zeros(self.batch_shape)[()]

    def _entropy_in_nats(self) -> Array:
        return 1.0 - np.log(self.rate)

    def _kl(self, other: Exponential) -> Array:
        # log(λ/λ') + λ'/λ - 1.
        return deviance(self.rate, other.rate) / self.rate

    def logpdf(self, x: ArrayLike) -> Array:
        """Return log λ - λx; -inf for x < 0."""
        x = np.asarray(x, dtype=np.float64)
        return inside_or(x >= 0.0, np.log(self.rate) - self.rate * np.maximum(x, 0.0), x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return 1 - e^-λx."""
        return -np.expm1(-self.rate * np.maximum(np.asarray(x, dtype=np.float64), 0.0))

    def quantile(self, p: ArrayLike) -> Array:
        """Return -log(1 - p)/λ."""
        with np.errstate(divide="ignore"):
            return -np.log1p(-self._as_probabilities(p)) / self.rate

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        return np.random.default_rng(random_state).standard_exponential(self._sample_shape(size)) / self.rate

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = -λ, along a last axis of length 1."""
        return -np.asarray(self.rate)[..., None]

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = -log λ."""
        return -np.log(self.rate)

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = 0 for x >= 0."""
        x = np.asarray(x, dtype=np.float64)
        return inside_or(x >= 0.0, np.zeros(()), x)

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with λ = -η."""
        return cls(-np.asarray(natural_parameter, dtype=np.float64)[..., 0])

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member whose mean is given."""
        mean = np.asarray(mean_statistic, dtype=np.float64)[..., 0]
        if not np.all(mean > 0.0):
            raise DataError(f"{cls.__name__}: the mean must be > 0, got {mean!s}: samples of only zeros have no rate.")
        return cls(1.0 / mean)


# The Lomax distribution: of waiting times whose rate has a Gamma distribution (Pareto's second kind).
#
# $$ p(x) = \frac\alpha\beta \Bigl(1 + \frac x\beta\Bigr)^{-\alpha-1}, \qquad x \ge 0 $$
#
# The predictive distribution of exponential waiting times; not an exponential family.


class Lomax(Univariate):
    """The Lomax distribution of positive numbers, or an array of them.

    Parameters
    ----------
    shape : float or array
        α > 0: the tail falls like x^-α.
    scale : float or array
        β > 0.

    Examples
    --------
    >>> Lomax(shape=3.0, scale=2.0).mean
    np.float64(1.0)
    """

    _support = ">= 0"

    def __init__(self, shape: ArrayLike, scale: ArrayLike = 1.0) -> None:
        self._store(shape=shape, scale=scale)
        require_positive(self, shape=self.shape, scale=self.scale)

    shape = Parameter("The shape α.")

    scale = Parameter("The scale β.")

    @property
    def mean(self) -> Array:
        """The mean β/(α - 1); inf for α <= 1."""
        excess = np.where(self.shape > 1.0, self.shape - 1.0, 1.0)
        return np.where(self.shape > 1.0, self.scale / excess, np.inf)[()]

    @property
    def variance(self) -> Array:
        """The variance β²α/((α - 1)²(α - 2)); inf for α <= 2."""
        a = np.where(self.shape > 2.0, self.shape, 3.0)
        value = np.square(self.scale / (a - 1.0)) * (a / (a - 2.0))
        return np.where(self.shape > 2.0, value, np.inf)[()]

    def _entropy_in_nats(self) -> Array:
        return np.log(self.scale) - np.log(self.shape) + 1.0 + 1.0 / self.shape

    def _kl(self, other: Lomax) -> Array:
        return kl_by_quadrature(self, other)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return log(α/β) - (α + 1) log(1 + x/β); -inf for x < 0."""
        x = np.asarray(x, dtype=np.float64)
        value = np.log(self.shape) - np.log(self.scale) - (self.shape + 1.0) * np.log1p(np.maximum(x, 0.0) / self.scale)
        return inside_or(x >= 0.0, value, x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return 1 - (1 + x/β)^-α."""
        x = np.asarray(x, dtype=np.float64)
        return -np.expm1(-self.shape * np.log1p(np.maximum(x, 0.0) / self.scale))

    def quantile(self, p: ArrayLike) -> Array:
        """Return β((1 - p)^(-1/α) - 1)."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.scale * np.expm1(-np.log1p(-self._as_probabilities(p)) / self.shape)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        return self.quantile(np.random.default_rng(random_state).random(self._sample_shape(size)))
