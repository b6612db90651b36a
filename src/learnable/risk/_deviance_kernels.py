"""Kernels of the generalised linear models: one sweep over the rows gives deviance, gradient and curvature.

Half the unit deviance of a target y at the mean μ, for the variance function V(μ) = μᵖ, with L = log(μ/y), is

    y²⁻ᵖ ((e^{(2−p)L} − 1)/(2−p) − (e^{(1−p)L} − 1)/(1−p)),        (e^{qL} − 1)/q = L at q = 0,

which loses no digits near μ = y. Its derivative by the score z is m − a, a being the part that has y in it.
"""

from __future__ import annotations

from math import exp, expm1, inf, log

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel

Array = NDArray[np.float64]
Index = NDArray[np.uint32] | NDArray[np.uint64]

SQUARES, LOG, IDENTITY = 0, 1, 2  # half squares; z = log μ; z = μ > 0 with a power other than 0


@kernel
def column_products(X: Array, shift: Array, y: Array, weight: Array, x_sum: Array, xy: Array, square: Array) -> None:
    """OUT, each (d,): x_sum += Σ s x̃, xy += Σ s y x̃, square += Σ s x̃², with x̃ = x − shift. One sweep."""
    n, d = X.shape
    for i in range(n):
        row, s, sy = X[i], weight[i], weight[i] * y[i]
        for j in range(d):
            moved = row[j] - shift[j]
            x_sum[j] += s * moved
            xy[j] += sy * moved
            square[j] += s * moved * moved


@kernel
def half_deviance(y: float, mu: float, log_mu: float, power: float) -> float:
    """Return half the unit deviance; what does not depend on μ is left out where y ≤ 0 and p ≠ 0."""
    if power == 0.0:
        return 0.5 * (mu - y) * (mu - y)
    if y <= 0.0:
        if power == 1.0:
            return mu
        return exp((2.0 - power) * log_mu) / (2.0 - power) - y * exp((1.0 - power) * log_mu) / (1.0 - power)
    log_ratio = log_mu - log(y)
    if power == 1.0:
        if abs(log_ratio) > 0.5:
            return mu - y - y * log_ratio
        return y * (expm1(log_ratio) - log_ratio)
    if power == 2.0:
        return expm1(-log_ratio) + log_ratio
    scale = exp((2.0 - power) * log(y))
    return scale * (expm1((2.0 - power) * log_ratio) / (2.0 - power) - expm1((1.0 - power) * log_ratio) / (1.0 - power))


@kernel
def deviance_point(z: float, y: float, power: float, kind: int) -> tuple[float, float, float, float, float]:
    """Return the loss, m and a (its slope is m − a), its curvature, and the curvature's expectation."""
    if kind == SQUARES:
        return 0.5 * (z - y) * (z - y), z, y, 1.0, 1.0
    if kind == IDENTITY:
        if not z > 0.0:
            return inf, 0.0, 0.0, 0.0, 0.0
        log_mu = log(z)
        expected = exp(-power * log_mu)
        m, a = expected * z, expected * y
        return half_deviance(y, z, log_mu, power), m, a, expected - power * (m - a) / z, expected
    mu = exp(z)
    if power == 1.0:
        m, a = mu, y
    elif power == 2.0:
        m, a = 1.0, y * exp(-z)
    else:
        m, a = exp((2.0 - power) * z), y * exp((1.0 - power) * z)
    return half_deviance(y, mu, z, power), m, a, (2.0 - power) * m - (1.0 - power) * a, m


@kernel
def deviance_dense(
    X: Array, centre: Array, y: Array, weight: Array, w: Array, b: float, form: tuple[float, int, bool],
    slopes: Array, other: Array, curvature: Array,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Return Σ s of loss, m − a, a and (|m| + |a|)². OUT slopes (d,) += Σ s (m − a) x̃; curvature (n,).

    OUT other (d,) += Σ s a x̃; a length of zero leaves it out. `form` is (power, kind, whether to give the expected
    curvature).
    """
    n, d = X.shape
    power, kind, scoring = form
    loss = total = y_total = size = 0.0
    for i in range(n):
        row = X[i]
        z = b
        for j in range(d):
            z += (row[j] - centre[j]) * w[j]
        value, m, a, bend, expected = deviance_point(z, y[i], power, kind)
        r, t = weight[i] * (m - a), weight[i] * a
        for j in range(d):
            slopes[j] += r * (row[j] - centre[j])
        for j in range(other.size):
            other[j] += t * (row[j] - centre[j])
        loss += weight[i] * value
        total += r
        y_total += t
        size += weight[i] * (abs(m) + abs(a)) ** 2
        curvature[i] = weight[i] * (expected if scoring else bend)
    return loss, total, y_total, size


@kernel
def deviance_sparse(
    data: Array, indices: Index, indptr: Index, y: Array, weight: Array, w: Array, b: float,
    form: tuple[float, int, bool], slopes: Array, other: Array, curvature: Array,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Return the same sums for CSR rows; b already holds −centreᵀw, and the vectors are not moved."""
    power, kind, scoring = form
    loss = total = y_total = size = 0.0
    for i in range(indptr.size - 1):
        z = b
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        value, m, a, bend, expected = deviance_point(z, y[i], power, kind)
        r, t = weight[i] * (m - a), weight[i] * a
        for k in range(indptr[i], indptr[i + 1]):
            slopes[indices[k]] += r * data[k]
        if other.size > 0:
            for k in range(indptr[i], indptr[i + 1]):
                other[indices[k]] += t * data[k]
        loss += weight[i] * value
        total += r
        y_total += t
        size += weight[i] * (abs(m) + abs(a)) ** 2
        curvature[i] = weight[i] * (expected if scoring else bend)
    return loss, total, y_total, size
