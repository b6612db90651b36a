"""Models whose score is a sum of trees, f(x) = base + scale · Σ_t T_t(x): what explanations are made for.

Decision trees, forests and bags of trees (shares of classes, or numbers), boosted models (their scores before the link:
log-odds, logarithms of means, …), and AdaBoost of decision trees (the votes).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core import Array, DataError
from ...data.door import read_features
from ...trees.layout import Trees, concatenate
from ..adaboost.stumps import coded


class Additive(NamedTuple):
    """A score as a sum of trees."""

    parts: list[Trees]  #: one for all outputs, or one for each
    scale: float
    base: Array  #: (K,)


def additive_trees(model: Any) -> Additive:
    """Return the trees of a fitted model whose score is their sum.

    Raises
    ------
    DataError
        If the score is no sum of trees, with what to do instead.
    """
    check_is_fitted(model)
    owner = type(model).__name__
    trees = getattr(model, "trees_", None)
    if hasattr(model, "n_trees_per_iteration_") and isinstance(trees, Trees):
        if model._start_model is not None:
            raise DataError(
                f"{owner}: the model of init= is no tree, so that the scores cannot be explained; use init=None."
            )
        K = int(model.n_trees_per_iteration_)
        parts = [trees] if K == 1 else [_every(trees, k, K) for k in range(K)]
        return Additive(parts, 1.0, np.asarray(model.baseline_, dtype=np.float64))
    if owner == "AdaBoostClassifier" and getattr(model, "models_", None):
        return _votes(model)
    if isinstance(trees, Trees) and not hasattr(model, "estimator_weights_"):
        return Additive([trees], 1.0 / trees.n_trees, np.zeros(trees.value.shape[1]))
    if owner in ("BaggingClassifier", "BaggingRegressor"):
        return _mean_of_members(model)
    raise DataError(
        f"{owner}: its score is not a sum of trees that know their rows; exact Shapley values are for decision trees, "
        "forests, bags of decision trees, gradient boosting, and "
        "AdaBoostClassifier(estimator=DecisionTreeClassifier(...))."
    )


def read_rows(model: Any, X: Any) -> Any:
    """Return new rows as the trees of a model see them: numbers, categories as codes, NaN for missing values."""
    read = getattr(model, "_read", None)
    if read is not None and not hasattr(model, "models_") and not hasattr(model, "estimators_features_"):
        return read(X)
    return read_features(model, X, missing=not hasattr(model, "models_"))


def _every(trees: Trees, first: int, step: int) -> Trees:
    """Return every step-th tree from `first` on."""
    return concatenate([trees.tree(t) for t in range(first, trees.n_trees, step)])


def _mean_of_members(model: Any) -> Additive:
    """Return the trees of a bag, which ask about the columns of the table and know the classes of all rows."""
    owner = type(model).__name__
    parts = []
    for inner, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        trees = getattr(inner, "trees_", None)
        if not isinstance(trees, Trees) or hasattr(inner, "n_trees_per_iteration_") or trees.n_trees != 1:
            raise DataError(
                f"{owner}: Shapley values need members that are decision trees, so that its score is a sum of trees; "
                f"got {type(inner).__name__}."
            )
        if (trees.category >= 0).any() or getattr(inner, "n_outputs_", 1) > 1:
            raise DataError(f"{owner}: Shapley values are for members of one output without categorical columns.")
        feature = np.where(trees.feature < 0, -1, np.asarray(columns)[trees.feature]).astype(np.int32)
        value = trees.value
        if hasattr(model, "classes_"):
            value = np.zeros((trees.n_nodes, len(model.classes_)))
            value[:, np.asarray(inner.classes_, dtype=np.intp)] = trees.value
        parts.append(replace(trees, feature=feature, value=value))
    return Additive([concatenate(parts)], 1.0 / len(parts), np.zeros(parts[0].value.shape[1]))


def _votes(model: Any) -> Additive:
    """Return AdaBoost's f = Σ α_t h_t as trees: a leaf says the code of its class, times α_t."""
    parts = []
    classes = model.classes_
    for vote, inner in zip(model._votes(), model.models_, strict=True):
        tree = getattr(inner, "trees_", None)
        if model.variant == "real" or not isinstance(tree, Trees):
            raise DataError(
                "AdaBoostClassifier: Shapley values need votes of decision trees of this library, not of "
                f"{type(inner).__name__}{' with variant=real' if model.variant == 'real' else ''}."
            )
        named = np.searchsorted(classes, inner.classes_[tree.value.argmax(axis=1)])
        parts.append(replace(tree, value=np.ascontiguousarray(vote * coded(named, len(classes)))))
    return Additive([concatenate(parts)], 1.0, np.zeros(parts[0].value.shape[1]))
