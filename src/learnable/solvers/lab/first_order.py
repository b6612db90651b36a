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

Gradient clipping: what keeps a step finite at a cliff.

- `Rescale(c)`: g ← g · min(1, c/‖g‖₂). The direction stays, the length is at most c.
- `Truncate(c)`: gⱼ ← min(c, max(−c, gⱼ)). Every component is at most c; the direction may change.

A gradient that overflowed has no direction left: both raise nothing and leave NaN as it is; `Truncate` maps infinities
to ±c, and `Rescale` keeps the infinite components only, as the limit of ever larger ones.

Mini-batches: every epoch the rows are shuffled and cut into exactly ⌊n/b⌋ batches of b rows.

The n − b⌊n/b⌋ < b rows that are left over sit out this epoch; the next shuffle gives them another chance. Inside a
batch the rows stand in their natural order: a mean does not depend on it, and the memory is read forwards. One batch
of all n rows is therefore the whole function, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import Array, NDArray, Nothing, Number, ParameterError
from ..problem import Solution
from .objective import ALL_ROWS, Objective, Recorder, is_whole
from .steps import FROM_ZERO, POSITIVE, Checked, Now, StepRule


class State(NamedTuple):
    """What an update remembers."""

    t: int  #: updates made
    v: Array  #: velocity, or mean gradient
    r: Array  #: sum or mean of squared gradients


class Update(Protocol):
    """One first-order method."""

    def look(self, x: Array, state: State) -> Array:
        """Return where the gradient is to be taken."""

    def move(self, x: Array, state: State, g: Array, rate: float) -> tuple[Array, State]:
        """Return the next point and state."""


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
        v_hat = v / (1.0 - self.rho1**t)
        r_hat = r / (1.0 - self.rho2**t)
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
    x = x0
    now = objective.evaluate(x0)
    best = reached = (x, now)
    stepper = step.begin()
    state = State(0, np.zeros_like(x0), np.zeros_like(x0))
    line_search = isinstance(update, GradientDescent) and batches is None
    random = np.random.default_rng(0) if generator is None else generator
    stop = recorder.add(x, now, 0.0)
    n_iter = 0
    rate = 0.0
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
        n_iter = n_iter + 1
        reached = (x, now)
        if now.value < best[1].value:
            best = reached
        stop = recorder.add(x, now, rate)
    x, now = reached if (arrived := reached[1].measure <= tol) else best
    if average and not arrived and n_iter and np.isfinite(mean := recorder.trace(x).mean).all():
        x = mean
        now = objective.evaluate(mean)
    return Solution(x, now.value, now.gradient, now.measure, n_iter, now.measure <= tol)


def _steps(batches: Batches | None, random: np.random.Generator) -> Iterator[Rows]:
    """Yield the rows of every update of one iteration."""
    return iter((ALL_ROWS,)) if batches is None else batches.epoch(random)


def _along(objective: Objective, x: Array, g: Array) -> Callable[[float], float]:
    return lambda rate: objective.value(x - rate * g)


class Clip(Protocol):
    """A map of gradients."""

    def __call__(self, gradient: Array) -> Array:
        """Return the clipped gradient, a new array."""


@dataclass(frozen=True)
class Rescale(Checked):
    """Shorten a gradient to a given length: g · min(1, c/‖g‖₂).

    Parameters
    ----------
    threshold : float
        c > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import Rescale
    >>> Rescale(1.0)(np.array([30.0, 40.0])), Rescale(1.0)(np.array([0.3, 0.4]))
    (array([0.6, 0.8]), array([0.3, 0.4]))
    """

    threshold: float = field(metadata=POSITIVE)

    def __call__(self, gradient: Array) -> Array:
        """Return the rescaled gradient."""
        infinite = np.isinf(gradient)
        if infinite.any():
            gradient = np.where(infinite, np.sign(gradient), np.where(np.isnan(gradient), np.nan, 0.0))
            return np.asarray(gradient * (self.threshold / np.linalg.norm(gradient)))
        largest = float(np.abs(gradient).max(initial=0.0))
        if not largest > 0:
            return gradient.copy()
        norm = largest * float(np.linalg.norm(gradient / largest))  # squares of large numbers would overflow
        return gradient.copy() if norm <= self.threshold else gradient * (self.threshold / norm)


@dataclass(frozen=True)
class Truncate(Checked):
    """Cut every component of a gradient off at ±c.

    Parameters
    ----------
    threshold : float
        c > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import Truncate
    >>> Truncate(1.0)(np.array([30.0, -0.5, -40.0]))
    array([ 1. , -0.5, -1. ])
    """

    threshold: float = field(metadata=POSITIVE)

    def __call__(self, gradient: Array) -> Array:
        """Return the truncated gradient."""
        return np.asarray(np.clip(gradient, -self.threshold, self.threshold))


Rows = NDArray[np.intp] | slice


@dataclass(frozen=True)
class Batches:
    """How the rows of an epoch are cut.

    Parameters
    ----------
    n_rows : int
        n.
    batch_size : int
        b, from 1 to n.
    shuffle : bool, default=True
        Whether each epoch has a new random order; otherwise the batches are consecutive rows, always the same.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.solvers import Batches
    >>> batches = Batches(n_rows=7, batch_size=3)
    >>> batches.per_epoch, [len(rows) for rows in batches.epoch(np.random.default_rng(0))]
    (2, [3, 3])
    """

    n_rows: int
    batch_size: int
    shuffle: bool = True

    def __post_init__(self) -> None:
        for name, high in (("n_rows", np.inf), ("batch_size", getattr(self, "n_rows", np.inf))):
            value = getattr(self, name)
            if not Number(low=1, integer=True).allows(value) or value > high:
                limit = f" and at most n_rows = {high}" if np.isfinite(high) else ""
                raise ParameterError(f"Batches: {name} must be an integer >= 1{limit}; got {value!r}.")

    @property
    def per_epoch(self) -> int:
        """⌊n/b⌋."""
        return self.n_rows // self.batch_size

    def epoch(self, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield the rows of each batch of one epoch, as something that arrays can be indexed with."""
        b = self.batch_size
        if b == self.n_rows:
            yield slice(None)
        elif self.shuffle:
            yield from self.row_numbers(generator)
        else:
            yield from (slice(start, start + b) for start in range(0, b * self.per_epoch, b))

    def row_numbers(self, generator: np.random.Generator) -> NDArray[np.int64]:
        """Return the same batches of one epoch as an array (⌊n/b⌋, b) of row numbers."""
        order = generator.permutation(self.n_rows) if self.shuffle else np.arange(self.n_rows)
        return np.sort(order[: self.batch_size * self.per_epoch].reshape(-1, self.batch_size), axis=1)


def generator_of(owner: str, random_state: Any) -> np.random.Generator:
    """Return a generator; the same integer gives the same batches."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None or Number(low=0, integer=True).allows(random_state):
        return np.random.default_rng(random_state)
    raise ParameterError(f"{owner}: random_state must be None, an integer >= 0 or a generator; got {random_state!r}.")
