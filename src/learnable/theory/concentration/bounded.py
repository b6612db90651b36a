"""Inequalities that know a range only: Hoeffding, its Rademacher form, McDiarmid, Azuma, the empirical minimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...core import Number, ParameterError, check_parameters
from .base import Array, Check, Inequality, check_range, finite_sample


@dataclass(frozen=True)
class Hoeffding(Inequality):
    """Hoeffding's inequality: P(X̄ − μ ≥ t) ≤ exp(−2nt²/(b − a)²) for independent values in [a, b].

    Examples
    --------
    >>> from learnable.theory.concentration import Hoeffding
    >>> round(0.1 + Hoeffding(100).radius(0.05), 6)
    0.222387
    >>> Hoeffding(1, sides=2).sample_size(0.01, 0.05)
    18445
    """

    low: float = 0.0  #: a
    high: float = 1.0  #: b

    name: ClassVar[str] = "Hoeffding"
    statement: ClassVar[str] = "P(X̄ − μ ≥ t) ≤ exp(−2nt²/(b − a)²)"
    source: ClassVar[str] = "W. Hoeffding, JASA 58, 1963, theorem 2"
    assumptions: ClassVar[tuple[str, ...]] = ("values are independent", "every value lies in [a, b], known beforehand")

    def _check_fields(self, owner: str) -> None:
        check_ends(owner, self.low, self.high)

    def _one_sided(self, t: float) -> float:
        return math.exp(-2.0 * self.n * (t / (self.high - self.low)) ** 2)

    def _radius(self, delta: float) -> float:
        return (self.high - self.low) * math.sqrt(-math.log(delta) / (2.0 * self.n))

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        return (check_range(x, self.low, self.high),)


@dataclass(frozen=True)
class _Weighted(Inequality):
    """exp(−n²t²/(2Σc²)), for the mean of n terms, the i-th of which is at most cᵢ in absolute value."""

    mean_square: float = 1.0  #: n⁻¹ Σ cᵢ²

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"mean_square": self.mean_square}, {"mean_square": Number(low=0.0, low_open=True)})

    def _one_sided(self, t: float) -> float:
        return math.exp(-self.n * t**2 / (2.0 * self.mean_square))

    def _radius(self, delta: float) -> float:
        return math.sqrt(-2.0 * math.log(delta) * self.mean_square / self.n)


@dataclass(frozen=True)
class RademacherSum(_Weighted):
    """Hoeffding's inequality for random signs: P(n⁻¹ Σ σᵢaᵢ ≥ t) ≤ exp(−n²t²/(2Σaᵢ²)).

    Examples
    --------
    >>> from learnable.theory.concentration import RademacherSum
    >>> inequality = RademacherSum.of([3.0, 4.0])
    >>> round(inequality.tail(5.0), 6), round(inequality.radius(0.05), 4)
    (0.135335, 6.1194)
    """

    name: ClassVar[str] = "Hoeffding, Rademacher form"
    statement: ClassVar[str] = "P(n⁻¹ Σ σᵢaᵢ ≥ t) ≤ exp(−n²t²/(2 Σ aᵢ²)) for independent signs σᵢ"
    source: ClassVar[str] = "W. Hoeffding, JASA 58, 1963; A. Khinchin, 1923"
    assumptions: ClassVar[tuple[str, ...]] = ("signs are independent and fair", "weights are fixed before the signs")

    @classmethod
    def of(cls, weights: Any, sides: Literal[1, 2] = 1) -> RademacherSum:
        """Return the inequality for given weights aᵢ."""
        a = finite_sample(cls.name, weights)
        return cls(n=len(a), sides=sides, mean_square=float(a @ a) / len(a))

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        signs = bool(np.isin(x, (-1.0, 1.0)).all())
        share = float((x > 0).mean())
        away = abs(share - 0.5) * 2.0 * math.sqrt(len(x))
        detail = f"a share of {share:.3f} is positive"
        if not signs:
            detail = "not all values are −1 or 1"
        return (Check("signs are fair", False if not signs or away > 3.5 else None, detail),)


@dataclass(frozen=True)
class Azuma(_Weighted):
    """Azuma's inequality: differences of a martingale with |Dᵢ| ≤ cᵢ; P(n⁻¹ Σ Dᵢ ≥ t) ≤ exp(−n²t²/(2Σcᵢ²)).

    Examples
    --------
    >>> from learnable.theory.concentration import Azuma
    >>> round(Azuma(n=100, mean_square=1.0).tail(0.2), 6)
    0.135335
    """

    name: ClassVar[str] = "Azuma"
    statement: ClassVar[str] = "P(n⁻¹ Σ Dᵢ ≥ t) ≤ exp(−n²t²/(2 Σ cᵢ²)) for martingale differences with |Dᵢ| ≤ cᵢ"
    source: ClassVar[str] = "W. Hoeffding, 1963; K. Azuma, Tôhoku Mathematical Journal 19, 1967"
    assumptions: ClassVar[tuple[str, ...]] = ("E[Dᵢ | past] = 0", "|Dᵢ| ≤ cᵢ")

    def check(self, sample: Any) -> tuple[Check, ...]:
        """Hold the assumptions against the differences; dependence is allowed, a mean given the past is not."""
        x = finite_sample(self.name, sample)
        bound = math.sqrt(self.mean_square)
        drift = abs(float(x.sum())) / max(math.sqrt(float(x @ x)), 1e-300)
        return (
            Check("E[Dᵢ | past] = 0", False if drift > 3.5 else None, f"sum over its scale: {drift:.2f}"),
            check_range(x, -bound, bound),
        )


@dataclass(frozen=True)
class McDiarmid(Inequality):
    """McDiarmid's inequality: P(Z − E Z ≥ t) ≤ exp(−2t²/Σcᵢ²), where changing xᵢ alone changes Z by at most cᵢ.

    `sample_size` is that of functions such as averages, whose differences fall as 1/n.

    Examples
    --------
    >>> from learnable.theory.concentration import McDiarmid
    >>> round(McDiarmid(n=100, difference=0.01).radius(0.05), 6)  # a mean of values in [0, 1]: Hoeffding
    0.122387
    """

    difference: float = 1.0  #: c, the root mean square of the cᵢ

    name: ClassVar[str] = "McDiarmid"
    statement: ClassVar[str] = "P(Z − E Z ≥ t) ≤ exp(−2t²/Σ cᵢ²)"
    source: ClassVar[str] = "C. McDiarmid, On the method of bounded differences, 1989"
    assumptions: ClassVar[tuple[str, ...]] = ("the xᵢ are independent", "changing xᵢ alone changes Z by at most cᵢ")

    @classmethod
    def of(cls, differences: Any, sides: Literal[1, 2] = 1) -> McDiarmid:
        """Return the inequality for given differences cᵢ."""
        c = finite_sample(cls.name, differences)
        return cls(n=len(c), sides=sides, difference=math.sqrt(float(c @ c) / len(c)))

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"difference": self.difference}, {"difference": Number(low=0.0, low_open=True)})

    def _one_sided(self, t: float) -> float:
        return math.exp(-2.0 * t**2 / (self.n * self.difference**2))

    def _radius(self, delta: float) -> float:
        return self.difference * math.sqrt(-math.log(delta) * self.n / 2.0)

    def _at(self, n: int) -> Inequality:
        return type(self)(n=n, sides=self.sides, difference=self.difference * self.n / n)


@dataclass(frozen=True)
class EmpiricalMinimum(Hoeffding):
    """The smallest empirical risk of a class concentrates: Z = min_f n⁻¹ Σ V(f, zᵢ) with a ≤ V ≤ b.

    Changing one row changes every average by at most (b − a)/n, hence their minimum too, and McDiarmid's inequality
    gives P(|Z − E Z| ≥ t) ≤ 2 exp(−2nt²/(b − a)²), however large the class. What Z concentrates around lies below
    the smallest true risk: E Z ≤ min_f E V(f, z).

    Examples
    --------
    >>> from learnable.theory.concentration import EmpiricalMinimum
    >>> round(EmpiricalMinimum(200, sides=2).radius(0.05), 4)
    0.096
    """

    name: ClassVar[str] = "empirical minimum"
    statement: ClassVar[str] = "P(Z − E Z ≥ t) ≤ exp(−2nt²/(b − a)²) for Z = min_f n⁻¹ Σ V(f, zᵢ); E Z ≤ min_f E V"
    source: ClassVar[str] = "C. McDiarmid, On the method of bounded differences, 1989"
    assumptions: ClassVar[tuple[str, ...]] = ("rows are independent", "every loss lies in [a, b]")


def check_ends(owner: str, low: float, high: float) -> None:
    """Raise ParameterError unless low < high are numbers."""
    check_parameters(owner, {"low": low, "high": high}, {"low": Number(), "high": Number()})
    if not low < high:
        raise ParameterError(f"{owner}: low must be below high; got {low:g} and {high:g}.")
