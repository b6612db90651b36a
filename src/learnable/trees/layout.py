"""Trees as flat arrays: one set of arrays for any number of trees.

Node `start[t] + i` is node i of tree t, and node 0 is its root. A row goes left when x[feature] <= threshold; when x is
missing, if `missing_left`; when the column is categorical, if the bit of its code is set. Children have larger numbers
than their parents, so that a walk ends, and a loaded file is checked before any kernel reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core import Array, NDArray
from .file_layout import pack_trees, unpack_trees
from .file_layout import require as demand
from .predict import Predictor, mark_paths, walk_trees

_MANY_ROWS = 2048  # from here on it is worth while to prepare small trees


@dataclass(frozen=True)
class Trees:
    """T trees with N nodes altogether.

    Attributes
    ----------
    start : (T+1,) int64
        First node of each tree; start[T] = N.
    feature : (N,) int32
        Column tested, −1 at a leaf.
    threshold : (N,) float64
        x <= threshold goes left; infinite where only missing values go right.
    left, right : (N,) int32
        Children, counted within the own tree, −1 at a leaf; both are larger than the parent's number.
    missing_left : (N,) uint8
        Whether a missing value (or a category not seen) goes left.
    category : (N,) int64
        Where the set of codes that go left begins in `bits`: first the number of words, then the words; −1 for numbers.
    bits : (B,) uint32
        The sets.
    impurity : (N,) float64
        Impurity of the node.
    n_rows, weight : (N,) int64, (N,) float64
        Rows of the node, and their weight.
    value : (N, K) float64
        Shares of the classes, or the predicted numbers.

    Examples
    --------
    >>> from learnable.trees import Columns, GrowthRule, grow
    >>> from learnable.trees.criteria import Target
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> tree = grow(Columns.build(X), Target.numbers([0.0, 0.0, 1.0, 1.0]), GrowthRule()).tree
    >>> float(tree.threshold[0]), tree.mean(X)[:, 0].tolist()
    (1.5, [0.0, 0.0, 1.0, 1.0])
    """

    start: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    category: NDArray[np.int64]
    bits: NDArray[np.uint32]
    impurity: Array
    n_rows: NDArray[np.int64]
    weight: Array
    value: Array

    @property
    def n_trees(self) -> int:
        """Number of trees T."""
        return len(self.start) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int((self.feature < 0).sum())

    def depths(self) -> NDArray[np.int32]:
        """Return the depth of every node; roots have 0."""
        depth = np.zeros(self.n_nodes, np.int32)
        for t in range(self.n_trees):
            first = int(self.start[t])
            here = np.array([first])
            level = 0
            while here.size:
                depth[here] = level
                inner = here[self.feature[here] >= 0]
                here = first + np.r_[self.left[inner], self.right[inner]].astype(np.int64)
                level += 1
        return depth

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf of all trees."""
        return int(self.depths().max(initial=0))

    def tree(self, t: int) -> Trees:
        """Return tree t alone."""
        first = int(self.start[t])
        stop = int(self.start[t + 1])
        part = {name: getattr(self, name)[first:stop] for name in _PER_NODE}
        category = part["category"].copy()
        bits = []
        at = 0
        for i in np.flatnonzero(category >= 0):
            begin = int(category[i])
            size = int(self.bits[begin]) + 1
            bits.append(self.bits[begin : begin + size])
            category[i] = at
            at = at + size
        part["category"] = category
        return Trees(
            start=np.array([0, stop - first], np.int64),
            bits=np.concatenate(bits) if bits else np.zeros(0, np.uint32),
            **part,
        )

    def apply(self, X: Any, n_jobs: int | None = 1) -> NDArray[np.int32]:
        """Return the leaf, counted within its tree, in which each row ends, (n, T)."""
        out = np.empty((X.shape[0], self.n_trees), np.int32)
        walk_trees(self, X, n_jobs, out, None, None)
        return out

    def sum(self, X: Any, n_jobs: int | None = 1) -> Array:
        """Return the sum over the trees of the rows' leaf values, (n, K)."""
        if X.shape[0] >= _MANY_ROWS and self.n_trees > 1 and not sp.issparse(X):
            prepared = Predictor.build(self)
            if prepared.is_prepared:
                return prepared.sum(X, n_jobs)
        out = np.zeros((X.shape[0], self.value.shape[1]))
        walk_trees(self, X, n_jobs, None, self.value, out)
        return out

    def mean(self, X: Any, n_jobs: int | None = 1) -> Array:
        """Return the mean over the trees of the rows' leaf values, (n, K)."""
        return self.sum(X, n_jobs) / self.n_trees

    def decision_path(self, X: Any) -> tuple[Any, NDArray[np.int64]]:
        """Return which nodes each row passes, as a CSR array (n, N) of ones, and `start`."""
        leaves = self.apply(X)
        parent = self.parents()
        depth = self.depths()
        sizes = (depth[leaves + self.start[:-1]] + 1).sum(axis=1)
        indptr = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        indices = np.empty(int(indptr[-1]), np.int64)
        mark_paths(leaves, self.start, parent, depth, indptr, indices)
        ones = np.ones(len(indices), np.int64)
        return sp.csr_matrix((ones, indices, indptr), shape=(X.shape[0], self.n_nodes)), self.start.copy()

    def parents(self) -> NDArray[np.int64]:
        """Return the parent of every node among all N nodes, −1 for roots."""
        parent = np.full(self.n_nodes, -1, np.int64)
        inner = np.flatnonzero(self.feature >= 0)
        first = self.start[np.searchsorted(self.start, inner, side="right") - 1]
        parent[first + self.left[inner]] = inner
        parent[first + self.right[inner]] = inner
        return parent

    def falls(self) -> tuple[NDArray[np.int64], Array]:
        """Return the inner nodes, and by how much weight × impurity falls at each."""
        inner = np.flatnonzero(self.feature >= 0)
        mass = self.weight * self.impurity
        first = self.start[np.searchsorted(self.start, inner, side="right") - 1]
        return inner, mass[inner] - mass[first + self.left[inner]] - mass[first + self.right[inner]]

    def feature_importances(self, n_features: int, normalize: bool = True) -> Array:
        """Return the mean over the trees of each column's (share in the) fall of impurity, (d,)."""
        total = np.zeros(n_features)
        inner, fall = self.falls()
        bounds = np.searchsorted(inner, self.start)
        for t in range(self.n_trees):
            own = slice(bounds[t], bounds[t + 1])
            shares = np.bincount(self.feature[inner[own]], fall[own] / self.weight[self.start[t]], n_features)
            total += shares / shares.sum() if normalize and shares.sum() > 0 else shares
        return total / total.sum() if normalize and total.sum() > 0 else total

    def check(self, n_features: int | None = None, n_values: int | None = None) -> None:
        """Raise ModelFileError unless no walk can leave the arrays or loop."""
        _check(self, n_features, n_values)

    def _check_loaded(self) -> None:
        self.check()

    def _to_file(self) -> dict[str, Any] | None:
        """Return what a model file holds instead of the arrays; None for the arrays themselves."""
        return pack_trees(self)

    @classmethod
    def _from_file(cls, packed: dict[str, Any]) -> Trees:
        """Return the trees that `_to_file` packed."""
        return cls(**unpack_trees(packed))

    def _is_plain(self) -> bool:
        """Tell whether all columns are numbers and every left child follows its parent."""
        inner = np.flatnonzero(self.feature >= 0)
        first = np.repeat(self.start[:-1], np.diff(self.start))[inner]
        return bool((self.category < 0).all() and (self.left[inner] + first == inner + 1).all())


_PER_NODE = (
    "feature",
    "threshold",
    "left",
    "right",
    "missing_left",
    "category",
    "impurity",
    "n_rows",
    "weight",
    "value",
)


def concatenate(parts: Sequence[Trees]) -> Trees:
    """Return all trees of the parts, in order, in one set of arrays."""
    sizes = np.concatenate([np.diff(part.start) for part in parts])
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _PER_NODE if name != "category"}
    category = []
    shift = 0
    for part in parts:
        category.append(np.where(part.category >= 0, part.category + shift, -1))
        shift += len(part.bits)
    return Trees(
        start=np.r_[0, np.cumsum(sizes)].astype(np.int64),
        category=np.concatenate(category).astype(np.int64),
        bits=np.concatenate([part.bits for part in parts]),
        **joined,
    )


def renumbered(tree: Trees, kept: NDArray[np.int64], left: NDArray[Any], right: NDArray[Any], value: Array) -> Trees:
    """Return one tree of the nodes `kept`, in this order, with other children (−1: none) and values (of the kept)."""
    number = np.full(tree.n_nodes + 1, -1, np.int32)  # the last entry is for the child −1
    number[kept] = np.arange(len(kept))
    parts = {name: getattr(tree, name)[kept] for name in _PER_NODE}
    for name, none in {"feature": -1, "threshold": 0.0, "missing_left": 0, "category": -1}.items():
        parts[name][left[kept] < 0] = none
    parts |= {"left": number[left[kept]], "right": number[right[kept]], "value": value}
    return replace(tree, start=np.array([0, len(kept)], np.int64), **parts).tree(0)


def _check(trees: Trees, n_features: int | None, n_values: int | None) -> None:
    def require(condition: Any, what: str) -> None:
        demand(condition, f"the trees are damaged: {what}")

    wanted = {
        "start": np.int64,
        "feature": np.int32,
        "threshold": np.float64,
        "left": np.int32,
        "right": np.int32,
        "missing_left": np.uint8,
        "category": np.int64,
        "bits": np.uint32,
        "impurity": np.float64,
        "n_rows": np.int64,
        "weight": np.float64,
        "value": np.float64,
    }
    for name, dtype in wanted.items():
        array = getattr(trees, name)
        require(isinstance(array, np.ndarray) and array.dtype == dtype, f"{name} must be of {np.dtype(dtype)}")
        require(array.flags.c_contiguous, f"{name} must be contiguous")
        require(array.ndim == (2 if name == "value" else 1), f"{name} has {array.ndim} dimensions")
    start = trees.start
    n = len(trees.feature)
    require(len(start) >= 2 and start[0] == 0 and start[-1] == n, "start does not cover the nodes")
    require((start[1:] > start[:-1]).all() and n < 2**31, "every tree needs a node")
    for name in _PER_NODE:
        require(len(getattr(trees, name)) == n, f"{name} does not have one entry per node")
    require(n_values is None or trees.value.shape[1] == n_values, "value has another width")
    require(trees.value.shape[1] > 0 and np.isfinite(trees.value).all(), "values are not finite")
    require(np.isfinite(trees.impurity).all() and np.isfinite(trees.weight).all(), "numbers are not finite")
    require((trees.weight > 0).all() and (trees.n_rows >= 0).all(), "a node without weight")
    require(not np.isnan(trees.threshold).any(), "a threshold is not a number")
    require((trees.missing_left <= 1).all(), "missing_left is neither 0 nor 1")
    leaf = trees.feature < 0
    require((trees.feature >= -1).all(), "a column is negative")
    require(n_features is None or (trees.feature < n_features).all(), "a column is not in the table")
    require((trees.left[leaf] == -1).all() and (trees.right[leaf] == -1).all(), "a leaf has children")
    inner = np.flatnonzero(~leaf)
    owner = np.searchsorted(start, inner, side="right") - 1
    size = start[owner + 1] - start[owner]
    own = inner - start[owner]
    for name in ("left", "right"):
        child = getattr(trees, name)[inner].astype(np.int64)
        require(((child > own) & (child < size)).all(), "a child does not come after its parent in the same tree")
    children = np.concatenate([start[owner] + trees.left[inner], start[owner] + trees.right[inner]])
    expected = np.ones(n, np.int64)
    expected[start[:-1]] = 0
    require((np.bincount(children, minlength=n) == expected).all(), "a node has no parent, or several")
    sets = trees.category[trees.category >= 0]
    require((trees.category >= -1).all() and not (trees.category[leaf] >= 0).any(), "a leaf has a set of categories")
    require((sets < len(trees.bits)).all(), "a set of categories is not there")
    require((sets + 1 + trees.bits[sets].astype(np.int64) <= len(trees.bits)).all(), "a set of categories is cut off")
