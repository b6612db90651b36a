r"""First-order methods: one loop, and an update rule each.

With the gradient g at w, the step η and products, quotients and roots taken entry by entry:

| update            | formula                                                                              |
|-------------------|--------------------------------------------------------------------------------------|
| `GradientDescent` | w ← w − ηg                                                                           |
| `Momentum`        | v ← αv − ηg,  w ← w + v                                                              |
| `Nesterov`        | the same, with g taken at w + αv                                                     |
| `Adagrad`         | r ← r + g²,  w ← w − ηg/(δ + √r)                                                     |
| `RMSprop`         | r ← ρr + (1 − ρ)g²,  w ← w − ηg/(δ + √r)                                             |
| `Adam`            | v ← ρ₁v + (1 − ρ₁)g, r ← ρ₂r + (1 − ρ₂)g², w ← w − η v̂/(δ + √r̂), v̂ = v/(1 − ρ₁ᵗ), r̂ alike |

An update is a pair of pure functions, `begin` and `move`, on an immutable state, so that one object serves many runs.

Reference: I. Goodfellow, Y. Bengio and A. Courville, Deep Learning, 2016, chapter 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.parameters import Nothing
from .clipping import Clip
from .objective import ALL_ROWS, Objective, Recorder, is_whole
from .problem import Solution
from .steps import FROM_ZERO, POSITIVE, Checked, Now, StepRule
from .stochastic import Batches, Rows

Array = NDArray[np.float64]


class State(NamedTuple):
    """What an update remembers."""

    t: int  #: updates made
    v: Array  #: velocity, or mean gradient
    r: Array  #: sum or mean of squared gradients


class Update(Protocol):
    """One first-order method."""

    def look(self, x: Array, state: State) -> Array:
        """Return where the gradient is to be taken."""
        ...

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""
        ...


#: (x, updates so far, generator) ↦ x after an epoch of mini-batches, the mean of its iterates, and the last step.
Leap = Callable[[Array, int, np.random.Generator], tuple[Array, Array, float]]


class _AtThePoint(Checked):
    """An update that takes the gradient where it stands."""

    def look(self, x: Array, state: State) -> Array:
        """Return x itself."""
        return x


@dataclass(frozen=True)
class GradientDescent(_AtThePoint):
    """Gradient descent: w ← w − ηg.

    Examples
    --------
    >>> from learnable.solvers import GradientDescent, minimize
    >>> minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method=GradientDescent(), step=0.25, max_iter=2).x
    array([0.25])
    """

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""
        return x - rate * g, state._replace(t=state.t + 1)


@dataclass(frozen=True)
class Momentum(_AtThePoint):
    """Heavy ball: v ← αv − ηg, w ← w + v. Opposing gradients cancel, agreeing ones add up to η/(1 − α).

    Parameters
    ----------
    momentum : float, default=0.9
        α in [0, 1).

    Examples
    --------
    >>> from learnable.solvers import Momentum, minimize
    >>> run = minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method=Momentum(0.5), step=0.25, max_iter=2)
    >>> run.trace.path.ravel()
    array([1. , 0.5, 0. ])
    """

    momentum: float = field(default=0.9, metadata=FROM_ZERO)

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""
        v = self.momentum * state.v - rate * g
        return x + v, state._replace(t=state.t + 1, v=v)


@dataclass(frozen=True)
class Nesterov(Checked):
    """Nesterov's momentum: the gradient is taken where the velocity leads, at w + αv.

    Parameters
    ----------
    momentum : float or None, default=None
        α in [0, 1); None is Nesterov's αₜ = (t − 1)/(t + 2), t = 1, 2 …, with which f(w_T) − f* ≤
        2‖w₀ − w*‖²/(η(T + 1)²) for a convex function with an η⁻¹-Lipschitz gradient.

    Examples
    --------
    >>> from learnable.solvers import Nesterov, minimize
    >>> run = minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method=Nesterov(0.5), step=0.25, max_iter=2)
    >>> run.trace.path.ravel()
    array([1.   , 0.5  , 0.125])
    """

    momentum: float | None = field(default=None, metadata={"rule": FROM_ZERO["rule"] | Nothing()})

    def look(self, x: Array, state: State) -> Array:
        """Return w + αv."""
        return x + self._alpha(state) * state.v if state.t else x

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""
        v = self._alpha(state) * state.v - rate * g
        return x + v, state._replace(t=state.t + 1, v=v)

    def _alpha(self, state: State) -> float:
        return state.t / (state.t + 3.0) if self.momentum is None else self.momentum


@dataclass(frozen=True)
class Adagrad(_AtThePoint):
    """Adagrad: w ← w − ηg/(δ + √Σg²), a step of its own for every coordinate.

    Parameters
    ----------
    delta : float, default=1e-10
        δ > 0.

    Examples
    --------
    >>> from learnable.solvers import Adagrad, minimize
    >>> f = minimize(lambda x: 50 * x[0]**2 + x[1]**2, [1.0, 1.0], method=Adagrad(), step=0.5, max_iter=1)
    >>> f.x.round(6)  # the first step has length η in every coordinate
    array([0.5, 0.5])
    """

    delta: float = field(default=1e-10, metadata=POSITIVE)

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""
        r = state.r + g * g
        return x - rate * g / (self.delta + np.sqrt(r)), state._replace(t=state.t + 1, r=r)


@dataclass(frozen=True)
class RMSprop(_AtThePoint):
    """RMSprop: Adagrad with a mean of squared gradients that forgets.

    Parameters
    ----------
    rho : float, default=0.9
        ρ in [0, 1), the share of the past.
    delta : float, default=1e-8
        δ > 0.

    Examples
    --------
    >>> from learnable.solvers import RMSprop, minimize
    >>> minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method=RMSprop(rho=0.75), step=0.1, max_iter=1).x.round(6)
    array([0.8])
    """

    rho: float = field(default=0.9, metadata=FROM_ZERO)
    delta: float = field(default=1e-8, metadata=POSITIVE)

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""
        r = self.rho * state.r + (1.0 - self.rho) * g * g
        return x - rate * g / (self.delta + np.sqrt(r)), state._replace(t=state.t + 1, r=r)


@dataclass(frozen=True)
class Adam(_AtThePoint):
    """Adam: means of gradients and of their squares, both corrected for their start at zero.

    Parameters
    ----------
    rho1 : float, default=0.9
        ρ₁ in [0, 1), the share of the past in the mean gradient.
    rho2 : float, default=0.999
        ρ₂ in [0, 1), the same for the squares.
    delta : float, default=1e-8
        δ > 0.

    Examples
    --------
    >>> from learnable.solvers import Adam, minimize
    >>> minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method=Adam(), step=0.1, max_iter=1).x.round(6)
    array([0.9])
    """

    rho1: float = field(default=0.9, metadata=FROM_ZERO)
    rho2: float = field(default=0.999, metadata=FROM_ZERO)
    delta: float = field(default=1e-8, metadata=POSITIVE)

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""
        t = state.t + 1
        v = self.rho1 * state.v + (1.0 - self.rho1) * g
        r = self.rho2 * state.r + (1.0 - self.rho2) * g * g
        v_hat, r_hat = v / (1.0 - self.rho1**t), r / (1.0 - self.rho2**t)
        return x - rate * v_hat / (self.delta + np.sqrt(r_hat)), State(t, v, r)


def descend(
    objective: Objective,
    x0: Array,
    update: Update,
    step: StepRule,
    *,
    recorder: Recorder,
    clip: Clip | None = None,
    batches: Batches | None = None,
    generator: np.random.Generator | None = None,
    average: bool = False,
    leap: Leap | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Solution:
    """Run a first-order method, on the whole function or on mini-batches.

    An iteration is one update, or with batches one epoch; after each the whole function is evaluated for the trace and
    the stop. The point returned is the last one if it reached `tol`, else the one with the lowest value or, with
    `average`, the mean of all iterates. A problem that can make all updates of an epoch at once says so by `leap`.
    """
    x, now = x0, objective.evaluate(x0)
    best = reached = (x, now)
    stepper, state = step.begin(), State(0, np.zeros_like(x0), np.zeros_like(x0))
    line_search = isinstance(update, GradientDescent) and batches is None
    random = np.random.default_rng(0) if generator is None else generator
    stop, n_iter, rate = recorder.add(x, now, 0.0), 0, 0.0
    while not stop and now.measure > tol and n_iter < max_iter:
        before = x
        if leap is not None and batches is not None:
            x, mean, rate = leap(x, state.t, random)
            recorder.average(mean, batches.per_epoch)
            state = state._replace(t=state.t + batches.per_epoch)
        for rows in _steps(batches, random) if leap is None else ():
            at = update.look(x, state)
            g = now.gradient if at is x and is_whole(rows) else objective.gradient(at, rows)
            g = g if clip is None else clip(g)
            along = _along(objective, x, g) if line_search else None
            rate = stepper(Now(state.t, g, now.value, n_iter, along))
            if rate == 0.0:
                break
            recorder.average(x)
            with np.errstate(over="ignore", invalid="ignore"):
                x, state = update.move(x, state, g, rate)
        if np.array_equal(x, before) or not np.isfinite(x).all():
            break  # lost in rounding, or diverged
        now = objective.evaluate(x)
        if not (np.isfinite(now.value) and np.isfinite(now.gradient).all()):
            break
        n_iter, reached = n_iter + 1, (x, now)
        if now.value < best[1].value:
            best = reached
        stop = recorder.add(x, now, rate)
    x, now = reached if (arrived := reached[1].measure <= tol) else best
    if average and not arrived and n_iter and np.isfinite(mean := recorder.trace(x).mean).all():
        x, now = mean, objective.evaluate(mean)
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def _steps(batches: Batches | None, random: np.random.Generator) -> Iterator[Rows]:
    """Yield the rows of every update of one iteration."""
    return iter((ALL_ROWS,)) if batches is None else batches.epoch(random)


def _along(objective: Objective, x: Array, g: Array) -> Callable[[float], float]:
    return lambda rate: objective.value(x - rate * g)
