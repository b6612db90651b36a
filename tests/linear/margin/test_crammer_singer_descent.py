"""Descent on the dual of Crammer and Singer's problem: rows and faces, against the interior-point method."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.margin.test_problem_joint import task_of
from tests.linear.svm_tables import several_classes

from learnable.linear.margin.crammer_singer import face_step, joint_descent, project_rows_onto_simplex, solve_simplex
from learnable.linear.margin.interior_point import joint_interior_point


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 6), cost=st.sampled_from([1e-6, 1.0, 1e6]))
def test_one_row_is_solved_exactly(seed, n_classes, cost):
    rng = np.random.default_rng(seed)
    slope, size, y = rng.normal(size=n_classes), rng.uniform(0.1, 3), int(rng.integers(n_classes))
    alpha = np.empty(n_classes)
    solve_simplex(slope, size, y, cost, alpha, np.empty(n_classes))
    upper = np.where(np.arange(n_classes) == y, cost, 0.0)
    assert abs(alpha.sum()) <= 1e-12 * max(1, cost) and (alpha <= upper + 1e-15).all()
    gradient = size * alpha + slope  # equal to the multiplier where free, at most that where at the bound
    free = alpha < upper
    level = gradient[free].mean() if free.any() else gradient.max()
    np.testing.assert_allclose(gradient[free], level, atol=1e-9 * max(1, cost))
    assert (gradient[~free] <= level + 1e-9 * max(1, cost)).all()


def test_a_projection_leaves_what_is_feasible_and_obeys_the_constraints():
    X, y = several_classes(30, 2)
    task = task_of(X, y, 0.7)
    inside = task.feasible(np.random.default_rng(0).normal(size=(30, 3)))
    kept = inside.copy()
    project_rows_onto_simplex(kept, task.y, task.cost)
    np.testing.assert_allclose(kept, inside, atol=1e-14)
    other = np.random.default_rng(1).normal(size=(30, 3))
    project_rows_onto_simplex(other, task.y, task.cost)
    assert (other <= task.upper + 1e-15).all()
    np.testing.assert_allclose(other.sum(axis=1), 0, atol=1e-14)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimum_is_the_interior_point_methods(sparse):
    X, y = several_classes(120, 4, 4)
    task = task_of(sp.csr_array(X) if sparse else X, y, 0.2)
    ours = joint_descent(task, np.random.default_rng(0))
    best = joint_interior_point(task, tol=1e-9)
    assert ours.gap <= 1e-6
    assert best.dual * (1 - 1e-9) <= ours.primal <= best.primal * (1 + 1e-6)


@given(seed=st.integers(0, 1000), scale=st.floats(-4, 4), C=st.sampled_from([1e-3, 1.0, 1e3]), sparse=st.booleans())
def test_a_step_on_the_faces_raises_the_dual_and_keeps_the_bounds(seed, scale, C, sparse):
    X, y = several_classes(30, 3)
    rng = np.random.default_rng(seed)
    X = X * 10.0**scale
    task = task_of(sp.csr_array(X) if sparse else X, y, C)
    alpha = task.feasible(C * rng.normal(size=(30, 3)))
    W = task.weights_of(alpha)
    found = face_step(task, alpha, W)
    if found is not None:
        better, U = found
        assert task.dual_value(better, U) > task.dual_value(alpha, W)
        assert (better <= task.upper + 1e-15 * C).all() and (abs(better.sum(axis=1)) <= 1e-12 * C).all()
        assert np.array_equal(U, task.weights_of(better))


def test_nothing_is_free_at_a_corner():
    X, y = several_classes(20, 2)
    task = task_of(X, y)
    assert face_step(task, np.zeros((20, 3)), np.zeros((3, 3))) is None


def test_more_columns_than_rows():
    X, y = several_classes(40, 300)
    found = joint_descent(task_of(X, y), np.random.default_rng(0))
    assert found.gap <= 1e-6
