"""Kernel values with the way back to hyperparameters: the same values, and the derivatives of numeric differences."""

import numpy as np
import pytest

from learnable.risk.kernels import (
    Constant,
    DoubleExponential,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    White,
)
from learnable.risk.kernels.tape import record, record_diagonal

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(9, 2)), RNG.normal(size=(5, 2))
H = 1e-5

KERNELS = [
    Gaussian(1.5),
    Gaussian([1.0, 2.0]),
    2.0 * Gaussian([1.0, 2.0]) + White(0.1),
    Constant(2.0) * Matern(1.2, 1.5) + Linear() * Periodic(1.0, 2.0),
    Matern([1.0, 2.0], 2.5),
    Matern(1.0, 0.5),
    DoubleExponential([1.0, 2.0]),
    RationalQuadratic([1.0, 2.0], 0.7),
    Polynomial(3, 0.5, 1.0),
    (Gaussian() + Constant(1.0)).on(1) * White(0.3),
    Gaussian(2.0).hold() * RationalQuadratic(1.0, 2.0).hold("alpha"),
    White(0.4) + Gaussian(1.0) + Constant(0.3).hold(),
]


def differences(function, theta):
    return np.array([(function(theta + H * e) - function(theta - H * e)) / (2 * H) for e in np.eye(len(theta))])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.formula)
@pytest.mark.parametrize("other", [None, Z], ids=["with itself", "with others"])
def test_values_and_derivatives(kernel, other):
    K, back, _ = record(kernel, X, other)
    np.testing.assert_allclose(K, kernel(X, other), rtol=1e-14, atol=1e-15)
    S = np.random.default_rng(1).normal(size=K.shape)
    S = S + S.T if other is None else S
    expected = differences(lambda theta: float(np.sum(S * kernel.with_theta(theta)(X, other))), kernel.theta)
    np.testing.assert_allclose(back(S), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.formula)
def test_the_diagonal_and_its_derivatives(kernel):
    k, back = record_diagonal(kernel, X)
    np.testing.assert_allclose(k, kernel.diagonal(X), rtol=1e-14)
    c = np.random.default_rng(2).normal(size=len(X))
    expected = differences(lambda theta: float(c @ kernel.with_theta(theta).diagonal(X)), kernel.theta)
    np.testing.assert_allclose(back(c), expected, rtol=1e-6, atol=1e-7)


def test_without_noise_the_diagonal_is_that_of_two_equal_points():
    kernel = 2.0 * Gaussian(1.0) + White(0.5) * Constant(3.0) + Linear()
    expected = np.diag(kernel(X, X.copy()))
    np.testing.assert_allclose(record_diagonal(kernel, X, noise=False).k, expected, rtol=1e-14)


def test_a_kernel_of_ones_own_has_a_way_back_too():
    class Twice(Kernel):
        def _between(self, X, Z):
            return 2.0 * Gaussian(1.0)._between(X, Z)

        def _diagonal(self, X):
            return np.full(len(X), 2.0)

        formula = "twice"

    for other in (None, Z):
        K, back, _ = record(Twice(), X, other)
        np.testing.assert_allclose(K, 2.0 * Gaussian(1.0)(X, other), rtol=1e-14)
        assert back(np.ones_like(K)).shape == (0,)
