"""From probabilities to decisions: what ranks where one class is rare, which threshold decides, and what it is worth.

Where almost every row is of one class, a constant guess has a high accuracy and says nothing; log loss then ranks, and
the threshold of the kept model is the one with the least cost, or the greatest F1 of the rare class, on predictions of
rows that the models had not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ParameterError
from .measures import rarer_class

Array = NDArray[np.float64]

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
    y: NDArray[Any], probabilities: Array, classes: Sequence[str], cost: Cost | None, chosen: Decision | None
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
    for threshold in sorted({*_THRESHOLDS, used}):
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
