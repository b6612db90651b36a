"""Loops over rows against NumPy."""

import numpy as np

from learnable.sequences import _row_kernels as kernels


def test_sums_by_code():
    codes, gamma, out = np.array([1, 0, 1]), np.arange(6.0).reshape(3, 2), np.zeros((3, 2))
    kernels.sum_by_code(codes, gamma, out)
    np.testing.assert_array_equal(out, [[2, 3], [4, 6], [0, 0]])
