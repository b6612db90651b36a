"""The squared hinge with an L1 penalty: optimality conditions, correlated and many columns, LIBLINEAR."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.svm_tables import several_classes, two_classes, weights_of

from learnable import LinearSVC, verify


def objective(w, X, y, C, bias=1.0):
    z = X @ w[1:] + bias * w[0]
    return np.abs(w).sum() + C * np.square(np.maximum(1 - y * z, 0)).sum()


def conditions(model, X, y, C):
    """Return the largest violation of |slope| ≤ 1, and of slope = −sign(w) on the support."""
    w = weights_of(model)
    rows = np.column_stack([np.full(len(y), float(model.fit_intercept)), X])
    slope = -2 * C * rows.T @ (y * np.maximum(1 - y * (rows @ w), 0))
    return max(np.abs(slope[w == 0]).max(initial=1.0) - 1, np.abs(slope + np.sign(w))[w != 0].max(initial=0.0))


def polynomial_table(n=400):
    """Return correlated columns: squares and products, standardised."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 6)) @ rng.normal(size=(6, 6)) + 3.0
    pairs = np.column_stack([Z] + [Z[:, [i]] * Z[:, i:] for i in range(6)])
    X = (pairs - pairs.mean(axis=0)) / pairs.std(axis=0)
    return X, np.where(X[:, 0] - X[:, 7] + rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_correlated_columns_reach_the_conditions_of_the_optimum(C, intercept):
    X, y = polynomial_table()
    model = LinearSVC(penalty="l1", C=C, fit_intercept=intercept).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
    assert conditions(model, X, y, C) < 1e-5 and model.n_iter_ <= 50


@pytest.mark.parametrize("sparse", [False, True])
def test_many_columns_are_solved_by_working_sets(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 900)) * (rng.random((150, 900)) < 0.2)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=150) > 0, 1, -1)
    table = sp.csr_array(X) if sparse else X
    model = LinearSVC(penalty="l1", C=0.3).fit(table, y)
    theirs = sklearn.svm.LinearSVC(penalty="l1", dual=False, C=0.3, tol=1e-8, max_iter=100_000).fit(X, y)
    values = [objective(w, X, y, 0.3) for w in (weights_of(model), np.r_[theirs.intercept_, theirs.coef_[0]])]
    assert values[0] <= values[1] * (1 + 1e-6)
    assert model.certificate_.holds and verify(model, table, y)
    assert 0 < np.count_nonzero(model.coef_) < 150


def test_column_descent_goes_on_where_no_matrix_fits(monkeypatch):
    X, y = polynomial_table(100)
    best = LinearSVC(penalty="l1", C=0.05).fit(X, y)
    monkeypatch.setattr("learnable.linear.margin.solvers._WHOLE", 0)
    monkeypatch.setattr("learnable.linear.margin.solvers._MOST_GRAM", 0)
    model = LinearSVC(penalty="l1", C=0.05, tol=1e-4).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
    values = [objective(weights_of(m), X, y, 0.05) for m in (model, best)]
    assert values[1] * (1 - 1e-6) <= values[0] <= values[1] * (1 + 1e-4)


def test_many_rows_start_from_some_of_them():
    X, y = two_classes(20_000, 4)
    model = LinearSVC(penalty="l1", C=1e-3).fit(X, y)
    assert model.certificate_.holds and verify(model, X, y)
    assert conditions(model, X, y, 1e-3) < 1e-5


def test_every_class_and_weights():
    X, y = several_classes(90, 4)
    s = np.random.default_rng(0).integers(0, 3, 90).astype(float)
    weighted = LinearSVC(penalty="l1", tol=1e-10).fit(X, y, s)
    repeated = LinearSVC(penalty="l1", tol=1e-10).fit(X.repeat(s.astype(int), 0), y.repeat(s.astype(int)))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    assert verify(weighted, X, y, s)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(-8, 8),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
    duplicated=st.booleans(),
    sparse=st.booleans(),
)
def test_columns_of_any_size_duplicated_and_constant(seed, scale, C, duplicated, sparse):
    X, y = two_classes(40, 4, seed=seed)
    X[:, 1] *= 10.0**scale
    X[:, 2] = 1.0
    if duplicated:
        X = np.column_stack([X, X[:, 0]])
    table = sp.csr_array(X) if sparse else X
    model = LinearSVC(penalty="l1", C=C).fit(table, y)
    assert model.certificate_.holds and verify(model, table, y)
