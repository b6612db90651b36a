r"""Gamma prior of a rate, for counts and for waiting times.

$$ \lambda \sim \mathrm{Ga}(\alpha, \beta): \qquad x_i \sim \mathrm{Poisson}(\lambda) \Rightarrow
   \mathrm{Ga}\bigl(\alpha + \textstyle\sum_i x_i, \beta + n\bigr), \qquad
   x_i \sim \mathrm{Exp}(\lambda) \Rightarrow \mathrm{Ga}\bigl(\alpha + n, \beta + \textstyle\sum_i x_i\bigr). $$

The next count is negative binomial, the next waiting time has the Lomax distribution.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError
from ..base import Array, Parameter, RandomState, Size, require_positive
from ..exponential import Exponential, Lomax
from ..gamma import Gamma
from ..poisson import NegativeBinomial, Poisson
from ..saddle import is_count
from .base import Conjugate, no_mode, refuse


class _GammaRate(Conjugate):
    """What the two priors of a rate share."""

    _unknown = ("rate",)

    def __init__(self, shape: ArrayLike = 1.0, rate: ArrayLike = 1.0) -> None:
        self._store(shape=shape, rate=rate)
        require_positive(self, shape=self.shape, rate=self.rate)

    shape = Parameter("The shape α of the rate's distribution.")

    rate = Parameter("The rate β of the rate's distribution.")

    def _at(self, rate: Array) -> Any:
        """Return the member of the family with a rate."""
        raise NotImplementedError

    def _member(self) -> Any:
        return self._at(self.shape / self.rate)

    def marginal(self, name: str | None = None) -> Gamma:
        """Return the Gamma distribution of the rate."""
        self._name(name)
        return Gamma(self.shape, self.rate)

    def logpdf(self, member: Any) -> Array:
        """Return the log-density of the rate of a member of the family."""
        return self.marginal().logpdf(member.rate)

    def map(self) -> Any:
        """Return the member with the most probable rate (α - 1)/β, for α > 1."""
        if not np.all(self.shape > 1.0):
            raise no_mode(self, "shape > 1")
        return self._at((self.shape - 1.0) / self.rate)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Any:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        # A draw at a tiny shape may underflow to zero, which is no rate of an Exponential distribution.
        return self._at(np.maximum(self.marginal().sample(size, random_state), np.finfo(float).tiny))


class GammaPoisson(_GammaRate):
    """A Gamma prior of the rate of counts; or an array of them.

    Parameters
    ----------
    shape : float or array
        α > 0: the prior's sum of counts.
    rate : float or array
        β > 0: the number of observations that they stand for.

    Examples
    --------
    >>> posterior = GammaPoisson(shape=2.0, rate=1.0).update([3, 0, 4])
    >>> posterior
    GammaPoisson(shape=9.0, rate=4.0)
    >>> posterior.predictive().mean
    np.float64(2.25)
    """

    def _absorb(self, weight: Array, total: Array) -> Self:
        if np.any(total < 0.0):
            raise DataError(f"{type(self).__name__}: statistics must be sums of counts >= 0, got {total!s}.")
        return type(self)(self.shape + total[..., 0], self.rate + weight)

    def _require_support(self, x: Array) -> None:
        refuse(self, x, is_count(x), "whole numbers >= 0")

    def _at(self, rate: Array) -> Poisson:
        return Poisson(rate)

    def predictive(self) -> NegativeBinomial:
        """Return the negative binomial distribution of the next count."""
        return NegativeBinomial(self.shape, self.rate / (self.rate + 1.0))


class GammaExponential(_GammaRate):
    """A Gamma prior of the rate of waiting times; or an array of them.

    Parameters
    ----------
    shape : float or array
        α > 0: the prior's number of events.
    rate : float or array
        β > 0: the time that they stand for.

    Examples
    --------
    >>> posterior = GammaExponential(shape=2.0, rate=1.0).update([0.5, 1.5])
    >>> posterior
    GammaExponential(shape=4.0, rate=3.0)
    >>> posterior.predictive().cdf(1.0)
    np.float64(0.6836)
    """

    def _absorb(self, weight: Array, total: Array) -> Self:
        if np.any(total < 0.0):
            raise DataError(f"{type(self).__name__}: statistics must be sums of times >= 0, got {total!s}.")
        return type(self)(self.shape + weight, self.rate + total[..., 0])

    def _require_support(self, x: Array) -> None:
        refuse(self, x, x >= 0.0, ">= 0")

    def _at(self, rate: Array) -> Exponential:
        return Exponential(rate)

    def predictive(self) -> Lomax:
        """Return the Lomax distribution of the next waiting time."""
        return Lomax(self.shape, self.rate)
