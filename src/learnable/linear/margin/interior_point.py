r"""Interior-point method for hinge losses on many rows and few columns.

With slacks s = σz − p + ξ ≥ 0 and ξ ≥ 0 the optimum of P is where

    w = u(α),   α s = 0,   (c − α) ξ = 0,   0 ≤ α ≤ c,   s, ξ ≥ 0.

Newton's method on αs = μ, (c − α)ξ = μ, with μ → 0, solves in every step one system (I + Σ e xxᵀ) dw = r with as many
unknowns as columns: O(nd²), and about twenty steps in whatever units. α stays inside its box, so that every iterate
has a proven gap. Close to the optimum the rows on the margin are known, and one linear system gives the exact vertex.

References: S. Mehrotra, SIAM J. Optim. 2, 1992; M. Ferris and T. Munson, Interior-point methods for massive support
vector machines, SIAM J. Optim. 13, 2002.

Interior-point method for Crammer and Singer's problem with few columns and classes.

With a level ζᵢ for every row, slacks sᵢₖ = ζᵢ − 1[k ≠ yᵢ] − zᵢₖ ≥ 0 and β = c·1[k = y] − α, the optimum is where

    W = U(α),   Σₖ βᵢₖ = cᵢ,   βᵢₖ sᵢₖ = 0,   β, s ≥ 0.

Newton's method on βs = μ, with μ → 0, eliminates β, s and ζ row by row. What is left is one system in dW,

    (I + Σᵢ Mᵢ ⊗ xᵢxᵢᵀ) dW = r,     Mᵢ = diag(Dᵢ) − DᵢDᵢᵀ/ΣₖDᵢₖ,   D = β/s,

of K(1 + d) unknowns: O(nK²d² + K³d³) a step, and a few tens of steps in whatever units. Σβ = c holds throughout, so
that every iterate has a proven gap.

References: S. Mehrotra, SIAM J. Optim. 2, 1992; K. Crammer and Y. Singer, JMLR 2, 2001.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ...core import Array, Progress, StopFlag, never, no_progress, one_thread_blas
from ...data.blocks import Block, map_reduce
from ...solvers.conic.interior_point import CentralPath, mehrotra_step
from ...solvers.smooth.newton import factorised
from ...solvers.systems.moments import add_in_place
from .problem import DualPair, JointTask, MarginTask, better

_MOST_FREE = 1500  # rows on the margin for which the exact vertex is tried
_CHEAP = 2e8  # operations of a step, up to which steps are taken until the vertex is known
_CENTRALITY = 1.0  # μ at the start, in units of mean shortfall times cost
_NEARLY = 100.0  # times the tolerance: from here on α is moved onto its bounds
_NEGLIGIBLE = 1e-6  # curvature that is left out, all rows together: the matrix is at least the identity
_STALLED = 8  # steps without a better gap: rounding


class _Arrays(NamedTuple):
    """Where the method stands; all but w of shape (sides, n)."""

    w: Array
    alpha: Array
    rest: Array  #: c − α
    s: Array
    xi: Array


class _Point(CentralPath, _Arrays):
    complementary = (("alpha", "s"), ("rest", "xi"))


@one_thread_blas()
def interior_point(
    task: MarginTask,
    start: Array | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    progress: Progress = no_progress,
) -> DualPair:
    """Minimise the hinge problem of a task in memory to a proven relative gap of `tol`.

    Parameters
    ----------
    task : MarginTask
        With `squared=False`.
    start : (1 + d,) array, optional
        Weights that are about right; zero if None.
    tol : float
        Relative duality gap.
    max_iter : int
        Most steps.
    progress : callable
        Called as `progress(iteration, gap)`; True stops.

    Returns
    -------
    DualPair
        The best weights and the best dual point seen.
    """
    point, scores = _central_point(task, np.zeros(task.width) if start is None else start)
    u = task.weights_of(point.alpha)
    best = task.pair(np.zeros_like(point.alpha))
    goal = min(tol, 1e-12) if task.blocks.n_rows * task.width**2 <= _CHEAP else tol
    stalled = 0
    for n_iter in range(1, max_iter + 1):
        step, moves = _predict_and_correct(task, point, scores, u)
        if step is None:
            break
        length = point.longest(step)
        point = point.moved(step, length)
        scores = scores + length * moves
        u = task.weights_of(point.alpha)
        primal = 0.5 * float(point.w @ point.w) + task.loss(scores)
        now = task.judged(point.w, point.alpha, primal, task.dual_value(point.alpha, u), n_iter)
        stalled = 0 if length > 1e-6 and (best.gap > 0.01 or now.gap < best.gap) else stalled + 1
        best = better(best, now, task.start_value)
        if tol < best.gap <= _NEARLY * tol:
            best = better(best, _snapped(task, point, scores, n_iter), task.start_value)
        if progress(n_iter, best.gap) or best.gap <= goal or stalled >= _STALLED:
            break
        if n_iter % 5 == 0:
            scores = task.scores(point.w)  # sums of steps drift away from what they stand for
    final = task.pair(best.alpha, best.w, best.n_iter)  # afresh: nothing that is claimed rests on sums of steps
    return better(final, _vertex(task, best), task.start_value)


def _central_point(task: MarginTask, w: Array) -> tuple[_Point, Array]:
    """Return the α, s and ξ with αs = (c − α)ξ = μ for these weights: all but w = u(α) holds from the start."""
    scores = task.scores(w)
    short = task.offset - task.sign * scores
    size = max(float(np.abs(short).mean()), 1e-3 * float(np.abs(task.offset).max()), 1e-300)
    m = _CENTRALITY * size * float(task.cost.mean()) / task.cost  # μ/c: then s² + (short − 2m)s = m·short
    root = np.hypot(2.0 * m, short)
    s = _stable_root(2.0 * m - short, root, m * short)
    xi = _stable_root(2.0 * m + short, root, -m * short)
    alpha = task.cost * xi / (xi + s)
    return _Point(w, alpha, task.cost * s / (xi + s), s, xi), scores


def _stable_root(a: Array, root: Array, product: Array) -> Array:
    """Return ½(a + root), where root² = a² + 4·product, without cancellation for negative a."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # in the branch that is not taken
        return np.where(a >= 0, 0.5 * (a + root), 2.0 * product / (root - a))


def _predict_and_correct(task: MarginTask, point: _Point, scores: Array, u: Array) -> tuple[_Point | None, Array]:
    """Return Mehrotra's step and what it adds to the scores; None where rounding has made it useless."""
    _, alpha, rest, s, xi = point
    with np.errstate(all="ignore"):
        e = 1.0 / (s / alpha + xi / rest)
    if not np.isfinite(e).all():
        return None, scores
    weight = e.sum(axis=0)
    share = weight * task.row_norms
    H = task.gram(np.where(share > _NEGLIGIBLE / len(share), weight, 0.0))
    H.flat[:: len(H) + 1] += 1.0
    solve = factorised(H)
    residual = task.sign * scores - task.offset + xi - s

    moves = scores

    def direction(t1: Array, t2: Array) -> _Point:
        nonlocal moves
        g = t1 / alpha - residual - t2 / rest
        dw = solve(task.back_project((task.sign * e * g).sum(axis=0)) - (point.w - u))
        moves = task.scores(dw)
        d_alpha = e * (g - task.sign * moves)
        d_xi = (t2 + xi * d_alpha) / rest
        return _Point(dw, d_alpha, -d_alpha, task.sign * moves + d_xi + residual, d_xi)

    step = mehrotra_step(point, direction).step
    return (step, moves) if np.isfinite(step.w).all() else (None, scores)


def _snapped(task: MarginTask, point: _Point, scores: Array, n_iter: int) -> DualPair:
    """Move every α that is nearly at a bound onto it, as its row's margin tells."""
    short = task.offset - task.sign * scores
    alpha = np.where(point.alpha < 1e-2 * task.cost, np.where(short < 0, 0.0, point.alpha), point.alpha)
    alpha = np.where(point.rest < 1e-2 * task.cost, np.where(short > 0, task.cost, alpha), alpha)
    u = task.weights_of(alpha)
    primal = 0.5 * float(u @ u) + task.loss(task.scores(u))
    return task.judged(u, alpha, primal, task.dual_value(alpha, u), n_iter)


def _vertex(task: MarginTask, best: DualPair) -> DualPair:
    """Solve exactly for the w that puts the rows with α inside the box on the margin."""
    inside = (best.alpha > 1e-6 * task.cost) & (best.alpha < (1 - 1e-6) * task.cost)
    side, row = np.nonzero(inside)
    pair = task.pair(best.alpha, n_iter=best.n_iter)  # w = u(α)
    if not 0 < len(row) <= min(_MOST_FREE, 2 * task.width):
        return pair
    bound = np.where(inside, 0.0, np.where(best.alpha > 0.5 * task.cost, task.cost, 0.0))
    w_bound = task.weights_of(bound)
    X = task.blocks.joined().X[row]
    X = np.column_stack([np.full(len(row), task.bias), X.toarray() if hasattr(X, "toarray") else X]).astype(np.float64)
    A = task.sign[side, row][:, None] * X
    free, *_ = np.linalg.lstsq(A @ A.T, task.offset[side, row] - A @ w_bound, rcond=1e-13)
    bound[side, row] = free
    return better(pair, task.pair(bound, n_iter=best.n_iter), task.start_value)


_CORRECTIONS = 4  # of centrality, at most; each costs two products with X
_FURTHER = 0.3  # how much longer a corrected step should be
_WORTH = 0.1  # share of that for which a correction is kept
# the products βs that are left alone, in units of the target
_LOW = 0.1
_HIGH = 10.0
_TILE = 2**20  # numbers that one tile of rows ⊗ classes holds


class _JointArrays(NamedTuple):
    """Where the method stands."""

    W: Array  #: (1 + d, K)
    level: Array  #: ζ, (n, 1)
    beta: Array  #: (n, K)
    s: Array  #: (n, K)


class _JointPoint(CentralPath, _JointArrays):
    complementary = (("beta", "s"),)


@one_thread_blas()
def joint_interior_point(
    task: JointTask, *, tol: float = 1e-6, max_iter: int = 100, progress: Progress = no_progress
) -> DualPair:
    """Minimise P to a proven relative gap of `tol`; the pair's w is (1 + d, K) and its α is (n, K).

    Parameters
    ----------
    task : JointTask
        Rows in memory.
    tol : float
        Relative duality gap.
    max_iter : int
        Most steps.
    progress : callable
        Called as `progress(iteration, gap)`; True stops.
    """
    point = _joint_central_point(task)
    best = task.pair(np.zeros_like(point.beta))
    stalled = 0
    for n_iter in range(1, max_iter + 1):
        step = _joint_predict_and_correct(task, point, partial(progress, n_iter - 1, best.gap))
        if step is None:
            break
        length = point.longest(step)
        point = point.moved(step, length)
        now = task.pair(-point.beta, point.W, n_iter)
        stalled = 0 if length > 1e-6 and (best.gap > 0.01 or now.gap < best.gap) else stalled + 1
        best = better(best, now, task.start_value)
        if progress(n_iter, best.gap) or best.gap <= tol or stalled >= _STALLED:
            break
    return better(best, task.pair(best.alpha, n_iter=best.n_iter), task.start_value)


def _joint_central_point(task: JointTask) -> _JointPoint:
    """Return the point with W = 0 where every βs is μ, the mean cost."""
    K = task.n_classes
    r = task.cost / task.cost.mean()
    # 1/ζ + (K − 1)/(ζ − 1) = c/μ is r t² + (r − K)t = K − 1 for t = ζ − 1.
    root = np.hypot(r - K, 2.0 * np.sqrt(r * (K - 1)))
    t = np.where(r < K, (K - r + root) / (2.0 * r), 2.0 * (K - 1) / (root + np.maximum(r - K, 0.0)))
    s = np.repeat(t[:, None], K, axis=1)
    s[task.own] += 1.0
    beta = 1.0 / s
    beta *= (task.cost / beta.sum(axis=1))[:, None]
    return _JointPoint(np.zeros((task.width, K)), 1.0 + t[:, None], beta, s)


def _joint_predict_and_correct(
    task: JointTask, point: _JointPoint, stop: Callable[[], bool] = never
) -> _JointPoint | None:
    """Return Mehrotra's step; None where rounding has made it useless, or the time was up before it was known."""
    W, level, beta, s = point
    with np.errstate(all="ignore"):
        D = beta / s
        total = D.sum(axis=1, keepdims=True)
    if not np.isfinite(total).all():
        return None
    curvature = _curvature(task, D, stop)
    if curvature is None:
        return None
    solve = factorised(curvature)
    wanted = 1.0 + task.scores(W)
    wanted[task.own] -= 1.0
    residual = level - wanted - s
    missing = task.cost[:, None] - beta.sum(axis=1, keepdims=True)
    distance = W - task.weights_of(task.upper - beta)

    def direction(t: Array) -> _JointPoint:
        g = t / s - D * residual
        surplus = g.sum(axis=1, keepdims=True) - missing
        right = -distance - task.weights_of(g - D * (surplus / total))
        dW = solve(right.T.ravel()).reshape(W.shape[::-1]).T
        dz = task.scores(dW)
        # Σ D(dz − mean) is computed about the mean: where one D is far larger than the others, all but nothing is left.
        d_level = (surplus + (D * dz).sum(axis=1, keepdims=True)) / total
        ds = d_level - dz + residual
        return _JointPoint(dW, d_level, (t - beta * ds) / s, ds)

    step, target, (t,) = mehrotra_step(point, direction)
    length = point.longest(step)
    for _ in range(_CORRECTIONS):
        further = min(1.0, length + _FURTHER)
        reached = (beta + further * step.beta) * (s + further * step.s)
        t = t + np.maximum(np.clip(reached, _LOW * target, _HIGH * target) - reached, -_HIGH * target)
        corrected = direction(t)
        longer = point.longest(corrected)
        if not longer >= length + _WORTH * (further - length):
            break
        step = corrected
        length = longer
    return step if step.is_finite() else None


def _curvature(task: JointTask, D: Array, stop: Callable[[], bool] = never) -> Array | None:
    """Return I + Σ M ⊗ xxᵀ, class by class, from the blocks of pairs of classes: M's rows sum to zero.

    None if `stop` says True before all rows are added: on many rows this sum is nearly all the time of a step.
    """
    K = task.n_classes
    p = task.width
    total = D.sum(axis=1)
    second = total - D.max(axis=1)  # bounds what a row adds outside the diagonal blocks
    kept = second * task.row_norms * K > _NEGLIGIBLE / len(D)
    root = D / np.sqrt(total)[:, None]
    tile = max(1, _TILE // (K * p))
    flag = StopFlag()
    caller = threading.get_ident()  # only this thread calls the callbacks

    def statistic(block: Block) -> Array:
        rows = np.flatnonzero(kept[block.start : block.start + block.X.shape[0]])
        out = np.zeros((K * p, K * p))
        for start in range(0, len(rows), tile):
            if threading.get_ident() == caller and not flag.raised and stop():
                flag.raise_()
            if flag.raised:
                break
            some = rows[start : start + tile]
            X = block.X[some]
            X = np.column_stack([np.full(len(some), task.bias), X.toarray() if task.blocks.sparse else X])
            A = (root[block.start + some][:, :, None] * X[:, None, :]).reshape(len(some), K * p)
            out += A.T @ A
        return out

    H = -map_reduce(task.blocks, statistic, add_in_place, n_jobs=task.n_jobs)
    if flag.raised:
        return None
    parts = H.reshape(K, p, K, p)
    for k in range(K):
        parts[k, :, k] = 0.0
        parts[k, :, k] = -parts[k].sum(axis=1)
    H.flat[:: len(H) + 1] += 1.0
    return H
