r"""The Beta distribution: of one probability.

$$ p(x) = \frac{\Gamma(a + b)}{\Gamma(a)\Gamma(b)}\, x^{a-1} (1 - x)^{b-1}, \qquad 0 \le x \le 1 $$

It is the Dirichlet distribution of two categories. As an exponential family: $t(x) = (\log x, \log(1 - x))$,
$\eta = (a - 1, b - 1)$, $h = 1$ and $A = \log\Gamma(a) + \log\Gamma(b) - \log\Gamma(a + b)$.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln, digamma

from .base import (
    Array,
    ExponentialFamily,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require_positive,
    require_support,
    weighted_mean,
)
from .inversion import solve_dirichlet
from .saddle import inside_or, log_dirichlet_density


class Beta(Univariate, ExponentialFamily):
    """The Beta distribution of a probability, or an array of them.

    Parameters
    ----------
    a : float or array
        Concentration at 1, > 0: with b = 1 the density is a x^(a - 1).
    b : float or array
        Concentration at 0, > 0.

    Examples
    --------
    >>> Beta(a=3.0, b=1.0).mean
    np.float64(0.75)
    >>> Beta(a=3.0, b=1.0).cdf(0.5)
    np.float64(0.125)
    """

    _support = "between 0 and 1, without the ends"

    def __init__(self, a: ArrayLike = 1.0, b: ArrayLike = 1.0) -> None:
        self._store(a=a, b=b)
        require_positive(self, a=self.a, b=self.b)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood.

        Parameters
        ----------
        x : array of shape (n, ...)
            Samples strictly between 0 and 1 along the first axis; each position of the others gets its own fit.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights)
        require_support(cls, x, (x > 0.0) & (x < 1.0))
        return cls.from_mean_statistic(np.stack([weighted_mean(np.log(x), w), weighted_mean(np.log1p(-x), w)], axis=-1))

    @property
    def a(self) -> Array:
        """The concentration a at 1."""
        return self._parameters["a"]

    @property
    def b(self) -> Array:
        """The concentration b at 0."""
        return self._parameters["b"]

    @property
    def mean(self) -> Array:
        """The mean a/(a + b)."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Array:
        """The variance ab/((a + b)²(a + b + 1))."""
        total = self.a + self.b
        return (self.a / total) * (self.b / total) / (total + 1.0)

    @property
    def mode(self) -> Array:
        """The mode (a - 1)/(a + b - 2); NaN unless a > 1 and b > 1."""
        inside = (self.a > 1.0) & (self.b > 1.0)
        return np.where(inside, (self.a - 1.0) / np.where(inside, self.a + self.b - 2.0, 1.0), np.nan)[()]

    def _entropy_in_nats(self) -> Array:
        a, b = self.a, self.b
        return betaln(a, b) - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (a + b - 2.0) * digamma(a + b)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return (a - 1) log x + (b - 1) log(1 - x) - log B(a, b); -inf outside [0, 1]."""
        x = np.asarray(x, dtype=np.float64)
        pair = np.stack(np.broadcast_arrays(x, 1.0 - x), axis=-1)
        value = log_dirichlet_density(pair, np.stack([self.a, self.b], axis=-1))
        return inside_or((x >= 0.0) & (x <= 1.0), value, x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the regularised incomplete Beta function I_x(a, b)."""
        probability: Array = betainc(self.a, self.b, np.clip(np.asarray(x, dtype=np.float64), 0.0, 1.0))
        return probability

    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p."""
        x: Array = betaincinv(self.a, self.b, self._as_probabilities(p))
        return x

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        return np.random.default_rng(random_state).beta(self.a, self.b, self._sample_shape(size))

    @property
    def natural_parameter(self) -> Array:
        """The pair η = (a - 1, b - 1) along the last axis."""
        return np.stack([self.a - 1.0, self.b - 1.0], axis=-1)

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = log B(a, b)."""
        value: Array = betaln(self.a, self.b)
        return value

    @property
    def mean_statistic(self) -> Array:
        """The mean (ψ(a) - ψ(a + b), ψ(b) - ψ(a + b)) of t(x)."""
        both = digamma(self.a + self.b)
        return np.stack([digamma(self.a) - both, digamma(self.b) - both], axis=-1)

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x) = (log x, log(1 - x)) along a new last axis."""
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(x), np.log1p(-x)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = 0 for x in [0, 1]."""
        x = np.asarray(x, dtype=np.float64)
        return np.where((x >= 0.0) & (x <= 1.0), 0.0, -np.inf)[()]

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = (a - 1, b - 1)."""
        eta = np.asarray(natural_parameter, dtype=np.float64)
        return cls(eta[..., 0] + 1.0, eta[..., 1] + 1.0)

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the means (E log x, E log(1 - x)), by Newton's method."""
        alpha = solve_dirichlet(np.asarray(mean_statistic, dtype=np.float64), cls.__name__)
        return cls(alpha[..., 0], alpha[..., 1])
