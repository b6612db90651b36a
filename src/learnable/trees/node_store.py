"""The nodes of a tree while it grows: arrays that double when they are full, in order of creation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._random import child_seeds
from ._subtrees import NodeArrays
from .layout import Trees

Array = NDArray[np.float64]

_FIRST_CAPACITY = 64


class NodeStore:
    """Nodes by number; rows of node i are rows[begin[i]:end[i]] of the grower.

    Parameters
    ----------
    width : int
        Numbers in the value of a node.

    Examples
    --------
    >>> NodeStore(1).add_root(10, seed=0)
    array([0])
    """

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    depth: NDArray[np.int32]
    seed: NDArray[np.uint64]
    bounds: Array  #: (·, 2) lowest and highest value that monotone constraints allow
    feature: NDArray[np.int32]  #: −1 where there is no split
    threshold: Array
    cut: NDArray[np.int64]  #: last code that goes left
    missing_left: NDArray[np.uint8]
    gain: Array
    left: NDArray[np.int32]  #: −1 while the rows are not divided
    right: NDArray[np.int32]
    impurity: Array
    weight: Array
    value: Array

    def __init__(self, width: int) -> None:
        self.n = 0
        self.sets: dict[int, NDArray[np.uint32]] = {}
        i32, i64, f64 = np.int32, np.int64, np.float64
        kinds: dict[str, Any] = {"begin": i64, "end": i64, "depth": i32, "seed": np.uint64, "feature": i32}
        kinds |= {"threshold": f64, "cut": i64, "missing_left": np.uint8, "gain": f64, "left": i32, "right": i32}
        kinds |= {"impurity": f64, "weight": f64}
        for name, kind in kinds.items():
            setattr(self, name, np.empty(_FIRST_CAPACITY, kind))
        self.bounds, self.value = np.empty((_FIRST_CAPACITY, 2)), np.empty((_FIRST_CAPACITY, width))
        self._names = [*kinds, "bounds", "value"]

    def add_root(self, n_rows: int, seed: int) -> NDArray[np.int64]:
        """Add the root and return its number, as an array."""
        start = np.array([seed % 2**64], dtype=np.uint64)
        free = np.array([[-np.inf, np.inf]])
        zero = np.zeros(1, np.int64)
        return self._add(zero, zero + n_rows, zero, start, free)

    def add_children(self, parents: NDArray[np.int64], middle: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add both children of nodes whose rows are divided at `middle`; return their numbers, pair by pair."""
        begin = np.stack([self.begin[parents], middle], axis=1).ravel()
        end = np.stack([middle, self.end[parents]], axis=1).ravel()
        depth = np.repeat(self.depth[parents] + 1, 2)
        seed = np.empty(2 * len(parents), np.uint64)
        child_seeds(self.seed[parents], seed)
        added = self._add(begin, end, depth, seed, np.repeat(self.bounds[parents], 2, axis=0))
        self.left[parents], self.right[parents] = added[::2], added[1::2]
        return added

    def _add(self, begin: Any, end: Any, depth: Any, seed: Any, bounds: Array) -> NDArray[np.int64]:
        first, self.n = self.n, self.n + len(begin)
        if self.n > len(self.begin):
            self.reserve(max(self.n, 2 * len(self.begin)))
        new = slice(first, self.n)
        self.begin[new], self.end[new], self.depth[new], self.seed[new] = begin, end, depth, seed
        self.bounds[new], self.feature[new], self.left[new], self.right[new] = bounds, -1, -1, -1
        self.threshold[new], self.cut[new], self.missing_left[new], self.gain[new] = 0.0, 0, 0, -np.inf
        return np.arange(first, self.n)

    def reserve(self, capacity: int) -> None:
        """Make room for so many nodes."""
        for name in self._names:
            array = getattr(self, name)
            grown = np.empty((max(capacity, len(array)), *array.shape[1:]), array.dtype)
            grown[: len(array)] = array
            setattr(self, name, grown)

    def arrays(self) -> NodeArrays:
        """Return the arrays, for kernels."""
        return NodeArrays(*(getattr(self, name) for name in NodeArrays._fields))

    def set_statistics(self, at: Any, value: Array, impurity: Array, weight: Array) -> None:
        """Write what is known of nodes before they are split."""
        self.value[at], self.impurity[at], self.weight[at] = value, impurity, weight

    def set_splits(self, at: Any, feature: Any, cut: Any, threshold: Any, missing_left: Any, gain: Any) -> None:
        """Write the best splits of nodes."""
        self.feature[at], self.cut[at], self.threshold[at] = feature, cut, threshold
        self.missing_left[at], self.gain[at] = missing_left, gain

    def set_categories(self, at: Any, categorical: Any, n_codes: Any, sets: NDArray[np.uint32]) -> None:
        """Write which categories go left, where the split is one of categories."""
        for i in np.flatnonzero(categorical):
            self.sets[int(at[i])] = sets[i, : (int(n_codes[i]) + 31) // 32].copy()

    def sets_of(self, at: Any, n_words: int) -> NDArray[np.uint32]:
        """Return the sets of nodes as lines of one matrix."""
        out = np.zeros((len(at), n_words), np.uint32)
        if self.sets:
            for line, node in enumerate(at):
                own = self.sets.get(int(node))
                if own is not None:
                    out[line, : len(own)] = own
        return out

    def as_tree(self, old: NDArray[np.int64]) -> Trees:
        """Return the tree of nodes `old`, in this order; a node whose children are not among them is a leaf."""
        number = np.full(self.n + 1, -1, np.int32)
        number[old] = np.arange(len(old))
        left, right = number[self.left[old]], number[self.right[old]]
        leaf = left < 0
        category = np.full(len(old), -1, np.int64)
        bits, at = [np.zeros(0, np.uint32)], 0
        if self.sets:
            for i in np.flatnonzero(~leaf):
                words = self.sets.get(int(old[i]))
                if words is not None:
                    bits += [np.array([len(words)], np.uint32), words]
                    category[i], at = at, at + len(words) + 1
        return Trees(
            start=np.array([0, len(old)], np.int64),
            feature=np.where(leaf, -1, self.feature[old]).astype(np.int32),
            threshold=np.where(leaf, 0.0, self.threshold[old]),
            left=left,
            right=right,
            missing_left=np.where(leaf, 0, self.missing_left[old]).astype(np.uint8),
            category=category,
            bits=np.concatenate(bits),
            impurity=self.impurity[old],
            n_rows=self.end[old] - self.begin[old],
            weight=self.weight[old],
            value=self.value[old],
        )
