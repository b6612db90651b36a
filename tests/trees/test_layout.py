"""Flat arrays of trees: walks, sums, files, and what a hostile file cannot do."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.trees import rows_of_nodes

from learnable.core.errors import ModelFileError
from learnable.trees import Columns, GrowthRule, Trees, grow
from learnable.trees.criteria import Target
from learnable.trees.layout import concatenate


def make_tree(seed=0, n=300, categorical=False, **rule):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 40, n), rng.normal(size=(n, 2))]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.isin(X[:, 0], [3, 17, 33]) + np.nan_to_num(X[:, 1]) + 0.1 * rng.normal(size=n)
    columns = Columns.build(X, categorical=np.array([categorical, False, False]))
    return grow(columns, Target.numbers(y), GrowthRule(max_depth=6, **rule)).tree, X


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("n", [20, 2000])
def test_walks_end_where_the_questions_lead(categorical, n):
    tree, _ = make_tree(categorical=categorical)
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 60, n), rng.normal(size=(n, 2))]).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    wanted = np.empty(n, int)
    for node, rows in rows_of_nodes(tree, X).items():
        if tree.feature[node] < 0:
            wanted[rows] = node
    np.testing.assert_array_equal(tree.apply(X)[:, 0], wanted)
    np.testing.assert_array_equal(tree.sum(X), tree.value[wanted])
    np.testing.assert_array_equal(tree.apply(sp.csr_array(X))[:, 0], wanted)
    np.testing.assert_array_equal(tree.apply(np.asfortranarray(X))[:, 0], wanted)
    path, start = tree.decision_path(X)
    assert start.tolist() == [0, tree.n_nodes]
    np.testing.assert_array_equal(np.diff(path.indptr) - 1, tree.depths()[wanted])
    assert all(path[i, wanted[i]] == 1 for i in range(20))


def test_float32_rows_are_compared_as_they_are():
    tree, X = make_tree()
    X = X.astype(np.float32)
    np.testing.assert_array_equal(tree.apply(X), tree.apply(X.astype(np.float64)))


def test_joined_trees_are_the_trees():
    parts = [make_tree(seed, categorical=seed % 2 == 0)[0] for seed in range(4)]
    X = make_tree(9)[1]
    joined = concatenate(parts)
    joined.check(3)
    assert joined.n_trees == 4 and joined.n_leaves == sum(part.n_leaves for part in parts)
    assert joined.max_depth == max(part.max_depth for part in parts)
    for t, part in enumerate(parts):
        np.testing.assert_array_equal(joined.apply(X)[:, t], part.apply(X)[:, 0])
        for field in fields(Trees):
            np.testing.assert_array_equal(getattr(joined.tree(t), field.name), getattr(part, field.name))
    np.testing.assert_allclose(joined.mean(X), sum(part.sum(X) for part in parts) / 4)
    importances = joined.feature_importances(3)
    np.testing.assert_allclose(importances.sum(), 1.0)
    for jobs in (1, 2):
        np.testing.assert_array_equal(joined.sum(np.tile(X, (40, 1)), jobs)[: len(X)], joined.sum(X))


def damaged(tree):
    """Yield trees each of which breaks one rule."""

    def at(name, i, value):
        array = getattr(tree, name).copy()
        array[i] = value
        return replace(tree, **{name: array})

    inner = int(np.flatnonzero(tree.feature >= 0)[-1])
    leaf = int(np.flatnonzero(tree.feature < 0)[0])
    yield at("left", inner, 0)
    yield at("left", inner, tree.n_nodes)
    yield at("right", inner, -5)
    yield at("right", 0, tree.left[0])
    yield at("left", leaf, tree.n_nodes - 1)
    yield at("feature", 0, 3)
    yield at("feature", 0, -7)
    yield at("feature", leaf, 0)
    yield at("threshold", 0, np.nan)
    yield at("missing_left", 0, 2)
    yield at("value", 0, np.inf)
    yield at("weight", 0, 0.0)
    yield at("start", 1, tree.n_nodes + 1)
    yield at("category", 0, 10**12)
    yield at("category", leaf, 0)
    yield replace(tree, left=tree.left[:-1])
    yield replace(tree, left=tree.left.astype(np.int64))
    yield replace(tree, threshold=np.asfortranarray(np.ones((2, tree.n_nodes)))[0])
    yield replace(tree, bits=tree.bits[:-1])
    if (tree.category >= 0).any():
        yield at("bits", int(tree.category[tree.category >= 0][0]), 2**31)


def test_a_damaged_tree_is_refused():
    tree, _ = make_tree(categorical=True)
    tree.check(3, 1)
    cases = list(damaged(tree))
    assert len(cases) == 20
    for number, case in enumerate(cases):
        with pytest.raises(ModelFileError, match="the trees are damaged"):
            case.check(3, 1)
        assert number >= 0


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_passes_the_check_can_be_walked(data):
    """Random integers in the arrays: either refused, or every walk ends in a leaf of its tree."""
    n = data.draw(st.integers(1, 7))

    def draw(low, high):
        return np.array(data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))

    n_bits = data.draw(st.integers(0, 3))
    bits = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_bits, max_size=n_bits)), dtype=np.uint32)
    tree = Trees(
        np.array([0, n], np.int64),
        draw(-2, 2).astype(np.int32),
        draw(-1, 1).astype(float),
        draw(-1, n).astype(np.int32),
        draw(-1, n).astype(np.int32),
        draw(0, 1).astype(np.uint8),
        draw(-1, 2).astype(np.int64),
        bits,
        np.zeros(n),
        np.ones(n, np.int64),
        np.ones(n),
        np.ones((n, 1)),
    )
    try:
        tree.check(2, 1)
    except ModelFileError:
        return
    X = np.array([[0.0, np.nan], [40.0, -1.0], [-3.0, 0.5]])
    leaves = tree.apply(X)[:, 0]
    assert (tree.feature[leaves] < 0).all()


def test_a_deep_tree_is_checked_in_linear_time():
    n = 200_001  # a chain
    feature = np.where(np.arange(n) % 2 == 0, 0, -1).astype(np.int32)
    feature[-1] = -1
    left = np.where(feature >= 0, np.arange(n) + 1, -1).astype(np.int32)
    right = np.where(feature >= 0, np.arange(n) + 2, -1).astype(np.int32)
    tree = Trees(
        np.array([0, n]), feature, np.zeros(n), left, right, np.zeros(n, np.uint8), np.full(n, -1),
        np.zeros(0, np.uint32), np.zeros(n), np.ones(n, np.int64), np.ones(n), np.ones((n, 1)),
    )  # fmt: skip
    tree.check(1)
    assert tree.apply(np.ones((1, 1)))[0, 0] == n - 1
