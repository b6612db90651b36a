"""Bayes risk: closed forms, quadrature against simulation, and excess risk that is never negative."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import poisson as sp_poisson

from learnable import LinearDiscriminantAnalysis
from learnable.core.errors import ParameterError
from learnable.evaluation import bayes_classifier, bayes_predictor, bayes_risk, excess_risk
from learnable.probability import (
    Bernoulli,
    Categorical,
    Gamma,
    JointTable,
    Laplace,
    MultivariateNormal,
    Normal,
    Poisson,
)


def closed_form(delta, prior):
    """π Φ(−Δ/2 + τ/Δ) + (1 − π) Φ(−Δ/2 − τ/Δ), τ = log((1 − π)/π): two normal classes with one covariance."""
    tau = np.log((1 - prior) / prior)
    return prior * norm.cdf(-delta / 2 + tau / delta) + (1 - prior) * norm.cdf(-delta / 2 - tau / delta)


@settings(max_examples=20)
@given(st.integers(1, 6), st.floats(0.1, 0.9), st.integers(0, 1000))
def test_normal_classes_with_one_covariance(d, prior, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    cov, m, k = A @ A.T + np.eye(d), rng.normal(size=d), rng.normal(size=d)
    delta = np.sqrt((m - k) @ np.linalg.solve(cov, m - k))
    found = bayes_risk([MultivariateNormal(m, cov), MultivariateNormal(k, cov)], [prior, 1 - prior])
    assert found.method == "exact" and found.value == pytest.approx(closed_form(delta, prior), abs=1e-12)


def test_normal_classes_of_one_mean():
    """Between N(0, 1) and N(0, 9) the boundaries are ±x with x² = 9 log 9 / 8."""
    x = np.sqrt(9 * np.log(9) / 8)
    expected = 0.5 * (2 * norm.cdf(-x) + 1 - 2 * norm.cdf(-x / 3))
    assert bayes_risk([Normal(0.0, 1.0), Normal(0.0, 3.0)]).value == pytest.approx(expected, abs=1e-13)


def test_finite_sets_by_summation():
    k = np.arange(60)
    expected = 0.5 * np.minimum(sp_poisson.pmf(k, 2), sp_poisson.pmf(k, 5)).sum()
    found = bayes_risk([Poisson(2.0), Poisson(5.0)])
    assert found.method == "exact" and found.value == pytest.approx(expected, abs=1e-13)
    assert bayes_risk([Categorical([0.2, 0.8]), Categorical([0.6, 0.4])], [0.5, 0.5]).value == pytest.approx(
        0.3, abs=1e-14
    )
    assert bayes_risk([Bernoulli([0.1, 0.9]), Bernoulli([0.1, 0.9])]).value == pytest.approx(0.5, abs=1e-14)


DENSITIES = {
    "gammas": ([Gamma(2.0, 1.0), Gamma(5.0, 1.0)], [0.3, 0.7]),
    "plane": (
        [MultivariateNormal([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]]), MultivariateNormal([1.0, -1.0], np.eye(2))],
        None,
    ),
    "three": (
        [
            MultivariateNormal([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]]),
            MultivariateNormal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]),
            MultivariateNormal([1.0, -1.0], np.eye(2)),
        ],
        [0.2, 0.3, 0.5],
    ),
    "space": ([MultivariateNormal(np.zeros(3), np.eye(3)), MultivariateNormal(np.ones(3), 3 * np.eye(3))], None),
}


@pytest.mark.parametrize(
    ("name", "costs"),
    [*((name, None) for name in DENSITIES), ("gammas", "unequal"), ("plane", "unequal"), ("space", "unequal")],
)
def test_against_simulation(name, costs):
    densities, priors = DENSITIES[name]
    K = len(densities)
    table = None if costs is None else (1.0 - np.eye(K)) * np.arange(1.0, K + 1)[:, None]
    rule = bayes_classifier(densities, priors, costs=table)
    found = bayes_risk(rule, n_samples=100_000)
    rng, n = np.random.default_rng(1), 200_000
    y = rng.choice(K, n, p=rule.priors)
    X = np.stack([p.sample(n, rng).reshape(n, -1) for p in densities])[y, np.arange(n)]
    losses = rule.costs[y, rule.decide(X)]
    error = np.hypot(losses.std() / np.sqrt(n), found.error)
    assert abs(found.value - losses.mean()) < 4 * error
    assert (
        found.method == {"gammas": "exact", "plane": "quadrature", "three": "quadrature", "space": "monte carlo"}[name]
    )


def test_products_in_the_plane():
    """Independent columns: the risk of two Laplace classes that differ in one column is that on the line."""
    plane = bayes_risk([Laplace([0.0, 1.0], [1.0, 2.0]), Laplace([2.0, 1.0], [1.0, 2.0])])
    line = bayes_risk([Laplace(0.0, 1.0), Laplace(2.0, 1.0)])
    assert plane.method == "quadrature" and plane.value == pytest.approx(line.value, abs=1e-8)
    assert line.value == pytest.approx(0.5 * np.exp(-1.0), abs=1e-12)


def test_excess_risk_on_the_line():
    rule = bayes_classifier([Normal(-1.0, 1.0), Normal(1.0, 1.0)])
    found = excess_risk(lambda x: (x[:, 0] > 0.5).astype(int), rule)
    assert found.value == pytest.approx(0.5 * (norm.cdf(-1.5) + norm.cdf(-0.5)) - norm.cdf(-1.0), abs=1e-12)
    assert excess_risk(rule, rule).value == pytest.approx(0.0, abs=1e-14)
    with pytest.raises(ParameterError, match="no label"):
        excess_risk(lambda x: np.full(len(x), 7), rule)


def test_the_excess_of_a_fitted_rule_falls_with_the_rows():
    densities = [MultivariateNormal([0.0, 0.0], np.eye(2)), MultivariateNormal([1.5, 0.5], np.eye(2))]
    rule = bayes_classifier(densities)
    rng = np.random.default_rng(0)
    excess = []
    for n in (20, 2000):
        y = np.arange(n) % 2
        X = np.stack([p.sample(n, rng) for p in densities])[y, np.arange(n)]
        found = excess_risk(LinearDiscriminantAnalysis().fit(X, y), rule, n_samples=50_000)
        assert found.value >= 0
        excess.append(found.value)
    assert excess[1] < 0.1 * excess[0]


def test_squared_loss():
    """With classes 0 and 1, E Var(Y | x) = E η(1 − η), at most half of, and at least, … the 0/1 risk over two."""
    rule = bayes_predictor([Normal(-1.0, 1.0), Normal(1.0, 1.0)])
    squared, errors = bayes_risk(rule).value, bayes_risk([Normal(-1.0, 1.0), Normal(1.0, 1.0)]).value
    assert errors / 2 < squared < errors
    flat = excess_risk(lambda x: np.full(len(x), 0.5), rule)
    assert flat.value + squared == pytest.approx(0.25, abs=1e-9)  # Var Y = E Var + Var E
    table = JointTable([[0.1, 0.2], [0.3, 0.4]], names=["x", "y"])
    assert excess_risk(lambda x: np.full(len(x), 0.6), bayes_predictor(table)).value == pytest.approx(
        0.3 * (2 / 3 - 0.6) ** 2 + 0.7 * (4 / 7 - 0.6) ** 2, abs=1e-14
    )
    line = bayes_predictor(MultivariateNormal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]))
    assert excess_risk(lambda x: 0 * x[:, 0], line).value == pytest.approx(0.25, abs=0.01)


def test_monte_carlo_tells_its_error():
    densities, _ = DENSITIES["space"]
    few, many = (bayes_risk(densities, n_samples=n) for n in (2_000, 200_000))
    assert few.error > 5 * many.error and abs(few.value - many.value) < 4 * few.error
