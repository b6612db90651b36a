"""Least squares on the compressed triangle: the solution of all rows, whatever the blocks, the rank and the shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.ridge import exact_ridge
from tests.solvers.tables import (
    blocks_of,
    coefficient_error,
    condition_number,
    nearly_collinear_table,
    random_table,
)

from learnable.solvers.systems.least_squares import compressed_fit
from learnable.solvers.systems.orthogonal import orthogonal_fit

EPS = float(np.finfo(np.float64).eps)


def both(X, y, weight=None, alpha=0.0, rows=64, **options):
    """Return the fit on the triangle and the one on all rows."""
    found = compressed_fit(blocks_of(X, y, weight, rows=rows), alpha, **options)
    return found, orthogonal_fit(X, y, weight, alpha, **options)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("shape", [(300, 6), (40, 40), (12, 30), (2, 3)])
def test_agrees_with_the_fit_on_all_rows(weighted, alpha, intercept, nonnegative, shape):
    X, y, weight = random_table(1, *shape, 2, weighted=weighted, mean=1.0)
    found, expected = both(X, y, weight, alpha, intercept=intercept, nonnegative=nonnegative)
    unique = alpha > 0 or shape[0] > shape[1] + intercept or not nonnegative
    if unique:
        assert coefficient_error(found.coef, expected.coef, X, y) <= 1e-11
        assert np.allclose(found.intercept, expected.intercept, rtol=1e-10, atol=1e-11)
    assert found.rank == expected.rank
    assert np.allclose(found.residual_norm, expected.residual_norm, rtol=1e-9, atol=1e-10)
    assert found.value <= 1e-12
    assert np.array_equal(found.x_mean == 0, np.full(shape[1], not intercept))


@pytest.mark.threaded
@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 40),
    d=st.integers(1, 8),
    rows=st.integers(1, 50),
    seed=st.integers(0, 99),
    alpha=st.sampled_from([0.0, 0.3]),
    intercept=st.booleans(),
)
def test_the_blocks_do_not_matter(n, d, rows, seed, alpha, intercept):
    if n == 1 and intercept:
        return  # nothing is left beside the mean: the case of one row has its own test
    X, y, weight = random_table(seed, n, d, weighted=seed % 2 == 0, mean=2.0)
    found, expected = both(X, y, weight, alpha, rows, intercept=intercept)
    # Fewer rows than columns: the solution of minimum norm, whose condition is that of the rows.
    kappa = condition_number(X - (X.mean(axis=0) if intercept else 0), weight, alpha, intercept=intercept)
    if kappa < 1e6 or n <= d:
        assert coefficient_error(found.coef, expected.coef, X, y) <= 1e-9
    assert found.rank == expected.rank


@pytest.mark.parametrize("closeness", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("alpha", [0.0, 1e-10])
def test_the_condition_number_is_not_squared(closeness, alpha):
    """The moments lose 1/closeness² of the digits; the triangle loses 1/closeness."""
    X, y = nearly_collinear_table(0, closeness, n=100)
    found = compressed_fit(blocks_of(X, y, rows=32), alpha)
    coef, intercept = exact_ridge(X, y[:, 0], alpha)
    assert coefficient_error(found.coef, coef[:, None], X, y) <= 40 * EPS * condition_number(X)
    assert abs(found.intercept[0] - intercept) <= 40 * EPS * condition_number(X)
    assert found.value <= 1e-12


def test_a_column_twice_gets_the_solution_of_minimum_norm():
    X, y, _ = random_table(2, 200, 3)
    X = np.column_stack([X, X[:, 1]])
    found, expected = both(X, y)
    assert found.rank == 3
    assert np.allclose(found.coef[1], found.coef[3], rtol=1e-12)
    assert coefficient_error(found.coef, expected.coef, X, y) <= 1e-12
    D = np.column_stack([np.ones(200), X])
    minimal = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(axis=0), rcond=1e-10)[0]
    assert np.allclose(found.coef, minimal, rtol=1e-10)
    assert np.allclose(D.T @ (y - found.intercept - X @ found.coef), 0.0, atol=1e-10)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e8, 0.1])
def test_a_constant_column_has_no_coefficient(value):
    X, y, _ = random_table(3, 200, 3)
    X[:, 1] = value
    found, expected = both(X, y, rows=17)
    assert found.rank == 2 and found.coef[1, 0] == 0.0
    assert coefficient_error(found.coef, expected.coef, X, y) <= 1e-12


@pytest.mark.parametrize("mean", [1e3, 1e6, 1e9])
def test_a_large_mean_costs_no_more_than_it_must(mean):
    X, y, weight = random_table(4, 300, 3, weighted=True, mean=mean)
    X[:150] += 5.0  # the first rows are not like the others
    found, expected = both(X, y, weight, rows=16)
    assert coefficient_error(found.coef, expected.coef, X, y) <= 1e-13 * mean
    assert found.value <= 1e-12


def test_units_do_not_matter():
    X, y, _ = random_table(5, 200, 4)
    scales = np.array([1e-120, 1.0, 1e12, 1e120])
    found, expected = both(X * scales, 1e30 * y)
    assert coefficient_error(found.coef, expected.coef, X * scales, y) <= 1e-12


def test_the_factor_has_the_singular_values_of_the_rows():
    X, y, weight = random_table(6, 150, 5, weighted=True)
    found = compressed_fit(blocks_of(X, y, weight, rows=20))
    root = np.sqrt(weight)[:, None]
    centred = root * (X - np.average(X, axis=0, weights=weight))
    assert np.allclose(np.linalg.svd(found.factor)[1], np.linalg.svd(centred, compute_uv=False), rtol=1e-12)
    assert np.allclose(found.x_mean, np.average(X, axis=0, weights=weight), rtol=1e-13)


def test_a_constant_target_is_explained_by_the_intercept():
    X, y, _ = random_table(7, 100, 3)
    found = compressed_fit(blocks_of(X, np.full_like(y, 7.5), rows=16))
    assert not found.coef.any() and found.intercept.tolist() == [7.5] and found.residual_norm.tolist() == [0.0]


@pytest.mark.threaded
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_number_of_threads_changes_no_bit(n_jobs):
    X, y, weight = random_table(8, 500, 6, weighted=True)
    found = compressed_fit(blocks_of(X, y, weight, rows=16), 0.5, n_jobs=n_jobs)
    again = compressed_fit(blocks_of(X, y, weight, rows=16, parts=4), 0.5, n_jobs=1)
    assert found.coef.tobytes() == again.coef.tobytes() and found.value == again.value


@pytest.mark.parametrize("nonnegative", [False, True])
def test_one_row_is_explained_by_the_intercept(nonnegative):
    found = compressed_fit(blocks_of(np.array([[1.0, 2.0]]), np.array([[3.0]])), nonnegative=nonnegative)
    assert found.coef.tolist() == [[0.0], [0.0]] and found.intercept.tolist() == [3.0]
