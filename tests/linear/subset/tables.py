"""Tables on which subsets and steps are tested."""

import numpy as np


def hald():
    """Return the heat of 13 cements by four compounds (H. Woods, H. Steinour and H. Starke, 1932; A. Hald, 1952)."""
    X = [
        [7, 26, 6, 60],
        [1, 29, 15, 52],
        [11, 56, 8, 20],
        [11, 31, 8, 47],
        [7, 52, 6, 33],
        [11, 55, 9, 22],
        [3, 71, 17, 6],
        [1, 31, 22, 44],
        [2, 54, 18, 22],
        [21, 47, 4, 26],
        [1, 40, 23, 34],
        [11, 66, 9, 12],
        [10, 68, 8, 12],
    ]
    y = [78.5, 74.3, 104.3, 87.6, 95.9, 109.2, 102.7, 72.5, 93.1, 115.9, 83.8, 113.3, 109.4]
    return np.array(X, dtype=float), np.array(y)


def noisy(p, n=60, seed=0, spread=1.0):
    """Return correlated columns, and a target of the first third of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return X, X[:, : p // 3].sum(axis=1) + spread * rng.normal(size=n)
