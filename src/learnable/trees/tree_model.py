"""What decision trees share: growing, pruning, the leaves of rows, the invariants of a loaded tree."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import fitted, param
from ..core.errors import DataError, ModelFileError
from ..core.estimator import Estimator
from ..core.parameters import N_JOBS, RANDOM_STATE, Matches, Number, Options, optional
from ..core.run import Run
from ..core.threads import resolve_n_jobs
from ..data.door import Table, read_features
from ..data.sources import rowwise
from .ccp import alpha_splits, cross_validated_alpha, cut, node_costs, pruning_path
from .criteria import Target
from .explained import ShapleyValues
from .grower import GrowthRule, GrowthStopped, grow
from .layout import Trees
from .random_grower import read_table
from .settings import TreeGrowth, categorical_mask, growth_rule, seed_of
from .tree_access import TreeAccess

Array = NDArray[np.float64]

#: Largest shortfall of a split, as a share of its node's impurity, that rounding explains.
TOLERANCE = 1e-9


class TreeModel(ShapleyValues, TreeGrowth, Estimator):
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
    n_jobs: int | None = param(N_JOBS, "Threads; None uses all. The tree does not depend on it.", default=None)

    _remedy = "fit again"
    # scikit-learn's way to say that an argument is no metadata of the rows.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    trees_: Trees = fitted("Trees", "The tree, in this library's layout.")
    n_features_in_: int = fitted("int", "Number of columns.")
    n_outputs_: int = fitted("int", "Number of targets.")

    def _target(self, table: Table, weight: Array | None) -> Target:
        raise TypeError(f"{type(self).__name__} does not define _target")

    def _row_weight(self, table: Table) -> Array | None:
        """Return the weights of the rows, those of their classes included."""
        return table.weight

    def _loss(self, table: Table, rows: Any, values: Array) -> Array:
        """Return the loss of rows that are predicted by the node values beside them."""
        raise TypeError(f"{type(self).__name__} does not define _loss")

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
        if not table.in_memory:
            raise DataError(f"{owner}: a tree needs all rows in memory. Pass fewer rows, or X.compute() for Dask.")
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

    def _class_counts(self) -> list[int]:
        return [1] * self.n_outputs_

    @property
    def feature_importances_(self) -> Array:
        """Each column's share in the fall of impurity; they sum to one unless the tree is a single leaf."""
        check_is_fitted(self, "trees_")
        return self.trees_.feature_importances(self.n_features_in_)

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

    def _read(self, X: Any) -> Any:
        check_is_fitted(self, "trees_")
        return read_features(self, X, missing=True)

    def _values(self, X: Any) -> Array:
        """Return the values of the rows' leaves, (n, n_outputs, K)."""
        X = self._read(X)
        return self.trees_.mean(X, self.n_jobs).reshape(X.shape[0], self.n_outputs_, -1)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trees_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _check_loaded(self) -> None:
        if not hasattr(self, "trees_"):
            return
        if not isinstance(self.trees_, Trees) or self.trees_.n_trees != 1:
            raise ModelFileError("load: trees_ must be one tree.")
        sizes = [getattr(self, name, None) for name in ("seed_", "n_outputs_", "n_features_in_")]
        if any(not isinstance(size, int) or not 0 <= size < 2**63 for size in sizes) or not self.n_outputs_:
            raise ModelFileError("load: seed_, n_outputs_ and n_features_in_ must be whole numbers.")
        self.trees_.check(self.n_features_in_, self.n_outputs_ * max(self._class_counts()))
        if self.trees_.start[-1] != self.trees_.n_nodes:
            raise ModelFileError("load: the tree's arrays do not fit together.")


__all__ = ["TOLERANCE", "GrowthRule", "GrowthStopped", "TreeModel"]
