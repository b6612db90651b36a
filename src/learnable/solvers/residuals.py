r"""How well coefficients solve a (ridge) least squares problem, in one pass over the blocks.

    g = Σ wᵢ rᵢ (xᵢ − x̄) − αβ,   rᵢ = yᵢ − m − (xᵢ − x̄)ᵀβ,

vanishes at the solution. `relative_residual` puts g into units that no scaling of rows or columns changes.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block, Blocks, map_reduce, unsigned
from ._kernels import residual_rows, sparse_residual_rows
from .moments import targets_of

Array = NDArray[np.float64]

#: A direct solution must satisfy its defining equations to this relative residual.
CLOSED_FORM_TOLERANCE = 1e-12
#: Coefficients that are stored in float32 satisfy them to this: eight times their own rounding.
SINGLE_TOLERANCE = 1e-6

_ROUNDING = 1e-14
_TILE_ROWS = 512  # X is read twice in a row; the second time from the cache


class Residuals(NamedTuple):
    """Sums over the residuals r of a linear fit."""

    cross: Array  #: (d, k), Σ w r (x − centre)
    total: Array  #: (k,), Σ w r
    square: Array  #: (k,), Σ w r²


def residual_sums(blocks: Blocks, centre: Array, level: Array, coef: Array, *, n_jobs: int | None = None) -> Residuals:
    """Return the sums for the fit y ≈ level + (x − centre)ᵀ coef, with coef of shape (d, k)."""
    statistic = partial(block_residuals, centre=centre, level=level, coef=coef)
    return map_reduce(
        blocks, statistic, lambda a, b: Residuals(*(p + q for p, q in zip(a, b, strict=True))), n_jobs=n_jobs
    )


def block_residuals(block: Block, centre: Array, level: Array, coef: Array) -> Residuals:
    """Return the sums of one block, or of one mini-batch."""
    d, k = coef.shape
    if k == 1:
        return _one_target(block, centre, level, coef)
    sparse = hasattr(block.X, "indptr")
    sums = Residuals(np.zeros((d, k)), np.zeros(k), np.zeros(k))
    m, y = block.X.shape[0], targets_of(block)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, m, m if sparse else _TILE_ROWS):
            rows = slice(start, m if sparse else start + _TILE_ROWS)
            X = block.X if sparse else block.X[rows] - centre
            r = (y[rows] - level) - X @ coef
            if sparse:
                r += centre @ coef
            wr = r if block.weight is None else r * block.weight[rows, None]
            total = wr.sum(axis=0)
            cross = X.T @ wr
            if sparse:
                cross -= np.outer(centre, total)
            sums = Residuals(sums.cross + cross, sums.total + total, sums.square + (wr * r).sum(axis=0))
    return sums


def _one_target(block: Block, centre: Array, level: Array, coef: Array) -> Residuals:
    cross = np.zeros(len(coef))
    weight = np.ones(block.X.shape[0]) if block.weight is None else block.weight
    w, y = np.ascontiguousarray(coef[:, 0]), np.ascontiguousarray(targets_of(block)[:, 0])
    if hasattr(block.X, "indptr"):
        X, start = block.X, float(level[0] - centre @ w)
        total, square = sparse_residual_rows(
            X.data, unsigned(X.indices), unsigned(X.indptr), y, weight, start, w, cross
        )
        cross -= total * centre
    else:
        total, square = residual_rows(block.X, centre, y, weight, float(level[0]), w, cross)
    return Residuals(cross[:, None], np.array([total]), np.array([square]))


def relative_residual(
    gradient: Array,
    total: Array,
    *,
    x: tuple[Array, Array],
    y: tuple[Array, Array],
    coef: Array,
    intercept: Array,
    penalty: Array | float = 0.0,
    weight: float,
    tolerance: float = CLOSED_FORM_TOLERANCE,
) -> Array:
    """Return max_j |gⱼ| / (‖xⱼ‖·(‖y‖ + Σₖ‖xₖ‖|βₖ|) + α‖β‖∞) of each target, with the intercept's equation as one more.

    The denominator is the size of the terms that have to cancel in gⱼ, so that the value is a relative backward error.
    `x` and `y` are (spread, mean) of the columns. A size ‖·‖ is the spread plus the share 1e-14/tolerance of the mean:
    digits of the spread that rounding blurs at a large mean cannot be asked for. `penalty` is α‖β‖∞.
    """
    share = _ROUNDING / tolerance * np.sqrt(weight)
    x_size, y_size = x[0] + share * np.abs(x[1]), y[0] + share * np.abs(y[1])
    terms = y_size + x_size @ np.abs(coef) + share * np.abs(intercept)
    worst = _ratio(np.abs(gradient), np.outer(x_size, terms) + penalty).max(axis=0, initial=0.0)
    return np.asarray(np.maximum(worst, _ratio(np.abs(total), np.sqrt(weight) * terms)))


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Divide, with 0/0 = 0."""
    return np.asarray(
        np.divide(numerator, denominator, out=np.where(numerator > 0, np.inf, 0.0), where=denominator > 0)
    )
