"""One view of a fitted tree for text, Graphviz and drawing: nodes, branches, questions and what is in each node.

It reads a `DecisionTreeClassifier` or `DecisionTreeRegressor` of this library, an `ID3Classifier`, and whatever else
has scikit-learn's `tree_`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ...core import Array, DataError, DataTypeError, NDArray
from ..category_tree import CategoryTree


@dataclass(frozen=True)
class TreeView:
    """A tree to be shown; node 0 is the root.

    Attributes
    ----------
    children : list of lists
        Nodes below each node, from left to right.
    feature : (N,) int
        Column tested, −1 at a leaf.
    threshold : (N,) float
        x ≤ threshold is the first branch; NaN where categories are tested.
    groups : list
        Names of the categories of each branch, or None where numbers are compared.
    named : list of bool
        Whether each branch is one category; otherwise the question is whether a row is in the first group.
    value : (N, m, K) float64
        Shares of the classes, or (N, m, 1) predicted numbers, of m targets.
    impurity, weight : (N,) float64
        Of each node.
    n_rows : (N,) int64
        Training rows.
    criterion : str
        What `impurity` is.
    names : list of str or None
        Names of the columns, if there are any.
    classes : array or None
        Labels; None for numbers or several targets.
    """

    children: list[list[int]]
    feature: NDArray[Any]
    threshold: Array
    groups: list[list[list[str]] | None]
    named: list[bool]
    value: Array
    impurity: Array
    weight: Array
    n_rows: NDArray[Any]
    criterion: str
    names: list[str] | None
    classes: NDArray[Any] | None

    @property
    def is_classifier(self) -> bool:
        """Whether nodes hold shares of classes."""
        return self.value.shape[2] > 1 or self.classes is not None

    def column(self, node: int, template: str = "feature_{}") -> str:
        """Return the name of the column that a node tests."""
        j = int(self.feature[node])
        return template.format(j) if self.names is None else str(self.names[j])

    def depths(self) -> list[int]:
        """Return the depth of each node."""
        depth = [0] * len(self.children)
        for node, below in enumerate(self.children):  # children come after their parent
            for child in below:
                depth[child] = depth[node] + 1
        return depth

    def heights(self) -> list[int]:
        """Return the number of levels of the subtree at each node; a leaf has one."""
        height = [1] * len(self.children)
        for node in range(len(self.children) - 1, -1, -1):
            height[node] += max((height[child] for child in self.children[node]), default=0)
        return height


def view_tree(owner: str, model: Any, feature_names: Any = None, class_names: Any = None) -> TreeView:
    """Return the view of a fitted tree; names are checked against it."""
    if not hasattr(model, "fit"):
        raise DataTypeError(f"{owner}: needs a fitted decision tree; got {type(model).__name__}.")
    check_is_fitted(model)
    tree = getattr(model, "tree_", None)
    if not (isinstance(tree, CategoryTree) or hasattr(tree, "children_left")):
        raise DataTypeError(f"{owner}: needs a decision tree, whose tree_ it can read; got {type(model).__name__}.")
    names = _names(owner, "feature_names", feature_names, int(model.n_features_in_))
    if names is None and hasattr(model, "feature_names_in_") and not _is_foreign(model):
        names = [str(name) for name in model.feature_names_in_]
    classes = getattr(model, "classes_", None)
    classes = classes if isinstance(classes, np.ndarray) and is_classifier(model) else None
    if classes is not None and class_names is not None:
        classes = np.array(_names(owner, "class_names", class_names, len(classes)), dtype=object)
    if isinstance(tree, CategoryTree):
        return _view_categories(model, tree, names, classes)
    return _view_binary(model, tree, names, classes)


def path_of(owner: str, model: Any, view: TreeView, sample: Any) -> set[int]:
    """Return the nodes that one row passes."""
    row = sample if hasattr(sample, "columns") else [list(sample)]
    leaves = np.asarray(model.apply(row if hasattr(model, "categories_") else _row_of_numbers(row)))
    if leaves.shape[0] != 1:
        raise DataError(f"{owner}: sample must be one row; got {leaves.shape[0]}.")
    parent = {child: node for node, below in enumerate(view.children) for child in below}
    node = int(leaves[0])
    passed = {node}
    while node in parent:
        node = parent[node]
        passed.add(node)
    return passed


def _view_binary(model: Any, tree: Any, names: list[str] | None, classes: NDArray[Any] | None) -> TreeView:
    left = np.asarray(tree.children_left)
    right = np.asarray(tree.children_right)
    children = [[int(a), int(b)] if a >= 0 else [] for a, b in zip(left, right, strict=True)]
    feature = np.where(left < 0, -1, np.asarray(tree.feature))
    groups = _groups_of(model, tree, feature)
    return TreeView(
        children,
        feature,
        np.asarray(tree.threshold, dtype=np.float64),
        groups,
        [False] * len(children),
        np.asarray(tree.value, dtype=np.float64),
        np.asarray(tree.impurity),
        np.asarray(tree.weighted_n_node_samples),
        np.asarray(tree.n_node_samples),
        str(getattr(model, "criterion", "impurity")),
        names,
        classes,
    )


def _view_categories(model: Any, tree: CategoryTree, names: list[str] | None, classes: Any) -> TreeView:
    children = tree.children()
    groups: list[list[list[str]] | None] = []
    for node, below in enumerate(children):
        if not below:
            groups.append(None)
            continue
        levels = [_word(level) for level in model.categories_[tree.feature[node]].tolist()]
        level = int(tree.level[node])
        if level < 0:
            groups.append([[levels[tree.code[child]]] for child in below])
        else:  # the first branch is "no", in the order of the codes: turn it round
            children[node] = below = below[::-1]
            rest = [word for code, word in enumerate(levels) if code != level]
            groups.append([[levels[level]] if tree.code[child] else rest for child in below])
    weight = tree.value.sum(axis=1)
    return TreeView(
        children,
        tree.feature,
        np.full(tree.node_count, np.nan),
        groups,
        [group is not None and all(len(words) == 1 for words in group) for group in groups],
        (tree.value / weight[:, None])[:, None, :],
        tree.impurity,
        weight,
        tree.n_rows,
        "entropy",
        names,
        classes,
    )


def _groups_of(model: Any, tree: Any, feature: NDArray[Any]) -> list[list[list[str]] | None]:
    """Return the names of the categories of each branch, where a node tests categories."""
    sets: Callable[[int], Any] | None = getattr(tree, "category_set", None)
    if sets is None:
        return [None] * len(feature)
    known = getattr(model, "categories_", None) or {}
    groups: list[list[list[str]] | None] = []
    for node, j in enumerate(feature.tolist()):
        codes = sets(node) if j >= 0 else None
        if codes is None:
            groups.append(None)
            continue
        levels = known[j] if _has(known, j) else None
        names = [_word(level) for level in levels] if levels is not None else None
        inside = [names[c] if names else str(c) for c in codes]
        outside = [name for code, name in enumerate(names) if code not in set(codes)] if names else ["other"]
        groups.append([inside, outside])
    return groups


def _has(known: Any, j: int) -> bool:
    return j in known if isinstance(known, dict) else j < len(known) and known[j] is not None


def _word(level: Any) -> str:
    if level is None or level != level:
        return "missing"
    return f"{level:g}" if isinstance(level, float) else str(level)


def _names(owner: str, what: str, names: Any, count: int) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) or len(names) != count:
        got = len(names) if hasattr(names, "__len__") else repr(names)
        if what == "class_names":
            raise DataError(
                f"{owner}: When `class_names` is an array, it should contain as many items as "
                f"`decision_tree.classes_`. Got {got} while the tree was fitted with {count} classes."
            )
        raise DataError(
            f"{owner}: feature_names must contain {count} elements, got {got}. Length of feature_names, {got} does not "
            f"match number of features, {count}."
        )
    if what == "feature_names" and not all(isinstance(name, str) for name in names):
        raise DataError(f"{owner}: All feature names must be strings.")
    return [str(name) for name in names]


def _is_foreign(model: Any) -> bool:
    """Tell whether the tree is scikit-learn's, whose exporters do not use the names of the fit."""
    return type(model).__module__.startswith("sklearn.")


def _row_of_numbers(row: Any) -> Any:
    return row if hasattr(row, "columns") else np.asarray(row, dtype=np.float64)
