"""Kernels of pruning on trees small enough to do by hand."""

import numpy as np

from learnable.trees.pruning._kernels import errors_below, prune_weakest, set_link, sum_branches

LEFT = np.array([1, 3, -1, -1, -1], dtype=np.int32)
RIGHT = np.array([2, 4, -1, -1, -1], dtype=np.int32)
PARENT = np.array([-1, 0, 0, 1, 1])
COST = np.array([1.0, 0.5, 0.1, 0.1, 0.2])


def test_branches_are_summed_from_the_leaves():
    branch, leaves = np.empty(5), np.empty(5, dtype=np.int64)
    sum_branches(LEFT, RIGHT, COST, branch, leaves)
    np.testing.assert_allclose(branch, [0.4, 0.3, 0.1, 0.1, 0.2])
    assert leaves.tolist() == [3, 2, 1, 1, 1]


def test_the_weakest_link_goes_first_and_the_link_above_is_renewed():
    branch, leaves = np.empty(5), np.empty(5, dtype=np.int64)
    sum_branches(LEFT, RIGHT, COST, branch, leaves)
    order, alphas, costs, counts = np.empty(5, dtype=np.int64), np.empty(5), np.empty(5), np.empty(5, dtype=np.int64)
    links, stack = np.full(16, np.inf), np.empty(6, dtype=np.int64)
    steps = prune_weakest(LEFT, RIGHT, PARENT, COST, branch, leaves, links, stack, order, alphas, costs, counts)
    assert steps == 2 and order[:2].tolist() == [1, 0]
    np.testing.assert_allclose(alphas[:2], [0.2, 0.4])  # (0.5 − 0.3)/1, then (1 − 0.6)/1
    np.testing.assert_allclose(costs[:2], [0.6, 1.0])
    assert counts[:2].tolist() == [2, 1]


def test_the_tournament_holds_the_smallest():
    links = np.full(8, np.inf)
    for t, value in enumerate([3.0, 1.0, 2.0]):
        set_link(links, 4, t, value)
    assert links[1] == 1.0
    set_link(links, 4, 1, np.inf)
    assert links[1] == 2.0


def test_errors_of_a_subtree():
    X = np.array([[0.0], [1.0], [2.0], [np.nan]])
    nodes = (
        np.array([0, 0, -1, -1, -1], dtype=np.int32),
        np.array([1.5, 0.5, 0.0, 0.0, 0.0]),
        LEFT,
        RIGHT,
        np.zeros(5, dtype=np.uint8),
        np.full(5, -1),
        np.zeros(0, dtype=np.uint32),
    )
    label = np.array([0, 0, 1, 0, 1])
    y, weight, rows = np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 4.0, 8.0]), np.arange(4)
    assert errors_below(X, y, weight, rows, 0, label, nodes) == 6.0  # row 1 ends in node 4, row 2 in node 2
    assert errors_below(X, y, weight, rows, 3, label, nodes) == 8.0
