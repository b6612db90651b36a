"""Choices along the path of least angle regression: scikit-learn's, on data of the book, and proven."""

import numpy as np
import pytest
import sklearn.linear_model as peers
from sklearn.datasets import load_diabetes

import learnable as ln
from learnable import Lars, LarsCV, LassoLars, LassoLarsCV, LassoLarsIC, LinearRegression, lars_path
from learnable.core.errors import ParameterError


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def test_cross_validation_is_scikit_learns(diabetes):
    ours = LassoLarsCV().fit(*diabetes)
    theirs = peers.LassoLarsCV().fit(*diabetes)
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-9)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    assert ours.active_.tolist() == [int(j) for j in theirs.active_]
    assert ln.verify(ours, *diabetes)


@pytest.mark.parametrize("criterion", ["aic", "bic"])
def test_criteria_are_scikit_learns(diabetes, criterion):
    ours = LassoLarsIC(criterion).fit(*diabetes)
    theirs = peers.LassoLarsIC(criterion=criterion).fit(*diabetes)
    np.testing.assert_allclose(ours.criterion_, theirs.criterion_, rtol=1e-12)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_)
    assert ln.verify(ours, *diabetes)


def test_least_angle_regression_is_scikit_learns_and_ends_at_least_squares(diabetes):
    X, y = diabetes
    np.testing.assert_allclose(Lars(n_nonzero_coefs=4).fit(X, y).coef_, peers.Lars(n_nonzero_coefs=4).fit(X, y).coef_)
    whole = Lars().fit(X, y)
    np.testing.assert_allclose(whole.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-8)
    assert whole.certificate_.holds
    assert ln.verify(whole, X, y)


def test_the_error_at_the_end_of_every_fold_is_that_of_least_squares(diabetes):
    X, y = diabetes
    model = LarsCV(cv=3).fit(X, y)
    from sklearn.model_selection import KFold

    for number, (train, test) in enumerate(KFold(3).split(X)):
        fit = LinearRegression().fit(X[train], y[train])
        assert model.mse_path_[0, number] == pytest.approx(np.mean((y[test] - fit.predict(X[test])) ** 2), rel=1e-9)
    assert ln.verify(model, X, y)


def test_a_positive_path_is_optimal_at_every_corner(diabetes):
    X, y = diabetes
    model = LassoLars(alpha=0.2, positive=True).fit(X, y)
    lasso = peers.Lasso(alpha=0.2, positive=True, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=1e-4)
    assert model.certificate_.holds
    assert ln.verify(model, X, y)
    assert ln.verify(LassoLarsCV(positive=True, cv=3).fit(X, y), X, y)
    alphas, _, coefs = lars_path(X, y - y.mean(), method="lasso", positive=True)
    assert (coefs >= 0).all()
    assert (np.diff(alphas) <= 0).all()


def test_more_columns_than_rows_need_the_variance_of_the_noise():
    X = np.random.default_rng(0).normal(size=(8, 10))
    with pytest.raises(ParameterError, match="noise variance"):
        LassoLarsIC().fit(X, X[:, 0])
    assert LassoLarsIC(noise_variance=0.1).fit(X, X[:, 0]).certificate_.holds


@pytest.mark.parametrize("attribute", ["mse_path_", "alpha_", "cv_alphas_"])
def test_forged_choices_are_refused(diabetes, attribute):
    model = LassoLarsCV(cv=3).fit(*diabetes)
    setattr(model, attribute, getattr(model, attribute) * 1.01)
    assert not ln.verify(model, *diabetes)
