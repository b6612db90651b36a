"""Subgradient descent: the bound BG/√T, and a certificate from the planes it has seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.solvers import minimize


def absolute_regression(seed=0, n=40, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + rng.laplace(size=n)
    return X, y, lambda w: np.abs(X @ w - y).mean(), lambda w: X.T @ np.sign(X @ w - y) / n


def exact_value(X, y):
    """Least absolute deviations as a linear program."""
    from scipy.optimize import linprog

    n, p = X.shape
    A = np.block([[X, -np.eye(n)], [-X, -np.eye(n)]])
    found = linprog(
        np.r_[np.zeros(p), np.ones(n)], A_ub=A, b_ub=np.r_[y, -y], bounds=[(None, None)] * p + [(0, None)] * n
    )
    return found.fun / n, found.x[:p]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_the_bound_holds_for_the_mean(seed):
    X, y, f, g = absolute_regression(seed)
    best, w_star = exact_value(X, y)
    G, B = np.linalg.norm(X, axis=1).mean(), np.linalg.norm(w_star)
    for T in (25, 400):
        found = minimize(f, np.zeros(3), g, method="subgradient", step=B / (G * np.sqrt(T)), max_iter=T)
        assert f(found.trace.mean) - best <= B * G / np.sqrt(T)
        assert found.value <= f(found.trace.mean)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_weak_duality_at_every_iterate(seed):
    X, y, f, g = absolute_regression(seed)
    best, w_star = exact_value(X, y)
    found = minimize(
        f, np.zeros(3), g, method="subgradient", radius=1.5 * np.linalg.norm(w_star), step=0.3, max_iter=150
    )
    lowest = np.minimum.accumulate(found.trace.value)[1:]
    gaps = found.trace.measure[1:]
    # gap = (P − D)/|D|: with D ≤ f* the quotient is at least what is left to the optimum.
    assert (gaps >= (lowest - best) / max(best, 1e-12) * (1 - 1e-9)).all()
    assert found.certificate.kind == "gap"
    assert found.certificate.bound >= (found.value - best) / best * (1 - 1e-9)


def test_the_gap_closes():
    X, y, f, g = absolute_regression(5)
    _, w_star = exact_value(X, y)
    found = minimize(f, np.zeros(3), g, method="subgradient", radius=np.linalg.norm(w_star), tol=0.05, max_iter=20_000)
    assert found.certificate.holds
    assert found.n_iter < 20_000


def test_without_a_radius_nothing_is_proven():
    _, _, f, g = absolute_regression()
    found = minimize(f, np.zeros(3), g, method="subgradient", max_iter=50)
    assert found.certificate.kind == "none"
    assert not found.certificate.holds
    assert not found.converged


def test_a_zero_subgradient_is_a_minimum():
    found = minimize(lambda x: np.abs(x).sum(), [2.0], np.sign, method="subgradient", step=1.0, radius=5.0)
    assert found.value == 0.0
    assert found.measure == 0.0
    assert found.n_iter == 2


def test_divergence_returns_the_best():
    found = minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method="subgradient", step=10.0, max_iter=2000)
    assert found.value <= 1.0


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan])
def test_the_radius_is_positive(radius):
    with pytest.raises(ValueError, match="radius must be"):
        minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method="subgradient", radius=radius)
