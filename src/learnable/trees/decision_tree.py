r"""Classification and regression trees (CART).

A tree divides the rows by one question after another, x_j ≤ t, or x_j ∈ S for categories. At each node it takes the
question whose two answers have the smallest impurity together,

    max over j, t of   W·I(node) − W_left·I(left) − W_right·I(right),

and goes on until the rules stop it; a leaf predicts the shares of its classes, or the mean (median) of its targets. The
impurities are in `criteria`. The tree is greedy: no tree is claimed to be the best, but every split is the best of its
candidates, which is what the certificate says and `verify` re-checks.

Reference: L. Breiman, J. Friedman, R. Olshen, C. Stone, Classification and Regression Trees, 1984.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from ..core.declare import fitted, param
from ..core.errors import ModelFileError
from ..core.parameters import Options
from ..data.door import Table, door
from ..data.sources import NamedScore, rowwise
from .criteria import CLASS_CRITERIA, NUMBER_CRITERIA, Target
from .settings import CLASS_WEIGHT, check_counts, class_factors, warn_of_friedman
from .tree_model import Array, TreeModel


class DecisionTreeClassifier(NamedScore, ClassifierMixin, TreeModel):
    """Classification tree: each split lowers the impurity of the classes most; a leaf predicts their shares.

    Exact unless `max_bins` is set: a split may lie between any two values of a column that are neighbours in the node,
    and its threshold is their midpoint. Of equal splits the first column and the smallest threshold win. Time O(nd log
    n) a level; memory of a fit: 4 bytes for each cell of X and about 80 bytes a row. Missing values (NaN) go to the
    side where they help more; where none were seen, to the larger one.

    Attributes
    ----------
    classes_, n_classes_ : array and int, or lists of them for several targets
        The labels, and their number.
    tree_ : TreeAccess
        The arrays of the tree under scikit-learn's names.
    trees_ : Trees
        The same in this library's layout.
    feature_importances_ : array of shape (n_features,)
        Shares of the columns in the fall of impurity. They favour columns with many values.
    max_features_, n_outputs_ : int
        Columns drawn at a node; number of targets.
    ccp_alpha_, alpha_choice_ : float, AlphaChoice
        λ that was used; with "cv" or "cv-1se" also the errors it was chosen by.
    certificate_ : Certificate
        `greedy`: every split is the best of its candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from learnable import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> int(model.tree_.feature[0]), float(model.tree_.threshold[0]), round(model.score(X, y), 2)
    (2, 2.45, 0.96)
    """

    _theory = "tree"

    criterion: str = param(Options(*CLASS_CRITERIA), "What a split lowers.", default="gini")
    class_weight: Any = param(
        CLASS_WEIGHT,
        'Weights of the classes, multiplied onto the sample weights. "balanced": all classes get the same '
        "total weight (scikit-learn's trees count rows here, even if they are weighed).",
        default=None,
    )

    _door = staticmethod(door(target="classes", multi_output=True, missing=True, one_class=True))

    classes_: Any = fitted("array, or list of them for several targets", "The labels.")
    n_classes_: Any = fitted("int, or list of them for several targets", "Their number.")

    def _target(self, table: Table, weight: Array | None) -> Target:
        labels = table.classes if isinstance(table.classes, list) else [table.classes]
        counts = [len(own) for own in labels]
        self.classes_ = table.classes if isinstance(table.classes, list) else np.asarray(table.classes)
        self.n_classes_ = counts if isinstance(table.classes, list) else counts[0]
        return Target.classes(table.y, counts, criterion=self.criterion, weight=weight)

    def _row_weight(self, table: Table) -> Array | None:
        factor = class_factors(type(self).__name__, self.class_weight, table)
        if factor is None:
            return table.weight
        return factor if table.weight is None else factor * table.weight

    def _loss(self, table: Table, rows: Any, values: Array) -> Array:
        guess = values.reshape(len(rows), self.n_outputs_, -1).argmax(axis=2)
        return np.asarray((guess != table.y[rows].reshape(len(rows), -1)).mean(axis=1))

    def _class_counts(self) -> list[int]:
        return list(self.n_classes_) if isinstance(self.n_classes_, list) else [int(self.n_classes_)]

    @rowwise
    def predict(self, X: Any, check_input: bool = True) -> NDArray[Any]:
        """Return the label with the largest share in the row's leaf; of several, the first.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        check_input : bool, default=True
            Ignored: the data are always checked.
        """
        codes = self._values(X).argmax(axis=2)
        if not isinstance(self.classes_, list):
            return np.asarray(self.classes_)[codes[:, 0]]
        return np.column_stack([np.asarray(own)[codes[:, k]] for k, own in enumerate(self.classes_)])

    @rowwise
    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Return the shares of the classes in the row's leaf; a list of arrays for several targets.

        X and check_input are those of `predict`.
        """
        shares = self._values(X)
        if not isinstance(self.classes_, list):
            return np.ascontiguousarray(shares[:, 0])
        return [np.ascontiguousarray(shares[:, k, :count]) for k, count in enumerate(self.n_classes_)]

    @rowwise
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            found = self.predict_proba(X)
            return [np.log(own) for own in found] if isinstance(found, list) else np.log(found)

    def _check_loaded(self) -> None:
        classes = getattr(self, "classes_", None)
        several: list[Any] = classes if isinstance(classes, list) else [classes]
        if hasattr(self, "trees_"):
            if any(not isinstance(own, np.ndarray) or own.ndim != 1 or len(own) < 1 for own in several):
                raise ModelFileError("load: classes_ must hold labels.")
            counts: Any = [len(own) for own in several]
            if self.n_classes_ != (counts if isinstance(classes, list) else counts[0]):
                raise ModelFileError("load: n_classes_ does not fit classes_.")
            if len(several) != getattr(self, "n_outputs_", None):
                raise ModelFileError("load: n_outputs_ does not fit classes_.")
        super()._check_loaded()


class DecisionTreeRegressor(NamedScore, RegressorMixin, TreeModel):
    """Regression tree: each split lowers the squared (absolute, Poisson) error most; a leaf predicts the mean (median).

    Everything else is as in `DecisionTreeClassifier`: exact cuts at midpoints unless `max_bins` is set, ties to the
    first column, learned directions of missing values.

    Attributes
    ----------
    tree_ : TreeAccess
        The arrays of the tree under scikit-learn's names.
    trees_ : Trees
        The same in this library's layout.
    feature_importances_ : array of shape (n_features,)
        Shares of the columns in the fall of impurity.
    max_features_, n_outputs_ : int
        Columns drawn at a node; number of targets.
    ccp_alpha_, alpha_choice_ : float, AlphaChoice
        λ that was used; with "cv" or "cv-1se" also the errors it was chosen by.
    certificate_ : Certificate
        `greedy`: every split is the best of its candidates.

    Examples
    --------
    >>> from learnable import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.1, 2.0, 2.1])
    >>> model.predict([[0.4], [2.6]]), model.certificate_.holds
    (array([0.05, 2.05]), True)
    """

    _theory = "tree"

    criterion: str = param(
        Options(*NUMBER_CRITERIA),
        'What a split lowers. "friedman_mse" ranks splits as "squared_error" does. "absolute_error" '
        "costs O(n log n) a column and node, and its leaves predict medians; of cuts that gain nothing, the "
        'smallest squared error wins. "poisson" needs targets ≥ 0, and never makes a leaf of zeros alone.',
        default="squared_error",
    )

    _door = staticmethod(door(target="numeric", sparse=True, multi_output=True, missing=True))
    prune_criterion = "impurity"

    def __post_init__(self) -> None:
        warn_of_friedman(self.criterion)

    def _target(self, table: Table, weight: Array | None) -> Target:
        y = table.y
        if self.criterion == "poisson":
            check_counts(type(self).__name__, y)
        return Target.numbers(y, criterion=self.criterion, weight=weight)

    def _loss(self, table: Table, rows: Any, values: Array) -> Array:
        error = values - table.y[rows].reshape(len(rows), -1)
        return np.asarray((np.abs(error) if self.criterion == "absolute_error" else error**2).mean(axis=1))

    @rowwise
    def predict(self, X: Any, check_input: bool = True) -> Array:
        """Return the values of the rows' leaves.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        check_input : bool, default=True
            Ignored: the data are always checked.
        """
        found = self._values(X)[:, :, 0]
        return found[:, 0].copy() if self.n_outputs_ == 1 else found
