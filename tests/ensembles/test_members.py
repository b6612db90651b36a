"""Ensembles are sequences of fitted estimators: members predict what the ensemble makes of them, and stand alone."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import learnable as ln

FORESTS = ["RandomForestClassifier", "ExtraTreesClassifier", "RandomForestRegressor", "ExtraTreesRegressor"]
OTHERS = ["BaggingClassifier", "BaggingRegressor", "AdaBoostClassifier", "AdaBoostRegressor"]


def _table(outputs=1, classes=3):
    rng = np.random.default_rng(outputs)
    X = rng.normal(size=(90, 4)).round(1)
    y = np.stack([(X[:, k] + rng.normal(size=90) * 0.3 > [[-0.5], [0.5]][: classes - 1]).sum(axis=0) for k in range(2)])
    return X, y[0] if outputs == 1 else y.T


def _fitted(kind, X, y, **settings):
    return getattr(ln, kind)(n_estimators=6, random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kind", FORESTS)
def test_a_forest_is_the_mean_of_its_trees(kind, outputs):
    X, y = _table(outputs)
    forest = _fitted(kind, X, y)
    if "Classifier" not in kind:
        np.testing.assert_allclose(np.mean([tree.predict(X) for tree in forest], axis=0), forest.predict(X))
    elif outputs == 1:
        np.testing.assert_allclose(np.mean([t.predict_proba(X) for t in forest], axis=0), forest.predict_proba(X))
    else:
        for k in range(2):
            mean = np.mean([tree.predict_proba(X)[k] for tree in forest], axis=0)
            np.testing.assert_allclose(mean, forest.predict_proba(X)[k])
    np.testing.assert_array_equal(np.column_stack([tree.apply(X) for tree in forest]), forest.apply(X))
    np.testing.assert_allclose(np.mean([t.feature_importances_ for t in forest], axis=0), forest.feature_importances_)
    sizes = np.diff(forest.decision_path(X)[1])
    np.testing.assert_array_equal(sizes, [tree.tree_.node_count for tree in forest])


@pytest.mark.parametrize("kind", FORESTS + OTHERS)
def test_an_ensemble_is_a_sequence(kind):
    X, y = _table(classes=2)
    model = getattr(ln, kind)(n_estimators=6, random_state=0)
    assert model, "an unfitted ensemble is something"
    for attribute in ("estimators_", "estimator_"):
        assert not hasattr(model, attribute)
    with pytest.raises((NotFittedError, AttributeError)):
        len(model)
    model.fit(X, y)
    assert len(model) == len(model.estimators_) >= 1
    assert (
        list(model) == model.estimators_ and model[-1] is model.estimators_[-1] and model[0:2] == model.estimators_[0:2]
    )
    with pytest.raises(IndexError):
        model[len(model)]
    assert type(model[0]) is type(model.estimator_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again[0].predict(X), model[0].predict(X))
    assert len(clone(model).fit(X, y)) == len(model)


@pytest.mark.parametrize("kind", FORESTS + OTHERS)
def test_members_stand_alone(kind, tmp_path):
    X, y = _table(classes=2)
    model = _fitted(kind, X, y)
    member = model[-1]
    assert member.get_depth() >= 0 and member.tree_.node_count >= 1 and len(member.feature_importances_) == 4
    expected = member.predict(X)
    for twin in (pickle.loads(pickle.dumps(member)), copy.deepcopy(member)):
        np.testing.assert_array_equal(twin.predict(X), expected)
    ln.save(member, tmp_path / "member.safetensors")
    np.testing.assert_array_equal(ln.load(tmp_path / "member.safetensors").predict(X), expected)
    ln.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(ln.load(tmp_path / "model.safetensors")[-1].predict(X), expected)
    assert clone(member).fit(X, y).score(X, y) > 0.3
    assert len({tree.random_state for tree in model}) == len(model)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("kind", FORESTS)
def test_a_copy_of_a_tree_fitted_to_its_bag_is_the_same_tree(kind, bootstrap):
    X, y = _table()
    forest = _fitted(kind, X, y, bootstrap=bootstrap, max_features=0.5)
    for tree, rows in zip(forest, forest.estimators_samples_, strict=True):
        again = clone(tree).fit(X[rows], y[rows])
        np.testing.assert_array_equal(again.tree_.feature, tree.tree_.feature)
        np.testing.assert_allclose(again.tree_.threshold, tree.tree_.threshold)
        np.testing.assert_allclose(again.tree_.value, tree.tree_.value, atol=1e-12)


def test_members_follow_a_new_fit():
    X, y = _table()
    forest = _fitted("RandomForestClassifier", X, y)
    first = forest[0]
    forest.fit(X[::2], y[::2])
    assert forest[0] is not first
    np.testing.assert_allclose(np.mean([t.predict_proba(X) for t in forest], axis=0), forest.predict_proba(X))


def test_members_of_a_forest_with_named_categories_know_their_columns():
    pd = pytest.importorskip("pandas")
    X, y = _table()
    frame = pd.DataFrame(np.abs(X).round(), columns=list("abcd"))
    forest = _fitted("RandomForestClassifier", frame, y, categorical_features=["b"])
    mean = np.mean([tree.predict_proba(frame.to_numpy()) for tree in forest], axis=0)
    np.testing.assert_allclose(mean, forest.predict_proba(frame))
    assert clone(forest[0]).fit(frame.to_numpy(), y).n_features_in_ == 4


@pytest.mark.parametrize("variant", ["discrete", "real", "float", "totally-corrective"])
def test_stumps_vote_as_their_ensemble_does(variant):
    X, y = _table(classes=2)
    model = ln.AdaBoostClassifier(n_estimators=6, variant=variant).fit(X, y)
    for tree, scores in zip(model, model.stumps_, strict=True):
        right = X[:, scores.feature] > scores.threshold
        np.testing.assert_array_equal(tree.predict(X), (scores.value[right.astype(int), 0] > 0).astype(int))
        assert tree.tree_.n_node_samples[0] == len(X)
        np.testing.assert_allclose(tree.tree_.weighted_n_node_samples[0], 1.0)


@pytest.mark.parametrize("kind", [*FORESTS, "BaggingClassifier", "BaggingRegressor"])
@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_equal_weights_are_no_weights(kind, bootstrap, weight):
    X, y = _table()
    plain = _fitted(kind, X, y, bootstrap=bootstrap)
    weighed = getattr(ln, kind)(n_estimators=6, random_state=0, bootstrap=bootstrap)
    weighed.fit(X, y, sample_weight=np.full(len(X), weight))
    np.testing.assert_array_equal(weighed.predict(X), plain.predict(X))
    for one, other in zip(plain, weighed, strict=True):
        np.testing.assert_array_equal(one.tree_.threshold, other.tree_.threshold)
