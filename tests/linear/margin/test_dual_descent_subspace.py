"""Conjugate gradients among the free dual variables: the dual never falls, and the face's optimum is found at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.linear.margin.test_problem import task_of
from tests.linear.svm_tables import numbers, two_classes

from learnable.linear.margin.dual_descent import dual_descent, free_step


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_optimum_of_a_face_is_that_of_its_linear_system(sparse, bias):
    """With the squared loss and every variable free, α solves (YXXᵀY + I/2c)α = 1."""
    X, y = two_classes(12, 5)
    cost = np.random.default_rng(1).uniform(0.005, 0.02, 12)
    task = task_of(sp.csr_array(X) if sparse else X, y, True, C=1.0, weight=cost, bias=bias)
    rows = task.sign[0][:, None] * np.column_stack([np.full(12, bias), X])
    exact = np.linalg.solve(rows @ rows.T + np.diag(0.5 / cost), np.ones(12))
    assert (exact > 0).all()  # so small a cost leaves every row inside the margin
    alpha = np.full((1, 12), 1e-3)
    for _ in range(12):
        found = free_step(task, alpha, task.weights_of(alpha))
        if found is None:
            break
        alpha, w = found
    np.testing.assert_allclose(alpha[0], exact, rtol=1e-6)
    np.testing.assert_allclose(w, rows.T @ alpha[0], rtol=1e-12)


@given(
    seed=st.integers(0, 1000),
    squared=st.booleans(),
    regression=st.booleans(),
    sparse=st.booleans(),
    scale=st.floats(-8, 8),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_the_dual_never_falls_and_the_point_stays_in_its_box(seed, squared, regression, sparse, scale, C):
    X, y = (numbers if regression else two_classes)(30, 3)
    rng = np.random.default_rng(seed)
    X = X * 10.0**scale
    task = task_of(sp.csr_array(X) if sparse else X, y, squared, C=C, regression=regression)
    alpha = np.minimum(rng.exponential(size=task.sign.shape) * (rng.random(task.sign.shape) < 0.7), task.upper)
    w = task.weights_of(alpha)
    found = free_step(task, alpha, w)
    if found is not None:
        better, u = found
        assert ((better >= 0) & (better <= task.upper)).all()
        at_bound = (alpha == 0) | (alpha == task.upper)
        assert np.array_equal(better[at_bound], alpha[at_bound])
        assert task.dual_value(better, u) > task.dual_value(alpha, w)
        assert np.array_equal(u, task.weights_of(better))


def test_nothing_is_free_at_a_corner_and_nothing_rises_at_the_optimum():
    X, y = two_classes(40, 3)
    task = task_of(X, y, True)
    assert free_step(task, np.zeros((1, 40)), np.zeros(4)) is None
    best = dual_descent(task, np.random.default_rng(0), tol=1e-14, max_iter=5000)
    step = free_step(task, best.alpha, task.weights_of(best.alpha))
    assert step is None or task.dual_value(*step) <= best.dual * (1 + 1e-12)


def test_it_saves_passes(monkeypatch):
    """Many columns, many of them nearly parallel: coordinate descent alone needs several times as many passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40)) @ np.diag(0.9 ** np.arange(40)) @ rng.normal(size=(40, 40))
    y = (X @ rng.normal(size=40) + rng.normal(size=300) > 0).astype(int)
    task = task_of(X, y, True, C=1.0)
    with_rounds = dual_descent(task, np.random.default_rng(0), tol=1e-8, max_iter=3000).n_iter
    monkeypatch.setattr("learnable.linear.margin.dual_descent.free_step", lambda *arguments: None)
    without = dual_descent(task, np.random.default_rng(0), tol=1e-8, max_iter=3000).n_iter
    assert 2 * with_rounds < without
