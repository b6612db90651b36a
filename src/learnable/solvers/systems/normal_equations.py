r"""Least squares and ridge by conjugate gradients: for data too wide for a Gram matrix and too large to be made dense.

Solves (XᵀWX + αI)β = XᵀWy about the means, without forming the matrix: one sweep over the rows an iteration. With α
> 0 the iteration stops at a relative duality gap: for P(β) = Σ w r² + α‖β‖² and g = XᵀWr − αβ the dual value of the
(scaled) residuals is P − ‖g‖²/α. Where α is zero, or drowns in the rounding of XᵀWX, it stops at the relative residual
of the normal equations instead, and the first round works in the columns as they are, so that it tends to the solution
of minimum norm; the other rounds, and all rounds otherwise, in scaled columns. Memory: O(d) a thread besides the data.

Conjugate gradients for A x = b, A symmetric positive (semi)definite and known only through v ↦ Av.

After k steps x minimises ½xᵀAx − bᵀx over the Krylov space of dimension k. Started at zero on a singular but consistent
system it converges to the solution of minimum norm. Memory: four vectors.

Reference: M. Hestenes and E. Stiefel, J. Res. NBS 49 (1952).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, Progress, Watched, no_progress, one_thread_blas
from ...data.blocks import Block, Blocks, BlockSource, map_reduce, unsigned
from .moments import (
    CLOSED_FORM_TOLERANCE,
    Residuals,
    relative_residual,
    residual_sums,
    sparse_column_moments,
    sparse_normal_product,
    targets_of,
)
from .orthogonal import LinearFit

_MOST_CANCELLATION = 1e4  # of W x̄² against Σ w (x − x̄)² that is let pass
_RESTARTS = 3  # of the recurrence, whose residual drifts away from the true one
#: Share of tol·‖g₀‖ that a strict fit aims at: methods that reach the same ‖g‖ differ in β by luck, up to 20×.
_STRICT = 0.01
_SMALLEST_TARGET = 1e-140  # whose square, and 1e-8 of it, has all its digits
_EPSILON = float(np.finfo(np.float64).eps)
_FLAT = 1e-15  # share of the largest curvature that the rounding of sums over rows has
_ROUNDED = 1e-14  # relative residual of a singular system below which nothing but rounding is left


class ColumnSums(NamedTuple):
    """First and second moments of single columns."""

    weight: float
    x_mean: Array
    y_mean: Array
    x_square: Array  #: (d,), about the mean
    y_square: Array  #: (k,), about the mean


def column_sums(blocks: Blocks, *, intercept: bool, n_jobs: int | None = None) -> ColumnSums:
    """Return mean and centred sum of squares of every column."""
    d = blocks.n_columns
    k = targets_of(blocks.head()).shape[1]
    x_mean = np.zeros(d)
    y_mean = np.zeros(k)
    for _ in range(2):
        weight, x_sum, y_sum, x_square, y_square = map_reduce(
            blocks, partial(_moments_about, x_mean=x_mean, y_mean=y_mean), _add, n_jobs=n_jobs
        )
        if not intercept:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            x_step = x_sum / weight
            y_step = y_sum / weight
            moved = np.r_[weight * x_step**2, weight * y_step**2]
            x_square = x_square - moved[:d]
            y_square = y_square - moved[d:]
            cancelled = moved > _MOST_CANCELLATION * np.r_[x_square, y_square]
        x_mean = x_mean + x_step
        y_mean = y_mean + y_step
        if not cancelled.any() or not np.isfinite(x_mean).all():
            break  # otherwise once more, about the mean: a column far from zero has lost digits
    return ColumnSums(float(weight), x_mean, y_mean, np.maximum(x_square, 0.0), np.maximum(y_square, 0.0))


@np.errstate(over="ignore", invalid="ignore")
def _moments_about(block: Block, x_mean: Array, y_mean: Array) -> list[Any]:
    """Return Σw, Σw(x − m), Σw(y − m), Σw(x − m)², Σw(y − m)² of one block."""
    w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
    y = targets_of(block) - y_mean
    if not hasattr(block.X, "indptr"):
        x = block.X - x_mean
        return [w.sum(), x.T @ w, y.T @ w, (x**2).T @ w, (y**2).T @ w]
    X = block.X
    first = np.zeros(len(x_mean))
    second = np.zeros(len(x_mean))
    present = np.zeros(len(x_mean))
    sparse_column_moments(X.data, unsigned(X.indices), unsigned(X.indptr), w, x_mean, first, second, present)
    absent = w.sum() - present  # weight of the rows that do not store the column: they are zero there
    return [w.sum(), first - absent * x_mean, y.T @ w, second + absent * x_mean**2, (y**2).T @ w]


def _add(a: list[Any], b: list[Any]) -> list[Any]:
    return [p + q for p, q in zip(a, b, strict=True)]


@one_thread_blas()  # only sweeps and short vectors: BLAS's own threads would wait on the cores that the sweeps need
def iterative_fit(
    blocks: Blocks,
    alpha: float,
    *,
    intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    progress: Progress = no_progress,
    strict: bool = False,
) -> LinearFit:
    """Solve the problem of the module's docstring; `LinearFit.value` is the gap or the relative residual.

    `strict` asks for ‖g‖ ≤ tol·‖g₀‖ too, g₀ at β = 0: a gap of tol alone gives coefficients to about √tol.
    """
    sums = column_sums(blocks, intercept=intercept, n_jobs=n_jobs)
    if not (np.isfinite(sums.x_square).all() and np.isfinite(sums.y_square).all()):
        raise OverflowError("the squares of these columns or targets overflow")
    largest = map_reduce(blocks, lambda block: float(np.abs(targets_of(block)).max(initial=0.0)), max, n_jobs=n_jobs)
    if 0.0 < largest < _SMALLEST_TARGET:
        raise OverflowError(f"the squares of these targets, at most {largest:.3g}, underflow")
    d = blocks.n_columns
    k = len(sums.y_mean)
    scale = 1.0 / np.sqrt(np.where(sums.x_square + alpha > 0, sums.x_square + alpha, 1.0))
    coef = np.zeros((d, k))
    level = sums.y_mean.copy()
    watched = Watched(progress)
    limit = max_iter or max(1000, d)
    restarts = 0
    spent = [0] * k  # iterations for each target
    # ‖g‖ of every target at β = 0, and the largest share of it that was left
    first = np.zeros(k)
    last_size = np.inf
    plain = False
    singular = alpha <= _EPSILON * float(sums.x_square.sum())
    tol = max(tol, _ROUNDED) if singular else tol
    while True:
        state = residual_sums(blocks, sums.x_mean, level, coef, n_jobs=n_jobs)
        value = optimality(sums, state, coef, level, alpha, intercept, tol, singular)
        gradient = state.cross - alpha * coef
        size = np.linalg.norm(gradient, axis=0)
        first = size if restarts == 0 else first
        left = float(np.max(size / np.where(first > 0, first, 1.0), initial=0.0)) if strict else 0.0
        if max(value, left) <= tol or min(spent) >= limit or watched.stopped or restarts == _RESTARTS:
            break
        if value <= tol and left > 0.5 * last_size:
            break  # what is left of g is rounding
        restarts = restarts + 1
        last_size = left
        plain = singular and (restarts == 1 or (plain and value <= tol))
        for target in range(k):
            if watched.stopped:
                break
            step, n_iter = _solve_one(
                blocks, sums, alpha, gradient[:, target], coef[:, target], float(state.square[target]),
                np.ones(d) if plain else scale, target,
                singular=singular, tol=tol, goal=_STRICT * tol * float(first[target]) if strict else np.inf,
                limit=(limit - spent[target] + 1) // 2 if plain else limit - spent[target],
                n_jobs=n_jobs, progress=watched, done=sum(spent),
            )  # fmt: skip
            coef[:, target] += step
            spent[target] += n_iter
        if intercept:
            level = level + state.total / sums.weight
    norm = np.sqrt(np.maximum(state.square, 0.0))
    rank = min(int(np.count_nonzero(sums.x_square)), blocks.n_rows - intercept)
    kind = "stationarity" if singular else "gap"
    scaled = (
        singular and restarts > 0 and not plain and not watched.stopped and (max_iter is None or max(spent) < max_iter)
    )
    level = level - sums.x_mean @ coef
    return LinearFit(coef, level, rank, None, sums.x_mean, norm, value, max(1, sum(spent)), kind, scaled)


def optimality(
    sums: ColumnSums,
    state: Residuals,
    coef: Array,
    level: Array,
    alpha: float,
    intercept: bool,
    tol: float,
    singular: bool = False,
) -> float:
    """Return the largest relative gap of the targets, or relative residual where α is zero or drowns in rounding."""
    gradient = state.cross - alpha * coef
    if alpha > 0 and not singular:
        offset = state.total**2 / sums.weight if intercept else 0.0  # what the best intercept would gain
        return float(np.max(_relative_gap(state.square - offset, offset, coef, gradient, alpha, sums.y_square)))
    values = relative_residual(
        gradient,
        state.total if intercept else np.zeros_like(state.total),
        x=(np.sqrt(sums.x_square), sums.x_mean),
        y=(np.sqrt(sums.y_square), sums.y_mean),
        coef=coef,
        intercept=level - sums.x_mean @ coef,
        penalty=alpha * np.abs(coef).max(axis=0, initial=0.0),
        weight=sums.weight,
        tolerance=max(tol, CLOSED_FORM_TOLERANCE),
    )
    return float(values.max(initial=0.0))


def _solve_one(
    blocks: Blocks,
    sums: ColumnSums,
    alpha: float,
    right: Array,
    start: Array,
    residual_square: float,
    scale: Array,
    target: int,
    *,
    singular: bool,
    tol: float,
    goal: float,
    limit: int,
    n_jobs: int | None,
    progress: Progress,
    done: int,
) -> tuple[Array, int]:
    """Return the correction of one target's coefficients, and the iterations it took; `goal` is that of ‖g‖."""
    penalised = residual_square + alpha * float(start @ start)
    y_square = float(sums.y_square[target])
    x_norm = np.sqrt(sums.x_square)

    def measure(x: Array, r: Array) -> float:
        value = optimality_of(x, r)
        return value if np.isinf(goal) else max(value, tol * float(np.linalg.norm(r)) / max(goal, 1e-300))

    def optimality_of(x: Array, r: Array) -> float:
        if singular:
            terms = np.sqrt(y_square) + x_norm @ np.abs(start + x)
            return float(np.max(np.abs(r) / np.maximum(x_norm * terms, 1e-300)))
        # P(start + x) from the recurrence: the quadratic falls by (right + r)ᵀx.
        value = penalised - float((right + r) @ x)
        gap = float(r @ r) / alpha
        return gap / max(value - gap, 1e-8 * y_square, 1e-300)

    ready = [blocks[number] for number in range(len(blocks))] if blocks.sparse else blocks  # views, made once
    solution = conjugate_gradient(
        lambda v: normal_product(ready, sums.x_mean, v, n_jobs=n_jobs) + alpha * v,
        right,
        preconditioner=lambda v: scale * scale * v,
        measure=measure,
        flat=_FLAT if singular else 0.0,
        tol=0.5 * tol,
        max_iter=limit,
        progress=lambda iteration, value: progress(done + iteration, value),
    )
    return solution.x, solution.n_iter


def normal_product(blocks: BlockSource[Block], centre: Array, v: Array, *, n_jobs: int | None = None) -> Array:
    """Return Σ w (x − centre)(x − centre)ᵀ v."""
    offset = float(centre @ v)

    def statistic(block: Block) -> tuple[Array, float]:
        out = np.zeros(len(v))
        w = np.ones(block.X.shape[0]) if block.weight is None else block.weight
        if hasattr(block.X, "indptr"):
            X = block.X
            indices = unsigned(X.indices)
            indptr = unsigned(X.indptr)
            return out, sparse_normal_product(X.data, indices, indptr, w, v, offset, out)
        z = w * ((block.X - centre) @ v)
        return (block.X - centre).T @ z, 0.0

    total, moved = map_reduce(blocks, statistic, lambda a, b: (a[0] + b[0], a[1] + b[1]), n_jobs=n_jobs)
    return np.asarray(total - moved * centre)


def _relative_gap(
    residual_square: Array, offset: Array | float, coef: Array, gradient: Array, alpha: float, y_square: Array
) -> Array:
    value = residual_square + alpha * (coef * coef).sum(axis=0)
    gap = (gradient * gradient).sum(axis=0) / alpha
    return np.asarray((gap + offset) / np.maximum(np.maximum(value - gap, 1e-8 * y_square), 1e-300))


#: A linear map: a function, or what `@` applies to a vector.
Operator = Any


class LinearSolution(NamedTuple):
    """Where conjugate gradients stopped."""

    x: Array
    residual: Array  #: b − Ax, as the recurrence carries it
    measure: float
    n_iter: int
    converged: bool


def conjugate_gradient(
    apply: Operator,
    b: Array,
    *,
    preconditioner: Operator | None = None,
    measure: Callable[[Array, Array], float] | None = None,
    flat: float = 0.0,
    tol: float = 1e-10,
    max_iter: int | None = None,
    progress: Progress = no_progress,
) -> LinearSolution:
    """Solve A x = b by (preconditioned) conjugate gradients from zero.

    Parameters
    ----------
    apply : function or operator
        v ↦ Av; or anything with `@`: an array, a sparse array, a SciPy `LinearOperator`.
    b : (p,) array
        Right-hand side.
    preconditioner : function or operator, optional
        v ↦ M⁻¹v with M ≈ A, symmetric positive definite.
    measure : function, optional
        (x, residual) ↦ the number driven below `tol`; by default ‖residual‖/‖b‖.
    flat : float
        The relative noise of A: of the largest curvature met so far, pᵀAp/pᵀMp, the share up to which a direction
        counts as one of the null space. A residual below that share of Mx is noise as well. Either ends the run, in
        whatever units A is: further steps would follow the noise.
    tol, max_iter, progress
        As for every solver; `max_iter` is 10·p by default.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> solution = conjugate_gradient(A, np.array([1.0, 2.0]))
    >>> solution.n_iter, bool(np.allclose(A @ solution.x, [1, 2]))
    (2, True)
    """
    product = _function(apply)
    precondition = None if preconditioner is None else _function(preconditioner)
    b_norm = float(np.linalg.norm(b))
    size: Callable[[Array, Array], float] = measure or (
        lambda x, r: float(np.linalg.norm(r)) / b_norm if b_norm > 0 else 0.0
    )
    x = np.zeros_like(b)
    r = b.copy()
    z = precondition(r) if precondition else r
    p = z
    rz = float(r @ z)
    length = rz  # pᵀMp: z and p are orthogonal in M
    steepest = 0.0
    Mx = np.zeros_like(b)
    Mp = r.copy()
    value = size(x, r)
    n_iter = 0
    limit = 10 * len(b) if max_iter is None else max_iter
    while value > tol and n_iter < limit and rz > 0:
        Ap = product(p)
        curvature = float(p @ Ap)
        steepest = max(steepest, curvature / length)
        if curvature <= 0 or curvature <= flat * steepest * length:
            break  # a direction of the null space, or rounding: no further decrease along it
        if flat > 0 and rz <= (flat * steepest) ** 2 * float(x @ Mx):
            break  # what is left of the residual is the noise of A in Ax
        step = rz / curvature
        x = x + step * p
        if flat > 0:
            Mx += step * Mp
        r = r - step * Ap
        z = precondition(r) if precondition else r
        last = rz
        rz = float(r @ z)
        p = z + (rz / last) * p
        if flat > 0:
            Mp = r + (rz / last) * Mp
        length = rz + (rz / last) ** 2 * length
        n_iter += 1
        value = size(x, r)
        if progress(n_iter, value):
            break
    return LinearSolution(x, r, value, n_iter, value <= tol)


def _function(operator: Operator) -> Callable[[Array], Array]:
    if hasattr(operator, "__matmul__"):
        return lambda v: np.asarray(operator @ v)
    return operator  # type: ignore[no-any-return]
