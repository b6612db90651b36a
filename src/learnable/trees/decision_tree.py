"""Classification and regression trees (CART).

A tree divides the rows by one question after another, x_j ≤ t, or x_j ∈ S for categories. At each node it takes the
question whose two answers have the smallest impurity together,

    max over j, t of   W·I(node) − W_left·I(left) − W_right·I(right),

and goes on until the rules stop it; a leaf predicts the shares of its classes, or the mean (median) of its targets. The
impurities are in `criteria`. The tree is greedy: no tree is claimed to be the best, but every split is the best of its
candidates, which is what the certificate says and `verify` re-checks.

Reference: L. Breiman, J. Friedman, R. Olshen, C. Stone, Classification and Regression Trees, 1984.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..core import (
    RANDOM_STATE,
    Array,
    Certificate,
    Estimator,
    Matches,
    NDArray,
    Number,
    Options,
    Run,
    are_counts,
    fitted,
    hook,
    law,
    laws,
    optional,
    param,
    passes,
    resolve_n_jobs,
)
from ..data.door import Table, door
from ..data.sources import NamedScore, rowwise
from ._random import seed_of
from .criteria import CLASS_CRITERIA, NUMBER_CRITERIA, Target
from .exact.grower import grow
from .growth import GrowthRule, GrowthStopped
from .layout import Trees
from .models import TreeAccess, TreeClasses, TreePredictions
from .pruning.cost_complexity import alpha_splits, cross_validated_alpha, cut, node_costs, pruning_path
from .random.grower import read_table
from .settings import (
    CLASS_WEIGHT,
    TreeGrowth,
    categorical_mask,
    check_counts,
    growth_rule,
    warn_of_friedman,
    weights_of_classes,
)

# --------------------------------------------------------------------------------------------------------------------
# What decision trees share: growing, pruning, the leaves of rows, the invariants of a loaded tree.


#: Largest shortfall of a split, as a share of its node's impurity, that rounding explains.
TOLERANCE = 1e-9


class TreeModel(TreePredictions, TreeGrowth, Estimator):
    """Base of the decision trees; not to be used directly."""

    splitter: str = param(
        Options("best", "random"),
        "All cuts of a column, or one drawn uniformly between its smallest and largest value.",
        default="best",
    )
    random_state: Any = param(
        RANDOM_STATE, 'Seed of what is drawn. With splitter="best" and all columns nothing is.', default=None
    )
    ccp_alpha: Any = param(
        Number(low=0.0) | Options("cv", "cv-1se"),
        'λ of weakest-link pruning: the tree is the smallest minimiser of cost + λ · leaves. "cv": the λ '
        'with the smallest error over folds; "cv-1se": the smallest tree within one standard error of it.',
        default=0.0,
    )
    prune_criterion: str = param(
        Options("impurity", "misclassification"),
        "Cost of a leaf when pruning: by the criterion that the tree grew by, or by its error.",
        default="impurity",
    )
    cv: Any = param(
        optional(
            Number(low=2, integer=True)
            | Matches(lambda v: hasattr(v, "split") or hasattr(v, "__iter__"), "a splitter or pairs of row numbers")
        ),
        'Folds of ccp_alpha="cv" and "cv-1se"; None: 5.',
        default=None,
    )

    trees_: Trees = fitted("Trees", "The tree in this library's layout.")
    max_features_: int = fitted("int", "Columns drawn at a node.")
    ccp_alpha_: float = fitted("float", "λ that was used.")
    alpha_choice_: Any = fitted(
        "AlphaChoice", 'With `ccp_alpha` "cv" or "cv-1se": the errors that λ was chosen by.', optional=True
    )
    certificate_: Certificate = fitted("Certificate", "`greedy`: every split is the best of its candidates.")

    _remedy = "fit again"
    # scikit-learn's way to say that an argument is no metadata of the rows.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    _target = hook("(table, weight) → Target")

    def _row_weight(self, table: Table) -> Array | None:
        """Return the weights of the rows, those of their classes included."""
        return table.weight

    _loss = hook(
        "(table, rows, values) → Array: Return the loss of rows that are predicted by the node values beside them."
    )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Training data; NaN is a missing value.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; with a dataframe, the name of a column. A row of weight zero is left out.
        check_input : bool, default=True
            Ignored, here and in the other methods: the data are always checked.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        return super().fit(X, y, sample_weight)

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        table.require_memory(f"{owner}: a tree needs all rows in memory. Pass fewer rows, or X.compute() for Dask.")
        self.n_outputs_ = int(np.prod(table.y_shape, initial=1))
        self.seed_ = seed_of(self.random_state)
        weight = self._row_weight(table)
        target = self._target(table, weight)
        rule = growth_rule(self, table, weight, self.splitter)
        self.max_features_ = int(rule.max_features or table.n_columns)
        n_threads = resolve_n_jobs(run.n_jobs)
        columns = read_table(
            table.X,
            target,
            rule,
            max_bins=self.max_bins,
            categorical=categorical_mask(self, table.n_columns),
            n_threads=n_threads,
            owner=owner,
        )
        growing = partial(grow, columns, target, rule, seed=self.seed_, n_threads=n_threads, stop=run.flag.array)
        self.trees_, self.ccp_alpha_ = self._prune(table, weight, growing)
        return Certificate("greedy", 0.0, TOLERANCE, by_construction=True)

    def _prune(self, table: Table, weight: Array | None, growing: Any) -> tuple[Trees, float]:
        """Grow the tree of all rows, choose λ if it is to be chosen, and return T_λ and λ."""
        tree = growing().tree
        if self.ccp_alpha == 0.0:
            return tree, 0.0
        cost = partial(node_costs, cost=self.prune_criterion, n_outputs=self.n_outputs_)
        path = pruning_path(tree, cost)
        if not isinstance(self.ccp_alpha, str):
            return cut(tree, path.collapse <= self.ccp_alpha), float(self.ccp_alpha)
        codes = table.y if table.classes is not None and table.y.ndim == 1 else None
        splits = alpha_splits(type(self).__name__, self.cv, table, codes)
        w = np.ones(table.n_rows) if weight is None else weight
        rule = "min" if self.ccp_alpha == "cv" else "1se"
        choice = cross_validated_alpha(
            path, cost, splits, lambda rows: growing(rows=rows).tree, table.X, w, partial(self._loss, table), rule
        )
        self.alpha_choice_ = choice
        return cut(tree, path.collapse <= choice.alpha), choice.alpha

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return the whole path of weakest-link pruning.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        Bunch
            `ccp_alphas`: λ from which on the next tree is best, rising from 0; `impurities`: cost of the leaves of
            each tree.
        """
        draft = self._draft()
        draft.ccp_alpha = 0.0
        draft.fit(X, y, sample_weight)
        cost = partial(node_costs, cost=self.prune_criterion, n_outputs=draft.n_outputs_)
        path = pruning_path(draft.trees_, cost)
        return Bunch(ccp_alphas=path.alphas, impurities=path.costs)

    # What a fitted tree shows

    @property
    def tree_(self) -> TreeAccess:
        """The tree's arrays under scikit-learn's names."""
        if not hasattr(self, "trees_"):
            raise AttributeError(f"{type(self).__name__} has no tree_ before fit.")
        return TreeAccess(self.trees_, self.n_features_in_, self._class_counts())

    def get_depth(self) -> int:
        """Return the depth of the deepest leaf."""
        check_is_fitted(self, "trees_")
        return self.trees_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self, "trees_")
        return self.trees_.n_leaves

    @rowwise
    def apply(self, X: Any, check_input: bool = True) -> NDArray[np.int64]:
        """Return the number of the leaf in which each row ends.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        check_input : bool, default=True
            Ignored: the data are always checked.
        """
        X = self._read(X)  # says so if there is no tree yet
        return self.trees_.apply(X, self.n_jobs)[:, 0].astype(np.int64)

    def decision_path(self, X: Any, check_input: bool = True) -> Any:
        """Return the nodes that each row passes, as a sparse indicator matrix (n_samples, n_nodes).

        X and check_input are those of `apply`.
        """
        X = self._read(X)
        return self.trees_.decision_path(X)[0]

    _laws = laws(
        law(
            "trees_ must be one tree",
            lambda model: isinstance(model.trees_, Trees) and model.trees_.n_trees == 1,
            "trees_",
        ),
        law(
            "seed_, n_outputs_ and n_features_in_ must be whole numbers",
            lambda model: are_counts(model, "seed_", "n_outputs_", "n_features_in_") and model.n_outputs_,
            "trees_",
        ),
        law("the tree does not fit the model", lambda model: passes(model._check_values), "trees_"),
    )


__all__ = ["TOLERANCE", "GrowthRule", "GrowthStopped", "TreeModel"]


class DecisionTreeClassifier(NamedScore, TreeClasses, ClassifierMixin, TreeModel):
    """Classification tree: each split lowers the impurity of the classes most; a leaf predicts their shares.

    Exact unless `max_bins` is set: a split may lie between any two values of a column that are neighbours in the node,
    and its threshold is their midpoint. Of equal splits the first column and the smallest threshold win. Time O(nd log
    n) per level; memory of a fit: 4 bytes for each cell of X and about 80 bytes per row. Missing values (NaN) go to the
    side where they help more; where none were seen, to the larger one.

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

    def _target(self, table: Table, weight: Array | None) -> Target:
        return Target.classes(table.y, self._name_classes(table), criterion=self.criterion, weight=weight)

    def _row_weight(self, table: Table) -> Array | None:
        return weights_of_classes(type(self).__name__, self.class_weight, table)

    def _loss(self, table: Table, rows: Any, values: Array) -> Array:
        guess = values.reshape(len(rows), self.n_outputs_, -1).argmax(axis=2)
        return np.asarray((guess != table.y[rows].reshape(len(rows), -1)).mean(axis=1))

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
        return self._labels(self._values(X).argmax(axis=2))

    @rowwise
    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Return the shares of the classes in the row's leaf; a list of arrays for several targets.

        X and check_input are those of `predict`.
        """
        return self._shares(self._values(X))


class DecisionTreeRegressor(NamedScore, RegressorMixin, TreeModel):
    """Regression tree: each split lowers the squared (absolute, Poisson) error most; a leaf predicts the mean (median).

    Everything else is as in `DecisionTreeClassifier`: exact cuts at midpoints unless `max_bins` is set, ties to the
    first column, learned directions of missing values.

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
