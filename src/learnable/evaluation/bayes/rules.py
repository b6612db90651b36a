"""The best rules for a known distribution.

For 0/1 loss, or any table of costs, the Bayes classifier chooses the action of least expected cost given x,

    f*(x) = argmin_a Σ_c P(c | x) cost(c, a),    P(c | x) ∝ π_c p_c(x)

(with 0/1 loss: the most probable class). For squared loss the best predictor is the regression function E[Y | x]. No
rule has a smaller risk; `bayes_risk` says what that is, and `excess_risk` how far another rule is from it.

Reference: L. Devroye, L. Györfi and G. Lugosi, A Probabilistic Theory of Pattern Recognition (1996), chapter 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ...core.errors import DataError, ParameterError
from ...probability import (
    Bernoulli,
    Binomial,
    Categorical,
    Distribution,
    JointTable,
    MultivariateNormal,
    Normal,
    Poisson,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BayesClassifier:
    """The classifier of least risk for known class densities.

    Attributes
    ----------
    densities : tuple
        p_c: distributions, or fitted objects with `score_samples`.
    priors : array of shape (K,)
        π.
    labels : array of shape (K,)
        The classes.
    costs : array of shape (K, n_actions)
        Cost of each action for each true class; the k-th action is to say the k-th label.
    """

    densities: tuple[Any, ...]
    priors: Array
    labels: NDArray[Any]
    costs: Array

    def predict_joint_log_proba(self, X: ArrayLike) -> Array:
        """Return log π_c p_c(x), of shape (n, K)."""
        X = as_points(X)
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.priors)
        return np.stack([log_density(p, X) for p in self.densities], axis=1) + log_priors

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return P(c | x), of shape (n, K); the priors where x is impossible under every class."""
        joint = self.predict_joint_log_proba(X)
        impossible = np.isneginf(joint).all(axis=1)
        joint[impossible] = 0.0
        found = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        found[impossible] = self.priors
        return found

    def expected_costs(self, X: ArrayLike) -> Array:
        """Return the expected cost of each action given x, of shape (n, n_actions)."""
        return self.predict_proba(X) @ self.costs

    def decide(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return the number of the best action; of equally good ones, the first."""
        return np.asarray(self.expected_costs(X).argmin(axis=1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of the best action."""
        return self.labels[self.decide(X)]


@dataclass(frozen=True)
class BayesPredictor:
    """The predictor E[Y | x] of least squared error.

    Attributes
    ----------
    source : object
        The joint distribution: a `MultivariateNormal`, a `JointTable`, or a `BayesClassifier` with `values`.
    target : int, str or None
        Which entry of a normal vector, or which variable of a table, is Y.
    values : array of shape (K,) or None
        Y in each class.
    """

    source: Any
    target: Any = None
    values: Any = None

    def predict(self, X: Any) -> Array:
        """Return E[Y | x] of every row."""
        return self._moments(X)[0]

    def variance(self, X: Any) -> Array:
        """Return Var(Y | x) of every row."""
        return self._moments(X)[1]

    def _moments(self, X: Any) -> tuple[Array, Array]:
        if isinstance(self.source, BayesClassifier):
            P = self.source.predict_proba(X)
            mean = P @ self.values
            return mean, np.maximum(P @ np.square(self.values) - mean**2, 0.0)
        if isinstance(self.source, JointTable):
            return self._table_moments(X)
        joint = self.source
        d = joint.mean.shape[-1]
        target = self.target % d
        others = [j for j in range(d) if j != target]
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if X.shape[1] != d - 1:
            raise DataError(f"bayes_predictor: x must have {d - 1} columns, got {X.shape[1]}.")
        given = joint.condition(on=others, values=X)
        mean = np.broadcast_to(given.mean[..., 0], len(X))
        return np.array(mean), np.array(np.broadcast_to(given.variance[..., 0], len(X)))

    def _table_moments(self, X: Any) -> tuple[Array, Array]:
        table: JointTable = self.source
        names = [name for name in table.names if name != self.target]
        y = np.asarray(table.values[self.target], dtype=np.float64)
        rows = [tuple(np.atleast_1d(row).tolist()) for row in X]
        found = np.empty((2, len(rows)))
        for i, row in enumerate(rows):
            if len(row) != len(names):
                raise DataError(f"bayes_predictor: x must hold values of {', '.join(names)}; got {row!r}.")
            p = table.condition(**dict(zip(names, row, strict=True))).marginal(self.target).p
            found[:, i] = p @ y, p @ (y - p @ y) ** 2
        return found[0], found[1]


def bayes_classifier(
    densities: Any, priors: ArrayLike | None = None, *, labels: Sequence[Any] | None = None, costs: Any = None
) -> BayesClassifier:
    """Return the classifier of least risk for known class densities.

    Parameters
    ----------
    densities : sequence of distributions, or one array of K distributions
        p_c: `Normal`, `MultivariateNormal`, … (a distribution on the line with d parameters stands for d independent
        columns), or fitted objects with `score_samples`.
    priors : array of shape (K,), optional
        π; equal by default.
    labels : sequence, optional
        The classes; 0, 1, … by default.
    costs : array of shape (K, K), optional
        Cost of saying each label for each true class; 0/1 by default.

    Examples
    --------
    >>> from learnable.evaluation import bayes_classifier, bayes_risk
    >>> from learnable.probability import Normal
    >>> rule = bayes_classifier([Normal(-1.0, 1.0), Normal(1.0, 1.0)], labels=["a", "b"])
    >>> rule.predict([-0.3, 0.4])
    array(['a', 'b'], dtype='<U1')
    >>> round(float(bayes_risk(rule)), 6)
    0.158655
    """
    if isinstance(densities, Distribution):
        if len(densities.batch_shape) != 1:
            raise ParameterError("bayes_classifier: densities must be a sequence, or one array of K distributions.")
        densities = [densities[k] for k in range(densities.batch_shape[0])]
    found = tuple(densities)
    K = len(found)
    if K < 2 or not all(isinstance(p, Distribution) or hasattr(p, "score_samples") for p in found):
        raise ParameterError(
            f"bayes_classifier: densities must be at least two distributions, or objects with score_samples; got {K}."
        )
    weights = np.full(K, 1.0 / K) if priors is None else np.array(priors, dtype=np.float64)
    if weights.shape != (K,) or not (weights >= 0).all() or abs(weights.sum() - 1.0) > 1e-9:
        raise ParameterError(f"bayes_classifier: priors must be {K} probabilities with the sum 1; got {priors!r}.")
    names = np.arange(K) if labels is None else np.asarray(labels)
    table = 1.0 - np.eye(K) if costs is None else np.array(costs, dtype=np.float64)
    if len(names) != K or table.shape != (K, K) or not np.isfinite(table).all():
        raise ParameterError(f"bayes_classifier: labels must be {K}, and costs a finite table of {K} × {K}.")
    return BayesClassifier(found, weights, names, table)


def bayes_predictor(
    source: Any, *, target: Any = None, priors: ArrayLike | None = None, values: ArrayLike | None = None
) -> BayesPredictor:
    """Return the regression function E[Y | x] of a known joint distribution.

    Parameters
    ----------
    source : MultivariateNormal, JointTable, or class densities
        The joint distribution of (x, Y); or, as for `bayes_classifier`, the densities of x in classes in each of
        which Y is a constant.
    target : int or str, optional
        Which entry, or variable, is Y; the last by default.
    priors, values : arrays of shape (K,), optional
        Of class densities: their probabilities, and Y in each (0, 1, … by default).

    Examples
    --------
    >>> from learnable.evaluation import bayes_predictor, bayes_risk
    >>> from learnable.probability import MultivariateNormal
    >>> rule = bayes_predictor(MultivariateNormal([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]]))
    >>> rule.predict([[1.0]]), float(bayes_risk(rule))
    (array([1.5]), 1.5)
    """
    if isinstance(source, MultivariateNormal) and not source.batch_shape:
        d = source.mean.shape[-1]
        place = -1 if target is None else target
        if d < 2 or not isinstance(place, (int, np.integer)) or not -d <= place < d:
            raise ParameterError(f"bayes_predictor: target must be an entry from 0 to {d - 1}; got {target!r}.")
        return BayesPredictor(source, int(place))
    if isinstance(source, JointTable):
        name = source.names[-1] if target is None else target
        if name not in source.names or len(source.names) < 2:
            raise ParameterError(f"bayes_predictor: target must be one of {source.names}; got {target!r}.")
        return BayesPredictor(source, name)
    rule = bayes_classifier(source, priors)
    y = np.arange(len(rule.priors), dtype=np.float64) if values is None else np.array(values, dtype=np.float64)
    if y.shape != rule.priors.shape or not np.isfinite(y).all():
        raise ParameterError(f"bayes_predictor: values must be {len(rule.priors)} finite numbers; got {values!r}.")
    return BayesPredictor(rule, None, y)


def as_points(X: ArrayLike) -> Array:
    """Return points as rows; numbers are points of the line."""
    points = np.asarray(X, dtype=np.float64)
    return points.reshape(-1, 1) if points.ndim < 2 else points


def log_density(density: Any, X: Array) -> Array:
    """Return log p(x) of every row."""
    if not isinstance(density, Distribution):
        return np.asarray(density.score_samples(X), dtype=np.float64)
    if len(density.event_shape) == 1:
        return np.atleast_1d(density.logpdf(X))
    if not density.batch_shape:
        if X.shape[1] != 1:
            raise DataError(
                f"bayes_classifier: {type(density).__name__} is on the line; the points have {X.shape[1]} columns."
            )
        return np.atleast_1d(density.logpdf(X[:, 0]))
    return np.asarray(density.logpdf(X)).sum(axis=1)


# --------------------------------------------------------------------------------------------------------------------
# Decisions between distributions on the line, and on finite sets.
#
# Between two neighbouring points at which a decision changes, its risk is a sum of differences of distribution
# functions:
#
#     Σ_c π_c cost(c, a) (F_c(end) − F_c(start))
#
# For normal classes the points are roots of quadratics; elsewhere they are found on a fine grid and by bisection.


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
        if np.array_equal(costs, 1.0 - np.eye(len(costs))):
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
