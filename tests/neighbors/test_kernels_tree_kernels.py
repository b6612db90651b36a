"""The tree's invariants, and boxes that never promise too much."""

import numpy as np
import pytest

from learnable.neighbors._kernels import CHEBYSHEV, key_of_box, select_middle
from learnable.neighbors.metrics import TreeSearch


@pytest.mark.parametrize("n", [1, 2, 31, 64, 1000])
def test_every_row_is_in_one_leaf_and_inside_all_its_boxes(n):
    X = np.random.default_rng(n).integers(0, 5, (n, 3)).astype(float)
    tree = TreeSearch(X, 2.0, leaf_size=8)
    assert sorted(tree.leaf_order.tolist()) == list(range(n))
    n_nodes = len(tree.starts)
    for node in range(n_nodes):
        rows = X[tree.leaf_order[tree.starts[node] : tree.ends[node]]]
        assert (rows.min(axis=0) == tree.low[node]).all() and (rows.max(axis=0) == tree.high[node]).all()
        if 2 * node + 2 < n_nodes:
            assert tree.starts[2 * node + 1] == tree.starts[node] and tree.ends[2 * node + 2] == tree.ends[node]
            assert tree.ends[2 * node + 1] == tree.starts[2 * node + 2]


def test_selection_puts_the_middle_in_its_place():
    X = np.random.default_rng(0).integers(0, 9, (200, 2)).astype(float)
    order = np.arange(200)
    select_middle(X, order, 0, 199, 77, 1)
    assert X[order[77], 1] == np.sort(X[:, 1])[77]
    assert (X[order[:77], 1] <= X[order[77], 1]).all() and (X[order[78:], 1] >= X[order[77], 1]).all()


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, CHEBYSHEV])
def test_the_key_of_a_box_is_that_of_its_nearest_point(power):
    rng = np.random.default_rng(3)
    ends = np.sort(rng.normal(size=(2, 40, 4)), axis=0)
    for node in range(40):
        q = 2 * rng.normal(size=4)
        gap = abs(q - np.clip(q, ends[0, node], ends[1, node]))
        true = gap.max() if power == CHEBYSHEV else (gap**power).sum()
        assert key_of_box(q, ends[0], ends[1], node, 1.0, power) == pytest.approx(true, rel=1e-13)
