"""The recursion of boosting by majority: Learn(ε, δ, EX), its filters and its votes. Which model learns is not known.

A hypothesis is a number: −1 and −2 always name class 0 and 1, 0 … W − 1 are the weak learners, and vote v has number
W + v. While learning, votes are counted from `_VOTE`; what the root does not need is dropped at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from ...core import Array, DataError, NDArray, Run
from ...data.arrays import sound_csr

# --------------------------------------------------------------------------------------------------------------------
# Sources of examples for boosting by filtering: a function that returns rows, or rows drawn from a table.
#
# A source counts its calls and stops when they are spent. `draw` returns a batch, `opinions` what a weak learner says
# of it. Rows of a table are drawn by number, so that each learner judges each row once, however often it is drawn.


Codes = NDArray[np.int64]


class Batch(NamedTuple):
    """Examples."""

    rows: Any  #: row numbers of the table, or the rows themselves
    y: Codes  #: class codes 0 and 1

    def take(self, which: Any) -> Batch:
        """Return some of the examples."""
        return Batch(self.rows[which], self.y[which])


class Examples:
    """What both sources share: a count, a limit, and what learners say. They add `_draw`, `table` and `opinion_of`."""

    def __init__(self, rng: np.random.Generator, max_calls: int, run: Run) -> None:
        self.rng = rng
        self.max_calls = max_calls
        self.run = run
        self.n_calls = 0
        self.learners: list[Any] = []
        #: Set by the model: (learner, X) -> class codes.
        self.says: Callable[[Any, Any], Codes]

    @property
    def spent(self) -> bool:
        """Whether no more examples may be drawn."""
        return self.n_calls >= self.max_calls or self.run.should_stop()

    def draw(self, count: int) -> Batch:
        """Return `count` examples."""
        self.n_calls += count
        drawn: Batch = self._draw(count)  # type: ignore[attr-defined]
        return drawn

    def add(self, learner: Any) -> int:
        """Remember a weak learner; return its number."""
        self.learners.append(learner)
        return len(self.learners) - 1

    def chances(self) -> Array | None:
        """Return the distribution over the rows of a table; None if it is not known."""
        return None


class TableExamples(Examples):
    """Rows of a table, drawn with replacement in proportion to their weights."""

    def __init__(
        self,
        X: Any,
        y: Codes,
        weight: Array | None,
        rng: np.random.Generator,
        max_calls: int,
        run: Run,
    ) -> None:
        super().__init__(rng, max_calls, run)
        self.X = X
        self.y = y
        self.weight = weight
        self._below = None if weight is None else np.cumsum(weight / weight.sum())
        self._opinions: list[NDArray[np.int8]] = []
        self._all = np.arange(len(y))

    def chances(self) -> Array:
        """Return the distribution D over the rows."""
        n = len(self.y)
        return np.full(n, 1.0 / n) if self.weight is None else self.weight / self.weight.sum()

    def whole(self) -> Batch:
        """Return all rows."""
        return Batch(self._all, self.y)

    def add(self, learner: Any) -> int:
        """Remember a weak learner and what it says of all rows."""
        self._opinions.append(self.says(learner, self.X).astype(np.int8))
        return super().add(learner)

    def opinion(self, number: int) -> Codes:
        """Return what weak learner `number` says of the table."""
        return self._opinions[number].astype(np.int64)

    def opinion_of(self, number: int, batch: Batch) -> Codes:
        """Return the classes that weak learner `number` names."""
        return self._opinions[number][batch.rows].astype(np.int64)

    def table(self, batch: Batch) -> Any:
        """Return the rows of a batch as a table."""
        return self.X[batch.rows]

    def _draw(self, count: int) -> Batch:
        n = len(self.y)
        if self._below is None:
            rows = self.rng.integers(n, size=count)
        else:
            rows = np.minimum(np.searchsorted(self._below, self.rng.random(count), side="right"), n - 1)
        return Batch(rows, self.y[rows])


class OracleExamples(Examples):
    """Examples from a function of the user: `oracle(m)` returns m rows and their labels."""

    def __init__(
        self,
        oracle: Callable[[int], tuple[Any, Any]],
        classes: NDArray[Any],
        rng: np.random.Generator,
        max_calls: int,
        run: Run,
    ) -> None:
        super().__init__(rng, max_calls, run)
        self.oracle = oracle
        self.classes = classes
        self.n_columns = -1

    def opinion_of(self, number: int, batch: Batch) -> Codes:
        """Return the classes that weak learner `number` names."""
        return self.says(self.learners[number], batch.rows)

    def table(self, batch: Batch) -> Any:
        """Return the rows of a batch as a table."""
        return batch.rows

    def _draw(self, count: int) -> Batch:
        X, y = self.oracle(count)
        X = sound_csr("BoostByMajority", X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        y = np.asarray(y)
        if X.ndim != 2 or X.shape[0] != count or y.shape != (count,):
            raise DataError(
                f"BoostByMajority: oracle({count}) must return {count} rows and {count} labels, got arrays of shapes "
                f"{X.shape} and {y.shape}."
            )
        self.n_columns = X.shape[1] if self.n_columns < 0 else self.n_columns
        if X.shape[1] != self.n_columns:
            raise DataError(f"BoostByMajority: the oracle gave {self.n_columns} columns before, now {X.shape[1]}.")
        if not np.isfinite(X.data if sp.issparse(X) else X).all():
            raise DataError("BoostByMajority: the oracle gave NaN or infinity; the weak learners need finite numbers.")
        codes = np.searchsorted(self.classes, y).clip(max=1)
        if not (self.classes[codes] == y).all():
            stranger = y[self.classes[codes] != y][0]
            raise DataError(f"BoostByMajority: the oracle gave the label {stranger!r}, which is not one of classes.")
        return Batch(X, codes.astype(np.int64))


Error = TypeVar("Error", float, Array)

_VOTE = 2**40  # number of the first vote: hypotheses have smaller ones
_BATCH = 2**14  # examples that a filter asks for at once, at most


def boosted_error(error: Error) -> Error:
    """Return g(ε) = 3ε² − 2ε³, the error of the majority of three.

    Examples
    --------
    >>> round(boosted_error(0.4), 5), round(boosted_error(boosted_error(0.4)), 5)
    (0.352, 0.28448)
    """
    return error * error * (3.0 - 2.0 * error)


def needed_error(error: float) -> float:
    """Return g⁻¹(ε) in [0, ½]: the error that the three may have.

    Examples
    --------
    >>> round(needed_error(0.352), 12)
    0.4
    """
    return float(0.5 - np.sin(np.arcsin(1.0 - 2.0 * error) / 3.0))


class Learned(NamedTuple):
    """The outcome."""

    root: int
    votes: Codes  #: (V, 3)
    used: list[int]  #: weak learners that the votes are made of
    learners: list[Any]  #: all of them
    stopped: bool  #: before the recursion was finished
    estimate: Callable[[float, float], float | None]  #: the error, within τ with probability 1 − δ

    @property
    def weak(self) -> list[Any]:
        """The weak learners that the votes are made of."""
        return [self.learners[number] for number in self.used]


class Source(NamedTuple):
    """Examples of one distribution, filtered or not."""

    draw: Callable[[int], Batch | None]  #: None when the calls are spent
    chances: Array | None  #: the distribution, where it is one over the rows of a table


class Recursion:
    """Learn(ε, δ, EX).

    Parameters
    ----------
    examples : Examples
        The oracle.
    fit_weak : callable
        (X, y, number) -> weak learner.
    gamma : float
        The edge that it has.
    sample_size : int
        Examples for each weak learner.
    run : Run
        Clock and callbacks.
    """

    def __init__(
        self, examples: Any, fit_weak: Callable[[Any, Codes, int], Any], gamma: float, sample_size: int, run: Run
    ) -> None:
        self.examples = examples
        self.fit_weak = fit_weak
        self.gamma = gamma
        self.sample_size = sample_size
        self.run = run
        self.stopped = False
        self.votes: list[tuple[int, int, int]] = []

    def learn(self, epsilon: float, delta: float) -> Learned:
        """Return the hypothesis for the examples as they come, and all that it consists of."""
        source = Source(self.examples.draw, self.examples.chances())
        root = self._learn(epsilon, delta, source)

        def estimate(within: float, delta: float) -> float | None:
            return self._estimate(root, within, delta, source)

        return Learned(*_keep_used(root, self.votes), self.examples.learners, self.stopped, estimate)

    def _learn(self, epsilon: float, delta: float, source: Source) -> int:
        if epsilon >= (0.5 - self.gamma) * (1.0 - 1e-12):
            return self._learn_weakly(source)
        alpha = needed_error(epsilon)
        known = source.chances is not None  # then errors are computed, not estimated
        h1 = self._learn(alpha, delta / 5, source)
        tau = 0.0 if known else epsilon / 3
        a1 = self._estimate(h1, tau, delta / 5, source)
        if a1 is None or a1 <= epsilon - tau:
            return h1
        h2 = self._learn(alpha, delta / 5, self._half_wrong(h1, source))
        tau = 0.0 if known else (1.0 - 2.0 * alpha) * epsilon / 9
        e2 = None if self.stopped else self._estimate(h2, tau, delta / 5, source)
        if e2 is None:
            return h1  # what h2 is worth is not known
        if e2 <= epsilon - tau:
            return h2
        differing = self._differing(h1, h2, source)
        if differing is None:
            return h1
        h3 = self._learn(alpha, delta / 5, differing)
        if self.stopped:
            return h1 if a1 <= e2 else h2
        self.votes.append((h1, h2, h3))
        return _VOTE + len(self.votes) - 1

    def _half_wrong(self, h1: int, source: Source) -> Source:
        """Return EX₂: with equal chances the first example that h₁ gets right, or the first that it gets wrong."""

        def draw(count: int) -> Batch | None:
            heads = self.examples.rng.random(count) < 0.5
            right = self._filter(source, int(heads.sum()), lambda b: self.say(h1, b) == b.y)
            wrong = self._filter(source, int((~heads).sum()), lambda b: self.say(h1, b) != b.y)
            if right is None or wrong is None:
                return None
            # A filter on top takes the first that pass: the order must be that of the coins.
            return _join([right, wrong]).take(np.argsort(np.argsort(~heads, kind="stable")))

        if source.chances is None:
            return Source(draw, None)
        whole = self.examples.whole()
        return Source(draw, half_wrong_chances(source.chances, self.say(h1, whole) != whole.y))

    def _differing(self, h1: int, h2: int, source: Source) -> Source | None:
        """Return EX₃, the examples on which h₁ and h₂ differ; None if they never do."""

        def draw(count: int) -> Batch | None:
            return self._filter(source, count, lambda b: self.say(h1, b) != self.say(h2, b))

        if source.chances is None:
            return Source(draw, None)
        whole = self.examples.whole()
        D = source.chances * (self.say(h1, whole) != self.say(h2, whole))
        return Source(draw, D / D.sum()) if D.sum() > 0 else None

    def _learn_weakly(self, source: Source) -> int:
        batch = source.draw(self.sample_size)
        number = len(self.examples.learners)
        if batch is None:
            return -1  # the caller sees `stopped` and discards it
        if self.run.progress(number + 1, 0.5 - self.gamma):
            self.stopped = True
        if (batch.y == batch.y[0]).all():
            return -1 - int(batch.y[0])
        return int(self.examples.add(self.fit_weak(self.examples.table(batch), batch.y, number)))

    def _estimate(self, h: int, within: float, delta: float, source: Source) -> float | None:
        """Return the error of h: exactly, or from enough examples for Hoeffding's inequality; None if there are none.

        Examples that are drawn already serve no second time: h was chosen by them.
        """
        if source.chances is not None:
            whole = self.examples.whole()
            return float(source.chances @ (self.say(h, whole) != whole.y))
        count = int(np.ceil(np.log(2.0 / delta) / (2.0 * within**2)))
        wrong = done = 0
        while done < count:
            batch = None if self._out_of_examples() else source.draw(min(_BATCH, count - done))
            if batch is None:
                return None
            wrong += int((self.say(h, batch) != batch.y).sum())
            done += len(batch.y)
        return wrong / count

    def _filter(self, source: Source, count: int, keep: Callable[[Batch], NDArray[np.bool_]]) -> Batch | None:
        """Return the first `count` examples that pass; None if the calls are spent before."""
        parts: list[Batch] = []
        missing = count
        share = 0.5
        while missing > 0 or not parts:
            if self._out_of_examples():
                return None
            batch = source.draw(int(min(_BATCH, max(16, missing / max(share, 1e-3)))))
            if batch is None:
                return None
            passed = np.flatnonzero(keep(batch))
            share = 0.5 * (share + len(passed) / len(batch.y))
            parts.append(batch.take(passed[:missing]))
            missing -= len(parts[-1].y)
        return _join(parts)

    def _out_of_examples(self) -> bool:
        self.stopped = self.stopped or self.examples.spent
        return self.stopped

    def say(self, h: int, batch: Batch) -> Codes:
        """Return the classes that a hypothesis names."""
        if h < 0:
            return np.full(len(batch.y), -1 - h, dtype=np.int64)
        if h < _VOTE:
            return np.asarray(self.examples.opinion_of(h, batch))
        one, two, three = self.votes[h - _VOTE]
        first = self.say(one, batch)
        second = self.say(two, batch)
        differ = np.flatnonzero(first != second)
        if len(differ):
            first = first.copy()
            first[differ] = self.say(three, batch.take(differ))
        return first


def votes_of_three(root: int, votes: Codes, opinions: list[Codes], n: int) -> Codes:
    """Return the class that hypothesis `root` names for each of n rows, given what the weak learners say."""
    return _named(root, _all_opinions(votes, opinions, n), n)


def vote_errors(root: int, votes: Codes, opinions: list[Codes], y: Codes, D: Array) -> Array:
    """Return each vote's errors (V, 4): of its three under their distributions, and its own.

    A vote's distribution is D at the root, and follows from the vote above it everywhere else.
    """
    W = len(opinions)
    V = len(votes)
    said = _all_opinions(votes, opinions, len(y))
    errors = np.empty((V, 4))
    distribution = {root: D}
    for v in range(V - 1, -1, -1):
        own = distribution.pop(W + v)
        h = votes[v].tolist()
        a, b, c = (_named(i, said, len(y)) for i in h)
        wrong = a != y
        a1 = float(own @ wrong)
        D2 = half_wrong_chances(own, wrong)
        D3 = own * (a != b)
        D3 = D3 / D3.sum()
        errors[v] = a1, D2 @ (b != y), D3 @ (c != y), own @ (said[W + v] != y)
        for i, part in zip(h, (own, D2, D3), strict=True):
            if i >= W:
                distribution[i] = part
    return errors


def half_wrong_chances(D: Array, wrong: NDArray[np.bool_]) -> Array:
    """Return D₂: half of the weight on the wrong rows; all of it on one side where the other has none.

    Examples
    --------
    >>> half_wrong_chances(np.array([0.1, 0.2, 0.7]), np.array([True, True, False])).round(3).tolist()
    [0.167, 0.333, 0.5]
    """
    bad = float(D @ wrong)
    if not 0.0 < bad < 1.0:
        return D
    return D * np.where(wrong, 0.5 / bad, 0.5 / float(D @ ~wrong))


def _all_opinions(votes: Codes, opinions: list[Codes], n: int) -> list[Codes]:
    """Return what the weak learners say, and then the votes."""
    said = list(opinions)
    for vote in votes.tolist():
        one, two, three = (_named(h, said, n) for h in vote)
        said.append(np.where(one == two, one, three))
    return said


def _named(h: int, said: list[Codes], n: int) -> Codes:
    return said[h] if h >= 0 else np.full(n, -1 - h, dtype=np.int64)


def _keep_used(root: int, votes: list[tuple[int, int, int]]) -> tuple[int, Codes, list[int]]:
    """Return root and votes with the numbers of what the root needs, and which weak learners these are."""
    needed = set[int]()
    waiting = [root]
    while waiting:
        h = waiting.pop()
        needed.add(h)
        if h >= _VOTE:
            waiting.extend(votes[h - _VOTE])
    ordered = sorted(h for h in needed if h >= 0)
    number = {h: h for h in (-1, -2)} | {h: i for i, h in enumerate(ordered)}
    kept = [[number[part] for part in votes[h - _VOTE]] for h in ordered if h >= _VOTE]
    weak = [h for h in ordered if h < _VOTE]
    return number[root], np.array(kept, dtype=np.int64).reshape(-1, 3), weak


def _join(parts: list[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]
    rows = [part.rows for part in parts]
    joined = sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.concatenate(rows)
    return Batch(joined, np.concatenate([part.y for part in parts]))
