"""Steps between epochs: Newton and active-set points on the support, and Anderson's weights."""

import numpy as np
import pytest

from learnable.solvers import coordinate_descent
from learnable.solvers.composite.coordinate import (
    GramQuadratic,
    Penalty,
    _solved,
    anderson_weights,
    extrapolate,
    row_norms,
)
from learnable.solvers.composite.support_factor import SupportFactor


@pytest.mark.parametrize("spread", [1e-2, 1e-4])
@pytest.mark.parametrize("share", [0.5, 1e-2, 1e-4])
def test_almost_collinear_columns_are_solved_by_the_active_set(spread, share):
    """Epochs alone would take about spread⁻² of them."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 1)) + spread * rng.standard_normal((30, 12))
    b = rng.standard_normal(30)
    found = coordinate_descent(A.T @ A, A.T @ b, float(b @ b), share * np.abs(A.T @ b).max(), max_iter=2000)
    assert found.converged


def test_a_newton_step_ends_at_the_optimum_of_a_settled_support():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((40, 6))
    b = A @ np.array([3.0, -2.0, 1.0, 0.0, 0.0, 0.0]) + 0.1 * rng.standard_normal(40)
    l1 = 1.0
    expected = coordinate_descent(A.T @ A, A.T @ b, float(b @ b), l1, tol=1e-14).x
    near = np.where(expected != 0, expected * 1.1, 0.0)[:, None]
    model = GramQuadratic(A.T @ A, (A.T @ b)[:, None], float(b @ b), near)
    extrapolate(model, Penalty(np.full(6, l1), np.zeros(6)), [near] * 6)
    np.testing.assert_allclose(model.W[:, 0], expected, atol=1e-10)


@pytest.mark.parametrize("share", [0.5, 1e-2, 1e-4])
def test_almost_collinear_columns_of_several_targets_are_solved_by_newton_steps_over_rows(share):
    """Epochs alone leave a gap of 1e-4 and more after ten times as many."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 1)) + 1e-2 * rng.standard_normal((60, 10))
    B = A @ rng.standard_normal((10, 3)) + rng.standard_normal((60, 3))
    C = A.T @ B
    l1 = share * row_norms(C).max()
    found = coordinate_descent(A.T @ A, C, float((B * B).sum()), l1, max_iter=400)
    assert found.converged
    slack = row_norms(C - A.T @ A @ found.x)
    active = found.x.any(axis=1)
    assert active.any() and (slack <= l1 * (1 + 1e-4)).all()
    np.testing.assert_allclose(slack[active], l1, rtol=1e-3)


def test_late_steps_on_a_support_that_never_settles_descend():
    """A support that still changes has no Newton point, but active-set steps, which are sure."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 1)) + 1e-3 * rng.standard_normal((40, 8))
    b = rng.standard_normal(40)
    near = rng.standard_normal((8, 1))
    other = near.copy()
    other[0] = 0.0
    reached = []
    for late in (False, True):
        model = GramQuadratic(A.T @ A, (A.T @ b)[:, None], float(b @ b), near)
        penalty = Penalty(np.full(8, 0.01), np.zeros(8))
        extrapolate(model, penalty, [near, near, near, other, other, near], late=late)
        reached.append(0.5 * model.residual_square() + 0.01 * float(np.abs(model.W).sum()))
    assert reached[1] < 0.9 * reached[0]


def test_a_candidate_that_does_not_descend_is_dropped():
    """At the optimum nothing moves, and the gradient is the same bits."""
    model = GramQuadratic(np.eye(2), np.array([[3.0], [0.5]]), 9.25, np.array([[2.0], [0.0]]))
    before = model.g.copy()
    extrapolate(model, Penalty(np.ones(2), np.zeros(2)), [model.W.copy()] * 6)
    assert (model.W[:, 0] == [2.0, 0.0]).all() and (model.g == before).all()


def test_collinear_columns_are_solved_with_a_trace_of_a_ridge():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 20))
    H, slope, l2 = A.T @ A, rng.standard_normal(20), rng.random(20)
    np.testing.assert_allclose(_solved(H.copy(), l2, slope), np.linalg.solve(H + np.diag(l2), slope), atol=1e-14)
    A[:, 3] = A[:, 5]
    H = A.T @ A
    np.testing.assert_allclose(H @ _solved(H.copy(), 0 * l2, H @ slope), H @ slope, atol=1e-6)


def test_weights_sum_to_one_and_find_the_limit_of_a_linear_iteration():
    T, limit = np.diag([0.9, 0.5, -0.3]), np.array([1.0, 2.0, 3.0])
    points = [np.zeros(3)]
    for _ in range(4):
        points.append(limit + T @ (points[-1] - limit))
    weights = anderson_weights(np.array(points))
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights @ np.array(points)[1:], limit, atol=1e-3)
    assert anderson_weights(np.ones((4, 3))) is None


def test_norms_of_rows():
    assert row_norms(np.array([[3.0, 4.0], [0.0, -1.0]])).tolist() == [5.0, 1.0]
    assert row_norms(np.array([[-2.0], [1.0]])).tolist() == [2.0, 1.0]


def relative_residual(G, support, l2, step, slope):
    """Return the residual of the Newton system in units of the columns, which is what the factor sees."""
    H = G[np.ix_(support, support)] + np.diag(l2[support])
    units = 1.0 / np.sqrt(H.diagonal())
    return np.linalg.norm(units * (H @ step - slope)) / np.linalg.norm(units * slope)


def test_a_factor_of_half_the_digits_is_corrected_with_all_of_them():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((600, 300)) * rng.uniform(0.1, 10.0, 300)
    G, slope, l2 = A.T @ A, rng.standard_normal(250), rng.random(300)
    support = np.sort(rng.choice(300, 250, replace=False))
    factor = SupportFactor()
    step = factor.solve(G, support, l2, slope)
    assert relative_residual(G, support, l2, step, slope) <= 1e-6
    A[:, support[1]] = A[:, support[0]] + 1e-6 * A[:, support[1]]  # single precision sees a singular matrix
    G = A.T @ A
    assert factor.solve(G, support, 0.0 * l2, slope) is None
    assert len(factor.columns) == 0
    x = rng.standard_normal(250)
    H = G[np.ix_(support, support)]
    np.testing.assert_allclose(H @ _solved(H.copy(), np.zeros(250), H @ x), H @ x, rtol=1e-6)


def test_a_factor_follows_a_support_that_gains_and_loses_columns():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((600, 300)) * rng.uniform(0.1, 10.0, 300)
    G, l2 = A.T @ A, rng.random(300)
    factor = SupportFactor()
    first = np.arange(0, 200)
    assert factor.solve(G, first, l2, rng.standard_normal(200)) is not None
    near = np.setdiff1d(np.arange(0, 230), [3, 77, 150])  # 30 columns enter, three leave
    slope = rng.standard_normal(len(near))
    step = factor.solve(G, near, l2, slope)
    assert relative_residual(G, near, l2, step, slope) <= 1e-6
    assert len(factor.columns) == 230  # the same factor: those that left are constrained to zero
    step = factor.solve(G, near, 2.0 * l2, slope)  # another matrix
    assert relative_residual(G, near, 2.0 * l2, step, slope) <= 1e-6
    assert factor.columns.tolist() == near.tolist()
    far = np.arange(100, 300)
    slope = rng.standard_normal(200)
    assert relative_residual(G, far, l2, factor.solve(G, far, l2, slope), slope) <= 1e-6
    assert factor.columns.tolist() == far.tolist()


def test_a_column_that_depends_on_the_others_is_not_appended():
    rng = np.random.default_rng(7)
    A = rng.standard_normal((400, 210))
    A[:, 205] = A[:, 0] + 1e-6 * A[:, 205]
    G, l2 = A.T @ A, np.zeros(210)
    factor = SupportFactor()
    assert factor.solve(G, np.arange(200), l2, np.ones(200)) is not None
    assert factor.solve(G, np.arange(210), l2, np.ones(210)) is None


def test_many_columns_move_as_few_do():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((400, 220))
    W = rng.standard_normal((220, 1))
    model = GramQuadratic(A.T @ A, A.T @ np.ones((400, 1)), 400.0)
    model.move(W)
    np.testing.assert_allclose(model.g, A.T @ (1.0 - A @ W), rtol=1e-9, atol=1e-9)
