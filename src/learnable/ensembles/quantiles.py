r"""Quantiles of a forest: the distribution of the training targets that share a leaf with x.

A forest's mean is a weighted mean of the training targets, Σᵢ wᵢ(x) yᵢ with wᵢ(x) = T⁻¹ Σ_t v_ti 1[i in the leaf of x
in tree t] / (weight of that leaf), where v_ti is how often row i was drawn for tree t. The same weights give a
distribution, F(y | x) = Σᵢ wᵢ(x) 1[yᵢ <= y], and its quantiles inf{y : F(y | x) >= q}: the quantile regression
forest. It is consistent as leaves hold ever more rows and shrink; with few rows in a leaf, or on training rows,
intervals can be too short.

Reference: N. Meinshausen, Quantile regression forests, JMLR 7 (2006), equations 4 to 6; there a leaf's rows are all
training rows, here those the tree was grown on, so that the mean of F is the forest's prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ModelFileError
from ..trees.file_layout import narrow
from ..trees.layout import Trees
from ._kernels import group_by_leaf, leaf_quantiles

Array = NDArray[np.float64]

_CHUNK_ROWS = 1024


@dataclass(frozen=True)
class LeafTargets:
    """The training targets in the leaves of all trees; four bytes for each row of each tree.

    Attributes
    ----------
    rows : (E,) int32
        Training rows, tree by tree and leaf by leaf, each as often as it was drawn.
    sizes : (T,) int64
        Entries of each tree.
    y : (n, m) float64
        The targets.
    weight : (n,) float64 or None
        The weights of the rows in their leaves, beyond the number of draws.
    """

    rows: NDArray[np.int32]
    sizes: NDArray[np.int64]
    y: Array
    weight: Array | None = None

    def _to_file(self) -> dict[str, Any] | None:
        """Return what a model file holds: row numbers in as few bytes as they need."""
        packed = {"rows": narrow(self.rows), "sizes": self.sizes, "y": self.y}
        return packed if self.weight is None else packed | {"weight": self.weight}

    @classmethod
    def _from_file(cls, packed: dict[str, Any]) -> LeafTargets:
        """Return what `_to_file` packed."""
        rows = packed.get("rows")
        known = {"rows", "sizes", "y", "weight"}
        if not isinstance(rows, np.ndarray) or rows.dtype.kind not in "iu" or not set(packed) <= known:
            raise ModelFileError("load: the targets in the leaves are damaged.")
        if rows.size and (rows.min() < 0 or rows.max() >= 2**31):
            raise ModelFileError("load: the targets in the leaves are damaged.")
        return cls(rows.astype(np.int32), packed["sizes"], packed["y"], packed.get("weight"))

    def begins(self, trees: Trees, drawn: bool) -> NDArray[np.int64]:
        """Return where each node's entries begin, (N + 1,); inner nodes have none."""
        held = np.rint(trees.weight).astype(np.int64) if drawn else trees.n_rows
        return np.r_[0, np.cumsum(np.where(trees.feature < 0, held, 0))]

    def check(self, trees: Trees, drawn: bool, n_outputs: int) -> None:
        """Raise ModelFileError unless the entries fit the leaves."""

        def require(condition: Any) -> None:
            if not bool(condition):
                raise ModelFileError("load: the targets in the leaves do not fit the trees.")

        require(self.rows.dtype == np.int32 and self.rows.ndim == 1 and self.rows.flags.c_contiguous)
        require(self.y.dtype == np.float64 and self.y.ndim == 2 and self.y.shape[1] == n_outputs and len(self.y))
        require(np.isfinite(self.y).all())
        require(self.rows.size and self.rows.min() >= 0 and self.rows.max() < len(self.y))
        require(self.sizes.dtype == np.int64 and self.sizes.shape == (trees.n_trees,))
        if self.weight is not None:
            require(self.weight.dtype == np.float64 and self.weight.shape == (len(self.y),))
            require(np.isfinite(self.weight).all() and (self.weight > 0).all())
        require(((trees.weight < 2**31) & (trees.n_rows < 2**31)).all())
        begin = self.begins(trees, drawn)
        require(begin[-1] == len(self.rows) and np.array_equal(np.diff(begin[trees.start]), self.sizes))
        require((np.diff(begin)[trees.feature < 0] > 0).all())


def rows_by_leaf(leaf_of_row: NDArray[np.int32], rows: NDArray[Any], n_nodes: int) -> NDArray[np.int32]:
    """Return the rows of a bag, leaf by leaf.

    Examples
    --------
    >>> rows_by_leaf(np.array([2, 1, 2], dtype=np.int32), np.array([0, 0, 1, 2]), 3).tolist()
    [1, 0, 0, 2]
    """
    out = np.empty(len(rows), np.int32)
    group_by_leaf(leaf_of_row, rows, np.zeros(n_nodes + 1, np.int64), out)
    return out


def forest_quantiles(trees: Trees, held: LeafTargets, leaves: NDArray[np.int32], levels: Array, drawn: bool) -> Array:
    """Return the quantiles at the (ascending) levels, (n, levels, m), of rows that end in `leaves` (n, T)."""
    begin = held.begins(trees, drawn)
    weight = np.ones(len(held.y)) if held.weight is None else held.weight
    out = np.empty((held.y.shape[1], len(leaves), len(levels)))
    for k in range(held.y.shape[1]):
        order = np.argsort(held.y[:, k], kind="stable")
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        y_sorted = held.y[order, k]
        for lo in range(0, len(leaves), _CHUNK_ROWS):
            hi = min(len(leaves), lo + _CHUNK_ROWS)
            leaf_quantiles(leaves, trees.start, begin, held.rows, weight, rank, y_sorted, levels, lo, hi, out[k])
    return np.ascontiguousarray(out.transpose(1, 2, 0))
