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

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from ..core.errors import ModelFileError
from ..core.parameters import Options, Rule
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

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "misclassification"}, default="gini"
        What a split lowers.
    splitter : {"best", "random"}, default="best"
        All cuts of a column, or one drawn uniformly between its smallest and largest value.
    max_depth : int or None, default=None
        Largest depth; None grows until leaves are pure.
    min_samples_split, min_samples_leaf : int or float, default=2, 1
        Rows, or share of the rows, that a node needs to be split, and that a leaf needs.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight that a leaf needs.
    max_features : "sqrt", "log2", "third", int, float or None, default=None
        Columns drawn at every node: √d, log₂ d, d/3, a number, a share, or all.
    random_state : int, Generator, RandomState or None, default=None
        Seed of what is drawn. With splitter="best" and all columns nothing is.
    max_leaf_nodes : int or None, default=None
        Most leaves; the tree then grows by largest gain.
    min_impurity_decrease : float, default=0.0
        Fall of the impurity, times the node's share of the weight, that a split needs.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Weights of the classes, multiplied onto the sample weights. "balanced": all classes get the same total weight
        (scikit-learn's trees count rows here, even if they are weighed).
    ccp_alpha : float, "cv" or "cv-1se", default=0.0
        λ of weakest-link pruning: the tree is the smallest minimiser of cost + λ · leaves. "cv": the λ with the
        smallest error over folds; "cv-1se": the smallest tree within one standard error of it.
    monotonic_cst : array of shape (n_features,) or None, default=None
        1, −1 or 0: the probability of the second of two classes rises with the column, falls, or is free.
    prune_criterion : {"impurity", "misclassification"}, default="impurity"
        Cost of a leaf when pruning: by the criterion that the tree grew by, or by its error.
    cv : int, splitter, iterable or None, default=None
        Folds of ccp_alpha="cv" and "cv-1se"; None: 5.
    max_bins : int or None, default=None
        Bins (2 to 255) into which columns are cut by their quantiles; faster on many rows. None: exact.
    categorical_features : array of columns or None, default=None
        Numbers, names or a mask of columns that hold codes of categories; splits divide the set of codes.
    n_jobs : int or None, default=None
        Threads; None uses all. The tree does not depend on it.

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

    _parameters: ClassVar[dict[str, Rule]] = TreeModel._parameters | {
        "criterion": Options(*CLASS_CRITERIA),
        "class_weight": CLASS_WEIGHT,
    }
    _door = staticmethod(door(target="classes", multi_output=True, missing=True, one_class=True))

    classes_: Any
    n_classes_: Any

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: Any = 0.0,
        monotonic_cst: Any = None,
        prune_criterion: str = "impurity",
        cv: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.prune_criterion = prune_criterion
        self.cv = cv
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs

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

    Parameters
    ----------
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson"}, default="squared_error"
        What a split lowers. "friedman_mse" ranks splits as "squared_error" does. "absolute_error" costs O(n log n) a
        column and node, and its leaves predict medians; of cuts that gain nothing, the smallest squared error wins.
        "poisson" needs targets ≥ 0, and never makes a leaf of zeros alone.
    splitter : {"best", "random"}, default="best"
        All cuts of a column, or one drawn uniformly between its smallest and largest value.
    max_depth : int or None, default=None
        Largest depth; None grows until leaves are pure.
    min_samples_split, min_samples_leaf : int or float, default=2, 1
        Rows, or share of the rows, that a node needs to be split, and that a leaf needs.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight that a leaf needs.
    max_features : "sqrt", "log2", "third", int, float or None, default=None
        Columns drawn at every node: √d, log₂ d, d/3, a number, a share, or all.
    random_state : int, Generator, RandomState or None, default=None
        Seed of what is drawn. With splitter="best" and all columns nothing is.
    max_leaf_nodes : int or None, default=None
        Most leaves; the tree then grows by largest gain.
    min_impurity_decrease : float, default=0.0
        Fall of the impurity, times the node's share of the weight, that a split needs.
    ccp_alpha : float, "cv" or "cv-1se", default=0.0
        λ of weakest-link pruning, or how to choose it; see `DecisionTreeClassifier`.
    monotonic_cst : array of shape (n_features,) or None, default=None
        1, −1 or 0: the prediction rises with the column, falls, or is free.
    cv : int, splitter, iterable or None, default=None
        Folds of ccp_alpha="cv" and "cv-1se"; None: 5.
    max_bins : int or None, default=None
        Bins (2 to 255) into which columns are cut by their quantiles; faster on many rows. None: exact.
    categorical_features : array of columns or None, default=None
        Numbers, names or a mask of columns that hold codes of categories; splits divide the set of codes.
    n_jobs : int or None, default=None
        Threads; None uses all. The tree does not depend on it.

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

    _parameters: ClassVar[dict[str, Rule]] = {
        name: rule for name, rule in TreeModel._parameters.items() if name != "prune_criterion"
    } | {"criterion": Options(*NUMBER_CRITERIA)}
    _door = staticmethod(door(target="numeric", sparse=True, multi_output=True, missing=True))
    prune_criterion: ClassVar[str] = "impurity"

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: Any = 0.0,
        monotonic_cst: Any = None,
        cv: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        warn_of_friedman(criterion)
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.cv = cv
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs

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
