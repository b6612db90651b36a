"""Kernels of Gaussian processes."""

import numpy as np
import pytest

from learnable.kernel._gp_kernels import mirror


@pytest.mark.parametrize("n", [1, 5, 64, 65, 200])
def test_mirror_copies_the_upper_triangle(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    expected = np.triu(A) + np.triu(A, 1).T
    mirror(A)
    np.testing.assert_array_equal(A, expected)
