"""What models say about rows, remembered: so that a scorer can judge it again on any subset, without a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from ..data.rows import Array, Rows, RowTable, take_rows
from ..meta.folds import Fold, Scorer
from .intervals import Interval, t_interval

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
