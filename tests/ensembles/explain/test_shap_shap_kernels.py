"""The tour through a tree."""

import numpy as np

from learnable import DecisionTreeRegressor
from learnable.ensembles.explain._shap import pair_of
from learnable.ensembles.explain.shap import _Tours


def test_every_edge_is_entered_once_and_left_once_after_all_below_it():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    tree = DecisionTreeRegressor(random_state=0).fit(X, y).trees_
    tours = _Tours(tree)
    tour = tours.tour[: int(np.flatnonzero(tours.tour == 2**31 - 1)[0])]
    assert len(tour) == 2 * (tree.n_nodes - 1)
    open_edges = []
    for step in tour:
        if step >= 0:
            assert tours.parent[step] == (open_edges[-1] if open_edges else 0)
            open_edges.append(step)
        else:
            assert open_edges.pop() == ~step
    assert not open_edges


def test_shares_multiply_to_the_share_of_the_leaf():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
    tree = DecisionTreeRegressor(random_state=0).fit(X, y).trees_
    tours = _Tours(tree)
    for leaf in np.flatnonzero(tree.feature < 0):
        seen, share, i = set(), 1.0, leaf
        while tours.parent[i] >= 0:
            column = tree.feature[tours.parent[i]]
            if column not in seen:  # the lowest edge of a column holds the product of all
                share *= tours.share[i]
                seen.add(column)
            i = tours.parent[i]
        assert abs(share - tree.weight[leaf] / tree.weight[0]) < 1e-12


def test_pairs_are_numbered_without_gaps():
    assert [pair_of(i, j) for i in range(5) for j in range(i)] == list(range(10))
    assert pair_of(1, 4) == pair_of(4, 1)
