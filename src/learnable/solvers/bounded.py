r"""Quasi-Newton steps for few variables between bounds: min f(x), l ≤ x ≤ u.

BFGS keeps a dense approximation B of the Hessian. Variables that lie on a bound and would leave it stay; the others
take the
step −B⁻¹∇f, cut where it meets the box. A step is shortened by interpolation until f falls by its share; where that
share drowns in the rounding of f, until the slope at its end says so instead.

Made for functions that cost far more than p³, such as a marginal likelihood in its hyperparameters.

References: J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., §6.1 and §16.7; W. Hager and H. Zhang, A new
conjugate gradient method with guaranteed descent and an efficient line search, SIAM J. Optim. 16, 2005, equation 4.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..core.run import Progress, never, no_progress
from .problem import Evaluation, Smooth, Solution

Array = NDArray[np.float64]

_ARMIJO = 1e-4
_MAX_TRIALS = 20
_IDLE = 3  # steps without any gain, after which only rounding is left
_LONGEST = 2.0  # a step in one variable; with logarithms, a factor of seven


def bounded_bfgs(
    problem: Smooth,
    x0: Array,
    lower: Array,
    upper: Array,
    *,
    hessian: Array | None = None,
    longest: float = _LONGEST,
    tol: float = 1e-8,
    max_iter: int = 100,
    progress: Progress = no_progress,
    stop: Callable[[], bool] = never,
) -> Solution:
    """Minimise a smooth function of few variables in a box.

    Parameters
    ----------
    problem : Smooth
        Gives value, gradient and the measure that is driven below `tol`; the measure has to count only what bounds do
        not hold back. A value of infinity means: no such point; the step is shortened.
    x0 : (p,) array
        Where to start; put into the box.
    lower, upper : (p,) arrays
        l and u; infinite where there is no bound.
    hessian : (p, p) array, optional
        An approximation of the Hessian at x0, positive definite.
    longest : float
        Largest change of one variable in one step.
    tol, max_iter, progress
        As for every solver.
    stop : function
        Asked before every evaluation but the first; True ends the search with the best point so far.

    Examples
    --------
    >>> import numpy as np
    >>> class Bowl:
    ...     def evaluate(self, x):
    ...         g = 2.0 * (x - [3.0, 0.5])
    ...         held = (x >= 1.0) & (g < 0.0)
    ...         return Evaluation(float(((x - [3.0, 0.5]) ** 2).sum()), g, float(np.abs(g[~held]).max(initial=0.0)))
    >>> bounded_bfgs(Bowl(), np.zeros(2), np.zeros(2), np.ones(2)).x
    array([1. , 0.5])
    """
    x = np.clip(x0, lower, upper)
    now = problem.evaluate(x)
    B = None if hessian is None else hessian.copy()
    best, n_iter, idle = (x, now), 0, 0
    while now.measure > tol and n_iter < max_iter and np.isfinite(now.value) and idle < _IDLE and not stop():
        held = ((x <= lower) & (now.gradient > 0.0)) | ((x >= upper) & (now.gradient < 0.0))
        step = _step(B, now.gradient, held)
        step *= min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
        taken = _search(problem, x, now, step, lower, upper, stop)
        if taken is None:
            if B is None:
                break  # rounding: the function does not fall any more
            B, n_iter = None, n_iter + 1  # the learned curvature misleads
            continue
        point, new = taken
        B = _updated(B, point - x, new.gradient - now.gradient)
        x, now = point, new
        gained = now.value < best[1].value - _rounding(now) or now.measure < best[1].measure
        best, idle = ((x, now), 0) if gained else (best, idle + 1)
        n_iter += 1
        if progress(n_iter, now.measure):
            break
    x, now = best
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def _rounding(at: Evaluation) -> float:
    return max(1e-12 * abs(at.value), at.rounding)


def _step(B: Array | None, gradient: Array, held: NDArray[np.bool_]) -> Array:
    step = np.zeros_like(gradient)
    free = ~held
    if B is None:  # nothing is known of the scale: move by one
        step[free] = -gradient[free] / max(float(np.abs(gradient[free]).max(initial=0.0)), 1e-300)
    else:
        step[free] = -np.linalg.solve(B[np.ix_(free, free)], gradient[free])
    return step


def _search(
    problem: Smooth, x: Array, now: Evaluation, step: Array, lower: Array, upper: Array, stop: Callable[[], bool]
) -> tuple[Array, Evaluation] | None:
    """Shorten the step until the function falls by its share; the path bends along the bounds."""
    length = 1.0
    for trials in range(_MAX_TRIALS):
        point = np.clip(x + length * step, lower, upper)
        slope = float(now.gradient @ (point - x))
        if np.array_equal(point, x) or not slope < 0.0 or (trials and stop()):
            return None
        trial = problem.evaluate(point)
        if trial.value <= now.value + _ARMIJO * slope:
            return point, trial
        # Near the optimum the decrease drowns in rounding; of a parabola, the slope at the end tells the same.
        flat = float(trial.gradient @ (point - x)) <= (2.0 * _ARMIJO - 1.0) * slope or trial.measure < 0.5 * now.measure
        if trial.value <= now.value + max(_rounding(now), trial.rounding) and flat:
            return point, trial
        rise = trial.value - now.value - slope
        shorter = -0.5 * slope / rise if np.isfinite(rise) and rise > 0.0 else 0.1  # the minimum of a parabola
        length *= min(max(shorter, 0.1), 0.5)
    return None


def _updated(B: Array | None, s: Array, y: Array) -> Array | None:
    """Return B with the curvature yᵀs along the step s, damped where it is too small (Powell)."""
    if B is None:
        square = float(y @ s)
        if not square > 0.0:
            return None
        B = np.eye(len(s)) * (float(y @ y) / square)
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if sBs <= 0.0:
        return B
    if sy < 0.2 * sBs:
        share = 0.8 * sBs / (sBs - sy)
        y = share * y + (1.0 - share) * Bs
        sy = float(s @ y)
    B = B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy
    return 0.5 * (B + B.T)
