"""Least angle regression: scikit-learn's path, the lasso at every corner, what verify refuses."""

import copy

import numpy as np
import pytest
import sklearn.linear_model as peers
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.linear_model import lars_path as sklearn_path
from tests.linear.subset.tables import noisy

import learnable as ln
from learnable.core.errors import ModelFileError
from learnable.linear import Lasso, LassoLars, LinearRegression, lars_path


@pytest.mark.parametrize("method", ["lar", "lasso"])
def test_the_diabetes_path_is_scikit_learns(method):
    """The lasso's path has a column that leaves and comes back (B. Efron et al., 2004)."""
    X, y = load_diabetes(return_X_y=True)
    y = y - y.mean()
    alphas, active, coefs = lars_path(X, y, method=method)
    expected = sklearn_path(X, y, method=method)
    np.testing.assert_allclose(alphas, expected[0], atol=1e-10)
    np.testing.assert_allclose(coefs, expected[2], atol=1e-7)
    assert active == list(expected[1])
    assert len(alphas) == {"lar": 11, "lasso": 13}[method]


@settings(max_examples=20, deadline=None)
@given(
    p=st.integers(1, 8),
    n=st.integers(12, 40),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.0, 1e-300, 1e-6, 0.01, 0.1, 0.3, 0.9]),
)
def test_every_corner_solves_the_lasso(p, n, seed, share):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    top = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / n
    model = LassoLars(alpha=share * top).fit(X, y)
    assert model.certificate_.holds
    assert ln.verify(model, X, y)
    for alpha, coef in zip(model.alphas_[1:], model.coef_path_.T[1:], strict=True):
        if alpha > 1e-6 * top:
            other = Lasso(alpha=alpha, tol=1e-12, max_iter=10**5).fit(X, y)
            np.testing.assert_allclose(coef, other.coef_, atol=1e-5 * np.abs(other.coef_).max(initial=1.0))


@pytest.mark.parametrize("seed", range(6))
def test_of_several_columns_that_reach_zero_the_first_leaves(seed):
    """With more columns than rows many coefficients shrink at once; scikit-learn's path has every corner."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(48, 94))
    y = X[:, :4] @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=48)
    X -= X.mean(axis=0)
    y -= y.mean()
    alphas, _, coefs = lars_path(X, y, method="lasso", alpha_min=1e-3)
    expected = sklearn_path(X, y, method="lasso", alpha_min=1e-3)
    np.testing.assert_allclose(alphas, expected[0], atol=1e-9)
    np.testing.assert_allclose(coefs, expected[2], atol=1e-6)


def test_between_corners_the_path_is_linear():
    X, y = noisy(6, seed=1)
    whole = LassoLars(alpha=0.0).fit(X, y)
    middle = 0.5 * (whole.alphas_[2] + whole.alphas_[3])
    half = LassoLars(alpha=middle).fit(X, y)
    np.testing.assert_allclose(half.coef_, 0.5 * (whole.coef_path_[:, 2] + whole.coef_path_[:, 3]), atol=1e-12)
    np.testing.assert_allclose(whole.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-9)


def test_weights_are_repetitions():
    X, y = noisy(5, n=25, seed=2)
    times = np.random.default_rng(0).integers(1, 4, size=25)
    weighted = LassoLars(alpha=0.1).fit(X, y, times.astype(float))
    repeated = LassoLars(alpha=0.1).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_path_, repeated.coef_path_, atol=1e-10)


def test_dependent_and_constant_columns():
    X, y = noisy(4, seed=3)
    wide = np.column_stack([X, X[:, 0], np.ones(len(y))])
    model = LassoLars(alpha=0.05).fit(wide, y)
    assert model.certificate_.holds
    assert ln.verify(model, wide, y)
    assert model.coef_[4] == model.coef_[5] == 0.0


def test_a_moved_corner_is_refused():
    X, y = noisy(6, seed=4)
    model = LassoLars(alpha=0.05).fit(X, y)
    assert ln.verify(model, X, y)
    forged = copy.deepcopy(model)
    forged.coef_path_[np.flatnonzero(forged.coef_path_[:, 2])[0], 2] *= 1.001
    assert not ln.verify(forged, X, y)
    forged = copy.deepcopy(model)
    forged.alphas_[1] *= 0.999
    assert not ln.verify(forged, X, y)


def test_too_few_corners_are_told():
    X, y = noisy(6, seed=5)
    with pytest.warns(UserWarning, match="raise max_iter"):
        model = LassoLars(alpha=1e-3, max_iter=2).fit(X, y)
    assert len(model.alphas_) == 3
    assert model.certificate_.value > model.certificate_.tolerance


@pytest.mark.parametrize("name", ["Lars", "LassoLars"])
@pytest.mark.parametrize("setting", [{}, {"fit_intercept": False}])
def test_several_targets_have_a_path_each_as_in_scikit_learn(name, setting, tmp_path):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 6))
    Y = np.column_stack([X[:, 0] - 2 * X[:, 3], X[:, 1] + X[:, 2]]) + rng.normal(size=(60, 2))
    settings_ = setting if name == "Lars" else {"alpha": 0.05, **setting}
    ours = getattr(ln, name)(**settings_).fit(X, Y)
    theirs = getattr(peers, name)(**settings_).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-10)
    assert ours.n_iter_ == theirs.n_iter_
    for own, other in zip(ours.alphas_, theirs.alphas_, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-10)
    ln.save(ours, tmp_path / "model.safetensors")
    loaded = ln.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), ours.predict(X))
    assert ln.verify(loaded, X, Y)
    assert not ln.verify(loaded, X, Y[:, ::-1])
    loaded.coef_path_[1] = loaded.coef_path_[1] * 1.0001
    assert not ln.verify(loaded, X, Y)
    column = getattr(ln, name)(**settings_).fit(X, Y[:, :1])
    assert column.predict(X).shape == getattr(peers, name)(**settings_).fit(X, Y[:, :1]).predict(X).shape
    assert ln.verify(column, X, Y[:, :1])


def test_a_file_with_a_damaged_path_is_refused(tmp_path):
    X, y = noisy(4, seed=7)
    for member, value in (("alphas_", [[1.0]]), ("active_", np.array([9])), ("n_iter_", -1)):
        model = LassoLars(alpha=0.05).fit(X, y)
        setattr(model, member, value)
        with pytest.raises(ModelFileError, match=member):
            ln.save(model, tmp_path / "model.safetensors")
