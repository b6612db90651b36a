"""The tree of categories: walks, and files that lie."""

from dataclasses import replace

import numpy as np
import pytest

from learnable.core.errors import ModelFileError
from learnable.trees import CategoryTree, ID3Classifier

LEVELS = np.array([3, 2])


def small():
    """Column 0 has three branches, of which the second asks for level 1 of column 1."""
    as_int = {"dtype": np.int32}
    return CategoryTree(
        feature=np.array([0, -1, 1, -1, -1, -1], **as_int),
        level=np.array([-1, -1, 1, -1, -1, -1], **as_int),
        parent=np.array([-1, 0, 0, 2, 2, 0], **as_int),
        code=np.array([-1, 0, 1, 0, 1, 2], **as_int),
        gain=np.array([0.5, 0, 0.5, 0, 0, 0]),
        impurity=np.zeros(6),
        n_rows=np.full(6, 2),
        value=np.eye(6, 2) + 0.5,
    )


def test_rows_walk_to_their_leaf_and_stay_where_there_is_no_branch():
    tree = small()
    tree.check(LEVELS, 2)
    codes = np.array([[0, 1, 1, 1, 2, -1], [0, 0, 1, -1, 1, 0]], dtype=np.int32)
    assert tree.apply(codes).tolist() == [1, 3, 4, 3, 5, 0]
    assert tree.depths().tolist() == [0, 1, 1, 2, 2, 1]
    assert tree.children() == [[1, 2, 5], [], [3, 4], [], [], []]
    assert (tree.node_count, tree.n_leaves, tree.max_depth) == (6, 4, 2)


def test_a_root_alone():
    tree = ID3Classifier().fit([["a"]], [0]).tree_
    assert tree.apply(np.array([[0, -1]], dtype=np.int32)).tolist() == [0, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"feature": np.array([2, -1, 1, -1, -1, -1], dtype=np.int32)},
        {"feature": np.array([-2, -1, 1, -1, -1, -1], dtype=np.int32)},
        {"feature": np.array([0, -1, 1, -1, -1, 0], dtype=np.int32)},
        {"feature": np.full(6, -1, dtype=np.int32)},
        {"feature": np.array([0, -1, 1, -1, -1, -1])},
        {"level": np.array([-1, -1, 2, -1, -1, -1], dtype=np.int32)},
        {"parent": np.array([-1, 2, 0, 2, 2, 0], dtype=np.int32)},
        {"parent": np.array([-1, 0, 0, 2, -1, 0], dtype=np.int32)},
        {"parent": np.array([0, 0, 0, 2, 2, 0], dtype=np.int32)},
        {"code": np.array([-1, 0, 1, 0, 1, 3], dtype=np.int32)},
        {"code": np.array([-1, 0, 1, 0, 0, 2], dtype=np.int32)},
        {"code": np.array([-1, 0, 1, 0, 2, 2], dtype=np.int32)},
        {"value": np.full((6, 2), np.nan)},
        {"value": np.zeros((6, 2))},
        {"value": np.ones((6, 3))},
        {"gain": np.full(6, -1.0)},
        {"n_rows": np.full(5, 2)},
    ],
)
def test_a_hostile_tree_is_refused(change):
    with pytest.raises(ModelFileError, match="load: "):
        replace(small(), **change).check(LEVELS, 2)
