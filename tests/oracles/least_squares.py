"""The inference of the normal linear model, written out: y = Dβ + ε, D = [1, X], ε ~ N(0, σ²/w)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


class Inference(NamedTuple):
    """Estimates and what is known about them, the intercept first."""

    estimate: np.ndarray
    std_error: np.ndarray
    t: np.ndarray
    p_value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    residual_std: float
    df: int
    covariance: np.ndarray


def normal_inference(X, y, weight=None, *, intercept=True, level=0.95) -> Inference:
    """Return β̂ = (DᵀWD)⁻¹DᵀWy, its standard errors, t-tests and intervals, for full-rank D and one target."""
    D = np.column_stack([np.ones(len(X)), X]) if intercept else np.asarray(X, dtype=float)
    root = np.ones(len(X)) if weight is None else np.sqrt(weight)
    Q, R = np.linalg.qr(root[:, None] * D)
    inverse = np.linalg.inv(R)
    estimate = inverse @ (Q.T @ (root * y))
    df = D.shape[0] - D.shape[1]
    variance = np.sum((root * (y - D @ estimate)) ** 2) / df
    covariance = variance * inverse @ inverse.T
    error = np.sqrt(np.diag(covariance))
    half = stats.t.ppf(0.5 + level / 2, df) * error
    return Inference(
        estimate,
        error,
        estimate / error,
        2 * stats.t.sf(np.abs(estimate / error), df),
        estimate - half,
        estimate + half,
        float(np.sqrt(variance)),
        df,
        covariance,
    )


def normal_interval(X_new, found: Inference, *, intercept=True, level=0.95, new_observation=True):
    """Return x₀ᵀβ̂ ∓ t σ̂ √(x₀ᵀ(DᵀWD)⁻¹x₀ [+ 1]) at each new row."""
    D = np.column_stack([np.ones(len(X_new)), X_new]) if intercept else np.asarray(X_new, dtype=float)
    variance = np.einsum("ij,jk,ik->i", D, found.covariance, D) + new_observation * found.residual_std**2
    half = stats.t.ppf(0.5 + level / 2, found.df) * np.sqrt(variance)
    return D @ found.estimate - half, D @ found.estimate + half
