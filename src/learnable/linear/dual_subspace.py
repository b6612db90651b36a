r"""Conjugate gradients among the dual variables that lie inside their box.

Between its bounds the dual of a linear support vector machine is a quadratic function: with F the variables strictly
inside, σ their signs and X_F their rows (bias, x),

    max_p  gᵀp − ½ pᵀ(σX_F X_Fᵀσ + R)p,     g = offset − σz − Rα,   R = 1/(2c) for the squared loss, else 0.

Coordinate descent soon finds out which variables those are, and then creeps; conjugate gradients solve for all of them
at once. What leaves the box is clipped, and a step that does not raise the dual is halved, so that D never falls.

Reference: the same division of labour as in S. Wright, Accelerated block-coordinate relaxation for regularized
optimization, SIAM J. Optim. 22, 2012.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..core.run import never
from ..data.blocks import Blocks, Part
from ..solvers.conjugate_gradient import conjugate_gradient
from .margin import MarginTask

Array = NDArray[np.float64]

_STEPS = 12  # of conjugate gradients: about as long as the coordinate passes between two rounds
_RESIDUAL = 0.03
_HALVINGS = 4
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
    sign, ridge = task.sign[side, row], task.ridge[side, row]
    X = task.blocks.joined().X
    rows = X if len(row) == X.shape[0] else X[row]
    inner = MarginTask(
        Blocks([Part(rows)], rows=_BLOCK_ROWS), sign[None], task.offset[side, row][None], task.cost[row],
        task.bias, task.squared, task.n_jobs,
    )  # fmt: skip
    slope = task.offset[side, row] - sign * inner.scores(w) - ridge * alpha[side, row]
    scale = 1.0 / np.maximum(task.row_norms[row] + ridge, 1e-300)
    found = conjugate_gradient(
        lambda p: sign * inner.scores(inner.back_project(sign * p)) + ridge * p,
        slope,
        preconditioner=lambda r: scale * r,
        tol=_RESIDUAL,
        max_iter=_STEPS,
        progress=lambda iteration, value: stop(),
    )
    before, trial = task.dual_value(alpha, w), alpha.copy()
    for halving in range(_HALVINGS):
        moved = alpha[side, row] + 0.5**halving * found.x
        trial[side, row] = np.clip(moved, 0.0, task.upper[side, row])
        u = task.weights_of(trial)
        if task.dual_value(trial, u) > before:
            return trial, u
    return None
