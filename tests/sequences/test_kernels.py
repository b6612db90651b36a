"""Sums over states in groups of four, against NumPy."""

import numpy as np
import pytest
from tests.oracles.forward_backward import forward_backward

from learnable.sequences import _kernels as kernels
from learnable.sequences.baum_welch import Frames, smooth
from learnable.sequences.inference import filtered


@pytest.mark.parametrize("M", [4, 8, 20])
def test_products_in_groups_of_four(M):
    rng = np.random.default_rng(M)
    A, v, out = rng.normal(size=(M, M)), rng.normal(size=2 * M), np.empty(2 * M)
    kernels.mix(v, M, A.ravel(), out, 0, M)
    np.testing.assert_allclose(out[:M], v[M:] @ A, rtol=1e-12, atol=1e-12)
    assert kernels.weigh(v, 0, v, M, out, M, M) == pytest.approx(v[:M] @ v[M:], rel=1e-12)
    np.testing.assert_array_equal(out[M:], v[:M] * v[M:])
    kernels.scale_by(out, M, 0.5, M)
    np.testing.assert_array_equal(out[M:], 0.5 * v[:M] * v[M:])


@pytest.mark.parametrize("M", [4, 12])
def test_sums_of_products(M):
    rng = np.random.default_rng(M)
    v, w, out = rng.normal(size=(6, M)), rng.normal(size=(6, M)), np.ones((M, M))
    kernels.add_products(v.ravel(), w.ravel(), 6, out.reshape(-1), M)
    np.testing.assert_allclose(out, 1 + v.T @ w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("K", "T"), [(1, 5), (3, 1), (3, 2), (5, 200), (9, 401)])
def test_recursions_are_predict_and_condition_on(K, T):
    rng = np.random.default_rng(K)
    log_b = 3.0 * rng.standard_normal((T, K))
    start = rng.dirichlet(np.ones(K))
    A = rng.dirichlet(np.ones(K), K)
    total, law, smoothed, pairs = forward_backward(np.exp(log_b), start, A)
    frames = Frames(log_b, np.empty(0, np.int64), np.array([0, T]))
    found = smooth(frames, start, A)
    np.testing.assert_allclose(found.log_likelihoods.sum(), total, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.gamma, smoothed, atol=1e-12)
    np.testing.assert_allclose(found.pairs, pairs, atol=1e-10)
    np.testing.assert_allclose(filtered(frames, start, A)[1], law, atol=1e-12)
