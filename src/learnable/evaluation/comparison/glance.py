"""A first look at a table: its first rows, what its numbers have to do with the target, and pairs that say the same.

Correlations are Pearson's, over the rows where both are known; with two classes the target is 1 for the rarer one. The
ends of their intervals come from Fisher's transformation: tanh(atanh(r) ± z/√(n − 3)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .measures import rarer_class
from .record import plain

Array = NDArray[np.float64]

_PREVIEW_ROWS: Final = 5
_PREVIEW_COLUMNS: Final = 40
_LONGEST: Final = 60
_MOST_ROWS: Final = 50_000
_MOST_COLUMNS: Final = 200  # of which all pairs are looked at
_SHOWN: Final = 20
_NEARLY_SAME: Final = 0.9
_Z: Final = 1.959963984540054  # 97.5 % of a standard normal lie below


def preview(table: Any) -> dict[str, Any]:
    """Return the first rows of a table as text.

    Parameters
    ----------
    table : pyarrow.Table
        The table as it was read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> preview(pa.table({"a": [1.5, None], "b": ["x", "y"]}))
    {'columns': ['a', 'b'], 'rows': [['1.5', 'x'], [None, 'y']]}
    """
    head = table.slice(0, _PREVIEW_ROWS).select(table.column_names[:_PREVIEW_COLUMNS])
    columns = [[show_cell(value) for value in column.to_pylist()] for column in head.columns]
    found: dict[str, Any] = plain({"columns": head.column_names, "rows": list(zip(*columns, strict=True))})
    return found


def show_cell(value: Any) -> str | None:
    """Return a cell as short text; None if it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def correlations(table: Any, names: Sequence[str], y: NDArray[Any], labels: Sequence[str] | None) -> dict[str, Any]:
    """Return the correlations of numeric columns with the target, and the pairs of columns above 0.9.

    Parameters
    ----------
    table : pyarrow.Table
        Rows with a target.
    names : sequence of str
        The columns learned from; those that are no numbers are left out.
    y : (n,) array
        Targets, or codes of classes.
    labels : sequence of str or None
        The classes. With more than two there is no correlation with the target.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> x = np.arange(20.0)
    >>> found = correlations(pa.table({"x": x, "twin": 2 * x + 1}), ["x", "twin"], -x, None)
    >>> round(found["with_target"][0]["value"], 9), found["pairs"][0]["a"], found["pairs"][0]["b"]
    (-1.0, 'x', 'twin')
    """
    import pyarrow as pa

    numeric = [
        name for name in names if pa.types.is_integer(table[name].type) or pa.types.is_floating(table[name].type)
    ]
    step = max(1, -(-len(y) // _MOST_ROWS))
    rows = np.arange(0, len(y), step)
    columns = {name: _numbers(table[name])[rows] for name in numeric[:_MOST_COLUMNS]}
    found: dict[str, Any] = {"rows": len(rows), "of": None, "with_target": [], "pairs": [], "beyond": _NEARLY_SAME}
    if labels is None or len(labels) == 2:
        target = y[rows].astype(np.float64)
        if labels is not None:
            rarer = rarer_class(y)
            target = (y[rows] == rarer).astype(np.float64)
            found["of"] = str(labels[rarer])
        lines = [{"name": name, **correlation(values, target)} for name, values in columns.items()]
        known = [line for line in lines if line["value"] is not None]
        found["with_target"] = sorted(known, key=lambda line: -abs(line["value"]))[:_SHOWN]
    found["pairs"] = _pairs(columns)
    result: dict[str, Any] = plain(found)
    return result


def correlation(a: Array, b: Array) -> dict[str, Any]:
    """Return Pearson's correlation over the rows where both are finite, with a 95 % interval and their number."""
    both = np.isfinite(a) & np.isfinite(b)
    n = int(both.sum())
    value = _pearson(a[both], b[both]) if n >= 3 else math.nan
    if math.isnan(value):
        return {"value": None, "low": None, "high": None, "rows": n}
    low = high = math.nan
    if n > 3 and abs(value) < 1.0:
        half = _Z / math.sqrt(n - 3)
        low = math.tanh(math.atanh(value) - half)
        high = math.tanh(math.atanh(value) + half)
    return {"value": value, "low": low, "high": high, "rows": n}


def _pearson(a: Array, b: Array) -> float:
    """Return the correlation of finite numbers of any size; NaN where one is constant."""
    sides = []
    for values in (a, b):
        size = float(np.abs(values).max()) or 1.0
        scaled = values / size
        centred = scaled - scaled.mean()
        length = float(np.linalg.norm(centred))
        if length <= 1e-12 * math.sqrt(len(values)):
            return math.nan
        sides.append(centred / length)
    return float(np.clip(sides[0] @ sides[1], -1.0, 1.0))


def _pairs(columns: dict[str, Array]) -> list[dict[str, Any]]:
    """Return the pairs of columns that say nearly the same, the closest first."""
    names = list(columns)
    if len(names) < 2:
        return []
    table = np.array([columns[name] for name in names])
    filled = np.where(np.isfinite(table), table, np.nan)
    with np.errstate(all="ignore"):
        size = np.nanmax(np.abs(filled), axis=1, keepdims=True, initial=0.0)
        scaled = filled / np.where(size > 0, size, 1.0)
        centred = scaled - np.nanmean(scaled, axis=1, keepdims=True)
    known = np.isfinite(centred).astype(np.float64)
    centred = np.nan_to_num(centred)
    squares = centred**2 @ known.T  # of the first column, over the rows where the second is known
    near = np.abs(centred @ centred.T) > (_NEARLY_SAME - 0.2) * np.sqrt(squares * squares.T)  # means are of other rows
    found = []
    for i, j in zip(*np.nonzero(np.triu(near, 1)), strict=True):
        line = correlation(columns[names[i]], columns[names[j]])
        if line["value"] is not None and abs(line["value"]) > _NEARLY_SAME:
            found.append({"a": names[i], "b": names[j], "value": line["value"], "rows": line["rows"]})
    return sorted(found, key=lambda pair: -abs(pair["value"]))[:_SHOWN]


def _numbers(column: Any) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
