r"""The Poisson distribution of counts.

$$ P(x) = e^{-\lambda} \lambda^x / x!, \qquad x = 0, 1, 2, … $$

As an exponential family: $t(x) = x$, $\eta = \log\lambda$, $h = 1/x!$ and $A = e^\eta = \lambda$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, gammaincc, gammaln

from ..core.errors import ParameterError
from .base import (
    Array,
    Discrete,
    LinearFamily,
    Parameter,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require,
    require_positive,
    require_support,
    weighted_mean,
)
from .saddle import deviance, expectation, inside_or, is_count, least_count, log_gamma_density, log_poisson


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

    rate = Parameter("The mean λ.")

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


# The negative binomial distribution: of counts whose rate has a Gamma distribution.
#
# $$ P(x) = \frac{\Gamma(r + x)}{\Gamma(r)\, x!}\, p^r (1 - p)^x, \qquad x = 0, 1, 2, … $$
#
# The predictive distribution of Poisson counts, with r = α and p = β/(β + 1). With r unknown it is no exponential
# family.

_MOST = 1e7  # probabilities that are summed, at most


class NegativeBinomial(Univariate, Discrete):
    """The number of failures before the r-th success, with r any positive number; or an array of such.

    Parameters
    ----------
    r : float or array
        > 0, not necessarily whole.
    p : float or array
        The probability of success, strictly between 0 and 1.

    Examples
    --------
    >>> NegativeBinomial(2.0, 0.5).pmf([0, 1, 2])
    array([0.25  , 0.25  , 0.1875])
    """

    _support = "whole numbers >= 0"

    def __init__(self, r: ArrayLike, p: ArrayLike) -> None:
        self._store(r=r, p=p)
        require_positive(self, r=self.r)
        require(self, "p", self.p, (self.p > 0.0) & (self.p < 1.0), "between 0 and 1, without the ends")

    r = Parameter("The number r of successes.")

    p = Parameter("The probability of success.")

    @property
    def mean(self) -> Array:
        """The mean r(1 - p)/p."""
        return self.r * (1.0 - self.p) / self.p

    @property
    def variance(self) -> Array:
        """The variance r(1 - p)/p²."""
        return self.mean / self.p

    def logpmf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the probability of x; -inf for what is no count."""
        x = np.asarray(x, dtype=np.float64)
        return inside_or(is_count(x), self._log_mass(np.where(is_count(x), x, 0.0)), x)

    def _log_mass(self, x: Array) -> Array:
        # Poisson likelihood times Gamma prior over Gamma posterior, at the posterior's mean: no large terms cancel.
        rate = self.p / (1.0 - self.p)
        middle = (self.r + x) / (rate + 1.0)
        prior = log_gamma_density(middle, self.r, rate)
        return log_poisson(x, middle) + prior - log_gamma_density(middle, self.r + x, rate + 1.0)

    def _entropy_in_nats(self) -> Array:
        return self._expect(lambda x: -self._log_mass(x))

    def _kl(self, other: NegativeBinomial) -> Array:
        return np.maximum(self._expect(lambda x: self._log_mass(x) - other._log_mass(x)), 0.0)

    def _expect(self, f: Callable[[Array], Array]) -> Array:
        """Return E f(x), by summation."""
        high = float(np.max(np.ceil(self.mean + 40.0 * self.std + 40.0 / self.p)))
        if high * max(np.size(self.r), 1) > _MOST:
            raise ParameterError(
                f"{type(self).__name__}: expectations sum at most {_MOST:g} probabilities; use samples."
            )
        x = np.arange(high + 1.0).reshape(-1, *(1,) * len(self.batch_shape))
        mass = np.exp(self._log_mass(x))
        return np.sum(mass * f(x), axis=0)[()]

    def cdf(self, x: ArrayLike) -> Array:
        """Return the regularised incomplete Beta function I_p(r, x + 1)."""
        x = np.floor(np.asarray(x, dtype=np.float64))
        return inside_or(x >= 0.0, betainc(self.r, np.maximum(x, 0.0) + 1.0, self.p), x, outside=0.0)

    def quantile(self, p: ArrayLike) -> Array:
        """Return the least count at which the cdf is at least p; inf at p = 1."""
        p = self._as_probabilities(p)
        high = np.ceil(self.mean + 40.0 * self.std + 800.0 / self.p)
        return np.where(p == 1.0, np.inf, least_count(self.cdf, p, high))[()]

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw counts, of shape `size` followed by the shape of the batch."""
        draws = np.random.default_rng(random_state).negative_binomial(self.r, self.p, self._sample_shape(size))
        return np.asarray(draws, dtype=np.float64)[()]
