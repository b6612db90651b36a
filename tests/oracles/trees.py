"""Trees by exhaustive search: impurities from their definitions, every cut of every column, every set of categories."""

from itertools import combinations

import numpy as np


def impurity(criterion, y, w, n_classes=None):
    """Weighted impurity W·I of rows, straight from the definition."""
    if criterion == "absolute_error":
        return min((w * np.abs(y - centre)).sum() for centre in y)
    if criterion == "squared_error":
        return (w * (y - np.average(y, weights=w)) ** 2).sum()
    if criterion == "poisson":
        mean = np.average(y, weights=w)
        if mean <= 0:
            return np.inf
        return sum(wi * yi * np.log(yi / mean) for wi, yi in zip(w, y, strict=True) if yi > 0)
    share = np.array([w[y == k].sum() for k in range(n_classes)]) / w.sum()
    if criterion == "gini":
        return w.sum() * (1 - (share**2).sum())
    if criterion == "misclassification":
        return w.sum() * (1 - share.max())
    return -w.sum() * sum(p * np.log2(p) for p in share if p > 0)


def splits_of(x, categorical=False):
    """Yield every way to send rows left by one column; missing values go either way."""
    missing = np.isnan(x)
    sides = (False, True) if missing.any() else (False,)
    levels = np.unique(x[~missing])
    for gaps_left in sides:
        if categorical:
            sets = [c for size in range(1, len(levels)) for c in combinations(levels, size)]
            lefts = [np.isin(x, chosen) for chosen in sets]
        else:
            lefts = [x <= cut for cut in levels[:-1]]
        for left in lefts:
            yield np.where(missing, gaps_left, left)
    if missing.any() and len(levels):
        yield ~missing


def best_gain(X, y, w, criterion, *, n_classes=None, min_leaf=1, min_weight=0.0, categorical=()):
    """Largest fall of the weighted impurity among all splits; −inf if there is none."""
    best = -np.inf
    whole = impurity(criterion, y, w, n_classes)
    for j in range(X.shape[1]):
        for left in splits_of(X[:, j], j in categorical):
            if min(left.sum(), (~left).sum()) < min_leaf or min(w[left].sum(), w[~left].sum()) < min_weight:
                continue
            parts = [impurity(criterion, y[side], w[side], n_classes) for side in (left, ~left)]
            best = max(best, whole - sum(parts))
    return best


def rows_of_nodes(tree, X):
    """Rows of every node, by the tree's own questions, asked one by one."""
    rows = {0: np.arange(len(X))}
    for i in range(tree.n_nodes):
        if tree.feature[i] < 0:
            continue
        left = np.array([_goes_left(tree, i, X[r, tree.feature[i]]) for r in rows[i]], dtype=bool)
        rows[int(tree.left[i])], rows[int(tree.right[i])] = rows[i][left], rows[i][~left]
    return rows


def _goes_left(tree, i, x):
    if np.isnan(x):
        return bool(tree.missing_left[i])
    if tree.category[i] < 0:
        return x <= tree.threshold[i]
    at = tree.category[i]
    words = tree.bits[at + 1 : at + 1 + int(tree.bits[at])]
    inside = 0 <= x < 32 * len(words)
    return bool(int(words[int(x) // 32]) >> (int(x) % 32) & 1) if inside else bool(tree.missing_left[i])
