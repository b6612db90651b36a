"""Boosting with exact splits of numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.parameters import ArrayLike, Number, Options, Rule
from .exact import _PARAMETERS, ExactBoosting
from .kinds import BoostedRegressor
from .losses import REGRESSION_LOSSES
from .settings import CUSTOM_LOSS

Array = NDArray[np.float64]


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
        Steps η, η times the minimiser of the loss along the round's trees, or η/√m. A step that would raise the
        training loss is halved until it does not; on log scales Newton's steps are bounded (see `trust`).
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
        The trees as fitted `DecisionTreeRegressor`s, before the step is applied; also `model[m]`, `len(model)`.
    n_estimators_, n_trees_per_iteration_, max_features_ : int
        Rounds, trees in each, columns drawn at a node.
    baseline_, init_ : array of shape (K,), model or None
        Scores before the first round.
    steps_, training_loss_ : arrays of shape (n_estimators_,), (n_estimators_ + 1,)
        Steps ρ, and the mean training loss before the first round and after each.
    descent_ : str
        Whether the training loss falls in every round, how many rounds took a smaller step for that, or why it rises.
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
