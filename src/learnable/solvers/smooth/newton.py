r"""Newton's method, for minima and for roots.

A step solves H s = −g; its decrement λ² = −gᵀs predicts the decrease ½λ², which can be the stop, and a backtracking
line search makes it safe far from the optimum. A factorised Hessian is kept for further (chord) steps as long as they
are expected to finish sooner than a new factorisation would.

Reference: S. Boyd and L. Vandenberghe, Convex Optimization, 2004, algorithm 9.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ...core import Array, DataError, NoRootError, Observer, Progress, never, no_progress, unobserved
from ..derivatives import as_point, numerical_jacobian
from ..problem import Evaluation, Solution, TwiceSmooth, backtrack
from ..systems.normal_equations import conjugate_gradient

_ARMIJO = 1e-4  # share of the slope that a step must earn: the usual value (Nocedal and Wright, section 3.1)
_MAX_HALVINGS = 40  # 2⁻⁴⁰ of a step moves nothing that float64 could tell


def newton(
    problem: TwiceSmooth,
    x0: Array,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    refresh_cost: float = 0.0,
    decrement: float = 0.0,
    progress: Progress = no_progress,
    stop: Callable[[], bool] = never,
    observe: Observer = unobserved,
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
    decrement : float
        Stop also when ½λ², the decrease that a step promises, is at most this; the solution then counts as converged.
    progress : callable
        Called as `progress(iteration, measure)` after every step; True stops.
    stop : callable
        Asked between the steps of conjugate gradients; True ends them early.
    observe : callable
        Called with x before `progress`.

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
    x = x0
    now = problem.evaluate(x0)
    solve: Callable[[Array], Array] | None = None
    n_iter = 0
    while now.measure > tol and n_iter < max_iter:
        if solve is None:
            solve = _solver_of(problem.hessian(x), now, stop)
        step = -solve(now.gradient)
        if decrement > 0 and -0.5 * float(now.gradient @ step) <= decrement:
            return Solution(x, now.value, now.gradient, now.measure, n_iter, True)
        taken = _line_search(problem, x, now, step)
        if taken is None:
            break  # rounding: no step lowers the function any more
        length, x, new = taken
        rate = new.measure / now.measure
        now = new
        n_iter = n_iter + 1
        if length < 1 or not _worth_keeping(rate, now.measure / max(tol, 1e-300), refresh_cost):
            solve = None
        observe(x)
        if progress(n_iter, now.measure):
            break
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def newton_root(
    function: Callable[[Any], Any],
    derivative: Callable[[Any], Any] | None,
    x0: Any,
    *,
    tol: float = 1e-12,
    max_iter: int = 100,
) -> Any:
    """Find a root by x ← x − f/f′, halving steps that do not lower |f|; in several dimensions by J s = −f.

    Parameters
    ----------
    function : function
        x ↦ f(x): a number, or a vector as long as x.
    derivative : function or None
        x ↦ f′(x), or the Jacobian J[i, j] = ∂fᵢ/∂xⱼ; None takes central differences.
    x0 : float or (p,) array
        Where to start.
    tol : float
        Stop when a step is at most this share of max(1, |x|).
    max_iter : int
        Most steps.

    Returns
    -------
    float or (p,) array
        The root.

    Raises
    ------
    NoRootError
        If |f| cannot be lowered any more and is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> newton_root(lambda x: x * x - 2, lambda x: 2 * x, 1.0)
    1.414213562373095
    >>> circle_and_line = lambda z: np.array([z @ z - 2, z[0] - z[1]])
    >>> newton_root(circle_and_line, lambda z: np.array([2 * z, [1.0, -1.0]]), [3.0, 1.0]).round(12)
    array([1., 1.])
    """
    scalar = np.ndim(x0) == 0
    x = as_point("newton_root", x0)

    def f_at(z: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.array(function(float(z[0]) if scalar else z), dtype=np.float64, ndmin=1)
        if value.shape != x.shape:
            raise DataError(
                f"newton_root: function must return as many numbers as x has, {x.shape}; got {value.shape}."
            )
        return value

    def slope_at(z: Array) -> Array:
        if derivative is None:
            return numerical_jacobian(f_at, z)
        J = np.array(derivative(float(z[0]) if scalar else z), dtype=np.float64, ndmin=2)
        if J.shape != (len(x), len(x)):
            raise DataError(f"newton_root: the Jacobian must have shape {(len(x), len(x))}; got {J.shape}.")
        return J

    root = _root(f_at, slope_at, x, tol, max_iter)
    return float(root[0]) if scalar else root


def _root(f_at: Callable[[Array], Array], slope_at: Callable[[Array], Array], x: Array, tol: float, most: int) -> Array:
    f = f_at(x)
    for _ in range(most):
        J = slope_at(x)
        step = _solve_system(J, -f)
        if not f.any() or step is None:
            break
        size = np.abs(f).max()  # squares could overflow; relative to the largest entry they do not
        last = np.abs(step).max() <= tol * max(1.0, float(np.abs(x).max()))
        for _ in range(1 if last else _MAX_HALVINGS):
            trial = f_at(x + step)
            if np.linalg.norm(trial / size) < np.linalg.norm(f / size):
                x = x + step
                f = trial
                break
            step = step / 2
        else:
            if not last:
                break
        if last:
            return x  # only a whole Newton step tells how far a root is; one that was halved says nothing
    if not f.any():
        return x
    shown = f"{x[0]:g} where f = {f[0]:g}" if len(x) == 1 else f"{_shown(x)} where f = {_shown(f)}"
    raise NoRootError(f"newton_root: stopped at x = {shown}: no root, or a flat point; start elsewhere.")


def _solve_system(J: Array, right: Array) -> Array | None:
    """Return J⁻¹ right; None where J is singular or not finite."""
    if not np.isfinite(J).all():
        return None
    try:
        step = np.linalg.solve(J, right)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(step, dtype=np.float64) if np.isfinite(step).all() else None


def _shown(values: Array) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values[:5]) + (", …)" if len(values) > 5 else ")")


def factorised(H: Array) -> Callable[[Array], Array]:
    """Return g ↦ H⁻¹g for a positive (semi)definite H, by Cholesky after scaling its diagonal to one.

    Where rounding has made H indefinite, the smallest multiple of the diagonal that repairs it is added: the step stays
    a descent direction.
    """
    diagonal = np.diag(H)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    A = H * np.outer(scale, scale)
    for shift in (0.0, *10.0 ** np.arange(-14.0, 1.0)):
        R, info = lapack.dpotrf(A + shift * np.eye(len(A)) if shift else A, lower=0)
        if info == 0:
            return lambda g: np.asarray(scale * lapack.dpotrs(R, scale * g, lower=0)[0])
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

    def trial(length: float) -> tuple[float, Array, Evaluation] | None:
        point = x + length * step
        new = problem.evaluate(point)
        # Near the optimum the decrease drowns in rounding; there the measure has to fall instead.
        drowned = new.value <= now.value + noise and new.measure < 0.5 * now.measure
        falls = new.value <= now.value + _ARMIJO * length * slope and new.value < now.value
        return (length, point, new) if falls or drowned else None

    return backtrack(trial, most=_MAX_HALVINGS)


def _worth_keeping(rate: float, remaining: float, refresh_cost: float) -> bool:
    """Tell whether repeating the last step's rate reaches the goal before a new Hessian would pay off."""
    if refresh_cost <= 0 or not 0 < rate < 1:
        return refresh_cost > 0 and rate <= 0
    return bool(np.log(max(remaining, 1.0)) / -np.log(rate) <= refresh_cost)
