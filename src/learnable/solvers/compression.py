r"""Least squares beyond memory without squaring the condition number: the rows are compressed to a triangle.

The QR factorisations of the blocks, merged pair by pair, leave the triangle R of all weighted rows √w [1, x, y]. The
least squares problem with the at most d + k + 1 rows of R in place of the n rows of the data is the same problem,
with or without a penalty or a sign constraint. Memory: O(d²) a thread.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block, map_reduce
from .moments import provisional_mean, root_weight, targets_of
from .orthogonal import LinearFit, orthogonal_fit
from .residuals import relative_residual, residual_sums

Array = NDArray[np.float64]


class Triangle(NamedTuple):
    """All rows, compressed: least squares with these instead of the data is the same problem."""

    rows: Array  #: (m, d), what is left of √w(x − x̄); m ≤ d + k + 1
    targets: Array  #: (m, k), what is left of √w(y − ȳ)
    weight: float  #: Σ w
    x_mean: Array  #: (d,); zero without an intercept
    y_mean: Array  #: (k,); zero without an intercept


def compress(blocks: Any, *, intercept: bool = True, n_jobs: int | None = None) -> Triangle:
    """Return the triangle of all rows, in one sweep."""
    head = blocks.head()
    d, k = head.X.shape[1], targets_of(head).shape[1]
    x_shift, y_shift = np.zeros(d), np.zeros(k)
    if intercept:
        x_shift, y_shift = provisional_mean(head.X), provisional_mean(targets_of(head))
    statistic = partial(_triangle, x_shift=x_shift, y_shift=y_shift)
    R = map_reduce(blocks, statistic, _merge_triangles, n_jobs=n_jobs)
    R = np.pad(R, ((0, max(0, 2 - len(R))), (0, 0)))  # one row leaves nothing below the intercept's
    x, y, weight = R[:, 1 : d + 1], R[:, d + 1 :], float(R[0, 0] ** 2)
    if not intercept:  # the column of ones is the first: it only records the weight
        return Triangle(np.ascontiguousarray(x), np.ascontiguousarray(y), weight, x_shift, y_shift)
    means = x_shift + x[0] / R[0, 0], y_shift + y[0] / R[0, 0]
    return Triangle(np.ascontiguousarray(x[1:]), np.ascontiguousarray(y[1:]), weight, *means)


def compressed_fit(
    blocks: Any, alpha: float = 0.0, *, intercept: bool = True, nonnegative: bool = False, n_jobs: int | None = None
) -> LinearFit:
    """Minimise Σ w (y − b − xᵀβ)² + α‖β‖² over any source of blocks, with β ≥ 0 if asked for."""
    rows, targets, weight, x_mean, y_mean = compress(blocks, intercept=intercept, n_jobs=n_jobs)
    small = orthogonal_fit(rows, targets, None, alpha, intercept=False, nonnegative=nonnegative)
    sums = residual_sums(blocks, x_mean, y_mean, small.coef, n_jobs=n_jobs)
    gradient = sums.cross - alpha * small.coef
    if nonnegative:
        gradient = np.where(small.coef > 0, gradient, np.maximum(gradient, 0.0))
    offset = y_mean - x_mean @ small.coef
    values = relative_residual(
        gradient,
        sums.total if intercept else np.zeros_like(sums.total),
        x=(np.sqrt(np.einsum("ij,ij->j", rows, rows)), x_mean),
        y=(np.sqrt(np.einsum("ij,ij->j", targets, targets)), y_mean),
        coef=small.coef,
        intercept=offset,
        penalty=alpha * np.abs(small.coef).max(axis=0, initial=0.0),
        weight=weight,
    )
    norm = np.sqrt(np.maximum(sums.square, 0.0))
    value = float(values.max(initial=0.0))
    return LinearFit(small.coef, offset, small.rank, small.factor, x_mean, norm, value, small.n_iter)


def _triangle(block: Block, x_shift: Array, y_shift: Array) -> Array:
    """Return R of the rows √w [1, x − shift, y − shift]; no wider than high only if there are enough rows."""
    m = block.X.shape[0]
    T = np.column_stack([np.ones(m), block.X - x_shift, targets_of(block) - y_shift])
    return np.asarray(np.linalg.qr(T * root_weight(block), mode="r"))


def _merge_triangles(a: Array, b: Array) -> Array:
    return np.asarray(np.linalg.qr(np.vstack([a, b]), mode="r"))
