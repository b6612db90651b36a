"""Least angle regression: scikit-learn's path, the lasso at every corner, what verify refuses."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.linear_model import lars_path as sklearn_path
from tests.linear.subset.tables import noisy

import learnable as ln
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
