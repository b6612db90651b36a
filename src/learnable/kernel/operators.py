r"""A kernel matrix as a linear map V ↦ KV: kept whole, recomputed in tiles, or, of the linear kernel, never formed.

    whole      8n² bytes, a product reads them once
    in tiles   a few MB; a product costs half of all kernel values
    linear     K = XXᵀ: a product is O(nd)

`partial_cholesky` gives K ≈ FFᵀ with pivots drawn in proportion to what is still missing of the diagonal, which is
nearly as good as the best approximation of that rank; with a diagonal added, Woodbury's formula inverts it.

Reference: Y. Chen, E. Epperly, J. Tropp, R. Webber, Randomly pivoted Cholesky, CPAM 78, 2025.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ..core.run import never
from ..core.threads import interruptible, one_thread_blas
from ..data.blocks import map_reduce
from ..risk.kernels import Kernel, Linear, Precomputed

Array = NDArray[np.float64]

#: Rows up to which a kernel matrix is kept: 1.2 GB of float64.
MOST_ROWS_KEPT = 12_000

_BLOCK_ROWS = 1024
_PIVOTS = 128  # columns that a step of the partial factorisation adds
_EPSILON = 2.0**-52


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
    """

    def __init__(self, kernel: Kernel, X: Any, *, keep: bool, n_jobs: int | None = None) -> None:
        self.kernel, self.X, self.n_jobs = kernel, X, n_jobs
        self.is_linear = isinstance(kernel, Linear)
        self.diagonal: Array = np.asarray(kernel.diagonal(X), dtype=np.float64)
        self.matrix: Array | None = None
        if isinstance(kernel, Precomputed):
            self.matrix = X
        elif keep:
            self.matrix = kernel(X)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.diagonal)

    def __call__(self, V: Array) -> Array:
        """Return KV for V of shape (n, t)."""
        if self.matrix is not None:
            return product_by_rows(self.matrix, V, self.n_jobs)
        if self.is_linear:
            with one_thread_blas():
                X = self.X if sp.issparse(self.X) else np.asarray(self.X, dtype=np.float64)
                return np.asarray(X @ (X.T @ V))
        return self.kernel.products(self.X, V, n_jobs=self.n_jobs)

    def rough(self, V: Array) -> Array:
        """Return KV to six digits, in half the time where the kernel allows it."""
        return self.kernel.products(self.X, V, single=True, n_jobs=self.n_jobs)

    @property
    def has_rough(self) -> bool:
        """Whether `rough` is any faster."""
        return self.matrix is None and not sp.issparse(self.X) and self.kernel._is_invariant()

    def columns(self, picks: NDArray[np.intp]) -> Array:
        """Return some columns of K, of shape (n, len(picks))."""
        if self.matrix is not None:
            return self.matrix[picks].T.copy()
        K = self.kernel(self.X, self.X[picks])
        K[picks, np.arange(len(picks))] = self.diagonal[picks]
        return K


def product_by_rows(K: Array, V: Array, n_jobs: int | None = None) -> Array:
    """Return KV of a matrix in memory, by blocks of rows on threads: the same bits for any number of them."""
    out = np.empty((K.shape[0], V.shape[1]), dtype=np.result_type(K, V))

    def fill(start: int) -> None:
        rows = slice(start, start + _BLOCK_ROWS)
        np.matmul(K[rows], V, out=out[rows])

    map_reduce(list(range(0, len(K), _BLOCK_ROWS)), fill, lambda a, b: None, n_jobs=n_jobs)
    return out


def partial_cholesky(
    operator: Operator, rank: int, *, tol: float = 1e-12, stop: Callable[[], bool] = never
) -> tuple[Array, Array]:
    """Return F (n, m ≤ rank) with K ≈ FFᵀ, and the diagonal of what is missing.

    Parameters
    ----------
    operator : Operator
        K.
    rank : int
        Most columns.
    tol : float
        End when the missing trace is at most this share of the whole.
    stop : function
        Asked between steps; True ends them.
    """
    n, rng = operator.n, np.random.default_rng(0)  # fixed: a preconditioner changes the way, not the result
    F, m = np.zeros((n, min(rank, n)), order="F"), 0
    missing = np.maximum(operator.diagonal, 0.0)
    trace = float(missing.sum())
    while m < F.shape[1] and float(missing.sum()) > tol * trace and not stop():
        drawn = rng.choice(n, size=min(_PIVOTS, F.shape[1] - m), p=missing / missing.sum())
        picks = np.unique(drawn)
        with one_thread_blas():
            G = operator.columns(picks)
            G -= F[:, :m] @ F[picks, :m].T
            H = G[picks]
            H.flat[:: len(H) + 1] += 4.0 * _EPSILON * len(H) * max(float(np.abs(np.diag(H)).max()), _EPSILON * trace)
            try:
                L = np.linalg.cholesky(H)
            except np.linalg.LinAlgError:  # nothing but rounding is missing, or K is not positive semidefinite
                break
            F[:, m : m + len(picks)] = solve_triangular(L, G.T, lower=True, check_finite=False).T
        missing = np.maximum(missing - np.einsum("ij,ij->i", F[:, m : m + len(picks)], F[:, m : m + len(picks)]), 0.0)
        missing[picks] = 0.0
        m += len(picks)
    return F[:, :m], missing


class Woodbury:
    """(FFᵀ + D)⁻¹ = D⁻¹ − D⁻¹F (I + FᵀD⁻¹F)⁻¹ FᵀD⁻¹.

    Parameters
    ----------
    F : (n, m) array or CSR array
        Factor; the matrix that is factorised is m × m.
    d : (n,) array
        Diagonal of D, positive.

    Examples
    --------
    >>> F, d = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    >>> Woodbury(F, d)((F @ F.T + np.diag(d)) @ np.array([[5.0], [7.0]])).round(12).ravel()
    array([5., 7.])
    """

    def __init__(self, F: Any, d: Array) -> None:
        self.d = d
        self.root = 1.0 / np.sqrt(d)
        scaled = F.multiply(self.root[:, None]).tocsr() if sp.issparse(F) else F * self.root[:, None]
        self.scaled = scaled  # D^−½ F: the capacitance is then I plus a Gram matrix
        with one_thread_blas():
            G = scaled.T @ scaled
        G = np.asarray(G.toarray() if sp.issparse(G) else G)
        G.flat[:: len(G) + 1] += 1.0
        self.factor = interruptible(cho_factor, G, lower=True, overwrite_a=True, check_finite=False)

    def __call__(self, R: Array) -> Array:
        """Return (FFᵀ + D)⁻¹R for R of shape (n, t)."""
        with one_thread_blas():
            S = R * self.root[:, None]
            S = S - self.scaled @ cho_solve(self.factor, self.scaled.T @ S, check_finite=False)
            return np.asarray(S * self.root[:, None])

    def diagonal(self) -> Array:
        """Return the diagonal of the inverse."""
        F = np.asarray(self.scaled.toarray() if sp.issparse(self.scaled) else self.scaled)
        with one_thread_blas():
            half = solve_triangular(self.factor[0], F.T, lower=True, check_finite=False)
        return np.asarray((1.0 - np.einsum("ij,ij->j", half, half)) / self.d)
