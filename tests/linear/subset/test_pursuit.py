"""Orthogonal matching pursuit: scikit-learn's steps, its choice of a size, and every step checked again."""

import numpy as np
import pytest
import sklearn.linear_model as peers

import learnable as ln
from learnable import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV
from learnable.core.errors import ParameterError


@pytest.fixture(scope="module")
def signal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 25)) * rng.uniform(0.5, 2.0, 25)
    return X, X[:, [3, 7, 20]] @ [1.0, -2.0, 0.7] + 0.3 * rng.normal(size=40)


@pytest.mark.parametrize("setting", [{}, {"n_nonzero_coefs": 6}, {"tol": 10.0}, {"fit_intercept": False}])
def test_coefficients_are_scikit_learns(signal, setting):
    ours = OrthogonalMatchingPursuit(**setting).fit(*signal)
    theirs = peers.OrthogonalMatchingPursuit(**setting).fit(*signal)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)
    assert ours.n_nonzero_coefs_ == theirs.n_nonzero_coefs_
    assert ln.verify(ours, *signal)


def test_the_size_is_scikit_learns(signal):
    ours = OrthogonalMatchingPursuitCV(cv=4).fit(*signal)
    theirs = peers.OrthogonalMatchingPursuitCV(cv=4).fit(*signal)
    assert ours.n_nonzero_coefs_ == theirs.n_nonzero_coefs_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    assert ln.verify(ours, *signal)


def test_another_order_and_other_errors_are_refused(signal):
    model = OrthogonalMatchingPursuitCV(cv=4).fit(*signal)
    kept = model.order_
    model.order_ = kept[::-1].copy()
    assert not ln.verify(model, *signal)
    model.order_ = kept
    model.mse_path_ = model.mse_path_ * 1.01
    assert not ln.verify(model, *signal)


def test_dependent_columns_are_not_chosen_twice():
    X = np.random.default_rng(1).normal(size=(20, 3))
    X = np.column_stack([X, X[:, 0], np.ones(20)])
    model = OrthogonalMatchingPursuit(n_nonzero_coefs=5).fit(X, X[:, 0] + 0.1 * X[:, 1] + np.cos(np.arange(20)))
    assert len(model.order_) == 3
    with pytest.raises(ParameterError, match="n_nonzero_coefs"):
        OrthogonalMatchingPursuit(n_nonzero_coefs=6).fit(X, X[:, 0])


@pytest.mark.parametrize("setting", [{"n_nonzero_coefs": 3}, {"tol": 20.0}])
def test_several_targets_are_scikit_learns_and_checked_one_by_one(signal, setting, tmp_path):
    X, y = signal
    Y = np.column_stack([y, X[:, 4] - X[:, 5] + 0.1 * y])
    ours = OrthogonalMatchingPursuit(**setting).fit(X, Y)
    theirs = peers.OrthogonalMatchingPursuit(**setting).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_)
    assert ours.n_iter_ == theirs.n_iter_
    ln.save(ours, tmp_path / "model.safetensors")
    loaded = ln.load(tmp_path / "model.safetensors")
    assert ln.verify(loaded, X, Y)
    assert not ln.verify(loaded, X, Y[:, ::-1])
    loaded.order_[1] = loaded.order_[1][::-1].copy()
    assert not ln.verify(loaded, X, Y)
