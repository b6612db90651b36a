r"""The Laplace distribution.

$$ p(x) = \frac{1}{2b} \exp\Bigl(-\frac{|x - m|}{b}\Bigr) $$

Its median has the greatest likelihood, which no sum over the data of fixed size determines: as a family in m and b
it is
not an exponential family.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import DataError
from .base import (
    Array,
    Parameter,
    RandomState,
    Size,
    Univariate,
    check_sample,
    require,
    require_positive,
    weighted_mean,
)

_LOG_2 = math.log(2.0)


class Laplace(Univariate):
    """The Laplace distribution, two exponential tails back to back; or an array of them.

    Parameters
    ----------
    loc : float or array
        The median m, finite.
    scale : float or array
        b > 0, finite: the mean absolute deviation.

    Examples
    --------
    >>> Laplace(loc=1.0, scale=2.0).variance
    np.float64(8.0)
    >>> Laplace.fit_mle([1.0, 2.0, 6.0])
    Laplace(loc=2.0, scale=1.6667)
    """

    def __init__(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0) -> None:
        self._store(loc=loc, scale=scale)
        require(self, "loc", self.loc, np.isfinite(self.loc), "finite")
        require_positive(self, scale=self.scale)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood: the median, and the mean distance from it.

        Parameters
        ----------
        x : array of shape (n, ...)
            Samples along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        """
        x, w = check_sample(cls, x, weights)
        loc = weighted_median(x, w)
        scale = weighted_mean(np.abs(x - loc), w)
        if not np.all(scale > 0.0):
            raise DataError(
                f"{cls.__name__}: fit_mle needs two distinct values of positive weight, got a constant: "
                "its likelihood grows without bound as scale falls to 0."
            )
        return cls(loc, scale)

    loc = Parameter("The median m.")

    scale = Parameter("The mean absolute deviation b.")

    @property
    def mean(self) -> Array:
        """The mean m."""
        return self.loc

    @property
    def mode(self) -> Array:
        """The mode m."""
        return self.loc

    @property
    def variance(self) -> Array:
        """The variance 2b²."""
        return 2.0 * np.square(self.scale)

    @property
    def std(self) -> Array:
        """The standard deviation √2 b."""
        return math.sqrt(2.0) * self.scale

    def _entropy_in_nats(self) -> Array:
        return 1.0 + _LOG_2 + np.log(self.scale)

    def _kl(self, other: Laplace) -> Array:
        # With r = b/b' and z = |m - m'|/b: r(e^-z + z) - 1 - log r; r ≈ 1 and z ≈ 0 keep their digits.
        excess = (self.scale - other.scale) / other.scale
        z = np.abs(self.loc - other.loc) / self.scale
        return excess - np.log1p(excess) + (1.0 + excess) * (np.expm1(-z) + z)

    def _standardize(self, x: ArrayLike) -> Array:
        z: Array = (np.asarray(x, dtype=np.float64) - self.loc) / self.scale
        return z

    def logpdf(self, x: ArrayLike) -> Array:
        """Return -|x - m|/b - log 2b."""
        return -np.abs(self._standardize(x)) - np.log(self.scale) - _LOG_2

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of at most x, accurate in the lower tail; the upper tail is cdf(2m - x)."""
        z = self._standardize(x)
        tail = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0.0, tail, 1.0 - tail)[()]

    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p."""
        p = self._as_probabilities(p)
        with np.errstate(divide="ignore"):
            z = np.log(2.0 * np.minimum(p, 1.0 - p))  # 1 - p is exact for p >= ½
        return self.loc + self.scale * np.where(p < 0.5, z, -z)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        return np.random.default_rng(random_state).laplace(self.loc, self.scale, self._sample_shape(size))


def weighted_median(x: Array, weights: Array) -> Array:
    """Return the median over the first axis; the middle of two samples that halve the weight exactly."""
    order = np.argsort(x, axis=0, kind="stable")
    x = np.take_along_axis(x, order, axis=0)
    reached = np.cumsum(weights[order], axis=0)
    half = 0.5 * reached[-1]
    lower = np.argmax(reached >= half, axis=0)[None]
    upper = np.argmax(reached > half, axis=0)[None]
    left, right = (np.take_along_axis(x, at, axis=0)[0] for at in (lower, upper))
    return (left + 0.5 * (right - left))[()]
