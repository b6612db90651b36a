r"""A kernel matrix as a linear map V ↦ KV: kept whole, recomputed in tiles, or, of the linear kernel, never formed.

    whole      8n² bytes, a product reads them once
    in tiles   a few MB; a product costs half of all kernel values
    linear     K = XXᵀ: a product is O(nd)

`partial_cholesky` gives K ≈ FFᵀ with pivots drawn in proportion to what is still missing of the diagonal, which is
nearly as good as the best approximation of that rank; with a diagonal added, Woodbury's formula inverts it.

Reference: Y. Chen, E. Epperly, J. Tropp, R. Webber, Randomly pivoted Cholesky, CPAM 78, 2025.

Products with the matrix of a Gaussian kernel that is never whole, by tiles that serve above and below the diagonal.

Points are centred and scaled once, so that k(a, z) = exp(2⟨a, z⟩ − ‖a‖² − ‖z‖²): a tile is a matrix product and a
polynomial. In float32 a product has six digits and takes a third of the time of one in float64, which has fourteen.
Strips of rows are the work of one thread each and are added up in order: the bits depend on no number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ..core import Array, NDArray, interruptible, never, one_thread_blas
from ..core.jit import kernel as compiled
from ..data.blocks import map_reduce
from ..risk.kernels import Gaussian, Kernel, Linear, Precomputed
from ..risk.kernels.tiles import TILE, symmetric_matrix, symmetric_products
from .rows import embed_with, float32_serves, gauss_tile, gauss_tile64

#: Rows up to which a kernel matrix is kept: 1.2 GB of float64.
MOST_ROWS_KEPT = 12_000

_BLOCK_ROWS = 1024  # rows of the kernel matrix that one task fills
_TIMED_ROWS = 128  # rows of a kernel that is a function between two looks at the clock
_PIVOTS = 128  # columns that a step of the partial factorisation adds
_FACTOR_ROWS = 4096  # rows of them that one task computes
_PANEL = 384  # columns of a panel of a Gram matrix
_EPSILON = 2.0**-52  # distance from one to the next float64


class Operator:
    """V ↦ KV for one set of points.

    Parameters
    ----------
    kernel : Kernel
        k.
    X : (n, d) array or CSR array
        Points, or the given kernel matrix.
    keep : bool
        Whether the matrix is kept whole.
    n_jobs : int or None
        Threads; results do not depend on it.
    stop : function
        Asked between tiles of a matrix that is kept; True raises OutOfTimeError.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        *,
        keep: bool,
        n_jobs: int | None = None,
        stop: Callable[[], bool] = never,
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.n_jobs = n_jobs
        self.is_linear = isinstance(kernel, Linear)
        self.diagonal: Array = np.asarray(kernel.diagonal(X), dtype=np.float64)
        self.matrix: Array | None = None
        if isinstance(kernel, Precomputed):
            self.matrix = X
        elif keep:
            self.matrix = kernel(X) if stop is never else self._matrix_in_time(stop)
        self.gaussian = gaussian_products(kernel, X, n_jobs) if self.matrix is None else None

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.diagonal)

    def __call__(self, V: Array, stop: Callable[[], bool] = never) -> Array:
        """Return KV for V of shape (n, t); OutOfTimeError if `stop` says so between two tiles."""
        if self.matrix is not None:
            return product_by_rows(self.matrix, V, self.n_jobs, stop)
        if self.is_linear:
            with one_thread_blas():
                X = self.X if sp.issparse(self.X) else np.asarray(self.X, dtype=np.float64)
                return np.asarray(X @ (X.T @ V))
        if self.gaussian is not None:
            return self.gaussian(V, stop=stop)
        if not self.kernel._is_pointwise():
            return self.kernel.products(self.X, V, n_jobs=self.n_jobs)
        return symmetric_products(self._between(stop), as_double(self.X), self.diagonal, V, n_jobs=self.n_jobs)

    def rough(self, V: Array, stop: Callable[[], bool] = never) -> Array:
        """Return KV to six digits, in half the time where the kernel allows it."""
        if self.gaussian is not None and self.gaussian.has_single:
            return self.gaussian(V, single=True, stop=stop)
        X = as_double(self.X)
        X = (X - X.mean(axis=0)).astype(np.float32)
        return symmetric_products(self._between(stop), X, self.diagonal, V.astype(np.float32), n_jobs=self.n_jobs)

    @property
    def has_rough(self) -> bool:
        """Whether `rough` is any faster."""
        return self.matrix is None and not sp.issparse(self.X) and self.kernel._is_invariant()

    def _between(self, stop: Callable[[], bool]) -> Callable[[Any, Any], Array]:
        def values(X: Any, Z: Any) -> Array:
            if stop():
                raise OutOfTimeError
            return self.kernel._between(X, Z)

        return values

    def _matrix_in_time(self, stop: Callable[[], bool]) -> Array:
        """Return K; OutOfTimeError if `stop` says so between two tiles."""
        X = as_double(self.X)
        if self.n <= TILE:
            return self.kernel(X)
        if self.kernel._is_pointwise():
            return symmetric_matrix(self._between(stop), X, self.diagonal, n_jobs=self.n_jobs)
        K = np.empty((self.n, self.n))
        values = self._between(stop)
        for start in range(0, self.n, _TIMED_ROWS):
            K[start : start + _TIMED_ROWS] = values(X[start : start + _TIMED_ROWS], X)
        K.flat[:: self.n + 1] = self.diagonal
        return K

    def columns(self, picks: NDArray[np.intp]) -> Array:
        """Return some columns of K, of shape (n, len(picks))."""
        return self.block(slice(0, self.n), picks, np.float64)

    def block(self, rows: slice, picks: NDArray[np.intp], dtype: Any) -> Array:
        """Return K of consecutive rows and some columns, computed in float32 where `dtype` and the kernel allow it."""
        if self.matrix is not None:
            return self.matrix[rows, picks].astype(dtype)
        if self.gaussian is not None:
            K = self.gaussian.block(rows, picks, dtype)
        else:
            K = self.kernel(self.X[rows], self.X[picks])
        inside = np.flatnonzero((picks >= rows.start) & (picks < rows.stop))
        K[picks[inside] - rows.start, inside] = self.diagonal[picks[inside]]
        return K.astype(dtype, copy=False)


def product_by_rows(K: Array, V: Array, n_jobs: int | None = None, stop: Callable[[], bool] = never) -> Array:
    """Return KV of a matrix in memory, by blocks of rows on threads: the same bits for any number of them."""
    out = np.empty((K.shape[0], V.shape[1]), dtype=np.result_type(K, V))

    def fill(start: int) -> None:
        if stop():
            raise OutOfTimeError
        rows = slice(start, start + _BLOCK_ROWS)
        np.matmul(K[rows], V, out=out[rows])

    map_reduce(list(range(0, len(K), _BLOCK_ROWS)), fill, lambda a, b: None, n_jobs=n_jobs)
    return out


def partial_cholesky(
    operator: Operator, rank: int, *, tol: float = 1e-12, dtype: Any = np.float64, stop: Callable[[], bool] = never
) -> tuple[Any, Array]:
    """Return F (n, m ≤ rank) with K ≈ FFᵀ, and the diagonal of what is missing.

    Parameters
    ----------
    operator : Operator
        K.
    rank : int
        Most columns.
    tol : float
        End when the missing trace is at most this share of the whole.
    dtype : type
        float64, or float32 for half of the memory: what is missing is then at least 10⁻⁶ of the trace.
    stop : function
        Asked between steps; True ends them.
    """
    # fixed: a preconditioner changes the way, not the result
    n = operator.n
    rng = np.random.default_rng(0)
    F = np.zeros((n, min(rank, n)), dtype=dtype, order="F")
    m = 0
    missing = np.maximum(operator.diagonal, 0.0)
    trace = float(missing.sum())
    noise = float(np.finfo(dtype).eps)
    enough = max(tol, 10.0 * noise if dtype == np.float32 else 0.0) * trace
    while m < F.shape[1] and float(missing.sum()) > enough and not stop():
        drawn = rng.choice(n, size=min(_PIVOTS, F.shape[1] - m), p=missing / missing.sum())
        picks = np.unique(drawn)
        with one_thread_blas():
            own = F[picks, :m]
            H = np.concatenate([operator.block(slice(i, i + 1), picks, np.float64) for i in picks])
            H -= own @ own.T
            H.flat[:: len(H) + 1] += 4.0 * noise * len(H) * max(float(np.abs(np.diag(H)).max()), _EPSILON * trace)
            try:
                L = np.linalg.cholesky(H).astype(dtype)
            except np.linalg.LinAlgError:  # nothing but rounding is missing, or K is not positive semidefinite
                break
        fill = partial(_fill_columns, operator, F, missing, picks, own, L)
        map_reduce(list(range(0, n, _FACTOR_ROWS)), fill, lambda a, b: None, n_jobs=operator.n_jobs)
        missing[picks] = 0.0
        m += len(picks)
    return F[:, :m], missing


def _fill_columns(
    operator: Operator, F: Any, missing: Array, picks: NDArray[np.intp], own: Any, L: Any, start: int
) -> None:
    """Set some rows of the next columns of F, those whose pivots are `picks`, and what they leave of the diagonal."""
    m = own.shape[1]
    rows = slice(start, min(start + _FACTOR_ROWS, operator.n))
    G = operator.block(rows, picks, F.dtype)
    G -= F[rows, :m] @ own.T
    new = solve_triangular(L, G.T, lower=True, check_finite=False).T
    F[rows, m : m + len(picks)] = new
    missing[rows] = np.maximum(missing[rows] - np.einsum("ij,ij->i", new, new), 0.0)


class Woodbury:
    """(FFᵀ + D)⁻¹ = D⁻¹ − D⁻¹F (I + FᵀD⁻¹F)⁻¹ FᵀD⁻¹.

    Parameters
    ----------
    F : (n, m) array or CSR array
        Factor, in float64 or float32; the matrix that is factorised is m × m.
    d : (n,) array
        Diagonal of D, positive.
    overwrite : bool
        Whether F may be changed: otherwise it is copied.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Examples
    --------
    >>> F, d = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    >>> Woodbury(F, d)((F @ F.T + np.diag(d)) @ np.array([[5.0], [7.0]])).round(12).ravel()
    array([5., 7.])
    """

    def __init__(self, F: Any, d: Array, *, overwrite: bool = False, n_jobs: int | None = None) -> None:
        self.d = d
        self.n_jobs = n_jobs
        self.root = 1.0 / np.sqrt(d)
        if sp.issparse(F):
            self.scaled = F.multiply(self.root[:, None]).tocsr()
            G = np.asarray((self.scaled.T @ self.scaled).toarray())
        else:  # D^−½ F: the capacitance is then I plus a Gram matrix
            root = self.root[:, None].astype(F.dtype)
            self.scaled = np.multiply(F, root, out=F if overwrite else None)
            G = _gram(self.scaled, n_jobs)
        G.flat[:: len(G) + 1] += 1.0
        self.factor = interruptible(cho_factor, G, lower=True, overwrite_a=True, check_finite=False)

    def __call__(self, R: Array) -> Array:
        """Return (FFᵀ + D)⁻¹R for R of shape (n, t)."""
        S = R * self.root[:, None]
        if sp.issparse(self.scaled):
            S = S - self.scaled @ cho_solve(self.factor, self.scaled.T @ S, check_finite=False)
            return np.asarray(S * self.root[:, None])
        kind = self.scaled.dtype
        inner = product_by_rows(self.scaled.T, S.astype(kind, copy=False), self.n_jobs)
        with one_thread_blas():
            inner = cho_solve(self.factor, inner.astype(np.float64, copy=False), check_finite=False)
        S -= product_by_rows(self.scaled, inner.astype(kind, copy=False), self.n_jobs)
        return np.asarray(S * self.root[:, None])

    def diagonal(self) -> Array:
        """Return the diagonal of the inverse."""
        F = np.asarray(self.scaled.toarray() if sp.issparse(self.scaled) else self.scaled)
        with one_thread_blas():
            half = solve_triangular(self.factor[0], F.T, lower=True, check_finite=False)
        return np.asarray((1.0 - np.einsum("ij,ij->j", half, half)) / self.d)


def _gram(F: Any, n_jobs: int | None) -> Array:
    """Return the lower half of FᵀF in float64, by pairs of panels of columns on threads."""
    m = F.shape[1]
    G = np.zeros((m, m))
    panels = [slice(start, start + _PANEL) for start in range(0, m, _PANEL)]
    pairs = [(i, j) for i in panels for j in panels if j.start <= i.start]

    def fill(pair: tuple[slice, slice]) -> None:
        i, j = pair
        G[i, j] = F[:, i].T @ F[:, j]

    if pairs:
        map_reduce(pairs, fill, lambda a, b: None, n_jobs=n_jobs)
    return G


def as_double(X: Any) -> Any:
    """Return rows in float64."""
    return X.astype(np.float64) if X.dtype != np.float64 else X


AnyArray = NDArray[Any]

# a tile: 2 MB of float64, half in the second-level cache
_ROWS = 256
_COLUMNS = 1024
_LARGEST = 1e12  # of γ‖x − x̄‖²: beyond, differences of squares have lost all digits


class OutOfTimeError(Exception):
    """Raised inside a long product that was asked to stop."""


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
        self.n = len(squares)
        self.n_jobs = n_jobs
        largest = float(squares.max(initial=0.0))
        self.points = np.ascontiguousarray(points)
        self.squares = squares
        self.usable = bool(largest <= _LARGEST)
        self.has_single = float32_serves(kernel, largest)
        if self.has_single:
            self.points32 = self.points.astype(np.float32)
            self.squares32 = squares.astype(np.float32)

    def __call__(self, V: AnyArray, *, single: bool = False, stop: Callable[[], bool] = never) -> NDArray[np.float64]:
        """Return KV for V of shape (n, t); OutOfTimeError if `stop` says so between two strips."""
        dtype: Any = np.float32 if single else np.float64
        points, squares = (self.points32, self.squares32) if single else (self.points, self.squares)
        W = np.asarray(V, dtype=dtype)
        out = np.zeros(V.shape)
        sums = _sums_of_one if V.shape[1] == 1 else _sums_of_several

        def strip(start: int) -> tuple[int, AnyArray, AnyArray]:
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

    def block(self, rows: slice, picks: NDArray[np.intp], dtype: Any) -> AnyArray:
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


def _sums_of_one(
    points: AnyArray, squares: AnyArray, W: AnyArray, start: int, single: bool
) -> tuple[AnyArray, AnyArray]:
    """Return the sums of a strip with the columns from its start on, and what it adds to the rows below."""
    rows = slice(start, min(start + _ROWS, len(points)))
    own = points[rows]
    square = squares[rows]
    v = W[rows, 0].copy()
    w = W[:, 0].copy()
    add = gauss_sums if single else gauss_sums64
    beside = np.zeros(len(own))
    below = np.zeros(len(points) - rows.stop, dtype=W.dtype)
    line = np.empty((1, _COLUMNS), dtype=W.dtype)
    slot = np.zeros(1, dtype=np.int64)
    unused = np.zeros(len(own), dtype=W.dtype)
    room = np.empty(len(own) * _COLUMNS, dtype=W.dtype)
    add(own @ own.T, square, square, line[:, : len(own)], slot, v, v, beside, unused)
    for part in _tiles(len(points), rows.stop):
        target = below[part.start - rows.stop : part.stop - rows.stop]
        dots = np.matmul(own, points[part].T, out=room[: len(own) * len(target)].reshape(len(own), len(target)))
        add(dots, square, squares[part], line[:, : len(target)], slot, v, w[part], beside, target)
    return beside[:, None], below[:, None]


def _sums_of_several(
    points: AnyArray, squares: AnyArray, W: AnyArray, start: int, single: bool
) -> tuple[AnyArray, AnyArray]:
    """Do the same for several columns of weights: a tile of values is kept for two matrix products."""
    rows = slice(start, min(start + _ROWS, len(points)))
    own = points[rows]
    square = squares[rows]
    finish = gauss_tile if single else gauss_tile64
    places = np.arange(len(own))
    values = np.empty((len(own), _COLUMNS), dtype=W.dtype)
    finish(own @ own.T, square, square, values, places, 0)
    beside = (values[:, : len(own)] @ W[rows]).astype(np.float64)
    below = np.empty_like(W[rows.stop :])
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


@compiled
def _sum_line(line: Any, weight: Any, weights: Any, below: Any) -> Any:
    """Return Σ line·weights, and add weight·line to `below`."""
    total = weights[0] - weights[0]
    for c in range(line.size):
        total += line[c] * weights[c]
        below[c] += line[c] * weight
    return total


@compiled
def gauss_sums(dots: Any, own: Any, other: Any, line: Any, slot: Any, v: Any, w: Any, beside: Any, below: Any) -> None:
    """Add Σ_z k(a, z) w(z) to `beside` (float64) and Σ_a k(a, z) v(a) to `below` (float32); `line` is (1, width)."""
    for a in range(own.size):
        gauss_tile(dots[a : a + 1], own[a : a + 1], other, line, slot, 0)
        beside[a] += _sum_line(line[0], v[a], w, below)


@compiled
def gauss_sums64(
    dots: Any, own: Any, other: Any, line: Any, slot: Any, v: Any, w: Any, beside: Any, below: Any
) -> None:
    """Do the same in float64."""
    for a in range(own.size):
        gauss_tile64(dots[a : a + 1], own[a : a + 1], other, line, slot, 0)
        beside[a] += _sum_line(line[0], v[a], w, below)
