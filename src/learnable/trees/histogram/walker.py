"""Finished trees on rows of which only the codes are here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Array, NDArray
from ...core.jit import ieee_kernel
from ..layout import Trees
from ._kernels import Table
from ._leafwise import FEATURE, LEFT, LINKS, RIGHT, SPLIT_AT, TO_LEFT, WORDS
from ._worker import walk
from .bins import BinnedTable
from .grower import HistogramRule, make_table


@ieee_kernel
def add_walked(table: Table, link: Any, words: Any, value: Any, F: Any) -> None:
    """Add the value of each row's leaf to its score."""
    for r in range(F.size):
        F[r] += value[walk(r, table, link, words)]


class CodeWalker:
    """Adds the values of trees to the scores of coded rows, as `Trees.sum` does for the rows themselves.

    Parameters
    ----------
    binned : BinnedTable
        The rows, in the bins that the trees were grown with.

    Examples
    --------
    >>> from learnable.trees.histogram.grower import grow_on_histograms
    >>> X = np.arange(8.0)[:, None]
    >>> table = BinnedTable.build(X)
    >>> rule = HistogramRule(min_samples_leaf=1, max_leaf_nodes=4)
    >>> tree = grow_on_histograms(table, np.sin(X[:, 0]), np.ones(8), rule).tree
    >>> F = np.zeros(8)
    >>> CodeWalker(table).add(tree, F)
    >>> bool((tree.sum(X)[:, 0] == F).all())
    True
    """

    def __init__(self, binned: BinnedTable) -> None:
        self.binned = binned
        # A code of a missing value is one whether or not the part has any.
        self._table = make_table(binned, HistogramRule(), binned.bins.can_miss)

    def add(self, tree: Trees, F: Array) -> None:
        """Add the values of one tree to the scores (n,)."""
        if not self.binned.n_rows:
            return
        link, words = self._nodes(tree)
        add_walked(self._table, link, words, np.ascontiguousarray(tree.value[:, 0]), F)

    def _nodes(self, tree: Trees) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the nodes as the grower has them: cuts and sets by bins instead of values and levels."""
        bins = self.binned.bins
        n = len(tree.feature)
        link = np.full((n, LINKS), -1, np.int64)
        words = np.zeros((n, 2 * WORDS), np.uint32)
        link[:, LEFT], link[:, RIGHT], link[:, FEATURE] = tree.left, tree.right, tree.feature
        link[:, TO_LEFT] = tree.missing_left
        for i in np.flatnonzero(tree.feature >= 0).tolist():
            j = int(tree.feature[i])
            if bins.categorical[j]:
                words[i, :WORDS] = _bins_left(tree, i, bins.level_bin[bins.level_start[j] : bins.level_start[j + 1]])
            else:
                edges = bins.edges[bins.edge_start[j] : bins.edge_start[j + 1]]
                link[i, SPLIT_AT] = np.searchsorted(edges, tree.threshold[i])
        return link, words


def _bins_left(tree: Trees, node: int, level_bin: NDArray[np.int16]) -> NDArray[np.uint32]:
    """Return the set of bins of which the levels go left."""
    at = int(tree.category[node])
    size = int(tree.bits[at])
    levels = np.unpackbits(tree.bits[at + 1 : at + 1 + size].view(np.uint8), bitorder="little")
    left = np.zeros(32 * WORDS, np.uint8)
    seen = np.flatnonzero(level_bin >= 0)
    left[level_bin[seen]] = levels[seen]
    return np.packbits(left, bitorder="little").view(np.uint32)
