"""Tables of two classes for support vector machines."""

import numpy as np


def noisy(n=120, d=3, seed=0, noise=0.7):
    """Return rows of two overlapping classes, labelled ±1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)


def separable(n=60, d=2, seed=0, gap=0.3):
    """Return rows that a plane separates, with room of `gap` on both sides."""
    X, _ = noisy(2 * n, d, seed)
    X = X[np.abs(X[:, 0]) > gap][:n]
    return X, np.where(X[:, 0] > 0, 1.0, -1.0)


def gaussian(X, gamma):
    """Return the Gaussian kernel matrix, from differences."""
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
