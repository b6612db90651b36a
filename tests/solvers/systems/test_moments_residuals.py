"""The residual of the defining equations: its sums, and that no choice of units changes it."""

import numpy as np
import pytest
from tests.oracles.exact import exact_least_squares
from tests.solvers.tables import EPS, blocks_of, random_sparse, random_table

from learnable.solvers.systems.moments import relative_residual, residual_sums


def plain_sums(X, y, weight, centre, level, coef):
    X, y = X.astype(np.longdouble), y.astype(np.longdouble)
    w = np.ones(len(X)) if weight is None else weight
    r = y - level - (X - centre) @ coef
    wr = w[:, None] * r
    return (X - centre).T @ wr, wr.sum(axis=0), (wr * r).sum(axis=0)


def value_of(X, y, weight, coef, alpha=0.0):
    """Return the relative residual of coefficients whose intercept is the best one."""
    w = np.ones(len(X)) if weight is None else weight
    x_mean, y_mean = np.average(X, axis=0, weights=w), np.average(y, axis=0, weights=w)
    sums = residual_sums(blocks_of(X, y, weight), x_mean, y_mean, coef)
    x_norm = np.sqrt(w @ (X - x_mean) ** 2)
    y_norm = np.sqrt(w @ (y - y_mean) ** 2)
    means = np.average(X, axis=0, weights=w), np.average(y, axis=0, weights=w)
    return relative_residual(
        sums.cross - alpha * coef,
        sums.total,
        x=(x_norm, means[0]),
        y=(y_norm, means[1]),
        coef=coef,
        intercept=means[1] - means[0] @ coef,
        penalty=alpha * np.abs(coef).max(axis=0),
        weight=float(w.sum()),
    )


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("rows", [None, 9])
def test_sums_are_those_written_out(weighted, rows):
    X, y, weight = random_table(0, 50, 4, 2, weighted=weighted)
    coef, centre, level = np.ones((4, 2)), X[0].copy(), np.array([0.5, -2.0])
    found = residual_sums(blocks_of(X, y, weight, rows=rows), centre, level, coef)
    for one, other in zip(found, plain_sums(X, y, weight, centre, level, coef), strict=True):
        np.testing.assert_allclose(one, np.asarray(other, dtype=float), rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
def test_sparse_sums_are_the_dense_ones(weighted):
    X = random_sparse(1, 50, 4)
    _, y, weight = random_table(1, 50, 4, 2, weighted=weighted)
    coef, centre, level = np.ones((4, 2)), np.full(4, 0.3), np.array([0.5, -2.0])
    sparse = residual_sums(blocks_of(X, y, weight, rows=20), centre, level, coef)
    dense = residual_sums(blocks_of(X.toarray(), y, weight, rows=20), centre, level, coef)
    for one, other in zip(sparse, dense, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-12)


@pytest.mark.threaded
def test_sums_are_the_same_bits_whatever_the_parts_and_the_threads():
    X, y, weight = random_table(2, 1000, 4, 2, weighted=True)
    arguments = np.zeros(4), np.zeros(2), np.ones((4, 2))
    whole = residual_sums(blocks_of(X, y, weight, rows=100), *arguments, n_jobs=1)
    cut = residual_sums(blocks_of(X, y, weight, parts=7, rows=100), *arguments, n_jobs=2)
    for one, other in zip(whole, cut, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_the_solution_has_no_residual_and_its_neighbours_have_one(alpha):
    X, y, weight = random_table(3, 30, 4, 2, weighted=True)
    coef = exact_least_squares(X, y, weight, alpha).coef
    assert value_of(X, y, weight, coef, alpha).max() <= 8 * EPS
    for row in range(4):
        moved = coef.copy()
        moved[row, 1] *= 1.001
        values = value_of(X, y, weight, moved, alpha)
        assert values[0] <= 8 * EPS
        assert values[1] > 1e-6


def test_units_do_not_change_the_value():
    X, y, weight = random_table(4, 30, 3, weighted=True)
    coef = np.ones((3, 1))
    value = value_of(X, y, weight, coef)
    columns, target = np.array([2.0**40, 2.0**-60, 1.0]), 2.0**50
    scaled = value_of(X * columns, y * target, weight, coef * target / columns[:, None])
    np.testing.assert_allclose(scaled, value, rtol=1e-12)
    np.testing.assert_allclose(value_of(X, y, 4 * weight, coef), value, rtol=1e-12)


def test_nothing_to_solve_is_solved_and_an_impossible_equation_is_not():
    zero, one = np.zeros(1), np.ones(1)
    flat = np.zeros((1, 1))
    nothing = {"x": (zero, zero), "coef": flat, "intercept": zero, "weight": 1.0}
    assert relative_residual(flat, zero, y=(zero, zero), **nothing) == 0.0
    assert relative_residual(flat + 1, zero, y=(one, zero), **nothing) == np.inf
