r"""Mixtures of normal distributions on the line, as distributions: what a mixture of experts predicts.

$$ p(y) = \sum_k \pi_k\, N(y; \mu_k, \sigma_k^2) $$
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr, ndtri

from ..core.errors import ParameterError
from ..probability.base import Array, RandomState, Size, Univariate, require, require_positive

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_BISECTIONS = 80  # of an interval, after which it is as short as float64 can tell
_NODES = 4001  # of the quadrature of entropies and divergences


class MixedNormal(Univariate):
    """A mixture of K normal distributions, or an array of such.

    Parameters
    ----------
    weights : array of shape (..., K)
        π: non-negative, with the sum 1.
    mean, std : arrays of shape (..., K)
        μ, finite, and σ > 0 of the components.

    Examples
    --------
    >>> from learnable.mixtures import MixedNormal
    >>> two = MixedNormal([0.5, 0.5], [-2.0, 2.0], [1.0, 1.0])
    >>> two.mean, two.variance, two.cdf(0.0)
    (np.float64(0.0), np.float64(5.0), np.float64(0.5))
    """

    _event_ranks: ClassVar[Mapping[str, int]] = {"weights": 1, "mean": 1, "std": 1}

    def __init__(self, weights: ArrayLike, mean: ArrayLike, std: ArrayLike) -> None:
        self._store(weights=weights, mean=mean, std=std)
        w = self.weights
        if not (w.shape == self._mu.shape == self._sigma.shape):
            raise ParameterError(
                f"MixedNormal: weights, mean and std must have as many entries as there are components; got "
                f"{w.shape}, {self._mu.shape} and {self._sigma.shape}."
            )
        require(self, "weights", w, (w >= 0.0) & (w <= 1.0 + 1e-9), "probabilities in [0, 1]")
        require(self, "the sum of weights", w.sum(axis=-1), np.abs(w.sum(axis=-1) - 1.0) <= 1e-9, "1")
        require(self, "mean", self._mu, np.isfinite(self._mu), "finite")
        require_positive(self, std=self._sigma)

    @property
    def weights(self) -> Array:
        """The weights π of the components."""
        return self._parameters["weights"]

    @property
    def _mu(self) -> Array:
        return self._parameters["mean"]

    @property
    def _sigma(self) -> Array:
        return self._parameters["std"]

    @property
    def mean(self) -> Array:
        """The mean Σ πₖμₖ."""
        return np.sum(self.weights * self._mu, axis=-1)

    @property
    def variance(self) -> Array:
        """The variance Σ πₖ(σₖ² + (μₖ − mean)²): what the components are unsure of, and what they disagree about."""
        gap = self._mu - np.asarray(self.mean)[..., None]
        return np.sum(self.weights * (np.square(self._sigma) + np.square(gap)), axis=-1)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return log Σ πₖN(x; μₖ, σₖ²)."""
        z = (np.asarray(x, dtype=np.float64)[..., None] - self._mu) / self._sigma
        logs = -0.5 * np.square(z) - np.log(self._sigma) - _HALF_LOG_2PI
        value: Array = logsumexp(logs, b=self.weights, axis=-1)
        return value

    def cdf(self, x: ArrayLike) -> Array:
        """Return Σ πₖΦ((x − μₖ)/σₖ)."""
        z = (np.asarray(x, dtype=np.float64)[..., None] - self._mu) / self._sigma
        return np.sum(self.weights * ndtr(z), axis=-1)

    def quantile(self, p: ArrayLike) -> Array:
        """Return the x at which the cdf is p, by bisection between the quantiles of the components."""
        p = self._as_probabilities(p)
        each = self._mu + self._sigma * ndtri(np.asarray(p)[..., None])
        some = self.weights > 0.0
        low = np.min(np.where(some, each, np.inf), axis=-1)
        high = np.max(np.where(some, each, -np.inf), axis=-1)
        with np.errstate(invalid="ignore"):
            for _ in range(_BISECTIONS):
                middle = low + 0.5 * (high - low)
                below = self.cdf(middle) < p
                low = np.where(below, middle, low)
                high = np.where(below, high, middle)
        ends = np.where(p == 0.0, -np.inf, np.where(p == 1.0, np.inf, high))
        return np.where((p == 0.0) | (p == 1.0), ends, high)[()]

    def sample(self, size: Size = (), random_state: RandomState = None) -> Array:
        """Draw independent samples, of shape `size` followed by the shape of the batch."""
        rng = np.random.default_rng(random_state)
        shape = self._sample_shape(size)
        u = rng.random(shape)
        edges = np.cumsum(self.weights, axis=-1)
        k = np.minimum((u[..., None] >= edges).sum(axis=-1), self.weights.shape[-1] - 1)[..., None]
        mu, sigma = (np.broadcast_to(each, (*shape, each.shape[-1])) for each in (self._mu, self._sigma))
        chosen = [np.take_along_axis(each, k, axis=-1)[..., 0] for each in (mu, sigma)]
        return (chosen[0] + chosen[1] * rng.standard_normal(shape))[()]

    def _entropy_in_nats(self) -> Array:
        return self._integrate(lambda x: -self.logpdf(x))

    def _kl(self, other: Any) -> Array:
        return np.maximum(self._integrate(lambda x: self.logpdf(x) - other.logpdf(x)), 0.0)

    def _integrate(self, f: Any) -> Array:
        """Return E f(x): each component's expectation, by the trapezoidal rule over nine of its deviations."""
        z = np.linspace(-9.0, 9.0, _NODES)
        density = np.exp(-0.5 * z * z)
        total: NDArray[Any] = np.zeros(self.batch_shape)
        for k in range(self.weights.shape[-1]):
            points = np.moveaxis(self._mu[..., k, None] + self._sigma[..., k, None] * z, -1, 0)
            total = total + self.weights[..., k] * np.tensordot(density / density.sum(), f(points), axes=1)
        return total[()]
