"""The least possible risk of a known distribution, and how far other rules are from it.

    R* = ∫ min_a Σ_c π_c p_c(x) cost(c, a) dx          (for squared loss: E Var(Y | x))

Exact where it can be: on finite sets by summation; on the line by the distribution functions between the points where
the decision changes; for normal classes with one covariance after projection on the directions of their means. In the
plane the inner integral is exact and the outer one is adaptive quadrature; elsewhere it is Monte Carlo, with its
standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from ...core.errors import ParameterError
from ...probability import Discrete, Distribution, JointTable, MultivariateNormal, Normal, Univariate
from .rules import (
    BayesClassifier,
    BayesPredictor,
    BayesRisk,
    as_normal,
    as_points,
    bayes_classifier,
    finite_support,
    log_density,
    on_line,
    risk_on_the_line,
)

Array = NDArray[np.float64]


def bayes_risk(
    rule: Any, priors: Any = None, *, costs: Any = None, n_samples: int = 200_000, random_state: Any = 0
) -> BayesRisk:
    """Return the risk of the best rule for a known distribution.

    Parameters
    ----------
    rule : BayesClassifier, BayesPredictor, or class densities
        As `bayes_classifier` and `bayes_predictor` return them, or the densities themselves.
    priors, costs : arrays, optional
        With class densities: as for `bayes_classifier`.
    n_samples : int
        Draws of Monte Carlo, where nothing better is possible.
    random_state : int, Generator or None
        Of these draws.

    Examples
    --------
    >>> from learnable.evaluation import bayes_risk
    >>> from learnable.probability import Normal
    >>> risk = bayes_risk([Normal(0.0, 1.0), Normal(0.0, 3.0)])
    >>> round(risk.value, 6), risk.method
    (0.257836, 'exact')
    """
    if isinstance(rule, BayesPredictor):
        return _squared_risk(rule, n_samples, random_state)
    if not isinstance(rule, BayesClassifier):
        rule = bayes_classifier(rule, priors, costs=costs)
    return _integrate(rule, None, n_samples, random_state)


def excess_risk(predict: Any, rule: Any, *, n_samples: int = 200_000, random_state: Any = 0) -> BayesRisk:
    """Return R(f) − R*: how much more a rule costs than the best one, under a known distribution.

    It is the integral of the cost given away at each point, never of a difference of two risks, so that a small excess
    keeps its digits.

    Parameters
    ----------
    predict : function, or estimator with `predict`
        From points (n, d) to labels; for squared loss, to numbers.
    rule : BayesClassifier or BayesPredictor
        The best rule.
    n_samples, random_state : int, int or Generator
        As for `bayes_risk`.

    Examples
    --------
    >>> from learnable.evaluation import bayes_classifier, excess_risk
    >>> from learnable.probability import Normal
    >>> rule = bayes_classifier([Normal(-1.0, 1.0), Normal(1.0, 1.0)])
    >>> round(excess_risk(lambda x: (x[:, 0] > 0.5).astype(int), rule).value, 6)
    0.029017
    """
    call = predict.predict if hasattr(predict, "predict") else predict
    if isinstance(rule, BayesPredictor):
        return _squared_excess(call, rule, n_samples, random_state)
    place = {label: k for k, label in enumerate(rule.labels.tolist())}

    def decide(X: Array) -> NDArray[np.intp]:
        try:
            return np.array([place[label] for label in np.asarray(call(X)).tolist()], dtype=np.intp)
        except KeyError as error:
            raise ParameterError(f"excess_risk: the rule says {error}, which is no label of the classifier.") from None

    return _integrate(rule, decide, n_samples, random_state)


def _integrate(rule: BayesClassifier, decide: Any, n_samples: int, random_state: Any) -> BayesRisk:
    """Return the Bayes risk, or the excess of `decide` over it."""
    support = finite_support(rule.densities)
    if support is not None:
        return BayesRisk(float(_regret(rule, support, decide) @ np.ones(len(support))), 1e-15, "exact")
    simple = _project(rule) if decide is None else rule
    if all(isinstance(p, Univariate) and np.size(p.mean) == 1 for p in simple.densities) or _is_normal_line(simple):
        line = [on_line(p) for p in simple.densities]
        return risk_on_the_line(line, simple.priors, simple.costs, decide)
    if decide is None:
        planar = _planar(simple)
        if planar is not None:
            return _in_the_plane(simple, *planar)
    return _monte_carlo(rule, decide, n_samples, random_state)


def _regret(rule: BayesClassifier, X: Array, decide: Any, joint: Array | None = None) -> Array:
    """Return Σ_c π_c p_c(x) cost(c, f(x)) of the best f, or how much more that of `decide` is."""
    if joint is None:
        joint = np.exp(rule.predict_joint_log_proba(X))
    costs = joint @ rule.costs
    best = costs.min(axis=1)
    return best if decide is None else costs[np.arange(len(X)), decide(X)] - best


def _project(rule: BayesClassifier) -> BayesClassifier:
    """Return an equal problem of fewer dimensions: normal classes of one covariance differ along their means only."""
    found: list[Any] = [as_normal(p) for p in rule.densities]
    if any(p is None for p in found):
        return rule
    first = found[0]
    if any(not np.array_equal(p.cov, first.cov) for p in found) or np.min(first.rank) < first.mean.shape[-1]:
        return rule
    L = np.linalg.cholesky(first.cov)
    whitened = np.linalg.solve(L, np.stack([p.mean - first.mean for p in found]).T).T
    _, spread, axes = np.linalg.svd(whitened, full_matrices=False)
    rank = max(1, int((spread > 1e-13 * max(spread[0], 1e-300)).sum()))
    means = whitened @ axes[:rank].T
    cov = np.eye(rank)
    return BayesClassifier(tuple(MultivariateNormal(m, cov) for m in means), rule.priors, rule.labels, rule.costs)


def _is_normal_line(rule: BayesClassifier) -> bool:
    return all(isinstance(p, MultivariateNormal) and p.mean.shape == (1,) for p in rule.densities)


def _planar(rule: BayesClassifier) -> tuple[list[Any], Callable[[float], tuple[Array, list[Any]]]] | None:
    """Return, in the plane, the first column's densities, and a function to the second's given the first."""
    normals: list[Any] = [as_normal(p) for p in rule.densities]
    if all(p is not None and p.mean.shape == (2,) and p.cov[0, 0] > 0 for p in normals):
        first = [Normal(float(p.mean[0]), float(np.sqrt(p.cov[0, 0]))) for p in normals]
        slope = [float(p.cov[1, 0] / p.cov[0, 0]) for p in normals]
        rest = [float(np.sqrt(max(p.cov[1, 1] - s * p.cov[0, 1], 1e-300))) for p, s in zip(normals, slope, strict=True)]

        def normal_slice(u: float) -> tuple[Array, list[Any]]:
            means = [float(p.mean[1] + s * (u - p.mean[0])) for p, s in zip(normals, slope, strict=True)]
            weights = rule.priors * np.array([float(p.pdf(u)) for p in first])
            return weights, [Normal(m, r) for m, r in zip(means, rest, strict=True)]

        return first, normal_slice
    products = all(
        isinstance(p, Univariate) and not isinstance(p, Discrete) and p.batch_shape == (2,) for p in rule.densities
    )
    if not products:
        return None
    first = [p[0] for p in rule.densities]
    second = [p[1] for p in rule.densities]
    return first, lambda u: (rule.priors * np.array([float(p.pdf(u)) for p in first]), second)


def _in_the_plane(
    rule: BayesClassifier, first: list[Any], cut: Callable[[float], tuple[Array, list[Any]]]
) -> BayesRisk:
    """Return the risk by adaptive quadrature over the first column of exact risks along the second."""

    def inner(u: float) -> float:
        weights, line = cut(u)
        total = weights.sum()
        return 0.0 if total <= 0 else total * risk_on_the_line(line, weights / total, rule.costs).value

    tail = 1e-13
    low = min(float(p.quantile(tail)) for p in first)
    high = max(float(p.quantile(1 - tail)) for p in first)
    levels = [1e-6, 1e-2, 0.5, 1 - 1e-2, 1 - 1e-6]
    breaks = np.unique([low, high, *(float(p.quantile(level)) for p in first for level in levels)])
    value = 0.0
    error = tail
    for a, b in pairwise(breaks):
        piece, off = quad(inner, a, b, epsabs=1e-10, epsrel=1e-9, limit=100)[:2]
        value = value + piece
        error = error + off
    return BayesRisk(float(value), float(error), "quadrature")


def _monte_carlo(rule: BayesClassifier, decide: Any, n_samples: int, random_state: Any) -> BayesRisk:
    """Return the mean, over draws from every class, of the expected cost given x; with its standard error."""
    return _stratified(rule, lambda X: _regret(rule, X, decide, rule.predict_proba(X)), n_samples, random_state)


def _stratified(rule: BayesClassifier, of_points: Callable[[Array], Array], n_samples: int, seed: Any) -> BayesRisk:
    if not all(hasattr(p, "sample") for p in rule.densities):
        raise ParameterError("bayes_risk: Monte Carlo needs densities with sample().")
    rng = np.random.default_rng(seed)
    value = variance = 0.0
    n = max(2, n_samples // len(rule.priors))
    for density, prior in zip(rule.densities, rule.priors.tolist(), strict=True):
        draws = density.sample(n, rng) if isinstance(density, Distribution) else density.sample(n)[0]
        found = of_points(as_points(draws))
        value += prior * float(found.mean())
        variance += prior**2 * float(found.var(ddof=1)) / n
    return BayesRisk(value, float(np.sqrt(variance)), "monte carlo")


def _squared_risk(rule: BayesPredictor, n_samples: int, random_state: Any) -> BayesRisk:
    """Return E Var(Y | x)."""
    source = rule.source
    if isinstance(source, MultivariateNormal):
        centre = np.delete(source.mean, rule.target)
        return BayesRisk(float(rule.variance(centre[None])[0]), 1e-15, "exact")
    if isinstance(source, JointTable):
        points, weight = _points_of_table(source, rule.target)
        return BayesRisk(float(weight @ rule.variance(points)), 1e-15, "exact")
    return _expectation(source, rule.variance, n_samples, random_state)


def _squared_excess(call: Any, rule: BayesPredictor, n_samples: int, random_state: Any) -> BayesRisk:
    """Return E (f(x) − E[Y | x])²."""
    source = rule.source

    def of_points(X: Any) -> Array:
        return (np.asarray(call(X), dtype=np.float64).ravel() - rule.predict(X)) ** 2

    if isinstance(source, JointTable):
        points, weight = _points_of_table(source, rule.target)
        return BayesRisk(float(weight @ of_points(points)), 1e-15, "exact")
    if isinstance(source, MultivariateNormal):
        others = [j for j in range(source.mean.shape[-1]) if j != rule.target % source.mean.shape[-1]]
        found = of_points(source.marginal(others).sample(n_samples, random_state))
        return BayesRisk(float(found.mean()), float(found.std(ddof=1) / np.sqrt(n_samples)), "monte carlo")
    return _expectation(source, of_points, n_samples, random_state)


def _points_of_table(table: JointTable, target: str) -> tuple[list[Any], Array]:
    """Return the values of x that have a probability, and these probabilities."""
    names = [name for name in table.names if name != target]
    p = table.marginal(names).p
    points = [
        tuple(table.values[name][i] for name, i in zip(names, place, strict=True)) for place in np.argwhere(p > 0)
    ]
    return points, p[p > 0]


def _expectation(rule: BayesClassifier, of_points: Callable[[Array], Array], n_samples: int, seed: Any) -> BayesRisk:
    """Return E g(x) over the mixture of the classes."""
    support = finite_support(rule.densities)
    if support is not None:
        return BayesRisk(
            float(np.exp(rule.predict_joint_log_proba(support)).sum(axis=1) @ of_points(support)), 1e-15, "exact"
        )
    if all(isinstance(p, Univariate) and np.size(p.mean) == 1 for p in rule.densities):
        line = [on_line(p) for p in rule.densities]
        low = min(float(p.quantile(1e-14)) for p in line)
        high = max(float(p.quantile(1 - 1e-14)) for p in line)
        levels = [1e-6, 1e-2, 0.5, 1 - 1e-2, 1 - 1e-6]
        breaks = np.unique([low, high, *(float(p.quantile(level)) for p in line for level in levels)])

        def at(u: float) -> float:
            X = np.array([[u]])
            return float(np.exp(rule.predict_joint_log_proba(X)).sum() * of_points(X)[0])

        pieces = [quad(at, a, b, epsabs=1e-11, limit=100)[:2] for a, b in pairwise(breaks)]
        return BayesRisk(sum(p for p, _ in pieces), sum(e for _, e in pieces), "quadrature")
    return _stratified(rule, of_points, n_samples, seed)


# --------------------------------------------------------------------------------------------------------------------
# The likelihood-ratio test of one known distribution against another.
#
#     reject p₀  where  log p₁(x) − log p₀(x) > t;    t such that the probability of rejecting under p₀ is the level
#
# No test of the same level has more power (Neyman and Pearson). On finite sets a rejection at equality is decided by
# a coin, so that the level is met exactly. With t = log(π₀/π₁) the test is the Bayes classifier with priors π.
#
# Reference: E. L. Lehmann and J. P. Romano, Testing Statistical Hypotheses, 4th ed. (2022), section 3.2.


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
