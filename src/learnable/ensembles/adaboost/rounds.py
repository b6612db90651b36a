"""The rounds of AdaBoost: find a learner for D, give it a vote, reweight; and what each variant does besides."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, DataError, NDArray, Run, never
from ..weak_learners import Learned, WeakLearner, labels_of, learner_outputs

# --------------------------------------------------------------------------------------------------------------------
# The algebra of AdaBoost: the rows that were wrong go in, votes and the next distribution come out, for any learner.
#
# f = Σ_t α_t h_t is built to make the exponential loss L(f) = Σ_i w_i e^{−y_i f(x_i)} small, w normalised. With h_t ∈
# ±1 and its weighted error ε_t under D_i ∝ w_i e^{−y_i f_{t−1}(x_i)}, the best vote is α_t = ½ log((1−ε_t)/ε_t); it
# multiplies the loss by Z_t = 2√(ε_t(1−ε_t)), and under the next D the learner errs on exactly half of the weight.
#
# K classes (SAMME; J. Zhu, H. Zou, S. Rosset and T. Hastie, Multi-class AdaBoost, 2009) are coded as 1 and −1/(K−1),
# the loss is Σ w e^{−y·f/K}, and α_t = (K−1)²/K · (log((1−ε_t)/ε_t) + log(K−1)): for K = 2 the formula above. In
# terms of the *full* votes a_t = log((1−ε_t)/ε_t) + log(K−1) and of g_i = Σ_t a_t·1[h_t wrong on i], A = Σ a_t,
#
#     L = Σ w_i e^{g_i − A(K−1)/K},      training error ≤ Σ w_i e^{g_i − A/2} = Π K√(ε_t(1−ε_t)/(K−1)),
#
# since a wrong row has at least half of the votes against its class. Both agree for K = 2.


Bools = NDArray[np.bool_]

#: A learner whose error is within this of guessing is no better than guessing: sums of weights are not more exact.
NO_EDGE = 1e-10
#: A vote by which a weight is multiplied with more than a float holds: all rows but a few have no weight left.
LARGEST_VOTE = float(np.log(np.finfo(np.float64).max))


def half_of_full(n_classes: int) -> float:
    """Return α/a: ½ for two classes, (K−1)²/K for K."""
    return (n_classes - 1) ** 2 / n_classes


def full_vote(error: float, n_classes: int) -> float:
    """Return a = log((1−ε)/ε) + log(K−1).

    Examples
    --------
    >>> round(full_vote(0.25, 2), 6), round(full_vote(0.5, 3), 6)
    (1.098612, 0.693147)
    """
    return float(np.log1p(-error) - np.log(max(error, 1e-300)) + np.log(n_classes - 1.0))


def normalise(exponent: Array) -> tuple[Array, float]:
    """Return e^exponent divided by its sum, and the logarithm of that sum; no exponent overflows."""
    most = float(exponent.max())
    D = np.exp(exponent - most)
    total = float(D.sum())
    D /= total
    return D, most + float(np.log(total))


class Trace(NamedTuple):
    """What one round leaves behind."""

    error: float  #: ε of the learner
    loss: float  #: L after the round
    bound: float  #: on the training error after the round
    residual: float  #: error of the learner under the next D, against what its vote makes of it


class VotedBoost:
    """Boosting by learners that name a class: discrete AdaBoost and SAMME.

    Parameters
    ----------
    weight : (n,) float64
        Weights w of the rows; normalised here.
    n_classes : int
        K.
    learning_rate : float
        Factor on every vote.
    """

    def __init__(self, weight: Array, n_classes: int, learning_rate: float = 1.0) -> None:
        self.log_weight = np.log(weight / weight.sum())
        self.K = n_classes
        self.rate = learning_rate
        self.share = (n_classes - 1) / n_classes  # error of a guess, and the K-class loss's exponent
        self.set_votes(np.zeros(len(weight)), 0.0)

    def set_votes(self, g: Array, total: float) -> None:
        """Replace the votes of all learners so far: g and A are what they sum to."""
        self.g = g
        self.total = total
        self._D, self._log_sum = normalise(self.log_weight + g)

    def distribution(self) -> Array:
        """Return D."""
        return self._D

    @property
    def loss(self) -> float:
        """The exponential loss L."""
        with np.errstate(over="ignore"):  # a learning rate above two raises it
            return float(np.exp(self._log_sum - self.total * self.share))

    @property
    def bound(self) -> float:
        """Σ w e^{g − A/2}, never below the training error."""
        with np.errstate(over="ignore"):
            return float(np.exp(self._log_sum - self.total / 2))

    def vote(self, wrong: Bools, error: float) -> float:
        """Return the full vote of a learner; one without any error outweighs all others together."""
        if not wrong.any():
            return self.total + full_vote(0.5 / len(wrong), self.K)
        return self.rate * full_vote(error, self.K)

    def has_edge(self, error: float) -> bool:
        """Tell whether a learner is better than guessing."""
        return error < self.share - NO_EDGE

    def add(self, wrong: Bools, error: float, vote: float) -> Trace:
        """Add a learner with its full vote."""
        self.set_votes(self.g + vote * wrong, self.total + vote)
        after = float((self._D * wrong).sum())
        expected = error / (error + (1.0 - error) * np.exp(-vote))
        return Trace(error, self.loss, self.bound, abs(after - expected))


class ScoredBoost:
    """Boosting by learners that give scores, (n, 1) for two classes or (n, K): real AdaBoost and SAMME.R.

    The loss is Σ w e^{−yf} for two classes and Σ w e^{−f_y/(K−1)} for K, whose scores sum to zero.
    """

    def __init__(self, weight: Array, y: NDArray[np.int64], n_classes: int, learning_rate: float = 1.0) -> None:
        self.log_weight = np.log(weight / weight.sum())
        self.y = y
        self.K = n_classes
        self.rate = learning_rate
        self.rows = np.arange(len(y))
        self.sign = np.where(y == 1, 1.0, -1.0)
        self.set_scores(np.zeros((len(y), 1 if n_classes == 2 else n_classes)))

    def set_scores(self, scores: Array) -> None:
        """Let f be these scores of the rows."""
        self.scores = scores
        own = self.sign * scores[:, 0] if self.K == 2 else scores[self.rows, self.y] / (self.K - 1)
        self._D, self._log_sum = normalise(self.log_weight - own)

    def distribution(self) -> Array:
        """Return D."""
        return self._D

    @property
    def loss(self) -> float:
        """The exponential loss L."""
        with np.errstate(over="ignore"):
            return float(np.exp(self._log_sum))

    @property
    def bound(self) -> float:
        """Σ w e^{−(f_y − max other f)/2}, never below the training error; for two classes the loss itself."""
        if self.K == 2:
            return self.loss
        others = self.scores.copy()
        others[self.rows, self.y] = -np.inf
        lead = self.scores[self.rows, self.y] - others.max(axis=1)
        return float(np.exp(normalise(self.log_weight - lead / 2)[1]))

    def add(self, outputs: Array) -> Trace:
        """Add what a learner says, already multiplied by its vote."""
        D = self.distribution()
        before = self.loss
        guess = outputs[:, 0] > 0 if self.K == 2 else outputs.argmax(axis=1)
        error = float(D[guess != self.y].sum())
        own = self.sign * outputs[:, 0] if self.K == 2 else outputs[self.rows, self.y] / (self.K - 1)
        self.set_scores(self.scores + outputs)
        Z = float((D * np.exp(-own)).sum())
        return Trace(error, self.loss, self.bound, abs(self.loss - before * Z) / before)


def refuse_guessing(owner: str, error: float, learner: str) -> DataError:
    """Return the error for a first learner that is no better than guessing."""
    return DataError(
        f"{owner}: no {learner} is better than guessing: the first one found has weighted error {error:.6g}. Give a "
        "stronger learner (estimator=…), or columns that tell the classes apart."
    )


# --------------------------------------------------------------------------------------------------------------------
# Variants of AdaBoost that revise earlier votes: totally corrective boosting and FloatBoost.
#
# **Totally corrective** (J. Kivinen and M. Warmuth, Boosting as entropy projection, 1999): after each round the votes
# of *all* learners minimise the exponential loss, φ(a) = Σ_i w_i exp(Σ_t a_t(1[h_t wrong on i] − c)) over a ≥ 0 with
# c = (K−1)/K. φ is convex; a projected Newton method (D. Bertsekas, 1982) ends where every learner with a vote has
# the error c of a guess under D, and no other has less. Where the learners separate the rows, φ has no minimum but
# the limit zero, and the votes stop growing when the gradient is below the tolerance, in units of φ(0) = 1.
#
# **FloatBoost** (S. Li and Z. Zhang, FloatBoost learning and statistical face detection, 2004): after each round,
# remove the learner whose removal leaves the smallest loss, as long as that loss is below the smallest ever reached
# with that many learners. Every removal lowers a recorded minimum, so that the walk cannot cycle.


Wrong = NDArray[np.uint8]

_CHUNK_ROWS = 2**13  # rows of a table of errors at a time
_MOST_STEPS = 200  # of the search for the best votes, at most
_ARMIJO = 1e-4  # share of the slope that a step must earn: the usual value
_ACTIVE = 1e-10  # votes below it count as zero
#: Steps that lower the gradient, though the loss is flat to the last digit.
_LAST_STEPS = 3
#: A removal has to lower the recorded loss by this share: rounding is no reason to remove anybody.
_HELPFUL = 1e-9


class Corrected(NamedTuple):
    """Votes of all learners."""

    votes: Array  #: (T,) a ≥ 0
    g: Array  #: (n,) Σ_t a_t·1[h_t wrong on i]
    gradient: float  #: largest entry of the projected gradient
    n_iter: int


def correct_votes(
    wrong: Wrong, weight: Array, n_classes: int, start: Array, tol: float, stop: Callable[[], bool] = never
) -> Corrected:
    """Minimise φ over the votes of all learners.

    Parameters
    ----------
    wrong : (T, n) uint8
        Which learner errs on which row.
    weight : (n,) float64
        Positive, with sum one.
    n_classes : int
        K.
    start : (T,) float64
        Votes to begin with.
    tol : float
        Largest projected gradient left.
    stop : function
        Asked once a step; True returns the votes so far.
    """
    c = (n_classes - 1) / n_classes
    a = np.maximum(start, 0.0)
    z = combine(wrong, a) - c * a.sum()
    value = float(weight @ np.exp(z))
    n_iter = 0
    flat = 0
    while True:
        E = weight * np.exp(z)
        gradient, hessian = _derivatives(wrong, E, c)
        worst = float(np.where(a > 0, np.abs(gradient), np.maximum(-gradient, 0.0)).max())
        if worst <= tol or n_iter == _MOST_STEPS or flat == _LAST_STEPS or stop():
            break
        n_iter += 1
        free = (a > _ACTIVE) | (gradient < 0)
        direction = -a  # a vote that is almost zero, and should fall, becomes zero
        ridge = 1e-12 * max(float(np.trace(hessian)), value) * np.eye(int(free.sum()))
        direction[free] = -np.linalg.solve(hessian[np.ix_(free, free)] + ridge, gradient[free])
        moved = _search(wrong, weight, c, a, direction, gradient, value)
        if moved is None:  # nothing more that float64 could tell apart
            break
        flat += moved[2] >= value
        a, z, value = moved
    return Corrected(a, combine(wrong, a), worst, n_iter)


def _search(
    wrong: Wrong, weight: Array, c: float, a: Array, direction: Array, gradient: Array, value: float
) -> tuple[Array, Array, float] | None:
    """Halve the step along the projected arc until φ falls enough (Armijo)."""
    step = 1.0
    rounding = 4 * np.finfo(np.float64).eps * value
    while step > 1e-12:
        trial = np.maximum(a + step * direction, 0.0)
        z = combine(wrong, trial) - c * trial.sum()
        with np.errstate(over="ignore"):
            found = float(weight @ np.exp(z))
        if found <= value + _ARMIJO * float(gradient @ (trial - a)) + rounding:
            return trial, z, found
        step /= 2
    return None


def _derivatives(wrong: Wrong, E: Array, c: float) -> tuple[Array, Array]:
    """Return gradient and Hessian of φ, whose terms are E; the rows are taken in chunks."""
    T = len(wrong)
    G = np.zeros(T)
    H = np.zeros((T, T))
    for start in range(0, len(E), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        B = wrong[:, rows].astype(np.float64)
        G += B @ E[rows]
        H += (B * E[rows]) @ B.T
    total = float(E.sum())
    return G - c * total, H - c * (G[:, None] + G) + c * c * total


def combine(wrong: Wrong, votes: Array) -> Array:
    """Return Σ_t votes_t·wrong_t for each row."""
    found = np.zeros(wrong.shape[1])
    for start in range(0, len(found), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        found[rows] = votes @ wrong[:, rows].astype(np.float64)
    return found


def losses_without(wrong: Wrong, votes: Array, D: Array, loss: float, n_classes: int) -> Array:
    """Return the exponential loss that is left if one learner is removed, for each of them.

    A learner with error ε under the present D leaves L·e^{ac}((1 − ε) + εe^{−a}).
    """
    error = _errors(wrong, D)
    return loss * np.exp(votes * (n_classes - 1) / n_classes) * ((1.0 - error) + error * np.exp(-votes))


def _errors(wrong: Wrong, D: Array) -> Array:
    found = np.zeros(len(wrong))
    for start in range(0, len(D), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        found += wrong[:, rows].astype(np.float64) @ D[rows]
    return found


class SmallestLosses:
    """The smallest loss reached with each number of learners, by which FloatBoost decides."""

    def __init__(self) -> None:
        self.of_size: dict[int, float] = {0: 1.0}

    def record(self, size: int, loss: float) -> None:
        """Note the loss of an ensemble."""
        self.of_size[size] = min(loss, self.of_size.get(size, np.inf))

    def improved_by(self, size: int, loss: float) -> bool:
        """Tell whether an ensemble of this size would be better than any before."""
        return loss < self.of_size.get(size, np.inf) * (1.0 - _HELPFUL)


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
    votes = watch.best_votes if held is not None else np.array(walk.votes)
    removed = np.array(walk.removed)
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
        self.weak = weak
        self.y = y
        self.weight = weight / weight.sum()
        self.K = n_classes
        self.plan = plan
        self.run = run
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
        before = self.state.loss
        outputs = vote * np.asarray(found.scores)
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
        self.held = held
        self.K = n_classes
        self.plan = plan
        self.errors: list[float] = []
        self.outputs: list[Array] = []
        self.best_round = -1
        self.best_votes = np.empty(0)
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
            self.best_round = len(self.errors) - 1
            self.best_votes = np.array(walk.votes)
            self.best_gradient = walk.gradient
        return len(self.errors) - 1 - self.best_round >= (self.plan.patience or np.inf)
