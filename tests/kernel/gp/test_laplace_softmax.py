"""The joint Laplace approximation: mode, likelihood, gradient and averages, by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from tests.oracles.gaussian_process import averaged_sigmoid, joint_laplace, joint_prediction

from learnable.kernel.gp.laplace import (
    Labels,
    SoftmaxObjective,
    averaged_softmax,
    find_joint_mode,
    joint_latent,
    one_hot,
)
from learnable.kernel.gp.posterior import inverse_factor
from learnable.risk.kernels import Gaussian, Matern, White

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
CODES = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=24), [-0.5, 0.5]).astype(float)
KERNELS = [3.0 * Gaussian([1.0, 2.0]) + White(0.1), 2.0 * Matern([0.7, 1.0], 1.5) + White(0.2)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.formula)
@pytest.mark.parametrize("C", [3, 4])
def test_mode_and_likelihood_are_those_of_whole_matrices(kernel, C):
    y = one_hot(CODES, C)  # with four, one class has no rows
    mode = find_joint_mode(kernel(X), y)
    f, value = joint_laplace(kernel(X), y)
    np.testing.assert_allclose(mode.f, f, atol=1e-6)
    assert mode.value == pytest.approx(value, abs=1e-9)
    assert mode.residual < 1e-12
    np.testing.assert_allclose(mode.f.sum(axis=0), 0.0, atol=1e-9)  # as Σ gᶜ = 0


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.formula)
def test_gradient(kernel):
    objective, h = SoftmaxObjective(kernel, Labels(X, CODES), np.full((4, 2), [-9.0, 9.0]), 3), 1e-5
    found = objective.evaluate(kernel.theta)
    for j, e in enumerate(np.eye(4)):
        slope = (objective.value(kernel.theta + h * e) - objective.value(kernel.theta - h * e)) / (2 * h)
        assert found.gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_a_start_near_the_mode_is_taken_and_changes_nothing():
    K, y = KERNELS[0](X), one_hot(CODES, 3)
    first = find_joint_mode(K, y)
    again = find_joint_mode(K, y, first.f)
    assert again.n_iter < first.n_iter
    np.testing.assert_allclose(again.f, first.f, atol=1e-9)


def test_latent_means_and_covariances_are_those_of_whole_matrices():
    kernel, y = 3.0 * Gaussian([1.0, 2.0]), one_hot(CODES, 3)
    K, points = kernel(X) + 1e-8 * np.eye(24), RNG.normal(size=(5, 2))
    mode = find_joint_mode(K, y)
    inverses = np.array([inverse_factor(L) for L in mode.L])
    mean, below = joint_latent(kernel(points, X), mode.g, mode.root, inverses, inverse_factor(mode.M))
    for i, point in enumerate(points):
        expected = joint_prediction(K, mode.f, y, kernel(point[None], X)[0], 3.0)
        np.testing.assert_allclose(mean[i], expected[0], atol=1e-8)
        np.testing.assert_allclose(3.0 * np.eye(3) - below[i], expected[1], atol=1e-7)


def test_huge_variances_still_have_a_mode():
    mode = find_joint_mode(1e8 * Gaussian(0.5)(X), one_hot(CODES, 3))
    assert mode is not None and np.isfinite(mode.f).all()
    np.testing.assert_array_equal(np.argmax(mode.f, axis=0), CODES)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_averages_of_the_softmax(seed):
    rng = np.random.default_rng(seed)
    mean, root = rng.normal(size=3), rng.normal(size=(3, 3))
    found = averaged_softmax(mean[None], (root @ root.T)[None])[0]
    draws = softmax(mean + rng.normal(size=(200_000, 3)) @ root.T, axis=1)
    np.testing.assert_allclose(found, draws.mean(axis=0), atol=6e-3)
    assert found.sum() == pytest.approx(1.0)


def test_the_average_of_two_classes_is_that_of_the_sigmoid_of_their_difference():
    covariance = np.array([[2.0, 0.3], [0.3, 1.0]])
    found = averaged_softmax(np.array([[0.7, -0.2]]), covariance[None])[0, 0]
    assert found == pytest.approx(averaged_sigmoid(0.9, 2.4), abs=2e-3)
