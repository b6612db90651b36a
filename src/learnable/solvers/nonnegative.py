r"""Least squares and ridge with non-negative coefficients:  min_{b, β ≥ 0} Σ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖².

An orthogonal factorisation reduces the problem to d rows, which the active-set method of Lawson and Hanson solves. The
KKT conditions — gradient zero where β > 0, not pushing upwards where β = 0 — are then evaluated on the data.
"""

from __future__ import annotations

from ..core.errors import DataError
from ..data.blocks import Blocks
from .compression import compressed_fit
from .least_squares import dense_rows
from .orthogonal import LinearFit, orthogonal_fit

_LARGEST_DENSE_COPY = 2e8  # elements of sparse data that may be made dense


def nonnegative_fit(blocks: Blocks, alpha: float, *, intercept: bool = True) -> LinearFit:
    """Solve the problem of the module's docstring; `LinearFit.value` is the relative KKT residual."""
    if blocks.sparse and blocks.n_rows * blocks.n_columns > _LARGEST_DENSE_COPY:
        raise DataError("positive=True needs dense rows, and these sparse ones are too many to be made dense.")
    if not blocks.in_memory:
        return compressed_fit(blocks, alpha, intercept=intercept, nonnegative=True)
    return orthogonal_fit(*dense_rows(blocks), alpha, intercept=intercept, nonnegative=True)
