from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier as TheirClassifier
from sklearn.ensemble import RandomForestRegressor as TheirRegressor
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

import learnable as ln
from learnable import RandomForestClassifier, RandomForestRegressor
from learnable.core import DataError, ModelFileError, ParameterError
from learnable.core.estimator import Run

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def friedman(n, seed, noise=1.0):
    """Friedman's first problem: five columns matter, five do not."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + noise * rng.standard_normal(n)


# The same forest however it is grown


@pytest.mark.threaded
@pytest.mark.parametrize("bootstrap", [True, False])
def test_the_same_forest_for_any_number_of_threads(bootstrap):
    X, y = DIABETES
    forests = [
        RandomForestRegressor(12, max_features="third", bootstrap=bootstrap, random_state=3, n_jobs=n).fit(X, y)
        for n in (1, 2, -1)
    ]
    for other in forests[1:]:
        for name in ("start", "feature", "threshold", "value", "impurity"):
            assert np.array_equal(getattr(forests[0].trees_, name), getattr(other.trees_, name))


def test_a_warm_start_gives_the_forest_of_one_fit():
    X, y = IRIS
    whole = RandomForestClassifier(12, oob_score=True, random_state=0).fit(X, y)
    grown = RandomForestClassifier(5, oob_score=True, random_state=0, warm_start=True)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        grown.fit(X, y)
    grown.set_params(n_estimators=12).fit(X, y)
    assert np.array_equal(whole.predict_proba(X), grown.predict_proba(X))
    assert np.array_equal(whole.oob_decision_function_, grown.oob_decision_function_)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        grown.fit(X, y)
    with pytest.raises(ParameterError, match="n_estimators must be >= 12"):
        grown.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(DataError, match="warm_start goes on with 150 rows"):
        grown.set_params(n_estimators=20).fit(X[1:], y[1:])
    quantiles = RandomForestRegressor(4, random_state=0, warm_start=True).fit(*DIABETES).set_params(n_estimators=9)
    once = RandomForestRegressor(9, random_state=0).fit(*DIABETES)
    X = DIABETES[0]
    assert np.array_equal(quantiles.fit(*DIABETES).predict_quantiles(X), once.predict_quantiles(X))


def test_out_of_time_the_first_trees_are_the_forest(monkeypatch):
    X, y = DIABETES
    monkeypatch.setattr(Run, "out_of_time", property(lambda run: run._deadline is not None))
    with pytest.warns(UserWarning, match="trees were grown in time; raise max_seconds"):
        short = RandomForestRegressor(3000, random_state=0, max_seconds=60.0).fit(X, y)
    monkeypatch.undo()
    done = short.trees_.n_trees
    assert 1 <= done < 3000
    assert np.array_equal(short.predict(X), RandomForestRegressor(done, random_state=0).fit(X, y).predict(X))


# What a forest is


def test_a_tree_alone_on_all_rows_is_scikit_learns():
    X, y = DIABETES
    ours = RandomForestRegressor(1, bootstrap=False, min_samples_leaf=5).fit(X, y)
    theirs = TheirRegressor(1, bootstrap=False, min_samples_leaf=5).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


def test_the_prediction_is_the_mean_over_the_trees():
    X, y = DIABETES
    forest = RandomForestRegressor(6, random_state=0).fit(X, y)
    alone = [forest.trees_.tree(t).sum(X)[:, 0] for t in range(6)]
    np.testing.assert_allclose(forest.predict(X), np.mean(alone, axis=0), rtol=1e-13)
    leaves = forest.apply(X)
    value = forest.trees_.value[leaves + forest.trees_.start[:-1], 0]
    np.testing.assert_allclose(forest.predict(X), value.mean(axis=1), rtol=1e-13)


def test_out_of_bag_values_by_hand():
    X, y = IRIS
    forest = RandomForestClassifier(70, oob_score=True, random_state=0, n_jobs=2).fit(X, y)
    total, voters = np.zeros((150, 3)), np.zeros(150)
    for t, rows in enumerate(forest.estimators_samples_):
        unseen = np.setdiff1d(np.arange(150), rows)
        total[unseen] += forest.trees_.tree(t).sum(X[unseen])
        voters[unseen] += 1
    np.testing.assert_allclose(forest.oob_decision_function_, total / voters[:, None], rtol=1e-13)
    assert forest.oob_score_ == np.mean(total.argmax(axis=1) == y)
    scored = RandomForestClassifier(70, oob_score=balanced_accuracy_score, random_state=0).fit(X, y)
    assert scored.oob_score_ == balanced_accuracy_score(y, total.argmax(axis=1))


@pytest.mark.long
def test_out_of_bag_error_tracks_the_test_error():
    X, y = make_classification(2000, 20, n_informative=8, flip_y=0.1, random_state=1)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    for parameters in ({}, {"max_features": "log2"}, {"max_bins": 32}, {"max_samples": 0.3}):
        forest = RandomForestClassifier(50, oob_score=True, random_state=0, **parameters).fit(X, y)
        test = forest.score(X_test, y_test)
        assert abs(forest.oob_score_ - test) < 3 * np.sqrt(2 * test * (1 - test) / 1000)
    X, y = friedman(600, 0)
    forest = RandomForestRegressor(100, max_features="third", oob_score=True, random_state=0).fit(X, y)
    assert abs(forest.oob_score_ - forest.score(*friedman(3000, 1))) < 0.03


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_accuracy_is_scikit_learns(load):
    X, X_test, y, y_test = train_test_split(*load(return_X_y=True), random_state=0)
    theirs = TheirClassifier(100, random_state=0, n_jobs=2).fit(X, y).score(X_test, y_test)
    for parameters in ({}, {"max_bins": 255}):
        ours = RandomForestClassifier(100, random_state=0, **parameters).fit(X, y).score(X_test, y_test)
        assert abs(ours - theirs) < 0.02


def test_the_error_of_a_regression_is_scikit_learns():
    X, y = friedman(500, 0)
    X_test, y_test = friedman(2000, 1)
    for parameters in ({}, {"max_features": 3}, {"criterion": "absolute_error", "n_estimators": 10, "max_depth": 5}):
        both = [
            forest(**({"n_estimators": 40, "random_state": 0} | parameters)).fit(X, y).score(X_test, y_test)
            for forest in (RandomForestRegressor, TheirRegressor)
        ]
        assert abs(both[0] - both[1]) < 0.03


def test_drawing_columns_makes_trees_less_alike():
    X, y = friedman(400, 0)
    X_test = friedman(500, 1)[0]
    likeness = []
    for m in (10, 3, 1):
        forest = RandomForestRegressor(30, max_features=m, random_state=0).fit(X, y)
        alone = np.array([forest.trees_.tree(t).sum(X_test)[:, 0] for t in range(30)])
        likeness.append(np.corrcoef(alone)[np.triu_indices(30, 1)].mean())
    assert likeness[0] > likeness[1] > likeness[2]


# Importances


def test_columns_that_matter_are_important_and_noise_is_not():
    X, y = friedman(800, 0)
    forest = RandomForestRegressor(60, max_features="third", random_state=0).fit(X, y)
    np.testing.assert_allclose(forest.feature_importances_.sum(), 1.0)
    assert set(np.argsort(forest.feature_importances_)[5:]) == set(range(5))
    rise = forest.oob_importances(X, y)
    assert rise.mean[:5].min() > 5 * np.abs(rise.mean[5:]).max()
    assert (np.abs(rise.mean[5:]) < 6 * rise.standard_error[5:] + 0.1).all()
    with pytest.raises(DataError, match="needs the training data"):
        forest.oob_importances(X[1:], y[1:])


def test_permutation_is_not_misled_by_many_values_as_impurity_is():
    """Strobl et al. (2007): of two columns of noise, impurity prefers the one with more values."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 2, 400), rng.standard_normal(400)]
    y = rng.integers(0, 2, 400)
    forest = RandomForestClassifier(100, max_features=1, random_state=0).fit(X, y)
    assert forest.feature_importances_[1] > 0.8
    rise = forest.oob_importances(X, y)
    assert (np.abs(rise.mean) < 0.05).all()


# Any table


def test_missing_values_sparse_tables_frames_and_files(tmp_path):
    X, y = IRIS
    dense = RandomForestClassifier(20, oob_score=True, random_state=0).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = RandomForestClassifier(20, random_state=0).fit(frame.assign(kind=y), "kind")
    assert np.array_equal(named.predict_proba(frame), dense.predict_proba(X))
    X0 = np.where(X < 2, 0.0, X)
    sparse = RandomForestClassifier(20, oob_score=True, random_state=0).fit(sp.csr_array(X0), y)
    full = RandomForestClassifier(20, oob_score=True, random_state=0).fit(X0, y)
    assert np.array_equal(sparse.predict_proba(sp.csr_array(X0)), full.predict_proba(X0))
    assert sparse.oob_score_ == full.oob_score_
    path = tmp_path / "iris.csv"
    frame.assign(kind=y).to_csv(path, index=False)
    assert np.array_equal(RandomForestClassifier(20, random_state=0).fit(path, "kind").predict(X), dense.predict(X))
    gaps = X.copy()
    gaps[y == 2, 2] = np.nan  # that a value is missing tells the class
    holey = RandomForestClassifier(40, max_features=None, oob_score=True, random_state=0).fit(gaps, y)
    assert holey.oob_score_ > 0.95
    with pytest.raises(DataError, match="infinity"):
        holey.fit(np.where(np.isnan(gaps), np.inf, gaps), y)


def test_several_targets_of_classes_and_of_numbers():
    X, y = IRIS
    Y = np.c_[np.array(["a", "b", "c"])[y], (y > 0).astype(str)]
    forest = RandomForestClassifier(20, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="OOB"):
        forest.set_params(n_estimators=8).fit(X, Y)
    assert [list(own) for own in forest.classes_] == [["a", "b", "c"], ["False", "True"]]
    assert forest.n_classes_ == [3, 2]
    shares = forest.predict_proba(X)
    assert [own.shape for own in shares] == [(150, 3), (150, 2)]
    for own in shares:
        np.testing.assert_allclose(own.sum(axis=1), 1.0)
    assert (forest.predict(X) == Y).mean() > 0.98
    assert forest.score(X, Y) > 0.95
    X, y = DIABETES
    numbers = RandomForestRegressor(10, random_state=0).fit(X, np.c_[y, 2 * y])
    np.testing.assert_allclose(numbers.predict(X)[:, 1], 2 * numbers.predict(X)[:, 0], rtol=1e-9)
    assert numbers.predict_quantiles(X, [0.1, 0.9]).shape == (442, 2, 2)


def test_categories_are_split_as_sets():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, 600)
    y = np.isin(codes, [1, 4, 7, 10]).astype(int)
    X = np.c_[codes, rng.standard_normal(600)].astype(float)
    sets = RandomForestClassifier(5, max_features=None, categorical_features=[0], random_state=0).fit(X, y)
    assert sets.trees_.max_depth == 1
    frame = pd.DataFrame(X, columns=["code", "noise"])
    named = RandomForestClassifier(5, max_features=None, categorical_features=["code"], random_state=0).fit(frame, y)
    assert np.array_equal(named.predict(frame), sets.predict(X))
    with pytest.raises(ParameterError, match="categorical_features"):
        RandomForestClassifier(5, categorical_features=["absent"]).fit(frame, y)


def test_class_weights():
    X, y = make_classification(1500, 10, weights=[0.93], flip_y=0.1, class_sep=0.6, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    plain = RandomForestClassifier(60, min_samples_leaf=5, random_state=0).fit(X, y)
    recall = (plain.predict(X_test)[y_test == 1] == 1).mean()
    for weight in ("balanced", "balanced_subsample", {0: 1, 1: 12}):
        forest = RandomForestClassifier(60, min_samples_leaf=5, class_weight=weight, random_state=0).fit(X, y)
        assert (forest.predict(X_test)[y_test == 1] == 1).mean() > recall + 0.05
    with pytest.raises(ParameterError, match="class_weight"):
        RandomForestClassifier(class_weight={0: -1, 1: 1}).fit(X, y)


@settings(max_examples=8, deadline=None)
@given(scale=st.sampled_from([2.0**-990, 2.0**-30, 2.0**30, 2.0**500]), shift=st.sampled_from([0.0, 1e6]))
def test_the_scale_of_columns_and_targets_does_not_matter(scale, shift):
    X, y = DIABETES
    X, y = X[:150], y[:150] + shift
    plain = RandomForestRegressor(3, random_state=0).fit(X, y)
    scaled = RandomForestRegressor(3, random_state=0).fit(X * scale, y * min(scale, 2.0**300))
    assert np.array_equal(plain.trees_.feature, scaled.trees_.feature)
    np.testing.assert_allclose(scaled.predict(X * scale), plain.predict(X) * min(scale, 2.0**300), rtol=1e-9)


def test_one_row_constant_columns_and_constant_targets():
    X = np.zeros((20, 3))
    assert RandomForestRegressor(3).fit(X, np.full(20, 7.0)).predict(X[:2]).tolist() == [7.0, 7.0]
    assert RandomForestRegressor(3).fit(X, np.arange(20.0)).trees_.n_nodes == 3
    assert RandomForestRegressor(3).fit([[1.0]], [2.0]).predict([[5.0]]).tolist() == [2.0]
    assert RandomForestClassifier(3).fit(X, np.zeros(20)).predict_proba(X[:1]).tolist() == [[1.0]]
    with pytest.raises(DataError, match="Poisson"):
        RandomForestRegressor(3, criterion="poisson").fit(X, np.full(20, -1.0))


def test_pruned_trees_are_smaller():
    X, y = DIABETES
    whole = RandomForestRegressor(5, random_state=0).fit(X, y)
    pruned = RandomForestRegressor(5, random_state=0, ccp_alpha=30.0).fit(X, y)
    assert pruned.trees_.n_nodes < whole.trees_.n_nodes / 3
    np.testing.assert_allclose(pruned.leaves_.sizes, whole.leaves_.sizes)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 0},
        {"criterion": "squared_error"},
        {"max_features": "all"},
        {"max_features": 0},
        {"max_features": 5},
        {"max_bins": 256},
        {"min_samples_split": 1},
        {"bootstrap": False, "max_samples": 10},
        {"bootstrap": False, "oob_score": True},
        {"monotonic_cst": [1, 0]},
        {"class_weight": "rare"},
    ],
)
def test_parameters_out_of_range(parameters):
    with pytest.raises(ParameterError, match=r"^RandomForestClassifier: "):
        RandomForestClassifier(**parameters).fit(*IRIS)


# Files


def test_a_round_trip_and_a_loaded_forest_that_is_verified(tmp_path):
    X, y = IRIS
    path = tmp_path / "forest.safetensors"
    for forest, table in (
        (RandomForestClassifier(5, oob_score=False, random_state=0), (X, y.astype(str))),
        (RandomForestRegressor(5, random_state=0), DIABETES),
    ):
        ln.save(forest.fit(*table), path)
        loaded = ln.load(path)
        assert np.array_equal(loaded.predict(table[0]), forest.predict(table[0]))
        assert ln.verify(loaded, *table)


@pytest.mark.parametrize(
    "damage",
    [
        lambda trees: {"left": np.where(trees.left >= 0, 0, -1).astype(np.int32)},  # a loop
        lambda trees: {"right": trees.right + 10**6},
        lambda trees: {"feature": np.where(trees.feature >= 0, 99, -1).astype(np.int32)},
        lambda trees: {"value": trees.value[:, :0]},
        lambda trees: {"start": trees.start + 1},
        lambda trees: {"threshold": np.full_like(trees.threshold, np.nan)},
    ],
)
@pytest.mark.parametrize("cls", [RandomForestClassifier, RandomForestRegressor])
def test_a_hostile_forest_is_refused(cls, damage, tmp_path):
    X, y = IRIS
    forest = cls(3, random_state=0).fit(X, y)
    ln.save(forest, tmp_path / "good.safetensors")
    forest.trees_ = replace(forest.trees_, **damage(forest.trees_))
    with pytest.raises(ModelFileError):
        forest._check_loaded()
    with pytest.raises(ModelFileError):
        ln.save(forest, tmp_path / "bad.safetensors")
