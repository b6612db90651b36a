"""Small models to wrap, and tables to wrap them on."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from learnable import Ridge


class ScoreIsFirstColumn(ClassifierMixin, BaseEstimator):
    """A classifier whose decision function is the first column of X."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Overconfident(ClassifierMixin, BaseEstimator):
    """A classifier that cubes and renormalises the probabilities it should give: the first columns of X."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.asarray(X)[:, : len(self.classes_)] ** 3
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class RefittedRidge(Ridge):
    """Ridge under another name, which has no leave-one-out formula."""


class Broken(RegressorMixin, BaseEstimator):
    """A regressor that predicts NaN."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


def regression(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2.0
    return X, X[:, 0] - X[:, -1] + rng.normal(size=n)


def classes(n=150, k=3, seed=0):
    """Return overlapping clouds with labels that are words."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(k, size=n)
    return rng.normal(size=(n, 2)) + 2.0 * np.eye(k, 2)[codes], np.array(["ant", "bee", "cat", "dog"])[codes]
