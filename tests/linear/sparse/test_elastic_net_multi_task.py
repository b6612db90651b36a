"""The multi-task lasso: rows vanish together; scikit-learn; the certificate against the KKT conditions."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linear.sparse_tables import sparse_tables
from tests.oracles.sparse import centred

from learnable import Lasso, MultiTaskElasticNet, MultiTaskLasso, Ridge, verify
from learnable.core.errors import DataError

RNG = np.random.default_rng(6)
X = RNG.standard_normal((60, 90)) + 1.0
Y = X[:, :3] @ RNG.standard_normal((3, 4)) + RNG.standard_normal((60, 4))


@pytest.mark.parametrize("table", [X, sp.csr_array(X)])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_scikit_learn_agrees_and_the_certificate_is_verified(table, l1_ratio):
    ours = MultiTaskElasticNet(alpha=0.3, l1_ratio=l1_ratio, tol=1e-11, max_iter=20_000).fit(table, Y)
    theirs = sk.MultiTaskElasticNet(alpha=0.3, l1_ratio=l1_ratio, tol=1e-12, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    assert verify(ours, table, Y)
    ours.coef_ = ours.coef_ * 1.001
    assert not verify(ours, table, Y)


def test_weights_are_repetitions():
    weight = RNG.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    one, two = (
        MultiTaskLasso(alpha=0.3, tol=1e-12).fit(X, Y, weight),
        MultiTaskLasso(alpha=0.3, tol=1e-12).fit(X[rows], Y[rows]),
    )
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
    assert verify(one, X, Y, weight)


def test_one_task_is_the_lasso():
    one = MultiTaskLasso(alpha=0.2, tol=1e-12, fit_intercept=False).fit(X, Y[:, :1])
    np.testing.assert_allclose(
        one.coef_[0], Lasso(alpha=0.2, tol=1e-12, fit_intercept=False).fit(X, Y[:, 0]).coef_, atol=1e-6
    )


def largest_alpha(X, Y, weight, intercept=True):
    A, B = centred(X, Y, weight, intercept)
    return np.linalg.norm(A.T @ B, axis=1).max() / (len(Y) if weight is None else weight.sum())


@given(sparse_tables(n_targets=3), st.floats(0.01, 1.1), st.sampled_from([1.0, 0.5]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_nothing_breaks_and_every_certificate_is_verified(table, share, l1_ratio, intercept):
    T, targets, weight, dense = table
    alpha = share * largest_alpha(dense, targets, weight, intercept) / l1_ratio
    model = MultiTaskElasticNet(alpha=alpha, l1_ratio=l1_ratio, fit_intercept=intercept, max_iter=100_000)
    model.fit(T, targets, weight)
    assert model.certificate_.holds
    assert verify(model, T, targets, weight), str(verify(model, T, targets, weight))


@given(sparse_tables(n_targets=2))
@settings(max_examples=30, deadline=None)
def test_the_largest_penalty_is_where_rows_begin(table):
    T, targets, weight, dense = table
    top = largest_alpha(dense, targets, weight)
    assert not MultiTaskLasso(alpha=top * (1 + 1e-6)).fit(T, targets, weight).coef_.any()
    below = MultiTaskLasso(alpha=top * (1 - 1e-3), tol=1e-14, max_iter=100_000).fit(T, targets, weight).coef_
    assert below.any() and (below.any(axis=0) == below.all(axis=0)).all()


def test_a_flat_target_is_sent_to_the_lasso():
    with pytest.raises(DataError, match=r"MultiTaskLasso: y must have two dimensions.*use Lasso"):
        MultiTaskLasso().fit(X, Y[:, 0])


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_a_norm_of_rows_it_is_ridge_regression(fit_intercept):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)) + 1.0, rng.normal(size=(30, 3))
    model = MultiTaskElasticNet(alpha=0.5, l1_ratio=0, fit_intercept=fit_intercept).fit(X, Y)
    ridge = Ridge(alpha=0.5 * 30, fit_intercept=fit_intercept).fit(X, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-12)
    assert model.certificate_.kind == "closed-form" and verify(model, X, Y)
