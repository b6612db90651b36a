"""Densities with known moments that several tests sample, compiled once per process."""

from functools import cache

import numpy as np

from learnable.sampling import compiled


def _normal(x, gradient, precision):
    value = 0.0
    for i in range(x.size):
        gradient[i] = -precision[i] * x[i]
        value += 0.5 * gradient[i] * x[i]
    return value


def _correlated(x, gradient, precision):
    d = x.size
    value = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += precision[i, j] * x[j]
        gradient[i] = -total
        value -= 0.5 * x[i] * total
    return value


def _schools(x, gradient, y, sigma):
    """Eight schools, not centred: x = (z₁ … z₈, μ, τ) with θ = μ + τz."""
    mu, tau = x[8], x[9]
    value = -0.5 * mu * mu / 25.0 - np.log1p(tau * tau / 25.0)
    by_mu = -mu / 25.0
    by_tau = -2.0 * tau / (25.0 + tau * tau)
    for j in range(8):
        z = x[j]
        r = (y[j] - mu - tau * z) / sigma[j]
        value -= 0.5 * r * r + 0.5 * z * z
        slope = r / sigma[j]
        gradient[j] = slope * tau - z
        by_mu += slope
        by_tau += slope * z
    gradient[8] = by_mu
    gradient[9] = by_tau
    return value


def _funnel(x, gradient):
    """Neal's funnel: v ~ N(0, 3²), each of the others N(0, e^v)."""
    v = x[0]
    n = x.size - 1
    value = -v * v / 18.0 - 0.5 * n * v
    slope = -v / 9.0 - 0.5 * n
    for i in range(1, x.size):
        t = x[i] * x[i] * np.exp(-v)
        value -= 0.5 * t
        slope += 0.5 * t
        gradient[i] = -x[i] * np.exp(-v)
    gradient[0] = slope
    return value


SCHOOLS_Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@cache
def schools():
    return compiled(_schools, SCHOOLS_Y, SCHOOLS_SIGMA)


@cache
def funnel():
    return compiled(_funnel)


def normal(precision):
    return compiled(_normal, np.asarray(precision, dtype=float))


def correlated(precision):
    return compiled(_correlated, np.asarray(precision, dtype=float))
