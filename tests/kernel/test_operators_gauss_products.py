"""Products with a Gaussian kernel matrix in tiles: values, digits, threads, interruption, what is left to others."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.kernel.operators import GaussianProducts, OutOfTimeError, gaussian_products
from learnable.risk.kernels import Gaussian, Matern

RNG = np.random.default_rng(0)


@given(st.integers(1, 600), st.integers(1, 3), st.booleans(), st.integers(0, 1000))
@settings(max_examples=15)
def test_products_are_those_of_the_matrix(n, targets, single, seed):
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((n, 3)), rng.standard_normal((n, targets))
    kernel = Gaussian(rng.uniform(0.5, 2.0, 3))
    found = GaussianProducts(kernel, X)(V, single=single)
    np.testing.assert_allclose(found, kernel(X) @ V, atol=(1e-5 if single else 1e-12) * max(1.0, np.abs(V).sum()))


@pytest.mark.threaded
def test_many_tiles_far_from_zero_have_the_same_bits_for_any_number_of_threads():
    X, V = RNG.standard_normal((2700, 2)) + 1e5, RNG.standard_normal((2700, 1))
    one, two = (gaussian_products(Gaussian(1.0), X, n)(V) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    np.testing.assert_allclose(one, Gaussian(1.0)(X - 1e5) @ V, atol=1e-8 * np.abs(V).sum())


@pytest.mark.threaded
def test_blocks_are_those_of_the_matrix():
    X = RNG.standard_normal((50, 2))
    K, picks = Gaussian(0.8)(X), np.array([3, 40, 41])
    for dtype, atol in ((np.float64, 1e-13), (np.float32, 1e-6)):
        block = GaussianProducts(Gaussian(0.8), X).block(slice(10, 45), picks, dtype)
        assert block.dtype == dtype
        np.testing.assert_allclose(block, K[10:45][:, picks], atol=atol)


def test_it_stops_between_strips():
    X = RNG.standard_normal((1000, 2))
    with pytest.raises(OutOfTimeError):
        GaussianProducts(Gaussian(1.0), X)(X, stop=lambda: True)


def test_other_kernels_sparse_rows_and_lost_digits_are_left_to_others():
    X = RNG.standard_normal((20, 2))
    assert gaussian_products(Matern(1.0), X) is None
    assert gaussian_products(Gaussian(1.0), sp.csr_array(X)) is None
    assert gaussian_products(Gaussian(1e-9), X) is None
    assert not gaussian_products(Gaussian(0.1), X).has_single
