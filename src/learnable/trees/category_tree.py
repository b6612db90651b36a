"""The tree of ID3 as flat arrays: any number of branches per node, each named by the code of a category.

A row goes from a node to the child whose `code` is the row's code in the tested column (with a binary test: 1 where it
is the level asked for, 0 otherwise). Where there is no such child, the row stays: an empty branch takes the majority
of the node above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import NDArray
from .file_layout import require

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class CategoryTree:
    """One tree of N nodes; node 0 is the root and a child comes after its parent.

    Attributes
    ----------
    feature : (N,) int32
        Column tested, −1 at a leaf.
    level : (N,) int32
        Code that a binary test asks for, −1 where the node has one branch per level.
    parent : (N,) int32
        Node above, −1 for the root.
    code : (N,) int32
        Code of the branch from the parent, −1 for the root.
    gain : (N,) float64
        Information gain of the split in bits, 0 at a leaf.
    impurity : (N,) float64
        Entropy of the classes in bits.
    n_rows : (N,) int64
        Training rows in the node.
    value : (N, K) float64
        Their weight in each class.

    Examples
    --------
    >>> import learnable as ln
    >>> tree = ln.ID3Classifier().fit([["a"], ["a"], ["b"]], [0, 0, 1]).tree_
    >>> tree.feature, tree.n_leaves, tree.max_depth
    (array([ 0, -1, -1], dtype=int32), 2, 1)
    """

    feature: NDArray[Any]
    level: NDArray[Any]
    parent: NDArray[Any]
    code: NDArray[Any]
    gain: NDArray[Any]
    impurity: NDArray[Any]
    n_rows: NDArray[Any]
    value: NDArray[Any]

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature < 0).sum())

    @property
    def max_depth(self) -> int:
        """Questions on the longest path."""
        return int(self.depths().max())

    def depths(self) -> NDArray[np.int64]:
        """Return the depth of each node."""
        depth = np.zeros(self.node_count, dtype=np.int64)
        for node in range(1, self.node_count):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def children(self) -> list[list[int]]:
        """Return the children of each node, in the order of their codes."""
        found: list[list[int]] = [[] for _ in range(self.node_count)]
        for node in range(1, self.node_count):
            found[self.parent[node]].append(node)
        return [sorted(nodes, key=lambda node: self.code[node]) for nodes in found]

    def apply(self, codes: Codes) -> NDArray[np.int64]:
        """Return the node where each row ends; `codes` is (d, n), −1 for a category that no training row has."""
        width = np.int64(max(int(self.code.max()), int(codes.max(initial=0)), 1) + 2)
        keys = self.parent[1:].astype(np.int64) * width + self.code[1:]
        order = np.argsort(keys)
        keys = keys[order]
        children = order + 1
        node = np.zeros(codes.shape[1], dtype=np.int64)
        active = np.flatnonzero(self.feature[node] >= 0)
        while active.size:  # ends: a child has a larger number than its parent
            at = node[active]
            code = codes[self.feature[at], active].astype(np.int64)
            level = self.level[at]
            code = np.where(level >= 0, code == level, code)
            wanted = at * width + code
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            found = (keys[place] == wanted) & (code >= 0)
            active = active[found]
            node[active] = children[place[found]]
            active = active[self.feature[node[active]] >= 0]
        return node

    def check(self, n_levels: NDArray[Any], n_classes: int) -> None:
        """Raise ModelFileError unless the arrays are a tree over columns with these numbers of levels."""
        n = len(self.feature)
        dtypes = {"feature": "i4", "level": "i4", "parent": "i4", "code": "i4", "n_rows": "i8"}
        for name in ("feature", "level", "parent", "code", "gain", "impurity", "n_rows", "value"):
            array = getattr(self, name)
            shape = (n, n_classes) if name == "value" else (n,)
            require(
                n and array.shape == shape and array.dtype == np.dtype(dtypes.get(name, "f8")),
                f"{name} of the tree must have {n} rows and its own type",
            )
        numbers = np.concatenate([self.gain, self.impurity, self.value.ravel()])
        require(
            np.isfinite(numbers).all() and (numbers >= 0).all() and (self.value.sum(axis=1) > 0).all(),
            "gains, impurities and weights of the tree must be finite and >= 0",
        )
        require(
            ((self.feature >= -1) & (self.feature < len(n_levels))).all(),
            "the tree tests a column that the model does not have",
        )
        inner = self.feature >= 0
        most = np.where(inner, n_levels[np.where(inner, self.feature, 0)], 0)
        require(
            ((self.level >= -1) & (~inner | (self.level < most))).all(),
            "the tree asks for a category that its column does not have",
        )
        above = self.parent[1:]
        require(
            self.parent[0] == self.code[0] == -1 and ((above >= 0) & (above < np.arange(1, n))).all(),
            "a node of the tree must come after its parent",
        )
        branches = np.where(self.level >= 0, 2, most)[above]
        require(
            (inner[above] & (self.code[1:] >= 0) & (self.code[1:] < branches)).all(),
            "a branch of the tree has a code that its node does not know",
        )
        require(
            len(np.unique(above.astype(np.int64) * 2**31 + self.code[1:])) == n - 1,
            "two branches of a node of the tree have the same code",
        )
        require((np.bincount(above, minlength=n)[inner] >= 1).all(), "a node of the tree that splits has no branches")
