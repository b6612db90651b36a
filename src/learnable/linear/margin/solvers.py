r"""Which method for which linear support vector machine.

- Squared shortfalls are smooth: Newton's method on sums over rows, wherever the rows are. Many sparse columns: dual
  coordinate descent, with conjugate gradients among the free variables, until the weights' own gap is small; what is
  left, Newton's method does.
- Hinge losses: few columns are best served by the interior-point method, in whatever units; many by dual coordinate
  descent.
- Fewer rows than columns: w is a combination of the rows, so that the same problem in n dimensions has the same
  optimum.
- The L1 penalty (squared hinge only) is in `l1.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from ...core.estimator import Progress, no_progress
from ...core.threads import interruptible, one_thread_blas
from ...data.blocks import Blocks, Part
from ...risk.shortfall import ShortfallRisk, Target
from ...solvers.problem import Solution
from ...solvers.smooth.newton import newton
from ...solvers.smooth.shapes import HessianFree
from ..precise import proven_margin_gap
from .dual_descent import dual_descent, subgradient_descent
from .interior_point import interior_point
from .problem import DualPair, MarginTask, better

Array = NDArray[np.float64]

MOST_DIRECT = 1500  # parameters for which a Hessian is formed
_ROWS_PER_PARAMETER = 32  # of the thinned problem
_FEWEST_THINNED = 4096
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
    squared, solver = settings.squared, settings.solver
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
        sign, offset = np.repeat([[1.0], [-1.0]], len(t), axis=1), np.stack([t - epsilon, -t - epsilon])
    else:
        sign, offset = t[None, :], np.ones((1, len(t)))
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
        start, spent = rough.w, rough.n_iter
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
    n, d = blocks.n_rows, blocks.n_columns
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
