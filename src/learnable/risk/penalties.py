r"""Penalties Ω(w): what the weights themselves cost.

Each penalty is a frozen dataclass: a convex function of an array of weights of any shape, a sum over its
entries. The proximal operator and the conjugate,

$$ \operatorname{prox}_{t\Omega}(w) = \operatorname{argmin}_v \;
   \Omega(v) + \tfrac{1}{2t} \lVert v - w \rVert_2^2, \qquad
   \Omega^*(u) = \sup_w \, [\langle u, w \rangle - \Omega(w)], $$

serve proximal and coordinate descent, and the dual problem. The conjugate is +inf outside its domain; the
boundary of the domain belongs to it.

The strength λ multiplies the whole penalty and nothing else does: a model that divides the risk by n, or
multiplies it by C, scales λ itself and says so.

Reference: N. Parikh and S. Boyd, Proximal algorithms, Foundations and Trends in Optimization 1, 2014, §6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError

Array: TypeAlias = NDArray[np.float64]


class Penalty(Protocol):
    """A convex function of the weights with an explicit proximal operator and conjugate."""

    def value(self, w: Array) -> float:
        """Return Ω(w)."""
        ...

    def prox(self, w: Array, step: float) -> Array:
        """Return the minimiser v of Ω(v) + ‖v - w‖²/(2 step)."""
        ...

    def conjugate(self, u: Array) -> float:
        """Return the supremum over w of ⟨u, w⟩ - Ω(w)."""
        ...


@dataclass(frozen=True)
class L2Penalty:
    r"""Half the squared Euclidean norm: ridge regression, weight decay, the support vector machine.

    $$ \Omega(w) = \tfrac{\lambda}{2} \lVert w \rVert_2^2, \qquad
       \Omega^*(u) = \tfrac{1}{2\lambda} \lVert u \rVert_2^2 $$

    Parameters
    ----------
    strength : float
        λ >= 0. With λ = 0 the conjugate is 0 at u = 0 and inf elsewhere.

    Examples
    --------
    >>> penalty = L2Penalty(strength=2.0)
    >>> penalty.value(np.array([3.0, -4.0])), penalty.prox(np.array([3.0, -4.0]), step=0.5)
    (25.0, array([ 1.5, -2. ]))
    """

    strength: float = 1.0

    def __post_init__(self) -> None:
        _check_strength(self)

    def value(self, w: Array) -> float:
        """Return ½λ‖w‖²."""
        return _half_square(w, self.strength)

    def gradient(self, w: Array) -> Array:
        """Return λw."""
        return self.strength * w

    def prox(self, w: Array, step: float) -> Array:
        """Return w/(1 + step λ)."""
        return w / (1.0 + step * self.strength)

    def conjugate(self, u: Array) -> float:
        """Return ‖u‖²/(2λ)."""
        return _half_square_conjugate(u, self.strength)


@dataclass(frozen=True)
class L1Penalty:
    r"""The sum of absolute values, which sets weights to zero: the lasso.

    $$ \Omega(w) = \lambda \lVert w \rVert_1, \qquad
       \Omega^*(u) = 0 \;\text{ on } \lVert u \rVert_\infty \le \lambda $$

    Parameters
    ----------
    strength : float
        λ >= 0.

    Examples
    --------
    >>> penalty = L1Penalty(strength=2.0)
    >>> penalty.value(np.array([3.0, -0.5])), penalty.prox(np.array([3.0, -0.5]), step=0.5)
    (7.0, array([2., 0.]))
    """

    strength: float = 1.0

    def __post_init__(self) -> None:
        _check_strength(self)

    def value(self, w: Array) -> float:
        """Return λ‖w‖₁."""
        return _absolute_sum(w, self.strength)

    def prox(self, w: Array, step: float) -> Array:
        """Return each entry moved towards zero by step λ, and no further."""
        return _soft_threshold(w, step * self.strength)

    def conjugate(self, u: Array) -> float:
        """Return 0 where every |uⱼ| <= λ."""
        return _half_square_conjugate(_soft_threshold(u, self.strength), 0.0)


@dataclass(frozen=True)
class ElasticNetPenalty:
    r"""A mixture of both: sparse as the lasso, and strictly convex as ridge.

    $$ \Omega(w) = \lambda \bigl( \rho \lVert w \rVert_1 + \tfrac12 (1 - \rho) \lVert w \rVert_2^2 \bigr),
       \qquad
       \Omega^*(u) = \frac{1}{2 \lambda (1 - \rho)} \sum_j \max(0, |u_j| - \lambda\rho)^2 $$

    Parameters
    ----------
    strength : float
        λ >= 0.
    l1_ratio : float
        ρ in [0, 1]: 1 is the lasso's penalty, 0 is ridge's.

    References
    ----------
    H. Zou and T. Hastie, Regularization and variable selection via the elastic net, JRSS B 67, 2005.

    Examples
    --------
    >>> penalty = ElasticNetPenalty(strength=2.0, l1_ratio=0.5)
    >>> penalty.value(np.array([3.0, -0.5])), penalty.prox(np.array([3.0, -0.5]), step=1.0)
    (8.125, array([1., 0.]))
    """

    strength: float = 1.0
    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        _check_strength(self)
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise ParameterError(f"ElasticNetPenalty: l1_ratio must be in [0, 1], got {self.l1_ratio!r}.")

    @property
    def _l1(self) -> float:
        return self.strength * self.l1_ratio

    @property
    def _l2(self) -> float:
        return self.strength * (1.0 - self.l1_ratio)

    def value(self, w: Array) -> float:
        """Return λ(ρ‖w‖₁ + ½(1 - ρ)‖w‖²)."""
        return _absolute_sum(w, self._l1) + _half_square(w, self._l2)

    def prox(self, w: Array, step: float) -> Array:
        """Return w soft-thresholded at step λρ, then divided by 1 + step λ(1 - ρ)."""
        return _soft_threshold(w, step * self._l1) / (1.0 + step * self._l2)

    def conjugate(self, u: Array) -> float:
        """Return Σⱼ max(0, |uⱼ| - λρ)²/(2λ(1 - ρ)); with ρ = 1, 0 where every |uⱼ| <= λ."""
        return _half_square_conjugate(_soft_threshold(u, self._l1), self._l2)


def _soft_threshold(w: Array, threshold: float) -> Array:
    """Return the entries of w moved towards zero by `threshold`, and no further."""
    return w - np.clip(w, -threshold, threshold)


@np.errstate(over="ignore")
def _absolute_sum(w: Array, factor: float) -> float:
    """Return factor ‖w‖₁, which is inf if it exceeds the floats."""
    return float((factor * np.abs(w)).sum())


@np.errstate(over="ignore")
def _half_square(w: Array, factor: float) -> float:
    """Return ½ factor ‖w‖², which is inf if it exceeds the floats."""
    if factor == 0.0:
        return 0.0  # 0 · inf would be NaN
    return float(0.5 * factor * np.square(w).sum())


@np.errstate(over="ignore")
def _half_square_conjugate(u: Array, factor: float) -> float:
    """Return ‖u‖²/(2 factor), the conjugate of ½ factor ‖w‖²; at factor 0 only u = 0 has a finite one."""
    if factor == 0.0:
        return math.inf if np.any(u) else 0.0
    return float(0.5 * np.square(u).sum() / factor)


def _check_strength(penalty: L2Penalty | L1Penalty | ElasticNetPenalty) -> None:
    if not 0.0 <= penalty.strength < math.inf:
        raise ParameterError(f"{type(penalty).__name__}: strength must be >= 0 and finite, got {penalty.strength!r}.")
