import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from learnable import RandomForestRegressor
from learnable.trees import predict
from learnable.trees.predict import pack, walk_packed

X, Y = load_diabetes(return_X_y=True)


def slow(trees, rows, method, monkeypatch):
    """Return what the walk without packing says."""
    with monkeypatch.context() as patch:
        patch.setattr(predict, "_PACKED_ROWS", 10**9)
        return getattr(trees, method)(rows)


def gapped(rows):
    return np.where(np.random.default_rng(0).random(rows.shape) < 0.1, np.nan, rows)


TABLES = {
    "float64": np.tile(X, (3, 1)),
    "a tail of three rows": np.tile(X, (3, 1))[:1003],
    "float32": np.tile(X, (3, 1)).astype(np.float32),
    "columns": np.asfortranarray(np.tile(X, (3, 1))),
    "missing": gapped(np.tile(X, (3, 1))),
    "huge": np.tile(X, (3, 1)) * 1e300,
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("trained", ["float64", "missing"])
def test_the_packed_walk_is_the_plain_walk(table, trained, monkeypatch):
    rows = TABLES[table]
    trees = RandomForestRegressor(7, random_state=0).fit(TABLES[trained][:442], Y).trees_
    assert trees._is_plain()
    assert np.array_equal(trees.sum(rows), slow(trees, rows, "sum", monkeypatch))
    assert np.array_equal(trees.apply(rows), slow(trees, rows, "apply", monkeypatch))


@pytest.mark.threaded
def test_the_number_of_threads_does_not_matter():
    rows = np.tile(X, (60, 1))
    trees = RandomForestRegressor(5, random_state=0).fit(X, Y).trees_
    assert np.array_equal(trees.sum(rows, 1), trees.sum(rows, 2))


def test_a_threshold_beyond_all_numbers_sends_only_missing_values_right():
    start, nothing = np.array([0, 3]), np.zeros(3, np.uint8)
    packed = pack(start, np.array([0, -1, -1], np.int32), np.array([np.inf, 0, 0]), np.array([2, -1, -1]), nothing)
    rows = np.array([[1.7e308], [np.nan], [-1.7e308]])
    leaves, total = np.empty((3, 1), np.int32), np.zeros((3, 1))
    walk_packed(rows, start, packed, leaves, None, None)
    walk_packed(rows, start, packed, None, np.array([[0.0], [1.0], [2.0]]), total)
    assert leaves[:, 0].tolist() == total[:, 0].tolist() == [1, 2, 1]


def test_trees_that_grew_best_first_are_not_plain():
    trees = RandomForestRegressor(3, max_leaf_nodes=9, random_state=0).fit(X, Y).trees_
    rows = np.tile(X, (2, 1))
    assert not trees._is_plain()
    np.testing.assert_allclose(trees.sum(rows)[:442], trees.sum(X), rtol=0)
