"""Second-order boosting by brute force: every cut of every column, in plain loops, from XGBoost's paper."""

from itertools import pairwise

import numpy as np


def best_split(X, g, h, reg_lambda, min_samples_leaf=1):
    """Return (gain, column, threshold): the largest G_L²/(H_L+λ) + G_R²/(H_R+λ) − G²/(H+λ); None if there is no cut."""

    def score(rows):
        return g[rows].sum() ** 2 / (h[rows].sum() + reg_lambda)

    best = None
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for a, b in pairwise(values):
            left = X[:, j] <= a
            if min(left.sum(), (~left).sum()) < min_samples_leaf:
                continue
            gain = score(left) + score(~left) - score(np.ones(len(g), bool))
            if best is None or gain > best[0] + 1e-12:
                best = (gain, j, (a + b) / 2)
    return best


def grow(X, g, h, reg_lambda, gamma, depth, min_samples_leaf=1):
    """Return a nested tree: a number at a leaf, else (gain, column, threshold, left, right)."""
    found = best_split(X, g, h, reg_lambda, min_samples_leaf) if depth else None
    if found is None or found[0] / 2 <= gamma:
        return -g.sum() / (h.sum() + reg_lambda)
    gain, j, threshold = found
    left = X[:, j] <= threshold
    rest = (reg_lambda, gamma, depth - 1, min_samples_leaf)
    return gain, j, threshold, grow(X[left], g[left], h[left], *rest), grow(X[~left], g[~left], h[~left], *rest)


def predict(tree, x):
    """Walk one row down."""
    while isinstance(tree, tuple):
        tree = tree[3] if x[tree[1]] <= tree[2] else tree[4]
    return tree


def boost(X, y, derivatives, start, rounds, rate, **rule):
    """Return the trees and the scores of the training rows; log-odds move by at most max(2, log(1 + |step|)) a leaf."""
    F, trees = np.full(len(y), start), []
    for _ in range(rounds):
        g, h = derivatives(y, F)
        trees.append(grow(X, g, h, **rule))
        step = np.array([predict(trees[-1], x) for x in X])
        F = F + rate * np.sign(step) * np.minimum(np.abs(step), np.maximum(2.0, np.log(1.0 + np.abs(step))))
    return trees, F
