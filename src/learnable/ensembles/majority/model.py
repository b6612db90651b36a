"""Boosting by majority votes of three: weak learners make a strong one, from an oracle that hands out examples.

`Learn(ε, δ, EX)` returns a hypothesis whose error under the oracle's distribution D is at most ε, with probability at
least 1 − δ. With g(x) = 3x² − 2x³ and α = g⁻¹(ε):

    if ε ≥ ½ − γ:  return WeakLearn(EX)
    h₁ = Learn(α, δ/5, EX);                          return h₁ if its error is at most ε, by an estimate within ε/3
    h₂ = Learn(α, δ/5, EX₂), where EX₂ flips a coin for an example that h₁ gets right, or one that it gets wrong;
                                                     return h₂ if its error is at most ε, within (1 − 2α)ε/9
    h₃ = Learn(α, δ/5, EX₃), where EX₃ gives examples on which h₁ and h₂ differ
    return the majority of h₁, h₂, h₃

With errors a₁, a₂, a₃ ≤ α < ½ under the three distributions, the vote errs with probability

    z + a₃(w + y),   y = P[h₁ ≠ c = h₂],   z = a₁ − y,   w = P[h₂ ≠ c = h₁] = (1 − a₁)(2a₂ − 1 + y/a₁),

which is at most 3α² − 2α³ = ε: an error of 0.4 becomes 0.352, 0.284, 0.197, … level by level. (Some notes print
2ε² − 3ε³ for this.) The price is known beforehand: the edge γ of the weak learner, at most three times as many
hypotheses a level, and examples that the filters throw away; each is a call of the oracle, and counted.

Reference: R. Schapire, The strength of weak learnability, Machine Learning 5 (1990), sections 3 and 4.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning

from ...core import (
    MAX_SECONDS,
    RANDOM_STATE,
    Array,
    Certificate,
    DataError,
    Estimator,
    NDArray,
    Number,
    Run,
    check_parameters,
    fitted,
    is_array,
    is_labels,
    law,
    laws,
    optional,
    param,
    passes,
    tags,
)
from ...data.door import Table, door, read_features
from ...data.sources import rowwise
from ...meta.binary import MODEL
from ...trees._random import seed_of
from .._members import check_models, check_stumps
from ..adaboost.stumps import Stump, Stumps, StumpSearch, halfway, stump_outputs
from ..weak_learners import model_codes, seed_parts
from .three_votes import Learned, OracleExamples, Recursion, TableExamples, boosted_error, vote_errors, votes_of_three

Codes = NDArray[np.int64]

#: How far a sum of weights, computed in another order, may be from the record.
RESIDUAL = 1e-9


class BoostByMajority(ClassifierMixin, MetaEstimatorMixin, Estimator):
    r"""Boosting by recursive majority votes of three hypotheses, for two classes.

    `fit(X, y)` makes an oracle of the rows, drawn with replacement in proportion to their weights; `fit_oracle` takes
    any oracle. Where the rows are known, so are the errors of hypotheses, filtered or not: then they are computed, and
    only the learners' examples cost calls. There is no penalty: the risk is the probability of error under the
    oracle's distribution. Memory: the weak learners, and one byte per row for each hypothesis while fitting.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import BoostByMajority
    >>> X = np.linspace(-1, 1, 400)[:, None]
    >>> y = np.abs(X[:, 0]) < 0.5                     # no stump errs on fewer than a quarter of the rows
    >>> model = BoostByMajority(epsilon=0.05, gamma=0.2, random_state=0).fit(X, y)
    >>> bool(model.error_ <= 0.05), len(model.votes_) > 0, model.certificate_.holds
    (True, True, True)
    """

    _theory = "boost-by-majority"

    estimator: Any = param(
        optional(MODEL),
        "The weak learner, fitted to plain examples without weights. None: the decision stump of least error.",
        default=None,
        kw_only=False,
    )
    epsilon: float = param(
        Number(low=0.0, high=0.5, low_open=True, high_open=True), "The error ε that is aimed at.", default=0.1
    )
    delta: float = param(
        Number(low=0.0, high=1.0, low_open=True), "The probability δ with which the error may be larger.", default=0.1
    )
    gamma: float = param(
        Number(low=0.0, high=0.5, low_open=True),
        "The edge γ that the weak learner is trusted to have on every distribution: its error is at most ½ − "
        "γ. A smaller γ needs more levels.",
        default=0.1,
    )
    sample_size: int = param(Number(low=1, integer=True), "Examples that each weak learner is fitted to.", default=1000)
    max_calls: int = param(
        Number(low=1, integer=True),
        "Most calls of the oracle; when they are spent, the vote so far is returned.",
        default=1_000_000,
    )
    random_state: Any = param(
        RANDOM_STATE, "Seeds the drawing of rows, the coins, and the learners' `random_state`.", default=None
    )
    max_seconds: float | None = param(MAX_SECONDS, "Time limit.", default=None)

    _door = staticmethod(door(target="classes", sparse=True))

    classes_: NDArray[Any] = fitted("array of shape (2,)", "The labels.")
    n_calls_: int = fitted("int", "Examples asked of the oracle, those that the filters threw away included.")
    n_levels_: int = fitted("int", "Levels of votes that ε and γ ask for.")
    votes_: Codes = fitted(
        "array of shape (n_votes, 3)",
        "The hypotheses of each vote: weak learners 0 … W − 1, then votes W, W + 1, …; −1 and −2 always name the first "
        "and the second class.",
    )
    root_: int = fitted("int", "The hypothesis that is returned.")
    vote_errors_: Array = fitted(
        "(n_votes, 4) or (0, 4)",
        "After `fit`: the errors of the three hypotheses, each under its own filtered distribution, and that of the "
        "vote, under the distribution it was made for. After `fit_oracle`: empty.",
        finite=False,
    )
    error_: float = fitted(
        "()",
        "After `fit` the error on the rows; after `fit_oracle` its estimate from fresh examples, within ε/3 with "
        "probability at least 1 − δ/5, or NaN where the calls ran out.",
        finite=False,
    )
    stumps_: Stumps | None = fitted("Stumps or None", "The weak learners, if they are stumps.")
    models_: list[Any] | None = fitted("list or None", "The weak learners, if they are models.")
    certificate_: Certificate = fitted(
        "Certificate",
        "After `fit`: `closed-form`, by how much the error of a vote is above 3α² − 2α³, where its three err on at "
        "most α < ½ (the theorem says: not at all), and how far the errors are from those of the data. After "
        "`fit_oracle`: `none`; that the error is at most ε has a probability and no proof.",
    )
    _tags = tags(sparse=True, multi_class=False)

    def _fit(self, table: Table, run: Run) -> Certificate:
        table.require_memory(
            "BoostByMajority: rows are drawn one by one, so they have to fit into memory; use fit_oracle with a "
            "function that returns rows, or take a sample."
        )
        self.classes_ = np.asarray(table.classes)
        if len(self.classes_) > 2:
            raise DataError(
                "Only binary classification is supported. BoostByMajority: the type of the target is multiclass, with "
                f"{len(self.classes_)} classes; wrap it in OneVsRestClassifier."
            )
        seed = seed_of(self.random_state)
        examples = TableExamples(table.X, table.y, table.weight, np.random.default_rng(seed), self.max_calls, run)
        learned = self._learn(examples, seed, run)
        if self.stumps_ is not None:
            # Found in drawn rows; halfway between the table's own values, so that `verify` can derive them.
            self.stumps_ = replace(self.stumps_, threshold=halfway(self.stumps_, table.X))
        opinions = [examples.opinion(h) for h in learned.used]
        self.vote_errors_ = vote_errors(self.root_, self.votes_, opinions, table.y, examples.chances())
        wrong = votes_of_three(self.root_, self.votes_, opinions, len(table.y)) != table.y
        self.error_ = float(examples.chances() @ wrong)
        if self.error_ > self.epsilon:
            _warn_of_error(self.error_, self.epsilon, learned.stopped)
        return Certificate("closed-form", _largest_violation(self.vote_errors_), RESIDUAL, None, len(learned.weak))

    def fit_oracle(self, oracle: Callable[[int], tuple[Any, Any]], classes: Any) -> Self:
        """Fit from an oracle of examples.

        Parameters
        ----------
        oracle : callable
            `oracle(m)` returns m fresh, independent examples: an array (m, d) of finite numbers and their m labels.
        classes : sequence of two labels
            What the labels may be.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        check_parameters("BoostByMajority", self.get_params(deep=False), self._parameters)
        draft = self._draft()
        draft.classes_ = np.unique(np.asarray(classes))
        if len(draft.classes_) != 2:
            raise DataError(f"BoostByMajority: classes must be two labels, got {len(draft.classes_)}.")
        run = Run(None, None, self.max_seconds)
        seed = seed_of(self.random_state)
        examples = OracleExamples(oracle, draft.classes_, np.random.default_rng(seed), self.max_calls, run)
        learned = draft._learn(examples, seed, run)
        draft.n_features_in_ = examples.n_columns
        draft.vote_errors_ = np.empty((0, 4))
        estimate = learned.estimate(self.epsilon / 3, self.delta / 5)
        draft.error_ = np.nan if estimate is None else estimate
        draft.n_calls_ = examples.n_calls
        if not draft.error_ <= self.epsilon * 4 / 3:
            _warn_of_error(draft.error_, self.epsilon, learned.stopped)
        draft.certificate_ = Certificate("none", np.nan, np.nan, None, len(learned.weak), run.seconds)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.__dict__.update(vars(draft))
        return self

    def _learn(self, examples: Any, seed: int, run: Run) -> Learned:
        """Run the recursion and keep its hypotheses."""

        def fit_weak(X: Any, y: Codes, number: int) -> Any:
            if self.estimator is None:
                return StumpSearch(X, y, 2, n_jobs=1).find(np.full(len(y), 1.0 / len(y)))[0]
            model = clone(self.estimator)
            seed_parts(model, seed, number)
            return model.fit(X, self.classes_[y])

        examples.says = self._says
        learned = Recursion(examples, fit_weak, self.gamma, self.sample_size, run).learn(self.epsilon, self.delta)
        self.root_ = learned.root
        self.votes_ = learned.votes
        self.stumps_ = Stumps.pack(learned.weak) if self.estimator is None and learned.weak else None
        self.models_ = None if self.estimator is None else learned.weak
        self.n_levels_ = n_levels(self.epsilon, self.gamma)
        self.n_calls_ = examples.n_calls
        return learned

    def _says(self, learner: Any, X: Any) -> Codes:
        """Return the class codes that one weak learner names."""
        if isinstance(learner, Stump):
            return (stump_outputs(learner, X)[:, 0] > 0).astype(np.int64)
        return model_codes(learner, X, self.classes_)

    @property
    def n_classes_(self) -> int:
        """The number of classes, two."""
        return len(self.classes_)

    @property
    def estimators_(self) -> list[Any]:
        """The weak learners."""
        return list(self.stumps_ or self.models_ or [])

    @rowwise
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label that the recursive vote names."""
        X = read_features(self, X)
        opinions = [self._says(learner, X) for learner in self.estimators_]
        return self.classes_[votes_of_three(self.root_, self.votes_, opinions, X.shape[0])]

    _laws = laws(
        law(
            "{owner}: classes_ must hold two labels",
            lambda model: is_labels(model.classes_) and model.classes_.size == 2,
        ),
        law(
            "{owner}: votes_ must hold three hypotheses for each vote",
            lambda model: is_array(model.votes_, (None, 3), np.int64),
        ),
        law(
            "{owner}: the weak learners must be stumps",
            lambda model: (
                model.estimator is not None
                or (
                    getattr(model, "models_", None) is None
                    and (
                        model.stumps_ is None
                        or passes(check_stumps, "BoostByMajority", model.stumps_, 1, model.n_features_in_)
                    )
                )
            ),
        ),
        law(
            "{owner}: the weak learners must be models",
            lambda model: (
                model.estimator is None
                or (
                    model.stumps_ is None
                    and isinstance(model.models_, list)
                    and passes(
                        check_models,
                        "BoostByMajority",
                        model.models_,
                        model.estimator,
                        model.n_features_in_,
                        model.classes_,
                    )
                )
            ),
        ),
        law(
            "{owner}: votes_ must name hypotheses that come before the vote",
            lambda model: (
                (model.votes_ >= -2).all()
                and (model.votes_ < len(model.estimators_) + np.arange(len(model.votes_))[:, None]).all()
            ),
        ),
        law(
            "{owner}: root_ must be one of the hypotheses",
            lambda model: type(model.root_) is int and -2 <= model.root_ < len(model.estimators_) + len(model.votes_),
        ),
    )


def n_levels(epsilon: float, gamma: float) -> int:
    """Return how many levels of votes bring an error of ½ − γ down to ε.

    Examples
    --------
    >>> n_levels(0.285, 0.1), n_levels(0.4, 0.1)
    (2, 0)
    """
    error = 0.5 - gamma
    levels = 0
    while error > epsilon * (1 + 1e-12):
        error = boosted_error(error)
        levels = levels + 1
    return levels


def _largest_violation(errors: Array) -> float:
    """Return by how much a vote is above 3α² − 2α³, with α < ½ the largest of its three errors."""
    alpha = errors[:, :3].max(axis=1, initial=0.0)
    return float(np.where(alpha < 0.5, errors[:, 3] - boosted_error(alpha), 0.0).clip(min=0.0).max(initial=0.0))


def _warn_of_error(error: float, epsilon: float, stopped: bool) -> None:
    why = (
        "the calls or the time ran out; raise max_calls or max_seconds"
        if stopped
        else (
            "the weak learner does not have the edge gamma on every distribution; lower gamma, raise sample_size, or "
            "take a stronger estimator"
        )
    )
    warnings.warn(
        f"BoostByMajority: stopped after an error of {error:.3g}, above epsilon={epsilon:g}: {why}.",
        ConvergenceWarning,
        stacklevel=4,
    )
