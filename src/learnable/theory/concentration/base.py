"""What every inequality can say: how likely a deviation is, how far it goes at a level, how many rows it takes.

    tail(t)                   P(deviation ≥ t), bounded
    radius(delta)             the t at which that bound is δ
    sample_size(eps, delta)   the smallest n with radius(δ) ≤ ε

The deviation is that of the mean of n values from its expectation, upwards (`sides=1`) or either way (`sides=2`: twice
the bound), unless the class says otherwise. An inequality made of an observed sample (`EmpiricalBernstein`, `KLBound`,
`ClopperPearson`, `Betting`) speaks of the distance from the observed mean up to the true one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ...core import DataError, Number, ParameterError, check_parameters

Array = NDArray[np.float64]

LEVEL = Number(low=0.0, high=1.0, low_open=True, high_open=True)
POSITIVE = Number(low=0.0, low_open=True)
COUNT = Number(low=1, integer=True)
#: A test of an assumption speaks up below this p-value: one false alarm in a thousand samples.
ALARM = 1e-3
#: Beyond this many rows no sample size is given.
MOST_ROWS = 10**15


class Check(NamedTuple):
    """One assumption, held against data."""

    assumption: str  #: in words
    holds: bool | None  #: None where data cannot tell
    detail: str  #: what was seen


@dataclass(frozen=True)
class Inequality:
    """Base of every inequality; not to be used directly.

    Attributes
    ----------
    n : int
        Number of values.
    sides : {1, 2}
        Whether deviations upwards count, or deviations either way.
    """

    n: int
    sides: Literal[1, 2] = 1

    name: ClassVar[str]
    statement: ClassVar[str]
    source: ClassVar[str]
    assumptions: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_parameters(owner, {"n": self.n}, {"n": COUNT})
        if self.sides not in (1, 2):
            raise ParameterError(f"{owner}: sides must be 1 or 2; got {self.sides!r}.")
        self._check_fields(owner)

    def tail(self, t: float) -> float:
        """Return the bound on the probability of a deviation of at least t."""
        check_parameters(self.name, {"t": t}, {"t": Number(finite=False)})
        if t <= 0.0:
            return 1.0
        return min(1.0, self.sides * self._one_sided(float(t)))

    def radius(self, delta: float) -> float:
        """Return the deviation whose bound is δ: it is exceeded with probability at most δ."""
        check_parameters(self.name, {"delta": delta}, {"delta": LEVEL})
        return self._radius(delta / self.sides)

    def sample_size(self, eps: float, delta: float) -> int:
        """Return the smallest n at which a deviation of ε has probability at most δ, all else equal."""
        check_parameters(self.name, {"eps": eps, "delta": delta}, {"eps": POSITIVE, "delta": LEVEL})
        if self._at(MOST_ROWS).radius(delta) > eps:
            raise ParameterError(f"{self.name}: no sample size gives eps={eps:g} at delta={delta:g}; raise one.")
        low = 0
        high = 1
        while self._at(high).radius(delta) > eps:
            low = high
            high = 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._at(middle).radius(delta) > eps else (low, middle)
        return high

    def check(self, sample: Any) -> tuple[Check, ...]:
        """Hold the assumptions against a sample, in the order in which it was drawn."""
        x = finite_sample(self.name, sample)
        return (check_order(x), *self._check_sample(x))

    def _at(self, n: int) -> Inequality:
        return replace(self, n=n)

    def _check_fields(self, owner: str) -> None:
        """Raise ParameterError for fields out of range."""

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        return ()

    def _one_sided(self, t: float) -> float:
        raise TypeError(f"{type(self).__name__} does not define _one_sided")

    def _radius(self, delta: float) -> float:
        raise TypeError(f"{type(self).__name__} does not define _radius")


def finite_sample(owner: str, sample: Any, what: str = "the sample") -> Array:
    """Return the sample as finite numbers in one dimension."""
    try:
        x = np.asarray(sample, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: {what} must be numbers; {error}.") from error
    if x.ndim != 1 or len(x) == 0:
        raise DataError(f"{owner}: {what} must be one or more numbers in one dimension; got shape {x.shape}.")
    if not np.isfinite(x).all():
        place = int(np.argmax(~np.isfinite(x)))
        raise DataError(f"{owner}: value {place} of {what} is {x[place]}; leave it out, or find out why.")
    return x


def check_range(x: Array, low: float, high: float) -> Check:
    """Tell whether the values stay in [low, high]; that they always will, no sample shows."""
    inside = bool(x.min() >= low and x.max() <= high)
    seen = f"values from {x.min():.6g} to {x.max():.6g}"
    return Check(f"every value lies in [{low:g}, {high:g}]", None if inside else False, seen)


def check_order(x: Array) -> Check:
    """Look for a trend and for dependence between neighbours in the order of the sample, by ranks.

    Both statistics are normal in the limit for exchangeable values; with fewer than 20 values nothing is tested.
    """
    assumption = "values are independent and identically distributed"
    n = len(x)
    if n < 20 or bool((x == x[0]).all()):
        return Check(assumption, None, "too few different values to tell")
    ranks = _centred_ranks(x)
    time = np.arange(n) - (n - 1) / 2.0
    scale = float(ranks @ ranks)
    trend = float(ranks @ time) / math.sqrt(scale * float(time @ time)) * math.sqrt(n - 1)
    neighbours = (float(ranks[1:] @ ranks[:-1]) / scale + 1.0 / n) * math.sqrt(n)
    worst = max(abs(trend), abs(neighbours))
    p_value = min(1.0, 4.0 * float(ndtr(-worst)))
    what = "trend" if abs(trend) >= abs(neighbours) else "correlation of neighbours"
    detail = f"{what}: z = {trend if what == 'trend' else neighbours:.2f}, p = {p_value:.2g}"
    if p_value < ALARM:
        return Check(assumption, False, f"{detail}; if the order means nothing, as in a sorted table, shuffle the rows")
    return Check(assumption, None, detail)


def _centred_ranks(x: Array) -> Array:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle = last - (counts - 1) / 2.0
    ranks: Array = middle[inverse] - (len(x) + 1) / 2.0
    return ranks
