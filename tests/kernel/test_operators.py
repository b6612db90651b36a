"""Kernel matrices as maps: products, partial factors, Woodbury's formula."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.kernel.operators import Operator, Woodbury, partial_cholesky, product_by_rows
from learnable.risk.kernels import Gaussian, Linear, White

RNG = np.random.default_rng(0)
X, V = RNG.standard_normal((130, 3)), RNG.standard_normal((130, 2))


def test_products_are_those_of_the_matrix():
    for kernel in (Gaussian(1.2), Linear(), Gaussian(0.7) + White(0.3)):
        K = kernel(X)
        for keep in (True, False):
            operator = Operator(kernel, X, keep=keep)
            np.testing.assert_allclose(operator(V), K @ V, rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(operator.columns(np.array([3, 70])), K[:, [3, 70]], rtol=1e-12)
    np.testing.assert_allclose(Operator(Gaussian(1.2), X, keep=False).rough(V), Gaussian(1.2)(X) @ V, atol=1e-4)


@pytest.mark.threaded
def test_products_by_rows_have_the_same_bits_for_any_number_of_threads():
    K = RNG.standard_normal((2500, 40))
    np.testing.assert_array_equal(product_by_rows(K, V[:40], 1), product_by_rows(K, V[:40], 2))


@given(st.integers(1, 60), st.integers(0, 1000))
@settings(max_examples=15)
def test_a_partial_factor_is_below_the_matrix_and_a_whole_one_is_it(rank, seed):
    Z = np.random.default_rng(seed).standard_normal((60, 2))
    K = Gaussian(0.8)(Z)
    F, missing = partial_cholesky(Operator(Gaussian(0.8), Z, keep=True), rank)
    rest = K - F @ F.T
    assert F.shape[1] <= rank
    assert np.linalg.eigvalsh(rest)[0] >= -1e-9
    np.testing.assert_allclose(np.maximum(rest.diagonal(), 0.0), missing, atol=1e-9)


def test_a_factor_of_full_rank_is_exact():
    F, missing = partial_cholesky(Operator(Linear(), X, keep=False), 130)
    np.testing.assert_allclose(F @ F.T, X @ X.T, atol=1e-9)
    assert missing.sum() <= 1e-9


def test_woodbury_inverts_and_has_the_diagonal_of_the_inverse():
    F, d = RNG.standard_normal((30, 4)), RNG.uniform(0.1, 2.0, 30)
    inverse = np.linalg.inv(F @ F.T + np.diag(d))
    for factor in (F, sp.csr_array(F)):
        woodbury = Woodbury(factor, d)
        np.testing.assert_allclose(woodbury(V[:30]), inverse @ V[:30], rtol=1e-10)
        np.testing.assert_allclose(woodbury.diagonal(), inverse.diagonal(), rtol=1e-10)
