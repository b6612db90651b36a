"""Orthogonal factorisation against rational arithmetic: any rank, shape and scale; and the laws of least squares."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.oracles.exact import exact_least_squares, exact_unit_errors
from tests.solvers.tables import (
    EPS,
    coefficient_error,
    condition_number,
    nearly_collinear_table,
    own_units_error,
    random_table,
)

from learnable.solvers.systems.least_squares import CLOSED_FORM_TOLERANCE
from learnable.solvers.systems.orthogonal import orthogonal_fit, reciprocal_condition, weighted_mean

SMALL = st.integers(-9, 9).map(float)


def assert_exact(X, y, weight=None, alpha=0.0, *, intercept=True, tolerance):
    """Compare every part of a fit with the exact one."""
    found = orthogonal_fit(X, y, weight, alpha, intercept=intercept)
    exact = exact_least_squares(X, y, weight, alpha, intercept=intercept)
    assert coefficient_error(found.coef, exact.coef, X, y) <= tolerance
    size = np.abs(y).max(axis=0)
    assert (np.abs(found.intercept - exact.intercept) <= tolerance * np.maximum(np.abs(exact.intercept), size)).all()
    assert (np.abs(found.residual_norm - exact.residual_norm) <= tolerance * len(X) * size).all()
    assert found.value <= CLOSED_FORM_TOLERANCE
    if alpha == 0:
        assert found.rank == exact.rank
    return found


@pytest.mark.parametrize("shape", [(8, 2), (12, 5), (30, 8)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 2.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_tall_tables_are_solved_to_rounding(shape, weighted, alpha, intercept):
    X, y, weight = random_table(shape[1], *shape, 2, weighted=weighted, mean=0.5)
    kappa = condition_number(X, weight, alpha, intercept=intercept)
    assert_exact(X, y, weight, alpha, intercept=intercept, tolerance=4 * EPS * kappa)


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (3, 6), (5, 8), (6, 6)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_wide_tables_get_the_smallest_coefficients(shape, weighted, alpha, intercept):
    X, y, weight = random_table(sum(shape), *shape, 2, weighted=weighted)
    assert_exact(X, y, weight, alpha, intercept=intercept, tolerance=100 * EPS)


def test_wide_tables_agree_with_the_pseudo_inverse():
    X, y, _ = random_table(0, 6, 15, 2)
    found = orthogonal_fit(X, y, None)
    expected = np.linalg.pinv(X - X.mean(axis=0)) @ (y - y.mean(axis=0))
    np.testing.assert_allclose(found.coef, expected, atol=1e-13)
    np.testing.assert_allclose(found.residual_norm, 0.0, atol=1e-13)


@pytest.mark.parametrize("closeness", [1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("intercept", [True, False])
def test_ill_conditioned_tables_lose_no_more_than_their_condition(closeness, intercept):
    X, y = nearly_collinear_table(1, closeness)
    kappa = condition_number(X, intercept=intercept)
    found = orthogonal_fit(X, y, None, intercept=intercept)
    exact = exact_least_squares(X, y, intercept=intercept)
    assert coefficient_error(found.coef, exact.coef, X, y) <= EPS * kappa
    assert found.rank == 4


def test_factor_is_the_root_of_the_centred_gram_matrix():
    X, y, weight = random_table(2, 20, 4, weighted=True, mean=2.0)
    found = orthogonal_fit(X, y, weight)
    Z = X - np.average(X, axis=0, weights=weight)
    assert np.array_equal(found.factor, np.triu(found.factor))
    np.testing.assert_allclose(found.factor.T @ found.factor, Z.T @ (weight[:, None] * Z), rtol=1e-12)
    unit_errors = np.linalg.norm(np.linalg.inv(found.factor), axis=1)
    np.testing.assert_allclose(unit_errors, exact_unit_errors(X, weight)[1:], rtol=1e-13)


def whole_numbers(seed, n, d):
    return np.random.default_rng(seed).integers(-9, 10, size=(n, d)).astype(float)


X_WHOLE, Y_WHOLE = whole_numbers(0, 12, 4), whole_numbers(1, 12, 2)
DEPENDENT = {
    "a column twice": X_WHOLE[:, [0, 1, 1, 2]],
    "a column and its triple": np.column_stack([X_WHOLE, 3 * X_WHOLE[:, 0]]),
    "a column that is the sum of two": np.column_stack([X_WHOLE, X_WHOLE[:, 0] + X_WHOLE[:, 1]]),
    "a constant column": np.column_stack([X_WHOLE, np.full(12, 3.0)]),
    "a constant column that is no dyadic number": np.column_stack([X_WHOLE, np.full(12, 0.1)]),
    "a zero column": np.column_stack([X_WHOLE, np.zeros(12)]),
    "zero columns only": np.zeros((12, 3)),
    "dependent, with a large mean": np.column_stack([X_WHOLE, X_WHOLE[:, 0] + X_WHOLE[:, 1]]) + 1000.0,
    "wide, a column twice": X_WHOLE[:3, [0, 1, 2, 3, 0, 1]],
    "wide, a constant column": np.column_stack([X_WHOLE, np.full(12, 3.0)])[:4],
}


@pytest.mark.parametrize("case", DEPENDENT)
@pytest.mark.parametrize("alpha", [0.0, 2.5])
@pytest.mark.parametrize("intercept", [True, False])
def test_dependent_columns_get_the_smallest_coefficients(case, alpha, intercept):
    X = DEPENDENT[case]
    assert_exact(X, Y_WHOLE[: len(X)], None, alpha, intercept=intercept, tolerance=1e-12)


@pytest.mark.parametrize("value", [1.0, 0.3, 1e8])
@pytest.mark.parametrize("n", [2, 5, 100])
@pytest.mark.parametrize("d", [1, 2])
def test_constant_columns_alone_get_zero_coefficients(value, n, d):
    y = whole_numbers(n, n, 1)
    found = orthogonal_fit(np.full((n, d), value), y, None)
    assert np.array_equal(found.coef, np.zeros((d, 1)))
    assert found.rank == 0
    np.testing.assert_allclose(found.intercept, y.mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 7.7, -1e8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [12, 4])
def test_a_constant_target_is_all_intercept(value, weighted, rows):
    X, _, weight = random_table(3, rows, 4, weighted=weighted)
    found = orthogonal_fit(X, np.full((rows, 1), value), weight)
    assert np.abs(found.coef).max() <= 100 * EPS * abs(value)
    assert found.intercept[0] == pytest.approx(value, rel=100 * EPS)
    assert found.value <= CLOSED_FORM_TOLERANCE


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_repeated_rows_with_different_targets_in_a_wide_table(intercept, weighted):
    X, _, _ = random_table(4, 3, 8)
    X, weight = X[[0, 0, 1, 1, 2, 2]], np.arange(1.0, 7.0) if weighted else None
    y = whole_numbers(5, 6, 1)
    assert_exact(X, y, weight, intercept=intercept, tolerance=1e-12)


@pytest.mark.parametrize("exponent", [10, 150, 300])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("rows", [12, 4])
def test_columns_of_wildly_different_scale(exponent, alpha, rows):
    X, y, _ = random_table(6, rows, 4)
    scaled = X * 10.0 ** np.array([exponent, -exponent, 0, 0])
    if rows > 4 or alpha > 0:
        assert_exact(scaled, y, None, alpha, tolerance=1e-13)
        return
    found, exact = orthogonal_fit(scaled, y, None, alpha), exact_least_squares(scaled, y, None, alpha)
    assert own_units_error(found.coef, exact.coef) <= 1e-13
    assert found.rank == exact.rank


@pytest.mark.parametrize("exponent", [-300, -150, 150, 300])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(12, 4), (4, 6)])
def test_all_columns_huge_or_tiny(exponent, alpha, shape):
    X, y, _ = random_table(7, *shape)
    scaled = X * 10.0**exponent
    found, exact = orthogonal_fit(scaled, y, None, alpha), exact_least_squares(scaled, y, None, alpha)
    assert own_units_error(found.coef, exact.coef) <= 1e-12
    assert found.value <= CLOSED_FORM_TOLERANCE


@pytest.mark.parametrize("exponent", [-300, -150, 150, 300])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(12, 4), (4, 6)])
def test_huge_and_tiny_targets(exponent, alpha, shape):
    X, y, _ = random_table(8, *shape)
    assert_exact(X, y * 10.0**exponent, None, alpha, tolerance=1e-13)


@pytest.mark.parametrize("exponent", [2, 10, 50, 150])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("rows", [12, 4])
def test_dependent_columns_of_wildly_different_scale(exponent, alpha, rows):
    X, y, _ = random_table(9, rows, 4)
    X = X * 10.0 ** np.array([exponent, -exponent, 0, 0])
    X = np.column_stack([X, 4 * X[:, 0]])
    found, exact = orthogonal_fit(X, y, None, alpha), exact_least_squares(X, y, None, alpha)
    if rows == 12 or alpha > 0 or exponent <= 2:
        # A backward stable solution of minimum norm is off by κ in the columns' own units, which is their spread here.
        # Wide, dependent and spread beyond 1/ε, the own units are given up for the sake of the fit.
        assert own_units_error(found.coef, exact.coef) <= 1e-10
    assert np.abs(found.residual_norm - exact.residual_norm).max() <= 1e-10 * np.abs(y).max()
    assert found.value <= CLOSED_FORM_TOLERANCE


@pytest.mark.parametrize("mean", [1e4, 1e6, 1e8])
def test_large_means_leave_the_certificate_standing(mean):
    X, y, _ = random_table(10, 40, 3)
    tolerance = EPS * condition_number(X + mean)
    assert_exact(X + mean, y, tolerance=tolerance)
    assert_exact(X, y + mean, tolerance=EPS * mean)


@st.composite
def small_tables(draw, max_rows=7, max_columns=3):
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    X = draw(hnp.arrays(np.float64, (n, d), elements=SMALL))
    y = draw(hnp.arrays(np.float64, (n, 1), elements=SMALL))
    weight = draw(st.none() | hnp.arrays(np.float64, n, elements=st.sampled_from([1.0, 2.0, 4.0])))
    return X, y, weight


@st.composite
def full_rank_tables(draw):
    """Draw tables that determine their coefficients, with residuals that are not all zero."""
    X, y, weight = draw(small_tables(max_rows=9))
    assume(len(X) > X.shape[1] + 1)
    exact = exact_least_squares(X, y, weight)
    assume(exact.rank == X.shape[1])
    assume(condition_number(X, weight) < 1e3)
    assume(exact.residual_norm[0] > 0.1)
    return X, y, weight


@settings(max_examples=300, deadline=None)
@given(small_tables(), st.sampled_from([0.0, 0.0, 0.5]), st.booleans())
@example((np.ones((5, 1)), np.arange(5.0)[:, None], None), 0.0, True)
def test_every_small_table_whatever_its_rank(table, alpha, intercept):
    assert_exact(*table, alpha, intercept=intercept, tolerance=1e-11)


@settings(max_examples=100, deadline=None)
@given(full_rank_tables())
def test_residuals_are_orthogonal_to_every_column(table):
    X, y, weight = table
    found = orthogonal_fit(X, y, weight)
    w = np.ones(len(X)) if weight is None else weight
    r = y - found.intercept - X @ found.coef
    size = np.sqrt(w.sum() * (w @ y**2))
    assert np.abs(w @ r).max() <= 1e-13 * size * (1 + np.abs(X).max())
    assert np.abs(X.T @ (w[:, None] * r)).max() <= 1e-13 * size * (1 + np.abs(X).max()) ** 2


@settings(max_examples=100, deadline=None)
@given(full_rank_tables(), st.integers(-900, 900), st.data())
def test_scaling_a_column_by_a_power_of_two_scales_its_coefficient_exactly(table, exponent, data):
    X, y, weight = table
    column = data.draw(st.integers(0, X.shape[1] - 1))
    factors = np.ones(X.shape[1])
    factors[column] = 2.0**exponent
    plain, scaled = orthogonal_fit(X, y, weight), orthogonal_fit(X * factors, y, weight)
    assert np.array_equal(scaled.coef * factors[:, None], plain.coef)
    assert np.array_equal(scaled.intercept, plain.intercept)


@settings(max_examples=100, deadline=None)
@given(full_rank_tables(), st.integers(-900, 900))
def test_scaling_the_target_by_a_power_of_two_scales_everything_exactly(table, exponent):
    X, y, weight = table
    plain, scaled = orthogonal_fit(X, y, weight), orthogonal_fit(X, np.ldexp(y, exponent), weight)
    assert np.array_equal(scaled.coef, np.ldexp(plain.coef, exponent))
    assert np.array_equal(scaled.intercept, np.ldexp(plain.intercept, exponent))


@settings(max_examples=100, deadline=None)
@given(full_rank_tables(), st.integers(-1000, 1000))
def test_a_constant_added_to_the_target_moves_the_intercept_alone(table, constant):
    X, y, weight = table
    plain, moved = orthogonal_fit(X, y, weight), orthogonal_fit(X, y + constant, weight)
    tolerance = 1e-12 * (1 + np.abs(y).max() + abs(constant))
    np.testing.assert_allclose(moved.coef, plain.coef, rtol=0, atol=tolerance)
    np.testing.assert_allclose(moved.intercept, plain.intercept + constant, rtol=0, atol=10 * tolerance)


@settings(max_examples=100, deadline=None)
@given(full_rank_tables())
def test_doubling_all_weights_changes_nothing(table):
    X, y, weight = table
    w = np.ones(len(X)) if weight is None else weight
    plain, doubled, quadrupled = (orthogonal_fit(X, y, factor * w) for factor in (1.0, 2.0, 4.0))
    assert np.array_equal(plain.coef, quadrupled.coef)
    np.testing.assert_allclose(doubled.coef, plain.coef, rtol=0, atol=1e-12 * np.abs(y).max())
    np.testing.assert_allclose(doubled.residual_norm, np.sqrt(2) * plain.residual_norm, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(full_rank_tables(), st.data())
def test_whole_weights_are_repeated_rows(table, data):
    X, y, _ = table
    counts = data.draw(hnp.arrays(np.int64, len(X), elements=st.integers(1, 4)))
    weighted = orthogonal_fit(X, y, counts.astype(float))
    repeated = orthogonal_fit(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0), None)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=0, atol=1e-11 * np.abs(y).max())
    np.testing.assert_allclose(weighted.residual_norm, repeated.residual_norm, rtol=1e-11)
    assert weighted.rank == repeated.rank


@settings(max_examples=100, deadline=None)
@given(small_tables(), st.floats(0.01, 100.0), st.floats(1.01, 100.0))
def test_more_penalty_makes_smaller_coefficients(table, alpha, factor):
    X, y, weight = table
    light, heavy = (orthogonal_fit(X, y, weight, a) for a in (alpha, alpha * factor))
    light_norm, heavy_norm = np.linalg.norm(light.coef), np.linalg.norm(heavy.coef)
    if light_norm > 1e-10:
        assert heavy_norm < light_norm
    else:
        assert heavy_norm <= 1e-10
    assert heavy.residual_norm[0] >= light.residual_norm[0] * (1 - 1e-12) - 1e-14 * np.abs(y).max()


def test_weighted_mean_of_huge_rows_is_finite():
    rows = np.array([[1.7e308], [1.7e308]])
    assert weighted_mean(rows, None)[0] == 1.7e308
    assert weighted_mean(rows, None, False)[0] == 0.0


def test_reciprocal_condition():
    assert reciprocal_condition(np.diag([1.0, 1e-8])) == pytest.approx(1e-8)
    assert reciprocal_condition(np.array([[np.inf, 0.0], [0.0, 1.0]])) == 0.0
