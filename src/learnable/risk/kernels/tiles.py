"""Kernel matrices and their products by square tiles: each pair of points is looked at once, on threads.

K is symmetric, so that a tile above the diagonal serves below it too. Every tile is computed by one thread, and sums
are merged in the order of the tiles: the result has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import AnyArray, NDArray
from ...data.blocks import map_reduce

#: The values of a kernel at two sets of points.
Between = Callable[[Any, Any], AnyArray]

TILE = 512  # rows and columns of a tile: 2 MB of float64, which stay in the cache


def tile_pairs(n: int, tile: int = TILE) -> list[tuple[slice, slice]]:
    """Return the tiles of an n × n matrix on and above its diagonal.

    Examples
    --------
    >>> [(rows.start, columns.start) for rows, columns in tile_pairs(3, 2)]
    [(0, 0), (0, 2), (2, 2)]
    """
    cuts = [slice(start, min(start + tile, n)) for start in range(0, n, tile)]
    return [(cuts[i], cuts[j]) for i in range(len(cuts)) for j in range(i, len(cuts))]


def symmetric_matrix(between: Between, X: Any, diagonal: AnyArray, *, n_jobs: int | None = None) -> AnyArray:
    """Return the matrix of k(xᵢ, xⱼ) of one set of points, symmetric to the bit.

    Parameters
    ----------
    between : function
        (X, Z) → values; called on threads.
    X : (n, d) array or CSR array
        Points.
    diagonal : (n,) array
        k(xᵢ, xᵢ).
    n_jobs : int or None
        Threads.
    """
    n = X.shape[0]
    K = np.empty((n, n), dtype=diagonal.dtype)

    def fill(pair: tuple[slice, slice]) -> None:
        rows, columns = pair
        K[rows, columns] = between(X[rows], X[columns])
        if rows == columns:
            square = K[rows, rows]
            lower = np.tril_indices(len(square), -1)
            square[lower] = square.T[lower]
        else:
            K[columns, rows] = K[rows, columns].T

    map_reduce(tile_pairs(n), fill, lambda a, b: None, n_jobs=n_jobs)
    K.flat[:: n + 1] = diagonal
    return K


def symmetric_products(
    between: Between, X: Any, diagonal: AnyArray, V: AnyArray, *, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Return K V, where K is the matrix of one set of points and never whole.

    Parameters
    ----------
    between, X, diagonal, n_jobs
        As in `symmetric_matrix`.
    V : (n,) or (n, t) array
        Of the type in which tiles are multiplied; sums over tiles are in float64.
    """
    out = np.zeros(V.shape)

    def multiply(pair: tuple[slice, slice]) -> list[tuple[slice, AnyArray]]:
        rows, columns = pair
        T = between(X[rows], X[columns]).astype(V.dtype, copy=False)
        if rows == columns:
            T.flat[:: len(T) + 1] = diagonal[rows]
            return [(rows, T @ V[columns])]
        return [(rows, T @ V[columns]), (columns, T.T @ V[rows])]

    def add(parts: list[tuple[slice, AnyArray]]) -> None:
        for rows, part in parts:
            out[rows] += part

    def merge(first: Any, second: Any) -> None:
        for parts in (first, second):
            if parts is not None:
                add(parts)

    last = map_reduce(tile_pairs(X.shape[0]), multiply, merge, n_jobs=n_jobs)
    merge(last, None)  # a single tile is merged with nothing
    return out
