"""Kernels of Gaussian processes."""

import numpy as np
import pytest

from learnable.kernel.gp.likelihood import mirror, multiply_rows


@pytest.mark.parametrize("n", [1, 5, 64, 65, 200])
def test_mirror_copies_the_upper_triangle(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    expected = np.triu(A) + np.triu(A, 1).T
    mirror(A)
    np.testing.assert_array_equal(A, expected)


def test_multiply_rows():
    rng = np.random.default_rng(0)
    T, K, share = rng.normal(size=(5, 7)), rng.normal(size=(5, 7)), rng.normal(size=5)
    M, sums = np.empty((5, 7)), np.empty(5)
    multiply_rows(T, K, share, M, sums)
    np.testing.assert_allclose(M, share[:, None] * T * K)
    np.testing.assert_allclose(sums, (T * K).sum(axis=1))
