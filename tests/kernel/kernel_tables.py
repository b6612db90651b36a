"""Small tables that the tests of kernel machines share."""

import tracemalloc

import numpy as np


def curved(n=60, d=3, targets=None, seed=0):
    """Return rows, curved targets of them (n,) or (n, targets), and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.column_stack([np.sin(2.0 * X[:, k % d]) + X[:, (k + 1) % d] ** 2 for k in range(targets or 1)])
    Y += 0.1 * rng.standard_normal(Y.shape)
    return X, Y[:, 0] if targets is None else Y, rng.uniform(0.5, 2.0, n)


def rings(n=80, classes=2, seed=1):
    """Return rows of the plane in noisy rings, their classes, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.digitize((X**2).sum(axis=1) + 0.4 * rng.standard_normal(n), np.linspace(0.0, 4.0, classes + 1)[1:-1])
    return X, y, rng.uniform(0.5, 2.0, n)


def peak_bytes(action):
    """Return the most memory that Python and NumPy hold during a call, beyond what they held before."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
