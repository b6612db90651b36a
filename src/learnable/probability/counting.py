"""What distributions of counts share: expectations by summation, and quantiles by bisection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .base import Array, require
from .saddle import HALF_LOG_2PI, stirling_error

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
    low, top = np.full(shape, -1.0), np.broadcast_to(np.asarray(high, dtype=np.float64), shape).copy()
    while np.any(top - low > 1.0):
        middle = np.floor(0.5 * (low + top))
        reached = cdf(middle) >= p
        top, low = np.where(reached, middle, top), np.where(reached, low, middle)
    return top[()]
