"""Metrics that are means over rows: then rows, and not only folds, say how uncertain a score is.

A score is a function of the mean loss L̄ of the rows: 1 − L̄ for accuracy, −√L̄ for the root mean squared error,
1 − L̄/Var(y) for R². Each also knows its mean loss over all pairs of a target and a prediction of another row,

    γ = n⁻² Σᵢ Σⱼ L(yᵢ, f(xⱼ)),

the error where x says nothing about y, which the .632+ bootstrap needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from ...core import Array, NDArray
from ...data.rows import Rows, RowTable, take_rows
from ...meta.folds import Fold, Scorer
from .intervals import Interval, binomial_interval, empirical_bernstein, t_interval

_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class RowLoss:
    """A metric that is a function of the mean loss.

    Attributes
    ----------
    response : str
        The method that gives what is judged: "predict" or "predict_proba".
    loss : callable
        (y, response, classes) to one loss per row.
    independent : callable
        (y, response, classes, share of each row) to γ.
    score : callable
        (mean loss, variance of y) to the score, falling in the first; greater is better.
    relative : bool
        Whether the score divides by the variance of y.
    """

    response: str
    loss: Callable[[NDArray[Any], NDArray[Any], Any], Array]
    independent: Callable[[NDArray[Any], NDArray[Any], Any, Array], float]
    score: Callable[[float, float], float]
    relative: bool = False

    def mean(self, losses: Array, weight: Array | None = None) -> float:
        """Return the mean loss."""
        return float(np.average(losses, weights=weight))

    def score_of(self, mean_loss: float, y: NDArray[Any], weight: Array | None = None) -> float:
        """Return the score for a mean loss on rows with targets y."""
        return self.score(mean_loss, self._variance(y, weight))

    def interval(
        self,
        losses: Array,
        y: NDArray[Any],
        weight: Array | None = None,
        *,
        level: float,
        bounds: tuple[float, float] | None = None,
    ) -> Interval:
        """Return the interval of the score: exact binomial, empirical Bernstein (with `bounds`), or t over rows."""
        n = len(losses)
        mean = self.mean(losses, weight)
        equal = weight is None or bool((weight == weight[0]).all())
        if equal and not self.relative and bool(np.isin(losses, (0.0, 1.0)).all()):
            found = binomial_interval(int(losses.sum()), n, level)
        elif equal and not self.relative and bounds is not None:
            found = empirical_bernstein(losses, *bounds, level=level)
        else:
            share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
            found = t_interval(mean + n * share * self._deviations(losses, mean, y, share), level)
            found = found._replace(method="t over rows")
        variance = self._variance(y, weight)
        return found._replace(low=self.score(found.high, variance), high=self.score(found.low, variance))

    def _deviations(self, losses: Array, mean: float, y: NDArray[Any], share: Array) -> Array:
        """Return how far each row moves the mean loss; of a relative loss, by moving the variance of y as well."""
        deviations = losses - mean
        if self.relative:
            squares = (y - share @ y) ** 2
            variance = float(share @ squares)
            deviations = deviations - (mean / variance) * (squares - variance)
        return np.asarray(deviations)

    def _variance(self, y: NDArray[Any], weight: Array | None) -> float:
        if not self.relative:
            return 1.0
        share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
        return float(share @ (y - share @ y) ** 2)


def row_loss(metric: str, y: NDArray[Any] | None) -> RowLoss | None:
    """Return the row loss behind a metric's name, or None if it has none (or y has several columns)."""
    return _ROW_LOSSES.get(metric) if y is not None and y.ndim == 1 else None


def no_information_score(
    loss: RowLoss, y: NDArray[Any], response: NDArray[Any], classes: Any, weight: Array | None = None
) -> float:
    """Return γ, the mean loss when targets and predictions are paired at random."""
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    return loss.independent(y, response, classes, share)


def _wrong(y: NDArray[Any], predicted: NDArray[Any], classes: Any) -> Array:
    return np.asarray(y != predicted, dtype=np.float64)


def _wrong_by_chance(y: NDArray[Any], predicted: NDArray[Any], classes: Any, share: Array) -> float:
    labels = np.unique(y)
    return 1.0 - sum(float(share @ (y == label)) * float(share @ (predicted == label)) for label in labels)


def _squares(y: NDArray[Any], predicted: NDArray[Any], classes: Any) -> Array:
    return np.asarray((y - predicted) ** 2, dtype=np.float64)


def _squares_by_chance(y: NDArray[Any], predicted: NDArray[Any], classes: Any, share: Array) -> float:
    y_mean = share @ y
    f_mean = share @ predicted
    return float(share @ (y - y_mean) ** 2 + share @ (predicted - f_mean) ** 2 + (y_mean - f_mean) ** 2)


def _distances(y: NDArray[Any], predicted: NDArray[Any], classes: Any) -> Array:
    return np.asarray(np.abs(y - predicted), dtype=np.float64)


def _distances_by_chance(y: NDArray[Any], predicted: NDArray[Any], classes: Any, share: Array) -> float:
    """Return E|Y − F| for independent Y and F in O(n log n): Σⱼ sⱼ (fⱼ(2P(Y ≤ fⱼ) − 1) + E[Y] − 2E[Y; Y ≤ fⱼ])."""
    order = np.argsort(y, kind="stable")
    position = np.searchsorted(y[order], predicted, side="right")
    below = np.concatenate([[0.0], np.cumsum(share[order])])[position]
    sums = np.concatenate([[0.0], np.cumsum((share * y)[order])])
    return float(share @ (predicted * (2.0 * below - 1.0) + sums[-1] - 2.0 * sums[position]))


def _log_probabilities(response: NDArray[Any]) -> Array:
    return np.asarray(np.log(np.clip(response, _SMALLEST_PROBABILITY, 1.0)))


def _surprises(y: NDArray[Any], response: NDArray[Any], classes: Any) -> Array:
    column = np.searchsorted(classes, y)
    return np.asarray(-_log_probabilities(response)[np.arange(len(y)), column])


def _surprises_by_chance(y: NDArray[Any], response: NDArray[Any], classes: Any, share: Array) -> float:
    of_class = np.array([share @ (y == label) for label in classes])
    return float(-of_class @ (share @ _log_probabilities(response)))


_ROW_LOSSES = {
    "accuracy": RowLoss("predict", _wrong, _wrong_by_chance, lambda loss, _: 1.0 - loss),
    "neg_mean_squared_error": RowLoss("predict", _squares, _squares_by_chance, lambda loss, _: -loss),
    "neg_root_mean_squared_error": RowLoss(
        "predict", _squares, _squares_by_chance, lambda loss, _: -math.sqrt(max(loss, 0.0))
    ),
    "r2": RowLoss("predict", _squares, _squares_by_chance, lambda loss, variance: 1.0 - loss / variance, relative=True),
    "neg_mean_absolute_error": RowLoss("predict", _distances, _distances_by_chance, lambda loss, _: -loss),
    "neg_log_loss": RowLoss("predict_proba", _surprises, _surprises_by_chance, lambda loss, _: -loss),
}


# --------------------------------------------------------------------------------------------------------------------
# What models say about rows, remembered: so that a scorer can judge it again on any subset, without a model.


METHODS = ("predict", "predict_proba", "decision_function")
_GROUPS = 20


class Remembered:
    """Stands for a fitted model: its X are row numbers, its predictions what was said of those rows.

    Parameters
    ----------
    model : estimator
        Whose tags the stand-in shows.
    responses : dict
        For each method, what it returned, row by row.
    classes : array or None
        The labels, in the order of the columns of `predict_proba`.
    """

    def __init__(self, model: Any, responses: dict[str, NDArray[Any]], classes: Any = None) -> None:
        self.model = model
        self.responses = responses
        if classes is not None:
            self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @available_if(lambda self: "predict" in self.responses)  # type: ignore[untyped-decorator]
    def predict(self, rows: Rows) -> NDArray[Any]:
        """Return what was predicted for some rows."""
        return self.responses["predict"][rows]

    @available_if(lambda self: "predict_proba" in self.responses)  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Rows) -> NDArray[Any]:
        """Return the probabilities that some rows were given."""
        return self.responses["predict_proba"][rows]

    @available_if(lambda self: "decision_function" in self.responses)  # type: ignore[untyped-decorator]
    def decision_function(self, rows: Rows) -> NDArray[Any]:
        """Return the decision scores that some rows were given."""
        return self.responses["decision_function"][rows]


def responses_of(model: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Return what a fitted model says of rows: its predictions, and of a classifier its probabilities and scores."""
    methods = METHODS if is_classifier(model) else METHODS[:1]
    return {name: np.asarray(getattr(model, name)(X)) for name in methods if hasattr(model, name)}


def remember_model(model: Any, table: RowTable, rows: Rows) -> Remembered:
    """Return the stand-in for a fitted model on some rows, numbered from 0."""
    return Remembered(model, responses_of(model, take_rows(table.X, rows)), getattr(model, "classes_", None))


class OutOfFold:
    """Collects what each fold's model says of its test rows.

    A fold that has not seen a class gives it probability zero; decision scores are kept if all folds saw all classes.
    """

    def __init__(self, model: Any, table: RowTable) -> None:
        self.model = model
        self.table = table
        self.classes = np.unique(table.y) if is_classifier(model) and table.y is not None else None  # type: ignore[arg-type]
        self.responses: dict[str, NDArray[Any]] = {}
        self.dropped: set[str] = set()

    def add(self, fold: Fold) -> None:
        """Store the responses of one fold."""
        seen: Any = getattr(fold.model, "classes_", self.classes)
        complete = self.classes is None or len(seen) == len(self.classes)
        for name, values in responses_of(fold.model, take_rows(self.table.X, fold.test)).items():
            if not complete and name == "decision_function":
                self.dropped.add(name)
            elif not complete and name == "predict_proba":
                wide = np.zeros((len(values), len(self.classes)))  # type: ignore[arg-type]
                wide[:, np.searchsorted(self.classes, seen)] = values  # type: ignore[arg-type]
                self._store(name, fold.test, wide)
            else:
                self._store(name, fold.test, values)

    def _store(self, name: str, rows: Rows, values: NDArray[Any]) -> None:
        if name not in self.responses:
            self.responses[name] = np.zeros((self.table.n_rows, *values.shape[1:]), dtype=values.dtype)
        held = self.responses[name]
        if held.dtype != values.dtype:  # text of another length
            self.responses[name] = held = held.astype(np.result_type(held, values))
        held[rows] = values

    def stand_in(self) -> Remembered:
        """Return what was collected, as a model."""
        kept = {name: values for name, values in self.responses.items() if name not in self.dropped}
        return Remembered(self.model, kept, self.classes)


def score_of(scorer: Scorer, stand_in: Any, y: NDArray[Any], weight: Array | None, rows: Rows) -> float:
    """Return the score of remembered predictions on some rows."""
    extra = {} if weight is None else {"sample_weight": weight[rows]}
    return float(scorer(stand_in, rows, y[rows], **extra))


def jackknife_interval(
    scorer: Scorer, stand_in: Any, y: NDArray[Any], weight: Array | None, level: float, rng: np.random.Generator
) -> Interval:
    """Return an interval for any smooth score, by leaving out random groups of rows in turn.

    With G groups and the score without one of them, G·s − (G − 1)·s₍₋g₎ are about independent, with the score's own
    variance: Student's interval of their mean, around the score of all rows.
    """
    n = len(y)
    n_groups = min(_GROUPS, n)
    everything = np.arange(n)
    group = rng.permutation(n) % n_groups
    whole = score_of(scorer, stand_in, y, weight, everything)
    if n_groups < 2:
        return Interval(-np.inf, np.inf, level, "jackknife over rows")
    without = [score_of(scorer, stand_in, y, weight, everything[group != g]) for g in range(n_groups)]
    values = n_groups * whole - (n_groups - 1) * np.array(without)
    found = t_interval(values - values.mean() + whole, level)
    return found._replace(method="jackknife over rows")
