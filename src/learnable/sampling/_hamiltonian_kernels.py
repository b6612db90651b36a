"""Compiled: leapfrog steps, trees of NUTS, static paths of HMC, and their adaptation; one kernel for all densities.

Momenta live in whitened coordinates: with the transform F (FFᵀ approximates the covariance of the target) the kinetic
energy is ½‖p‖², a step moves x by εFp and p by ½εFᵀ∇log π. So the U-turn criterion needs plain inner products, whatever
the metric. The recursive textbook form is `tests/oracles/nuts.py`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.jit import ieee_kernel, kernel, lean_kernel
from ._target_kernels import Problem, evaluate
from .random import fill_normal, uniform

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

DIAGONAL: Final = 0  #: F = diag(scale)
DENSE: Final = 1  #: F = L, lower triangular
LOW_RANK: Final = 2  #: F = diag(scale)(I + V diag(stretch) Vᵀ)

#: An energy error beyond this is a divergence (Stan's number).
MOST_ERROR: Final = 1000.0
#: Dual averaging (Hoffman and Gelman, JMLR 15, 2014): γ (with their 0.05, 0.813 are accepted for 0.8), t₀, κ.
GAMMA: Final = 0.1
T0: Final = 10.0
KAPPA: Final = 0.75
#: No step is longer than this: on a standard normal a leapfrog step is unstable beyond 2.
LONGEST_STEP: Final = math.pi
#: After warm-up a step's length varies by this share, so that no path returns to its start time and again.
JITTER: Final = 0.1
#: The diagonal follows the draws from this many on; before, it is that of the gradient at the start.
FEWEST: Final = 6

# What the plan of the warm-up says about a step, as bits.
FIT_METRIC: Final = 1  #: learn from the draw, and use what is learned
SWITCH: Final = 2  #: forget the older window after this step
LATE: Final = 4  #: use the symmetric acceptance statistic

# Places in `pace`.
LOG_STEP: Final = 0
LOG_MEAN_STEP: Final = 1
MEAN_ERROR: Final = 2
CENTRE: Final = 3
ROUND: Final = 4

# Places in `clock`.
DONE: Final = 0  #: steps taken
WARMUP: Final = 1  #: steps of warm-up
IN_FRONT: Final = 2  #: draws in the foreground window
BEHIND: Final = 3  #: draws in the background window

# Columns of `infos`.
ACCEPT: Final = 0
VALUE: Final = 1
ENERGY: Final = 2
DEPTH: Final = 3
N_STEPS: Final = 4
DIVERGING: Final = 5
STEP_SIZE: Final = 6
CAPPED: Final = 7


class Metric(NamedTuple):
    """The transform F."""

    kind: int
    scale: Array  #: (d,)
    basis: Array  #: (d, k): L or V
    stretch: Array  #: (k,): √λ − 1 of the low-rank part


class Motion(NamedTuple):
    """A chain in motion; kernels write to all of it."""

    u: Array  #: (d,) free coordinates
    gradient: Array  #: (d,) of the log density at u
    value: Array  #: (1,) log density at u
    pace: Array  #: (5,) dual averaging of log ε
    moments: Array  #: (2, 4, d): windows × (mean of u, its squares, mean of the gradient, its squares)
    clock: Integers  #: (4,)


class Tree(NamedTuple):
    """Scratch: nodes of the subtree under way, one per level, and the ends of the whole tree."""

    first: Array  #: (levels, d) momentum at the node's first leaf
    last: Array  #: (levels, d) at its last leaf
    total: Array  #: (levels, d) sum over its leaves
    point: Array  #: (levels, d) its proposal
    slope: Array  #: (levels, d) gradient there
    weight: Array  #: (levels, 3): log weight, log density of the proposal, log weight of that leaf alone
    ends: Array  #: (2, 4, d): left and right end × (u, p, Fᵀ∇, ∇)
    whole: Array  #: (4, d): momentum sum of the tree, its proposal, gradient there, scratch


@lean_kernel
def to_move(metric: Metric, p: Array, out: Array) -> None:
    """OUT out = Fp."""
    d = p.size
    if metric.kind == DIAGONAL:
        for i in range(d):
            out[i] = metric.scale[i] * p[i]
    elif metric.kind == DENSE:
        for i in range(d):
            total = 0.0
            for j in range(i + 1):
                total += metric.basis[i, j] * p[j]
            out[i] = total
    else:
        for i in range(d):
            out[i] = p[i]
        for k in range(metric.stretch.size):
            total = 0.0
            for i in range(d):
                total += metric.basis[i, k] * p[i]
            total *= metric.stretch[k]
            for i in range(d):
                out[i] += metric.basis[i, k] * total
        for i in range(d):
            out[i] *= metric.scale[i]


@lean_kernel
def to_force(metric: Metric, g: Array, out: Array) -> None:
    """OUT out = Fᵀg."""
    d = g.size
    if metric.kind == DIAGONAL:
        for i in range(d):
            out[i] = metric.scale[i] * g[i]
    elif metric.kind == DENSE:
        for j in range(d):
            out[j] = 0.0
        for i in range(d):
            for j in range(i + 1):
                out[j] += metric.basis[i, j] * g[i]
    else:
        for i in range(d):
            out[i] = metric.scale[i] * g[i]
        for k in range(metric.stretch.size):
            total = 0.0
            for i in range(d):
                total += metric.basis[i, k] * metric.scale[i] * g[i]
            total *= metric.stretch[k]
            for i in range(d):
                out[i] += metric.basis[i, k] * total


@lean_kernel
def copy(source: Array, out: Array) -> None:
    """OUT out = source; a slice's assignment would make room for overlaps."""
    for i in range(out.size):
        out[i] = source[i]


@lean_kernel
def dot(a: Array, b: Array) -> float:
    """Return aᵀb."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@lean_kernel
def leapfrog(target: Problem, metric: Metric, end: Array, epsilon: float, scratch: Array) -> tuple[float, float]:
    """Take one step from end = (u, p, Fᵀ∇, ∇), which is overwritten; return the log density and ½‖p‖² there.

    With a diagonal F, half a step of p and the step of u are one pass, and the other half with the energy another.
    """
    u, p, force, slope = end[0], end[1], end[2], end[3]
    half = 0.5 * epsilon
    energy = 0.0
    if metric.kind == DIAGONAL:
        scale = metric.scale
        for i in range(p.size):
            moved = p[i] + half * force[i]
            p[i] = moved
            u[i] += epsilon * (scale[i] * moved)
        value = evaluate(target, u, slope)
        for i in range(p.size):
            pull = scale[i] * slope[i]
            moved = p[i] + half * pull
            force[i] = pull
            p[i] = moved
            energy += moved * moved
        return value, 0.5 * energy
    for i in range(p.size):
        p[i] += half * force[i]
    to_move(metric, p, scratch)
    for i in range(u.size):
        u[i] += epsilon * scratch[i]
    value = evaluate(target, u, slope)
    to_force(metric, slope, force)
    for i in range(p.size):
        p[i] += half * force[i]
        energy += p[i] * p[i]
    return value, 0.5 * energy


@lean_kernel
def log_add(a: float, b: float) -> float:
    """Return log(eᵃ + eᵇ)."""
    if a < b:
        a, b = b, a
    if b == -math.inf:
        return a
    return a + math.log1p(math.exp(b - a))


@lean_kernel
def turns(first_a: Array, last_a: Array, total_a: Array, first_b: Array, last_b: Array, total_b: Array) -> bool:
    """Tell whether a path of two halves a, b turns back: over the whole, and over each half with the next leaf.

    The generalised criterion (Betancourt, arXiv 1701.02434) with Stan's two further checks. OUT total_a: the sum over
    the whole path.
    """
    w0, w1, x0, x1, y0, y1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(total_a.size):
        whole = total_a[i] + total_b[i]
        left = total_a[i] + first_b[i]
        right = last_a[i] + total_b[i]
        w0 += first_a[i] * whole
        w1 += last_b[i] * whole
        x0 += first_a[i] * left
        x1 += first_b[i] * left
        y0 += last_a[i] * right
        y1 += last_b[i] * right
        total_a[i] = whole
    return w0 <= 0.0 or w1 <= 0.0 or x0 <= 0.0 or x1 <= 0.0 or y0 <= 0.0 or y1 <= 0.0


@lean_kernel
def choose(weights: Array, other: float, value: float, alone: float, stream: Words) -> bool:
    """Join a node of another log weight; return whether its proposal is taken. OUT weights: a row of `Tree.weight`."""
    weight = log_add(weights[0], other)
    weights[0] = weight
    if uniform(stream) >= math.exp(other - weight):
        return False
    weights[1] = value
    weights[2] = alone
    return True


@lean_kernel
def merge(tree: Tree, a: int, stream: Words) -> bool:
    """Join node a + 1 to node a, with a proposal by weight; return whether the path turns."""
    b = a + 1
    turning = turns(tree.first[a], tree.last[a], tree.total[a], tree.first[b], tree.last[b], tree.total[b])
    if choose(tree.weight[a], tree.weight[b, 0], tree.weight[b, 1], tree.weight[b, 2], stream):
        copy(tree.point[b], tree.point[a])
        copy(tree.slope[b], tree.slope[a])
    copy(tree.last[b], tree.last[a])
    return turning


@lean_kernel
def add_leaf(tree: Tree, top: int, end: Array, change: float, value: float) -> None:
    """Begin node `top` with one leaf; `last` and `total` come with the second."""
    u, p, slope = end[0], end[1], end[3]
    first, point, gradient = tree.first[top], tree.point[top], tree.slope[top]
    for i in range(p.size):
        first[i] = p[i]
        point[i] = u[i]
        gradient[i] = slope[i]
    weights = tree.weight[top]
    weights[0] = change
    weights[1] = value
    weights[2] = change


@lean_kernel
def pair_leaf(tree: Tree, top: int, end: Array, change: float, value: float, stream: Words) -> bool:
    """Join a second leaf to node `top`, which has one; return whether the two turn: here six checks are two."""
    p, first, last, total = end[1], tree.first[top], tree.last[top], tree.total[top]
    w0, w1 = 0.0, 0.0
    for i in range(p.size):
        whole = first[i] + p[i]
        w0 += first[i] * whole
        w1 += p[i] * whole
        last[i] = p[i]
        total[i] = whole
    if choose(tree.weight[top], change, value, change, stream):
        copy(end[0], tree.point[top])
        copy(end[3], tree.slope[top])
    return w0 <= 0.0 or w1 <= 0.0


@lean_kernel
def grow(
    target: Problem,
    metric: Metric,
    tree: Tree,
    side: int,
    depth: int,
    epsilon: float,
    energy: float,
    stream: Words,
    tally: Array,
) -> int:
    """Build a subtree of 2^depth leaves at one end; node 0 describes it. Return 0, 1 if it turns, 2 if it diverges.

    IN/OUT tally = [Σ acceptance, Σ symmetric acceptance, leaves].
    """
    end = tree.ends[side]
    top = -1
    for leaf in range(1 << depth):
        value, kinetic = leapfrog(target, metric, end, epsilon, tree.whole[3])
        change = energy + value - kinetic
        tally[2] += 1.0
        if not change >= -MOST_ERROR:
            return 2
        ratio = math.exp(min(change, 0.0))
        tally[0] += ratio
        tally[1] += 2.0 * ratio / (1.0 + math.exp(change)) if change < 700.0 else 0.0
        if leaf & 1 == 0:
            top += 1
            add_leaf(tree, top, end, change, value)
            continue
        if pair_leaf(tree, top, end, change, value, stream):
            return 1
        joined = leaf >> 1
        while joined & 1 == 1:
            top -= 1
            if merge(tree, top, stream):
                return 1
            joined >>= 1
    if depth == 0:
        copy(end[1], tree.last[0])
        copy(end[1], tree.total[0])
    return 0


@lean_kernel
def join_subtree(tree: Tree, side: int, old_left: Array, old_right: Array) -> bool:
    """Return whether the whole tree turns with the subtree of node 0 at its left (0) or right (1) end; add its sum."""
    if side == 1:
        return turns(old_left, old_right, tree.whole[0], tree.first[0], tree.last[0], tree.total[0])
    turning = turns(tree.last[0], tree.first[0], tree.total[0], old_left, old_right, tree.whole[0])
    copy(tree.total[0], tree.whole[0])
    return turning


@lean_kernel
def nuts_step(
    target: Problem,
    metric: Metric,
    motion: Motion,
    tree: Tree,
    old: Array,
    epsilon: float,
    max_depth: int,
    stream: Words,
    tally: Array,
    info: Array,
) -> None:
    """One transition of multinomial NUTS; IN/OUT motion (u, gradient, value), OUT info, tally."""
    for side in range(2):
        copy(motion.u, tree.ends[side, 0])
        copy(motion.gradient, tree.ends[side, 3])
    p = tree.ends[0, 1]
    fill_normal(stream, p)
    copy(p, tree.ends[1, 1])
    to_force(metric, motion.gradient, tree.ends[0, 2])
    copy(tree.ends[0, 2], tree.ends[1, 2])
    energy = 0.5 * dot(p, p) - motion.value[0]
    copy(p, tree.whole[0])
    weight, chosen = 0.0, 0.0
    tally[0], tally[1], tally[2] = 0.0, 0.0, 0.0
    outcome, depth = 0, 0
    while depth < max_depth:
        side = 1 if uniform(stream) < 0.5 else 0
        copy(tree.ends[0, 1], old[0])
        copy(tree.ends[1, 1], old[1])
        signed = epsilon if side == 1 else -epsilon
        outcome = grow(target, metric, tree, side, depth, signed, energy, stream, tally)
        depth += 1
        if outcome != 0:
            break
        new = tree.weight[0, 0]
        if new >= weight or uniform(stream) < math.exp(new - weight):
            copy(tree.point[0], motion.u)
            copy(tree.slope[0], motion.gradient)
            motion.value[0] = tree.weight[0, 1]
            chosen = tree.weight[0, 2]
        weight = log_add(weight, new)
        if join_subtree(tree, side, old[0], old[1]):
            outcome = 1
            break
    n = max(tally[2], 1.0)
    info[ACCEPT] = tally[0] / n
    info[VALUE] = motion.value[0]
    info[ENERGY] = energy - chosen
    info[DEPTH] = depth
    info[N_STEPS] = tally[2]
    info[DIVERGING] = 1.0 if outcome == 2 else 0.0
    info[STEP_SIZE] = epsilon
    info[CAPPED] = 1.0 if outcome == 0 else 0.0


@lean_kernel
def hmc_step(
    target: Problem,
    metric: Metric,
    motion: Motion,
    tree: Tree,
    epsilon: float,
    n_leapfrog: int,
    stream: Words,
    tally: Array,
    info: Array,
) -> None:
    """One transition of Hamiltonian Monte Carlo with a path of fixed length; IN/OUT motion, OUT info, tally."""
    end = tree.ends[0]
    copy(motion.u, end[0])
    copy(motion.gradient, end[3])
    fill_normal(stream, end[1])
    to_force(metric, motion.gradient, end[2])
    energy = 0.5 * dot(end[1], end[1]) - motion.value[0]
    change, taken, value = 0.0, 0, motion.value[0]
    for _ in range(n_leapfrog):
        value, kinetic = leapfrog(target, metric, end, epsilon, tree.whole[3])
        taken += 1
        change = energy + value - kinetic
        if not change >= -MOST_ERROR:
            break
    diverged = not change >= -MOST_ERROR
    accept = 0.0 if diverged else math.exp(min(change, 0.0))
    moved = uniform(stream) < accept
    if moved:
        copy(end[0], motion.u)
        copy(end[3], motion.gradient)
        motion.value[0] = value
    tally[0] = accept
    tally[1] = 0.0 if diverged or change >= 700.0 else 2.0 * accept / (1.0 + math.exp(change))
    tally[2] = 1.0
    info[ACCEPT] = accept
    info[VALUE] = motion.value[0]
    info[ENERGY] = energy - (change if moved else 0.0)
    info[DEPTH] = 0.0
    info[N_STEPS] = taken
    info[DIVERGING] = 1.0 if diverged else 0.0
    info[STEP_SIZE] = epsilon
    info[CAPPED] = 0.0


@lean_kernel
def first_step_size(
    target: Problem, metric: Metric, motion: Motion, tree: Tree, epsilon: float, stream: Words
) -> float:
    """Return ε doubled or halved until one step's acceptance crosses 0.8 (Hoffman and Gelman, Algorithm 4)."""
    end = tree.ends[0]
    direction = 0
    for _ in range(60):
        copy(motion.u, end[0])
        copy(motion.gradient, end[3])
        fill_normal(stream, end[1])
        to_force(metric, motion.gradient, end[2])
        energy = 0.5 * dot(end[1], end[1]) - motion.value[0]
        value, kinetic = leapfrog(target, metric, end, epsilon, tree.whole[3])
        change = energy + value - kinetic
        now = 1 if change > math.log(0.8) else -1
        if direction == 0:
            direction = now
        if now != direction or epsilon >= LONGEST_STEP:
            break
        epsilon = epsilon * 2.0 if direction == 1 else epsilon * 0.5
    return min(epsilon, LONGEST_STEP)


@lean_kernel
def restart_pace(pace: Array, epsilon: float) -> None:
    """OUT pace: dual averaging from ε."""
    pace[LOG_STEP] = math.log(epsilon)
    pace[LOG_MEAN_STEP] = math.log(epsilon)
    pace[MEAN_ERROR] = 0.0
    pace[CENTRE] = math.log(10.0 * epsilon)
    pace[ROUND] = 0.0


@lean_kernel
def adapt_pace(pace: Array, accept: float, aim: float) -> None:
    """OUT pace: one step of dual averaging of log ε."""
    pace[ROUND] += 1.0
    t = pace[ROUND]
    eta = 1.0 / (t + T0)
    pace[MEAN_ERROR] = (1.0 - eta) * pace[MEAN_ERROR] + eta * (aim - accept)
    log_step = pace[CENTRE] - math.sqrt(t) / GAMMA * pace[MEAN_ERROR]
    log_step = min(log_step, math.log(LONGEST_STEP))
    share = t ** (-KAPPA)
    pace[LOG_STEP] = log_step
    pace[LOG_MEAN_STEP] = share * log_step + (1.0 - share) * pace[LOG_MEAN_STEP]


@lean_kernel
def learn_moments(mean: Array, squares: Array, share: float, x: Array) -> None:
    """OUT mean, squares: Welford's, with another point in them; share = 1/n with it."""
    for i in range(x.size):
        shift = x[i] - mean[i]
        centre = mean[i] + shift * share
        mean[i] = centre
        squares[i] += shift * (x[i] - centre)


@ieee_kernel
def fit_diagonal(window: Array, scale: Array) -> None:
    """OUT scale: (var u / var ∇)^¼, the diagonal that minimises the Fisher divergence (Seyboldt et al. 2026)."""
    for i in range(scale.size):
        ratio = math.sqrt(window[1, i] / window[3, i])
        scale[i] = math.sqrt(ratio) if 1e-20 < ratio < 1e20 else scale[i]


@lean_kernel
def adapt(metric: Metric, motion: Motion, plan: int, tally: Array, aim: float) -> None:
    """Learn from the step that was just taken, as the plan of the warm-up says."""
    n = max(tally[2], 1.0)
    adapt_pace(motion.pace, tally[1] / n if plan & LATE else tally[0] / n, aim)
    clock = motion.clock
    if plan & FIT_METRIC:
        clock[IN_FRONT] += 1
        clock[BEHIND] += 1
        for k in range(2):
            share = 1.0 / clock[IN_FRONT + k]
            window = motion.moments[k]
            learn_moments(window[0], window[1], share, motion.u)
            learn_moments(window[2], window[3], share, motion.gradient)
        if clock[IN_FRONT] >= FEWEST:
            fit_diagonal(motion.moments[0], metric.scale)
    if plan & SWITCH:
        for k in range(4):
            copy(motion.moments[1, k], motion.moments[0, k])
            for i in range(metric.scale.size):
                motion.moments[1, k, i] = 0.0
        clock[IN_FRONT] = clock[BEHIND]
        clock[BEHIND] = 0


@kernel
def run(
    target: Problem,
    metric: Metric,
    motion: Motion,
    words: Words,
    plan: Integers,
    max_depth: int,
    n_leapfrog: int,
    aim: float,
    draws: Array,
    slopes: Array,
    infos: Array,
    stop: Integers,
) -> None:
    """Take one transition for each row of words: NUTS, or HMC if n_leapfrog is positive.

    IN words (n, 4), plan (n_warmup,), aim the acceptance wanted. IN/OUT motion, metric.scale. OUT draws (n, d) on free
    coordinates, slopes (n, d) their gradients or (0, d) if not wanted, infos (n, 8).
    """
    d = motion.u.size
    levels = max_depth + 1 if n_leapfrog == 0 else 1
    tree = Tree(
        np.empty((levels, d)),
        np.empty((levels, d)),
        np.empty((levels, d)),
        np.empty((levels, d)),
        np.empty((levels, d)),
        np.empty((levels, 3)),
        np.empty((2, 4, d)),
        np.empty((4, d)),
    )
    old, tally = np.empty((2, d)), np.zeros(3)
    stream = np.empty(4, dtype=np.uint64)
    clock, pace = motion.clock, motion.pace
    for t in range(words.shape[0]):
        if stop[0] != 0 or target.failed[0] != 0:
            return
        for k in range(4):
            stream[k] = words[t, k]
        warming = clock[DONE] < clock[WARMUP]
        if clock[DONE] == 0 and warming:
            restart_pace(pace, first_step_size(target, metric, motion, tree, math.exp(pace[LOG_STEP]), stream))
        if warming:
            epsilon = math.exp(pace[LOG_STEP])
        else:
            epsilon = math.exp(pace[LOG_MEAN_STEP]) * (1.0 + JITTER * (2.0 * uniform(stream) - 1.0))
        if n_leapfrog > 0:
            hmc_step(target, metric, motion, tree, epsilon, n_leapfrog, stream, tally, infos[t])
        else:
            nuts_step(target, metric, motion, tree, old, epsilon, max_depth, stream, tally, infos[t])
        if warming:
            adapt(metric, motion, plan[clock[DONE]], tally, aim)
        clock[DONE] += 1
        copy(motion.u, draws[t])
        if slopes.shape[0] > 0:
            copy(motion.gradient, slopes[t])
