r"""Gradient boosting with exact splits: every value of a column is a candidate.

    F_m = F_{m−1} + ρ_m T_m,   T_m ≈ −∂V/∂F at F_{m−1},   minimising n⁻¹ Σ w V(y, F(x)) over sums of trees (λ = 0).

By default this is scikit-learn's (and Friedman's) TreeBoost: the tree fits the negative gradient by least squares, its
leaves take the best value for the loss (Newton's step for the logistic loss), steps are `learning_rate`. The loop and
the other directions and steps are in `driver`; columns are ranked once for all rounds (`trees.columns`). Time
O(d·n·depth) a tree, memory O(dn).

Reference: J. Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29 (2001).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ...core.declare import fitted, param
from ...core.errors import DataError, ParameterError
from ...core.parameters import Matches, Number, Options, optional
from ...core.run import Run
from ...core.threads import resolve_n_jobs
from ...trees.columns import Columns
from ...trees.grower import GrowthRule
from ...trees.settings import TreeGrowth, count_features, count_rows
from .base import GradientBoosting
from .driver import Rounds
from .exact_learner import ExactLearner
from .loss_base import BoostingLoss
from .losses import Squared, TwoClasses
from .members import Observer, constant_start, fitted_trees
from .settings import monotone_signs
from .stopping import Part, Stopping, Watch

Array = NDArray[np.float64]


class ExactBoosting(GradientBoosting, TreeGrowth):
    """What the two models with exact splits share; not to be used directly."""

    direction: str = param(
        Options("newton", "gradient", "inner-product"),
        'What a tree does: "newton" minimises Σ(gT + ½hT²) + γ·leaves + ½λ‖T‖², as XGBoost does; '
        '"gradient" fits −g by least squares; "inner-product" maximises −⟨g, T⟩ with leaves ±1.',
        default="gradient",
    )
    max_depth: int | None = param(optional(Number(low=1, integer=True)), "Depth of the trees.", default=3)
    learning_rate: float = param(Number(low=0.0), "η, the factor on every step.", default=0.1)
    n_estimators: int = param(
        Number(low=1, integer=True), "Rounds; each has one tree, or one for each of more than two classes.", default=100
    )
    criterion: str = param(
        Options("deprecated", "squared_error", "friedman_mse"),
        "Without effect, as in scikit-learn.",
        default="deprecated",
    )
    init: Any = param(
        optional(Options("zero") | Matches(lambda v: hasattr(v, "fit") and hasattr(v, "predict"), "a model")),
        "Where to start; None: at the best constant.",
        default=None,
    )
    validation_fraction: float = param(
        Number(low=0.0, high=1.0, low_open=True, high_open=True),
        "Share of the rows that are held out if `n_iter_no_change` is given.",
        default=0.1,
    )
    n_iter_no_change: int | None = param(
        optional(Number(low=1, integer=True)),
        "If given (or if `X_val` is passed to `fit`), rounds end when the loss of the rows held out has not fallen by "
        "`tol` for so many rounds; the best round is kept.",
        default=None,
    )
    tol: float = param(Number(low=0.0), "Fall of the loss of the rows held out that counts as one.", default=1e-4)
    ccp_alpha: float = param(
        Number(low=0.0), 'Weakest-link pruning of every tree; for direction="gradient".', default=0.0
    )
    reg_lambda: float = param(
        Number(low=0.0),
        'λ of direction="newton", in ½λ‖T‖², XGBoost\'s convention: leaves are −G/(H + λ).',
        default=0.0,
    )

    _rounds_name: ClassVar[str] = "n_estimators"
    _rounds_done_name: ClassVar[str] = "estimators_.shape[0]"

    n_estimators_: int = fitted("int", "Rounds.")

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        monitor: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Training data; NaN is a missing value.
        y : array of shape (n_samples,) or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; a row of weight zero is left out.
        monitor : callable, optional
            Called after each round as `monitor(i, model, variables)`, where the model has all rounds so far; if it
            returns True, the rounds end.
        X_val, y_val, sample_weight_val : optional
            Rows that decide when to stop; otherwise some are held out where early stopping is on.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        if self.criterion != "deprecated":
            warnings.warn(
                "The parameter `criterion` is deprecated in scikit-learn and has no effect. Leave it at its default.",
                FutureWarning,
                stacklevel=2,
            )
        self._monitor = monitor
        try:
            return super().fit(X, y, sample_weight, X_val=X_val, y_val=y_val, sample_weight_val=sample_weight_val)
        finally:
            del self._monitor

    def _observer(self, watch: Watch | None, keep: Callable[[Rounds], None]) -> Any:
        monitor = getattr(self, "_monitor", None)
        return Observer(self, watch, keep, monitor) if monitor is not None or self.verbose else watch

    def _score_factor(self) -> float:
        """Return what scikit-learn's figures multiply the loss with: two for squares and for log-odds."""
        loss = self._fitted_loss()
        return 2.0 if isinstance(loss, Squared) or (isinstance(loss, TwoClasses) and loss.factor == 1.0) else 1.0

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
            owner = type(self).__name__
            raise ParameterError(
                f"{owner}: The 'init' parameter of {owner} must be a str among {{'zero'}}, None or an object "
                f"implementing 'fit' and 'predict_proba'. Got {self.init!r}."
            )
        model = self.init_ = clone(self.init)
        labels = self.classes_[part.y] if self._classes else part.y
        try:
            model.fit(part.X, labels, **({} if part.w is None else {"sample_weight": part.w}))
        except (TypeError, ValueError) as error:
            refused = isinstance(error, TypeError) or "pass parameters to specific steps" in str(error)
            if part.w is None or not refused:
                raise
            raise DataError(
                f"{type(self).__name__}: The initial estimator {type(self.init).__name__} does not support sample "
                f"weights: {error}"
            ) from error
        return model, loss.scores_of(self._init_output(part.X))

    def _finish(self, rounds: Rounds, loss: BoostingLoss, old: Any) -> None:
        """Show scikit-learn's figures: losses after each round, twice as large for squares and log-odds."""
        factor = self._score_factor()
        self.n_estimators_ = len(self.steps_)
        limit = -1 if self.max_depth is None else int(self.max_depth)
        kept = np.zeros(0, np.int64) if old is None else old.depth_limits_[: self.n_estimators_]
        self.depth_limits_ = np.r_[kept, np.full(self.n_estimators_ - len(kept), limit, np.int64)]
        self.train_score_ = factor * self.training_loss_[1:]
        if len(self.outside_loss_) == len(self.steps_) > 0:
            before, after = factor * self.outside_loss_.T
            self.oob_scores_, self.oob_improvement_ = after.copy(), before - after
            self.oob_score_ = float(after[-1])

    @property  # type: ignore[misc]
    def init_(self) -> Any:
        """Where the rounds start: the model of `init`, fitted; "zero"; or a constant model of scikit-learn."""
        if "init_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no init_ before fit.")
        model = self._start_model
        if model is not None or isinstance(self.init, str):
            return self.init if model is None else model
        return constant_start(self)

    @init_.setter
    def init_(self, model: Any) -> None:
        self.__dict__["init_"] = model

    @init_.deleter
    def init_(self) -> None:
        del self.__dict__["init_"]

    @property
    def estimators_(self) -> NDArray[Any]:
        """The trees, (n_estimators_, K), as fitted regressors: F = F_0 + Σ steps_[m] · estimators_[m, k].predict."""
        if not hasattr(self, "trees_"):
            raise AttributeError(f"{type(self).__name__} has no estimators_ before fit.")
        return fitted_trees(self)

    def __len__(self) -> int:
        """Return the number of rounds."""
        return 0 if not hasattr(self, "steps_") else len(self.steps_)

    def __getitem__(self, round_number: int) -> NDArray[Any]:
        """Return the trees of a round."""
        return np.asarray(self.estimators_[round_number])

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Iterate over the rounds' trees."""
        return iter(self.estimators_)

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
