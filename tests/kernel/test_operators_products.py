"""Sums of Gaussian kernel values, both ways at once."""

import numpy as np
import pytest

from learnable.kernel.operators import gauss_sums, gauss_sums64


@pytest.mark.parametrize(("dtype", "add", "atol"), [(np.float32, gauss_sums, 1e-5), (np.float64, gauss_sums64, 1e-13)])
def test_a_tile_is_summed_beside_and_below(dtype, add, atol):
    rng = np.random.default_rng(0)
    A, Z, v, w = (rng.standard_normal(shape).astype(dtype) for shape in ((7, 3), (40, 3), 7, 40))
    K = np.exp(-((A[:, None] - Z) ** 2).sum(axis=2, dtype=np.float64))
    beside, below = np.ones(7), np.ones(40, dtype)
    line, slot = np.empty((1, 40), dtype), np.zeros(1, np.int64)
    add(A @ Z.T, (A * A).sum(axis=1), (Z * Z).sum(axis=1), line, slot, v, w, beside, below)
    np.testing.assert_allclose(beside, 1.0 + K @ w, atol=atol)
    np.testing.assert_allclose(below, 1.0 + v @ K, atol=atol)
