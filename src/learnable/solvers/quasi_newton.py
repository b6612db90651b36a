r"""L-BFGS: Newton's method with the Hessian learned from the last few gradient differences.

The inverse Hessian is built up from pairs s = x₊ − x, y = g₊ − g by the two-loop recursion, starting from H₀⁻¹: a
multiple of the identity, or the inverse of an approximate Hessian that the caller knows. Memory: 2·history vectors.

Reference: J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., algorithms 7.4 and 3.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..core.run import Observer, Progress, no_progress, unobserved
from .problem import Evaluation, Smooth, Solution

Array = NDArray[np.float64]

_ARMIJO, _CURVATURE = 1e-4, 0.9
_MAX_TRIALS = 30


def lbfgs(
    problem: Smooth,
    x0: Array,
    *,
    inverse_hessian: Callable[[Array], Array] | None = None,
    history: int = 10,
    tol: float = 1e-8,
    max_iter: int = 100,
    progress: Progress = no_progress,
    observe: Observer = unobserved,
) -> Solution:
    """Minimise a smooth function with limited memory.

    Parameters
    ----------
    problem : Smooth
        Gives value, gradient and the measure that is driven below `tol`.
    x0 : (p,) array
        Where to start.
    inverse_hessian : function, optional
        g ↦ H₀⁻¹g, an approximation of the inverse Hessian near the optimum.
    history : int
        How many pairs to keep.
    tol, max_iter, progress, observe
        As for every solver.

    Examples
    --------
    >>> import numpy as np
    >>> class Bowl:
    ...     def evaluate(self, x):
    ...         return Evaluation(float((x**4).sum()), 4 * x**3, float(np.abs(x**3).max()))
    >>> lbfgs(Bowl(), np.array([1.0, -2.0])).converged
    True
    """
    x, now = x0, problem.evaluate(x0)
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=history)
    n_iter = 0
    while now.measure > tol and n_iter < max_iter:
        step = -_two_loop(now.gradient, pairs, inverse_hessian)
        if n_iter == 0 and inverse_hessian is None:
            step /= max(1.0, float(np.linalg.norm(step)))  # nothing is known of the scale yet
        taken = _wolfe_search(problem, x, now, step)
        if taken is None:
            if not pairs:
                break  # rounding: the function does not fall any more
            pairs.clear()  # the learned curvature misleads; start from H₀ again
            n_iter += 1
            continue
        point, new = taken
        if new.value >= now.value and new.measure >= now.measure:
            break  # rounding: nothing falls any more
        s, y = point - x, new.gradient - now.gradient
        if (sy := float(s @ y)) > np.finfo(float).eps * float(y @ y):
            pairs.append((s, y, 1.0 / sy))
        x, now, n_iter = point, new, n_iter + 1
        observe(x)
        if progress(n_iter, now.measure):
            break
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def _two_loop(
    gradient: Array, pairs: deque[tuple[Array, Array, float]], inverse_hessian: Callable[[Array], Array] | None
) -> Array:
    q = gradient.copy()
    projections = []
    for s, y, rho in reversed(pairs):
        a = rho * float(s @ q)
        q -= a * y
        projections.append(a)
    if inverse_hessian is not None:
        q = inverse_hessian(q)
    elif pairs:
        s, y, rho = pairs[-1]
        q *= 1.0 / (rho * float(y @ y))
    for (s, y, rho), a in zip(pairs, reversed(projections), strict=True):
        q += (a - rho * float(y @ q)) * s
    return q


def _wolfe_search(problem: Smooth, x: Array, now: Evaluation, step: Array) -> tuple[Array, Evaluation] | None:
    """Find a step length that satisfies the weak Wolfe conditions, by bisection and doubling."""
    slope = float(now.gradient @ step)
    if not slope < 0:
        return None
    noise = 1e-9 * abs(now.value)
    low, high, length = 0.0, np.inf, 1.0
    best: tuple[Array, Evaluation] | None = None
    for _ in range(_MAX_TRIALS):
        point = x + length * step
        if np.array_equal(point, x):
            return best  # the step is lost in rounding
        trial = problem.evaluate(point)
        falls = trial.value <= now.value + _ARMIJO * length * slope
        # Near the optimum the decrease drowns in rounding; there the measure has to fall instead.
        drowned = trial.value <= now.value + noise and trial.measure < 0.5 * now.measure
        if not (falls or drowned):
            high = length
        else:
            best = (point, trial)
            if drowned or float(trial.gradient @ step) >= _CURVATURE * slope:
                return best
            low = length
        length = (low + high) / 2 if np.isfinite(high) else 2 * low
    return best
