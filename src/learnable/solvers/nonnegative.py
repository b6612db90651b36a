r"""Least squares and ridge with non-negative coefficients:  min_{b, β ≥ 0} Σ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖².

The problem is reduced to d rows, ‖√Λ Vᵀβ − Λ^{−½}Vᵀc‖² with S + αI = VΛVᵀ and c = Σ w (x − x̄)(y − ȳ), and solved
by the active-set method of Lawson and Hanson. The KKT conditions — gradient zero where β > 0, not pushing upwards
where β = 0 — are then evaluated on the data.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import nnls

from ..core.threads import interruptible
from ..data.blocks import Blocks
from .moments import centred_moments
from .orthogonal import LinearFit
from .residuals import relative_residual, residual_sums


def nonnegative_fit(blocks: Blocks, alpha: float, *, intercept: bool = True, n_jobs: int | None = None) -> LinearFit:
    """Solve the problem of the module's docstring; `LinearFit.value` is the relative KKT residual."""
    moments = centred_moments(blocks, intercept=intercept, n_jobs=n_jobs)
    d = blocks.n_columns
    diagonal = np.diag(moments.gram) + alpha
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    A = (moments.gram + alpha * np.eye(d)) * np.outer(scale, scale)
    eigenvalues, V = interruptible(eigh, A, check_finite=False)
    kept = eigenvalues > np.finfo(float).eps * d * max(eigenvalues[-1], 0.0)
    root = np.sqrt(eigenvalues[kept])
    rows = root[:, None] * V[:, kept].T
    right = (V[:, kept].T @ (scale[:, None] * moments.cross)) / root[:, None]
    coef = np.column_stack([scale * nnls(rows, right[:, k])[0] for k in range(right.shape[1])])
    sums = residual_sums(blocks, moments.x_mean, moments.y_mean, coef, n_jobs=n_jobs)
    gradient = sums.cross - alpha * coef
    violation = np.where(coef > 0, gradient, np.maximum(gradient, 0.0))
    x_norm, y_norm = np.sqrt(np.maximum(np.diag(moments.gram), 0.0)), np.sqrt(moments.y_square)
    total = sums.total if intercept else np.zeros_like(sums.total)
    value = relative_residual(violation, total, x_norm, y_norm, coef, alpha, moments.weight)
    mean = moments.x_mean if intercept else np.zeros(d)
    return LinearFit(
        coef, moments.y_mean - mean @ coef, int(kept.sum()), None, mean, np.sqrt(sums.square), float(value.max()), 1
    )
