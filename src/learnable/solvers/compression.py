r"""Least squares beyond memory without squaring the condition number: the rows are compressed to a triangle.

The QR factorisations of the blocks, merged pair by pair, leave the triangle R of all weighted rows √w [1, x, y]. The
least squares problem with the at most d + k + 1 rows of R in place of the n rows of the data is the same problem,
with or without a penalty or a sign constraint. Memory: O(d²) a thread.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block, map_reduce
from .moments import provisional_mean, root_weight, targets_of
from .orthogonal import LinearFit, orthogonal_fit
from .residuals import relative_residual, residual_sums

Array = NDArray[np.float64]


def compressed_fit(
    blocks: object, alpha: float = 0.0, *, intercept: bool = True, nonnegative: bool = False, n_jobs: int | None = None
) -> LinearFit:
    """Minimise Σ w (y − b − xᵀβ)² + α‖β‖² over any source of blocks, with β ≥ 0 if asked for."""
    head = blocks.head()  # type: ignore[attr-defined]
    d, k = head.X.shape[1], targets_of(head).shape[1]
    x_shift, y_shift = np.zeros(d), np.zeros(k)
    if intercept:
        x_shift, y_shift = provisional_mean(head.X), provisional_mean(targets_of(head))
    statistic = partial(_triangle, x_shift=x_shift, y_shift=y_shift)
    R = map_reduce(blocks, statistic, _merge_triangles, n_jobs=n_jobs)  # type: ignore[arg-type]
    weight = float(R[0, 0] ** 2)
    x_mean, y_mean = np.zeros(d), np.zeros(k)
    if intercept:
        x_mean, y_mean = x_shift + R[0, 1 : d + 1] / R[0, 0], y_shift + R[0, d + 1 :] / R[0, 0]
        rows, targets = R[1:, 1 : d + 1], R[1:, d + 1 :]
    else:  # the column of ones is the first: it only records the weight
        rows, targets = R[:, 1 : d + 1], R[:, d + 1 :]
    small = orthogonal_fit(
        np.ascontiguousarray(rows), np.ascontiguousarray(targets), None, alpha, intercept=False, nonnegative=nonnegative
    )
    level = y_mean if intercept else x_mean @ small.coef
    sums = residual_sums(blocks, x_mean, level, small.coef, n_jobs=n_jobs)  # type: ignore[arg-type]
    gradient = sums.cross - alpha * small.coef
    if nonnegative:
        gradient = np.where(small.coef > 0, gradient, np.maximum(gradient, 0.0))
    offset = y_mean - x_mean @ small.coef if intercept else np.zeros(k)
    values = relative_residual(
        gradient,
        sums.total if intercept else np.zeros(k),
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
