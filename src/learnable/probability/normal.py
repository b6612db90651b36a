r"""The normal distribution.

$$ p(x) = \frac{1}{\sqrt{2\pi}\,\sigma} \exp\Bigl(-\frac{(x - \mu)^2}{2\sigma^2}\Bigr) $$

As an exponential family: $t(x) = (x, x^2)$, $\eta = (\mu/\sigma^2, -1/(2\sigma^2))$, $h = (2\pi)^{-1/2}$ and
$A = \mu^2/(2\sigma^2) + \log\sigma$.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from ..core.errors import DataError
from .base import (
    Array,
    ExponentialFamily,
    Parameter,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require,
    require_positive,
    weighted_mean,
)

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class Normal(Univariate, ExponentialFamily):
    """The normal distribution N(μ, σ²), or an array of them.

    Parameters
    ----------
    mean : float or array
        μ, finite.
    std : float or array
        σ > 0, finite. (The standard deviation, not the variance.)

    Examples
    --------
    >>> Normal(mean=1.0, std=2.0).interval(0.95)
    (np.float64(-2.9199), np.float64(4.9199))
    >>> Normal.fit_mle([1.0, 2.0, 3.0, 6.0])
    Normal(mean=3.0, std=1.8708)
    """

    def __init__(self, mean: ArrayLike = 0.0, std: ArrayLike = 1.0) -> None:
        self._store(mean=mean, std=std)
        require(self, "mean", self.mean, np.isfinite(self.mean), "finite")
        require_positive(self, std=self.std)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the normal distribution of greatest likelihood: mean and standard deviation, divisor n.

        Parameters
        ----------
        x : array of shape (n, ...)
            Samples along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights)
        mean = weighted_mean(x, w)
        spread = np.ptp(x, axis=0)
        if np.any(spread == 0.0):
            raise DataError(
                f"{cls.__name__}: fit_mle needs two distinct values of positive weight, got a constant: "
                "its likelihood grows without bound as std falls to 0."
            )
        # Dividing by the spread keeps the squares of very large and very small deviations within the floats.
        std = spread * np.sqrt(weighted_mean(np.square((x - mean) / spread), w))
        return cls(mean, std)

    mean = Parameter("The mean μ.")

    std = Parameter("The standard deviation σ.")

    @property
    def variance(self) -> Array:
        """The variance σ²."""
        return np.square(self.std)

    def _entropy_in_nats(self) -> Array:
        return 0.5 + _HALF_LOG_2PI + np.log(self.std)

    def _kl(self, other: Normal) -> Array:
        # With r = σ_p/σ_q: ½(r² - 1 - log r² + ((μ_p - μ_q)/σ_q)²); r near 1 keeps its digits.
        excess = (self.std - other.std) / other.std
        spread = excess * (1.0 + 0.5 * excess) - np.log1p(excess)
        return spread + 0.5 * np.square((self.mean - other.mean) / other.std)

    def _standardize(self, x: ArrayLike) -> Array:
        z: Array = (np.asarray(x, dtype=np.float64) - self.mean) / self.std
        return z

    @np.errstate(over="ignore")
    def logpdf(self, x: ArrayLike) -> Array:
        """Return -½((x - μ)/σ)² - log σ - ½ log 2π."""
        return -0.5 * np.square(self._standardize(x)) - np.log(self.std) - _HALF_LOG_2PI

    def cdf(self, x: ArrayLike) -> Array:
        """Return Φ((x - μ)/σ), accurate in the lower tail; the upper tail is 1 - cdf(x) = cdf(2μ - x)."""
        probability: Array = ndtr(self._standardize(x))
        return probability

    def logcdf(self, x: ArrayLike) -> Array:
        """Return log Φ((x - μ)/σ), where the probability itself would underflow too."""
        log_probability: Array = log_ndtr(self._standardize(x))
        return log_probability

    def quantile(self, p: ArrayLike) -> Array:
        """Return μ + σ Φ⁻¹(p)."""
        x: Array = self.mean + self.std * ndtri(self._as_probabilities(p))
        return x

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return μ ± σ Φ⁻¹((1 + level)/2)."""
        half_width = -self.std * ndtri(self._tail_probability(level))  # the lower tail keeps its digits
        return self.mean - half_width, self.mean + half_width

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the distribution."""
        standard = np.random.default_rng(random_state).standard_normal(self._sample_shape(size))
        return self.mean + self.std * standard

    @property
    def natural_parameter(self) -> Array:
        """The pair η = (μ/σ², -1/(2σ²)) along the last axis."""
        precision = 1.0 / self.variance
        return np.stack([self.mean * precision, -0.5 * precision], axis=-1)

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = μ²/(2σ²) + log σ."""
        return 0.5 * np.square(self.mean / self.std) + np.log(self.std)

    @property
    def mean_statistic(self) -> Array:
        """The mean (μ, μ² + σ²) of t(x)."""
        return np.stack([self.mean, np.square(self.mean) + self.variance], axis=-1)

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x) = (x, x²) along a new last axis."""
        x = np.asarray(x, dtype=np.float64)
        return np.stack([x, np.square(x)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = -½ log 2π, whatever x."""
        return np.full(np.shape(x), -_HALF_LOG_2PI)[()]

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with η = (μ/σ², -1/(2σ²))."""
        eta = np.asarray(natural_parameter, dtype=np.float64)
        variance = -0.5 / eta[..., 1]
        return cls(eta[..., 0] * variance, np.sqrt(variance))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member with the means (E x, E x²); the variance is their difference, and loses its digits.

        Where the mean is far larger than the spread, `fit_mle` on the data keeps what this cannot.
        """
        first, second = np.moveaxis(np.asarray(mean_statistic, dtype=np.float64), -1, 0)
        variance = second - np.square(first)
        if not np.all(variance > 0.0):
            raise DataError(
                f"{cls.__name__}: the mean of x² must be above the square of the mean of x, got {second!s}."
            )
        return cls(first, np.sqrt(variance))
