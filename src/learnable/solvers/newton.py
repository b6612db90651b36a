r"""Newton's method, for minima and for roots.

A step solves H s = −g; its decrement λ² = −gᵀs predicts the decrease ½λ² and gives the stop, and a backtracking line
search makes it safe far from the optimum. A factorised Hessian is kept for further (chord) steps as long as they are
expected to finish sooner than a new factorisation would.

Reference: S. Boyd and L. Vandenberghe, Convex Optimization, 2004, algorithm 9.5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack

from ..core.errors import NoRootError
from ..core.run import Progress, never, no_progress
from .conjugate_gradient import conjugate_gradient
from .problem import Evaluation, Solution, TwiceSmooth

Array = NDArray[np.float64]

_ARMIJO = 1e-4
_MAX_HALVINGS = 40


def newton(
    problem: TwiceSmooth,
    x0: Array,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    refresh_cost: float = 0.0,
    progress: Progress = no_progress,
    stop: Callable[[], bool] = never,
) -> Solution:
    """Minimise a convex function by damped Newton steps.

    Parameters
    ----------
    problem : TwiceSmooth
        Its Hessian is factorised where it is a matrix; where it is a function v ↦ Hv, conjugate gradients solve for
        the step, the more accurately the closer the optimum is.
    x0 : (p,) array
        Where to start.
    tol : float
        Stop when the problem's measure is at most this.
    max_iter : int
        Most steps.
    refresh_cost : float
        Price of a new Hessian in evaluations. Zero: every step has its own Hessian.
    progress : callable
        Called as `progress(iteration, measure)` after every step; True stops.
    stop : callable
        Asked between the steps of conjugate gradients; True ends them early.

    Examples
    --------
    >>> import numpy as np
    >>> class Quadratic:
    ...     def evaluate(self, x):
    ...         return Evaluation(float(x @ x) / 2, x, float(np.abs(x).max()))
    ...     def hessian(self, x):
    ...         return np.eye(len(x))
    >>> newton(Quadratic(), np.array([3.0, 4.0])).n_iter
    1
    """
    x, now = x0, problem.evaluate(x0)
    solve: Callable[[Array], Array] | None = None
    n_iter = 0
    while now.measure > tol and n_iter < max_iter:
        if solve is None:
            solve = _solver_of(problem.hessian(x), now, stop)
        step = -solve(now.gradient)
        taken = _line_search(problem, x, now, step)
        if taken is None:
            break  # rounding: no step lowers the function any more
        length, x, new = taken
        rate = new.measure / now.measure
        now, n_iter = new, n_iter + 1
        if length < 1 or not _worth_keeping(rate, now.measure / max(tol, 1e-300), refresh_cost):
            solve = None
        if progress(n_iter, now.measure):
            break
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def newton_root(
    function: Callable[[float], float],
    derivative: Callable[[float], float],
    x0: float,
    *,
    tol: float = 1e-12,
    max_iter: int = 100,
) -> float:
    """Find a root of a scalar function by x ← x − f/f′, halving steps that do not lower |f|.

    Examples
    --------
    >>> newton_root(lambda x: x * x - 2, lambda x: 2 * x, 1.0)
    1.414213562373095
    """
    x, f = float(x0), float(function(x0))
    for _ in range(max_iter):
        slope = float(derivative(x))
        if f == 0 or slope == 0 or not np.isfinite(slope):
            break
        step = -f / slope
        for _ in range(_MAX_HALVINGS):
            trial = float(function(x + step))
            if abs(trial) < abs(f):
                break
            step /= 2
        else:
            if abs(f / slope) <= tol * max(1.0, abs(x)):
                return x  # |f| is at rounding level and cannot fall any further
            break
        x, f = x + step, trial
        if abs(step) <= tol * max(1.0, abs(x)):
            return x
    if f == 0:
        return x
    raise NoRootError(f"newton_root: stopped at x = {x:g} where f = {f:g}: no root, or a flat point; start elsewhere.")


def factorised(H: Array) -> Callable[[Array], Array]:
    """Return g ↦ H⁻¹g for a positive (semi)definite H, by Cholesky after scaling its diagonal to one.

    Where rounding has made H indefinite, the smallest multiple of the diagonal that repairs it is added: the step stays
    a descent direction.
    """
    diagonal = np.diag(H)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    A = H * np.outer(scale, scale)
    for shift in (0.0, *10.0 ** np.arange(-14.0, 1.0)):
        R, info = lapack.dpotrf(A + shift * np.eye(len(A)), lower=0)
        if info == 0:
            return lambda g: scale * cho_solve((R, False), scale * g, check_finite=False)
    return lambda g: scale**2 * g


def _solver_of(
    H: Array | Callable[[Array], Array], now: Evaluation, stop: Callable[[], bool]
) -> Callable[[Array], Array]:
    if not callable(H):
        return factorised(H)
    # Inexact Newton (Eisenstat–Walker): a residual of min(½, √‖g‖) keeps the convergence superlinear.
    forcing = min(0.1, float(np.sqrt(now.measure)))
    most = max(50, 2 * len(now.gradient))
    return lambda g: conjugate_gradient(H, g, tol=forcing, max_iter=most, progress=lambda i, v: stop()).x


def _line_search(
    problem: TwiceSmooth, x: Array, now: Evaluation, step: Array
) -> tuple[float, Array, Evaluation] | None:
    """Halve the step until the function falls by a share of what the gradient predicts."""
    slope = float(now.gradient @ step)
    noise = 1e-9 * abs(now.value)
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        point = x + length * step
        trial = problem.evaluate(point)
        # Near the optimum the decrease drowns in rounding; there the measure has to fall instead.
        drowned = trial.value <= now.value + noise and trial.measure < 0.5 * now.measure
        if (trial.value <= now.value + _ARMIJO * length * slope and trial.value < now.value) or drowned:
            return length, point, trial
        length /= 2
    return None


def _worth_keeping(rate: float, remaining: float, refresh_cost: float) -> bool:
    """Tell whether repeating the last step's rate reaches the goal before a new Hessian would pay off."""
    if refresh_cost <= 0 or not 0 < rate < 1:
        return refresh_cost > 0 and rate <= 0
    return bool(np.log(max(remaining, 1.0)) / -np.log(rate) <= refresh_cost)
