"""The checker of trees: accepts what was grown, finds what was changed."""

from dataclasses import replace

import numpy as np
import pytest

import learnable as ln
from learnable.trees.verify import bin_numbers


def make_data(seed=0, n=150):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    X[:, 3] = rng.integers(0, 5, n)
    X[rng.random(n) < 0.1, 1] = np.nan
    y = X[:, 0] + np.isin(X[:, 3], [1, 3]) + 0.5 * rng.normal(size=n)
    return X, y, rng.integers(1, 4, n) / 2.0


SETTINGS = [
    {},
    {"max_depth": 3, "min_samples_leaf": 5},
    {"max_features": 2, "random_state": 1},
    {"splitter": "random", "random_state": 2},
    {"max_leaf_nodes": 8},
    {"max_bins": 6},
    {"min_impurity_decrease": 0.01},
    {"ccp_alpha": 0.01},
    {"categorical_features": [3]},
    {"monotonic_cst": [1, 0, -1, 0], "max_depth": 5},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_was_grown_is_verified(settings):
    X, y, w = make_data()
    for model, target in ((ln.DecisionTreeRegressor, y), (ln.DecisionTreeClassifier, y > 0.5)):
        fitted = model(**settings).fit(X, target, w)
        verdict = ln.verify(fitted, X, target, w)
        assert verdict, str(verdict)
        assert verdict.value < 1e-9


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_other_criteria_are_verified(criterion):
    X, y, w = make_data(n=60)
    fitted = ln.DecisionTreeRegressor(criterion=criterion, max_depth=3).fit(X, np.abs(y), w)
    assert ln.verify(fitted, X, np.abs(y), w)


def grown(**settings):
    X, y, _ = make_data()
    return ln.DecisionTreeRegressor(max_depth=4, **settings).fit(X, y), X, y


def changed(tree, name, node, value):
    array = getattr(tree, name).copy()
    array[node] = value
    return replace(tree, **{name: array})


def test_a_changed_threshold_is_found():
    model, X, y = grown()
    old = model.trees_.threshold[0]
    model.trees_ = changed(model.trees_, "threshold", 0, old + 0.3)
    assert not ln.verify(model, X, y)


@pytest.mark.parametrize("name", ["value", "impurity", "weight", "n_rows"])
def test_a_changed_number_is_found(name):
    model, X, y = grown()
    old = getattr(model.trees_, name)[2]
    model.trees_ = changed(model.trees_, name, 2, old + 1 if name == "n_rows" else old * 1.001)
    assert not ln.verify(model, X, y)


def test_a_split_that_is_not_the_best_is_found():
    model, X, y = grown()
    worse = ln.DecisionTreeRegressor(max_depth=4, max_features=1, random_state=0).fit(X, y)
    worse.max_features = None  # now it claims to have looked at all columns
    verdict = ln.verify(worse, X, y)
    assert not verdict and verdict.value > 1e-3
    assert np.isfinite(verdict.value)
    assert ln.verify(model, X, y)


def test_a_tree_that_stopped_too_early_is_found():
    X, y, _ = make_data()
    stump = ln.DecisionTreeRegressor(max_depth=1).fit(X, y)
    stump.max_depth = None
    assert not ln.verify(stump, X, y)


def test_a_best_first_tree_out_of_order_is_found():
    X, y, _ = make_data()
    best = ln.DecisionTreeRegressor(max_leaf_nodes=4).fit(X, y)
    assert ln.verify(best, X, y)
    deep = ln.DecisionTreeRegressor(max_leaf_nodes=12).fit(X, y)
    deep.max_leaf_nodes = 30  # there was room for more
    assert not ln.verify(deep, X, y)


def test_other_data_and_other_labels_are_found():
    X, y, _ = make_data()
    model = ln.DecisionTreeClassifier(max_depth=3).fit(X, y > 0.5)
    assert not ln.verify(model, X, y > 0.6)
    assert not ln.verify(model, X[::-1] + 1, y > 0.5)
    model.classes_ = model.classes_[::-1]
    assert not ln.verify(model, X, y > 0.5)


def test_bins_of_sparse_and_dense_tables_agree():
    sp = pytest.importorskip("scipy.sparse")
    X = np.where(np.random.default_rng(0).random((40, 3)) < 0.5, 0.0, np.random.default_rng(1).normal(size=(40, 3)))
    np.testing.assert_array_equal(bin_numbers(X, 7, None), bin_numbers(sp.csr_array(X), 7, None))
