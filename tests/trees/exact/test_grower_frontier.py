"""Best-first growth: the walk by largest gain, whatever order the nodes were divided in."""

import heapq

import numpy as np
import pytest

from learnable.trees import Columns, GrowthRule, grow
from learnable.trees.criteria import Target


def gains_of(tree):
    mass = tree.weight * tree.impurity
    inner = tree.feature >= 0
    return np.where(inner, mass - mass[tree.left] - mass[tree.right], -np.inf)


@pytest.mark.parametrize("leaves", [2, 3, 7, 20, 500])
def test_the_tree_is_the_walk_through_the_whole_tree(leaves):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.exp(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=400)  # skewed: some branches are much deeper
    columns, target = Columns.build(X), Target.numbers(y)
    whole = grow(columns, target, GrowthRule(min_samples_leaf=5)).tree
    part = grow(columns, target, GrowthRule(min_samples_leaf=5, max_leaf_nodes=leaves)).tree
    gain = gains_of(whole)
    heap, order, n_leaves = [(-gain[0], 0)], [0], 1
    while heap and n_leaves < leaves:
        node = heapq.heappop(heap)[1]
        n_leaves += 1
        for child in (int(whole.left[node]), int(whole.right[node])):
            order.append(child)
            if whole.feature[child] >= 0:
                heapq.heappush(heap, (-gain[child], child))
    assert part.n_leaves == n_leaves
    np.testing.assert_array_equal(part.n_rows, whole.n_rows[order])
    np.testing.assert_array_equal(part.value, whole.value[order])
    part.check(3)
