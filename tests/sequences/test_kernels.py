"""Kernels that no other test reaches by themselves."""

import numpy as np
import pytest
from scipy.special import logsumexp

from learnable.sequences import _kernels as kernels


@pytest.mark.parametrize("Q", [1, 2, 5])
def test_products_in_groups_of_four(Q):
    rng = np.random.default_rng(Q)
    M = 4 * Q
    A, v, out = rng.normal(size=(M, M)), rng.normal(size=M), np.empty((Q, 4))
    kernels.mix(v.reshape(Q, 4), A.reshape(Q, 4, Q, 4), out)
    np.testing.assert_allclose(out.ravel(), v @ A, rtol=1e-12, atol=1e-12)
    kernels.max_step(v.reshape(Q, 4), A.reshape(Q, 4, Q, 4), out)
    np.testing.assert_array_equal(out.ravel(), (v[:, None] + A).max(axis=0))
    pairs = np.zeros((Q, 4, Q, 4))
    kernels.add_pairs(v.reshape(Q, 4), A[0].reshape(Q, 4), 0.5, pairs)
    np.testing.assert_allclose(pairs.reshape(M, M), 0.5 * np.outer(v, A[0]), rtol=1e-14)


def test_sums_of_logarithms():
    rng = np.random.default_rng(0)
    L, v, out = rng.normal(size=(3, 3)) * 500, rng.normal(size=3), np.empty(3)
    L[:, 1] = -np.inf
    kernels.log_mix(v, L, out)
    np.testing.assert_allclose(out, logsumexp(v[:, None] + L, axis=0), rtol=1e-13)
    assert kernels.log_total(np.full(3, -np.inf)) == -np.inf
