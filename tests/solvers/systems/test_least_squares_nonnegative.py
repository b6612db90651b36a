"""Non-negative least squares against SciPy's general solvers, and the KKT conditions themselves."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear, nnls
from tests.solvers.tables import blocks_of, random_sparse, random_table

from learnable.solvers.systems.least_squares import nonnegative_fit
from learnable.solvers.systems.orthogonal import orthogonal_fit

KKT = 1e-10


def bounded_design(X, y, weight, alpha, intercept):
    """Return the rows of the whole problem, with the intercept as a free column and the penalty as further rows."""
    n, d = X.shape
    root = np.ones(n) if weight is None else np.sqrt(weight)
    D = np.vstack([np.column_stack([np.full(n, float(intercept)), X]) * root[:, None], np.sqrt(alpha) * np.eye(d + 1)])
    D[n, 0] = 0.0
    return D, np.r_[root * y, np.zeros(d + 1)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(30, 6), (6, 10)])
def test_agrees_with_a_bounded_solver(weighted, alpha, intercept, shape):
    X, y, weight = random_table(0, *shape, 2, weighted=weighted)
    found = nonnegative_fit(blocks_of(X, y, weight, rows=12), alpha, intercept=intercept)
    assert (found.coef >= 0).all()
    assert found.value <= KKT
    for target in range(2):
        D, t = bounded_design(X, y[:, target], weight, alpha, intercept)
        lower = np.r_[-np.inf if intercept else -1e-12, np.zeros(shape[1])]
        upper = np.r_[np.inf if intercept else 1e-12, np.full(shape[1], np.inf)]
        expected = lsq_linear(D, t, (lower, upper), method="bvls", tol=1e-15)
        ours = np.r_[found.intercept[target], found.coef[:, target]]
        assert np.sum((D @ ours - t) ** 2) <= 2 * expected.cost * (1 + 1e-9) + 1e-20
        if shape[0] > shape[1] or alpha:
            np.testing.assert_allclose(ours[1:], expected.x[1:], atol=1e-6)
        if alpha == 0:
            assert found.residual_norm[target] ** 2 == pytest.approx(2 * expected.cost, rel=1e-8, abs=1e-20)


def test_without_intercept_it_is_lawson_and_hanson():
    X, y, _ = random_table(1, 40, 8)
    found = nonnegative_fit(blocks_of(X, y), 0.0, intercept=False)
    expected, norm = nnls(X, y[:, 0])
    np.testing.assert_allclose(found.coef[:, 0], expected, atol=1e-12)
    assert found.residual_norm[0] == pytest.approx(norm, rel=1e-12)
    assert found.intercept[0] == 0.0


def test_an_inactive_constraint_changes_nothing():
    X, _, weight = random_table(2, 40, 4, weighted=True)
    y = 3.0 + X @ np.array([[1.0], [2.0], [3.0], [4.0]]) + 0.1 * random_table(3, 40, 1)[1]
    found, free = nonnegative_fit(blocks_of(X, y, weight), 0.0), orthogonal_fit(X, y, weight)
    np.testing.assert_allclose(found.coef, free.coef, rtol=1e-11)
    np.testing.assert_allclose(found.intercept, free.intercept, rtol=1e-11)


def test_a_falling_target_leaves_the_mean():
    X = np.arange(10.0)[:, None]
    found = nonnegative_fit(blocks_of(X, -X), 0.0)
    assert found.coef[0, 0] == 0.0
    assert found.intercept[0] == pytest.approx(-4.5)
    assert found.value == 0.0


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_gradient_vanishes_inside_and_points_outwards_at_zero(alpha):
    X, y, weight = random_table(4, 50, 8, weighted=True)
    found = nonnegative_fit(blocks_of(X, y, weight), alpha)
    r = y - found.intercept - X @ found.coef
    gradient = (X.T @ (weight[:, None] * r) - alpha * found.coef)[:, 0]
    free = found.coef[:, 0] > 0
    assert 0 < free.sum() < 8
    np.testing.assert_allclose(gradient[free], 0.0, atol=1e-10)
    assert (gradient[~free] <= 1e-10).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_is_dense(weighted):
    X = random_sparse(5, 60, 6)
    _, y, weight = random_table(5, 60, 6, 2, weighted=weighted)
    sparse = nonnegative_fit(blocks_of(X, y, weight), 0.5)
    dense = nonnegative_fit(blocks_of(X.toarray(), y, weight), 0.5)
    np.testing.assert_allclose(sparse.coef, dense.coef, rtol=0, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_a_constant_target_is_all_intercept(value):
    X, _, _ = random_table(6, 30, 3)
    found = nonnegative_fit(blocks_of(X, np.full(30, value)), 0.0)
    assert np.abs(found.coef).max() <= 1e-16
    assert found.intercept[0] == pytest.approx(value, rel=1e-15)
    assert found.value <= KKT


def test_constant_zero_and_repeated_columns():
    X, y, _ = random_table(7, 30, 3)
    table = np.column_stack([X, np.full(30, 0.1), np.zeros(30), X[:, 0]])
    found, plain = nonnegative_fit(blocks_of(table, y), 0.0), nonnegative_fit(blocks_of(X, y), 0.0)
    assert found.value <= KKT
    assert not found.coef[3:5].any()
    np.testing.assert_allclose(found.residual_norm, plain.residual_norm, rtol=1e-12)


@pytest.mark.parametrize("exponent", [300, 900])
def test_columns_of_wildly_different_scale(exponent):
    X, noise, _ = random_table(8, 30, 3)
    y = X @ np.array([[1.0], [-1.0], [2.0]]) + 0.1 * noise
    factors = 2.0 ** np.array([exponent, 0, -exponent])
    found, plain = nonnegative_fit(blocks_of(X * factors, y), 0.0), nonnegative_fit(blocks_of(X, y), 0.0)
    np.testing.assert_allclose(found.coef * factors[:, None], plain.coef, rtol=1e-9, atol=1e-12)
    assert found.value <= KKT


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
def test_huge_and_tiny_targets(exponent):
    X, noise, _ = random_table(9, 30, 3)
    y = X @ np.array([[1.0], [-1.0], [2.0]]) + 0.1 * noise
    found, plain = nonnegative_fit(blocks_of(X, np.ldexp(y, exponent)), 0.0), nonnegative_fit(blocks_of(X, y), 0.0)
    np.testing.assert_allclose(np.ldexp(found.coef, -exponent), plain.coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.ldexp(found.residual_norm, -exponent), plain.residual_norm, rtol=1e-9)
    assert found.value <= KKT


def test_weights_of_very_different_size():
    X, y = np.array([[1.0], [2.0]]), np.array([[0.1], [0.7]])
    found = nonnegative_fit(blocks_of(X, y, np.array([1e-20, 1.0])), 0.0)
    assert found.coef[0, 0] == pytest.approx(0.6, rel=1e-6)
    assert found.value <= KKT


def test_large_means():
    X, y, _ = random_table(10, 60, 3)
    found, plain = nonnegative_fit(blocks_of(X + 1e6, y), 0.0), nonnegative_fit(blocks_of(X, y), 0.0)
    np.testing.assert_allclose(found.coef, plain.coef, atol=1e-9)
    assert found.value <= KKT


def test_one_row():
    found = nonnegative_fit(blocks_of(np.ones((1, 3)), np.array([[2.0]])), 0.0)
    assert not found.coef.any()
    assert found.intercept[0] == 2.0


@pytest.mark.threaded
def test_blocks_and_parts_give_the_same_bits():
    X, y, weight = random_table(11, 300, 5, weighted=True)
    one = nonnegative_fit(blocks_of(X, y, weight, rows=64), 0.0)
    other = nonnegative_fit(blocks_of(sp.csr_array(X).toarray(), y, weight, rows=64, parts=5), 0.0)
    assert np.array_equal(one.coef, other.coef)
