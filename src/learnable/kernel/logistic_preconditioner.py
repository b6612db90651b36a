r"""Preconditioners of a Newton step of kernel logistic regression: inverses of nearly I + RᵀKR.

A Cholesky factor of the whole matrix where it is small; else Woodbury's formula with a partial factor of K, which keeps
what couples the classes. R is the root of the curvature, RRᵀ = H = κ(diag p − ppᵀ) for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lapack

from ..core.run import never
from ..core.threads import interruptible, one_thread_blas
from ..data.blocks import map_reduce
from .gauss_products import OutOfTimeError
from .operators import partial_cholesky, product_by_rows

if TYPE_CHECKING:
    from .logistic_newton import KernelLogisticProblem

Array = NDArray[np.float64]

SMALLEST = 1e-12  # of a probability in the Hessian; slopes have their true ones
FEW_ROWS = 3000  # times classes: up to here the equations of a step are factorised whole
_ONE_THREAD = 1200  # up to here a second BLAS thread does not pay
_GRAM_ROWS = 8192
_FACTOR_SPEED = 1e10  # operations a second of a Cholesky factor, on a slow machine


def preconditioner(
    problem: KernelLogisticProblem,
    factor: Array | None,
    root: CurvatureRoot,
    stop: Callable[[], bool],
    seconds_left: Callable[[], float],
) -> Callable[[Array], Array]:
    """Return an inverse of nearly I + RᵀKR: of itself where there are few rows."""
    if factor is None and problem.operator.matrix is not None:
        _refuse_late_factor(problem.operator.n * problem.free(problem.own).shape[1], seconds_left)
        whole = _whole_inverse(problem.operator.matrix, root)
        if whole is not None:
            return whole
    m = 1 if problem.binary else problem.own.shape[1]
    if factor is None:
        factor = partial_cholesky(problem.operator, FEW_ROWS // m, stop=stop)[0]
    _refuse_late_factor(m * factor.shape[1], seconds_left)
    return _CoupledWoodbury(factor, root, m, problem.operator.n_jobs, stop)


def _refuse_late_factor(size: int, seconds_left: Callable[[], float]) -> None:
    """Raise OutOfTimeError unless a Cholesky factor of this size, which nothing interrupts, ends in time."""
    if size**3 / 3.0 / _FACTOR_SPEED > seconds_left():
        raise OutOfTimeError


class CurvatureRoot:
    """R of the blocks H = RRᵀ, one for each row."""

    def __init__(self, problem: KernelLogisticProblem, P: Array) -> None:
        P = np.maximum(P, SMALLEST)
        P = P / P.sum(axis=1, keepdims=True)
        self.binary = problem.binary
        if self.binary:
            self.s = np.sqrt(problem.kappa * P[:, :1] * P[:, 1:])
        else:
            self.p, self.q, self.k = P, np.sqrt(P), np.sqrt(problem.kappa)

    def __call__(self, v: Array) -> Array:
        """Return Rv."""
        if self.binary:
            return self.s * v
        return self.k * (self.q * v - self.p * (self.q * v).sum(axis=1, keepdims=True))

    def transposed(self, a: Array) -> Array:
        """Return Rᵀa."""
        if self.binary:
            return self.s * a
        return self.k * self.q * (a - (self.p * a).sum(axis=1, keepdims=True))

    def divide(self, T: Array) -> Array:
        """Return v with Rv = T, for T whose rows sum to zero."""
        return T / self.s if self.binary else T / (self.k * self.q)

    def block(self, i: int, j: int) -> Array:
        """Return the entries (i, j) of all blocks H = RRᵀ, (n,)."""
        if self.binary:
            return np.asarray(self.s[:, 0] ** 2)
        own = self.p[:, i] if i == j else 0.0
        return np.asarray(self.k[:, 0] ** 2 * (own - self.p[:, i] * self.p[:, j]))

    def columns(self) -> list[Array]:
        """Return the columns of all blocks R, each (n, m)."""
        if self.binary:
            return [self.s]
        units = np.eye(self.p.shape[1])
        return [self(np.broadcast_to(unit, self.p.shape)) for unit in units]


def _whole_inverse(K: Array, root: CurvatureRoot) -> Callable[[Array], Array] | None:
    """Return the inverse of I + RᵀKR by its Cholesky factor, of nm rows; None if rounding has made it indefinite."""
    R = root.columns()
    n, m = len(K), len(R)
    blocks = np.empty((m, n, m, n))
    for i in range(m):
        for j in range(i, m):  # the other half is not read
            with one_thread_blas():
                np.multiply(K, R[i] @ R[j].T, out=blocks[i, :, j])
    B = blocks.reshape(n * m, n * m)
    B.flat[:: n * m + 1] += 1.0
    with one_thread_blas() if n * m <= _ONE_THREAD else nullcontext():
        L, info = interruptible(lapack.dpotrf, B.T, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        return None

    def solve(r: Array) -> Array:
        x, _ = lapack.dpotrs(L, r.T.reshape(-1, 1), lower=1)
        return np.asarray(x.reshape(m, n).T)

    return solve


class _CoupledWoodbury:
    """The inverse of I + RᵀFFᵀR with all that couples the classes: I − Rᵀ(F⊗I) Q⁻¹ (F⊗I)ᵀR, Q = I + Σᵢ fᵢfᵢᵀ⊗Hᵢ."""

    def __init__(
        self, factor: Array, root: CurvatureRoot, m: int, n_jobs: int | None, stop: Callable[[], bool] = never
    ) -> None:
        self.F, self.root, self.m, self.n_jobs = factor, root, m, n_jobs
        r = factor.shape[1]
        blocks = np.empty((m, r, m, r))
        pairs = [(i, j) for i in range(m) for j in range(i + 1)]

        def fill(pair: tuple[int, int]) -> None:
            i, j = pair
            total = np.zeros((r, r))
            for start in range(0, len(factor), _GRAM_ROWS):
                if stop():
                    raise OutOfTimeError
                part = slice(start, start + _GRAM_ROWS)
                total += factor[part].T @ (factor[part] * root.block(i, j)[part, None])
            blocks[i, :, j], blocks[j, :, i] = total, total

        map_reduce(pairs, fill, lambda a, b: None, n_jobs=n_jobs)
        Q = blocks.reshape(m * r, m * r)
        Q.flat[:: m * r + 1] += 1.0
        self.factor = interruptible(cho_factor, Q, lower=True, overwrite_a=True, check_finite=False)

    def __call__(self, v: Array) -> Array:
        """Return the inverse times v, (n, m)."""
        inner = product_by_rows(self.F.T, self.root(v), self.n_jobs)
        with one_thread_blas():
            inner = cho_solve(self.factor, inner.T.reshape(-1), check_finite=False).reshape(self.m, -1).T
        return v - self.root.transposed(product_by_rows(self.F, np.ascontiguousarray(inner), self.n_jobs))
