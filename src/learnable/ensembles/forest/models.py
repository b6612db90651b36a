"""Forests of class shares and forests of numbers: targets, predictions, out-of-bag judgement, quantiles."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.class_weight import compute_sample_weight

from ...core.declare import Boolean, Matches, Options, fitted, optional, param
from ...core.errors import DataError, ParameterError
from ...core.loaded import law, laws, passes
from ...data.door import Table, door
from ...data.sources import rowwise
from ...trees.criteria import CLASS_CRITERIA, NUMBER_CRITERIA, Target
from ...trees.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from ...trees.growth import Grown
from ...trees.layout import Trees
from ...trees.models import TreeClasses
from ...trees.pruning.cost_complexity import prune_to
from ...trees.settings import MAX_FEATURES, check_counts, warn_of_friedman, weights_of_classes
from ..draws import Rows
from .grow import Array, Forest, LeafTargets, Plan, forest_quantiles, rows_by_leaf


def _with_dense_targets(read: Callable[..., Table]) -> Callable[..., Table]:
    """Return the door that refuses sparse targets in scikit-learn's words."""

    def read_dense(estimator: Any, X: Any, y: Any = None, *rest: Any) -> Table:
        if sp.issparse(y):
            raise DataError(
                f"{type(estimator).__name__}: sparse multilabel-indicator for y is not supported. Pass y.toarray()."
            )
        return read(estimator, X, y, *rest)

    return read_dense


class ForestClassifier(TreeClasses, ClassifierMixin, Forest):
    """Base of `RandomForestClassifier` and `ExtraTreesClassifier`; not to be used directly."""

    criterion: str = param(Options(*CLASS_CRITERIA), "What a split lowers.", default="gini")
    class_weight: Any = param(
        optional(
            Options("balanced", "balanced_subsample")
            | Matches(lambda v: isinstance(v, (dict, list)), "a dict of weights, or a list of them for several targets")
        ),
        'Weights of the classes; "balanced_subsample" balances every bag.',
        default=None,
    )
    max_features: float | str | None = param(
        MAX_FEATURES, "Columns drawn at every node: √d, log₂ d, d/3, a number, a share, or all.", default="sqrt"
    )

    oob_decision_function_: Array = fitted(
        "(n_rows, n_classes) or (n_rows, n_classes, n_targets)",
        "With `oob_score`: mean shares of the trees that have not seen the row; NaN where all have.",
        finite=False,
        optional=True,
    )

    _door = staticmethod(_with_dense_targets(door(target="classes", multi_output=True, missing=True, one_class=True)))

    _tree_class = DecisionTreeClassifier

    def _target(self, table: Table) -> Target:
        return Target.classes(table.y, self._name_classes(table), criterion=self.criterion)

    def _row_weight(self, table: Table) -> Array | None:
        given = self.class_weight
        if given is None or (given == "balanced_subsample" and self.bootstrap):
            return table.weight
        return weights_of_classes(type(self).__name__, "balanced" if isinstance(given, str) else given, table)

    def _class_numbers(self) -> Any:
        numbers = [np.arange(count, dtype=np.float64) for count in self._class_counts()]
        return numbers if isinstance(self.classes_, list) else numbers[0]

    def _reweigher(self, table: Table) -> Callable[[Target, Rows], Target] | None:
        if self.class_weight != "balanced_subsample" or not self.bootstrap:
            return None

        def reweigh(target: Target, rows: Rows) -> Target:
            return replace(target, weight=compute_sample_weight("balanced", table.y, indices=rows), unit=False)

        return reweigh

    def _finish_tree(self, found: Grown, rows: Rows | None) -> tuple[Trees, None]:
        return (prune_to(found.tree, alpha=self.ccp_alpha) if self.ccp_alpha > 0 else found.tree), None

    def _judge_out_of_bag(self, table: Table, total: Array, voters: NDArray[np.int64]) -> None:
        several = isinstance(table.classes, list)
        shares = _shares(total, voters).reshape(len(voters), self.n_outputs_, -1).transpose(0, 2, 1)
        judged = _judged(voters)
        codes = shares[judged].argmax(axis=1)
        self.oob_decision_function_ = shares if several else np.ascontiguousarray(shares[:, :, 0])
        if callable(self.oob_score):
            y = table.y[judged]
            found = codes if several else codes[:, 0]
            self.oob_score_ = float(self.oob_score(self._labels(y), self._labels(found)))
        else:
            right = codes == table.y.reshape(len(voters), -1)[judged]
            self.oob_score_ = float(
                np.mean(right.all(axis=1))
            )  # of several targets all have to be right, as in `score`

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the largest mean share in the leaves; of several, the first.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        """
        return self._labels(self._values(X).argmax(axis=2))

    @rowwise
    def predict_proba(self, X: Any) -> Any:
        """Return the mean over the trees of the shares of the classes in the row's leaf; a list for several targets."""
        return self._shares(self._values(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; of several targets, the share of rows that are right in all of them."""
        from sklearn.metrics import accuracy_score

        if getattr(self, "n_outputs_", 1) == 1:
            return float(super().score(X, y, sample_weight))
        right = (self.predict(X) == np.asarray(y)).all(axis=1)
        return float(accuracy_score(np.ones(len(right), bool), right, sample_weight=sample_weight))


class ForestRegressor(RegressorMixin, Forest):
    """Base of `RandomForestRegressor` and `ExtraTreesRegressor`; not to be used directly."""

    criterion: str = param(Options(*NUMBER_CRITERIA), "What a split lowers.", default="squared_error")
    max_features: float | str | None = param(
        MAX_FEATURES, "Columns drawn at every node: √d, log₂ d, d/3, a number, a share, or all.", default=1.0
    )

    _door = staticmethod(_with_dense_targets(door(target="numeric", multi_output=True, missing=True)))

    _tree_class = DecisionTreeRegressor
    #: Leaves of few rows have quantiles too close to each other; `with_intervals` has some with a level.
    _intervals_are_plug_in = True

    leaves_: LeafTargets = fitted(
        "LeafTargets", "The training targets in the leaves, for `predict_quantiles` and `predict_interval`."
    )
    oob_prediction_: Array = fitted(
        "(n_rows,) or (n_rows, n_targets)",
        "With `oob_score`: mean of the trees that have not seen the row; NaN where all have.",
        finite=False,
        optional=True,
    )

    def __post_init__(self) -> None:
        warn_of_friedman(self.criterion)

    def _target(self, table: Table) -> Target:
        y = table.y
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                "(n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=6,
            )
        if self.criterion == "poisson":
            check_counts(type(self).__name__, y)
        return Target.numbers(y, criterion=self.criterion)

    def _finish_tree(self, found: Grown, rows: Rows | None) -> tuple[Trees, NDArray[np.int32]]:
        tree = found.tree
        leaf_of_row = found.leaf_of_row
        if self.ccp_alpha > 0:
            tree, leaf_of_row = _prune(found, self.ccp_alpha)
        rows = np.flatnonzero(leaf_of_row >= 0) if rows is None else rows
        return tree, rows_by_leaf(leaf_of_row, rows, tree.n_nodes)

    def _keep_leaves(self, table: Table, plan: Plan, grown: list[Any], previous: Any) -> None:
        orders = [order for _, order in grown]
        sizes = np.array([len(order) for order in orders], dtype=np.int64)
        if previous is not None:
            orders = [previous.leaves_.rows, *orders]
            sizes = np.r_[previous.leaves_.sizes, sizes]
        y = np.ascontiguousarray(table.y.reshape(table.n_rows, -1))
        weight = None if self.bootstrap else self.sample_weight_
        self.leaves_ = LeafTargets(np.concatenate(orders), sizes, y, weight)

    def _judge_out_of_bag(self, table: Table, total: Array, voters: NDArray[np.int64]) -> None:
        from sklearn.metrics import r2_score

        judged = _judged(voters)
        found = _shares(total, voters)
        self.oob_prediction_ = found[:, 0].copy() if self.n_outputs_ == 1 else found
        score = self.oob_score if callable(self.oob_score) else r2_score
        y = table.y.reshape(self.oob_prediction_.shape)
        self.oob_score_ = float(score(y[judged], self.oob_prediction_[judged])) if judged.sum() > 1 else float("nan")

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the mean over the trees of the values of the row's leaves.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        """
        found = self._values(X)[:, :, 0]
        return found[:, 0].copy() if self.n_outputs_ == 1 else found

    def predict_quantiles(self, X: Any, levels: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Return quantiles of the training targets that share leaves with each row.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            New rows. On training rows the quantiles are too close together: their own targets are in the leaves.
        levels : sequence of float in [0, 1]
            Levels of the quantiles.

        Returns
        -------
        array of shape (n_samples, n_levels) or (n_samples, n_levels, n_targets)
        """
        X = self._read(X)
        wanted = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
            raise ParameterError(f"{type(self).__name__}: levels must lie between 0 and 1; got {levels!r}.")
        if not hasattr(self, "leaves_"):
            raise DataError(
                f"{type(self).__name__}: quantiles need the rows of the leaves, and the rows of its leaves were not "
                "kept: the fit on a cluster would have brought more than 1 GB to the client. Fit fewer rows or trees."
            )
        ascending = np.argsort(wanted, kind="stable")
        leaves = self.trees_.apply(X, self.n_jobs)
        sorted_ = forest_quantiles(self.trees_, self.leaves_, leaves, wanted[ascending], self.max_samples_ is not None)
        found = np.empty_like(sorted_)
        found[:, ascending] = sorted_
        return found[:, :, 0].copy() if self.n_outputs_ == 1 else found

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Return lower and upper ends that are to hold a new target with probability `level`.

        They are the quantiles (1 ∓ level)/2 of the leaves. Their coverage is approximate; `ConformalRegressor` around
        the forest makes it exact.
        """
        if not 0 < level < 1:
            raise ParameterError(f"{type(self).__name__}: level must be between 0 and 1; got {level!r}.")
        found = self.predict_quantiles(X, [(1 - level) / 2, (1 + level) / 2])
        return found[:, 0], found[:, 1]

    _laws = laws(
        law("{owner}: trees_ is missing", lambda forest: hasattr(forest, "trees_")),
        law(
            "leaves_ must hold the targets in the leaves",
            lambda forest: (
                isinstance(forest.leaves_, LeafTargets)
                and passes(forest.leaves_.check, forest.trees_, forest.max_samples_ is not None, forest.n_outputs_)
            ),
            "leaves_",  # a fit on a cluster has none, where they were too many
        ),
    )


def _shares(total: Array, voters: NDArray[np.int64]) -> Array:
    """Return sums divided by the number of trees; NaN where there is none."""
    return total / np.where(voters > 0, voters, np.nan)[:, None]


def _judged(voters: NDArray[np.int64]) -> NDArray[np.bool_]:
    judged = voters > 0
    if not judged.all():
        warnings.warn(
            "Some inputs do not have OOB scores. This probably means too few trees were used to compute any reliable "
            f"OOB estimates: every tree has seen {int((~judged).sum())} of {len(judged)} rows. Raise n_estimators.",
            UserWarning,
            stacklevel=6,
        )
    return judged


def _prune(found: Grown, alpha: float) -> tuple[Trees, NDArray[np.int32]]:
    """Return the pruned tree, and the leaf of every row in it."""
    pruned = prune_to(found.tree, alpha=alpha)
    number = np.full(found.tree.n_nodes, -1, np.int32)
    stack = [(0, 0)]
    while stack:  # walk both trees side by side; what lies below a new leaf has its number
        old, new = stack.pop()
        number[old] = new
        if found.tree.feature[old] >= 0:
            is_leaf = pruned.feature[new] < 0
            for side in ("left", "right"):
                child = int(getattr(found.tree, side)[old])
                stack.append((child, new if is_leaf else int(getattr(pruned, side)[new])))
    used = found.leaf_of_row >= 0
    return pruned, np.where(used, number[found.leaf_of_row], -1).astype(np.int32)


# --------------------------------------------------------------------------------------------------------------------
# Random forests: trees on bootstrap bags, each split the best of a few columns drawn at random.
#
# The mean of T trees of variance σ² and pairwise correlation ρ has variance ρσ² + (1 − ρ)σ²/T: bags lower the second
# term, drawing m of d columns at every node lowers ρ. Usual choices are m = √d for classes and m = d/3 for numbers;
# the defaults are scikit-learn's (√d, and all columns for numbers, which is bagging), `max_features="third"` is d/3.
#
# The certificate says that every split is the best of its node's candidates. `verify` draws the bags and the columns
# again and recomputes every split of every tree in NumPy, which takes several times as long as the fit.
#
# Reference: L. Breiman, Random forests, Machine Learning 45 (2001).


class RandomForestClassifier(ForestClassifier):
    """Trees on bootstrap bags with drawn columns; the class with the largest mean share in the leaves.

    Exact unless `max_bins` is set: a split may be between any two values of a column that are neighbours in the node.
    Memory of a fit: 4 bytes for each cell of X, about 100 bytes per row and thread, and the trees. On a Dask cluster
    workers grow trees on copies of the rows; with `max_bins`, rows that fit no worker stay where they are, as codes,
    and the forest is the same. Missing values (NaN) go to the side where they help more. If rows are drawn, weights of
    rows and classes are the chances of being drawn, as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from learnable import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> model.oob_score_ > 0.93, model.certificate_.holds
    (True, True)
    """

    _theory = "forest"

    _splitter: ClassVar[str] = "best"


class RandomForestRegressor(ForestRegressor):
    """Trees on bootstrap bags with drawn columns; the mean of the leaves, and their quantiles.

    Splits, missing values, weights of the rows and the memory of a fit are as in `RandomForestClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from learnable import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(min_samples_leaf=5, random_state=0).fit(X[:400], y[:400])
    >>> lower, upper = model.predict_interval(X[400:], level=0.9)
    >>> bool(np.mean((lower <= y[400:]) & (y[400:] <= upper)) > 0.8)
    True
    """

    _theory = "forest"

    _splitter: ClassVar[str] = "best"


# --------------------------------------------------------------------------------------------------------------------
# Extremely randomised trees: a column's threshold is drawn, not searched.
#
# At every node each of the drawn columns gets one threshold, uniform between its ends in the node, and the best of
# these splits is taken. Trees are less alike than those of a random forest and cheaper to grow; by default each has
# all rows.
#
# The certificate says that every split is the best of its node's candidates, the drawn columns with their drawn
# thresholds.
#
# Reference: P. Geurts, D. Ernst, L. Wehenkel, Extremely randomized trees, Machine Learning 63 (2006).


class ExtraTreesClassifier(ForestClassifier):
    """Trees with drawn columns and thresholds; the class with the largest mean share in the leaves.

    Splits, missing values, weights of the rows and the memory of a fit are as in `RandomForestClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from learnable import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ExtraTreesClassifier(bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    >>> model.oob_score_ > 0.93, model.certificate_.holds
    (True, True)
    """

    _theory = "forest"

    bootstrap: bool = param(Boolean(), "Whether a tree gets rows drawn with replacement, or all rows.", default=False)

    _splitter: ClassVar[str] = "random"


class ExtraTreesRegressor(ForestRegressor):
    """Trees with drawn columns and thresholds; the mean of the leaves, and their quantiles.

    Splits, missing values, weights of the rows and the memory of a fit are as in `RandomForestClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from learnable import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ExtraTreesRegressor(min_samples_leaf=5, random_state=0).fit(X[:400], y[:400])
    >>> lower, upper = model.predict_interval(X[400:], level=0.9)
    >>> bool(np.mean((lower <= y[400:]) & (y[400:] <= upper)) > 0.8)
    True
    """

    _theory = "forest"

    bootstrap: bool = param(Boolean(), "Whether a tree gets rows drawn with replacement, or all rows.", default=False)

    _splitter: ClassVar[str] = "random"
