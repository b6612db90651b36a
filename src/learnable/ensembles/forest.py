r"""Random forests: trees on bootstrap bags, each split the best of a few columns drawn at random.

The mean of T trees of variance σ² and pairwise correlation ρ has variance ρσ² + (1 − ρ)σ²/T: bags lower the second
term, drawing m of d columns at every node lowers ρ. Usual choices are m = √d for classes and m = d/3 for numbers; the
defaults are scikit-learn's (√d, and all columns for numbers, which is bagging), `max_features="third"` is d/3.

The certificate says that every split is the best of its node's candidates. `verify` draws the bags and the columns
again and recomputes every split of every tree in NumPy, which takes several times as long as the fit.

Reference: L. Breiman, Random forests, Machine Learning 45 (2001).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..trees.settings import warn_of_friedman
from ._forest_kinds import ForestClassifier, ForestRegressor


class RandomForestClassifier(ForestClassifier):
    """Trees on bootstrap bags with drawn columns; the class with the largest mean share in the leaves.

    Exact unless `max_bins` is set: a split may be between any two values of a column that are neighbours in the node.
    Memory of a fit: 4 bytes for each cell of X, about 100 bytes a row and thread, and the trees. Missing values (NaN)
    go to the side where they help more. If rows are drawn, weights of rows and classes are the chances of being
    drawn, as in scikit-learn.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees T.
    criterion : {"gini", "entropy", "log_loss", "misclassification"}, default="gini"
        What a split lowers.
    max_depth : int or None, default=None
        Largest depth; None grows until leaves are pure.
    min_samples_split, min_samples_leaf : int or float, default=2, 1
        Distinct rows, or share of the rows, that a node needs to be split, and that a leaf needs.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight that a leaf needs.
    max_features : "sqrt", "log2", "third", int, float or None, default="sqrt"
        Columns drawn at every node: √d, log₂ d, d/3, a number, a share, or all.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, which then grows by largest gain.
    min_impurity_decrease : float, default=0.0
        Fall of the impurity, times the node's share of the weight, that a split needs.
    bootstrap : bool, default=True
        Whether a tree gets rows drawn with replacement, or all rows.
    oob_score : bool or callable, default=False
        Whether to compute `oob_score_`, the accuracy or a function of (y, predictions), from rows out of the bags.
    n_jobs : int or None, default=None
        Threads; None uses all. The forest does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the bags and of what trees draw.
    verbose : int, default=0
        1 prints a line at the end, more also one for each tree; callbacks report progress, too.
    warm_start : bool, default=False
        Whether to keep the trees of the last fit, on the same table, and add to them; the result is that of one fit.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Weights of the classes; "balanced_subsample" balances every bag.
    ccp_alpha : float, default=0.0
        Each tree is pruned to the smallest minimiser of impurity + ccp_alpha · leaves.
    max_samples : int, float or None, default=None
        Rows drawn for a tree: a number, a share, or as many as there are.
    monotonic_cst : array of shape (n_features,) or None, default=None
        1, −1 or 0: the prediction of the second class rises with the column, falls, or is free.
    max_bins : int or None, default=None
        Bins (2 to 255) into which columns are cut by their quantiles; faster on many rows. None: exact.
    categorical_features : array of columns or None, default=None
        Numbers, names or a mask of columns that hold codes of categories; splits divide the set of codes.
    max_seconds : float or None, default=None
        Time after which no more trees are grown; at least one is.

    Attributes
    ----------
    trees_ : Trees
        All trees in one set of arrays.
    classes_, n_classes_ : array and int, or lists of them for several targets
        The labels, and their number.
    oob_score_, oob_decision_function_
        Accuracy and mean shares of the trees that have not seen the row; NaN where all have.
    feature_importances_ : array of shape (n_features,)
        Shares of the columns in the fall of impurity. They favour columns with many values; `oob_importances` does not.
    estimators_ : list of DecisionTreeClassifier
        The fitted trees, views of `trees_`; the forest is a sequence of them. They name classes by their numbers.
    estimator_ : DecisionTreeClassifier
        The tree that they are copies of.
    estimators_samples_ : list of arrays
        The rows of each tree's bag.
    n_outputs_, n_features_in_, feature_names_in_, certificate_
        As in scikit-learn, and what is proven.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from learnable import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> model.oob_score_ > 0.93, model.certificate_.holds
    (True, True)
    """

    _splitter: ClassVar[str] = "best"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        monotonic_cst: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = None,
        max_seconds: float | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_seconds = max_seconds


class RandomForestRegressor(ForestRegressor):
    """Trees on bootstrap bags with drawn columns; the mean of the leaves, and their quantiles.

    Exact unless `max_bins` is set: a split may be between any two values of a column that are neighbours in the node.
    Memory of a fit: 4 bytes for each cell of X, about 100 bytes a row and thread, and the trees. Missing values (NaN)
    go to the side where they help more. If rows are drawn, weights of rows and classes are the chances of being
    drawn, as in scikit-learn.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees T.
    criterion : {"squared_error", "absolute_error", "friedman_mse", "poisson"}, default="squared_error"
        What a split lowers.
    max_depth : int or None, default=None
        Largest depth; None grows until leaves are pure.
    min_samples_split, min_samples_leaf : int or float, default=2, 1
        Distinct rows, or share of the rows, that a node needs to be split, and that a leaf needs.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight that a leaf needs.
    max_features : "sqrt", "log2", "third", int, float or None, default=1.0
        Columns drawn at every node: √d, log₂ d, d/3, a number, a share, or all.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, which then grows by largest gain.
    min_impurity_decrease : float, default=0.0
        Fall of the impurity, times the node's share of the weight, that a split needs.
    bootstrap : bool, default=True
        Whether a tree gets rows drawn with replacement, or all rows.
    oob_score : bool or callable, default=False
        Whether to compute `oob_score_`, R² or a function of (y, predictions), from rows out of the bags.
    n_jobs : int or None, default=None
        Threads; None uses all. The forest does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the bags and of what trees draw.
    verbose : int, default=0
        1 prints a line at the end, more also one for each tree; callbacks report progress, too.
    warm_start : bool, default=False
        Whether to keep the trees of the last fit, on the same table, and add to them; the result is that of one fit.
    ccp_alpha : float, default=0.0
        Each tree is pruned to the smallest minimiser of impurity + ccp_alpha · leaves.
    max_samples : int, float or None, default=None
        Rows drawn for a tree: a number, a share, or as many as there are.
    monotonic_cst : array of shape (n_features,) or None, default=None
        1, −1 or 0: the prediction rises with the column, falls, or is free.
    max_bins : int or None, default=None
        Bins (2 to 255) into which columns are cut by their quantiles; faster on many rows. None: exact.
    categorical_features : array of columns or None, default=None
        Numbers, names or a mask of columns that hold codes of categories; splits divide the set of codes.
    max_seconds : float or None, default=None
        Time after which no more trees are grown; at least one is.

    Attributes
    ----------
    trees_ : Trees
        All trees in one set of arrays.
    leaves_ : LeafTargets
        The training targets in the leaves, for `predict_quantiles` and `predict_interval`.
    oob_score_, oob_prediction_
        R² and mean of the trees that have not seen the row; NaN where all have.
    feature_importances_ : array of shape (n_features,)
        Shares of the columns in the fall of impurity. They favour columns with many values; `oob_importances` does not.
    estimators_ : list of DecisionTreeRegressor
        The fitted trees, views of `trees_`; the forest is a sequence of them.
    estimator_ : DecisionTreeRegressor
        The tree that they are copies of.
    estimators_samples_ : list of arrays
        The rows of each tree's bag.
    n_outputs_, n_features_in_, feature_names_in_, certificate_
        As in scikit-learn, and what is proven.

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

    _splitter: ClassVar[str] = "best"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: float | None = None,
        monotonic_cst: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = None,
        max_seconds: float | None = None,
    ) -> None:
        warn_of_friedman(criterion)
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_seconds = max_seconds
