r"""The least possible risk of a known distribution, and how far other rules are from it.

    R* = ∫ min_a Σ_c π_c p_c(x) cost(c, a) dx          (for squared loss: E Var(Y | x))

Exact where it can be: on finite sets by summation; on the line by the distribution functions between the points where
the decision changes; for normal classes with one covariance after projection on the directions of their means. In the
plane the inner integral is exact and the outer one is adaptive quadrature; elsewhere it is Monte Carlo, with its
standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from ..core.errors import ParameterError
from ..probability.base import Discrete, Distribution, Univariate
from ..probability.joint_table import JointTable
from ..probability.multivariate_normal import MultivariateNormal
from ..probability.normal import Normal
from .bayes_line import BayesRisk, as_normal, finite_support, on_line, risk_on_the_line
from .bayes_rule import BayesClassifier, BayesPredictor, as_points, bayes_classifier

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
