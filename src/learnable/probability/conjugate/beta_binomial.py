r"""Beta prior of a probability, and numbers of successes.

$$ p \sim \mathrm{Beta}(a, b), \quad x_i \mid p \sim \mathrm{Bin}(n, p) \quad\Longrightarrow\quad
   p \mid x \sim \mathrm{Beta}\bigl(a + \textstyle\sum_i x_i,\; b + \sum_i (n - x_i)\bigr). $$

The next number of successes is 1 with probability a/(a + b) if n = 1, and Beta–binomial in general.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError
from ..base import Array, RandomState, Size, require_positive
from ..beta import Beta
from ..binomial import Bernoulli, Binomial
from ..compound import BetaBinomialCount
from ..counting import is_count, require_count
from .base import Conjugate, no_mode, refuse

_ROUNDING = 2.0**-53


class BetaBinomial(Conjugate):
    """A Beta prior of the probability of success, for numbers of successes in n trials; or an array of them.

    Parameters
    ----------
    a : float or array
        Successes seen in advance, as it were; > 0. a = b = 1 is flat, a = b = ½ is Jeffreys' prior.
    b : float or array
        Failures seen in advance; > 0.
    n : float or array
        The trials behind each observation, known; 1 for zeros and ones.

    Examples
    --------
    >>> posterior = BetaBinomial(a=1.0, b=1.0).update([1, 1, 0, 1])
    >>> posterior
    BetaBinomial(a=4.0, b=2.0, n=1.0)
    >>> posterior.predictive()
    Bernoulli(p=0.6667)
    >>> posterior.interval(0.9)
    (np.float64(0.3426), np.float64(0.9236))
    """

    _unknown = ("p",)

    def __init__(self, a: ArrayLike = 1.0, b: ArrayLike = 1.0, n: ArrayLike = 1.0) -> None:
        self._store(a=a, b=b, n=n)
        require_positive(self, a=self.a, b=self.b)
        require_count(self, "n", self.n)

    @property
    def a(self) -> Array:
        """The concentration a at success."""
        return self._parameters["a"]

    @property
    def b(self) -> Array:
        """The concentration b at failure."""
        return self._parameters["b"]

    @property
    def n(self) -> Array:
        """The number of trials behind an observation."""
        return self._parameters["n"]

    def _absorb(self, weight: Array, total: Array) -> Self:
        successes = total[..., 0]
        failures = self.n * weight - successes
        if np.any(successes < 0.0) or np.any(failures < -1e-12 * self.n * weight):
            raise DataError(
                f"{type(self).__name__}: statistics must have a sum between 0 and n times the weight, got "
                f"{successes!s} with {self.n * weight!s} trials."
            )
        return type(self)(self.a + successes, self.b + np.maximum(failures, 0.0), self.n)

    def _require_support(self, x: Array) -> None:
        rule = "0 or 1" if np.all(self.n == 1.0) else "whole numbers from 0 to n"
        refuse(self, x, is_count(x) & (x <= self.n), rule)

    def _member(self) -> Any:
        # p and 1 - p must both be above zero, as floats.
        return self._at(np.clip(self.marginal().mean, _ROUNDING, 1.0 - _ROUNDING))

    def _at(self, p: Array) -> Any:
        return Bernoulli(p) if np.all(self.n == 1.0) else Binomial(self.n, p)

    def marginal(self, name: str | None = None) -> Beta:
        """Return the Beta distribution of p."""
        self._name(name)
        return Beta(self.a, self.b)

    def logpdf(self, member: Any) -> Array:
        """Return the log-density of p at a `Bernoulli` or `Binomial` distribution."""
        return self.marginal().logpdf(member.p)

    def predictive(self, n: ArrayLike | None = None) -> Any:
        """Return the distribution of the next number of successes, in as many trials or in another number of them."""
        n = self.n if n is None else np.asarray(n, dtype=np.float64)
        if np.all(n == 1.0):
            return Bernoulli(self.marginal().mean)
        return BetaBinomialCount(n, self.a, self.b)

    def map(self) -> Any:
        """Return the member with p = (a - 1)/(a + b - 2); its p may be 0 or 1 where b or a is not 1."""
        inside = (self.a >= 1.0) & (self.b >= 1.0) & (self.a + self.b > 2.0)
        if not np.all(inside):
            raise no_mode(self, "a >= 1 and b >= 1, not both equal to 1")
        return self._at((self.a - 1.0) / (self.a + self.b - 2.0))

    def sample(self, size: Size = (), random_state: RandomState = None) -> Any:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        return self._at(self.marginal().sample(size, random_state))
