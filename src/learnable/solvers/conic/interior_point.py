r"""Mehrotra's step, which every interior-point method here takes.

Conditions of optimality have pairs of positive arrays with x·s = 0, beside linear equations. The method solves x·s = μ
by Newton's method while μ falls: a predictor aims at μ = 0, how far it gets says how small μ may be, and a corrector
aims there and makes up for the predictor's second-order error dx·ds.

Such steps can cycle: a corrector built for a whole step may throw a short one away from the central path, so that the
complementarity rises. A guarded step is then taken without that correction, and no further than μ falls.

References: S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2, 1992;
C. Cartis, Some disadvantages of a Mehrotra-type primal-dual corrector interior point algorithm, Applied Numerical
Mathematics 59, 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BACK_OFF = 0.995  # share of the way to the boundary
_CENTRED = 0.3  # times μ: what a step without the second-order correction aims at


class CentralPath:
    """A point, and a step, of an interior-point method: mixed into a named tuple of arrays."""

    #: Names of the arrays that are complementary to each other.
    complementary: ClassVar[tuple[tuple[str, str], ...]]

    def pairs(self) -> list[tuple[Array, Array]]:
        """Return the complementary arrays."""
        return [(getattr(self, x), getattr(self, s)) for x, s in self.complementary]

    def moved(self, step: Self, length: float) -> Self:
        """Return the point after a share of a step."""
        arrays: Any = zip(self, step, strict=True)  # type: ignore[call-overload]
        return type(self)(*(x + length * dx for x, dx in arrays))

    def centrality(self) -> float:
        """Return μ, the mean of x·s."""
        pairs = self.pairs()
        size = sum(x.size for x, _ in pairs)
        return float(sum(float((x * s).sum()) for x, s in pairs)) / max(size, 1)

    def longest(self, step: Self) -> float:
        """Return the share of the step that keeps all complementary arrays positive."""
        arrays = [x for pair in self.pairs() for x in pair]
        changes = [dx for pair in step.pairs() for dx in pair]
        fall = max((float((-dx / x).max()) for x, dx in zip(arrays, changes, strict=True) if x.size), default=0.0)
        return min(1.0, BACK_OFF / fall) if fall > 0 else 1.0

    def is_finite(self) -> bool:
        """Tell whether no array has NaN or infinity."""
        arrays: Any = self
        return all(bool(np.isfinite(part).all()) for part in arrays)


P = TypeVar("P", bound=CentralPath)


class Step(NamedTuple, Generic[P]):
    """A step, and what it aimed at."""

    step: P
    target: float  #: μ after the step, if it were exact
    aims: list[Array]  #: for each pair the change of x·s that it solves for


def mehrotra_step(point: P, direction: Callable[..., P], *, guarded: bool = False) -> Step[P]:
    """Return the predictor–corrector step from a point.

    Parameters
    ----------
    point : CentralPath
        Where the method stands.
    direction : callable
        Called with one array t for each pair; returns the step that solves x·ds + s·dx = t and the linear equations.
    guarded : bool
        Whether the complementarity must not rise: a step that raises it is taken without the second-order
        correction, and shortened.
    """
    mu = point.centrality()
    products = [x * s for x, s in point.pairs()]
    affine = direction(*(-product for product in products))
    after = point.moved(affine, point.longest(affine)).centrality()
    target = mu * float(np.clip(after / mu, 0.0, 1.0)) ** 3 if mu > 0 else 0.0
    if not products or not products[0].size:
        return Step(affine, 0.0, [])
    errors = [dx * ds for dx, ds in affine.pairs()]
    aims = [target - product - error for product, error in zip(products, errors, strict=True)]
    step = direction(*aims)
    if guarded and step.is_finite() and _rises(point, step, mu):
        target = max(target, _CENTRED * mu)
        aims = [target - product for product in products]
        step = direction(*aims)
        if _rises(point, step, mu):  # μ(t) = μ + t(target − μ) + t²·mean(dx·ds): stop at its lowest point
            length = 0.5 * (mu - target) / step.centrality()
            parts: Any = step
            step = type(step)(*(length * part for part in parts))
    return Step(step, target, aims)


def _rises(point: P, step: P, mu: float) -> bool:
    """Tell whether the complementarity is not lower after the longest share of a step."""
    return not point.moved(step, point.longest(step)).centrality() < mu
