"""Weakest-link pruning: nested, minimal by brute force, and scikit-learn's."""

from itertools import pairwise

import numpy as np
import pytest
import sklearn.tree
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from tests.oracles.pruning import smallest_minimiser

import learnable as ln
from learnable.core.errors import ParameterError
from learnable.trees import Columns, GrowthRule, grow, prune_to, pruning_path
from learnable.trees.criteria import Target
from learnable.trees.pruning.cost_complexity import alpha_splits, choose_alpha, cut, fold_losses, node_costs


def classes_tree(X, y, **rule):
    codes = np.unique(y, return_inverse=True)[1]
    return grow(Columns.build(X), Target.classes(codes, codes.max() + 1), GrowthRule(**rule)).tree


def random_tree(seed, n=40, levels=5, **rule):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, size=(n, 3)).astype(float)
    y = np.r_[0, 1, rng.integers(0, 2, size=n - 2)]
    return classes_tree(X, y, **rule), X, y


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    cost=st.sampled_from(["impurity", "misclassification"]),
    alpha=st.floats(0, 0.2, allow_subnormal=False),
)
def test_each_tree_of_the_path_is_the_smallest_minimiser(seed, cost, alpha):
    tree, _, _ = random_tree(seed, n=24, max_depth=4)
    costs, path = node_costs(tree, cost), pruning_path(tree, cost)
    for level in [*path.alphas.tolist(), alpha]:
        least, size = smallest_minimiser(tree.left, tree.right, costs, level)
        pruned = prune_to(tree, cost, level)
        pruned.check()
        value = node_costs(pruned, cost)[pruned.left < 0].sum() + level * pruned.n_leaves
        assert value == pytest.approx(least, abs=1e-12)
        assert pruned.n_leaves == size
    for level, value, leaves in zip(path.alphas, path.costs, path.n_leaves, strict=True):
        least, _ = smallest_minimiser(tree.left, tree.right, costs, level)
        assert value + level * leaves == pytest.approx(least, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), cost=st.sampled_from(["impurity", "misclassification"]))
def test_the_path_is_nested_and_lambda_rises(seed, cost):
    tree, _, _ = random_tree(seed, n=200, levels=30)
    path = pruning_path(tree, cost)
    assert path.alphas[0] == 0 and (np.diff(path.alphas) >= 0).all()
    assert (np.diff(path.n_leaves) < 0).all() and path.n_leaves[-1] == 1
    assert (np.diff(path.costs) >= -1e-12).all()
    kept = [set(np.flatnonzero(~_gone(tree, path, alpha)).tolist()) for alpha in np.unique(path.alphas)]
    assert all(small <= large for large, small in pairwise(kept))


def _gone(tree, path, alpha):
    gone, parent = np.zeros(tree.n_nodes, dtype=bool), tree.parents()
    for t in range(1, tree.n_nodes):
        gone[t] = gone[parent[t]] or path.collapse[parent[t]] <= alpha
    return gone


@pytest.mark.parametrize("data", [load_iris, load_breast_cancer, load_diabetes])
def test_path_and_trees_are_scikit_learns(data):
    X, y = data(return_X_y=True)
    model = sklearn.tree.DecisionTreeRegressor if data is load_diabetes else sklearn.tree.DecisionTreeClassifier
    theirs = model(random_state=0).fit(X, y)
    tree = as_trees(theirs.tree_)
    path, wanted = pruning_path(tree), theirs.cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(path.alphas, wanted.ccp_alphas, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path.costs, wanted.impurities, rtol=1e-9, atol=1e-12)
    for alpha in np.quantile(path.alphas, [0.2, 0.6, 0.9]) * (1 + 1e-9):
        pruned = prune_to(tree, "impurity", alpha)
        other = model(random_state=0, ccp_alpha=alpha).fit(X, y).tree_
        np.testing.assert_array_equal(pruned.feature >= 0, other.feature >= 0)
        np.testing.assert_allclose(pruned.value, other.value.reshape(pruned.n_nodes, -1))


def as_trees(tree):
    """Return scikit-learn's arrays in our layout."""
    from learnable.trees import Trees

    n, leaf = tree.node_count, tree.children_left < 0
    return Trees(
        start=np.array([0, n]),
        feature=np.where(leaf, -1, tree.feature).astype(np.int32),
        threshold=np.where(leaf, 0.0, tree.threshold),
        left=tree.children_left.astype(np.int32),
        right=tree.children_right.astype(np.int32),
        missing_left=np.zeros(n, np.uint8),
        category=np.full(n, -1),
        bits=np.zeros(0, np.uint32),
        impurity=tree.impurity.copy(),
        n_rows=tree.n_node_samples.astype(np.int64),
        weight=tree.weighted_n_node_samples.copy(),
        value=tree.value.reshape(n, -1).copy(),
    )


def test_steps_that_only_rounding_separates_are_one():
    # Four equal quarters: collapsing either half costs the same.
    X = np.arange(8.0)[:, None]
    tree = classes_tree(X, [0, 0, 1, 1, 0, 0, 1, 1])
    for cost in ("impurity", "misclassification"):
        assert len(np.unique(pruning_path(tree, cost).alphas)) <= 3
    third = grow(Columns.build(X), Target.numbers(np.array([0, 0, 1, 1, 4, 4, 5, 5]) / 3), GrowthRule()).tree
    path = pruning_path(third)
    assert path.n_leaves.tolist() == [4, 3, 2, 1] and len(np.unique(path.alphas)) == 3


def test_a_tree_with_categories_and_missing_values_is_cut_as_a_whole():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 40, size=300).astype(float), rng.normal(size=300)])
    X[rng.random(300) < 0.1, 1] = np.nan
    y = ((X[:, 0] % 3 == 0) ^ (rng.random(300) < 0.2)).astype(int)
    tree = grow(Columns.build(X, categorical=[True, False]), Target.classes(y, 2), GrowthRule()).tree
    path = pruning_path(tree)
    for alpha in np.unique(path.alphas)[1::5]:
        pruned = prune_to(tree, "impurity", alpha)
        pruned.check(2)
        # Rows end in the node that was collapsed on their way.
        gone = _gone(tree, path, alpha)
        at = tree.apply(X)[:, 0]
        parent = tree.parents()
        while gone[at].any():
            at = np.where(gone[at], parent[at], at)
        np.testing.assert_array_equal(pruned.value[pruned.apply(X)[:, 0]], tree.value[at])


def test_cutting_nothing_and_cutting_the_root():
    tree, X, _ = random_tree(0)
    same = cut(tree, np.zeros(tree.n_nodes, dtype=bool))
    np.testing.assert_array_equal(same.apply(X), tree.apply(X))
    root = cut(tree, np.ones(tree.n_nodes, dtype=bool))
    assert root.n_nodes == 1 and root.feature[0] == -1
    assert pruning_path(root).alphas.tolist() == [0.0]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rule=st.sampled_from(["min", "1se"]))
def test_the_choice_is_that_of_pruning_and_scoring_each_fold(seed, rule):
    tree, X, y = random_tree(seed, n=90, levels=12)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, size=90)
    folds, path = np.arange(90) % 5, pruning_path(tree)
    alphas = np.unique(path.alphas)
    between = np.r_[np.sqrt(alphas[:-1] * alphas[1:]), np.inf]
    parts, wanted = [], np.empty((len(alphas), 5))
    for fold in range(5):
        train, test = folds != fold, folds == fold
        other = classes_tree(X[train], y[train])

        def loss(rows, nodes, other=other, test=test):
            return (np.argmax(other.value, axis=1)[nodes] != y[test][rows]).astype(float)

        losses, total = fold_losses(other, X[test], loss, weight[test])
        parts.append((other, pruning_path(other), losses, total))
        for k, level in enumerate(between):
            small = prune_to(other, "impurity", level)
            wrong = np.argmax(small.value[small.apply(X[test])[:, 0]], axis=1) != y[test]
            wanted[k, fold] = np.average(wrong, weights=weight[test])
    choice = choose_alpha(path, parts, rule)
    np.testing.assert_allclose(choice.errors, wanted, atol=1e-12)
    mean = wanted.mean(axis=1)
    bound = mean.min() + 1e-12
    if rule == "1se":
        best = int(np.argmin(mean))
        bound += wanted[best].std(ddof=1) / np.sqrt(5)
    assert choice.alpha == alphas[np.flatnonzero(mean <= bound)[-1]]
    assert choice.rule == rule


def test_folds_number_the_rows_as_they_were_given():
    class Rows:
        n_rows, kept = 4, np.array([True, False, True, True, True])

    splits = alpha_splits("owner", [([0, 1, 2], [3, 4])], Rows())
    assert [part.tolist() for part in splits[0]] == [[0, 1], [2, 3]]
    assert len(alpha_splits("owner", 2, Rows(), np.array([0, 1, 0, 1]))) == 2
    with pytest.raises(ParameterError, match="owner: cv=7 does not work here"):
        alpha_splits("owner", 7, Rows())


def test_costs_are_checked():
    tree, _, _ = random_tree(1)
    for wrong in ("gini", np.ones(3), np.full(tree.n_nodes, np.nan)):
        with pytest.raises(ParameterError, match="cost must be"):
            node_costs(tree, wrong)


def test_an_estimator_chooses_its_pruning(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    best, simple = (ln.DecisionTreeClassifier(ccp_alpha=rule).fit(X, y) for rule in ("cv", "cv-1se"))
    assert simple.get_n_leaves() <= best.get_n_leaves() < ln.DecisionTreeClassifier().fit(X, y).get_n_leaves()
    for model, rule in ((best, "min"), (simple, "1se")):
        assert model.alpha_choice_.rule == rule and model.alpha_choice_.errors.shape[1] == 5
        assert model.ccp_alpha_ in model.alpha_choice_.alphas
        same = ln.DecisionTreeClassifier(ccp_alpha=model.ccp_alpha_ * (1 + 1e-9)).fit(X, y)
        np.testing.assert_array_equal(same.tree_.feature, model.tree_.feature)
        assert ln.verify(model, X, y)
    ln.save(best, tmp_path / "m.safetensors")
    loaded = ln.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), best.predict_proba(X))


def test_grown_by_gini_and_pruned_by_error():
    X, y = load_breast_cancer(return_X_y=True)
    model = ln.DecisionTreeClassifier(prune_criterion="misclassification")
    path = model.cost_complexity_pruning_path(X, y)
    tree = ln.DecisionTreeClassifier().fit(X, y).trees_
    np.testing.assert_array_equal(path.ccp_alphas, pruning_path(tree, "misclassification").alphas)
    assert path.impurities[0] == 0 and path.impurities[-1] == pytest.approx(212 / 569)  # the malignant ones
    pruned = model.set_params(ccp_alpha=0.01).fit(X, y)
    errors = (pruned.predict(X) != y).mean() + 0.01 * pruned.get_n_leaves()
    by_gini = ln.DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y)
    assert errors <= (by_gini.predict(X) != y).mean() + 0.01 * by_gini.get_n_leaves() + 1e-12


def test_regression_and_several_targets():
    X, y = load_diabetes(return_X_y=True)
    one = ln.DecisionTreeRegressor(ccp_alpha="cv-1se").fit(X, y)
    assert 1 < one.get_n_leaves() < 20
    both = ln.DecisionTreeClassifier(ccp_alpha="cv", prune_criterion="misclassification")
    both.fit(X, np.column_stack([y > 100, y > 200]))
    assert 1 < both.get_n_leaves() < 100
