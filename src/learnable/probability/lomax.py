r"""The Lomax distribution: of waiting times whose rate has a Gamma distribution (Pareto's second kind).

$$ p(x) = \frac\alpha\beta \Bigl(1 + \frac x\beta\Bigr)^{-\alpha-1}, \qquad x \ge 0 $$

The predictive distribution of exponential waiting times; not an exponential family.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .base import Array, RandomState, Size, Univariate, require_positive
from .quadrature import kl_by_quadrature
from .saddle import inside_or


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

    @property
    def shape(self) -> Array:
        """The shape α."""
        return self._parameters["shape"]

    @property
    def scale(self) -> Array:
        """The scale β."""
        return self._parameters["scale"]

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
