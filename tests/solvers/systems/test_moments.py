"""Moments about the mean: against fractions, the same bits however the rows come, no digits lost."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.solvers.tables import EPS, blocks_of, random_sparse, random_table

from learnable.data.blocks import Block
from learnable.solvers.systems.moments import (
    centred_moments,
    centred_products,
    dense_products,
    provisional_mean,
    targets_of,
)


def exact_moments(X, y, weight, intercept):
    """Return W, the means and the products of [x, y] about them, in fractions."""
    rows = [[Fraction(float(v)) for v in row] for row in np.column_stack([X, y])]
    w = [Fraction(1)] * len(rows) if weight is None else [Fraction(float(v)) for v in weight]
    total = sum(w)
    mean = [sum(a * row[j] for a, row in zip(w, rows, strict=True)) / total * intercept for j in range(len(rows[0]))]
    moved = [[v - m for v, m in zip(row, mean, strict=True)] for row in rows]
    products = [
        [sum(a * row[i] * row[j] for a, row in zip(w, moved, strict=True)) for j in range(len(mean))]
        for i in range(len(mean))
    ]
    return float(total), np.array(mean, dtype=float), np.array(products, dtype=float)


def assert_exact(found, X, y, weight, intercept, tolerance):
    total, mean, products = exact_moments(X, y, weight, intercept)
    d = X.shape[1]
    size = np.sqrt(np.diag(products))
    scale = np.outer(size, size)
    assert found.weight == pytest.approx(total, rel=4 * EPS)
    if intercept:
        np.testing.assert_allclose(np.r_[found.x_mean, found.y_mean], mean, rtol=0, atol=4 * EPS * np.abs(mean).max())
    np.testing.assert_array_less(np.abs(found.gram - products[:d, :d]), tolerance * scale[:d, :d])
    np.testing.assert_array_less(np.abs(found.cross - products[:d, d:]), tolerance * scale[:d, d:])
    np.testing.assert_array_less(np.abs(found.y_square - np.diag(products)[d:]), tolerance * size[d:] ** 2)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("rows", [None, 7])
def test_moments_are_those_of_rational_arithmetic(intercept, weighted, rows):
    X, y, weight = random_table(0, 40, 3, 2, weighted=weighted, mean=1.5)
    found = centred_moments(blocks_of(X, y, weight, rows=rows), intercept=intercept)
    assert found.n_rows == 40
    assert_exact(found, X, y, weight, intercept, 40 * EPS)


@pytest.mark.parametrize("weighted", [True, False])
def test_a_large_mean_costs_no_digits(weighted):
    X, y, weight = random_table(1, 50, 3, weighted=weighted, mean=1e8)
    found = centred_moments(blocks_of(X, y + 1e8, weight, rows=16))
    # The provisional mean is that of the first rows: the spread between means, of order one, cancels, and no more.
    assert_exact(found, X, y + 1e8, weight, True, 100 * EPS)


@pytest.mark.threaded
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_same_bits_whatever_the_parts_and_the_threads(sparse, intercept):
    X, y, weight = random_table(2, 1000, 5, 2, weighted=True, mean=3.0)
    X = sp.csr_array(np.where(X > 3.0, X, 0.0)) if sparse else X
    whole = centred_moments(blocks_of(X, y, weight, rows=128), intercept=intercept, n_jobs=1)
    for parts, n_jobs in ((1, 2), (7, 1), (7, 2)):
        other = centred_moments(blocks_of(X, y, weight, parts=parts, rows=128), intercept=intercept, n_jobs=n_jobs)
        for one, two in zip(whole, other, strict=True):
            assert np.array_equal(one, two)


@pytest.mark.threaded
@settings(max_examples=50, deadline=None)
@given(
    X=hnp.arrays(np.float64, (30, 3), elements=st.integers(-99, 99).map(float)),
    weight=hnp.arrays(np.float64, 30, elements=st.sampled_from([1.0, 4.0, 9.0])),
    rows=st.integers(1, 29),
)
def test_merged_blocks_are_one_block_bit_for_bit_where_sums_are_exact(X, weight, rows):
    y = X[:, 0] - X[:, 1]
    one = centred_moments(blocks_of(X, y, weight, rows=30), intercept=False)
    many = centred_moments(blocks_of(X, y, weight, rows=rows), intercept=False)
    for a, b in zip(one, many, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_sparse_moments_are_the_dense_ones(intercept, weighted):
    X = random_sparse(3, 60, 6)
    _, y, weight = random_table(3, 60, 6, 2, weighted=weighted)
    dense = centred_moments(blocks_of(X.toarray(), y, weight, rows=25), intercept=intercept)
    sparse = centred_moments(blocks_of(X, y, weight, rows=25), intercept=intercept)
    for name in ("weight", "x_mean", "y_mean", "gram", "cross", "y_square"):
        a, b = np.asarray(getattr(sparse, name)), np.asarray(getattr(dense, name))
        assert np.abs(a - b).max() <= 60 * EPS * max(1.0, np.abs(b).max()), name


@pytest.mark.parametrize("weighted", [True, False])
def test_a_constant_column_has_no_variance_at_all(weighted):
    X, y, weight = random_table(4, 100, 3, weighted=weighted)
    X[:, 1] = 0.1
    found = centred_moments(blocks_of(X, y, weight, rows=32))
    assert not found.gram[1].any()
    assert not found.cross[1].any()
    assert found.x_mean[1] == 0.1


def test_a_constant_target_has_no_variance_at_all():
    X, _, weight = random_table(5, 100, 3, weighted=True)
    found = centred_moments(blocks_of(X, np.full(100, 0.1), weight, rows=32))
    assert found.y_square[0] == 0.0
    assert not found.cross.any()


def test_squares_that_overflow_do_so_silently():
    X, y, _ = random_table(6, 20, 2)
    found = centred_moments(blocks_of(X * [1e200, 1.0], y))
    assert not np.isfinite(found.gram[0, 0])
    assert found.gram[1, 1] > 0


def test_rows_without_targets_have_none():
    X, _, _ = random_table(7, 10, 2)
    found = centred_moments(blocks_of(X))
    assert found.cross.shape == (2, 0)
    assert found.y_square.shape == (0,)
    assert targets_of(blocks_of(X)[0]).shape == (10, 0)


def test_provisional_mean_of_huge_rows_is_finite():
    mean = provisional_mean(np.array([[1.5e308, 0.1], [1.5e308, 0.1], [1.7e308, 0.1]]))
    assert np.isfinite(mean).all()
    assert mean[1] == 0.1


def test_a_block_without_rows_adds_nothing():
    products = dense_products(Block(np.zeros((0, 40)), None, None, 0), np.zeros(40), np.zeros(0))
    np.testing.assert_array_equal(products, np.zeros((41, 41)))


@pytest.mark.parametrize("n", [0, 1, 50, 5000])
def test_rows_that_were_moved_before_have_the_same_products_bit_for_bit(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4)) + 10.0
    weight = rng.random(n)
    centre = np.array([10.0, 9.0, 10.5, 0.0])
    expected = dense_products(Block(X, None, weight, 0), centre, np.zeros(0))
    assert np.array_equal(centred_products(X - centre, weight), expected)
