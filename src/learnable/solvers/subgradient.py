r"""Subgradient descent for convex functions with kinks:  x₊ = x − ηₜgₜ,  gₜ ∈ ∂f(xₜ).

With ‖g‖ ≤ G, ‖x₀ − x*‖ ≤ B and η = B/(G√T), the mean of the iterates satisfies f(x̄) − f* ≤ BG/√T (for a ρ-Lipschitz
loss of a linear function of rows ‖x‖ ≤ R, G = ρR).

A certificate needs the radius B. Every subgradient bounds f from below, f(z) ≥ f(xₜ) + gₜᵀ(z − xₜ), and so does the
mean of these planes with weights ηₜ; over the ball it is smallest opposite to ḡ:

    f* ≥ D = mean of (f(xₜ) + gₜᵀ(x₀ − xₜ)) − B‖ḡ‖.

Reference: S. Shalev-Shwartz and S. Ben-David, Understanding Machine Learning, 2014, lemma 14.1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .objective import Objective, Recorder
from .problem import Solution
from .steps import Now, StepRule

Array = NDArray[np.float64]


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
