"""Sauer's lemma, and bounds on the risk by the number of labelings.

A class of VC dimension d labels n points in at most Φ_d(n) = Σ_{i ≤ d} C(n, i) ways (Sauer, from i = 0), which for n
≥ d is at most (en/d)^d. With Π the growth function, R the risk, R̂ the share of errors on n rows, and probability at
least 1 − δ, for every member of the class at once:

    vc_bound         R − R̂ ≤ √((8/n)(ln Π(2n) + ln(4/δ)))                (Vapnik and Chervonenkis)
    growth_bound     R − R̂ ≤ √(2 ln Π(n)/n) + √(ln(1/δ)/(2n))            (through the Rademacher average)
    relative_bound   (R − R̂)/√R ≤ 2√A,  A = (ln Π(2n) + ln(4/δ))/n       (better where R̂ is small)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...core import Number, ParameterError, check_parameters
from ..concentration.base import COUNT, LEVEL

_DIMENSION = Number(low=0, integer=True)
_NON_NEGATIVE = Number(low=0.0)
_SHARE = Number(low=0.0, high=1.0)


def sauer(n: int, d: int) -> int:
    """Return Σ_{i=0}^{d} C(n, i): the most labelings of n points by a class of VC dimension d.

    Examples
    --------
    >>> from learnable.theory.vc import sauer
    >>> sauer(5, 3), sauer(3, 3)
    (26, 8)
    """
    check_parameters("sauer", {"n": n, "d": d}, {"n": _DIMENSION, "d": _DIMENSION})
    return sum(math.comb(n, i) for i in range(min(n, d) + 1))


def log_sauer(n: int, d: int) -> float:
    """Return the logarithm of Sauer's sum, by d ln(en/d) where the sum itself has too many terms."""
    check_parameters("log_sauer", {"n": n, "d": d}, {"n": _DIMENSION, "d": _DIMENSION})
    if d >= n:
        return n * math.log(2.0)
    if d <= 2000:
        return _log_sum_of_binomials(n, d)
    return min(n * math.log(2.0), d * math.log(math.e * n / d))


def vc_bound(n: int, d: int, delta: float, *, classic: bool = True) -> float:
    """Return what the risk can exceed the share of errors by, for every member of a class of VC dimension d.

    Parameters
    ----------
    n, d : int
        Rows, and VC dimension.
    delta : float
        Probability of failure.
    classic : bool
        √((8/n)(d ln(2en/d) + ln(4/δ))); otherwise √(2d ln(en/d)/n) + √(ln(1/δ)/(2n)).

    Examples
    --------
    >>> from learnable.theory.vc import vc_bound
    >>> round(vc_bound(1000, 11, 0.05), 4), round(vc_bound(1000, 11, 0.05, classic=False), 4)
    (0.7622, 0.3869)
    """
    rules = {"n": COUNT, "d": COUNT, "delta": LEVEL}
    check_parameters("vc_bound", {"n": n, "d": d, "delta": delta}, rules)
    if classic:
        log_growth = d * math.log(2.0 * math.e * n / d) if 2 * n >= d else 2 * n * math.log(2.0)
        return math.sqrt(8.0 / n * (log_growth + math.log(4.0 / delta)))
    log_growth = d * math.log(math.e * n / d) if n >= d else n * math.log(2.0)
    return growth_bound(n, log_growth, delta)


def growth_bound(n: int, log_growth: float, delta: float, *, on_sample: bool = False) -> float:
    """Return the same from ln Π(n); `on_sample` where the labelings were counted on the rows themselves.

    The expected Rademacher average of the errors is at most ½√(2 ln Π(n)/n) (Massart); on the sample it is known up to
    a further deviation, and √(ln(1/δ)/(2n)) becomes 3√(ln(2/δ)/(2n)).

    Examples
    --------
    >>> import math
    >>> from learnable.theory.vc import growth_bound
    >>> round(growth_bound(1000, math.log(1001), 0.05), 4)  # thresholds on a line
    0.1562
    """
    check_parameters(
        "growth_bound",
        {"n": n, "log_growth": log_growth, "delta": delta},
        {"n": COUNT, "log_growth": _NON_NEGATIVE, "delta": LEVEL},
    )
    complexity = math.sqrt(2.0 * log_growth / n)
    if on_sample:
        return complexity + 3.0 * math.sqrt(math.log(2.0 / delta) / (2.0 * n))
    return complexity + math.sqrt(math.log(1.0 / delta) / (2.0 * n))


def relative_bound(error: float, n: int, log_growth_2n: float, delta: float) -> float:
    """Return the upper bound of the risk from the bound on (R − R̂)/√R.

    R − 2√(A R) − R̂ ≤ 0 gives R ≤ R̂ + 2A + 2√(A R̂ + A²).

    Examples
    --------
    >>> from learnable.theory.vc import log_sauer, relative_bound
    >>> round(relative_bound(0.0, 1000, log_sauer(2000, 3), 0.05), 4)
    0.1015
    """
    given = {"error": error, "n": n, "log_growth_2n": log_growth_2n, "delta": delta}
    rules = {"error": _SHARE, "n": COUNT, "log_growth_2n": _NON_NEGATIVE, "delta": LEVEL}
    check_parameters("relative_bound", given, rules)
    a = (log_growth_2n + math.log(4.0 / delta)) / n
    return error + 2.0 * a + 2.0 * math.sqrt(a * error + a * a)


def boosted_dimension(rounds: int, base_dimension: int) -> float:
    """Return the bound on the VC dimension of weighted votes of T members: T(d + 1)(3 ln(T(d + 1)) + 2).

    Shalev-Shwartz and Ben-David, Understanding Machine Learning, 2014, lemma 10.3; it asks for T ≥ 3 and d ≥ 3 and
    holds with those in place of smaller ones.

    Examples
    --------
    >>> from learnable.theory.vc import boosted_dimension
    >>> round(boosted_dimension(3, 3), 2)
    113.46
    """
    check_parameters("boosted_dimension", {"rounds": rounds, "base": base_dimension}, {"rounds": COUNT, "base": COUNT})
    product = max(rounds, 3) * (max(base_dimension, 3) + 1)
    return product * (3.0 * math.log(product) + 2.0)


class Consistency(NamedTuple):
    """Whether empirical risk minimisation over a class is consistent for every distribution."""

    consistent: bool  #: if and only if the VC dimension is finite
    dimension: float  #: VC dimension
    rates: tuple[tuple[int, float], ...]  #: (n, ln Π(n)/n): tends to 0 if and only if it is
    statement: str  #: in words


def erm_consistency(classes: Any, sizes: tuple[int, ...] = (10, 100, 1000, 10_000, 100_000)) -> Consistency:
    """Tell whether empirical risk minimisation over a class of sets is consistent, and how fast ln Π(n)/n falls.

    For classes of indicator functions these are equivalent (Vapnik and Chervonenkis): the law of large numbers holds
    uniformly for every distribution, ln Π(n)/n → 0, and the VC dimension is finite.

    Examples
    --------
    >>> from learnable.theory.vc import Intervals, SineWaves, erm_consistency
    >>> erm_consistency(Intervals()).consistent, erm_consistency(SineWaves()).consistent
    (True, False)
    """
    if not hasattr(classes, "vc_dimension") or not hasattr(classes, "log_growth"):
        raise ParameterError(f"erm_consistency: {classes!r} is no class of sets; use one of theory.vc.")
    dimension = float(classes.vc_dimension)
    rates = tuple((n, classes.log_growth(n) / n) for n in sizes)
    finite = math.isfinite(dimension)
    known = f"the VC dimension is {dimension:g}" if finite else "every number of points is shattered"
    verdict = "consistent for every distribution" if finite else "not consistent for every distribution"
    return Consistency(finite, dimension, rates, f"{known}: empirical risk minimisation is {verdict}")


def _log_sum_of_binomials(n: int, d: int) -> float:
    logs = [math.lgamma(n + 1.0) - math.lgamma(i + 1.0) - math.lgamma(n - i + 1.0) for i in range(d + 1)]
    top = max(logs)
    return top + math.log(sum(math.exp(value - top) for value in logs))
