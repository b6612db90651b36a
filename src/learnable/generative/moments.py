r"""Moments of the columns within each class, in one pass over the blocks; entries that are NaN are left out.

    n_kj = Σ w,   x̄_kj = Σ w x / n_kj,   S_kj = Σ w (x − x̄_kj)²,   over the rows of class k with a value in column j

Rows are moved by a provisional mean of their class, so that nothing cancels; if the first rows were not like the
others, there is a second pass about the true means. Two such sums merge by the formula of Chan, Golub and
LeVeque (1979).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..core import Array, DataError, ParameterError
from ..data.blocks import Block, map_reduce
from ._kernels import add_moments, add_observed_moments
from .base import EPS, codes_of, weights_of

FIRST_ROWS = 1024  # enough for provisional means

MOST_CANCELLATION = 1e4  # of n x̄² against S that is let pass


class ClassMoments(NamedTuple):
    """Sums over the rows of each class."""

    weight: Array  #: (K,), Σ w
    observed: Array  #: (K, d), n
    mean: Array  #: (K, d); 0 where nothing was observed
    square: Array  #: (K, d), S
    rounding: float  #: relative error that S may have

    @property
    def total_variance(self) -> Array:
        """(d,): the variance of each column over all classes."""
        n = self.observed.sum(axis=0)
        whole = np.where(n > 0, n, 1.0)
        centre = (self.observed * self.mean).sum(axis=0) / whole
        return (self.square.sum(axis=0) + (self.observed * (self.mean - centre) ** 2).sum(axis=0)) / whole


def class_moments(owner: str, blocks: Any, n_classes: int, n_jobs: int | None) -> ClassMoments:
    """Return the moments of all rows, class by class."""
    shift = provisional_means(blocks.head(), n_classes)
    for _ in range(2):
        sums = map_reduce(blocks, partial(_block_sums, shift=shift), add_each, n_jobs=n_jobs)
        count, observed, first, second = sums
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise DataError(
                f"{owner}: sums of squares of X overflow: its entries, or their weights, reach beyond 1e150; rescale "
                "the columns, for example by StandardScaler."
            )
        n = np.where(observed > 0, observed, 1.0)
        offset = first / n
        cancelled = n * offset**2
        square = second - cancelled
        mean = shift + offset
        if not (cancelled > MOST_CANCELLATION * np.maximum(square, 0.0)).any():
            break
        shift = mean
    mean[observed == 0] = 0.0
    # A spread of the size of the values' own rounding is none: the column is constant.
    square[square <= n * (8 * EPS * mean) ** 2] = 0.0
    lost = float(np.max(np.where(square > 0, second / np.where(square > 0, square, 1.0), 1.0)))
    return ClassMoments(count, observed, mean, square, 4 * EPS * lost)


def merge_moments(a: ClassMoments, b: ClassMoments) -> ClassMoments:
    """Return the moments of the rows of both."""
    n = a.observed + b.observed
    share = b.observed / np.where(n > 0, n, 1.0)
    gap = b.mean - a.mean
    square = a.square + b.square + a.observed * share * gap**2
    return ClassMoments(a.weight + b.weight, n, a.mean + share * gap, square, a.rounding + b.rounding + 4 * EPS)


def provisional_means(head: Block, n_classes: int) -> Array:
    """Return means of the classes among the first rows; exact where a column is constant there."""
    X = head.X[:FIRST_ROWS]
    X = X.toarray() if hasattr(X, "toarray") else X
    y = np.asarray(head.y)[:FIRST_ROWS]
    overall = _column_means(X)
    means = np.tile(overall, (n_classes, 1))
    for k in np.unique(y).tolist():
        found = _column_means(X[y == k])
        means[k] = np.where(np.isnan(found), overall, found)
    return np.where(np.isfinite(means), means, 0.0)


def _column_means(X: Array) -> Array:
    """Return the means of what is there; NaN of nothing, and the value itself of a constant column."""
    there = ~np.isnan(X)
    filled = np.where(there, X, 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=0) / there.sum(axis=0)
    first = filled[there.argmax(axis=0), np.arange(X.shape[1])]
    constant = ((filled == first) | ~there).all(axis=0) & there.any(axis=0)
    return np.where(constant, first, mean)


def _block_sums(block: Block, shift: Array) -> tuple[Array, Array, Array, Array]:
    """Return count, observed, Σ w(x − shift) and Σ w(x − shift)² of one block."""
    y = codes_of(block)
    w = weights_of(block)
    count = np.zeros(len(shift))
    first = np.zeros_like(shift)
    second = np.zeros_like(shift)
    add_moments(block.X, y, w, shift, count, first, second)
    if not np.isnan(first).any():
        return count, np.repeat(count[:, None], shift.shape[1], axis=1), first, second
    observed = np.zeros_like(shift)
    count[:] = 0.0
    first[:] = 0.0
    second[:] = 0.0
    add_observed_moments(block.X, y, w, shift, count, first, second, observed)
    return count, observed, first, second


def add_each(a: Any, b: Any) -> Any:
    """Add the arrays of b to those of a; return a."""
    for mine, other in zip(a, b, strict=True):
        mine += other
    return a


# Scatter matrices of the rows within each class, in one pass over the blocks.
#
#     N_k = Σ w,   μ_k = Σ w x / N_k,   S_k = Σ w (x − μ_k)(x − μ_k)ᵀ,   over the rows of class k;   S = Σ_k S_k
#
# Rows are moved by a provisional mean of their class, so that nothing cancels; if the first rows were not like the
# others, there is a second pass about the true means. Memory: O(Kd²), or O(d²) where only S is wanted, for each
# thread.

_TILE_ROWS = 2048  # moved rows stay in the cache between the subtraction and the product


class ClassScatter(NamedTuple):
    """Sums over the rows of each class."""

    weight: Array  #: (K,), N
    mean: Array  #: (K, d), μ
    scatter: Array  #: (K, d, d), S_k; or (1, d, d), S
    n_rows: int

    @property
    def within(self) -> Array:
        """(d, d): S, of all classes together."""
        return self.scatter.sum(axis=0)


def class_scatter(owner: str, blocks: Any, n_classes: int, *, pooled: bool, n_jobs: int | None) -> ClassScatter:
    """Return the scatter of every class, or (`pooled`) only their sum."""
    shift = provisional_means(blocks.head(), n_classes)
    for _ in range(2):
        about = partial(_block_scatter, shift=shift, pooled=pooled)
        count, first, second = map_reduce(blocks, about, add_each, n_jobs=n_jobs)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise DataError(
                f"{owner}: sums of squares of X overflow: its entries, or their weights, reach beyond 1e150; rescale "
                "the columns, for example by StandardScaler."
            )
        n = np.where(count > 0, count, 1.0)
        offset = first / n[:, None]
        moved = np.sqrt(n)[:, None] * offset  # S about the mean is S about the shift, less moved movedᵀ
        each = moved[:, :, None] * moved[:, None, :] if not pooled else (moved.T @ moved)[None]
        scatter = second - each
        mean = shift + offset
        spread, lost = (np.einsum("kii->ki", table) for table in (scatter, each))
        if not (lost > MOST_CANCELLATION * np.maximum(spread, 0.0)).any():
            break
        shift = mean
    # A spread of the size of the values' own rounding is none: the column is constant.
    size = np.abs(mean).max(axis=0) if pooled else np.abs(mean)
    total = count.sum() if pooled else n[:, None]
    flat = spread <= total * (8 * EPS * size) ** 2
    for table, constant in zip(scatter, np.atleast_2d(flat), strict=True):
        table[constant] = 0.0
        table[:, constant] = 0.0
    return ClassScatter(count, mean, scatter, blocks.n_rows)


def _block_scatter(block: Block, shift: Array, pooled: bool) -> tuple[Array, Array, Array]:
    """Return N, Σ w(x − shift) and Σ w(x − shift)(x − shift)ᵀ of one block, the last for each class or for all."""
    X = block.X
    y = np.asarray(block.y)
    K, d = shift.shape
    first = np.zeros((K, d))
    second = np.zeros((1 if pooled else K, d, d))
    order = np.argsort(y.astype(np.int16) if K < 2**15 else y, kind="stable")  # rows of one class side by side
    ends = np.cumsum(np.bincount(y, minlength=K))
    tile = np.empty((min(len(y), _TILE_ROWS), d))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(y), _TILE_ROWS):
            rows = order[start : start + _TILE_ROWS]
            T = tile[: len(rows)]
            np.take(X, rows, axis=0, out=T, mode="clip")
            present = np.unique(y[rows]).tolist()
            root = None if block.weight is None else np.sqrt(block.weight[rows])[:, None]
            for k in present:
                part = T[max(0, int(ends[k - 1]) - start if k else 0) : int(ends[k]) - start]
                part -= shift[k]
            if root is not None:
                T *= root
            for k in present:
                mine = slice(max(0, int(ends[k - 1]) - start if k else 0), int(ends[k]) - start)
                ones = np.ones(len(T[mine])) if root is None else root[mine, 0]
                first[k] += ones @ T[mine]
                if not pooled:
                    second[k] += T[mine].T @ T[mine]
            if pooled:
                second[0] += T.T @ T
    weight = None if block.weight is None else block.weight
    return np.bincount(y, weight, K).astype(np.float64), first, second


def add_fourth_powers(block: Block, mean: Array, scale: Array, by_class: bool) -> Array:
    """Return Σ w ‖(x − mean)/scale‖⁴ of one block for each class, or for all rows about one mean."""
    K = len(mean)
    y = np.asarray(block.y) if by_class else np.zeros(block.X.shape[0], dtype=np.int64)
    total = np.zeros(K)
    for start in range(0, len(y), _TILE_ROWS):
        rows = slice(start, start + _TILE_ROWS)
        Z = (block.X[rows] - mean[y[rows]]) / scale[y[rows]]
        fourth = np.einsum("ij,ij->i", Z, Z) ** 2
        total += np.bincount(y[rows], fourth if block.weight is None else fourth * block.weight[rows], K)
    return total


# Covariances of the classes, shrunk or not.
#
#     Σ(λ) = (1 − λ) Σ + λ (tr Σ / d) I
#
# The shrinkage of Ledoit and Wolf is the λ of least expected squared error, estimated from the data. As in scikit-
# learn's
# discriminants it is computed in standardised columns; there
#
#     λ = min(β, δ)/δ,   δ = ‖R − I‖²/d,   β = (n⁻¹ Σᵢ ‖zᵢ‖⁴ − ‖R‖²)/(nd),
#
# with R the correlation matrix of the class and zᵢ its standardised rows (Σᵢ ‖zᵢ‖⁴ takes one more pass over the
# rows).
#
# Reference: O. Ledoit and M. Wolf, A well-conditioned estimator for large-dimensional covariance matrices, Journal of
# Multivariate Analysis 88 (2004), 365–411.


def shrink(cov: Array, shrinkage: float) -> Array:
    """Return (1 − λ) Σ + λ (tr Σ / d) I."""
    d = cov.shape[-1]
    level = np.trace(cov, axis1=-2, axis2=-1) / d
    return (1.0 - shrinkage) * cov + shrinkage * level[..., None, None] * np.eye(d)


def class_covariances(
    owner: str, table: Any, sums: ClassScatter, shrinkage: Any, estimator: Any, n_jobs: int | None
) -> Array:
    """Return the (K, d, d) covariances of the classes by the method asked for."""
    if estimator is not None:
        if shrinkage not in (None, 0):
            raise ParameterError(
                f"{owner}: covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )
        part = table.blocks.joined()
        weight = part.weight
        rows = [np.asarray(part.X[part.y == k], dtype=np.float64) for k in range(len(sums.weight))]
        if weight is not None and np.ptp(weight) > 0:
            raise DataError(
                f"{owner}: covariance_estimator takes no weights; leave out sample_weight, or the estimator."
            )
        return np.stack([_covariance_by(owner, estimator, X) for X in rows])
    cov = sums.scatter / sums.weight[:, None, None]
    if shrinkage == "auto":
        cov = auto_shrunk(table.blocks, sums.weight, sums.mean, cov, by_class=True, n_jobs=n_jobs)
    elif shrinkage is not None:
        cov = shrink(cov, float(shrinkage))
    return cov


def total_covariance(owner: str, table: Any, sums: ClassScatter, shrinkage: Any, estimator: Any, n_jobs: Any) -> Array:
    """Return the (d, d) covariance of all rows about one mean, by the same method."""
    if estimator is not None:
        return _covariance_by(owner, estimator, np.asarray(table.blocks.joined().X, dtype=np.float64))
    n = sums.weight.sum()
    mean = sums.weight @ sums.mean / n
    away = np.sqrt(sums.weight / n)[:, None] * (sums.mean - mean)
    cov = (sums.within / n + away.T @ away)[None]
    if shrinkage == "auto":
        cov = auto_shrunk(table.blocks, np.array([n]), mean[None], cov, by_class=False, n_jobs=n_jobs)
    elif shrinkage is not None:
        cov = shrink(cov, float(shrinkage))
    return cov[0]


def auto_shrunk(blocks: Any, count: Array, mean: Array, cov: Array, *, by_class: bool, n_jobs: int | None) -> Array:
    """Return the covariances shrunk by Ledoit and Wolf's estimate, each in its own standardised columns."""
    d = cov.shape[-1]
    std = np.sqrt(np.einsum("kii->ki", cov))
    std = np.where(std > 0, std, 1.0)
    R = cov / (std[:, :, None] * std[:, None, :])
    sums = partial(add_fourth_powers, mean=mean, scale=std, by_class=by_class)
    fourth = map_reduce(blocks, sums, np.add, n_jobs=n_jobs)
    square = (R**2).sum(axis=(1, 2))
    level = np.trace(R, axis1=1, axis2=2) / d
    n = np.maximum(count, 1.0)
    beta = (fourth / n - square) / (n * d)
    delta = (square - d * level**2) / d
    beta = np.minimum(beta, delta)
    shrinkage = np.where((beta > 0) & (delta > 0), beta / np.where(delta > 0, delta, 1.0), 0.0)
    shrunk = (1.0 - shrinkage)[:, None, None] * R + (shrinkage * level)[:, None, None] * np.eye(d)
    return shrunk * (std[:, :, None] * std[:, None, :])


def _covariance_by(owner: str, estimator: Any, X: Array) -> Array:
    fitted = clone(estimator, safe=False)  # anything with `fit` and `covariance_` will do
    fitted.fit(X)
    if not hasattr(fitted, "covariance_"):
        raise ParameterError(f"{owner}: {type(estimator).__name__} does not have a covariance_ attribute")
    return np.atleast_2d(fitted.covariance_)
