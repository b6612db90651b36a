"""Parts that add their sums grow the tree of the whole table."""

import numpy as np
import pytest
from tests import worlds

from learnable.trees.histogram.bins import BinnedTable
from learnable.trees.histogram.grower import HistogramGrower, HistogramRule
from learnable.trees.histogram.merged import MergedGrower
from learnable.trees.histogram.walker import CodeWalker

NAMES = ("feature", "threshold", "left", "right", "missing_left", "value", "impurity", "n_rows", "category", "bits")
RULES = {
    "leaf-wise": {},
    "depth": {"growth": "depth", "max_depth": 4},
    "signs": {"monotonic": np.array([1, 0, -1, 0, 0], np.int8)},
    "drawn columns": {"columns_per_node": 0.5, "columns_per_tree": 0.7},
    "interactions": {"interactions": [[0, 1], [2, 3]]},
    "many leaves": {"max_leaf_nodes": None, "min_samples_leaf": 50},
    "float64": {"histogram": "float64"},
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 12, len(X))
    g = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.sin(X[:, 3]) + rng.normal(size=len(X))
    binned = BinnedTable.build(X, categorical=np.array([0, 0, 0, 1, 0], bool))
    return X, binned, g, rng.random(len(X)) + 0.5


def part_of(binned, first, last):
    return BinnedTable(
        binned.bins, np.ascontiguousarray(binned.rows[first:last]), np.ascontiguousarray(binned.columns[:, first:last])
    )


def grow_in_parts(table, rule, cuts, rows):
    _, binned, g, h = table

    def work(world):
        first, last = cuts[world.rank], cuts[world.rank + 1]
        own = None if rows is None else rows[(rows >= first) & (rows < last)] - first
        grower = MergedGrower(part_of(binned, first, last), rule, world)
        return grower.grow(g[first:last], h[first:last], rows=own, seed=3)

    return worlds.run(len(cuts) - 1, work)


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("rows", [None, np.arange(100, 2000, 2)], ids=["all rows", "rows of the first part"])
def test_parts_grow_the_tree_of_the_whole_table(table, rule, rows):
    rule = HistogramRule(**RULES[rule])
    _, binned, g, h = table
    whole = HistogramGrower(binned, rule).grow(g, h, rows=rows, seed=3)
    assert whole.tree.n_leaves > 4
    for cuts in ([0, 6000], [0, 2500, 6000], [0, 17, 4100, 6000]):
        found = grow_in_parts(table, rule, cuts, rows)
        for part in found:
            for name in NAMES:
                np.testing.assert_array_equal(getattr(part.tree, name), getattr(whole.tree, name), err_msg=name)
        np.testing.assert_array_equal(np.concatenate([part.leaf_of_row for part in found]), whole.leaf_of_row)


def test_a_finished_tree_walks_on_codes_as_on_rows(table):
    X, binned, g, h = table
    tree = HistogramGrower(binned, HistogramRule()).grow(g, h).tree
    scores = np.zeros(len(X))
    CodeWalker(binned).add(tree, scores)
    np.testing.assert_array_equal(scores, tree.sum(X)[:, 0])


def test_several_leaves_are_divided_in_one_exchange(table):
    _, binned, g, h = table

    def work(world):
        sizes = []
        add = world.sum_at_root

        def counted(x):
            sizes.append(len(x))
            return add(x)

        world.sum_at_root = counted
        first, last = 3000 * world.rank, 3000 * (world.rank + 1)
        grower = MergedGrower(part_of(binned, first, last), HistogramRule(max_leaf_nodes=31), world)
        return grower.grow(g[first:last], h[first:last], seed=3).tree.n_leaves, sizes

    for n_leaves, sizes in worlds.run(2, work):
        assert n_leaves == 31
        assert len(sizes) <= 18
        one = 256 * binned.bins.n_stored
        assert sum(sizes) <= (31 + 8) * (one + 1)  # at most a few sums of leaves that are not divided in the end


def test_the_last_level_is_not_summed(table):
    _, binned, g, h = table
    sizes = []

    class Alone(worlds.ThreadWorld):
        def __init__(self):
            self.rank, self.size = 0, 1

        def sum(self, x):
            return x

        most = from_root = sum

        def sum_at_root(self, x):
            sizes.append(len(x))
            return x

    rule = HistogramRule(growth="depth", max_depth=3, max_leaf_nodes=None)
    assert MergedGrower(binned, rule, Alone()).grow(g, h, seed=3).tree.n_leaves == 8
    one = 256 * binned.bins.n_stored
    assert (
        sum(sizes) == 4 * one + 8
    )  # the first node, one child of each of the first three; seven counts of rows, and 0


@pytest.mark.parametrize("rule", ["leaf-wise", "depth", "float64"])
def test_histograms_that_give_way_are_summed_again(table, rule, monkeypatch):
    _, binned, g, h = table
    rule = HistogramRule(**RULES[rule])
    whole = HistogramGrower(binned, rule).grow(g, h, seed=3)
    monkeypatch.setattr("learnable.trees.histogram.grower._MOST_POOL_BYTES", 1)  # room for four
    for part in grow_in_parts(table, rule, [0, 2500, 6000], None):
        for name in NAMES:
            np.testing.assert_array_equal(getattr(part.tree, name), getattr(whole.tree, name), err_msg=name)
