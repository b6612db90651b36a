"""Coordinate descent: weak duality, the exact path, and every mode of the engine against each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.coordinate_passes import lasso_epoch
from tests.oracles.sparse import best_dual, lasso_homotopy

from learnable.core.errors import DataError, ParameterError
from learnable.solvers import coordinate_descent
from learnable.solvers.composite.coordinate import GramQuadratic, Penalty, descend, penalised_gap
from learnable.solvers.composite.designs import ColumnQuadratic


def problem(seed, n=30, d=12, t=1):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    B = np.zeros((d, t))
    B[:3] = rng.standard_normal((3, t))
    return A, A @ B + 0.3 * rng.standard_normal((n, t))


@given(st.integers(0, 1000), st.floats(0.01, 0.9), st.sampled_from([0.0, 0.5]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_weak_duality_holds_at_every_iterate(seed, share, ridge, positive):
    A, b = problem(seed)
    b = b[:, 0]
    largest = np.abs(A.T @ b).max()
    l1, l2 = share * largest, ridge * largest
    optimum = best_dual(A, b, l1, l2, positive)
    penalty = Penalty(np.full(12, l1), np.full(12, l2), positive)
    model = GramQuadratic(A.T @ A, (A.T @ b)[:, None], b @ b)
    for _ in range(15):
        gap = penalised_gap(model.W, model.gradient(), model.residual_square(), penalty)
        rounding = 1e-9 * b @ b
        assert gap.gap >= 0
        assert gap.primal - gap.gap <= optimum + rounding
        assert gap.primal >= optimum - rounding
        model.epochs(penalty, 1, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_path_is_that_of_the_exact_homotopy(seed):
    A, b = problem(seed, n=25, d=8)
    knots, points = lasso_homotopy(A, b[:, 0], 1e-3 * np.abs(A.T @ b).max())
    assert len(knots) > 5
    for a, w, a_next, w_next in zip(knots[:-1], points[:-1], knots[1:], points[1:], strict=True):
        for share in (0.0, 0.3, 1.0):  # linear in between
            level, expected = (1 - share) * a + share * a_next, (1 - share) * w + share * w_next
            found = coordinate_descent(A.T @ A, A.T @ b[:, 0], float(b[:, 0] @ b[:, 0]), level, tol=1e-13)
            np.testing.assert_allclose(found.x, expected, atol=1e-7 * np.abs(points).max())


def test_zero_at_the_largest_penalty_and_not_just_below():
    A, b = problem(7)
    largest = float(np.abs(A.T @ b).max())
    at = coordinate_descent(A.T @ A, A.T @ b[:, 0], float(b[:, 0] @ b[:, 0]), largest)
    below = coordinate_descent(A.T @ A, A.T @ b[:, 0], float(b[:, 0] @ b[:, 0]), largest * (1 - 1e-6), tol=1e-14)
    assert not at.x.any() and at.converged and at.n_iter == 0
    assert np.count_nonzero(below.x) == 1


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_gram_and_column_modes_agree(ridge, positive):
    A, b = problem(3, n=20, d=40)
    penalty = Penalty(np.full(40, 2.0), np.full(40, ridge), positive)
    gram = GramQuadratic(A.T @ A, A.T @ b, float(b[:, 0] @ b[:, 0]))
    columns = ColumnQuadratic(np.ascontiguousarray(A.T), b, np.zeros((40, 1)))
    for model in (gram, columns):
        assert descend(model, penalty, goal=1e-12, max_epochs=20000).gap.gap <= 1e-12
    np.testing.assert_allclose(gram.W, columns.W, atol=1e-6)


def test_rows_of_several_targets_vanish_together():
    A, B = problem(5, t=3)
    found = coordinate_descent(A.T @ A, A.T @ B, float((B * B).sum()), 5.0, tol=1e-12)
    assert found.converged
    zero = ~found.x.any(axis=1)
    assert zero.any() and found.x[~zero].all()
    slope = A.T @ (B - A @ found.x)
    norms = np.linalg.norm(slope, axis=1)
    assert (norms[zero] <= 5.0 + 1e-6).all()
    np.testing.assert_allclose(
        slope[~zero], 5.0 * found.x[~zero] / np.linalg.norm(found.x[~zero], axis=1)[:, None], atol=1e-4
    )


def test_a_duplicated_column_is_no_trouble():
    A, b = problem(1)
    A = np.column_stack([A, A[:, 0], np.zeros(len(A))])
    found = coordinate_descent(A.T @ A, A.T @ b[:, 0], float(b[:, 0] @ b[:, 0]), 1.0, tol=1e-10)
    assert found.converged and found.x[-1] == 0


def test_progress_can_stop_it():
    A, b = problem(2, n=200, d=100)
    seen = []
    found = coordinate_descent(
        A.T @ A,
        A.T @ b[:, 0],
        float(b[:, 0] @ b[:, 0]),
        0.01,
        tol=0.0,
        progress=lambda i, v: bool(seen.append(i)) or True,
    )
    assert seen == [found.n_iter] and found.n_iter == 50  # as many as run before the first look


def test_bad_arguments_are_refused():
    with pytest.raises(DataError, match="gram must be 2×2"):
        coordinate_descent(np.eye(3), np.ones(2), 1.0, 1.0)
    with pytest.raises(ParameterError, match="l1 and l2 must be finite and >= 0"):
        coordinate_descent(np.eye(2), np.ones(2), 1.0, -1.0)
    with pytest.raises(ParameterError, match="one column"):
        coordinate_descent(np.eye(2), np.ones((2, 2)), 1.0, 1.0, positive=True)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.5])
@pytest.mark.parametrize("goal", [1e-2, 1e-8])
def test_first_epochs_stop_where_the_gap_says(positive, l2, goal):
    """The gap inside the kernel is that of `penalised_gap` without a ridge: one epoch fewer does not reach the goal."""
    rng = np.random.default_rng(11)
    A = rng.standard_normal((30, 8))
    b = A @ rng.uniform(0.5, 2.0, 8) + rng.standard_normal(30)
    G, c, square = A.T @ A, (A.T @ b)[:, None], float(b @ b)
    penalty = Penalty(np.full(8, 0.05 * np.abs(c).max()), np.full(8, l2), positive)

    def reached(max_epochs):
        model = GramQuadratic(G, c, square)
        n = model.first_epochs(penalty, goal, 1e-8 * square / 2, max_epochs)
        gap = penalised_gap(model.W, model.gradient(), model.residual_square(), penalty)
        return n, gap.relative(square / 2)

    n, value = reached(50)
    assert 0 < n < 50 and value <= goal
    assert l2 > 0 or reached(n - 1)[1] > goal


@pytest.mark.parametrize("positive", [False, True])
def test_an_epoch_is_one_cyclic_pass_of_soft_thresholding(positive):
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(30, 8)), rng.normal(size=30)
    A[:, 5] = 0.0  # a column that never enters
    G, c, w = A.T @ A, A.T @ b, np.abs(rng.normal(size=8))
    w[5] = 0.0
    penalty = Penalty(np.full(8, 2.0), np.r_[np.zeros(4), np.ones(4)], positive)
    penalty.l2[5] = 0.0
    model = GramQuadratic(G, c[:, None], float(b @ b), w[:, None])
    for _ in range(3):
        w = lasso_epoch(G, c, penalty.l1, penalty.l2, w, positive)
        model.epochs(penalty, 1, 0.0)
        np.testing.assert_allclose(model.W[:, 0], w, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(model.gradient()[:, 0], c - G @ w, atol=1e-10)
