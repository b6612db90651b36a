import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.ensemble import BaggingClassifier as TheirClassifier
from sklearn.ensemble import BaggingRegressor as TheirRegressor
from sklearn.linear_model import Perceptron as TheirPerceptron
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import learnable as ln
from learnable import BaggingClassifier, BaggingRegressor, LogisticRegression, Ridge
from learnable.core import DataError, ModelFileError, ParameterError

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def bagged_trees(**parameters):
    return BaggingClassifier(DecisionTreeClassifier(), random_state=0, **parameters)


# What a bag is


def test_the_prediction_is_the_mean_of_the_members_on_their_columns():
    X, y = DIABETES
    model = BaggingRegressor(Ridge(), 7, max_features=0.5, random_state=3).fit(X, y)
    by_hand = np.mean(
        [m.predict(X[:, c]) for m, c in zip(model.estimators_, model.estimators_features_, strict=True)], 0
    )
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-14)


def test_a_member_is_the_model_of_its_bag():
    X, y = DIABETES
    model = BaggingRegressor(Ridge(alpha=0.1), 3, random_state=0).fit(X, y)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        assert len(rows) == len(y)
        np.testing.assert_allclose(member.coef_, Ridge(alpha=0.1).fit(X[rows], y[rows]).coef_, rtol=1e-8)


def test_out_of_bag_predictions_come_from_members_that_have_not_seen_the_row():
    X, y = IRIS
    model = bagged_trees(n_estimators=40, oob_score=True).fit(X, y)
    votes, voters = np.zeros((150, 3)), np.zeros(150)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        unseen = np.setdiff1d(np.arange(150), rows)
        votes[unseen] += member.predict_proba(X[unseen])
        voters[unseen] += 1
    np.testing.assert_allclose(model.oob_decision_function_, votes / voters[:, None], rtol=1e-14)
    assert model.oob_score_ == np.mean(votes.argmax(axis=1) == y)


@pytest.mark.long
def test_out_of_bag_error_tracks_the_test_error():
    X, y = make_classification(3000, 20, n_informative=8, flip_y=0.1, random_state=1)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    for parameters in ({}, {"bootstrap": False, "max_samples": 0.5}):
        model = bagged_trees(n_estimators=60, oob_score=True, **parameters).fit(X, y)
        test = model.score(X_test, y_test)
        assert abs(model.oob_score_ - test) < 3 * np.sqrt(2 * test * (1 - test) / 1500)


def test_a_row_in_every_bag_is_reported_and_left_out_of_the_score():
    X, y = DIABETES
    with pytest.warns(UserWarning, match=r"Some inputs do not have OOB scores.* of 442 rows"):
        model = BaggingRegressor(Ridge(), 1, oob_score=True, random_state=0).fit(X, y)
    seen = np.isin(np.arange(442), model.estimators_samples_[0])
    assert np.isnan(model.oob_prediction_[seen]).all() and np.isfinite(model.oob_prediction_[~seen]).all()
    assert np.isfinite(model.oob_score_)


@pytest.mark.parametrize("parameters", [{}, {"max_samples": 0.5, "max_features": 0.6}])
def test_accuracy_is_scikit_learns(parameters):
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=2)
    ours = bagged_trees(n_estimators=60, **parameters).fit(X, y).score(X_test, y_test)
    theirs = TheirClassifier(DecisionTreeClassifier(), 60, random_state=0, **parameters).fit(X, y).score(X_test, y_test)
    assert abs(ours - theirs) < 0.03
    X, y = DIABETES
    ours = BaggingRegressor(DecisionTreeRegressor(), 60, oob_score=True, random_state=0, **parameters).fit(X, y)
    theirs = TheirRegressor(DecisionTreeRegressor(), 60, oob_score=True, random_state=0, **parameters).fit(X, y)
    assert abs(ours.oob_score_ - theirs.oob_score_) < 0.05


def test_bagging_lowers_the_variance_of_a_tree():
    X, y = make_classification(1200, 20, n_informative=8, flip_y=0.1, random_state=4)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    alone = DecisionTreeClassifier(random_state=0).fit(X, y).score(X_test, y_test)
    assert bagged_trees(n_estimators=50).fit(X, y).score(X_test, y_test) > alone + 0.02


# The same ensemble however it is computed


@pytest.mark.threaded
def test_the_same_ensemble_for_any_number_of_jobs_and_by_warm_starts():
    X, y = IRIS
    one = bagged_trees(n_estimators=20, oob_score=True, max_features=2).fit(X, y)
    two = bagged_trees(n_estimators=20, oob_score=True, max_features=2, n_jobs=2).fit(X, y)
    grown = bagged_trees(n_estimators=20, oob_score=True, max_features=2, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=5, warm_start=False).fit(X, y)
    grown.set_params(n_estimators=20, warm_start=True).fit(X, y)
    for other in (two, grown):
        assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
        assert np.array_equal(one.oob_decision_function_, other.oob_decision_function_)


def test_warm_starts_say_what_they_cannot_do():
    X, y = IRIS
    model = bagged_trees(n_estimators=3, warm_start=True).fit(X, y)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.fit(X, y)
    with pytest.raises(ParameterError, match="n_estimators must be >= 3"):
        model.set_params(n_estimators=2).fit(X, y)
    with pytest.raises(DataError, match="warm_start goes on with 150 rows and 4 columns; got 149 and 4"):
        model.set_params(n_estimators=5).fit(X[1:], y[1:])
    assert len(model.estimators_) == 3


def test_a_failed_fit_leaves_the_ensemble_as_it_was():
    X, y = IRIS
    model = bagged_trees(n_estimators=3).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(DataError):
        model.fit(X, y[:-1])
    assert np.array_equal(model.predict_proba(X), before)


# Any table, any member


def test_frames_sparse_arrays_and_paths(tmp_path):
    X, y = IRIS
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=y)
    frame.to_parquet(tmp_path / "iris.parquet")
    model = BaggingClassifier(LogisticRegression(), 5, max_features=2, random_state=0)
    expected = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.fit(frame, "kind").predict_proba(frame[list("abcd")]), expected, rtol=1e-9)
    np.testing.assert_allclose(model.fit(sp.csr_array(X), y).predict_proba(sp.csr_array(X)), expected, rtol=1e-6)
    np.testing.assert_allclose(
        model.fit(tmp_path / "iris.parquet", "kind").predict_proba(frame[list("abcd")]), expected, rtol=1e-9
    )
    with pytest.raises(DataError, match="feature names"):
        model.fit(frame, "kind").predict(frame[list("dcba")])


def test_columns_drawn_twice_get_two_names():
    X, y = DIABETES
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    named = BaggingRegressor(Ridge(), 5, bootstrap_features=True, random_state=0).fit(frame, y)
    plain = BaggingRegressor(Ridge(), 5, bootstrap_features=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(named.predict(frame), plain.predict(X), rtol=1e-10)


def test_rows_of_weight_zero_are_never_drawn_and_their_classes_do_not_count():
    X, y = IRIS
    weight = (y != 2).astype(float)
    model = bagged_trees(n_estimators=4, oob_score=False).fit(X, y.astype(str), weight)
    assert model.classes_.tolist() == ["0", "1"]
    assert all(weight[rows].all() for rows in model.estimators_samples_)


def test_a_pipeline_sees_its_bag_and_nothing_else():
    X, y = IRIS
    model = BaggingClassifier(make_pipeline(StandardScaler(), LogisticRegression()), 3, random_state=0).fit(X, y)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        np.testing.assert_allclose(member[0].mean_, X[rows].mean(axis=0))


def test_members_without_probabilities_vote():
    X, y = IRIS
    model = BaggingClassifier(TheirPerceptron(), 9, random_state=0).fit(X, y)
    votes = np.array([member.predict(X) for member in model.estimators_])
    np.testing.assert_allclose(model.predict_proba(X), np.stack([(votes == k).mean(axis=0) for k in range(3)], 1))
    assert model.decision_function(X).shape == (150, 3)
    with pytest.raises(AttributeError):
        bagged_trees(n_estimators=2).fit(X, y).decision_function(X)


def test_a_bag_that_lacks_a_class_still_has_a_probability_of_it():
    X = np.arange(40.0)[:, None]
    y = np.r_[np.zeros(20), np.ones(19), 2].astype(int)
    model = BaggingClassifier(LogisticRegression(), 20, max_samples=10, random_state=0).fit(X, y)
    assert {len(member.classes_) for member in model.estimators_} == {2, 3}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(DataError, match="had no row of class"):
        model.decision_function(X)


def test_a_bag_always_has_two_classes():
    y = np.r_[np.zeros(30), 1].astype(int)
    X = np.c_[y + 0.0]
    model = BaggingClassifier(LogisticRegression(), 30, random_state=0).fit(X, y)
    assert all(np.ptp(y[rows]) == 1 for rows in model.estimators_samples_)
    assert model.attempts_.max() > 0
    with pytest.raises(DataError, match="had one class each"):
        BaggingClassifier(LogisticRegression(), 2, max_samples=1, random_state=0).fit(X, y)


def test_several_targets():
    X, y = DIABETES
    Y = np.c_[y, -y]
    model = BaggingRegressor(Ridge(), 10, oob_score=True, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 0], -model.predict(X)[:, 1], rtol=1e-8)
    assert model.oob_prediction_.shape == Y.shape


# Certificates and files


def test_bags_are_verified_and_forgeries_found(tmp_path):
    X, y = IRIS
    y = y.astype(str)
    model = BaggingClassifier(LogisticRegression(), 4, max_features=3, random_state=0).fit(X, y)
    assert model.certificate_.holds and ln.verify(model, X, y)
    ln.save(model, tmp_path / "bag.safetensors")
    loaded = ln.load(tmp_path / "bag.safetensors")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X)) and ln.verify(loaded, X, y)
    loaded.estimators_[2].coef_ = loaded.estimators_[2].coef_ * 1.001
    assert "the model number 2" in str(ln.verify(loaded, X, y))
    assert not ln.verify(model, X[::-1], y)
    assert not ln.verify(model, X[1:], y[1:])
    model.classes_ = model.classes_[[1, 0, 2]]
    assert not ln.verify(model, X, y)


def test_weights_are_part_of_what_is_verified():
    X, y = DIABETES
    weight = np.linspace(0, 2, len(y))
    model = BaggingRegressor(Ridge(), 3, random_state=0).fit(X, y, weight)
    assert ln.verify(model, X, y, weight)
    assert not ln.verify(model, X, y)
    assert not ln.verify(model, X, y, weight + 1e-9)


def test_members_of_other_libraries_prove_nothing():
    assert bagged_trees(n_estimators=2).fit(*IRIS).certificate_.kind == "none"


@pytest.mark.parametrize(
    "damage",
    [
        {"estimators_features_": [np.array([0, 9])] * 3},
        {"estimators_features_": [np.array([0, 1])] * 2},
        {"attempts_": np.zeros(2, dtype=np.int64)},
        {"seed_": -1},
        {"classes_": np.array(["only"])},
        {"estimators_": []},
    ],
)
def test_damaged_ensembles_are_refused(damage):
    X, y = IRIS
    model = BaggingClassifier(LogisticRegression(), 3, max_features=2, random_state=0).fit(X, y)
    model._check_loaded()
    vars(model).update(damage)
    with pytest.raises(ModelFileError):
        model._check_loaded()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 0},
        {"max_samples": 0.0},
        {"max_samples": 1.5},
        {"max_samples": 500, "bootstrap": False},
        {"max_features": 5},
        {"max_features": 0},
        {"estimator": "tree"},
        {"oob_score": True, "bootstrap": False},
    ],
)
def test_parameters_out_of_range(parameters):
    with pytest.raises(ParameterError, match=r"^BaggingClassifier: "):
        BaggingClassifier(**({"estimator": DecisionTreeClassifier()} | parameters)).fit(*IRIS)
