"""What a prediction is worth: the measures of a comparison, each with its name, label and direction.

Every measure of a task is computed for every fold, from class probabilities where the model has them; one of them
ranks the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


#: Measures that are not defined without probabilities.
OF_PROBABILITIES: Final = ("log_loss", "auc", "average_precision")


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


# --------------------------------------------------------------------------------------------------------------------
# From probabilities to decisions: what ranks where one class is rare, which threshold decides, and what it is worth.
#
# Where almost every row is of one class, a constant guess has a high accuracy and says nothing; log loss then ranks,
# and the threshold of the kept model is the one with the least cost, or the greatest F1 of the rare class, on
# predictions of rows that the models had not seen.


_THRESHOLDS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LOPSIDED: Final = 0.9  # share of the largest class from which accuracy says little


@dataclass(frozen=True)
class Cost:
    """What a wrong decision costs.

    Attributes
    ----------
    false_positive, false_negative : float
        Of a row that is wrongly called positive, or wrongly not; the rarer class is the positive one.
    """

    false_positive: float
    false_negative: float


@dataclass(frozen=True)
class Decision:
    """A threshold, and how it was chosen.

    Attributes
    ----------
    threshold : float
        Rows whose probability of the positive class reaches it are called positive.
    positive : int
        The code of the positive class, the rarer of two.
    criterion : str
        What was optimised, in words.
    """

    threshold: float
    positive: int
    criterion: str

    @property
    def of_second(self) -> float:
        """The threshold of the probability of the second class, as `TableModel` takes it."""
        return self.threshold if self.positive == 1 else float(np.nextafter(1.0 - self.threshold, 2.0))

    def decide(self, probabilities: Array) -> NDArray[np.int64]:
        """Return the class of each row."""
        return (probabilities[:, 1] >= self.of_second).astype(np.int64)


def read_cost(cost: Any) -> Cost | None:
    """Return costs from `"FP=1,FN=20"` or a mapping.

    Examples
    --------
    >>> read_cost("FP=1,FN=20")
    Cost(false_positive=1.0, false_negative=20.0)
    """
    if cost is None or isinstance(cost, Cost):
        return cost
    try:
        pairs = cost if isinstance(cost, Mapping) else dict(part.split("=") for part in str(cost).split(","))
        found = {str(key).strip().upper(): float(value) for key, value in pairs.items()}
    except (TypeError, ValueError):
        found = {}
    if set(found) != {"FP", "FN"} or not all(0 < value < np.inf for value in found.values()):
        raise ParameterError(f"compare: cost must be two positive numbers, as in FP=1,FN=20; got {cost!r}.")
    return Cost(found["FP"], found["FN"])


def lopsided_note(counts: Sequence[int], classes: Sequence[str]) -> str | None:
    """Say that accuracy is no measure here; None where no class has almost all rows.

    Examples
    --------
    >>> print(lopsided_note([1990, 10], ["no", "yes"]))
    99.5 % of the rows are 'no', so that a constant guess is as accurate: models are ranked by log loss (...)
    >>> lopsided_note([60, 40], ["no", "yes"]) is None
    True
    """
    share = max(counts) / sum(counts)
    if share < LOPSIDED:
        return None
    label = classes[int(np.argmax(counts))]
    return (
        f"{100 * share:.3g} % of the rows are {label!r}, so that a constant guess is as accurate: models are ranked by "
        "log loss (--metric average_precision looks at the rarer class alone)"
    )


def choose_threshold(y: NDArray[Any], probabilities: Array, cost: Cost | None) -> Decision:
    """Return the threshold of least cost, or without costs of the greatest F1 of the rarer class.

    Parameters
    ----------
    y : (n,) codes 0 and 1
        Classes of rows that the models had not seen.
    probabilities : (n, 2)
        What they gave them.
    cost : Cost or None
        What errors cost.

    Examples
    --------
    >>> y = np.array([0, 0, 0, 1])
    >>> p = np.array([0.1, 0.2, 0.4, 0.3])
    >>> choose_threshold(y, np.column_stack([1 - p, p]), Cost(1.0, 10.0)).threshold
    0.25
    """
    positive = rarer_class(y)
    score = probabilities[:, positive]
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(y[order] == positive).astype(np.float64)
    called = np.arange(1, len(y) + 1, dtype=np.float64)
    total = float(hits[-1])
    last = np.append(np.diff(score[order]) < 0, True)  # rows of one probability are decided alike
    false_alarms = called - hits
    missed = total - hits
    if cost is None:
        criterion = "the greatest F1 of the rarer class"
        loss = -2.0 * hits / (called + total)
    else:
        criterion = f"the least cost (FP={cost.false_positive:g}, FN={cost.false_negative:g})"
        loss = cost.false_positive * false_alarms + cost.false_negative * missed
        if cost.false_negative * total <= loss[last].min():  # to call nothing positive is cheapest
            return Decision(float(np.nextafter(score.max(), 2.0)), positive, criterion)
    place = int(np.argmin(np.where(last, loss, np.inf)))
    below = score[order][place + 1] if place + 1 < len(y) else 0.0
    middle = float(score[order][place] + below) / 2.0
    return Decision(middle if middle > below else float(score[order][place]), positive, criterion)


def class_figures(y: NDArray[Any], predicted: NDArray[Any], classes: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows, precision, recall and F1 of every class; a number that is not defined is None.

    Examples
    --------
    >>> class_figures(np.array([0, 0, 1]), np.array([0, 1, 1]), ["no", "yes"])[1]
    {'label': 'yes', 'rows': 1, 'precision': 0.5, 'recall': 1.0, 'f1': 0.6666666666666666}
    """
    found = []
    for code, label in enumerate(classes):
        actual = y == code
        called = predicted == code
        hits = int((actual & called).sum())
        n = int(actual.sum())
        m = int(called.sum())
        precision = hits / m if m else None
        recall = hits / n if n else None
        found.append(
            {
                "label": label,
                "rows": n,
                "precision": precision,
                "recall": recall,
                "f1": 2.0 * hits / (n + m) if n + m else None,
            }
        )
    return found


def threshold_table(
    y: NDArray[Any],
    probabilities: Array,
    classes: Sequence[str],
    cost: Cost | None,
    chosen: Decision | None,
    at: Sequence[float] = _THRESHOLDS,
) -> dict[str, Any]:
    """Return what thresholds of two classes would have brought on some rows, the one in use among them.

    Parameters
    ----------
    y : (n,) codes 0 and 1
        The classes.
    probabilities : (n, 2)
        What a model gave them.
    classes : two str
        Their names; the rarer one is the positive one.
    cost : Cost or None
        What errors cost; without it, no cost is told.
    chosen : Decision or None
        The threshold of the kept model; 0.5 by default.
    at : sequence of float
        The other thresholds.

    Examples
    --------
    >>> y = np.array([0, 0, 0, 1])
    >>> p = np.array([0.1, 0.2, 0.4, 0.3])
    >>> found = threshold_table(y, np.column_stack([1 - p, p]), ["no", "yes"], Cost(1.0, 10.0), None)
    >>> found["positive"], [found["lines"][0][key] for key in ("threshold", "called", "false_alarms", "cost")]
    ('yes', [0.05, 4, 3, 3.0])
    """
    positive = rarer_class(y) if chosen is None else chosen.positive
    used = 0.5 if chosen is None else chosen.threshold
    score = probabilities[:, positive]
    actual = y == positive
    lines = []
    for threshold in sorted({*at, used}):
        called = score >= threshold
        hits = int((called & actual).sum())
        n = int(actual.sum())
        m = int(called.sum())
        line = {
            "threshold": threshold,
            "called": m,
            "false_alarms": m - hits,
            "missed": n - hits,
            "precision": hits / m if m else None,
            "recall": hits / n if n else None,
            "f1": 2.0 * hits / (n + m) if n + m else None,
        }
        if cost is not None:
            line["cost"] = cost.false_positive * (m - hits) + cost.false_negative * (n - hits)
        lines.append(line)
    return {
        "positive": classes[positive],
        "used": used,
        "criterion": None if chosen is None else chosen.criterion,
        "cost": None if cost is None else {"FP": cost.false_positive, "FN": cost.false_negative},
        "lines": lines,
    }
