"""Kernels of pruning: weakest links one after another, and rows sent through a subtree that is being changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array, NDArray
from ...core.jit import kernel
from ..predict import goes_left

Nodes = NDArray[np.int32]


@kernel
def sum_branches(left: Nodes, right: Nodes, cost: Array, branch: Array, leaves: NDArray[np.int64]) -> None:
    """OUT branch (N,), leaves (N,): cost and number of the leaves below each node; children come after parents."""
    for t in range(cost.size - 1, -1, -1):
        if left[t] < 0:
            branch[t], leaves[t] = cost[t], 1
        else:
            branch[t] = branch[left[t]] + branch[right[t]]
            leaves[t] = leaves[left[t]] + leaves[right[t]]


@kernel
def set_link(links: Array, size: int, t: int, value: float) -> None:
    """Write g(t) into the tournament tree `links` (2·size,), whose every node holds the smaller of its two below."""
    i = size + t
    links[i] = value
    while i > 1:
        i //= 2
        links[i] = min(links[2 * i], links[2 * i + 1])


@kernel
def prune_weakest(
    left: Nodes,
    right: Nodes,
    parent: NDArray[np.int64],
    cost: Array,
    branch: Array,
    leaves: NDArray[np.int64],
    links: Array,
    stack: NDArray[np.int64],
    order: NDArray[np.int64],
    alphas: Array,
    costs: Array,
    counts: NDArray[np.int64],
) -> int:
    """Collapse the node with the smallest g(t) = (R(t) − R(T_t))/(|T_t| − 1), the first of those that tie, to the root.

    IN branch, leaves from `sum_branches`, changed on the way; SCRATCH links (2·size,) of infinities, stack (N,);
    OUT order, alphas, costs, counts: the node of each step, its g, and the cost and leaves of the tree after it.
    """
    size = links.size // 2
    for t in range(cost.size):
        if left[t] >= 0:
            set_link(links, size, t, (cost[t] - branch[t]) / (leaves[t] - 1))
    step = 0
    while links[1] < np.inf:
        t = 1
        while t < size:
            t = 2 * t if links[2 * t] <= links[2 * t + 1] else 2 * t + 1
        t -= size
        order[step], alphas[step] = t, links[1]
        n_waiting = 1
        stack[0] = t
        while n_waiting:  # nothing below t is a link any more
            n_waiting -= 1
            s = stack[n_waiting]
            if links[size + s] < np.inf:
                set_link(links, size, s, np.inf)
                stack[n_waiting], stack[n_waiting + 1] = left[s], right[s]
                n_waiting += 2
        rise, gone = cost[t] - branch[t], leaves[t] - 1
        branch[t], leaves[t] = cost[t], 1
        s = parent[t]
        while s >= 0:
            branch[s] += rise
            leaves[s] -= gone
            set_link(links, size, s, (cost[s] - branch[s]) / (leaves[s] - 1))
            s = parent[s]
        costs[step], counts[step] = branch[0], leaves[0]
        step += 1
    return step


@kernel
def errors_below(
    X: Array,
    y: NDArray[np.int64],
    weight: Array,
    rows: NDArray[np.int64],
    node: int,
    label: NDArray[np.int64],
    nodes: Any,
) -> float:
    """Return the weight of the rows that the subtree at `node` gets wrong; nodes = (feature, threshold, left, …)."""
    feature, threshold, left, right, missing_left, category, bits = nodes
    wrong = 0.0
    for i in range(rows.size):
        row = rows[i]
        t = node
        while left[t] >= 0:
            x = X[row, feature[t]]
            t = left[t] if goes_left(x, t, threshold, missing_left, category, bits) else right[t]
        if label[t] != y[row]:
            wrong += weight[row]
    return wrong
