"""What a prediction is worth: the measures of a comparison, each with its name, label and direction.

Every measure of a task is computed for every fold, from class probabilities where the model has them; one of them
ranks the models.
"""

from __future__ import annotations

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
    scoring : str
        scikit-learn's name of it, for which greater is better.
    """

    name: str
    label: str
    greater_is_better: bool
    tasks: tuple[str, ...]
    function: Callable[[NDArray[Any], Prediction], float]
    scoring: str

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


_CLASSES: Final = ("binary", "multiclass")
MEASURES: Final[tuple[Measure, ...]] = (
    Measure("r2", "R²", True, ("regression",), r2, "r2"),
    Measure("rmse", "RMSE", False, ("regression",), rmse, "neg_root_mean_squared_error"),
    Measure("mae", "MAE", False, ("regression",), mae, "neg_mean_absolute_error"),
    Measure("accuracy", "accuracy", True, _CLASSES, accuracy, "accuracy"),
    Measure("balanced_accuracy", "balanced accuracy", True, _CLASSES, balanced_accuracy, "balanced_accuracy"),
    Measure("log_loss", "log loss", False, _CLASSES, log_loss, "neg_log_loss"),
    Measure("auc", "ROC AUC", True, _CLASSES, auc, "roc_auc_ovr"),
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
