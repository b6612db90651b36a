"""Kernel matrices and products by tiles: the same as at once, symmetric to the bit, for any number of threads."""

import numpy as np
import pytest

from learnable.risk.kernels import Constant, FunctionKernel, Gaussian, Linear, Matern, Polynomial, White, tiles

RNG = np.random.default_rng(0)
X, V = RNG.standard_normal((90, 3)) + 20.0, RNG.standard_normal((90, 2))
KERNELS = [
    Gaussian(1.5),
    2.0 * Matern(1.0) + White(0.3),
    Linear(),
    Polynomial(2, 0.01),
    Gaussian(2.0).on(1) + Constant(1.0),
]
each = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.formula)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "TILE", 32)
    monkeypatch.setattr(tiles.tile_pairs, "__defaults__", (32,))


def whole(kernel):
    K = kernel._between(X, X)
    K.flat[:: len(K) + 1] = kernel._diagonal(X)
    return K


@each
def test_matrix_and_products_are_those_at_once(kernel):
    K = tiles.symmetric_matrix(kernel._between, X, kernel._diagonal(X))
    np.testing.assert_allclose(K, whole(kernel), rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel.products(X, V), whole(kernel) @ V, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(kernel.products(X, V, n_jobs=1), kernel.products(X, V, n_jobs=2))


@each
def test_six_digits_in_single_precision(kernel):
    exact = kernel.products(X, V)
    np.testing.assert_allclose(kernel.products(X, V, single=True), exact, atol=2e-5 * np.abs(exact).max())
    other = kernel.products(X[:40], V, X)
    np.testing.assert_allclose(kernel.products(X[:40], V, X, single=True), other, atol=2e-5 * np.abs(other).max())


def test_points_far_from_zero_keep_their_digits_in_single_precision():
    far = X + 1e6
    exact = Gaussian(1.5).products(far, V)
    np.testing.assert_allclose(Gaussian(1.5).products(far, V, single=True), exact, atol=1e-5 * np.abs(exact).max())


def test_a_function_is_never_cut_into_tiles():
    shapes = []

    def function(A, B):
        shapes.append((len(A), len(B)))
        return A @ B.T

    FunctionKernel(function)(X)
    assert (90, 90) in shapes


def test_pairs_cover_the_upper_half_once():
    seen = np.zeros((90, 90))
    for rows, columns in tiles.tile_pairs(90, 32):
        seen[rows, columns] += 1
    np.testing.assert_array_equal(seen[np.triu_indices(90)], 1.0)
