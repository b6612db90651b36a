"""Subsets by enumeration, steps by refitting everything: slow, and without a line in common with the library."""

import itertools

import numpy as np


def centred(X, y, weight=None, intercept=True):
    """Return √w (x − x̄) and √w (y − ȳ)."""
    s = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    x_mean = s @ X / s.sum() if intercept else 0.0
    y_mean = s @ y / s.sum() if intercept else 0.0
    return np.sqrt(s)[:, None] * (X - x_mean), np.sqrt(s) * (y - y_mean)


def rss(A, b, columns, alpha=0.0):
    """Return min ‖b − Aβ‖² + α‖β‖² over β on some columns."""
    part = A[:, list(columns)]
    if alpha:
        part = np.vstack([part, np.sqrt(alpha) * np.eye(part.shape[1])])
        b = np.r_[b, np.zeros(part.shape[1])]
    r = b - part @ np.linalg.lstsq(part, b, rcond=None)[0] if part.shape[1] else b
    return float(r @ r)


def best_of_each_size(X, y, weight=None, intercept=True, alpha=0.0, required=()):
    """Return {size: (least RSS, columns)} by enumeration."""
    A, b = centred(np.asarray(X, dtype=float), np.asarray(y, dtype=float), weight, intercept)
    p = A.shape[1]
    free = [j for j in range(p) if j not in required]
    found = {}
    for k in range(len(free) + 1):
        every = [tuple(sorted([*required, *chosen])) for chosen in itertools.combinations(free, k)]
        found[k + len(required)] = min((rss(A, b, columns, alpha), columns) for columns in every)
    return found


def forward(X, y):
    """Return the order in which columns enter, each the one that leaves the least RSS."""
    A, b = centred(np.asarray(X, dtype=float), np.asarray(y, dtype=float))
    chosen = []
    while len(chosen) < A.shape[1]:
        rest = [j for j in range(A.shape[1]) if j not in chosen]
        chosen.append(min(rest, key=lambda j: rss(A, b, [*chosen, j])))
    return chosen


def backward(X, y):
    """Return the order in which columns leave, each the one that is missed least."""
    A, b = centred(np.asarray(X, dtype=float), np.asarray(y, dtype=float))
    kept = list(range(A.shape[1]))
    left = []
    while kept:
        j = min(kept, key=lambda j: rss(A, b, [i for i in kept if i != j]))
        kept.remove(j)
        left.append(j)
    return left
