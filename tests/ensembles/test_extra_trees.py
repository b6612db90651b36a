import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import ExtraTreesClassifier as TheirClassifier
from sklearn.ensemble import ExtraTreesRegressor as TheirRegressor
from sklearn.model_selection import train_test_split
from tests.ensembles.test_forest import friedman

import learnable as ln
from learnable import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestRegressor


def test_accuracy_is_scikit_learns():
    X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    ours = ExtraTreesClassifier(100, random_state=0).fit(X, y).score(X_test, y_test)
    theirs = TheirClassifier(100, random_state=0).fit(X, y).score(X_test, y_test)
    assert abs(ours - theirs) < 0.02
    X, y = friedman(500, 0)
    test = friedman(2000, 1)
    both = [forest(100, random_state=0).fit(X, y).score(*test) for forest in (ExtraTreesRegressor, TheirRegressor)]
    assert abs(both[0] - both[1]) < 0.015


def test_every_tree_has_all_rows_and_is_another():
    X, y = load_diabetes(return_X_y=True)
    forest = ExtraTreesRegressor(5, random_state=0).fit(X, y)
    np.testing.assert_allclose(forest.predict(X), y)  # every leaf is pure
    assert all(np.array_equal(rows, np.arange(442)) for rows in forest.estimators_samples_)
    roots = {float(threshold) for threshold in forest.trees_.threshold[forest.trees_.start[:-1]]}
    assert len(roots) == 5


def test_thresholds_lie_strictly_between_the_ends_of_the_node():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    y = rng.standard_normal(300)
    forest = ExtraTreesRegressor(300, max_depth=1, random_state=0).fit(X, y)
    cuts = forest.trees_.threshold[forest.trees_.start[:-1]]
    assert cuts.min() >= X.min() and cuts.max() < X.max()
    # Uniform between the ends: Kolmogorov–Smirnov at level 0.001.
    u = np.sort((cuts - X.min()) / np.ptp(X))
    gap = np.abs(u - (np.arange(300) + 0.5) / 300).max()
    assert gap < 1.95 / np.sqrt(300)


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_verified(weighted):
    X, y = load_diabetes(return_X_y=True)
    weight = np.linspace(0.0, 2.0, 442) if weighted else None
    forest = ExtraTreesRegressor(4, random_state=0).fit(X, y, weight)
    assert ln.verify(forest, X, y, weight)
    other = RandomForestRegressor(4, random_state=0).fit(X, y, weight)
    assert other.predict(X)[0] != forest.predict(X)[0] or weighted
