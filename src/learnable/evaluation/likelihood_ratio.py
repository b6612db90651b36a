r"""The likelihood-ratio test of one known distribution against another.

    reject p₀  where  log p₁(x) − log p₀(x) > t;    t such that the probability of rejecting under p₀ is the level

No test of the same level has more power (Neyman and Pearson). On finite sets a rejection at equality is decided by a
coin, so that the level is met exactly. With t = log(π₀/π₁) the test is the Bayes classifier with priors π.

Reference: E. L. Lehmann and J. P. Romano, Testing Statistical Hypotheses, 4th ed. (2022), section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from ..core.errors import ParameterError
from ..probability.base import Distribution, Univariate
from .bayes_line import as_normal, finite_support, on_line
from .bayes_rule import as_points, log_density

Array = NDArray[np.float64]

_GRID = 8192
_TAIL = 1e-14
_BISECTIONS = 60


@dataclass(frozen=True)
class LikelihoodRatioTest:
    """A most powerful test.

    Attributes
    ----------
    null, alternative : distributions
        p₀ and p₁.
    level : float
        Probability of rejecting p₀ where it is true.
    threshold : float
        t.
    coin : float
        Probability of rejecting where the statistic equals t: 0 but on finite sets.
    power : float
        Probability of rejecting p₀ where p₁ is true.
    error : float
        Of `power`: bound or estimate of the absolute error; for Monte Carlo, the standard error.
    method : str
        "exact" or "monte carlo".
    """

    null: Any
    alternative: Any
    level: float
    threshold: float
    coin: float
    power: float
    error: float
    method: str

    def statistic(self, X: ArrayLike) -> Array:
        """Return log p₁(x) − log p₀(x) of every point; +inf where only p₁ is possible."""
        return log_ratio(self.null, self.alternative, as_points(X))

    def reject(self, X: ArrayLike, random_state: Any = None) -> NDArray[np.bool_]:
        """Tell of every point whether p₀ is rejected; `random_state` throws the coins."""
        ratio = self.statistic(X)
        rejected = ratio > self.threshold
        if self.coin > 0:
            equal = np.isclose(ratio, self.threshold, rtol=1e-12, atol=1e-12)
            heads = np.random.default_rng(random_state).random(len(ratio)) < self.coin
            rejected = np.where(equal, heads, rejected)
        return rejected


def likelihood_ratio_test(
    null: Any, alternative: Any, *, level: float = 0.05, n_samples: int = 200_000, random_state: Any = 0
) -> LikelihoodRatioTest:
    """Return the most powerful test of p₀ against p₁ at a level.

    Parameters
    ----------
    null, alternative : distributions
        p₀ and p₁ on the same space, completely known.
    level : float, default=0.05
        Probability of rejecting p₀ where it is true, in (0, 1).
    n_samples, random_state : int, int or Generator
        Of Monte Carlo, where nothing better is possible.

    Examples
    --------
    >>> from learnable.evaluation import likelihood_ratio_test
    >>> from learnable.probability import Normal
    >>> test = likelihood_ratio_test(Normal(0.0, 1.0), Normal(2.0, 1.0), level=0.05)
    >>> round(test.power, 4)
    0.6388
    >>> test.reject([1.5, 1.7])
    array([False,  True])
    """
    if not (isinstance(null, Distribution) and isinstance(alternative, Distribution)):
        raise ParameterError("likelihood_ratio_test: null and alternative must be distributions.")
    if not 0.0 < level < 1.0:
        raise ParameterError(f"likelihood_ratio_test: level must be in (0, 1), got {level!r}.")
    pair = (null, alternative)
    support = finite_support(pair)
    if support is not None:
        return LikelihoodRatioTest(*pair, level, *_on_finite_set(pair, support, level), 1e-15, "exact")
    normals: list[Any] = [as_normal(p) for p in pair]
    if all(p is not None for p in normals) and np.array_equal(normals[0].cov, normals[1].cov):
        return LikelihoodRatioTest(*pair, level, *_of_normals(normals, level), 1e-15, "exact")
    if all(isinstance(p, Univariate) and np.size(p.mean) == 1 for p in pair):
        line = [on_line(p) for p in pair]
        return LikelihoodRatioTest(*pair, level, *_on_the_line(line, level), 1e-12, "exact")
    rng = np.random.default_rng(random_state)
    under = [log_ratio(null, alternative, as_points(p.sample(n_samples, rng))) for p in pair]
    threshold = float(np.quantile(under[0], 1.0 - level))
    power = float((under[1] > threshold).mean())
    # The threshold's own error, through the slope of power in level, is that of a share of the null's draws.
    near = np.quantile(under[0], np.clip([1 - level - 0.01, 1 - level + 0.01], 0, 1))
    slope = float((under[1] > near[0]).mean() - (under[1] > near[1]).mean()) / 0.02
    error = np.sqrt((power * (1 - power) + slope**2 * level * (1 - level)) / n_samples)
    return LikelihoodRatioTest(*pair, level, threshold, 0.0, power, float(error), "monte carlo")


def log_ratio(null: Any, alternative: Any, X: Array) -> Array:
    """Return log p₁(x) − log p₀(x); where both are impossible, −inf."""
    under = log_density(null, X)
    over = log_density(alternative, X)
    both = np.isneginf(under) & np.isneginf(over)
    return np.where(both, -np.inf, over - np.where(both, 0.0, under))


def _on_finite_set(pair: tuple[Any, Any], support: Array, level: float) -> tuple[float, float, float]:
    """Return threshold, coin and power: points are rejected in the order of their ratios until the level is used up."""
    p, q = (np.exp(log_density(density, support)) for density in pair)
    ratio = log_ratio(*pair, support)
    steps, place = np.unique(np.round(ratio, 12), return_inverse=True)  # equal up to rounding is equal
    null, other = (np.bincount(place, weights, len(steps)) for weights in (p, q))
    above = np.cumsum(null[::-1])[::-1] - null  # P₀ of larger ratios
    last = int(np.argmax(above <= level))
    coin = float(np.clip((level - above[last]) / null[last] if null[last] > 0 else 1.0, 0.0, 1.0))
    return float(steps[last]), coin, float(other[last + 1 :].sum() + coin * other[last])


def _of_normals(normals: list[Any], level: float) -> tuple[float, float, float]:
    """Return the same for N(μ₀, Σ) against N(μ₁, Σ): the statistic is N(∓Δ²/2, Δ²) under them."""
    away = normals[1].mean - normals[0].mean
    square = float(away @ np.linalg.lstsq(normals[0].cov, away, rcond=None)[0])
    delta = np.sqrt(square)
    if delta == 0.0:
        return 0.0, float(level), float(level)  # nothing to tell them apart: the coin alone
    critical = -ndtri(level)
    return float(delta * critical - 0.5 * square), 0.0, float(ndtr(delta - critical))


def _on_the_line(line: list[Any], level: float) -> tuple[float, float, float]:
    """Return the same from the distribution functions on {x: ratio > t}, a union of intervals."""
    low, high = (f(float(p.quantile(q)) for p in line) for f, q in ((min, _TAIL), (max, 1 - _TAIL)))
    levels = np.linspace(0.0, 1.0, _GRID // 4)[1:-1]
    grid = np.unique(np.r_[low, high, np.linspace(low, high, _GRID), *[np.asarray(p.quantile(levels)) for p in line]])
    ratio = log_ratio(line[0], line[1], grid[:, None])

    def probabilities(t: float) -> Array:
        inside = ratio > t
        at = np.flatnonzero(inside[1:] != inside[:-1])
        a = grid[at]
        b = grid[at + 1]
        left = inside[at]
        for _ in range(_BISECTIONS if len(at) else 0):
            m = 0.5 * (a + b)
            same = (log_ratio(line[0], line[1], m[:, None]) > t) == left
            a = np.where(same, m, a)
            b = np.where(same, b, m)
        signs = np.where(left, 1.0, -1.0)  # leaving the region adds, entering it takes away
        ends = np.stack([np.asarray(p.cdf(b)) for p in line]) if len(b) else np.zeros((2, 0))
        return ends @ signs + (1.0 if inside[-1] else 0.0)

    finite = ratio[np.isfinite(ratio)]
    t_low = float(finite.min()) - 1.0
    t_high = float(finite.max()) + 1.0
    threshold = float(brentq(lambda t: probabilities(t)[0] - level, t_low, t_high, xtol=1e-13, rtol=1e-14))
    return threshold, 0.0, float(probabilities(threshold)[1])
