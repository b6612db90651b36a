"""Loops over rows against NumPy."""

import numpy as np

from learnable.sequences import _kernels as kernels


def test_sums_by_code():
    codes, gamma, out = np.array([1, 0, 1]), np.arange(12.0), np.zeros(12)
    kernels.sum_by_code(codes, gamma, out)
    np.testing.assert_array_equal(out.reshape(3, 4), [[4, 5, 6, 7], [8, 10, 12, 14], [0, 0, 0, 0]])


def test_likelihoods_are_relative_to_the_greatest_and_padding_is_zero():
    log = np.array([[-800.0, -801.0, -2000.0, 7.0], [-np.inf, -np.inf, -np.inf, 3.0]])
    b, offset = np.empty(8), np.empty(2)
    kernels.likelihood_rows(log.ravel(), np.array([0.0, 0.0, 0.0, -np.inf]), b, offset)
    np.testing.assert_allclose(b.reshape(2, 4), [[1, np.exp(-1), 0, 0], [0, 0, 0, 0]], rtol=1e-15)
    np.testing.assert_array_equal(offset, [-800, -np.inf])
