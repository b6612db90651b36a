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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.declare import MAX_ITER, MAX_SECONDS, TOLERANCE, Boolean, Number, check_parameters, optional
from ...core.errors import ParameterError
from ...core.estimator import Certificate
from ..problem import Moment, Solution
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
from .nonsmooth import Proximable, proximal_gradient, subgradient_descent
from .objective import Objective, Recorder, start_of
from .steps import Backtracking, Constant, InverseRoot, StepRule, as_rule

Array = NDArray[np.float64]

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
_BATCH_SIZE: Final = 32
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
        kind, bound = "gap", found.measure if found.value > 0 else None
    return Certificate(kind, found.measure, tol, bound, found.n_iter, seconds)
