r"""Gradient boosting with exact splits: every value of a column is a candidate.

    F_m = F_{m−1} + ρ_m T_m,   T_m ≈ −∂V/∂F at F_{m−1},   minimising n⁻¹ Σ w V(y, F(x)) over sums of trees (λ = 0).

By default this is scikit-learn's (and Friedman's) TreeBoost: the tree fits the negative gradient by least squares, its
leaves take the best value for the loss (Newton's step for the logistic loss), steps are `learning_rate`. The loop and
the other directions and steps are in `driver`; columns are ranked once for all rounds (`trees.columns`). Time
O(d·n·depth) a tree, memory O(dn).

Reference: J. Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29 (2001).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ...core.errors import DataError, ParameterError
from ...core.parameters import ArrayLike, Matches, Number, Options, Rule, optional
from ...core.run import Run
from ...core.threads import resolve_n_jobs
from ...trees.columns import Columns
from ...trees.grower import GrowthRule
from ...trees.settings import TREE_PARAMETERS, count_features, count_rows
from .base import GradientBoosting, Part, Stopping
from .driver import Rounds
from .exact_learner import ExactLearner
from .kinds import BoostedClassifier, BoostedRegressor
from .losses import CLASS_LOSSES, REGRESSION_LOSSES, BoostingLoss, Squared, TwoClasses
from .settings import CLASS_WEIGHT, COLUMNS, CUSTOM_LOSS, EXTRAS, SIGNS, monotone_signs

Array = NDArray[np.float64]


_PARAMETERS: dict[str, Rule] = (
    TREE_PARAMETERS
    | EXTRAS
    | {
        "learning_rate": Number(low=0.0),
        "n_estimators": Number(low=1, integer=True),
        "criterion": Options("deprecated", "squared_error", "friedman_mse"),
        "init": optional(Options("zero") | Matches(lambda v: hasattr(v, "fit") and hasattr(v, "predict"), "a model")),
        "validation_fraction": Number(low=0.0, high=1.0, low_open=True, high_open=True),
        "n_iter_no_change": optional(Number(low=1, integer=True)),
        "tol": Number(low=0.0),
        "ccp_alpha": Number(low=0.0),
        "reg_lambda": Number(low=0.0),
        "monotonic_cst": SIGNS,
        "categorical_features": COLUMNS,
    }
)


class ExactBoosting(GradientBoosting):
    """What the two models with exact splits share; not to be used directly."""

    n_estimators_: int

    def _n_rounds(self) -> int:
        return int(self.n_estimators)

    def _stopping(self, n_rows: int, given: bool) -> Stopping | None:
        if self.n_iter_no_change is None and not given:
            return None
        return Stopping(self.validation_fraction, self.n_iter_no_change or 10, self.tol)

    def _signs(self, n_outputs: int) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return monotone_signs(type(self).__name__, self.monotonic_cst, self.n_features_in_, names, n_outputs)

    def _make_learner(self, part: Part, loss: BoostingLoss, run: Run) -> ExactLearner:
        owner, (n, d) = type(self).__name__, part.X.shape
        if self.direction == "inner-product" and self._signs(loss.n_outputs) is not None:
            raise ParameterError(f"{owner}: direction='inner-product' does not know monotonic_cst; use 'newton'.")
        if self.gamma > 0 and self.direction != "newton":
            raise ParameterError(f"{owner}: gamma and reg_lambda are for direction='newton'; got {self.direction!r}.")
        n_threads = resolve_n_jobs(run.n_jobs)
        columns = Columns.build(
            part.X, max_bins=self.max_bins, categorical=self.is_categorical_, n_threads=n_threads, owner=owner
        )
        total = float(n if part.w is None else part.w.sum())
        rule = GrowthRule(
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_split=max(2, count_rows(self.min_samples_split, n)),
            min_samples_leaf=count_rows(self.min_samples_leaf, n),
            min_weight_leaf=0.0 if self.direction == "newton" else self.min_weight_fraction_leaf * total,
            max_features=count_features(owner, self.max_features, d),
            min_impurity_decrease=self.min_impurity_decrease,
            monotonic=self._signs(loss.n_outputs),
        )
        self.max_features_ = int(rule.max_features or d)
        return ExactLearner(
            part.X, columns, rule, self.reg_lambda, self.gamma, self.ccp_alpha, n_threads, run.flag.array
        )

    def _start(self, part: Part, y: Array, loss: BoostingLoss) -> tuple[Any, Array]:
        if self.init is None:
            return None, loss.start(y, part.w)
        if isinstance(self.init, str):
            return None, np.zeros(loss.n_outputs)
        if self._classes and not hasattr(self.init, "predict_proba"):
            raise ParameterError(f"{type(self).__name__}: init must have predict_proba; got {self.init!r}.")
        self.init_ = clone(self.init)
        labels = self.classes_[part.y] if self._classes else part.y
        try:
            self.init_.fit(part.X, labels, **({} if part.w is None else {"sample_weight": part.w}))
        except TypeError as error:
            raise DataError(
                f"{type(self).__name__}: the initial estimator {type(self.init).__name__} does not support sample "
                f"weights: {error}"
            ) from error
        return self.init_, loss.scores_of(self._init_output(part.X))

    def _finish(self, rounds: Rounds, loss: BoostingLoss) -> None:
        """Show scikit-learn's figures: losses after each round, twice as large for squares and log-odds."""
        factor = 2.0 if isinstance(loss, Squared) or (isinstance(loss, TwoClasses) and loss.factor == 1.0) else 1.0
        self.n_estimators_ = len(self.steps_)
        self.train_score_ = factor * self.training_loss_[1:]
        if len(self.outside_loss_) == len(self.steps_) > 0:
            before, after = factor * self.outside_loss_.T
            self.oob_scores_, self.oob_improvement_ = after.copy(), before - after
            self.oob_score_ = float(after[-1])

    @property
    def estimators_(self) -> NDArray[Any]:
        """The trees, (n_estimators_, K), each as a `Trees` of its own, its values multiplied by the step."""
        check_is_fitted(self, "trees_")
        out = np.empty((len(self.steps_), self.n_trees_per_iteration_), dtype=object)
        for t in range(out.size):
            out.flat[t] = self.trees_.tree(t)
        return out

    @property
    def feature_importances_(self) -> Array:
        """Each column's share in the fall of impurity, averaged over the trees; it sums to one."""
        check_is_fitted(self, "trees_")
        total = self.trees_.feature_importances(self.n_features_in_, normalize=False)
        return total / total.sum() if total.sum() > 0 else total

    def apply(self, X: Any) -> Array:
        """Return the leaf of each row in each tree, (n_samples, n_estimators_), or (…, n_classes) for K > 2."""
        check_is_fitted(self, "trees_")
        leaves = self.trees_.apply(self._read(X), self.n_jobs).astype(np.float64)
        K = self.n_trees_per_iteration_
        return leaves if not self._classes else leaves.reshape(len(leaves), -1, K)


class GradientBoostingClassifier(BoostedClassifier, ExactBoosting):
    r"""Gradient boosting for classification with exact splits: scikit-learn's, and more (see the last parameters).

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time; V is the logistic loss of two classes, the
    cross-entropy of K, or the exponential loss. There is no penalty (λ = 0) besides `reg_lambda` and `gamma`. Time
    O(d·n·depth) a tree; memory O(dn).

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or object, default="log_loss"
        V. Or any object with `value(y, z)` and `gradient(y, z)` (and, if there is one, `curvature(y, z)`) on arrays,
        such as those of `learnable.risk.losses`; y is ±1 for two classes, else codes, and z then has K columns.
    learning_rate : float, default=0.1
        η, the factor on every step.
    n_estimators : int, default=100
        Rounds; each has one tree, or one for each of more than two classes.
    subsample : float in (0, 1], default=1.0
        Share of the rows that a round draws, without replacement. Below one, `oob_improvement_` is there.
    criterion : {"deprecated"}, default="deprecated"
        Without effect, as in scikit-learn.
    min_samples_split, min_samples_leaf : int or share, default=2 and 1
        Rows that a node needs to be split, and to exist.
    min_weight_fraction_leaf : float, default=0.0
        Share of the weight that a node needs.
    max_depth : int or None, default=3
        Depth of the trees.
    min_impurity_decrease : float, default=0.0
        Fall of the impurity, times the node's share of the weight, that a split must reach.
    init : model, "zero" or None, default=None
        Where to start; None: at the best constant.
    random_state : int, Generator, RandomState or None, default=None
        Of the rows and columns drawn.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Columns drawn at each node.
    verbose : int, default=0
        Whether to print a line at the end.
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves.
    warm_start : bool, default=False
        Whether a next `fit` adds rounds.
    validation_fraction, n_iter_no_change, tol : default=0.1, None, 1e-4
        If `n_iter_no_change` is given (or `X_val` is passed to `fit`), rounds end when the loss of the rows held out
        has not fallen by `tol` for so many rounds; the best round is kept.
    ccp_alpha : float, default=0.0
        Weakest-link pruning of every tree; for direction="gradient".
    direction : {"gradient", "newton", "inner-product"}, default="gradient"
        What a tree does: fits −g by least squares; minimises Σ(gT + ½hT²) + γ·leaves + ½λ‖T‖², as XGBoost does; or
        maximises −⟨g, T⟩ with leaves ±1.
    leaf : {"best", "minimiser", "fitted"}, default="best"
        Values of leaves: Newton's step, or the minimiser where the loss has a kink; the minimiser of the loss in any
        case (of one class alone: ±4); or what the tree has fitted.
    step : {"fixed", "line-search", "sqrt-decay"}, default="fixed"
        Steps η, η times the minimiser of the loss along the round's trees, or η/√m.
    reg_lambda, gamma : float, default=0.0
        λ and γ of direction="newton". λ multiplies ½‖T‖², XGBoost's convention: leaves are −G/(H + λ). A split must
        lower the objective by γ: ½[G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)] ≥ γ. (XGBoost's program leaves out the
        ½, so its `gamma` is twice this one.)
    sampling : {"uniform", "gradient"}, default="uniform"
        How rows are drawn: alike, or those with large gradients first and some of the others with more weight (GOSS).
    monotonic_cst : array of -1, 0, 1, dict of names, or None, default=None
        Columns with which the score may only fall or rise.
    categorical_features : array of columns, "from_dtype" or None, default="from_dtype"
        Columns of categories, split by sets; "from_dtype": those of that type in a dataframe.
    max_bins : int or None, default=None
        None: exact splits; else bins of about equal size.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
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
    estimators_ : array of shape (n_estimators_, K)
        The trees, one by one.
    n_estimators_, n_trees_per_iteration_, max_features_ : int
        Rounds, trees in each, columns drawn at a node.
    baseline_, init_ : array of shape (K,), model or None
        Scores before the first round.
    steps_, training_loss_ : arrays of shape (n_estimators_,), (n_estimators_ + 1,)
        Steps ρ, and the mean training loss before the first round and after each.
    train_score_ : array of shape (n_estimators_,)
        The training loss after each round, times two for squares and for two classes, as in scikit-learn; over all
        rows, also where a round draws some.
    oob_scores_, oob_improvement_, oob_score_ : arrays of shape (n_estimators_,), float
        With subsample < 1: the same for the rows that the round did not draw, and by how much they fell.
    validation_score_ : array
        Minus the loss of the rows held out, before the first round and after each, also after those not kept.
    feature_importances_ : array of shape (n_features,)
        Each column's share in the fall of impurity.
    is_categorical_ : array of bool or None
        Columns of categories.
    certificate_ : Certificate
        `greedy`: every split is the best of its candidates for the derivatives at its round, and values, steps and
        training losses are those of the definition.

    Examples
    --------
    >>> from learnable import GradientBoostingClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], list("aabbaa")
    >>> model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (1.0, True)
    """

    _parameters: ClassVar[dict[str, Rule]] = _PARAMETERS | {
        "loss": Options(*CLASS_LOSSES) | CUSTOM_LOSS,
        "class_weight": CLASS_WEIGHT,
    }

    def __init__(
        self,
        *,
        loss: Any = "log_loss",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        direction: str = "gradient",
        leaf: str = "best",
        step: str = "fixed",
        reg_lambda: float = 0.0,
        gamma: float = 0.0,
        sampling: str = "uniform",
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha
        self.direction = direction
        self.leaf = leaf
        self.step = step
        self.reg_lambda = reg_lambda
        self.gamma = gamma
        self.sampling = sampling
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds


class GradientBoostingRegressor(BoostedRegressor, ExactBoosting):
    r"""Gradient boosting for regression with exact splits: scikit-learn's, and more (see the last parameters).

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time. There is no penalty (λ = 0) besides
    `reg_lambda` and `gamma`. Time O(d·n·depth) a tree; memory O(dn).

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma"} or object, \
            default="squared_error"
        V. Poisson and gamma fit the logarithm of the mean. Or any object with `value(y, z)` and `gradient(y, z)` (and,
        if there is one, `curvature(y, z)`) on arrays, such as those of `learnable.risk.losses`.
    learning_rate : float, default=0.1
        η, the factor on every step.
    n_estimators : int, default=100
        Rounds; each has one tree, or one for each of more than two classes.
    subsample : float in (0, 1], default=1.0
        Share of the rows that a round draws, without replacement. Below one, `oob_improvement_` is there.
    criterion : {"deprecated"}, default="deprecated"
        Without effect, as in scikit-learn.
    min_samples_split, min_samples_leaf : int or share, default=2 and 1
        Rows that a node needs to be split, and to exist.
    min_weight_fraction_leaf : float, default=0.0
        Share of the weight that a node needs.
    max_depth : int or None, default=3
        Depth of the trees.
    min_impurity_decrease : float, default=0.0
        Fall of the impurity, times the node's share of the weight, that a split must reach.
    init : model, "zero" or None, default=None
        Where to start; None: at the best constant.
    random_state : int, Generator, RandomState or None, default=None
        Of the rows and columns drawn.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Columns drawn at each node.
    alpha : float or array of them, default=0.9
        Level of loss="quantile"; several, ascending, are fitted jointly and do not cross. Of loss="huber": the share of
        residuals that count as small.
    verbose : int, default=0
        Whether to print a line at the end.
    max_leaf_nodes : int or None, default=None
        If given, trees grow best first up to so many leaves.
    warm_start : bool, default=False
        Whether a next `fit` adds rounds.
    validation_fraction, n_iter_no_change, tol : default=0.1, None, 1e-4
        If `n_iter_no_change` is given (or `X_val` is passed to `fit`), rounds end when the loss of the rows held out
        has not fallen by `tol` for so many rounds; the best round is kept.
    ccp_alpha : float, default=0.0
        Weakest-link pruning of every tree; for direction="gradient".
    direction : {"gradient", "newton", "inner-product"}, default="gradient"
        What a tree does: fits −g by least squares; minimises Σ(gT + ½hT²) + γ·leaves + ½λ‖T‖², as XGBoost does; or
        maximises −⟨g, T⟩ with leaves ±1.
    leaf : {"best", "minimiser", "fitted"}, default="best"
        Values of leaves: Newton's step, or the minimiser where the loss has a kink; the minimiser of the loss in any
        case (of one class alone: ±4); or what the tree has fitted.
    step : {"fixed", "line-search", "sqrt-decay"}, default="fixed"
        Steps η, η times the minimiser of the loss along the round's trees, or η/√m.
    reg_lambda, gamma : float, default=0.0
        λ and γ of direction="newton". λ multiplies ½‖T‖², XGBoost's convention: leaves are −G/(H + λ). A split must
        lower the objective by γ: ½[G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)] ≥ γ. (XGBoost's program leaves out the
        ½, so its `gamma` is twice this one.)
    sampling : {"uniform", "gradient"}, default="uniform"
        How rows are drawn: alike, or those with large gradients first and some of the others with more weight (GOSS).
    monotonic_cst : array of -1, 0, 1, dict of names, or None, default=None
        Columns with which the score may only fall or rise.
    categorical_features : array of columns, "from_dtype" or None, default="from_dtype"
        Columns of categories, split by sets; "from_dtype": those of that type in a dataframe.
    max_bins : int or None, default=None
        None: exact splits; else bins of about equal size.
    n_jobs : int or None, default=None
        Threads; the model does not depend on it.
    max_seconds : float or None, default=None
        Time after which the rounds end.

    Attributes
    ----------
    trees_ : Trees
        All trees as flat arrays; tree m·K + k belongs to output k in round m. Values are multiplied by the step.
    estimators_ : array of shape (n_estimators_, K)
        The trees, one by one.
    n_estimators_, n_trees_per_iteration_, max_features_ : int
        Rounds, trees in each, columns drawn at a node.
    baseline_, init_ : array of shape (K,), model or None
        Scores before the first round.
    steps_, training_loss_ : arrays of shape (n_estimators_,), (n_estimators_ + 1,)
        Steps ρ, and the mean training loss before the first round and after each.
    train_score_ : array of shape (n_estimators_,)
        The training loss after each round, times two for squares and for two classes, as in scikit-learn; over all
        rows, also where a round draws some.
    oob_scores_, oob_improvement_, oob_score_ : arrays of shape (n_estimators_,), float
        With subsample < 1: the same for the rows that the round did not draw, and by how much they fell.
    validation_score_ : array
        Minus the loss of the rows held out, before the first round and after each, also after those not kept.
    feature_importances_ : array of shape (n_features,)
        Each column's share in the fall of impurity.
    is_categorical_ : array of bool or None
        Columns of categories.
    certificate_ : Certificate
        `greedy`: every split is the best of its candidates for the derivatives at its round, and values, steps and
        training losses are those of the definition.

    Examples
    --------
    >>> from learnable import GradientBoostingRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 1.0, 5.0, 5.0]
    >>> model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, y)
    >>> model.predict([[0.2], [2.7]]).tolist(), model.training_loss_.tolist()
    ([1.0, 5.0], [2.0, 0.0])
    """

    _parameters: ClassVar[dict[str, Rule]] = _PARAMETERS | {
        "loss": Options(*REGRESSION_LOSSES) | CUSTOM_LOSS,
        "alpha": Number(low=0.0, high=1.0, low_open=True, high_open=True) | ArrayLike(Number(low=0.0, high=1.0)),
    }

    def __init__(
        self,
        *,
        loss: Any = "squared_error",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        alpha: Any = 0.9,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        direction: str = "gradient",
        leaf: str = "best",
        step: str = "fixed",
        reg_lambda: float = 0.0,
        gamma: float = 0.0,
        sampling: str = "uniform",
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        max_bins: int | None = None,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.alpha = alpha
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha
        self.direction = direction
        self.leaf = leaf
        self.step = step
        self.reg_lambda = reg_lambda
        self.gamma = gamma
        self.sampling = sampling
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds

    def _level(self) -> Any:
        return self.alpha
