"""The one loop over folds: what it fits, what it measures, and how it fails."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from learnable import LogisticRegression, Ridge
from learnable.core import DataError, ParameterError
from learnable.data.rows import read_rows
from learnable.meta.folds import cross_score, fit_folds, fit_whole, scorer_of, splits_for
from learnable.meta.splits import make_splits


def draw(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n)


def test_scores_are_those_of_scikit_learn():
    X, y = draw()
    splits, (scorer, metric) = make_splits(60), scorer_of("test", Ridge(), "neg_mean_squared_error")
    found = cross_score("test", Ridge(), read_rows("test", X, y), splits, scorer, train_scores=True)
    theirs = cross_validate(Ridge(), X, y, cv=splits, scoring=metric, return_train_score=True)
    np.testing.assert_allclose([fold.score for fold in found], theirs["test_score"], rtol=1e-12)
    np.testing.assert_allclose([fold.train_score for fold in found], theirs["train_score"], rtol=1e-12)
    assert all(fold.certificate.holds and fold.fit_seconds > 0 and fold.score_seconds > 0 for fold in found)


def test_folds_are_fitted_on_their_training_rows_alone():
    X, y = draw()
    table, weight = read_rows("test", X, y, np.arange(1.0, 61.0)), np.arange(1.0, 61.0)
    for number, fold in enumerate(fit_folds("test", Ridge(), table, make_splits(60)), start=1):
        expected = Ridge().fit(X[fold.train], y[fold.train], weight[fold.train])
        assert (fold.model.coef_ == expected.coef_).all() and (fold.number, fold.total) == (number, 5)
        assert fold.certificate is fold.model.certificate_
    pipeline = make_pipeline(StandardScaler(), Ridge())
    fold = next(iter(fit_folds("test", pipeline, table, make_splits(60))))
    assert fold.certificate is fold.model[-1].certificate_
    assert fit_whole("test", Ridge(), table).coef_.tolist() == Ridge().fit(X, y, weight).coef_.tolist()
    assert (
        next(iter(fit_folds("test", KNeighborsClassifier(), read_rows("test", X, y > 0), make_splits(60)))).certificate
        is None
    )


class Fails(RegressorMixin, BaseEstimator):
    def __init__(self, error=RuntimeError):
        self.error = error

    def fit(self, X, y):
        raise self.error("out of luck.\nmore")

    def predict(self, X):
        return np.zeros(len(X))


def test_errors_name_the_fold_and_keep_the_cause():
    table, scorer = read_rows("test", *draw()), scorer_of("test", Ridge(), None)[0]
    with pytest.raises(
        DataError, match=r"^test: Fails failed in fold 1 of 5 with a=1, .*48 row\(s\): out of luck\.$"
    ) as caught:
        cross_score("test", Fails(), table, make_splits(60), scorer, place=" with a=1")
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ParameterError, match=r"fold 1 of 5.*alpha must be"):
        cross_score("test", Ridge(-1.0), table, make_splits(60), scorer)
    with pytest.raises(DataError, match="the fit to all rows"):
        fit_whole("test", Fails(), table)


def test_interruptions_pass_through():
    table, scorer = read_rows("test", *draw()), scorer_of("test", Ridge(), None)[0]
    with pytest.raises(KeyboardInterrupt):
        cross_score("test", Fails(KeyboardInterrupt), table, make_splits(60), scorer)


def test_the_metric_follows_the_model():
    assert scorer_of("test", Ridge(), None)[1] == "r2"
    assert scorer_of("test", LogisticRegression(), None)[1] == "accuracy"
    assert scorer_of("test", KMeans(), None)[1] == "score"
    scorer = scorer_of("test", Ridge(), "r2")[0]
    assert scorer_of("test", Ridge(), scorer)[0] is scorer
    for scoring in ("no such metric", 3):
        with pytest.raises(ParameterError, match="test: scoring"):
            scorer_of("test", Ridge(), scoring)
    with pytest.raises(ParameterError, match="test: scoring"):
        scorer_of("test", StandardScaler(), None)


def test_the_scheme_follows_what_is_given():
    X, y = draw()

    def scheme(model, y, **columns):
        return splits_for("test", model, read_rows("test", X, y, **columns), "auto", 3, 1, 0)[1]

    assert scheme(Ridge(), y) == "kfold"
    assert scheme(LogisticRegression(), y > 0) == "stratified"
    assert scheme(LogisticRegression(), y > 0, groups=np.arange(60) % 5) == "grouped"
    assert scheme(LogisticRegression(), y > 0, time=np.arange(60)) == "time"
    with pytest.raises(DataError, match=r"^test: 60 row"):
        splits_for("test", Ridge(), read_rows("test", X, y), "kfold", 61, 1, 0)
