"""Crammer and Singer's joint support vector machine: a quadratic program as the oracle, and LIBLINEAR."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.svm_tables import several_classes, two_classes
from tests.oracles.svm import crammer_singer_objective, crammer_singer_program

from learnable import LinearSVC, verify
from learnable.linear.crammer_singer import solve_simplex


def joint(**parameters):
    return LinearSVC(multi_class="crammer_singer", max_iter=20_000, **parameters)


def stacked(model):
    first = np.broadcast_to(model.intercept_, (len(model.coef_),))
    return np.column_stack([first, model.coef_])


@pytest.mark.parametrize("C", [0.1, 2.0])
def test_the_quadratic_program(C):
    X, y = several_classes(15, 2)
    model = joint(C=C).fit(X, y)
    cost = np.full(15, C)
    W = crammer_singer_program(X, y, cost, 1.0, 3)
    ours, oracle = (crammer_singer_objective(V, X, y, cost, 1.0) for V in (stacked(model), W))
    assert ours <= oracle * (1 + 2e-6)
    np.testing.assert_allclose(stacked(model), W, atol=0.02 * np.abs(W).max())


@pytest.mark.parametrize("sparse", [False, True])
def test_the_objective_is_not_above_liblinears(sparse):
    X, y = several_classes(120, 4, 4)
    model = joint(C=0.5).fit(sp.csr_array(X) if sparse else X, y)
    theirs = sklearn.svm.LinearSVC(multi_class="crammer_singer", C=0.5, tol=1e-8, max_iter=1_000_000).fit(X, y)
    values = [crammer_singer_objective(stacked(m), X, y, np.full(120, 0.5), 1.0) for m in (model, theirs)]
    assert values[0] <= values[1] * (1 + 1e-6)
    assert model.certificate_.holds and verify(model, X, y)
    assert np.mean(model.predict(X) == theirs.predict(X)) > 0.97


def test_the_dual_point_is_feasible_and_gives_the_weights():
    X, y = several_classes(80, 3)
    s = np.random.default_rng(0).uniform(0.5, 2, 80)
    model = joint(C=0.3).fit(X, y, s)
    alpha = model.dual_coef_.T
    np.testing.assert_allclose(alpha.sum(axis=1), 0, atol=1e-14)
    assert (alpha <= np.where(np.arange(3) == y[:, None], 0.3 * s[:, None], 0.0) + 1e-15).all()
    np.testing.assert_allclose(model.coef_, alpha.T @ X, atol=1e-2 * np.abs(model.coef_).max())
    assert verify(model, X, y, s)


def test_two_classes_are_one_difference():
    X, y = two_classes(80, 3)
    model = joint(C=0.4).fit(X, y)
    assert model.coef_.shape == (1, 3) and model.intercept_.shape == (1,)
    # With w₁ = −w₀ = ½v the joint problem is the hinge of margin yv·x with half the cost of ‖v‖².
    binary = LinearSVC(loss="hinge", C=0.8).fit(X, y)
    np.testing.assert_allclose(model.coef_, binary.coef_, atol=5e-3)
    assert verify(model, X, y)


def test_rows_of_zeros_without_intercept():
    X, y = several_classes(30, 2)
    X[::3] = 0.0
    model = joint(fit_intercept=False).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
    assert model.intercept_ == 0.0


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
