r"""Exact leave-one-out and generalised cross-validation of ridge in two sweeps over rows that need not be in memory.

The first sweep gives S = Σ w (x − x̄)(x − x̄)ᵀ = V diag(s²) Vᵀ. In the second every row has, for all α at once,

    hᵢᵢ = wᵢ/W + wᵢ Σⱼ pᵢⱼ²/(s²ⱼ + α),   rᵢ = yᵢ − ȳ − Σⱼ pᵢⱼ (Vᵀc)ⱼ/(s²ⱼ + α),   pᵢ = Vᵀ(xᵢ − x̄),

and the criteria are sums over the rows. Memory: O(d²) a thread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.threads import interruptible
from ..data.blocks import Block, map_reduce
from ..solvers.moments import Moments, add_in_place, targets_of

Array = NDArray[np.float64]

_TILE_ROWS = 2048


def swept_criterion(
    blocks: object, moments: Moments, alphas: Array, *, criterion: str, intercept: bool, n_jobs: int | None
) -> Array:
    """Return LOO(α) or GCV(α), the weighted mean squared error that each estimates, of one target."""
    values, V = interruptible(np.linalg.eigh, moments.gram)
    values = np.maximum(values, 0.0)
    shrunk = 1.0 / (values[:, None] + alphas)  # (d, n_alphas)
    slopes = (V.T @ moments.cross) * shrunk
    x_mean = moments.x_mean if intercept else np.zeros(len(V))
    y_mean = moments.y_mean if intercept else np.zeros_like(moments.y_mean)
    leave_out, weight_sum = criterion == "loo", moments.weight

    def statistic(block: Block) -> Array:
        total = np.zeros(len(alphas))
        y = targets_of(block) - y_mean
        for start in range(0, len(y), _TILE_ROWS):
            rows = slice(start, start + _TILE_ROWS)
            P = (block.X[rows] - x_mean) @ V
            w = np.ones((len(P), 1)) if block.weight is None else block.weight[rows, None]
            r = y[rows] - P @ slopes
            if leave_out:
                free = 1.0 - w * (P**2 @ shrunk + (1.0 / weight_sum if intercept else 0.0))
                # A row that determines its own fit has no leave-one-out prediction: its error is infinite, not 0/0.
                r = np.where(free > 1e-14, r / np.where(free > 1e-14, free, 1.0), np.inf)
            total += (w * r**2).sum(axis=0)
        return total

    total = map_reduce(blocks, statistic, add_in_place, n_jobs=n_jobs) / weight_sum  # type: ignore[arg-type]
    if leave_out:
        return np.asarray(total)
    degrees = (values[:, None] * shrunk).sum(axis=0) + intercept
    return np.asarray(total / np.maximum(1.0 - degrees / moments.n_rows, 1e-150) ** 2)
