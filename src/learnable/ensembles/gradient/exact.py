"""Gradient boosting with exact splits: every value of a column is a candidate.

    F_m = F_{m−1} + ρ_m T_m,   T_m ≈ −∂V/∂F at F_{m−1},   minimising n⁻¹ Σ w V(y, F(x)) over sums of trees (λ = 0).

By default this is scikit-learn's (and Friedman's) TreeBoost: the tree fits the negative gradient by least squares, its
leaves take the best value for the loss (Newton's step for the logistic loss), steps are `learning_rate`. The loop and
the other directions and steps are in `driver`; columns are ranked once for all rounds (`trees.table`). Time
O(d·n·depth) per tree, memory O(dn).

Reference: J. Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29 (2001).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ...core import (
    Array,
    ArrayLike,
    DataError,
    Matches,
    NDArray,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    optional,
    param,
    resolve_n_jobs,
)
from ...trees import Columns, DecisionTreeRegressor, Grown, GrowthRule, Trees, grow
from ...trees.criteria import Target
from ...trees.settings import TreeGrowth, count_features, count_rows
from ..forest.models import _prune
from .base import BoostedClassifier, BoostedRegressor, GradientBoosting
from .driver import Rounds, power_of_two
from .losses import BoostingLoss, Squared, TwoClasses
from .settings import Part, Stopping, Watch

# --------------------------------------------------------------------------------------------------------------------
# The trees of a boosted model as models of their own, and what is said while rounds go on.


_SHARED = ("max_depth", "max_leaf_nodes", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf",
           "min_impurity_decrease", "ccp_alpha", "max_features", "max_bins", "n_jobs")  # fmt: skip


def fitted_trees(model: Any) -> NDArray[Any]:
    """Return the trees as fitted regressors, (rounds, K); they predict the score's move before the step is applied."""
    out = np.empty((len(model.steps_), model.n_trees_per_iteration_), dtype=object)
    for t in range(out.size):
        step = float(model.steps_[t // out.shape[1]])
        out.flat[t] = _one(model, t, step)
    return out


def _one(model: Any, t: int, step: float) -> DecisionTreeRegressor:
    tree = model.trees_.tree(t)
    member = DecisionTreeRegressor(**{name: getattr(model, name) for name in _SHARED if hasattr(model, name)})
    limits = getattr(model, "depth_limits_", None)
    if limits is not None:  # rounds before a warm start may have had another limit
        limit = int(limits[t // model.n_trees_per_iteration_])
        member.max_depth = None if limit < 0 else limit
    member.trees_ = replace(tree, value=tree.value / step) if step else tree
    member.n_outputs_ = 1
    member.n_features_in_ = model.n_features_in_
    member.max_features_ = model.max_features_
    member.seed_ = model.seed_
    member.ccp_alpha_ = float(model.ccp_alpha)
    return member


def constant_start(model: Any) -> Any:
    """Return the start of boosting's rounds, the best constant, as scikit-learn's constant model."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    loss = model._fitted_loss()
    before = np.asarray(model.baseline_, dtype=np.float64)[:, None]
    if model._classes:
        if not loss.link.has_probability:
            return None
        K = len(model.classes_)
        prior = DummyClassifier(strategy="prior")
        return prior.fit(
            np.zeros((K, model.n_features_in_)), model.classes_, sample_weight=loss.link.probability(before)[0]
        )
    if np.ndim(loss.link.predict(before)) != 1:
        return None  # several quantiles at once: scikit-learn has no such model
    levels = {"absolute_error": 0.5, "huber": 0.5, "quantile": model.alpha}
    if model.loss in levels:
        constant = DummyRegressor(strategy="quantile", quantile=float(levels[model.loss]))
    else:
        constant = DummyRegressor(strategy="mean")
    return constant.fit(np.zeros((1, model.n_features_in_)), loss.link.predict(before))


class Observer:
    """What happens after every round: lines are printed, a monitor is asked, early stopping looks at the scores."""

    def __init__(self, model: Any, watch: Any, keep: Callable[[Rounds], None], monitor: Any) -> None:
        self.model, self.watch, self.keep, self.monitor = model, watch, keep, monitor
        self.verbose = int(model.verbose)
        self.began, self.first = time.monotonic(), -1
        self.every = 1

    def __call__(self, rounds: Rounds, trees: list[Trees]) -> bool:
        """Look at one more round; return whether it is enough."""
        m = len(rounds.steps) - 1
        if self.verbose:
            self._print(rounds, m)
        enough = self.watch is not None and self.watch(rounds, trees)
        if self.monitor is not None:
            self.keep(rounds)
            enough = bool(self.monitor(m, self.model, {"rounds": rounds})) or enough
        return bool(enough)

    def _print(self, rounds: Rounds, m: int) -> None:
        """Print scikit-learn's line: every round up to the tenth, then every tenth, and so on; all if verbose > 1."""
        drawn = len(rounds.outside) > 0
        if self.first < 0:
            self.first = m
            names = ["Train Loss", *(["OOB Improve"] if drawn else []), "Remaining Time"]
            print(" ".join(["%10s"] + ["%16s"] * len(names)) % ("Iter", *names))
        done = m + 1
        if done % self.every == 0:
            pace = (time.monotonic() - self.began) / (done - self.first)
            left = pace * (self.model._n_rounds() - done)
            factor = self.model._score_factor()
            figures = [factor * rounds.losses[-1]]
            figures += [factor * (rounds.outside[-1][0] - rounds.outside[-1][1])] if drawn else []
            print(" ".join([f"{done:>10d}", *(f"{x:>16.4f}" for x in figures), f"{_duration(left):>16}"]))
        if self.verbose == 1 and done // (self.every * 10) > 0:
            self.every *= 10


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.2f}m" if seconds > 60 else f"{seconds:.2f}s"


LEAST_MASS = 1e-14  # of a row, relative to that of all: what a difference of sums still resolves


class ExactLearner:
    """Trees with exact splits, grown by `trees.grow`."""

    def __init__(
        self,
        X: Any,
        columns: Columns,
        rule: GrowthRule,
        reg_lambda: float,
        gamma: float,
        ccp_alpha: float,
        n_threads: int,
        stop: Any,
    ) -> None:
        self.X, self.columns, self.rule, self.reg_lambda, self.gamma = X, columns, rule, reg_lambda, gamma
        self.ccp_alpha, self.n_threads, self.stop = ccp_alpha, n_threads, stop

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing has to be given back."""

    def grow(self, direction: str, g: Array, h: Array, w: Array | None, rows: Any, seed: int) -> Grown:
        """Return a tree for the derivatives, and the leaf of every row."""
        rule, scale = self.rule, 1.0
        if direction == "newton":
            scale = power_of_two(g)
            weight = 1.0 if w is None else w
            # A row that is predicted perfectly has h = 0, but a leaf of such rows must have some mass.
            h = np.maximum(h, max(LEAST_MASS * float(h.sum()), 1e-150))
            target = Target.gradients(g / scale * weight, h * weight, reg_lambda=self.reg_lambda)
            # Gains are in units of G²/(H + λ); a split has to lower the objective, half of it, by γ.
            rule = replace(rule, min_gain=max(2.0 * self.gamma / scale**2, 0.0), min_impurity_decrease=0.0)
        elif direction == "gradient":
            target = Target.numbers(-g, weight=w)
        else:
            size = np.abs(g) if w is None else np.abs(g) * w
            target = Target.classes((g < 0).astype(np.int32), 2, criterion="misclassification", weight=size)
        found = grow(self.columns, target, rule, rows=rows, seed=seed, n_threads=self.n_threads, stop=self.stop)
        if direction == "newton" and scale != 1.0:
            found.tree.value[:] *= scale
            found.tree.impurity[:] *= scale**2
        if direction == "inner-product":
            signs = np.where(found.tree.value[:, 1] >= 0.5, 1.0, -1.0)[:, None]
            found = Grown(replace(found.tree, value=signs), found.leaf_of_row)
        elif self.ccp_alpha > 0 and direction == "gradient":
            found = Grown(*_prune(found, self.ccp_alpha))
        return complete(found, self.X, self.n_threads)


def complete(found: Grown, X: Any, n_threads: int) -> Grown:
    """Return the tree with the leaves of the rows that it was not grown on."""
    missing = np.flatnonzero(found.leaf_of_row < 0)
    if len(missing):
        found.leaf_of_row[missing] = found.tree.apply(X[missing], n_threads)[:, 0]
    return found


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
    max_features_: int = fitted("int", "Columns drawn at a node.")
    train_score_: Array = fitted(
        "array of shape (n_rounds,)",
        "The training loss after each round, times two for squares and for two classes, as in scikit-learn; over all "
        "rows, also where a round draws some.",
    )
    validation_score_: Array = fitted(
        "array of shape (n_scored + 1,), or empty",
        "Minus the loss of the rows held out, before the first round and after each, also after those not kept.",
    )
    oob_scores_: Array = fitted(
        "array of shape (n_rounds,)",
        "With `subsample` < 1: the same for the rows that the round did not draw.",
        optional=True,
    )
    oob_improvement_: Array = fitted("array of shape (n_rounds,)", "By how much these fell.", optional=True)
    oob_score_: float = fitted("float", "The last one of `oob_scores_`.", optional=True)

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
            return None, loss.targets.start(loss, y, part.w)
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
        return model, loss.link.scores_of(self._init_output(part.X))

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
        """The trees, (n_estimators_, K), as fitted regressors: F = F_0 + Σ steps_[m] · estimators_[m, k].predict.

        Also `model[m]` and `len(model)`.
        """
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


# --------------------------------------------------------------------------------------------------------------------
# Boosting with exact splits of classes.


class GradientBoostingClassifier(BoostedClassifier, ExactBoosting):
    r"""Gradient boosting for classification with exact splits: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees, one round at a time; V is the logistic loss of two classes, the
    cross-entropy of K, or the exponential loss. There is no penalty (λ = 0) besides `reg_lambda` and `gamma`. Time
    O(d·n·depth) per tree; memory O(dn).

    Examples
    --------
    >>> from learnable import GradientBoostingClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], list("aabbaa")
    >>> model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (1.0, True)
    """

    _theory = "gradient-boosting"


# --------------------------------------------------------------------------------------------------------------------
# Boosting with exact splits of numbers.


class GradientBoostingRegressor(BoostedRegressor, ExactBoosting):
    r"""Gradient boosting for regression with exact splits: scikit-learn's, and more.

    Minimises n⁻¹ Σ w V(y, F(x)) over sums of trees. Rounds, penalty, time and memory are as in
    `GradientBoostingClassifier`.

    Examples
    --------
    >>> from learnable import GradientBoostingRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 1.0, 5.0, 5.0]
    >>> model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, y)
    >>> model.predict([[0.2], [2.7]]).tolist(), model.training_loss_.tolist()
    ([1.0, 5.0], [2.0, 0.0])
    """

    _theory = "gradient-boosting"

    alpha: Any = param(
        Number(low=0.0, high=1.0, low_open=True, high_open=True) | ArrayLike(Number(low=0.0, high=1.0)),
        'Level of loss="quantile"; several, ascending, are fitted jointly and do not cross. Of '
        'loss="huber": the share of residuals that count as small.',
        default=0.9,
    )

    def _level(self) -> Any:
        return self.alpha
