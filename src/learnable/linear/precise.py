r"""Duality gaps in extended precision, where 53 digits cannot tell a claim from rounding.

A dual point must satisfy ‖Σ r x‖ ≤ λ, and where columns or targets are huge, λ may be far below the last digit of that
sum: a gap computed from it then says nothing. What rounding may do to a gap is bounded from sums that are at hand; only
where the bound is above the tolerance are the sums computed again, from the rows. Rows beyond memory are not read
again: their gap is stated as the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Blocks
from ..risk.objective import relative_gap
from ..solvers.composite.coordinate import FLOOR, Gap, Penalty, penalised_gap
from ..solvers.composite.designs import Design
from ..solvers.composite.working_set import SparseFit
from .margin.problem import MarginTask

Array = NDArray[np.float64]
Long = NDArray[np.longdouble]

_EPSILON = 2.0**-51  # of a sum of products: two last digits
_FINEST = 1e-9  # tolerance below which rounding does not count against a claim
_CHUNK = 2**20  # numbers in extended precision at a time


def proven_sparse_fit(
    blocks: Blocks, design: Design, fit: SparseFit, penalty: Penalty, tol: float, *, intercept: bool
) -> SparseFit:
    """Return a fit by coordinate descent with a gap that rounding cannot explain.

    Parameters
    ----------
    blocks : Blocks
        The rows, with the targets of the fit.
    design, fit, penalty
        The centred problem, where its solver stopped, and λ₁ and λ₂.
    tol : float
        The gap that is asked for: rounding below it changes nothing.
    intercept : bool
        Whether columns and targets are centred.
    """
    rounding = _rounding_of_sparse_gap(design, fit, penalty)
    if rounding <= max(tol, _FINEST):
        return fit
    base = 0.5 * design.square
    if blocks.in_memory:
        gap = penalised_gap(fit.W, *_long_residual(blocks, fit.W, intercept=intercept), penalty)
    else:
        gap = _widened(fit.gap, rounding, base)
    value = gap.relative(base)
    return fit._replace(value=value, gap=gap, converged=value <= tol)


def _rounding_of_sparse_gap(design: Design, fit: SparseFit, penalty: Penalty) -> float:
    """Return what rounding of Aᵀr may do to the relative gap: its terms are up to ‖Aⱼ‖(‖b‖ + Σ‖Aₖ‖‖Wₖ‖)."""
    if not penalty.l1.all():
        return 0.0
    column = np.sqrt(design.norm + design.weight * design.x_mean**2)
    terms = np.sqrt(design.square + design.weight * float((design.y_mean**2).sum()))
    terms = terms + column @ np.sqrt((fit.W**2).sum(axis=1))
    share = float((column / penalty.l1).max(initial=0.0)) * terms
    dual = fit.gap.primal - fit.gap.gap
    return float(_EPSILON * share * min(1.0, fit.gap.primal / max(dual, FLOOR * 0.5 * design.square, 1e-300)))


def _widened(gap: Gap, rounding: float, base: float) -> Gap:
    """Return a gap that is, relative to what the dual value then is, at least `rounding`."""
    least = min(gap.primal, rounding / (1.0 + rounding) * max(gap.primal, FLOOR * base))
    return gap._replace(gap=max(gap.gap, least))


def _long_residual(blocks: Blocks, W: Array, *, intercept: bool) -> tuple[Array, float]:
    """Return Σ s (x − x̄)rᵀ and Σ s r² of the residuals r = y − ȳ − Wᵀ(x − x̄)."""
    coef = W.astype(np.longdouble)
    d, t = coef.shape
    total, x_sum, y_sum = (np.zeros(shape, dtype=np.longdouble) for shape in ((), d, t))
    for X, y, s in _long_rows(blocks):
        total, x_sum, y_sum = total + s.sum(), x_sum + X.T @ s, y_sum + s @ y
    x_mean, y_mean = (x_sum / total, y_sum / total) if intercept else (0 * x_sum, 0 * y_sum)
    level = y_mean - x_mean @ coef
    cross, r_sum, square = (np.zeros(shape, dtype=np.longdouble) for shape in ((d, t), t, ()))
    for X, y, s in _long_rows(blocks):
        r = y - level - X @ coef
        weighted = s[:, None] * r
        cross, r_sum = cross + X.T @ weighted, r_sum + weighted.sum(axis=0)
        square = square + (weighted * r).sum()
    return (cross - np.outer(x_mean, r_sum)).astype(np.float64), float(square)


def _long_rows(blocks: Blocks) -> Iterator[tuple[Any, Long, Long]]:
    """Yield some rows (dense or sparse), their targets (m, t) and weights at a time, in extended precision."""
    X, y, weight = blocks.joined()
    targets = np.asarray(y).reshape(X.shape[0], -1)
    step = X.shape[0] if blocks.sparse else max(1, _CHUNK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        part = slice(start, start + step)
        target = targets[part].astype(np.longdouble)
        s = np.ones(len(target), dtype=np.longdouble) if weight is None else weight[part].astype(np.longdouble)
        yield X[part].astype(np.longdouble), target, s


def proven_margin_gap(task: MarginTask, w: Array, dual: Array | None, gap: float, tol: float) -> float:
    """Return the relative gap of a support vector machine's weights, in more digits where rounding may be above `tol`.

    `dual` is Σ σα of each row; None for the squared loss, whose dual point α = 2c·shortfall follows from the weights.
    """
    limit = max(tol, _FINEST)
    if _rounding_of_margin_gap(task, w, dual, 0.0) <= limit:
        return gap
    loss = task.loss(task.scores(w))
    if _rounding_of_margin_gap(task, w, dual, loss) <= limit:
        return gap
    z = np.concatenate([X @ w[1:].astype(np.longdouble) for X, _, _ in _long_rows(task.blocks)])
    cost, bias = task.cost.astype(np.longdouble), np.longdouble(task.bias)
    short = np.maximum(task.offset - task.sign * (z + bias * w[0]), 0)
    alpha = 2 * cost * short if dual is None else np.maximum(task.sign * dual, 0).astype(np.longdouble)
    beta = (task.sign * alpha).sum(axis=0)
    done, u = 0, np.zeros(len(w), dtype=np.longdouble)
    u[0] = bias * beta.sum()
    for X, _, s in _long_rows(task.blocks):
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
        noise = _EPSILON * longest * weight
        terms = _EPSILON * (0.5 * length * length + (weight + most) * reach)
        size = max(0.5 * length * length + loss, FLOOR * task.start_value, 1e-300)
        rounding = (noise * (noise + length) + terms) / size
    return rounding if np.isfinite(rounding) else np.inf
