"""Which inequality is tightest for a sample: all that apply, side by side."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core import DataError, check_parameters
from .base import LEVEL, Check, Inequality, finite_sample
from .betting import Betting
from .binomial import ClopperPearson, KLBound
from .bounded import Hoeffding, check_ends
from .moments import Chebyshev
from .variance import Bennett, Bernstein, EmpiricalBernstein


class Compared(NamedTuple):
    """One inequality on one sample."""

    name: str  #: of the inequality
    upper: float  #: upper bound of the mean, in the sample's units, at confidence 1 − δ; NaN if it does not apply
    statement: str  #: the theorem
    source: str  #: where it stands
    checks: tuple[Check, ...]  #: its assumptions on this sample
    reason: str  #: why it does not apply, else empty


def compare_inequalities(sample: Any, delta: float = 0.05, low: float = 0.0, high: float = 1.0) -> list[Compared]:
    """Return every upper bound of the mean of bounded values, the tightest first.

    Each holds at its own δ. Choosing the smallest after looking at them all needs δ divided by their number; the order
    is then almost always the same. Inequalities that need a variance get the largest one that a range allows: what is
    known beforehand.

    Parameters
    ----------
    sample : array of shape (n,)
        Independent values in [low, high].
    delta : float
        Each bound fails with at most this probability.
    low, high : float
        The range, known beforehand.

    Examples
    --------
    >>> from learnable.theory.concentration import compare_inequalities
    >>> found = compare_inequalities([1.0] * 10 + [0.0] * 90)
    >>> [(one.name, round(one.upper, 4)) for one in found[:4]]
    [('Clopper–Pearson', 0.1637), ('kl', 0.1888), ('betting', 0.1929), ('Hoeffding', 0.2224)]
    """
    owner = "compare_inequalities"
    check_parameters(owner, {"delta": delta}, {"delta": LEVEL})
    check_ends(owner, low, high)
    x = finite_sample(owner, sample)
    if x.min() < low or x.max() > high:
        raise DataError(f"{owner}: values run from {x.min():g} to {x.max():g}, outside [{low:g}, {high:g}].")
    scaled = (x - low) / (high - low)
    n = len(x)
    mean = float(scaled.mean())
    candidates: list[Inequality] = [
        Hoeffding(n),
        Chebyshev(n, variance=0.25),
        Bennett(n, variance=0.25),
        Bernstein(n, variance=0.25),
        EmpiricalBernstein.of(scaled),
        KLBound(n, mean=mean),
        Betting.of(scaled, delta),
    ]
    binary = bool(np.isin(scaled, (0.0, 1.0)).all())
    if binary:
        candidates.append(ClopperPearson(n, errors=float(round(mean * n))))
    found = []
    for inequality in candidates:
        upper = low + (high - low) * min(1.0, mean + inequality.radius(delta))
        found.append(
            Compared(inequality.name, upper, inequality.statement, inequality.source, inequality.check(scaled), "")
        )
    if not binary:
        reason = "values are not all 0 or 1"
        found.append(
            Compared(ClopperPearson.name, math.nan, ClopperPearson.statement, ClopperPearson.source, (), reason)
        )
    return sorted(found, key=lambda one: (math.isnan(one.upper), one.upper))
