"""The random splitter over numbers: the tree is the one that the growth loop over ranks draws."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from learnable.trees import Columns, GrowthRule, grow
from learnable.trees.criteria import Target
from learnable.trees.growth import GrowthStopped
from learnable.trees.random.grower import Values, read_table, takes_values

RANDOM = GrowthRule(splitter="random")
STRUCTURE = ("feature", "threshold", "left", "right", "missing_left", "n_rows")


def make_table(seed, n, d):
    """Return columns of all kinds (few values, one value, normal, heavy tails) and whole numbers to be predicted."""
    rng = np.random.default_rng(seed)
    kinds = [rng.integers(0, 3, n), np.full(n, 2.5), rng.normal(size=n), rng.standard_cauchy(n) ** 3]
    X = np.column_stack([rng.permutation(kinds[j % 4]) for j in range(d)]).astype(float)
    y = np.rint(3 * (X[:, 0] > 1) + 2 * np.tanh(X[:, d - 1]) + rng.normal(size=n))
    return X, y, rng


def target_of(kind, y, weight):
    if kind == "squared_error":
        return Target.numbers(y, weight=weight)
    criterion, m = kind.split()
    return Target.classes(np.clip(y, 0, int(m) - 1).astype(int), int(m), criterion=criterion, weight=weight)


def assert_same_up_to_ties(one, other):
    """Walk down both trees; where they ask differently the gains must be equal, and what is below may differ."""
    stack, a, b = [(0, 0)], one.tree, other.tree
    while stack:
        i, k = stack.pop()
        assert a.n_rows[i] == b.n_rows[k] and (a.feature[i] < 0) == (b.feature[k] < 0)
        np.testing.assert_allclose(a.impurity[i], b.impurity[k], atol=1e-12)
        if a.feature[i] < 0:
            continue
        pairs = [(a.left[i], b.left[k]), (a.right[i], b.right[k])]
        if (a.feature[i], a.threshold[i]) == (b.feature[k], b.threshold[k]):
            stack += pairs
        else:
            after = np.array([(a.weight[p] * a.impurity[p], b.weight[q] * b.impurity[q]) for p, q in pairs])
            np.testing.assert_allclose(*after.sum(axis=0), atol=1e-9)


def assert_same_tree(one, other):
    for name in STRUCTURE:
        np.testing.assert_array_equal(getattr(one.tree, name), getattr(other.tree, name), err_msg=name)
    for name in ("value", "impurity", "weight"):
        np.testing.assert_allclose(getattr(one.tree, name), getattr(other.tree, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(one.leaf_of_row, other.leaf_of_row)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    d=st.integers(1, 9),
    kind=st.sampled_from(["squared_error", "gini 2", "gini 4", "entropy 2", "entropy 4", "gini 12"]),
    weights=st.sampled_from(["none", "whole", "some zero", "halves"]),
    max_features=st.integers(1, 9),
    min_leaf=st.integers(1, 4),
    max_depth=st.sampled_from([None, 2, 5]),
    min_decrease=st.sampled_from([0.0, 0.02]),
)
def test_the_tree_is_that_of_the_loop_over_ranks(
    seed, n, d, kind, weights, max_features, min_leaf, max_depth, min_decrease
):
    X, y, rng = make_table(seed, n, d)
    weight = {"none": None, "whole": rng.integers(1, 5, n), "some zero": rng.integers(0, 2, n)}.get(weights)
    if weights == "halves" and (kind == "gini 2" or kind == "squared_error"):
        weight = rng.integers(1, 5, n) / 2
    if weight is not None and not weight.any():
        weight = None
    target = target_of(kind, y, weight)
    rule = GrowthRule(
        splitter="random",
        max_features=min(max_features, d),
        min_samples_leaf=min_leaf,
        min_weight_leaf=1.5 if min_leaf == 2 else 0.0,
        max_depth=max_depth,
        min_impurity_decrease=min_decrease,
    )
    ours = grow(Values.build(X), target, rule, seed=seed)
    ours.tree.check(d)
    # Sums of whole numbers and halves are exact in any order; logarithms are not.
    assert_same = assert_same_up_to_ties if kind.startswith("entropy") else assert_same_tree
    assert_same(ours, grow(Columns.build(X), target, rule, seed=seed))


@pytest.mark.parametrize("shape", [(4000, 300), (3000, 9), (500, 400)])  # both copies of rows, one, none
@pytest.mark.parametrize("kind", ["gini 2", "gini 3"])
def test_copies_of_rows_change_nothing(shape, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=shape[0]), [-0.5, 0.5])
    target, rule = target_of(kind, y, None), GrowthRule(splitter="random", max_features=20 if shape[1] == 300 else 3)
    ours = grow(Values.build(X), target, rule, seed=3)
    assert_same_tree(ours, grow(Columns.build(X), target, rule, seed=3))
    np.testing.assert_array_equal(ours.leaf_of_row, ours.tree.apply(X)[:, 0])


def test_rows_that_are_drawn_twice_count_twice():
    X, y, rng = make_table(1, 300, 6)
    rows = rng.integers(0, 300, 300)
    drawn = grow(Values.build(X), Target.numbers(y), RANDOM, rows=rows, seed=1)
    assert_same_tree(drawn, grow(Columns.build(X), Target.numbers(y), RANDOM, rows=rows, seed=1))
    assert (drawn.leaf_of_row[np.setdiff1d(np.arange(300), rows)] == -1).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([-900, 900]))
def test_scales_of_columns_do_not_change_the_tree(seed, power):
    X, y, _ = make_table(seed, 50, 3)
    plain, scaled = (grow(Values.build(table), Target.numbers(y), RANDOM, seed=seed) for table in (X, X * 2.0**power))
    np.testing.assert_array_equal(plain.tree.feature, scaled.tree.feature)
    np.testing.assert_allclose(plain.tree.threshold * 2.0**power, scaled.tree.threshold, rtol=1e-12)


def test_memory_serves_one_tree_after_the_other():
    X, y, _ = make_table(2, 400, 5)
    values = Values.build(X)
    few, several = GrowthRule(splitter="random", max_features=2), target_of("gini 4", y, None)
    first = grow(values, Target.numbers(y), RANDOM, seed=1)
    kept = first.tree.threshold.copy()
    grow(values, several, few, seed=2)
    grow(values, Target.numbers(-y), RANDOM, rows=np.arange(7), seed=3)
    assert_same_tree(first, grow(values, Target.numbers(y), RANDOM, seed=1))
    np.testing.assert_array_equal(kept, first.tree.threshold)


def test_trees_may_grow_side_by_side():
    X, y, _ = make_table(3, 3000, 5)
    values, target, found = Values.build(X), Target.numbers(y), {}

    def work(seed):
        found[seed] = grow(values, target, RANDOM, seed=seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, grown in found.items():
        assert_same_tree(grown, grow(Values.build(X), target, RANDOM, seed=seed))


def test_a_raised_flag_stops_the_growth():
    X, y, _ = make_table(0, 50, 2)
    with pytest.raises(GrowthStopped):
        grow(Values.build(X), Target.numbers(y), RANDOM, stop=np.ones(1, np.int64))


def test_other_tables_targets_and_rules_get_codes():
    X, y, _ = make_table(0, 50, 3)
    numbers, gaps = Target.numbers(y), np.where(X > 2, np.nan, X)
    options = {"max_bins": None, "categorical": None, "n_threads": 1, "owner": "test"}
    for accepted in (numbers, target_of("gini 2", y, None), target_of("entropy 4", y, None)):
        assert isinstance(read_table(X, accepted, RANDOM, **options), Values)
        assert isinstance(read_table(np.float32(X), accepted, RANDOM, **options), Values)
        assert isinstance(read_table(X, accepted, GrowthRule(), **options), Columns)
    assert isinstance(read_table(X, numbers, RANDOM, **options | {"max_bins": 9}), Columns)
    category = np.array([True, False, False])
    assert isinstance(read_table(np.abs(np.rint(X)), numbers, RANDOM, **options | {"categorical": category}), Columns)
    for table in (gaps, sp.csr_array(X)):
        assert not takes_values(table, numbers, RANDOM)
    for target in (Target.numbers(np.abs(y), criterion="poisson"), Target.numbers(np.c_[y, y])):
        assert not takes_values(X, target, RANDOM)
    rising = np.array([1, 0, 0], np.int8)
    for rule in (GrowthRule(splitter="random", max_leaf_nodes=4), GrowthRule(splitter="random", monotonic=rising)):
        assert not takes_values(X, numbers, rule)
