"""The boosting loop: rounds of trees fitted to the derivatives of any loss.

    F_0 = argmin_c Σ w V(y, c)
    for m = 1 … M:   g, h = V′, V″ at F_{m−1};   T_m = a tree for them;   F_m = F_{m−1} + ρ_m T_m

| direction         | the tree                                                                 | its leaves            |
|-------------------|--------------------------------------------------------------------------|-----------------------|
| `"newton"`        | minimises Σ(gT + ½hT²) + γ·leaves + ½λ‖T‖² (Chen and Guestrin, XGBoost)  | −G/(H + λ)            |
| `"gradient"`      | fits −g by least squares (Friedman)                                      | mean of −g, then best |
| `"inner-product"` | maximises −⟨g, T⟩ over trees with leaves ±1 (Mason et al., AnyBoost)     | ±1                    |

Leaves are then replaced by the best value for the loss, unless `leaf="fitted"`: for smooth losses Newton's step, for
the others, and with `leaf="minimiser"`, the minimiser of the loss. Steps: ρ = η, η/√m, or η times the minimiser of the
loss along T_m. No round may raise the training loss: Newton's steps are bounded, and a round that would raise it takes
a smaller step, or none. With several outputs a round has one tree for each, all for the same derivatives, and
one step.

Everything drawn in round m (rows, columns) depends on the seed and on m alone, so that a warm start goes on as if it
had never stopped. References: J. Friedman, Annals of Statistics 29 (2001), and Stochastic gradient boosting (2002); L.
Mason et al., Boosting algorithms as gradient descent, NIPS 1999; G. Ke et al., LightGBM, NIPS 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import minimize_scalar

from ...core import Array, NDArray, Run, TaskTeam, resolve_n_jobs
from ...core.threads import Background
from ...data.any_order import ALONE, LEDGER, World, mean, read_ledger, sums_by_group, total
from ...trees._random import tree_seed
from ...trees.growth import Grown, GrowthStopped
from ...trees.layout import Trees
from ._kernels import BLOCK, CLASSES, add_leaves, evaluate_classes, evaluate_scores
from .losses import BoostingLoss, prepare

# --------------------------------------------------------------------------------------------------------------------
# How far a round may go: bounded Newton steps, and no rise of the training loss.
#
# Newton's step v = −G/(H + λ) trusts a parabola. Where a class is rare, H is tiny and |v| is hundreds: the parabola is
# far from the loss by then, and later rounds overcorrect. On a logarithmic scale (log-odds, logarithms of means)
# |V‴| ≤ V″, hence H(v) ≤ H e^{|v|}, and the loss of a leaf is at most
#
#     Gv + (H + λ)(e^{|v|} − 1 − |v|),    which is least at    |v| = log(1 + |G|/(H + λ)):
#
# for Poisson and gamma deviances the exact minimiser on the steep side. A step is therefore cut at
#
#     max(Δ, log(1 + |v|)),
#
# so that it stays Newton's where it is short. Afterwards the training loss is compared with that before the round. If
# it has risen, the step of the round is halved until it has not; after `_HALVINGS` of them the round is refused.
# Where rows are drawn, the loss of the drawn rows, with the weights they were drawn with, may fall instead.


#: Δ of second-order rounds, in units of the score before the learning rate. Two is Newton's step of a pure leaf at even
#: odds. Of 1.5, 2, 4, 8 and none on tables with 0.5 to 2 % of a rare class, two had the smallest median log loss.
TRUST = 2.0
#: Δ of Friedman's rounds ("gradient"): wide, so that ordinary fits are scikit-learn's; at a learning rate of 0.1 the
#: bound above still proves a fall.
FRIEDMAN_TRUST = 32.0
_HALVINGS = 40
_SLACK = 1e-10  # what rounding may add to a mean loss, relative to the largest of the trace


def radius(logarithmic: bool, direction: str) -> float:
    """Return Δ."""
    if not logarithmic:
        return np.inf
    return TRUST if direction == "newton" else FRIEDMAN_TRUST


def bounded(values: Array, loss: BoostingLoss, direction: str) -> Array:
    """Return Newton's steps, cut where they leave the region in which they are trusted."""
    limit = radius(loss.logarithmic, direction)
    if not np.isfinite(limit):
        return values
    size = np.maximum(limit, np.log1p(np.abs(values)))
    return np.clip(values, -size, size)


def planned_step(plan: Any, m: int) -> float:
    """Return ρ of round m before any damping: η, or η/√(m + 1)."""
    return float(plan.learning_rate / (np.sqrt(m + 1.0) if plan.step == "sqrt-decay" else 1.0))


def rises(before: float, after: float, scale: float) -> bool:
    """Tell whether a loss has risen by more than rounding explains; NaN has."""
    return not after <= before + _SLACK * max(abs(before), abs(scale))


class Descent:
    """The training loss before one round, and what becomes of a round that raises it.

    Parameters
    ----------
    evaluate : Evaluator
        The loss, targets and weights.
    weight, rows : (n,) or None
        Weights and numbers of the rows that the round has drawn; None: all.
    start : (K, n)
        Scores before the round.
    trace : list of float
        Mean losses so far.
    """

    def __init__(self, evaluate: Evaluator, weight: Array | None, rows: Any, start: Array, trace: Any) -> None:
        self.loss, self.y, self.w, self.world = evaluate.loss, evaluate.y, evaluate.w, evaluate.world
        self.weight, self.rows, self.start = weight, rows, start
        self.scale = trace[0]
        # Huber's δ is new in each round, so that the last entry of the trace is of another loss.
        self.before = self._mean(start) if self.loss.moving is not None else trace[-1]

    def broken(self, F: Array, after: float) -> bool:
        """Tell whether scores F, whose mean loss is `after`, are worse than those before the round."""
        if not rises(self.before, after, self.scale):
            return False
        if self.rows is None:
            return True
        if self.loss.moving is not None:
            prepare(self.loss, self.y, self.start, self.w, self.world)
        return rises(self._drawn(self.start), self._drawn(F), self.scale)

    def damped(self, F: Array, move: Callable[[float], None], rho: float) -> float:
        """Return the largest of ρ/2, ρ/4, … that keeps the law, or zero; F has moved by it."""
        prepare(self.loss, self.y, self.start, self.w, self.world)  # δ of this round
        for _ in range(_HALVINGS):
            rho /= 2.0
            move(rho)
            if not self.broken(F, self._mean(F)):
                return rho
        np.copyto(F, self.start)
        return 0.0

    def _mean(self, F: Array) -> float:
        return mean_loss(self.loss, self.y, F, self.w, self.world)

    def _drawn(self, F: Array) -> float:
        weight = None if self.weight is None else self.weight[self.rows]
        return mean_loss(self.loss, self.y[self.rows], F[:, self.rows], weight, self.world)


def describe_descent(trace: Array, steps: Array, plan: Any, loss: Any) -> str:
    """Say in words whether a trace of losses falls, how many rounds were damped, and why it rises where it does."""
    n = len(steps)
    damped = 0
    if plan.step != "line-search":
        damped = sum(float(step) != planned_step(plan, m) for m, step in enumerate(steps))
    ups = int(sum(rises(a, b, trace[0]) for a, b in pairwise(trace)))
    words = f"the training loss falls or stays in all {n} rounds"
    if ups:
        reason = "Huber's δ, and with it the loss, is new in each round" if loss == "huber" else ""
        reason = reason or "rows are drawn, and it is the loss of the drawn rows that falls in each round"
        words = f"the training loss of all rows rises in {ups} of {n} rounds: {reason}"
    return words + (f"; {damped} rounds took a smaller step than planned, so as not to raise it" if damped else "")


# --------------------------------------------------------------------------------------------------------------------
# Derivatives and mean loss of all rows in one pass: fused kernels on threads where there are some, else NumPy.


_FEW_ROWS = 1 << 16  # handing work to a thread takes longer


class Evaluator:
    """The loss of the training rows.

    Parameters
    ----------
    loss : BoostingLoss
        V.
    y, w : (n,), (n,) or None
        Targets as the loss wants them, and weights.
    n_threads : int
        Threads; results do not depend on it.
    world : World
        Where the other rows of the table are; results do not depend on how they are shared out.
    empty : function
        Gives the memory of what there is per row, as `np.empty` does.

    Attributes
    ----------
    g, h : (K, n)
        Derivatives at the scores of the last call; its next call overwrites them.
    """

    def __init__(
        self,
        loss: BoostingLoss,
        y: Array,
        w: Array | None,
        n_threads: int = 1,
        world: World = ALONE,
        empty: Any = np.empty,
    ) -> None:
        self.loss, self.y, self.w, self.world = loss, y, w, world
        n, K = len(y), loss.n_outputs
        self.blocks = -(-n // BLOCK)
        counts = np.zeros(world.size, np.int64)
        counts[world.rank] = n
        counts = world.sum(counts)
        self.first, self.n_rows = int(counts[: world.rank].sum()), int(counts.sum())
        self.total_weight = float(self.n_rows) if w is None else total(w, None, world)
        self.g = self.h = np.empty((0, 0))
        self._w = np.empty(0) if w is None else w
        self._sums = np.zeros((self.blocks, LEDGER), np.int64)
        if loss.fused is not None:
            self.g, self.h = empty((K, n)), empty((K, n))
        self._scores, self._leaves = empty((K, n)), empty((K if K > 1 else 0, n), np.int32)
        self.n_threads = n_threads if n >= _FEW_ROWS else 1
        self._team = TaskTeam(self.n_threads)

    def close(self) -> None:
        """End the threads."""
        self._team.close()

    def __call__(self, F: Array) -> float:
        """Return the mean loss at F, and compute the derivatives there."""
        kind, y, w = self.loss.fused, self.y, self._w
        if kind is None:
            value = mean_loss(self.loss, y, F, self.w, self.world)
            prepare(self.loss, y, F, self.w, self.world)
            self.g, self.h = self.loss.derivatives(y, F)
            return value
        if kind == CLASSES:
            self._share(lambda a, b: evaluate_classes(y, F, w, self.g, self.h, self._sums, a, b))
        else:
            self._share(lambda a, b: evaluate_scores(kind, y, F[0], w, self.g[0], self.h[0], self._sums, a, b))
        value = float(read_ledger(self.world.sum(self._sums.sum(axis=0)))) / self.total_weight
        return np.inf if np.isnan(value) else value

    def kept_scores(self, F: Array) -> Array:
        """Return a copy of the scores, in memory that the next call overwrites."""
        np.copyto(self._scores, F)
        return self._scores

    def kept_leaves(self, k: int, leaf: Any) -> Any:
        """Return a copy of the leaves of the rows in the tree of output k, which the next tree would overwrite."""
        np.copyto(self._leaves[k], leaf)
        return self._leaves[k]

    def add(self, F: Array, leaf: Any, value: Array) -> None:
        """Add the values of their leaves to the scores (n,) of one output."""
        self._share(lambda a, b: add_leaves(F, leaf, value, a, b))

    def _share(self, work: Callable[[int, int], None]) -> None:
        """Call work(first, last) for a run of blocks on each thread."""
        cuts = [self.blocks * t // self.n_threads for t in range(self.n_threads + 1)]
        self._team.run(lambda t: work(cuts[t], cuts[t + 1]), self.n_threads)


def mean_loss(loss: BoostingLoss, y: Array, F: Array, w: Array | None, world: World = ALONE) -> float:
    """Return the weighted mean of the loss over the rows of all parts; infinite where it is not a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = mean(loss.value(y, F), w, world)
    return np.inf if np.isnan(value) else value


Rows = NDArray[np.int64]
Leaves = NDArray[np.int32]


class Learner(Protocol):
    """What grows the trees."""

    def grow(self, direction: str, g: Array, h: Array, w: Array | None, rows: Rows | None, seed: int) -> Grown:
        """Return a tree for derivatives g, h (n,) and weights w, and the leaf of every row, also of those not used."""
        ...


@dataclass(frozen=True)
class Plan:
    """What the rounds do.

    Attributes
    ----------
    n_rounds : int
        M.
    learning_rate, step : float, str
        η, and what it multiplies.
    direction, leaf : str
        What the trees fit, and whether leaves are then made best for the loss.
    subsample, sampling : float, str
        Share of the rows in a round, and whether rows with large gradients come first.
    seed : int
        Of all draws.
    monotonic : (d,) int8 or None
        Signs that leaf values have to respect.
    """

    n_rounds: int
    learning_rate: float
    step: str = "fixed"
    direction: str = "newton"
    leaf: str = "best"
    subsample: float = 1.0
    sampling: str = "uniform"
    seed: int = 0
    monotonic: NDArray[np.int8] | None = None


@dataclass
class Rounds:
    """What the rounds leave behind.

    Attributes
    ----------
    F : (K, n)
        Scores of the training rows.
    trees : list of Trees
        K for each round; their values are multiplied by the step.
    steps : list of float
        ρ_m.
    losses : list of float
        Mean training loss before the first round and after each.
    outside : list of (float, float)
        With sampled rows: mean loss of the other rows before and after the round.
    """

    F: Array
    trees: list[Trees] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    outside: list[tuple[float, float]] = field(default_factory=list)


def boost(
    loss: BoostingLoss,
    y: Array,
    w: Array | None,
    learner: Learner,
    plan: Plan,
    run: Run,
    rounds: Rounds,
    watch: Callable[[Rounds, list[Trees]], bool] | None = None,
    world: World = ALONE,
    empty: Any = np.empty,
) -> Rounds:
    """Go on from `rounds` until there are `plan.n_rounds`, the time is up, or `watch` says that it is enough.

    Ctrl-C raises the run's flag, which the grower polls. Where the rows lie in several places, each runs this on its
    own, and all do the same.
    """
    evaluate = Evaluator(loss, y, w, resolve_n_jobs(run.n_jobs), world, empty)

    def loop() -> None:
        prepare(loss, y, rounds.F, w, world)
        now = evaluate(rounds.F)
        if not rounds.losses:
            rounds.losses.append(now)
        for m in range(len(rounds.steps), plan.n_rounds):
            try:
                trees, progress = _round(evaluate, learner, plan, rounds, m)
            except GrowthStopped:
                return
            enough = watch is not None and watch(rounds, trees)
            if run.progress(m + 1, rounds.losses[-1]) or enough or not progress:
                return

    try:
        _watched(loop, run, lambda: len(rounds.steps) > 0)
    finally:
        evaluate.close()
    return rounds


def _round(evaluate: Evaluator, learner: Learner, plan: Plan, rounds: Rounds, m: int) -> tuple[list[Trees], bool]:
    """Add one round; return its trees, and whether a next one could do more."""
    loss, y, w, F = evaluate.loss, evaluate.y, evaluate.w, rounds.F
    g, h, K = evaluate.g, evaluate.h, loss.n_outputs
    rows, factor = draw_round(plan, g, w, m, evaluate.first, evaluate.n_rows)
    weight = w
    if factor is not None:
        weight = factor if w is None else w * factor
    out = None if rows is None or plan.sampling == "gradient" else np.setdiff1d(np.arange(len(y)), rows)
    outside = _mean_of(evaluate, F, out)
    start = evaluate.kept_scores(F)
    law = Descent(evaluate, weight, rows, start, rounds.losses)
    # Scores may move at once where no other tree of the round has to see them as they were.
    at_once = plan.step != "line-search" and (K == 1 or (loss.smooth and plan.leaf != "minimiser"))
    rho = planned_step(plan, m)
    grown: list[tuple[Trees, Array, Leaves]] = []
    for k in range(K):
        found = learner.grow(plan.direction, g[k], h[k], weight, rows, tree_seed(plan.seed, m * K + k))
        values = leaf_values(loss, plan, found, k, y, F, g[k], h[k], weight, rows, evaluate.world)
        leaf = found.leaf_of_row if K == 1 else evaluate.kept_leaves(k, found.leaf_of_row)
        grown.append((found.tree, values, leaf))
        if at_once:
            evaluate.add(F[k], leaf, rho * values)

    def move(step: float) -> None:
        np.copyto(F, start)
        for k, (_, values, leaf) in enumerate(grown):
            evaluate.add(F[k], leaf, step * values)

    if plan.step == "line-search":
        direction = np.stack([values[leaf] for _, values, leaf in grown])
        rho = _searched(evaluate, plan, F, direction, rounds.losses[-1])
    if not at_once:
        move(rho)
    after = evaluate(F)
    if plan.step != "line-search" and law.broken(F, after):
        rho = law.damped(F, move, rho)
        after = evaluate(F)
    trees = [replace(tree, value=(rho * values)[:, None]) for tree, values, _ in grown]
    rounds.trees += trees
    rounds.steps.append(rho)
    rounds.losses.append(after)
    if out is not None:
        rounds.outside.append((outside, _mean_of(evaluate, F, out)))
    # A round that changes nothing would be repeated for ever, unless the next one draws something else.
    moved = rho != 0.0 and any(values.any() for _, values, _ in grown)
    return trees, moved or rows is not None


def leaf_values(
    loss: BoostingLoss,
    plan: Plan,
    found: Grown,
    k: int,
    y: Array,
    F: Array,
    g: Array,
    h: Array,
    w: Array | None,
    rows: Rows | None,
    world: World = ALONE,
) -> Array:
    """Return the values of all nodes; those of leaves are the best for the loss, unless they are to stay."""
    tree = found.tree
    fitted = tree.value[:, 0]
    newton = loss.smooth and plan.leaf == "best"
    if plan.direction == "newton" and newton:
        return bounded(fitted, loss, plan.direction)
    if plan.direction == "inner-product" or plan.leaf == "fitted":
        return fitted
    used = slice(None) if rows is None else rows
    leaf = found.leaf_of_row[used]
    weight = None if w is None else w[used]
    if newton:
        G = sums_by_group(leaf, g[used] if weight is None else g[used] * weight, len(fitted), world)
        H = sums_by_group(leaf, h[used] if weight is None else h[used] * weight, len(fitted), world)
        values = np.where(H > 1e-150, -G / np.where(H > 1e-150, H, 1.0), 0.0)
        values = bounded(values, loss, plan.direction)
    else:
        values = loss.best_leaf_values(k, leaf, len(fitted), y[used], F[:, used], weight, world)
    values = np.where(tree.feature < 0, values, fitted)
    return values if plan.monotonic is None else respect_signs(tree, values, plan.monotonic)


def respect_signs(tree: Trees, values: Array, signs: NDArray[np.int8]) -> Array:
    """Return leaf values that rise and fall as the signs of the columns say: the middle of two sides bounds both."""
    out, total = values.copy(), tree.weight * np.where(tree.feature < 0, values, 0.0)
    for i in range(len(values) - 1, -1, -1):  # children come after their parents
        if tree.feature[i] >= 0:
            total[i] = total[tree.left[i]] + total[tree.right[i]]
    mean = total / tree.weight
    low, high = np.full(len(values), -np.inf), np.full(len(values), np.inf)
    for i in range(len(values)):
        out[i] = min(max(mean[i], low[i]), high[i])
        if tree.feature[i] < 0:
            continue
        a, b = int(tree.left[i]), int(tree.right[i])
        low[[a, b]], high[[a, b]] = low[i], high[i]
        sign = int(signs[tree.feature[i]])
        if sign:
            middle = min(max((mean[a] + mean[b]) / 2, low[i]), high[i])
            below, above = (a, b) if sign > 0 else (b, a)
            high[below], low[above] = middle, middle
    return out


class Drawn(NamedTuple):
    """The rows of a round."""

    rows: Rows | None  #: None: all
    factor: Array | None  #: what their weights are multiplied with


def draw_round(plan: Plan, g: Array, w: Array | None, m: int, first: int = 0, n_rows: int | None = None) -> Drawn:
    """Draw the rows of round m, those of a part that begins with row `first` of `n_rows`.

    `sampling="gradient"`: two thirds of them are those with the largest Σ|g|w, the others are drawn from the rest and
    weigh more, so that sums keep their expectation (GOSS of LightGBM).
    """
    if plan.subsample >= 1.0:
        return Drawn(None, None)
    n = g.shape[1] if n_rows is None else n_rows
    size = max(1, int(plan.subsample * n))
    rng = np.random.default_rng([plan.seed, m, 2**33])
    if plan.sampling == "uniform":
        drawn = np.sort(rng.choice(n, size, replace=False, shuffle=False))
        own = np.searchsorted(drawn, [first, first + g.shape[1]])
        return Drawn(drawn[own[0] : own[1]] - first, None)
    top = 2 * size // 3
    score = np.abs(g).sum(axis=0) * (1.0 if w is None else w)
    order = np.argsort(-score, kind="stable")
    rest = np.sort(order[top:])
    others = rest[rng.choice(len(rest), size - top, replace=False, shuffle=False)]
    factor = np.ones(n)
    factor[others] = len(rest) / (size - top)
    return Drawn(np.sort(np.r_[order[:top], others]), factor)


def _searched(evaluate: Evaluator, plan: Plan, F: Array, direction: Array, before: float) -> float:
    """Return η times the best step; the loss does not rise."""

    def loss_at(rho: float) -> float:
        return mean_loss(evaluate.loss, evaluate.y, F + rho * direction, evaluate.w, evaluate.world)

    shrunk = plan.learning_rate * line_search(loss_at, before)
    while shrunk and not loss_at(shrunk) <= before:  # only where the loss is not convex
        shrunk = shrunk / 2 if shrunk > 1e-12 else 0.0
    return shrunk


def line_search(phi: Callable[[float], float], at_zero: float) -> float:
    """Return ρ ≥ 0 that minimises φ, to six digits; zero if no step was found that lowers it.

    Examples
    --------
    >>> round(line_search(lambda r: (r - 3.0) ** 2, 9.0), 4)
    3.0
    """
    best, best_value = 0.0, at_zero
    high, value = 1.0, phi(1.0)
    while value < best_value and high < 2.0**40:
        best, best_value = high, value
        high *= 2.0
        value = phi(high)
    found = minimize_scalar(phi, bounds=(0.0, high), method="bounded", options={"xatol": 1e-6 * high})
    if found.fun < best_value:
        best = float(found.x)
    return best


def _mean_of(evaluate: Evaluator, F: Array, rows: Rows | None) -> float:
    """Return the mean loss of some rows; zero if there are none."""
    if rows is None:
        return 0.0
    w = None if evaluate.w is None else evaluate.w[rows]
    value = mean_loss(evaluate.loss, evaluate.y[rows], F[:, rows], w, evaluate.world)
    return value if np.isfinite(value) else 0.0


def _watched(work: Callable[[], None], run: Run, has_something: Callable[[], bool]) -> None:
    """Do the work on another thread, so that Ctrl-C and the clock are seen while a kernel runs."""

    def look_at_the_clock() -> None:
        if run.out_of_time and has_something():
            run.flag.raise_()

    Background(work).result(stop=run.flag.raise_, watch=look_at_the_clock)


def stack_values(trees: Trees, n_outputs: int, first: int = 0, stop: int | None = None) -> list[Trees]:
    """Return the trees of each output, of rounds `first` … `stop` − 1."""
    n_rounds = trees.n_trees // n_outputs
    rounds = range(first, n_rounds if stop is None else stop)
    return [take_trees(trees, [m * n_outputs + k for m in rounds]) for k in range(n_outputs)]


def take_trees(trees: Trees, numbers: Any) -> Trees:
    """Return some trees; sets of categories stay where they are."""
    numbers = np.asarray(numbers, dtype=np.int64)
    sizes = np.diff(trees.start)[numbers]
    nodes = np.concatenate([np.arange(trees.start[t], trees.start[t + 1]) for t in numbers.tolist()])
    names = ("feature", "threshold", "left", "right", "missing_left", "category", "impurity", "n_rows", "weight")
    picked = {name: np.ascontiguousarray(getattr(trees, name)[nodes]) for name in (*names, "value")}
    return Trees(start=np.r_[0, np.cumsum(sizes)].astype(np.int64), bits=trees.bits, **picked)


def staged_raw(model: Any, X: Any) -> Iterator[Array]:
    """Yield F_0 + ρ_1T_1, then + ρ_2T_2, and so on, (K, n); the array is the same each time."""
    K = model.n_trees_per_iteration_
    raw = model._raw_start(X)
    for m in range(model.trees_.n_trees // K):
        for k in range(K):
            raw[k] += take_trees(model.trees_, [m * K + k]).sum(X, model.n_jobs)[:, 0]
        yield raw


def power_of_two(g: Array, world: World = ALONE) -> float:
    """Return what to divide gradients by where their squares would leave the floats; else one."""
    size = max(float(g.max(initial=0.0)), -float(g.min(initial=0.0)))
    size = float(world.most(np.array([size]))[0])
    return float(2.0 ** np.frexp(size)[1]) if size > 1e100 or 0 < size < 1e-100 else 1.0
