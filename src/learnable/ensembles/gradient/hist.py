r"""Gradient boosting on histograms: values in at most 255 bins, trees by sums of derivatives over bins.

    F_m = F_{m−1} + ρ_m T_m,    T_m = argmin Σ w(gT + ½hT²) + γ·leaves + ½λ‖T‖²,    g, h = V′, V″ at F_{m−1}

over trees whose cuts lie between bins: second-order boosting of the risk n⁻¹ Σ w V(y, F(x)) (in these units the penalty
on a round's leaf values is λ/(2n), XGBoost's convention). Leaves are −G/(H + λ); losses with a kink get the best value
of each leaf. Scores, parameters and attributes are scikit-learn's; the trees are `trees.histogram_grower`'s. Time O(nd)
a tree, memory about two bytes a cell and 50 bytes a row. From files and Dask the codes of the bins are kept in memory,
not the rows (`streams`).

References: J. Friedman, Annals of Statistics 29 (2001); T. Chen and C. Guestrin, XGBoost, KDD 2016; G. Ke et al.,
LightGBM, NIPS 2017.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError, ParameterError
from ...core.parameters import ArrayLike, Boolean, Matches, Nothing, Number, Options, Rule, optional
from ...core.run import Run
from ...core.threads import resolve_n_jobs
from ...data.door import Table
from ...trees.bins import BinnedTable
from ...trees.histogram_grower import HistogramRule
from ...trees.tree_model import TOLERANCE
from .base import GradientBoosting, Part, Stopping
from .driver import Rounds
from .hist_learner import HistLearner
from .kinds import BoostedClassifier, BoostedRegressor
from .losses import CLASS_LOSSES, REGRESSION_LOSSES, BoostingLoss
from .settings import (
    CLASS_WEIGHT,
    COLUMNS,
    CUSTOM_LOSS,
    EXTRAS,
    SHARE,
    SIGNS,
    hold_out,
    interaction_sets,
    monotone_signs,
)
from .streams import Encoded, read_codes, read_rows, read_targets

Array = NDArray[np.float64]

_MANY_ROWS = 10_000  # from here on "auto" stops early, as in scikit-learn
_FEW_ROWS = 4096  # up to here exact sums cost next to nothing
#: Largest shortfall of a split, as a share of what its tree could gain, that rounded derivatives explain.
ROUNDED = 1e-2

_PARAMETERS: dict[str, Rule] = EXTRAS | {
    "learning_rate": Number(low=0.0, low_open=True),
    "max_iter": Number(low=1, integer=True),
    "max_leaf_nodes": optional(Number(low=2, integer=True)),
    "max_depth": optional(Number(low=1, integer=True)),
    "min_samples_leaf": Number(low=1, integer=True),
    "l2_regularization": Number(low=0.0),
    "reg_lambda": optional(Number(low=0.0)),
    "min_hessian": Number(low=0.0),
    "category_smoothing": Number(low=0.0),
    "max_features": SHARE,
    "max_features_tree": SHARE,
    "max_features_level": SHARE,
    "max_bins": Number(low=2, high=255, integer=True),
    "categorical_features": COLUMNS,
    "monotonic_cst": SIGNS,
    "interaction_cst": Options("pairwise", "no_interactions")
    | optional(Matches(lambda v: isinstance(v, (list, tuple)), "a list of sets of columns")),
    "early_stopping": Options("auto") | Boolean(),
    "scoring": Nothing() | Matches(lambda v: isinstance(v, str) or callable(v), "'loss', a name, a scorer"),
    "validation_fraction": Nothing()
    | Number(low=1, integer=True)
    | Number(low=0.0, high=1.0, low_open=True, high_open=True),
    "n_iter_no_change": Number(low=1, integer=True),
    "tol": Number(low=0.0),
    "growth": Options("leaf", "depth"),
    "histogram": Options("auto", "float64"),
}


class HistBoosting(GradientBoosting):
    """What the two models on histograms share; not to be used directly."""

    n_iter_: int

    def _n_rounds(self) -> int:
        return int(self.max_iter)

    def _stopping(self, n_rows: int, given: bool) -> Stopping | None:
        if given and self.early_stopping is False:
            raise ParameterError(
                f"{type(self).__name__}: X_val and y_val are passed to fit while early_stopping is False; set it to "
                "'auto' or True."
            )
        stops = given or n_rows > _MANY_ROWS if self.early_stopping == "auto" else self.early_stopping
        if not stops:
            return None
        return Stopping(self.validation_fraction, self.n_iter_no_change, self.tol, self.scoring)

    def _signs(self, n_outputs: int) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return monotone_signs(type(self).__name__, self.monotonic_cst, self.n_features_in_, names, n_outputs)

    def _exact_sums(self, part: Part) -> bool:
        """Tell whether histograms are sums in float64: of few rows, and where weights are too wide to be rounded."""
        wide = part.w is not None and float(part.w.max()) > 1e3 * float(part.w.min())
        return bool(wide or self.histogram == "float64" or part.X.shape[0] <= _FEW_ROWS)

    def _claim(self, part: Part) -> float:
        return TOLERANCE if self._exact_sums(part) or self.direction == "inner-product" else ROUNDED

    def _rule(self, n_outputs: int, part: Part) -> HistogramRule:
        """Return what the trees may do."""
        second = self.direction == "newton"
        if self.gamma > 0 and not second:
            raise ParameterError(
                f"{type(self).__name__}: gamma is for direction='newton'; got direction={self.direction!r}."
            )
        return HistogramRule(
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            min_hessian=self.min_hessian if second else 0.0,
            reg_lambda=self._lambda() if second else 0.0,
            gamma=self.gamma,
            growth=self.growth,
            monotonic=self._signs(n_outputs),
            interactions=interaction_sets(type(self).__name__, self.interaction_cst, self.n_features_in_),
            columns_per_tree=self.max_features_tree,
            columns_per_level=self.max_features_level,
            columns_per_node=self.max_features,
            category_smoothing=self.category_smoothing,
            histogram="float64" if self._exact_sums(part) else "auto",
        )

    def _lambda(self) -> float:
        return float(self.l2_regularization if self.reg_lambda is None else self.reg_lambda)

    def _parts(self, table: Table, run: Run) -> tuple[Part, Part | None, Stopping | None]:
        if table.in_memory:
            return super()._parts(table, run)
        self._refuse_what_needs_rows(run)
        owner, blocks, jobs = type(self).__name__, table.blocks, run.n_jobs
        y, given_weight = read_targets(blocks, table.classes, jobs)
        w = self._row_weight(replace(table, y=y, weight=given_weight))
        given = getattr(self, "_validation", None)
        stopping, fit, held = self._stopping(len(y), given is not None), None, None
        self.n_held_out_ = 0
        if given is not None:
            held = self._read_validation(*given)
        elif stopping is not None and stopping.fraction is not None:
            fit, out = hold_out(owner, y, table.classes is not None, stopping.fraction, self.seed_)
            held = Part(read_rows(blocks, out, jobs), y[out], None if w is None else w[out])
            self.n_held_out_ = len(out)
        n_rows = len(y)
        if fit is not None:
            y, w = y[fit], None if w is None else w[fit]
        binned = read_codes(blocks, fit, n_rows, self.max_bins, w, self.seed_ % 2**32, jobs, owner)
        return Part(Encoded(binned, (len(y), table.n_columns)), y, w), held, stopping

    def _refuse_what_needs_rows(self, run: Run) -> None:
        owner = type(self).__name__
        if self.warm_start and hasattr(run.previous, "trees_"):
            raise DataError(f"{owner}: warm_start needs all rows in memory; set warm_start=False for files and Dask.")
        if self.direction == "inner-product":
            raise DataError(f"{owner}: direction='inner-product' needs all rows in memory; use 'newton' or 'gradient'.")
        if not (self.categorical_features is None or isinstance(self.categorical_features, str)):
            raise DataError(f"{owner}: categories need all rows in memory; encode them as numbers, or read the table.")

    def _bin(self, part: Part, n_threads: int) -> BinnedTable:
        if isinstance(part.X, Encoded):
            return part.X.binned
        return BinnedTable.build(
            part.X,
            max_bins=self.max_bins,
            categorical=self.is_categorical_,
            weight=part.w,
            seed=self.seed_ % 2**32,
            n_threads=n_threads,
            owner=type(self).__name__,
        )

    def _make_learner(self, part: Part, loss: BoostingLoss, run: Run) -> HistLearner:
        rule = self._rule(loss.n_outputs, part)
        if self.direction == "inner-product" and (rule.monotonic is not None or rule.interactions is not None):
            raise ParameterError(
                f"{type(self).__name__}: direction='inner-product' does not know constraints; use 'newton'."
            )
        n_threads = resolve_n_jobs(run.n_jobs)
        return HistLearner(part.X, self._bin(part, n_threads), rule, self.max_bins, n_threads, run.flag.array)

    def _finish(self, rounds: Rounds, loss: BoostingLoss) -> None:
        self.n_iter_ = len(self.steps_)


class HistGradientBoostingClassifier(BoostedClassifier, HistBoosting):
    r"""Gradient boosting for classification on histograms: scikit-learn's, and more (see the last parameters).

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time; V is the logistic loss of two classes, the
    cross-entropy of K, or the exponential loss. A round minimises the second-order expansion plus γ·leaves + ½λ‖T‖²,
    which is λ/(2n) for the mean. Memory: two bytes a cell, 50 a row.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or object, default="log_loss"
        V. Or any object with `value(y, z)` and `gradient(y, z)` (and, if there is one, `curvature(y, z)`) on arrays,
        such as those of `learnable.risk.losses`; y is ±1 for two classes, else codes, and z then has K columns.
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
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    direction : {"newton", "gradient", "inner-product"}, default="newton"
        What a tree does: minimises Σ(gT + ½hT²) + γ·leaves + ½λ‖T‖², as XGBoost does; fits −g by least squares; or
        maximises −⟨g, T⟩ with leaves ±1.
    leaf : {"best", "minimiser", "fitted"}, default="best"
        Values of leaves: Newton's step, or the minimiser where the loss has a kink; the minimiser of the loss in any
        case (of one class alone: ±4); or what the tree has fitted.
    step : {"fixed", "line-search", "sqrt-decay"}, default="fixed"
        Steps η, η times the minimiser of the loss along the round's trees, or η/√m.
    gamma : float, default=0.0
        γ, the price of a leaf: a split must gain ½[G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)] > γ. (XGBoost's
        program leaves out the ½, so its `gamma` is twice this one.)
    reg_lambda : float or None, default=None
        XGBoost's name of `l2_regularization`, which it replaces if it is given.
    min_hessian : float, default=1e-3
        Σh that a leaf needs.
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
    classes_ : array of shape (n_classes,)
        The labels.
    trees_ : Trees
        All trees as flat arrays; tree m·K + k belongs to output k in round m. Values are multiplied by the step.
    n_iter_, n_trees_per_iteration_ : int
        Rounds that are kept, and trees in each.
    baseline_ : array of shape (K,)
        Scores before the first round.
    steps_, training_loss_ : arrays of shape (n_iter_,), (n_iter_ + 1,)
        Steps ρ, and the mean training loss before the first round and after each.
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
    >>> from learnable import HistGradientBoostingClassifier
    >>> X = np.arange(200.0)[:, None]
    >>> y = np.where(X[:, 0] % 100 < 50, "low", "high")
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (1.0, True)
    """

    _parameters: ClassVar[dict[str, Rule]] = _PARAMETERS | {
        "loss": Options(*CLASS_LOSSES) | CUSTOM_LOSS,
        "class_weight": CLASS_WEIGHT,
    }

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
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
        class_weight: Any = None,
        direction: str = "newton",
        leaf: str = "best",
        step: str = "fixed",
        gamma: float = 0.0,
        reg_lambda: float | None = None,
        min_hessian: float = 1e-3,
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
        self.class_weight = class_weight
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


class HistGradientBoostingRegressor(BoostedRegressor, HistBoosting):
    r"""Gradient boosting for regression on histograms: scikit-learn's, and more (see the last parameters).

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time. A round minimises the second-order expansion
    plus γ·leaves + ½λ‖T‖², which is λ/(2n) for the mean. Memory: two bytes a cell, 50 a row.

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
        Steps η, η times the minimiser of the loss along the round's trees, or η/√m.
    gamma : float, default=0.0
        γ, the price of a leaf: a split must gain ½[G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)] > γ. (XGBoost's
        program leaves out the ½, so its `gamma` is twice this one.)
    reg_lambda : float or None, default=None
        XGBoost's name of `l2_regularization`, which it replaces if it is given.
    min_hessian : float, default=1e-3
        Σh that a leaf needs.
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
    >>> model.score(X, np.sin(X[:, 0] / 20.0)) > 0.99, model.n_iter_
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
        min_hessian: float = 1e-3,
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
