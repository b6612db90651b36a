r"""Designs for coordinate descent: sparse and dense rows in memory.

A design is the matrix A = √S(X − 1x̄ᵀ) and the targets b = √S(y − ȳ): weighted rows about their means, which is what a
free intercept leaves of the problem. Nothing is centred as a whole. Only columns that enter a working set are copied,
centred and scaled; products with all columns use Aᵀv = Xᵀ(√S v) − x̄·(√sᵀv). Sparse columns stay sparse.

Dense rows may have either memory order. One pass over them gives means, norms and Aᵀb. Few rows are copied, centred and
scaled column by column as columns enter the working set. Many rows are not: tiles of them are, for the moment in which
their share of the Gram matrix is added up, so that memory is O(n + k²) besides X.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core import Array, NDArray, one_thread_blas
from ...data.blocks import map_reduce, unsigned
from ..systems.moments import provisional_mean
from ._kernels import (
    column_dots,
    column_epochs,
    column_sums,
    row_dots,
    row_sums,
    sparse_column_epochs,
    sparse_column_sums,
    sparse_products_with,
)
from .coordinate import GramQuadratic, Penalty, Quadratic

Rows = NDArray[np.intp]

_CHUNK = 2**19  # elements of X that one task of a product with all columns reads
MOST_GRAM = 6000  # columns for which a Gram matrix is kept
NOISE = 1e-14  # share of a mean below which a spread is rounding


class SparseDesign:
    """Sparse rows in memory, as CSC columns."""

    whole = False

    def __init__(
        self, X: Any, y: Array, weight: Array | None, *, intercept: bool = True, n_jobs: int | None = None
    ) -> None:
        n, d = X.shape
        self.n_jobs = n_jobs
        self.root, self.weight, self.y_mean, self.b = scaled_targets(y, weight, n, intercept)
        self.X = sp.csc_array(X, dtype=np.float64)
        if self.root is not None:
            self.X = sp.csc_array((self.X.data * self.root[self.X.indices], self.X.indices, self.X.indptr), (n, d))
        self.shape = (d, self.b.shape[1])
        self.square = float((self.b * self.b).sum())
        root = np.ones(n) if self.root is None else self.root
        moments = np.empty((2, d))
        self._over_columns(lambda part, entries: sparse_column_sums(*entries, root, moments[:, part]))
        # √sᵀ√s x = Σ s x
        self.sums = moments[0].copy()
        squares = moments[1]
        self.x_mean = self.sums / self.weight if intercept else np.zeros(d)
        norm = squares - self.weight * self.x_mean**2
        self.norm = np.where(norm <= 1e-14 * squares, 0.0, norm)
        self.cross = self.products(self.b)
        self.work = int(self.X.nnz)

    def thinned(self) -> None:
        """Return None: sparse columns are short."""
        return None

    def _raw_products(self, v: Array) -> Array:
        """Return Xᵀv of all columns."""
        out = np.empty(self.X.shape[1])
        self._over_columns(lambda part, entries: sparse_products_with(*entries, v, out[part]))
        return out

    def _over_columns(self, task: Callable[[slice, tuple[Array, Any, Any]], None]) -> None:
        """Run a task on runs of columns with about as many entries each, on threads."""
        X = self.X
        bounds = np.searchsorted(X.indptr, np.arange(0, X.indptr[-1] + _CHUNK, _CHUNK))
        bounds = np.unique(np.clip(np.r_[0, bounds, X.shape[1]], 0, X.shape[1])).tolist()
        indices = unsigned(X.indices)
        indptr = unsigned(X.indptr)

        def of_columns(part: tuple[int, int]) -> None:
            task(slice(*part), (X.data, indices, indptr[part[0] : part[1] + 1]))

        run_on(list(pairwise(bounds)), of_columns, self.n_jobs)

    def products(self, v: Array) -> Array:
        """Return Aᵀv of all columns for v (n, t)."""
        out = np.column_stack([self._raw_products(np.ascontiguousarray(column)) for column in v.T])
        total = v.sum(axis=0) if self.root is None else self.root @ v
        out -= np.outer(self.x_mean, total)
        out[self.norm == 0] = 0.0
        return out

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return a model of sparse columns, or a Gram model where there are several targets or long columns."""
        X = self.X[:, columns]
        k = len(columns)
        if self.shape[1] == 1 and (X.nnz < 4 * k * k or k > MOST_GRAM):
            sums = np.vstack([self.sums[columns], self.x_mean[columns]])
            if not self.x_mean.any():
                sums[0] = 0.0
            return SparseQuadratic(X, sums, self.norm[columns], self.b, self.root, W)
        G = (X.T @ X).toarray() - self.weight * np.outer(self.x_mean[columns], self.x_mean[columns])
        total = self.b.sum(axis=0) if self.root is None else self.root @ self.b
        C = X.T @ self.b - np.outer(self.x_mean[columns], total)
        model = GramQuadratic(np.ascontiguousarray(G), np.ascontiguousarray(C), self.square, W)
        model.X = X  # type: ignore[attr-defined]
        return model

    def residual(self, model: Any, columns: Rows, level: Array | None = None) -> tuple[Array, float]:
        """Return Aᵀr of all columns, and ‖r‖²."""
        offset = self.x_mean[columns] @ model.W
        root = np.ones(len(self.b)) if self.root is None else self.root
        r = self.b - model.X @ model.W + np.outer(root, offset)
        return self.products(r), float((r * r).sum())


class SparseQuadratic:
    """The quadratic by sparse columns with implicit centring: r + offset·√s is the residual about the mean."""

    def __init__(self, X: Any, sums: Array, norm: Array, b: Array, root: Array | None, W: Array) -> None:
        self.X = X
        self.sums = sums
        self.norm = norm
        self.b = b[:, 0]
        self.W = W.copy()
        self.root = np.ones(len(b)) if root is None else root
        self.square = float(self.b @ self.b)
        self.held = np.zeros(len(self.b) + 1)
        self.r = self.held[:-1]
        self.offset = self.held[-1:]
        self.indices = unsigned(X.indices)
        self.indptr = unsigned(X.indptr)
        self.move(W)

    def epochs(self, penalty: Penalty, n_epochs: int, floor: float) -> float:
        """Visit every coordinate."""
        l1, l2, positive = penalty
        return sparse_column_epochs(
            self.X.data, self.indices, self.indptr, self.sums, self.norm, l1, l2, positive,
            self.W.reshape(-1), self.r, self.offset, n_epochs, floor,
        )  # fmt: skip

    def _residual(self) -> Array:
        return np.asarray(self.r + self.offset * self.root)

    def gradient(self) -> Array:
        """Return Aᵀr."""
        out = np.empty(len(self.W))
        sparse_products_with(self.X.data, self.indices, self.indptr, self.r, out)
        return np.asarray(out + self.offset * self.sums[0])[:, None]

    def residual_square(self) -> float:
        """Return ‖r‖² about the mean."""
        r = self._residual()
        return float(r @ r)

    def move(self, W: Array) -> None:
        """Go to W."""
        self.W[:] = W
        self.r[:] = self.b - self.X @ self.W[:, 0]
        self.offset[0] = self.sums[1] @ self.W[:, 0]

    def curvature(self, rows: Rows) -> Array | None:
        """Return AᵀA of some columns, where they are few."""
        if len(rows) > 1000:
            return None
        X = self.X[:, rows]
        return np.asarray((X.T @ X).toarray() - np.outer(self.sums[0, rows], self.sums[1, rows]))


def run_on(parts: list[Any], task: Callable[[Any], None], n_jobs: int | None) -> None:
    """Run a task, which writes to its own part of an array, on every part, on threads."""
    if parts:
        map_reduce(parts, task, lambda a, b: None, n_jobs=n_jobs)


def slices(n_items: int, step: int) -> list[slice]:
    """Return slices of a fixed size."""
    return [slice(start, min(start + step, n_items)) for start in range(0, n_items, step)]


def scaled_targets(y: Array, weight: Array | None, n: int, intercept: bool) -> tuple[Array | None, float, Array, Array]:
    """Return √s, Σs, ȳ and √s(y − ȳ)."""
    y = np.asarray(y, dtype=np.float64).reshape(n, -1)
    total = float(n) if weight is None else float(weight.sum())
    y_mean = np.zeros(y.shape[1])
    if intercept:
        y_mean = provisional_mean(y) if weight is None else y[0] + weight @ (y - y[0]) / total
    root = None if weight is None else np.sqrt(weight)
    b = y - y_mean
    return root, total, y_mean, b if root is None else b * root[:, None]


_DENSE_CHUNK = 2**20  # elements of X that one task reads
_LONG_COLUMN = 2**14  # rows from which BLAS multiplies columns faster than a loop
_TILE = 2**13  # rows of the tiles of many rows
_STRIPE = 256  # columns of a working set that one task of a Gram matrix multiplies
_MOST_STORED = 2**14  # rows for which working columns are copied
_MANY_LOOKS = 20  # penalties for which a copy in single precision pays
_CLEARLY_BELOW = 0.98  # share of λ₁ up to which a correlation needs no exact digits
_FIRST_ROWS = 1024  # enough for provisional means
_FAR = 1e4  # means beyond this many deviations are subtracted in a copy: implicit centring would lose digits
# rows of a thinned design, at least, and the runs of neighbours in which they are taken
_THIN = 4096
_RUNS = 16


class DenseDesign:
    """Dense rows in memory. Memory: n + k numbers for each of k working columns, of many rows k only."""

    whole = False

    def __init__(
        self,
        X: Any,
        y: Array,
        weight: Array | None,
        *,
        intercept: bool = True,
        n_jobs: int | None = None,
        n_looks: int = 1,
    ) -> None:
        self.X = np.asarray(X, dtype=np.float64)
        self.by_columns = self.X.flags.f_contiguous and not self.X.flags.c_contiguous
        if not (self.by_columns or self.X.flags.c_contiguous):
            self.X = np.ascontiguousarray(self.X)
        n, d = self.X.shape
        self.y = y
        self.sample_weight = weight
        self.intercept = intercept
        self.n_jobs = n_jobs
        self.root, self.weight, self.y_mean, self.b = scaled_targets(y, weight, n, intercept)
        self.shape = (d, self.b.shape[1])
        self.work = n * d
        self.square = float((self.b * self.b).sum())
        self.x_mean, self.norm, self.cross = self._sums()
        spread = np.sqrt(self.norm / self.weight)
        if intercept and (np.abs(self.x_mean) > _FAR * spread)[spread > 0].any():
            self.X = self.X - self.x_mean  # keeps the memory order
            self.shift = np.zeros(d)
            self.cross = self.products(self.b)
        else:
            self.shift = self.x_mean
        self.single: NDArray[np.float32] | None = None
        if n_looks >= _MANY_LOOKS and n <= _MOST_STORED and self.shape[1] == 1:
            self.single = self._half_digits()

    def _half_digits(self) -> NDArray[np.float32]:
        """Return the unit-norm columns of A, stored as rows, in single precision."""
        n, d = self.X.shape
        out = np.empty((d, n), dtype=np.float32)
        inverse = 1.0 / np.sqrt(np.where(self.norm > 0, self.norm, np.inf))

        def fill(part: slice) -> None:
            out[part] = self.columns(np.arange(part.start, part.stop)) * inverse[part, None]

        run_on(slices(d, max(1, _DENSE_CHUNK // n)), fill, self.n_jobs)
        return out

    def _sums(self) -> tuple[Array, Array, Array]:
        """Return the mean and the centred sum of squares of every column, and Aᵀb."""
        n, d = self.X.shape
        weight = np.ones(n) if self.sample_weight is None else self.sample_weight
        targets = np.ascontiguousarray((self.b if self.root is None else self.b * self.root[:, None]).T)
        shift = provisional_mean(self.X[:_FIRST_ROWS]) if self.intercept else np.zeros(d)

        def of_columns(part: slice) -> None:
            column_sums(self.X.T[part], weight, targets, shift[part], sums[part])

        def of_rows(rows: slice) -> Array:
            total = np.zeros((2 + len(targets), d))
            row_sums(self.X[rows], weight[rows], np.ascontiguousarray(targets[:, rows]), shift, total)
            return total

        if self.by_columns:
            sums = np.zeros((d, 2 + len(targets)))
            run_on(slices(d, max(1, _DENSE_CHUNK // n)), of_columns, self.n_jobs)
        else:
            sums = map_reduce(slices(n, max(1, _DENSE_CHUNK // d)), of_rows, _add, n_jobs=self.n_jobs).T
        with np.errstate(over="ignore", invalid="ignore"):  # callers check the norms for inf and NaN
            offset = sums[:, 0] / self.weight if self.intercept else np.zeros(d)
            mean = shift + offset
            square = sums[:, 1] - self.weight * offset**2
            square = np.where(square <= (NOISE * np.abs(mean)) ** 2 * self.weight, 0.0, square)
        return mean, square, np.where(square[:, None] > 0, sums[:, 2:], 0.0)

    def thinned(self) -> DenseDesign | None:
        """Return the design of runs of neighbouring rows, where it has an eighth of the rows at most."""
        n, d = self.X.shape
        size = max(_THIN, 4 * d) // _RUNS
        if n < 8 * size * _RUNS or self.shape[1] > 1:
            return None
        runs = [slice(start, start + size) for start in (np.arange(_RUNS) * (n // _RUNS)).tolist()]
        X, y = (np.concatenate([column[run] for run in runs]) for column in (self.X, self.y))
        weight = None if self.sample_weight is None else np.concatenate([self.sample_weight[run] for run in runs])
        if weight is not None and not weight.any():
            return None
        return DenseDesign(X, y, weight, intercept=self.intercept, n_jobs=self.n_jobs)

    def products(self, v: Array) -> Array:
        """Return Aᵀv of all columns for v (n, t)."""
        scaled = v if self.root is None else v * self.root[:, None]
        n, d = self.X.shape
        out = np.zeros((d, v.shape[1]))
        vectors = np.ascontiguousarray(scaled.T)

        def of_columns(part: slice) -> None:
            # BLAS takes 6.7 ms for 100,000 × 200, the compiled loop 9.5; for 1,000 × 20,000 they take 7.6 and 5.1.
            if len(vectors) == 1 and n >= _LONG_COLUMN:
                with one_thread_blas():
                    np.matmul(self.X.T[part], vectors[0], out=out[part, 0])
            else:
                column_dots(self.X.T[part], vectors, out[part])

        def of_rows(rows: slice) -> Array:
            total = np.zeros((len(vectors), d))
            row_dots(self.X[rows], np.ascontiguousarray(vectors[:, rows]), total)
            return total

        if self.by_columns:
            run_on(slices(d, max(1, _DENSE_CHUNK // n)), of_columns, self.n_jobs)
        else:
            out = map_reduce(slices(n, max(1, _DENSE_CHUNK // d)), of_rows, _add, n_jobs=self.n_jobs).T
        out = out - np.outer(self.shift, scaled.sum(axis=0))
        out[self.norm == 0] = 0.0
        return out

    def columns(self, columns: Rows, rows: slice = slice(None)) -> Array:
        """Return some columns of A as rows (k, m)."""
        taken = self.X.T[:, rows][columns] if self.by_columns else np.ascontiguousarray(self.X[rows][:, columns].T)
        taken -= self.shift[columns, None]
        if self.root is not None:
            taken *= self.root[rows]
        return taken

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return a Gram model while the columns are not many more than the rows, else one of columns."""
        n = self.X.shape[0]
        k = len(columns)
        if n > _MOST_STORED:
            return self._tiled_model(columns, W, last)
        known = 0 if last is None else len(last.W)
        A = _with_room(None if last is None else last.A, known, k, n)
        A[known:k] = self.columns(columns[known:])
        if self.shape[1] == 1 and (k > 2 * n + 500 or k > MOST_GRAM):
            return ColumnQuadratic(A, self.b, W)
        known = known if isinstance(last, GramQuadratic) else 0
        G = _with_room(last.G if known else None, known, k)

        def stripe(part: slice) -> None:
            np.matmul(A[known:k], A[part].T, out=G[known:k, part])

        run_on(slices(k, _STRIPE), stripe, self.n_jobs)
        model = self._completed(G, columns, W, known, last)
        model.A = A  # type: ignore[attr-defined]  # kept for the next, larger set
        return model

    def _tiled_model(self, columns: Rows, W: Array, last: Any) -> GramQuadratic:
        """Return the Gram model of many rows."""
        known = 0 if last is None else len(last.W)
        k = len(columns)

        def products(rows: slice) -> Array:
            A = self.columns(columns, rows)
            return A[known:] @ A.T

        G = _with_room(last.G if known else None, known, k)
        if k > known:
            G[known:k, :k] = map_reduce(slices(self.X.shape[0], _TILE), products, _add, n_jobs=self.n_jobs)
        return self._completed(G, columns, W, known, last)

    def _completed(self, G: Array, columns: Rows, W: Array, known: int, last: Any) -> GramQuadratic:
        """Return the model of a Gram matrix whose new rows are there, but not its new columns."""
        k = len(columns)
        G[:known, known:k] = G[known:k, :known].T
        model = GramQuadratic(G, np.ascontiguousarray(self.cross[columns]), self.square, W)
        if known:
            model.factor = last.factor
        return model

    def residual(self, model: Any, columns: Rows, level: Array | None = None) -> tuple[Array, float]:
        """Return Aᵀr of all columns and ‖r‖², from the residual r of the working columns.

        Of columns that are surely below `level` (d,) only about half the digits may be right.
        """
        support = np.flatnonzero(model.W.any(axis=1))
        if not len(support):
            return self.cross.copy(), self.square
        if hasattr(model, "A"):
            # Where most working columns are in the support, reading them all is less than copying those.
            most = 2 * len(support) > len(columns)
            r = self.b - (model.A[: len(columns)].T @ model.W if most else model.A[support].T @ model.W[support])
        else:
            r = self.b.copy()

            def of_rows(rows: slice) -> None:
                r[rows] -= self.columns(columns[support], rows).T @ model.W[support]

            run_on(slices(len(r), _TILE), of_rows, self.n_jobs)
        square = float((r * r).sum())
        if self.single is None or level is None or not hasattr(model, "A"):
            return self.products(r), square
        return self._screened(r, square, model.A[: len(columns)], columns, level), square

    def _screened(self, r: Array, square: float, A: Array, columns: Rows, level: Array) -> Array:
        """Return Aᵀr with all digits where it can reach the level, and in the working columns A."""
        assert self.single is not None
        size = float(np.sqrt(square))
        if size == 0.0:
            return np.zeros(self.shape)
        rough = np.empty(self.shape[0], dtype=np.float32)
        short = (r[:, 0] / size).astype(np.float32)

        def look(part: slice) -> None:
            np.matmul(self.single[part], short, out=rough[part])  # type: ignore[index]

        run_on(slices(len(rough), max(1, 2 * _DENSE_CHUNK // len(r))), look, self.n_jobs)
        length = size * np.sqrt(self.norm)
        out = length * rough
        # Summing n rounded products of rounded factors is off by at most about (n + 3)·2⁻²⁴ of the norms' product.
        doubt = (len(r) + 3) * 2.0**-24 * length
        near = np.abs(out) + doubt >= _CLEARLY_BELOW * level
        near[columns] = False
        near &= self.norm > 0
        out[columns] = A @ r[:, 0]
        rest = np.flatnonzero(near)
        out[rest] = self.columns(rest) @ r[:, 0]
        out[self.norm == 0] = 0.0
        return out[:, None]


class ColumnQuadratic:
    """The quadratic by its columns: for more columns than rows."""

    def __init__(self, A: Array, b: Array, W: Array) -> None:
        self.A = A[: len(W)]
        self.b = b[:, 0]
        self.W = W.copy()
        self.square = float(self.b @ self.b)
        self.norm = np.einsum("ij,ij->i", self.A, self.A)
        self.r = self.held = np.empty_like(self.b)
        self.move(W)

    def epochs(self, penalty: Penalty, n_epochs: int, floor: float) -> float:
        """Visit every coordinate."""
        w = self.W.reshape(-1)
        return column_epochs(self.A, self.norm, penalty.l1, penalty.l2, penalty.positive, w, self.r, n_epochs, floor)

    def gradient(self) -> Array:
        """Return Aᵀr."""
        return (self.A @ self.r)[:, None]

    def residual_square(self) -> float:
        """Return ‖r‖²."""
        return float(self.r @ self.r)

    def move(self, W: Array) -> None:
        """Go to W."""
        self.W[:] = W
        support = np.flatnonzero(self.W)
        self.r[:] = self.b - self.W[support, 0] @ self.A[support]

    def curvature(self, rows: Rows) -> Array | None:
        """Return AᵀA of some columns, where there are not more of them than rows."""
        if len(rows) > self.A.shape[1]:
            return None
        A = self.A[rows]
        return np.asarray(A @ A.T)


def _with_room(last: Array | None, known: int, rows: int, width: int | None = None) -> Array:
    """Return an array with at least so many rows that begins with those known: the last one, while it has room.

    A working set grows in many small steps. Without a width the array is square, and grows in both directions.
    """
    if last is not None and len(last) >= rows:
        return last
    room = rows if last is None else rows + rows // 2
    grown = np.empty((room, room if width is None else width))
    if last is not None:
        used = known if width is None else width
        grown[:known, :used] = last[:known, :used]
    return grown


def _add(a: Array, b: Array) -> Array:
    return np.add(a, b, out=a)
