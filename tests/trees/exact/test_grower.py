"""The growth loop: every split is the best of an exhaustive search, and the tree is scikit-learn's up to ties."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.oracles.trees import best_gain, impurity, rows_of_nodes

from learnable.trees import Columns, GrowthRule, grow
from learnable.trees.criteria import Target
from learnable.trees.growth import GrowthStopped

CLASS = ("gini", "entropy", "misclassification")
NUMBER = ("squared_error", "absolute_error", "poisson")


def make_table(seed, n=40, d=3, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 7, (n, d)) / 2.0
    X[:, -1] = rng.normal(size=n)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    y = np.where(np.nan_to_num(X[:, 0]) > 1, 1.0, 0.0) + rng.normal(size=n)
    return X, y, rng.integers(1, 4, n) / 2.0


def target_of(criterion, y, w=None):
    if criterion in CLASS:
        codes = np.digitize(y, [-0.3, 0.8])
        return Target.classes(codes, 3, criterion=criterion, weight=w), codes
    numbers = np.abs(y) if criterion == "poisson" else y
    return Target.numbers(numbers, criterion=criterion, weight=w), numbers


def same_up_to_ties(ours, theirs):
    """Walk down both trees; where they ask differently the gains must be equal, and what is below may differ."""
    stack, n_same = [(0, 0)], 0
    while stack:
        i, k = stack.pop()
        np.testing.assert_allclose(ours.impurity[i], theirs.impurity[k], atol=1e-12)
        np.testing.assert_allclose(ours.value[i], theirs.value[k].ravel(), atol=1e-12)
        assert ours.n_rows[i] == theirs.n_node_samples[k]
        pairs = [(ours.left[i], theirs.children_left[k]), (ours.right[i], theirs.children_right[k])]
        if theirs.children_left[k] < 0 or ours.feature[i] < 0:
            assert theirs.children_left[k] < 0 and ours.feature[i] < 0
            continue
        after = [ours.weight[a] * ours.impurity[a] for a, _ in pairs]
        other = [theirs.weighted_n_node_samples[b] * theirs.impurity[b] for _, b in pairs]
        np.testing.assert_allclose(sum(after), sum(other), atol=1e-9)
        if ours.feature[i] == theirs.feature[k] and np.isclose(ours.threshold[i], theirs.threshold[k]):
            n_same += 1
            stack += pairs
    return n_same


def check_gains(tree, X, y, w, criterion, n_classes, **limits):
    rows = rows_of_nodes(tree, X)
    for i, own in rows.items():
        whole = impurity(criterion, y[own], w[own], n_classes)
        np.testing.assert_allclose(tree.impurity[i] * tree.weight[i], whole, atol=1e-9)
        assert tree.n_rows[i] == len(own)
        if tree.feature[i] < 0:
            continue
        parts = [rows[int(tree.left[i])], rows[int(tree.right[i])]]
        gain = whole - sum(impurity(criterion, y[part], w[part], n_classes) for part in parts)
        best = best_gain(X[own], y[own], w[own], criterion, n_classes=n_classes, **limits)
        np.testing.assert_allclose(gain, best, atol=1e-9)
        assert gain >= -1e-9  # the impurity never rises


@pytest.mark.parametrize("criterion", CLASS + NUMBER)
@pytest.mark.parametrize("missing", [False, True])
def test_every_split_is_the_best_of_an_exhaustive_search(criterion, missing):
    X, y, w = make_table(1, missing=missing)
    target, values = target_of(criterion, y, w)
    tree = grow(Columns.build(X), target, GrowthRule(max_depth=4, min_samples_leaf=2)).tree
    tree.check(3)
    check_gains(tree, X, values, w, criterion, 3 if criterion in CLASS else None, min_leaf=2)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.0, 3.0))
def test_splits_of_two_classes_are_the_best_whatever_the_weights(seed, min_leaf, min_weight):
    X, y, w = make_table(seed, n=25, missing=seed % 2 == 0)
    for weight in (None, w * 2, w + 0.25):  # counted one by one, packed, and as they are
        used = np.ones(25) if weight is None else weight
        codes = (y > 0).astype(int)
        rule = GrowthRule(max_depth=3, min_samples_leaf=min_leaf, min_weight_leaf=min_weight)
        tree = grow(Columns.build(X), Target.classes(codes, 2, weight=weight), rule).tree
        check_gains(tree, X, codes, used, "gini", 2, min_leaf=min_leaf, min_weight=min_weight)


@pytest.mark.parametrize("criterion", ["gini", "squared_error", "absolute_error"])
def test_sets_of_categories_are_the_best_of_all_sets(criterion):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 60), rng.normal(size=60)])
    X[rng.random(60) < 0.1, 0] = np.nan
    y = np.isin(X[:, 0], [1, 4]) + 0.5 * rng.normal(size=60)
    w = np.ones(60)
    values = (y > 0.5).astype(int) if criterion == "gini" else y
    target = Target.classes(values, 2) if criterion == "gini" else Target.numbers(values, criterion=criterion)
    columns = Columns.build(X, categorical=np.array([True, False]))
    tree = grow(columns, target, GrowthRule(max_depth=1)).tree
    tree.check(2)
    assert tree.category[0] >= 0
    if criterion != "absolute_error":  # for it the order of the means is only a good guess
        check_gains(tree, X, values, w, criterion, 2 if criterion == "gini" else None, categorical=(0,))


def test_many_classes_find_the_set_that_separates_them():
    code = np.repeat(np.arange(8), 10)
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 1])[code]
    columns = Columns.build(code[:, None].astype(float), categorical=np.array([True]))
    grown = grow(columns, Target.classes(labels, 3), GrowthRule(max_depth=2))
    assert grown.tree.n_leaves == 3
    assert (grown.tree.impurity[grown.tree.feature < 0] == 0).all()


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.parametrize("rule", [{}, {"max_depth": 5}, {"max_leaf_nodes": 12}, {"min_samples_leaf": 9}])
def test_exact_trees_are_those_of_scikit_learn(criterion, rule):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 4)).astype(np.float32).astype(float)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=300)
    target, values = target_of(criterion, y)
    model = DecisionTreeClassifier if criterion in CLASS else DecisionTreeRegressor
    ours = grow(Columns.build(X), target, GrowthRule(min_impurity_decrease=1e-3, **rule)).tree
    theirs = model(criterion=criterion, random_state=0, min_impurity_decrease=1e-3, **rule).fit(X, values).tree_
    assert same_up_to_ties(ours, theirs) >= 8


def test_missing_values_go_where_scikit_learn_sends_them():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3)).astype(np.float32).astype(float)
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0.5)).astype(int)
    X[rng.random(400) < 0.2, 0] = np.nan
    ours = grow(Columns.build(X), Target.classes(y, 2), GrowthRule(max_depth=4, min_samples_leaf=20)).tree
    theirs = DecisionTreeClassifier(max_depth=4, min_samples_leaf=20, random_state=0).fit(X, y).tree_
    assert same_up_to_ties(ours, theirs) >= 5
    assert ours.feature[0] == theirs.feature[0] and ours.missing_left[0] == theirs.missing_go_to_left[0]


@pytest.mark.threaded
@pytest.mark.parametrize("rule", [GrowthRule(), GrowthRule(max_features=2), GrowthRule(splitter="random")])
def test_the_tree_does_not_depend_on_threads(rule):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 6))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=60_000) > 0).astype(int)
    columns, target = Columns.build(X), Target.classes(y, 2)
    rule = GrowthRule(max_depth=6, max_features=rule.max_features, splitter=rule.splitter)
    one, three = (grow(columns, target, rule, seed=7, n_threads=k) for k in (1, 3))
    for name in ("feature", "threshold", "value", "impurity"):
        np.testing.assert_array_equal(getattr(one.tree, name), getattr(three.tree, name))
    np.testing.assert_array_equal(one.leaf_of_row, three.leaf_of_row)
    np.testing.assert_array_equal(one.leaf_of_row, one.tree.apply(X)[:, 0])


def test_rows_that_are_drawn_twice_count_twice():
    X, y, _ = make_table(3, n=200)
    rows = np.random.default_rng(0).integers(0, 200, 200)
    drawn = grow(Columns.build(X), Target.numbers(y), GrowthRule(max_depth=4), rows=rows)
    times = np.bincount(rows, minlength=200).astype(float)
    weighed = grow(Columns.build(X), Target.numbers(y, weight=times), GrowthRule(max_depth=4))
    np.testing.assert_array_equal(drawn.tree.threshold, weighed.tree.threshold)
    assert (drawn.leaf_of_row[times == 0] == -1).all()
    assert drawn.tree.weight[0] == 200
    assert drawn.tree.n_rows[0] == (times > 0).sum()


def test_sparse_tables_give_the_tree_of_dense_ones():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((300, 6)) < 0.3, rng.normal(size=(300, 6)), 0.0)
    X[0, 0] = np.nan
    y = (X[:, 1] - X[:, 2] > 0).astype(int)
    dense = grow(Columns.build(X), Target.classes(y, 2), GrowthRule()).tree
    for sparse in (sp.csr_array(X), sp.csc_array(X)):
        other = grow(Columns.build(sparse), Target.classes(y, 2), GrowthRule()).tree
        np.testing.assert_array_equal(dense.feature, other.feature)
        np.testing.assert_array_equal(dense.threshold, other.threshold)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([-300, 0, 300]))
def test_scales_of_the_target_do_not_change_the_tree(seed, power):
    X, y, _ = make_table(seed)
    plain = grow(Columns.build(X), Target.numbers(y), GrowthRule(max_depth=3)).tree
    scaled = grow(Columns.build(X), Target.numbers(y * 2.0**power), GrowthRule(max_depth=3)).tree
    np.testing.assert_array_equal(plain.threshold, scaled.threshold)
    np.testing.assert_allclose(plain.value, scaled.value / 2.0**power, rtol=1e-12)


def test_few_bins_give_nearly_the_exact_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    y = (X[:, 0] > 0.3) * 2.0 + (X[:, 1] > -0.4) + 0.1 * rng.normal(size=5000)
    tree = grow(Columns.build(X, max_bins=255), Target.numbers(y), GrowthRule(max_depth=2)).tree
    assert tree.feature[0] == 0 and abs(tree.threshold[0] - 0.3) < 0.02
    assert (np.abs(tree.mean(X)[:, 0] - y) < 0.5).mean() > 0.98


def test_gradients_give_the_leaves_of_second_order_boosting():
    X, y, _ = make_table(6, n=80)
    g, h = y - 0.3, np.abs(y) + 0.5
    tree = grow(Columns.build(X), Target.gradients(g, h, reg_lambda=2.0), GrowthRule(max_depth=2)).tree
    rows = rows_of_nodes(tree, X)

    def score(own):
        return g[own].sum() ** 2 / (h[own].sum() + 2.0)

    for i, own in rows.items():
        np.testing.assert_allclose(tree.value[i, 0], -g[own].sum() / (h[own].sum() + 2.0), rtol=1e-12)
    candidates = [
        score(left) + score(~left) for j in range(3) for cut in np.unique(X[:, j])[:-1] for left in [X[:, j] <= cut]
    ]
    np.testing.assert_allclose(score(rows[int(tree.left[0])]) + score(rows[int(tree.right[0])]), max(candidates))


def test_a_minimum_gain_stops_the_tree():
    X, y, _ = make_table(8)
    assert grow(Columns.build(X), Target.numbers(y), GrowthRule(min_gain=1e9)).tree.n_nodes == 1


def test_several_outputs_add_up():
    X, y, w = make_table(9)
    Y = np.column_stack([y, -2 * y])
    both = grow(Columns.build(X), Target.numbers(Y, weight=w), GrowthRule(max_depth=3)).tree
    one = grow(Columns.build(X), Target.numbers(y, weight=w), GrowthRule(max_depth=3)).tree
    np.testing.assert_array_equal(both.feature, one.feature)
    np.testing.assert_allclose(both.value[:, 0], one.value[:, 0], atol=1e-12)
    np.testing.assert_allclose(both.impurity, 2.5 * one.impurity, atol=1e-12)


def test_constant_columns_are_passed_over():
    X = np.zeros((20, 30))
    X[:, 17] = np.arange(20)
    tree = grow(Columns.build(X), Target.numbers(np.arange(20.0)), GrowthRule(max_features=1, max_depth=1)).tree
    assert tree.feature[0] == 17


def test_a_raised_flag_stops_the_growth():
    X, y, _ = make_table(0)
    with pytest.raises(GrowthStopped):
        grow(Columns.build(X), Target.numbers(y), GrowthRule(), stop=np.ones(1, np.int64))


def test_trees_may_grow_side_by_side():
    X, y, _ = make_table(1, n=2000)
    columns, target = Columns.build(X), Target.numbers(y)
    found = {}

    def work(seed):
        found[seed] = grow(columns, target, GrowthRule(max_features=1), seed=seed).tree.threshold

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, threshold in found.items():
        alone = grow(columns, target, GrowthRule(max_features=1), seed=seed).tree.threshold
        np.testing.assert_array_equal(threshold, alone)


def test_monotone_trees_are_monotone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = X[:, 0] + np.sin(4 * X[:, 0]) + rng.normal(size=500)
    rule = GrowthRule(monotonic=np.array([1, 0], np.int8), max_depth=6)
    grid = np.column_stack([np.linspace(-3, 3, 400), np.zeros(400)])
    for target in (Target.numbers(y), Target.numbers(y, criterion="absolute_error"), Target.classes(y > 0, 2)):
        tree = grow(Columns.build(X), target, rule).tree
        assert tree.n_leaves > 4
        assert (np.diff(tree.mean(grid)[:, -1]) >= 0).all()
