r"""Gamma prior of the precision, and inverse-Gamma prior of the variance, of normal observations with a known mean.

$$ \tau = \sigma^{-2} \sim \mathrm{Ga}(\alpha, \beta) \iff \sigma^2 \sim \mathrm{IG}(\alpha, \beta), \quad
   x_i \sim N(\mu, \sigma^2) \quad\Longrightarrow\quad \alpha_n = \alpha + \frac n2, \;
   \beta_n = \beta + \frac12 \sum_i (x_i - \mu)^2. $$

The next observation has Student's t distribution with 2α degrees of freedom and the scale $\sqrt{\beta/\alpha}$.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError
from ..base import Array, Parameter, RandomState, Size, require, require_positive
from ..gamma import Gamma, InverseGamma
from ..normal import Normal
from ..student_t import StudentT
from .base import Conjugate, no_mode


class _KnownMean(Conjugate):
    """What the two priors of the scale share."""

    def __init__(self, shape: ArrayLike = 1.0, rate: ArrayLike = 1.0, mean: ArrayLike = 0.0) -> None:
        self._store(shape=shape, rate=rate, mean=mean)
        require_positive(self, shape=self.shape, rate=self.rate)
        require(self, "mean", self.mean, np.isfinite(self.mean), "finite")

    shape = Parameter("The shape α: half the number of observations that the prior is worth.")

    rate = Parameter("The rate β: half the sum of squares that the prior is worth.")

    mean = Parameter("The known mean μ.")

    def _learn(self, x: Array, w: Array) -> Self:
        with np.errstate(over="ignore"):
            return self._grow(np.asarray(w.sum()), np.tensordot(w, np.square(x - self.mean), axes=1))

    def _absorb(self, weight: Array, total: Array) -> Self:
        # Σ(x - μ)² = Σx² - 2μΣx + Wμ².
        square = total[..., 1] + self.mean * (weight * self.mean - 2.0 * total[..., 0])
        if np.any(square < -1e-9 * np.abs(total[..., 1])):
            raise DataError(f"{type(self).__name__}: statistics must have Σx² >= (Σx)²/n, got {total!s}.")
        return self._grow(weight, np.maximum(square, 0.0))

    def _grow(self, weight: Array, square: Array) -> Self:
        return type(self)(self.shape + 0.5 * weight, self.rate + 0.5 * square, self.mean)

    def _member(self) -> Normal:
        return Normal(self.mean, np.sqrt(self.rate / self.shape))

    def predictive(self) -> StudentT:
        """Return Student's t distribution of the next observation."""
        return StudentT(2.0 * self.shape, self.mean, np.sqrt(self.rate / self.shape))

    def sample(self, size: Size = (), random_state: RandomState = None) -> Normal:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        return Normal(self.mean, np.sqrt(InverseGamma(self.shape, self.rate).sample(size, random_state)))


class GammaNormal(_KnownMean):
    """A Gamma prior of the precision of normal observations with a known mean; or an array of them.

    Parameters
    ----------
    shape : float or array
        α > 0: half the number of observations that the prior is worth.
    rate : float or array
        β > 0: half the sum of squares that the prior is worth.
    mean : float or array
        The known mean μ.

    Examples
    --------
    >>> posterior = GammaNormal(shape=1.0, rate=1.0, mean=2.0).update([1.0, 2.0, 5.0])
    >>> posterior.marginal()
    Gamma(shape=2.5, rate=6.0)
    >>> posterior.predictive()
    StudentT(df=5.0, loc=2.0, scale=1.5492)
    """

    _unknown = ("precision",)

    def marginal(self, name: str | None = None) -> Any:
        """Return the Gamma distribution of the precision."""
        self._name(name)
        return Gamma(self.shape, self.rate)

    def logpdf(self, member: Normal) -> Array:
        """Return the log-density of the precision of a normal distribution."""
        return self.marginal().logpdf(1.0 / member.variance)

    def map(self) -> Normal:
        """Return the member with the most probable precision (α - 1)/β, for α > 1."""
        if not np.all(self.shape > 1.0):
            raise no_mode(self, "shape > 1")
        return Normal(self.mean, np.sqrt(self.rate / (self.shape - 1.0)))


class InverseGammaNormal(_KnownMean):
    """An inverse-Gamma prior of the variance of normal observations with a known mean; or an array of them.

    Parameters
    ----------
    shape : float or array
        α > 0: half the number of observations that the prior is worth.
    rate : float or array
        β > 0: half the sum of squares that the prior is worth.
    mean : float or array
        The known mean μ.

    Examples
    --------
    >>> posterior = InverseGammaNormal(shape=1.0, rate=1.0, mean=2.0).update([1.0, 2.0, 5.0])
    >>> posterior.marginal().mean
    np.float64(4.0)
    >>> posterior.map().variance
    np.float64(1.7143)
    """

    _unknown = ("variance",)

    def marginal(self, name: str | None = None) -> Any:
        """Return the inverse-Gamma distribution of the variance."""
        self._name(name)
        return InverseGamma(self.shape, self.rate)

    def logpdf(self, member: Normal) -> Array:
        """Return the log-density of the variance of a normal distribution."""
        return self.marginal().logpdf(member.variance)

    def map(self) -> Normal:
        """Return the member with the most probable variance β/(α + 1)."""
        return Normal(self.mean, np.sqrt(self.rate / (self.shape + 1.0)))
