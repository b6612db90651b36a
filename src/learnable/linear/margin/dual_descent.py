r"""Coordinate descent on the dual of the linear support vector machines, and the primal subgradient method.

Dual coordinate descent takes one α at a time to its optimum, in random order, and keeps w = u(α): a step costs one
row. Variables that stay at a bound are set aside until the others have settled. Between passes, conjugate gradients
solve for the variables that are at no bound. Every pass ends at a feasible α and so at a proven
gap.

The subgradient method (Pegasos) walks w ← (1 − 1/t)w + (n c/t)·yx over the rows that fall short. Taken in whole
passes, its w is u(α) of the feasible α = c · (share of visits that fell short): it certifies itself, too.

References: C.-J. Hsieh et al., A dual coordinate descent method for large-scale linear SVM, ICML 2008;
S. Shalev-Shwartz, Y. Singer and N. Srebro, Pegasos, ICML 2007.

Newton steps among the dual variables that lie inside their box.

Between its bounds the dual of a linear support vector machine is a quadratic function: with F the variables strictly
inside, σ their signs and X_F their rows (bias, x),

    max_p  gᵀp − ½ pᵀ(σX_F X_Fᵀσ + R)p,     g = offset − σz − Rα,   R = 1/(2c) for the squared loss, else 0.

Coordinate descent soon finds out which variables those are, and then creeps; a few of them are solved for by Cholesky's
method, many by conjugate gradients, all at once. The step is clipped into the box, or taken up to the first bound,
whichever raises the dual more; what then is at a bound leaves F, and the rest is solved for again. With the hinge loss
more rows than columns in F make the quadratic flat, and the way leads from bound to bound until they are as few. D
never falls.

References: the same division of labour as in S. Wright, Accelerated block-coordinate relaxation for regularized
optimization, SIAM J. Optim. 22, 2012; J. Nocedal and S. Wright, Numerical Optimization, 2006, section 16.7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...core import Array, NDArray, Progress, never, no_progress, one_thread_blas
from ...data.blocks import Blocks, Part, unsigned
from ...solvers.problem import backtrack
from ...solvers.smooth.newton import factorised
from ...solvers.systems.normal_equations import conjugate_gradient
from ._kernels import dual_pass_dense, dual_pass_sparse, subgradient_pass
from .problem import DualPair, MarginTask, better

_CHUNK_ENTRIES = 2**23  # entries of X between two looks at the clock
_FIRST_SPREAD = 0.1  # of the projected slopes, in units of the targets, at which the set-aside come back
_FINER = 0.25  # factor on the accuracy of the working set after a pass over all rows
_FIRST_PASSES = 10  # before anybody knows which variables will be at a bound
_PASSES = 3  # between two rounds of conjugate gradients, and twice as many after each that did not help


@one_thread_blas()  # sums of products and short vectors: BLAS's own threads would only wait
def dual_descent(
    task: MarginTask,
    rng: np.random.Generator,
    *,
    start: Array | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    progress: Progress = no_progress,
) -> DualPair:
    """Maximise the dual of a task in memory, one variable at a time.

    Parameters
    ----------
    task : MarginTask
        The problem.
    rng : Generator
        Orders the variables anew in every pass.
    start : (sides, n) array, optional
        A dual point to start from; it is clipped into the box.
    tol, max_iter, progress
        Relative gap; most passes; called after every pass whose gap is known.
    """
    walk = _row_walk(task)
    alpha = np.zeros_like(task.sign) if start is None else np.clip(start, 0.0, task.upper)
    w = task.weights_of(alpha)
    everybody = np.arange(alpha.size)
    active = everybody
    bounds = (-np.inf, np.inf)
    unit = max(float(np.abs(task.offset).max()), 1e-300)
    accuracy = _FIRST_SPREAD * unit
    next_look = 1
    best = None
    next_round = _FIRST_PASSES
    patience = _PASSES
    for n_iter in range(1, max_iter + 1):
        order = rng.permutation(active)
        asked = partial(progress, n_iter, _gap_of(best))
        kept, least, most, cut = walk(order, bounds, alpha.reshape(-1), w, asked)
        active = order[kept]
        settled = most - least <= accuracy
        complete = settled and len(order) == len(everybody)
        if settled:  # all rows come back; if all were active, the next round asks for more
            active = everybody
            bounds = (-np.inf, np.inf)
            accuracy *= _FINER if complete else 1.0
        else:
            bounds = (least if least < 0 else -np.inf, most if most > 0 else np.inf)
        if n_iter == next_round and not cut:
            better_point = free_step(task, alpha, w, asked)
            patience = 2 * patience if better_point is None else _PASSES
            next_round = n_iter + patience
            next_look = n_iter
            alpha, w = better_point or (alpha, w)
        if complete or cut or n_iter >= next_look or n_iter == max_iter:
            next_look = max(n_iter + 2, n_iter * 5 // 4)
            now = task.pair(alpha, n_iter=n_iter)
            w = now.w.copy()
            best = better(best, now, task.start_value)
            if best.gap <= tol or cut or progress(n_iter, best.gap):
                break
    if best is None:
        return task.pair(alpha)
    return best


def subgradient_descent(
    task: MarginTask,
    rng: np.random.Generator,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    progress: Progress = no_progress,
) -> DualPair:
    """Minimise the hinge loss of a classification task by Pegasos, averaging the second half of the passes.

    The rate is 1/T, so that a gap of one percent is cheap and one of 1e-6 out of reach.
    """
    data, indices, indptr = as_rows(task.blocks.joined().X)
    n = task.blocks.n_rows
    # ‖w*‖² ≤ Σα ≤ Σc
    sign = task.sign[0]
    radius = float(np.sqrt(task.cost.sum()))
    state = np.array([0.0, 1.0, 0.0])
    alpha = np.zeros(n)
    w = np.zeros(task.width)
    mean = np.zeros(n)
    weight = 0
    best = None
    next_look = 1
    for n_iter in range(1, max_iter + 1):
        order = rng.permutation(n)
        for part in pieces(order, len(data) // max(1, n)):
            subgradient_pass(
                data, indices, indptr, part, sign, task.cost, task.row_norms, task.bias, radius, state, alpha, w
            )
            if progress(n_iter, _gap_of(best)):
                return best or task.pair(np.zeros((1, n)), n_iter=n_iter)
        if (n_iter & (n_iter - 1)) == 0:
            # a new average begins at every power of two
            mean = np.zeros(n)
            weight = 0
        mean = mean + state[1] * alpha
        weight = weight + 1
        if n_iter >= next_look or n_iter == max_iter:
            next_look = max(n_iter + 2, n_iter * 5 // 4)
            best = better(best, task.pair(mean[None, :] / weight, n_iter=n_iter), task.start_value)
            if best.gap <= tol or progress(n_iter, best.gap):
                break
    return best or task.pair(np.zeros((1, n)))


def _row_walk(task: MarginTask) -> Callable[..., tuple[NDArray[np.bool_], float, float, bool]]:
    """Return the function that walks through variables in an order, looking at the clock now and then."""
    X = task.blocks.joined().X
    constants = [part.reshape(-1) for part in (task.sign, task.offset, task.upper, task.ridge)]
    if task.blocks.sparse:
        rows: tuple[Any, ...] = (X.data.astype(np.float64, copy=False), unsigned(X.indices), unsigned(X.indptr))
        step: Callable[..., tuple[float, float]] = dual_pass_sparse
        width = len(X.data) // max(1, X.shape[0])
    else:
        rows = (np.require(X, np.float64, ["C", "A"]),)
        step = dual_pass_dense
        width = X.shape[1]
    norms = task.row_norms

    def walk(
        order: NDArray[np.int64], bounds: tuple[float, float], alpha: Array, w: Array, stop: Callable[[], bool]
    ) -> tuple[NDArray[np.bool_], float, float, bool]:
        kept = np.ones(len(order), dtype=np.uint8)
        least = 0.0
        most = 0.0
        done = 0
        for part in pieces(order, width):
            place = kept[done : done + len(part)]
            low, high = step(*rows, part, *constants, norms, task.bias, bounds, alpha, w, place)
            least = min(least, low)
            most = max(most, high)
            done = done + len(part)
            if done < len(order) and stop():
                return kept.astype(bool), least, most, True
        return kept.astype(bool), least, most, False

    return walk


def pieces(order: NDArray[np.int64], width: int) -> list[NDArray[np.int64]]:
    """Cut an order into pieces that take some milliseconds each."""
    size = max(1, _CHUNK_ENTRIES // max(1, width))
    return [order[start : start + size] for start in range(0, len(order), size)]


def _gap_of(best: DualPair | None) -> float:
    return np.inf if best is None else best.gap


def as_rows(X: Any) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """Return CSR arrays of any table."""
    if hasattr(X, "indptr"):
        return X.data.astype(np.float64, copy=False), unsigned(X.indices), unsigned(X.indptr)
    n, d = X.shape
    indices = np.tile(np.arange(d, dtype=np.uint32), n)
    return np.require(X, np.float64, ["C"]).reshape(-1), indices, np.arange(0, n * d + 1, d, dtype=np.uint64)


Mask = NDArray[np.bool_]

_STEPS = 12  # of conjugate gradients: about as long as the coordinate passes between two rounds
_RESIDUAL = 0.03  # relative residual at which they stop
_HALVINGS = 4  # of their step, at most
_ROUNDS = 4  # of conjugate gradients with the hinge; a squared loss has one bound that matters, and one round does
_FEW = 256  # free variables for which their matrix is formed
_BLOCK_ROWS = 2**13  # rows of a block of the problem of the free variables


def free_step(task: MarginTask, alpha: Array, w: Array, stop: Callable[[], bool] = never) -> tuple[Array, Array] | None:
    """Return a better α and its w = u(α); None where no step among the free variables raises the dual.

    Parameters
    ----------
    task : MarginTask
        The problem, rows in memory. The free rows are copied.
    alpha : (sides, n) array
        A point in the box.
    w : (1 + d,) array
        u(α).
    stop : callable
        Asked between the steps; True ends them early.
    """
    side, row = np.nonzero((alpha > 0.0) & (alpha < task.upper))
    if len(row) == 0:
        return None
    face = _Face(task, side, row)
    value = alpha[side, row]
    u = w
    for _ in range(face.rounds):
        inside = (value > 0.0) & (value < face.upper)
        if not inside.any() or stop():
            break
        slope = np.where(inside, face.slope(value, u), 0.0)
        moved = face.along(value, slope, face.newton_direction(slope, inside, stop))
        if moved is None:
            break
        value = moved[0]
        u = u + moved[1]
        if np.array_equal(inside, (value > 0.0) & (value < face.upper)):
            break
    trial = alpha.copy()
    trial[side, row] = value
    u = task.weights_of(trial)
    return (trial, u) if task.dual_value(trial, u) > task.dual_value(alpha, w) else None


class _Face:
    """The quadratic of the variables that are free at the start."""

    def __init__(self, task: MarginTask, side: NDArray[np.intp], row: NDArray[np.intp]) -> None:
        X = task.blocks.joined().X
        rows = X if len(row) == X.shape[0] else X[row]
        self.sign = task.sign[side, row]
        self.ridge = task.ridge[side, row]
        self.upper = task.upper[side, row]
        self.inner = MarginTask(
            Blocks([Part(rows)], rows=_BLOCK_ROWS), self.sign[None], task.offset[side, row][None], task.cost[row],
            task.bias, task.squared, task.n_jobs,
        )  # fmt: skip
        self.norms = task.row_norms[row]
        self.gram = None
        self.rounds = 1 if task.squared else _ROUNDS
        if len(row) <= _FEW:
            gram = np.asarray((rows @ rows.T).toarray() if task.blocks.sparse else rows @ rows.T, dtype=np.float64)
            self.gram = np.outer(self.sign, self.sign) * (gram + task.bias**2) + np.diag(self.ridge)
            self.rounds = 1 + len(row)

    def slope(self, value: Array, u: Array) -> Array:
        """Return g."""
        return np.asarray(self.inner.offset[0] - self.sign * self.inner.scores(u) - self.ridge * value)

    def newton_direction(self, slope: Array, inside: Mask, stop: Callable[[], bool]) -> Array:
        """Return p, about where the quadratic of the variables inside is largest; far away where it is flat."""
        if self.gram is not None:
            some = np.flatnonzero(inside)
            p = np.zeros_like(slope)
            p[some] = factorised(self.gram[np.ix_(some, some)])(slope[some])
            return p
        scale = 1.0 / np.maximum(self.norms + self.ridge, 1e-300)

        def product(p: Array) -> Array:
            q = self.sign * self.inner.scores(self.inner.back_project(self.sign * p)) + self.ridge * p
            return np.where(inside, q, 0.0)

        found = conjugate_gradient(
            product,
            slope,
            preconditioner=lambda r: scale * r,
            tol=_RESIDUAL,
            max_iter=_STEPS,
            progress=lambda iteration, value: stop(),
        )
        return found.x if found.n_iter else scale * slope

    def along(self, value: Array, slope: Array, p: Array) -> tuple[Array, Array] | None:
        """Return the better of the clipped step and the step to the first bound, and what it adds to u."""
        if not np.isfinite(p).all():
            return None
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            room = np.where(p > 0, (self.upper - value) / p, np.where(p < 0, -value / p, np.inf))
        first = int(np.argmin(room))
        candidates = [np.clip(value + p, 0.0, self.upper)]
        if room[first] < 1.0:
            reached = np.clip(value + room[first] * p, 0.0, self.upper)
            reached[first] = self.upper[first] if p[first] > 0 else 0.0
            candidates.append(reached)
        best = None
        most = 0.0
        for new in candidates:
            move, gain = self._gain(value, slope, new)
            if gain > most:
                best = (new, move)
                most = gain
        if best is not None:
            return best

        def trial(length: float) -> tuple[Array, Array] | None:
            new = np.clip(value + length * p, 0.0, self.upper)
            move, gain = self._gain(value, slope, new)
            return (new, move) if gain > 0 else None

        return backtrack(trial, most=_HALVINGS - 1, first=0.5)

    def _gain(self, value: Array, slope: Array, new: Array) -> tuple[Array, float]:
        """Return what a step adds to u and to D."""
        step = new - value
        move = self.inner.back_project(self.sign * step)
        return move, float(slope @ step) - 0.5 * float(move @ move) - 0.5 * float(self.ridge @ (step * step))
