"""The marginal likelihood against the density of a multivariate normal, its gradient against differences."""

import numpy as np
import pytest
from scipy.linalg import null_space
from tests.oracles.gaussian_process import log_evidence

from learnable.core.errors import DataError, ParameterError
from learnable.kernel.gp.likelihood import Objective, Observations, evidence, needed_jitter, per_row, stationarity
from learnable.risk.kernels import FunctionKernel, Gaussian, Matern, White

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * RNG.normal(size=(30, 2))
NOISE = RNG.uniform(0.01, 0.1, 30)
KERNEL = 1.5 * Gaussian([1.0, 2.0]) + White(0.05)
NONE = np.zeros((30, 0))
LINE = np.column_stack([np.ones(30), X])


def test_value_is_the_density_of_the_targets():
    found = evidence(KERNEL, Observations(X, Y, NOISE, NONE), gradient=False)
    K = KERNEL(X) + np.diag(NOISE)
    assert found.value == pytest.approx(log_evidence(K, Y), rel=1e-12)
    np.testing.assert_allclose(K @ found.alpha, Y, atol=1e-12)
    np.testing.assert_allclose(found.L @ found.L.T, K, atol=1e-13)


def test_flat_coefficients_leave_the_density_of_what_they_cannot_reach():
    found = evidence(KERNEL, Observations(X, Y[:, :1], NOISE, LINE), gradient=False)
    U, K = null_space(LINE.T), KERNEL(X) + np.diag(NOISE)
    expected = log_evidence(U.T @ K @ U, U.T @ Y[:, 0]) - 0.5 * np.linalg.slogdet(LINE.T @ LINE)[1]
    assert found.value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(LINE.T @ found.alpha, 0.0, atol=1e-9)


@pytest.mark.parametrize("H", [NONE, LINE], ids=["zero", "line"])
@pytest.mark.parametrize("targets", [1, 2])
def test_gradient(H, targets):
    data = Observations(X, Y[:, :targets], NOISE, H)
    kernel = KERNEL * Matern(1.0, 2.5)
    found, h = evidence(kernel, data, gradient=True), 1e-5
    for j, e in enumerate(np.eye(len(kernel.theta))):
        up, down = (evidence(kernel.with_theta(kernel.theta + s * h * e), data, gradient=False) for s in (1, -1))
        assert found.gradient[j] == pytest.approx((up.value - down.value) / (2 * h), rel=1e-6, abs=1e-6)


def test_fisher_information_is_the_mean_curvature():
    data = Observations(X, Y[:, :1], NOISE, NONE)
    F = Objective(KERNEL, data, np.full((4, 2), [-9.0, 9.0])).curvature(KERNEL.theta)
    inverse = np.linalg.inv(KERNEL(X) + np.diag(NOISE))
    G = KERNEL.gradient(X)
    expected = [[0.5 * np.trace(inverse @ a @ inverse @ b) for a in G] for b in G]
    np.testing.assert_allclose(F, expected, rtol=1e-4, atol=1e-4 * np.trace(expected))


def test_derivatives_that_a_bound_holds_back_do_not_count():
    bounds = np.array([[0.0, 1.0]] * 3)
    gradient = np.array([-5.0, 7.0, 0.5])  # uphill is below the lower bound, above the upper one, inside
    assert stationarity(np.array([0.0, 1.0, 0.5]), gradient, bounds, 2.0) == 0.25
    assert stationarity(np.array([0.1, 1.0, 0.5]), gradient, bounds, 1.0) == 5.0


def test_jitter_only_where_it_is_needed():
    twice = np.vstack([X, X])
    data = Observations(twice, np.vstack([Y, Y]), np.zeros(60), np.zeros((60, 0)))
    jitter = needed_jitter("GP", Gaussian(1.0), data)
    assert 0.0 < jitter <= 1e-10
    assert needed_jitter("GP", Gaussian(1.0) + White(0.1), data) == 0.0


def test_what_is_no_kernel_is_refused():
    data = Observations(X, Y, np.zeros(30), NONE)
    with pytest.raises(DataError, match="not positive definite"):
        needed_jitter("GP", FunctionKernel(lambda A, B: -(A @ B.T)), data)


def test_noise_of_each_row():
    np.testing.assert_array_equal(per_row("GP", 0.5, 3), [0.5] * 3)
    with pytest.raises(ParameterError, match="entry for each of 3 rows"):
        per_row("GP", [0.1, 0.2], 3)
