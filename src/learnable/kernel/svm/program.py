r"""The program of a support vector machine: solved, its offset found, its bound judged.

β solves a box program (`solvers.decomposition`); b lies between the largest pull that may rise and the least that may
fall. Few rows of a linear kernel or a function are solved as a given matrix is.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from ...core.estimator import Progress, Run
from ...risk.kernels import FunctionKernel, Kernel, Linear, Precomputed
from ...solvers.conic.smo import BoxProgram, RowCache, Solution, Team, decompose, working_set_size
from ..rows import LinearMatrix, row_source

Array = NDArray[np.float64]

FACTORED = 2_000  # rows up to which a factor costs little beside the fit
_FORMED = 512  # rows up to which linear kernels and functions are solved by the whole matrix, as a given one is
_AT_BOUND = 1e-9  # share of its box, and of the largest one, by which a multiplier at a bound may be off
_TURN = threading.Lock()


class Fit(NamedTuple):
    """One program, solved."""

    beta: Array  #: β (n,), one number per row
    b: float  #: offset
    f: Array  #: Kβ (n,)
    violation: float  #: of the optimality conditions, with this b
    primal: float  #: P
    dual: float  #: D ≤ the optimum ≤ P; −∞ if K is not known to be positive semidefinite
    n_steps: int


def solve_program(
    kernel: Kernel,
    X: Any,
    program: BoxProgram,
    team: Team,
    *,
    tol: float = 1e-3,
    megabytes: float = 200.0,
    max_steps: int | None = None,
    shrinking: bool = True,
    run: Run | None = None,
    start: Array | None = None,
) -> Solution:
    """Solve a box program of a kernel's matrix: first with float32 rows, where they serve, then in float64."""
    run = Run() if run is None else run
    settings: dict[str, Any] = {
        "tol": tol,
        "shrinking": shrinking,
        "progress": _in_turn(run),
        "stop": run.flag.array,
    }
    n, block = X.shape[0], working_set_size(len(program.linear))
    kernel, X = small_matrix(kernel, X)
    if isinstance(kernel, Linear):
        return decompose(LinearMatrix(X, team), program, start=start, max_steps=max_steps, **settings)
    source = row_source(kernel, X)
    matrix = RowCache(source, n, megabytes, team, block)
    found = decompose(matrix, program, start=start, max_steps=max_steps, **settings)
    left = None if max_steps is None else max_steps - found.n_steps
    if matrix.rounding() and found.violation > tol and not run.should_stop() and (left is None or left > 0):
        del matrix  # its memory, before as much again
        matrix = RowCache(row_source(kernel, X, single=False), n, megabytes, team, block)
        more = decompose(matrix, program, start=found.beta, max_steps=left, **settings)
        found = more._replace(n_steps=found.n_steps + more.n_steps, n_rounds=found.n_rounds + more.n_rounds)
    return found


def small_matrix(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """Return few rows of a linear kernel or a function as a given matrix, so that all three take the same steps."""
    if X.shape[0] <= _FORMED and isinstance(kernel, (Linear, FunctionKernel)):
        K = kernel._between(X, X)
        refuse_asymmetry("kernel", K)
        return Precomputed(), (K + K.T) / 2.0
    return kernel, X


def _in_turn(run: Run) -> Progress:
    """Return the fit's progress for programs on several threads: callbacks are called by one at a time."""

    def progress(iteration: int, value: float) -> bool:
        with _TURN:
            return run.progress(iteration, value)

    return progress


def offset_between(solution: Solution, program: BoxProgram, group: int = 0) -> float:
    """Return the offset: the mean pull of the variables inside their bounds, or the middle of what is possible.

    A variable counts as inside by more than rounding: the last bits of one at its bound decide nothing.
    """
    if not program.constrained:
        return 0.0
    pull = -(np.tile(solution.f, len(program.linear) // len(solution.f)) + program.linear)
    own = np.ones(len(pull), dtype=bool) if program.second is None else program.second == bool(group)
    largest = float(np.abs(solution.beta[own]).max(initial=0.0))
    room = _AT_BOUND * np.minimum(program.high - program.low, largest)
    may_rise, may_fall = own & (solution.beta < program.high - room), own & (solution.beta > program.low + room)
    if (may_rise & may_fall).any():
        return float(pull[may_rise & may_fall].mean())
    top = float(np.max(pull, where=may_rise, initial=-np.inf))
    bottom = float(np.min(pull, where=may_fall, initial=np.inf))
    if not np.isfinite(top) or not np.isfinite(bottom):
        return float(top if np.isfinite(top) else bottom if np.isfinite(bottom) else 0.0)
    return 0.5 * (top + bottom)


def relative_gap(primal: float, dual: float, start_value: float) -> float:
    """Return (P − D)/max(D, 1e-8 P₀)."""
    size = max(dual, 1e-8 * start_value)
    return max(primal - dual, 0.0) / size if size > 0 else float("inf") if primal > dual else 0.0


def dual_bounds(kernel: Kernel, X: Any, matrix: Array | None = None) -> bool:
    """Tell whether the dual bounds the primal: K is positive semidefinite.

    Where the kernel does not promise it (a given matrix, a function), K is factored, up to some thousand rows; `matrix`
    is K where it is known.
    """
    if kernel._is_mercer() or X.shape[0] > FACTORED:
        return kernel._is_mercer()
    matrix = X if isinstance(kernel, Precomputed) else kernel(X) if matrix is None else matrix
    K = np.array(matrix, dtype=np.float64)
    K.flat[:: len(K) + 1] += 1e-10 * max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(float).tiny)
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return False
    return True


def refuse_asymmetry(owner: str, K: Any) -> None:
    """Raise unless a given kernel matrix is symmetric: a fit to another need not end."""
    size = max(float(K.max(initial=0.0)), -float(K.min(initial=0.0)))
    for first in range(0, len(K), 1024):
        gap = float(np.abs(K[first : first + 1024] - K[:, first : first + 1024].T).max())
        if gap > 1e-6 * size:
            raise DataError(
                f"{owner}: a precomputed kernel matrix must be symmetric; got entries K[i, j] and K[j, i] that differ "
                f"by {gap:.2g}. Pass (K + K.T)/2 if that is rounding."
            )


def fill_up(cost: Array, total: float) -> Array:
    """Return multipliers at their bounds, from the first row on, that sum to `total`."""
    before = np.cumsum(cost) - cost
    return np.asarray(np.clip(total - before, 0.0, cost))
