"""Rows that are copies of others, which must not stand on both sides of a split: a twin gives the answer away.

Exact copies agree in every column that is learned from. Near copies agree in their text, spaces and capitals aside, and
in their numbers up to a thousandth of a standard deviation, and to far less than the distance to their neighbours.

In a table of a few coarse columns rows agree by chance, and say what many others say too; that is no copy. Rows count
as copies where fewer than one in a hundred such rows would have a double if the columns were independent.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...data.encoder_input import open_table
from ...data.encoder_read import Labels

Array = NDArray[np.float64]

_CHANCE: Final = 0.01  # doubles of a row that independent columns would give, below which a double is a copy
_NEAR: Final = 1e-3  # of a standard deviation
_NEARER: Final = 5e-3  # of the distance to the fifth neighbour
_CELL: Final = 20.0  # width of a cell of the grid, in tolerances
_GRIDS: Final = 6  # shifts of the grid: a pair that one cuts is together in another
_GRID_COLUMNS: Final = 8
_MOST_ROWS: Final = 200_000  # beyond, only exact copies are looked for
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
    >>> from learnable.evaluation.comparison.copies import find_copies
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
    pairs = _near_pairs(numbers, codes, groups) if 2 < n <= _MOST_ROWS else np.empty((0, 2), dtype=np.int64)
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
