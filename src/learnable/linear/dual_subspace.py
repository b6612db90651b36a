r"""Newton steps among the dual variables that lie inside their box.

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

import numpy as np
from numpy.typing import NDArray

from ..core.run import never
from ..data.blocks import Blocks, Part
from ..solvers.smooth.newton import factorised
from ..solvers.systems.normal_equations import conjugate_gradient
from .margin import MarginTask

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STEPS = 12  # of conjugate gradients: about as long as the coordinate passes between two rounds
_RESIDUAL = 0.03
_HALVINGS = 4
_ROUNDS = 4  # of conjugate gradients with the hinge; a squared loss has one bound that matters, and one round does
_FEW = 256  # free variables for which their matrix is formed
_BLOCK_ROWS = 2**13


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
    value, u = alpha[side, row], w
    for _ in range(face.rounds):
        inside = (value > 0.0) & (value < face.upper)
        if not inside.any() or stop():
            break
        slope = np.where(inside, face.slope(value, u), 0.0)
        moved = face.along(value, slope, face.newton_direction(slope, inside, stop))
        if moved is None:
            break
        value, u = moved[0], u + moved[1]
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
        self.sign, self.ridge, self.upper = task.sign[side, row], task.ridge[side, row], task.upper[side, row]
        self.inner = MarginTask(
            Blocks([Part(rows)], rows=_BLOCK_ROWS), self.sign[None], task.offset[side, row][None], task.cost[row],
            task.bias, task.squared, task.n_jobs,
        )  # fmt: skip
        self.norms, self.gram, self.rounds = task.row_norms[row], None, 1 if task.squared else _ROUNDS
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
        best, most = None, 0.0
        for new in candidates:
            move, gain = self._gain(value, slope, new)
            if gain > most:
                best, most = (new, move), gain
        for halving in range(1, _HALVINGS):
            if best is not None:
                break
            new = np.clip(value + 0.5**halving * p, 0.0, self.upper)
            move, gain = self._gain(value, slope, new)
            best = (new, move) if gain > 0 else None
        return best

    def _gain(self, value: Array, slope: Array, new: Array) -> tuple[Array, float]:
        """Return what a step adds to u and to D."""
        step = new - value
        move = self.inner.back_project(self.sign * step)
        return move, float(slope @ step) - 0.5 * float(move @ move) - 0.5 * float(self.ridge @ (step * step))
