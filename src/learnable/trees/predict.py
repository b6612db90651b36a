"""Predict with many small trees that share few thresholds, as those grown on bins do.

Each value becomes one byte, the number of thresholds of its column below it; 256 rows then pass each tree together. The
sums are those of `Trees.sum`, bit for bit. Trees with categories or more than 64 leaves, or columns with more than 253
different thresholds, are left to `Trees`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.jit import ieee_kernel
from .histogram._bins import find_bin
from .layout import Trees, _run_chunks

# --------------------------------------------------------------------------------------------------------------------
# Kernels of `predictor`: 256 rows become bytes and pass all trees, one node at a time, without a branch.
#
# For each row a word has one bit for each leaf of a tree, from left to right. A node at which the row goes right
# clears the bits of the leaves on its left; when all nodes have been asked, in any order, the lowest bit left is the
# row's leaf (Lucchese et al., QuickScorer, SIGIR 2015). All rows ask the same node together, which the compiler does
# in vectors.
#
# With c = (code of the row + bias) mod 256 a row goes right when c >= cut. A missing value has the code 255, which a
# bias of one turns to 0: left.


Int = Any
MISSING: Final = 255
BLOCK: Final = 256


@ieee_kernel
def encode(X: Any, column: Any, edges: Any, codes: Any) -> None:
    """Write how many of its column's thresholds are below each value, column by column."""
    for k in range(column.size):
        own, line, j = edges[k], codes[k], column[k]
        for r in range(X.shape[0]):
            x = X[r, j]
            line[r] = np.uint8(find_bin(x, own)) if x == x else np.uint8(MISSING)


@ieee_kernel
def ask(line: Any, cut: Any, bias: Any, mask: Any, words: Any) -> None:
    """Clear the bits outside the mask of those rows that go right at a node."""
    every = ~(mask ^ mask)
    for r in range(BLOCK):
        words[r] &= every if np.uint8(line[r] + bias) < cut else mask


@ieee_kernel
def sum_block(
    X: Any, column: Any, edges: Any, start: Any, place: Any, cut: Any, bias: Any, mask: Any, leaf_start: Any,
    value: Any, codes: Any, words: Any, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add the leaf values of every tree to at most 256 rows of `out`."""
    n = X.shape[0]
    encode(X, column, edges, codes)
    for t in range(start.size - 1):
        for r in range(BLOCK):
            words[r] = ~np.uint64(0)
        for q in range(start[t], start[t + 1]):
            ask(codes[place[q]], cut[q], bias[q], mask[q], words)
        values = value[leaf_start[t] : leaf_start[t + 1]]
        for r in range(n):
            w = np.uint64(words[r])
            low = w & (~w + np.uint64(1))
            exponent = np.float64(low).view(np.int64) >> np.int64(52)  # the place of the bit, plus 1023
            for c in range(value.shape[1]):
                out[r, c] += values[exponent - 1023, c]


Array = NDArray[np.float64]

_CHUNK_ROWS = 8192
_MOST_THRESHOLDS = 253
_MOST_LEAVES = 64
_FEW_ROWS = 64  # fewer are not worth the preparation


@dataclass(frozen=True)
class Predictor:
    """Trees prepared for prediction.

    Attributes
    ----------
    trees : Trees
        What is predicted with.
    column, edges : (k,) int64, (k, 256) float64
        Columns that are tested and their thresholds, ascending, infinite ones at the end.
    start : (T+1,) int64
        First inner node of each tree; empty if the trees cannot be prepared.
    place, cut, bias : (m,) int64, uint8, uint8
        Of each inner node: where its column is in `column`, and the test; see `_predict_kernels`.
    mask : (m,) uint32 or uint64
        Leaves that are left for who goes right.
    leaf_start, value : (T+1,) int64, (L, K) float64
        Values of the leaves, from left to right.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.trees import Columns, GrowthRule, grow
    >>> from learnable.trees.criteria import Target
    >>> X = np.arange(100.0)[:, None]
    >>> tree = grow(Columns.build(X), Target.numbers(X[:, 0] > 50), GrowthRule()).tree
    >>> Predictor.build(tree).sum(X)[49:53, 0].tolist()
    [0.0, 0.0, 1.0, 1.0]
    """

    trees: Trees
    column: NDArray[np.int64]
    edges: Array
    start: NDArray[np.int64]
    place: NDArray[np.int64]
    cut: NDArray[np.uint8]
    bias: NDArray[np.uint8]
    mask: NDArray[Any]
    leaf_start: NDArray[np.int64]
    value: Array

    @property
    def is_prepared(self) -> bool:
        """Whether the trees have the form that the fast way needs."""
        return len(self.start) > 0

    @staticmethod
    def build(trees: Trees) -> Predictor:
        """Prepare the trees."""
        none, byte = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        plain = Predictor(trees, none, np.zeros((0, 256)), none, none, byte, byte, none, none, trees.value)
        leaf = trees.feature < 0
        first = trees.start[:-1]
        leaves = np.add.reduceat(leaf.astype(np.int64), first)
        if not trees._is_plain() or leaves.max() > _MOST_LEAVES:
            return plain
        inner = np.flatnonzero(~leaf)
        feature, threshold = trees.feature[inner], trees.threshold[inner]
        column = np.unique(feature).astype(np.int64)
        place = np.searchsorted(column, feature)
        edges, cut = np.full((len(column), 256), np.inf), np.empty(len(inner), np.int64)
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(len(column) + 1))
        for k in range(len(column)):
            own = order[bounds[k] : bounds[k + 1]]
            distinct = np.unique(threshold[own])
            distinct = distinct[np.isfinite(distinct)]
            if len(distinct) > _MOST_THRESHOLDS:
                return plain
            edges[k, : len(distinct)] = distinct
            cut[own] = np.searchsorted(distinct, threshold[own])
        bias = trees.missing_left[inner]
        # In preorder the leaves before the right child, of those of the tree, are those on its left and further left.
        before = np.r_[0, np.cumsum(leaf)]
        base = np.repeat(first, np.diff(trees.start))[inner]
        low = (before[inner] - before[base]).astype(np.uint64)
        high = (before[base + trees.right[inner]] - before[base]).astype(np.uint64)
        one = np.uint64(1)
        cleared = (one << high) - (one << low)  # high < 64: a leaf is on the right
        mask = ~cleared if leaves.max() > 32 else (~cleared).astype(np.uint32)
        start = np.searchsorted(inner, trees.start).astype(np.int64)
        leaf_start = before[trees.start].astype(np.int64)
        tests = (place.astype(np.int64), (cut + bias + 1).astype(np.uint8), bias)
        return Predictor(trees, column, edges, start, *tests, mask, leaf_start, trees.value[leaf])

    @staticmethod
    def sum_of(trees: Trees, X: Any, n_jobs: int | None = 1) -> Array:
        """Return what `build(trees).sum(X)` returns; for a few rows the trees are not prepared."""
        few = sp.issparse(X) or X.shape[0] < _FEW_ROWS
        return trees.sum(X, n_jobs) if few else Predictor.build(trees).sum(X, n_jobs)

    def sum(self, X: Any, n_jobs: int | None = 1) -> Array:
        """Return the sum over the trees of the rows' leaf values, (n, K)."""
        n = X.shape[0]
        if not self.is_prepared or sp.issparse(X) or n < _FEW_ROWS:
            return self.trees.sum(X, n_jobs)
        dtype: Any = np.float32 if X.dtype == np.float32 else np.float64
        near = self.edges.astype(dtype)
        edges = np.where(near > self.edges, np.nextafter(near, dtype(-np.inf)), near)
        out = np.zeros((n, self.value.shape[1]))

        def chunk(first: int) -> None:
            codes = np.zeros((max(1, len(self.column)), BLOCK), np.uint8)
            words = np.empty(BLOCK, self.mask.dtype)
            for lo in range(first, min(n, first + _CHUNK_ROWS), BLOCK):
                part = np.ascontiguousarray(X[lo : min(n, lo + BLOCK)], dtype)
                sum_block(part, self.column, edges, self.start, self.place, self.cut, self.bias, self.mask,
                          self.leaf_start, self.value, codes, words, out[lo : lo + BLOCK])  # fmt: skip

        _run_chunks(chunk, n, n_jobs, _CHUNK_ROWS)
        return out
