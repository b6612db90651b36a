r"""Penalties Ω(w): what the weights themselves cost.

Each penalty is a frozen dataclass: a function of an array of weights of any shape, a sum over its entries; all are
convex but `Lq` with q < 1, `SCADPenalty` and `MCPenalty`, whose proximal operator is a global minimiser all the same.
The proximal operator and the conjugate,

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError

Array: TypeAlias = NDArray[np.float64]

_HALVINGS = 64  # of the interval [0, |w|]: to its last digit


class Penalty(Protocol):
    """A convex function of the weights with an explicit proximal operator and conjugate."""

    def value(self, w: Array) -> float:
        """Return Ω(w)."""

    def prox(self, w: Array, step: float) -> Array:
        """Return the minimiser v of Ω(v) + ‖v - w‖²/(2 step)."""

    def conjugate(self, u: Array) -> float:
        """Return the supremum over w of ⟨u, w⟩ - Ω(w)."""


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


@dataclass(frozen=True)
class Lq:
    r"""The sum of q-th powers: from few large weights (small q) to many even ones (large q).

    $$ \Omega(w) = \lambda \sum_j |w_j|^q $$

    Convex for q >= 1. For q < 1 it is not: the proximal operator then is the global minimiser of its objective, zero up
    to the threshold h = v + κq v^(q − 1) with v = (2κ(1 − q))^(1/(2 − q)) and κ = step·λ, and at least v beyond it.

    Parameters
    ----------
    strength : float
        λ >= 0.
    q : float
        The power, > 0.

    References
    ----------
    I. Frank and J. Friedman, A statistical view of some chemometrics regression tools, Technometrics 35, 1993;
    G. Marjanovic and V. Solo, On l_q optimization and matrix completion, IEEE Transactions on Signal Processing 60,
    2012.

    Examples
    --------
    >>> Lq(strength=1.0, q=0.5).prox(np.array([3.0, -1.4]), step=1.0).round(4)
    array([2.6955, 0.    ])
    """

    strength: float = 1.0
    q: float = 1.0

    def __post_init__(self) -> None:
        _check_strength(self)
        if not 0.0 < self.q < math.inf:
            raise ParameterError(f"Lq: q must be > 0 and finite, got {self.q!r}; BestSubset is the limit q = 0.")

    @property
    def convex(self) -> bool:
        """Whether q >= 1."""
        return self.q >= 1.0

    @np.errstate(over="ignore")
    def value(self, w: Array) -> float:
        """Return λ Σ|wⱼ|^q, which is inf if it exceeds the floats."""
        return float((self.strength * np.abs(w) ** self.q).sum()) if self.strength else 0.0

    def prox(self, w: Array, step: float) -> Array:
        """Return the root of v + κq v^(q−1) = |w| with the sign of w; for q <= 1, zero up to the threshold."""
        kappa = step * self.strength
        if self.q == 1.0 or kappa == 0.0:
            return _soft_threshold(w, kappa)
        size = np.abs(np.asarray(w, dtype=np.float64))
        lowest = 0.0
        beyond = size > 0.0
        if self.q < 1.0:
            lowest = (2.0 * kappa * (1.0 - self.q)) ** (1.0 / (2.0 - self.q))
            beyond = size > lowest + kappa * self.q * lowest ** (self.q - 1.0)
        root = _power_root(size[beyond], kappa * self.q, self.q - 1.0, lowest)
        out = np.zeros_like(size)
        out[beyond] = root
        return np.asarray(np.copysign(out, w) + 0.0)

    @np.errstate(over="ignore", divide="ignore")
    def conjugate(self, u: Array) -> float:
        """Return Σ (1 − 1/q)|uⱼ|(|uⱼ|/(λq))^(1/(q−1)); for q < 1 only u = 0 has a finite one."""
        if self.q == 1.0 and self.strength:
            return L1Penalty(self.strength).conjugate(u)
        if self.q <= 1.0 or self.strength == 0.0:
            return math.inf if np.any(u) else 0.0
        size = np.abs(u)
        return float((1.0 - 1.0 / self.q) * (size * (size / (self.strength * self.q)) ** (1.0 / (self.q - 1.0))).sum())


@dataclass(frozen=True)
class SCADPenalty:
    r"""Smoothly clipped absolute deviation: the lasso near zero, no shrinkage of weights beyond aλ.

    $$ \Omega'(|w|) = \lambda \;(|w| \le \lambda), \qquad
       \frac{a\lambda - |w|}{a - 1} \;(\lambda < |w| \le a\lambda), \qquad 0 \;\text{ beyond} $$

    Not convex; the proximal operator is the global minimiser of its objective for every step.

    Parameters
    ----------
    strength : float
        λ >= 0.
    a : float
        Where shrinkage ends, > 2.

    References
    ----------
    J. Fan and R. Li, Variable selection via nonconcave penalized likelihood, JASA 96, 2001.

    Examples
    --------
    >>> SCADPenalty(strength=1.0).prox(np.array([0.8, 1.5, 3.0, 5.0]), step=1.0).round(4)
    array([0.    , 0.5   , 2.5882, 5.    ])
    """

    strength: float = 1.0
    a: float = 3.7
    convex = False

    def __post_init__(self) -> None:
        _check_strength(self)
        if not 2.0 < self.a < math.inf:
            raise ParameterError(f"SCADPenalty: a must be > 2 and finite, got {self.a!r}.")

    def value(self, w: Array) -> float:
        """Return Ω(w)."""
        return float(self._each(np.abs(w)).sum())

    def _each(self, v: Array) -> Array:
        level = self.strength
        middle = (2.0 * self.a * level * v - np.minimum(v, self.a * level) ** 2 - level**2) / (2.0 * (self.a - 1.0))
        flat = level**2 * (self.a + 1.0) / 2.0
        return np.where(v <= level, level * v, np.where(v <= self.a * level, middle, flat))

    def prox(self, w: Array, step: float) -> Array:
        """Return the best of the stationary points and ends of the three pieces."""
        x = np.abs(np.asarray(w, dtype=np.float64))
        level = self.strength
        end = self.a * self.strength
        candidates = [np.zeros_like(x), np.clip(x - step * level, 0.0, level), np.maximum(x, end)]
        bend = self.a - 1.0 - step
        if bend > 0:  # otherwise the middle piece has its least value at an end
            candidates.append(np.clip(((self.a - 1.0) * x - step * end) / bend, level, end))
        return _best_candidate(w, x, np.stack(candidates), self._each, step)

    def conjugate(self, u: Array) -> float:
        """Return 0 at u = 0, inf elsewhere: the penalty is bounded."""
        return math.inf if np.any(u) else 0.0


@dataclass(frozen=True)
class MCPenalty:
    r"""Minimax concave penalty: the slope falls from λ at zero to nothing at γλ.

    $$ \Omega(w) = \lambda |w| - \frac{w^2}{2\gamma} \;(|w| \le \gamma\lambda), \qquad
       \tfrac12 \gamma \lambda^2 \;\text{ beyond} $$

    Not convex; the proximal operator is the global minimiser of its objective for every step.

    Parameters
    ----------
    strength : float
        λ >= 0.
    gamma : float
        γ > 0; where it is below the step, the prox jumps from zero to w.

    References
    ----------
    C.-H. Zhang, Nearly unbiased variable selection under minimax concave penalty, Annals of Statistics 38, 2010.

    Examples
    --------
    >>> MCPenalty(strength=1.0, gamma=3.0).prox(np.array([0.8, 2.0, 4.0]), step=1.0)
    array([0. , 1.5, 4. ])
    """

    strength: float = 1.0
    gamma: float = 3.0
    convex = False

    def __post_init__(self) -> None:
        _check_strength(self)
        if not 0.0 < self.gamma < math.inf:
            raise ParameterError(f"MCPenalty: gamma must be > 0 and finite, got {self.gamma!r}.")

    def value(self, w: Array) -> float:
        """Return Ω(w)."""
        return float(self._each(np.abs(w)).sum())

    def _each(self, v: Array) -> Array:
        near = np.minimum(v, self.gamma * self.strength)
        return self.strength * near - near**2 / (2.0 * self.gamma)

    def prox(self, w: Array, step: float) -> Array:
        """Return the best of the stationary points and ends of the two pieces."""
        x = np.abs(np.asarray(w, dtype=np.float64))
        end = self.gamma * self.strength
        candidates = [np.zeros_like(x), np.maximum(x, end)]
        bend = 1.0 - step / self.gamma
        if bend > 0:
            candidates.append(np.clip((x - step * self.strength) / bend, 0.0, end))
        return _best_candidate(w, x, np.stack(candidates), self._each, step)

    def conjugate(self, u: Array) -> float:
        """Return 0 at u = 0, inf elsewhere: the penalty is bounded."""
        return math.inf if np.any(u) else 0.0


def _best_candidate(w: Array, x: Array, candidates: Array, each: Callable[[Array], Array], step: float) -> Array:
    """Return, entry by entry, the candidate v with the least Ω(v) + (v − x)²/(2 step), with the sign of w."""
    costs = each(candidates) + (candidates - x) ** 2 / (2.0 * step)
    chosen = np.take_along_axis(candidates, costs.argmin(axis=0)[None], axis=0)[0]
    return np.asarray(np.copysign(chosen, w) + 0.0)  # no −0


def _power_root(size: Array, factor: float, power: float, lowest: float) -> Array:
    """Return the root v in [lowest, size] of v + factor·v^power = size, where the left side rises, by bisection."""
    low = np.full_like(size, lowest)
    high = size.copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        with np.errstate(over="ignore", divide="ignore"):
            above = middle + factor * middle**power > size
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    return 0.5 * (low + high)


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


def _check_strength(penalty: Any) -> None:
    if not 0.0 <= penalty.strength < math.inf:
        raise ParameterError(f"{type(penalty).__name__}: strength must be >= 0 and finite, got {penalty.strength!r}.")


Family = Literal["normal", "student_t", "bernoulli", "categorical", "poisson", "gamma"]


class LinearLikelihood(NamedTuple):
    """p(y | b + xᵀw) and the precision of the normal prior on w that the penalty stands for."""

    family: Family
    precision: float = 0.0  #: of each coefficient; 0 is a flat prior
    in_units_of_noise: bool = False  #: whether the prior's variance is the noise's, φ, over the precision
