"""Where a model is worse than elsewhere: its loss in parts of the hold-out, and the rows it gets most wrong.

A part is a level of a column of few levels, or a quarter of the values of a numeric one. Whether it differs from the
rest is tested (Welch's t, Fisher's exact test for shares) at 0.05 over the number of parts looked at, so that of many
equal parts one is rarely called worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..intervals import score_interval, t_interval
from .glance import show_cell
from .measures import Prediction
from .record import plain

Array = NDArray[np.float64]

_FEWEST: Final = 10  # rows of a part
_MOST_LEVELS: Final = 12
_QUARTERS: Final = 4
_LEVEL: Final = 0.95
_WORST: Final = 8


def row_losses(y: NDArray[Any], prediction: Prediction, metric: str, *, numbers: bool) -> tuple[str, Array]:
    """Return what a row costs, and its name: the absolute error, log loss, or one for a wrong class."""
    if numbers:
        return "mean absolute error", np.abs(y - prediction.values)
    if metric == "log_loss" and prediction.probabilities is not None:
        p = prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
        return "log loss", -np.log(np.clip(p, 1e-15, 1.0))
    return "share of wrong classes", (y != prediction.values).astype(np.float64)


def slices_of(table: Any, columns: Sequence[str], what: str, losses: Array) -> dict[str, Any] | None:
    """Return the mean loss of parts of the rows, with intervals.

    Parameters
    ----------
    table : pyarrow.Table
        The rows before they were encoded.
    columns : sequence of str
        The columns to cut by.
    what : str
        The name of the loss.
    losses : (n,) array
        Of each row.

    Returns
    -------
    dict or None
        "what", the "overall" mean, and "parts": "column", "label", "rows", "value", "low", "high" and "verdict":
        "worse", "better" or "like the rest". None if no column can be cut.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> town = ["a"] * 50 + ["b"] * 50
    >>> losses = np.r_[np.linspace(0, 1, 50), np.linspace(4, 5, 50)]
    >>> found = slices_of(pa.table({"town": town}), ["town"], "mean absolute error", losses)
    >>> [(part["label"], part["verdict"]) for part in found["parts"]]
    [('a', 'better'), ('b', 'worse')]
    """
    parts = [(name, label, mask) for name in columns for label, mask in cuts(table[name])]
    parts = [part for part in parts if _FEWEST <= part[2].sum() <= len(losses) - _FEWEST]
    if not parts:
        return None
    shares = bool(np.isin(losses, (0.0, 1.0)).all())
    found = []
    for name, label, mask in parts:
        inside = losses[mask]
        outside = losses[~mask]
        interval = score_interval(inside, level=_LEVEL) if shares else t_interval(inside, _LEVEL)
        p = _p_value(inside, outside, shares)
        word = "like the rest"
        if p * len(parts) < 1.0 - _LEVEL:
            word = "worse" if inside.mean() > outside.mean() else "better"
        low = max(0.0, interval.low)
        found.append(
            {
                "column": name,
                "label": label,
                "rows": int(mask.sum()),
                "value": float(inside.mean()),
                "low": low,
                "high": interval.high,
                "verdict": word,
            }
        )
    result: dict[str, Any] = plain({"what": what, "overall": float(losses.mean()), "level": _LEVEL, "parts": found})
    return result


def cuts(column: Any) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield parts of a column: each of few levels, or quarters of its numbers; and its gaps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = np.asarray(pc.is_null(column, nan_is_null=True).to_numpy(), dtype=bool)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
        kind = kind.value_type
    few = pc.count_distinct(column).as_py() <= _MOST_LEVELS
    if pa.types.is_floating(kind) or (pa.types.is_integer(kind) and not few):
        values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        yield from _quarters(values, ~missing)
    elif few and not pa.types.is_temporal(kind):
        labels = np.array([show_cell(value) or "" for value in column.to_pylist()], dtype=object)
        known = sorted(set(labels[~missing].tolist()), key=lambda label: (len(label), label))
        for label in known if len(known) > 1 else []:
            yield str(label), np.asarray((labels == label) & ~missing)
    if missing.any():
        yield "missing", missing


def _quarters(values: Array, known: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    if not known.any():
        return
    ends = np.unique(np.quantile(values[known], np.linspace(0.0, 1.0, _QUARTERS + 1)))
    for k in range(len(ends) - 1):
        above = values >= ends[k] if k == 0 else values > ends[k]
        sign = "" if k == 0 else "over "
        yield f"{sign}{ends[k]:.4g} to {ends[k + 1]:.4g}", known & above & (values <= ends[k + 1])


def _p_value(inside: Array, outside: Array, shares: bool) -> float:
    """Return how likely so large a difference is between equal parts; one where it cannot be told."""
    from scipy import stats

    if shares:
        a = int(inside.sum())
        b = int(outside.sum())
        return float(stats.fisher_exact([[a, len(inside) - a], [b, len(outside) - b]])[1])
    if np.ptp(inside) == 0 and np.ptp(outside) == 0:
        return 1.0
    p = float(stats.ttest_ind(inside, outside, equal_var=False).pvalue)
    return 1.0 if math.isnan(p) else p


def worst_rows(
    table: Any,
    columns: Sequence[str],
    y: NDArray[Any],
    prediction: Prediction,
    classes: Sequence[str] | None,
    places: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """Return the rows with the largest errors, or with the least probability of the class that they are of.

    Parameters
    ----------
    table : pyarrow.Table
        The rows before they were encoded.
    columns : sequence of str
        What is shown of them.
    y : (n,) array
        Targets, or codes of classes.
    prediction : Prediction
        What the model said.
    classes : sequence of str or None
        The classes.
    places : (n,) array of int
        Where the rows stand in the table as it was read, from 0; they are told from 1.
    """
    if classes is None:
        wrong = np.abs(y - prediction.values)
    elif prediction.probabilities is not None:
        wrong = 1.0 - prediction.probabilities[np.arange(len(y)), y.astype(np.intp)]
    else:
        wrong = (y != prediction.values).astype(np.float64)
    bad = wrong > 0 if classes is None else (wrong >= 0.5) | (y != prediction.values)
    order = [int(row) for row in np.argsort(-wrong, kind="stable") if bad[row]][:_WORST]
    cells = table.select(list(columns)).take(order)
    shown = [[show_cell(value) for value in column.to_pylist()] for column in cells.columns]
    found = []
    for k, row in enumerate(order):
        said: dict[str, Any] = {"row": int(places[row]) + 1, "values": [column[k] for column in shown]}
        if classes is None:
            said |= {"actual": float(y[row]), "predicted": float(prediction.values[row])}
            said["error"] = said["actual"] - said["predicted"]
        else:
            said |= {"actual": classes[int(y[row])], "predicted": classes[int(prediction.values[row])]}
            said["probability"] = None if prediction.probabilities is None else 1.0 - float(wrong[row])
        found.append(said)
    result: list[dict[str, Any]] = plain(found)
    return result
