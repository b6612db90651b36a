r"""The categorical distribution, and that of the counts of several such draws.

$$ P(x = k) = p_k, \qquad P(x_1, …, x_K) = \frac{n!}{\prod_k x_k!} \prod_k p_k^{x_k}, \quad \sum_k x_k = n. $$

As exponential families: $t(x)$ is the indicator vector of the category, or the vector of counts, and $\eta = \log
p$. This
is over-complete: η + c stands for the same distribution for every number c. With $A(\eta) = n\log\sum_k
e^{\eta_k}$, the η
given here has A = 0. $h$ is 1, or the multinomial coefficient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, gammaln, rel_entr, softmax

from ..core.errors import DataError, ParameterError
from .base import (
    Array,
    Discrete,
    ExponentialFamily,
    Multivariate,
    Parameter,
    RandomState,
    Size,
    check_sample,
    require,
    require_support,
    weighted_mean,
)
from .binomial import Binomial
from .saddle import deviance, inside_or, log_factorial_part, require_count

_SUM_TOLERANCE = 1e-9


class Categorical(Discrete, ExponentialFamily):
    """One of K categories, coded 0, …, K - 1; or an array of such distributions.

    Mean, variance and samples are those of the code.

    Parameters
    ----------
    p : array of shape (..., K)
        The probabilities: non-negative, with the sum 1.

    Examples
    --------
    >>> Categorical([0.5, 0.25, 0.25]).entropy(base=2)
    np.float64(1.5)
    >>> Categorical.fit_mle([0, 2, 2, 1], n_categories=4).p
    array([0.25, 0.25, 0.5 , 0.  ])
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"p": 1}
    _support = "whole numbers from 0 to n_categories - 1"

    def __init__(self, p: ArrayLike) -> None:
        self._store(p=p)
        _require_probabilities(self, self.p)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None, *, n_categories: int | None = None) -> Self:
        """Return the distribution of greatest likelihood: the share of each category.

        Parameters
        ----------
        x : array of shape (n, ...)
            Codes along the first axis; each position of the other axes gets a distribution of its own.
        weights : array of shape (n,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        n_categories : int, optional
            K; the greatest code and one if left out.
        """
        x, w = check_sample(cls, x, weights)
        K = int(x.max()) + 1 if n_categories is None else n_categories
        require_support(cls, x, (x >= 0.0) & (x < K) & (x == np.floor(x)))
        shares = np.stack([weighted_mean((x == k).astype(np.float64), w) for k in range(K)], axis=-1)
        return cls(shares)

    p = Parameter("The probabilities of the categories.")

    @property
    def n_categories(self) -> int:
        """The number K of categories."""
        return int(self.p.shape[-1])

    @property
    def mean(self) -> Array:
        """The mean code Σ k p_k."""
        return self.p @ np.arange(self.n_categories, dtype=np.float64)

    @property
    def variance(self) -> Array:
        """The variance of the code."""
        away = np.arange(self.n_categories) - np.asarray(self.mean)[..., None]
        return np.sum(self.p * np.square(away), axis=-1)

    @property
    def mode(self) -> Array:
        """The most probable category, the first of them if there are several."""
        return np.argmax(self.p, axis=-1).astype(np.float64)[()]

    def _entropy_in_nats(self) -> Array:
        return np.sum(entr(self.p), axis=-1)

    def _kl(self, other: Categorical) -> Array:
        if other.n_categories != self.n_categories:
            raise ParameterError(
                f"{type(self).__name__}: other must have {self.n_categories} categories, got {other.n_categories}."
            )
        return np.sum(rel_entr(self.p, other.p), axis=-1)

    def logpmf(self, x: ArrayLike) -> Array:
        """Return log p_x; -inf for what is no code."""
        x = np.asarray(x, dtype=np.float64)
        inside = (x >= 0.0) & (x < self.n_categories) & (x == np.floor(x))
        code = np.where(inside, x, 0.0).astype(np.intp)
        with np.errstate(divide="ignore"):
            log_p = np.log(self.p)
        if not self.batch_shape:
            return inside_or(inside, log_p[code], x)
        shape = np.broadcast_shapes(code.shape, self.batch_shape)
        log_p = np.broadcast_to(log_p, (*shape, self.n_categories))
        chosen = np.take_along_axis(log_p, np.broadcast_to(code, shape)[..., None], axis=-1)[..., 0]
        return inside_or(inside, chosen, x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability of a code of at most x."""
        x = np.asarray(x, dtype=np.float64)
        reached = np.arange(self.n_categories) <= x[..., None]
        return np.minimum(np.sum(np.where(reached, self.p, 0.0), axis=-1), 1.0)

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw codes, of shape `size` followed by the shape of the batch."""
        u = np.random.default_rng(random_state).random(self._sample_shape(size))
        edges = np.cumsum(self.p, axis=-1)
        edges = edges / edges[..., -1:]
        if not self.batch_shape:
            return np.searchsorted(edges, u, side="right").astype(np.float64)[()]
        return np.sum(u[..., None] >= edges, axis=-1).astype(np.float64)

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = log p."""
        with np.errstate(divide="ignore"):
            return np.log(self.p)

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = log Σ exp η_k = 0."""
        return np.zeros(self.batch_shape)[()]

    @property
    def mean_statistic(self) -> Array:
        """The mean p of the indicator vector."""
        return self.p

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x), the indicator vector of the category, along a new last axis."""
        x = np.asarray(x, dtype=np.float64)
        return (x[..., None] == np.arange(self.n_categories)).astype(np.float64)

    def sum_statistic(self, x: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, Array]:
        """Return the total weight and the weighted counts over the first axis; sums of blocks add."""
        x, w = check_sample(self, x, weights)
        require_support(type(self), x, (x >= 0.0) & (x < self.n_categories) & (x == np.floor(x)))
        if x.ndim > 1:
            return super().sum_statistic(x, w)
        return float(w.sum()), np.bincount(x.astype(np.intp), w, self.n_categories).astype(np.float64)

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return log h(x) = 0 for a code."""
        x = np.asarray(x, dtype=np.float64)
        return np.where((x >= 0.0) & (x < self.n_categories) & (x == np.floor(x)), 0.0, -np.inf)[()]

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike) -> Self:
        """Return the member with p proportional to exp(η)."""
        return cls(softmax(np.asarray(natural_parameter, dtype=np.float64), axis=-1))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike) -> Self:
        """Return the member whose probabilities are the mean indicators."""
        return cls(_normalise(cls, mean_statistic))


class Multinomial(Multivariate, Discrete, ExponentialFamily):
    """The counts of K categories in n independent draws, or an array of such distributions.

    Parameters
    ----------
    n : float or array
        The number of draws, whole, >= 0; known, not estimated.
    p : array of shape (..., K)
        The probabilities: non-negative, with the sum 1.

    Examples
    --------
    >>> Multinomial(3, [0.5, 0.5]).pmf([1, 2])
    np.float64(0.375)
    >>> Multinomial.fit_mle([[1, 3], [2, 2]], n=4).p
    array([0.375, 0.625])
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"p": 1}
    _support = "vectors of whole numbers >= 0 with the sum n"
    _known = ("n",)

    def __init__(self, n: ArrayLike, p: ArrayLike) -> None:
        self._store(n=n, p=p)
        require_count(self, "n", self.n)
        _require_probabilities(self, self.p)

    @classmethod
    def fit_mle(cls, x: ArrayLike, weights: ArrayLike | None = None, *, n: ArrayLike | None = None) -> Self:
        """Return the distribution of greatest likelihood: the share of each category in all draws.

        Parameters
        ----------
        x : array of shape (m, ..., K)
            Vectors of counts along the first axis.
        weights : array of shape (m,), optional
            Non-negative; a weight of 2 counts as the same sample twice.
        n : float or array, optional
            The number of draws of each vector; the sum of the counts if left out, which must then be one number.
        """
        x, w = check_sample(cls, x, weights, rank=1)
        sums = x.sum(axis=-1)
        n = sums[0] if n is None else np.asarray(n, dtype=np.float64)
        require_support(cls, x, np.all((x >= 0.0) & (x == np.floor(x)), axis=-1) & (sums == n))
        return cls.from_mean_statistic(weighted_mean(x, w), n=n)

    n = Parameter("The number of draws.")

    p = Parameter("The probabilities of the categories.")

    @property
    def mean(self) -> Array:
        """The mean np."""
        return np.asarray(self.n)[..., None] * self.p

    @property
    def covariance(self) -> Array:
        """The covariance n(diag(p) - ppᵀ)."""
        p = self.p
        spread = p[..., None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]
        return np.asarray(self.n)[..., None, None] * spread

    @property
    def variance(self) -> Array:
        """The variance np(1 - p) of each count."""
        return np.asarray(self.n)[..., None] * self.p * (1.0 - self.p)

    def _entropy_in_nats(self) -> Array:
        # The terms of -log P are functions of single counts, and each count is binomial.
        n = np.asarray(self.n)
        mean = n[..., None] * self.p
        parts = Binomial(n[..., None], self.p).expect(lambda x: log_factorial_part(x) + deviance(x, mean))
        return (np.asarray(parts).sum(axis=-1) - log_factorial_part(n))[()]

    def _kl(self, other: Multinomial) -> Array:
        value = self.n * np.sum(rel_entr(self.p, other.p), axis=-1)
        return np.where(self.n == other.n, np.where(self.n == 0.0, 0.0, value), np.inf)[()]

    def logpmf(self, x: ArrayLike) -> Array:
        """Return log n! + Σ (x_k log p_k - log x_k!); -inf unless x are counts with the sum n."""
        x = np.asarray(x, dtype=np.float64)
        n = np.asarray(self.n)
        inside = np.all((x >= 0.0) & (x == np.floor(x)), axis=-1) & (x.sum(axis=-1) == n)
        value = log_factorial_part(n) - np.sum(
            log_factorial_part(np.maximum(x, 0.0)) + deviance(np.maximum(x, 0.0), n[..., None] * self.p), axis=-1
        )
        return inside_or(inside, value, x.sum(axis=-1))

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw vectors of counts, of shape `size`, then the batch's, then (K,)."""
        p = self.p / self.p.sum(axis=-1, keepdims=True)
        rng = np.random.default_rng(random_state)
        return rng.multinomial(np.asarray(self.n).astype(np.int64), p, self._sample_shape(size)).astype(np.float64)

    @property
    def natural_parameter(self) -> Array:
        """The natural parameter η = log p."""
        with np.errstate(divide="ignore"):
            return np.log(self.p)

    @property
    def log_partition(self) -> Array:
        """The log-partition function A(η) = n log Σ exp η_k = 0."""
        return np.zeros(self.batch_shape)[()]

    @property
    def mean_statistic(self) -> Array:
        """The mean np of the counts."""
        return self.mean

    def sufficient_statistic(self, x: ArrayLike) -> Array:
        """Return t(x) = x."""
        return np.asarray(x, dtype=np.float64)

    def log_base_measure(self, x: ArrayLike) -> Array:
        """Return the logarithm of the multinomial coefficient."""
        x = np.asarray(x, dtype=np.float64)
        inside = np.all((x >= 0.0) & (x == np.floor(x)), axis=-1) & (x.sum(axis=-1) == self.n)
        value = gammaln(self.n + 1.0) - gammaln(np.maximum(x, 0.0) + 1.0).sum(axis=-1)
        return np.where(inside, value, -np.inf)[()]

    @classmethod
    def from_natural_parameter(cls, natural_parameter: ArrayLike, *, n: ArrayLike) -> Self:
        """Return the member with p proportional to exp(η)."""
        return cls(n, softmax(np.asarray(natural_parameter, dtype=np.float64), axis=-1))

    @classmethod
    def from_mean_statistic(cls, mean_statistic: ArrayLike, *, n: ArrayLike) -> Self:
        """Return the member whose mean counts are given."""
        return cls(n, _normalise(cls, mean_statistic))


def _require_probabilities(owner: object, p: Array) -> None:
    require(owner, "p", p, (p >= 0.0) & (p <= 1.0), "probabilities in [0, 1]")
    sums = p.sum(axis=-1)
    require(owner, "the sum of p", sums, np.abs(sums - 1.0) <= _SUM_TOLERANCE, "1")


def _normalise(cls: type, mean_statistic: ArrayLike) -> Array:
    """Return the shares of non-negative numbers along the last axis."""
    mean = np.asarray(mean_statistic, dtype=np.float64)
    total = mean.sum(axis=-1, keepdims=True)
    if not (np.all(mean >= 0.0) and np.all(np.isfinite(total)) and np.all(total > 0.0)):
        raise DataError(f"{cls.__name__}: mean counts must be >= 0 and not all zero, got {mean!s}.")
    return mean / total
