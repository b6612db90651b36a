"""Covering and packing numbers, and Dudley's integral.

N(ε) is the least number of balls of radius ε that cover a set, P(ε) the largest number of points that are pairwise more
than ε apart. Always N(ε) ≤ P(ε) ≤ N(ε/2).

    ball of radius R in d dimensions   (R/ε)^d ≤ N(ε) ≤ P(ε) ≤ (1 + 2R/ε)^d      by volumes, in every norm
    the same in the sup norm           N(ε) = ⌈R/ε⌉^d
    ball of an RKHS on n rows          an ellipsoid whose axes are R√(eigenvalues of K/n)

Dudley's integral bounds a Rademacher average by the covers of all scales at once:

    E sup_f n⁻¹ Σ σᵢ f(xᵢ) ≤ inf_α (4α + (12/√n) ∫_α^D √(ln N(ε)) dε),     D ≥ sup_f ‖f‖ in the empirical ℓ₂ metric.

References: R. Dudley, 1967. R. Vershynin, High-Dimensional Probability, 2018, §4.2 and §8.1. N. Srebro, K. Sridharan
and A. Tewari, Smoothness, low noise and fast rates, 2010, lemma A.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from ..core import DataError, Number, Options, ParameterError, check_parameters
from .concentration.base import COUNT, POSITIVE, Array

Metric = Literal["sup", "l1", "l2"]
_METRIC = Options("sup", "l1", "l2")


class LogBounds(NamedTuple):
    """Two-sided bounds of the logarithm of a covering or packing number."""

    low: float  #: at least this
    high: float  #: at most this


def ball_covering(eps: float, radius: float, d: int, norm: Metric = "l2") -> LogBounds:
    """Return bounds on ln N(ε) of a ball in d dimensions, in the norm's own metric.

    Examples
    --------
    >>> import math
    >>> from learnable.theory.covering import ball_covering
    >>> [round(math.exp(bound)) for bound in ball_covering(0.5, 1.0, 2)]
    [4, 25]
    >>> [round(math.exp(bound)) for bound in ball_covering(0.3, 1.0, 2, norm="sup")]
    [16, 16]
    """
    _check_ball("ball_covering", eps, radius, d, norm)
    if norm == "sup" or d == 1:
        # ⌈R/ε⌉ with R = kε up to rounding counts as k.
        cells = max(1, math.ceil(radius / eps * (1.0 - 1e-12)))
        return LogBounds(d * math.log(cells), d * math.log(cells))
    if eps >= radius:
        return LogBounds(0.0, 0.0)
    return LogBounds(d * math.log(radius / eps), d * math.log1p(2.0 * radius / eps))


def ball_packing(eps: float, radius: float, d: int, norm: Metric = "l2") -> LogBounds:
    """Return bounds on ln P(ε) of a ball in d dimensions, in the norm's own metric.

    In the sup norm P(ε) = (⌈2R/ε⌉)^d: a grid slightly wider than ε, and no more fit in by cells of side ε.

    Examples
    --------
    >>> import math
    >>> from learnable.theory.covering import ball_packing
    >>> [round(math.exp(bound)) for bound in ball_packing(0.5, 1.0, 2)]
    [4, 25]
    """
    _check_ball("ball_packing", eps, radius, d, norm)
    if norm == "sup" or d == 1:
        cells = max(1, math.ceil(2.0 * radius / eps * (1.0 - 1e-12)))
        return LogBounds(d * math.log(cells), d * math.log(cells))
    if eps >= 2.0 * radius:
        return LogBounds(0.0, 0.0)
    return LogBounds(max(0.0, d * math.log(radius / eps)), d * math.log1p(2.0 * radius / eps))


def ellipsoid_covering(eps: float, axes: Any) -> LogBounds:
    """Return bounds on ln N(ε) of an ellipsoid with given semi-axes, in the Euclidean metric.

    Axes of at most ε/2 are dropped at the price of ε/2 in distance; the others are covered to (√3/2)ε. The volume of
    their sum with a ball of radius r is below that of the ellipsoid with axes √(2(a² + r²)), because support
    functions obey √(Σa²u²) + r‖u‖ ≤ √2 √(Σ(a² + r²)u²). From below, N(ε) is at least the volume of any projection
    over that of a ball.

    Examples
    --------
    >>> from learnable.theory.covering import ellipsoid_covering
    >>> ellipsoid_covering(1.0, [1.0, 0.5])
    LogBounds(low=0.0, high=0.0)
    """
    check_parameters("ellipsoid_covering", {"eps": eps}, {"eps": POSITIVE})
    a = np.sort(np.asarray(axes, dtype=np.float64).ravel())[::-1]
    if not np.isfinite(a).all() or (len(a) and a[-1] < 0.0):
        raise DataError("ellipsoid_covering: axes must be finite and not negative.")
    if len(a) == 0 or a[0] <= eps:
        return LogBounds(0.0, 0.0)
    low = float(np.log(a[a > eps] / eps).sum())
    large = a[a > eps / 2.0]
    r = math.sqrt(3.0) / 4.0 * eps
    high = float(np.log(np.sqrt(2.0 * (large**2 + r**2)) / r).sum())
    # Inside the ball of its longest axis, in the dimensions that were kept.
    ball = len(large) * math.log1p(2.0 * float(a[0]) / (2.0 * r))
    return LogBounds(low, max(low, min(high, ball)))


def kernel_ball_covering(eps: float, radius: float, eigenvalues: Any) -> LogBounds:
    """Return bounds on ln N(ε) of {f: ‖f‖_K ≤ R} in the empirical ℓ₂ metric of n rows, from the spectrum of K/n.

    The vector (f(x₁), …, f(x_n))/√n runs through the ellipsoid with axes R√λⱼ.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.covering import kernel_ball_covering
    >>> spectrum = 2.0 ** -np.arange(20)
    >>> bounds = kernel_ball_covering(0.1, 1.0, spectrum)
    >>> bounds.low < bounds.high
    True
    """
    check_parameters("kernel_ball_covering", {"radius": radius}, {"radius": POSITIVE})
    spectrum = np.maximum(np.asarray(eigenvalues, dtype=np.float64), 0.0)
    return ellipsoid_covering(eps, radius * np.sqrt(spectrum))


class SampleCover(NamedTuple):
    """A cover of given functions by some of them."""

    centres: Array  #: positions of the centres
    low: int  #: N(ε) is at least this
    high: int  #: and at most this, the number of centres, which are also more than ε apart


def cover_sample(values: Any, eps: float, metric: Metric = "l2") -> SampleCover:
    """Cover a finite set of functions, known by their values on n points, greedily, with two-sided bounds.

    The next centre is the function farthest from the centres so far, until none is farther than ε. Centres are
    pairwise more than ε apart, so N(ε) ≤ their number ≤ P(ε). The first of them that are pairwise more than 2ε apart
    need a ball each, which is the lower bound. (Balls are centred on members of the set for the upper bound,
    anywhere for the lower.)

    Parameters
    ----------
    values : array of shape (n_functions, n_points)
        f(xᵢ).
    eps : float
        Radius.
    metric : {"sup", "l1", "l2"}
        max |f − g|, mean |f − g|, or √mean (f − g)².

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.covering import cover_sample
    >>> steps = np.linspace(0.0, 1.0, 101)[:, None]
    >>> cover = cover_sample(steps, 0.1)
    >>> cover.low, cover.high
    (5, 9)
    """
    check_parameters("cover_sample", {"eps": eps, "metric": metric}, {"eps": POSITIVE, "metric": _METRIC})
    f = function_table("cover_sample", values)
    centres, gaps = _farthest_first(f, metric, eps)
    low = 1 + int((gaps[1:] > 2.0 * eps).sum())
    return SampleCover(np.array(centres, dtype=np.float64), low, len(centres))


class EntropyIntegral(NamedTuple):
    """Dudley's bound on a Rademacher average."""

    bound: float  #: inf over α
    alpha: float  #: the α that attains it on the grid
    integral: float  #: ∫_α^D √(ln N(ε)) dε, from above


def dudley_integral(
    log_covering: Callable[[float], float], diameter: float, n: int, scales: int = 60
) -> EntropyIntegral:
    """Return inf_α (4α + (12/√n) ∫_α^D √(ln N(ε)) dε) on a geometric grid of scales.

    ln N falls with ε, so that its value at the left end of each cell bounds the integral from above: the result is a
    bound, not an approximation of one.

    Parameters
    ----------
    log_covering : callable
        ε to an upper bound of ln N(ε).
    diameter : float
        D ≥ sup ‖f‖.
    n : int
        Rows.
    scales : int
        Number of cells; the grid spans a factor of 10⁴.

    Examples
    --------
    >>> from learnable.theory.covering import ball_covering, dudley_integral
    >>> found = dudley_integral(lambda eps: ball_covering(eps, 1.0, 3).high, 1.0, 10_000)
    >>> round(found.bound, 3)
    0.286
    """
    check_parameters(
        "dudley_integral",
        {"diameter": diameter, "n": n, "scales": scales},
        {"diameter": Number(low=0.0), "n": COUNT, "scales": COUNT},
    )
    if diameter == 0.0:
        return EntropyIntegral(0.0, 0.0, 0.0)
    grid = diameter * np.geomspace(1e-4, 1.0, scales + 1)
    roots = np.sqrt([max(0.0, log_covering(float(eps))) for eps in grid[:-1]])
    tails = np.r_[np.cumsum((roots * np.diff(grid))[::-1])[::-1], 0.0]
    bounds = 4.0 * grid + 12.0 / math.sqrt(n) * tails
    best = int(np.argmin(bounds))
    # α = D needs no cover at all: |n⁻¹ Σ σf| ≤ ‖f‖ ≤ D.
    if diameter < bounds[best]:
        return EntropyIntegral(diameter, diameter, 0.0)
    return EntropyIntegral(float(bounds[best]), float(grid[best]), float(tails[best]))


def dudley_of_sample(values: Any, scales: int = 40) -> EntropyIntegral:
    """Return Dudley's bound for a finite set of functions known by their values, with greedy covers at every scale.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.covering import dudley_of_sample
    >>> thresholds = np.tril(np.ones((201, 200)), -1)
    >>> round(dudley_of_sample(thresholds).bound, 2)
    1.0
    """
    f = function_table("dudley_of_sample", values)
    n = f.shape[1]
    diameter = float(np.sqrt((f**2).mean(axis=1)).max())
    if diameter == 0.0:
        return EntropyIntegral(0.0, 0.0, 0.0)
    _, gaps = _farthest_first(f, "l2", diameter * 1e-4)

    def log_covering(eps: float) -> float:
        return math.log(1 + int((gaps[1:] > eps).sum()))

    return dudley_integral(log_covering, diameter, n, scales)


def _farthest_first(f: Array, metric: Metric, eps: float) -> tuple[list[int], Array]:
    """Return centres until all functions are within ε of one, and how far each was from those before it."""
    centres = [0]
    gaps = [math.inf]
    nearest = _distances(f, f[0], metric)
    while True:
        farthest = int(np.argmax(nearest))
        if nearest[farthest] <= eps:
            return centres, np.array(gaps)
        centres.append(farthest)
        gaps.append(float(nearest[farthest]))
        nearest = np.minimum(nearest, _distances(f, f[farthest], metric))


def _distances(f: Array, g: Array, metric: Metric) -> Array:
    gap = np.abs(f - g)
    if metric == "sup":
        return np.asarray(gap.max(axis=1))
    if metric == "l1":
        return np.asarray(gap.mean(axis=1))
    return np.asarray(np.sqrt((gap**2).mean(axis=1)))


def function_table(owner: str, values: Any) -> Array:
    """Return the values of functions on a sample, one row per function, checked."""
    f = np.asarray(values, dtype=np.float64)
    if f.ndim != 2 or f.size == 0 or not np.isfinite(f).all():
        raise DataError(f"{owner}: values must be finite numbers, one row per function; got shape {f.shape}.")
    return f


def _check_ball(owner: str, eps: float, radius: float, d: int, norm: str) -> None:
    rules = {"eps": POSITIVE, "radius": POSITIVE, "d": COUNT, "norm": _METRIC}
    check_parameters(owner, {"eps": eps, "radius": radius, "d": d, "norm": norm}, rules)
    if norm not in ("sup", "l1", "l2"):
        raise ParameterError(f"{owner}: norm must be sup, l1 or l2; got {norm!r}.")
