"""Compiled: the log posterior of a linear model and its gradient; the textbook form is in `test_posterior.py`.

Columns are centred if there is an intercept: the sampler sees c = b + x̄ᵀw instead of b, which is nearly independent of
the coefficients w. The prior is on b.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.jit import lean_kernel

Array = NDArray[np.float64]

NORMAL: Final = 0
STUDENT_T: Final = 1
BERNOULLI: Final = 2
CATEGORICAL: Final = 3
POISSON: Final = 4
GAMMA: Final = 5

FLAT: Final = 0
PRIOR_NORMAL: Final = 1
PRIOR_T: Final = 2
PRIOR_LAPLACE: Final = 3
PRIOR_NOISE: Final = 4  #: normal, its deviation a multiple of the noise's
PRIOR_GAMMA: Final = 5
PRIOR_RECIPROCAL: Final = 6  #: 1/x

_HALF_LOG_TWO_PI: Final = 0.9189385332046727


@lean_kernel
def digamma(x: float) -> float:
    """Return the derivative of log Γ, by recurrence and the asymptotic series."""
    value = 0.0
    while x < 10.0:
        value -= 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s * (1.0 / 240.0 - s * (1.0 / 132.0)))))
    return value + math.log(x) - 0.5 / x - series


@lean_kernel
def log_prior(row: Array, x: float, noise: float) -> tuple[float, float, float]:
    """Return the log density of one parameter, its slope by the parameter and by the noise's deviation."""
    kind, a, b, c = int(row[0]), row[1], row[2], row[3]
    if kind == PRIOR_NORMAL:
        z = (x - a) / b
        return -0.5 * z * z - math.log(b) - _HALF_LOG_TWO_PI, -z / b, 0.0
    if kind == PRIOR_T:
        z = (x - a) / b
        constant = math.lgamma(0.5 * (c + 1.0)) - math.lgamma(0.5 * c) - 0.5 * math.log(c * math.pi) - math.log(b)
        return constant - 0.5 * (c + 1.0) * math.log1p(z * z / c), -(c + 1.0) * z / (b * (c + z * z)), 0.0
    if kind == PRIOR_LAPLACE:
        z = (x - a) / b
        sign = 1.0 if z > 0.0 else (-1.0 if z < 0.0 else 0.0)
        return -abs(z) - math.log(2.0 * b), -sign / b, 0.0
    if kind == PRIOR_NOISE:
        z = x / (b * noise)
        return -0.5 * z * z - math.log(b * noise) - _HALF_LOG_TWO_PI, -z / (b * noise), (z * z - 1.0) / noise
    if kind == PRIOR_GAMMA:
        constant = a * math.log(b) - math.lgamma(a)
        return constant + (a - 1.0) * math.log(x) - b * x, (a - 1.0) / x - b, 0.0
    if kind == PRIOR_RECIPROCAL:
        return -math.log(x), -1.0 / x, 0.0
    return 0.0, 0.0, 0.0


@lean_kernel
def row_likelihood(family: int, y: float, z: float, spread: float, df: float) -> tuple[float, float, float]:
    """Return log p(y | z) and its slopes by z and by the dispersion parameter."""
    if family == NORMAL:
        r = (y - z) / spread
        return -0.5 * r * r - math.log(spread) - _HALF_LOG_TWO_PI, r / spread, (r * r - 1.0) / spread
    if family == STUDENT_T:
        r = (y - z) / spread
        constant = math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)
        pull = (df + 1.0) * r / (df + r * r)
        value = constant - math.log(spread) - 0.5 * (df + 1.0) * math.log1p(r * r / df)
        return value, pull / spread, (pull * r - 1.0) / spread
    if family == BERNOULLI:
        e = math.exp(-abs(z))
        share = 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)
        return y * z - max(z, 0.0) - math.log1p(e), y - share, 0.0
    if family == POISSON:
        mean = math.exp(z)
        return y * z - mean - math.lgamma(y + 1.0), y - mean, 0.0
    ratio = y * math.exp(-z)  # Gamma, its dispersion parameter the shape
    log_y = math.log(y)
    value = spread * (math.log(spread) - z + log_y - ratio) - log_y - math.lgamma(spread)
    return value, spread * (ratio - 1.0), math.log(spread) + 1.0 - z + log_y - ratio - digamma(spread)


@lean_kernel
def log_posterior(
    x: Array,
    gradient: Array,
    X: Array,
    y: Array,
    weight: Array,
    centre: Array,
    priors: Array,
    settings: NDArray[np.int64],
    df: float,
) -> float:
    """OUT gradient; return the log posterior of x = (w, c, dispersion), or (W, c) of K classes.

    IN X (n, d) centred, priors (d + 2, 4): of each column's coefficients, the intercept, the dispersion. settings =
    [family, whether there is an intercept, scores per row, whether there is a dispersion].
    """
    family, has_intercept, K, has_spread = settings[0], settings[1], settings[2], settings[3]
    n, d = X.shape
    at = K * d
    spread = x[at + has_intercept * K] if has_spread else 1.0
    noise = 1.0 / math.sqrt(spread) if family == GAMMA else spread
    for j in range(gradient.size):
        gradient[j] = 0.0
    value = 0.0
    by_spread = 0.0
    by_noise = 0.0
    for k in range(K):
        offset = 0.0
        for j in range(d):
            term, slope, more = log_prior(priors[j], x[k * d + j], noise)
            value += term
            gradient[k * d + j] += slope
            by_noise += more
            offset += centre[j] * x[k * d + j]
        if has_intercept:
            term, slope, more = log_prior(priors[d], x[at + k] - offset, noise)
            value += term
            by_noise += more
            gradient[at + k] += slope
            for j in range(d):
                gradient[k * d + j] -= slope * centre[j]
    if K > 1:
        value += _softmax_rows(x, gradient, X, y, weight, has_intercept, K)
    else:
        for i in range(n):
            z = x[at] if has_intercept else 0.0
            row = X[i]
            for j in range(d):
                z += row[j] * x[j]
            term, slope, more = row_likelihood(family, y[i], z, spread, df)
            value += weight[i] * term
            slope *= weight[i]
            by_spread += weight[i] * more
            for j in range(d):
                gradient[j] += slope * row[j]
            if has_intercept:
                gradient[at] += slope
    if has_spread:
        place = at + has_intercept * K
        term, slope, _ = log_prior(priors[d + 1], spread, noise)
        value += term
        by_scale = by_noise * (-0.5 * noise / spread) if family == GAMMA else by_noise
        gradient[place] = slope + by_spread + by_scale
    return value


@lean_kernel
def _softmax_rows(x: Array, gradient: Array, X: Array, y: Array, weight: Array, has_intercept: Any, K: int) -> float:
    """Add the gradient of Σ log softmax; return the sum. The scores of a row are computed twice: nothing is stored."""
    n, d = X.shape
    at = K * d
    value = 0.0
    for i in range(n):
        top = -math.inf
        for k in range(K):
            z = _score(x, X[i], k, at, has_intercept)
            top = max(top, z)
        total = 0.0
        for k in range(K):
            total += math.exp(_score(x, X[i], k, at, has_intercept) - top)
        own = int(y[i])
        value += weight[i] * (_score(x, X[i], own, at, has_intercept) - top - math.log(total))
        for k in range(K):
            share = math.exp(_score(x, X[i], k, at, has_intercept) - top) / total
            slope = weight[i] * ((1.0 if k == own else 0.0) - share)
            for j in range(d):
                gradient[k * d + j] += slope * X[i, j]
            if has_intercept:
                gradient[at + k] += slope
    return value


@lean_kernel
def _score(x: Array, row: Array, k: int, at: int, has_intercept: Any) -> float:
    z = x[at + k] if has_intercept else 0.0
    for j in range(row.size):
        z += row[j] * x[k * row.size + j]
    return z
