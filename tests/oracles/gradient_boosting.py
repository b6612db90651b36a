"""Second-order boosting by brute force: every cut of every column, in plain loops, from XGBoost's paper.

Several cuts may have the same gain, and rounding decides between them. So no tree is grown here: a tree that was grown
is followed node by node, and each of its splits has to be one of the best.
"""

from itertools import pairwise

import numpy as np
import pytest


def gain_of(left, g, h, reg_lambda):
    """Return G_L²/(H_L+λ) + G_R²/(H_R+λ) − G²/(H+λ), where `left` tells which rows go left."""

    def score(rows):
        return g[rows].sum() ** 2 / (h[rows].sum() + reg_lambda)

    return score(left) + score(~left) - score(np.ones(len(g), bool))


def best_gain(X, g, h, reg_lambda, min_samples_leaf=1):
    """Return the largest gain of all cuts; 0 if there is none."""
    best = 0.0
    for j in range(X.shape[1]):
        for value, _ in pairwise(np.unique(X[:, j])):
            left = X[:, j] <= value
            if min(left.sum(), (~left).sum()) >= min_samples_leaf:
                best = max(best, gain_of(left, g, h, reg_lambda))
    return best


def bounded(step):
    """Return how far a leaf moves log-odds: at most max(2, log(1 + |step|))."""
    return np.sign(step) * min(abs(step), max(2.0, np.log(1.0 + abs(step))))


def follow(tree, X, g, h, reg_lambda, gamma, depth, min_samples_leaf=1):
    """Return the step of every row, after checking that each split is a best one and each leaf has none worth γ."""
    steps = np.empty(len(X))
    noise = 1e-9 * max(1.0, float(np.abs(g).sum()))

    def visit(node, rows, depth):
        most = best_gain(X[rows], g[rows], h[rows], reg_lambda, min_samples_leaf) if depth else 0.0
        if tree.left[node] < 0:
            assert most / 2 <= gamma + noise, "a leaf that should have been split"
            steps[rows] = bounded(-g[rows].sum() / (h[rows].sum() + reg_lambda))
            return
        left = X[rows, tree.feature[node]] <= tree.threshold[node]
        gain = gain_of(left, g[rows], h[rows], reg_lambda)
        assert min(left.sum(), (~left).sum()) >= min_samples_leaf
        assert gain == pytest.approx(most, rel=1e-9, abs=noise), "not a best split"
        assert gain / 2 >= gamma - noise, "a split that is not worth γ"
        mass = tree.weight * tree.impurity  # −G²/(H + λ)
        assert mass[node] - mass[tree.left[node]] - mass[tree.right[node]] == pytest.approx(gain, rel=1e-6, abs=noise)
        visit(tree.left[node], rows[left], depth - 1)
        visit(tree.right[node], rows[~left], depth - 1)

    visit(0, np.arange(len(X)), depth)
    return steps
