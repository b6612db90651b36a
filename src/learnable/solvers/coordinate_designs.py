r"""Designs for coordinate descent: rows in memory, dense or sparse, and second moments.

A design is the matrix A = √S(X − 1x̄ᵀ) and the targets b = √S(y − ȳ): weighted rows about their means, which is what a
free intercept leaves of the problem. Nothing is centred as a whole. Only columns that enter a working set are copied,
centred and scaled; products with all columns use Aᵀv = Xᵀ(√S v) − x̄·(√sᵀv). Sparse columns stay sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..data.blocks import Block, Blocks, Part, map_reduce, unsigned
from ._coordinate_kernels import (
    column_epochs,
    column_moments,
    row_moments,
    sparse_column_epochs,
    sparse_products_with,
)
from .coordinate import GramQuadratic, Penalty, Quadratic
from .moments import Moments, provisional_mean

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_CHUNK = 2**19  # elements of X that one task of a product with all columns reads
_STRIPE = 256  # columns of a working set that one task of a Gram matrix multiplies
_MOST_GRAM = 6000  # columns for which a Gram matrix is kept
_FAR = 1e4  # means beyond this many deviations are subtracted in a copy: implicit centring would lose digits
_NOISE = 1e-14  # share of a mean below which a spread is rounding


class Design(Protocol):
    """What the working-set solver asks of the data."""

    square: float  #: ‖b‖²
    norm: Array  #: (d,), ‖Aⱼ‖²; zero for a constant column, which never enters
    whole: bool  #: whether a working set brings nothing, because all columns are in the first model
    shape: tuple[int, int]  #: (d, t)
    x_mean: Array  #: (d,)
    y_mean: Array  #: (t,)
    weight: float  #: Σ s

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return the quadratic in some columns at W (k, t); `last` is one of the first of these columns, or None."""
        ...

    def residual(self, model: Any, columns: Rows) -> tuple[Array, float]:
        """Return Aᵀ(b − AW) of all columns (d, t), and ‖b − AW‖²."""
        ...


class MomentDesign:
    """A design of which only the second moments are known: any number of rows, from anywhere."""

    whole = True

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.shape = moments.cross.shape
        self.square = float(moments.y_square.sum())
        diagonal = moments.gram.diagonal().copy()
        diagonal[diagonal <= (_NOISE * np.abs(moments.x_mean)) ** 2 * moments.weight] = 0.0
        self.norm = np.maximum(diagonal, 0.0)
        self.x_mean, self.y_mean, self.weight = moments.x_mean, moments.y_mean, moments.weight

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return the quadratic in all columns."""
        G, C = self.moments.gram, self.moments.cross
        kept = self.norm > 0
        if not kept.all():
            G, C = np.where(np.outer(kept, kept), G, 0.0), np.where(kept[:, None], C, 0.0)
        return GramQuadratic(np.ascontiguousarray(G), np.ascontiguousarray(C), self.square, W)

    def residual(self, model: Any, columns: Rows) -> tuple[Array, float]:
        """Return C − GW, and ‖b − AW‖²."""
        return np.asarray(model.gradient()), model.residual_square()


class DenseDesign:
    """Dense rows in memory, in either memory order. Memory: n + k numbers for each of k working columns."""

    whole = False

    def __init__(
        self, X: Any, y: Array, weight: Array | None, *, intercept: bool = True, n_jobs: int | None = None
    ) -> None:
        self.X = np.asarray(X, dtype=np.float64)
        self.by_columns = self.X.flags.f_contiguous and not self.X.flags.c_contiguous
        if not (self.by_columns or self.X.flags.c_contiguous):
            self.X = np.ascontiguousarray(self.X)
        n, d = self.X.shape
        self.n_jobs = n_jobs
        self.root, self.weight, self.y_mean, self.b = _scaled_targets(y, weight, n, intercept)
        self.shape = (d, self.b.shape[1])
        self.square = float((self.b * self.b).sum())
        self.x_mean, self.norm = self._moments(np.ones(n) if weight is None else weight, intercept)
        spread = np.sqrt(self.norm / self.weight)
        if intercept and (np.abs(self.x_mean) > _FAR * spread)[spread > 0].any():
            self.X = self.X - self.x_mean  # keeps the memory order
            self.shift = np.zeros(d)
        else:
            self.shift = self.x_mean

    def _moments(self, weight: Array, intercept: bool) -> tuple[Array, Array]:
        """Return the mean and the centred sum of squares of every column."""
        n, d = self.X.shape
        if self.by_columns and intercept:
            mean, square = np.empty(d), np.empty(d)

            def of_columns(part: slice) -> None:
                column_moments(self.X.T[part], weight, mean[part], square[part])

            self._over(d, n, of_columns)
        else:
            shift = provisional_mean(self.X[:1024]) if intercept else np.zeros(d)
            blocks = Blocks([Part(self.X, None, weight)])
            first, square = map_reduce(blocks, partial(_row_sums, shift=shift), _add_pairs, n_jobs=self.n_jobs)
            offset = first / self.weight if intercept else np.zeros(d)
            mean, square = shift + offset, square - self.weight * offset**2
        noise = (_NOISE * np.abs(mean)) ** 2 * self.weight
        return mean, np.where(square <= noise, 0.0, square)

    def _over(self, n_items: int, width: int, task: Any) -> None:
        """Run a task on slices of a fixed size, on threads."""
        run_on(_slices(n_items, max(1, _CHUNK // max(1, width))), task, self.n_jobs)

    def products(self, v: Array) -> Array:
        """Return Aᵀv of all columns for v (n, t)."""
        scaled = v if self.root is None else v * self.root[:, None]
        n, d = self.X.shape
        out = np.empty((d, v.shape[1]))
        if self.by_columns:

            def of_columns(part: slice) -> None:
                np.matmul(self.X.T[part], scaled, out=out[part])

            self._over(d, n, of_columns)
        else:
            parts = _slices(n, max(1, _CHUNK // d))
            out = map_reduce(parts, lambda rows: self.X[rows].T @ scaled[rows], _add, n_jobs=self.n_jobs)
        out -= np.outer(self.shift, scaled.sum(axis=0))
        out[self.norm == 0] = 0.0
        return out

    def columns(self, columns: Rows) -> Array:
        """Return some columns of A as rows (k, n)."""
        taken = np.ascontiguousarray(self.X[:, columns].T)
        taken -= self.shift[columns, None]
        if self.root is not None:
            taken *= self.root
        return taken

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return a Gram model while the columns are not many more than the rows, else one of columns."""
        n, k = self.X.shape[0], len(columns)
        known = 0 if last is None else len(last.W)
        A = np.empty((k, n))
        if known:
            A[:known] = last.A
        A[known:] = self.columns(columns[known:])
        if self.shape[1] == 1 and (k > 2 * n + 500 or k > _MOST_GRAM):
            return ColumnQuadratic(A, self.b, W)
        G, C = np.empty((k, k)), np.empty((k, self.shape[1]))
        if isinstance(last, GramQuadratic):
            G[:known, :known], C[:known] = last.G, last.C
        else:
            known = 0

        def stripe(part: slice) -> None:
            np.matmul(A[known:], A[part].T, out=G[known:, part])

        run_on(_slices(k, _STRIPE), stripe, self.n_jobs)
        G[:known, known:] = G[known:, :known].T
        C[known:] = A[known:] @ self.b
        model = GramQuadratic(G, C, self.square, W)
        model.A = A  # type: ignore[attr-defined]  # kept for the next, larger set
        return model

    def residual(self, model: Any, columns: Rows) -> tuple[Array, float]:
        """Return Aᵀr of all columns and ‖r‖², from the residual r of the working columns."""
        support = np.flatnonzero(model.W.any(axis=1))
        r = self.b - model.A[support].T @ model.W[support]
        return self.products(r), float((r * r).sum())


class ColumnQuadratic:
    """The quadratic by its columns: for more columns than rows."""

    def __init__(self, A: Array, b: Array, W: Array) -> None:
        self.A, self.b, self.W = A, b[:, 0], W.copy()
        self.square = float(self.b @ self.b)
        self.norm = np.einsum("ij,ij->i", A, A)
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


class SparseDesign:
    """Sparse rows in memory, as CSC columns."""

    whole = False

    def __init__(
        self, X: Any, y: Array, weight: Array | None, *, intercept: bool = True, n_jobs: int | None = None
    ) -> None:
        n, d = X.shape
        self.n_jobs = n_jobs
        self.root, self.weight, self.y_mean, self.b = _scaled_targets(y, weight, n, intercept)
        self.X = sp.csc_array(X, dtype=np.float64)
        if self.root is not None:
            self.X = sp.csc_array((self.X.data * self.root[self.X.indices], self.X.indices, self.X.indptr), (n, d))
        self.shape = (d, self.b.shape[1])
        self.square = float((self.b * self.b).sum())
        root = np.ones(n) if self.root is None else self.root
        self.sums = self._raw_products(root)  # √sᵀ√s x = Σ s x
        self.x_mean = self.sums / self.weight if intercept else np.zeros(d)
        squares = np.add.reduceat(np.r_[self.X.data**2, 0.0], self.X.indptr[:-1]) * (np.diff(self.X.indptr) > 0)
        norm = squares - self.weight * self.x_mean**2
        self.norm = np.where(norm <= 1e-14 * squares, 0.0, norm)

    def _raw_products(self, v: Array) -> Array:
        """Return Xᵀv of all columns."""
        X = self.X
        out = np.empty(X.shape[1])
        bounds = np.searchsorted(X.indptr, np.arange(0, X.indptr[-1] + _CHUNK, _CHUNK))
        bounds = np.unique(np.clip(np.r_[0, bounds, X.shape[1]], 0, X.shape[1])).tolist()
        indices, indptr = unsigned(X.indices), unsigned(X.indptr)

        def task(part: tuple[int, int]) -> None:
            sparse_products_with(X.data, indices, indptr[part[0] : part[1] + 1], v, out[part[0] : part[1]])

        run_on(list(pairwise(bounds)), task, self.n_jobs)
        return out

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
        if self.shape[1] == 1 and (X.nnz < 4 * k * k or k > _MOST_GRAM):
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

    def residual(self, model: Any, columns: Rows) -> tuple[Array, float]:
        """Return Aᵀr of all columns, and ‖r‖²."""
        offset = self.x_mean[columns] @ model.W
        root = np.ones(len(self.b)) if self.root is None else self.root
        r = self.b - model.X @ model.W + np.outer(root, offset)
        return self.products(r), float((r * r).sum())


class SparseQuadratic:
    """The quadratic by sparse columns with implicit centring: r + offset·√s is the residual about the mean."""

    def __init__(self, X: Any, sums: Array, norm: Array, b: Array, root: Array | None, W: Array) -> None:
        self.X, self.sums, self.norm, self.b, self.W = X, sums, norm, b[:, 0], W.copy()
        self.root = np.ones(len(b)) if root is None else root
        self.square = float(self.b @ self.b)
        self.held = np.zeros(len(self.b) + 1)
        self.r, self.offset = self.held[:-1], self.held[-1:]
        self.indices, self.indptr = unsigned(X.indices), unsigned(X.indptr)
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


def _slices(n_items: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, n_items)) for start in range(0, n_items, step)]


def _scaled_targets(
    y: Array, weight: Array | None, n: int, intercept: bool
) -> tuple[Array | None, float, Array, Array]:
    """Return √s, Σs, ȳ and √s(y − ȳ)."""
    y = np.asarray(y, dtype=np.float64).reshape(n, -1)
    total = float(n) if weight is None else float(weight.sum())
    y_mean = np.zeros(y.shape[1])
    if intercept:
        y_mean = provisional_mean(y) if weight is None else y[0] + weight @ (y - y[0]) / total
    root = None if weight is None else np.sqrt(weight)
    b = y - y_mean
    return root, total, y_mean, b if root is None else b * root[:, None]


def _row_sums(block: Block, shift: Array) -> tuple[Array, Array]:
    first, second = np.zeros(len(shift)), np.zeros(len(shift))
    row_moments(block.X, block.weight, shift, first, second)  # type: ignore[arg-type]
    return first, second


def _add(a: Array, b: Array) -> Array:
    return np.add(a, b, out=a)


def _add_pairs(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return a[0] + b[0], a[1] + b[1]
