"""Prediction: rows walk down trees, one by one, eight at a time, or 256 together.

| rows and trees                                       | how                                                       |
|------------------------------------------------------|-----------------------------------------------------------|
| few rows, sparse rows, categories                    | `walk_rows`: node by node                                 |
| many rows, numbers, left children follow the parents | `walk_packed`: nodes of 16 bytes, eight rows, no branches |
| many rows, at most 64 leaves, few thresholds         | `Predictor`: bytes and bit masks, 256 rows per node       |

All three give the same sums, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core import Array, NDArray, resolve_n_jobs, run_tasks
from ..core.jit import ieee_kernel, kernel
from .histogram.bins import find_bin

if TYPE_CHECKING:
    from .layout import Trees


#: Rows of one task. 20 trees on 60,000 × 12: 22.5, 22.1 and 22.1 ms of processor time with 2,048, 8,192 and 32,768;
#: small tasks share better.
_CHUNK_ROWS = 8192
_PACKED_ROWS = 512  # fewer rows: packing the nodes takes longer than their walk
_NO_LEAVES: Final = np.empty((0, 0), np.int32)
_NO_VALUES: Final = np.empty((0, 0))


# --------------------------------------------------------------------------------------------------------------------
# Many rows walk down trees of numbers, eight at a time and without branches.
#
# A node is packed into 16 bytes: threshold, column, and the distance from the left child, which follows its parent,
# to the right one. The sign bit of threshold − x says which way to go, so that nothing is mispredicted, and eight
# independent walks hide the time to fetch a node. A leaf has the threshold −∞ and the distance −1: a row that is
# there stays there.


NODE: Final = np.dtype([("threshold", "f8"), ("column", "u4"), ("jump", "i4")])
_MISSING_LEFT: Final = np.uint32(1 << 31)  # the top bit of `column`
_LANES: Final = 8  # rows that walk a tree together


def pack(start: Any, feature: Any, threshold: Array, right: Any, missing_left: Any) -> NDArray[Any]:
    """Return the nodes, each of whose left children follows it, in the packed form."""
    leaf = feature < 0
    own = np.arange(len(feature)) - np.repeat(start[:-1], np.diff(start))
    nodes = np.empty(len(feature), NODE)
    nodes["threshold"] = np.where(leaf, -np.inf, threshold)
    nodes["column"] = np.where(leaf, 0, feature) | np.where(missing_left & ~leaf, _MISSING_LEFT, np.uint32(0))
    nodes["jump"] = np.where(leaf, -1, right - own - 1)
    return nodes


@kernel
def _step(nodes: Any, x: Any, i: Any) -> Any:
    """Return the node after node i for the row x."""
    node = nodes[np.uint64(i)]
    at = node.column & np.uint32(0x7FFFFFFF)
    value = x[np.uint64(at)]
    if value != value:
        return i + 1 if node.column != at else i + 1 + np.int64(node.jump)
    difference = np.float64(node.threshold - value)
    return i + 1 + (np.int64(node.jump) & (difference.view(np.int64) >> np.int64(63)))


@kernel
def _walk_one(nodes: Any, x: Any) -> Any:
    i = np.int64(0)
    while True:
        after = _step(nodes, x, i)
        if after == i:
            return i
        i = after


@kernel
def _walk_eight(nodes: Any, X: Any, leaf: NDArray[np.int64]) -> None:
    """Write the leaves of eight rows."""
    a = b = c = d = e = f = g = h = np.int64(0)
    xa = X[0]
    xb = X[1]
    xc = X[2]
    xd = X[3]
    xe = X[4]
    xf = X[5]
    xg = X[6]
    xh = X[7]
    while True:
        a2 = _step(nodes, xa, a)
        b2 = _step(nodes, xb, b)
        c2 = _step(nodes, xc, c)
        d2 = _step(nodes, xd, d)
        e2 = _step(nodes, xe, e)
        f2 = _step(nodes, xf, f)
        g2 = _step(nodes, xg, g)
        h2 = _step(nodes, xh, h)
        moved = (a2 ^ a) | (b2 ^ b) | (c2 ^ c) | (d2 ^ d) | (e2 ^ e) | (f2 ^ f) | (g2 ^ g) | (h2 ^ h)
        a = a2
        b = b2
        c = c2
        d = d2
        e = e2
        f = f2
        g = g2
        h = h2
        if moved == 0:
            break
    leaf[0] = a
    leaf[1] = b
    leaf[2] = c
    leaf[3] = d
    leaf[4] = e
    leaf[5] = f
    leaf[6] = g
    leaf[7] = h


@kernel
def walk_packed(X: Any, start: Any, packed: Any, leaves: Any, value: Any, out: Any) -> None:
    """Do what `walk_rows` does, for dense rows and packed nodes."""
    leaf = np.empty(_LANES, np.int64)
    n = X.shape[0]
    for t in range(start.size - 1):
        nodes = packed[start[t] : start[t + 1]]
        r = 0
        while r < n:
            lanes = min(_LANES, n - r)
            if lanes == _LANES:
                _walk_eight(nodes, X[r : r + _LANES], leaf)
            else:
                for k in range(lanes):
                    leaf[k] = _walk_one(nodes, X[r + k])
            for k in range(lanes):
                if leaves is not None:
                    leaves[r + k, t] = leaf[k]
                if value is not None:
                    for c in range(value.shape[1]):
                        out[r + k, c] += value[start[t] + leaf[k], c]
            r += lanes


# --------------------------------------------------------------------------------------------------------------------
# Rows walk down the trees, node by node. Tests of arguments against None stand alone, so that the compiler can drop
# what they guard.


class Nodes(NamedTuple):
    """What `Trees` ask of rows, as kernels see it."""

    feature: NDArray[np.int32]
    threshold: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    category: NDArray[np.int64]
    bits: NDArray[np.uint32]


class SparseRows(NamedTuple):
    """CSR rows, whose indices ascend."""

    data: Array
    indices: NDArray[Any]
    indptr: NDArray[np.int64]


@kernel
def goes_left(x: float, i: int, threshold: Any, missing_left: Any, category: Any, bits: Any) -> bool:
    """Tell whether value x goes left at node i."""
    if category[i] < 0:
        return x <= threshold[i] or (x != x and missing_left[i] != 0)
    at = category[i]
    n_words = np.int64(bits[at])
    if not (x >= 0.0 and x < 32.0 * n_words):  # also when it is missing
        return missing_left[i] != 0
    code = np.int64(x)
    return (bits[at + 1 + (code >> 5)] >> np.uint32(code & 31)) & np.uint32(1) != 0


@kernel
def _stored(rows: Any, r: int, column: int) -> float:
    """Return an entry of CSR rows."""
    low = rows.indptr[r]
    end = rows.indptr[r + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if rows.indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return np.float64(rows.data[low]) if low < end and rows.indices[low] == column else 0.0


@kernel
def walk_rows(
    X: Any, sparse: Any, lo: int, hi: int, start: Any, nodes: Any, leaves: Any, value: Any, out: Any, unseen: Any,
    voters: Any,
) -> None:  # fmt: skip
    """Write the leaf of rows lo … hi − 1 in every tree, counted within the tree, and add its values to `out`.

    X is dense, or None and `sparse` has the rows. `leaves` or `value` may be None or empty. With `unseen` only those of
    up to 64 trees are asked whose bit is set in the row's word, and `voters` counts them.
    """
    for t in range(start.size - 1):
        for r in range(lo, hi):
            if unseen is not None:
                if (unseen[r] >> np.uint64(t)) & np.uint64(1) == 0:
                    continue
                voters[r] += 1
            first = start[t]
            i = first
            while nodes.feature[i] >= 0:
                x = 0.0
                if X is not None:
                    x = np.float64(X[r, nodes.feature[i]])
                if sparse is not None:
                    x = _stored(sparse, r, nodes.feature[i])
                left = goes_left(x, i, nodes.threshold, nodes.missing_left, nodes.category, nodes.bits)
                i = first + (nodes.left[i] if left else nodes.right[i])
            if leaves is not None and leaves.size > 0:
                leaves[r, t] = i - first
            if value is not None:
                for k in range(value.shape[1]):
                    out[r, k] += value[i, k]


@kernel
def mark_paths(leaves: Any, start: Any, parent: Any, depth: Any, indptr: Any, indices: Any) -> None:
    """Write the nodes that each row passes, ascending."""
    for r in range(leaves.shape[0]):
        at = indptr[r]
        for t in range(leaves.shape[1]):
            i = np.int64(start[t] + leaves[r, t])
            n = depth[i] + 1
            for k in range(n):
                indices[at + n - 1 - k] = i
                i = parent[i]
            at += n


def questions(trees: Trees) -> Nodes:
    """Return what the trees ask."""
    return Nodes(*(getattr(trees, name) for name in Nodes._fields))


def rows_for_walks(X: Any) -> tuple[Any, SparseRows | None]:
    """Return X and None, or None and its CSR rows."""
    if not sp.issparse(X):
        return X, None
    X = X.tocsr()
    X.sort_indices()
    return None, SparseRows(X.data.astype(np.float64, copy=False), X.indices, X.indptr.astype(np.int64, copy=False))


def walk_trees(trees: Trees, X: Any, n_jobs: int | None, leaves: Any, value: Any, out: Any) -> None:
    """Write the leaf of each row in every tree, or add its values to `out`; what is not wanted is None."""
    n = X.shape[0]
    if n >= _PACKED_ROWS and not sp.issparse(X) and trees._is_plain():
        nodes = pack(trees.start, trees.feature, trees.threshold, trees.right, trees.missing_left)
        # Long chunks: a tree that was fetched into the cache serves many rows.
        size = min(4 * _CHUNK_ROWS, max(_CHUNK_ROWS // 4, -(-n // (4 * resolve_n_jobs(n_jobs)))))

        def packed_chunk(first: int) -> None:
            rows = slice(first, first + size)
            written = None if leaves is None else leaves[rows]
            added = None if out is None else out[rows]
            walk_packed(np.ascontiguousarray(X[rows]), trees.start, nodes, written, value, added)

        _run_chunks(packed_chunk, n, n_jobs, size)
        return
    dense, sparse = rows_for_walks(X)
    asked = questions(trees)
    # Empty arrays in place of None: leaves and values are then written by one compiled kernel.
    written = _NO_LEAVES if leaves is None else leaves
    given = _NO_VALUES if value is None else value
    sums = _NO_VALUES if value is None else out

    def chunk(first: int) -> None:
        last = min(n, first + _CHUNK_ROWS)
        walk_rows(dense, sparse, first, last, trees.start, asked, written, given, sums, None, None)

    _run_chunks(chunk, n, n_jobs, _CHUNK_ROWS)


def _run_chunks(chunk: Callable[[int], None], n_rows: int, n_jobs: int | None, size: int) -> None:
    """Call `chunk` with the first row of each chunk, on threads."""
    run_tasks(lambda number: chunk(number * size), -(-n_rows // size), resolve_n_jobs(n_jobs))


# --------------------------------------------------------------------------------------------------------------------
# Small trees that share few thresholds: 256 rows become bytes and pass all trees, one node at a time, branch-free.
#
# For each row a word has one bit for each leaf of a tree, from left to right. A node at which the row goes right
# clears the bits of the leaves on its left; when all nodes have been asked, in any order, the lowest bit left is the
# row's leaf (Lucchese et al., QuickScorer, SIGIR 2015). All rows ask the same node together, which the compiler does
# in vectors.
#
# With c = (code of the row + bias) mod 256 a row goes right when c >= cut. A missing value has the code 255, which a
# bias of one turns to 0: left.


MISSING: Final = 255  # code of a missing value
BLOCK: Final = 256  # rows that are coded at a time


@ieee_kernel
def encode(X: Any, column: Any, edges: Any, codes: Any) -> None:
    """Write how many of its column's thresholds are below each value, column by column."""
    for k in range(column.size):
        own = edges[k]
        line = codes[k]
        j = column[k]
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


_MOST_THRESHOLDS = 253  # of a column, whose codes and two besides fit into a byte
_MOST_LEAVES = 64  # of a tree, one bit each of a word
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
        Of each inner node: where its column is in `column`, and the test; see above.
    mask : (m,) uint32 or uint64
        Leaves that remain possible for a row that goes right.
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
        none = np.zeros(0, np.int64)
        byte = np.zeros(0, np.uint8)
        plain = Predictor(trees, none, np.zeros((0, 256)), none, none, byte, byte, none, none, trees.value)
        leaf = trees.feature < 0
        first = trees.start[:-1]
        leaves = np.add.reduceat(leaf.astype(np.int64), first)
        if not trees._is_plain() or leaves.max() > _MOST_LEAVES:
            return plain
        inner = np.flatnonzero(~leaf)
        feature = trees.feature[inner]
        threshold = trees.threshold[inner]
        column = np.unique(feature).astype(np.int64)
        place = np.searchsorted(column, feature)
        edges = np.full((len(column), 256), np.inf)
        cut = np.empty(len(inner), np.int64)
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
