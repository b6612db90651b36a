r"""From mean statistics back to parameters, where that takes an equation: Gamma, Dirichlet, Wishart.

The gradient of a log-partition function maps natural parameters to mean statistics, one to one. These are its inverses
where they have no closed form. Newton's method on each, whole batches at once (Minka, 2000, *Estimating a Dirichlet
distribution*; 2002, *Estimating a Gamma distribution*).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import tanhsinh
from scipy.special import digamma, polygamma

from ..core.errors import DataError
from .base import Array, Univariate

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
