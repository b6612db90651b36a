"""Sequential selection: scikit-learn's choices for any estimator, the same on any number of threads, checked again."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SequentialFeatureSelector as Theirs
from sklearn.model_selection import GroupKFold

import learnable as ln
from learnable import KMeans, LogisticRegression, Ridge, SequentialFeatureSelector
from learnable.core.errors import ParameterError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    return X, X[:, 1] - 2 * X[:, 4] + 0.5 * X[:, 2] + rng.normal(size=60)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    "setting", [{}, {"n_features_to_select": 2}, {"n_features_to_select": 0.4}, {"tol": 0.005, "scoring": "r2"}]
)
def test_the_choice_is_scikit_learns(rows, direction, setting):
    ours = SequentialFeatureSelector(Ridge(), direction=direction, cv=3, **setting).fit(*rows)
    theirs = Theirs(Ridge(), direction=direction, cv=3, **setting).fit(*rows)
    assert ours.get_support().tolist() == theirs.get_support().tolist()
    assert ours.n_features_to_select_ == theirs.n_features_to_select_
    assert np.array_equal(ours.transform(rows[0]), theirs.transform(rows[0]))
    assert ln.verify(ours, *rows)


def test_threads_do_not_change_the_result(rows):
    X, y = rows
    one, two = (SequentialFeatureSelector(LogisticRegression(), cv=3, n_jobs=n).fit(X, y > 0) for n in (1, 2))
    assert np.array_equal(one.order_, two.order_)
    assert np.array_equal(one.scores_, two.scores_)


def test_no_targets_are_needed_where_the_estimator_needs_none(rows):
    model = SequentialFeatureSelector(KMeans(2, random_state=0), n_features_to_select=1, cv=2).fit(rows[0])
    assert model.support_.sum() == 1


def test_another_order_is_refused(rows):
    model = SequentialFeatureSelector(Ridge(), cv=3).fit(*rows)
    model.order_ = model.order_[::-1].copy()
    assert not ln.verify(model, *rows)


def test_the_time_limit_keeps_what_was_chosen(rows):
    with pytest.warns(ConvergenceWarning, match="1 of 3 steps"):
        model = SequentialFeatureSelector(Ridge(), cv=3, max_seconds=1e-9).fit(*rows)
    assert model.support_.sum() == 1


def test_every_step_is_told_to_callbacks(rows):
    from sklearn.callback import ProgressBar

    model = SequentialFeatureSelector(Ridge(), cv=3).set_callbacks(ProgressBar())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*rows)
    assert model.support_.sum() == 3


def test_groups_are_routed_to_the_splitter(rows):
    X, y = rows
    groups = np.arange(60) % 3
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        SequentialFeatureSelector(Ridge()).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(3).set_split_request(groups=True)
        routed = SequentialFeatureSelector(Ridge(), cv=cv).fit(X, y, groups=groups)
    given = SequentialFeatureSelector(Ridge(), cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    assert np.array_equal(routed.scores_, given.scores_)


def test_all_columns_cannot_be_asked_for(rows):
    with pytest.raises(ParameterError, match="n_features_to_select must be < n_features"):
        SequentialFeatureSelector(Ridge(), n_features_to_select=6).fit(*rows)
