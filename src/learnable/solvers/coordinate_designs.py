r"""Designs for coordinate descent: sparse rows in memory, and second moments; dense rows have a file of their own.

A design is the matrix A = √S(X − 1x̄ᵀ) and the targets b = √S(y − ȳ): weighted rows about their means, which is what a
free intercept leaves of the problem. Nothing is centred as a whole. Only columns that enter a working set are copied,
centred and scaled; products with all columns use Aᵀv = Xᵀ(√S v) − x̄·(√sᵀv). Sparse columns stay sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..data.blocks import map_reduce, unsigned
from ._coordinate_kernels import sparse_column_epochs, sparse_column_sums, sparse_products_with
from .coordinate import GramQuadratic, Penalty, Quadratic
from .moments import Moments, provisional_mean

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_CHUNK = 2**19  # elements of X that one task of a product with all columns reads
MOST_GRAM = 6000  # columns for which a Gram matrix is kept
NOISE = 1e-14  # share of a mean below which a spread is rounding


class Design(Protocol):
    """What the working-set solver asks of the data."""

    square: float  #: ‖b‖²
    norm: Array  #: (d,), ‖Aⱼ‖²; zero for a constant column, which never enters
    cross: Array  #: (d, t), Aᵀb
    work: int  #: numbers that a look at all columns reads
    whole: bool  #: whether a working set brings nothing, because all columns are in the first model
    shape: tuple[int, int]  #: (d, t)
    x_mean: Array  #: (d,)
    y_mean: Array  #: (t,)
    weight: float  #: Σ s

    def thinned(self) -> Design | None:
        """Return the design of few of the rows, where there are so many that it pays to solve that first."""
        ...

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return the quadratic in some columns at W (k, t); `last` is one of the first of these columns, or None."""
        ...

    def residual(self, model: Any, columns: Rows, level: Array | None = None) -> tuple[Array, float]:
        """Return Aᵀ(b − AW) of all columns (d, t), and ‖b − AW‖².

        Of columns that are surely below `level` (d,) only about half the digits may be right.
        """
        ...


class MomentDesign:
    """A design of which only the second moments are known: any number of rows, from anywhere."""

    whole = True

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.shape = moments.cross.shape
        self.square = float(moments.y_square.sum())
        diagonal = moments.gram.diagonal().copy()
        diagonal[diagonal <= (NOISE * np.abs(moments.x_mean)) ** 2 * moments.weight] = 0.0
        self.norm = np.maximum(diagonal, 0.0)
        self.cross, self.work = np.where(self.norm[:, None] > 0, moments.cross, 0.0), diagonal.size**2
        self.x_mean, self.y_mean, self.weight = moments.x_mean, moments.y_mean, moments.weight

    def thinned(self) -> Design | None:
        """Return None: there are no rows."""
        return None

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return the quadratic in all columns."""
        G, C = self.moments.gram, self.moments.cross
        kept = self.norm > 0
        if not kept.all():
            G, C = np.where(np.outer(kept, kept), G, 0.0), np.where(kept[:, None], C, 0.0)
        return GramQuadratic(np.ascontiguousarray(G), np.ascontiguousarray(C), self.square, W)

    def residual(self, model: Any, columns: Rows, level: Array | None = None) -> tuple[Array, float]:
        """Return C − GW, and ‖b − AW‖²."""
        return np.asarray(model.gradient()), model.residual_square()


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
        self.sums, squares = moments[0].copy(), moments[1]  # √sᵀ√s x = Σ s x
        self.x_mean = self.sums / self.weight if intercept else np.zeros(d)
        norm = squares - self.weight * self.x_mean**2
        self.norm = np.where(norm <= 1e-14 * squares, 0.0, norm)
        self.cross, self.work = self.products(self.b), int(self.X.nnz)

    def thinned(self) -> Design | None:
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
        indices, indptr = unsigned(X.indices), unsigned(X.indptr)

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
