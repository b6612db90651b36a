"""The rows set aside, one by one: what the winner of a comparison said of each, and what can be asked about that.

The record of a comparison sums these rows up. Whoever wants to move a threshold, to cut by another column, or to see
the next page of errors needs the rows themselves: `compare` tells them once (its event "aside"), they are kept in a
file without code, and the functions here answer from it. Nothing is fitted again.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError, ParameterError
from ...core.model_file import writing
from .explain import row_losses, slices_of
from .glance import show_cell
from .judge import confusion
from .measures import Decision, Prediction, choose_threshold, rarer_class, read_cost, threshold_table
from .record import plain

_THRESHOLDS: Final = tuple(k / 100 for k in range(101))
_MOST_ROWS: Final = 200  # of one page of rows
_ORDERS: Final = ("error", "row", "predicted", "actual")


class Aside(NamedTuple):
    """The rows set aside."""

    rows: NDArray[np.int64]  #: (n,) where they stand in the table as it was read, from 0
    actual: NDArray[Any]  #: (n,) targets, or codes of the classes
    said: NDArray[np.float64]  #: (n,) predictions, codes of classes, or (n, K) probabilities
    classes: list[str] | None  #: None for numbers
    threshold: float | None = None  #: of the probability of the second class, where one was chosen

    @property
    def prediction(self) -> Prediction:
        """What the model said, as measures take it."""
        if self.classes is None:
            return Prediction(self.said)
        if self.said.ndim == 1:
            return Prediction(self.said.astype(np.int64))
        if self.threshold is not None:
            return Prediction((self.said[:, 1] >= self.threshold).astype(np.int64), self.said)
        return Prediction(self.said.argmax(axis=1).astype(np.int64), self.said)


def write_aside(aside: Aside, path: str | os.PathLike[str]) -> None:
    """Write the rows to a .npz file, in one step."""
    about = json.dumps({"classes": aside.classes, "threshold": aside.threshold})
    with writing(path) as file:
        np.savez(
            file, rows=aside.rows, actual=aside.actual, said=aside.said, about=np.frombuffer(about.encode(), np.uint8)
        )


def read_aside(path: str | os.PathLike[str]) -> Aside:
    """Return the rows that a file holds; no code of the file is run.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.aside import Aside, read_aside, write_aside
    >>> path = os.path.join(tempfile.mkdtemp(), "aside.npz")
    >>> write_aside(Aside(np.array([4, 7]), np.array([1.0, 2.0]), np.array([1.5, 2.0]), None), path)
    >>> read_aside(path).rows
    array([4, 7])
    """
    with np.load(path, allow_pickle=False) as file:
        about = json.loads(bytes(file["about"]).decode())
        return Aside(file["rows"], file["actual"], file["said"], about["classes"], about["threshold"])


def threshold_lines(aside: Aside, cost: Any = None) -> dict[str, Any]:
    """Return what every hundredth threshold of two classes brings, and the best one, on the rows set aside.

    The best one has the least cost, or without costs the greatest F1 of the rarer class. It was chosen on these rows,
    so that its figures are a little too good.

    Parameters
    ----------
    aside : Aside
        Rows with probabilities of two classes.
    cost : str, mapping or None
        What the errors cost, as in `"FP=1,FN=20"`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.evaluation.comparison.aside import Aside, threshold_lines
    >>> p = np.array([0.1, 0.2, 0.4, 0.3])
    >>> rows = Aside(np.arange(4), np.array([0, 0, 0, 1]), np.column_stack([1 - p, p]), ["no", "yes"])
    >>> found = threshold_lines(rows, "FP=1,FN=10")
    >>> found["positive"], found["best"]
    ('yes', 0.25)
    """
    if aside.classes is None or len(aside.classes) != 2 or aside.said.ndim != 2:
        raise ParameterError("threshold: only probabilities of two classes have a threshold.")
    prices = read_cost(cost)
    best = choose_threshold(aside.actual, aside.said, prices)
    used = None
    if aside.threshold is not None:
        positive = rarer_class(aside.actual)
        used = Decision(aside.threshold if positive else 1.0 - aside.threshold, positive, "chosen on rows of the folds")
    found = threshold_table(aside.actual, aside.said, aside.classes, prices, used, at=(*_THRESHOLDS, best.threshold))
    n = len(aside.actual)
    positives = int((aside.actual == best.positive).sum())
    for line in found["lines"]:
        line["hits"] = positives - line["missed"]
        line["rejected"] = n - positives - line["false_alarms"]
    negative = aside.classes[1 - best.positive]
    answer: dict[str, Any] = plain(found | {"best": best.threshold, "by": best.criterion, "negative": negative})
    return answer


def slices_by(aside: Aside, column: Any, name: str, metric: str) -> dict[str, Any] | None:
    """Return the loss in the parts of one column, whichever it is; None if it cannot be cut.

    Parameters
    ----------
    aside : Aside
        The rows.
    column : pyarrow.ChunkedArray
        Their values in the column.
    name : str
        Its name.
    metric : str
        What ranked the models: log loss has a loss of its own.
    """
    import pyarrow as pa

    what, losses = row_losses(aside.actual, aside.prediction, metric, numbers=aside.classes is None)
    return slices_of(pa.table({name: column}), [name], what, losses)


def confusion_of(aside: Aside) -> dict[str, Any] | None:
    """Return how often each class is taken for each; None for numbers."""
    if aside.classes is None:
        return None
    found: dict[str, Any] = plain(confusion(aside.actual, aside.prediction, aside.classes))
    return found


def rows_in_order(
    aside: Aside, table: Any, columns: list[str], *, by: str = "error", start: int = 0, count: int = 20
) -> dict[str, Any]:
    """Return a page of the rows set aside, the largest errors first.

    Parameters
    ----------
    aside : Aside
        The rows.
    table : pyarrow.Table
        The table as it was read.
    columns : list of str
        What is shown of them.
    by : {"error", "row", "predicted", "actual"}
        What orders them.
    start, count : int
        Which page.

    Returns
    -------
    dict
        "total" and "rows": "row" (from 1), "actual", "predicted", "error" (numbers) or "probability" (of the actual
        class), and "values".
    """
    if by not in _ORDERS:
        raise ParameterError(f"rows: by must be one of {', '.join(_ORDERS)}; got {by!r}.")
    if aside.rows.size and int(aside.rows.max()) >= table.num_rows:
        raise DataError("rows: the table has fewer rows than when it was compared. Compare again.")
    prediction = aside.prediction
    wrong = _wrongness(aside, prediction)
    keys = {"error": -wrong, "row": aside.rows, "predicted": prediction.values, "actual": aside.actual}
    order = np.argsort(keys[by], kind="stable")[max(0, start) : max(0, start) + min(max(1, count), _MOST_ROWS)]
    cells = table.select(columns).take(aside.rows[order])
    shown = [[show_cell(value) for value in column.to_pylist()] for column in cells.columns]
    found = []
    for k, i in enumerate(order.tolist()):
        said: dict[str, Any] = {"row": int(aside.rows[i]) + 1, "values": [column[k] for column in shown]}
        if aside.classes is None:
            actual = float(aside.actual[i])
            predicted = float(prediction.values[i])
            said |= {"actual": actual, "predicted": predicted, "error": actual - predicted}
        else:
            said |= {
                "actual": aside.classes[int(aside.actual[i])],
                "predicted": aside.classes[int(prediction.values[i])],
                "probability": None if prediction.probabilities is None else 1.0 - float(wrong[i]),
            }
        found.append(said)
    answer: dict[str, Any] = plain({"total": len(aside.rows), "columns": columns, "rows": found})
    return answer


def _wrongness(aside: Aside, prediction: Prediction) -> NDArray[np.float64]:
    """Return how wrong each row is: the absolute error, or one minus the probability of its class."""
    if aside.classes is None:
        return np.abs(aside.actual - prediction.values)
    if prediction.probabilities is None:
        return (aside.actual != prediction.values).astype(np.float64)
    return np.asarray(1.0 - prediction.probabilities[np.arange(len(aside.actual)), aside.actual.astype(np.intp)])
