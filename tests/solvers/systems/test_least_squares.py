"""The Gram, dual, orthogonal and iterative paths give one answer, and the guard knows when to leave the fast ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.exact import exact_least_squares
from tests.solvers.tables import (
    EPS,
    blocks_of,
    coefficient_error,
    condition_number,
    nearly_collinear_table,
    random_sparse,
    random_table,
)

from learnable.solvers.systems.least_squares import CLOSED_FORM_TOLERANCE, dense_rows, dual_fit, gram_fit, least_squares
from learnable.solvers.systems.moments import centred_moments
from learnable.solvers.systems.normal_equations import iterative_fit
from learnable.solvers.systems.orthogonal import orthogonal_fit

# The Gram path stops refining at a proven error of 1e-13; the bound 1/κ₁ of LAPACK may be off by a small factor.
GRAM_ERROR = 4e-13


def fit_gram(X, y, weight=None, alpha=0.0, *, intercept=True, rows=None, parts=1, n_jobs=None):
    blocks = blocks_of(X, y, weight, rows=rows, parts=parts)
    moments = centred_moments(blocks, intercept=intercept, n_jobs=n_jobs)
    return gram_fit(blocks, moments, alpha, intercept=intercept, n_jobs=n_jobs)


def tall_table(seed=0, *, weighted=False, mean=0.0):
    """Return a table just large enough for `least_squares` to take the Gram path."""
    return random_table(seed, 500, 64, weighted=weighted, mean=mean)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_gram_path_solves_the_normal_equations(weighted, alpha, intercept, sparse):
    X, y, weight = random_table(1, 60, 5, 2, weighted=weighted, mean=0.5)
    found = fit_gram(sp.csr_array(X) if sparse else X, y, weight, alpha, intercept=intercept, rows=25)
    exact = exact_least_squares(X, y, weight, alpha, intercept=intercept)
    assert coefficient_error(found.coef, exact.coef, X, y) <= GRAM_ERROR
    np.testing.assert_allclose(found.intercept, exact.intercept, rtol=0, atol=GRAM_ERROR * np.abs(y).max())
    np.testing.assert_allclose(found.residual_norm, exact.residual_norm, rtol=1e-12)
    assert found.value <= CLOSED_FORM_TOLERANCE
    assert found.rank == 5


@pytest.mark.sampled(6)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1e-2, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_dual_path_solves_wide_problems(weighted, alpha, intercept):
    X, y, weight = random_table(2, 8, 20, 2, weighted=weighted)
    found = dual_fit(blocks_of(X, y, weight, rows=3), alpha, intercept=intercept)
    exact = exact_least_squares(X, y, weight, alpha, intercept=intercept)
    assert coefficient_error(found.coef, exact.coef, X, y) <= 1e-13
    np.testing.assert_allclose(found.intercept, exact.intercept, rtol=0, atol=1e-13 * np.abs(y).max())
    np.testing.assert_allclose(found.residual_norm, exact.residual_norm, rtol=1e-10, atol=1e-13 * np.abs(y).max())
    assert found.value <= CLOSED_FORM_TOLERANCE


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape, alpha", [((120, 6), 0.0), ((120, 6), 2.0), ((20, 40), 2.0)])
def test_all_paths_agree(weighted, intercept, shape, alpha):
    X, y, weight = random_table(3, *shape, 2, weighted=weighted)
    blocks = blocks_of(X, y, weight, rows=50)
    orthogonal = orthogonal_fit(X, y, weight, alpha, intercept=intercept)
    fits = [iterative_fit(blocks, alpha, intercept=intercept, tol=1e-26 if alpha else 1e-15)]
    fits.append(least_squares(blocks, alpha, intercept=intercept))
    if shape[0] > shape[1]:
        fits.append(fit_gram(X, y, weight, alpha, intercept=intercept))
    else:
        fits.append(dual_fit(blocks, alpha, intercept=intercept))
    for fit in fits:
        assert coefficient_error(fit.coef, orthogonal.coef, X, y) <= 1e-11
        np.testing.assert_allclose(fit.intercept, orthogonal.intercept, rtol=0, atol=1e-11)
        np.testing.assert_allclose(fit.residual_norm, orthogonal.residual_norm, rtol=1e-11)


@pytest.mark.parametrize("closeness", [1e-1, 1e-2, 1e-3, 1e-4])
def test_gram_path_loses_no_more_than_the_condition_of_the_table(closeness):
    X, y = nearly_collinear_table(4, closeness)
    found, exact = fit_gram(X, y), exact_least_squares(X, y)
    assert coefficient_error(found.coef, exact.coef, X, y) <= max(GRAM_ERROR, 2 * EPS * condition_number(X))


@pytest.mark.parametrize("closeness", [1e-6, 1e-8, 0.0])
def test_guard_refuses_ill_conditioned_tables(closeness):
    X, y = nearly_collinear_table(5, closeness)
    assert fit_gram(X, y) is None


def test_guard_refuses_an_ill_conditioned_dual():
    X, y, _ = random_table(6, 8, 20)
    X[1] = X[0]
    assert dual_fit(blocks_of(X, y), 1e-13, intercept=False) is None
    assert dual_fit(blocks_of(X * 1e200, y), 1.0, intercept=True) is None


def test_repeated_rows_of_a_large_wide_table_get_their_mean():
    X, y, _ = random_table(19, 50, 250)
    X[1::2] = X[::2]
    found = least_squares(blocks_of(X, y))
    fitted = found.intercept + X @ found.coef
    np.testing.assert_allclose(fitted[::2], (y[::2] + y[1::2]) / 2, atol=1e-11)
    assert found.rank == 24
    assert found.value <= CLOSED_FORM_TOLERANCE


def test_a_duplicate_column_makes_least_squares_fall_back_to_the_smallest_coefficients():
    X, y, _ = tall_table()
    X = np.column_stack([X, X[:, 3]])
    found = least_squares(blocks_of(X, y))
    assert found.rank == 64
    np.testing.assert_allclose(found.coef[3], found.coef[64], rtol=1e-12)
    expected = np.linalg.pinv(X - X.mean(axis=0)) @ (y - y.mean(axis=0))
    np.testing.assert_allclose(found.coef, expected, atol=1e-12)
    assert found.value <= CLOSED_FORM_TOLERANCE


@pytest.mark.parametrize("exponent", [300, 900])
def test_wildly_scaled_columns_make_least_squares_fall_back_to_exact_scaling(exponent):
    X, y, _ = tall_table()
    factors = np.where(np.arange(64) % 2 == 0, 2.0**exponent, 2.0**-exponent)
    found, plain = least_squares(blocks_of(X * factors, y)), orthogonal_fit(X, y, None)
    np.testing.assert_allclose(np.ldexp(found.coef, np.frexp(factors)[1][:, None] - 1), plain.coef, rtol=1e-10)
    assert found.rank == 64


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
def test_huge_and_tiny_targets_on_the_gram_path(exponent):
    X, y, _ = tall_table()
    found, plain = least_squares(blocks_of(X, np.ldexp(y, exponent))), least_squares(blocks_of(X, y))
    np.testing.assert_allclose(np.ldexp(found.coef, -exponent), plain.coef, rtol=1e-12)
    np.testing.assert_allclose(np.ldexp(found.residual_norm, -exponent), plain.residual_norm, rtol=1e-12)


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
def test_huge_and_tiny_targets_on_the_dual_path(exponent):
    X, y, _ = random_table(7, 50, 250)
    found, plain = (least_squares(blocks_of(X, t), 3.0) for t in (np.ldexp(y, exponent), y))
    np.testing.assert_allclose(np.ldexp(found.coef, -exponent), plain.coef, rtol=1e-11)
    np.testing.assert_allclose(np.ldexp(found.residual_norm, -exponent), plain.residual_norm, rtol=1e-11)


def test_least_squares_is_right_whichever_path_it_takes():
    for (n, d), alpha in (((500, 64), 0.0), ((500, 64), 3.0), ((50, 250), 3.0), ((50, 250), 0.0), ((64, 64), 0.0)):
        X, y, weight = random_table(8, n, d, 2, weighted=True)
        found = least_squares(blocks_of(X, y, weight), alpha)
        expected = orthogonal_fit(X, y, weight, alpha)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=0, atol=1e-11)
        assert found.value <= CLOSED_FORM_TOLERANCE


def test_large_means_do_not_disturb_the_gram_path():
    X, y, _ = tall_table(9)
    plain = orthogonal_fit(X, y, None)
    for mean in (1e4, 1e8):
        found = least_squares(blocks_of(X + mean, y))
        # X + mean is itself rounded, by EPS·mean of the spread.
        np.testing.assert_allclose(found.coef, plain.coef, rtol=0, atol=1e-12 + 10 * EPS * mean)
        assert found.value <= CLOSED_FORM_TOLERANCE


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_tables_give_the_dense_answer(weighted):
    X = random_sparse(10, 500, 64)
    _, y, weight = random_table(10, 500, 64, 2, weighted=weighted)
    for alpha in (0.0, 1.0):
        sparse = least_squares(blocks_of(X, y, weight), alpha)
        dense = least_squares(blocks_of(X.toarray(), y, weight), alpha)
        np.testing.assert_allclose(sparse.coef, dense.coef, rtol=0, atol=1e-12)
        np.testing.assert_allclose(sparse.intercept, dense.intercept, rtol=0, atol=1e-12)


def test_a_sparse_table_with_a_column_far_from_zero_is_still_solved():
    X = random_sparse(11, 500, 64).toarray()
    X[:, 7] = 1e8 + np.random.default_rng(11).normal(size=500)
    _, y, _ = random_table(11, 500, 64)
    found = least_squares(blocks_of(sp.csr_array(X), y))
    expected = orthogonal_fit(X - [1e8 * (j == 7) for j in range(64)], y, None)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=0, atol=1e-10)


def test_sparse_tables_too_wide_and_too_large_are_left_to_iteration():
    X = sp.random_array((6000, 3500), density=1e-4, rng=np.random.default_rng(12), format="csr")
    assert least_squares(blocks_of(X, np.ones(6000))) is None


@pytest.mark.parametrize("sparse", [False, True])
def test_constant_columns_on_the_gram_path_get_zero(sparse):
    X, y, _ = tall_table(13)
    X[:, 5] = 0.0 if sparse else 0.1
    found = least_squares(blocks_of(sp.csr_array(X) if sparse else X, y))
    assert found.coef[5, 0] == 0.0
    assert found.rank == 63
    assert not found.factor[5].any() and not found.factor[:, 5].any()


def test_a_column_whose_variance_underflows_is_not_taken_for_constant():
    X, y, _ = tall_table(14)
    X[:, 5] *= 2.0**-600
    found, plain = (
        least_squares(blocks_of(X, y)),
        orthogonal_fit(X * np.where(np.arange(64) == 5, 2.0**600, 1), y, None),
    )
    assert found.rank == 64
    assert found.coef[5, 0] == pytest.approx(plain.coef[5, 0] * 2.0**600, rel=1e-10)


def test_constant_target_on_the_gram_path():
    X, _, _ = tall_table(15)
    found = least_squares(blocks_of(X, np.full(500, 0.1)))
    assert not found.coef.any()
    assert found.intercept[0] == 0.1
    assert found.value == 0.0


@pytest.mark.threaded
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_gram_path_gives_the_same_bits_whatever_the_parts_and_the_threads(alpha):
    X, y, weight = random_table(16, 1000, 8, 2, weighted=True)
    one = fit_gram(X, y, weight, alpha, rows=128, n_jobs=1)
    for parts, n_jobs in ((1, 2), (7, 1), (7, 2)):
        other = fit_gram(X, y, weight, alpha, rows=128, parts=parts, n_jobs=n_jobs)
        assert np.array_equal(one.coef, other.coef)
        assert np.array_equal(one.intercept, other.intercept)
        assert one.value == other.value


def test_gram_factor_is_the_orthogonal_one_up_to_signs():
    X, y, weight = random_table(17, 100, 5, weighted=True)
    gram, orthogonal = fit_gram(X, y, weight).factor, orthogonal_fit(X, y, weight).factor
    np.testing.assert_allclose(np.abs(gram), np.abs(orthogonal), rtol=1e-10, atol=1e-12)
    assert np.array_equal(gram, np.triu(gram))


@pytest.mark.threaded
def test_dense_rows_puts_the_blocks_together():
    X, y, weight = random_table(18, 30, 3, 2, weighted=True)
    for given in (X, sp.csr_array(X)):
        rows, targets, weights = dense_rows(blocks_of(given, y, weight, parts=3, rows=7))
        assert np.array_equal(rows, X)
        assert np.array_equal(targets, y)
        assert np.array_equal(weights, weight)
