r"""Coefficients in single precision for rows in single precision.

A table of float32 numbers gets float32 coefficients, as in scikit-learn. Fits compute in float64; here their result is
rounded, the intercept is computed again for the rounded coefficients, in float64, and the certificate is measured
again: it speaks of the numbers that are stored. Where it does not survive the rounding, the coefficients stay float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Blocks
from ..data.door import Table
from ..solvers.composite.coordinate import Gap, Penalty, penalised_gap
from ..solvers.composite.designs import Design
from ..solvers.composite.working_set import SparseFit, WorkingSet
from ..solvers.systems.moments import relative_residual, residual_sums
from ..solvers.systems.normal_equations import column_sums, optimality
from ..solvers.systems.orthogonal import LinearFit

Array = NDArray[np.float64]

MOST_REFINED = 2000  # nonzero coefficients for which a Newton step is worth its price


def is_single(table: Table) -> bool:
    """Tell whether the rows are in memory, in single precision."""
    return bool(table.in_memory and table.X.dtype == np.float32)


def in_single(coef: Array) -> Array:
    """Return numbers rounded to float32, as float64."""
    with np.errstate(over="ignore", under="ignore"):
        return coef.astype(np.float32).astype(np.float64)


def round_linear(
    blocks: Blocks,
    fit: LinearFit,
    alpha: float,
    *,
    intercept: bool,
    tolerance: float,
    nonnegative: bool = False,
    n_jobs: int | None = None,
) -> LinearFit | None:
    """Return a (ridge) least squares fit with float32 coefficients; None where its measure leaves the tolerance.

    `tolerance` is the one that the certificate will have, at least `SINGLE_TOLERANCE`. A fit that did not reach it
    before is rounded, too. A gap grows like 1/α: where a small α makes too much of the rounding, the residual of the
    equations is measured instead.
    """
    coef = in_single(fit.coef)
    if not np.isfinite(coef).all():
        return None
    sums = column_sums(blocks, intercept=intercept, n_jobs=n_jobs)
    state = residual_sums(blocks, sums.x_mean, sums.y_mean, coef, n_jobs=n_jobs)
    offset = sums.y_mean - sums.x_mean @ coef
    reached = fit.value <= tolerance
    if fit.kind == "gap":
        gap = optimality(sums, state, coef, sums.y_mean, alpha, intercept, tolerance)
        if gap <= tolerance or not reached:
            return fit._replace(coef=coef, intercept=offset, value=gap)
    gradient = state.cross - alpha * coef
    if nonnegative:
        gradient = np.where(coef > 0, gradient, np.maximum(gradient, 0.0))
    values = relative_residual(
        gradient,
        state.total if intercept else np.zeros_like(state.total),
        x=(np.sqrt(sums.x_square), sums.x_mean),
        y=(np.sqrt(sums.y_square), sums.y_mean),
        coef=coef,
        intercept=offset,
        penalty=alpha * np.abs(coef).max(axis=0, initial=0.0),
        weight=sums.weight,
        tolerance=tolerance,
    )
    value = float(values.max(initial=0.0))
    if reached and not value <= tolerance:
        return None
    kind = "stationarity" if fit.kind == "gap" else fit.kind
    return fit._replace(coef=coef, intercept=offset, value=value, kind=kind)


def round_sparse(design: Design, fit: SparseFit, penalty: Penalty, tol: float) -> SparseFit | None:
    """Return a fit by coordinate descent with float32 coefficients; None where its gap does not stay below `tol`.

    Rounding raises the objective only by its square, but moves the residual, and with it the dual point, by itself. The
    dual point that proves more is that of the coefficients after one Newton step on their support.
    """
    W = in_single(fit.W)
    if not np.isfinite(W).all():
        return None
    base = 0.5 * design.square
    gap = _gap_at(WorkingSet(design, W), W, penalty)
    near = min(fit.value, gap.relative(base)) <= tol  # far from the optimum such a step says little
    refined = _newton_step(design, W, penalty) if near else None
    if refined is not None:
        better = _gap_at(WorkingSet(design, refined), refined, penalty)
        left = gap.primal - (better.primal - better.gap)
        gap = gap._replace(gap=max(0.0, left)) if left < gap.gap else gap
    value = gap.relative(base)
    if fit.value <= tol and not value <= tol:
        return None
    return fit._replace(W=W, value=value, gap=gap)


def _gap_at(solver: WorkingSet, W: Array, penalty: Penalty) -> Gap:
    return penalised_gap(W, solver.gradient, solver.square, penalty)


def _newton_step(design: Design, W: Array, penalty: Penalty) -> Array | None:
    """Return the coefficients of one target that solve the equations of their support and signs."""
    support = np.flatnonzero(W.any(axis=1))
    if W.shape[1] > 1 or not 0 < len(support) <= MOST_REFINED:
        return None
    solver = WorkingSet(design, W)
    place = np.full(len(W), -1, dtype=np.intp)
    place[solver.columns] = np.arange(len(solver.columns))
    curvature = None if solver.model is None else solver.model.curvature(place[support])
    if curvature is None or (place[support] < 0).any():
        return None
    w, l1, l2 = W[support, 0], penalty.l1[support], penalty.l2[support]
    slope = solver.gradient[support, 0] - l2 * w - l1 * np.sign(w)
    refined = W.copy()
    refined[support, 0] += np.linalg.lstsq(curvature + np.diag(l2), slope)[0]
    return refined
