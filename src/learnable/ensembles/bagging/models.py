"""Bagging: the mean, or the vote, of models fitted on random bags of the rows.

With f_b fitted on the b-th of B bags, a regressor predicts B⁻¹ Σ_b f_b(x) and a classifier the class with the largest
mean probability, or the most votes if its members have no probabilities. Averaging leaves the bias of a member and
lowers its variance: members of variance σ² and pairwise correlation ρ have a mean of variance ρσ² + (1 − ρ)σ²/B. The
rows that are in no bag of a member estimate the error of the ensemble without a test set.

References: L. Breiman, Bagging predictors, Machine Learning 24 (1996); L. Breiman, Pasting small votes, Machine
Learning 36 (1999), for bags without replacement; T. K. Ho, The random subspace method, PAMI 20 (1998), for columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ...core import DataError, fitted, is_labels, law, laws
from ...data.door import Target, drop_absent_classes
from ...data.sources import rowwise
from ...meta.binary import models_have
from ..draws import Rows, draw_rows
from .bags import Array, Bagging, BagTable

_MOST_ATTEMPTS = 1000  # draws of a bag until it holds two classes; then one class is taken


class BaggingClassifier(ClassifierMixin, Bagging):
    """Classifiers on random bags of the rows, and their mean probability or vote.

    A bag always holds two classes, unless there is only one class or row: one that does not is drawn again. Weights of
    the rows are the chances with which they are drawn, as in scikit-learn. A member sees the distinct rows of its bag,
    with the number of draws as weights if it takes weights and has no parts of its own (a pipeline gets the rows as
    often as they were drawn).

    Examples
    --------
    >>> from learnable import BaggingClassifier, LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], list("aaabbb")
    >>> model = BaggingClassifier(LogisticRegression(), n_estimators=20, random_state=0).fit(X, y)
    >>> model.predict([[0.5], [6.5]]).tolist(), model.certificate_.holds
    (['a', 'b'], True)
    """

    _theory = "bagging"

    _target: ClassVar[Target] = "classes"
    _default: ClassVar[str] = "DecisionTreeClassifier"

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    estimators_: list[Any] = fitted("list of estimators", "The members; their labels are positions in `classes_`.")
    oob_decision_function_: Array = fitted(
        "(n_rows, n_classes)",
        "With `oob_score`: mean probabilities over the members that have not seen the row; NaN where all have.",
        finite=False,
        optional=True,
    )

    def _read(self, X: Any, y: Any, sample_weight: Any) -> BagTable:
        table = super()._read(X, y, sample_weight)
        codes = table.y
        classes = np.asarray(table.classes)
        if table.weight is not None:  # rows of weight zero are never drawn, so that their labels do not matter
            drawn = table.weight > 0
            kept, classes = drop_absent_classes(codes[drawn], classes)
            codes = np.zeros_like(codes)
            codes[drawn] = kept
        self.classes_ = classes
        return table._replace(y=codes, classes=classes)

    def _draw_bag(self, member: int, table: BagTable) -> tuple[Rows, int]:
        hopeless = min(len(self.classes_), self.max_samples_) == 1
        for attempt in range(1 if hopeless else _MOST_ATTEMPTS):
            rows = draw_rows(self._draw(), member, attempt)
            if np.ptp(table.y[rows]):
                break
        return rows, attempt  # a bag of one class at last: some members take it

    def _judge_out_of_bag(self, table: BagTable) -> None:
        votes = np.zeros((len(table.y), len(self.classes_)))
        voters = np.zeros(len(table.y))
        for model, rows, X in self._out_of_bag(table):
            votes[rows] += self._probabilities(model, X, {})
            voters[rows] += 1.0
        judged = _judged_rows(voters, table.weight)
        self.oob_decision_function_ = votes / np.where(voters > 0, voters, np.nan)[:, None]
        self.oob_score_ = float(np.mean(votes[judged].argmax(axis=1) == table.y[judged]))

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @rowwise
    def predict(self, X: Any, **params: Any) -> NDArray[Any]:
        """Return the label with the largest mean probability, or the most votes; of several, the first.

        Parameters
        ----------
        X : array, sparse array, dataframe or path of shape (n_samples, n_features)
            Rows.
        **params : dict
            Metadata that the estimator asked for; only with scikit-learn's `enable_metadata_routing=True`.
        """
        check_is_fitted(self, "estimators_")
        return self.classes_[self._mean_probabilities(X, self._routed("predict", params)).argmax(axis=1)]

    @rowwise
    def predict_proba(self, X: Any, **params: Any) -> Array:
        """Return the mean of the members' probabilities; for members without, the shares of their votes.

        X and params are those of `predict`.
        """
        return self._mean_probabilities(X, self._routed("predict_proba", params))

    @rowwise
    def predict_log_proba(self, X: Any, **params: Any) -> Array:
        """Return the logarithm of the mean probability: of the members' own logarithms, where they have them.

        X and params are those of `predict`.
        """
        check_is_fitted(self, "estimators_")
        given = self._routed("predict_log_proba", params)
        if not all(hasattr(model, "predict_log_proba") for model in self.estimators_):
            with np.errstate(divide="ignore"):
                return np.log(self._mean_probabilities(X, given))
        answers = self._each(partial(self._log_probabilities, given=given), X)
        total = next(answers)
        for answer in answers:
            total = np.logaddexp(total, answer)
        return total - np.log(len(self.estimators_))

    @models_have("decision_function")
    @rowwise
    def decision_function(self, X: Any, **params: Any) -> Array:
        """Return the mean of the members' decision functions; every bag must have held all classes.

        X and params are those of `predict`.
        """
        check_is_fitted(self, "estimators_")
        for member, model in enumerate(self.estimators_):
            if len(model.classes_) < len(self.classes_):
                absent = self.classes_[np.setdiff1d(np.arange(len(self.classes_)), model.classes_)]
                raise DataError(
                    f"{type(self).__name__}: the bag of member {member} had no row of class {absent[0]!r}, so that it "
                    "has no score of it. Use predict_proba, or raise max_samples."
                )
        return self._mean(partial(_decide, given=self._routed("decision_function", params)), X)

    def _mean_probabilities(self, X: Any, given: Mapping[str, Any]) -> Array:
        return self._mean(partial(self._probabilities, given=given), X)

    def _probabilities(self, model: Any, X: Any, given: Mapping[str, Any]) -> Array:
        """Return one member's probabilities of all classes, of which its bag may have held only some."""
        if hasattr(model, "predict_proba"):
            return self._spread(model, model.predict_proba(X, **given), 0.0)
        return np.eye(len(self.classes_))[np.asarray(model.predict(X, **given), dtype=np.int64)]

    def _log_probabilities(self, model: Any, X: Any, given: Mapping[str, Any]) -> Array:
        return self._spread(model, model.predict_log_proba(X, **given), -np.inf)

    def _spread(self, model: Any, found: Any, absent: float) -> Array:
        """Return a member's figures for all classes, with the value `absent` for those that its bag did not hold."""
        found = np.asarray(found, dtype=np.float64)
        seen = np.asarray(model.classes_, dtype=np.int64)
        if len(seen) == len(self.classes_):
            return found
        spread = np.full((len(found), len(self.classes_)), absent)
        spread[:, seen] = found
        return spread

    _laws = laws(
        law("BaggingClassifier: classes_ must hold labels", lambda bag: is_labels(bag.classes_, 1)),
        law(
            "BaggingClassifier: the labels of a member are not positions in classes_",
            lambda bag: all(
                is_labels(model.classes_, 0) and set(model.classes_.tolist()) <= set(range(len(bag.classes_)))
                for model in bag.estimators_
            ),
        ),
    )


class BaggingRegressor(RegressorMixin, Bagging):
    """Regressors on random bags of the rows, and the mean of their predictions.

    Weights of the rows are the chances with which they are drawn, as in scikit-learn. A member sees the distinct rows
    of its bag, with the number of draws as weights if it takes weights and has no parts of its own.

    Examples
    --------
    >>> from learnable import BaggingRegressor, Ridge
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    >>> model = BaggingRegressor(Ridge(alpha=0.001), n_estimators=20, random_state=0).fit(X, y)
    >>> model.predict([[1.5]]).round(2), model.certificate_.holds
    (array([1.5]), True)
    """

    _theory = "bagging"

    _target: ClassVar[Target] = "numeric"
    _default: ClassVar[str] = "DecisionTreeRegressor"

    oob_prediction_: Array = fitted(
        "(n_rows,) or (n_rows, n_targets)",
        "With `oob_score`: mean over the members that have not seen the row; NaN where all have.",
        finite=False,
        optional=True,
    )

    def _judge_out_of_bag(self, table: BagTable) -> None:
        from sklearn.metrics import r2_score

        total = np.zeros(table.y.shape)
        voters = np.zeros(len(table.y))
        for model, rows, X in self._out_of_bag(table):
            total[rows] += _predict(model, X, {}).reshape(total[rows].shape)
            voters[rows] += 1.0
        judged = _judged_rows(voters, table.weight)
        self.oob_prediction_ = (total.T / np.where(voters > 0, voters, np.nan)).T
        self.oob_score_ = float(r2_score(table.y[judged], self.oob_prediction_[judged])) if judged.sum() > 1 else np.nan

    @rowwise
    def predict(self, X: Any, **params: Any) -> Array:
        """Return the mean of the members' predictions.

        Parameters
        ----------
        X : array, sparse array, dataframe or path of shape (n_samples, n_features)
            Rows.
        **params : dict
            Metadata that the estimator asked for; only with scikit-learn's `enable_metadata_routing=True`.
        """
        check_is_fitted(self, "estimators_")
        return self._mean(partial(_predict, given=self._routed("predict", params)), X)


def _judged_rows(voters: Array, weight: Array | None) -> NDArray[np.bool_]:
    judged = voters > 0 if weight is None else (voters > 0) & (weight > 0)
    if not judged.all():
        warnings.warn(
            "Some inputs do not have OOB scores. This probably means too few estimators were used to compute any "
            f"reliable oob estimates. Every bag holds {int((~judged).sum())} of {len(judged)} rows.",
            UserWarning,
            stacklevel=4,
        )
    return judged


def _predict(model: Any, X: Any, given: Mapping[str, Any]) -> Array:
    return np.asarray(model.predict(X, **given), dtype=np.float64)


def _decide(model: Any, X: Any, given: Mapping[str, Any]) -> Array:
    return np.asarray(model.decision_function(X, **given), dtype=np.float64)
