"""Small tables for the tests of support vector machines and perceptrons."""

import numpy as np


def two_classes(n=120, d=4, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + noise * rng.normal(size=n) + 0.3 > 0, 1, -1)
    y[:2] = 1, -1
    return X, y


def several_classes(n=60, d=3, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, n_classes)) + 0.7 * rng.normal(size=(n, n_classes)), axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def numbers(n=100, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.5 + rng.standard_t(3, size=n)


def weights_of(model, row=0):
    """Return (b/B, w) of a fitted model."""
    b = np.broadcast_to(model.intercept_, (len(np.atleast_2d(model.coef_)),))[row]
    first = b / model.intercept_scaling if model.fit_intercept else 0.0
    return np.r_[first, np.atleast_2d(model.coef_)[row]]
