"""Shortest paths in a sparse graph with lengths that are not negative."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[Any]


@kernel
def shortest_paths(
    indptr: Array, indices: Array, lengths: Array, sources: Array, width: float, n_buckets: int, out: Array
) -> None:
    """Fill out[s] with the distances of all nodes from sources[s], by Dijkstra's algorithm with buckets (Dial, 1969).

    IN the graph by rows, each edge in both directions; the width of a bucket, and so many that n_buckets − 1 of them
    span the longest edge. OUT distances, infinite where no path leads.

    A node waits in the bucket of its distance, in a list linked both ways, so that it moves in one step when a shorter
    path is found. Nodes of one bucket are taken in any order, and again if a path within the bucket improves them: the
    distances at the end are those of a heap, without its logarithm.
    """
    n = out.shape[1]
    head = np.full(n_buckets, -1, np.int32)
    after = np.empty(n, np.int32)
    before = np.empty(n, np.int32)
    bucket = np.empty(n, np.int32)
    for s in range(sources.size):
        distance = out[s]
        distance[:] = np.inf
        bucket[:] = -1
        start = sources[s]
        distance[start] = 0.0
        head[0] = start
        after[start] = -1
        before[start] = -1
        bucket[start] = 0
        waiting = 1
        at = 0
        while waiting > 0:
            while head[at] < 0:
                at += 1
                if at == n_buckets:
                    at = 0
            node = head[at]
            following = after[node]
            head[at] = following
            if following >= 0:
                before[following] = -1
            bucket[node] = -1
            waiting -= 1
            here = distance[node]
            for edge in range(indptr[node], indptr[node + 1]):
                neighbour = indices[edge]
                reached = here + lengths[edge]
                if reached < distance[neighbour]:
                    distance[neighbour] = reached
                    place = int(reached / width) % n_buckets
                    old = bucket[neighbour]
                    if old == place:
                        continue
                    if old >= 0:
                        previous = before[neighbour]
                        following = after[neighbour]
                        if previous >= 0:
                            after[previous] = following
                        else:
                            head[old] = following
                        if following >= 0:
                            before[following] = previous
                    else:
                        waiting += 1
                    first = head[place]
                    after[neighbour] = first
                    before[neighbour] = -1
                    if first >= 0:
                        before[first] = neighbour
                    head[place] = neighbour
                    bucket[neighbour] = place
