r"""Interior-point method for Crammer and Singer's problem with few columns and classes.

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
from numpy.typing import NDArray

from ..core.run import Progress, StopFlag, never, no_progress
from ..core.threads import one_thread_blas
from ..data.blocks import Block, map_reduce
from ..solvers.smooth.newton import factorised
from ..solvers.systems.moments import add_in_place
from .joint_margin import JointTask
from .margin import DualPair, better

Array = NDArray[np.float64]

_BACK_OFF = 0.995  # share of the way to the boundary
_CORRECTIONS = 4  # of centrality, at most; each costs two products with X
_FURTHER = 0.3  # how much longer a corrected step should be
_WORTH = 0.1  # share of that for which a correction is kept
_LOW, _HIGH = 0.1, 10.0  # the products βs that are left alone, in units of the target
_NEGLIGIBLE = 1e-6  # curvature that is left out, all rows together: the matrix is at least the identity
_STALLED = 8  # steps without a better gap: rounding
_TILE = 2**20  # numbers that one tile of rows ⊗ classes holds


class _Point(NamedTuple):
    """Where the method stands."""

    W: Array  #: (1 + d, K)
    level: Array  #: ζ, (n, 1)
    beta: Array  #: (n, K)
    s: Array  #: (n, K)

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(x + length * dx for x, dx in zip(self, step, strict=True)))

    def centrality(self) -> float:
        """Mean complementarity, μ."""
        return float((self.beta * self.s).mean())

    def longest(self, step: _Point) -> float:
        """Return the share of the step that keeps β and s positive."""
        fall = max(float((-step.beta / self.beta).max()), float((-step.s / self.s).max()))
        return min(1.0, _BACK_OFF / fall) if fall > 0 else 1.0


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
    point = _central_point(task)
    best = task.pair(np.zeros_like(point.beta))
    stalled = 0
    for n_iter in range(1, max_iter + 1):
        step = _predict_and_correct(task, point, partial(progress, n_iter - 1, best.gap))
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


def _central_point(task: JointTask) -> _Point:
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
    return _Point(np.zeros((task.width, K)), 1.0 + t[:, None], beta, s)


def _predict_and_correct(task: JointTask, point: _Point, stop: Callable[[], bool] = never) -> _Point | None:
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

    def direction(t: Array) -> _Point:
        g = t / s - D * residual
        surplus = g.sum(axis=1, keepdims=True) - missing
        right = -distance - task.weights_of(g - D * (surplus / total))
        dW = solve(right.T.ravel()).reshape(W.shape[::-1]).T
        dz = task.scores(dW)
        # Σ D(dz − mean) is computed about the mean: where one D is far larger than the others, all but nothing is left.
        d_level = (surplus + (D * dz).sum(axis=1, keepdims=True)) / total
        ds = d_level - dz + residual
        return _Point(dW, d_level, (t - beta * ds) / s, ds)

    mu = point.centrality()
    affine = direction(-beta * s)
    after = point.moved(affine, point.longest(affine)).centrality()
    target = mu * min(1.0, after / mu) ** 3
    t = target - beta * s - affine.beta * affine.s
    step = direction(t)
    length = point.longest(step)
    for _ in range(_CORRECTIONS):
        further = min(1.0, length + _FURTHER)
        reached = (beta + further * step.beta) * (s + further * step.s)
        t = t + np.maximum(np.clip(reached, _LOW * target, _HIGH * target) - reached, -_HIGH * target)
        corrected = direction(t)
        longer = point.longest(corrected)
        if not longer >= length + _WORTH * (further - length):
            break
        step, length = corrected, longer
    return step if all(np.isfinite(part).all() for part in step) else None


def _curvature(task: JointTask, D: Array, stop: Callable[[], bool] = never) -> Array | None:
    """Return I + Σ M ⊗ xxᵀ, class by class, from the blocks of pairs of classes: M's rows sum to zero.

    None if `stop` says True before all rows are added: on many rows this sum is nearly all the time of a step.
    """
    K, p = task.n_classes, task.width
    total = D.sum(axis=1)
    second = total - D.max(axis=1)  # bounds what a row adds outside the diagonal blocks
    kept = second * task.row_norms * K > _NEGLIGIBLE / len(D)
    root = D / np.sqrt(total)[:, None]
    tile = max(1, _TILE // (K * p))
    flag = StopFlag()
    caller = threading.get_ident()  # who alone asks: callbacks are not for several threads

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
