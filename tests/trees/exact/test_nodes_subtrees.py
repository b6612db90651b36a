"""Subtrees grown in one kernel are those of the growth loop, bit by bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from learnable.trees import Columns, GrowthRule, grow
from learnable.trees.criteria import Target
from learnable.trees.exact import workspace
from learnable.trees.exact.workspace import Workspace
from learnable.trees.growth import GrowthStopped

RULES = {
    "all columns": GrowthRule(),
    "drawn columns": GrowthRule(max_features=3),
    "limits": GrowthRule(max_depth=5, min_samples_split=9, min_samples_leaf=3, min_weight_leaf=2.5),
    "least decrease": GrowthRule(min_impurity_decrease=0.01),
    "random": GrowthRule(splitter="random", max_features=4),
}


def make_table(missing=False):
    """Numbers, few values, almost always zero, and columns that are constant in most of the rows."""
    rng = np.random.default_rng(5)
    X = np.where(rng.random((300, 12)) < 0.8, 0.0, rng.integers(1, 4, (300, 12)))
    X[:, :4] = rng.normal(size=(300, 4))
    X[:, 4] = 1.0
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 7]) + 0.5 * rng.normal(size=300)
    return X, y, rng.integers(0, 4, 300) / 2.0


def targets(y, weight):
    codes = np.digitize(y, [-0.3, 0.8])
    yield "gini of two", Target.classes((y > 0).astype(int), 2, weight=weight)
    yield "gini", Target.classes(codes, 3, weight=weight)
    yield "entropy", Target.classes(codes, 3, criterion="entropy", weight=weight)
    yield "misclassification", Target.classes(codes, 3, criterion="misclassification", weight=weight)
    yield "outputs", Target.classes(np.column_stack([codes, y > 0]), [3, 2], weight=weight)
    yield "squared", Target.numbers(y, weight=weight)
    yield "two numbers", Target.numbers(np.column_stack([y, y**2]), weight=weight)
    yield "poisson", Target.numbers(np.abs(y), criterion="poisson", weight=weight)
    yield "gradients", Target.gradients(y - y.mean(), 0.1 + y**2, reg_lambda=1.0)


def by_levels(monkeypatch, *arguments, **keywords):
    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "takes_subtrees", lambda self, n_open: False)
        return grow(*arguments, **keywords)


def assert_same(a, b):
    for field, own in vars(a.tree).items():
        np.testing.assert_array_equal(own, getattr(b.tree, field), err_msg=field)
    np.testing.assert_array_equal(a.leaf_of_row, b.leaf_of_row)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("form", ["numbers", "missing", "sparse", "bins", "weights"])
@pytest.mark.sampled(12)
def test_every_target_grows_the_tree_of_the_loop(monkeypatch, rule, form):
    X, y, weight = make_table(form == "missing")
    columns = Columns.build(sp.csc_array(X) if form == "sparse" else X, max_bins=20 if form == "bins" else None)
    few = {"gini of two", "entropy", "squared"} if form in ("sparse", "bins") else None  # kernels of their own
    for name, target in targets(y, weight if form == "weights" else None):
        if few is not None and name not in few:
            continue
        found = grow(columns, target, rule, seed=3)
        assert len(found.tree.feature) > 1, name
        assert_same(found, by_levels(monkeypatch, columns, target, rule, seed=3))


def test_small_nodes_of_a_large_table_are_grown_so_too(monkeypatch):
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 200, (20_000, 3)).astype(float), rng.normal(size=20_000)
    columns, target, rule = Columns.build(X), Target.numbers(y), GrowthRule(min_samples_leaf=20)
    assert_same(grow(columns, target, rule), by_levels(monkeypatch, columns, target, rule))


def test_deeper_than_constant_columns_are_remembered(monkeypatch):
    X, y, _ = make_table()
    columns, target = Columns.build(X), Target.numbers(y)
    expected = grow(columns, target, GrowthRule())
    monkeypatch.setattr(workspace, "_MOST_KNOWN", 2)
    assert_same(grow(columns, target, GrowthRule()), expected)


def test_a_raised_flag_stops():
    X, y, _ = make_table()
    with pytest.raises(GrowthStopped):
        grow(Columns.build(X), Target.numbers(y), GrowthRule(), stop=np.ones(1, np.int64))
