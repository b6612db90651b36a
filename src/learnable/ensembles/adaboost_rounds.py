"""The rounds of AdaBoost: find a learner for D, give it a vote, reweight; and what each variant does besides."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.run import Run
from .boosting import LARGEST_VOTE, NO_EDGE, ScoredBoost, Trace, VotedBoost, half_of_full, refuse_guessing
from .boosting_variants import SmallestLosses, combine, correct_votes, losses_without
from .weak_learners import Learned, WeakLearner, labels_of, learner_outputs

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: FloatBoost takes at most this many rounds for each learner that it may keep.
FLOAT_ROUNDS = 10
#: An exponential loss that is as good as zero: no row is near the wrong side.
_NO_LOSS = 1e-200


class Plan(NamedTuple):
    """What is to be done."""

    variant: str
    n_estimators: int
    learning_rate: float
    tol: float  #: of the totally corrective votes
    patience: int | None  #: rounds without a better validation error


class Held(NamedTuple):
    """Rows that judge and are not fitted."""

    X: Any
    y: Codes
    weight: Array
    classes: NDArray[Any]
    least: float | None  #: for confidence-rated models


class Boosted(NamedTuple):
    """The outcome: one entry for each round."""

    learners: list[Any]
    votes: Array  #: full votes
    removed: Codes  #: round in which FloatBoost removed the learner, or −1
    traces: list[Trace]
    validation: Array  #: errors on the rows held out, if there are some
    gradient: float | None  #: left by the totally corrective votes
    sides: list[Array | None]  #: of stumps, the classes and rows on both sides


def boost(
    weak: WeakLearner, y: Codes, weight: Array, n_classes: int, plan: Plan, run: Run, held: Held | None
) -> Boosted:
    """Run the rounds; with rows held out, return those up to the smallest validation error."""
    walk = (_RealWalk if plan.variant == "real" else _VotedWalk)(weak, y, weight, n_classes, plan, run)
    watch = _Watch(held, n_classes, plan)
    for t in range(plan.n_estimators * (FLOAT_ROUNDS if plan.variant == "float" else 1)):
        if run.progress(t + 1, walk.traces[-1].loss if walk.traces else 1.0) and walk.learners:
            break
        if not walk.step():
            break
        if watch.look(walk):
            break
        if walk.finished or walk.n_members >= plan.n_estimators:
            break
    best = watch.best_round if held is not None else len(walk.learners) - 1
    gradient = watch.best_gradient if held is not None else walk.gradient
    votes, removed = watch.best_votes if held is not None else np.array(walk.votes), np.array(walk.removed)
    count = best + 1
    removed = np.where(removed[:count] > best, -1, removed[:count]).astype(np.int64)
    validation = np.array(watch.errors[:count])
    return Boosted(
        walk.learners[:count], votes[:count], removed, walk.traces[:count], validation, gradient, walk.sides[:count]
    )


def hold_out(y: Codes, n_classes: int, fraction: float, seed: int) -> Codes:
    """Return validation rows: the same share of each class, rounded down, so that no class is without other rows."""
    rng = np.random.default_rng([seed, n_classes])
    parts = []
    for k in range(n_classes):
        rows = np.flatnonzero(y == k)
        parts.append(rng.permutation(rows)[: min(int(fraction * len(rows)), len(rows) - 1)])
    found = np.sort(np.concatenate(parts))
    if not len(found):
        raise DataError(
            f"AdaBoostClassifier: validation_fraction={fraction:g} of {len(y)} rows leaves no row of any class to "
            "validate on; raise it, or set n_iter_no_change=None."
        )
    return found.astype(np.int64)


class _Walk:
    """What all variants share: the learners of all rounds, with their votes."""

    def __init__(self, weak: WeakLearner, y: Codes, weight: Array, n_classes: int, plan: Plan, run: Run) -> None:
        self.weak, self.y, self.weight, self.K, self.plan, self.run = (
            weak,
            y,
            weight / weight.sum(),
            n_classes,
            plan,
            run,
        )
        self.learners: list[Any] = []
        self.votes: list[float] = []
        self.removed: list[int] = []
        self.traces: list[Trace] = []
        self.sides: list[Array | None] = []
        self.gradient: float | None = None
        self.finished = False  # nothing is left to improve

    @property
    def n_members(self) -> int:
        return sum(when < 0 for when in self.removed)

    def _warn_of_overflow(self) -> None:
        """Say that the rounds end: the next weights would be more than a float holds, all others zero beside them."""
        self.finished = True
        warnings.warn(
            f"AdaBoostClassifier: Sample weights have reached infinite values, at iteration {len(self.learners)}, "
            f"causing overflow. Iterations stopped. Lower learning_rate={self.plan.learning_rate:g}.",
            UserWarning,
            stacklevel=6,
        )

    def _keep(self, found: Learned, vote: float, trace: Trace) -> None:
        self.learners.append(found.learner)
        self.votes.append(vote)
        self.removed.append(-1)
        self.traces.append(trace)
        self.sides.append(found.sides)


class _VotedWalk(_Walk):
    """Learners that name a class: discrete, float and totally corrective."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state = VotedBoost(self.weight, self.K, self.plan.learning_rate)
        self.revises = self.plan.variant in ("float", "totally-corrective")
        shape = (self.plan.n_estimators + 1 if self.revises else 0, len(self.y))
        self.wrong = np.empty(shape, dtype=np.uint8)  # a row for each member
        self.smallest = SmallestLosses()

    def step(self) -> bool:
        """Do one round; return False if there is no learner that helps."""
        D = self.state.distribution()
        found = self.weak.find(D)
        wrong = found.codes != self.y
        error = float((D * wrong).sum())
        corrective = self.plan.variant == "totally-corrective"
        # What a vote for it could change: with corrected votes there may be nothing left, though it has an edge.
        slope = self.state.loss * (self.state.share - error)
        if not self.state.has_edge(error) or (corrective and self.learners and slope <= self.plan.tol):
            if not self.learners:
                raise refuse_guessing("AdaBoostClassifier", error, self.weak.name)
            return False
        if self.revises:
            self.wrong[self.n_members] = wrong
        vote = 0.0 if corrective else self.state.vote(wrong, error)
        if vote > LARGEST_VOTE and wrong.any():
            self._warn_of_overflow()
            if self.learners:
                return False
        self._keep(found, vote, self.state.add(wrong, error, vote))
        self.finished |= not (wrong.any() or corrective)
        if corrective:
            self._correct()
        elif self.revises and not self.finished:
            self._remove_the_useless()
        return True

    def _correct(self) -> None:
        """Let the votes of all learners minimise the loss."""
        T = len(self.votes)
        found = correct_votes(
            self.wrong[:T], self.weight, self.K, np.array(self.votes), self.plan.tol, self.run.should_stop
        )
        self.votes = found.votes.tolist()
        self.state.set_votes(found.g, float(found.votes.sum()))
        self.gradient = found.gradient
        self.traces[-1] = self.traces[-1]._replace(loss=self.state.loss, bound=self.state.bound, residual=0.0)

    def _remove_the_useless(self) -> None:
        """Remove learners as long as that gives the best ensemble of its size so far."""
        now = len(self.learners) - 1
        self.smallest.record(self.n_members, self.state.loss)
        while self.n_members > 2:
            members = [t for t, when in enumerate(self.removed) if when < 0]
            votes = np.array([self.votes[t] for t in members])
            wrong = self.wrong[: len(members)]
            left = losses_without(wrong, votes, self.state.distribution(), self.state.loss, self.K)
            s = int(left.argmin())
            if not self.smallest.improved_by(len(members) - 1, float(left[s])):
                break
            self.removed[members[s]] = now
            self.wrong[s : len(members) - 1] = self.wrong[s + 1 : len(members)].copy()
            rest = np.delete(votes, s)
            self.state.set_votes(combine(self.wrong[: len(rest)], rest), float(rest.sum()))
            self.smallest.record(len(rest), self.state.loss)
            self.traces[-1] = self.traces[-1]._replace(loss=self.state.loss, bound=self.state.bound)


class _RealWalk(_Walk):
    """Learners that give scores."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state = ScoredBoost(self.weight, self.y, self.K)

    def step(self) -> bool:
        """Do one round; return False if there is no learner that helps."""
        found = self.weak.find(self.state.distribution())
        vote = self.plan.learning_rate * found.vote
        before, outputs = self.state.loss, vote * np.asarray(found.scores)
        saved = self.state.scores
        trace = self.state.add(outputs)
        if not trace.loss < before * (1.0 - NO_EDGE):
            self.state.set_scores(saved)
            if not self.learners:
                raise refuse_guessing("AdaBoostClassifier", trace.error, self.weak.name)
            return False
        self._keep(found, vote / half_of_full(self.K), trace)
        self.finished = trace.loss < _NO_LOSS
        return True


class _Watch:
    """The error on the rows held out after each round, and when it was smallest."""

    def __init__(self, held: Held | None, n_classes: int, plan: Plan) -> None:
        self.held, self.K, self.plan = held, n_classes, plan
        self.errors: list[float] = []
        self.outputs: list[Array] = []
        self.best_round, self.best_votes = -1, np.empty(0)
        self.best_gradient: float | None = None
        self.scores: Any = 0.0

    def look(self, walk: _Walk) -> bool:
        """Judge the ensemble; return whether it has not become better for too long."""
        held = self.held
        if held is None:
            return False
        outputs = learner_outputs(walk.learners[-1], held.X, held.classes, held.least)
        if self.plan.variant in ("discrete", "real"):
            self.scores = self.scores + walk.votes[-1] * outputs
        else:  # earlier votes have changed
            self.outputs.append(outputs)
            members = [t for t, when in enumerate(walk.removed) if when < 0]
            self.scores = sum(walk.votes[t] * self.outputs[t] for t in members)
        wrong = labels_of(np.asarray(self.scores)) != held.y
        self.errors.append(float(held.weight[wrong].sum() / held.weight.sum()))
        if self.best_round < 0 or self.errors[-1] < self.errors[self.best_round]:
            self.best_round, self.best_votes = len(self.errors) - 1, np.array(walk.votes)
            self.best_gradient = walk.gradient
        return len(self.errors) - 1 - self.best_round >= (self.plan.patience or np.inf)
