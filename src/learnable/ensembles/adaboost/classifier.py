"""AdaBoost: a weighted vote of weak learners, each fitted to the rows that those before it got wrong.

    D_i = 1/n;   for t = 1 … T:   h_t = learner for D,   ε_t = Σ D_i 1[h_t(x_i) ≠ y_i],
    α_t = ½ log((1−ε_t)/ε_t),     D_i ∝ D_i e^{−α_t y_i h_t(x_i)};        f = Σ α_t h_t.

This is forward stagewise (and coordinate-wise) minimisation of the exponential loss n⁻¹ Σ e^{−yf(x)}, without a penalty
(λ = 0), whose population minimiser is half the log-odds: P(y = 1 | x) = 1/(1 + e^{−2f(x)}). The training error is at
most Π 2√(ε_t(1−ε_t)) ≤ exp(−2Σγ_t²) with γ_t = ½ − ε_t. Two conventions for votes are in use: α_t and weights
e^{−αyh}, or 2α_t and weights e^{2α·1[error]}; both give the same distributions (`vote`).

References: Y. Freund and R. Schapire, A decision-theoretic generalization of on-line learning, JCSS 55 (1997); J.
Friedman, T. Hastie and R. Tibshirani, Additive logistic regression, Annals of Statistics 28 (2000).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ...core import (
    TOLERANCE,
    Array,
    Certificate,
    DataError,
    Estimator,
    NDArray,
    Number,
    Options,
    Run,
    are_counts,
    fitted,
    is_labels,
    law,
    laws,
    optional,
    param,
    passes,
)
from ...data.door import Table, door, read_features
from ...data.sources import rowwise
from ...meta.binary import MODEL
from ...trees._random import seed_of
from ...trees.decision_tree import DecisionTreeClassifier
from ...trees.models import ShapleyValues
from .._members import (
    MemberSequence,
    check_models,
    check_stumps,
    sides_are_sound,
    stump_members,
    weighted_importances,
)
from ..explain.margin import label_codes, vote_margins
from ..weak_learners import (
    ModelLearner,
    StumpLearner,
    WeakLearner,
    WeakLearning,
    as_given,
    labels_of,
    learner_outputs,
    remembering_container,
)
from .rounds import Boosted, Held, Plan, boost, half_of_full, hold_out
from .stumps import Stumps, weighted_scores

# --------------------------------------------------------------------------------------------------------------------
# What a loaded `AdaBoostClassifier` must hold.


# --------------------------------------------------------------------------------------------------------------------
# AdaBoost where all rows have the same label: one learner that always names it, and nothing to boost.


def fit_one_class(model: Any, n_rows: int, learner: Any) -> None:
    """Set the attributes of a fitted `AdaBoostClassifier`; `learner` is None for stumps."""
    stumps = learner is None
    model.validation_rows_ = np.empty(0, dtype=np.int64)
    model.n_rows_ = n_rows
    model.stumps_ = Stumps(np.zeros(1, np.int64), np.zeros(1), np.full((1, 2, 1), -1.0)) if stumps else None
    model.stump_sides_ = np.array([[[1.0, n_rows], [0.0, 0.0]]]) if stumps else None
    model.models_ = None if stumps else [learner]
    model.estimator_weights_ = np.ones(1)
    model.estimator_errors_ = np.zeros(1)
    model.exponential_loss_ = np.zeros(1)
    model.training_bound_ = np.zeros(1)
    model.validation_errors_ = np.empty(0)
    learners = model.stumps_ if stumps else [learner]
    model.rounds_ = {
        "learners": learners if model.variant == "float" else None,
        "votes": np.ones(1),
        "errors": np.zeros(1),
        "removed": np.full(1, -1, np.int64),
    }


#: How far sums of weights may be from what the votes make of them.
RESIDUAL = 1e-9


class AdaBoostClassifier(ShapleyValues, MemberSequence, ClassifierMixin, MetaEstimatorMixin, WeakLearning, Estimator):
    r"""AdaBoost: f = Σ α_t h_t, minimising n⁻¹ Σ e^{−yf(x)} one weak learner at a time.

    More than two classes: SAMME, with the same formulas for classes coded as 1 and −1/(K−1). Stumps take O(nd) per
    round and O(nd + n_distinct·K) memory; `variant="float"` and `"totally-corrective"` one byte more per row and
    learner.

    Examples
    --------
    >>> from learnable import AdaBoostClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], list("aabbaa")
    >>> model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    >>> model.score(X, y), model.certificate_.holds
    (1.0, True)
    >>> bool((model.training_bound_ >= [1 - s for s in model.staged_score(X, y)]).all())
    True
    """

    _theory = "adaboost"

    estimator: Any = param(
        optional(MODEL),
        "The weak learner; its `fit` must take `sample_weight`. None: the decision stump of least weighted "
        "error over all columns, thresholds and classes of the two sides. (scikit-learn's stump minimises the "
        "Gini impurity: pass a decision tree with max_depth=1 for it.)",
        default=None,
        kw_only=False,
    )
    variant: str = param(
        Options("discrete", "real", "float", "totally-corrective"),
        '"real": confidence-rated learners with scores in [−1, 1], from the weights of two classes on each '
        "side of a stump (Schapire and Singer), or from `predict_proba` (SAMME.R for more classes). "
        '"float": after each round, learners are removed as long as that gives the smallest loss for their '
        'number so far (FloatBoost; at most ten rounds for each learner). "totally-corrective": after each '
        "round the votes of all learners minimise the loss together, over α ≥ 0; two classes.",
        default="discrete",
    )
    vote: str = param(
        Options("full", "half"),
        "Scale of `estimator_weights_`: log((1−ε)/ε) + log(K−1), as in scikit-learn, or (K−1)²/K times that: "
        "the votes α of the loss, ½ log((1−ε)/ε) for two classes. Predictions are the same.",
        default="full",
    )
    n_iter_no_change: int | None = param(
        optional(Number(low=1, integer=True)),
        "If given, a share of the rows is held out, rounds end when its error has not fallen for so many of "
        "them, and the ensemble is the one of the smallest error.",
        default=None,
    )
    validation_fraction: float = param(
        Number(low=0.0, high=1.0, low_open=True, high_open=True), "That share, of each class.", default=0.1
    )
    tol: float = param(
        TOLERANCE,
        "Totally corrective: largest derivative of the loss by a (full) vote that may be left; no learner has loss 1.",
        default=1e-8,
    )

    classes_: NDArray[Any] = fitted("(n_classes,)", "The labels.", kind="biufOUST")
    exponential_loss_: Array = fitted("array of shape (n_rounds,)", "The loss after each round.")
    training_bound_: Array = fitted(
        "array of shape (n_rounds,)",
        "A bound on the training error after each round, at most 1 − accuracy; for two classes the loss.",
    )
    validation_errors_: Array = fitted("array of shape (n_rounds,), or empty", "Errors on the rows held out.")
    validation_rows_: NDArray[np.int64] = fitted(
        "array of int", "The rows held out, counted among those with positive weight."
    )
    stumps_: Stumps | None = fitted("Stumps or None", "The stumps as arrays.")
    stump_sides_: Array | None = fitted(
        "array of shape (n_learners, 2, n_classes + 1), or None",
        "Weights of the classes on both sides of each stump, under its own distribution, and the rows there.",
    )
    rounds_: dict[str, Any] = fitted(
        "dict", "Learners, votes and removals of all rounds: what the certificate is re-derived from."
    )
    certificate_: Certificate = fitted(
        "Certificate",
        "Stumps: `greedy`, the share of rounds whose stump is not the best for its distribution, or whose error or "
        "vote is not what follows from the data. Other learners: `closed-form`, how far the distributions are from "
        "what the votes make of them; their own fits are not judged. Totally corrective: `stationarity` of the votes.",
    )

    _door = staticmethod(remembering_container(door(target="classes", one_class=True)))
    _remedy = "raise max_seconds or tol"

    def _fit(self, table: Table, run: Run) -> Certificate:
        table.require_memory(
            "AdaBoostClassifier: every round reads all rows again: read the table into an array, or take a sample."
        )
        self.classes_ = np.asarray(table.classes)
        self.seed_ = seed_of(self.random_state)
        if len(self.classes_) == 1:
            return self._fit_one_class(table)
        self._refuse_many_classes()
        K = len(self.classes_)
        seed = self.seed_
        weight = np.ones(table.n_rows) if table.weight is None else table.weight
        self.validation_rows_ = np.empty(0, dtype=np.int64)
        if self.n_iter_no_change is not None:
            self.validation_rows_ = hold_out(table.y, K, self.validation_fraction, seed)
        fitted = np.setdiff1d(np.arange(table.n_rows), self.validation_rows_)
        out = self.validation_rows_
        X, y, w = (table.X, table.y, weight) if not len(out) else (table.X[fitted], table.y[fitted], weight[fitted])
        self.n_rows_ = len(y)
        held = Held(table.X[out], table.y[out], weight[out], self.classes_, self._least()) if len(out) else None
        plan = Plan(self.variant, self.n_estimators, self.learning_rate, self.tol, self.n_iter_no_change)
        return self._store(boost(self._weak_learner(X, y, seed), y, w, K, plan, run, held))

    def _fit_one_class(self, table: Table) -> Certificate:
        learner = None
        if self.estimator is not None:
            weight = np.ones(table.n_rows) if table.weight is None else table.weight
            weak = ModelLearner(self.estimator, as_given(self, table.X), table.y, self.classes_, False, 0)
            learner = weak.fit(weight / weight.sum())
        fit_one_class(self, table.n_rows, learner)
        if learner is None:
            return Certificate("greedy", 0.0, 0.0, by_construction=True)
        return Certificate("closed-form", 0.0, RESIDUAL, by_construction=True)

    def _weak_learner(self, X: Any, y: NDArray[np.int64], seed: int) -> WeakLearner:
        confident = self.variant == "real"
        if self.estimator is None:
            return StumpLearner(X, y, len(self.classes_), confident, self.n_jobs)
        return ModelLearner(self.estimator, as_given(self, X), y, self.classes_, confident, seed)

    def _refuse_many_classes(self) -> None:
        """Raise where the K-class loss does not ask for the right class, but for a positive score of it."""
        corrective = self.variant == "totally-corrective"
        if len(self.classes_) > 2 and (corrective or (self.variant == "real" and self.estimator is None)):
            raise DataError(
                f"AdaBoostClassifier: variant={self.variant!r}{'' if corrective else ' with stumps'} is for two "
                f"classes; got {len(self.classes_)}. Use variant='discrete', or "
                f"OneVsRestClassifier(AdaBoostClassifier(variant={self.variant!r}))."
            )

    def _store(self, done: Boosted) -> Certificate:
        members = np.flatnonzero(done.removed < 0)
        stumps = self.estimator is None
        scale = half_of_full(len(self.classes_)) if self.vote == "half" else 1.0
        errors = np.array([trace.error for trace in done.traces])
        learners = Stumps.pack(done.learners) if stumps else list(done.learners)
        self.stumps_ = Stumps.pack([done.learners[t] for t in members]) if stumps else None
        self.stump_sides_ = np.stack([np.asarray(done.sides[t]) for t in members]) if stumps else None
        self.models_ = None if stumps else [done.learners[t] for t in members]
        self.estimator_weights_ = scale * done.votes[members]
        self.estimator_errors_ = errors[members]
        self.exponential_loss_ = np.array([trace.loss for trace in done.traces])
        self.training_bound_ = np.array([trace.bound for trace in done.traces])
        self.validation_errors_ = done.validation
        floats = self.variant == "float"
        self.rounds_ = {
            "learners": learners if floats else None,  # the others remove no learner
            "votes": done.votes,
            "errors": errors,
            "removed": done.removed,
        }
        n_rounds = len(done.learners)
        if done.gradient is not None:
            return Certificate("stationarity", done.gradient, self.tol, None, n_rounds)
        if stumps:
            return Certificate("greedy", 0.0, 0.0, None, n_rounds, by_construction=True)
        return Certificate("closed-form", max(trace.residual for trace in done.traces), RESIDUAL, None, n_rounds)

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @property
    def estimator_(self) -> Any:
        """The weak learner, unfitted; for stumps, a decision tree of depth one."""
        check_is_fitted(self)
        criterion = "gini" if self.variant == "real" else "misclassification"
        stump = DecisionTreeClassifier(criterion=criterion, max_depth=1)
        return stump if self.estimator is None else clone(self.estimator)

    @property
    def estimators_(self) -> list[Any]:
        """The learners: fitted clones, or stumps as `DecisionTreeClassifier`s; the ensemble is a sequence of them."""
        check_is_fitted(self)
        if self.stumps_ is None:
            return list(self.models_ or [])
        return self._kept(self.stumps_, lambda: stump_members(self))

    @property
    def feature_importances_(self) -> Array:
        """Mean of the learners' importances, weighted by their votes."""
        return weighted_importances(self)

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the most votes; of several, the first."""
        codes = labels_of(self._scores(X))
        return self.classes_[codes]

    @rowwise
    def raw_score(self, X: Any) -> Array:
        """Return f(x) = Σ α_t h_t(x), whose exponential loss was minimised; (n_samples, n_classes) for K > 2."""
        scores = self._scores(X)
        return scores[:, 0] if self.n_classes_ == 2 else scores

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """Return f(x)/Σα_t; for two classes twice that, as in scikit-learn."""
        scores = self._scores(X) / self._votes().sum()
        return 2.0 * scores[:, 0] if self.n_classes_ == 2 else scores

    @rowwise
    def predict_proba(self, X: Any) -> Array:
        """Return 1/(1 + e^{−2f}) for two classes, else softmax(f/(K−1)): the probabilities whose best f it is."""
        return self._probabilities(self._scores(X))

    @rowwise
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def margins(self, X: Any, y: Any) -> Array:
        """Return the votes' share for the own class minus the largest share of another, in [−1, 1].

        Confidence-rated learners vote with their scores.
        """
        scores = self._scores(X) / self._votes().sum()
        K = self.n_classes_
        codes = label_codes(y, self.classes_, "AdaBoostClassifier")
        if len(codes) != len(scores):
            raise DataError(f"AdaBoostClassifier: X has {len(scores)} rows, but y has {len(codes)} labels.")
        if K == 2:
            return np.where(codes == 1, 1.0, -1.0) * scores[:, 0]
        return vote_margins(scores, codes) * (K - 1) / K

    def staged_raw_score(self, X: Any) -> Iterator[Array]:
        """Yield f of the first learner, of the first two, and so on."""
        for scores in self._staged(X):
            yield scores[:, 0].copy() if self.n_classes_ == 2 else scores.copy()

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield the decision function of the first learner, of the first two, and so on."""
        for scores, total in zip(self._staged(X), np.cumsum(self._votes()), strict=True):
            yield 2.0 * scores[:, 0] / total if self.n_classes_ == 2 else scores / total

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predictions of the first learner, of the first two, and so on."""
        for scores in self._staged(X):
            yield self.classes_[labels_of(scores)]

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Yield the probabilities of the first learner, of the first two, and so on."""
        for scores in self._staged(X):
            yield self._probabilities(scores)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the accuracy of the first learner, of the first two, and so on."""
        from sklearn.metrics import accuracy_score

        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _votes(self) -> Array:
        """Return α, whatever convention the weights are shown in."""
        return self.estimator_weights_ * (1.0 if self.vote == "half" else half_of_full(max(2, self.n_classes_)))

    def _least(self) -> float | None:
        return 0.5 / self.n_rows_ if self.variant == "real" else None

    def _scores(self, X: Any) -> Array:
        X = read_features(self, X)
        if self.n_classes_ == 1:
            return np.full((X.shape[0], 1), -1.0)
        if self.stumps_ is not None:
            return weighted_scores(self.stumps_, self._votes(), X, self.n_jobs)
        scores = np.zeros((X.shape[0], 1 if self.n_classes_ == 2 else self.n_classes_))
        for vote, model in zip(self._votes(), self.models_ or [], strict=True):
            scores += vote * learner_outputs(model, X, self.classes_, self._least())
        return scores

    def _staged(self, X: Any) -> Iterator[Array]:
        X = read_features(self, X)
        scores = np.zeros((X.shape[0], 1 if self.n_classes_ == 2 else self.n_classes_))
        if self.n_classes_ == 1:
            yield scores - 1.0
            return
        for vote, learner in zip(self._votes(), self.stumps_ or self.models_ or [], strict=True):
            scores += vote * learner_outputs(learner, X, self.classes_, self._least())
            yield scores

    _laws = laws(
        law("{owner}: classes_ must hold labels", lambda model: is_labels(model.classes_, 1)),
        law("{owner}: n_rows_ must be a number of rows", lambda model: are_counts(model, "n_rows_") and model.n_rows_),
        law(
            "{owner}: stumps_ must hold one stump for each vote",
            lambda model: (
                model.estimator is not None
                or (
                    isinstance(model.stumps_, Stumps)
                    and len(model.stumps_) == len(model.estimator_weights_)
                    and model.models_ is None
                    and passes(
                        check_stumps,
                        "AdaBoostClassifier",
                        model.stumps_,
                        1 if len(model.classes_) <= 2 else len(model.classes_),
                        model.n_features_in_,
                    )
                )
            ),
        ),
        law(
            "{owner}: stump_sides_ must hold weights of the classes and rows on both sides of each stump",
            lambda model: (
                model.estimator is not None
                or sides_are_sound(model.stump_sides_, (len(model.estimator_weights_), 2, len(model.classes_) + 1))
            ),
        ),
        law(
            "{owner}: models_ must hold one model for each vote",
            lambda model: (
                model.estimator is None
                or (
                    isinstance(model.models_, list)
                    and len(model.models_) == len(model.estimator_weights_)
                    and model.stumps_ is None
                    and passes(
                        check_models,
                        "AdaBoostClassifier",
                        model.models_,
                        model.estimator,
                        model.n_features_in_,
                        model.classes_,
                    )
                )
            ),
        ),
    )

    def _probabilities(self, scores: Array) -> Array:
        if self.n_classes_ == 1:
            return np.ones((len(scores), 1))
        if self.n_classes_ == 2:
            return softmax(np.column_stack([-scores[:, 0], scores[:, 0]]), axis=1)
        return softmax(scores / (self.n_classes_ - 1), axis=1)
