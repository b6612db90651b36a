"""Shapley values of one tree from the definition: all subsets of columns, expectations by walking both ways."""

from itertools import combinations
from math import factorial

import numpy as np


def known_value(tree, x, known):
    """Return v(S): the tree's value where only the columns of S are known."""

    def walk(i):
        if tree.feature[i] < 0:
            return tree.value[i]
        left, right, j = tree.left[i], tree.right[i], tree.feature[i]
        if j in known:
            return walk(left) if goes_left(tree, i, x[j]) else walk(right)
        return (tree.weight[left] * walk(left) + tree.weight[right] * walk(right)) / tree.weight[i]

    return walk(0)


def goes_left(tree, i, value):
    at = tree.category[i]
    if at < 0:
        return bool(tree.missing_left[i]) if np.isnan(value) else value <= tree.threshold[i]
    n_words = int(tree.bits[at])
    if not 0 <= value < 32 * n_words:
        return bool(tree.missing_left[i])
    return bool(int(tree.bits[at + 1 + int(value) // 32]) >> (int(value) % 32) & 1)


def shapley(tree, x):
    """Return φ, (d, K)."""
    d = len(x)
    phi = np.zeros((d, tree.value.shape[1]))
    for j in range(d):
        rest = [k for k in range(d) if k != j]
        for size in range(d):
            chance = factorial(size) * factorial(d - size - 1) / factorial(d)
            for S in combinations(rest, size):
                phi[j] += chance * (known_value(tree, x, {*S, j}) - known_value(tree, x, {*S}))
    return phi


def interactions(tree, x):
    """Return the interaction values, (d, d, K); the diagonal makes rows sum to φ."""
    d = len(x)
    found = np.zeros((d, d, tree.value.shape[1]))
    for i, j in combinations(range(d), 2):
        rest = [k for k in range(d) if k not in (i, j)]
        for size in range(d - 1):
            chance = factorial(size) * factorial(d - size - 2) / (2 * factorial(d - 1))
            for S in combinations(rest, size):
                joint = known_value(tree, x, {*S, i, j}) + known_value(tree, x, {*S})
                found[i, j] += chance * (joint - known_value(tree, x, {*S, i}) - known_value(tree, x, {*S, j}))
        found[j, i] = found[i, j]
    for j, own in enumerate(shapley(tree, x) - found.sum(axis=1)):
        found[j, j] = own
    return found
