r"""Weighted moments of rows about their mean, in one pass over the blocks.

    W = Σ wᵢ,   x̄ = Σ wᵢxᵢ / W,   S = Σ wᵢ (xᵢ − x̄)(xᵢ − x̄)ᵀ,   and the same against the targets.

Where a mean is large against the spread, every row is first moved by a provisional mean (that of the first block), so
that nothing cancels. Memory: O(d²) a thread besides the data.

How well coefficients solve a (ridge) least squares problem, in one pass over the blocks.

    g = Σ wᵢ rᵢ (xᵢ − x̄) − αβ,   rᵢ = yᵢ − m − (xᵢ − x̄)ᵀβ,

vanishes at the solution. `relative_residual` puts g into units that no scaling of rows or columns changes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core import Array, NDArray
from ...core.jit import kernel
from ...data.blocks import Block, Blocks, map_reduce, unsigned

Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop


@kernel
def cross_products(X: Array, Y: Array, out: Array) -> None:
    """OUT out (k, d) += YᵀX, for a few columns Y: faster than a matrix product, which would pack X first."""
    n, d = X.shape
    k = Y.shape[1]
    for i in range(n):
        row = X[i]
        for c in range(k):
            y = Y[i, c]
            total = out[c]
            for j in range(d):
                total[j] += y * row[j]


@kernel
def residual_rows(
    X: Array, centre: Array, y: Array, weight: Array, level: float, w: Array, cross: Array
) -> tuple[float, float]:
    """Return Σ s r and Σ s r² for r = y − level − (x − centre)ᵀw. OUT cross (d,) += Σ s r (x − centre). One sweep."""
    n, d = X.shape
    total = 0.0
    square = 0.0
    for i in range(n):
        row = X[i]
        z = 0.0
        for j in range(d):
            z += (row[j] - centre[j]) * w[j]
        r = (y[i] - level) - z
        sr = weight[i] * r
        for j in range(d):
            cross[j] += sr * (row[j] - centre[j])
        total += sr
        square += sr * r
    return total, square


@kernel
def sparse_column_moments(
    data: Array,
    indices: Index,
    indptr: Index,
    weight: Array,
    centre: Array,
    first: Array,
    second: Array,
    present: Array,
) -> None:
    """OUT, of every column over its stored entries: first += Σ w(x − c), second += Σ w(x − c)², present += Σ w."""
    for i in range(indptr.size - 1):
        w = weight[i]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            x = data[k] - centre[j]
            first[j] += w * x
            second[j] += w * x * x
            present[j] += w


@kernel
def sparse_residual_rows(
    data: Array, indices: Index, indptr: Index, y: Array, weight: Array, level: float, w: Array, cross: Array
) -> tuple[float, float]:
    """Return Σ s r and Σ s r² for r = y − level − xᵀw. OUT cross (d,) += Σ s r x. One sweep over CSR rows."""
    total = 0.0
    square = 0.0
    for i in range(indptr.size - 1):
        r = y[i] - level
        for k in range(indptr[i], indptr[i + 1]):
            r -= data[k] * w[indices[k]]
        sr = weight[i] * r
        for k in range(indptr[i], indptr[i + 1]):
            cross[indices[k]] += sr * data[k]
        total += sr
        square += sr * r
    return total, square


@kernel
def sparse_normal_product(
    data: Array, indices: Index, indptr: Index, weight: Array, v: Array, offset: float, out: Array
) -> float:
    """Return Σ wᵢzᵢ for zᵢ = xᵢᵀv − offset. OUT out (d,) += Σ wᵢ zᵢ xᵢ. One sweep over CSR rows."""
    total = 0.0
    for i in range(indptr.size - 1):
        z = -offset
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * v[indices[k]]
        z *= weight[i]
        total += z
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += z * data[k]
    return total


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
    d = blocks.n_columns
    first = blocks.head()
    rows = first.X[:_FIRST_ROWS]
    targets = targets_of(first)[:_FIRST_ROWS]
    x_shift = np.zeros(d)
    y_shift = np.zeros(targets.shape[1])
    if intercept:
        y_shift = provisional_mean(targets)
        if not blocks.sparse and _means_are_far(rows):
            x_shift = provisional_mean(rows)
    statistic = sparse_products if blocks.sparse else dense_products
    for _ in range(2):
        about = partial(statistic, x_shift=x_shift, y_shift=y_shift)
        products = map_reduce(blocks, about, add_in_place, n_jobs=n_jobs)
        weight = products[0, 0]
        sums = products[0, 1:]
        square = products[1:, 1:]
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
    return moments_about(products, blocks.n_rows, x_shift, y_shift, intercept)


def moments_about(products: Array, n_rows: int, x_shift: Array, y_shift: Array, intercept: bool) -> Moments:
    """Return the moments that sums of products of moved rows, as `dense_products` has them, stand for."""
    d = len(x_shift)
    weight = products[0, 0]
    sums = products[0, 1:]
    square = products[1:, 1:]
    offset = np.zeros_like(sums)
    if intercept:
        with np.errstate(over="ignore", invalid="ignore"):
            offset = sums / weight
            square = square - weight * np.outer(offset, offset)
    return Moments(
        n_rows,
        float(weight),
        x_shift + offset[:d],
        y_shift + offset[d:],
        square[:d, :d],
        square[:d, d:],
        np.diag(square)[d:].copy(),
    )


class FoldMoments(NamedTuple):
    """Moments of all rows, and of the rows in and out of each fold."""

    whole: Moments
    inside: list[Moments]
    outside: list[Moments]
    y_means: list[Array]  #: of the rows in each fold, whether or not the moments are about the means


def fold_moments(
    blocks: Any, bounds: NDArray[np.int64], *, intercept: bool = True, n_jobs: int | None = None
) -> FoldMoments:
    """Return the moments of folds in one pass; fold k has the rows bounds[k] … bounds[k + 1] − 1."""
    first = blocks.head()
    x_shift = provisional_mean(first.X[:_FIRST_ROWS]) if intercept else np.zeros(blocks.n_columns)
    targets = targets_of(first)[:_FIRST_ROWS]
    y_shift = provisional_mean(targets) if intercept else np.zeros(targets.shape[1])
    heights = np.diff(bounds)
    n_rows = int(heights.sum())
    if blocks.n_rows != n_rows:  # counting them, blocks that lie elsewhere learn where they begin
        raise ValueError("the folds must hold all rows")
    for attempt in range(2):
        statistic = partial(_fold_products, bounds=bounds, x_shift=x_shift, y_shift=y_shift)
        sums: dict[int, Array] = map_reduce(blocks, statistic, _add_folds, n_jobs=n_jobs)
        total = np.sum([sums[k] for k in sorted(sums)], axis=0)
        about = partial(moments_about, x_shift=x_shift, y_shift=y_shift, intercept=intercept)
        whole = about(total, n_rows)
        moved = whole.weight * (whole.x_mean - x_shift) ** 2
        if attempt or not intercept or not (moved > _MOST_CANCELLATION * np.diag(whole.gram)).any():
            break
        x_shift = whole.x_mean  # the first rows were not like the others: once more, about the true mean
    inside = [about(sums[k], int(height)) for k, height in enumerate(heights)]
    others = [np.sum([sums[j] for j in sorted(sums) if j != k], axis=0) for k in range(len(heights))]
    outside = [about(products, n_rows - int(height)) for products, height in zip(others, heights, strict=True)]
    d = blocks.n_columns
    y_means = [y_shift + sums[k][0, d + 1 :] / sums[k][0, 0] for k in range(len(heights))]
    return FoldMoments(whole, inside, outside, y_means)


def _fold_products(block: Block, bounds: NDArray[np.int64], x_shift: Array, y_shift: Array) -> dict[int, Array]:
    """Return the products of the rows of a block, by fold."""
    found = {}
    end = block.start + block.X.shape[0]
    for k in range(len(bounds) - 1):
        own = slice(max(0, int(bounds[k]) - block.start), min(end, int(bounds[k + 1])) - block.start)
        if own.start < own.stop:
            y = None if block.y is None else block.y[own]
            weight = None if block.weight is None else block.weight[own]
            part = Block(block.X[own], y, weight, block.start + own.start)
            found[k] = dense_products(part, x_shift, y_shift)
    return found


def _add_folds(a: dict[int, Array], b: dict[int, Array]) -> dict[int, Array]:
    for k, products in b.items():
        a[k] = products if k not in a else add_in_place(a[k], products)
    return a


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
        mean = rows.mean(axis=0)
        spread = rows.std(axis=0, mean=mean[None, :])
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
    y = targets_of(block)
    root = root_weight(block)
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


def centred_products(X: Array, weight: Array) -> Array:
    """Return the same products of rows that were moved before, to the same bits; there are no targets."""
    d = X.shape[1]
    root = np.sqrt(weight)[:, None]
    tile = np.empty((min(len(X), _TILE_ROWS), 1 + d))
    total = np.zeros((1 + d, 1 + d))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), _TILE_ROWS):
            scale = root[start : start + _TILE_ROWS]
            T = tile[: len(scale)]
            T[:, :1] = scale
            np.multiply(X[start : start + _TILE_ROWS], scale, out=T[:, 1:])
            total += T.T @ T
    return total


def _unmoved_products(X: Array, Y: Array) -> Array:
    """Return the same products for rows that need neither moving nor weighting, without copying them."""
    d = X.shape[1]
    shape = (d + Y.shape[1],) * 2
    total = np.empty(shape) if len(X) else np.zeros(shape)  # a product fills it, unless there are no rows
    others = np.r_[0, d + 1 : d + Y.shape[1]]  # where the columns of Y = [1, y] stand in the result
    gram = total[1 : d + 1, 1 : d + 1]
    cross = np.zeros((Y.shape[1], d))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), _TILE_ROWS):
            T = X[start : start + _TILE_ROWS]
            if start == 0:
                np.matmul(T.T, T, out=gram)
            else:
                gram += T.T @ T
            cross_products(T, Y[start : start + _TILE_ROWS], cross)
        total[np.ix_(others, others)] = Y.T @ Y
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
        total[0, 0] = Y[:, 0] @ Y[:, 0]
        total[0, d + 1 :] = Y[:, 0] @ Y[:, 1:]
        total[d + 1 :, 0] = Y[:, 0] @ Y[:, 1:]
        total[d + 1 :, d + 1 :] = Y[:, 1:].T @ Y[:, 1:]
        total[0, 1 : d + 1] = total[1 : d + 1, 0] = cross[:, 0]
        total[1 : d + 1, d + 1 :] = cross[:, 1:]
        total[d + 1 :, 1 : d + 1] = cross[:, 1:].T
        total[1 : d + 1, 1 : d + 1] = (X.T @ X).toarray()
    return total


#: A direct solution must satisfy its defining equations to this relative residual.
CLOSED_FORM_TOLERANCE = 1e-12
#: Coefficients that are stored in float32 satisfy them to this: eight times their own rounding.
SINGLE_TOLERANCE = 1e-6

_ROUNDING = 1e-14  # share of the mean by which float64 data blur their own spread
_RESIDUAL_ROWS = 512  # X is read twice in a row; the second time from the cache


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
    m = block.X.shape[0]
    y = targets_of(block)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, m, m if sparse else _RESIDUAL_ROWS):
            rows = slice(start, m if sparse else start + _RESIDUAL_ROWS)
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
    w = np.ascontiguousarray(coef[:, 0])
    y = np.ascontiguousarray(targets_of(block)[:, 0])
    if hasattr(block.X, "indptr"):
        X = block.X
        start = float(level[0] - centre @ w)
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
    x_size = x[0] + share * np.abs(x[1])
    y_size = y[0] + share * np.abs(y[1])
    terms = y_size + x_size @ np.abs(coef) + share * np.abs(intercept)
    worst = _ratio(np.abs(gradient), np.outer(x_size, terms) + penalty).max(axis=0, initial=0.0)
    return np.asarray(np.maximum(worst, _ratio(np.abs(total), np.sqrt(weight) * terms)))


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Divide, with 0/0 = 0."""
    return np.asarray(
        np.divide(numerator, denominator, out=np.where(numerator > 0, np.inf, 0.0), where=denominator > 0)
    )
