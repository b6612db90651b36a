"""Shortest paths in a sparse graph with lengths that are not negative."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[Any]


@kernel
def shortest_paths(indptr: Array, indices: Array, lengths: Array, sources: Array, out: Array) -> None:
    """Fill out[s] with the distances of all nodes from sources[s], by Dijkstra's algorithm with a binary heap.

    IN the graph by rows, each edge in both directions; OUT distances, infinite where no path leads.
    A node may stand in the heap several times: all entries but the first that is taken out are stale.
    """
    keys = np.empty(lengths.size + 1)
    nodes = np.empty(lengths.size + 1, np.int64)
    for s in range(sources.size):
        distance = out[s]
        distance[:] = np.inf
        distance[sources[s]] = 0.0
        keys[0] = 0.0
        nodes[0] = sources[s]
        count = 1
        while count > 0:
            key = keys[0]
            node = nodes[0]
            count -= 1
            # The last entry sinks from the top.
            last_key = keys[count]
            last_node = nodes[count]
            at = 0
            while 2 * at + 1 < count:
                child = 2 * at + 1
                if child + 1 < count and keys[child + 1] < keys[child]:
                    child += 1
                if keys[child] >= last_key:
                    break
                keys[at] = keys[child]
                nodes[at] = nodes[child]
                at = child
            keys[at] = last_key
            nodes[at] = last_node
            if key > distance[node]:
                continue
            for edge in range(indptr[node], indptr[node + 1]):
                neighbour = indices[edge]
                reached = key + lengths[edge]
                if reached < distance[neighbour]:
                    distance[neighbour] = reached
                    at = count
                    count += 1
                    while at > 0 and keys[(at - 1) // 2] > reached:
                        keys[at] = keys[(at - 1) // 2]
                        nodes[at] = nodes[(at - 1) // 2]
                        at = (at - 1) // 2
                    keys[at] = reached
                    nodes[at] = neighbour
