"""Weight, mean and scatter of observations: what normal likelihoods need, computed without cancellation."""

from __future__ import annotations

import numpy as np

from ...core.errors import DataError
from ..base import Array


def moments(x: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return the total weight, the mean and Σ w (x - x̄)² over the first axis; zeros without observations."""
    if len(w) == 0:
        return np.zeros(()), np.zeros(x.shape[1:]), np.zeros(x.shape[1:])
    share = w / w.max()
    total = share.sum()
    mean = np.tensordot(share / total, x, axes=1)
    away = x - mean
    # One correction by the mean of what is left makes the mean exact to rounding.
    left = np.tensordot(share / total, away, axes=1)
    with np.errstate(over="ignore"):  # the prior refuses what is not finite
        scatter = np.tensordot(w, np.square(away - left), axes=1)
    return np.asarray(w.sum()), np.asarray(mean + left), np.asarray(scatter)


def vector_moments(x: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return the total weight, the mean (..., d) and the scatter matrix Σ w (x - x̄)(x - x̄)ᵀ (..., d, d)."""
    d = x.shape[-1]
    if len(w) == 0:
        return np.zeros(()), np.zeros(x.shape[1:]), np.zeros((*x.shape[1:], d))
    weight, mean, _ = moments(x, w)
    columns = np.moveaxis((x - mean) * np.sqrt(w).reshape(-1, *(1,) * (x.ndim - 1)), 0, -1)
    with np.errstate(over="ignore", invalid="ignore"):
        return weight, mean, columns @ np.swapaxes(columns, -1, -2)


def moments_of_sums(owner: object, weight: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the mean and the scatter from Σx and Σx²; an error where they are the sums of no data."""
    safe = np.where(weight > 0.0, weight, 1.0)
    mean = first / safe
    scatter = second - first * mean
    if np.any(scatter < -1e-9 * np.abs(second)):
        raise DataError(f"{type(owner).__name__}: statistics must have Σx² >= (Σx)²/n, got {second!s} and {first!s}.")
    return mean, np.maximum(scatter, 0.0)
