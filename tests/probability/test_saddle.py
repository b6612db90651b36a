"""Gamma functions and powers without cancellation, against 40-digit arithmetic."""

import mpmath
import numpy as np
import pytest

from learnable.probability.saddle import (
    deviance,
    log_dirichlet_density,
    log_gamma_density,
    log_poisson,
    stirling_error,
)


@pytest.mark.parametrize("a", [1e-8, 0.3, 1.0, 14.99, 15.01, 100.0, 1e9])
def test_stirling_error(a):
    with mpmath.workdps(40):
        x = mpmath.mpf(a)
        exact = mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mpmath.pi) / 2
    # Below 15 it is a difference, of terms whose rounding is all that may be lost.
    rounding = 2.3e-16 * (abs(float(mpmath.loggamma(a))) + abs((a - 0.5) * np.log(a)) + a) if a < 15 else 0.0
    assert stirling_error(np.asarray(a)) == pytest.approx(float(exact), rel=1e-14, abs=rounding)


@pytest.mark.parametrize("x, mean", [(0.0, 2.0), (2.0, 2.0), (1e9, 1e9 + 1e4), (3.0, 1e-9), (1e-9, 3.0), (5.0, 4.0)])
def test_deviance(x, mean):
    with mpmath.workdps(40):
        a, m = mpmath.mpf(x), mpmath.mpf(mean)
        exact = (a * mpmath.log(a / m) if x else 0) + m - a
    assert deviance(np.asarray(x), np.asarray(mean)) == pytest.approx(float(exact), rel=1e-14)


def test_deviance_at_zero():
    assert deviance(np.asarray(0.0), np.asarray(0.0)) == 0.0
    assert deviance(np.asarray(1.0), np.asarray(0.0)) == np.inf


@pytest.mark.parametrize("shape", [0.2, 3.0, 1e5, 1e10])
def test_gamma_density_keeps_its_digits(shape):
    x = shape + 0.7 * np.sqrt(shape)
    with mpmath.workdps(40):
        a, y, b = mpmath.mpf(shape), mpmath.mpf(x) / 2, mpmath.mpf(2)
        exact = a * mpmath.log(b) + (a - 1) * mpmath.log(y) - b * y - mpmath.loggamma(a)
    found = log_gamma_density(np.asarray(x / 2), np.asarray(shape), np.asarray(2.0))
    assert found == pytest.approx(float(exact), rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("count", [0.0, 1.0, 40.0, 1e9])
def test_poisson_keeps_its_digits(count):
    mean = count + 1.0
    with mpmath.workdps(40):
        exact = count * mpmath.log(mean) - mean - mpmath.loggamma(mpmath.mpf(count) + 1)
    assert log_poisson(np.asarray(count), np.asarray(mean)) == pytest.approx(float(exact), rel=1e-13)


def test_dirichlet_keeps_its_digits():
    alpha, x = np.array([2.00001e9, 1e9, 9.9999e8]), np.array([0.5, 0.25, 0.25])  # exact in binary
    with mpmath.workdps(40):
        a = [mpmath.mpf(v) for v in alpha]
        exact = mpmath.loggamma(sum(a)) + sum(
            (v - 1) * mpmath.log(mpmath.mpf(y)) - mpmath.loggamma(v) for v, y in zip(a, x, strict=True)
        )
    assert log_dirichlet_density(x, alpha) == pytest.approx(float(exact), rel=1e-13)
