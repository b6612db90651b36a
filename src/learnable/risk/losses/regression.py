r"""Losses of a real target: functions of the residual $r = z - y$, and the deviances of counts and positive numbers.

The conjugate of a function of the residual, $V(y, z) = \varphi(z - y)$, is $V^*(y, u) = u y + \varphi^*(u)$.

Reference: B. Schölkopf and A. Smola, *Learning with Kernels*, 2002, chapter 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, wrightomega

from ...core.errors import ParameterError
from .base import Array, Step, overflow_is_inf, proximal_root

_HALVINGS = 64  # of the interval that holds the score of a dual point of a compound Poisson deviance


class ResidualLoss:
    """A loss whose score is itself the prediction."""

    def predict(self, z: Array) -> Array:
        """Return z."""
        return z


@dataclass(frozen=True)
class SquaredLoss(ResidualLoss):
    r"""Half the squared residual; its best constant score is the mean.

    $$ V(y, z) = \tfrac12 (y - z)^2, \qquad V^*(y, u) = u y + \tfrac12 u^2 $$

    The factor ½ makes the gradient the residual and the curvature 1: a sum of n such losses is RSS/2.

    Examples
    --------
    >>> y, z = np.array([1.0, 2.0]), np.array([1.5, 0.0])
    >>> SquaredLoss().value(y, z)
    array([0.125, 2.   ])
    """

    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = 1.0
    strong_convexity: ClassVar[float] = 1.0

    @overflow_is_inf
    def value(self, y: Array, z: Array) -> Array:
        """Return ½(y - z)²."""
        return 0.5 * np.square(z - y)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return z - y."""
        return z - y

    def curvature(self, y: Array, z: Array) -> Array:
        """Return 1."""
        return np.ones_like(z - y)

    @overflow_is_inf
    def conjugate(self, y: Array, u: Array) -> Array:
        """Return uy + ½u²."""
        return u * (y + 0.5 * u)  # factored: the two terms could overflow with opposite signs

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return (z + step y)/(1 + step)."""
        return np.asarray((z + step * y) / (1.0 + step))


@dataclass(frozen=True)
class AbsoluteLoss(ResidualLoss):
    r"""The absolute residual; its best constant score is the median.

    $$ V(y, z) = |y - z|, \qquad V^*(y, u) = u y \;\text{ on } |u| \le 1 $$

    Examples
    --------
    >>> y, z = np.array([1.0, 2.0]), np.array([1.5, 0.0])
    >>> AbsoluteLoss().value(y, z)
    array([0.5, 2. ])
    """

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = math.inf

    def value(self, y: Array, z: Array) -> Array:
        """Return |y - z|."""
        return np.abs(z - y)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return the sign of z - y; at the kink z = y, zero."""
        return np.sign(z - y)

    @overflow_is_inf
    def conjugate(self, y: Array, u: Array) -> Array:
        """Return uy where |u| <= 1."""
        return np.where(np.abs(u) <= 1.0, u * y, np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z moved towards y by the step, and no further."""
        return z - np.clip(z - y, -step, step)


@dataclass(frozen=True)
class HuberLoss(ResidualLoss):
    r"""Quadratic for small residuals, linear for large ones, so that outliers have a bounded pull.

    $$ V(y, z) = \begin{cases} \tfrac12 r^2 & |r| \le \delta \\ \delta (|r| - \tfrac12 \delta) & |r| > \delta
       \end{cases} \quad (r = z - y), \qquad V^*(y, u) = u y + \tfrac12 u^2 \;\text{ on } |u| \le \delta $$

    Parameters
    ----------
    delta : float
        The residual δ > 0 at which the parabola becomes a line.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, Annals of Mathematical Statistics 35, 1964.

    Examples
    --------
    >>> y, z = np.array([1.0, 2.0]), np.array([1.5, 0.0])
    >>> HuberLoss(delta=1.0).value(y, z)
    array([0.125, 1.5  ])
    """

    delta: float = 1.0
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < math.inf:
            raise ParameterError(f"HuberLoss: delta must be > 0 and finite, got {self.delta!r}.")

    @property
    def lipschitz(self) -> float:
        """The slope δ of the linear part."""
        return self.delta

    @overflow_is_inf
    def value(self, y: Array, z: Array) -> Array:
        """Return ½r² or δ(|r| - ½δ)."""
        r = np.abs(z - y)
        c = np.minimum(r, self.delta)
        return c * (r - 0.5 * c)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return the residual z - y, clipped to [-δ, δ]."""
        return np.clip(z - y, -self.delta, self.delta)

    def curvature(self, y: Array, z: Array) -> Array:
        """Return 1 where |z - y| <= δ, else 0; at |z - y| = δ it is the inner derivative."""
        return np.where(np.abs(z - y) <= self.delta, 1.0, 0.0)

    @overflow_is_inf
    def conjugate(self, y: Array, u: Array) -> Array:
        """Return uy + ½u² where |u| <= δ."""
        return np.where(np.abs(u) <= self.delta, u * (y + 0.5 * u), np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z minus step times the slope at the result, which is clipped to [-δ, δ]."""
        return np.asarray(z - step * np.clip((z - y) / (1.0 + step), -self.delta, self.delta))


@dataclass(frozen=True)
class EpsilonInsensitiveLoss(ResidualLoss):
    r"""The absolute residual beyond a tube of radius ε; the loss of support vector regression.

    $$ V(y, z) = \max(0, |y - z| - \epsilon), \qquad V^*(y, u) = u y + \epsilon |u| \;\text{ on } |u| \le 1 $$

    Parameters
    ----------
    epsilon : float
        The radius ε >= 0 within which a residual costs nothing.

    Examples
    --------
    >>> y, z = np.array([1.0, 2.0]), np.array([1.5, 0.0])
    >>> EpsilonInsensitiveLoss(epsilon=0.5).value(y, z)
    array([0. , 1.5])
    """

    epsilon: float = 0.1
    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon < math.inf:
            raise ParameterError(f"EpsilonInsensitiveLoss: epsilon must be >= 0 and finite, got {self.epsilon!r}.")

    def value(self, y: Array, z: Array) -> Array:
        """Return max(0, |y - z| - ε)."""
        return np.maximum(np.abs(z - y) - self.epsilon, 0.0)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return the sign of z - y outside the tube, zero inside it and at both kinks |z - y| = ε."""
        r = z - y
        return np.where(np.abs(r) > self.epsilon, np.sign(r), 0.0)

    @overflow_is_inf
    def conjugate(self, y: Array, u: Array) -> Array:
        """Return uy + ε|u| where |u| <= 1."""
        return np.where(np.abs(u) <= 1.0, u * y + self.epsilon * np.abs(u), np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z moved towards the tube by the step, and no further."""
        r = z - y
        excess = r - np.clip(r, -self.epsilon, self.epsilon)
        return z - np.clip(excess, -step, step)


@dataclass(frozen=True)
class SquaredEpsilonInsensitiveLoss(ResidualLoss):
    r"""The square (not halved) of the residual beyond a tube of radius ε, as in LIBLINEAR; smooth.

    $$ V(y, z) = \max(0, |y - z| - \epsilon)^2, \qquad V^*(y, u) = u y + \epsilon |u| + \tfrac14 u^2 $$

    Parameters
    ----------
    epsilon : float
        The radius ε >= 0 within which a residual costs nothing.

    Examples
    --------
    >>> y, z = np.array([1.0, 2.0]), np.array([1.5, 0.0])
    >>> SquaredEpsilonInsensitiveLoss(epsilon=0.5).value(y, z)
    array([0.  , 2.25])
    """

    epsilon: float = 0.1
    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon < math.inf:
            raise ParameterError(
                f"SquaredEpsilonInsensitiveLoss: epsilon must be >= 0 and finite, got {self.epsilon!r}."
            )

    @overflow_is_inf
    def value(self, y: Array, z: Array) -> Array:
        """Return max(0, |y - z| - ε)²."""
        return np.square(np.maximum(np.abs(z - y) - self.epsilon, 0.0))

    def gradient(self, y: Array, z: Array) -> Array:
        """Return twice the residual beyond the tube."""
        r = z - y
        return 2.0 * np.sign(r) * np.maximum(np.abs(r) - self.epsilon, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        """Return 2 outside the tube, 0 inside it and on its edge."""
        return np.where(np.abs(z - y) > self.epsilon, 2.0, 0.0)

    @overflow_is_inf
    def conjugate(self, y: Array, u: Array) -> Array:
        """Return uy + ε|u| + ¼u²."""
        return u * (y + 0.25 * u) + self.epsilon * np.abs(u)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z with what lies beyond the tube divided by 1 + 2 step."""
        r = z - y
        excess = r - np.clip(r, -self.epsilon, self.epsilon)
        return np.asarray(z - excess * (2.0 * step / (1.0 + 2.0 * step)))


@dataclass(frozen=True)
class PoissonLoss:
    r"""Minus the log-likelihood of a count y >= 0 whose mean is $e^z$, without the constant $\log y!$.

    $$ V(y, z) = e^z - y z, \qquad V^*(y, u) = (u + y) \log (u + y) - (u + y) \;\text{ on } u \ge -y $$

    Without its constant the loss can be negative; the least value, at $z = \log y$, is $y - y \log y$.

    Examples
    --------
    >>> y, z = np.array([0.0, 2.0]), np.array([0.0, 1.0])
    >>> PoissonLoss().value(y, z)
    array([1.    , 0.7183])
    """

    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = math.inf

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, y: Array, z: Array) -> Array:
        """Return eᶻ - yz."""
        mean = np.exp(z)
        # Both terms can overflow; then the exponential is the larger one.
        return np.where(np.isinf(mean), np.inf, mean - y * z)

    @overflow_is_inf
    def gradient(self, y: Array, z: Array) -> Array:
        """Return eᶻ - y."""
        return np.exp(z) - y

    @overflow_is_inf
    def curvature(self, y: Array, z: Array) -> Array:
        """Return eᶻ."""
        return np.exp(z) + np.zeros_like(y)  # the shape of y and z together

    def conjugate(self, y: Array, u: Array) -> Array:
        """Return t log t - t with t = u + y where t >= 0."""
        t = u + y
        value: Array = -entr(t) - t  # entr(t) = -t log t, and -inf where t < 0
        return value

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return a - ω(a + log step) with a = z + step y and Wright's function ω."""
        a = z + step * y
        root: Array = a - wrightomega(a + np.log(step))
        return root

    @overflow_is_inf
    def predict(self, z: Array) -> Array:
        """Return the mean eᶻ."""
        return np.exp(z)


@dataclass(frozen=True)
class QuantileLoss(ResidualLoss):
    r"""The pinball loss; its best constant score is the quantile of level τ, for τ = ½ the median.

    $$ V(y, z) = \max\bigl(\tau (y - z),\; (1 - \tau)(z - y)\bigr), \qquad
       V^*(y, u) = u y \;\text{ on } -\tau \le u \le 1 - \tau $$

    Parameters
    ----------
    level : float
        The level τ, between 0 and 1.

    References
    ----------
    R. Koenker and G. Bassett, Regression quantiles, Econometrica 46, 1978.

    Examples
    --------
    >>> y, z = np.array([1.0, 2.0]), np.array([1.5, 0.0])
    >>> QuantileLoss(level=0.9).value(y, z)
    array([0.05, 1.8 ])
    """

    level: float = 0.5
    smoothness: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ParameterError(f"QuantileLoss: level must be > 0 and < 1, got {self.level!r}.")

    @property
    def lipschitz(self) -> float:
        """The steeper of the two slopes."""
        return max(self.level, 1.0 - self.level)

    def value(self, y: Array, z: Array) -> Array:
        """Return τ(y - z) or (1 - τ)(z - y), whichever is not negative."""
        r = z - y
        return np.maximum(-self.level * r, (1.0 - self.level) * r)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return -τ where z < y, 1 - τ where z > y; at the kink z = y, zero."""
        r = z - y
        return np.where(r > 0.0, 1.0 - self.level, np.where(r < 0.0, -self.level, 0.0))

    @overflow_is_inf
    def conjugate(self, y: Array, u: Array) -> Array:
        """Return uy where -τ <= u <= 1 - τ."""
        return np.where((u >= -self.level) & (u <= 1.0 - self.level), u * y, np.inf)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return z moved towards y by step (1 - τ) from above or step τ from below, and no further."""
        return z - np.clip(z - y, -self.level * step, (1.0 - self.level) * step)


@dataclass(frozen=True)
class GammaLoss:
    r"""Half the gamma deviance of a target y > 0 whose mean is $e^z$, without the constant $1 + \log y$.

    $$ V(y, z) = z + y e^{-z}, \qquad
       V^*(y, u) = t \log \tfrac{t}{y} - t \;\text{ with } t = 1 - u \ge 0 $$

    Without its constant the loss can be negative; the least value, at $z = \log y$, is $1 + \log y$.

    Examples
    --------
    >>> y, z = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    >>> GammaLoss().value(y, z)
    array([1.    , 1.7358])
    """

    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = math.inf

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, y: Array, z: Array) -> Array:
        """Return z + ye⁻ᶻ."""
        ratio = y * np.exp(-z)
        return np.where(np.isinf(ratio), np.inf, z + ratio)

    @overflow_is_inf
    def gradient(self, y: Array, z: Array) -> Array:
        """Return 1 - ye⁻ᶻ."""
        return 1.0 - y * np.exp(-z)

    @overflow_is_inf
    def curvature(self, y: Array, z: Array) -> Array:
        """Return ye⁻ᶻ."""
        return y * np.exp(-z)

    def conjugate(self, y: Array, u: Array) -> Array:
        """Return t log(t/y) - t with t = 1 - u where t >= 0."""
        t = 1.0 - u
        value: Array = -entr(t) - t * (1.0 + np.log(y))  # entr(t) = -t log t, and -inf where t < 0
        return np.where(u > 1.0, np.inf, value)

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return a + ω(log(step y) - a) with a = z - step and Wright's function ω."""
        a = z - step
        root: Array = a + wrightomega(np.log(step * y) - a)
        return root

    @overflow_is_inf
    def predict(self, z: Array) -> Array:
        """Return the mean eᶻ."""
        return np.exp(z)


@dataclass(frozen=True)
class DevianceLoss:
    r"""Half the unit deviance of a family whose variance is $\mu^p$, at $\mu = e^z$ (log link) or $\mu = z$.

    $$ V(y, z) = y^{2-p} \Bigl( \frac{e^{(2-p) L} - 1}{2-p} - \frac{e^{(1-p) L} - 1}{1-p} \Bigr), \quad
       L = \log \frac{\mu}{y}, \qquad \frac{\partial V}{\partial z} = m - a $$

    with $m = \mu^{2-p}$ and $a = y \mu^{1-p}$ for the log link. Where $y = 0$, what does not depend on $\mu$
    is left out. Convex, and with a finite conjugate, for $1 \le p \le 2$ with the log link, and for $p = 0$ with the
    identity.

    Parameters
    ----------
    power : float
        p: 0 normal, 1 Poisson, 2 Gamma, between 1 and 2 compound Poisson.
    link : {"log", "identity"}
        How the score gives the mean.

    References
    ----------
    B. Jørgensen, Exponential dispersion models, J. R. Statist. Soc. B 49, 1987.

    Examples
    --------
    >>> y, z = np.array([0.0, 2.0]), np.array([0.0, 1.0])
    >>> DevianceLoss(power=1.0).value(y, z)
    array([1.    , 0.1046])
    """

    power: float = 1.0
    link: str = "log"
    lipschitz: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if self.link not in ("log", "identity"):
            raise ParameterError(f"DevianceLoss: link must be 'log' or 'identity', got {self.link!r}.")

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the score, for every target of the family."""
        return 1 <= self.power <= 2 if self.link == "log" else self.power == 0

    @property
    def smoothness(self) -> float:
        """The curvature 1 of half squares; that of the other members has no bound."""
        return 1.0 if self.link == "identity" and self.power == 0 else math.inf

    @np.errstate(all="ignore")
    def value(self, y: Array, z: Array) -> Array:
        """Return half the unit deviance."""
        p = self.power
        mu = self.predict(z)
        if p == 0:
            return 0.5 * np.square(mu - y)
        log_mu = z if self.link == "log" else np.log(z)
        log_ratio = log_mu - np.log(np.where(y > 0, y, 1.0))
        scale = np.where(y > 0, y, 1.0) ** (2 - p)
        near = np.maximum(scale * (_growth(2 - p, log_ratio) - _growth(1 - p, log_ratio)), 0.0)
        at_zero = mu if p == 1 else np.exp((2 - p) * log_mu) / (2 - p)
        below = at_zero if p == 1 else at_zero - y * np.exp((1 - p) * log_mu) / (1 - p)
        out = np.where(y > 0, near, np.where(y == 0, at_zero, below))
        possible = np.isfinite(out) if self.link == "log" else np.isfinite(out) & (mu > 0)
        return np.where(possible, out, np.inf)

    def gradient(self, y: Array, z: Array) -> Array:
        """Return m - a."""
        m, a = self._parts(y, z)
        return m - a

    @np.errstate(all="ignore")
    def curvature(self, y: Array, z: Array) -> Array:
        """Return dm/dz - da/dz."""
        p = self.power
        m, a = self._parts(y, z)
        if self.link == "log":
            return (2 - p) * m - (1 - p) * a
        return ((1 - p) * m + p * a) / z if p else np.ones_like(m)

    def conjugate(self, y: Array, u: Array) -> Array:
        """Return the supremum of uz - V(y, z), by bisection between p = 1 and 2; inf where V is not convex."""
        p = self.power
        u = np.asarray(u, dtype=np.float64) + np.zeros_like(y)
        if not self.convex:
            return np.full(u.shape, np.inf)
        if p == 0:
            return u * (y + 0.5 * u)
        with np.errstate(all="ignore"):
            safe = np.where(y > 0, y, 1.0)
            if p == 1:
                t = u + y
                value: Array = -entr(t) - t - np.where(y > 0, y * np.log(safe) - y, 0.0)
                return value
            if p == 2:
                t = 1.0 - u
                return np.where(t >= 0, -entr(t) - t * (1.0 + np.log(safe)) + 1.0 + np.log(safe), np.inf)
            # m >= 2a and m >= 4u at the upper end, a >= 2m and a >= -4u at the lower one.
            high = np.maximum(np.log(2.0 * safe), np.log(4.0 * np.maximum(u, 1e-300)) / (2 - p))
            low = np.minimum(np.log(safe / 2.0), -np.log(4.0 * np.maximum(-u, 1e-300) / safe) / (p - 1))
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                above = self.gradient(y, middle) >= u
                low = np.where(above, low, middle)
                high = np.where(above, middle, high)
            z = np.where(y > 0, high, np.log(np.maximum(u, 1e-300)) / (2 - p))
            best = u * z - self.value(y, z)
            return np.where((y > 0) | (u > 0), best, np.where(u == 0, 0.0, np.inf))

    def prox(self, y: Array, z: Array, step: Step) -> Array:
        """Return the root v of v + step dV/dv = z; only where the loss is convex."""
        if not self.convex:
            raise ParameterError(
                f"DevianceLoss: power {self.power} with link {self.link!r} is not convex; it has no prox."
            )
        return proximal_root(self, y, z, step)

    @overflow_is_inf
    def predict(self, z: Array) -> Array:
        """Return the mean."""
        return np.exp(z) if self.link == "log" else np.asarray(z)

    @np.errstate(all="ignore")
    def _parts(self, y: Array, z: Array) -> tuple[Array, Array]:
        """Return m and a, whose difference is the slope."""
        p = self.power
        if self.link == "log":
            m = np.exp((2 - p) * z)
            factor = np.exp((1 - p) * z)
        else:
            m = z ** (1 - p)
            factor = z**-p
        return m + np.zeros_like(y), np.where(y == 0, 0.0, y * factor)


def _growth(rate: float, x: Array) -> Array:
    """Return (e^{rx} - 1)/r, or x at r = 0."""
    return np.expm1(rate * x) / rate if rate else x
