"""Trees for every Minkowski distance, and the choice between tree and screening."""

import numpy as np
import pytest
from tests.oracles.neighbors import first_k, plain_distances

from learnable.neighbors._kernels import CHEBYSHEV
from learnable.neighbors.metrics import TreeSearch, choose_search
from learnable.neighbors.search import PlainSearch, ScreenedSearch


@pytest.mark.parametrize(("power", "p"), [(1.0, 1), (2.0, 2), (3.0, 3), (CHEBYSHEV, np.inf)])
@pytest.mark.parametrize("leaf_size", [1, 30])
def test_a_tree_finds_what_a_scan_finds(power, p, leaf_size):
    rng = np.random.default_rng(0)
    X, Q = rng.integers(0, 6, (800, 3)).astype(float), rng.integers(-1, 7, (60, 3)).astype(float)
    tree, plain = TreeSearch(X, power, leaf_size).nearest(Q, 7), PlainSearch(X, power).nearest(Q, 7)
    assert (tree.rows == plain.rows).all() and (tree.keys == plain.keys).all()
    if p != 3:  # cube roots round
        assert (tree.rows == first_k(plain_distances(X, Q, p), 7)).all()


def test_auto_takes_the_tree_where_rows_have_few_dimensions():
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 9, 20_000)
    curve = np.column_stack([np.sin((i + 1) * t / 9) for i in range(30)])
    assert isinstance(choose_search(curve, 2.0, 5, "auto", 30), TreeSearch)
    cloud = rng.normal(size=(20_000, 30))
    assert isinstance(choose_search(cloud, 2.0, 5, "auto", 30), ScreenedSearch)
    assert isinstance(choose_search(cloud, 1.0, 5, "auto", 30), PlainSearch)
    assert isinstance(choose_search(curve, 2.0, 5, "brute", 30), ScreenedSearch)
    assert isinstance(choose_search(cloud, 2.0, 5, "kd_tree", 30), TreeSearch)


def test_a_tree_looks_at_few_rows():
    X = np.random.default_rng(2).normal(size=(20_000, 2))
    tree = TreeSearch(X, 2.0, 30)
    keys, rows = np.full((100, 5), np.inf), np.full((100, 5), 2**62)
    assert tree.walk(X[:100], np.full(100, -1), keys, rows) < 100 * 400
