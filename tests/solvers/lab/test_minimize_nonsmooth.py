"""Proximal gradients: KKT of the lasso, the accelerated rate, restart, and honest certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.core.errors import ParameterError
from learnable.risk import L1Penalty, L2Penalty
from learnable.solvers import Constant, InverseRoot, minimize


class NonNegative:
    """The indicator of the cone x ≥ 0."""

    def value(self, w):
        return 0.0 if (w >= 0).all() else np.inf

    def prox(self, w, step):
        return np.maximum(w, 0.0)


def lasso(seed=0, n=30, p=8, kappa=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.logspace(0, np.log10(kappa), p)
    y = X[:, 0] / np.abs(X[:, 0]).max() - X[:, 1] / np.abs(X[:, 1]).max() + 0.1 * rng.normal(size=n)
    return X, y, lambda w: 0.5 * np.sum((X @ w - y) ** 2), lambda w: X.T @ (X @ w - y)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 0.99))
def test_the_lasso_obeys_its_kkt_conditions(seed, share):
    X, y, f, g = lasso(seed)
    strength = share * np.abs(X.T @ y).max()
    found = minimize(f, np.zeros(8), g, method="proximal", penalty=L1Penalty(strength), tol=1e-10, max_iter=20_000)
    assert found.converged
    correlation = X.T @ (y - X @ found.x)
    on = found.x != 0
    np.testing.assert_allclose(correlation[on], strength * np.sign(found.x[on]), atol=1e-8 * (1 + strength))
    assert (np.abs(correlation[~on]) <= strength + 1e-8).all()


def test_at_lambda_max_the_lasso_is_exactly_zero_and_just_below_it_is_not():
    X, y, f, g = lasso()
    largest = np.abs(X.T @ y).max()
    at = minimize(f, np.ones(8), g, method="proximal", penalty=L1Penalty(largest), max_iter=20_000)
    below = minimize(f, np.ones(8), g, method="proximal", penalty=L1Penalty(0.99 * largest), max_iter=20_000)
    assert not at.x.any()
    assert np.count_nonzero(below.x) == 1


def test_a_smooth_penalty_gives_ridge():
    X, y, f, g = lasso()
    found = minimize(f, np.zeros(8), g, method="proximal", penalty=L2Penalty(3.0), tol=1e-11, max_iter=20_000)
    np.testing.assert_allclose(found.x, np.linalg.solve(X.T @ X + 3 * np.eye(8), X.T @ y), rtol=1e-8)


def test_a_constraint_is_a_penalty_too():
    from scipy.optimize import nnls

    X, y, f, g = lasso(3)
    found = minimize(f, np.zeros(8), g, method="proximal", penalty=NonNegative(), tol=1e-10, max_iter=20_000)
    np.testing.assert_allclose(found.x, nnls(X, y)[0], atol=1e-8)


def test_the_accelerated_rate_holds_without_knowing_anything():
    """F(x_T) − F* ≤ 2‖x₀ − x*‖²/(η(T + 1)²) with η = 1/L."""
    X, _, f, g = lasso(1, kappa=30.0)
    L, penalty = np.linalg.eigvalsh(X.T @ X)[-1], L1Penalty(0.5)
    exact = minimize(f, np.zeros(8), g, method="proximal", penalty=penalty, tol=1e-13, max_iter=100_000)
    run = minimize(
        f, np.zeros(8), g, method="proximal", penalty=penalty, step=Constant(1 / L), tol=0.0, max_iter=300
    ).trace.value
    t = np.arange(1, len(run))
    assert (run[1:] - exact.value <= 2 * L * exact.x @ exact.x / (t + 1) ** 2 + 1e-12).all()


def test_plain_steps_never_rise_and_acceleration_with_restart_is_faster():
    _, _, f, g = lasso(2, kappa=30.0)
    options = {"method": "proximal", "penalty": L1Penalty(0.5), "tol": 1e-8, "max_iter": 50_000}
    plain = minimize(f, np.zeros(8), g, accelerate=False, **options)
    fast = minimize(f, np.zeros(8), g, **options)
    assert plain.converged and fast.converged
    assert (np.diff(plain.trace.value) <= 1e-12 * plain.trace.value[0]).all()
    assert fast.n_iter < 0.3 * plain.n_iter


def test_the_certificate_is_a_subgradient_of_the_sum():
    _, _, f, g = lasso(4)
    found = minimize(f, np.zeros(8), g, method="proximal", penalty=L1Penalty(0.7), max_iter=7, tol=0.0)
    slope, w = g(found.trace.path[-1]), found.trace.path[-1]
    # The distance of −∇f from λ∂‖·‖₁, entry by entry: nothing smaller is possible, and ξ is no smaller.
    least = np.where(w != 0, np.abs(slope + 0.7 * np.sign(w)), np.maximum(np.abs(slope) - 0.7, 0))
    assert found.trace.gradient_norm[-1] >= np.linalg.norm(least) * (1 - 1e-9)


def test_rounding_never_makes_a_certificate_zero():
    A = np.diag(np.logspace(0, 3, 10))
    b = np.ones(10)
    found = minimize(
        lambda x: 0.5 * x @ A @ x - b @ x, np.zeros(10), lambda x: A @ x - b, method="proximal", penalty=L2Penalty(0.0),
        tol=1e-11, max_iter=20_000,
    )  # fmt: skip
    assert np.abs(A @ found.x - b).max() <= 2 * found.measure * max(abs(found.value), 1) + 1e-12


@pytest.mark.parametrize("penalty", [None, 3.0, object()])
def test_a_penalty_is_needed(penalty):
    with pytest.raises(ParameterError, match="needs penalty"):
        minimize(lambda x: x @ x, [1.0], method="proximal", penalty=penalty)


def test_only_constant_and_backtracking_steps_make_sense():
    with pytest.raises(ParameterError, match="Constant or Backtracking"):
        minimize(lambda x: x @ x, [1.0], method="proximal", penalty=L1Penalty(1.0), step=InverseRoot(1.0))


def test_momentum_that_leaves_the_domain_is_dropped():
    with np.errstate(invalid="ignore", divide="ignore"):
        found = minimize(
            lambda x: float((x - 0.1 * np.log(x)).sum()), [5.0, 50.0], lambda x: 1 - 0.1 / x, method="proximal",
            penalty=L1Penalty(0.0), max_iter=5000,
        )  # fmt: skip
    assert found.converged
    np.testing.assert_allclose(found.x, 0.1, rtol=1e-6)
