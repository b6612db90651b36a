"""What all boosted models share: the door, the fit around the loop, early stopping, scores, invariants when loaded.

A subclass says what grows its trees (`_make_learner`), when it stops early (`_stopping`) and what scikit-learn calls
its results (`_finish`). The trees of all rounds lie in one `Trees`: tree m·K + k is that of output k in round m, and
its values are multiplied by the step already, so that F_k(x) = baseline_k + Σ_m value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ...core import (
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    Array,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    NDArray,
    Number,
    Options,
    ParameterError,
    Run,
    are_counts,
    fitted,
    hook,
    is_array,
    is_labels,
    law,
    laws,
    param,
    passes,
    tags,
)
from ...data.any_order import ledgers_by_group, read_ledger
from ...data.door import Table, read_features, read_target, read_weight, take_named_columns
from ...data.sources import NamedScore, named_columns, rowwise
from ...trees._random import seed_of
from ...trees.decision_tree import TOLERANCE
from ...trees.layout import Trees, concatenate
from ...trees.predict import Predictor
from ..explain.effects import ExplainedTrees, PredictiveDistribution
from .distribution import JointQuantiles
from .driver import Plan, Rounds, boost, describe_descent, stack_values, staged_raw
from .losses import CLASS_LOSSES, REGRESSION_LOSSES, BoostingLoss, class_loss, regression_loss
from .settings import (
    CLASS_WEIGHT,
    COLUMNS,
    CUSTOM_LOSS,
    SHARE,
    SIGNS,
    Part,
    Stopping,
    Watch,
    boosting_door,
    check_levels,
    class_factors,
    encode,
    hold_out,
    monotone_signs,
    take_rows,
)


class GradientBoosting(ExplainedTrees, Estimator):
    """Base of the boosted models; not to be used directly."""

    direction: str = param(
        Options("newton", "gradient", "inner-product"),
        'What a tree does: "newton" minimises Σ(gT + ½hT²) + γ·leaves + ½λ‖T‖², as XGBoost does; '
        '"gradient" fits −g by least squares; "inner-product" maximises −⟨g, T⟩ with leaves ±1.',
        default="newton",
    )
    leaf: str = param(
        Options("best", "minimiser", "fitted"),
        "Values of leaves: Newton's step, or the minimiser where the loss has a kink; the minimiser of the "
        "loss in any case (of one class alone: ±4); or what the tree has fitted.",
        default="best",
    )
    step: str = param(
        Options("fixed", "line-search", "sqrt-decay"),
        "Steps η, η times the minimiser of the loss along the round's trees, or η/√m. A step that would raise "
        "the training loss is halved until it does not; on log scales Newton's steps are bounded.",
        default="fixed",
    )
    gamma: float = param(
        Number(low=0.0),
        'γ of direction="newton", the price of a leaf: a split must gain ½[G_L²/(H_L + λ) + G_R²/(H_R + λ) '
        "− G²/(H + λ)] ≥ γ. (XGBoost's program leaves out the ½, so its `gamma` is twice this one.)",
        default=0.0,
    )
    sampling: str = param(
        Options("uniform", "gradient"),
        "How rows are drawn: alike, or those with large gradients first and some of the others with more "
        "weight (GOSS).",
        default="uniform",
    )
    subsample: float = param(
        SHARE,
        "Share of the rows that a round draws, without replacement. With exact splits, below one, "
        "`oob_improvement_` is there.",
        default=1.0,
    )
    warm_start: bool = param(Boolean(), "Whether a next `fit` adds rounds.", default=False)
    verbose: int = param(
        Boolean() | Number(low=0, integer=True), "1: print a line at the end, 2: one after each round too.", default=0
    )
    random_state: Any = param(
        RANDOM_STATE, "Of the rows held out, the rows and columns drawn, and the rounding of histograms.", default=None
    )
    n_jobs: int | None = param(N_JOBS, "Threads; the model does not depend on it.", default=None)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the rounds end.", default=None)
    monotonic_cst: Any = param(SIGNS, "Columns with which the score may only fall or rise.", default=None)
    categorical_features: Any = param(
        COLUMNS,
        'Columns of categories, split by sets of levels; "from_dtype": those of that type in a dataframe. '
        "On histograms, of more than `max_bins` levels the rarest share a bin.",
        default="from_dtype",
    )

    _remedy: ClassVar[str] = "fit again"
    _classes: ClassVar[bool] = False
    #: Whether X may hold infinity.
    _infinite: ClassVar[bool] = False
    _rounds_name: ClassVar[str] = "max_iter"
    _rounds_done_name: ClassVar[str] = "n_iter_"

    trees_: Trees = fitted(
        "Trees",
        "All trees as flat arrays; tree m·K + k belongs to output k in round m. Values are multiplied by the step.",
    )
    baseline_: Array = fitted("(n_trees_per_iteration_,)", "Scores before the first round.")
    n_features_in_: int = fitted("int", "Number of columns.")
    n_trees_per_iteration_: int = fitted("int", "Trees in each round, K.")
    is_categorical_: NDArray[np.bool_] | None = fitted("array of bool or None", "Columns of categories.")
    levels_: list[NDArray[Any]] | None = fitted("list of arrays or None", "The levels of these columns.")
    steps_: Array = fitted("(n_rounds,)", "Steps ρ.", kind="f8", finite=False)
    training_loss_: Array = fitted("array", "The mean training loss before the first round and after each.")
    do_early_stopping_: bool = fitted("bool", "Whether rounds could end early.")
    train_score_: Array = fitted("array", "Scores of the training rows, at the start and after each round.")
    validation_score_: Array = fitted("array", "The same of the rows held out; empty where there are none.")
    init_: Any = fitted("model or None", "Where the rounds start, if `init` is given.")
    certificate_: Certificate = fitted(
        "Certificate",
        "`greedy`: every split is the best of its candidates for the derivatives at its round, on histograms up to "
        "their rounding, and values, steps and training losses are those of the definition.",
    )
    _tags = tags(sparse=True, allow_nan=True)

    # What the subclasses say

    _loss = hook("(n_classes) → BoostingLoss")

    def _row_weight(self, table: Table) -> Array | None:
        """Return the weights of the rows, those of their classes included."""
        return table.weight

    _n_rounds = hook("() → int")
    _stopping = hook("(n_rows, given) → Stopping | None")
    _make_learner = hook("(part, loss, run) → Any")

    def _observer(self, watch: Watch | None, keep: Callable[[Rounds], None]) -> Any:
        """Return what is called after every round."""
        return watch

    def _finish(self, rounds: Rounds, loss: BoostingLoss, old: Any) -> None:
        """Set what scikit-learn calls the results."""

    def _signs(self, n_outputs: int) -> Any:
        """Return the monotone constraints, checked."""
        names = getattr(self, "feature_names_in_", None)
        return monotone_signs(type(self).__name__, self.monotonic_cst, self.n_features_in_, names, n_outputs)

    def _claim(self, part: Part) -> float:
        """Return the largest shortfall of a split, as a share of what its tree could gain, that is claimed."""
        return TOLERANCE

    # The fit

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            Training data; NaN is a missing value.
        y : array of shape (n_samples,) or str
            Targets; with a dataframe, a path or a Dask frame, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows; a row of weight zero is left out.
        X_val, y_val, sample_weight_val : optional
            Rows that decide when to stop; otherwise some are held out where early stopping is on.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        if (X_val is None) != (y_val is None):
            given, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
            raise DataError(f"{type(self).__name__}: {given} is provided, but {missing} was not provided; pass both.")
        self._validation = None if X_val is None else (X_val, y_val, sample_weight_val)
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._validation

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        n_classes = 0 if table.classes is None else len(table.classes)
        if table.classes is not None:
            self.classes_ = np.asarray(table.classes)
        old = run.previous if self.warm_start and hasattr(run.previous, "trees_") else None
        self.seed_ = seed_of(self.random_state) if old is None else old.seed_
        loss = self._loss(n_classes)
        self.n_trees_per_iteration_ = loss.n_outputs
        part, held, stopping = self._parts(table, run)
        if table.classes is None:
            loss.targets.check(owner, part.y)
        y = loss.targets.truth(part.y)
        rounds = self._begin(old, part, y, loss)
        watch = None if stopping is None else Watch(self, loss, part, y, held, stopping, rounds, old)
        done = len(rounds.steps)
        plan = self._plan(loss)
        signs, categorical = plan.monotonic, self.is_categorical_
        if signs is not None and categorical is not None and signs[categorical].any():
            raise ParameterError(
                f"{owner}: Categorical features cannot have monotonic constraints; they have no order."
            )

        def keep(rounds: Rounds, watch: Watch | None = None) -> None:
            self._store(rounds, old, done, watch)
            self._finish(rounds, loss, old)

        with self._make_learner(part, loss, run) as learner:
            boost(loss, y, part.w, learner, plan, run, rounds, self._observer(watch, keep), empty=part.empty)
        keep(rounds, watch)
        return self._certified(self._claim(part))

    def _certified(self, claim: float) -> Certificate:
        """Return the certificate of a fit whose splits fall short of the best by at most `claim`."""
        exact = claim <= TOLERANCE
        return Certificate("greedy", 0.0 if exact else claim, claim, n_iter=self._rounds_done(), by_construction=True)

    def _parts(self, table: Table, run: Run) -> tuple[Part, Part | None, Stopping | None]:
        """Return the rows to fit on, those that decide when to stop, and the rule for it."""
        owner = type(self).__name__
        table.require_memory(
            f"{owner}: exact splits need all rows in memory. Use HistGradientBoosting for files and Dask, or pass "
            "fewer rows."
        )
        whole = Part(table.X, table.y, self._row_weight(table))
        self.n_held_out_ = 0
        given = getattr(self, "_validation", None)
        stopping = self._stopping(table.n_rows, given is not None)
        if stopping is None or (given is None and stopping.fraction is None):
            return whole, None, stopping
        if given is not None:
            return whole, self._read_validation(*given), stopping
        fit, held = hold_out(owner, table.y, table.classes is not None, stopping.fraction, self.seed_)
        self.n_held_out_ = len(held)
        return take_rows(whole, fit), take_rows(whole, held), stopping

    def _read_validation(self, X: Any, y: Any, weight: Any) -> Part:
        owner = type(self).__name__
        X, y, weight = take_named_columns(owner, X, y, weight)
        features = self._read(X)
        y, labels = read_target(owner, y, "classes" if self._classes else "numeric", False)
        if y is None or len(y) != features.shape[0]:
            raise DataError(f"{owner}: X_val has {features.shape[0]} rows; y_val must have one target for each.")
        w = read_weight(owner, weight, features.shape[0])
        if not self._classes:
            return Part(features, y, w)
        codes = {label: code for code, label in enumerate(self.classes_.tolist())}
        strange = [label for label in np.asarray(labels).tolist() if label not in codes]
        if strange:
            raise DataError(f"{owner}: y_val has labels that y does not have: {strange[:5]!r}.")
        return Part(features, np.array([codes[label] for label in np.asarray(labels).tolist()])[y], w)

    def _begin(self, old: Any, part: Part, y: Array, loss: BoostingLoss) -> Rounds:
        """Return the scores of the training rows before the first round, or after those of a warm start."""
        n = part.X.shape[0]
        if old is not None:
            self._refuse_other_table(old, part)
            self.baseline_, self.init_ = old.baseline_, old._start_model
            raw = old._raw_of(part.X)
            outside = [(float(a), float(b)) for a, b in old.outside_loss_]
            if self.subsample < 1.0:  # rounds that drew no rows have no others: zeros, as in scikit-learn
                outside += [(0.0, 0.0)] * (len(old.steps_) - len(outside))
            return Rounds(raw, [], old.steps_.tolist(), old.training_loss_.tolist(), outside)
        self.init_, start = self._start(part, y, loss)
        self.baseline_ = np.zeros(loss.n_outputs) if start.ndim == 2 else start
        F = part.empty((loss.n_outputs, n))
        F[:] = start.reshape(loss.n_outputs, -1)
        return Rounds(F)

    def _start(self, part: Part, y: Array, loss: BoostingLoss) -> tuple[Any, Array]:
        """Return the model of the start, or None, and its scores: (K,) if they are constant, else (K, n)."""
        return None, loss.targets.start(loss, y, part.w)

    def _refuse_other_table(self, old: Any, part: Part) -> None:
        owner, total = type(self).__name__, self._n_rounds()
        if part.X.shape[1] != old.n_features_in_ or old.n_trees_per_iteration_ != self.n_trees_per_iteration_:
            raise DataError(
                f"{owner}: warm_start goes on with {old.n_features_in_} columns and {old.n_trees_per_iteration_} "
                f"score(s); got {part.X.shape[1]} and {self.n_trees_per_iteration_}. Set warm_start=False."
            )
        if total < len(old.steps_):
            raise ParameterError(
                f"{owner}: {self._rounds_name}={total} must be larger than or equal to "
                f"{self._rounds_done_name}={len(old.steps_)} when warm_start==True; set warm_start=False to begin anew."
            )

    def _plan(self, loss: BoostingLoss) -> Plan:
        return Plan(
            self._n_rounds(),
            self.learning_rate,
            self.step,
            self.direction,
            self.leaf,
            self.subsample,
            self.sampling,
            self.seed_,
            self._signs(loss.n_outputs),
        )

    def _store(self, rounds: Rounds, old: Any, done: int, watch: Any) -> None:
        """Keep the trees up to the best round."""
        K = self.n_trees_per_iteration_
        best = len(rounds.steps) if watch is None else max(watch.best_round(len(rounds.steps)), done)
        parts = [] if old is None else [old.trees_]
        parts += rounds.trees[: (best - done) * K]
        self.trees_ = concatenate(parts)
        self.steps_ = np.array(rounds.steps[:best])
        self.training_loss_ = np.array(rounds.losses[: best + 1])
        self.outside_loss_ = np.array(rounds.outside[:best], dtype=np.float64).reshape(-1, 2)
        self.do_early_stopping_ = watch is not None
        self.validation_score_ = np.array([] if watch is None or watch.held is None else watch.scores)
        self.train_score_ = np.array([] if watch is None else watch.train_scores)

    def _rounds_done(self) -> int:
        return len(self.steps_)

    @property
    def descent_(self) -> str:
        """Whether the training loss falls in every round, how many took a smaller step for that, or why it rises."""
        check_is_fitted(self, "trees_")
        return describe_descent(self.training_loss_, self.steps_, self._plan(self._fitted_loss()), self.loss)

    # What a fitted model computes

    def _read(self, X: Any) -> Any:
        """Return the features of new rows as numbers, categories as codes."""
        check_is_fitted(self, "is_categorical_")
        if self.is_categorical_ is not None:
            X = encode(type(self).__name__, X, self.is_categorical_, self.levels_ or [])
        return read_features(self, X, missing=True, infinite=self._infinite)

    def _raw(self, X: Any) -> Array:
        """Return the scores of new rows, (K, n)."""
        check_is_fitted(self)
        return self._raw_of(self._read(X))

    def _raw_of(self, X: Any) -> Array:
        fixed = getattr(self, "_scores", None)  # while a fit is judged by a scorer
        if fixed is not None:
            return fixed
        raw = self._raw_start(X)
        K = self.n_trees_per_iteration_
        for k, trees in enumerate([self.trees_] if K == 1 else stack_values(self.trees_, K)):
            raw[k] += Predictor.sum_of(trees, X, self.n_jobs)[:, 0]
        return raw

    def _raw_start(self, X: Any) -> Array:
        raw = np.tile(self.baseline_[:, None], (1, X.shape[0]))
        if self._start_model is not None:
            raw += self._fitted_loss().link.scores_of(self._init_output(X))
        return raw

    @property
    def _start_model(self) -> Any:
        """The model of `init`, fitted; None where the rounds start at a constant."""
        return vars(self).get("init_")

    def _init_output(self, X: Any) -> Array:
        model = self._start_model
        return np.asarray(model.predict_proba(X) if self._classes else model.predict(X), dtype=np.float64)

    def _fitted_loss(self) -> BoostingLoss:
        return self._loss(len(self.classes_) if self._classes else 0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trees_") or hasattr(self, "_scores")

    _laws = laws(
        law("{owner}: trees_ must be trees", lambda model: isinstance(model.trees_, Trees), "trees_"),
        law(
            "{owner}: sizes must be whole numbers",
            lambda model: (
                are_counts(model, "n_trees_per_iteration_", "n_features_in_")
                and min(model.n_trees_per_iteration_, model.n_features_in_) >= 1
            ),
            "trees_",
        ),
        law("{owner}: seed_ must be a whole number", lambda model: type(model.seed_) is int, "trees_"),
        law("{owner}: trees_ are damaged", lambda model: passes(model.trees_.check, model.n_features_in_, 1), "trees_"),
        law(
            "{owner}: rounds and trees differ",
            lambda model: (
                is_array(model.training_loss_, (len(model.steps_) + 1,))
                and model.trees_.n_trees == len(model.steps_) * model.n_trees_per_iteration_
            ),
            "trees_",
        ),
        law(
            "{owner}: baseline_ must hold K numbers",
            lambda model: is_array(model.baseline_, (model.n_trees_per_iteration_,), finite=True),
            "trees_",
        ),
        law(
            "{owner}: the levels of the categories are damaged",
            lambda model: passes(check_levels, model.is_categorical_, model.levels_, model.n_features_in_),
            "trees_",
        ),
        law("{owner}: classes_ is odd", lambda model: not model._classes or is_labels(model.classes_), "trees_"),
        law(
            "{owner}: classes_ and trees_ do not fit together",
            lambda model: (
                not model._classes
                or (1 if len(model.classes_) == 2 else len(model.classes_)) == model.n_trees_per_iteration_
            ),
            "trees_",
        ),
    )


def _has_probability(model: Any) -> bool:
    return isinstance(model.loss, str) or hasattr(model.loss, "probability")


class BoostedClassifier(NamedScore, ClassifierMixin, GradientBoosting):
    """Base of the boosted classifiers; not to be used directly."""

    loss: Any = param(
        Options(*CLASS_LOSSES) | CUSTOM_LOSS,
        "V. Or any object with `value(y, z)` and `gradient(y, z)` (and, if there is one, `curvature(y, z)`) "
        "on arrays, such as those of `learnable.risk.losses`; y is ±1 for two classes, else codes, and z then "
        "has K columns.",
        default="log_loss",
    )
    class_weight: Any = param(CLASS_WEIGHT, "Weights of the classes.", default=None)

    _classes: ClassVar[bool] = True
    _door = staticmethod(boosting_door("classes"))

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")

    def _loss(self, n_classes: int) -> BoostingLoss:
        return class_loss(type(self).__name__, self.loss, n_classes)

    def _row_weight(self, table: Table) -> Array | None:
        if self.class_weight is None:
            return table.weight
        ledgers = ledgers_by_group(table.y, table.weight, len(table.classes))
        factor = self._class_factors(table.classes, ledgers)[table.y]
        return factor if table.weight is None else factor * table.weight

    def _class_factors(self, classes: Any, ledgers: NDArray[np.int64]) -> Array:
        """Return what `class_weight` multiplies the weights of each class with, from the sums of their weights."""
        return class_factors(type(self).__name__, self.class_weight, classes, [read_ledger(own) for own in ledgers])

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the largest score.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        """
        return self._labels(self._raw(X))

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores F(x): (n_samples,) for two classes, else (n_samples, n_classes)."""
        return _shaped(self._raw(X))

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, (n_samples, n_classes)."""
        raw = self._raw(X)
        return self._fitted_loss().link.probability(raw)

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield the scores after each round."""
        for raw in self._staged(X):
            yield _shaped(raw.copy())

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the labels after each round."""
        for raw in self._staged(X):
            yield self._labels(raw)

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Yield the probabilities after each round."""
        for raw in self._staged(X):
            yield self._fitted_loss().link.probability(raw)

    def _staged(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self, "trees_")
        return staged_raw(self, self._read(X))

    def _labels(self, raw: Array) -> NDArray[Any]:
        codes = (raw[0] > 0).astype(np.int64) if len(raw) == 1 else raw.argmax(axis=0)
        return self.classes_[codes]


class BoostedRegressor(NamedScore, RegressorMixin, PredictiveDistribution, GradientBoosting):
    """Base of the boosted regressors; not to be used directly."""

    loss: Any = param(
        Options(*REGRESSION_LOSSES) | CUSTOM_LOSS,
        "V. Poisson and gamma fit the logarithm of the mean. Or any object with "
        "`value(y, z)` and `gradient(y, z)` (and, if there is one, `curvature(y, z)`) on arrays, such as "
        "those of `learnable.risk.losses`.",
        default="squared_error",
    )

    _door = staticmethod(boosting_door("numeric"))

    def _level(self) -> Any:
        """Return the level or levels of the quantiles; of Huber's loss, the share of small residuals."""
        return None

    def _loss(self, n_classes: int) -> BoostingLoss:
        return regression_loss(type(self).__name__, self.loss, self._level())

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the predictions: (n_samples,), or (n_samples, n_quantiles) if several quantiles were fitted.

        Parameters
        ----------
        X : array, sparse array, dataframe, path or Dask collection of shape (n_samples, n_features)
            New rows; NaN is a missing value.
        """
        return self._fitted_loss().link.predict(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the predictions after each round."""
        check_is_fitted(self, "trees_")
        loss = self._fitted_loss()
        for raw in staged_raw(self, self._read(X)):
            yield loss.link.predict(raw.copy())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R²; of several quantiles, that of the one nearest to the median."""
        from sklearn.metrics import r2_score

        loss = self._fitted_loss()
        if not isinstance(loss, JointQuantiles):
            return float(super().score(X, y, sample_weight))
        X, y, sample_weight = named_columns(type(self).__name__, X, y, sample_weight)
        return float(r2_score(y, np.asarray(self.predict(X))[:, loss.middle], sample_weight=sample_weight))


def _shaped(raw: Array) -> Array:
    return raw[0] if len(raw) == 1 else np.ascontiguousarray(raw.T)
