r"""Rows of a kernel matrix for the decomposition, in float32 where that is enough.

Kernels of inner products are one matrix product and a formula: Gaussian exp(−γ‖x − z‖²) from points that are centred
and scaled by √γ, polynomial (γ⟨x, z⟩ + c)^p. Every other kernel is asked for its values. The linear kernel needs no
rows at all: its sums are X(Xᵀβ).

float32 is enough while the exponent's rounding stays far below the tolerance, that is, while γ‖x − x̄‖² is moderate;
otherwise, and for small tables, rows are float64.

Sums of kernels at new points, Σⱼ cⱼ k(x, zⱼ), take the same tiles: in float32 of large tables values are right to about
1e-6 Σ|cⱼ|; sums over the tiles are float64.

A tile is finished by a compiled loop that vectorises: `dots` holds ⟨a, z⟩ for some rows a and a tile of columns z;
values go to store[slots[a], start:]. The exponential of float32 is a polynomial and a power of two made from its bits,
to 2 units in the last place.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np
import scipy.sparse as sp

from ..core import Array, NDArray
from ..core.jit import intrinsic, kernel, strict_kernel
from ..core.simd import exp
from ..risk.kernels import Gaussian, Kernel, Linear, Polynomial, Precomputed
from ..risk.kernels.base import squares
from ..solvers.conic.smo import Team

_LOG2E: Final = 1.4426950408889634  # 1/log 2
# log 2 in two pieces
_HIGH32 = np.float32(0.693359375)
_LOW32 = np.float32(-2.12194440e-4)
_F = np.float32


float_of = intrinsic("float_of")  #: int32 → the float32 with these bits


@strict_kernel
def gauss_tile(dots: Any, own: Any, other: Any, store: Any, slots: Any, start: int) -> None:
    """Write exp(2⟨a, z⟩ − ‖a‖² − ‖z‖²), float32; `own` and `other` are the squares."""
    width = other.size
    for a in range(slots.size):
        line = dots[a]
        out = store[slots[a], start : start + width]
        square = own[a]
        for c in range(width):
            x = (line[c] - square) + (line[c] - other[c])
            x = min(max(x, _F(-87.0)), _F(0.0))
            k = np.floor(x * _F(_LOG2E) + _F(0.5))
            r = (x - k * _HIGH32) - k * _LOW32
            p = _F(1.9875691500e-4)
            p = p * r + _F(1.3981999507e-3)
            p = p * r + _F(8.3334519073e-3)
            p = p * r + _F(4.1665795894e-2)
            p = p * r + _F(1.6666665459e-1)
            p = p * r + _F(5.0000001201e-1)
            p = p * (r * r) + (r + _F(1.0))
            out[c] = p * float_of(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))


@strict_kernel
def gauss_tile64(dots: Any, own: Any, other: Any, store: Any, slots: Any, start: int) -> None:
    """Write exp(2⟨a, z⟩ − ‖a‖² − ‖z‖²), float64."""
    width = other.size
    for a in range(slots.size):
        line = dots[a]
        out = store[slots[a], start : start + width]
        square = own[a]
        for c in range(width):
            out[c] = exp(min((line[c] - square) + (line[c] - other[c]), 0.0))


@strict_kernel
def power_tile(dots: Any, shift: Any, degree: int, store: Any, slots: Any, start: int) -> None:
    """Write (⟨a, z⟩ + shift)^degree."""
    width = dots.shape[1]
    for a in range(slots.size):
        line = dots[a]
        out = store[slots[a], start : start + width]
        if degree == 2:
            for c in range(width):
                x = line[c] + shift
                out[c] = x * x
        elif degree == 3:
            for c in range(width):
                x = line[c] + shift
                out[c] = x * x * x
        else:
            for c in range(width):
                x = line[c] + shift
                power = x
                for _ in range(degree - 1):
                    power *= x
                out[c] = power


@kernel
def add_weighted(values: Any, c: Any, out: Any) -> None:
    """Add Σⱼ values[i, j] c[j] to out[i], in float64."""
    for i in range(out.size):
        line = values[i, : c.size]
        total = 0.0
        for j in range(c.size):
            total += np.float64(line[j]) * c[j]
        out[i] += total


@strict_kernel
def sparse_dots(data: Any, indices: Any, indptr: Any, columns: Any, rows_of: Any, ends: Any, out: Any) -> None:
    """Add ⟨x, z⟩ of some sparse rows x with all rows z, given by columns (CSC), to the rows of `out`.

    The cost is the number of entries that the columns of x have.
    """
    for r in range(out.shape[0]):
        line = out[r]
        for p in range(indptr[r], indptr[r + 1]):
            x = data[p]
            j = indices[p]
            for s in range(ends[j], ends[j + 1]):
                line[rows_of[s]] += x * columns[s]


Rows = NDArray[np.int64]
Tasks = tuple[Callable[[int], None], int]

_SMALL = 2000  # rows up to which float64 costs nothing that one could notice
_EXPONENT32 = 32.0  # largest γ‖x − x̄‖² for float32: the exponent is then right to 1e-5
_EXPONENT64 = 5e7  # largest γ‖x − x̄‖² for distances from inner products in float64: right to 1e-8
_VALUE32 = 1e4  # largest value of a polynomial for float32
_TILE = 512  # columns of a tile: with some hundred rows it fits into the second-level cache
_SUM_ROWS = 8192  # rows of a sum that one task computes
_PANEL = 128  # rows of a square block that one task computes
_SPARSE_PANEL = 16  # sparse rows that one task computes
_FEW_COLUMNS = 160  # columns up to which rows are sooner computed again than found in a large memory


class _Embedded:
    """Kernels of inner products of embedded points, in float32 or float64."""

    def __init__(self, kernel: Kernel, X: Any, single: bool | None = None) -> None:
        self.kernel = kernel
        self.X = X
        self.n = X.shape[0]
        centred = isinstance(kernel, Gaussian) and not sp.issparse(X)
        points, squares = embed_with(kernel, X, X.mean(axis=0, dtype=np.float64) if centred else None)
        if single is None:
            single = self.n > _SMALL and float32_serves(kernel, float(squares.max(initial=0.0)))
        self.dtype: Any = np.float32 if single else np.float64
        self.squares = squares.astype(self.dtype)
        self.points: Any = (
            points.astype(self.dtype) if sp.issparse(points) else np.ascontiguousarray(points, self.dtype)
        )
        self.finish = formula_of(kernel, self.dtype)

    def diagonal(self) -> Array:
        """Return k(x, x)."""
        return self.kernel.diagonal(self.X)

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β in float64."""
        return self.kernel.products(self.X[rows], beta, self.X[support])

    def part(self, rows: Rows) -> Self:
        """Return the same kernel of some of the points, in the same precision."""
        part = copy.copy(self)
        part.X = self.X[rows]
        part.n = len(rows)
        part.points = self.points[rows]
        part.squares = self.squares[rows]
        return part


class DenseRows(_Embedded):
    """Rows of a Gaussian or polynomial kernel of dense points: a matrix product and a formula for each tile."""

    @property
    def costly(self) -> bool:
        """Whether rows are worth memory: of few columns they are computed again."""
        return bool(self.points.shape[1] > _FEW_COLUMNS)

    def tasks(self, rows: Rows, store: NDArray[Any], slots: Rows) -> Tasks:
        """Return the tasks that compute these rows, one for each tile of columns."""
        own = self.points[rows]
        squares = self.squares[rows]

        def task(number: int) -> None:
            part = slice(number * _TILE, min((number + 1) * _TILE, self.n))
            self.finish(own @ self.points[part].T, squares, self.squares[part], store, slots, part.start)

        return task, -(-self.n // _TILE)

    def sums(self, rows: Rows, support: Rows, beta: Array, team: Team) -> Array:
        """Return K[rows, support] β."""
        left = (self.points[rows], self.squares[rows])
        right = (self.points[support], self.squares[support])
        return tile_sums(self.finish, left, right, beta[:, None], [(0, len(support))], team)[0][:, 0]

    def square(self, rows: Rows, out: NDArray[Any]) -> Tasks | None:
        """Return the tasks that compute K[rows, rows] afresh: of few columns, reading whole rows takes longer."""
        if self.costly:
            return None
        own = self.points[rows]
        squares = self.squares[rows]

        def task(number: int) -> None:
            part = slice(number * _PANEL, min((number + 1) * _PANEL, len(rows)))
            self.finish(own[part] @ own.T, squares[part], squares, out, np.arange(part.start, part.stop), 0)

        return task, -(-len(rows) // _PANEL)


class SparseRows(_Embedded):
    """Rows of the same kernels of sparse points: sums over the columns that two points share."""

    costly = True

    def __init__(self, kernel: Kernel, X: Any, single: bool | None = None) -> None:
        super().__init__(kernel, X, single)
        self.columns = self.points.tocsc()

    def part(self, rows: Rows) -> Self:
        """Return the same kernel of some of the points."""
        part = super().part(rows)
        part.columns = part.points.tocsc()
        return part

    def tasks(self, rows: Rows, store: NDArray[Any], slots: Rows) -> Tasks:
        """Return the tasks that compute these rows, a few whole rows each."""
        dots_of = self._dots(self.points[rows], self.columns)
        squares = self.squares[rows]

        def task(number: int) -> None:
            part, dots = dots_of(number)
            self.finish(dots, squares[part], self.squares, store, slots[part], 0)

        return task, -(-len(rows) // _SPARSE_PANEL)

    def sums(self, rows: Rows, support: Rows, beta: Array, team: Team) -> Array:
        """Return K[rows, support] β."""
        dots_of = self._dots(self.points[rows], self.points[support].tocsc())
        out = np.empty(len(rows))
        own = self.squares[rows]
        other = self.squares[support]
        places = np.arange(_SPARSE_PANEL)

        def task(number: int) -> None:
            part, dots = dots_of(number)
            values = np.empty_like(dots)
            self.finish(dots, own[part], other, values, places[: len(dots)], 0)
            out[part] = values @ beta

        team.run(task, -(-len(rows) // _SPARSE_PANEL))
        return out

    def _dots(self, own: Any, by: Any) -> Callable[[int], tuple[slice, NDArray[Any]]]:
        """Return a function of a number: a slice of a few rows of `own`, and ⟨x, z⟩ of these with all rows of `by`."""
        indices = own.indices.astype(np.int64)
        indptr = own.indptr.astype(np.int64)
        n = own.shape[0]

        def dots_of(number: int) -> tuple[slice, NDArray[Any]]:
            part = slice(number * _SPARSE_PANEL, min((number + 1) * _SPARSE_PANEL, n))
            dots = np.zeros((part.stop - part.start, by.shape[0]), self.dtype)
            sparse_dots(own.data, indices, indptr[part.start : part.stop + 1], by.data, by.indices, by.indptr, dots)
            return part, dots

        return dots_of

    def square(self, rows: Rows, out: NDArray[Any]) -> Tasks | None:
        """Return None: whole rows are needed anyway."""
        return None


class LinearMatrix:
    """The linear kernel: blocks are products of rows, and sums are X(Xᵀβ), so that no row of K is ever computed."""

    def __init__(self, X: Any, team: Team) -> None:
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        self.n = X.shape[0]
        self.team = team
        self.kernel = Linear()

    def rounding(self) -> bool:
        """Everything is float64."""
        return False

    def diagonal(self) -> Array:
        """Return ‖x‖²."""
        return self.kernel.diagonal(self.X)

    def block(self, rows: Rows) -> Array:
        """Return K[rows, rows]; a negative row is padding."""
        K = self.kernel._between(own := self.X[np.maximum(rows, 0)], own)
        K[rows < 0] = 0.0
        K[:, rows < 0] = 0.0
        return np.ascontiguousarray(K)

    def add(self, f: Array, rows: Rows, delta: Array) -> None:
        """Add X(X[rows]ᵀ delta) to f."""
        w = self.X[rows].T @ delta

        def task(number: int) -> None:
            part = slice(number * _SUM_ROWS, (number + 1) * _SUM_ROWS)
            f[part] += self.X[part] @ w

        self.team.run(task, -(-self.n // _SUM_ROWS))

    def sums(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β."""
        return self.exact(rows, support, beta)

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β."""
        return np.asarray(self.X[rows] @ (self.X[support].T @ beta))

    def part(self, rows: Rows) -> LinearMatrix:
        """Return the kernel of some of the rows."""
        return LinearMatrix(self.X[rows], self.team)


class _Float64Rows:
    """Rows that are float64 and not made of tiles: sums of them are exact, and squares are cut from whole rows."""

    dtype = np.float64

    def square(self, rows: Rows, out: NDArray[Any]) -> Tasks | None:
        """Return None: whole rows are needed anyway."""
        return None

    def sums(self, rows: Rows, support: Rows, beta: Array, team: Team) -> Array:
        """Return K[rows, support] β."""
        return self.exact(rows, support, beta)

    @abstractmethod
    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β."""


class AnyRows(_Float64Rows):
    """Rows of any kernel, in float64, as it gives them."""

    costly = True

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.kernel = kernel
        self.X = X

    def diagonal(self) -> Array:
        """Return k(x, x)."""
        return self.kernel.diagonal(self.X)

    def tasks(self, rows: Rows, store: NDArray[Any], slots: Rows) -> Tasks:
        """Return the one task that computes these rows: a foreign function may not be safe on two threads."""

        def task(number: int) -> None:
            store[slots] = self.kernel(self.X[rows], self.X)

        return task, 1

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β."""
        return self.kernel.products(self.X[rows], beta, self.X[support])

    def part(self, rows: Rows) -> AnyRows:
        """Return the same kernel of some of the points."""
        return AnyRows(self.kernel, self.X[rows])


class GivenRows(_Float64Rows):
    """Rows of a matrix that was computed before."""

    costly = False

    def __init__(self, K: NDArray[Any], rows: Rows | None = None) -> None:
        self.K = K
        self.rows = np.arange(len(K)) if rows is None else rows

    def diagonal(self) -> Array:
        """Return K_ii."""
        return np.array(self.K[self.rows, self.rows], dtype=np.float64)

    def tasks(self, rows: Rows, store: NDArray[Any], slots: Rows) -> Tasks:
        """Return the one task that copies these rows."""

        def task(number: int) -> None:
            whole = len(self.rows) == len(self.K)
            store[slots] = self.K[rows] if whole else self.K[np.ix_(self.rows[rows], self.rows)]

        return task, 1

    def exact(self, rows: Rows, support: Rows, beta: Array) -> Array:
        """Return K[rows, support] β."""
        return np.asarray(self.K[np.ix_(self.rows[rows], self.rows[support])] @ beta, dtype=np.float64)

    def part(self, rows: Rows) -> GivenRows:
        """Return some rows and columns of the same matrix."""
        return GivenRows(self.K, self.rows[rows])


def tile_sums(
    finish: Callable[..., None],
    left: tuple[Any, Any],
    right: tuple[Any, Any],
    coefficients: Array,
    runs: list[tuple[int, int]],
    team: Team,
) -> list[Array]:
    """Return Σⱼ cⱼ k(xᵢ, zⱼ) over each run of points z, tile by tile; `left` and `right` are points and squares."""
    x, own = left
    z, other = right
    n = len(x)
    t = coefficients.shape[1]
    dtype = x.dtype
    c = np.ascontiguousarray(coefficients, dtype=dtype)
    out = [np.zeros((n, t)) for _ in runs]

    def task(number: int) -> None:
        rows = slice(number * _TILE, min((number + 1) * _TILE, n))
        values = np.empty((rows.stop - rows.start, _TILE), dtype=dtype)
        places = np.arange(len(values))
        for (first, last), total in zip(runs, out, strict=True):
            for start in range(first, last, _TILE):
                points = slice(start, min(start + _TILE, last))
                finish(x[rows] @ z[points].T, own[rows], other[points], values, places, 0)
                if t == 1:
                    add_weighted(values, coefficients[points, 0], total[rows, 0])
                else:
                    total[rows] += values[:, : points.stop - start] @ c[points]

    team.run(task, -(-n // _TILE))
    return out


def formula_of(kernel: Kernel, dtype: Any) -> Callable[..., None]:
    """Return finish(dots, own squares, other squares, store, slots, start), the kernel of inner products."""
    if isinstance(kernel, Gaussian):
        return gauss_tile if dtype == np.float32 else gauss_tile64
    if not isinstance(kernel, Polynomial):
        raise TypeError(f"{type(kernel).__name__} is no function of inner products")
    shift = dtype(kernel.coef0)
    degree = int(kernel.degree)
    return lambda dots, own, other, store, slots, start: power_tile(dots, shift, degree, store, slots, start)


def embed_with(kernel: Kernel, X: Any, centre: Any = None) -> tuple[Any, Array]:
    """Return points whose inner products the formula takes, in float64, and their squares."""
    points: Any = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if isinstance(kernel, Gaussian):
        scale = 1.0 / (np.sqrt(2.0) * np.asarray(kernel.length_scale, dtype=np.float64))
        points = points.multiply(np.atleast_1d(scale)[None, :]).tocsr() if sp.issparse(X) else (points - centre) * scale
    elif isinstance(kernel, Polynomial):
        points = points * np.sqrt(kernel.gamma)
    return points, squares(points)


def float32_serves(kernel: Kernel, largest: float) -> bool:
    """Tell whether float32 is precise enough, if the embedded points have squares up to `largest`."""
    if isinstance(kernel, Gaussian):
        return largest <= _EXPONENT32
    return (largest + kernel.coef0) ** kernel.degree <= _VALUE32 if isinstance(kernel, Polynomial) else False


def products_serve(kernel: Kernel, largest: float) -> bool:
    """Tell whether float64 inner products are precise enough for distances; else points are subtracted."""
    return not isinstance(kernel, Gaussian) or largest <= _EXPONENT64


def row_source(kernel: Kernel, X: Any, single: bool | None = None) -> Any:
    """Return the object that computes the rows of this kernel's matrix."""
    if isinstance(kernel, Precomputed):
        return GivenRows(X)
    if isinstance(kernel, (Gaussian, Polynomial)):
        source = (SparseRows if sp.issparse(X) else DenseRows)(kernel, X, single)
        if products_serve(kernel, float(source.squares.max(initial=0.0))):
            return source
    return AnyRows(kernel, X)


_FEW = 2**22  # kernel values up to which float64 costs nothing that one could notice


def kernel_scores(
    kernel: Kernel, X: Any, Z: Any, coefficients: Array, runs: list[tuple[int, int]], *, n_jobs: int | None = None
) -> list[Array]:
    """Return Σⱼ cⱼ k(xᵢ, zⱼ) over each run of points, of shape (n, t) for coefficients (m, t).

    Memory: copies of X and Z in the precision used, and tiles of 1 MB per thread.
    """
    n = X.shape[0]
    m = Z.shape[0]
    t = coefficients.shape[1]
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    if m == 0 or n == 0:
        return [np.zeros((n, t)) for _ in runs]
    if isinstance(kernel, Linear):
        return [np.asarray(X @ (Z[i:j].T @ coefficients[i:j]), dtype=np.float64) for i, j in runs]
    if sp.issparse(X) or sp.issparse(Z) or not isinstance(kernel, (Gaussian, Polynomial)):
        return [
            kernel.products(X, coefficients[i:j], Z[i:j], n_jobs=n_jobs) if j > i else np.zeros((n, t)) for i, j in runs
        ]
    centre = Z.mean(axis=0, dtype=np.float64) if isinstance(kernel, Gaussian) else None
    left, own = embed_with(kernel, X, centre)
    right, other = embed_with(kernel, Z, centre)
    largest = max(float(own.max()), float(other.max()))
    if not products_serve(kernel, largest):
        return [np.asarray(kernel.products(X, coefficients[i:j], Z[i:j], n_jobs=n_jobs)) for i, j in runs]
    single = n * m > _FEW and float32_serves(kernel, largest)
    dtype: Any = np.float32 if single else np.float64
    left, right, own, other = (np.ascontiguousarray(a, dtype=dtype) for a in (left, right, own, other))
    with Team(n_jobs) as team:
        return tile_sums(formula_of(kernel, dtype), (left, own), (right, other), coefficients, runs, team)
