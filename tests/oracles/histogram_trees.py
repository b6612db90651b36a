"""Trees of gradients by brute force: every cut of every column, in NumPy, from the formulas of the XGBoost paper."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def value(g, h, lam, low=-np.inf, high=np.inf):
    """Return the best value of a leaf, kept inside bounds."""
    return float(np.clip(-g.sum() / (h.sum() + lam), low, high))


def objective(g, h, lam):
    """Return G²/(H + λ), twice the fall of the loss by a leaf."""
    return g.sum() ** 2 / (h.sum() + lam)


def gain(g, h, left, lam, gamma=0.0):
    """Return ½[left + right − both] − γ."""
    parts = objective(g[left], h[left], lam) + objective(g[~left], h[~left], lam)
    return 0.5 * (parts - objective(g, h, lam)) - gamma


def best_split(codes, n_bins, g, h, *, lam, min_rows, min_hessian=0.0, gamma=0.0, missing=None):
    """Return (gain, column, rows that go left) of the best split; missing values have the code n_bins."""
    best = (-np.inf, -1, None)
    for j in range(codes.shape[1]):
        lost = codes[:, j] == n_bins[j]
        for cut in range(n_bins[j]):
            for side in (False, True) if lost.any() else (False,):
                left = (codes[:, j] <= cut) & ~lost | (lost & side)
                if min(left.sum(), (~left).sum()) < max(1, min_rows):
                    continue
                if min(h[left].sum(), h[~left].sum()) < min_hessian:
                    continue
                found = gain(g, h, left, lam, gamma)
                if found > best[0] + 1e-12:
                    best = (found, j, left)
    return best


def best_subset(codes, g, h, *, lam, min_rows=1):
    """Return the best gain over all ways to divide the levels of one column."""
    levels = np.unique(codes)
    best = -np.inf
    for size in range(1, len(levels)):
        for chosen in combinations(levels, size):
            left = np.isin(codes, chosen)
            if min(left.sum(), (~left).sum()) >= min_rows:
                best = max(best, gain(g, h, left, lam))
    return best


def grow_leafwise(codes, n_bins, g, h, *, max_leaves, lam, min_rows, gamma=0.0):
    """Return the leaf of each row (numbered in the order of creation) after greedy best-first growth."""
    leaf = np.zeros(len(g), int)
    while leaf.max() + 1 < max_leaves:
        options = []
        for i in range(leaf.max() + 1):
            rows = np.flatnonzero(leaf == i)
            found = best_split(codes[rows], n_bins, g[rows], h[rows], lam=lam, min_rows=min_rows, gamma=gamma)
            options.append((found[0], rows, found[2]))
        top = max(range(len(options)), key=lambda k: options[k][0])
        if not options[top][0] > 0:
            break
        leaf[options[top][1][~options[top][2]]] = leaf.max() + 1
    return leaf
