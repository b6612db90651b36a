r"""Decisions between distributions on the line, and on finite sets.

Between two neighbouring points at which a decision changes, its risk is a sum of differences of distribution functions:

    Σ_c π_c cost(c, a) (F_c(end) − F_c(start))

For normal classes the points are roots of quadratics; elsewhere they are found on a fine grid and by bisection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..probability.binomial import Bernoulli, Binomial
from ..probability.categorical import Categorical
from ..probability.multivariate_normal import MultivariateNormal
from ..probability.normal import Normal
from ..probability.poisson import Poisson
from .bayes_rule import as_points

Array = NDArray[np.float64]

_GRID = 4096  # points of the line between which a decision is taken to change at most once
_TAIL = 1e-15
_MOST_CELLS = 2_000_000
_BISECTIONS = 60


class BayesRisk(NamedTuple):
    """A risk, how it was computed, and how far it may be off."""

    value: float
    error: float  #: bound or estimate of the absolute error; for Monte Carlo, the standard error
    method: str  #: "exact", "quadrature" or "monte carlo"

    def __float__(self) -> float:
        return self.value


def on_line(density: Any) -> Any:
    """Return a distribution of one number, without axes."""
    if isinstance(density, MultivariateNormal):
        return Normal(float(density.mean[0]), float(np.sqrt(density.cov[0, 0])))
    return density[0] if density.batch_shape else density


def risk_on_the_line(line: list[Any], priors: Array, costs: Array, decide: Any = None) -> BayesRisk:
    """Return the risk, or the excess, from the distribution functions between the points where decisions change."""
    cuts = _changes(line, priors, costs, decide)
    ends = np.r_[-np.inf, cuts, np.inf]
    middle = _between(ends, line)
    mass = np.stack([np.diff(_cdf(p, ends)) for p in line], axis=1) * priors
    risk = mass @ costs
    joint = _joint(line, priors, middle)
    best = (joint @ costs).argmin(axis=1)
    value = risk[np.arange(len(risk)), best]
    if decide is not None:
        value = risk[np.arange(len(risk)), decide(as_points(middle))] - value
    return BayesRisk(float(max(0.0, value.sum())), 1e-14 * len(ends), "exact")


def _cdf(density: Any, x: Array) -> Array:
    inside = np.asarray(density.cdf(np.clip(x, -1e300, 1e300)))
    return np.where(np.isposinf(x), 1.0, np.where(np.isneginf(x), 0.0, inside))


def _joint(line: list[Any], priors: Array, x: Array) -> Array:
    """Return π_c p_c(x), scaled in each row so that the largest is one."""
    with np.errstate(divide="ignore"):
        logs = np.stack([np.asarray(p.logpdf(x)) for p in line], axis=1) + np.log(priors)
    top = logs.max(axis=1, keepdims=True)
    return np.exp(logs - np.where(np.isfinite(top), top, 0.0))


def _between(ends: Array, line: list[Any]) -> Array:
    """Return one point in each interval."""
    if len(ends) == 2:
        return np.array([float(line[0].mean)])
    step = 1.0 + np.abs(ends[[1, -2]])
    inner = 0.5 * (ends[1:-2] + ends[2:-1]) if len(ends) > 3 else np.empty(0)
    return np.r_[ends[1] - step[0], inner, ends[-2] + step[1]]


def _changes(line: list[Any], priors: Array, costs: Array, decide: Any) -> Array:
    """Return the points at which the best decision, or that of `decide`, changes."""
    if decide is None and all(isinstance(p, Normal) for p in line):
        if _is_zero_one(costs):
            return _normal_crossings(line, priors)
        if len(line) == 2:  # what each error costs more than the right answer weighs like a prior
            return _normal_crossings(line, priors * np.array([costs[0, 1] - costs[0, 0], costs[1, 0] - costs[1, 1]]))
    low = min(float(p.quantile(_TAIL)) for p in line)
    high = max(float(p.quantile(1.0 - _TAIL)) for p in line)
    levels = np.linspace(0.0, 1.0, _GRID // 4)[1:-1]
    grid = np.unique(np.r_[low, high, np.linspace(low, high, _GRID), *[np.asarray(p.quantile(levels)) for p in line]])

    def label(x: Array) -> Array:
        found = (_joint(line, priors, x) @ costs).argmin(axis=1)
        return found if decide is None else found * len(costs) + decide(as_points(x))

    at = label(grid)
    changes = np.flatnonzero(at[1:] != at[:-1])
    a = grid[changes]
    b = grid[changes + 1]
    left = at[changes]
    for _ in range(_BISECTIONS):
        m = 0.5 * (a + b)
        same = label(m) == left if len(m) else np.empty(0, dtype=bool)
        a = np.where(same, m, a)
        b = np.where(same, b, m)
    return np.unique(b)


def _is_zero_one(costs: Array) -> bool:
    return bool(np.array_equal(costs, 1.0 - np.eye(len(costs))))


def _normal_crossings(line: list[Any], priors: Array) -> Array:
    """Return all points where two of the weighted normal densities are equal: roots of quadratics."""
    found: list[float] = []
    for i, p in enumerate(line):
        for j in range(i):
            if priors[i] > 0 and priors[j] > 0:
                found += _roots(p, line[j], np.log(priors[i] / priors[j]))
    return np.unique(found)


def _roots(p: Normal, q: Normal, log_ratio: float) -> list[float]:
    centre = 0.5 * float(p.mean + q.mean)
    s = float(p.std)
    t = float(q.std)
    m = float(p.mean) - centre
    k = float(q.mean) - centre
    a = 0.5 * (1 / t - 1 / s) * (1 / t + 1 / s)
    b = m / s**2 - k / t**2
    c = 0.5 * ((k / t) ** 2 - (m / s) ** 2) + np.log(t / s) + log_ratio
    if a == 0.0:
        return [] if b == 0.0 else [centre - c / b]
    inside = b * b - 4 * a * c
    if inside < 0:
        return []
    h = -0.5 * (b + np.copysign(np.sqrt(inside), b))
    return [centre + h / a] + ([centre + c / h] if h != 0.0 else [])


def as_normal(density: Any) -> MultivariateNormal | None:
    """Return one normal distribution as that of a vector; None of others."""
    if isinstance(density, MultivariateNormal) and not density.batch_shape:
        return density
    if isinstance(density, Normal) and len(density.batch_shape) <= 1:
        return MultivariateNormal(np.atleast_1d(density.mean), np.diag(np.atleast_1d(density.variance)))
    return None


def finite_support(densities: tuple[Any, ...]) -> Array | None:
    """Return all points that have a probability, if they are few: a grid of those of each column."""
    if not all(isinstance(p, (Bernoulli, Binomial, Categorical, Poisson)) for p in densities):
        return None
    if any(isinstance(p, Categorical) and p.batch_shape for p in densities):
        return None
    d = max(int(np.size(p.mean)) if not isinstance(p, Categorical) else 1 for p in densities)
    highest = np.zeros(d)
    for p in densities:
        if isinstance(p, Categorical):
            top = np.array([p.p.shape[-1] - 1.0])
        else:
            top = np.atleast_1d(p.quantile(1.0 - _TAIL) if isinstance(p, Poisson) else getattr(p, "n", 1.0))
        highest = np.maximum(highest, top)
    if np.prod(highest + 1.0) > _MOST_CELLS:
        return None
    axes = [np.arange(int(top) + 1, dtype=np.float64) for top in highest]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
