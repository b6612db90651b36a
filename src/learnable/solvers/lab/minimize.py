r"""One door to every solver: `minimize(fun, x0, gradient, hessian, method=…, step=…)`.

| method        | what it is                                         | what it needs besides f                     |
|---------------|----------------------------------------------------|---------------------------------------------|
| `gd`          | gradient descent                                   | gradient                                    |
| `sgd`         | the same on mini-batches                           | gradient(x, rows), n_rows                   |
| `momentum`    | heavy ball                                         | gradient                                    |
| `nesterov`    | accelerated gradient                               | gradient                                    |
| `adagrad`, `rmsprop`, `adam` | a step for every coordinate         | gradient                                    |
| `newton`      | damped Newton steps                                | gradient, Hessian (matrix or product)       |
| `cg`          | nonlinear conjugate gradients                      | gradient                                    |
| `lbfgs`       | quasi-Newton with limited memory                   | gradient                                    |
| `proximal`    | accelerated proximal gradient, with restart        | gradient, penalty                           |
| `subgradient` | subgradient descent on a convex function           | subgradient; radius, for a certificate      |

Derivatives that are not given are taken by differences, and the trace says so.

Accelerated proximal gradient descent for a smooth f plus a simple penalty Ω:  min f(x) + Ω(x).

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
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from ...core import (
    MAX_ITER,
    MAX_SECONDS,
    TOLERANCE,
    Array,
    Boolean,
    Certificate,
    Number,
    ParameterError,
    check_parameters,
    optional,
)
from ..problem import Evaluation, Moment, Solution
from ..smooth.newton import newton
from ..smooth.quasi_newton import lbfgs, nonlinear_cg
from .first_order import (
    Adagrad,
    Adam,
    Batches,
    Clip,
    GradientDescent,
    Momentum,
    Nesterov,
    RMSprop,
    Update,
    descend,
    generator_of,
)
from .objective import Objective, Recorder, relative_gradient, start_of
from .steps import Backtracking, Constant, InverseRoot, Now, StepRule, as_rule

_MOST_TRIALS = 60  # trials of a step length
_DROWNED = 1e-10  # ‖x₊ − y‖²/η, relative to f, of which rounding leaves too few digits
_EPSILON = float(np.finfo(float).eps)


class Proximable(Protocol):
    """A penalty that can be minimised together with a distance, such as those of `learnable.risk`."""

    def value(self, w: Array, /) -> float:
        """Return Ω(w)."""

    def prox(self, w: Array, step: float, /) -> Array:
        """Return the minimiser v of Ω(v) + ‖v − w‖²/(2 step)."""


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
    stop = recorder.add(x, now, 0.0)
    n_iter = 0
    theta = 1.0
    y = x
    at_y = smooth
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
        x = point
        smooth = new
        n_iter = n_iter + 1
        if now.value < best[1].value:
            best = (x, now)
        stop = recorder.add(x, now, rate)
        y, at_y = (x, smooth) if last == 1.0 else (ahead, objective.evaluate(ahead))
        if not (np.isfinite(at_y.value) and np.isfinite(at_y.gradient).all()):
            # the momentum has left the domain of f: restart
            y = x
            at_y = smooth
            theta = 1.0
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
    x = x0
    now = objective.evaluate(x0)
    start = abs(now.value)
    best = (x, now)
    stepper = step.begin()
    weight = 0.0
    planes = 0.0
    g_sum = np.zeros_like(x0)
    stop = recorder.add(x, now._replace(measure=math.nan), 0.0)
    n_iter = 0
    gap = math.nan
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


_UPDATES: Final[dict[str, tuple[Update, StepRule]]] = {
    "gd": (GradientDescent(), Backtracking()),
    "sgd": (GradientDescent(), Constant(0.01)),
    "momentum": (Momentum(), Constant(0.01)),
    "nesterov": (Nesterov(), Constant(0.01)),
    "adagrad": (Adagrad(), Constant(0.01)),
    "rmsprop": (RMSprop(), Constant(0.01)),
    "adam": (Adam(), Constant(0.001)),
}
_SECOND_ORDER: Final[dict[str, Callable[..., Solution]]] = {"newton": newton, "cg": nonlinear_cg, "lbfgs": lbfgs}
METHODS: Final = (*_UPDATES, *_SECOND_ORDER, "proximal", "subgradient")
_BATCH_SIZE: Final = 32  # rows of a batch, the usual default
_LIMITS: Final = {
    "tol": TOLERANCE,
    "max_iter": MAX_ITER,
    "max_seconds": MAX_SECONDS,
    "radius": optional(Number(low=0.0, low_open=True)),
    "n_rows": optional(MAX_ITER),
    "batch_size": optional(MAX_ITER),
    "shuffle": Boolean(),
    "average": Boolean(),
    "accelerate": Boolean(),
}


def minimize(
    fun: Any,
    x0: Any,
    gradient: Callable[..., Any] | None = None,
    hessian: Callable[[Array], Any] | None = None,
    *,
    method: str | Update = "gd",
    step: StepRule | float | None = None,
    callback: Callable[[Moment], Any] | None = None,
    clip: Clip | None = None,
    penalty: Proximable | None = None,
    accelerate: bool = True,
    radius: float | None = None,
    n_rows: int | None = None,
    batch_size: int | None = None,
    shuffle: bool = True,
    average: bool = False,
    random_state: Any = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    keep_path: bool | None = None,
) -> Solution:
    r"""Minimise a function by a method of one's choice, with a certificate and the whole trace.

    Parameters
    ----------
    fun : function or object
        x ↦ f(x). Or an object with `evaluate(x) -> Evaluation`, or with `value` (or `__call__`), `gradient`, `hessian`.
        A mean over n rows, for mini-batches, is a function of (x, rows), where `X[rows]` are the rows meant.
    x0 : (p,) array or number
        Where to start.
    gradient : function, optional
        x ↦ ∇f(x), or (x, rows) ↦ …; central differences if there is none.
    hessian : function, optional
        x ↦ H, or x ↦ (v ↦ Hv); for "newton", differences of the gradient if there is none.
    method : str or update
        One of the table above, or an update with settings of its own, such as `Adam(rho1=0.8)`.
    step : StepRule or float, optional
        How far to go (a number is a constant step); by default a line search for "gd" and "proximal", 1/√t for
        "subgradient", 0.01 otherwise (0.001 for "adam"). "newton", "cg" and "lbfgs" have line searches of their own.
    callback : function of a Moment, optional
        Called at the start and after every iteration; a true answer stops.
    clip : Rescale or Truncate, optional
        What first-order methods do to gradients before they use them.
    penalty : Proximable, optional
        Ω for "proximal": an object with `value` and `prox`, such as those of `learnable.risk`.
    accelerate : bool
        Whether "proximal" has momentum.
    radius : float, optional
        For "subgradient": the distance from x0 within which a minimiser is known to lie.
    n_rows, batch_size, shuffle, random_state
        Mini-batches, for every first-order method: exactly ⌊n/b⌋ an epoch. "sgd" has b = 32 unless told; the others run
        on all rows unless `batch_size` is given. `random_state` is an integer or a NumPy generator.
    average : bool
        Return the mean of all iterates (Polyak and Ruppert) instead of the best one, unless the last one reached `tol`.
    tol : float
        Stop at this relative gradient maxⱼ |gⱼ|·max(|xⱼ|, 1)/max(|f|, 1) ("subgradient": relative gap).
    max_iter : int
        Most iterations; epochs, with mini-batches.
    max_seconds : float or None
        Time after which the best so far is returned.
    keep_path : bool or None
        Whether the trace keeps the points; None keeps them up to a hundred coordinates.

    Returns
    -------
    Solution
        `x`, `value`, `gradient`, `certificate` (`stationarity`, `gap` or `none`), `trace`, `n_iter`, `converged`.
        Stationarity is what it says: without convexity the point may be a saddle.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import minimize
    >>> f, g, h = lambda w: w[0] ** 2 + np.exp(w[0]), lambda w: 2 * w + np.exp(w), lambda w: [2 + np.exp(w)]
    >>> found = minimize(f, 0.0, g, h, method="newton")
    >>> found.trace.path.ravel().round(5).tolist()
    [0.0, -0.33333, -0.35169, -0.35173]
    >>> found.certificate
    stationarity: the optimality conditions hold up to 6.9e-10; tolerance 1e-08; 3 iterations
    """
    _check_options(locals())
    name, update, default = _method_of(method)
    objective = Objective(fun, gradient, hessian, n_rows)
    batches = _batches(name, update, objective, batch_size, shuffle)
    x, _ = start_of(x0, objective)
    recorder = Recorder(objective, callback, keep_path, max_seconds)
    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    if update is not None:
        rule = default if step is None else as_rule("minimize", step)
        random = generator_of("minimize", random_state)
        found = descend(
            objective, x, update, rule, recorder=recorder, clip=clip, batches=batches, generator=random,
            average=average, **limits,
        )  # fmt: skip
    elif name == "proximal":
        found = proximal_gradient(
            objective, _penalty(penalty), x, step=_proximal_step(step), recorder=recorder, accelerate=accelerate,
            **limits,
        )  # fmt: skip
    elif name == "subgradient":
        rule = InverseRoot(1.0) if step is None else as_rule("minimize", step)
        found = subgradient_descent(objective, x, step=rule, recorder=recorder, radius=radius, **limits)
    else:
        if step is not None or clip is not None:
            raise ParameterError(f"minimize: method={name!r} has its own line search; leave step and clip out.")
        if recorder.add(x, objective.evaluate(x), 0.0):
            limits["max_iter"] = 0
        found = _SECOND_ORDER[name](recorder, x, progress=recorder.progress, **limits)
        found = found._replace(measure=float(found.measure))
    certificate = _certificate(found, name, objective, tol, recorder.seconds)
    return found._replace(certificate=certificate, trace=recorder.trace(found.x))


def _check_options(values: dict[str, Any]) -> None:
    check_parameters("minimize", values, _LIMITS)
    for name in ("callback", "clip"):
        if values[name] is not None and not callable(values[name]):
            raise ParameterError(f"minimize: {name} must be a function; got {values[name]!r}.")


def _method_of(method: Any) -> tuple[str, Update | None, StepRule]:
    if isinstance(method, str) and method in METHODS:
        update, rule = _UPDATES.get(method, (None, Constant(1.0)))
        return method, update, rule
    if hasattr(method, "move") and not isinstance(method, type):
        known = [rule for update, rule in _UPDATES.values() if type(update) is type(method)]
        return type(method).__name__, method, (known or [Constant(0.01)])[0]
    raise ParameterError(f"minimize: method must be one of {', '.join(METHODS)}, or an update; got {method!r}.")


def _batches(
    name: str, update: Update | None, objective: Objective, batch_size: int | None, shuffle: bool
) -> Batches | None:
    wanted = name == "sgd" or batch_size is not None
    if not wanted:
        return None
    if update is None:
        raise ParameterError(f"minimize: method={name!r} does not take mini-batches; leave batch_size out.")
    if objective.n_rows is None:
        raise ParameterError(
            "minimize: mini-batches need n_rows, the number of rows that fun is a mean over, got None; pass n_rows=n, "
            "with fun and gradient as functions of (x, rows)."
        )
    return Batches(objective.n_rows, min(_BATCH_SIZE, objective.n_rows) if batch_size is None else batch_size, shuffle)


def _penalty(penalty: Any) -> Proximable:
    if not (hasattr(penalty, "prox") and hasattr(penalty, "value")):
        raise ParameterError(
            "minimize: method='proximal' needs penalty=, an object with value(w) and prox(w, step), such as "
            f"learnable.risk.L1Penalty(0.1); got {penalty!r}."
        )
    return penalty  # type: ignore[no-any-return]


def _proximal_step(step: Any) -> Constant | Backtracking:
    rule = Backtracking() if step is None else as_rule("minimize", step)
    if not isinstance(rule, Constant | Backtracking):
        raise ParameterError(f"minimize: method='proximal' takes Constant or Backtracking steps; got {rule!r}.")
    return rule


def _certificate(found: Solution, name: str, objective: Objective, tol: float, seconds: float) -> Certificate:
    if name != "subgradient":
        kind = objective.kind
        bound = found.measure if kind == "gap" else None
    elif np.isnan(found.measure):
        return Certificate("none", found.measure, tol, None, found.n_iter, seconds)
    else:
        kind = "gap"
        bound = found.measure if found.value > 0 else None
    return Certificate(kind, found.measure, tol, bound, found.n_iter, seconds)
