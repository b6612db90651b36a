"""Shortest paths in a sparse graph with lengths that are not negative."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel, lean_kernel

Array = NDArray[Any]

#: Sources whose distances are found together: two vectors of eight. On a swiss roll of 4,000 rows eight took 1.2 times
#: as long, one source at a time 4 times.
LANES = 16


@kernel
def nearby_order(indptr: Array, indices: Array, size: int, order: Array) -> None:
    """Fill `order` with all nodes such that each run of `size` nodes lies together in the graph.

    IN the graph by rows. OUT (n,) a permutation. Each run is grown by breadth-first search among the nodes that are
    left, from a node beside the runs before.
    """
    n = order.size
    taken = np.zeros(n, np.bool_)
    queue = np.empty(n, np.int32)
    seen = np.full(n, -1, np.int32)
    beside = np.empty(n, np.int32)
    n_beside = 0
    at_beside = 0
    first_left = 0
    count = 0
    while count < n:
        while at_beside < n_beside and taken[beside[at_beside]]:
            at_beside += 1
        while first_left < n and taken[first_left]:
            first_left += 1
        run = count
        queue[0] = beside[at_beside] if at_beside < n_beside else first_left
        seen[queue[0]] = run
        head = 0
        tail = 1
        while head < tail and count < run + size:
            node = queue[head]
            head += 1
            taken[node] = True
            order[count] = node
            count += 1
            for edge in range(indptr[node], indptr[node + 1]):
                neighbour = indices[edge]
                if seen[neighbour] != run and not taken[neighbour]:
                    seen[neighbour] = run
                    queue[tail] = neighbour
                    tail += 1
        for place in range(head, tail):
            if n_beside < n:
                beside[n_beside] = queue[place]
                n_beside += 1


@kernel
def shortest_paths(
    indptr: Array,
    indices: Array,
    lengths: Array,
    sources: Array,
    width: float,
    n_buckets: int,
    rows: Array,
    columns: Array,
    out: Array,
) -> None:
    """Find the distances of all nodes from some sources, by Dijkstra's algorithm with buckets (Dial, 1969).

    IN the graph by rows, each edge in both directions; the width of a bucket, and so many that n_buckets − 1 of them
    span the longest edge. OUT the distance of node v from sources[s] in out[rows[s], columns[v]], infinite where no
    path leads.

    Sixteen sources are served together: a node holds a vector of distances, and an edge is relaxed for all of them by
    a few vector instructions. A node waits in the bucket of the smallest distance that was improved since it was last
    taken, in a list linked both ways, and is taken again if any distance improves: the distances at the end are those
    of Dijkstra's algorithm. Sources that lie together see most nodes in the same order, so that few are taken twice.
    """
    n = out.shape[1]
    head = np.full(n_buckets, -1, np.int32)
    after = np.empty(n, np.int32)
    before = np.empty(n, np.int32)
    bucket = np.full(n, -1, np.int32)
    distances = np.empty((n, LANES))
    rate = 1.0 / width
    for group in range(0, sources.size, LANES):
        distances[:] = np.inf
        lanes = min(LANES, sources.size - group)
        waiting = 0
        for lane in range(lanes):
            start = sources[group + lane]
            distances[start, lane] = 0.0
            if bucket[start] < 0:
                _put(start, 0, head, after, before, bucket)
                waiting += 1
        at = 0
        passed = 0
        while waiting > 0:
            while head[at] < 0:
                passed += 1
                at += 1
                if at == n_buckets:
                    at = 0
            node = head[at]
            _take(node, head, after, before, bucket)
            waiting -= 1
            here = distances[node]
            for edge in range(indptr[node], indptr[node + 1]):
                neighbour = indices[edge]
                length = lengths[edge]
                there = distances[neighbour]
                nearest = np.inf
                for lane in range(LANES):
                    reached = here[lane] + length
                    old = there[lane]
                    better = reached < old
                    nearest = min(nearest, reached if better else np.inf)
                    there[lane] = reached if better else old
                if nearest < np.inf:
                    # Too early is allowed: a node that is taken before its last improvement is taken again.
                    ahead = min(max(int(nearest * rate) - passed, 0), n_buckets - 1)
                    old_place = bucket[neighbour]
                    if old_place >= 0:
                        old_ahead = old_place - at if old_place >= at else old_place - at + n_buckets
                        if old_ahead <= ahead:
                            continue
                        _take(neighbour, head, after, before, bucket)
                    else:
                        waiting += 1
                    place = at + ahead
                    if place >= n_buckets:
                        place -= n_buckets
                    _put(neighbour, place, head, after, before, bucket)
        for lane in range(lanes):
            row = out[rows[group + lane]]
            for node in range(n):
                row[columns[node]] = distances[node, lane]


@lean_kernel
def _put(node: int, place: int, head: Array, after: Array, before: Array, bucket: Array) -> None:
    """Put a node first into a bucket."""
    first = head[place]
    after[node] = first
    before[node] = -1
    if first >= 0:
        before[first] = node
    head[place] = node
    bucket[node] = place


@lean_kernel
def _take(node: int, head: Array, after: Array, before: Array, bucket: Array) -> None:
    """Take a node out of its bucket."""
    previous = before[node]
    following = after[node]
    if previous >= 0:
        after[previous] = following
    else:
        head[bucket[node]] = following
    if following >= 0:
        before[following] = previous
    bucket[node] = -1


@kernel
def guttman_rows(targets: Array, columns: Array, first: int, moved: Array, losses: Array) -> None:
    """Find where some rows go in one step of majorisation.

    IN targets (m, n) the distances wanted between m rows, from number `first` on, and all; columns (k, n) their
    coordinates. OUT moved (m, k), n⁻¹ Σⱼ (t_ij/d_ij)(x_i − x_j), a term without distance left out; losses (m,),
    Σⱼ (t_ij − d_ij)². The slow twin is `guttman` in `tests/oracles/scaling.py`.
    """
    k, n = columns.shape
    ratio = np.empty(n)
    for i in range(targets.shape[0]):
        wanted = targets[i]
        ratio[:] = 0.0
        for c in range(k):
            column = columns[c]
            here = column[first + i]
            for j in range(n):
                away = here - column[j]
                ratio[j] += away * away
        loss = 0.0
        total = 0.0
        for j in range(n):
            distance = np.sqrt(ratio[j])
            left = wanted[j] - distance
            loss += left * left
            share = wanted[j] / distance if distance > 0.0 else 0.0
            ratio[j] = share
            total += share
        losses[i] = loss
        for c in range(k):
            column = columns[c]
            pull = 0.0
            for j in range(n):
                pull += ratio[j] * column[j]
            moved[i, c] = (total * column[first + i] - pull) / n


@kernel
def descend_rows(W: Array, gram: Array, cross: Array, most: int, tol: float, moves: Array) -> None:
    """Minimise ½wᵀGw − cᵀw over w ≥ 0 for each row, one coordinate after the other.

    IN gram (k, k), G; cross (m, k), c of each row; the most sweeps, and the share of the first sweep's move at which
    the sweeps of a row end. IN/OUT W (m, k). OUT moves (m,), Σ_t G_tt (change of w_t in the first sweep)². A coordinate
    without curvature stays: nothing depends on it.
    """
    k = gram.shape[0]
    for i in range(W.shape[0]):
        w = W[i]
        c = cross[i]
        first = 0.0
        for sweep in range(most):
            moved = 0.0
            for t in range(k):
                curvature = gram[t, t]
                if curvature <= 0.0:
                    continue
                slope = -c[t]
                for r in range(k):
                    slope += gram[t, r] * w[r]
                new = max(w[t] - slope / curvature, 0.0)
                step = new - w[t]
                w[t] = new
                moved += curvature * step * step
            if sweep == 0:
                first = moved
            if moved <= tol * tol * first:
                break
        moves[i] = first


@kernel
def widest_level(indptr: Array, indices: Array, start: int, depth: Array, queue: Array) -> int:
    """Return the most nodes at one distance, in edges, from a node of the part of the graph that holds it.

    IN the graph by rows, each edge in both directions. OUT depth (n,), the distance of each node, −1 elsewhere; queue
    (n,), the nodes in that order: the last one found is queue[0] at the end, a node on the far side of the graph.
    """
    depth[:] = -1
    depth[start] = 0
    queue[0] = start
    head = 0
    tail = 1
    level = 0
    level_start = 0
    widest = 1
    while head < tail:
        node = queue[head]
        if depth[node] > level:
            widest = max(widest, head - level_start)
            level = depth[node]
            level_start = head
        head += 1
        for edge in range(indptr[node], indptr[node + 1]):
            neighbour = indices[edge]
            if depth[neighbour] < 0:
                depth[neighbour] = depth[node] + 1
                queue[tail] = neighbour
                tail += 1
    widest = max(widest, tail - level_start)
    queue[0] = queue[tail - 1]
    return widest
