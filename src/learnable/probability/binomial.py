r"""The Bernoulli distribution of one success or failure, and the binomial distribution of their number.

$$ P(x) = \binom{n}{x} p^x (1 - p)^{n-x}, \qquad x = 0, …, n, $$

with n = 1 for the first. As exponential families: $t(x) = x$, $\eta = \log\frac{p}{1-p}$, $A = n\log(1 + e^\eta)$, and
$h$ is the binomial coefficient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, expit, gammaln, log1p, logit, rel_entr

from ..core.errors import DataError
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
    require_support,
    weighted_mean,
)
from .saddle import deviance, expectation, inside_or, is_count, least_count, log_factorial_part, require_count


class _Trials(Univariate, Discrete, LinearFamily):
    """What one trial and several trials share; `n` is the number of trials."""

    @property
    def n(self) -> Array:
        """The number of trials."""
        raise NotImplementedError

    p = Parameter("The probability of success.")

    @property
    def mean(self) -> Array:
        """The mean np."""
        return self.n * self.p

    @property
    def variance(self) -> Array:
        """The variance np(1 - p)."""
        return self.n * self.p * (1.0 - self.p)

    def logpmf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the probability of x successes; -inf for what is no number of them."""
        x = np.asarray(x, dtype=np.float64)
        return inside_or(is_count(x) & (x <= self.n), self._log_mass(np.clip(x, 0.0, self.n)), x)

    def _log_mass(self, x: Array) -> Array:
        """Return the logarithm of the probability, also between the whole numbers."""
        n = self.n
        p = self.p
        rest = n - x
        coefficient = log_factorial_part(n) - log_factorial_part(x) - log_factorial_part(rest)
        return coefficient - deviance(x, n * p) - deviance(rest, n * (1.0 - p))

    def expect(self, f: Callable[[Array], Array]) -> Array:
        """Return E f(x), by summation."""
        inside = lambda x: np.where(x <= self.n, self._log_mass(np.minimum(x, self.n)), -np.inf)  # noqa: E731
        return expectation(self.mean, self.std, inside, f)

    def _entropy_in_nats(self) -> Array:
        return self.expect(lambda x: -self._log_mass(np.minimum(x, self.n)))

    def _kl(self, other: Any) -> Array:
        value = self.n * (rel_entr(self.p, other.p) + rel_entr(1.0 - self.p, 1.0 - other.p))
        return np.where(self.n == other.n, np.where(self.n == 0.0, 0.0, value), np.inf)[()]

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of at most x successes."""
        x = np.floor(np.asarray(x, dtype=np.float64))
        n = self.n
        p = self.p
        k = np.clip(x, 0.0, np.maximum(n - 1.0, 0.0))
        value = betainc(np.maximum(n - k, 1.0), k + 1.0, 1.0 - p)  # I_{1-p}(n - x, x + 1)
        value = np.where(x < 0.0, 0.0, np.where(x >= n, 1.0, value))
        return np.where(np.isnan(x), np.nan, value)[()]

    def quantile(self, p: ArrayLike) -> Array:
        """Return the least number of successes at which the cdf is at least p."""
        p = self._as_probabilities(p)
        # The cdf rounds to 1 before the last number of successes; its quantile at 1 is that number.
        return np.where((p == 1.0) & (self.p > 0.0), self.n, least_count(self.cdf, p, self.n))[()]

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw numbers of successes, of shape `size` followed by the shape of the batch."""
        rng = np.random.default_rng(random_state)
        draws = rng.binomial(np.asarray(self.n).astype(np.int64), self.p, self._sample_shape(size))
        return np.asarray(draws, dtype=np.float64)[()]

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = log(p/(1 - p)), along a last axis of length 1."""
        return np.asarray(logit(self.p))[..., None]

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = n log(1 + e^η) = -n log(1 - p)."""
        with np.errstate(divide="ignore"):
            return -self.n * log1p(-self.p)

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return the logarithm of the binomial coefficient."""
        x = np.asarray(x, dtype=np.float64)
        k = np.clip(x, 0.0, self.n)
        value = gammaln(self.n + 1.0) - gammaln(k + 1.0) - gammaln(self.n - k + 1.0)
        return inside_or(is_count(x) & (x <= self.n), value, x)


class Bernoulli(_Trials):
    """One trial: 1 with probability p, else 0; or an array of such.

    Parameters
    ----------
    p : float or array
        The probability of 1, in [0, 1].

    Examples
    --------
    >>> Bernoulli(0.25).entropy(base=2)
    np.float64(0.8113)
    >>> Bernoulli.fit_mle([0, 1, 1, 1])
    Bernoulli(p=0.75)
    """

    _support = "0 or 1"

    def __init__(self, p: ArrayLike) -> None:
        self._store(p=p)
        require(self, "p", self.p, (self.p >= 0.0) & (self.p <= 1.0), "in [0, 1]")

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood: the share of ones.

        Parameters
        ----------
        x : array of shape (n, ...)
            Zeros and ones along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights)
        require_support(cls, x, (x == 0.0) | (x == 1.0))
        return cls.from_mean_statistic(weighted_mean(x, w)[..., None])

    @property
    def n(self) -> Array:
        """The number of trials, 1."""
        return np.ones(self.batch_shape)[()]

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with p = 1/(1 + e^-η)."""
        return cls(expit(np.asarray(natural_parameter, dtype=np.float64)[..., 0]))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member whose mean is given."""
        return cls(_as_share(cls, np.asarray(mean_statistic, dtype=np.float64)[..., 0], 1.0))


class Binomial(_Trials):
    """The number of successes in n trials, or an array of such.

    Parameters
    ----------
    n : float or array
        The number of trials, whole, >= 0; known, not estimated.
    p : float or array
        The probability of success, in [0, 1].

    Examples
    --------
    >>> Binomial(3, 0.5).pmf([0, 1, 2, 3])
    array([0.125, 0.375, 0.375, 0.125])
    >>> Binomial.fit_mle([3, 5, 4], n=10)
    Binomial(n=10.0, p=0.4)
    """

    _support = "whole numbers from 0 to n"
    _known = ("n",)

    def __init__(self, n: ArrayLike, p: ArrayLike) -> None:
        self._store(n=n, p=p)
        require_count(self, "n", self.n)
        require(self, "p", self.p, (self.p >= 0.0) & (self.p <= 1.0), "in [0, 1]")

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None, *, n: ArrayLike) -> Self:
        """Return the distribution of greatest likelihood: the share of successes in all trials.

        Parameters
        ----------
        x : array of shape (m, ...)
            Numbers of successes along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (m,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        n : float or array
            The number of trials behind each.
        """
        x, w = check_sample(cls, x, weights)
        require_support(cls, x, is_count(x) & (x <= np.asarray(n)))
        return cls.from_mean_statistic(weighted_mean(x, w)[..., None], n=n)

    n = Parameter("The number of trials.")

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike, *, n: ArrayLike) -> Self:
        """Return the member with p = 1/(1 + e^-η)."""
        return cls(n, expit(np.asarray(natural_parameter, dtype=np.float64)[..., 0]))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike, *, n: ArrayLike) -> Self:
        """Return the member whose mean is given."""
        n = np.asarray(n, dtype=np.float64)
        return cls(n, _as_share(cls, np.asarray(mean_statistic, dtype=np.float64)[..., 0], n))


def _as_share(cls: type, mean: Array, n: ArrayLike) -> Array:
    """Return mean/n, which rounding may have put a little above one."""
    n = np.asarray(n, dtype=np.float64)
    if not (np.all(n > 0.0) and np.all(mean >= 0.0) and np.all(mean <= n * (1.0 + 1e-12))):
        raise DataError(f"{cls.__name__}: the mean must be between 0 and n > 0, got {mean!s} with n = {n!s}.")
    return np.minimum(mean / n, 1.0)
