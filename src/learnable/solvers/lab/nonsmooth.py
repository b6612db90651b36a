r"""Accelerated proximal gradient descent for a smooth f plus a simple penalty Ω:  min f(x) + Ω(x).

    x₊ = prox_{ηΩ}(y − η∇f(y)),   y₊ = x₊ + (θ − 1)/θ₊ · (x₊ − x),   θ₊ = (1 + √(1 + 4θ²))/2

with F(x_T) − F* ≤ 2‖x₀ − x*‖²/(η(T + 1)²) for η ≤ 1/L. The momentum is dropped (θ = 1) whenever it points uphill, which
gives linear convergence on strongly convex functions without knowing how strongly. The certificate is the length of a
subgradient, ξ = ∇f(x₊) − ∇f(y) + (y − x₊)/η ∈ ∂F(x₊), relative as for smooth functions.

References: A. Beck and M. Teboulle, SIAM J. Imaging Sciences 2 (2009); B. O'Donoghue and E. Candès, Foundations of
Computational Mathematics 15 (2015).

Subgradient descent for convex functions with kinks:  x₊ = x − ηₜgₜ,  gₜ ∈ ∂f(xₜ).

With ‖g‖ ≤ G, ‖x₀ − x*‖ ≤ B and η = B/(G√T), the mean of the iterates satisfies f(x̄) − f* ≤ BG/√T (for a ρ-Lipschitz
loss of a linear function of rows ‖x‖ ≤ R, G = ρR).

A certificate needs the radius B. Every subgradient bounds f from below, f(z) ≥ f(xₜ) + gₜᵀ(z − xₜ), and so does the
mean of these planes with weights ηₜ; over the ball it is smallest opposite to ḡ:

    f* ≥ D = mean of (f(xₜ) + gₜᵀ(x₀ − xₜ)) − B‖ḡ‖.

Reference: S. Shalev-Shwartz and S. Ben-David, Understanding Machine Learning, 2014, lemma 14.1.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..problem import Evaluation, Solution
from .objective import Objective, Recorder, relative_gradient
from .steps import Backtracking, Constant, Now, StepRule

Array = NDArray[np.float64]

_MOST_TRIALS = 60
_DROWNED = 1e-10  # ‖x₊ − y‖²/η, relative to f, of which rounding leaves too few digits
_EPSILON = float(np.finfo(float).eps)


class Proximable(Protocol):
    """A penalty that can be minimised together with a distance, such as those of `learnable.risk`."""

    def value(self, w: Array, /) -> float:
        """Return Ω(w)."""
        ...

    def prox(self, w: Array, step: float, /) -> Array:
        """Return the minimiser v of Ω(v) + ‖v − w‖²/(2 step)."""
        ...


def proximal_gradient(
    objective: Objective,
    penalty: Proximable,
    x0: Array,
    *,
    step: Constant | Backtracking,
    recorder: Recorder,
    accelerate: bool = True,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Solution:
    """Minimise f + Ω.

    Parameters
    ----------
    objective : Objective
        f, smooth.
    penalty : Proximable
        Ω.
    x0 : (p,) array
        Where to start.
    step : Constant or Backtracking
        η fixed (at most 1/L), or shrunk until f lies below its quadratic model of curvature 1/η.
    recorder : Recorder
        Collects the trace.
    accelerate : bool
        False: plain proximal gradient steps, F falls in each.
    tol, max_iter
        As for every solver.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.risk import L1Penalty
    >>> from learnable.solvers import minimize
    >>> f = lambda x: 0.5 * (x - [3.0, 0.5]) @ (x - [3.0, 0.5])
    >>> minimize(f, [0.0, 0.0], lambda x: x - [3.0, 0.5], method="proximal", penalty=L1Penalty(1.0)).x
    array([2., 0.])
    """
    rate = step.rate
    x = penalty.prox(x0, 0.0) if not np.isfinite(penalty.value(x0)) else x0
    smooth = objective.evaluate(x)
    xi = _least_subgradient(smooth.gradient, x, penalty, rate)
    now = _total(smooth, x, penalty, xi, rate)
    stop, n_iter, theta, y, at_y = recorder.add(x, now, 0.0), 0, 1.0, x, smooth
    best = (x, now)
    while not stop and now.measure > tol and n_iter < max_iter:
        for _ in range(_MOST_TRIALS):
            point = penalty.prox(y - rate * at_y.gradient, rate)
            new = objective.evaluate(point)
            move = point - y
            if isinstance(step, Constant) or _short_enough(at_y, new, move, rate):
                break
            rate *= step.shrink
        if not move.any():
            break  # rounding: the step is lost
        recorder.average(x)
        xi = new.gradient - at_y.gradient - move / rate
        uphill = float(move @ (point - x)) < 0
        theta, last = (0.5 + math.sqrt(0.25 + theta**2), theta) if accelerate and not uphill else (1.0, 1.0)
        ahead = point + (last - 1.0) / theta * (point - x)
        now = _total(new, point, penalty, xi, rate)
        if not (np.isfinite(now.value) and np.isfinite(xi).all()):
            break
        x, smooth, n_iter = point, new, n_iter + 1
        if now.value < best[1].value:
            best = (x, now)
        stop = recorder.add(x, now, rate)
        y, at_y = (x, smooth) if last == 1.0 else (ahead, objective.evaluate(ahead))
        if not (np.isfinite(at_y.value) and np.isfinite(at_y.gradient).all()):
            y, at_y, theta = x, smooth, 1.0  # the momentum has left the domain of f: restart
    if not now.measure <= tol:
        x, now = best
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def _short_enough(at: Evaluation, new: Evaluation, move: Array, rate: float) -> bool:
    """Tell whether f lies below its quadratic model of curvature 1/η at the new point."""
    square = float(move @ move)
    if square <= _DROWNED * rate * abs(at.value):  # the difference drowns in rounding: the slopes decide
        return float((new.gradient - at.gradient) @ move) <= square / rate
    return new.value <= at.value + float(at.gradient @ move) + square / (2 * rate)


def _total(smooth: Evaluation, x: Array, penalty: Proximable, xi: Array, rate: float) -> Evaluation:
    value = smooth.value + float(penalty.value(x))
    doubt = _EPSILON * np.abs(x) / rate  # what rounding may hide in move/η
    return Evaluation(value, xi, relative_gradient(x, value, np.abs(xi) + doubt))


def _least_subgradient(gradient: Array, x: Array, penalty: Proximable, rate: float) -> Array:
    """Return the proximal gradient mapping at x, zero exactly at the optimum."""
    return (x - penalty.prox(x - rate * gradient, rate)) / rate


def subgradient_descent(
    objective: Objective,
    x0: Array,
    *,
    step: StepRule,
    recorder: Recorder,
    radius: float | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Solution:
    """Minimise a convex function from its subgradients.

    Parameters
    ----------
    objective : Objective
        f, and as its gradient any subgradient.
    x0 : (p,) array
        Where to start.
    step : StepRule
        ηₜ.
    recorder : Recorder
        Collects the trace; its mean is that of the iterates, with weights ηₜ.
    radius : float or None
        B: some minimiser is known to lie within this distance of x₀. Without it nothing is proven.
    tol : float
        Stop at this gap (f − D)/max(|D|, 1e-8·|f(x₀)|).
    max_iter : int
        Most steps.

    Returns
    -------
    Solution
        The better of the best iterate and the mean; `measure` is the gap, NaN without a radius.

    Examples
    --------
    >>> from learnable.solvers import minimize
    >>> import numpy as np
    >>> f = minimize(lambda x: 1 + abs(x).sum(), [3.0], np.sign, method="subgradient", radius=4, tol=0.1, max_iter=9999)
    >>> f.certificate.kind, f.certificate.holds, bool(f.value < 1.1)
    ('gap', True, True)
    """
    x, now = x0, objective.evaluate(x0)
    start, best = abs(now.value), (x, now)
    stepper = step.begin()
    weight, planes, g_sum = 0.0, 0.0, np.zeros_like(x0)
    stop, n_iter, gap = recorder.add(x, now._replace(measure=math.nan), 0.0), 0, math.nan
    while not stop and not gap <= tol and n_iter < max_iter and now.gradient.any():
        rate = stepper(Now(n_iter, now.gradient, now.value, n_iter, None))
        recorder.average(x, rate)
        weight += rate
        planes += rate * (now.value + float(now.gradient @ (x0 - x)))
        g_sum += rate * now.gradient
        with np.errstate(over="ignore", invalid="ignore"):
            x = x - rate * now.gradient
        if not np.isfinite(x).all():
            break
        now = objective.evaluate(x)
        if not (np.isfinite(now.value) and np.isfinite(now.gradient).all()):
            break
        n_iter += 1
        if now.value < best[1].value:
            best = (x, now)
        if radius is not None:
            gap = _gap(best[1].value, (planes - radius * float(np.linalg.norm(g_sum))) / weight, start)
        stop = recorder.add(x, now._replace(measure=gap), rate)
    if not best[1].gradient.any():
        gap = 0.0 if radius is not None else math.nan  # zero is a subgradient: a minimum
    if n_iter:
        mean = recorder.trace(x).mean
        there = objective.evaluate(mean)
        if there.value < best[1].value:
            best = (mean, there)
            if radius is not None and gap > 0:
                gap = _gap(there.value, (planes - radius * float(np.linalg.norm(g_sum))) / weight, start)
    x, now = best
    return Solution(x, now.value, now.gradient, gap, n_iter, gap <= tol)


def _gap(value: float, below: float, start: float) -> float:
    return max(0.0, value - below) / max(abs(below), 1e-8 * start, np.finfo(float).tiny)
