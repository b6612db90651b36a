r"""The Gamma distribution, and that of its reciprocal.

$$ p(x) = \frac{\beta^\alpha}{\Gamma(\alpha)}\, x^{\alpha-1} e^{-\beta x}, \qquad
   p(y) = \frac{\beta^\alpha}{\Gamma(\alpha)}\, y^{-\alpha-1} e^{-\beta/y} \quad (y = 1/x). $$

As exponential families: $t(x) = (\log x, x)$ with $\eta = (\alpha - 1, -\beta)$, and $t(y) = (\log y, 1/y)$ with
$\eta = (-\alpha - 1, -\beta)$; $A = \log\Gamma(\alpha) - \alpha\log\beta$ and $h = 1$ for both.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln

from ..core.errors import DataError
from .base import (
    Array,
    ExponentialFamily,
    Parameter,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require_positive,
    require_support,
    weighted_mean,
)
from .saddle import deviance, inside_or, log_gamma_density, solve_log_minus_digamma


class _GammaLike(Univariate, ExponentialFamily):
    """What the Gamma distribution and that of its reciprocal share."""

    _support = "> 0"

    def __init__(self, shape: ArrayLike, rate: ArrayLike = 1.0) -> None:
        self._store(shape=shape, rate=rate)
        require_positive(self, shape=self.shape, rate=self.rate)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood.

        Parameters
        ----------
        x : array of shape (n, ...)
            Positive samples along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights)
        require_support(cls, x, x > 0.0)
        if np.any(np.ptp(x, axis=0) == 0.0):
            raise DataError(
                f"{cls.__name__}: fit_mle needs two distinct values of positive weight, got a constant: "
                "its likelihood grows without bound."
            )
        linear = cls._linear_part(x)
        scale = weighted_mean(linear, w)
        # log E r - E log r for the linear part r, as a mean of squares in effect, which keeps its digits.
        gap = weighted_mean(deviance(scale, linear) / scale, w)
        shape = solve_log_minus_digamma(gap)
        return cls(shape, shape / scale)

    @staticmethod
    def _linear_part(x: Array) -> Array:
        """Return the entry of t(x) that multiplies -β."""
        raise NotImplementedError

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = log Γ(α) - α log β."""
        return gammaln(self.shape) - self.shape * np.log(self.rate)

    shape = Parameter("The shape α.")

    rate = Parameter("The rate β.")

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x): log x, and x or its reciprocal, along a new last axis."""
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(x), self._linear_part(x)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = 0 for x > 0."""
        return np.where(np.asarray(x, dtype=np.float64) > 0.0, 0.0, -np.inf)[()]

    def _kl(self, other: _GammaLike) -> Array:
        # Of Gamma distributions; a divergence does not change under x -> 1/x.
        a = self.shape
        b = other.shape
        ratio = other.rate / self.rate
        gap = (a - b) * digamma(a) - gammaln(a) + gammaln(b)
        change = (self.rate - other.rate) / other.rate  # b log(β/β') + a(β'/β - 1)
        return np.maximum(gap + b * np.log1p(change) + a * (ratio - 1.0), 0.0)


class Gamma(_GammaLike):
    """The Gamma distribution of positive numbers, or an array of them.

    Parameters
    ----------
    shape : float or array
        α > 0, finite.
    rate : float or array
        β > 0, finite. (The reciprocal of SciPy's scale.)

    Examples
    --------
    >>> Gamma(shape=3.0, rate=2.0).mean
    np.float64(1.5)
    >>> Gamma.fit_mle([0.5, 1.0, 1.5, 3.0])
    Gamma(shape=2.6210, rate=1.7473)
    """

    @staticmethod
    def _linear_part(x: Array) -> Array:
        return x

    @property
    def mean(self) -> Array:
        """The mean α/β."""
        return self.shape / self.rate

    @property
    def variance(self) -> Array:
        """The variance α/β²."""
        return self.shape / self.rate / self.rate

    @property
    def mode(self) -> Array:
        """The mode (α - 1)/β; 0 for α <= 1."""
        return np.maximum(self.shape - 1.0, 0.0) / self.rate

    def _entropy_in_nats(self) -> Array:
        a = self.shape
        return a + gammaln(a) + (1.0 - a) * digamma(a) - np.log(self.rate)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return α log β + (α - 1) log x - βx - log Γ(α); -inf for x < 0."""
        x = np.asarray(x, dtype=np.float64)
        return log_gamma_density(x, self.shape, self.rate)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the regularised incomplete Gamma function P(α, βx)."""
        probability: Array = gammainc(self.shape, self.rate * np.maximum(np.asarray(x, dtype=np.float64), 0.0))
        return probability

    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p."""
        x: Array = gammaincinv(self.shape, self._as_probabilities(p)) / self.rate
        return x

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        return np.random.default_rng(random_state).standard_gamma(self.shape, self._sample_shape(size)) / self.rate

    @property
    def natural_parameter(self) -> Array:
        """The pair η = (α - 1, -β) along the last axis."""
        return np.stack([self.shape - 1.0, -self.rate], axis=-1)

    @property
    def mean_statistic(self) -> Array:
        """The mean (ψ(α) - log β, α/β) of t(x) = (log x, x)."""
        return np.stack([digamma(self.shape) - np.log(self.rate), self.mean], axis=-1)

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = (α - 1, -β)."""
        eta = np.asarray(natural_parameter, dtype=np.float64)
        return cls(eta[..., 0] + 1.0, -eta[..., 1])

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the means (E log x, E x)."""
        shape, scale = _solve_from_means(cls, mean_statistic, sign=1.0)
        return cls(shape, shape / scale)


class InverseGamma(_GammaLike):
    """The distribution of 1/x for a Gamma distributed x: the conjugate prior of a variance.

    Parameters
    ----------
    shape : float or array
        α > 0, finite.
    rate : float or array
        β > 0, finite. (SciPy calls it the scale: y/β has rate 1.)

    Examples
    --------
    >>> InverseGamma(shape=3.0, rate=2.0).mean
    np.float64(1.0)
    >>> InverseGamma(shape=3.0, rate=2.0).mode
    np.float64(0.5)
    """

    @staticmethod
    def _linear_part(x: Array) -> Array:
        return 1.0 / x

    @property
    def mean(self) -> Array:
        """The mean β/(α - 1); inf for α <= 1."""
        excess = np.where(self.shape > 1.0, self.shape - 1.0, 1.0)
        return np.where(self.shape > 1.0, self.rate / excess, np.inf)[()]

    @property
    def variance(self) -> Array:
        """The variance β²/((α - 1)²(α - 2)); inf for α <= 2."""
        a = np.where(self.shape > 2.0, self.shape, 3.0)
        return np.where(self.shape > 2.0, np.square(self.rate / (a - 1.0)) / (a - 2.0), np.inf)[()]

    @property
    def mode(self) -> Array:
        """The mode β/(α + 1)."""
        return self.rate / (self.shape + 1.0)

    def _entropy_in_nats(self) -> Array:
        a = self.shape
        return a + gammaln(a) - (1.0 + a) * digamma(a) + np.log(self.rate)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return α log β - (α + 1) log x - β/x - log Γ(α); -inf for x <= 0."""
        x = np.asarray(x, dtype=np.float64)
        positive = np.where(x > 0.0, x, 1.0)
        value = log_gamma_density(1.0 / positive, self.shape, self.rate) - 2.0 * np.log(positive)
        return inside_or(x > 0.0, value, x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the regularised incomplete Gamma function Q(α, β/x)."""
        x = np.asarray(x, dtype=np.float64)
        positive = np.where(x > 0.0, x, 1.0)
        return inside_or(x > 0.0, gammaincc(self.shape, self.rate / positive), x, outside=0.0)

    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p."""
        with np.errstate(divide="ignore"):
            x: Array = self.rate / gammainccinv(self.shape, self._as_probabilities(p))
        return x

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        return self.rate / np.random.default_rng(random_state).standard_gamma(self.shape, self._sample_shape(size))

    @property
    def natural_parameter(self) -> Array:
        """The pair η = (-α - 1, -β) along the last axis."""
        return np.stack([-self.shape - 1.0, -self.rate], axis=-1)

    @property
    def mean_statistic(self) -> Array:
        """The mean (log β - ψ(α), α/β) of t(x) = (log x, 1/x)."""
        return np.stack([np.log(self.rate) - digamma(self.shape), self.shape / self.rate], axis=-1)

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = (-α - 1, -β)."""
        eta = np.asarray(natural_parameter, dtype=np.float64)
        return cls(-eta[..., 0] - 1.0, -eta[..., 1])

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the means (E log x, E 1/x)."""
        shape, scale = _solve_from_means(cls, mean_statistic, sign=-1.0)
        return cls(shape, shape / scale)


def _solve_from_means(cls: type[_GammaLike], mean_statistic: ArrayLike, sign: float) -> tuple[Array, Array]:
    """Return α and the mean of the linear part, for a mean logarithm whose sign is that of x or of 1/x."""
    mean_log, scale = np.moveaxis(np.asarray(mean_statistic, dtype=np.float64), -1, 0)
    gap = np.log(scale) - sign * mean_log
    if not np.all(gap > 0.0):
        raise DataError(f"{cls.__name__}: the means are those of a constant; there must be two distinct values.")
    return solve_log_minus_digamma(gap), scale
