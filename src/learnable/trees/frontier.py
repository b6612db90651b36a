"""Best-first growth: the splits with the largest gains first, up to a number of leaves.

The tree of L leaves that best-first growth gives is a part of the whole tree: walk from the root, always to the open
node with the largest gain, L − 1 times. So nodes may be divided in any order and in batches, as long as the walk finds
the nodes it comes to divided. `wanted_next` says which are still missing; `best_first_order` is the walk.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from .node_store import NodeStore


def wanted_next(nodes: NodeStore, max_leaves: int) -> NDArray[np.int64]:
    """Return the nodes to divide next: where the walk is stuck, and the open nodes it is most likely to need."""
    _, waiting, n_left = _walk(nodes, max_leaves)
    undivided = [node for _, node in waiting if nodes.left[node] < 0][: 1 + n_left // 4]
    return np.array(sorted(undivided) if n_left > 0 else [], dtype=np.int64)


def best_first_order(nodes: NodeStore, max_leaves: int) -> NDArray[np.int64]:
    """Return the nodes of the tree in order of creation: root, then both children of each node that is divided."""
    order, _, _ = _walk(nodes, max_leaves)
    return np.array(order, dtype=np.int64)


def _walk(nodes: NodeStore, max_leaves: int) -> tuple[list[int], list[tuple[float, int]], int]:
    """Divide by largest gain (of equals, the oldest) until the leaves are used up or a node is not divided yet.

    Returns the nodes in order of creation, those that wait in order of gain, and how many leaves are left.
    """
    order, waiting, n_left = [0], [], max_leaves - 1
    if nodes.feature[0] >= 0:
        waiting.append((-float(nodes.gain[0]), 0))
    while waiting and n_left > 0:
        node = waiting[0][1]
        if nodes.left[node] < 0:
            break
        heapq.heappop(waiting)
        n_left -= 1
        for child in (int(nodes.left[node]), int(nodes.right[node])):
            order.append(child)
            if nodes.feature[child] >= 0:
                heapq.heappush(waiting, (-float(nodes.gain[child]), child))
    return order, sorted(waiting), n_left
