"""All subtrees of a small tree, by enumeration, and bottom-up pruning that evaluates every candidate whole."""

import numpy as np


def subtrees(left, right, node=0):
    """Yield the sets of leaves of every subtree that keeps the root."""
    yield (node,)
    if left[node] >= 0:
        rights = list(subtrees(left, right, right[node]))
        for a in subtrees(left, right, left[node]):
            for b in rights:
                yield a + b


def smallest_minimiser(left, right, cost, alpha):
    """Return the least of R(T) + λ|T|, and the fewest leaves that reach it."""
    found = [(sum(cost[t] for t in leaves) + alpha * len(leaves), len(leaves)) for leaves in subtrees(left, right)]
    least = min(value for value, _ in found)
    return least, min(size for value, size in found if value <= least + 1e-12)


def nested(tree, node=0):
    """Return a Trees of one tree as nested tuples: ("leaf", label) or (feature, threshold, left, right)."""
    if tree.left[node] < 0:
        return ("leaf", int(np.argmax(tree.value[node])))
    return (
        int(tree.feature[node]),
        float(tree.threshold[node]),
        nested(tree, int(tree.left[node])),
        nested(tree, int(tree.right[node])),
    )


def count(tree):
    return 1 if tree[0] == "leaf" else 1 + count(tree[2]) + count(tree[3])


def predict(tree, row):
    while tree[0] != "leaf":
        tree = tree[2] if row[tree[0]] <= tree[1] else tree[3]
    return tree[1]


def _replace(tree, path, new):
    if not path:
        return new
    parts = list(tree)
    parts[path[0]] = _replace(tree[path[0]], path[1:], new)
    return tuple(parts)


def _get(tree, path):
    for step in path:
        tree = tree[step]
    return tree


def _paths_bottom_up(tree, path=()):
    if tree[0] != "leaf":
        yield from _paths_bottom_up(tree[3], (*path, 3))
        yield from _paths_bottom_up(tree[2], (*path, 2))
    yield path


def best_estimate(tree, labels, estimate):
    """Return the estimate that the procedure of the notes reaches, trying every label at every node.

    The walk is over the nodes of the given tree. What has been replaced below a node does not change its path.
    """
    for path in list(_paths_bottom_up(tree)):
        here = _get(tree, path)
        options = [here, *(("leaf", k) for k in labels)]
        if here[0] != "leaf":
            options += [here[2], here[3]]
        whole = [_replace(tree, path, option) for option in options]
        values = [estimate(candidate) for candidate in whole]
        good = [c for c, v in zip(whole, values, strict=True) if v <= min(values) + 1e-12]
        tree = min(good, key=count)
    return estimate(tree)
