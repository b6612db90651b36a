"""Sums over states in groups of four, against NumPy."""

import numpy as np
import pytest

from learnable.sequences import _kernels as kernels


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
