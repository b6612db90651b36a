"""Inequalities for values in [0, 1] that know how near 0 or 1 the mean is: Chernoff, kl, Clopper and Pearson.

With kl(q‖p) = q ln(q/p) + (1 − q) ln((1 − q)/(1 − p)),

    Chernoff            P(X̄ ≥ p + t) ≤ exp(−n kl(p + t‖p)),  P(X̄ ≤ p − t) ≤ exp(−n kl(p − t‖p))
    its inversion       p ≤ sup{p: kl(q̂‖p) ≤ ln(1/δ)/n}
    Clopper, Pearson    p ≤ sup{p: P(Bin(n, p) ≤ k) ≥ δ} = Beta⁻¹(1 − δ; k + 1, n − k), for values 0 and 1

The last is exact for errors of a classifier: no bound from k alone is smaller for every k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincc, betainccinv, betaincinv, xlogy

from ...core import Number, ParameterError, check_parameters
from .base import LEVEL, Array, Check, Inequality, check_range, finite_sample

_SHARE = Number(low=0.0, high=1.0)
_NON_NEGATIVE = Number(low=0.0, finite=False)


def binary_kl(q: float, p: float) -> float:
    """Return kl(q‖p), the divergence of two coins, in nats.

    Examples
    --------
    >>> from learnable.theory.concentration import binary_kl
    >>> round(binary_kl(0.1, 0.2), 6), binary_kl(0.3, 0.3)
    (0.03669, 0.0)
    """
    check_parameters("binary_kl", {"q": q, "p": p}, {"q": _SHARE, "p": _SHARE})
    return _kl(q, p)


def _kl(q: float, p: float) -> float:
    """Return kl(q‖p) of numbers that were checked."""
    if q == p:
        return 0.0
    if (p == 0.0 and q > 0.0) or (p == 1.0 and q < 1.0):
        return math.inf
    gap = q - p
    if abs(gap) > 0.5 * min(q, 1.0 - q):
        return float(xlogy(q, q / p) + xlogy(1.0 - q, (1.0 - q) / (1.0 - p)))
    # q ln(q/p) = −q ln(1 − (q − p)/q): no cancellation where q and p are close.
    return max(0.0, -q * math.log1p(-gap / q) - (1.0 - q) * math.log1p(gap / (1.0 - q)))


def kl_upper(q: float, bound: float) -> float:
    """Return the largest p with kl(q‖p) ≤ bound.

    Examples
    --------
    >>> import math
    >>> from learnable.theory.concentration import kl_upper
    >>> round(kl_upper(0.1, math.log(1 / 0.05) / 100), 6)
    0.188829
    """
    check_parameters("kl_upper", {"q": q, "bound": bound}, {"q": _SHARE, "bound": _NON_NEGATIVE})
    if q == 1.0 or bound == math.inf:
        return 1.0
    if q == 0.0:
        return -math.expm1(-bound)
    # Pinsker: p − q ≤ √(bound/2), so that the root is bracketed; 1 − p keeps its digits near 1.
    high = min(1.0, q + math.sqrt(bound / 2.0) + 1e-15)
    if high < 1.0 and _kl(q, high) < bound:
        high = 1.0
    if high == 1.0:
        high = 1.0 - 2.0**-53
        if _kl(q, high) <= bound:
            return 1.0
    if _kl(q, high) <= bound:
        return high
    return float(brentq(lambda p: _kl(q, p) - bound, q, high, xtol=1e-16, rtol=1e-14))


def kl_lower(q: float, bound: float) -> float:
    """Return the smallest p with kl(q‖p) ≤ bound."""
    return 1.0 - kl_upper(1.0 - q, bound)


def binomial_upper(errors: float, n: float, delta: float) -> float:
    """Return Clopper and Pearson's upper bound of an error rate, at confidence 1 − δ.

    Counts may be fractions: the formula is continuous in them.

    Examples
    --------
    >>> from learnable.theory.concentration import binomial_upper
    >>> round(binomial_upper(192, 600, 0.025), 12), round(binomial_upper(67, 332, 0.05), 6)
    (0.358976828068, 0.241477)
    """
    _check_counts("binomial_upper", errors, n, delta)
    return 1.0 if errors >= n else float(betainccinv(errors + 1.0, n - errors, delta))


def binomial_lower(errors: float, n: float, delta: float) -> float:
    """Return Clopper and Pearson's lower bound of an error rate, at confidence 1 − δ."""
    _check_counts("binomial_lower", errors, n, delta)
    return 0.0 if errors <= 0 else float(betaincinv(errors, n - errors + 1.0, delta))


@dataclass(frozen=True)
class Chernoff(Inequality):
    """Chernoff's bound for values in [0, 1] of mean p: P(X̄ ≥ p + t) ≤ exp(−n kl(p + t‖p)).

    With `sides=2` both tails are added. `sides=1` counts deviations upwards.

    Examples
    --------
    >>> from learnable.theory.concentration import Chernoff, Hoeffding
    >>> round(Chernoff(100, mean=0.05).tail(0.1), 6), round(Hoeffding(100).tail(0.1), 6)
    (0.000889, 0.135335)
    """

    mean: float = 0.5  #: p

    name: ClassVar[str] = "Chernoff"
    statement: ClassVar[str] = "P(X̄ ≥ p + t) ≤ exp(−n kl(p + t‖p))"
    source: ClassVar[str] = "H. Chernoff, 1952; W. Hoeffding, JASA 58, 1963, theorem 1"
    assumptions: ClassVar[tuple[str, ...]] = ("values are independent", "they lie in [0, 1]", "their mean is p")

    def tail(self, t: float) -> float:
        """Return the bound on the probability of a deviation of at least t."""
        check_parameters(self.name, {"t": t}, {"t": Number(finite=False)})
        if t <= 0.0:
            return 1.0
        total = self._one_sided(t)
        if self.sides == 2:
            total += self._below(t)
        return min(1.0, total)

    def radius(self, delta: float) -> float:
        """Return the deviation whose bound is δ."""
        check_parameters(self.name, {"delta": delta}, {"delta": LEVEL})
        most = 1.0 - self.mean if self.sides == 1 else max(self.mean, 1.0 - self.mean)
        if self.tail(most) > delta:
            return most
        return float(brentq(lambda t: self.tail(t) - delta, 0.0, most, xtol=1e-16, rtol=1e-14))

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"mean": self.mean}, {"mean": _SHARE})

    def _one_sided(self, t: float) -> float:
        return math.exp(-self.n * binary_kl(self.mean + t, self.mean)) if self.mean + t <= 1.0 else 0.0

    def _below(self, t: float) -> float:
        return math.exp(-self.n * binary_kl(self.mean - t, self.mean)) if self.mean - t >= 0.0 else 0.0

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        off = abs(float(x.mean()) - self.mean)
        broken = off > self.radius(1e-4)
        mean = Check(f"the mean is {self.mean:g}", False if broken else None, f"the sample's mean is {x.mean():.6g}")
        return (check_range(x, 0.0, 1.0), mean)


@dataclass(frozen=True)
class KLBound(Inequality):
    """Chernoff's bound turned around: μ ≤ sup{p: kl(X̄‖p) ≤ ln(1/δ)/n}, for values in [0, 1] of observed mean X̄.

    Examples
    --------
    >>> from learnable.theory.concentration import KLBound
    >>> round(0.1 + KLBound(100, mean=0.1).radius(0.05), 6)
    0.188829
    """

    mean: float = 0.5  #: X̄

    name: ClassVar[str] = "kl"
    statement: ClassVar[str] = "μ ≤ sup{p: kl(X̄‖p) ≤ ln(1/δ)/n} with probability ≥ 1 − δ"
    source: ClassVar[str] = "H. Chernoff, 1952; J. Langford, JMLR 6, 2005, corollary 3.7"
    assumptions: ClassVar[tuple[str, ...]] = (
        "values are independent and identically distributed",
        "they lie in [0, 1]",
    )

    @classmethod
    def of(cls, sample: Any, sides: Literal[1, 2] = 1) -> KLBound:
        """Return the inequality of a sample."""
        x = finite_sample(cls.name, sample)
        return cls(len(x), sides, float(x.mean()))

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"mean": self.mean}, {"mean": _SHARE})

    def _one_sided(self, t: float) -> float:
        above = min(1.0, self.mean + t)
        bound = math.exp(-self.n * binary_kl(self.mean, above)) if self.mean + t <= 1.0 else 0.0
        if self.sides == 2:
            below = math.exp(-self.n * binary_kl(self.mean, self.mean - t)) if self.mean - t >= 0.0 else 0.0
            bound = max(bound, below)
        return bound

    def _radius(self, delta: float) -> float:
        up = kl_upper(self.mean, -math.log(delta) / self.n) - self.mean
        if self.sides == 1:
            return up
        return max(up, self.mean - kl_lower(self.mean, -math.log(delta) / self.n))

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        return (check_range(x, 0.0, 1.0),)


@dataclass(frozen=True)
class ClopperPearson(Inequality):
    """The exact bound of an error rate: p ≤ Beta⁻¹(1 − δ; k + 1, n − k) after k errors among n.

    `tail(t)` is P(Bin(n, k/n + t) ≤ k). `sample_size` keeps the error rate, fractions of errors allowed.

    Examples
    --------
    >>> from learnable.theory.concentration import ClopperPearson
    >>> round(0.1 + ClopperPearson(100, errors=10).radius(0.05), 6)
    0.163718
    >>> ClopperPearson(100, errors=0).sample_size(0.01, 0.05)
    299
    """

    errors: float = 0.0  #: k

    name: ClassVar[str] = "Clopper–Pearson"
    statement: ClassVar[str] = "p ≤ Beta⁻¹(1 − δ; k + 1, n − k) with probability ≥ 1 − δ"
    source: ClassVar[str] = "C. Clopper and E. Pearson, Biometrika 26, 1934"
    assumptions: ClassVar[tuple[str, ...]] = ("values are independent, of one distribution", "they are 0 or 1")

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"errors": self.errors}, {"errors": Number(low=0.0)})
        if self.errors > self.n:
            raise ParameterError(f"{owner}: errors must be at most n = {self.n}; got {self.errors:g}.")

    def _at(self, n: int) -> Inequality:
        return type(self)(n, self.sides, self.errors * n / self.n)

    def _one_sided(self, t: float) -> float:
        rate = self.errors / self.n
        up = float(betaincc(self.errors + 1.0, self.n - self.errors, rate + t)) if rate + t < 1.0 else 0.0
        if self.sides == 2 and rate - t > 0.0:
            up = max(up, float(betainc(self.errors, self.n - self.errors + 1.0, rate - t)))
        return up

    def _radius(self, delta: float) -> float:
        rate = self.errors / self.n
        up = binomial_upper(self.errors, self.n, delta) - rate
        if self.sides == 1:
            return up
        return max(up, rate - binomial_lower(self.errors, self.n, delta))

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        binary = bool(np.isin(x, (0.0, 1.0)).all())
        return (Check("values are 0 or 1", None if binary else False, f"{len(np.unique(x))} different values"),)


def log_binomial(n: int, k: int) -> float:
    """Return ln C(n, k)."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


def entropy(share: float) -> float:
    """Return the entropy of a coin in nats."""
    return float(-xlogy(share, share) - xlogy(1.0 - share, 1.0 - share))


def _check_counts(owner: str, errors: float, n: float, delta: float) -> None:
    rules = {"errors": Number(low=0.0), "n": Number(low=0.0, low_open=True), "delta": LEVEL}
    check_parameters(owner, {"errors": errors, "n": n, "delta": delta}, rules)
    if errors > n:
        raise ParameterError(f"{owner}: errors must be at most n = {n:g}; got {errors:g}.")
