r"""Exact leave-one-out and generalised cross-validation of ridge in two sweeps over rows that need not be in memory.

The first sweep gives S = Σ w (x − x̄)(x − x̄)ᵀ = V diag(s²) Vᵀ. In the second every row has, for all α at once,

    hᵢᵢ = wᵢ/W + wᵢ Σⱼ pᵢⱼ²/(s²ⱼ + α),   rᵢ = yᵢ − ȳ − Σⱼ pᵢⱼ (Vᵀc)ⱼ/(s²ⱼ + α),   pᵢ = Vᵀ(xᵢ − x̄),

and the criteria are sums over the rows. Memory: O(d²) a thread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.threads import interruptible
from ..data.blocks import Block, map_reduce
from ..solvers.systems.least_squares import compress
from ..solvers.systems.moments import Moments, add_in_place, targets_of
from .spectrum import ENORMOUS, extreme_exponent

Array = NDArray[np.float64]

_TILE_ROWS = 2048


class _Basis(NamedTuple):
    """The eigenvectors of the rows' moments, and the data seen through them, scaled by powers of two to order one."""

    V: Array  #: (d, r)
    values: Array  #: (r,), s²
    cross: Array  #: (r, 1), Vᵀ Σ w (x − x̄)(y − ȳ)
    alphas: Array  #: (n_alphas,)
    x_mean: Array
    y_mean: Array
    x_exponent: int = 0  #: rows are X·2^−x_exponent
    y_exponent: int = 0


def swept_criterion(
    blocks: Any, moments: Moments, alphas: Array, *, criterion: str, intercept: bool, n_jobs: int | None
) -> Array:
    """Return LOO(α) or GCV(α), the weighted mean squared error that each estimates, of one target."""
    basis = _eigenbasis(moments, alphas, intercept) or _singular_basis(blocks, alphas, intercept, n_jobs)
    shrunk = 1.0 / (basis.values[:, None] + basis.alphas)  # (r, n_alphas)
    slopes, weight_sum, leave_out = basis.cross * shrunk, moments.weight, criterion == "loo"

    def statistic(block: Block) -> Array:
        total = np.zeros(len(alphas))
        y = np.ldexp(targets_of(block) - basis.y_mean, -basis.y_exponent)
        for start in range(0, len(y), _TILE_ROWS):
            rows = slice(start, start + _TILE_ROWS)
            P = np.ldexp(block.X[rows] - basis.x_mean, -basis.x_exponent) @ basis.V
            w = np.ones((len(P), 1)) if block.weight is None else block.weight[rows, None]
            r = y[rows] - P @ slopes
            if leave_out:
                free = 1.0 - w * (P**2 @ shrunk + (1.0 / weight_sum if intercept else 0.0))
                # A row that determines its own fit has no leave-one-out prediction: its error is infinite, not 0/0.
                r = np.where(free > 1e-14, r / np.where(free > 1e-14, free, 1.0), np.inf)
            total += (w * r**2).sum(axis=0)
        return total

    total = map_reduce(blocks, statistic, add_in_place, n_jobs=n_jobs)
    total = total / (moments.n_rows if leave_out else weight_sum)
    if not leave_out:
        degrees = (basis.values[:, None] * shrunk).sum(axis=0) + intercept
        total = total / np.maximum(1.0 - degrees / moments.n_rows, 1e-150) ** 2
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(total, 2 * basis.y_exponent))


def _eigenbasis(moments: Moments, alphas: Array, intercept: bool) -> _Basis | None:
    """Return the basis from the moments; None where the smallest penalty does not drown their rounding."""
    d = len(moments.gram)
    if not (np.isfinite(moments.gram).all() and np.isfinite(moments.cross).all()):
        return None
    values, V = interruptible(np.linalg.eigh, moments.gram)
    noise = np.finfo(float).eps * d * values[-1]
    if not (1e4 * noise <= alphas.min() and values[-1] < 1e250 and moments.y_square.max() < 1e250):
        return None
    kept = values > noise
    V = np.ascontiguousarray(V[:, kept])
    means = (moments.x_mean, moments.y_mean) if intercept else (np.zeros(d), np.zeros_like(moments.y_mean))
    return _Basis(V, values[kept], V.T @ moments.cross, alphas, *means)


def _singular_basis(blocks: Any, alphas: Array, intercept: bool, n_jobs: int | None) -> _Basis:
    """Return the basis from the rows, compressed to a triangle: squaring would drown what a small penalty does not."""
    rows, targets, _, x_mean, y_mean = compress(blocks, intercept=intercept, n_jobs=n_jobs)
    x_exponent, y_exponent = extreme_exponent(rows), extreme_exponent(targets)
    # Vᵀ of the decomposition itself: made from the left vectors, small directions would lean towards the large ones.
    U, s, Vt = interruptible(np.linalg.svd, np.ldexp(rows, -x_exponent), full_matrices=False)
    kept = s > np.finfo(float).eps * max(rows.shape) * s[0]
    cross = s[kept, None] * (U[:, kept].T @ np.ldexp(targets, -y_exponent))
    with np.errstate(over="ignore"):
        scaled = np.minimum(np.ldexp(alphas, -2 * x_exponent), ENORMOUS)
    V = np.ascontiguousarray(Vt[kept].T)
    return _Basis(V, s[kept] ** 2, cross, scaled, x_mean, y_mean, x_exponent, y_exponent)
