"""The evidence of Bayesian regression against its definition: a normal density of y, and an integral."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.optimize import minimize

from learnable.linear.bayesian.evidence import LEAST, MOST, maximise, merge, problem_of, spectral, stationarity, thin


def rows(seed, n, d, noise=0.7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 3.0, d) + rng.normal(size=d)
    return X, X @ rng.normal(size=d) + 2.0 + noise * rng.normal(size=n)


def moments_of(X, y, intercept=True, wide=False):
    x_mean, y_mean = (X.mean(axis=0), y.mean()) if intercept else (np.zeros(X.shape[1]), 0.0)
    Z, t = X - x_mean, y - y_mean
    if wide:
        return thin(len(y), float(len(y)), x_mean, y_mean, Z, Z.T @ t, t @ t)
    return spectral(len(y), float(len(y)), x_mean, y_mean, Z.T @ Z, Z.T @ t, t @ t)


@pytest.mark.parametrize(("n", "d"), [(12, 3), (4, 9)])
def test_evidence_is_the_normal_density_of_y(n, d):
    X, y = rows(0, n, d)
    alpha, lam = 1.7, 0.6
    problem = problem_of(moments_of(X, y, intercept=False, wide=n < d), False)
    cov = np.eye(n) / alpha + X @ X.T / lam
    expected = stats.multivariate_normal(np.zeros(n), cov).logpdf(y)
    assert problem.log_evidence(alpha, lam / alpha) == pytest.approx(expected, rel=1e-10)


def test_a_flat_intercept_is_integrated():
    X, y = rows(1, 9, 2)
    alpha, lam = 1.7, 0.6
    cov = np.eye(9) / alpha + X @ X.T / lam
    density = stats.multivariate_normal(np.zeros(9), cov)
    middle = np.linalg.solve(cov, y).sum() / np.linalg.solve(cov, np.ones(9)).sum()
    total, _ = integrate.quad(lambda b: density.pdf(y - b), middle - 9.0, middle + 9.0, epsabs=0.0, epsrel=1e-10)
    problem = problem_of(moments_of(X, y), True)
    assert problem.log_evidence(alpha, lam / alpha) == pytest.approx(np.log(total), rel=1e-8)


def test_unknown_noise_is_integrated():
    X, y = rows(2, 8, 2)
    problem, shape, rate, rho = problem_of(moments_of(X, y, False), False), 1.5, 0.8, 0.4
    prior = stats.invgamma(shape, scale=rate)

    def joint(log_v):
        v = np.exp(log_v)
        return prior.pdf(v) * v * np.exp(problem.log_evidence(1.0 / v, rho))

    total, _ = integrate.quad(joint, -10.0, 10.0, epsabs=0.0, epsrel=1e-11, limit=500)
    assert problem.log_evidence_unknown(shape, rate, rho) == pytest.approx(np.log(total), rel=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 30), st.integers(1, 12), st.booleans())
def test_no_other_scales_have_more_evidence(seed, n, d, intercept):
    X, y = rows(seed, n, d)
    problem = problem_of(moments_of(X, y, intercept, wide=n < d), intercept)
    rho = maximise(problem)
    alpha = problem.n / float(problem.q(rho))
    best = problem.log_evidence(alpha, rho)
    top = problem.values[-1]
    assert 0.99 * LEAST * top <= rho <= 1.01 * MOST * top
    for log_ratio in np.linspace(-11.5, 11.5, 47):
        other = float(10.0**log_ratio * top)
        at = problem.log_evidence(problem.n / float(problem.q(other)), other)
        assert at <= best + 1e-8 * max(1.0, abs(best))
    assert stationarity(problem, alpha, rho) < 1e-8


def test_a_general_optimiser_finds_no_more():
    X, y = rows(5, 40, 6)
    problem = problem_of(moments_of(X, y), True)
    rho = maximise(problem)
    best = problem.log_evidence(problem.n / float(problem.q(rho)), rho)

    def negative(z):
        return -problem.log_evidence(np.exp(z[0]), np.exp(z[1] - z[0]))

    found = minimize(
        negative, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    )
    assert best == pytest.approx(-found.fun, abs=1e-7)
    assert rho == pytest.approx(np.exp(found.x[1] - found.x[0]), rel=1e-3)


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("intercept", [True, False])
def test_moments_merge(d, intercept):
    X, y = rows(3, 25, d)
    whole = moments_of(X, y, intercept, wide=d > 25)
    parts = merge(
        moments_of(X[:11], y[:11], intercept, d > 11), moments_of(X[11:], y[11:], intercept, d > 14), intercept
    )
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-9)
    np.testing.assert_allclose(parts.cross, whole.cross, rtol=1e-9, atol=1e-9)
    one, other = ((m.basis * m.values) @ m.basis.T for m in (parts, whole))
    np.testing.assert_allclose(one, other, atol=1e-9)
    assert parts.y_square == pytest.approx(whole.y_square) and parts.weight == whole.weight


def test_nothing_varies():
    problem = problem_of(moments_of(np.ones((5, 2)), np.arange(5.0)), True)
    assert maximise(problem) == 1.0 and problem.gamma(1.0) == 0.0
    assert stationarity(problem, problem.n / float(problem.q(1.0)), 1.0) == pytest.approx(0.0, abs=1e-12)
