r"""Which method for which linear support vector machine.

- Squared shortfalls are smooth: Newton's method on sums over rows, wherever the rows are. Many sparse columns: dual
  coordinate descent, with conjugate gradients among the free variables, until the weights' own gap is small; what is
  left, Newton's method does.
- Hinge losses: few columns are best served by the interior-point method, in whatever units; many by dual coordinate
  descent.
- Fewer rows than columns: w is a combination of the rows, so that the same problem in n dimensions has the same
  optimum.
- The L1 penalty, of the squared hinge only: see below.

The squared hinge with an L1 penalty, by proximal Newton steps on working sets of columns.

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

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import Array, DataError, NDArray, Progress, interruptible, no_progress, one_thread_blas
from ...data.blocks import Blocks, Part, unsigned
from ...risk.losses import SquaredHingeLoss
from ...risk.objective import relative_gap
from ...risk.shortfall import ShortfallRisk, Target, l1_dual
from ...solvers.composite.coordinate import FLOOR, Penalty
from ...solvers.composite.proximal_newton import CompositePoint, proximal_newton, quadratic_minimum
from ...solvers.problem import Solution, backtrack
from ...solvers.smooth.newton import newton
from ...solvers.smooth.shapes import HessianFree
from ...solvers.systems.normal_equations import conjugate_gradient
from ..base import FINEST_CLAIM, SUM_ROUNDING, long_rows
from ._kernels import lasso_hinge_pass
from .dual_descent import dual_descent, subgradient_descent
from .interior_point import interior_point
from .problem import DualPair, MarginTask, better

MOST_DIRECT = 1500  # parameters for which a Hessian is formed
_ROWS_PER_PARAMETER = 32  # of the thinned problem
_FEWEST_THINNED = 4096  # rows of a thinned problem, at least
_ROUGH = 0.03  # gap: the optima differ by sampling error

SOLVERS = ("auto", "newton", "interior-point", "dual", "subgradient")
_MOST_INTERIOR = 500  # columns for which the interior-point method forms its matrix
_MOST_STEPS = 100  # of the interior-point method; it takes thirty or it cycles
_RESCUE_ENTRIES = 2**30  # of X that the passes of a rescue may visit
_ROUGH_ROWS = 4096  # on which an interior point's start is found
_MOST_PASSES = 100  # of coordinate descent before Newton's method takes over
_FINER = 1e-3  # times the tolerance: the gap that the dual variables prove is that much smaller than the weights' own


class Settings(NamedTuple):
    """The problem and the limits, as the estimator states them."""

    owner: str
    target: Target
    squared: bool
    C: float
    bias: float  #: 0 without an intercept
    solver: str
    tol: float
    max_iter: int
    n_jobs: int | None
    rng: np.random.Generator


class MarginFit(NamedTuple):
    """Weights, what is proven about them, and the dual point where it does not follow from the weights."""

    w: Array  #: (1 + d,), the intercept's weight first
    gap: float
    n_iter: int
    dual: Array | None = None  #: (n,), Σ σα over the sides of a row


def fit_margin(
    blocks: Any, settings: Settings, progress: Progress, start: Array | None = None, start_dual: Array | None = None
) -> MarginFit:
    """Minimise ½‖w‖² + C Σ s·loss for one score, from `start` (weights) or `start_dual` where the method can use it.

    The gap is one that rounding cannot explain, for rows in memory.
    """
    fit = _solve_margin(blocks, settings, progress, start, start_dual)
    if not blocks.in_memory:
        return fit
    return fit._replace(gap=proven_margin_gap(margin_task(blocks, settings), fit.w, fit.dual, fit.gap, settings.tol))


def _solve_margin(
    blocks: Any, settings: Settings, progress: Progress, start: Array | None, start_dual: Array | None
) -> MarginFit:
    """Solve the problem by the method that suits it."""
    squared = settings.squared
    solver = settings.solver
    if not blocks.in_memory and not (squared and solver in ("auto", "newton")):
        raise DataError(
            f"{settings.owner}: this loss or solver keeps a number for every row, so the rows have to fit into memory; "
            "use the squared loss with solver='auto', or read the table into an array."
        )
    if squared and solver in ("auto", "newton"):
        row_space = blocks.in_memory and solver == "auto" and _prefers_row_space(blocks)
        fit = (_fit_in_row_space if row_space else _fit_smooth)(blocks, settings, progress, start)
        return _rescued(blocks, settings, progress, fit) if blocks.in_memory else fit
    if solver == "auto" and _prefers_row_space(blocks):
        return _rescued(blocks, settings, progress, _fit_in_row_space(blocks, settings, progress))
    task = margin_task(blocks, settings)
    limits = {"tol": settings.tol, "max_iter": settings.max_iter, "progress": progress}
    if solver == "subgradient":
        found = subgradient_descent(task, settings.rng, **limits)  # type: ignore[arg-type]
    elif not squared and (solver == "interior-point" or (solver == "auto" and task.width <= _MOST_INTERIOR)):
        limits["max_iter"] = min(settings.max_iter, _MOST_STEPS)
        found = interior_point(task, _rough_weights(blocks, settings, start), **limits)  # type: ignore[arg-type]
    else:
        alpha = None if start_dual is None else np.maximum(task.sign * start_dual, 0.0)
        found = dual_descent(task, settings.rng, start=alpha, **limits)  # type: ignore[arg-type]
    fit = _finished(task, found)
    return _rescued(blocks, settings, progress, fit) if solver == "auto" else fit


def margin_task(blocks: Any, settings: Settings) -> MarginTask:
    """Return the problem of rows in memory in the form that the dual methods take."""
    _, y, weight = blocks.joined()
    cost = settings.C * (np.ones(blocks.n_rows) if weight is None else weight)
    t = settings.target.of(y)
    if settings.target.positive is None:
        epsilon = settings.target.epsilon
        sign = np.repeat([[1.0], [-1.0]], len(t), axis=1)
        offset = np.stack([t - epsilon, -t - epsilon])
    else:
        sign = t[None, :]
        offset = np.ones((1, len(t)))
    return MarginTask(blocks, sign, offset, cost, settings.bias, settings.squared, settings.n_jobs)


def _finished(task: MarginTask, found: DualPair) -> MarginFit:
    return MarginFit(found.w, found.gap, found.n_iter, (task.sign * found.alpha).sum(axis=0))


def _rescued(blocks: Blocks, settings: Settings, progress: Progress, fit: MarginFit) -> MarginFit:
    """Try other ways from where a fit came to rest above the tolerance, as numbers of many sizes make it do."""
    left = settings.max_iter - fit.n_iter
    if fit.gap <= settings.tol or left <= 0 or progress(fit.n_iter, fit.gap):
        return fit
    task = margin_task(blocks, settings)
    if fit.dual is not None:
        alpha = np.maximum(task.sign * fit.dual, 0.0)
    else:  # the squared loss's own dual point
        alpha = np.maximum(task.offset - task.sign * task.scores(fit.w), 0.0) / np.maximum(task.ridge, 1e-300)
    if not settings.squared and task.width <= _MOST_INTERIOR:
        smooth = minimise_squared(
            _squared_problem(blocks, settings), None, tol=1e-3, max_iter=50, progress=no_progress
        ).x
        found = interior_point(task, smooth, tol=settings.tol, max_iter=min(left, _MOST_STEPS), progress=progress)
        if found.gap <= settings.tol:
            return _finished(task, found)
    passes = min(left, _RESCUE_ENTRIES // max(1, task.blocks.n_rows * task.width))
    if passes > 0:
        found = dual_descent(task, settings.rng, start=alpha, tol=settings.tol, max_iter=passes, progress=progress)
        found = better(found, task.pair(alpha, fit.w, fit.n_iter), task.start_value)
        if found.gap < fit.gap:
            return _finished(task, found)
    return fit


def _fit_smooth(blocks: Any, settings: Settings, progress: Progress, start: Array | None) -> MarginFit:
    """Run Newton's method, after dual passes where the columns are many and sparse."""
    spent = 0
    if start is None and blocks.in_memory and blocks.sparse and blocks.n_columns >= MOST_DIRECT:
        task = margin_task(blocks, settings)
        passes = min(settings.max_iter, _MOST_PASSES)
        rough = dual_descent(task, settings.rng, tol=_FINER * settings.tol, max_iter=passes, progress=progress)
        start = rough.w
        spent = rough.n_iter
    problem = _squared_problem(blocks, settings)
    found = minimise_squared(
        problem,
        start,
        tol=settings.tol,
        max_iter=max(1, settings.max_iter - spent),
        progress=lambda iteration, value: progress(spent + iteration, value),
    )
    return MarginFit(found.x, found.measure, spent + found.n_iter)


def _rough_weights(blocks: Blocks, settings: Settings, start: Array | None) -> Array | None:
    """Return where an interior point may start: the squared loss's optimum on some of many rows."""
    stride = blocks.n_rows // _ROUGH_ROWS
    if start is not None or stride < 2:
        return start
    problem = _squared_problem(blocks, settings).thinned(stride)
    return minimise_squared(problem, None, tol=0.03, max_iter=30, progress=no_progress).x


def _squared_problem(blocks: Any, settings: Settings) -> ShortfallRisk:
    return ShortfallRisk.of(blocks, settings.target, settings.C, bias=settings.bias, n_jobs=settings.n_jobs)


def _prefers_row_space(blocks: Blocks) -> bool:
    n = blocks.n_rows
    d = blocks.n_columns
    return not blocks.sparse and n <= d > _MOST_INTERIOR and n <= MOST_DIRECT and n * d <= 4e7


def _fit_in_row_space(blocks: Blocks, settings: Settings, progress: Progress, start: Array | None = None) -> MarginFit:
    """Solve for v in w = Qv, where the rows (bias, X) = RᵀQᵀ and Q has orthonormal columns."""
    X, y, weight = blocks.joined()
    rows = np.column_stack([np.full(len(X), settings.bias), X]).astype(np.float64)
    Q, R = interruptible(np.linalg.qr, rows.T)
    small = Blocks([Part(np.ascontiguousarray(R.T), y, weight)])
    inner = settings._replace(bias=0.0, tol=settings.tol / 4)
    if settings.squared:
        found = _fit_smooth(small, inner, progress, None)
        problem = _squared_problem(blocks, settings)
        w = Q @ found.w[1:]
        return MarginFit(w, problem.evaluate(w).measure, found.n_iter)
    limits = {"tol": inner.tol, "max_iter": settings.max_iter, "progress": progress}
    pair = interior_point(margin_task(small, inner), **limits)  # type: ignore[arg-type]
    task = margin_task(blocks, settings)
    return _finished(task, task.pair(pair.alpha, Q @ pair.w[1:], pair.n_iter))


@one_thread_blas()
def minimise_squared(
    problem: ShortfallRisk, start: Array | None, *, tol: float, max_iter: int, progress: Progress
) -> Solution:
    """Run Newton's method: with Cholesky for few columns, first on some of the rows; else with conjugate gradients."""
    x0 = np.zeros(problem.width) if start is None else start
    if problem.width > MOST_DIRECT:
        return HessianFree(problem).minimise(x0, tol=tol, max_iter=max_iter, progress=progress)
    rows = max(_FEWEST_THINNED, _ROWS_PER_PARAMETER * problem.width)
    n = problem.blocks.n_rows
    if start is None and n >= 8 * rows:
        x0 = minimise_squared(problem.thinned(n // rows), None, tol=_ROUGH, max_iter=30, progress=no_progress).x
    return newton(problem, x0, tol=tol, max_iter=max_iter, progress=progress)


_WHOLE = 200  # columns up to which no working set is needed
_FIRST = 100  # columns of the first working set
_MOST_GRAM = 2000  # columns for which a matrix is formed
_MOST_ROUNDS = 60  # rounds of working sets: a guard against a cycle that rounding might make
_THIN = 16  # rows per column of a thinned problem
_STEEPEST = 1e-6  # share of the largest slope within which rounding may decide which is the largest
_CHUNK = 2**20  # numbers that are widened to extended precision at a time
_FIRST_PASSES = 100  # over sparse columns, before matrices are formed
_LOOK = 5  # passes, of which one visits every column
_QUIET = 0.9  # slope up to which a column that is not in use is passed over; it enters at one
# of conjugate gradients on the support
_STEPS = 20
_RESIDUAL = 0.03
_TRIALS = 4


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
        return CompositePoint(w, *self.smooth.l1_gap(w, loss, slope), (loss, slope))

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
    w = start
    n_iter = 0
    stopped = False
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
    first = np.longdouble(smooth.bias) * at.x[0]
    w = at.x[1 + used].astype(np.longdouble)
    X, targets, weight = smooth.blocks.joined()
    y = np.asarray(targets)
    rows = len(y) if smooth.sparse else max(1, _CHUNK // max(1, len(used)))
    loss: Any = np.longdouble(0.0)
    total = loss
    level = loss
    slope = loss
    for start in range(0, len(y), rows):
        part = slice(start, start + rows)
        A = X[part][:, used].astype(np.longdouble)
        sign = smooth.target.of(y[part])
        cost = smooth.cost * (np.ones(len(sign)) if weight is None else weight[part])
        short = np.maximum(1.0 - sign * (A @ w + first), 0.0)
        alpha = 2.0 * cost * short
        loss = loss + (cost * short * short).sum()
        total = total + alpha.sum()
        level = level + smooth.bias * (sign * alpha).sum()
        slope = slope + A.T @ (sign * alpha)
    primal = np.abs(at.x).astype(np.longdouble).sum() + loss
    dual = l1_dual(loss, total, max(abs(level), np.abs(slope).max(initial=0.0)))
    return float(relative_gap(primal, dual, smooth.start_value))


def _proximal_newton_rounds(
    problem: _L1Problem, at: CompositePoint, settings: Settings, progress: Progress, n_iter: int
) -> tuple[CompositePoint, int, bool]:
    """Return the point reached, the steps taken in all, and whether it was told to stop."""
    tol = settings.tol
    most = settings.max_iter
    d = problem.smooth.width - 1
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
    data = columns.data
    indices = unsigned(columns.indices)
    indptr = unsigned(columns.indptr)
    w = start[skip:].copy()
    gap = np.inf
    n_iter = done
    stopped = False
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
    A = columns[:, support]
    old = w[support]

    loss = SquaredHingeLoss()

    def value(v: Array) -> float:
        return float(np.abs(v).sum()) + float(cost @ loss.value(sign, A @ v))

    z = A @ old
    bend = cost * loss.curvature(sign, z)
    slope = np.sign(old) + A.T @ (cost * loss.gradient(sign, z))
    scale = 1.0 / np.maximum(A.multiply(A).T @ bend, 1e-300)
    found = conjugate_gradient(
        lambda p: A.T @ (bend * (A @ p)), -slope, preconditioner=lambda r: scale * r, tol=_RESIDUAL, max_iter=_STEPS
    )
    here = value(old)

    def trial(length: float) -> Array | None:
        new = old + length * found.x
        new = np.where(new * old > 0, new, 0.0)
        return new if value(new) < here else None

    better = backtrack(trial, most=_TRIALS)
    moved = w.copy()
    moved[support] = old if better is None else better
    return moved


def _gap_of(slope: Array, cost: Array, w: Array, short: Array) -> float:
    short = np.maximum(short, 0.0)
    loss = float(cost @ (short * short))
    dual = l1_dual(loss, 2.0 * float(cost @ short), float(np.abs(slope).max(initial=0.0)))
    return relative_gap(float(np.abs(w).sum()) + loss, dual, float(cost.sum()))


def proven_margin_gap(task: MarginTask, w: Array, dual: Array | None, gap: float, tol: float) -> float:
    """Return the relative gap of a support vector machine's weights, in more digits where rounding may be above `tol`.

    `dual` is Σ σα of each row; None for the squared loss, whose dual point α = 2c·shortfall follows from the weights.
    """
    limit = max(tol, FINEST_CLAIM)
    if _rounding_of_margin_gap(task, w, dual, 0.0) <= limit:
        return gap
    loss = task.loss(task.scores(w))
    if _rounding_of_margin_gap(task, w, dual, loss) <= limit:
        return gap
    z = np.concatenate([X @ w[1:].astype(np.longdouble) for X, _, _ in long_rows(task.blocks)])
    cost = task.cost.astype(np.longdouble)
    bias = np.longdouble(task.bias)
    short = np.maximum(task.offset - task.sign * (z + bias * w[0]), 0)
    alpha = 2 * cost * short if dual is None else np.maximum(task.sign * dual, 0).astype(np.longdouble)
    beta = (task.sign * alpha).sum(axis=0)
    done = 0
    u = np.zeros(len(w), dtype=np.longdouble)
    u[0] = bias * beta.sum()
    for X, _, s in long_rows(task.blocks):
        u[1:] += X.T @ beta[done : done + len(s)]
        done += len(s)
    primal = 0.5 * (w.astype(np.longdouble) ** 2).sum() + (cost * short**task.power).sum()
    value = (task.offset * alpha).sum() - 0.5 * (u * u).sum()
    if task.squared:
        value = value - (alpha * alpha / (4 * cost)).sum()
    return float(relative_gap(primal, value, task.start_value))


def _rounding_of_margin_gap(task: MarginTask, w: Array, dual: Array | None, loss: float) -> float:
    """Return what rounding of the scores and of u = Σ βx may do to the relative gap, from the longest row.

    `loss` is that of the weights, or less.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        longest = float(np.sqrt(task.row_norms.max(initial=0.0)))
        length = float(np.sqrt(w @ w))
        most = float(task.cost.sum())
        reach = length * longest + float(np.abs(task.offset).max(initial=1.0))
        weight = 2.0 * most * reach if dual is None else float(np.abs(dual).sum())
        noise = SUM_ROUNDING * longest * weight
        terms = SUM_ROUNDING * (0.5 * length * length + (weight + most) * reach)
        size = max(0.5 * length * length + loss, FLOOR * task.start_value, 1e-300)
        rounding = (noise * (noise + length) + terms) / size
    return rounding if np.isfinite(rounding) else np.inf
