"""Several targets that share their columns, with the penalty chosen on folds: scikit-learn's errors and choice."""

import numpy as np
import pytest
import sklearn.linear_model as peers

import learnable as ln
from learnable import MultiTaskElasticNetCV, MultiTaskLassoCV
from learnable.core.errors import DataError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5))
    return X, X[:, :2] @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(50, 3))


def test_errors_and_choice_are_scikit_learns(rows):
    ours = MultiTaskLassoCV(alphas=8, cv=3).fit(*rows)
    theirs = peers.MultiTaskLassoCV(alphas=8, cv=3, tol=1e-10, max_iter=10_000).fit(*rows)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ln.verify(ours, *rows)


def test_the_share_is_chosen_too(rows):
    ours = MultiTaskElasticNetCV(l1_ratio=[0.2, 0.9], alphas=6, cv=3).fit(*rows)
    theirs = peers.MultiTaskElasticNetCV(l1_ratio=[0.2, 0.9], alphas=6, cv=3, tol=1e-10, max_iter=10_000).fit(*rows)
    assert (ours.l1_ratio_, ours.alpha_) == (theirs.l1_ratio_, pytest.approx(theirs.alpha_))
    assert ours.mse_path_.shape == theirs.mse_path_.shape
    assert ln.verify(ours, *rows)
    ours.mse_path_ = ours.mse_path_ * 1.01
    assert not ln.verify(ours, *rows)


def test_one_target_has_its_own_class(rows):
    with pytest.raises(DataError, match="LassoCV"):
        MultiTaskLassoCV().fit(rows[0], rows[1][:, 0])
