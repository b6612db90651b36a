"""Rows of kernel matrices are those of the kernel's definition, in the precision they promise."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.kernel.rows import DenseRows, LinearMatrix, SparseRows, float32_serves, row_source
from learnable.risk.kernels import Gaussian, Linear, Matern, Polynomial, Precomputed
from learnable.solvers.conic.smo import RowCache, Team

KERNELS = [Gaussian(1.5), Gaussian([1.0, 2.0, 0.5, 3.0]), Polynomial(3, 0.2, 1.0), Polynomial(1, 0.5, 0.0), Matern(1.0)]


def points(n=700, shift=0.0):
    return np.random.default_rng(0).standard_normal((n, 4)) + shift


@pytest.mark.threaded
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_blocks_and_sums(kernel, make):
    X = points()
    K = kernel(X)
    for single in (True, False):
        source = row_source(kernel, make(X), single) if not isinstance(kernel, Matern) else row_source(kernel, X)
        error = 2e-5 if source.dtype == np.float32 else 1e-11
        rows, delta = np.array([5, 17, 300, 699]), np.array([1.0, -2.0, 0.5, 1.0])
        with Team(2) as team:
            cache = RowCache(source, len(X), 1.0, team, 8)
            np.testing.assert_allclose(cache.block(rows), K[np.ix_(rows, rows)], atol=error)
            padded = cache.block(np.append(rows, -1))
            assert not padded[-1].any() and not padded[:, -1].any()
            f = np.zeros(len(X))
            cache.add(f, rows, delta)
            np.testing.assert_allclose(f, K[:, rows] @ delta, atol=10 * error)
            np.testing.assert_allclose(
                cache.exact(np.array([0, 9]), rows, delta), K[[0, 9]][:, rows] @ delta, atol=1e-10
            )
            few = np.arange(1, len(X), 3)
            part = cache.part(few)
            own = np.array([0, 7, 200])
            np.testing.assert_allclose(part.block(own), K[np.ix_(few[own], few[own])], atol=error)
            np.testing.assert_allclose(part.exact(own, own, np.ones(3)), K[np.ix_(few[own], few[own])].sum(axis=1))
            np.testing.assert_allclose(cache.sums(few, rows, delta), K[np.ix_(few, rows)] @ delta, atol=10 * error)
            assert part.source.dtype == source.dtype
        np.testing.assert_allclose(source.diagonal(), K.diagonal())


def test_far_from_zero_the_gaussian_kernel_keeps_its_digits():
    near, far = DenseRows(Gaussian(1.0), points(), True), DenseRows(Gaussian(1.0), points(shift=1e5), True)
    np.testing.assert_allclose(near.points, far.points, atol=1e-5)


def test_many_columns_are_looked_up():
    X = np.random.default_rng(0).standard_normal((50, 200))
    source = DenseRows(Gaussian(20.0), X)
    assert source.square(np.arange(4), np.empty((4, 4))) is None


def test_where_float32_serves():
    assert float32_serves(Gaussian(1.0), 1.0) and not float32_serves(Gaussian(1.0), 1e3)
    assert float32_serves(Polynomial(2, 1.0, 0.0), 10.0) and not float32_serves(Polynomial(3, 1.0, 1.0), 1e3)
    assert DenseRows(Gaussian(1.0), points(100)).dtype == np.float64
    assert DenseRows(Gaussian(2.0), points(3000)).dtype == np.float32
    assert SparseRows(Gaussian(2.0), sp.csr_array(points(3000))).dtype == np.float32
    assert DenseRows(Gaussian(1e-2), points(3000)).dtype == np.float64


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_linear_kernel_needs_no_rows(make):
    X = points()
    K = Linear()(X)
    rows, delta = np.array([5, 17, 300, -1]), np.array([1.0, -2.0, 0.5])
    with Team(2) as team:
        matrix = LinearMatrix(make(X), team)
        block, f = matrix.block(rows), np.zeros(len(X))
        matrix.add(f, rows[:3], delta)
    assert not matrix.rounding() and not block[3].any() and not block[:, 3].any()
    np.testing.assert_allclose(block[:3, :3], K[np.ix_(rows[:3], rows[:3])], atol=1e-12)
    np.testing.assert_allclose(f, K[:, rows[:3]] @ delta, atol=1e-12)
    np.testing.assert_allclose(matrix.diagonal(), K.diagonal())
    np.testing.assert_allclose(matrix.exact(np.array([1]), rows[:3], delta), K[1, rows[:3]] @ delta)
    np.testing.assert_allclose(matrix.sums(np.array([1]), rows[:3], delta), K[1, rows[:3]] @ delta)
    few = np.arange(0, len(X), 50)
    np.testing.assert_allclose(matrix.part(few).block(np.arange(5)), K[np.ix_(few[:5], few[:5])], atol=1e-12)


def test_a_given_matrix():
    K = Gaussian(1.0)(points(40))
    source = row_source(Precomputed(), K)
    store = np.zeros((2, 40))
    task, count = source.tasks(np.array([3, 9]), store, np.array([1, 0]))
    for number in range(count):
        task(number)
    np.testing.assert_array_equal(store, K[[9, 3]])
    few = np.array([1, 3, 9, 30])
    part, small = source.part(few), np.zeros((1, 4))
    part.tasks(np.array([2]), small, np.array([0]))[0](0)
    np.testing.assert_array_equal(small[0], K[9, few])
    np.testing.assert_array_equal(part.diagonal(), K.diagonal()[few])
    np.testing.assert_allclose(part.exact(np.array([0]), np.array([1, 3]), np.ones(2)), K[1, 3] + K[1, 30])
