r"""Nonlinear conjugate gradients: d ← −g₊ + βd with Polak and Ribière's β = max(0, g₊ᵀ(g₊ − g)/gᵀg).

On a quadratic, where the line search is exact after one secant step, these are the linear conjugate gradients and p
steps suffice. Elsewhere β = 0 restarts along the steepest descent whenever the gradients have lost their conjugacy.
Memory: three vectors.

Reference: J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., algorithm 5.4 and equation 5.45.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.run import Progress, no_progress
from .problem import Evaluation, Smooth, Solution

Array = NDArray[np.float64]

_ARMIJO, _CURVATURE, _EXACT = 1e-4, 0.1, 1e-6
_MAX_TRIALS = 30
_GROWTH = 10.0  # of a step where the slope gives no hint
_FARTHEST = 1e4  # most that a secant step may lengthen one


def nonlinear_cg(
    problem: Smooth,
    x0: Array,
    *,
    tol: float = 1e-8,
    max_iter: int = 1000,
    progress: Progress = no_progress,
) -> Solution:
    """Minimise a smooth function by conjugate directions.

    Parameters
    ----------
    problem : Smooth
        Gives value, gradient and the measure that is driven below `tol`.
    x0 : (p,) array
        Where to start.
    tol, max_iter, progress
        As for every solver.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import Evaluation, nonlinear_cg
    >>> class Bowl:
    ...     def evaluate(self, x):
    ...         g = np.array([1.0, 10.0]) * x
    ...         return Evaluation(float(g @ x) / 2, g, float(np.abs(g).max()))
    >>> nonlinear_cg(Bowl(), np.array([3.0, 4.0])).n_iter
    2
    """
    x, now = x0, problem.evaluate(x0)
    direction, length, n_iter = -now.gradient, 0.0, 0
    while now.measure > tol and n_iter < max_iter:
        slope = float(now.gradient @ direction)
        steepest = bool(np.array_equal(direction, -now.gradient))
        if not slope < 0 and not steepest:
            direction, steepest = -now.gradient, True
            slope = float(now.gradient @ direction)
        if length == 0.0:
            length = 1.0 / max(1.0, float(np.linalg.norm(now.gradient)))  # nothing is known of the scale yet
        taken = _search(problem, x, now, direction, slope, length)
        if taken is None:
            if steepest:
                break  # rounding: the function does not fall any more
            direction, length = -now.gradient, 0.0
            continue
        length, point, new = taken
        beta = max(0.0, float(new.gradient @ (new.gradient - now.gradient)) / float(now.gradient @ now.gradient))
        direction = -new.gradient + beta * direction
        after = float(new.gradient @ direction)
        length *= min(_GROWTH, slope / after) if after < 0 else 1.0  # the same first decrease as last time
        x, now, n_iter = point, new, n_iter + 1
        if progress(n_iter, now.measure):
            break
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def _search(
    problem: Smooth, x: Array, now: Evaluation, direction: Array, slope: float, first: float
) -> tuple[float, Array, Evaluation] | None:
    """Find a step that satisfies the strong Wolfe conditions, by secant steps on the slope inside a bracket."""
    low, high, length = 0.0, np.inf, first
    low_slope = slope
    noise = 1e-9 * abs(now.value)
    best: tuple[float, Array, Evaluation] | None = None
    for trials in range(_MAX_TRIALS):
        # The first trial is a guess; the secant step after it is exact on a quadratic, and keeps directions conjugate.
        enough = (_CURVATURE if trials else _EXACT) * abs(slope)
        point = x + length * direction
        if np.array_equal(point, x):
            return best
        trial = problem.evaluate(point)
        if not np.isfinite(trial.value) or not np.isfinite(trial.gradient).all():
            high = length
            length = 0.5 * (low + high)
            continue
        new_slope = float(trial.gradient @ direction)
        falls = trial.value <= now.value + _ARMIJO * length * slope
        # Near the optimum the decrease drowns in rounding; there the slope alone decides.
        falls = falls or (trial.value <= now.value + noise and abs(new_slope) < 0.5 * abs(slope))
        if falls and (best is None or trial.value < best[2].value or abs(new_slope) <= enough):
            best = (length, point, trial)
            if abs(new_slope) <= enough:
                return best
        secant = length - new_slope * (length - low) / (new_slope - low_slope) if new_slope != low_slope else np.inf
        if falls and new_slope < 0:
            low, low_slope = length, new_slope
            length = min(secant, _FARTHEST * low) if low < secant < np.inf else _GROWTH * low
            if not length < high:
                length = 0.5 * (low + high)
        else:
            high = length
            inside = low + 1e-3 * (high - low) < secant < high - 1e-3 * (high - low)
            length = secant if inside and new_slope > 0 else 0.5 * (low + high)
    return best
