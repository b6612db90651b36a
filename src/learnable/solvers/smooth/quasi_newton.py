r"""L-BFGS: Newton's method with the Hessian learned from the last few gradient differences.

The inverse Hessian is built up from pairs s = x₊ − x, y = g₊ − g by the two-loop recursion, starting from H₀⁻¹: a
multiple of the identity, or the inverse of an approximate Hessian that the caller knows. Memory: 2·history vectors.

Reference: J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., algorithms 7.4 and 3.5.

Nonlinear conjugate gradients: d ← −g₊ + βd with Polak and Ribière's β = max(0, g₊ᵀ(g₊ − g)/gᵀg).

On a quadratic, where the line search is exact after one secant step, these are the linear conjugate gradients and p
steps suffice. Elsewhere β = 0 restarts along the steepest descent whenever the gradients have lost their conjugacy.
Memory: three vectors.

Reference: J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., algorithm 5.4 and equation 5.45.

Quasi-Newton steps for few variables between bounds: min f(x), l ≤ x ≤ u.

BFGS keeps a dense approximation B of the Hessian. Variables that lie on a bound and would leave it stay; the others
take the
step −B⁻¹∇f, cut where it meets the box. A step is shortened by interpolation until f falls by its share; where that
share drowns in the rounding of f, until the slope at its end says so instead.

Made for functions that cost far more than p³, such as a marginal likelihood in its hyperparameters.

References: J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., §6.1 and §16.7; W. Hager and H. Zhang, A new
conjugate gradient method with guaranteed descent and an efficient line search, SIAM J. Optim. 16, 2005, equation 4.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from ...core import Array, NDArray, Observer, Progress, never, no_progress, unobserved
from ..problem import Evaluation, Smooth, Solution

_ARMIJO = 1e-4  # Wolfe's conditions with the usual values for quasi-Newton steps (Nocedal and Wright, section 3.1)
_CURVATURE = 0.9  # share of the slope that may be left after a step: loose, so that the first trial mostly passes
_MAX_TRIALS = 30  # bisections of a step


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
    x = x0
    now = problem.evaluate(x0)
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=history)
    n_iter = 0
    while now.measure > tol and n_iter < max_iter:
        step = -_two_loop(now.gradient, pairs, inverse_hessian)
        if n_iter == 0 and inverse_hessian is None:
            step /= max(1.0, float(np.linalg.norm(step)))  # the scale is not known yet
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
        s = point - x
        y = new.gradient - now.gradient
        if (sy := float(s @ y)) > np.finfo(float).eps * float(y @ y):
            pairs.append((s, y, 1.0 / sy))
        x = point
        now = new
        n_iter = n_iter + 1
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
    low = 0.0
    high = np.inf
    length = 1.0
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


_CG_ARMIJO = 1e-4  # the same for conjugate gradients
_CG_CURVATURE = 0.1  # share of the slope that may be left: directions stay conjugate only after near-exact steps
_EXACT = 1e-6  # share that the first trial may leave
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
    x = x0
    now = problem.evaluate(x0)
    direction = -now.gradient
    length = 0.0
    n_iter = 0
    while now.measure > tol and n_iter < max_iter:
        slope = float(now.gradient @ direction)
        steepest = bool(np.array_equal(direction, -now.gradient))
        if not slope < 0 and not steepest:
            direction = -now.gradient
            steepest = True
            slope = float(now.gradient @ direction)
        if length == 0.0:
            length = 1.0 / max(1.0, float(np.linalg.norm(now.gradient)))  # the scale is not known yet
        taken = _cg_search(problem, x, now, direction, slope, length)
        if taken is None:
            if steepest:
                break  # rounding: the function does not fall any more
            direction = -now.gradient
            length = 0.0
            continue
        length, point, new = taken
        beta = max(0.0, float(new.gradient @ (new.gradient - now.gradient)) / float(now.gradient @ now.gradient))
        direction = -new.gradient + beta * direction
        after = float(new.gradient @ direction)
        length *= min(_GROWTH, slope / after) if after < 0 else 1.0  # the same first decrease as last time
        x = point
        now = new
        n_iter = n_iter + 1
        if progress(n_iter, now.measure):
            break
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def _cg_search(
    problem: Smooth, x: Array, now: Evaluation, direction: Array, slope: float, first: float
) -> tuple[float, Array, Evaluation] | None:
    """Find a step that satisfies the strong Wolfe conditions, by secant steps on the slope inside a bracket."""
    low = 0.0
    high = np.inf
    length = first
    low_slope = slope
    noise = 1e-9 * abs(now.value)
    best: tuple[float, Array, Evaluation] | None = None
    for trials in range(_MAX_TRIALS):
        # The first trial is a guess; the secant step after it is exact on a quadratic, and keeps directions conjugate.
        enough = (_CG_CURVATURE if trials else _EXACT) * abs(slope)
        point = x + length * direction
        if np.array_equal(point, x):
            return best
        trial = problem.evaluate(point)
        if not np.isfinite(trial.value) or not np.isfinite(trial.gradient).all():
            high = length
            length = 0.5 * (low + high)
            continue
        new_slope = float(trial.gradient @ direction)
        falls = trial.value <= now.value + _CG_ARMIJO * length * slope
        # Near the optimum the decrease drowns in rounding; there the slope alone decides.
        falls = falls or (trial.value <= now.value + noise and abs(new_slope) < 0.5 * abs(slope))
        if falls and (best is None or trial.value < best[2].value or abs(new_slope) <= enough):
            best = (length, point, trial)
            if abs(new_slope) <= enough:
                return best
        secant = length - new_slope * (length - low) / (new_slope - low_slope) if new_slope != low_slope else np.inf
        if falls and new_slope < 0:
            low = length
            low_slope = new_slope
            length = min(secant, _FARTHEST * low) if low < secant < np.inf else _GROWTH * low
            if not length < high:
                length = 0.5 * (low + high)
        else:
            high = length
            inside = low + 1e-3 * (high - low) < secant < high - 1e-3 * (high - low)
            length = secant if inside and new_slope > 0 else 0.5 * (low + high)
    return best


_BOX_ARMIJO = 1e-4  # the same within bounds
_BOX_TRIALS = 20  # halvings of a projected step
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
    best = (x, now)
    n_iter = 0
    idle = 0
    while now.measure > tol and n_iter < max_iter and np.isfinite(now.value) and idle < _IDLE and not stop():
        held = ((x <= lower) & (now.gradient > 0.0)) | ((x >= upper) & (now.gradient < 0.0))
        step = _step(B, now.gradient, held)
        step *= min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
        taken = _box_search(problem, x, now, step, lower, upper, stop)
        if taken is None:
            if B is None:
                break  # rounding: the function does not fall any more
            # the learned curvature misleads
            B = None
            n_iter = n_iter + 1
            continue
        point, new = taken
        B = _updated(B, point - x, new.gradient - now.gradient)
        x = point
        now = new
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
    if B is not None:
        with suppress(np.linalg.LinAlgError):  # a singular B says nothing of the scale
            step[free] = -np.linalg.solve(B[np.ix_(free, free)], gradient[free])
            return step
    step[free] = -gradient[free] / max(float(np.abs(gradient[free]).max(initial=0.0)), 1e-300)  # move by one
    return step


def _box_search(
    problem: Smooth, x: Array, now: Evaluation, step: Array, lower: Array, upper: Array, stop: Callable[[], bool]
) -> tuple[Array, Evaluation] | None:
    """Shorten the step until the function falls by its share; the path bends along the bounds."""
    length = 1.0
    for trials in range(_BOX_TRIALS):
        point = np.clip(x + length * step, lower, upper)
        slope = float(now.gradient @ (point - x))
        if np.array_equal(point, x) or not slope < 0.0 or (trials and stop()):
            return None
        trial = problem.evaluate(point)
        if trial.value <= now.value + _BOX_ARMIJO * slope:
            return point, trial
        # Near the optimum the decrease drowns in rounding; of a parabola, the slope at the end tells the same.
        flat = (
            float(trial.gradient @ (point - x)) <= (2.0 * _BOX_ARMIJO - 1.0) * slope
            or trial.measure < 0.5 * now.measure
        )
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
    sBs = float(s @ Bs)
    sy = float(s @ y)
    if sBs <= 0.0:
        return B
    if sy < 0.2 * sBs:
        share = 0.8 * sBs / (sBs - sy)
        y = share * y + (1.0 - share) * Bs
        sy = float(s @ y)
    B = B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy
    return 0.5 * (B + B.T)
