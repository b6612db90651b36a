r"""Confidence intervals of a mean by betting against it (Waudby-Smith and Ramdas).

If the mean of values in [0, 1] is m, a gambler who bets the share λᵢ, chosen before Xᵢ is seen, on "Xᵢ is above m" has
the capital ∏ (1 + λᵢ(Xᵢ − m)), a martingale that starts at 1; by Ville's inequality it ever reaches 1/α with
probability at most α. Every m against which a gambler would have grown that rich, at any time, is therefore refuted:

    keep m while max(½ ∏ (1 + λᵢ(Xᵢ − m)), ½ ∏ (1 − λᵢ(Xᵢ − m))) < 1/α

with λᵢ = √(2 ln(2/α)/(n σ̂²ᵢ₋₁)), capped at ½/m and ½/(1 − m), and σ̂² the running variance. For a sequence that may be
stopped at any time, n is replaced by i ln(i + 1). The upper bound at one-sided δ uses the second gambler alone.

The capital against m grows with m on one side and falls on the other, so that what is kept is an interval and bisection
finds its ends. The order of the values matters to the interval, not to its validity.

Reference: I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting, JRSS B 86, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ...core import DataError, ParameterError, check_parameters
from .base import COUNT, LEVEL, Array, Check, Inequality, check_range, finite_sample

#: A bet is at most this share of what would ruin the gambler.
_CAP = 0.5
_BISECTIONS = 50


class BettingInterval(NamedTuple):
    """What betting leaves of [0, 1], or of the range given."""

    low: float  #: lower end
    high: float  #: upper end


def betting_interval(
    sample: Any, delta: float = 0.05, low: float = 0.0, high: float = 1.0, sides: Literal[1, 2] = 2
) -> BettingInterval:
    """Return the interval of the mean that betting does not refute.

    Parameters
    ----------
    sample : array of shape (n,)
        Independent values in [low, high].
    delta : float
        The interval misses the mean with at most this probability.
    low, high : float
        The range that no value can leave, known beforehand.
    sides : {1, 2}
        With 1, an upper bound alone: the lower end is `low`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.concentration import betting_interval
    >>> found = betting_interval(np.random.default_rng(0).beta(1, 9, 500), 0.05)
    >>> round(found.low, 4), round(found.high, 4)
    (0.0905, 0.1152)
    """
    x = _scaled("betting_interval", sample, delta, low, high)
    bets = _bets(x, delta / sides)
    threshold = math.log(sides / delta)
    top = _largest_kept(x, bets, threshold)
    bottom = 1.0 - _largest_kept(1.0 - x, bets, threshold) if sides == 2 else 0.0
    return BettingInterval(low + (high - low) * bottom, low + (high - low) * max(top, bottom))


def betting_sequence(
    sample: Any, delta: float = 0.05, low: float = 0.0, high: float = 1.0, times: Any = None
) -> tuple[Array, Array, Array]:
    """Return intervals of the mean that hold at all times together, however the time to stop is chosen.

    Parameters
    ----------
    sample : array of shape (n,)
        Independent values, in the order in which they came.
    delta : float
        Probability that an interval, at any time, misses the mean.
    low, high : float
        The range that no value can leave.
    times : array of int, optional
        After how many values to report; about 50 of them by default.

    Returns
    -------
    times, lows, highs : arrays
        Intervals are nested: what was refuted stays refuted.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.concentration import betting_sequence
    >>> times, lows, highs = betting_sequence(np.random.default_rng(0).beta(1, 9, 500))
    >>> bool((np.diff(lows) >= 0).all() and (np.diff(highs) <= 0).all())
    True
    """
    x = _scaled("betting_sequence", sample, delta, low, high)
    n = len(x)
    if times is None:
        times = np.unique(np.linspace(1, n, min(n, 50)).astype(np.int64))
    stops = np.asarray(times, dtype=np.int64)
    if stops.ndim != 1 or len(stops) == 0 or stops.min() < 1 or stops.max() > n or bool((np.diff(stops) <= 0).any()):
        raise ParameterError(f"betting_sequence: times must be increasing integers from 1 to {n}; got {times!r}.")
    index = np.arange(1, n + 1)
    bets = np.sqrt(2.0 * math.log(2.0 / delta) / (_variances_before(x) * index * np.log(index + 1.0)))
    threshold = math.log(2.0 / delta)
    tops = np.array([_largest_kept(x[:stop], bets[:stop], threshold) for stop in stops])
    bottoms = 1.0 - np.array([_largest_kept(1.0 - x[:stop], bets[:stop], threshold) for stop in stops])
    tops = np.minimum.accumulate(tops)
    bottoms = np.maximum.accumulate(bottoms)
    return stops.astype(np.float64), low + (high - low) * bottoms, low + (high - low) * tops


@dataclass(frozen=True)
class Betting(Inequality):
    """The upper bound of a mean by betting, as an inequality: `tail(t)` is 1 over the capital won against X̄ + t.

    The bets are tuned for `level`; the bound holds at every δ. `sample_size` repeats the sample as often as needed.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.concentration import Betting, EmpiricalBernstein
    >>> x = np.random.default_rng(0).beta(1, 9, 500)
    >>> round(Betting.of(x).radius(0.05), 4), round(EmpiricalBernstein.of(x).radius(0.05), 4)
    (0.0129, 0.0281)
    """

    sample: tuple[float, ...] = ()  #: the values, in their order
    level: float = 0.05  #: the δ that the bets are tuned for

    name: ClassVar[str] = "betting"
    statement: ClassVar[str] = "μ ≤ sup{m: ∏ (1 − λᵢ(Xᵢ − m)) < 1/δ} with probability ≥ 1 − δ"
    source: ClassVar[str] = "I. Waudby-Smith and A. Ramdas, JRSS B 86, 2024"
    assumptions: ClassVar[tuple[str, ...]] = ("E[Xᵢ | past] = μ", "values lie in [0, 1]")

    @classmethod
    def of(cls, sample: Any, level: float = 0.05) -> Betting:
        """Return the inequality of a sample in [0, 1]."""
        x = _scaled(cls.name, sample, level, 0.0, 1.0)
        return cls(len(x), 1, tuple(x.tolist()), level)

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"level": self.level, "n": self.n}, {"level": LEVEL, "n": COUNT})
        if self.sides != 1 or not self.sample:
            raise ParameterError(f"{owner}: it bounds a mean from above, of one or more values; use betting_interval.")

    def _values(self) -> tuple[Array, Array]:
        x = np.resize(np.array(self.sample), self.n)
        return x, _bets(x, self.level)

    def _one_sided(self, t: float) -> float:
        x, bets = self._values()
        m = float(np.mean(self.sample)) + t
        return math.exp(-max(0.0, float(_log_capital(x, bets, m)))) if m < 1.0 else 0.0

    def _radius(self, delta: float) -> float:
        x, bets = self._values()
        return max(0.0, _largest_kept(x, bets, -math.log(delta)) - float(np.mean(self.sample)))

    def sample_size(self, eps: float, delta: float) -> int:
        """Return how many rows it takes if further rows repeat the sample."""
        radius = self.radius(delta)
        n = self.n
        while radius > eps and n < 10**7:
            n *= 2
            radius = self._at(n).radius(delta)
        if radius > eps:
            raise ParameterError(f"{self.name}: more than ten million rows are needed for eps={eps:g}.")
        low, high = (0, n) if n == self.n else (n // 2, n)
        while high - low > max(1, high // 1000):
            middle = (low + high) // 2
            low, high = (middle, high) if self._at(middle).radius(delta) > eps else (low, middle)
        return high

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        return (check_range(x, 0.0, 1.0),)


def _scaled(owner: str, sample: Any, delta: float, low: float, high: float) -> Array:
    check_parameters(owner, {"delta": delta}, {"delta": LEVEL})
    if not low < high:
        raise ParameterError(f"{owner}: low must be below high; got {low:g} and {high:g}.")
    x = finite_sample(owner, sample)
    if x.min() < low or x.max() > high:
        raise DataError(f"{owner}: values run from {x.min():g} to {x.max():g}, outside [{low:g}, {high:g}].")
    scaled: Array = (x - low) / (high - low)
    return scaled


def _variances_before(x: Array) -> Array:
    """Return σ̂²ᵢ₋₁ for i = 1 … n: the running variance before the i-th value, started at ¼ by one value of mean ½."""
    index = np.arange(1, len(x) + 1)
    means = (0.5 + np.cumsum(x)) / (index + 1.0)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (index + 1.0)
    before: Array = np.r_[0.25, variances[:-1]]
    return before


def _bets(x: Array, delta: float) -> Array:
    bets: Array = np.sqrt(2.0 * math.log(1.0 / delta) / (len(x) * _variances_before(x)))
    return bets


def _log_capital(x: Array, bets: Array, m: float) -> float:
    """Return the largest log capital, over all times, of the gambler who bets that the mean is below m."""
    capped = np.minimum(bets, _CAP / max(1.0 - m, 1e-300))
    return float(np.cumsum(np.log1p(capped * (m - x))).max())


def _largest_kept(x: Array, bets: Array, threshold: float) -> float:
    """Return the largest mean in [0, 1] against which the capital stays below exp(threshold)."""
    if _log_capital(x, bets, 1.0) < threshold:
        return 1.0
    low = 0.0
    high = 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if _log_capital(x, bets, middle) >= threshold else (middle, high)
    return high
