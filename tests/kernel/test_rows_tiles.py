"""Tiles of kernel values against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.kernel.rows import add_weighted, gauss_tile, gauss_tile64, power_tile, sparse_dots


@pytest.mark.parametrize(
    ("dtype", "tile", "error"), [(np.float32, gauss_tile, 3e-7), (np.float64, gauss_tile64, 4e-16)]
)
def test_the_exponential(dtype, tile, error):
    x = np.concatenate([-np.logspace(-12, np.log10(80.0), 500), [0.0, -1e5]]).astype(dtype)
    store = np.full((3, x.size + 2), 7.0, dtype)
    tile(np.zeros((1, x.size), dtype), np.zeros(1, dtype), -x, store, np.array([1]), 1)
    expected = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(store[1, 1:-2], expected[:-1], rtol=error)
    assert 0.0 <= store[1, -2] < 1e-37
    assert (store[[0, 2]] == 7.0).all() and store[1, 0] == store[1, -1] == 7.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7])
def test_powers(degree, dtype):
    dots = np.random.default_rng(0).standard_normal((2, 9)).astype(dtype)
    store = np.zeros((4, 12), dtype)
    power_tile(dots, dtype(0.5), degree, store, np.array([3, 0]), 2)
    np.testing.assert_allclose(store[[3, 0], 2:11], (dots + dtype(0.5)) ** degree, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weighted_sums_are_float64(dtype):
    rng = np.random.default_rng(2)
    values, c = rng.standard_normal((7, 40)).astype(dtype), 1e8 * rng.standard_normal(33)
    out = np.ones(7)
    add_weighted(values, c, out)
    np.testing.assert_allclose(out, 1.0 + values[:, :33].astype(np.float64) @ c, rtol=1e-13, atol=1e-6)


def test_inner_products_of_sparse_rows():
    X = sp.random_array((30, 12), density=0.3, format="csr", rng=np.random.default_rng(1))
    by, own = X.tocsc(), X[[3, 7, 7]]
    out = np.zeros((3, 30))
    sparse_dots(own.data, own.indices, own.indptr, by.data, by.indices, by.indptr, out)
    np.testing.assert_allclose(out, X[[3, 7, 7]].toarray() @ X.toarray().T, atol=1e-14)
