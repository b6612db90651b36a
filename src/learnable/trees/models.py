"""What models made of trees share: reading rows, importances, labels and shares of classes, scikit-learn's `tree_`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core import N_JOBS, Array, Declared, NDArray, fitted, is_labels, law, laws, param, resolve, tags
from ..data.door import Table, read_features
from ..data.sources import rowwise
from .layout import Trees


class ShapleyValues:
    """Adds `shap_values` to a model whose score can be a sum of trees."""

    def shap_values(self, X: Any) -> Any:
        """Return the exact Shapley values of the score of each row, and their base.

        The same as `learnable.ensembles.shap_values(model, X)`.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        ShapValues
            `values` and `base`; base + values.sum(axis=1) is the score: shares of classes or numbers for trees,
            forests and bags of trees, votes for AdaBoost.

        Raises
        ------
        DataError
            If the score is no sum of trees, as that of a bag of other models.
        """
        explain = resolve("learnable.ensembles.explain.shap:shap_values")  # it stands above this layer
        return explain(self, X, n_jobs=getattr(self, "n_jobs", None))


class TreePredictions(ShapleyValues, Declared):
    """Base of decision trees and forests: the rows they read, what they say of themselves."""

    n_jobs: int | None = param(N_JOBS, "Threads; None uses all. The trees do not depend on it.", default=None)

    trees_: Trees = fitted("Trees", "The tree, or all trees in one set of arrays.")
    n_features_in_: int = fitted("int", "Number of columns.")
    n_outputs_: int = fitted("int", "Number of targets.")
    _tags = tags(sparse=True, allow_nan=True, multi_output=True, single_output=True)

    @property
    def feature_importances_(self) -> Array:
        """Each column's share in the fall of impurity, averaged over the trees; they sum to one unless none splits.

        They favour columns with many values; a forest's `oob_importances` do not.
        """
        check_is_fitted(self, "trees_")
        return self.trees_.feature_importances(self.n_features_in_)

    def _read(self, X: Any) -> Any:
        check_is_fitted(self, "trees_")
        return read_features(self, X, missing=True)

    def _values(self, X: Any) -> Array:
        """Return the mean values of the rows' leaves, (n, n_outputs, K)."""
        X = self._read(X)
        return self.trees_.mean(X, self.n_jobs).reshape(X.shape[0], self.n_outputs_, -1)

    def _class_counts(self) -> list[int]:
        """Return the classes of each target; ones for numbers."""
        return [1] * self.n_outputs_

    def _check_values(self) -> None:
        """Raise ModelFileError unless the loaded trees fit the columns and targets."""
        self.trees_.check(self.n_features_in_, self.n_outputs_ * max(self._class_counts()))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trees_")


def _each(values: Any) -> list[Any]:
    """Return what is kept for each target, which is not a list where there is one target."""
    return values if isinstance(values, list) else [values]


class TreeClasses(Declared):
    """What tree classifiers add: labels, and shares of the classes."""

    classes_: Any = fitted("array, or list of them for several targets", "The labels.")
    n_classes_: Any = fitted("int, or list of them for several targets", "Their number.")

    def _name_classes(self, table: Table) -> list[int]:
        """Keep the labels of the table; return their numbers."""
        several = isinstance(table.classes, list)
        self.classes_ = table.classes if several else np.asarray(table.classes)
        self.n_classes_ = [len(own) for own in self.classes_] if several else len(self.classes_)
        return self._class_counts()

    def _class_counts(self) -> list[int]:
        return list(self.n_classes_) if isinstance(self.n_classes_, list) else [int(self.n_classes_)]

    def _labels(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of class codes, (n, m) or, of one target, also (n,)."""
        if not isinstance(self.classes_, list):
            return np.asarray(self.classes_)[codes.reshape(len(codes))]
        return np.column_stack([np.asarray(own)[codes[:, k]] for k, own in enumerate(self.classes_)])

    def _shares(self, values: Array) -> Any:
        """Return (n, m, K) shares as an array per target; one array for one target."""
        if not isinstance(self.classes_, list):
            return np.ascontiguousarray(values[:, 0])
        return [np.ascontiguousarray(values[:, k, :count]) for k, count in enumerate(self.n_classes_)]

    @rowwise
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            found = self.predict_proba(X)  # type: ignore[attr-defined]
            return [np.log(own) for own in found] if isinstance(found, list) else np.log(found)

    _laws = laws(
        law(
            "classes_ must hold labels",
            lambda model: all(is_labels(own, 1) for own in _each(model.classes_)),
            "trees_",
        ),
        law(
            "classes_, n_classes_ and n_outputs_ do not fit together",
            lambda model: (
                _each(model.n_classes_) == [len(own) for own in _each(model.classes_)]
                and isinstance(model.n_classes_, list) == isinstance(model.classes_, list)
                and len(_each(model.classes_)) == model.n_outputs_
            ),
            "trees_",
        ),
    )


# --------------------------------------------------------------------------------------------------------------------
# scikit-learn's names for the arrays of one tree: what `tree_` of an estimator shows.


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
        self.n_features = n_features
        self.n_outputs = len(n_classes)
        self.n_classes = np.array(n_classes)
        self.max_n_classes = max(n_classes)
        self.node_count = self.capacity = tree.n_nodes
        self.children_left = tree.left.astype(np.int64)
        self.children_right = tree.right.astype(np.int64)
        self.feature = np.where(leaf, _UNDEFINED, tree.feature).astype(np.int64)
        self.threshold = np.where(leaf, float(_UNDEFINED), tree.threshold)
        self.impurity = tree.impurity
        self.weighted_n_node_samples = tree.weight
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
