r"""Calibrated probabilities: p with P(y = k | p) = p_k, from a classifier's scores on rows it was not fitted to.

A calibrator is a map from scores to probabilities (`calibrators.py`), fitted to the held-out rows of each fold. Sigmoid
and isotonic maps treat each class against the others and are then divided by their sum; the temperature treats all
classes at once. The result is the mean over the folds' pairs of classifier and calibrator, or one classifier fitted to
all rows and one calibrator fitted to all out-of-fold scores.

References: see `calibrators.py`; A. Niculescu-Mizil and R. Caruana, Predicting good probabilities with supervised
learning, ICML 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..core.declare import N_JOBS, Boolean, Matches, Nothing, Options, fitted, param
from ..core.errors import DataError, ModelFileError
from ..core.estimator import Certificate, Estimator, Run
from ..data.rows import Sample, sample_door, take_rows
from ..linear.logistic.regression import LogisticRegression
from ._rows import CV, Rows, adopt_features, fit_copies, is_prefit, splits_of
from .calibrators import (
    TOLERANCE,
    Isotonic,
    Sigmoid,
    Temperature,
    fit_isotonic,
    fit_sigmoid,
    fit_temperature,
)

Array = NDArray[np.float64]

_SMALLEST_PROBABILITY = 1e-12  # added before the logarithm, as in scikit-learn
_CLASSIFIER = Matches(
    lambda v: not isinstance(v, type) and (hasattr(v, "decision_function") or hasattr(v, "predict_proba")),
    "a classifier with decision_function or predict_proba",
)


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, Estimator):
    """A classifier whose probabilities are fitted to held-out rows.

    The parameters and the results are those of scikit-learn's `CalibratedClassifierCV`; the fitted state is plain
    (numbers, arrays, the inner models), so that it can be saved when the inner model can.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    estimators_ : list
        The fitted classifiers: one a fold, or one.
    calibrators_ : list of lists of Sigmoid, Isotonic or Temperature
        For each classifier one map a class (one in all for two classes, and for the temperature).
    calibration_rows_ : list of arrays
        The rows, among those with positive weight, that each calibrator was fitted to.
    certificate_ : Certificate
        `stationarity`: the relative gradient of the worst calibrator; `none` when the out-of-fold scores cannot be had
        again (`ensemble=False`).
    n_features_in_ : int
        Number of columns, if the classifier counts them.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if the classifier knows them.

    Notes
    -----
    A classifier of fewer classes than y has (a fold without a class) gives that class probability zero. Weights are
    used for the fits and for the calibration; a row of weight zero is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LogisticRegression
    >>> from learnable.evaluation import CalibratedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = rng.random(200) < 1 / (1 + np.exp(-3 * X[:, 0]))
    >>> model = CalibratedClassifier(LogisticRegression(C=1e-3)).fit(X, y)  # far too timid by itself
    >>> model.predict_proba([[1.0, 0.0]]).round(2)
    array([[0.09, 0.91]])
    """

    _theory = "calibration"

    estimator: Any = param(
        Nothing() | _CLASSIFIER,
        "What to calibrate, by its `decision_function` if it has one, else by its `predict_proba`. None is "
        "`LogisticRegression()`.",
        default=None,
        kw_only=False,
    )
    method: str = param(
        Options("sigmoid", "isotonic", "temperature"),
        '"sigmoid" has two numbers a class and suits few rows; "isotonic" follows any increasing curve '
        'and needs about a thousand rows; "temperature" has one number for all classes and never changes '
        "which class is first.",
        default="sigmoid",
    )
    cv: Any = param(
        CV,
        'Folds (stratified if an integer; None is 5). With "prefit", or a `sklearn.frozen.FrozenEstimator`, '
        "the classifier is already fitted and all rows calibrate it: they must not be those it was fitted to.",
        default=5,
    )
    n_jobs: int | None = param(N_JOBS, "Processes that fit the folds.", default=None)
    ensemble: bool | str = param(
        Boolean() | Options("auto"),
        "True: the mean of one calibrated classifier a fold. False: the classifier fitted to all rows, with "
        'one calibrator fitted to the out-of-fold scores. "auto" is True unless the classifier is already '
        "fitted.",
        default="auto",
    )

    _door = staticmethod(sample_door("classes"))
    _remedy = "look at the scores for outliers"

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    estimators_: list[Any] = fitted("list", "The fitted classifiers: one a fold, or one.")
    calibrators_: list[list[Any]] = fitted("list of lists of Sigmoid, Isotonic or Temperature", "Their maps.")
    calibration_rows_: list[Rows] = fitted("list of arrays", "The rows that each calibrator was fitted to.")

    def _fit(self, table: Sample, run: Run) -> Certificate:
        self.classes_ = np.asarray(table.classes)
        estimator = self._inner()
        everything = np.arange(table.n_rows)
        prefit = is_prefit(estimator, self.cv)
        if prefit:
            self.estimators_ = [estimator]
            self.calibration_rows_ = [everything]
            scores = [self._scores(estimator, table.X)]
        else:
            self._require_rows(table)
            splits = splits_of(type(self).__name__, self.cv, table, classifier=True)
            models = fit_copies(type(self).__name__, estimator, table, [train for train, _ in splits], self.n_jobs)
            tests = [test for _, test in splits]
            scores = [self._scores(model, take_rows(table.X, test)) for model, test in zip(models, tests, strict=True)]
            if self.ensemble is False:
                models, tests, scores = self._join(table, models, tests, scores)
            self.estimators_ = models
            self.calibration_rows_ = tests
        pairs = [
            self._fit_calibrators(model, s, table.y[rows], table.weights(rows))
            for model, s, rows in zip(self.estimators_, scores, self.calibration_rows_, strict=True)
        ]
        self.calibrators_ = [maps for maps, _ in pairs]
        adopt_features(self, self.estimators_[0])
        if self.ensemble is False and not prefit:
            return Certificate("none", np.nan, np.nan)
        return Certificate("stationarity", max(measure for _, measure in pairs), TOLERANCE)

    def _join(
        self, table: Sample, models: list[Any], tests: list[Rows], scores: list[Array]
    ) -> tuple[list[Any], list[Rows], list[Array]]:
        """Return the classifier of all rows, with the out-of-fold scores of all rows."""
        rows = np.concatenate(tests)
        if len(rows) != table.n_rows or len(np.unique(rows)) != len(rows):
            raise DataError("CalibratedClassifier: ensemble=False needs folds that hold every row once; see cv.")
        for model in models:
            if len(model.classes_) < len(self.classes_):
                missing = sorted(set(self.classes_.tolist()) - set(np.asarray(model.classes_).tolist()))
                raise DataError(
                    f"CalibratedClassifier: ensemble=False needs every class in every fold's training rows; one has no "
                    f"{missing[0]!r}. Use fewer or stratified folds."
                )
        whole = fit_copies(type(self).__name__, self._inner(), table, [np.arange(table.n_rows)])
        return whole, [rows], [np.concatenate(scores)]

    def _require_rows(self, table: Sample) -> None:
        n_folds = 5 if self.cv is None else self.cv
        counts = np.bincount(table.y)
        if isinstance(n_folds, (int, np.integer)) and counts.min() < n_folds:
            label = self.classes_.tolist()[int(counts.argmin())]
            raise DataError(
                f"CalibratedClassifier: {n_folds} folds need at least {n_folds} rows of every class; class {label!r} "
                f"has {counts.min()} of n_samples = {table.n_rows}. Use fewer folds, or leave the class out."
            )

    def _fit_calibrators(
        self, model: Any, scores: Array, codes: NDArray[np.int64], weight: Array | None
    ) -> tuple[list[Any], float]:
        """Return the maps of one classifier and the worst of their gradients."""
        known = self._positions(model)
        if self.method == "temperature":
            rows = np.isin(codes, known)  # a class that the classifier has not seen has no logit
            own = np.searchsorted(known, codes[rows])
            fits: list[Any] = [fit_temperature(scores[rows], own, None if weight is None else weight[rows])]
        else:
            fit = fit_sigmoid if self.method == "sigmoid" else fit_isotonic
            of_column = known if scores.shape[1] > 1 else known[1:]
            fits = [fit(scores[:, j], codes == code, weight) for j, code in enumerate(of_column)]
        return [made for made, _ in fits], max(measure for _, measure in fits)

    def _scores(self, model: Any, X: Any) -> Array:
        """Return what the calibrators of one classifier see: one column a class it knows, or one for two classes."""
        method = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
        scores = np.asarray(getattr(model, method)(X), dtype=np.float64)
        if not np.isfinite(scores).all():
            raise DataError(f"CalibratedClassifier: {type(model).__name__}.{method} gives numbers that are not finite.")
        n_known = len(model.classes_)
        binary = n_known == 2
        if scores.ndim == 1 and binary:
            scores = np.column_stack([-scores, scores])
        if scores.ndim != 2 or scores.shape[1] != n_known:
            raise DataError(
                f"CalibratedClassifier: {type(model).__name__}.{method} must give one column a class; got shape "
                f"{scores.shape} for {n_known} classes."
            )
        if self.method != "temperature":
            return scores[:, 1:] if binary and len(self.classes_) == 2 else scores
        return scores if method == "decision_function" else np.log(scores + _SMALLEST_PROBABILITY)

    def _positions(self, model: Any) -> NDArray[np.int64]:
        """Return where the classes that a classifier knows stand among all classes."""
        place = {label: code for code, label in enumerate(self.classes_.tolist())}
        try:
            return np.array([place[label] for label in np.asarray(model.classes_).tolist()])
        except KeyError as error:
            raise DataError(
                f"CalibratedClassifier: the classifier knows the class {error.args[0]!r}, which y does not have. "
                "Calibrate it with rows of all its classes."
            ) from None

    def predict_proba(self, X: Any) -> Array:
        """Return the calibrated probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows, as the inner classifier takes them.

        Returns
        -------
        array of shape (n_samples, n_classes)
            The mean over the calibrated classifiers.
        """
        check_is_fitted(self)
        pairs = zip(self.estimators_, self.calibrators_, strict=True)
        return np.asarray(np.mean([self._calibrated(model, maps, X) for model, maps in pairs], axis=0))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the greatest calibrated probability."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _calibrated(self, model: Any, maps: list[Any], X: Any) -> Array:
        scores = self._scores(model, X)
        known = self._positions(model)
        n_classes = len(self.classes_)
        if self.method == "temperature":
            columns = maps[0](scores)
        else:
            columns = np.column_stack([calibrate(scores[:, j]) for j, calibrate in enumerate(maps)])
        if n_classes == 2 and columns.shape[1] == 1:
            return np.column_stack([1.0 - columns[:, 0], columns[:, 0]])
        p = np.zeros((len(columns), n_classes))
        p[:, known] = columns
        total = p.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(p, total, out=np.full_like(p, 1.0 / n_classes), where=total > 0))

    def _inner(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner()).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        return tags

    def _check_loaded(self) -> None:
        models = getattr(self, "estimators_", None)
        maps = getattr(self, "calibrators_", None)
        classes = getattr(self, "classes_", None)
        rows = getattr(self, "calibration_rows_", None)
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            raise ModelFileError("load: classes_ must hold at least two labels.")
        if not (isinstance(models, list) and isinstance(maps, list) and isinstance(rows, list)):
            raise ModelFileError("load: estimators_, calibrators_ and calibration_rows_ must be lists.")
        if not 0 < len(models) == len(maps) == len(rows):
            raise ModelFileError("load: every classifier needs its calibrators and its rows.")
        kind = {"sigmoid": Sigmoid, "isotonic": Isotonic, "temperature": Temperature}[self.method]
        for model, own, used in zip(models, maps, rows, strict=True):
            n_known = len(getattr(model, "classes_", ()))
            expected = 1 if self.method == "temperature" or len(classes) == 2 else n_known
            if not isinstance(own, list) or len(own) != expected or not all(type(one) is kind for one in own):
                raise ModelFileError(f"load: a classifier of {n_known} classes needs {expected} maps of {self.method}.")
            if not isinstance(used, np.ndarray) or used.dtype != np.int64 or used.ndim != 1:
                raise ModelFileError("load: calibration_rows_ must hold row numbers.")
