from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris

import learnable as ln
from learnable import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

X, Y = load_diabetes(return_X_y=True)
X_CLASS, KIND = load_iris(return_X_y=True)
TWO = (KIND > 0).astype(int)
RNG = np.random.default_rng(0)
GAPS = np.where(RNG.random(X_CLASS.shape) < 0.1, np.nan, X_CLASS)
CODES = np.c_[X_CLASS, RNG.integers(0, 6, 150)]
SPARSE = sp.random_array((200, 15), density=0.2, rng=RNG, format="csr")
MANY = (SPARSE @ np.ones(15) > 1.5).astype(int)
WEIGHT = np.linspace(0.0, 2.0, 442)

HONEST = {
    "gini": (RandomForestClassifier(), X_CLASS, KIND, None),
    "entropy": (RandomForestClassifier(criterion="entropy", min_samples_leaf=3), X_CLASS, KIND, None),
    "misclassification": (RandomForestClassifier(criterion="misclassification"), X_CLASS, KIND, None),
    "gaps": (RandomForestClassifier(), GAPS, KIND, None),
    "gaps, random": (ExtraTreesClassifier(), GAPS, TWO, None),
    "extra trees": (ExtraTreesClassifier(), X_CLASS, KIND, None),
    "numbers": (RandomForestRegressor(), X, Y, None),
    "third": (RandomForestRegressor(max_features="third", min_samples_leaf=4), X, Y, None),
    "random numbers": (ExtraTreesRegressor(), X, Y, None),
    "random, a third": (ExtraTreesRegressor(max_features="third", min_samples_leaf=2), X, Y, None),
    "random bags": (ExtraTreesRegressor(bootstrap=True), X, Y, None),
    "random entropy": (ExtraTreesClassifier(criterion="entropy"), X_CLASS, KIND, None),
    "random, two classes": (ExtraTreesClassifier(max_features=None), X_CLASS, TWO, None),
    "random, weights": (ExtraTreesClassifier(), X_CLASS, KIND, WEIGHT[:150]),
    "several numbers": (RandomForestRegressor(max_features="third"), X, np.c_[Y, -(Y**2)], None),
    "several classes": (RandomForestClassifier(), X_CLASS, np.c_[KIND, TWO], None),
    "absolute error": (RandomForestRegressor(criterion="absolute_error", max_features=3), X[:60], Y[:60], None),
    "poisson": (RandomForestRegressor(criterion="poisson"), X, Y, None),
    "bins": (RandomForestRegressor(max_bins=16), X, Y, None),
    "categories": (RandomForestClassifier(categorical_features=[4]), CODES, TWO, None),
    "sparse": (RandomForestClassifier(), SPARSE, MANY, None),
    "weights": (RandomForestRegressor(), X, Y, WEIGHT),
    "weights, all rows": (ExtraTreesRegressor(), X, Y, WEIGHT),
    "balanced": (RandomForestClassifier(class_weight="balanced"), X_CLASS, TWO, None),
    "balanced bags": (RandomForestClassifier(class_weight="balanced_subsample"), X_CLASS, TWO, None),
    "balanced, all rows": (ExtraTreesClassifier(class_weight="balanced"), X_CLASS, TWO, None),
    "monotone": (RandomForestRegressor(monotonic_cst=[0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), X, Y, None),
    "best first": (RandomForestRegressor(max_leaf_nodes=20), X, Y, None),
    "pruned": (RandomForestRegressor(ccp_alpha=20.0), X, Y, None),
    "least decrease": (RandomForestRegressor(min_impurity_decrease=20.0), X, Y, None),
    "limits": (RandomForestRegressor(min_weight_fraction_leaf=0.02, max_depth=6, max_samples=0.6), X, Y, None),
}


def fit(name, n_trees=2):
    model, table, y, weight = HONEST[name]
    return (
        ln.core.registry.registered_class(type(model).__name__)(**model.get_params())
        .set_params(n_estimators=n_trees, random_state=0)
        .fit(table, y, weight),
        table,
        y,
        weight,
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", HONEST)
def test_every_honest_forest_is_verified(name):
    model, *data = fit(name)
    verdict = ln.verify(model, *data)
    assert verdict, str(verdict)


FORGERIES = {
    "threshold": lambda trees: {"threshold": moved(trees.threshold, trees.feature >= 0, 0.02)},
    "value": lambda trees: {"value": trees.value * 1.001},
    "impurity": lambda trees: {"impurity": trees.impurity * 1.001},
    "weight": lambda trees: {"weight": trees.weight * 1.001},
    "column": lambda trees: {"feature": np.where(trees.feature >= 0, (trees.feature + 1) % 4, -1).astype(np.int32)},
}


def moved(values, where, by):
    values = values.copy()
    values[np.flatnonzero(where)[0]] += by
    return values


@pytest.mark.parametrize("what", FORGERIES)
@pytest.mark.parametrize("name", ["numbers", "gini", "extra trees"])
def test_every_forgery_is_found(what, name):
    model, *data = fit(name)
    model.trees_ = replace(model.trees_, **FORGERIES[what](model.trees_))
    assert not ln.verify(model, *data)


def test_a_tree_that_stops_early_or_was_drawn_otherwise_is_found():
    model, *data = fit("numbers")
    short = RandomForestRegressor(2, random_state=0, max_depth=4).fit(*data)
    model.trees_, model.leaves_ = short.trees_, short.leaves_
    assert not ln.verify(model, *data)
    model, *data = fit("third")
    model.seed_ += 1
    assert not ln.verify(model, *data)


def test_targets_in_the_leaves_are_compared():
    model, *data = fit("numbers")
    model.leaves_ = replace(model.leaves_, y=model.leaves_.y + 1e-3)
    assert "targets in the leaves" in str(ln.verify(model, *data))


def test_other_data_and_other_labels_are_found():
    model, *data = fit("gini")
    assert not ln.verify(model, X_CLASS[::-1], KIND)
    assert not ln.verify(model, X_CLASS[:50], KIND[:50])
    model.classes_ = model.classes_[[1, 0, 2]]
    assert not ln.verify(model, *data)
