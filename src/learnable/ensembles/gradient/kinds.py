"""Boosted classifiers and boosted regressors: what their scores mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ...core.declare import Options, fitted, param
from ...data.door import Table
from ...data.sources import NamedScore, named_columns, rowwise
from ...trees.settings import class_factors
from ..explain.effects import PredictiveDistribution
from .base import GradientBoosting, boosting_door
from .distribution import JointQuantiles
from .driver import take_trees
from .loss_base import BoostingLoss
from .losses import CLASS_LOSSES, REGRESSION_LOSSES, class_loss, regression_loss
from .settings import CLASS_WEIGHT, CUSTOM_LOSS

# --------------------------------------------------------------------------------------------------------------------
# Predictions after every round: F_0 + ρ_1T_1, then + ρ_2T_2, and so on; each stage costs one round of trees.


Array = NDArray[np.float64]


def staged_raw(model: Any, X: Any) -> Iterator[Array]:
    """Yield the scores (K, n) of rows after the first round, the second, …; the array is the same each time."""
    K = model.n_trees_per_iteration_
    raw = model._raw_start(X)
    for m in range(model.trees_.n_trees // K):
        for k in range(K):
            raw[k] += take_trees(model.trees_, [m * K + k]).sum(X, model.n_jobs)[:, 0]
        yield raw


def _has_probability(model: Any) -> bool:
    return isinstance(model.loss, str) or hasattr(model.loss, "probability")


class BoostedClassifier(NamedScore, ClassifierMixin, GradientBoosting):
    """Base of the boosted classifiers; not to be used directly."""

    loss: Any = param(
        Options(*CLASS_LOSSES) | CUSTOM_LOSS,
        "V. Or any object with `value(y, z)` and `gradient(y, z)` (and, if there is one, `curvature(y, z)`) "
        "on arrays, such as those of `learnable.risk.losses`; y is ±1 for two classes, else codes, and z then "
        "has K columns.",
        default="log_loss",
    )
    class_weight: Any = param(CLASS_WEIGHT, "Weights of the classes.", default=None)

    _classes: ClassVar[bool] = True
    _door = staticmethod(boosting_door("classes"))

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")

    def _loss(self, n_classes: int) -> BoostingLoss:
        return class_loss(type(self).__name__, self.loss, n_classes)

    def _row_weight(self, table: Table) -> Array | None:
        factor = class_factors(type(self).__name__, self.class_weight, table)
        return table.weight if factor is None else factor if table.weight is None else factor * table.weight

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the largest score.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        """
        return self._labels(self._raw(X))

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores F(x): (n_samples,) for two classes, else (n_samples, n_classes)."""
        return _shaped(self._raw(X))

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, (n_samples, n_classes)."""
        raw = self._raw(X)
        return self._fitted_loss().probability(raw)

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield the scores after each round."""
        for raw in self._staged(X):
            yield _shaped(raw.copy())

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the labels after each round."""
        for raw in self._staged(X):
            yield self._labels(raw)

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Yield the probabilities after each round."""
        for raw in self._staged(X):
            yield self._fitted_loss().probability(raw)

    def _staged(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self, "trees_")
        return staged_raw(self, self._read(X))

    def _labels(self, raw: Array) -> NDArray[Any]:
        codes = (raw[0] > 0).astype(np.int64) if len(raw) == 1 else raw.argmax(axis=0)
        return self.classes_[codes]


class BoostedRegressor(NamedScore, RegressorMixin, PredictiveDistribution, GradientBoosting):
    """Base of the boosted regressors; not to be used directly."""

    loss: Any = param(
        Options(*REGRESSION_LOSSES) | CUSTOM_LOSS,
        "V. Poisson and gamma fit the logarithm of the mean. Or any object with "
        "`value(y, z)` and `gradient(y, z)` (and, if there is one, `curvature(y, z)`) on arrays, such as "
        "those of `learnable.risk.losses`.",
        default="squared_error",
    )

    _door = staticmethod(boosting_door("numeric"))

    def _level(self) -> Any:
        """Return the level or levels of the quantiles; of Huber's loss, the share of small residuals."""
        return None

    def _loss(self, n_classes: int) -> BoostingLoss:
        return regression_loss(type(self).__name__, self.loss, self._level())

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the predictions: (n_samples,), or (n_samples, n_quantiles) if several quantiles were fitted.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        """
        raw = self._raw(X)
        return self._fitted_loss().predict(raw)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the predictions after each round."""
        check_is_fitted(self, "trees_")
        loss = self._fitted_loss()
        for raw in staged_raw(self, self._read(X)):
            yield loss.predict(raw.copy())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R²; of several quantiles, that of the one nearest to the median."""
        from sklearn.metrics import r2_score

        loss = self._fitted_loss()
        if not isinstance(loss, JointQuantiles):
            return float(super().score(X, y, sample_weight))
        X, y, sample_weight = named_columns(type(self).__name__, X, y, sample_weight)
        return float(r2_score(y, np.asarray(self.predict(X))[:, loss.middle], sample_weight=sample_weight))


def _shaped(raw: Array) -> Array:
    return raw[0] if len(raw) == 1 else np.ascontiguousarray(raw.T)
