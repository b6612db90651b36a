"""Histogram boosting of numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.parameters import ArrayLike, Nothing, Number, Options, Rule
from .hist import _PARAMETERS, HistBoosting
from .kinds import BoostedRegressor
from .losses import REGRESSION_LOSSES
from .settings import (
    CUSTOM_LOSS,
)

Array = NDArray[np.float64]


class HistGradientBoostingRegressor(BoostedRegressor, HistBoosting):
    r"""Gradient boosting for regression on histograms: scikit-learn's, and more (see the last parameters).

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time. A round minimises the second-order expansion
    plus γ·leaves + ½λ‖T‖², which is λ/(2n) for the mean. Memory: two bytes a cell, 50 a row.

    NaN in X is a missing value; infinity is a number beyond all others (the largest of float64).

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma"} or object, \
            default="squared_error"
        V. Poisson and gamma fit the logarithm of the mean. Or any object with `value(y, z)` and `gradient(y, z)` (and,
        if there is one, `curvature(y, z)`) on arrays, such as those of `learnable.risk.losses`.
    quantile : float, array of them, or None, default=None
        Level of loss="quantile"; several, ascending, are fitted jointly and do not cross. Of loss="huber": the share of
        residuals that count as small, 0.9 if None.
    learning_rate : float, default=0.1
        η, the factor on every step.
    max_iter : int, default=100
        Rounds; each has one tree, or one for each of more than two classes (or quantiles).
    max_leaf_nodes : int or None, default=31
        Leaves of a tree.
    max_depth : int or None, default=None
        Depth of the trees.
    min_samples_leaf : int, default=20
        Rows that a leaf needs.
    l2_regularization : float, default=0.0
        λ in ½λ‖T‖², XGBoost's `reg_lambda`: leaves are −G/(H + λ).
    max_features : float in (0, 1], default=1.0
        Share of the columns drawn at each node.
    max_bins : int, default=255
        Most bins of a column, besides that of missing values.
    categorical_features : array of columns, "from_dtype" or None, default="from_dtype"
        Columns of categories, split by sets of levels; "from_dtype": those of that type in a dataframe. Of more than
        `max_bins` levels the rarest share a bin.
    monotonic_cst : array of -1, 0, 1, dict of names, or None, default=None
        Columns with which the score may only fall or rise.
    interaction_cst : {"pairwise", "no_interactions"}, list of sets of columns, or None, default=None
        Columns may meet on a path only if one of the sets holds them all; those in no set form one.
    warm_start : bool, default=False
        Whether a next `fit` adds rounds.
    early_stopping : "auto" or bool, default="auto"
        Whether rounds end when the score of rows held out stops rising; "auto": beyond 10,000 rows, or if `X_val` is
        passed to `fit`. The round with the best score is kept (scikit-learn keeps all).
    scoring : str, callable or None, default="loss"
        That score; "loss": minus the loss.
    validation_fraction : float, int or None, default=0.1
        Share or number of rows held out; None: the training rows themselves.
    n_iter_no_change, tol : default=10, 1e-7
        Rounds end if none of the last so many scores exceeds the one before them by `tol`.
    verbose : int, default=0
        Whether to print a line at the end.
    random_state : int, Generator, RandomState or None, default=None
        Of the rows held out, the rows and columns drawn, the rounding of histograms.
    direction : {"newton", "gradient", "inner-product"}, default="newton"
        What a tree does: minimises Σ(gT + ½hT²) + γ·leaves + ½λ‖T‖², as XGBoost does; fits −g by least squares; or
        maximises −⟨g, T⟩ with leaves ±1.
    leaf : {"best", "minimiser", "fitted"}, default="best"
        Values of leaves: Newton's step, or the minimiser where the loss has a kink; the minimiser of the loss in any
        case (of one class alone: ±4); or what the tree has fitted.
    step : {"fixed", "line-search", "sqrt-decay"}, default="fixed"
        Steps η, η times the minimiser of the loss along the round's trees, or η/√m. A step that would raise the
        training loss is halved until it does not; on log scales Newton's steps are bounded (see `trust`).
    gamma : float, default=0.0
        γ, the price of a leaf: a split must gain ½[G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)] > γ. (XGBoost's
        program leaves out the ½, so its `gamma` is twice this one.)
    reg_lambda : float or None, default=None
        XGBoost's name of `l2_regularization`, which it replaces if it is given.
    min_hessian : float or None, default=None
        Σh that a leaf needs. None: 1e-3, as in scikit-learn.
    growth : {"leaf", "depth"}, default="leaf"
        Whether the leaf of the largest gain is split next, or level after level.
    subsample : float in (0, 1], default=1.0
        Share of the rows that a round draws, without replacement.
    sampling : {"uniform", "gradient"}, default="uniform"
        How rows are drawn: alike, or those with large gradients first and some of the others with more weight (GOSS).
    max_features_tree, max_features_level : float in (0, 1], default=1.0
        Shares of the columns drawn for each tree, and of those for each level.
    category_smoothing : float, default=10.0
        Levels of a category are tried in the order of −G/(H + smoothing), so that rare ones stay in the middle; 0 gives
        the best of all sets.
    histogram : {"auto", "float64"}, default="auto"
        "auto": beyond 4,096 rows derivatives are rounded at random to about a hundred steps of the mean one where that
        is safe, which is twice as fast; splits then may fall short of the best by a little, leaf values do not.
        "float64": sums are exact, and so is the certificate's claim.
    n_jobs : int or None, default=None
        Threads; the model does not depend on it.
    max_seconds : float or None, default=None
        Time after which the rounds end.

    Attributes
    ----------
    trees_ : Trees
        All trees as flat arrays; tree m·K + k belongs to output k in round m. Values are multiplied by the step.
    n_iter_, n_trees_per_iteration_ : int
        Rounds that are kept, and trees in each.
    baseline_ : array of shape (K,)
        Scores before the first round.
    steps_, training_loss_ : arrays of shape (n_iter_,), (n_iter_ + 1,)
        Steps ρ, and the mean training loss before the first round and after each.
    descent_ : str
        Whether the training loss falls in every round, how many rounds took a smaller step for that, or why it rises.
    do_early_stopping_ : bool
        Whether rounds could end early.
    train_score_, validation_score_ : arrays of shape (n_rounds + 1,), or empty
        Scores before the first round and after each, also after those that are not kept.
    is_categorical_ : array of bool or None
        Columns of categories.
    certificate_ : Certificate
        `greedy`: every split is the best of its candidates for the derivatives at its round, up to the rounding of
        histograms, and values, steps and training losses are those of the definition.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import HistGradientBoostingRegressor
    >>> X = np.arange(200.0)[:, None]
    >>> model = HistGradientBoostingRegressor(max_iter=50).fit(X, np.sin(X[:, 0] / 20.0))
    >>> model.score(X, np.sin(X[:, 0] / 20.0)) > 0.95, model.n_iter_
    (True, 50)
    """

    _parameters: ClassVar[dict[str, Rule]] = _PARAMETERS | {
        "loss": Options(*REGRESSION_LOSSES) | CUSTOM_LOSS,
        "quantile": Nothing() | Number(low=0.0, high=1.0) | ArrayLike(Number(low=0.0, high=1.0)),
    }

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        quantile: Any = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        direction: str = "newton",
        leaf: str = "best",
        step: str = "fixed",
        gamma: float = 0.0,
        reg_lambda: float | None = None,
        min_hessian: float | None = None,
        growth: str = "leaf",
        subsample: float = 1.0,
        sampling: str = "uniform",
        max_features_tree: float = 1.0,
        max_features_level: float = 1.0,
        category_smoothing: float = 10.0,
        histogram: str = "auto",
        n_jobs: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.direction = direction
        self.leaf = leaf
        self.step = step
        self.gamma = gamma
        self.reg_lambda = reg_lambda
        self.min_hessian = min_hessian
        self.growth = growth
        self.subsample = subsample
        self.sampling = sampling
        self.max_features_tree = max_features_tree
        self.max_features_level = max_features_level
        self.category_smoothing = category_smoothing
        self.histogram = histogram
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds

    def _level(self) -> Any:
        return self.quantile
