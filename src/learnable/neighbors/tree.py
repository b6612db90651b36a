"""Where a tree wins: the k-d tree of `_tree_kernels.py`, and the decision between it and the screening.

A tree looks at few rows in few dimensions and at all of them in many; which it is depends on the data (rows on a curve
have one dimension, whatever their columns), so it is counted: a tree over a sample answers some rows of the sample, and
then one over all rows does. Whatever is chosen, the neighbours are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.threads import interruptible
from ._kernels import NO_ROW
from ._tree_kernels import build_tree, walk_tree
from .search import PlainSearch, ScreenedSearch, Search

Array = NDArray[Any]

_SAMPLE, _PROBES = 4096, 32
_MOST_COLUMNS = 64
_FEWEST_ROWS = 512


class TreeSearch(PlainSearch):
    """Search by a k-d tree, for any Minkowski distance. Memory: the rows once more, in the tree's order."""

    def __init__(self, X: Array, power: float, leaf_size: int) -> None:
        n, d = X.shape
        levels = 0
        while n >> (levels + 1) >= leaf_size and n >> (levels + 1) > 0:
            levels += 1
        n_nodes = 2 ** (levels + 1) - 1
        order = np.empty(n, np.int64)
        self.starts, self.ends = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
        self.low, self.high = np.empty((n_nodes, d)), np.empty((n_nodes, d))
        interruptible(build_tree, X, order, self.starts, self.ends, self.low, self.high)
        super().__init__(X, power, order)
        self.leaf_order, self.block_queries = order, 256
        #: The key of a box is rounded d times, and may exceed a row's by as much.
        self.margin = 1.0 - 8 * (d + 8) * 2.0**-53 * max(1.0, power)

    def _scan(self, Q: Array, own: Array, keys: Array, rows: Array) -> None:
        self.walk(Q, own, keys, rows)

    def walk(self, Q: Array, own: Array, keys: Array, rows: Array) -> int:
        """Fill the heaps of the queries; return how many rows were looked at."""
        units = self.units(Q)
        nodes = (self.starts, self.ends, self.low, self.high)
        scaled = Q * units[:, None]
        return int(
            walk_tree(self.columns, self.leaf_order, *nodes, scaled, units, own, self.power, self.margin, keys, rows)
        )


def choose_search(X: Array, power: float, k: int, algorithm: str, leaf_size: int) -> Search:
    """Return the search over dense rows by a Minkowski distance that `algorithm` names, or the quickest for "auto"."""
    n, d = X.shape
    if algorithm in ("kd_tree", "ball_tree"):
        return TreeSearch(X, power, leaf_size)
    screened = power == 2.0 and d <= 2**20
    if 0.0 < power < 1.0:  # no triangle inequality: every row is measured
        return PlainSearch(X, power)
    if algorithm == "auto" and d <= _MOST_COLUMNS and n >= _FEWEST_ROWS:
        if n > 2 * _SAMPLE:
            sample = np.random.default_rng(0).choice(n, _SAMPLE, replace=False)
            # Of a sample a tree looks at a larger share than of all rows; only a hopeless one is dismissed here.
            share = _share_of_rows(TreeSearch(X[sample], power, leaf_size), k)
            if _tree_cost(share * _SAMPLE, d) > 8 * _scan_cost(_SAMPLE, d, screened):
                return ScreenedSearch(X) if screened else PlainSearch(X, power)
        tree = TreeSearch(X, power, leaf_size)
        if _tree_cost(_share_of_rows(tree, k) * n, d) < _scan_cost(n, d, screened):
            return tree
    return ScreenedSearch(X) if screened else PlainSearch(X, power)


def _share_of_rows(tree: TreeSearch, k: int) -> float:
    """Return the share of the rows that the walk looks at, for some of its own rows."""
    probes = np.linspace(0, tree.n_rows - 1, _PROBES).astype(np.int64)
    size = (_PROBES, min(k, tree.n_rows))
    seen = tree.walk(tree.X[probes], np.full(_PROBES, -1), np.full(size, np.inf), np.full(size, NO_ROW))
    return seen / (_PROBES * tree.n_rows)


def _tree_cost(rows_seen: float, d: int) -> float:
    """Return nanoseconds a query, as measured: rows in float64, a leaf at a time, and boxes."""
    return 1000.0 + rows_seen * (5.0 + 0.5 * d)


def _scan_cost(n: int, d: int, screened: bool) -> float:
    """Return nanoseconds a query, as measured: bounds by BLAS in float32, or all rows in float64."""
    return n * (1.0 + 0.025 * d) if screened else n * (0.5 + 0.3 * d)
