r"""Weighted moments of rows about their mean, in one pass over the blocks.

    W = Σ wᵢ,   x̄ = Σ wᵢxᵢ / W,   S = Σ wᵢ (xᵢ − x̄)(xᵢ − x̄)ᵀ,   and the same against the targets.

Where a mean is large against the spread, every row is first moved by a provisional mean (that of the first block), so
that nothing cancels. Memory: O(d²) a thread besides the data.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..data.blocks import Block, Blocks, map_reduce
from ._kernels import cross_products

Array = NDArray[np.float64]

_TILE_ROWS = 2048  # a moved tile stays in the cache between the subtraction and the product
_FIRST_ROWS = 1024  # enough for a provisional mean
_FAR = 3.0  # means beyond this many standard deviations are moved to zero first
_MOST_CANCELLATION = 1e4  # of W x̄² against Σ w (x − x̄)² that is let pass


class Moments(NamedTuple):
    """Second moments about the mean (about zero when there is no intercept)."""

    n_rows: int
    weight: float  #: W, the sum of the weights
    x_mean: Array  #: (d,)
    y_mean: Array  #: (k,)
    gram: Array  #: (d, d), S
    cross: Array  #: (d, k), Σ w (x − x̄)(y − ȳ)ᵀ
    y_square: Array  #: (k,), Σ w (y − ȳ)²


def centred_moments(blocks: Blocks, *, intercept: bool = True, n_jobs: int | None = None) -> Moments:
    """Return the moments of all rows; with `intercept=False`, about zero."""
    d, first = blocks.n_columns, blocks.head()
    rows, targets = first.X[:_FIRST_ROWS], targets_of(first)[:_FIRST_ROWS]
    x_shift, y_shift = np.zeros(d), np.zeros(targets.shape[1])
    if intercept:
        y_shift = provisional_mean(targets)
        if not blocks.sparse and _means_are_far(rows):
            x_shift = provisional_mean(rows)
    statistic = sparse_products if blocks.sparse else dense_products
    for _ in range(2):
        about = partial(statistic, x_shift=x_shift, y_shift=y_shift)
        products = map_reduce(blocks, about, add_in_place, n_jobs=n_jobs)
        weight, sums, square = products[0, 0], products[0, 1:], products[1:, 1:]
        if not intercept:
            offset = np.zeros_like(sums)
            break
        with np.errstate(over="ignore", invalid="ignore"):
            offset = sums / weight
            square = square - weight * np.outer(offset, offset)
            cancelled = weight * offset[:d] ** 2 > _MOST_CANCELLATION * np.diag(square)[:d]
        if blocks.sparse or not cancelled.any():
            break
        x_shift = x_shift + offset[:d]  # the first block was not like the others: once more, about the true mean
        if not np.isfinite(x_shift).all():
            break
    return Moments(
        blocks.n_rows,
        float(weight),
        x_shift + offset[:d],
        y_shift + offset[d:],
        square[:d, :d],
        square[:d, d:],
        np.diag(square)[d:].copy(),
    )


def add_in_place(a: Array, b: Array) -> Array:
    """Add the second sum into the first."""
    return np.add(a, b, out=a)


def provisional_mean(rows: Array) -> Array:
    """Return the column means, exact where a column is constant, so that constant columns become exactly zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = rows.mean(axis=0)
    constant = (rows == rows[0]).all(axis=0)
    mean[constant] = rows[0, constant]
    return np.where(np.isfinite(mean), mean, 0.0)


def _means_are_far(rows: Array) -> bool:
    """Tell whether a mean is so large against its spread that products about zero would lose digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
    return not bool((np.abs(mean) <= _FAR * spread).all())


def targets_of(block: Block) -> Array:
    """Return the targets as an (m, k) array; k = 0 without targets."""
    if block.y is None:
        return np.zeros((block.X.shape[0], 0))
    return block.y.reshape(block.X.shape[0], -1)


def root_weight(block: Block) -> Any:
    """Return √w as a column, or 1."""
    return 1.0 if block.weight is None else np.sqrt(block.weight)[:, None]


def dense_products(block: Block, x_shift: Array, y_shift: Array) -> Array:
    """Return TᵀT of the rows T = √w [1, x − shift, y − shift]."""
    m, d = block.X.shape
    y, root = targets_of(block), root_weight(block)
    width = 1 + d + y.shape[1]
    if block.weight is None and not x_shift.any():
        return _unmoved_products(block.X, np.column_stack([np.ones(m), y - y_shift]))
    tile = np.empty((min(m, _TILE_ROWS), width))
    total = np.zeros((width, width))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, m, _TILE_ROWS):
            rows = slice(start, min(start + _TILE_ROWS, m))
            T = tile[: rows.stop - start]
            T[:, 0] = 1.0
            np.subtract(block.X[rows], x_shift, out=T[:, 1 : d + 1])
            np.subtract(y[rows], y_shift, out=T[:, d + 1 :])
            if block.weight is not None:
                T *= root[rows]
            total += T.T @ T
    return total


def _unmoved_products(X: Array, Y: Array) -> Array:
    """Return the same products for rows that need neither moving nor weighting, without copying them."""
    d = X.shape[1]
    total = np.zeros((d + Y.shape[1],) * 2)
    others = np.r_[0, d + 1 : d + Y.shape[1]]  # where the columns of Y = [1, y] stand in the result
    gram, cross = np.zeros((d, d)), np.zeros((Y.shape[1], d))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), _TILE_ROWS):
            T = X[start : start + _TILE_ROWS]
            gram += T.T @ T
            cross_products(T, Y[start : start + _TILE_ROWS], cross)
        total[np.ix_(others, others)] = Y.T @ Y
    total[1 : d + 1, 1 : d + 1] = gram
    total[others, 1 : d + 1] = cross
    total[1 : d + 1, others] = cross.T
    return total


def sparse_products(block: Block, x_shift: Array, y_shift: Array) -> Array:
    """Return the same products for CSR rows, which are not moved (`x_shift` is zero)."""
    m, d = block.X.shape
    root = root_weight(block)
    Y = root * np.column_stack([np.ones(m), targets_of(block) - y_shift])
    X = sp.csr_array(block.X * root if block.weight is not None else block.X)
    with np.errstate(over="ignore", invalid="ignore"):
        cross = X.T @ Y
        total = np.empty((d + Y.shape[1], d + Y.shape[1]))
        total[0, 0], total[0, d + 1 :], total[d + 1 :, 0] = Y[:, 0] @ Y[:, 0], Y[:, 0] @ Y[:, 1:], Y[:, 0] @ Y[:, 1:]
        total[d + 1 :, d + 1 :] = Y[:, 1:].T @ Y[:, 1:]
        total[0, 1 : d + 1] = total[1 : d + 1, 0] = cross[:, 0]
        total[1 : d + 1, d + 1 :] = cross[:, 1:]
        total[d + 1 :, 1 : d + 1] = cross[:, 1:].T
        total[1 : d + 1, 1 : d + 1] = (X.T @ X).toarray()
    return total
