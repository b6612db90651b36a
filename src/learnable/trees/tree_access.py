"""scikit-learn's names for the arrays of one tree: what `tree_` of an estimator shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import Trees

Array = NDArray[np.float64]

_UNDEFINED = -2  # scikit-learn's column and threshold of a leaf


class TreeAccess:
    """The arrays of a fitted tree under scikit-learn's names; node 0 is the root.

    Parameters
    ----------
    tree : Trees
        One tree.
    n_features : int
        Columns of the table.
    n_classes : list of int
        Classes of each target; ones for numbers.

    Attributes
    ----------
    node_count, n_leaves, max_depth : int
        Size of the tree.
    children_left, children_right : (N,) array
        Children, −1 at a leaf.
    feature, threshold : (N,) array
        Column and threshold of the question, −2 at a leaf.
    impurity, n_node_samples, weighted_n_node_samples : (N,) array
        Impurity, rows and weight of each node.
    missing_go_to_left : (N,) array
        Whether missing values go left.
    value : (N, n_outputs, K) array
        Shares of the classes, or the predicted numbers.

    Examples
    --------
    >>> from learnable import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [2.0, 4.0]).tree_
    >>> tree.node_count, float(tree.threshold[0]), tree.children_left.tolist()
    (3, 0.5, [1, -1, -1])
    """

    def __init__(self, tree: Trees, n_features: int, n_classes: list[int]) -> None:
        leaf = tree.feature < 0
        self._tree = tree
        self.n_features, self.n_outputs = n_features, len(n_classes)
        self.n_classes, self.max_n_classes = np.array(n_classes), max(n_classes)
        self.node_count = self.capacity = tree.n_nodes
        self.children_left, self.children_right = tree.left.astype(np.int64), tree.right.astype(np.int64)
        self.feature = np.where(leaf, _UNDEFINED, tree.feature).astype(np.int64)
        self.threshold = np.where(leaf, float(_UNDEFINED), tree.threshold)
        self.impurity, self.weighted_n_node_samples = tree.impurity, tree.weight
        self.n_node_samples = tree.n_rows
        self.missing_go_to_left = tree.missing_left
        self.value = tree.value.reshape(tree.n_nodes, self.n_outputs, -1)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self._tree.n_leaves

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return self._tree.max_depth

    def predict(self, X: Any) -> Array:
        """Return the values of the leaves of the rows, (n, n_outputs, K), or (n, K) for one output."""
        found = self._tree.mean(X).reshape(X.shape[0], self.n_outputs, -1)
        return found[:, 0] if self.n_outputs == 1 else found

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf of each row."""
        return self._tree.apply(X)[:, 0].astype(np.int64)

    def decision_path(self, X: Any) -> Any:
        """Return the nodes that each row passes, as a sparse indicator matrix."""
        return self._tree.decision_path(X)[0]

    def compute_feature_importances(self, normalize: bool = True) -> Array:
        """Return each column's fall of impurity, as a share of all falls if `normalize`."""
        return self._tree.feature_importances(self.n_features, normalize)

    def category_set(self, node: int) -> list[int] | None:
        """Return the codes of categories that go left at a node; None where numbers are compared."""
        at = int(self._tree.category[node])
        if at < 0:
            return None
        words = self._tree.bits[at + 1 : at + 1 + int(self._tree.bits[at])]
        flags = np.unpackbits(words.view(np.uint8), bitorder="little")
        return [int(code) for code in np.flatnonzero(flags)]
