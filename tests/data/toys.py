"""The smallest estimators behind the door: one predicts the mean, one the most frequent class."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from learnable.core import Certificate, Estimator, Run
from learnable.data import Table, door, map_reduce, read_features


class MeanRegressor(RegressorMixin, Estimator):
    _parameters: ClassVar = {}
    _door = staticmethod(door(target="numeric"))

    def _fit(self, table: Table, run: Run) -> Certificate:
        def statistic(block):
            weight = np.ones(len(block.y)) if block.weight is None else block.weight
            return np.array([weight @ block.y, weight.sum()])

        total, weight = map_reduce(table.blocks, statistic, np.add, n_jobs=run.n_jobs, flag=run.flag)
        self.mean_ = total / weight
        return Certificate("closed-form", 0.0, 0.0)

    def predict(self, X):
        check_is_fitted(self)
        return np.full(read_features(self, X).shape[0], self.mean_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        return tags


class MajorityClassifier(ClassifierMixin, Estimator):
    _parameters: ClassVar = {}
    _door = staticmethod(door(target="classes", sparse=False))

    def _fit(self, table: Table, run: Run) -> Certificate:
        counts = np.bincount(table.y, weights=table.weight)
        self.classes_ = table.classes
        self.shares_ = counts / counts.sum()
        return Certificate("closed-form", 0.0, 0.0)

    def predict_proba(self, X):
        check_is_fitted(self)
        return np.tile(self.shares_, (read_features(self, X, sparse=False).shape[0], 1))

    def predict(self, X):
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
