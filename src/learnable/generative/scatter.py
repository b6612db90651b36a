r"""Scatter matrices of the rows within each class, in one pass over the blocks.

    N_k = Σ w,   μ_k = Σ w x / N_k,   S_k = Σ w (x − μ_k)(x − μ_k)ᵀ,   over the rows of class k;   S = Σ_k S_k

Rows are moved by a provisional mean of their class, so that nothing cancels; if the first rows were not like the
others, there is a second pass about the true means. Memory: O(Kd²), or O(d²) where only S is wanted, for each thread.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..data.blocks import Block, map_reduce
from .base import EPS
from .moments import MOST_CANCELLATION, provisional_means

Array = NDArray[np.float64]

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
        count, first, second = map_reduce(blocks, about, _add, n_jobs=n_jobs)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise DataError(
                f"{owner}: sums of squares of X overflow: its entries, or their weights, reach beyond 1e150; rescale "
                "the columns, for example by StandardScaler."
            )
        n = np.where(count > 0, count, 1.0)
        offset = first / n[:, None]
        moved = np.sqrt(n)[:, None] * offset  # S about the mean is S about the shift, less moved movedᵀ
        each = moved[:, :, None] * moved[:, None, :] if not pooled else (moved.T @ moved)[None]
        scatter, mean = second - each, shift + offset
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
    X, y = block.X, np.asarray(block.y)
    K, d = shift.shape
    first, second = np.zeros((K, d)), np.zeros((1 if pooled else K, d, d))
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


def _add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    for mine, other in zip(a, b, strict=True):
        mine += other
    return a


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
