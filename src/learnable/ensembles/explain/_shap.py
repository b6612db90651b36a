"""Kernels of `shap`: one tour through a tree for a block of rows, at the nodes of a quadrature.

Row r reaches edge i (from a node to its child) with o = 1 if it satisfies all conditions on the edge's column down to
there, and o′ of the last edge above it with the same column. P is the product over the columns of the path of
z(1−t) + ot at the nodes t_q; along an edge it is multiplied by a₀ + o′a₁ + oa₂. G is the sum over the leaves below of
value × P. Leaving the edge, its column gets Σ_q G (o′b₁ + ob₂), where b holds the weights of the quadrature. The edge
above with the same column has had its share of the same leaves: b₁ and b₂ take it back.
"""

from __future__ import annotations

from typing import Any, Final

from ...core.jit import kernel, lean_kernel
from ...trees.predict import goes_left

LANES: Final = 32  # rows that are explained together


@kernel
def find_paths(start: Any, feature: Any, left: Any, right: Any, weight: Any, out: Any) -> None:
    """Write what the tours need to know.

    For each node: parent, level, level of the edge above with the same column (0: none), columns of the path, and the
    shares z, z′ of the two edges; for each tree the tour, in which ~i leaves edge i.
    """
    parent, level, above, n_columns, share, share_above, tour = out
    for t in range(start.size - 1):
        first = start[t]
        parent[first] = -1
        level[first] = 0
        above[first] = 0
        n_columns[first] = 0
        share[first] = 1.0
        share_above[first] = 1.0
        for i in range(first, start[t + 1]):
            if feature[i] < 0:
                continue
            for child in (first + left[i], first + right[i]):
                parent[child] = i
                level[child] = level[i] + 1
                at = i
                while parent[at] >= 0 and feature[parent[at]] != feature[i]:
                    at = parent[at]
                above[child] = level[at]  # the root has level 0
                n_columns[child] = n_columns[i] + (1 if level[at] == 0 else 0)
                share_above[child] = share[at] if level[at] > 0 else 1.0
                share[child] = share_above[child] * weight[child] / weight[i]
        at = 2 * first
        i = first
        while True:
            if feature[i] >= 0:
                i = first + left[i]
                tour[at] = i
                at += 1
                continue
            while i != first and i == first + right[parent[i]]:
                tour[at] = ~i
                at += 1
                i = parent[i]
            if i == first:
                break
            tour[at] = ~i
            i = first + right[parent[i]]
            tour[at + 1] = i
            at += 2
        tour[at] = 2**31 - 1  # the end


@lean_kernel
def edge_constants(
    share: Any, share_above: Any, above: Any, first: int, stop: int, t: Any, w: Any, n: int, C: Any
) -> None:
    """Write a₀, a₁, a₂, b₁, b₂ of the edges first … stop − 1 of a tree at the n nodes t; b without weights too."""
    for i in range(first, stop):
        z = share[i]
        y = share_above[i]
        new = above[i] == 0
        for q in range(n):
            s = 1.0 - t[q]
            old = 1.0 if new else y * s + t[q]
            both = (z * s + t[q]) / old
            none = z * s / old
            last = 0.0 if new else z / y
            C[i - first, 0, q] = last
            C[i - first, 1, q] = none - last
            C[i - first, 2, q] = both - none
            taken = 0.0 if new else (1.0 - y) / old
            yes = (1.0 - z) / (z * s + t[q]) - taken
            no = -1.0 / s - taken
            C[i - first, 3, q] = no
            C[i - first, 4, q] = yes - no
            C[i - first, 5, q] = w[q] * no
            C[i - first, 6, q] = w[q] * (yes - no)


@lean_kernel
def _satisfied(x: Any, p: int, is_left: bool, before: Any, mine: Any, nodes: Any) -> None:
    """Write o = o′ · [the row goes this way at node p]."""
    threshold, missing_left, category, bits = nodes
    yes, no = (1.0, 0.0) if is_left else (0.0, 1.0)
    if category[p] < 0:
        c = threshold[p]
        missing = yes if missing_left[p] != 0 else no
        for r in range(LANES):
            way = yes if x[r] <= c else no
            mine[r] = before[r] * (way if x[r] == x[r] else missing)
    else:
        for r in range(LANES):
            mine[r] = before[r] * (yes if goes_left(x[r], p, threshold, missing_left, category, bits) else no)


@lean_kernel
def _enter(above: Any, own: Any, before: Any, mine: Any, c: Any, n: int) -> None:
    for q in range(n):
        a0 = c[0, q]
        a1 = c[1, q]
        a2 = c[2, q]
        source = above[q]
        target = own[q]
        for r in range(LANES):
            target[r] = source[r] * (a0 + before[r] * a1 + mine[r] * a2)


@lean_kernel
def _leave(below: Any, above: Any, before: Any, mine: Any, c: Any, n: int, out: Any, acc: Any) -> None:
    for r in range(LANES):
        acc[r] = 0.0
    for q in range(n):
        b1 = c[5, q]
        b2 = c[6, q]
        source = below[q]
        target = above[q]
        for r in range(LANES):
            target[r] += source[r]
            acc[r] += source[r] * (before[r] * b1 + mine[r] * b2)
    for r in range(LANES):
        out[r] += acc[r]


@lean_kernel
def _leaf(path: Any, above: Any, before: Any, mine: Any, c: Any, n: int, value: float, out: Any, acc: Any) -> None:
    """Enter a leaf and leave it."""
    for r in range(LANES):
        acc[r] = 0.0
    for q in range(n):
        a0 = value * c[0, q]
        a1 = value * c[1, q]
        a2 = value * c[2, q]
        b1 = c[5, q]
        b2 = c[6, q]
        source = path[q]
        target = above[q]
        for r in range(LANES):
            g = source[r] * (a0 + before[r] * a1 + mine[r] * a2)
            target[r] += g
            acc[r] += g * (before[r] * b1 + mine[r] * b2)
    for r in range(LANES):
        out[r] += acc[r]


@lean_kernel
def explain_tree(X: Any, tree: Any, nodes: Any, paths: Any, value: Any, C: Any, n: int, scratch: Any, phi: Any) -> None:
    """Add the contributions of one tree to all blocks of rows.

    X is (blocks, columns, LANES), phi (blocks, outputs, columns, LANES); scratch has a place for each level.
    """
    first, begin, feature, left = tree
    parent, level, above, tour = paths
    P, G, held, acc = scratch
    K = value.shape[1]
    for b in range(X.shape[0]):
        for r in range(LANES):
            held[0, r] = 1.0
        for q in range(n):
            for r in range(LANES):
                P[0, q, r] = 1.0
        at = begin
        while tour[at] != 2**31 - 1:
            step = tour[at]
            at += 1
            i = step if step >= 0 else ~step
            p = parent[i]
            at_level = level[i]
            column = feature[p]
            before = held[above[i]]
            mine = held[at_level]
            c = C[i - first]
            if step < 0:
                for k in range(K):
                    _leave(G[at_level, k], G[at_level - 1, k], before, mine, c, n, phi[b, k, column], acc)
                continue
            _satisfied(X[b, column], p, i == first + left[p], before, mine, nodes)
            if feature[i] >= 0:
                _enter(P[at_level - 1], P[at_level], before, mine, c, n)
                for k in range(K):
                    for q in range(n):
                        for r in range(LANES):
                            G[at_level, k, q, r] = 0.0
            else:
                for k in range(K):
                    _leaf(P[at_level - 1], G[at_level - 1, k], before, mine, c, n, value[i, k], phi[b, k, column], acc)
                at += 1  # over the step that leaves it


@lean_kernel
def _pair(below: Any, before: Any, mine: Any, c: Any, other: Any, n: int, out: Any, acc: Any) -> None:
    """Add Σ_q G (o′b₁ + ob₂) · (the same of an edge above, without weights)."""
    for r in range(LANES):
        acc[r] = 0.0
    for q in range(n):
        b1 = c[5, q]
        b2 = c[6, q]
        source = below[q]
        factor = other[q]
        for r in range(LANES):
            acc[r] += source[r] * (before[r] * b1 + mine[r] * b2) * factor[r]
    for r in range(LANES):
        out[r] += acc[r]


@lean_kernel
def pair_of(i: int, j: int) -> int:
    """Return the place of the pair {i, j} among pairs (1, 0), (2, 0), (2, 1), (3, 0) and so on."""
    more = max(i, j)
    less = min(i, j)
    return more * (more - 1) // 2 + less


@lean_kernel
def pair_tree(X: Any, tree: Any, nodes: Any, paths: Any, value: Any, C: Any, n: int, scratch: Any, phi: Any) -> None:
    """Add the interactions of one tree to all blocks of rows: phi is (blocks, outputs, pairs, LANES), see `pair_of`."""
    first, begin, feature, left = tree
    parent, level, above, tour = paths
    P, G, held, acc, S, column_at = scratch
    K = value.shape[1]
    for b in range(X.shape[0]):
        held[0, :] = 1.0
        P[0, :, :] = 1.0
        at = begin
        while tour[at] != 2**31 - 1:
            step = tour[at]
            at += 1
            i = step if step >= 0 else ~step
            p = parent[i]
            at_level = level[i]
            column = feature[p]
            before = held[above[i]]
            mine = held[at_level]
            c = C[i - first]
            if step >= 0:
                column_at[at_level] = column
                _satisfied(X[b, column], p, i == first + left[p], before, mine, nodes)
                _enter(P[at_level - 1], P[at_level], before, mine, c, n)
                for q in range(n):
                    for r in range(LANES):
                        S[at_level, q, r] = before[r] * c[3, q] + mine[r] * c[4, q]
                for k in range(K):
                    v = value[i, k] if feature[i] < 0 else 0.0
                    for q in range(n):
                        for r in range(LANES):
                            G[at_level, k, q, r] = v * P[at_level, q, r]
                continue
            for k in range(K):
                for a in range(1, at_level):
                    if column_at[a] != column:
                        pair = pair_of(column, column_at[a])
                        _pair(G[at_level, k], before, mine, c, S[a], n, phi[b, k, pair], acc)
                for q in range(n):
                    for r in range(LANES):
                        G[at_level - 1, k, q, r] += G[at_level, k, q, r]


@kernel
def walk_both_ways(points: Any, place: Any, links: Any, nodes: Any, value: Any, reach: Any, out: Any) -> None:
    """Add the trees' means at the points; at a question about a column that has no place, both children are reached."""
    start, feature, left, right, weight = links
    threshold, missing_left, category, bits = nodes
    for t in range(start.size - 1):
        first = start[t]
        for a in range(points.shape[0]):
            reach[: start[t + 1] - first] = 0.0
            reach[0] = 1.0
            for i in range(first, start[t + 1]):  # children come after their parents
                share = reach[i - first]
                if share == 0.0:
                    continue
                if feature[i] < 0:
                    for k in range(value.shape[1]):
                        out[a, k] += share * value[i, k]
                elif place[feature[i]] < 0:
                    for child in (left[i], right[i]):
                        reach[child] = share * weight[first + child] / weight[i]
                else:
                    x = points[a, place[feature[i]]]
                    reach[left[i] if goes_left(x, i, threshold, missing_left, category, bits) else right[i]] = share
