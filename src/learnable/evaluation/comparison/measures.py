"""What a prediction is worth: the measures of a comparison, each with its name, label and direction.

Every measure of a task is computed for every fold, from class probabilities where the model has them; one of them
ranks the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ParameterError
from .record import MetricRecord

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """What a model says of some rows.

    Attributes
    ----------
    values : (n,) float64 or int64
        Predicted targets, or codes of the predicted classes.
    probabilities : (n, K) float64 or None
        Of all classes of the table, in the order of their codes.
    """

    values: NDArray[Any]
    probabilities: Array | None = None


@dataclass(frozen=True)
class Measure:
    """One way to judge predictions.

    Attributes
    ----------
    name, label : str
        For machines and for people.
    greater_is_better : bool
        Its direction.
    tasks : tuple of str
        The tasks it is for; the first measure of a task ranks by default.
    function : callable
        (truth, Prediction) -> float; NaN where it is not defined.
    scoring : str or callable
        scikit-learn's name of it, or a scorer, for which greater is better.
    low, high : float
        What it can be; the ends of its intervals lie between.
    """

    name: str
    label: str
    greater_is_better: bool
    tasks: tuple[str, ...]
    function: Callable[[NDArray[Any], Prediction], float]
    scoring: str | Callable[[Any, Any, Any], float]
    low: float = 0.0
    high: float = 1.0

    def margin(self, best: float) -> float:
        """Return the difference to a best score below which nobody would care.

        A hundredth, or a tenth of what is missing to a perfect score where that is less; of an error, a hundredth of
        itself.
        """
        if not self.greater_is_better:
            return 0.01 * abs(best)
        return max(min(0.01, 0.1 * (1.0 - best)), 1e-6)

    def to_record(self) -> MetricRecord:
        """Return what the comparison record says of it."""
        return MetricRecord(name=self.name, label=self.label, greater_is_better=self.greater_is_better)


def r2(y: NDArray[Any], prediction: Prediction) -> float:
    """Return 1 − Σ(y − ŷ)²/Σ(y − ȳ)², not defined for a constant target."""
    spread = float(np.sum((y - y.mean()) ** 2)) if len(y) else 0.0
    return 1.0 - float(np.sum((y - prediction.values) ** 2)) / spread if spread > 0 else float("nan")


def rmse(y: NDArray[Any], prediction: Prediction) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((y - prediction.values) ** 2)))


def mae(y: NDArray[Any], prediction: Prediction) -> float:
    """Return the mean absolute error."""
    return float(np.mean(np.abs(y - prediction.values)))


def accuracy(y: NDArray[Any], prediction: Prediction) -> float:
    """Return the share of rows whose class is predicted."""
    return float(np.mean(y == prediction.values))


def balanced_accuracy(y: NDArray[Any], prediction: Prediction) -> float:
    """Return the mean over the classes present of the share of their rows that are predicted."""
    hits = y == prediction.values
    return float(np.mean([hits[y == k].mean() for k in np.unique(y)]))


def log_loss(y: NDArray[Any], prediction: Prediction) -> float:
    """Return −mean log p(y), with probabilities of at least 1e-15."""
    if prediction.probabilities is None:
        return float("nan")
    p = prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
    return float(-np.mean(np.log(np.clip(p, 1e-15, 1.0))))


def auc(y: NDArray[Any], prediction: Prediction) -> float:
    """Return the area under the ROC curve; with K > 2 classes the mean over one class against the rest.

    From the ranks of the scores (Mann–Whitney), ties counted half.
    """
    p = prediction.probabilities
    if p is None:
        return float("nan")
    columns = [1] if p.shape[1] == 2 else range(p.shape[1])
    areas = [_area(y == k, p[:, k]) for k in columns]
    areas = [area for area in areas if not np.isnan(area)]
    return float(np.mean(areas)) if areas else float("nan")


def _area(positive: NDArray[np.bool_], score: Array) -> float:
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if not n_positive or not n_negative:
        return float("nan")
    from scipy.stats import rankdata

    rank_sum = float(rankdata(score)[positive].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def average_precision(y: NDArray[Any], prediction: Prediction) -> float:
    """Return Σ (recall_k − recall_(k−1))·precision_k over the thresholds, of the rarer of two classes.

    With K > 2 classes it is the mean over one class against the rest. A class without rows has none.

    Examples
    --------
    >>> p = np.array([0.1, 0.4, 0.35, 0.8])
    >>> y = np.array([0, 0, 1, 1])
    >>> round(average_precision(y, Prediction(np.zeros(4), np.column_stack([1 - p, p]))), 4)
    0.8333
    """
    p = prediction.probabilities
    if p is None:
        return float("nan")
    columns = [rarer_class(y)] if p.shape[1] == 2 else range(p.shape[1])
    found = [_precision_of(y == k, p[:, k]) for k in columns]
    found = [value for value in found if not np.isnan(value)]
    return float(np.mean(found)) if found else float("nan")


def rarer_class(y: NDArray[Any]) -> int:
    """Return the code of the rarer of two classes, which is the positive one; the second where both are alike."""
    return 1 if 2 * int((y == 1).sum()) <= len(y) else 0


def _precision_of(positive: NDArray[np.bool_], score: Array) -> float:
    total = int(positive.sum())
    if not total:
        return float("nan")
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) < 0, True)  # rows of one score are called together
    hits = np.cumsum(positive[order])[last].astype(np.float64)
    called = np.flatnonzero(last) + 1.0
    return float(np.sum(np.diff(hits, prepend=0.0) * hits / called) / total)


def _score_average_precision(model: Any, X: Any, y: Any) -> float:
    """Judge a fitted model as `average_precision` does; a scorer."""
    labels = np.union1d(model.classes_, y)  # a model of few rows may not have seen every class
    codes = np.searchsorted(labels, y)
    probabilities = np.zeros((len(codes), max(2, len(labels))))
    probabilities[:, np.searchsorted(labels, model.classes_)] = model.predict_proba(X)
    return average_precision(codes, Prediction(codes, probabilities))


_CLASSES: Final = ("binary", "multiclass")
MEASURES: Final[tuple[Measure, ...]] = (
    Measure("r2", "R²", True, ("regression",), r2, "r2", low=-math.inf),
    Measure("rmse", "RMSE", False, ("regression",), rmse, "neg_root_mean_squared_error", high=math.inf),
    Measure("mae", "MAE", False, ("regression",), mae, "neg_mean_absolute_error", high=math.inf),
    Measure("accuracy", "accuracy", True, _CLASSES, accuracy, "accuracy"),
    Measure("balanced_accuracy", "balanced accuracy", True, _CLASSES, balanced_accuracy, "balanced_accuracy"),
    Measure("log_loss", "log loss", False, _CLASSES, log_loss, "neg_log_loss", high=math.inf),
    Measure("auc", "ROC AUC", True, _CLASSES, auc, "roc_auc_ovr"),
    Measure("average_precision", "average precision", True, _CLASSES, average_precision, _score_average_precision),
)


def measures_for(task: str) -> list[Measure]:
    """Return the measures of a task, the one that ranks by default first."""
    return [measure for measure in MEASURES if task in measure.tasks]


def ranking_measure(task: str, name: str | None = None) -> Measure:
    """Return the measure that ranks the models of a task.

    Examples
    --------
    >>> from learnable.evaluation.comparison.measures import ranking_measure
    >>> ranking_measure("regression").label, ranking_measure("binary", "log_loss").greater_is_better
    ('R²', False)
    """
    known = {measure.name: measure for measure in measures_for(task)}
    if name is None:
        return next(iter(known.values()))
    if name not in known:
        raise ParameterError(f"compare: metric must be one of {', '.join(known)} for {task}; got {name!r}.")
    return known[name]


def measure_all(task: str, y: NDArray[Any], prediction: Prediction) -> dict[str, float]:
    """Return every measure of the task by name."""
    return {measure.name: measure.function(y, prediction) for measure in measures_for(task)}


def predict_rows(model: Any, X: Any, n_classes: int | None) -> Prediction:
    """Ask a fitted model for everything the measures need; probabilities are spread over all classes of the table."""
    if n_classes is None:
        return Prediction(np.asarray(model.predict(X), dtype=np.float64).reshape(-1))
    if not hasattr(model, "predict_proba"):
        return Prediction(np.asarray(model.predict(X)).astype(np.int64))
    seen = np.asarray(model.predict_proba(X), dtype=np.float64)
    codes = np.asarray(model.classes_).astype(np.intp)
    probabilities = np.zeros((len(seen), n_classes))
    probabilities[:, codes] = seen
    return Prediction(codes[seen.argmax(axis=1)].astype(np.int64), probabilities)
