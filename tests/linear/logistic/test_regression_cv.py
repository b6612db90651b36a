"""LogisticRegressionCV: scikit-learn's attributes and choices, exact fits to the folds, and a proof of the last one."""

import warnings

import numpy as np
import pytest
import sklearn.linear_model as peers
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

import learnable as ln
from learnable import LogisticRegression, LogisticRegressionCV
from learnable.core.errors import ParameterError

NEW = {"l1_ratios": (0,), "scoring": "neg_log_loss", "use_legacy_attributes": False}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    score = X @ [1.5, -1.0, 0.0, 0.3] + rng.logistic(size=90)
    return X, np.array(["no", "so", "yes"])[np.digitize(score, [-0.7, 0.7])]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("legacy", [False, True])
def test_scores_and_paths_are_scikit_learns(rows, classes, legacy):
    X, y = rows
    y = y if classes == 3 else np.where(y == "no", "no", "yes")
    settings = {**NEW, "use_legacy_attributes": legacy, "Cs": [0.01, 1.0, 30.0], "cv": 4}
    ours = LogisticRegressionCV(**settings).fit(X, y)
    theirs = peers.LogisticRegressionCV(**settings, tol=1e-10, max_iter=10_000).fit(X, y)
    assert np.array_equal(ours.C_, theirs.C_)
    assert np.array_equal(ours.Cs_, theirs.Cs_)
    keys = theirs.scores_.keys() if legacy else [slice(None)]
    for key in keys:
        assert np.shape(ours.scores_[key]) == np.shape(theirs.scores_[key])
        np.testing.assert_allclose(ours.scores_[key], theirs.scores_[key], atol=1e-4)
        np.testing.assert_allclose(ours.coefs_paths_[key], theirs.coefs_paths_[key], atol=2e-3)
    assert np.shape(ours.n_iter_) == np.shape(theirs.n_iter_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)


def test_the_last_fit_is_that_of_logistic_regression_to_the_last_bit(rows):
    X, y = rows
    model = LogisticRegressionCV(Cs=4, **NEW).fit(X, y)
    alone = LogisticRegression(C=model.C_).fit(X, y)
    assert np.array_equal(model.coef_, alone.coef_)
    assert model.certificate_.holds
    assert ln.verify(model, X, y)


def test_the_share_of_the_l1_penalty_is_chosen_too(rows):
    X, y = rows
    model = LogisticRegressionCV(Cs=[0.1, 1.0], **{**NEW, "l1_ratios": (0.0, 0.5, 1.0)}, cv=3).fit(X, y)
    assert model.scores_.shape == (3, 3, 2)
    best = np.unravel_index(np.argmax(model.scores_.sum(axis=0).T), (2, 3))
    assert (model.C_, model.l1_ratio_) == (model.Cs_[best[0]], model.l1_ratios_[best[1]])
    assert ln.verify(model, X, y)


def test_without_a_refit_means_over_the_folds_are_stored_and_nothing_is_proven(rows):
    X, y = rows
    model = LogisticRegressionCV(Cs=[0.1, 1.0], refit=False, cv=3, **NEW).fit(X, y)
    theirs = peers.LogisticRegressionCV(Cs=[0.1, 1.0], refit=False, cv=3, tol=1e-10, **NEW).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-4)
    assert pytest.approx(theirs.C_) == model.C_
    assert model.certificate_.kind == "none"


@pytest.mark.parametrize("attribute", ["scores_", "coefs_paths_", "C_", "Cs_"])
def test_forged_choices_are_refused(rows, attribute):
    X, y = rows
    model = LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, **NEW).fit(X, y)
    setattr(model, attribute, getattr(model, attribute) * 1.01)
    assert not ln.verify(model, X, y)


def test_a_class_that_a_fold_lacks_is_as_good_as_impossible_there(rows):
    X, _ = rows
    y = np.repeat(["a", "b", "c"], 30)
    model = LogisticRegressionCV(Cs=[1e-6, 1.0], cv=KFold(3), **{**NEW, "scoring": "neg_brier_score"}).fit(X, y)
    assert (-model.scores_ > 1.4).all()
    assert model.C_ == 1e-6
    assert ln.verify(model, X, y)


def test_weights_and_repeated_rows_agree_and_rows_without_weight_stay_in_the_numbering(rows):
    X, y = rows
    weight = np.tile([1.0, 2.0, 0.0], 30)
    splits = [(np.arange(45, 90), np.arange(45)), (np.arange(45), np.arange(45, 90))]
    counts = weight.astype(int)
    number = np.repeat(np.arange(90), counts)
    again = [(np.flatnonzero(number >= 45), np.flatnonzero(number < 45))]
    again.append((again[0][1], again[0][0]))
    weighted = LogisticRegressionCV(Cs=[0.1, 1.0], cv=splits, **NEW).fit(X, y, sample_weight=weight)
    repeated = LogisticRegressionCV(Cs=[0.1, 1.0], cv=again, **NEW).fit(X[number], y[number])
    np.testing.assert_allclose(weighted.scores_, repeated.scores_, atol=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    assert ln.verify(weighted, X, y, sample_weight=weight)


def test_threads_do_not_change_the_result(rows):
    X, y = rows
    one, two = (LogisticRegressionCV(Cs=3, cv=StratifiedKFold(3), n_jobs=n, **NEW).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.coefs_paths_, two.coefs_paths_)
    assert np.array_equal(one.scores_, two.scores_)


def test_groups_are_routed_to_the_splitter(rows):
    import sklearn

    X, y = rows
    groups = np.arange(90) % 3
    with pytest.raises(ParameterError, match="enable_metadata_routing"):
        LogisticRegressionCV(**NEW).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(3).set_split_request(groups=True)
        ours = LogisticRegressionCV(Cs=[0.1, 1.0], cv=cv, **NEW).fit(X, y, groups=groups)
    expected = LogisticRegressionCV(Cs=[0.1, 1.0], cv=list(GroupKFold(3).split(X, y, groups)), **NEW).fit(X, y)
    assert np.array_equal(ours.scores_, expected.scores_)


def test_a_time_limit_is_told(rows):
    X, y = rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LogisticRegressionCV(Cs=50, max_seconds=1e-9, **NEW).fit(X, y)
    assert any("left no time" in str(one.message) for one in caught)
    assert np.isneginf(model.scores_).any()
