"""Inequalities that know a mean or a variance only: Markov, Chebyshev, and Jensen's gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ...core import DataError, Number, ParameterError, check_parameters
from .base import Array, Check, Inequality, finite_sample

_NON_NEGATIVE = Number(low=0.0)


@dataclass(frozen=True)
class Markov(Inequality):
    """Markov's inequality, of one non-negative value: P(X ≥ t) ≤ E[X]/t.

    Attained by X in {0, t}. Averaging does not help it: the mean of n values has the same expectation.

    Examples
    --------
    >>> from learnable.theory.concentration import Markov
    >>> Markov(mean=2.0).tail(10.0), Markov(mean=2.0).radius(0.05)
    (0.2, 40.0)
    """

    n: int = 1
    sides: Literal[1, 2] = 1
    mean: float = 1.0  #: E[X]

    name: ClassVar[str] = "Markov"
    statement: ClassVar[str] = "P(X ≥ t) ≤ E[X]/t"
    source: ClassVar[str] = "A. Markov, 1884; Boucheron, Lugosi and Massart, Concentration Inequalities, 2013, §2.1"
    assumptions: ClassVar[tuple[str, ...]] = ("X ≥ 0", "E[X] is known, or bounded by `mean`")

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"mean": self.mean}, {"mean": _NON_NEGATIVE})

    def _one_sided(self, t: float) -> float:
        return self.mean / t / self.sides

    def _radius(self, delta: float) -> float:
        return self.mean / (delta * self.sides)

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        below = bool(x.min() < 0.0)
        return (Check("X ≥ 0", False if below else None, f"smallest value {x.min():.6g}"),)


@dataclass(frozen=True)
class Chebyshev(Inequality):
    """Chebyshev's inequality of a mean: P(|X̄ − μ| ≥ t) ≤ σ²/(nt²); upwards (Cantelli) σ²/(σ² + nt²).

    Examples
    --------
    >>> from learnable.theory.concentration import Chebyshev
    >>> Chebyshev(100, sides=2, variance=1.0).tail(0.2)
    0.25
    >>> Chebyshev(1, sides=2, variance=1.0).sample_size(0.1, 0.05)
    2000
    """

    variance: float = 0.25  #: σ², or a bound on it; ¼ for values in [0, 1]

    name: ClassVar[str] = "Chebyshev"
    statement: ClassVar[str] = "P(|X̄ − μ| ≥ t) ≤ σ²/(nt²); P(X̄ − μ ≥ t) ≤ σ²/(σ² + nt²)"
    source: ClassVar[str] = "I. Bienaymé, 1853; P. Chebyshev, 1867; F. Cantelli, 1928"
    assumptions: ClassVar[tuple[str, ...]] = ("values are uncorrelated", "their variance is at most σ²")

    def _check_fields(self, owner: str) -> None:
        check_parameters(owner, {"variance": self.variance}, {"variance": _NON_NEGATIVE})

    def _one_sided(self, t: float) -> float:
        spread = self.variance / self.n
        if self.sides == 2:
            return spread / t**2 / 2.0
        return spread / (spread + t**2)

    def _radius(self, delta: float) -> float:
        spread = self.variance / self.n
        if self.sides == 2:
            return math.sqrt(spread / (2.0 * delta))
        return math.sqrt(spread * (1.0 - delta) / delta)

    def _check_sample(self, x: Array) -> tuple[Check, ...]:
        return (check_variance(x, self.variance),)


def check_variance(x: Array, variance: float) -> Check:
    """Tell whether the sample's variance agrees with a bound; four standard errors above it speaks against."""
    assumption = f"the variance is at most {variance:g}"
    if len(x) < 20:
        return Check(assumption, None, "too few values to tell")
    squares = (x - x.mean()) ** 2
    seen = float(squares.mean())
    error = float(squares.std()) / math.sqrt(len(x))
    broken = seen - 4.0 * error > variance * (1.0 + 1e-9)
    return Check(assumption, False if broken else None, f"the sample's variance is {seen:.4g} ± {error:.2g}")


class JensenGap(NamedTuple):
    """E[f(X)] − f(E[X]) of a sample, between the bounds that curvature gives."""

    gap: float  #: E[f(X)] − f(E[X])
    low: float  #: ½ min f″ Var(X)
    high: float  #: ½ max f″ Var(X)


def jensen_gap(
    function: Callable[[Array], Any],
    sample: Any,
    weights: Any = None,
    curvature: tuple[float, float] | None = None,
) -> JensenGap:
    """Return Jensen's gap of a sample, with its bounds by the second derivative.

    For convex f the gap is not negative. With m ≤ f″ ≤ M on the range of the values, f − ½m(x − μ)² is convex and
    f − ½M(x − μ)² concave, so that ½mσ² ≤ gap ≤ ½Mσ².

    Parameters
    ----------
    function : callable
        f, of an array.
    sample : array of shape (n,)
        Values of X.
    weights : array of shape (n,), optional
        Their probabilities, up to a factor; equal ones by default.
    curvature : (m, M), optional
        Range of f″; without it the bounds are 0 (f convex) and infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.concentration import jensen_gap
    >>> gap = jensen_gap(np.square, [0.0, 1.0, 2.0, 3.0], curvature=(2.0, 2.0))
    >>> gap.gap, gap.low, gap.high
    (1.25, 1.25, 1.25)
    """
    x = finite_sample("jensen_gap", sample)
    share = np.full(len(x), 1.0 / len(x))
    if weights is not None:
        w = finite_sample("jensen_gap", weights)
        if len(w) != len(x) or w.min() < 0.0 or w.sum() <= 0.0:
            raise DataError(f"jensen_gap: weights must be {len(x)} non-negative numbers, not all zero.")
        share = w / w.sum()
    if curvature is not None and not curvature[0] <= curvature[1]:
        raise ParameterError(f"jensen_gap: curvature must be (low, high) with low <= high; got {curvature}.")
    mean = float(share @ x)
    variance = float(share @ (x - mean) ** 2)
    value = float(share @ np.asarray(function(x), dtype=np.float64)) - float(np.asarray(function(np.array([mean])))[0])
    low, high = (0.0, math.inf) if curvature is None else (c * variance / 2.0 for c in curvature)
    return JensenGap(value, low, high)
