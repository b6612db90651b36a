"""A first look at a table: its first rows, what its numbers have to do with the target, and pairs that say the same.

Correlations are Pearson's, over the rows where both are known; with two classes the target is 1 for the rarer one. The
ends of their intervals come from Fisher's transformation: tanh(atanh(r) ± z/√(n − 3)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...data.encoder_input import open_table
from ...data.encoder_read import Labels
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


# --------------------------------------------------------------------------------------------------------------------
# Rows that are copies of others, which must not stand on both sides of a split: a twin gives the answer away.
#
# Exact copies agree in every column that is learned from. Near copies agree in their text, spaces and capitals aside,
# and in their numbers up to a thousandth of a standard deviation, and to far less than the distance to their
# neighbours.
#
# In a table of a few coarse columns rows agree by chance, and say what many others say too; that is no copy. Rows
# count as copies where fewer than one in a hundred such rows would have a double if the columns were independent.


_CHANCE: Final = 0.01  # doubles of a row that independent columns would give, below which a double is a copy
_NEAR: Final = 1e-3  # of a standard deviation
_NEARER: Final = 5e-3  # of the distance to the fifth neighbour
_CELL: Final = 20.0  # width of a cell of the grid, in tolerances
_GRIDS: Final = 6  # shifts of the grid: a pair that one cuts is together in another
_GRID_COLUMNS: Final = 8
_MOST_COMPARED: Final = 200_000  # beyond, only exact copies are looked for
_SAMPLE: Final = 300
_SMALLEST_SAMPLE: Final = 30
_MOST_NUMBERS: Final = 10**8  # that are compared to find the usual distance of two rows: half a second
_LARGEST: Final = 0.05  # share of the rows that near copies may be linked into one group


class Copies(NamedTuple):
    """Which rows belong together."""

    groups: NDArray[np.int64]  #: (n,), equal for copies
    exact: int  #: rows that are copies of an earlier row
    near: int  #: further rows that are nearly copies

    @property
    def rows(self) -> int:
        """All rows that are copies of an earlier one."""
        return self.exact + self.near


def find_copies(features: Any, readings: dict[str, str] | None = None) -> Copies:
    """Return which rows of a table are copies of each other.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> from learnable.evaluation.comparison.glance import find_copies
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> X[7], X[8] = X[3], X[4] + 1e-9
    >>> found = find_copies(pa.table({name: X[:, j] for j, name in enumerate("abc")}))
    >>> found.exact, found.near, bool(found.groups[7] == found.groups[3])
    (1, 1, True)
    """
    table = open_table("copies", features).read_as(readings)
    numbers = []
    codes = []
    for j, kind in enumerate(table.types()):
        if kind in ("text", "mixed"):
            codes.append(_plain_codes(table.labels(j, kind)))
        elif kind != "empty":
            numbers.append(table.numbers([j], [kind])[:, 0])
    n = table.n_rows
    words = [*codes, *(_positions(column) for column in numbers)]
    if n < 2 or not words:
        return Copies(np.arange(n), 0, 0)
    groups = _groups(_hash(words), _rare(words, n))
    exact = n - len(np.unique(groups))
    pairs = _near_pairs(numbers, codes, groups) if 2 < n <= _MOST_COMPARED else np.empty((0, 2), dtype=np.int64)
    if len(pairs):
        links = coo_array((np.ones(len(pairs)), (groups[pairs[:, 0]], groups[pairs[:, 1]])), shape=(n, n))
        merged = connected_components(links, directed=False)[1][groups].astype(np.int64)
        if np.bincount(merged).max() <= max(_LARGEST * n, np.bincount(groups).max(), 2):
            groups = merged
    near = n - len(np.unique(groups)) - exact
    return Copies(np.unique(groups, return_inverse=True)[1].astype(np.int64), exact, near)


def merge_groups(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return groups of rows that are together in one of two groupings, or linked by several such steps."""
    n = max(int(a.max()), int(b.max())) + 1
    links = coo_array((np.ones(len(a)), (a, b + n)), shape=(2 * n, 2 * n))
    parts = connected_components(links, directed=False)[1]
    return np.unique(parts[a], return_inverse=True)[1].astype(np.int64)


def _plain_codes(labels: Labels) -> NDArray[np.int64]:
    """Return codes of text without regard to capitals and spaces."""
    words: dict[str, int] = {}
    lookup = [words.setdefault(" ".join(value.casefold().split()), len(words)) for value in labels.values]
    return np.array([*lookup, -1], dtype=np.int64)[labels.codes]


def _positions(column: Array) -> NDArray[np.int64]:
    """Return numbers as positions among the distinct ones; missing ones are alike."""
    return np.unique(column, return_inverse=True)[1].astype(np.int64)


def _hash(words: list[NDArray[np.int64]]) -> NDArray[np.uint64]:
    """Return a 64-bit checksum of each row."""
    bits = np.zeros(len(words[0]), dtype=np.uint64)
    for word in words:
        bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + word.astype(np.uint64)
        bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return bits


def _rare(words: list[NDArray[np.int64]], n: int) -> NDArray[np.bool_]:
    """Tell which rows would hardly have a double if the columns were independent."""
    log_share = np.zeros(n)
    for word in words:
        _, place, counts = np.unique(word, return_inverse=True, return_counts=True)
        log_share += np.log(counts / n)[place]
    return np.asarray(log_share + math.log(n) < math.log(_CHANCE))


def _groups(keys: NDArray[np.uint64], rare: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return groups of rows with equal keys, each named by its first row; rows that are not rare stay alone."""
    groups = np.arange(len(keys))
    rows = np.flatnonzero(rare)
    _, first, place = np.unique(keys[rows], return_index=True, return_inverse=True)
    groups[rows] = rows[first][place]
    return groups


def _near_pairs(numbers: list[Array], codes: list[NDArray[np.int64]], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pairs of rows, each the first of its group, that are nearly copies."""
    rows = np.unique(groups)
    scaled = [column for column in (_scaled(column[rows]) for column in numbers) if column is not None]
    if not scaled or len(rows) < 3:
        return np.empty((0, 2), dtype=np.int64)
    Z = np.column_stack(scaled)
    labels = [code[rows] for code in codes]
    tolerance = min(_NEAR, _NEARER * _fifth_distance(Z))
    if not tolerance > 0:
        return np.empty((0, 2), dtype=np.int64)
    width = _CELL * tolerance
    distinct = np.array([len(np.unique(column)) for column in Z.T])
    chosen = np.argsort(-distinct, kind="stable")[:_GRID_COLUMNS]
    rng = np.random.default_rng(0)
    rare = _rare([*labels, *(np.floor(Z[:, j] / (_CELL * _NEAR)).astype(np.int64) for j in range(Z.shape[1]))], len(Z))
    found = []
    for _ in range(_GRIDS):
        shift = rng.random(len(chosen))
        cells = [np.floor(Z[:, j] / width + s).astype(np.int64) for j, s in zip(chosen, shift, strict=True)]
        keys = _hash([*labels, *cells])
        order = np.argsort(keys, kind="stable")
        same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        a = order[same]
        b = order[same + 1]
        near = (np.abs(Z[a] - Z[b]).max(axis=1) <= tolerance) & rare[a] & rare[b]
        found.append(np.column_stack([rows[a[near]], rows[b[near]]]))
    return np.unique(np.concatenate(found), axis=0)


def _scaled(column: Array) -> Array | None:
    """Return a column in standard deviations, gaps far away from all values; None if it is constant."""
    present = np.isfinite(column)
    spread = float(column[present].std()) if present.any() else 0.0
    if not spread > 0 or not math.isfinite(spread):
        return None
    return np.where(present, (column - column[present].mean()) / spread, 1e6)


def _fifth_distance(Z: Array) -> float:
    """Return the median over some rows of the largest coordinate difference to the fifth neighbour."""
    others = Z[:: max(1, len(Z) // 20_000)]
    most = max(_SMALLEST_SAMPLE, min(_SAMPLE, _MOST_NUMBERS // others.size))
    rows = np.unique(np.linspace(0, len(Z) - 1, most).round().astype(int))
    kth = min(5, len(others) - 1)
    found = [float(np.partition(np.abs(others - Z[row]).max(axis=1), kth)[kth]) for row in rows]
    return float(np.median(found))
