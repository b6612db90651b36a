r"""The Dirichlet distribution: of the probabilities of K categories.

$$ p(x) = \frac{\Gamma(A)}{\prod_k \Gamma(\alpha_k)} \prod_k x_k^{\alpha_k - 1}, \qquad A = \sum_k \alpha_k, \quad
   x_k \ge 0, \; \sum_k x_k = 1 $$

with respect to the first K - 1 entries of x. As an exponential family: $t(x) = (\log x_1, …, \log x_K)$, $\eta =
\alpha - 1$,
$h = 1$ and $A(\eta) = \sum_k \log\Gamma(\alpha_k) - \log\Gamma(A)$.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln, digamma, gammaln

from .base import (
    Array,
    ExponentialFamily,
    Multivariate,
    Parameter,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require_positive,
    require_support,
    weighted_mean,
)
from .saddle import inside_or, log_dirichlet_density, solve_dirichlet

_SUM_TOLERANCE = 1e-9


class Dirichlet(Multivariate, ExponentialFamily):
    """The Dirichlet distribution on the probabilities of K categories, or an array of them.

    Parameters
    ----------
    alpha : array of shape (..., K)
        α > 0, finite; K >= 2.

    Examples
    --------
    >>> Dirichlet([1.0, 2.0, 5.0]).mean
    array([0.125, 0.25 , 0.625])
    >>> Dirichlet([1.0, 1.0, 1.0]).logpdf([0.2, 0.3, 0.5])
    np.float64(0.6931)
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"alpha": 1}
    _support = "positive with the sum 1"

    def __init__(self, alpha: ArrayLike) -> None:
        self._store(alpha=alpha)
        require_positive(self, alpha=self.alpha)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood.

        Parameters
        ----------
        x : array of shape (n, ..., K)
            Probability vectors without zeros, along the first axis.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights, rank=1)
        require_support(cls, x, np.all(x > 0.0, axis=-1) & _sums_to_one(x))
        return cls.from_mean_statistic(weighted_mean(np.log(x), w))

    alpha = Parameter("The concentrations α.")

    @property
    def total(self) -> Array:
        """The sum A of the concentrations."""
        return self.alpha.sum(axis=-1)

    @property
    def mean(self) -> Array:
        """The mean α/A."""
        return self.alpha / self.total[..., None]

    @property
    def covariance(self) -> Array:
        """The covariance (diag(m) - mmᵀ)/(A + 1) for the mean m."""
        m = self.mean
        spread = m[..., None] * np.eye(m.shape[-1]) - m[..., :, None] * m[..., None, :]
        return spread / (self.total + 1.0)[..., None, None]

    @property
    def variance(self) -> Array:
        """The variance m(1 - m)/(A + 1) of each entry."""
        m = self.mean
        return m * (1.0 - m) / (self.total + 1.0)[..., None]

    @property
    def mode(self) -> Array:
        """The mode (α - 1)/(A - K); NaN unless every α > 1."""
        excess = self.alpha - 1.0
        inside = np.all(excess > 0.0, axis=-1, keepdims=True)
        return np.where(inside, excess / np.where(inside, excess.sum(axis=-1, keepdims=True), 1.0), np.nan)

    def _entropy_in_nats(self) -> Array:
        a = self.alpha
        total = self.total
        return (
            self.log_partition
            + (total - a.shape[-1]) * digamma(total)
            - np.sum((a - 1.0) * digamma(a), axis=-1)
        )  # fmt: skip

    def logpdf(self, x: ArrayLike) -> Array:
        """Return log Γ(A) - Σ log Γ(α_k) + Σ (α_k - 1) log x_k; -inf if x is no probability vector."""
        x = np.asarray(x, dtype=np.float64)
        inside = np.all(x >= 0.0, axis=-1) & _sums_to_one(x)
        return inside_or(inside, log_dirichlet_density(x, self.alpha), x.sum(axis=-1))

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw probability vectors, of shape `size`, then the batch's, then (K,)."""
        rng = np.random.default_rng(random_state)
        shape = (*self._sample_shape(size), self.alpha.shape[-1])
        # Γ(α) = Γ(α + 1) U^(1/α), in logarithms: draws with α = 1e-3 would all underflow to zero.
        log_draws = np.log(rng.standard_gamma(self.alpha + 1.0, shape)) + np.log1p(-rng.random(shape)) / self.alpha
        draws = np.exp(log_draws - log_draws.max(axis=-1, keepdims=True))
        return draws / draws.sum(axis=-1, keepdims=True)

    def marginal(self, k: int) -> tuple[Array, Array]:
        """Return the parameters (α_k, A - α_k) of the Beta distribution of one entry."""
        rest = np.delete(self.alpha, k, axis=-1)
        return self.alpha[..., k], rest.sum(axis=-1)

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = α - 1."""
        return self.alpha - 1.0

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = Σ log Γ(α_k) - log Γ(Σα)."""
        return gammaln(self.alpha).sum(axis=-1) - gammaln(self.total)

    @property
    def mean_statistic(self) -> Array:
        """The mean ψ(α_k) - ψ(A) of log x_k."""
        mean: Array = digamma(self.alpha) - digamma(self.total)[..., None]
        return mean

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x) = log x."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.asarray(x, dtype=np.float64))

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = 0 for a probability vector."""
        x = np.asarray(x, dtype=np.float64)
        return np.where(np.all(x >= 0.0, axis=-1) & _sums_to_one(x), 0.0, -np.inf)[()]

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = α - 1."""
        return cls(np.asarray(natural_parameter, dtype=np.float64) + 1.0)

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the mean logarithms E log x_k, by Newton's method."""
        return cls(solve_dirichlet(np.asarray(mean_statistic, dtype=np.float64)))


def _sums_to_one(x: Array) -> Array:
    return np.abs(x.sum(axis=-1) - 1.0) <= _SUM_TOLERANCE


# The Beta distribution: of one probability.
#
# $$ p(x) = \frac{\Gamma(a + b)}{\Gamma(a)\Gamma(b)}\, x^{a-1} (1 - x)^{b-1}, \qquad 0 \le x \le 1 $$
#
# It is the Dirichlet distribution of two categories. As an exponential family: $t(x) = (\log x, \log(1 - x))$,
# $\eta = (a - 1, b - 1)$, $h = 1$ and $A = \log\Gamma(a) + \log\Gamma(b) - \log\Gamma(a + b)$.


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

    a = Parameter("The concentration a at 1.")

    b = Parameter("The concentration b at 0.")

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
        a = self.a
        b = self.b
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
