"""Paths: the grid, the exact homotopy, and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.sparse_tables import sparse_tables
from tests.oracles.sparse import centred, lasso_homotopy

from learnable import enet_path, lasso_path
from learnable.core.errors import DataError, ParameterError

RNG = np.random.default_rng(3)
X = RNG.standard_normal((50, 30))
Y = X[:, :4] @ [1.0, -2.0, 0.5, 3.0] + 0.5 * RNG.standard_normal(50)


def test_it_follows_the_exact_piecewise_linear_path():
    knots, points = lasso_homotopy(X, Y, 0.01 * np.abs(X.T @ Y).max())
    alphas = (knots[1:-1] + knots[:-2]) / 2 / 50
    _, coefs, _ = lasso_path(X, Y, alphas=alphas, tol=1e-13)
    np.testing.assert_allclose(coefs.T, (points[1:-1] + points[:-2]) / 2, atol=1e-7)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_grid_and_coefficients_are_scikit_learns(l1_ratio):
    ours = enet_path(X, Y, l1_ratio=l1_ratio, alphas=20, tol=1e-12, return_n_iter=True)
    theirs = sk.enet_path(X, Y, l1_ratio=l1_ratio, alphas=20, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-7)
    assert ours[2].shape == (20,) and len(ours[3]) == 20
    assert not ours[1][:, 0].any() and ours[1][:, 1].any()


def test_several_targets_are_one_multi_task_problem():
    targets = np.column_stack([Y, X[:, 0] - X[:, 1]])
    ours = lasso_path(X, targets, alphas=5, tol=1e-12)
    theirs = sk.lasso_path(X, targets, alphas=5, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-6)


def test_an_intercept_and_weights_can_be_asked_for():
    weight = RNG.integers(1, 3, 50)
    repeated = np.repeat(np.arange(50), weight)
    one = lasso_path(X + 5, Y + 2, alphas=5, fit_intercept=True, sample_weight=weight)
    two = lasso_path(X[repeated] + 5, Y[repeated] + 2, alphas=5, fit_intercept=True)
    np.testing.assert_allclose(one[0], two[0], rtol=1e-9)
    np.testing.assert_allclose(one[1], two[1], atol=1e-5)


def test_a_start_and_a_constant_target():
    _, coefs, _ = lasso_path(X, Y, alphas=[0.1])
    again = lasso_path(X, Y, alphas=[0.1], coef_init=coefs[:, 0], return_n_iter=True)
    assert again[3] == [1]
    assert not lasso_path(X, np.zeros(50), alphas=4)[1].any()


@given(sparse_tables(), st.sampled_from([1.0, 0.5]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_point_of_a_path_has_a_gap_within_the_tolerance(table, l1_ratio, intercept):
    """P from its definition; the gap that is returned bounds what a smaller α's solution could still gain."""
    T, y, weight, dense = table
    alphas, coefs, gaps = enet_path(
        T, y, l1_ratio=l1_ratio, alphas=8, eps=0.01, fit_intercept=intercept, sample_weight=weight, max_iter=100_000
    )
    A, b = centred(dense, y, weight, intercept)
    total = len(y) if weight is None else weight.sum()

    def objective(w, alpha):
        return 0.5 * np.sum((b - A @ w) ** 2) / total + alpha * (
            l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * w @ w
        )

    for k, alpha in enumerate(alphas):
        values = np.array([objective(w, alpha) for w in coefs.T])
        assert 0 <= gaps[k] <= 1.001e-6 * max(values[k], 1e-8 * objective(np.zeros(len(coefs)), alpha))
        assert values[k] <= values.min() + gaps[k] + 1e-9 * values[k]  # no other point of the path is better here
    assert not coefs[:, 0].any() or np.abs(A @ coefs[:, 0]).max() <= 1e-6 * np.abs(b).max()


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match=r"enet_path: Automatic alpha grid .* l1_ratio=0"):
        enet_path(X, Y, l1_ratio=0.0)
    with pytest.raises(ParameterError, match="coef_init must have shape"):
        lasso_path(X, Y, coef_init=np.ones(3))
    with pytest.raises(ParameterError, match="single target"):
        lasso_path(X, np.column_stack([Y, Y]), positive=True)
    with pytest.raises(DataError, match="enet_path:"):
        lasso_path(X, Y[:-1])


def test_what_scikit_learn_deprecates_is_accepted_with_its_warning():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    with pytest.warns(FutureWarning, match="'n_alphas' was deprecated in 1.9"):
        assert len(lasso_path(X, y, n_alphas=7)[0]) == 7
    with pytest.warns(FutureWarning, match="'alphas=None' is deprecated"):
        assert len(enet_path(X, y, alphas=None)[0]) == 100
    with pytest.raises(ParameterError, match="Unexpected parameters in params"):
        enet_path(X, y, normalize=True)


def test_sparse_and_dense_paths_agree_to_the_last_digits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 20)), rng.normal(size=50)
    dense, sparse = enet_path(X, y)[1], enet_path(sp.csc_array(X), y)[1]
    np.testing.assert_allclose(sparse, dense, rtol=1e-7, atol=1e-12)
