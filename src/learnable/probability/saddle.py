r"""Gamma functions and powers without cancellation.

After Loader (2000), *Fast and accurate computation of binomial probabilities*:
$\log\Gamma(a)$ and $a \log x$ are both of the size of $a \log a$, their difference is of the size of 1: at a = 10⁹ the
textbook's formula has lost ten digits. With the exact remainder of Stirling's formula,

$$ \log\Gamma(a) = (a - \tfrac12)\log a - a + \tfrac12\log 2\pi + s(a), $$

the large terms combine to the deviance $D(x, m) = x\log(x/m) + m - x$, which is small where the density is large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import tanhsinh
from scipy.special import digamma, gammaln, polygamma, xlogy

from ..core.errors import DataError
from .base import Array, Univariate, require

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def stirling_error(a: Array) -> Array:
    """Return s(a) = log Γ(a) - (a - ½) log a + a - ½ log 2π for a > 0; by its series for a >= 15."""
    large = np.maximum(a, 15.0)
    q = np.square(1.0 / large)
    series = (1 / 12 + q * (-1 / 360 + q * (1 / 1260 + q * (-1 / 1680 + q * (1 / 1188 - q * 691 / 360360))))) / large
    small = np.minimum(a, 15.0)
    exact = gammaln(small) - (small - 0.5) * np.log(small) + small - HALF_LOG_2PI
    return np.where(a < 15.0, exact, series)[()]


def deviance(x: Array, mean: Array) -> Array:
    """Return D(x, m) = x log(x/m) + m - x >= 0 for x >= 0; at m = 0 it is inf, unless x = 0 too."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # With v = (x - m)/(x + m), log(x/m) = 2 artanh v, and D = (x - m)v + 2x(v³/3 + v⁵/5 + …).
        v = (x - mean) / (x + mean)
        square = np.square(np.clip(v, -0.1, 0.1))
        series = np.zeros_like(square)
        for k in range(8, -1, -1):
            series = series * square + 1.0 / (2 * k + 3)
        near = (x - mean) * v + 2.0 * x * v * square * series
        far = xlogy(x, x / mean) + mean - x
        value = np.where(np.abs(v) < 0.1, near, far)
    value = np.where((mean == 0.0) & (x > 0.0), np.inf, value)
    return np.where(x == 0.0, mean, value)[()]


def log_poisson(x: Array, mean: Array) -> Array:
    """Return log(e^-m m^x / Γ(x + 1)) for x >= 0, not necessarily whole."""
    positive = np.where(x > 0.0, x, 1.0)
    value = -stirling_error(positive) - deviance(x, mean) - 0.5 * np.log(positive) - HALF_LOG_2PI
    return np.where(x > 0.0, value, -mean)[()]


def log_gamma_density(x: Array, shape: Array, rate: Array) -> Array:
    """Return log(β^α x^(α-1) e^-βx / Γ(α)); -inf outside [0, ∞), NaN for NaN."""
    positive = np.where((x > 0.0) & (x < np.inf), x, 1.0)
    value = (
        0.5 * np.log(shape) - stirling_error(shape) - HALF_LOG_2PI - deviance(shape, rate * positive) - np.log(positive)
    )
    at_zero = np.where(shape == 1.0, np.log(rate), np.where(shape > 1.0, -np.inf, np.inf))
    return inside_or((x >= 0.0) & (x < np.inf), np.where(x == 0.0, at_zero, value), x)


def log_dirichlet_density(x: Array, alpha: Array) -> Array:
    """Return the log-density at a probability vector: that of Gamma variables of rate A, given that they sum to one.

    The rate does not matter in the end; with A = Σα each density is largest near its x, and nothing large cancels.
    """
    total = alpha.sum(axis=-1)
    with np.errstate(invalid="ignore"):  # an infinite peak at one zero and none at another: NaN
        parts: Array = log_gamma_density(x, alpha, total[..., None]).sum(axis=-1)
    return parts - log_gamma_density(np.ones(()), total, total)


def inside_or(inside: NDArray[np.bool_], value: Array, x: Array, outside: float = -np.inf) -> Array:
    """Return the value inside the support, another outside, and NaN where x is."""
    return np.where(inside, value, np.where(np.isnan(x), np.nan, outside))[()]


# What distributions of counts share: expectations by summation, and quantiles by bisection.

_WIDTH = 12.0  # standard deviations on either side; beyond lies a mass of e^-72

_FEW = 60  # and as many counts more, for short and skewed distributions

_FINE = 50.0  # from this standard deviation on, points are a fiftieth of it apart


def is_count(x: Array) -> Any:
    """Return which entries are whole numbers >= 0."""
    return (x >= 0.0) & (x == np.floor(x)) & (x < np.inf)


def require_count(owner: object, name: str, values: Array) -> None:
    """Raise a ParameterError unless the values are whole numbers >= 0."""
    require(owner, name, values, is_count(values), "a whole number >= 0")


def log_factorial_part(x: Array) -> Array:
    """Return log x! - x log x + x without cancellation; 0 at 0."""
    positive = np.where(x > 0.0, x, 1.0)
    value = stirling_error(positive) + 0.5 * np.log(positive) + HALF_LOG_2PI
    return np.where(x > 0.0, value, 0.0)[()]


def expectation(mean: Array, std: Array, log_mass: Callable[[Array], Array], f: Callable[[Array], Array]) -> Array:
    """Return E f(x) for a count x whose probabilities extend smoothly to real numbers.

    The sum runs over all counts within twelve standard deviations. Where that would be too many it is the
    trapezoid rule
    with steps far below the standard deviation, which for a function this smooth is exact to rounding.
    """
    step = np.where(std < _FINE, 1.0, std / _FINE)
    reach = int(np.max(np.ceil(_WIDTH * std / step), initial=0.0)) + _FEW
    offsets = np.arange(-reach, reach + 1, dtype=np.float64).reshape(-1, *(1,) * np.ndim(mean))
    x = np.floor(mean) + step * offsets
    inside = x >= 0.0
    x = np.maximum(x, 0.0)
    with np.errstate(invalid="ignore"):
        mass = np.where(inside, step * np.exp(log_mass(x)), 0.0)
        terms = np.where(mass > 0.0, mass * f(x), 0.0)
    return np.asarray(terms.sum(axis=0) / mass.sum(axis=0))[()]


def least_count(cdf: Callable[[Array], Array], p: Array, high: ArrayLike) -> Array:
    """Return the least whole number >= 0 at which the cdf is at least p; `high`, if there is none below it."""
    shape = np.broadcast_shapes(p.shape, np.shape(high), np.shape(cdf(np.zeros(()))))
    low = np.full(shape, -1.0)
    top = np.broadcast_to(np.asarray(high, dtype=np.float64), shape).copy()
    while np.any(top - low > 1.0):
        middle = np.floor(0.5 * (low + top))
        reached = cdf(middle) >= p
        top = np.where(reached, middle, top)
        low = np.where(reached, low, middle)
    return top[()]


# --------------------------------------------------------------------------------------------------------------------
# From mean statistics back to parameters, where that takes an equation: Gamma, Dirichlet, Wishart.
#
# The gradient of a log-partition function maps natural parameters to mean statistics, one to one. These are its
# inverses where they have no closed form. Newton's method on each, whole batches at once (Minka, 2000, *Estimating a
# Dirichlet distribution*; 2002, *Estimating a Gamma distribution*).


_MAX_STEPS = 100

_TOLERANCE = 4e-16


def solve_log_minus_digamma(gap: Array) -> Array:
    """Return the a > 0 with log a - ψ(a) = gap, for gap > 0: the shape of a Gamma distribution."""
    # Minka's start is within 2 % for every gap; near a = ∞, gap ≈ 1/(2a) + 1/(12a²).
    a = (3.0 - gap + np.sqrt(np.square(gap - 3.0) + 24.0 * gap)) / (12.0 * gap)
    for _ in range(_MAX_STEPS):
        # Newton in log a, on a function that is nearly linear there: g(a) = log(gap_of(a)).
        value, slope = _log_minus_digamma(a)
        step = np.log(value / gap) * value / (a * slope)
        a = a * np.exp(-step)
        if np.all(np.abs(step) <= _TOLERANCE * 4.0):
            break
    return np.asarray(a)[()]


def _log_minus_digamma(a: Array) -> tuple[Array, Array]:
    """Return log a - ψ(a) and its derivative 1/a - ψ′(a), by their series where the terms cancel."""
    large = np.maximum(a, 30.0)
    q = 1.0 / np.square(large)
    series = 0.5 / large + q * (1 / 12 - q * (1 / 120 - q * (1 / 252 - q / 240)))
    slope = -0.5 * q - q / large * (1 / 6 - q * (1 / 30 - q * (1 / 42 - q / 30)))
    small = np.minimum(a, 30.0)
    value = np.where(a < 30.0, np.log(small) - digamma(small), series)
    return value, np.where(a < 30.0, 1.0 / small - polygamma(1, small), slope)


def solve_dirichlet(mean_log: Array, owner: str = "Dirichlet") -> Array:
    """Return the α with ψ(α_k) - ψ(Σα) = mean_log_k, for mean logarithms of shape (..., K) with Σ exp < 1.

    The Hessian of the likelihood is a diagonal plus a constant, so that a Newton step costs O(K). A step that
    would leave
    α > 0, or lower the likelihood, is halved.
    """
    slack = 1.0 - np.exp(mean_log).sum(axis=-1)
    if not np.all(slack > 0.0):
        raise DataError(
            f"{owner}: the mean logarithms are those of a constant, whose likelihood grows without bound; "
            "there must be two distinct samples of positive weight."
        )
    n_parts = mean_log.shape[-1]
    # Large α: E log x ≈ log m - (1 - m)/(2Am), so that Σ m_k (log m_k - E log x_k) ≈ (K - 1)/(2A).
    m = np.exp(mean_log) / np.exp(mean_log).sum(axis=-1, keepdims=True)
    total = 0.5 * (n_parts - 1) / np.maximum(np.sum(m * (np.log(m) - mean_log), axis=-1, keepdims=True), 1e-300)
    alpha = np.maximum(m * total, 1e-10)

    def residual(alpha: Array) -> Array:
        return mean_log - digamma(alpha) + digamma(alpha.sum(axis=-1, keepdims=True))

    for _ in range(_MAX_STEPS):
        gradient = residual(alpha)
        curvature = -polygamma(1, alpha)
        shared = polygamma(1, alpha.sum(axis=-1, keepdims=True))
        offset = np.sum(gradient / curvature, axis=-1, keepdims=True) / (
            1.0 / shared + np.sum(1.0 / curvature, axis=-1, keepdims=True)
        )
        step = (gradient - offset) / curvature
        # In log α, where the likelihood of a concentration is closer to quadratic and α stays positive.
        alpha = np.where(step < 0.5 * alpha, alpha - step, alpha * np.exp(-np.minimum(step / alpha, 1.0)))
        if np.all(np.abs(step) <= 1e-14 * alpha):
            break
    return alpha


def solve_wishart_df(gap: Array, d: int) -> Array:
    """Return the ν > d - 1 with d log(ν/2) - Σ_{j<d} ψ((ν - j)/2) = gap > 0: a Wishart's degrees of freedom."""

    def excess(a: Array) -> tuple[Array, Array]:
        parts = [_log_minus_digamma(a - 0.5 * j) for j in range(d)]
        shift = [-np.log1p(-0.5 * j / a) for j in range(d)]
        slopes = [1.0 / a - 1.0 / (a - 0.5 * j) for j in range(d)]
        return sum(v for v, _ in parts) + sum(shift), sum(s for _, s in parts) + sum(slopes)  # type: ignore[return-value]

    low = 0.5 * (d - 1)
    a = low + np.maximum(0.25 * d * (d + 1) / gap, 0.5 / gap)
    for _ in range(_MAX_STEPS):
        # Newton on the logarithm of the gap against log(a - low): nearly a line at both ends.
        value, slope = excess(a)
        step = np.log(value / gap) * value / ((a - low) * slope)
        a = low + (a - low) * np.exp(-np.clip(step, -3.0, 3.0))
        if np.all(np.abs(step) <= 4.0 * _TOLERANCE):
            break
    return np.asarray(2.0 * a)[()]


# Divergences without a closed form, by quadrature over probabilities.
#
# With x = Q(u), the quantile function, an expectation is an integral over the unit interval,
# E f(x) = ∫₀¹ f(Q(u)) du. The integrands here have at most logarithmic singularities at the ends, for which the
# tanh–sinh rule (Takahasi and Mori, 1974) converges as fast as for a smooth function.


def kl_by_quadrature(p: Univariate, q: Univariate) -> Array:
    """Return E_p[log p(x) - log q(x)] for smooth densities on the whole line."""
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    pairs = [(_entry(p, shape, i), _entry(q, shape, i)) for i in range(math.prod(shape))]
    return np.reshape([_integrate(*pair) for pair in pairs], shape)[()]


def _integrate(p: Univariate, q: Univariate) -> float:
    def log_ratio(u: Array) -> Array:
        x = p.quantile(u)
        return np.where(np.isfinite(x), p.logpdf(x) - q.logpdf(x), 0.0)  # the ends have no weight

    with np.errstate(all="ignore"):
        result = tanhsinh(log_ratio, 0.0, 1.0, rtol=1e-12, atol=1e-14)
    return max(float(result.integral), 0.0)


def _entry(d: Univariate, shape: tuple[int, ...], i: int) -> Univariate:
    """Return entry i of an array of distributions broadcast to a shape."""
    values = {name: np.ravel(np.broadcast_to(value, shape))[i] for name, value in d.parameters.items()}
    return type(d)(**values)
