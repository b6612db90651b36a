"""Recursive feature elimination: scikit-learn's rankings and scores for any estimator, every step checked again."""

import numpy as np
import pytest
from sklearn import feature_selection as peers
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression as TheirLinearRegression

import learnable as ln
from learnable import RFE, RFECV, LogisticRegression, Ridge
from learnable.core.errors import DataError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 7))
    return X, X[:, 1] - 2 * X[:, 4] + 0.5 * X[:, 6] + rng.normal(size=60)


@pytest.mark.parametrize(
    "setting", [{}, {"step": 2}, {"step": 0.3, "n_features_to_select": 2}, {"n_features_to_select": 0.4}]
)
def test_rankings_are_scikit_learns(rows, setting):
    ours = RFE(Ridge(), **setting).fit(*rows)
    theirs = peers.RFE(TheirLinearRegression(), **setting).fit(*rows)
    assert ours.ranking_.tolist() == theirs.ranking_.tolist()
    assert ours.n_features_ == theirs.n_features_
    assert ln.verify(ours, *rows)
    assert ln.verify(ours, *rows).inner


def test_the_number_of_columns_is_scikit_learns(rows):
    X, y = rows
    labels = y > 0
    model = LogisticRegression()
    one, two = (RFECV(model, cv=4, scoring="neg_log_loss", n_jobs=n).fit(X, labels) for n in (None, 2))
    theirs = peers.RFECV(model, cv=4, scoring="neg_log_loss").fit(X, labels)
    assert one.ranking_.tolist() == theirs.ranking_.tolist()
    assert one.cv_results_.keys() == theirs.cv_results_.keys()
    for name, expected in theirs.cv_results_.items():
        np.testing.assert_allclose(one.cv_results_[name], expected, rtol=1e-10)
        assert np.array_equal(one.cv_results_[name], two.cv_results_[name])
    assert ln.verify(one, X, labels)
    assert one.predict(X).tolist() == theirs.predict(X).tolist()


def test_another_ranking_is_refused(rows):
    model = RFE(Ridge(), n_features_to_select=2).fit(*rows)
    last, first = np.argmax(model.ranking_), np.flatnonzero(model.support_)[0]
    model.ranking_[[last, first]] = model.ranking_[[first, last]]
    model.support_ = model.ranking_ == 1
    assert not ln.verify(model, *rows)
    model = RFECV(Ridge(), cv=3).fit(*rows)
    model.cv_results_["split1_test_score"][0] += 0.01
    assert not ln.verify(model, *rows)


def test_a_forest_ranks_by_its_own_importances(rows):
    X, y = rows
    model = RFE(RandomForestClassifier(n_estimators=20, random_state=0), n_features_to_select=1).fit(X, y > 0)
    assert model.get_support(indices=True).tolist() == [4]


def test_one_column_is_too_few():
    with pytest.raises(DataError, match="minimum of 2"):
        RFE(Ridge()).fit(np.zeros((5, 1)), np.arange(5.0))
