r"""Step rules: how far a first-order method goes, as small immutable objects.

| rule                 | ηₜ, t = 0, 1, …                                                        |
|----------------------|------------------------------------------------------------------------|
| `Constant`           | η                                                                      |
| `InverseDecay`       | η/(1 + λt)                                                             |
| `ExponentialDecay`   | η e^(−λt)                                                              |
| `InverseRoot`        | η/√(t + 1)                                                             |
| `NormalisedGradient` | η/(ε + ‖g‖)                                                            |
| `Plateau`            | η, times a factor whenever the function has not fallen for some time   |
| `Backtracking`       | the first of η, ηβ, ηβ² … that lowers the function enough (Armijo)     |
| `CosineDecay`        | half a cosine from η to a floor, within a given number of steps        |
| `OneCycle`           | half a cosine up to η, then another one down to almost nothing         |

t counts updates: with mini-batches, batches. `Plateau` counts what the trace records: iterations, or epochs.

A rule holds numbers only. `begin()` gives the function that one run asks for its steps; what a run has to remember
lives there, so that one rule serves many runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Protocol

import numpy as np

from ...core import Array, Number, ParameterError, Rule

_DROWNED = 1e-10  # decrease, relative to f, of which rounding leaves too few digits
_MOST_TRIALS = 60  # halvings: from 1 to the rounding of float64


class Now(NamedTuple):
    """What a rule may look at."""

    t: int  #: updates made so far
    gradient: Array  #: (p,), of the whole function or of a batch, after clipping
    value: float  #: the last recorded value of the whole function
    epoch: int  #: how many times it was recorded before
    along: Callable[[float], float] | None  #: η ↦ f(x − ηg), where a line search is possible


#: η for the moment; 0 means that no step lowers the function any more.
Stepper = Callable[[Now], float]


class StepRule(Protocol):
    """A rule that can serve any number of runs."""

    def begin(self) -> Stepper:
        """Return the steps of one run."""


class Checked:
    """Refuses numbers out of range when a rule is built."""

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            rule: Rule | None = item.metadata.get("rule")
            value = getattr(self, item.name)
            if rule is not None and not rule.allows(value):
                raise ParameterError(f"{type(self).__name__}: {item.name} must be {rule.phrase}; got {value!r}.")


POSITIVE = {"rule": Number(low=0.0, low_open=True)}
FRACTION = {"rule": Number(low=0.0, high=1.0, low_open=True, high_open=True)}
FROM_ZERO = {"rule": Number(low=0.0, high=1.0, high_open=True)}
_NOT_NEGATIVE = {"rule": Number(low=0.0)}
_COUNT = {"rule": Number(low=1, integer=True)}


@dataclass(frozen=True)
class Constant(Checked):
    """The same step always: η. On a function whose gradient is L-Lipschitz, gradient descent falls for η < 2/L.

    Parameters
    ----------
    rate : float
        η > 0.

    Examples
    --------
    >>> from learnable.solvers import Constant, minimize
    >>> minimize(lambda x: x @ x, [1.0], lambda x: 2 * x, method="gd", step=Constant(0.5)).n_iter
    1
    """

    rate: float = field(metadata=POSITIVE)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        return lambda now: self.rate


@dataclass(frozen=True)
class InverseDecay(Checked):
    """η/(1 + λt): the steps sum to infinity and their squares do not, as stochastic gradients need.

    Parameters
    ----------
    rate : float
        η > 0, the first step.
    decay : float
        λ >= 0.

    Examples
    --------
    >>> from learnable.solvers import InverseDecay, rates
    >>> rates(InverseDecay(rate=1.0, decay=0.5), 3).round(3)
    array([1.   , 0.667, 0.5  ])
    """

    rate: float = field(metadata=POSITIVE)
    decay: float = field(metadata=_NOT_NEGATIVE)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        return lambda now: self.rate / (1.0 + self.decay * now.t)


@dataclass(frozen=True)
class ExponentialDecay(Checked):
    """η e^(−λt): the steps have a finite sum η/(1 − e^(−λ)), so that a far start may never arrive.

    Parameters
    ----------
    rate : float
        η > 0, the first step.
    decay : float
        λ >= 0.

    Examples
    --------
    >>> from learnable.solvers import ExponentialDecay, rates
    >>> rates(ExponentialDecay(rate=1.0, decay=0.5), 3).round(3)
    array([1.   , 0.607, 0.368])
    """

    rate: float = field(metadata=POSITIVE)
    decay: float = field(metadata=_NOT_NEGATIVE)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        return lambda now: self.rate * math.exp(-self.decay * now.t)


@dataclass(frozen=True)
class InverseRoot(Checked):
    """η/√(t + 1): the rule of subgradient descent, O(log T/√T) on any convex Lipschitz function.

    Parameters
    ----------
    rate : float
        η > 0, the first step.

    Examples
    --------
    >>> from learnable.solvers import InverseRoot, rates
    >>> rates(InverseRoot(rate=1.0), 4).round(3)
    array([1.   , 0.707, 0.577, 0.5  ])
    """

    rate: float = field(metadata=POSITIVE)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        return lambda now: self.rate / math.sqrt(now.t + 1.0)


@dataclass(frozen=True)
class NormalisedGradient(Checked):
    """η/(ε + ‖g‖): every step has length η, however steep the function is.

    Parameters
    ----------
    rate : float
        η > 0, the length of a step.
    epsilon : float, default=1e-8
        ε > 0, against division by zero.

    Examples
    --------
    >>> from learnable.solvers import NormalisedGradient, minimize
    >>> cliff = minimize(lambda x: 1e9 * x @ x, [1.0], lambda x: 2e9 * x, step=NormalisedGradient(0.25), max_iter=4)
    >>> cliff.trace.path.ravel().round(6).tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    rate: float = field(metadata=POSITIVE)
    epsilon: float = field(default=1e-8, metadata=POSITIVE)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        return lambda now: self.rate / (self.epsilon + float(np.linalg.norm(now.gradient)))


@dataclass(frozen=True)
class Plateau(Checked):
    """η, multiplied by a factor whenever the function has not fallen for `patience` recorded values.

    Parameters
    ----------
    rate : float
        η > 0, the first step.
    factor : float, default=0.5
        What a drop multiplies the step by, in (0, 1).
    patience : int, default=10
        Recorded values without a fall before a drop.
    threshold : float, default=1e-4
        A fall counts if it is more than this share of the best value's size.

    Examples
    --------
    >>> from learnable.solvers import Plateau, rates
    >>> rates(Plateau(rate=1.0, patience=2), 7, values=[3, 2, 2, 2, 2, 2, 1])
    array([1.  , 1.  , 1.  , 0.5 , 0.5 , 0.25, 0.25])
    """

    rate: float = field(metadata=POSITIVE)
    factor: float = field(default=0.5, metadata=FRACTION)
    patience: int = field(default=10, metadata=_COUNT)
    threshold: float = field(default=1e-4, metadata=_NOT_NEGATIVE)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        best = math.inf
        waited = 0
        seen = -1
        rate = self.rate

        def step(now: Now) -> float:
            nonlocal best, waited, seen, rate
            if now.epoch == seen:
                return rate  # another batch of the same epoch: nothing new is known
            seen = now.epoch
            if best == math.inf or now.value < best - self.threshold * abs(best):
                best = now.value
                waited = 0
            else:
                waited += 1
                if waited == self.patience:
                    rate = rate * self.factor
                    waited = 0
            return rate

        return step


@dataclass(frozen=True)
class Backtracking(Checked):
    """The first of η, ηβ, ηβ², … with f(x − ηg) ≤ f(x) − cη‖g‖² (Armijo's rule).

    Each search begins one notch above the last step taken, so that η adapts in both directions.

    Parameters
    ----------
    rate : float, default=1.0
        η > 0, the first step that is tried.
    shrink : float, default=0.5
        β in (0, 1).
    decrease : float, default=0.4
        c in (0, 1). With c <= ½ and an L-smooth function every step is at least β/L; c = ½ would reject the exact
        minimum along the line by a rounding error.

    Examples
    --------
    >>> from learnable.solvers import Backtracking, minimize
    >>> minimize(lambda x: 50 * x @ x, [1.0], lambda x: 100 * x, method="gd", step=Backtracking()).converged
    True
    """

    rate: float = field(default=1.0, metadata=POSITIVE)
    shrink: float = field(default=0.5, metadata=FRACTION)
    decrease: float = field(default=0.4, metadata=FRACTION)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        last = self.rate * self.shrink

        def step(now: Now) -> float:
            nonlocal last
            if now.along is None:
                raise ParameterError(
                    "Backtracking: a line search needs the whole function along −g, which momentum, adaptive and "
                    "mini-batch methods do not follow; use Constant or another rule, or method='gd'."
                )
            rate = last / self.shrink
            slope = float(now.gradient @ now.gradient)
            if last * slope <= _DROWNED * abs(now.value):
                return last  # the decrease drowns in rounding: values cannot judge a step, but the last one was right
            for _ in range(_MOST_TRIALS):
                if now.along(rate) <= now.value - self.decrease * rate * slope:
                    last = rate
                    return rate
                rate *= self.shrink
            return 0.0

        return step


@dataclass(frozen=True)
class CosineDecay(Checked):
    """ηₜ = f + ½(η − f)(1 + cos(πt/T)) for t < T, then f: steps that end when the run does.

    Parameters
    ----------
    rate : float
        η > 0, the first step.
    length : int
        T >= 1, updates until the floor.
    floor : float, default=0.0
        f >= 0, as a share of η.

    Examples
    --------
    >>> from learnable.solvers import CosineDecay, rates
    >>> rates(CosineDecay(rate=1.0, length=4, floor=0.1), 6).round(3)
    array([1.   , 0.868, 0.55 , 0.232, 0.1  , 0.1  ])
    """

    rate: float = field(metadata=POSITIVE)
    length: int = field(metadata=_COUNT)
    floor: float = field(default=0.0, metadata=_NOT_NEGATIVE)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        return lambda now: self.rate * _half_cosine(1.0, self.floor, now.t / self.length)


@dataclass(frozen=True)
class OneCycle(Checked):
    """Half a cosine from η/25 up to η, then one down to η/10⁴: warm up, then cool down.

    Reference: L. Smith and N. Topin, Super-convergence, 2018.

    Parameters
    ----------
    rate : float
        η > 0, the largest step.
    length : int
        Updates of the whole cycle; afterwards the step stays at its end.
    warm : float, default=0.3
        Share of the cycle that goes up, in (0, 1).

    Examples
    --------
    >>> from learnable.solvers import OneCycle, rates
    >>> rates(OneCycle(rate=1.0, length=10), 11)[[0, 1, 2, 3, 5, 10]].round(4).tolist()
    [0.04, 0.28, 0.76, 1.0, 0.8118, 0.0001]
    """

    rate: float = field(metadata=POSITIVE)
    length: int = field(metadata=_COUNT)
    warm: float = field(default=0.3, metadata=FRACTION)

    def begin(self) -> Stepper:
        """Return the steps of one run."""
        top = self.warm * self.length

        def step(now: Now) -> float:
            if now.t < top:
                return self.rate * _half_cosine(1.0 / 25.0, 1.0, now.t / top)
            return self.rate * _half_cosine(1.0, 1e-4, (now.t - top) / (self.length - top))

        return step


def _half_cosine(start: float, end: float, share: float) -> float:
    """Return the value after a share of the way from start to end along half a cosine."""
    return end + 0.5 * (start - end) * (1.0 + math.cos(math.pi * min(share, 1.0)))


def as_rule(owner: str, step: StepRule | float) -> StepRule:
    """Return a rule; a number is a constant step."""
    if hasattr(step, "begin"):
        return step
    if Number(low=0.0, low_open=True).allows(step):
        return Constant(float(step))
    raise ParameterError(f"{owner}: step must be a positive number or a step rule such as Constant(0.1); got {step!r}.")


def rates(rule: StepRule, n: int, *, gradient: Array | None = None, values: Array | list[float] | None = None) -> Array:
    """Return the first n steps of a rule, for a plot of it.

    Parameters
    ----------
    rule : StepRule
        The rule.
    n : int
        How many.
    gradient : (p,) array, optional
        What `NormalisedGradient` sees; of length one by default.
    values : (n,) array, optional
        What `Plateau` sees; by default a function that never falls.

    Examples
    --------
    >>> from learnable.solvers import Constant, rates
    >>> rates(Constant(0.1), 2)
    array([0.1, 0.1])
    """
    step = rule.begin()
    g = np.ones(1) if gradient is None else np.asarray(gradient, dtype=np.float64)
    seen = np.zeros(n) if values is None else np.asarray(values, dtype=np.float64)
    return np.array([step(Now(t, g, float(seen[t]), t, None)) for t in range(n)])
