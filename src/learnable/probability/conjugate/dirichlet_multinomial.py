r"""Dirichlet prior of the probabilities of K categories, and counts of them.

$$ p \sim \mathrm{Dir}(\alpha), \quad x \mid p \sim \mathrm{Mult}(n, p) \quad\Longrightarrow\quad
   p \mid x \sim \mathrm{Dir}(\alpha + x). $$

The next category is k with probability $\alpha_k/\sum_j \alpha_j$: a prior with equal α is additive smoothing.
Where the observations are codes 0, …, K - 1 instead of vectors of counts, it is the Dirichlet–categorical pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DataError
from ..base import Array, Parameter, RandomState, Size, require_positive
from ..binomial import Bernoulli, Binomial
from ..categorical import Categorical, Multinomial
from ..compound import BetaBinomialCount, DirichletMultinomialCounts
from ..dirichlet import Beta, Dirichlet
from ..saddle import is_count, require_count
from .base import Conjugate, no_mode, refuse

_LEAST = 1e-300


class _DirichletPair(Conjugate):
    """What the two Dirichlet pairs share."""

    _event_ranks: ClassVar[Mapping[str, int]] = {"alpha": 1}
    _unknown = ("p",)

    def __init__(self, alpha: ArrayLike) -> None:
        self._store(alpha=alpha)
        require_positive(self, alpha=self.alpha)

    alpha = Parameter("The concentrations α.")

    @property
    def n_categories(self) -> int:
        """The number K of categories."""
        return int(self.alpha.shape[-1])

    def _absorb(self, weight: Array, total: Array) -> Self:
        if np.any(total < 0.0):
            raise DataError(f"{type(self).__name__}: statistics must be counts >= 0, got {float(np.min(total))!r}.")
        return type(self)(self.alpha + total)

    def marginal(self, name: str | None = None) -> Dirichlet:
        """Return the Dirichlet distribution of p."""
        self._name(name)
        return Dirichlet(self.alpha)

    def logpdf(self, member: Any) -> Array:
        """Return the log-density of p at a member of the family."""
        return self.marginal().logpdf(member.p)

    def _centre(self) -> Array:
        p = np.maximum(self.marginal().mean, _LEAST)
        return p / p.sum(axis=-1, keepdims=True)

    def _mode(self) -> Array:
        excess = self.alpha - 1.0
        if np.any(excess < 0.0) or not np.all(excess.sum(axis=-1) > 0.0):
            raise no_mode(self, "every alpha >= 1, not all equal to 1")
        return excess / excess.sum(axis=-1, keepdims=True)

    def _interval_of(self, name: str, level: float) -> tuple[Array, Array]:
        # Each entry of p has a Beta distribution.
        total = self.alpha.sum(axis=-1, keepdims=True)
        rest = np.maximum(total - self.alpha, np.finfo(float).tiny)
        return Beta(self.alpha, rest).interval(level)


class DirichletMultinomial(_DirichletPair):
    """A Dirichlet prior of the probabilities of K categories, for vectors of counts; or an array of them.

    Parameters
    ----------
    alpha : array of shape (..., K)
        Pseudo-count of each category, > 0; 1 is flat.

    Examples
    --------
    >>> posterior = DirichletMultinomial([1.0, 1.0, 1.0]).update([[3, 0, 1], [2, 1, 0]])
    >>> posterior.alpha
    array([6., 2., 2.])
    >>> posterior.map()
    Multinomial(n=1.0, p=[0.7143, 0.1429, 0.1429])
    >>> posterior.predictive(n=2).pmf([2, 0, 0])
    np.float64(0.3818)
    """

    _rank = 1

    def _require_support(self, x: Array) -> None:
        if x.shape[-1] != self.n_categories:
            raise DataError(
                f"{type(self).__name__}: an observation must have {self.n_categories} counts, got {x.shape[-1]}."
            )
        refuse(self, x, is_count(x), "vectors of whole numbers >= 0")

    def _learn(self, x: Array, w: Array) -> Self:
        return self._absorb(np.asarray(w.sum()), np.tensordot(w, x, axes=1))

    def log_marginal_likelihood(self, data: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Return the log-evidence of vectors of counts, each given its sum."""
        x, w = self._read(data, weights)
        posterior = self._learn(x, w)
        p = posterior._centre()
        likelihood = np.tensordot(w, np.atleast_1d(Multinomial(x.sum(axis=-1), p).logpmf(x)), axes=1)
        return (likelihood + self.marginal().logpdf(p) - posterior.marginal().logpdf(p))[()]  # type: ignore[no-any-return]

    def _member(self) -> Multinomial:
        return Multinomial(1.0, self._centre())

    def predictive(self, n: ArrayLike = 1) -> Any:
        """Return the distribution of the counts in the next n draws."""
        if np.all(np.asarray(n) == 1):
            return Multinomial(1.0, self.marginal().mean)
        return DirichletMultinomialCounts(n, self.alpha)

    def map(self) -> Multinomial:
        """Return the member with p = (α - 1)/Σ(α - 1), for one draw."""
        return Multinomial(1.0, self._mode())

    def sample(self, size: Size = (), random_state: RandomState = None) -> Multinomial:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        return Multinomial(1.0, self.marginal().sample(size, random_state))


class DirichletCategorical(_DirichletPair):
    """A Dirichlet prior of the probabilities of K categories, for codes 0, …, K - 1; or an array of them.

    Parameters
    ----------
    alpha : array of shape (..., K)
        Pseudo-count of each category, > 0; 1 is flat.

    Examples
    --------
    >>> posterior = DirichletCategorical([1.0, 1.0, 1.0]).update([0, 0, 2])
    >>> posterior.predictive().p
    array([0.5   , 0.1667, 0.3333])
    """

    def _require_support(self, x: Array) -> None:
        inside = is_count(x) & (x < self.n_categories)
        refuse(self, x, inside, f"whole numbers from 0 to {self.n_categories - 1}")

    def _learn(self, x: Array, w: Array) -> Self:
        if x.ndim == 1:
            total = np.bincount(x.astype(np.intp), w, self.n_categories).astype(np.float64)
        else:
            total = np.stack([np.tensordot(w, x == k, axes=1) for k in range(self.n_categories)], axis=-1)
        return self._absorb(np.asarray(w.sum()), total)

    def _member(self) -> Categorical:
        return Categorical(self._centre())

    def predictive(self) -> Categorical:
        """Return the distribution of the next category."""
        return Categorical(self.marginal().mean)

    def map(self) -> Categorical:
        """Return the member with p = (α - 1)/Σ(α - 1)."""
        return Categorical(self._mode())

    def sample(self, size: Size = (), random_state: RandomState = None) -> Categorical:
        """Draw members, as an array of distributions of shape `size`, then the batch's."""
        return Categorical(self.marginal().sample(size, random_state))


# Beta prior of a probability, and numbers of successes.
#
# $$ p \sim \mathrm{Beta}(a, b), \quad x_i \mid p \sim \mathrm{Bin}(n, p) \quad\Longrightarrow\quad
#    p \mid x \sim \mathrm{Beta}\bigl(a + \textstyle\sum_i x_i,\; b + \sum_i (n - x_i)\bigr). $$
#
# The next number of successes is 1 with probability a/(a + b) if n = 1, and Beta–binomial in general.

_ROUNDING = 2.0**-53


class BetaBinomial(Conjugate):
    """A Beta prior of the probability of success, for numbers of successes in n trials; or an array of them.

    Parameters
    ----------
    a : float or array
        Pseudo-count of successes, > 0. a = b = 1 is flat, a = b = ½ is Jeffreys' prior.
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

    a = Parameter("The concentration a at success.")

    b = Parameter("The concentration b at failure.")

    n = Parameter("The number of trials behind an observation.")

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
