import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, make_hastie_10_2
from sklearn.ensemble import ExtraTreesClassifier as TheirClassifier
from sklearn.ensemble import ExtraTreesRegressor as TheirRegressor
from sklearn.model_selection import train_test_split
from tests.ensembles.forest.test_models import friedman

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


@pytest.mark.threaded
@pytest.mark.parametrize("options", [{}, {"criterion": "entropy"}, {"bootstrap": True}])
def test_the_forest_does_not_depend_on_threads(options):
    X, y = load_breast_cancer(return_X_y=True)
    one, three = (
        ExtraTreesClassifier(7, random_state=0, n_jobs=k, **options).fit(X, y + (X[:, 0] > 15)) for k in (1, 3)
    )
    for name in ("feature", "threshold", "value", "impurity", "weight"):
        np.testing.assert_array_equal(getattr(one.trees_, name), getattr(three.trees_, name))


def test_columns_without_order_or_with_gaps_give_forests_too():
    X, y = load_breast_cancer(return_X_y=True)
    plain = ExtraTreesClassifier(20, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    codes = np.c_[X, np.arange(len(X)) % 3]
    for table, options in ((gaps, {}), (codes, {"categorical_features": [30]}), (X, {"max_bins": 100})):
        forest = ExtraTreesClassifier(20, random_state=0, **options).fit(table[::2], y[::2])
        assert forest.score(table[1::2], y[1::2]) > plain - 0.03


def test_equal_cuts_are_not_told_apart_by_the_order_of_sums():
    """Targets ±1 have many cuts of equal gain; rows drawn twice and rows that stand twice must give one tree."""
    X, y = make_hastie_10_2(n_samples=200, random_state=1)
    for seed in range(40):  # four of sixty trees differed when rounding broke the ties
        forest = ExtraTreesRegressor(1, max_samples=0.5, max_features=0.5, bootstrap=True, random_state=seed).fit(X, y)
        drawn = forest.estimators_samples_[0]
        tree = forest.estimators_[0]
        again = clone(tree).fit(X[drawn], y[drawn])
        np.testing.assert_array_equal(tree.tree_.feature, again.tree_.feature)
        np.testing.assert_allclose(tree.tree_.value, again.tree_.value)
