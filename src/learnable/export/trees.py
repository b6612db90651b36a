"""Sums of trees as the operator TreeEnsemble of ai.onnx.ml 5.

A node of ours sends x ≤ threshold to the left, a missing value where `missing_left` says, and a category by its set.
The operator has a true and a false branch and one number per leaf. So

- a number: true is left, `missing_value_tracks_true` is `missing_left`;
- a set with missing values (and categories never seen) on the right: true is left, the members are the set;
- a set with missing values on the left: true is *right*, the members are the known categories that go right: whatever
  is no member, also what was never seen, goes left;
- leaves of several numbers, such as shares of classes: each tree is a target of its own that answers the number of its
  leaf, and the numbers are fetched from a table.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError
from ..ensembles.explain.additive import additive_trees
from ..trees.layout import Trees
from .graph import Answer, Array, Graph

_LEQ: Final = 0  # x <= split
_MEMBER: Final = 6  # x is in the set


class Levels(NamedTuple):
    """Which numbers stand for the categories of each column; None where they are the codes themselves."""

    of_column: dict[int, NDArray[Any]]

    def values(self, column: int, codes: NDArray[np.int64]) -> Array:
        """Return the numbers that a table holds for these codes."""
        known = self.of_column.get(column)
        if known is None:
            return codes.astype(np.float64)
        return np.asarray(known, dtype=np.float64)[codes[codes < len(known)]]


def tree_answer(graph: Graph, x: str, model: Any) -> Answer:
    """Return what a tree, a forest, a bag of trees or a boosted model computes from the input `x`."""
    owner = type(model).__name__
    if getattr(model, "stumps_", None) is not None:
        return _stump_answer(graph, x, model)
    try:
        found = additive_trees(model)
    except DataError as error:
        raise ParameterError(
            f"to_onnx: {owner} cannot be exported, because its score is no sum of decision trees of this library. "
            "Trees, forests, bags of trees, gradient boosting without init= and AdaBoostClassifier can."
        ) from error
    levels = _levels(model)
    classes = getattr(model, "classes_", None)
    if getattr(model, "n_outputs_", 1) > 1 and classes is not None:
        raise ParameterError(f"to_onnx: {owner} has several targets of classes; fit one model for each.")
    if hasattr(model, "n_trees_per_iteration_"):
        scores = _sum_of_outputs(graph, x, found.parts, found.base, levels)
        return _boosting_answer(model, scores, len(found.base))
    trees = found.parts[0]
    if owner == "AdaBoostClassifier":
        scores = _weighted(graph, x, trees, trees.value, found.scale, levels)
        return _votes_answer(model, scores, trees.value.shape[1])
    value = trees.value
    if classes is not None and len(classes) == 1:
        raise ParameterError(f"to_onnx: {owner} has seen one class only; there is nothing to predict.")
    if classes is not None and len(classes) == 2:
        value = value[:, 1:]  # the share of the first is what is missing to one
    scores = _weighted(graph, x, trees, value, found.scale, levels)
    link = "identity" if classes is None else "shares"
    return Answer(scores, value.shape[1], link, classes=classes, is_flat=value.shape[1] == 1)


def _levels(model: Any) -> Levels:
    """Return the levels of columns of categories; they have to be numbers, as the input is a table of numbers."""
    mask = getattr(model, "is_categorical_", None)
    known: dict[int, NDArray[Any]] = {}
    if mask is None:
        return Levels(known)
    for column, own in zip(np.flatnonzero(mask).tolist(), model.levels_ or [], strict=True):
        if own.dtype.kind not in "biuf":
            raise ParameterError(
                f"to_onnx: column {column} of {type(model).__name__} holds categories that are words, and the input of "
                "an ONNX model is one table of numbers. Encode it as whole numbers before the fit "
                "(sklearn.preprocessing.OrdinalEncoder), and name it in categorical_features."
            )
        if len(own):
            known[column] = own
    return Levels(known)


def _boosting_answer(model: Any, scores: str, n_scores: int) -> Answer:
    owner = type(model).__name__
    if not isinstance(model.loss, str) or model.loss == "normal":
        raise ParameterError(
            f"to_onnx: {owner} with loss={model.loss!r} cannot be exported; only the named losses can."
        )
    classes = getattr(model, "classes_", None)
    if classes is None:
        link = "log" if model.loss in ("poisson", "gamma") else "identity"
        if n_scores > 1:
            raise ParameterError(f"to_onnx: {owner} with several quantiles cannot be exported; fit one for each.")
        return Answer(scores, n_scores, link)
    if len(classes) == 2:
        return Answer(scores, 1, "logit", 2.0 if model.loss == "exponential" else 1.0, classes)
    return Answer(scores, n_scores, "softmax", 1.0, classes)


def _votes_answer(model: Any, scores: str, n_scores: int) -> Answer:
    """Return AdaBoost's votes: 1/(1 + e^{−2f}) of two classes, softmax(f/(K − 1)) of K."""
    K = len(model.classes_)
    return Answer(scores, n_scores, "logit" if K == 2 else "softmax", 2.0 if K == 2 else 1.0 / (K - 1), model.classes_)


def _stump_answer(graph: Graph, x: str, model: Any) -> Answer:
    """Return the votes of AdaBoost's own stumps."""
    if len(model.classes_) == 1:
        raise ParameterError("to_onnx: AdaBoostClassifier has seen one class only; there is nothing to predict.")
    stumps = model.stumps_
    T = len(stumps)
    weighed = stumps.value * model._votes()[:, None, None]
    flat = _Nodes(
        feature=stumps.feature.astype(np.int64),
        split=stumps.threshold,
        is_set=np.zeros(T, bool),
        tracks_true=np.zeros(T, np.int64),
        true=np.arange(0, 2 * T, 2),
        true_leaf=np.ones(T, np.int64),
        false=np.arange(1, 2 * T, 2),
        false_leaf=np.ones(T, np.int64),
        root=np.arange(T),
        sets=[],
        leaf_tree=np.repeat(np.arange(T), 2),
    )
    values = weighed.reshape(2 * T, -1)
    return _votes_answer(model, _aggregate(graph, x, flat, values, 1.0), values.shape[1])


class _Nodes(NamedTuple):
    """Inner nodes and leaves of T trees, numbered apart, as the operator wants them."""

    feature: NDArray[np.int64]
    split: Array
    is_set: NDArray[np.bool_]
    tracks_true: NDArray[np.int64]
    true: NDArray[np.int64]
    true_leaf: NDArray[np.int64]
    false: NDArray[np.int64]
    false_leaf: NDArray[np.int64]
    root: NDArray[np.int64]
    sets: list[Array]  # members, in the order of the nodes with sets
    leaf_tree: NDArray[np.int64]


def _weighted(graph: Graph, x: str, trees: Trees, value: Array, scale: float, levels: Levels) -> str:
    """Return scale · Σ over the trees of the leaf values, (n, K)."""
    nodes, leaves = _flatten(trees, levels)
    return _aggregate(graph, x, nodes, value[leaves], scale)


def _sum_of_outputs(graph: Graph, x: str, parts: list[Trees], base: Array, levels: Levels) -> str:
    """Return base + Σ trees with one set of trees for each output, (n, K)."""
    columns = [_weighted(graph, x, trees, trees.value, 1.0, levels) for trees in parts]
    joined = columns[0] if len(columns) == 1 else graph.add("Concat", *columns, axis=1)
    return graph.add("Add", joined, graph.constant(base[None, :]))


def _aggregate(graph: Graph, x: str, nodes: _Nodes, values: Array, scale: float) -> str:
    """Return scale · Σ over the trees of the values (leaves, K), one number per leaf directly, several by a table."""
    if values.shape[1] == 1:
        total = _ensemble(graph, x, nodes, values[:, 0], np.zeros(len(values), np.int64), 1)
    else:
        numbers = np.arange(len(values), dtype=np.float64)
        reached = _ensemble(graph, x, nodes, numbers, nodes.leaf_tree, len(nodes.root))
        fetched = graph.add("Gather", graph.constant(values), graph.cast(reached, np.int64), axis=0)
        total = graph.add("ReduceSum", fetched, graph.constant(np.array([1])), keepdims=0)
    return total if scale == 1.0 else graph.add("Mul", total, graph.constant(np.float64(scale)))


def _ensemble(graph: Graph, x: str, nodes: _Nodes, weight: Array, target: NDArray[np.int64], n_targets: int) -> str:
    modes = np.where(nodes.is_set, _MEMBER, _LEQ).astype(np.uint8)
    members: dict[str, Any] = {}
    if nodes.sets:
        ended = [np.append(own, np.nan) for own in nodes.sets]  # NaN ends a set
        members["membership_values"] = graph.tensor(np.concatenate(ended))
    return graph.add(
        "TreeEnsemble",
        x,
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function=1,
        post_transform=0,
        tree_roots=nodes.root.tolist(),
        nodes_featureids=nodes.feature.tolist(),
        nodes_splits=graph.tensor(nodes.split.astype(np.float64)),
        nodes_modes=graph.tensor(modes),
        nodes_truenodeids=nodes.true.tolist(),
        nodes_trueleafs=nodes.true_leaf.tolist(),
        nodes_falsenodeids=nodes.false.tolist(),
        nodes_falseleafs=nodes.false_leaf.tolist(),
        nodes_missing_value_tracks_true=nodes.tracks_true.tolist(),
        leaf_targetids=target.tolist(),
        leaf_weights=graph.tensor(weight.astype(np.float64)),
        **members,
    )


def _flatten(trees: Trees, levels: Levels) -> tuple[_Nodes, NDArray[np.int64]]:
    """Return the nodes as the operator numbers them, and which of our nodes the leaves are.

    A tree of one leaf gets a node before it whose branches both end in it.
    """
    is_leaf = trees.feature < 0
    tree_of = np.repeat(np.arange(trees.n_trees), np.diff(trees.start))
    lonely = is_leaf[trees.start[:-1]]
    inner = np.flatnonzero(~is_leaf)
    leaves = np.r_[np.flatnonzero(is_leaf), trees.start[:-1][lonely]]  # the second branch of a lonely leaf
    number = np.empty(trees.n_nodes, np.int64)
    number[inner] = np.arange(len(inner))
    number[np.flatnonzero(is_leaf)] = np.arange(int(is_leaf.sum()))
    first = trees.start[tree_of[inner]]
    left = first + trees.left[inner]
    right = first + trees.right[inner]
    is_set, swapped, splits, sets = _questions(trees, inner, levels)
    true = np.where(swapped, right, left)
    false = np.where(swapped, left, right)
    tracks = np.where(swapped, 0, trees.missing_left[inner]).astype(np.int64)
    n_lonely = int(lonely.sum())
    lone_leaves = number[trees.start[:-1][lonely]]
    twins = int(is_leaf.sum()) + np.arange(n_lonely)
    ones = np.ones(n_lonely, np.int64)
    root = number[trees.start[:-1]]
    root[lonely] = len(inner) + np.arange(n_lonely)
    nodes = _Nodes(
        feature=np.r_[trees.feature[inner].astype(np.int64), 0 * ones],
        split=np.r_[splits, np.zeros(n_lonely)],
        is_set=np.r_[is_set, np.zeros(n_lonely, bool)],
        tracks_true=np.r_[tracks, 0 * ones],
        true=np.r_[number[true], lone_leaves],
        true_leaf=np.r_[is_leaf[true].astype(np.int64), ones],
        false=np.r_[number[false], twins],
        false_leaf=np.r_[is_leaf[false].astype(np.int64), ones],
        root=root,
        sets=sets,
        leaf_tree=tree_of[leaves],
    )
    return nodes, leaves


def _questions(
    trees: Trees, inner: NDArray[np.int64], levels: Levels
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Array, list[Array]]:
    """Return which nodes ask for a set, which of them are true on the right, the splits of the others, and the sets."""
    is_set = trees.category[inner] >= 0
    swapped = np.zeros(len(inner), bool)
    splits = np.where(is_set, 0.0, trees.threshold[inner])
    sets: list[Array] = []
    for place in np.flatnonzero(is_set).tolist():
        node = inner[place]
        at = int(trees.category[node])
        words = trees.bits[at + 1 : at + 1 + int(trees.bits[at])]
        goes_left = (words[:, None] >> np.arange(32, dtype=np.uint32)) & 1 == 1
        swapped[place] = trees.missing_left[node] != 0
        wanted = ~goes_left if swapped[place] else goes_left
        members = levels.values(int(trees.feature[node]), np.flatnonzero(wanted.ravel()))
        if len(members):
            sets.append(members)
        else:  # the condition is never true
            is_set[place] = False
            splits[place] = -np.inf
    return is_set, swapped, splits, sets


__all__ = ["tree_answer"]
