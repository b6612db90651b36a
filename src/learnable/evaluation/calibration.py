"""Calibrated probabilities: p with P(y = k | p) = p_k, from a classifier's scores on rows it was not fitted to.

A calibrator is a map from scores to probabilities, fitted to the held-out rows of each fold. Sigmoid and isotonic maps
treat each class against the others and are then divided by their sum; the temperature treats all classes at once. The
result is the mean over the folds' pairs of classifier and calibrator, or one classifier fitted to
all rows and one calibrator fitted to all out-of-fold scores.

Reference: A. Niculescu-Mizil and R. Caruana, Predicting good probabilities with supervised learning, ICML 2005; those
of the maps stand above them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from ..core import (
    N_JOBS,
    Array,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    Loadable,
    Matches,
    NDArray,
    Nothing,
    Options,
    Run,
    fitted,
    is_array,
    is_labels,
    law,
    laws,
    param,
    tags,
)
from ..data.rows import Sample, sample_door, take_rows
from ..linear.logistic.regression import LogisticRegression
from ..solvers.problem import Evaluation
from ..solvers.smooth.newton import newton
from .conformal.base import CV, Rows, adopt_features, fit_copies, is_prefit, splits_of

# --------------------------------------------------------------------------------------------------------------------
# Maps from a classifier's scores to probabilities, each fitted to held-out rows.
#
# - **Sigmoid** (Platt): p = 1/(1 + e^{as + b}), maximum likelihood for the targets t₊ = (n₊ + 1)/(n₊ + 2), t₋ = 1/(n₋ +
#   2), which keep the optimum finite when the scores separate the classes. Two parameters, by Newton's method.
# - **Isotonic**: the nondecreasing f that minimises Σ w (y − f(s))², by pool-adjacent-violators; linear between the
#   scores it was fitted at, constant outside.
# - **Temperature**: p = softmax(βz), β = 1/T > 0 minimising the log loss. The order of the classes stays as it is. The
#   loss is convex in β, and its slope Σ w (E_p[z] − z_y) increases, so its root is found by bracketing.
#
# Weights count as repetitions. Each fit returns the map and how far it is from optimal, as a relative gradient.
#
# References: J. Platt, Probabilistic outputs for support vector machines, 1999; B. Zadrozny and C. Elkan,
# Transforming classifier scores into accurate multiclass probability estimates, KDD 2002; C. Guo et al., On
# calibration of modern neural networks, ICML 2017.


#: Relative gradient that the sigmoid and the temperature have to reach.
TOLERANCE = 1e-8
#: The temperature lies between e^{−10} and e^{10}, as in scikit-learn; there softmax is uniform or one-hot already.
LARGEST_LOG_TEMPERATURE = 10.0
_GOAL = 1e-12  # two parameters: the last digits cost one more step


@dataclass(frozen=True)
class Sigmoid(Loadable):
    """Platt's map s ↦ 1/(1 + e^{as + b}).

    Attributes
    ----------
    a : float
        Slope; negative when a larger score means a larger probability.
    b : float
        Offset.
    """

    a: float
    b: float

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of scores (n,)."""
        return np.asarray(expit(-(self.a * scores + self.b)))

    _laws = laws(
        law("a sigmoid's numbers are not finite", lambda s: np.isfinite(s.a) and np.isfinite(s.b)),
    )


@dataclass(frozen=True)
class Isotonic(Loadable):
    """A nondecreasing map, linear between its points and constant outside.

    Attributes
    ----------
    scores : (m,) array
        Where the map is given, increasing.
    values : (m,) array
        Its values there, nondecreasing, between 0 and 1.
    """

    scores: NDArray[Any]
    values: NDArray[Any]

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of scores (n,)."""
        return np.asarray(np.interp(scores, self.scores, self.values))

    _laws = laws(
        law(
            "an isotonic map must be two arrays of numbers of the same length",
            lambda f: (
                is_array(f.scores, (None,), finite=True) and is_array(f.values, (len(f.scores),)) and f.scores.size
            ),
        ),
        law(
            "an isotonic map must increase, from 0 to 1",
            lambda f: (
                (f.scores[1:] > f.scores[:-1]).all()
                and (f.values[1:] >= f.values[:-1]).all()
                and f.values[0] >= 0
                and f.values[-1] <= 1
            ),
        ),
    )


@dataclass(frozen=True)
class Temperature(Loadable):
    """The map z ↦ softmax(βz) on rows of logits.

    Attributes
    ----------
    beta : float
        Inverse temperature β > 0.
    """

    beta: float

    def __call__(self, logits: Array) -> Array:
        """Return the probabilities (n, K) of logits (n, K)."""
        return np.asarray(softmax(self.beta * logits, axis=1))

    _laws = laws(
        law("an inverse temperature must be positive", lambda t: 0 < t.beta < np.inf),
    )


def fit_sigmoid(scores: Array, positive: NDArray[np.bool_], weight: Array | None = None) -> tuple[Sigmoid, float]:
    """Fit Platt's sigmoid to scores (n,) of rows that are positive or not.

    Examples
    --------
    >>> import numpy as np
    >>> sigmoid, gradient = fit_sigmoid(np.array([-1.0, 0.0, 1.0]), np.array([False, False, True]))
    >>> sigmoid(np.array([-1.0, 1.0])).round(3), gradient < 1e-8
    (array([0.188, 0.605]), True)
    """
    w = np.ones(len(scores)) if weight is None else weight
    target = platt_targets(positive, w)
    # In standard units the two parameters hardly interact, whatever the scores' offset and scale.
    centre, scale = _standard_units(scores, w)
    problem = _PlattLoss((scores - centre) / scale, target, w)
    mean = float(np.average(target, weights=w))
    start = np.array([0.0, np.log(mean) - np.log1p(-mean)])
    solution = newton(problem, start, tol=_GOAL)
    slope, offset = solution.x
    a = -slope / scale
    return Sigmoid(float(a), float(-offset - a * centre)), float(solution.measure)


def platt_targets(positive: NDArray[np.bool_], w: Array) -> Array:
    """Return t₊ and t₋: the posterior means of the two labels under a uniform prior."""
    n_positive = float(w[positive].sum())
    n_negative = float(w[~positive].sum())
    return np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))


def fit_isotonic(scores: Array, positive: NDArray[np.bool_], weight: Array | None = None) -> tuple[Isotonic, float]:
    """Fit a nondecreasing map to scores (n,) of rows that are positive or not.

    Examples
    --------
    >>> import numpy as np
    >>> isotonic, _ = fit_isotonic(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True]))
    >>> isotonic.values
    array([0. , 0.5, 0.5, 1. ])
    """
    w = np.ones(len(scores)) if weight is None else weight
    points, place = np.unique(scores, return_inverse=True)
    totals = np.bincount(place, w)
    means = np.bincount(place, w * positive) / totals
    values = np.clip(isotonic_regression(means, weights=totals).x, 0.0, 1.0)
    inner = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    kept = np.concatenate(([True], inner, [True]))[: len(points)]  # inside a flat stretch the ends say it all
    return Isotonic(points[kept], values[kept]), 0.0


def fit_temperature(logits: Array, codes: NDArray[np.int64], weight: Array | None = None) -> tuple[Temperature, float]:
    """Fit the temperature to logits (n, K) of rows whose classes are `codes`.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.array([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> temperature, _ = fit_temperature(logits, np.array([0, 0, 1, 1]))
    >>> temperature(logits)[0].round(3)
    array([0.75, 0.25])
    """
    w = np.ones(len(logits)) if weight is None else weight
    own = logits[np.arange(len(codes)), codes]
    excess = logits - own[:, None]
    size = float(w @ np.abs(excess).max(axis=1)) or 1.0

    def slope(log_beta: float) -> float:
        p = softmax(np.exp(log_beta) * logits, axis=1)
        return float(w @ (p * excess).sum(axis=1)) / size

    most = LARGEST_LOG_TEMPERATURE
    if slope(-most) >= 0:  # the scores do not help, or mislead
        return Temperature(float(np.exp(-most))), 0.0
    if slope(most) <= 0:  # no row is misplaced: colder is always better
        return Temperature(float(np.exp(most))), 0.0
    log_beta = float(brentq(slope, -most, most, xtol=1e-14, rtol=1e-14))
    return Temperature(float(np.exp(log_beta))), abs(slope(log_beta))


#: The maps by the name of their method.
_MAPS = {"sigmoid": Sigmoid, "isotonic": Isotonic, "temperature": Temperature}


class _PlattLoss:
    """The function (u, v) ↦ Σ w [log(1 + e^z) − tz], z = us + v, per unit of weight."""

    def __init__(self, scores: Array, target: Array, w: Array) -> None:
        self.design = np.column_stack([scores, np.ones(len(scores))])
        self.target = target
        self.w = w / w.sum()

    def evaluate(self, x: Array) -> Evaluation:
        z = self.design @ x
        loss = float(self.w @ (np.logaddexp(0.0, z) - self.target * z))
        gradient = self.design.T @ (self.w * (expit(z) - self.target))
        return Evaluation(loss, gradient, float(np.abs(gradient).max()))

    def hessian(self, x: Array) -> Array:
        p = expit(self.design @ x)
        return np.asarray(self.design.T @ ((self.w * p * (1.0 - p))[:, None] * self.design))


def _standard_units(scores: Array, w: Array) -> tuple[float, float]:
    """Return the weighted mean and deviation of the scores (1 if they are all alike)."""
    largest = float(np.abs(scores).max()) or 1.0
    scaled = scores / largest
    centre = float(np.average(scaled, weights=w))
    deviation = float(np.sqrt(np.average((scaled - centre) ** 2, weights=w)))
    if deviation < 1e-14:
        return float(scores[0]), largest
    return centre * largest, deviation * largest


_SMALLEST_PROBABILITY = 1e-12  # added before the logarithm, as in scikit-learn
_CLASSIFIER = Matches(
    lambda v: not isinstance(v, type) and (hasattr(v, "decision_function") or hasattr(v, "predict_proba")),
    "a classifier with decision_function or predict_proba",
)


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, Estimator):
    """A classifier whose probabilities are fitted to held-out rows.

    The parameters and the results are those of scikit-learn's `CalibratedClassifierCV`; the fitted state is plain
    (numbers, arrays, the inner models), so that it can be saved when the inner model can.

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
        '"sigmoid" has two numbers per class and suits few rows; "isotonic" follows any increasing curve '
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
    estimators_: list[Any] = fitted("list", "The fitted classifiers: one per fold, or one in all.")
    calibrators_: list[list[Any]] = fitted(
        "list of lists of Sigmoid, Isotonic or Temperature",
        "For each classifier one map per class (one in all for two classes, and for the temperature).",
    )
    calibration_rows_: list[Rows] = fitted(
        "list of arrays", "The rows, among those with positive weight, that each calibrator was fitted to."
    )
    n_features_in_: int = fitted("int", "Number of columns, if the classifier counts them.", optional=True)
    feature_names_in_: NDArray[Any] = fitted("array of str", "Their names, if it knows them.", optional=True)
    certificate_: Certificate = fitted(
        "Certificate",
        "`stationarity`: the relative gradient of the worst calibrator; `none` when the out-of-fold scores cannot be "
        "had again (`ensemble=False`).",
    )
    _tags = tags(inner=lambda model: model._inner())

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
        """Return what the calibrators of one classifier see: one column per class it knows, or one for two classes."""
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
                f"CalibratedClassifier: {type(model).__name__}.{method} must give one column per class; got shape "
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

    _laws = laws(
        law("classes_ must hold at least two labels", lambda model: is_labels(model.classes_)),
        law(
            "estimators_, calibrators_ and calibration_rows_ must be lists",
            lambda model: {type(model.estimators_), type(model.calibrators_), type(model.calibration_rows_)} == {list},
        ),
        law(
            "every classifier needs its calibrators and its rows",
            lambda model: 0 < len(model.estimators_) == len(model.calibrators_) == len(model.calibration_rows_),
        ),
        law(
            "a classifier needs one map of {model.method} per class it knows",
            lambda model: all(
                isinstance(own, list)
                and len(own) == (1 if model.method == "temperature" or len(model.classes_) == 2 else len(one.classes_))
                and all(type(map_) is _MAPS[model.method] for map_ in own)
                for one, own in zip(model.estimators_, model.calibrators_, strict=True)
            ),
        ),
        law(
            "calibration_rows_ must hold row numbers",
            lambda model: all(is_array(rows, (None,), np.int64) for rows in model.calibration_rows_),
        ),
    )
