r"""The joint support vector machine of all classes, after Crammer and Singer: which method for which table.

    min_W  ½ Σₖ ‖wₖ‖² + C Σᵢ sᵢ max_k (1[k ≠ yᵢ] + wₖᵀxᵢ − w_{yᵢ}ᵀxᵢ)

with x = (intercept_scaling, x), so that intercepts are penalised too. In the form n⁻¹ΣV + λΩ with Ω = ½‖W‖², λ =
1/(nC).

- Two classes: Σₖ wₖ = 0, so that v = w₁ − w₀ is all, and half of ½‖v‖² + 2C Σ s max(0, 1 ∓ vᵀx) is the objective: the
  hinge problem of one score.
- Few columns and classes: the interior-point method, in whatever units. Fewer rows than columns: the same in the space
  of the rows.
- Else, and where rounding stops that: coordinate descent on the dual, with conjugate gradients on the faces.

References: K. Crammer and Y. Singer, JMLR 2, 2001; S. Keerthi et al., A sequential dual method for large scale
multi-class linear SVMs, KDD 2008.

Coordinate descent on the dual of Crammer and Singer's problem, with conjugate gradients on the faces.

A step takes one row's αᵢ to its optimum, a projection onto its simplex by sorting, and keeps W = U(α). Rows that stand
at a corner of their simplex and stay there are passed over until the next look at all of them. Between passes,
conjugate gradients solve for all αᵢₖ that are below their upper ends, Σₖ αᵢₖ = 0: the descent finds out which these
are, and then creeps. What leaves a simplex is projected back, and a step that does not raise D is halved.

References: S. Keerthi et al., A sequential dual method for large scale multi-class linear SVMs, KDD 2008; S. Wright,
Accelerated block-coordinate relaxation for regularized optimization, SIAM J. Optim. 22, 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...core import Array, NDArray, Progress, interruptible, never, no_progress, one_thread_blas
from ...core.jit import kernel
from ...data.blocks import Blocks, Part
from ...solvers.problem import backtrack
from ...solvers.systems.normal_equations import conjugate_gradient
from .dual_descent import as_rows, pieces
from .interior_point import joint_interior_point
from .problem import DualPair, JointTask, better, joint_task
from .solvers import MarginFit, Settings, fit_margin

_MOST_INTERIOR = 1500  # unknowns, K(1 + d), for which the interior-point method forms its matrix
_MOST_STEPS = 200  # of it
_MOST_ENTRIES = 4e7  # of X that is decomposed into an orthonormal basis and coordinates


def fit_crammer_singer(blocks: Blocks, n_classes: int, settings: Settings, progress: Progress) -> list[MarginFit]:
    """Return one fit per class, all with the gap of the joint problem; for two classes the one difference w₁ − w₀."""
    if n_classes == 2:
        fit = fit_margin(blocks, settings._replace(C=2.0 * settings.C, squared=False), progress)
        return [fit._replace(dual=None if fit.dual is None else 0.5 * fit.dual)]
    task = joint_task(blocks, n_classes, settings.C, settings.bias, settings.n_jobs)
    found: DualPair | None = None
    limits = {"tol": settings.tol, "max_iter": min(settings.max_iter, _MOST_STEPS), "progress": progress}
    if settings.solver != "dual":
        if n_classes * task.width <= _MOST_INTERIOR or settings.solver == "interior-point":
            found = joint_interior_point(task, **limits)  # type: ignore[arg-type]
        elif _prefers_row_space(task):
            found = _solve_in_row_space(task, limits)
    spent = 0 if found is None else found.n_iter
    left = settings.max_iter - spent
    wanted = found is None or (found.gap > settings.tol and not progress(spent, found.gap))
    if left > 0 and wanted and settings.solver != "interior-point":
        again = joint_descent(
            task,
            settings.rng,
            start=None if found is None else found.alpha,
            tol=settings.tol,
            max_iter=left,
            progress=lambda iteration, gap: progress(spent + iteration, gap),
        )
        again = again._replace(n_iter=spent + again.n_iter)
        found = again if found is None else better(found, again, task.start_value)
    assert found is not None
    return [
        MarginFit(found.w[:, k].copy(), found.gap, found.n_iter, found.alpha[:, k].copy()) for k in range(n_classes)
    ]


def _prefers_row_space(task: JointTask) -> bool:
    n = task.blocks.n_rows
    p = task.width
    return not task.blocks.sparse and n < p and task.n_classes * (n + 1) <= _MOST_INTERIOR and n * p <= _MOST_ENTRIES


def _solve_in_row_space(task: JointTask, limits: dict[str, object]) -> DualPair:
    """Solve for V in W = QV, where the rows (bias, X) = RᵀQᵀ and Q has orthonormal columns."""
    X = task.blocks.joined().X
    rows = np.column_stack([np.full(len(X), task.bias), X]).astype(np.float64)
    Q, R = interruptible(np.linalg.qr, rows.T)
    inner = JointTask(Blocks([Part(np.ascontiguousarray(R.T))]), task.y, task.n_classes, task.cost, 0.0, task.n_jobs)
    found = joint_interior_point(inner, **{**limits, "tol": limits["tol"] / 4})  # type: ignore[arg-type,operator]
    return task.pair(found.alpha, Q @ found.w[1:], found.n_iter)


_FIRST_PASSES = 6  # before anybody knows which variables will be at a bound
_PASSES = 3  # between two rounds of conjugate gradients, and twice as many after each that did not help
_EVERYBODY = 4  # every so many passes visit all rows
_STEPS = 30  # of conjugate gradients
_RESIDUAL = 0.03  # relative residual at which conjugate gradients stop
_HALVINGS = 4  # of their step, at most


@one_thread_blas()
def joint_descent(
    task: JointTask,
    rng: np.random.Generator,
    *,
    start: Array | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    progress: Progress = no_progress,
) -> DualPair:
    """Maximise D, one row at a time; the pair's w is (1 + d, K) and its α is (n, K).

    Parameters
    ----------
    task : JointTask
        Rows in memory.
    rng : Generator
        Orders the rows anew in every pass.
    start : (n, K) array, optional
        A dual point to start from.
    tol, max_iter, progress
        Relative gap; most passes; called after every pass.
    """
    data, indices, indptr = as_rows(task.blocks.joined().X)
    n, K = task.upper.shape
    best = task.pair(np.zeros((n, K)) if start is None else start)
    alpha = best.alpha.copy()
    W = best.w.copy()
    everybody = active = np.arange(n)
    next_look = 1
    next_round = _FIRST_PASSES
    patience = _PASSES
    for n_iter in range(1, max_iter + 1):
        whole = n_iter % _EVERYBODY == 1 or len(active) == 0
        order = rng.permutation(everybody if whole else active)
        cut = False
        asked = partial(progress, n_iter, best.gap)
        kept = np.ones(n, dtype=np.uint8)
        for part in pieces(order, K * len(data) // max(1, n)):
            cut = cut or asked()
            if not cut:
                joint_pass(
                    data, indices, indptr, part, task.y, task.cost, task.row_norms, task.bias, alpha, W, kept
                )  # fmt: skip
        active = np.sort(order[kept[order] > 0])
        if n_iter >= next_round and not cut:
            found = face_step(task, alpha, W, asked)
            patience = 2 * patience if found is None else _PASSES
            next_round = n_iter + patience
            next_look = n_iter
            alpha, W = found or (alpha, W)
        if cut or n_iter >= next_look or n_iter == max_iter:
            next_look = max(n_iter + 2, n_iter * 5 // 4)
            now = task.pair(alpha, n_iter=n_iter)
            alpha = now.alpha.copy()
            W = now.w.copy()
            best = better(best, now, task.start_value)
            if cut or best.gap <= tol or progress(n_iter, best.gap):
                break
    return best


def face_step(task: JointTask, alpha: Array, W: Array, stop: Callable[[], bool] = never) -> tuple[Array, Array] | None:
    """Return a better α and its W = U(α); None where no step among the free variables raises D."""
    free = alpha < task.upper
    rows = np.flatnonzero((free.sum(axis=1) > 1) & (task.row_norms > 0))
    if len(rows) == 0:
        return None
    inside = free[rows]
    share = 1.0 / inside.sum(axis=1, keepdims=True)
    X = task.blocks.joined().X[rows]
    shape = inside.shape

    def onto_face(v: Array) -> Array:
        v = np.where(inside, v, 0.0)
        return np.where(inside, v - share * v.sum(axis=1, keepdims=True), 0.0)

    def scores(V: Array) -> Array:
        return np.asarray(X @ V[1:] + task.bias * V[0])

    def product(v: Array) -> Array:
        p = v.reshape(shape)
        return onto_face(scores(np.vstack([task.bias * p.sum(axis=0), X.T @ p]))).ravel()

    wanted = 1.0 + scores(W)
    wanted[np.arange(len(rows)), task.y[rows]] -= 1.0
    scale = 1.0 / task.row_norms[rows][:, None]
    found = conjugate_gradient(
        product,
        onto_face(-wanted).ravel(),
        preconditioner=lambda r: (scale * r.reshape(shape)).ravel(),
        tol=_RESIDUAL,
        max_iter=_STEPS,
        progress=lambda iteration, value: stop(),
    )
    before = task.dual_value(alpha, W)
    step = found.x.reshape(shape)

    def trial(length: float) -> tuple[Array, Array] | None:
        moved = alpha[rows] + length * step
        project_rows_onto_simplex(moved, task.y[rows], task.cost[rows])
        new = alpha.copy()
        new[rows] = moved
        new = task.feasible(new)  # a step much longer than a simplex leaves rounding behind
        U = task.weights_of(new)
        return (new, U) if task.dual_value(new, U) > before else None

    return backtrack(trial, most=_HALVINGS)


@kernel
def solve_simplex(slope: Array, size: float, y: int, cost: float, alpha: Array, ordered: Array) -> None:
    """OUT alpha minimises ½·size·‖α‖² + slopeᵀα over Σα = 0, αₖ ≤ cost·1[k = y]; `ordered` is scratch."""
    n_classes = slope.size
    ordered[:] = slope
    ordered[y] += size * cost
    ordered[:] = np.sort(ordered)[::-1]
    level = ordered[0] - size * cost
    r = 1
    while r < n_classes and level < r * ordered[r]:
        level += ordered[r]
        r += 1
    level /= r
    for k in range(n_classes):
        alpha[k] = min(cost if k == y else 0.0, (level - slope[k]) / size)


@kernel
def project_rows_onto_simplex(alpha: Array, y: NDArray[np.int64], cost: Array) -> None:
    """Move every row to the nearest point with Σα = 0, αₖ ≤ cost·1[k = y]. IN/OUT alpha (n, K)."""
    n_classes = alpha.shape[1]
    slope = np.empty(n_classes)
    ordered = np.empty(n_classes)
    for i in range(y.size):
        for k in range(n_classes):
            slope[k] = -alpha[i, k]
        solve_simplex(slope, 1.0, y[i], cost[i], alpha[i], ordered)


@kernel
def joint_pass(
    data: Array,
    indices: NDArray[Any],
    indptr: NDArray[Any],
    order: NDArray[np.int64],
    y: NDArray[np.int64],
    cost: Array,
    norms: Array,
    bias: float,
    alpha: Array,
    W: Array,
    kept: NDArray[np.uint8],
) -> None:
    """One pass over the rows (CSR), each αᵢ to its optimum. IN/OUT alpha (n, K), W (1 + d, K) = U(α).

    OUT kept (n,): whether a row moved or has several variables below their upper ends.
    """
    n_classes = alpha.shape[1]
    slope = np.empty(n_classes)
    new = np.empty(n_classes)
    ordered = np.empty(n_classes)
    for i in order:
        if norms[i] == 0.0:  # the row has no say in the scores: its loss is one
            alpha[i, y[i]] = cost[i]
            alpha[i, 1 if y[i] == 0 else 0] = -cost[i]
            continue
        for k in range(n_classes):
            slope[k] = bias * W[0, k] + (0.0 if k == y[i] else 1.0) - norms[i] * alpha[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            row = W[1 + indices[e]]
            for k in range(n_classes):
                slope[k] += data[e] * row[k]
        solve_simplex(slope, norms[i], y[i], cost[i], new, ordered)
        changed = False
        n_free = 0
        for k in range(n_classes):
            old = alpha[i, k]
            alpha[i, k] = new[k]
            n_free += new[k] < (cost[i] if k == y[i] else 0.0)
            new[k] -= old
            changed = changed or new[k] != 0.0
        kept[i] = changed or n_free > 1
        if changed:
            for e in range(indptr[i], indptr[i + 1]):
                row = W[1 + indices[e]]
                for k in range(n_classes):
                    row[k] += data[e] * new[k]
            for k in range(n_classes):
                W[0, k] += bias * new[k]
