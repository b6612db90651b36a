r"""Products with the matrix of a Gaussian kernel that is never whole, by tiles that serve above and below the diagonal.

Points are centred and scaled once, so that k(a, z) = exp(2⟨a, z⟩ − ‖a‖² − ‖z‖²): a tile is a matrix product and a
polynomial. In float32 a product has six digits and takes a third of the time of one in float64, which has fourteen.
Strips of rows are the work of one thread each and are added up in order: the bits depend on no number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.run import never
from ..data.blocks import map_reduce
from ..risk.kernels import Gaussian, Kernel
from ._kernels import gauss_tile, gauss_tile64
from ._product_kernels import gauss_sums, gauss_sums64
from .kernel_rows import embed_with, float32_serves

Array = NDArray[Any]

_ROWS, _COLUMNS = 256, 1024  # a tile: 2 MB of float64, half in the second-level cache
_LARGEST = 1e12  # of γ‖x − x̄‖²: beyond, differences of squares have lost all digits


class OutOfTimeError(Exception):
    """Raised inside a long product that somebody asked to stop."""


class GaussianProducts:
    """V ↦ KV of a Gaussian kernel and dense points.

    Parameters
    ----------
    kernel : Gaussian
        k.
    X : (n, d) array
        Points.
    n_jobs : int or None
        Threads.

    Notes
    -----
    Memory: 12nd bytes for embedded points, and for every thread a tile and a few vectors.
    """

    def __init__(self, kernel: Kernel, X: Any, n_jobs: int | None = None) -> None:
        points, squares = embed_with(kernel, X, X.mean(axis=0, dtype=np.float64))
        self.n, self.n_jobs, largest = len(squares), n_jobs, float(squares.max(initial=0.0))
        self.points, self.squares = np.ascontiguousarray(points), squares
        self.usable = bool(largest <= _LARGEST)
        self.has_single = float32_serves(kernel, largest)
        if self.has_single:
            self.points32, self.squares32 = self.points.astype(np.float32), squares.astype(np.float32)

    def __call__(self, V: Array, *, single: bool = False, stop: Callable[[], bool] = never) -> NDArray[np.float64]:
        """Return KV for V of shape (n, t); OutOfTimeError if `stop` says so between two strips."""
        dtype: Any = np.float32 if single else np.float64
        points, squares = (self.points32, self.squares32) if single else (self.points, self.squares)
        W, out = np.asarray(V, dtype=dtype), np.zeros(V.shape)
        sums = _sums_of_one if V.shape[1] == 1 else _sums_of_several

        def strip(start: int) -> tuple[int, Array, Array]:
            if stop():
                raise OutOfTimeError
            return start, *sums(points, squares, W, start, single)

        def merge(first: Any, second: Any) -> None:
            for part in (first, second):
                if part is not None:
                    start, beside, below = part
                    out[start : start + len(beside)] += beside
                    out[start + len(beside) :] += below

        last = map_reduce(list(range(0, self.n, _ROWS)), strip, merge, n_jobs=self.n_jobs)
        merge(last, None)
        return out

    def block(self, rows: slice, picks: NDArray[np.intp], dtype: Any) -> Array:
        """Return k of consecutive rows with some points, in float32 if it serves."""
        single = dtype == np.float32 and self.has_single
        points, squares = (self.points32, self.squares32) if single else (self.points, self.squares)
        own = points[rows]
        out = np.empty((len(own), len(picks)), points.dtype)
        finish = gauss_tile if single else gauss_tile64
        finish(own @ points[picks].T, squares[rows], squares[picks], out, np.arange(len(own)), 0)
        return out


def _tiles(n: int, first: int) -> list[slice]:
    return [slice(start, min(start + _COLUMNS, n)) for start in range(first, n, _COLUMNS)]


def _sums_of_one(points: Array, squares: Array, W: Array, start: int, single: bool) -> tuple[Array, Array]:
    """Return the sums of a strip with the columns from its start on, and what it adds to the rows below."""
    rows = slice(start, min(start + _ROWS, len(points)))
    own, square, v, w = points[rows], squares[rows], W[rows, 0].copy(), W[:, 0].copy()
    add = gauss_sums if single else gauss_sums64
    beside, below = np.zeros(len(own)), np.zeros(len(points) - rows.stop, dtype=W.dtype)
    line, slot = np.empty((1, _COLUMNS), dtype=W.dtype), np.zeros(1, dtype=np.int64)
    unused, room = np.zeros(len(own), dtype=W.dtype), np.empty(len(own) * _COLUMNS, dtype=W.dtype)
    add(own @ own.T, square, square, line[:, : len(own)], slot, v, v, beside, unused)
    for part in _tiles(len(points), rows.stop):
        target = below[part.start - rows.stop : part.stop - rows.stop]
        dots = np.matmul(own, points[part].T, out=room[: len(own) * len(target)].reshape(len(own), len(target)))
        add(dots, square, squares[part], line[:, : len(target)], slot, v, w[part], beside, target)
    return beside[:, None], below[:, None]


def _sums_of_several(points: Array, squares: Array, W: Array, start: int, single: bool) -> tuple[Array, Array]:
    """Do the same for several columns of weights: a tile of values is kept for two matrix products."""
    rows = slice(start, min(start + _ROWS, len(points)))
    own, square, finish = points[rows], squares[rows], gauss_tile if single else gauss_tile64
    places, values = np.arange(len(own)), np.empty((len(own), _COLUMNS), dtype=W.dtype)
    finish(own @ own.T, square, square, values, places, 0)
    beside, below = (values[:, : len(own)] @ W[rows]).astype(np.float64), np.empty_like(W[rows.stop :])
    for part in _tiles(len(points), rows.stop):
        finish(own @ points[part].T, square, squares[part], values, places, 0)
        tile = values[:, : part.stop - part.start]
        beside += tile @ W[part]
        np.matmul(tile.T, W[rows], out=below[part.start - rows.stop : part.stop - rows.stop])
    return beside, below


def gaussian_products(kernel: Kernel, X: Any, n_jobs: int | None = None) -> GaussianProducts | None:
    """Return the products of a Gaussian kernel of dense points; None for another one, or where digits would be lost."""
    if not isinstance(kernel, Gaussian) or sp.issparse(X) or not X.shape[1]:
        return None
    found = GaussianProducts(kernel, X, n_jobs)
    return found if found.usable else None
