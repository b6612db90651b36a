r"""The Poisson distribution of counts.

$$ P(x) = e^{-\lambda} \lambda^x / x!, \qquad x = 0, 1, 2, … $$

As an exponential family: $t(x) = x$, $\eta = \log\lambda$, $h = 1/x!$ and $A = e^\eta = \lambda$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc, gammaln

from .base import (
    Array,
    Discrete,
    LinearFamily,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require,
    require_support,
    weighted_mean,
)
from .counting import expectation, is_count, least_count
from .saddle import deviance, inside_or, log_poisson


class Poisson(Univariate, Discrete, LinearFamily):
    """The Poisson distribution of counts, or an array of them.

    Parameters
    ----------
    rate : float or array
        The mean λ >= 0, finite; at 0 every count is 0.

    Examples
    --------
    >>> Poisson(2.0).pmf([0, 1, 2])
    array([0.1353, 0.2707, 0.2707])
    >>> Poisson.fit_mle([0, 3, 1, 2])
    Poisson(rate=1.5)
    """

    _support = "whole numbers >= 0"

    def __init__(self, rate: ArrayLike) -> None:
        self._store(rate=rate)
        require(self, "rate", self.rate, (self.rate >= 0.0) & np.isfinite(self.rate), ">= 0 and finite")

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood: that with the mean of the counts.

        Parameters
        ----------
        x : array of shape (n, ...)
            Counts along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights)
        require_support(cls, x, is_count(x))
        return cls(weighted_mean(x, w))

    @property
    def rate(self) -> Array:
        """The mean λ."""
        return self._parameters["rate"]

    @property
    def mean(self) -> Array:
        """The mean λ."""
        return self.rate

    @property
    def variance(self) -> Array:
        """The variance λ."""
        return self.rate

    def expect(self, f: Callable[[Array], Array]) -> Array:
        """Return E f(x), by summation."""
        return expectation(self.mean, self.std, lambda x: log_poisson(x, self.rate), f)

    def _entropy_in_nats(self) -> Array:
        return self.expect(lambda x: -log_poisson(x, self.rate))

    def _kl(self, other: Poisson) -> Array:
        return deviance(self.rate, other.rate)

    def logpmf(self, x: ArrayLike) -> Array:
        """Return x log λ - λ - log x!; -inf for what is no count."""
        x = np.asarray(x, dtype=np.float64)
        return inside_or(is_count(x), log_poisson(np.where(is_count(x), x, 0.0), self.rate), x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of a count of at most x."""
        x = np.floor(np.asarray(x, dtype=np.float64))
        value = gammaincc(np.maximum(x, 0.0) + 1.0, self.rate)
        return inside_or(x >= 0.0, value, x, outside=0.0)

    def quantile(self, p: ArrayLike) -> Array:
        """Return the least count at which the cdf is at least p; inf at p = 1."""
        p = self._as_probabilities(p)
        high = np.ceil(self.rate + 40.0 * self.std + 800.0)
        return np.where((p == 1.0) & (self.rate > 0.0), np.inf, least_count(self.cdf, p, high))[()]

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw counts, of shape `size` followed by the shape of the batch."""
        draws = np.random.default_rng(random_state).poisson(self.rate, self._sample_shape(size))
        return np.asarray(draws, dtype=np.float64)[()]

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = log λ, along a last axis of length 1."""
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(self.rate))[..., None]

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = e^η = λ."""
        return self.rate

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = -log x!."""
        x = np.asarray(x, dtype=np.float64)
        return inside_or(is_count(x), -gammaln(np.where(is_count(x), x, 0.0) + 1.0), x)

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with λ = e^η."""
        return cls(np.exp(np.asarray(natural_parameter, dtype=np.float64)[..., 0]))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member whose mean is given."""
        return cls(np.asarray(mean_statistic, dtype=np.float64)[..., 0])
