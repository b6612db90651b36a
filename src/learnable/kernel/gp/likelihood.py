r"""The marginal likelihood of a Gaussian process, and its gradient in the logarithms θ of the hyperparameters.

    y = Hβ + f + ε,   f ~ GP(0, k),   ε ~ N(0, Λ),   K = k(X, X) + Λ = LLᵀ,   α = K⁻¹(y − Hβ),

    log p(y) = −½ (y − Hβ)ᵀα − Σ log Lᵢᵢ − ½ log|A| − ½(n − q) log 2π,     A = HᵀK⁻¹H,

    ∂ log p(y)/∂θⱼ = ½ Σᵢₖ Sᵢₖ ∂Kᵢₖ/∂θⱼ,     S = ααᵀ − K⁻¹ + K⁻¹H A⁻¹HᵀK⁻¹.

K⁻¹ is formed once, in place, from the factor: n³ operations in all for the value and every derivative. The columns of
y are
independent, with the same kernel: their log densities add. Memory: five matrices of n × n (Gaussian kernel).

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and equation 5.9.

Factors and inverses of large matrices, the same bits on any number of threads.

LAPACK's own threads cut a matrix according to their number, and the order of its sums with it. Here the cut is fixed:
tiles of 128 rows, each worked on by one thread with BLAS of one thread, several of them at a time.

    A = LLᵀ, tile by tile:   Lₖₖ Lₖₖᵀ = Aₖₖ − Σⱼ Lₖⱼ Lₖⱼᵀ,   Lᵢₖ = (Aᵢₖ − Σⱼ Lᵢⱼ Lₖⱼᵀ) Lₖₖ⁻ᵀ,   j < k < i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

from ...core import Array, DataError, NDArray, ParameterError, interruptible, interruptible_pass, one_thread_blas
from ...core.jit import kernel as compiled
from ...data.blocks import map_reduce
from ...risk.kernels.base import Kernel
from ...risk.kernels.tape import record
from ...solvers.problem import Evaluation

WORST = 1e-2  #: relative gradient that rounding may leave of a nearly singular matrix
_SMALL = 600  # rows up to which LAPACK factorises on one thread; more are cut into tiles for all
_LARGEST = 1e140  # numbers whose squares, and sums of them, are still floats
_LOG_2PI = float(np.log(2.0 * np.pi))
_JITTERS = (0.0, *10.0 ** np.arange(-15.0, -3.0))  # shares of the mean variance


@dataclass(frozen=True)
class Observations:
    """What is known: points, targets, the variance of their noise, the functions of the mean."""

    share: ClassVar[int] = 2  #: a search on half of the rows comes first: it takes an eighth of the time
    X: Array  #: (n, d)
    y: Array  #: (n, t)
    noise: Array  #: (n,) diagonal of Λ, without what the kernel says of it
    H: Array  #: (n, q)
    log_units: float = 0.0  #: log of the units in which the coefficients of H have density one

    def some(self, rows: NDArray[np.int64]) -> Observations:
        """Return some of the rows."""
        return replace(self, X=self.X[rows], y=self.y[rows], noise=self.noise[rows], H=self.H[rows])

    def with_jitter(self, jitter: float) -> Observations:
        """Return the same with more noise."""
        return replace(self, noise=self.noise + jitter) if jitter else self


class Evidence(NamedTuple):
    """The marginal likelihood at one kernel."""

    value: float  #: log p(y)
    gradient: Array  #: (p,) its derivatives by θ; empty if not asked for
    alpha: Array  #: (n, t) K⁻¹(y − Hβ)
    beta: Array  #: (q, t)
    L: Array  #: (n, n) lower triangular; overwritten if the gradient was asked for
    W: Array  #: (n, q) L⁻¹H
    size: float  #: nt + Σ (y − Hβ)ᵀα, what a gradient is measured against


def evidence(kernel: Kernel, data: Observations, *, gradient: bool) -> Evidence | None:
    """Return the marginal likelihood; None where K is not positive definite to working precision."""
    # Tiles of large matrices are worked on by threads of ours.
    compute = interruptible_pass if len(data.y) > _SMALL else interruptible
    if not gradient:
        return compute(_evidence, kernel(data.X), data)[0]
    tape = record(kernel, data.X)
    found, S = compute(_evidence, tape.owned(), data, gradient=True)
    if found is None:
        return None
    slopes = 0.5 * tape.back(S)
    return found._replace(gradient=slopes) if np.isfinite(slopes).all() else None


def _evidence(K: Array, data: Observations, *, gradient: bool = False) -> tuple[Evidence | None, Any]:
    """Return the marginal likelihood, and S if the gradient is wanted; K is overwritten."""
    n, t = data.y.shape
    q = data.H.shape[1]
    L = _factor(K, data.noise)
    if L is None:
        return None, None
    if not gradient and n <= _SMALL:
        L = np.asfortranarray(np.tril(L))
    right = _solved(L, np.hstack([data.H, data.y]))
    W = right[:, :q]
    v = right[:, q:]
    R: Array = np.asarray(np.linalg.cholesky(W.T @ W), dtype=np.float64) if q else np.zeros((0, 0))
    beta: Array = np.asarray(np.linalg.solve(R.T, np.linalg.solve(R, W.T @ v))) if q else np.zeros((0, t))
    v = v - W @ beta
    alpha = _solved(L, v, transposed=True)
    fit = float(np.einsum("ij,ij->", v, v))
    log_det = float(np.log(np.diagonal(L)).sum()) + float(np.log(np.diagonal(R)).sum()) + data.log_units
    value = -0.5 * fit - t * (log_det + 0.5 * (n - q) * _LOG_2PI)
    if not np.isfinite(value):
        return None, None
    found = Evidence(value, np.zeros(0), alpha, beta, L, W, n * t + fit)
    return found, _weights(L, alpha, W, R, t) if gradient else None


def _solved(L: Array, B: Array, transposed: bool = False) -> Array:
    """Return L⁻¹B or L⁻ᵀB for a factor in either order of memory."""
    right = np.asfortranarray(B)
    if L.flags.f_contiguous:
        return np.asarray(dtrsm(1.0, L, right, lower=1, trans_a=int(transposed)))
    return np.asarray(dtrsm(1.0, L.T, right, lower=0, trans_a=int(not transposed)))


def _factor(K: Array, noise: Array) -> Array | None:
    """Return L of K + Λ in K's own memory; of few rows, column by column, and above its diagonal stands anything."""
    K.flat[:: len(K) + 1] += noise
    if len(K) > _SMALL:
        return lower_factor(K)
    L, info = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)  # K is symmetric: its transpose lies column by column
    return L if info == 0 else None


def _weights(L: Array, alpha: Array, W: Array, R: Array, t: int) -> Array:
    """Return S, in the memory of L."""
    U = alpha
    if W.shape[1]:
        Q = _solved(L, W, transposed=True)
        U = np.hstack([alpha, np.sqrt(t) * np.linalg.solve(R, Q.T).T])
    if len(L) > _SMALL:
        inverse = inverse_from_factor(L).T
    else:
        inverse, _ = dpotri(L, lower=1, overwrite_c=1)
    S = dsyrk(1.0, np.asfortranarray(U), beta=-float(t), c=inverse, lower=1, overwrite_c=1).T
    mirror(S)
    return np.asarray(S)


def needed_jitter(owner: str, kernel: Kernel, data: Observations) -> float:
    """Return the least variance, of a few orders of magnitude, that K needs on its diagonal to be positive definite."""
    size = float(np.mean(kernel.diagonal(data.X) + data.noise))
    for share in _JITTERS:
        found = evidence(kernel, data.with_jitter(share * size), gradient=False)
        if found is not None:
            return share * size
    raise DataError(
        f"{owner}: the kernel {kernel.formula} is not positive definite on these rows, even with {_JITTERS[-1]:g} of "
        "its size added to the diagonal; check it with learnable.risk.kernels.is_mercer, or raise alpha."
    )


class Objective:
    """−log p(y) as a function of θ in a box, for solvers.

    The measure is the largest derivative that no bound holds back, relative to nt + Σ (y − Hβ)ᵀα.
    """

    def __init__(self, kernel: Kernel, data: Observations, bounds: Array) -> None:
        self.kernel = kernel
        self.data = data
        self.bounds = bounds
        self.n_evaluations = 0

    def evaluate(self, theta: Array) -> Evaluation:
        """Return value, gradient and measure; infinite where K is not positive definite."""
        self.n_evaluations += 1
        found = evidence(self.kernel.with_theta(theta), self.data, gradient=True)
        if found is None:
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        return Evaluation(-found.value, -found.gradient, stationarity(theta, found.gradient, self.bounds, found.size))

    def value(self, theta: Array) -> float:
        """Return −log p(y) alone."""
        found = evidence(self.kernel.with_theta(theta), self.data, gradient=False)
        return np.inf if found is None else -found.value

    def curvature(self, theta: Array) -> Array:
        """Return the Fisher information ½ tr K⁻¹∂ⱼK K⁻¹∂ₖK of θ; the Hessian's mean under the model. For few rows."""
        kernel = self.kernel.with_theta(theta)
        found = evidence(kernel, self.data, gradient=False)
        if found is None:
            return np.eye(len(theta))
        slopes = kernel._gradients(self.data.X)
        G = np.empty((len(slopes), found.L.size))
        for j in range(len(G)):
            half = dtrsm(1.0, found.L, np.asfortranarray(slopes.pop(0)), lower=1)
            G[j] = dtrsm(1.0, found.L, half, side=1, lower=1, trans_a=1, overwrite_b=1).ravel()
        F = 0.5 * self.data.y.shape[1] * (G @ G.T)
        return F + np.eye(len(F)) * (1e-6 * float(np.trace(F)) + 1e-10)


def stationarity(theta: Any, gradient: Array, bounds: Array, size: float) -> float:
    """Return max |∂ log p/∂θⱼ| / size over the θⱼ that no bound holds back; the gradient points uphill."""
    held = ((theta <= bounds[:, 0]) & (gradient < 0.0)) | ((theta >= bounds[:, 1]) & (gradient > 0.0))
    return float(np.abs(gradient[~held]).max(initial=0.0)) / size


def small_blas(n: int) -> AbstractContextManager[None]:
    """Return a context in which BLAS uses one thread if matrices are small: waiting for another would cost more."""
    return one_thread_blas() if n <= _SMALL else nullcontext()


def per_row(owner: str, alpha: Any, n: int) -> Array:
    """Return the variance of the noise of each row."""
    values = np.asarray(alpha, dtype=np.float64).ravel()
    if values.size not in (1, n):
        raise ParameterError(
            f"{owner}: alpha must be a scalar or an array with same number of entries as y, an entry for each of {n} "
            f"rows; got {values.size}."
        )
    return np.broadcast_to(values, (n,)).copy()


def units_of(y: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column, one for a constant; without overflow at any scale."""
    size = np.abs(y).max(axis=0)
    size = np.where(size > 0.0, size, 1.0)
    mean = (y / size).mean(axis=0)
    std = (y / size).std(axis=0)
    return size * mean, np.where(std > 1e-14 * np.abs(mean), size * std, 1.0)


def refuse_huge(owner: str, **arrays: Array) -> None:
    """Raise a DataError for numbers whose squares overflow."""
    for name, values in arrays.items():
        if float(np.abs(values).max(initial=0.0)) > _LARGEST:
            raise DataError(f"{owner}: {name} reaches beyond {_LARGEST:g}, where squares overflow; rescale it.")


_TILE = 128  # rows and columns of a tile: of 2,000 rows, factor and inverse take 0.15 s, with 256 0.18 s


def lower_factor(A: Array) -> Array | None:
    """Return L, lower triangular with zeros above, in the memory of a symmetric A; None unless positive definite."""
    with one_thread_blas():
        return _lower_factor(A)


def _lower_factor(A: Array) -> Array | None:
    n = len(A)
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        known = A[start:stop, :start]
        A[start:stop, start:stop] -= known @ known.T
        corner, info = dpotrf(A[start:stop, start:stop], lower=1, clean=1)
        if info != 0:
            return None
        A[start:stop, start:stop] = corner
        A[start:stop, stop:] = 0.0
        _each(range(stop, n, _TILE), _Panel(A, known, np.ascontiguousarray(_inverse_tile(corner).T)))
    return A


class _Panel:
    """The tiles below a corner Lₖₖ: (Aᵢₖ − Σⱼ Lᵢⱼ Lₖⱼᵀ) Lₖₖ⁻ᵀ over the columns j before it."""

    def __init__(self, A: Array, known: Array, right: Array) -> None:
        self.A = A
        self.known = known
        self.right = right

    def __call__(self, row: int) -> None:
        rows = self.A[row : row + _TILE]
        start = self.known.shape[1]
        part = rows[:, start : start + len(self.right)]
        part[:] = (part - rows[:, :start] @ self.known.T) @ self.right


def _inverse_tile(corner: Array) -> Array:
    """Return the inverse of a lower triangular tile."""
    inverse, _ = dtrtri(corner, lower=1)
    return np.tril(inverse)


def inverse_of_lower(L: Array) -> Array:
    """Return X = L⁻¹, lower triangular with zeros above: Xᵢⱼ = −Lᵢᵢ⁻¹ Σₖ Lᵢₖ Xₖⱼ over j ≤ k < i."""
    n = len(L)
    out = np.zeros((n, n))
    tiles = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    corners = [_inverse_tile(L[tile, tile]) for tile in tiles]

    def fill(j: int) -> None:
        columns = tiles[j]
        out[columns, columns] = corners[j]
        for i in range(j + 1, len(tiles)):
            between = slice(columns.start, tiles[i].start)
            out[tiles[i], columns] = -corners[i] @ (L[tiles[i], between] @ out[between, columns])

    _each(range(len(tiles)), fill)
    return out


def inverse_from_factor(L: Array) -> Array:
    """Return (LLᵀ)⁻¹, all of it, in the memory of L."""
    n = len(L)
    X = inverse_of_lower(L)
    out = L

    def fill(start: int) -> None:
        stop = min(start + _TILE, n)
        np.matmul(X[start:, start:stop].T, X[start:, :stop], out=out[start:stop, :stop])

    def mirror(start: int) -> None:
        stop = min(start + _TILE, n)
        out[start:stop, stop:] = out[stop:, start:stop].T

    _each(range(0, n, _TILE), fill)
    _each(range(0, n, _TILE), mirror)
    return out


def _each(starts: Sequence[int], work: Callable[[int], None]) -> None:
    if len(starts):
        with one_thread_blas():
            map_reduce(list(starts), work, lambda a, b: None)


_MIRROR_TILE = 64  # 32 kB of doubles: a tile and its mirror image stay in the cache


@compiled
def mirror(A: Any) -> None:
    """Copy the upper triangle of a square matrix to the lower one, tile by tile.

    IN/OUT  A  (n, n)
    """
    n = A.shape[0]
    for i0 in range(0, n, _MIRROR_TILE):
        for j0 in range(i0, n, _MIRROR_TILE):
            for j in range(j0, min(j0 + _MIRROR_TILE, n)):
                for i in range(i0, min(i0 + _MIRROR_TILE, j)):
                    A[j, i] = A[i, j]


@compiled
def multiply_rows(T: Any, K: Any, share: Any, M: Any, sums: Any) -> None:
    """Write share[i] T[i, k] K[i, k], and the sums over k of T[i, k] K[i, k].

    IN   T, K  (c, m);  share  (c,)
    OUT  M  (c, m);  sums  (c,)
    """
    for i in range(share.size):
        left = T[i]
        right = K[i]
        out = M[i]
        factor = share[i]
        total = 0.0
        for k in range(left.size):
            product = left[k] * right[k]
            total += product
            out[k] = factor * product
        sums[i] = total
