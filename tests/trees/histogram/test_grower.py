"""Trees on histograms: against brute force, and the laws that any number of threads and any rounding must keep."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from tests.oracles import histogram_trees as oracle

from learnable.core.errors import ParameterError
from learnable.core.threads import BarrierTeam
from learnable.trees.growth import GrowthStopped
from learnable.trees.histogram.bins import BinnedTable
from learnable.trees.histogram.grower import HistogramGrower, HistogramRule, grow_on_histograms

FIELDS = ("feature", "threshold", "left", "right", "missing_left", "category", "bits", "n_rows", "value", "impurity")


def make(n=400, d=4, seed=0, missing=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = rng.integers(0, 6, n)
    if missing:
        X[rng.random(n) < 0.2, 2] = np.nan
    g = X[:, 0] + (X[:, 1] > 2) * np.nan_to_num(X[:, 2], nan=-1.5) + 0.3 * rng.normal(size=n)
    return X, g, rng.uniform(0.1, 1.0, n)


def codes_of(table):
    return table.columns.T.astype(int)


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("lam", "min_rows"), [(0.0, 1), (1.5, 10)])
def test_a_stump_is_the_exhaustive_best_split(seed, lam, min_rows):
    X, g, h = make(seed=seed)
    table = BinnedTable.build(X, max_bins=16)
    rule = HistogramRule(max_leaf_nodes=2, min_samples_leaf=min_rows, reg_lambda=lam, histogram="float64")
    tree, leaf = grow_on_histograms(table, g, h, rule)
    best, column, left = oracle.best_split(
        codes_of(table), table.bins.n_bins, g, h, lam=lam, min_rows=min_rows, min_hessian=1e-3
    )
    assert tree.feature[0] == column
    assert ((leaf == tree.left[0]) == left).all()
    found = 0.5 * np.dot(tree.weight * tree.impurity, [1, -1, -1])
    assert found == pytest.approx(best, rel=1e-9)
    for node, rows in ((0, slice(None)), (1, left), (2, ~left)):
        assert tree.value[node, 0] == pytest.approx(oracle.value(g[rows], h[rows], lam), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_leafwise_growth_is_greedy(seed):
    X, g, h = make(300, seed=seed)
    table = BinnedTable.build(X, max_bins=12)
    rule = HistogramRule(max_leaf_nodes=6, min_samples_leaf=5, reg_lambda=0.5, gamma=0.1, histogram="float64")
    tree, leaf = grow_on_histograms(table, g, h, rule)
    wanted = oracle.grow_leafwise(
        codes_of(table), table.bins.n_bins, g, h, max_leaves=6, lam=0.5, min_rows=5, gamma=0.1
    )
    pairs = set(zip(leaf.tolist(), wanted.tolist(), strict=True))
    assert len(pairs) == tree.n_leaves == len(set(wanted.tolist()))


@pytest.mark.threaded
@pytest.mark.parametrize("histogram", ["float64", "quantised"])
@pytest.mark.parametrize("d", [3, 20])
def test_any_number_of_threads_gives_one_tree(histogram, d):
    X, g, h = make(6000, d=d)
    rows = np.flatnonzero(np.random.default_rng(1).random(6000) < 0.7)
    table = BinnedTable.build(X)
    trees = []
    for n_threads in (1, 2, 3):
        with BarrierTeam(n_threads) as crew:
            grower = HistogramGrower(table, HistogramRule(max_leaf_nodes=15, histogram=histogram), crew)
            trees.append([grower.grow(g, h, rows=use, seed=7) for use in (None, rows)])
            labels = grower.grow(g, h, rows=rows, seed=7).leaf_of_row
            assert np.array_equal(labels, trees[-1][1].tree.apply(X)[:, 0])
    for other in trees[1:]:
        for one, two in zip(trees[0], other, strict=True):
            assert same(one.tree, two.tree)


@pytest.mark.parametrize("growth", ["leaf", "depth"])
def test_rows_end_where_the_tree_sends_them(growth):
    X, g, h = make(3000)
    table = BinnedTable.build(X, max_bins=40)
    rule = HistogramRule(max_leaf_nodes=None, max_depth=5, min_samples_leaf=30, growth=growth)
    tree, leaf = grow_on_histograms(table, g, h, rule)
    tree.check(X.shape[1], 1)
    assert np.array_equal(tree.apply(X)[:, 0], leaf)
    assert tree.max_depth <= 5
    ends = tree.feature < 0
    assert tree.n_rows[ends].min() >= 30
    assert np.array_equal(np.bincount(leaf, minlength=tree.n_nodes)[ends], tree.n_rows[ends])
    sums = np.bincount(leaf, g, tree.n_nodes), np.bincount(leaf, h, tree.n_nodes)
    assert np.allclose(tree.value[ends, 0], -sums[0][ends] / sums[1][ends], rtol=1e-9)


def test_depthwise_growth_fills_levels_and_equals_leafwise_without_a_limit():
    X, g, h = make(2000)
    table = BinnedTable.build(X)
    unlimited = [
        grow_on_histograms(table, g, h, HistogramRule(None, max_depth=4, growth=growth, histogram="float64")).tree
        for growth in ("leaf", "depth")
    ]
    assert same(*unlimited)
    deep = grow_on_histograms(table, g, h, HistogramRule(8, growth="depth", histogram="float64")).tree
    assert deep.max_depth == 3


def test_missing_values_take_the_better_branch():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    x[:200] = np.nan
    g = np.where(np.isnan(x), -1.0, np.where(x > 0, -1.0, 1.0))
    tree, _ = grow_on_histograms(BinnedTable.build(x[:, None]), g, np.ones(500), HistogramRule(2))
    assert tree.missing_left[0] == 0
    assert abs(tree.threshold[0]) < 0.1
    tree, _ = grow_on_histograms(BinnedTable.build(x[:, None]), -g * (x < 9), np.ones(500), HistogramRule(2))
    known = ~np.isnan(x)
    only = grow_on_histograms(
        BinnedTable.build(np.where(known, 1.0, np.nan)[:, None]), g + known, np.ones(500), HistogramRule(2)
    ).tree
    assert np.isposinf(only.threshold[0])


@pytest.mark.parametrize("histogram", ["float64", "quantised"])
def test_a_category_split_is_the_best_of_all_subsets(histogram):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 7, 600)
    g = rng.normal(size=7)[codes] + 0.01 * rng.normal(size=600)
    h = rng.uniform(0.5, 1.5, 600)
    table = BinnedTable.build(codes[:, None].astype(float), categorical=np.array([True]))
    tree, leaf = grow_on_histograms(table, g, h, HistogramRule(2, min_samples_leaf=1, histogram=histogram))
    found = oracle.gain(g, h, leaf == tree.left[0], 0.0)
    assert found == pytest.approx(oracle.best_subset(codes, g, h, lam=0.0), rel=1e-9)
    assert np.array_equal(tree.apply(codes[:, None].astype(float))[:, 0], leaf)
    unseen = tree.apply(np.array([[9.0], [np.nan]]))[:, 0]
    assert unseen[0] == unseen[1]


def test_many_levels_share_the_rare_bin():
    rng = np.random.default_rng(0)
    codes = np.r_[rng.integers(0, 200, 4000), np.arange(200, 1000)]
    g = np.where(codes % 2 == 0, 1.0, -1.0)
    table = BinnedTable.build(codes[:, None].astype(float), categorical=np.array([True]))
    tree, leaf = grow_on_histograms(table, g, np.ones(len(g)), HistogramRule(2, min_samples_leaf=1))
    assert np.array_equal(tree.apply(codes[:, None].astype(float))[:, 0], leaf)
    common = codes < 200
    assert np.corrcoef(leaf[common] == 1, g[common] > 0)[0, 1] ** 2 == pytest.approx(1.0)


@pytest.mark.parametrize("histogram", ["float64", "quantised"])
def test_monotone_constraints_hold(histogram):
    X, g, h = make(4000, missing=False)
    sign = np.array([1, 0, -1, 0], np.int8)
    rule = HistogramRule(31, monotonic=sign, histogram=histogram)
    tree, _ = grow_on_histograms(BinnedTable.build(X), g, h, rule)
    assert {0, 2} & set(tree.feature.tolist())
    base = X[:50].copy()
    for j in (0, 2):
        curve = []
        for v in np.linspace(-2, 2, 30):
            base[:, j] = v
            curve.append(tree.sum(base)[:, 0])
        assert (np.diff(curve, axis=0) * sign[j] >= 0).all()


def test_interactions_hold_on_every_path():
    X, g, h = make(4000)
    rule = HistogramRule(31, interactions=[{0, 1}])
    tree, _ = grow_on_histograms(BinnedTable.build(X), g, h, rule)
    parent = tree.parents()
    for i in np.flatnonzero(tree.feature < 0):
        used, at = set(), parent[i]
        while at >= 0:
            used.add(int(tree.feature[at]))
            at = parent[at]
        assert used <= {0, 1} or used <= {2, 3}


def test_columns_are_drawn_for_trees_levels_and_nodes():
    X, g, h = make(4000, d=12, missing=False)
    table = BinnedTable.build(X)
    one = HistogramGrower(table, HistogramRule(31, columns_per_tree=1 / 12))
    firsts = {int(np.unique(f[f >= 0]).size) for f in (one.grow(g, h, seed=s).tree.feature for s in range(5))}
    assert firsts <= {0, 1}
    level = grow_on_histograms(table, g, h, HistogramRule(31, columns_per_level=1 / 12), seed=3).tree
    depth = level.depths()
    for k in range(level.max_depth):
        here = level.feature[(depth == k) & (level.feature >= 0)]
        assert len(set(here.tolist())) <= 1
    roots = {
        int(grow_on_histograms(table, g, h, HistogramRule(2, columns_per_node=0.25), seed=s).tree.feature[0])
        for s in range(12)
    }
    assert len(roots) > 2


def test_rounding_loses_nothing_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 8))
    g = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=20_000)
    h = rng.uniform(0.05, 0.25, 20_000)
    table = BinnedTable.build(X)

    def fall(histogram):
        tree, _ = grow_on_histograms(table, g, h, HistogramRule(31, histogram=histogram))
        ends = tree.feature < 0
        return -(tree.weight * tree.impurity)[ends].sum()

    assert fall("quantised") >= 0.995 * fall("float64")


@pytest.mark.parametrize("kind", ["tails", "weights", "one sign"])
def test_unsafe_derivatives_are_not_rounded(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    g, h = X[:, 0] + rng.normal(size=5000), np.ones(5000)
    if kind == "tails":
        g = g + rng.standard_t(0.7, 5000) * 1e3 * (rng.random(5000) < 0.01)
        g[0] = 1e9
    elif kind == "weights":
        w = 10.0 ** rng.uniform(-3, 4, 5000)
        w[:3] = 1e9
        g, h = g * w, h * w
    else:
        g = g + 1e6
    table = BinnedTable.build(X)
    chosen, exact = (
        grow_on_histograms(table, g, h, HistogramRule(8, histogram=histogram)).tree for histogram in ("auto", "float64")
    )
    assert same(chosen, exact)


def test_equal_derivatives_give_one_leaf():
    X, _, _ = make(500)
    table = BinnedTable.build(X)
    for histogram in ("float64", "quantised"):
        tree, leaf = grow_on_histograms(table, np.full(500, 0.3), np.ones(500), HistogramRule(histogram=histogram))
        assert tree.value[0, 0] == pytest.approx(-0.3)
        assert tree.value[leaf, 0] == pytest.approx(-0.3)


def test_memory_that_is_too_small_for_all_histograms_changes_nothing(monkeypatch):
    import learnable.trees.histogram.grower as module

    X, g, h = make(3000)
    table = BinnedTable.build(X)
    rule = HistogramRule(31, histogram="quantised")
    usual = grow_on_histograms(table, g, h, rule).tree
    monkeypatch.setattr(module, "_MOST_POOL_BYTES", 1)
    assert same(usual, grow_on_histograms(table, g, h, rule).tree)


@pytest.mark.threaded
def test_a_raised_flag_stops_all_threads():
    X, g, h = make(2000)
    stop = np.ones(1, np.int64)
    with BarrierTeam(2) as crew:
        grower = HistogramGrower(BinnedTable.build(X), HistogramRule(), crew)
        with pytest.raises(GrowthStopped):
            grower.grow(g, h, stop=stop)
        assert grower.grow(g, h).tree.n_leaves > 1
        stop[0] = 0
        timer = threading.Timer(0.2, lambda: stop.__setitem__(0, 1))
        timer.start()
        begin = time.monotonic()
        stopped = False
        while not stopped and time.monotonic() < begin + 30:
            try:
                grower.grow(g, h, stop=stop)
            except GrowthStopped:
                stopped = True
        timer.join()
        assert stopped


def test_bad_rules_are_refused():
    table = BinnedTable.build(np.zeros((3, 1)))
    with pytest.raises(ParameterError, match="growth must be"):
        HistogramGrower(table, HistogramRule(growth="width"))
    with pytest.raises(ParameterError, match="histogram must be"):
        HistogramGrower(table, HistogramRule(histogram="int8"))
    with pytest.raises(ParameterError, match="rows must not be empty"):
        HistogramGrower(table, HistogramRule()).grow(np.zeros(3), np.ones(3), rows=np.zeros(0, int))


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_and_constant_tables(n):
    tree, leaf = grow_on_histograms(BinnedTable.build(np.ones((n, 2))), np.ones(n), np.ones(n), HistogramRule())
    assert tree.n_nodes == 1
    assert leaf.tolist() == [0] * n
