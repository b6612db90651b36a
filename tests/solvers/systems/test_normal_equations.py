"""Conjugate gradients on the normal equations: their pieces, their answer, and a value that belongs to that answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.exact import exact_least_squares
from tests.solvers.tables import EPS, blocks_of, coefficient_error, random_sparse, random_table

from learnable.solvers.systems.moments import centred_moments
from learnable.solvers.systems.normal_equations import column_sums, iterative_fit, normal_product


def objective(X, y, weight, alpha, coef, intercept):
    w = np.ones(len(X)) if weight is None else weight
    r = (y - intercept - X @ coef).astype(np.longdouble)
    return np.asarray((w[:, None] * r**2).sum(axis=0) + alpha * (coef**2).sum(axis=0), dtype=float)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_column_sums_are_the_diagonal_of_the_moments(sparse, weighted, intercept):
    X = random_sparse(0, 50, 4)
    _, y, weight = random_table(0, 50, 4, 2, weighted=weighted)
    blocks = blocks_of(X if sparse else X.toarray(), y, weight, rows=20)
    sums = column_sums(blocks, intercept=intercept)
    moments = centred_moments(blocks_of(X.toarray(), y, weight), intercept=intercept)
    assert sums.weight == pytest.approx(moments.weight, rel=1e-14)
    np.testing.assert_allclose(sums.x_square, np.diag(moments.gram), rtol=1e-12)
    np.testing.assert_allclose(sums.y_square, moments.y_square, rtol=1e-12)
    if intercept:
        np.testing.assert_allclose(sums.x_mean, moments.x_mean, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(sums.y_mean, moments.y_mean, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_normal_product_is_the_product_with_the_gram_matrix(sparse, weighted):
    X = random_sparse(1, 50, 6)
    _, y, weight = random_table(1, 50, 6, weighted=weighted)
    v, centre = np.arange(1.0, 7.0), np.full(6, 0.2)
    found = normal_product(blocks_of(X if sparse else X.toarray(), y, weight, rows=20), centre, v)
    Z = X.toarray() - centre
    w = np.ones(50) if weight is None else weight
    np.testing.assert_allclose(found, Z.T @ (w * (Z @ v)), rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_iteration_reaches_the_exact_solution(sparse, alpha, intercept, weighted):
    X = random_sparse(2, 30, 6, density=0.5)
    _, y, weight = random_table(2, 30, 6, 2, weighted=weighted)
    blocks = blocks_of(X if sparse else X.toarray(), y, weight, rows=12)
    found = iterative_fit(blocks, alpha, intercept=intercept, tol=1e-26 if alpha else 1e-15)
    exact = exact_least_squares(X.toarray(), y, weight, alpha, intercept=intercept)
    assert coefficient_error(found.coef, exact.coef, X.toarray(), y) <= 1e-12
    np.testing.assert_allclose(found.intercept, exact.intercept, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.residual_norm, exact.residual_norm, rtol=1e-12)


def value_of(X, y, alpha, found):
    """Return the relative gap (or, without penalty, the relative residual) and the dual value, from the definitions."""
    Z, t = X - X.mean(axis=0), y - y.mean(axis=0)
    r = t - Z @ found.coef
    g = Z.T @ r - alpha * found.coef
    if alpha == 0:
        share = 0.01 * np.sqrt(len(X))  # of the means, at tolerances of 1e-12 and below
        x_norm = np.linalg.norm(Z, axis=0) + share * np.abs(X.mean(axis=0))
        y_norm = np.linalg.norm(t) + share * np.abs(y.mean(axis=0))
        terms = y_norm + x_norm @ np.abs(found.coef) + share * np.abs(found.intercept)
        return float((np.abs(g) / np.outer(x_norm, terms)).max()), -np.inf
    gap = float((g**2).sum() / alpha)
    dual = float((r**2).sum() + alpha * (found.coef**2).sum()) - gap
    return gap / max(dual, 1e-8 * float((t**2).sum())), dual


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_the_dual_value_never_exceeds_the_optimum(steps):
    X, y, _ = random_table(3, 6, 9)
    X *= np.logspace(-1, 1, 9)
    found = iterative_fit(blocks_of(X, y), 3.0, tol=1e-30, max_iter=steps)
    exact = exact_least_squares(X, y, None, 3.0)
    best = objective(X, y, None, 3.0, exact.coef, exact.intercept)[0]
    value, dual = value_of(X, y, 3.0, found)
    assert found.n_iter == steps
    assert found.value == pytest.approx(value, rel=1e-6)
    assert dual <= best * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("stop_at", [1, 3])
def test_progress_stops_it_at_once(alpha, stop_at):
    X, y, _ = random_table(4, 60, 30)
    X *= np.logspace(-1, 1, 30)
    seen = []

    def progress(iteration, value):
        seen.append(iteration)
        return iteration >= stop_at

    found = iterative_fit(blocks_of(X, y), alpha, tol=1e-15, progress=progress)
    assert seen == list(range(1, stop_at + 1))
    assert found.n_iter == stop_at


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("stop_at", [1, 3])
def test_the_value_belongs_to_the_coefficients_returned(alpha, stop_at):
    X, y, _ = random_table(5, 60, 30)
    X = X * np.logspace(-1, 1, 30)
    found = iterative_fit(blocks_of(X, y), alpha, tol=1e-15, progress=lambda iteration, value: iteration >= stop_at)
    assert found.value == pytest.approx(value_of(X, y, alpha, found)[0], rel=1e-6)


def test_every_target_has_max_iter_iterations_as_if_it_were_alone():
    X, y, _ = random_table(6, 60, 30, 3)
    found = iterative_fit(blocks_of(X, y), 0.0, tol=1e-15, max_iter=7)
    assert found.n_iter <= 3 * 7
    for k in range(3):
        alone = iterative_fit(blocks_of(X, y[:, [k]]), 0.0, tol=1e-15, max_iter=7)
        assert alone.n_iter <= 7
        np.testing.assert_allclose(found.coef[:, [k]], alone.coef, rtol=1e-9, atol=1e-12)


def test_a_sparse_column_far_from_zero_is_still_solved():
    X = random_sparse(7, 60, 5, density=0.5).toarray()
    X[:, 2] = 1e8 + np.random.default_rng(7).normal(size=60)
    _, y, _ = random_table(7, 60, 5)
    found = iterative_fit(blocks_of(sp.csr_array(X), y), 0.0, tol=1e-6)
    exact = exact_least_squares(X, y)
    assert found.value <= 1e-6
    np.testing.assert_allclose(found.coef, exact.coef, rtol=0, atol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_constant_target_and_constant_columns_need_no_step(sparse):
    X, _, _ = random_table(8, 30, 3)
    given = sp.csr_array(X) if sparse else X
    flat = iterative_fit(blocks_of(given, np.full(30, 0.1)), 0.0, tol=1e-8)
    assert np.abs(flat.coef).max() <= 100 * EPS
    assert flat.intercept[0] == pytest.approx(0.1, rel=1e-14)
    assert flat.value <= 1e-8
    X[:, 1] = 0.0
    y = X[:, [0]]
    found = iterative_fit(blocks_of(sp.csr_array(X) if sparse else X, y), 0.0, tol=1e-14)
    np.testing.assert_allclose(found.coef[:, 0], [1.0, 0.0, 0.0], atol=1e-12)


def test_rank_is_that_of_the_table():
    X, y, _ = random_table(9, 5, 12)
    assert iterative_fit(blocks_of(X, y), 0.0, tol=1e-10).rank <= 4


@pytest.mark.threaded
def test_the_same_bits_whatever_the_parts_and_the_threads():
    X, y, weight = random_table(10, 300, 6, 2, weighted=True)
    one = iterative_fit(blocks_of(X, y, weight, rows=64), 0.5, tol=1e-10, n_jobs=1)
    other = iterative_fit(blocks_of(X, y, weight, rows=64, parts=5), 0.5, tol=1e-10, n_jobs=2)
    assert np.array_equal(one.coef, other.coef)
    assert one.value == other.value
