"""Crammer and Singer's joint support vector machine: a quadratic program as the oracle, and LIBLINEAR."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.datasets
import sklearn.svm
from tests.linear.svm_tables import several_classes, two_classes
from tests.oracles.coordinate_passes import onto_simplex
from tests.oracles.svm import crammer_singer_objective, crammer_singer_program

from learnable import LinearSVC, verify
from learnable.linear.margin.crammer_singer import solve_simplex


def joint(**parameters):
    return LinearSVC(multi_class="crammer_singer", **parameters)


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


@pytest.mark.parametrize("table", [sklearn.datasets.load_iris, sklearn.datasets.load_wine])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_raw_tables_reach_the_tolerance(table, C):
    X, y = table(return_X_y=True)
    model = joint(C=C).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)


@pytest.mark.parametrize("solver", ["auto", "interior-point", "dual"])
@pytest.mark.sampled(6)
def test_every_solver_finds_the_optimum(solver):
    X, y = several_classes(120, 4, 4)
    model = joint(C=0.2, solver=solver).fit(X, y)
    best = joint(C=0.2, tol=1e-9).fit(X, y)
    values = [crammer_singer_objective(stacked(m), X, y, np.full(120, 0.2), 1.0) for m in (model, best)]
    assert model.certificate_.holds
    assert values[0] == pytest.approx(values[1], rel=2e-6)


def test_more_columns_than_rows_are_solved_in_the_space_of_the_rows():
    X, y = several_classes(60, 700)
    model, descended = joint().fit(X, y), joint(solver="dual").fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
    np.testing.assert_allclose(model.coef_, descended.coef_, atol=1e-2 * np.abs(model.coef_).max())


def test_columns_of_many_sizes():
    X, y = several_classes(80, 4)
    X = X * [1e-8, 1.0, 1e4, 1e8]
    model = joint().fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)


def test_the_optimum_of_one_row_is_a_projection_onto_its_simplex():
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 7):
        for _ in range(20):
            slope, size, cost = 3.0 * rng.normal(size=n_classes), rng.uniform(0.1, 5.0), rng.uniform(0.1, 5.0)
            y, found = int(rng.integers(n_classes)), np.empty(n_classes)
            solve_simplex(slope, size, y, cost, found, np.empty(n_classes))
            np.testing.assert_allclose(found, onto_simplex(slope, size, y, cost), atol=1e-12)
