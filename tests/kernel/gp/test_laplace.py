"""Laplace's approximation: the mode, the gradient, the averages of the sigmoid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tests.oracles.gaussian_process import averaged_sigmoid as integral

from learnable.kernel.gp.laplace import Labels, LaplaceObjective, averaged_sigmoid, find_mode
from learnable.risk.kernels import Gaussian, Matern, White, as_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
T = (np.sin(2 * X[:, 0]) + 0.4 * RNG.normal(size=40) > 0).astype(float)
WIDE = np.full((4, 2), [-9.0, 9.0])


def test_the_mode_is_the_maximum_of_the_posterior():
    K = (2.0 * Gaussian(1.0) + White(0.1))(X)
    mode = find_mode(K, T)
    inverse = np.linalg.inv(K)
    found = minimize(
        lambda f: 0.5 * f @ inverse @ f + np.logaddexp(0.0, -(2 * T - 1) * f).sum(),
        np.zeros(40),
        jac=lambda f: inverse @ f - (T - expit(f)),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    np.testing.assert_allclose(mode.f, found.x, atol=1e-6)
    assert mode.residual < 1e-12
    W = expit(mode.f) * expit(-mode.f)
    expected = -found.fun - 0.5 * np.linalg.slogdet(np.eye(40) + W[:, None] * K)[1]
    assert mode.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "kernel", [2.0 * Gaussian([1.0, 2.0]) + White(0.1), 3.0 * Matern([0.7, 1.0], 1.5) + White(0.2)]
)
def test_gradient(kernel):
    objective, h = LaplaceObjective(kernel, Labels(X, T), WIDE), 1e-5
    found = objective.evaluate(kernel.theta)
    for j, e in enumerate(np.eye(4)):
        slope = (objective.value(kernel.theta + h * e) - objective.value(kernel.theta - h * e)) / (2 * h)
        assert found.gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_value_is_scikit_learns():
    given = ConstantKernel(2.0) * RBF([1.0, 0.5])
    peer = Peer(given, optimizer=None).fit(X, T)
    mine = -LaplaceObjective(as_kernel(given), Labels(X, T), WIDE[:3]).value(as_kernel(given).theta)
    assert mine == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-6)


def test_huge_variances_still_have_a_mode():
    mode = find_mode(1e8 * Gaussian(0.5)(X), T)
    assert mode is not None and np.isfinite(mode.f).all()
    assert ((mode.f > 0) == (T == 1)).all()


@given(st.floats(-30.0, 30.0), st.floats(0.0, 400.0))
def test_averages_of_the_sigmoid(mean, variance):
    found = averaged_sigmoid(np.array([mean]), np.array([variance]))[0]
    assert found == pytest.approx(integral(mean, variance), abs=3e-8)
