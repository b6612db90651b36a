"""The Normal–inverse-Gamma pair: worked numbers, large means, degenerate data."""

import numpy as np
import pytest

from learnable.probability import NormalInverseGamma


def test_worked_example():
    # n = 3, x̄ = 2, Σ(x - x̄)² = 2, and nκ₀/(n + κ₀)·(x̄ - μ₀)²/2 = 3/4·4/2 = 1.5.
    posterior = NormalInverseGamma(0.0, 1.0, 1.0, 1.0).update([1.0, 2.0, 3.0])
    assert [float(v) for v in posterior.parameters.values()] == [1.5, 4.0, 2.5, 3.5]


def test_one_observation_and_constant_data():
    one = NormalInverseGamma(0.0, 1.0, 0.5, 0.5).update(3.0)
    assert one.rate == pytest.approx(0.5 + 0.25 * 9.0)
    same = NormalInverseGamma(5.0, 1.0, 0.5, 0.5).update(np.full(10, 5.0))
    assert same.rate == 0.5 and same.shape == 5.5
    assert np.isfinite(same.map().std)


def test_moments_keep_the_digits_that_sums_lose():
    x = 1e9 + np.array([0.0, 1.0, 2.0])
    posterior = NormalInverseGamma(1e9, 1.0, 1.0, 1.0).update(x)
    assert posterior.rate == pytest.approx(1.0 + 1.0 + 0.5 * 0.75 * 1.0, rel=1e-12)
    same = NormalInverseGamma(1e9, 1.0, 1.0, 1.0).update_moments(3.0, 1e9 + 1.0, 2.0)
    assert same.rate == pytest.approx(posterior.rate, rel=1e-12)


def test_a_billion_observations():
    posterior = NormalInverseGamma(0.0, 1.0, 1.0, 1.0).update_moments(1e9, 2.0, 4e9)
    assert posterior.map().mean == pytest.approx(2.0, rel=1e-8)
    assert posterior.map().variance == pytest.approx(4.0, rel=1e-8)
    low, high = posterior.interval(0.95)["mean"]
    assert high - low == pytest.approx(2 * 1.96 * 2.0 / np.sqrt(1e9), rel=1e-4)
