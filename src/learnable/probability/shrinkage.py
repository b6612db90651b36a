r"""The James–Stein estimator of a normal mean.

For X ~ N(θ, τ²I) in p >= 3 dimensions and a target t,

$$ \hat\theta = t + \Bigl(1 - \frac{(p-2)\,\tau^2}{\|X - t\|^2}\Bigr)(X - t) $$

has a smaller expected squared error than X for every θ (Stein, 1956; James and Stein, 1961). With τ² unknown and an
independent S ~ τ²χ²_m, S/(m + 2) takes its place. Its positive part, which never shrinks beyond the target, is
better still (Baranchik,
1964). Shrinking towards the mean of the entries costs one dimension: p - 3 for p - 2 (Lindley, 1962; Efron and
Morris, 1973).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import DataError, ParameterError
from .base import Array


class Shrunk(NamedTuple):
    """An estimate of a mean vector, drawn towards a target."""

    estimate: Array  #: θ̂, (..., p)
    factor: Array  #: what is left of the deviation from the target, (...)
    target: Array  #: t, (..., p)


def james_stein(
    x: ArrayLike,
    variance: float | None = None,
    *,
    target: ArrayLike | str = 0.0,
    positive_part: bool = True,
) -> Shrunk:
    """Estimate the mean of a normal distribution with independent entries of one variance.

    Parameters
    ----------
    x : array of shape (p,) or (n, p)
        One observation of p entries, or n of them, of which the mean is shrunk; p >= 3.
    variance : float, optional
        The variance σ² of one entry of one observation. If left out, it is estimated from the spread of the n >= 2
        observations about their mean.
    target : float, array of shape (p,) or "mean"
        Where to shrink to; "mean" is the mean of all entries, which takes p >= 4.
    positive_part : bool
        Whether the factor is cut off at 0, which lowers the risk further.

    Returns
    -------
    Shrunk
        The `estimate`, the `factor` and the `target`.

    Examples
    --------
    >>> james_stein([3.0, -1.0, 2.0, 1.0], variance=1.0).estimate
    array([ 2.6   , -0.8667,  1.7333,  0.8667])
    >>> james_stein([3.0, -1.0, 2.0, 1.0], variance=1.0, target="mean").factor
    np.float64(0.8857)
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim not in (1, 2) or x.size == 0 or not np.all(np.isfinite(x)):
        raise DataError(f"james_stein: x must be finite, of shape (p,) or (n, p), got shape {x.shape}.")
    rows = np.atleast_2d(x)
    n, p = rows.shape
    mean = rows.mean(axis=0)
    towards_mean = isinstance(target, str)
    if towards_mean and target != "mean":
        raise ParameterError(f'james_stein: target must be numbers or "mean", got {target!r}.')
    dimensions = p - 3 if towards_mean else p - 2
    if dimensions <= 0:
        raise ParameterError(
            f"james_stein: x must have at least {p - dimensions + 1} entries for this target, got {p}; "
            "below that no estimator is better than the mean everywhere."
        )
    t = np.broadcast_to(mean.mean() if towards_mean else np.asarray(target, dtype=np.float64), mean.shape)
    away = mean - t
    noise = _noise(rows, mean, variance) / n
    size = float(away @ away)
    factor = 1.0 - dimensions * noise / size if size > 0.0 else 0.0  # where the deviation is zero anyway
    if positive_part:
        factor = max(factor, 0.0)
    return Shrunk(t + factor * away, np.float64(factor), t.copy())  # type: ignore[arg-type]


def _noise(rows: Array, mean: Array, variance: float | None) -> float:
    """Return σ², or S/(m + 2) in its place for S = Σ‖xᵢ - x̄‖² with m = (n - 1)p degrees of freedom."""
    if variance is not None:
        if not (np.ndim(variance) == 0 and variance >= 0.0 and np.isfinite(variance)):
            raise ParameterError(f"james_stein: variance must be one number >= 0, got {variance!r}.")
        return float(variance)
    n, p = rows.shape
    if n < 2:
        raise ParameterError("james_stein: variance must be given for one observation; two or more can estimate it.")
    return float(np.sum(np.square(rows - mean)) / ((n - 1) * p + 2))
