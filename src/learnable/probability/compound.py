r"""Counts whose probabilities are themselves drawn: the Beta–binomial and the Dirichlet–multinomial distribution.

$$ P(x) = \binom nx \frac{B(a + x, b + n - x)}{B(a, b)}, \qquad
   P(x) = \frac{n!}{\prod_k x_k!}\, \frac{\Gamma(A)}{\Gamma(A + n)} \prod_k
   \frac{\Gamma(\alpha_k + x_k)}{\Gamma(\alpha_k)}, \quad A = \sum_k \alpha_k. $$

They are the predictive distributions of the Beta–binomial and Dirichlet–multinomial pairs, no exponential families.
Probabilities are quotients of a likelihood times a prior and a posterior density, which keep their digits for
counts of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import ParameterError
from .base import Array, Discrete, Multivariate, Parameter, RandomState, Size, Univariate, require_positive
from .binomial import Binomial
from .categorical import Multinomial
from .dirichlet import Beta, Dirichlet
from .saddle import inside_or, is_count, least_count, require_count

_MOST = 1e7  # probabilities that are summed, at most


class BetaBinomialCount(Univariate, Discrete):
    """The number of successes in n trials whose probability has a Beta distribution; or an array of such.

    Parameters
    ----------
    n : float or array
        The number of trials, whole, >= 0.
    a : float or array
        Concentration at success, > 0.
    b : float or array
        Concentration at failure, > 0.

    Examples
    --------
    >>> BetaBinomialCount(3, 1.0, 1.0).pmf([0, 1, 2, 3])
    array([0.25, 0.25, 0.25, 0.25])
    """

    _support = "whole numbers from 0 to n"

    def __init__(self, n: ArrayLike, a: ArrayLike, b: ArrayLike) -> None:
        self._store(n=n, a=a, b=b)
        require_count(self, "n", self.n)
        require_positive(self, a=self.a, b=self.b)

    n = Parameter("The number of trials.")

    a = Parameter("The concentration a at success.")

    b = Parameter("The concentration b at failure.")

    @property
    def mean(self) -> Array:
        """The mean na/(a + b)."""
        return self.n * (self.a / (self.a + self.b))

    @property
    def variance(self) -> Array:
        """The variance np(1 - p)(a + b + n)/(a + b + 1) for p = a/(a + b)."""
        total = self.a + self.b
        return self.n * (self.a / total) * (self.b / total) * ((total + self.n) / (total + 1.0))

    def logpmf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the probability of x successes; -inf for what is no number of them."""
        x = np.asarray(x, dtype=np.float64)
        inside = is_count(x) & (x <= self.n)
        k = np.where(inside, x, 0.0)
        a = self.a + k
        b = self.b + (self.n - k)
        p = np.clip(a / (a + b), 2.0**-53, 1.0 - 2.0**-53)
        value = Binomial(self.n, p).logpmf(k) + Beta(self.a, self.b).logpdf(p) - Beta(a, b).logpdf(p)
        return inside_or(inside, value, x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of at most x successes, by summation; for at most 10⁷ trials."""
        x = np.floor(np.asarray(x, dtype=np.float64))
        shape = np.broadcast_shapes(x.shape, self.batch_shape)
        n = np.broadcast_to(self.n, shape)
        value = np.where(np.isnan(x), np.nan, np.where(x >= n, 1.0, 0.0))
        for i in np.ndindex(self.batch_shape):
            sums = self._cumulative(i)
            here = np.broadcast_to(x, shape)[(..., *i)]
            between = (here >= 0.0) & (here < self.n[i] if i else here < self.n)
            value[(..., *i)] = np.where(between, sums[np.where(between, here, 0.0).astype(np.intp)], value[(..., *i)])
        return value[()]

    def _cumulative(self, i: tuple[int, ...]) -> Array:
        """Return the cdf of one of the distributions at 0, …, n."""
        one = self[i] if i else self
        if one.n > _MOST:
            raise ParameterError(
                f"{type(self).__name__}: the cdf sums at most {_MOST:g} probabilities, got n = {one.n!s}."
            )
        return np.minimum(np.cumsum(one.pmf(np.arange(float(one.n) + 1.0))), 1.0)

    def quantile(self, p: ArrayLike) -> Array:
        """Return the least number of successes at which the cdf is at least p."""
        p = self._as_probabilities(p)
        return np.where(p == 1.0, self.n, least_count(self.cdf, p, self.n))[()]

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw numbers of successes, of shape `size` followed by the shape of the batch."""
        rng = np.random.default_rng(random_state)
        p = Beta(self.a, self.b).sample(size, rng)
        return np.asarray(rng.binomial(np.asarray(self.n).astype(np.int64), p), dtype=np.float64)[()]

    def _entropy_in_nats(self) -> Array:
        return self._sum(lambda log_p, x, i: -log_p)

    def _kl(self, other: BetaBinomialCount) -> Array:
        if not np.all(self.n == other.n):
            raise ParameterError(f"{type(self).__name__}: the divergence needs the same number of trials.")
        shape = np.broadcast_shapes(self.batch_shape, other.batch_shape)
        mine, theirs = (_broadcast(d, shape) for d in (self, other))
        return np.maximum(mine._sum(lambda log_p, x, i: log_p - (theirs[i] if i else theirs).logpmf(x)), 0.0)

    def _sum(self, f: Callable[[Array, Array, Any], Array]) -> Array:
        """Return E f for every distribution of the batch."""
        out = np.empty(self.batch_shape)
        for i in np.ndindex(self.batch_shape):
            one = self[i] if i else self
            if one.n > _MOST:
                raise ParameterError(f"{type(self).__name__}: expectations sum at most {_MOST:g} probabilities.")
            x = np.arange(float(one.n) + 1.0)
            log_p = one.logpmf(x)
            out[i] = np.sum(np.exp(log_p) * f(log_p, x, i))
        return out[()]


class DirichletMultinomialCounts(Multivariate, Discrete):
    """The counts of K categories in n draws whose probabilities have a Dirichlet distribution; or an array of such.

    Parameters
    ----------
    n : float or array
        The number of draws, whole, >= 0.
    alpha : array of shape (..., K)
        Concentrations, > 0.

    Examples
    --------
    >>> DirichletMultinomialCounts(2, [1.0, 1.0, 1.0]).pmf([[2, 0, 0], [1, 1, 0]])
    array([0.1667, 0.1667])
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"alpha": 1}
    _support = "vectors of whole numbers >= 0 with the sum n"

    def __init__(self, n: ArrayLike, alpha: ArrayLike) -> None:
        self._store(n=n, alpha=alpha)
        require_count(self, "n", self.n)
        require_positive(self, alpha=self.alpha)

    n = Parameter("The number of draws.")

    alpha = Parameter("The concentrations α.")

    @property
    def mean(self) -> Array:
        """The mean nα/A."""
        return np.asarray(self.n)[..., None] * Dirichlet(self.alpha).mean

    @property
    def covariance(self) -> Array:
        """The covariance of the multinomial distribution times (A + n)/(A + 1)."""
        total = self.alpha.sum(axis=-1)
        more = (total + self.n) / (total + 1.0)
        return Multinomial(self.n, Dirichlet(self.alpha).mean).covariance * more[..., None, None]

    def logpmf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the probability of counts x; -inf unless they have the sum n."""
        x = np.asarray(x, dtype=np.float64)
        inside = np.all(is_count(x), axis=-1) & (x.sum(axis=-1) == self.n)
        shape = np.broadcast_shapes(x.shape, self.alpha.shape)
        fallback = np.zeros(shape)
        fallback[..., 0] = self.n
        k = np.where(inside[..., None], x, fallback)
        alpha = self.alpha + k
        p = np.maximum(alpha / alpha.sum(axis=-1, keepdims=True), 1e-300)
        p = p / p.sum(axis=-1, keepdims=True)
        value = Multinomial(self.n, p).logpmf(k) + Dirichlet(self.alpha).logpdf(p) - Dirichlet(alpha).logpdf(p)
        return inside_or(inside, value, x.sum(axis=-1))

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw vectors of counts, of shape `size`, then the batch's, then (K,)."""
        rng = np.random.default_rng(random_state)
        p = Dirichlet(self.alpha).sample(size, rng)
        return rng.multinomial(np.asarray(self.n).astype(np.int64), p).astype(np.float64)

    def _entropy_in_nats(self) -> Array:
        out = np.empty(self.batch_shape)
        for i in np.ndindex(self.batch_shape):
            one = self[i] if i else self
            log_p = one.logpmf(_compositions(one))
            out[i] = -np.sum(np.exp(log_p) * log_p)
        return out[()]

    def _kl(self, other: DirichletMultinomialCounts) -> Array:
        if not np.all(self.n == other.n):
            raise ParameterError(f"{type(self).__name__}: the divergence needs the same number of draws.")
        shape = np.broadcast_shapes(self.batch_shape, other.batch_shape)
        mine, theirs = (_broadcast(d, shape) for d in (self, other))
        out = np.empty(shape)
        for i in np.ndindex(shape):
            p, q = (mine[i], theirs[i]) if i else (mine, theirs)
            x = _compositions(p)
            log_p = p.logpmf(x)
            out[i] = max(np.sum(np.exp(log_p) * (log_p - q.logpmf(x))), 0.0)
        return out[()]


def _broadcast(d: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of distributions broadcast to a shape."""
    rank = {name: d._event_ranks.get(name, 0) for name in d.parameters}
    wide = {
        name: np.broadcast_to(p, (*shape, *np.shape(p)[np.ndim(p) - rank[name] :])) for name, p in d.parameters.items()
    }
    return type(d)(**wide)


def _compositions(d: DirichletMultinomialCounts) -> Array:
    """Return all vectors of K counts with the sum n."""
    n = int(d.n)
    K = d.alpha.shape[-1]
    if comb(n + K - 1, K - 1) > _MOST / K:
        raise ParameterError(
            f"{type(d).__name__}: the expectation would sum {comb(n + K - 1, K - 1):.2g} probabilities; use samples."
        )

    def extend(left: int, places: int) -> Iterator[tuple[int, ...]]:
        if places == 1:
            yield (left,)
            return
        for first in range(left + 1):
            for rest in extend(left - first, places - 1):
                yield (first, *rest)

    return np.array(list(extend(n, K)), dtype=np.float64)
