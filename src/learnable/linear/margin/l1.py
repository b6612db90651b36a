r"""The squared hinge with an L1 penalty, by proximal Newton steps on working sets of columns.

    P(w) = ‖w‖₁ + Σᵢ cᵢ max(0, 1 − yᵢzᵢ)²,     zᵢ = wᵀ(bias, xᵢ)

The loss is piecewise quadratic. A step minimises its quadratic plus the penalty by the coordinate descent that the
lasso uses, from second moments alone, so that correlated columns cost no further passes over the rows; where the rows
that fall short are known, that is the optimum. Rounds on few columns are followed by a look at all of them. Sparse
columns, and more in use than a matrix has room for, are served by coordinate descent on the columns themselves, with
conjugate gradients on the support.

The dual is max Σα − Σα²/(4c) over α ≥ 0 with ‖u(α)‖∞ ≤ 1; 2c·shortfall, scaled down until that holds, certifies.

References: J. Lee, Y. Sun and M. Saunders, Proximal Newton-type methods for minimizing composite functions, SIAM J.
Optimization 24, 2014; G.-X. Yuan et al., A comparison of optimization methods for large-scale L1-regularized linear
classification, JMLR 11, 2010.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.estimator import Progress
from ...core.threads import one_thread_blas
from ...data.blocks import Blocks, Part, unsigned
from ...risk.objective import relative_gap
from ...risk.shortfall import ShortfallRisk
from ...solvers.composite.coordinate import Penalty
from ...solvers.composite.proximal_newton import CompositePoint, proximal_newton, quadratic_minimum
from ...solvers.systems.normal_equations import conjugate_gradient
from ._kernels import lasso_hinge_pass
from .solvers import MarginFit, Settings

Array = NDArray[np.float64]

_WHOLE = 200  # columns up to which no working set is needed
_FIRST = 100  # columns of the first working set
_MOST_GRAM = 2000  # columns for which a matrix is formed
_MOST_ROUNDS = 60
_THIN = 16  # rows a column of a thinned problem
_FEWEST_THINNED = 4096
_ROUGH = 0.03
_STEEPEST = 1e-6  # share of the largest slope within which rounding may decide which is the largest
_CHUNK = 2**20  # numbers that are widened to extended precision at a time
_FIRST_PASSES = 100  # over sparse columns, before matrices are formed
_LOOK = 5  # passes, of which one visits every column
_QUIET = 0.9  # slope up to which a column that is not in use is passed over; it enters at one
_STEPS, _RESIDUAL, _TRIALS = 20, 0.03, 4  # of conjugate gradients on the support


class _L1Problem:
    """P with its duality gap; the intercept's weight comes first, and stays zero without an intercept."""

    rounding = 1e-13

    def __init__(self, smooth: ShortfallRisk) -> None:
        self.smooth = smooth

    def at(self, w: Array) -> CompositePoint:
        """Evaluate P; the detail is the loss and its slope."""
        loss, slope = self.smooth.losses(w)
        if self.smooth.bias == 0.0:
            slope[0] = 0.0
        total = max(0.0, 2.0 * loss - float(slope @ w))  # Σα of α = 2c·shortfall
        largest = float(np.abs(slope).max())
        share = min(1.0 / max(largest, 1e-300), total / max(2.0 * loss, 1e-300))
        value = float(np.abs(w).sum()) + loss
        dual = share * total - share**2 * loss
        relative = relative_gap(value, dual, self.smooth.start_value)
        return CompositePoint(w, value, max(0.0, value - dual), relative, (loss, slope))

    def model_minimum(self, point: CompositePoint) -> Array:
        """Minimise the quadratic model; where the rows that fall short are known, that is the optimum."""
        loss, slope = point.detail
        penalty = Penalty(np.ones(len(slope)), np.zeros(len(slope)))
        goal = max(0.01 * point.gap, 1e-15 * point.value)
        return quadratic_minimum(self.smooth.curvature(point.x), slope, point.x, loss, penalty, goal=goal)

    def restricted(self, columns: NDArray[np.intp]) -> _L1Problem:
        """Return the problem in some columns, besides the intercept."""
        smooth = self.smooth
        X, y, weight = smooth.blocks.joined()
        some = X[:, columns] if smooth.sparse else np.ascontiguousarray(X[:, columns])
        blocks = Blocks([Part(some, y, weight)])
        return _L1Problem(ShortfallRisk.of(blocks, smooth.target, smooth.cost, bias=smooth.bias, n_jobs=smooth.n_jobs))


@one_thread_blas()
def fit_l1(blocks: Any, settings: Settings, progress: Progress, start: Array | None = None) -> MarginFit:
    """Minimise ‖w‖₁ + Σ c max(0, 1 − yz)² over rows in memory, from `start`."""
    problem = _L1Problem(
        ShortfallRisk.of(blocks, settings.target, settings.C, bias=settings.bias, n_jobs=settings.n_jobs)
    )
    w, n_iter, stopped = start, 0, False
    if blocks.sparse and blocks.n_columns > _WHOLE and start is None:  # short columns: passes over all are cheap
        most = min(settings.max_iter, _FIRST_PASSES)
        w, n_iter, stopped = _column_descent(blocks, settings, progress, np.zeros(problem.smooth.width), 0, most)
    at = problem.at(_rough_start(problem) if w is None else w.copy())
    if not stopped:
        at, n_iter, stopped = _proximal_newton_rounds(problem, at, settings, progress, n_iter)
    if at.relative > settings.tol and n_iter < settings.max_iter and not stopped:
        w, n_iter, _ = _column_descent(blocks, settings, progress, at.x, n_iter, settings.max_iter)
        at = min((at, problem.at(w)), key=lambda point: point.value)
    return MarginFit(at.x, _precise_gap(problem, at), n_iter)


def _precise_gap(problem: _L1Problem, at: CompositePoint) -> float:
    """Return the relative gap in extended precision: the steepest slope is a small sum of large terms."""
    smooth = problem.smooth
    steep = np.abs(at.detail[1][1:])
    used = np.flatnonzero((at.x[1:] != 0.0) | (steep >= (1.0 - _STEEPEST) * np.abs(at.detail[1]).max()))
    first, w = np.longdouble(smooth.bias) * at.x[0], at.x[1 + used].astype(np.longdouble)
    X, targets, weight = smooth.blocks.joined()
    y = np.asarray(targets)
    rows = len(y) if smooth.sparse else max(1, _CHUNK // max(1, len(used)))
    loss: Any = np.longdouble(0.0)
    total, level, slope = loss, loss, loss
    for start in range(0, len(y), rows):
        part = slice(start, start + rows)
        A, sign = X[part][:, used].astype(np.longdouble), smooth.target.of(y[part])
        cost = smooth.cost * (np.ones(len(sign)) if weight is None else weight[part])
        short = np.maximum(1.0 - sign * (A @ w + first), 0.0)
        alpha = 2.0 * cost * short
        loss, total = loss + (cost * short * short).sum(), total + alpha.sum()
        level, slope = level + smooth.bias * (sign * alpha).sum(), slope + A.T @ (sign * alpha)
    largest = max(abs(level), np.abs(slope).max(initial=0.0), 1e-300)
    share = min(1.0 / largest, total / max(2.0 * loss, 1e-300))
    primal, dual = np.abs(at.x).astype(np.longdouble).sum() + loss, share * total - share**2 * loss
    return float(relative_gap(primal, dual, smooth.start_value))


def _proximal_newton_rounds(
    problem: _L1Problem, at: CompositePoint, settings: Settings, progress: Progress, n_iter: int
) -> tuple[CompositePoint, int, bool]:
    """Return the point reached, the steps taken in all, and whether it was told to stop."""
    tol, most, d = settings.tol, settings.max_iter, problem.smooth.width - 1
    if d <= _WHOLE:
        return proximal_newton(problem, at, tol=tol, max_iter=most, progress=progress, done=n_iter)
    columns = np.zeros(0, dtype=np.intp)
    for _ in range(_MOST_ROUNDS):
        if at.relative <= tol or n_iter >= most:
            break
        grown = _grown(at, columns)
        if len(grown) > _MOST_GRAM:
            break
        inner = problem if len(grown) == d else problem.restricted(grown)
        goal = max(0.2 * tol, 0.02 * at.relative)
        before = n_iter
        start = inner.at(at.x[np.r_[0, 1 + grown]])
        found, n_iter, stopped = proximal_newton(inner, start, tol=goal, max_iter=most, progress=progress, done=n_iter)
        w = np.zeros(d + 1)
        w[np.r_[0, 1 + grown]] = found.x
        at = problem.at(w)
        if stopped:
            return at, n_iter, True
        if np.array_equal(grown, columns) and n_iter == before:
            break
        columns = grown
    return at, n_iter, False


def _grown(at: CompositePoint, columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the columns in use and the steepest others, about twice as many as there are coefficients."""
    steepness = np.abs(at.detail[1][1:])
    support = np.flatnonzero(at.x[1:])
    steepness[support] = np.inf
    wrong = int(np.count_nonzero(steepness > 1.0))
    number = min(len(steepness), max(_FIRST, 2 * len(support), min(wrong, 2 * len(columns))))
    chosen = np.argpartition(-steepness, number - 1)[:number]
    return np.unique(np.concatenate([chosen, support]))


def _rough_start(problem: _L1Problem) -> Array:
    """Return the optimum of a problem with few of the rows, where there are many; else zero."""
    smooth = problem.smooth
    rows = max(_FEWEST_THINNED, _THIN * smooth.width)
    zero = np.zeros(smooth.width)
    if smooth.blocks.n_rows < 4 * rows or smooth.width - 1 > _WHOLE:
        return zero
    thinned = _L1Problem(smooth.thinned(smooth.blocks.n_rows // rows))
    return proximal_newton(thinned, thinned.at(zero), tol=_ROUGH, max_iter=30)[0].x


def _column_descent(
    blocks: Any, settings: Settings, progress: Progress, start: Array, done: int, most: int
) -> tuple[Array, int, bool]:
    """Run coordinate descent on the columns of (bias, X), from a point that took `done` steps, up to `most` steps.

    Columns that are not in use and not steep are passed over between two looks at all of them. Each look is followed
    by conjugate gradients on the support.
    """
    X, y, weight = blocks.joined()
    cost = settings.C * (np.ones(blocks.n_rows) if weight is None else weight)
    sign = settings.target.of(y)
    skip = 0 if settings.bias else 1
    first = sp.csc_array(np.full((blocks.n_rows, 1 - skip), settings.bias))
    columns = sp.csc_array(sp.hstack([first, sp.csc_array(X)], format="csc"), dtype=np.float64)
    data, indices, indptr = columns.data, unsigned(columns.indices), unsigned(columns.indptr)
    w, gap, n_iter, stopped = start[skip:].copy(), np.inf, done, False
    everybody = active = np.arange(len(w))
    short = 1.0 - sign * (columns @ w)
    for n_iter in range(done + 1, most + 1):
        lasso_hinge_pass(data, indices, indptr, settings.rng.permutation(active), sign, cost, w, short)
        active = everybody
        if (n_iter - done) % _LOOK == 0 or n_iter == most:
            w = _support_step(columns, sign, cost, w)
            short = 1.0 - sign * (columns @ w)  # afresh: the updates of many passes drift
        if (n_iter - done) % _LOOK in (0, 1) or n_iter == most:
            slope = columns.T @ (2.0 * cost * sign * np.maximum(short, 0.0))
            gap = _gap_of(slope, cost, w, short)
        if (n_iter - done) % _LOOK:
            active = np.flatnonzero((w != 0.0) | (np.abs(slope) > _QUIET))
        stopped = progress(n_iter, gap)
        if gap <= settings.tol or stopped:
            break
    return np.r_[np.zeros(skip), w], n_iter, stopped


def _support_step(columns: Any, sign: Array, cost: Array, w: Array) -> Array:
    """Return a better w by conjugate gradients among the coefficients in use; those that change sign become zero."""
    support = np.flatnonzero(w)
    if len(support) == 0:
        return w
    A, old = columns[:, support], w[support]

    def value(v: Array) -> float:
        short = np.maximum(1.0 - sign * (A @ v), 0.0)
        return float(np.abs(v).sum()) + float(cost @ (short * short))

    short = np.maximum(1.0 - sign * (A @ old), 0.0)
    bend = 2.0 * cost * (short > 0)
    slope = np.sign(old) - A.T @ (2.0 * cost * sign * short)
    scale = 1.0 / np.maximum(A.multiply(A).T @ bend, 1e-300)
    found = conjugate_gradient(
        lambda p: A.T @ (bend * (A @ p)), -slope, preconditioner=lambda r: scale * r, tol=_RESIDUAL, max_iter=_STEPS
    )
    here = value(old)
    for halving in range(_TRIALS):
        new = old + 0.5**halving * found.x
        new = np.where(new * old > 0, new, 0.0)
        if value(new) < here:
            moved = w.copy()
            moved[support] = new
            return moved
    return w


def _gap_of(slope: Array, cost: Array, w: Array, short: Array) -> float:
    short = np.maximum(short, 0.0)
    loss, total = float(cost @ (short * short)), 2.0 * float(cost @ short)
    largest = float(np.abs(slope).max(initial=0.0))
    scale = min(1.0 / max(largest, 1e-300), total / max(2.0 * loss, 1e-300))
    dual = scale * total - scale**2 * loss
    return relative_gap(float(np.abs(w).sum()) + loss, dual, float(cost.sum()))
