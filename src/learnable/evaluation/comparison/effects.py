"""What a column does to the predictions of a model: partial dependence, for any model.

For each of a few values of a column, every row of a sample is given that value and predicted; the mean is drawn over
the values. The rows of a table are encoded, so a value is given by copying the encoded numbers of a row that has it.

Reference: J. Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001,
section 8.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .glance import show_cell
from .measures import predict_rows
from .record import plain

Array = NDArray[np.float64]

_MOST_ROWS: Final = 300
_MOST_NUMBERS: Final = 2**22  # of a sample, as a dense array
_POINTS: Final = 12
_LEVELS: Final = 10
_DAY: Final = 86_400_000_000  # microseconds
_FLAT: Final = 0.01  # share of the spread of all predictions below which an effect hardly changes them
_ONE_WAY: Final = 0.1  # share of the steps against the main direction that a rise or fall may have


def effects_of(
    model: Any,
    X: Any,
    sources: Sequence[str],
    table: Any,
    columns: Sequence[str],
    classes: Sequence[str] | None,
    positive: int | None,
    seed: int,
) -> list[dict[str, Any]]:
    """Return the partial dependence of predictions on some columns.

    Parameters
    ----------
    model : estimator
        Fitted to encoded rows.
    X : (n, d) array or sparse array
        Encoded rows.
    sources : d names
        The column of the table that each encoded number comes from.
    table : pyarrow.Table
        The same rows before they were encoded.
    columns : sequence of str
        Whose effect is wanted.
    classes : sequence of str or None
        The classes; None for numbers.
    positive : int or None
        The class whose probability is drawn; None for the one that changes most.
    seed : int
        Which rows are in the sample.

    Returns
    -------
    list of dict
        "name", "kind" ("number", "ordered" or "level"), "points" (numbers, or labels), "values" (mean predictions),
        "of" (a class or None) and "sign".
    """
    most = max(20, min(_MOST_ROWS, _MOST_NUMBERS // max(1, X.shape[1])))
    rows = np.sort(np.random.default_rng(seed).permutation(X.shape[0])[:most])
    sample = _dense(X[rows])
    spread = _spread(model, sample, classes)
    found = []
    for name in columns:
        block = [position for position, source in enumerate(sources) if source == name]
        kind, points, donors = grid(table[name])
        if not block or len(points) < 2:
            continue
        given = _dense(X[donors])[:, block]
        means = []
        for numbers in given:
            changed = sample.copy()
            changed[:, block] = numbers
            means.append(_mean(model, changed, classes))
        table_of_means = np.array(means)  # (points, classes or 1)
        which = _class_drawn(table_of_means, classes, positive)
        values = table_of_means[:, which or 0]
        sign = None if kind == "level" else direction(values, float(spread[which or 0]))
        of = None if classes is None or which is None else classes[which]
        found.append({"name": name, "kind": kind, "points": points, "values": values, "of": of, "sign": sign})
    result: list[dict[str, Any]] = plain(found)
    return result


def grid(column: Any) -> tuple[str, list[Any], list[int]]:
    """Return the kind of a column, values to try, and for each a row that has it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> grid(pa.chunked_array([["b", "a", "b", None]]))
    ('level', ['b', 'a'], [0, 1])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not numeric and not _is_date(kind):
        return ("level", *_frequent(column))
    numbers = column if numeric else pc.cast(pc.cast(column, pa.timestamp("us")), pa.int64())
    values = np.asarray(pc.cast(numbers, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return "number", [], []
    order = known[np.argsort(values[known], kind="stable")]
    places = np.unique(np.linspace(0.02, 0.98, _POINTS) * (len(order) - 1)).round().astype(int)
    donors = [int(order[place]) for place in places]
    donors = [row for k, row in enumerate(donors) if k == 0 or values[row] > values[donors[k - 1]]]
    if numeric:
        return "number", [float(values[row]) for row in donors], donors
    whole_days = not np.any(values[known] % _DAY)
    shown = [show_cell(column[row].as_py()) or "" for row in donors]
    return "ordered", [text.removesuffix(" 00:00:00") if whole_days else text for text in shown], donors


def direction(values: Array, spread: float) -> str:
    """Say which way predictions go as a column grows.

    Examples
    --------
    >>> [direction(np.array(v), 1.0) for v in ([0, 1, 2.0], [2, 1, 0.0], [0, 2, 0.0], [0, 1e-4, 0])]
    ['rises', 'falls', 'rises and falls', 'hardly changes']
    """
    if np.ptp(values) <= _FLAT * spread:
        return "hardly changes"
    steps = np.diff(values)
    up = float(steps[steps > 0].sum())
    down = float(-steps[steps < 0].sum())
    if min(up, down) <= _ONE_WAY * max(up, down):
        return "rises" if up > down else "falls"
    return "rises and falls"


def _is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _frequent(column: Any) -> tuple[list[str], list[int]]:
    """Return the most frequent levels, and the first row of each; none of free text, where every row has its own."""
    labels = [None if value is None else str(value) for value in column.to_pylist()]
    first: dict[str, int] = {}
    counts: dict[str, int] = {}
    for row, label in enumerate(labels):
        if label is not None:
            first.setdefault(label, row)
            counts[label] = counts.get(label, 0) + 1
    if max(counts.values(), default=0) < 2:
        return [], []
    levels = sorted(counts, key=lambda label: -counts[label])[:_LEVELS]
    return [show_cell(level) or "" for level in levels], [first[level] for level in levels]


def _mean(model: Any, X: Array, classes: Sequence[str] | None) -> Array:
    """Return the mean prediction, or the mean probability of every class."""
    return np.asarray(_predictions(model, X, classes).mean(axis=0))


def _predictions(model: Any, X: Array, classes: Sequence[str] | None) -> Array:
    found = predict_rows(model, X, None if classes is None else len(classes))
    if classes is None:
        return np.asarray(found.values, dtype=np.float64)[:, None]
    if found.probabilities is not None:
        return np.asarray(found.probabilities)
    return np.asarray(found.values[:, None] == np.arange(len(classes)), dtype=np.float64)


def _spread(model: Any, X: Array, classes: Sequence[str] | None) -> Array:
    return np.asarray(np.ptp(_predictions(model, X, classes), axis=0))


def _class_drawn(means: Array, classes: Sequence[str] | None, positive: int | None) -> int | None:
    if classes is None:
        return None
    return int(np.argmax(np.ptp(means, axis=0))) if positive is None else positive


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
