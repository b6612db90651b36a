"""Inequalities that use the variance: Bennett, Bernstein, and Bernstein's with the variance of the sample.

For values with X − μ ≤ b and variance at most σ²,

    Bennett     exp(−(nσ²/b²) h(bt/σ²)),  h(u) = (1 + u) ln(1 + u) − u
    Bernstein   exp(−nt²/(2σ² + 2bt/3)),  the weaker by h(u) ≥ u²/(2 + 2u/3)

With the variance V of the sample in place of σ² (Maurer and Pontil, theorem 4; values in an interval of length b − a)

    μ ≤ X̄ + √(2V ln(2/δ)/n) + 7(b − a) ln(2/δ)/(3(n − 1))       with probability at least 1 − δ.

The 2 pays for a second event, that √V is not far below σ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from scipy.optimize import brentq

from ...core import DataError, Number, check_parameters
from .base import Array, Check, Inequality, check_range, finite_sample
from .bounded import check_ends
from .moments import check_variance

_POSITIVE = Number(low=0.0, low_open=True)


@dataclass(frozen=True)
class _OfVariance(Inequality):
    variance: float = 0.25  #: σ²
    bound: float = 1.0  #: b: no value exceeds its mean by more

    def _check_fields(self, owner: str) -> None:
        given = {"variance": self.variance, "bound": self.bound}
        check_parameters(owner, given, {"variance": _POSITIVE, "bound": _POSITIVE})

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        above = float(x.max() - x.mean())
        seen = f"the largest value is {above:.6g} above the sample's mean"
        # The mean of the sample is itself off by a few standard errors.
        slack = 4.0 * math.sqrt(self.variance / len(x))
        largest = Check(f"X − μ ≤ {self.bound:g}", False if above > self.bound + slack else None, seen)
        return (check_variance(x, self.variance), largest)


@dataclass(frozen=True)
class Bennett(_OfVariance):
    """Bennett's inequality: P(X̄ − μ ≥ t) ≤ exp(−(nσ²/b²) h(bt/σ²)).

    Examples
    --------
    >>> from learnable.theory.concentration import Bennett, Bernstein
    >>> round(Bennett(100, variance=0.09).tail(0.1), 5), round(Bernstein(100, variance=0.09).tail(0.1), 5)
    (0.01504, 0.01735)
    """

    name: ClassVar[str] = "Bennett"
    statement: ClassVar[str] = "P(X̄ − μ ≥ t) ≤ exp(−(nσ²/b²) h(bt/σ²)), h(u) = (1 + u) ln(1 + u) − u"
    source: ClassVar[str] = "G. Bennett, JASA 57, 1962"
    assumptions: ClassVar[tuple[str, ...]] = ("values are independent", "X − μ ≤ b", "their variance is at most σ²")

    def _one_sided(self, t: float) -> float:
        u = self.bound * t / self.variance
        return math.exp(-self.n * self.variance / self.bound**2 * ((1.0 + u) * math.log1p(u) - u))

    def _radius(self, delta: float) -> float:
        goal = -math.log(delta) * self.bound**2 / (self.n * self.variance)
        high = goal / 3.0 + math.sqrt((goal / 3.0) ** 2 + 2.0 * goal)  # Bernstein's u, which is never smaller
        u = brentq(lambda u: (1.0 + u) * math.log1p(u) - u - goal, 0.0, high * (1.0 + 1e-9), xtol=1e-15, rtol=1e-14)
        return float(u) * self.variance / self.bound


@dataclass(frozen=True)
class Bernstein(_OfVariance):
    """Bernstein's inequality: P(X̄ − μ ≥ t) ≤ exp(−nt²/(2σ² + 2bt/3)).

    Examples
    --------
    >>> from learnable.theory.concentration import Bernstein, Hoeffding
    >>> Bernstein(1, variance=0.01).sample_size(0.01, 0.05), Hoeffding(1).sample_size(0.01, 0.05)
    (799, 14979)
    """

    name: ClassVar[str] = "Bernstein"
    statement: ClassVar[str] = "P(X̄ − μ ≥ t) ≤ exp(−nt²/(2σ² + 2bt/3))"
    source: ClassVar[str] = "S. Bernstein, 1924; Boucheron, Lugosi and Massart, Concentration Inequalities, 2013, §2.8"
    assumptions: ClassVar[tuple[str, ...]] = ("values are independent", "X − μ ≤ b", "their variance is at most σ²")

    def _one_sided(self, t: float) -> float:
        return math.exp(-self.n * t**2 / (2.0 * self.variance + 2.0 * self.bound * t / 3.0))

    def _radius(self, delta: float) -> float:
        u = -math.log(delta) / self.n
        half = self.bound * u / 3.0
        return half + math.sqrt(half**2 + 2.0 * self.variance * u)


@dataclass(frozen=True)
class EmpiricalBernstein(Inequality):
    """Bernstein's inequality with the variance of the sample (Maurer and Pontil).

    Examples
    --------
    >>> from learnable.theory.concentration import EmpiricalBernstein
    >>> inequality = EmpiricalBernstein.of([1.0] * 10 + [0.0] * 90)
    >>> round(0.1 + inequality.radius(0.05), 6)
    0.26884
    """

    n: int = 2
    sides: Literal[1, 2] = 1
    variance: float = 0.25  #: V, the unbiased variance of the sample
    low: float = 0.0  #: a
    high: float = 1.0  #: b

    name: ClassVar[str] = "empirical Bernstein"
    statement: ClassVar[str] = "μ ≤ X̄ + √(2V ln(2/δ)/n) + 7(b − a) ln(2/δ)/(3(n − 1)) with probability ≥ 1 − δ"
    source: ClassVar[str] = "A. Maurer and M. Pontil, COLT 2009, theorem 4"
    assumptions: ClassVar[tuple[str, ...]] = ("values are independent, of one distribution", "they lie in [a, b]")

    @classmethod
    def of(cls, sample: Any, low: float = 0.0, high: float = 1.0, sides: Literal[1, 2] = 1) -> EmpiricalBernstein:
        """Return the inequality of a sample."""
        x = finite_sample(cls.name, sample)
        if x.min() < low or x.max() > high:
            raise DataError(f"{cls.name}: values run from {x.min():g} to {x.max():g}, outside [{low:g}, {high:g}].")
        return cls(len(x), sides, float(x.var(ddof=1)) if len(x) > 1 else 0.0, low, high)

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"variance": self.variance}, {"variance": Number(low=0.0)})
        check_ends(owner, self.low, self.high)

    def _one_sided(self, t: float) -> float:
        if self.n < 2:
            return 1.0
        root = math.sqrt(2.0 * self.variance / self.n)
        slope = 7.0 * (self.high - self.low) / (3.0 * (self.n - 1))
        # t = root √L + slope L, solved for √L
        log_term = ((math.sqrt(root**2 + 4.0 * slope * t) - root) / (2.0 * slope)) ** 2
        return 2.0 * math.exp(-log_term)

    def _radius(self, delta: float) -> float:
        if self.n < 2:
            return math.inf
        log_term = math.log(2.0 / delta)
        share = 7.0 * (self.high - self.low) * log_term / (3.0 * (self.n - 1))
        return math.sqrt(2.0 * self.variance * log_term / self.n) + share

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        return (check_range(x, self.low, self.high),)
