r"""The best step along a direction: β = argmin Σ wᵢ V(yᵢ, fᵢ + β hᵢ), for any loss with a gradient.

The derivative in β, Σ wᵢ V′(yᵢ, fᵢ + βhᵢ) hᵢ, never falls where V is convex: the first β where it is not negative is
found by widening steps and Brent's method, which needs no second derivative and finds a kink as well as a zero. Where
the loss falls for ever, as the exponential loss does along an h without error, the step ends where the slope has
become negligible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]

#: A minimum lies within this share of the step that is returned.
STEP = 1e-7
_NEGLIGIBLE = 1e-12  # of the slope at the start
_MOST = 1e300


class Step(NamedTuple):
    """A step and what is left of the slope."""

    step: float  #: β
    residual: float  #: slope of the wrong sign at β(1 ± 1e-7), relative to the slope at zero


def best_step(loss: Any, y: NDArray[Any], f: Array, h: Array, weight: Array, *, both_ways: bool = False) -> Step:
    """Return the best step; zero if h does not descend.

    Parameters
    ----------
    loss : loss
        With `gradient`.
    y, f, h : arrays
        Targets, scores and the direction; scores may be (n, K).
    weight : (n,) float64
        Weights of the rows.
    both_ways : bool
        Whether the step may be negative.

    Examples
    --------
    >>> from learnable.risk.losses import AbsoluteLoss
    >>> y, one = np.array([1.0, 2.0, 9.0]), np.ones(3)
    >>> round(best_step(AbsoluteLoss(), y, 0 * one, one, one).step, 6)
    2.0
    """
    slope = _slope_along(loss, y, f, h, weight)
    at_zero = slope(0.0)
    if at_zero > 0.0 and both_ways:
        found = best_step(loss, y, f, -h, weight)
        return Step(-found.step, found.residual)
    if not at_zero < 0.0:
        return Step(0.0, 0.0)
    low, high = 0.0, _first_guess(loss, y, f, h, weight, at_zero)
    while (there := slope(high)) < _NEGLIGIBLE * at_zero and high < _MOST:
        low, high = high, high * 4.0
    if there <= 0.0:
        step = high
    else:
        step = float(brentq(slope, low, high, xtol=1e-300, rtol=4 * np.finfo(np.float64).eps, maxiter=2000, disp=False))
    return Step(step, _residual(slope, step, at_zero))


def _slope_along(loss: Any, y: NDArray[Any], f: Array, h: Array, weight: Array) -> Callable[[float], float]:
    weighted = weight * h if h.ndim == 1 else weight[:, None] * h

    @np.errstate(all="ignore")  # a step that is too long is answered by a huge slope
    def slope(beta: float) -> float:
        value = float(np.sum(loss.gradient(y, f + beta * h) * weighted))
        return _MOST if value != value else min(max(value, -_MOST), _MOST)

    return slope


@np.errstate(all="ignore")
def _first_guess(loss: Any, y: NDArray[Any], f: Array, h: Array, weight: Array, slope: float) -> float:
    """Return Newton's step where the loss has a second derivative, else one."""
    if h.ndim == 1 and hasattr(loss, "curvature"):
        guess = float(-slope / np.float64(weight @ (loss.curvature(y, f) * h * h)))
        if np.isfinite(guess) and 1e-300 < guess < 1e300:
            return guess
    return 1.0


def _residual(slope: Callable[[float], float], step: float, at_zero: float) -> float:
    below, above = slope(step * (1.0 - STEP)), slope(step * (1.0 + STEP))
    return max(below, -above, 0.0) / -at_zero
