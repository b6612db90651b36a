r"""Least squares and ridge, exact:  min_{b, β}  Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖².

Three direct paths, chosen by shape and guarded by a condition estimate; each ends with the residual of the defining
equations, computed from the data.

- `n ≫ d`: the Gram matrix in one pass over the blocks, Cholesky, and refinement by residuals of the data (Björck's
  corrected semi-normal equations). Taken when the scaled matrix has 1/κ ≥ 1e-10, of small tables 1e-4.
- `n < d`: the same in the dual, (XXᵀ + αI)a = y, β = Xᵀa.
- everything else: orthogonal factorisation (`orthogonal.py`).

Rows beyond memory take the Gram path, in one sweep where the matrix is well conditioned, or are compressed first
(`compressed_fit`). Memory: O(d²) per thread on the Gram path, O(nd) on the others.

Least squares and ridge with non-negative coefficients:  min_{b, β ≥ 0} Σ wᵢ (yᵢ − b − xᵢᵀβ)² + α‖β‖².

An orthogonal factorisation reduces the problem to d rows, which the active-set method of Lawson and Hanson solves. The
KKT conditions — gradient zero where β > 0, not pushing upwards where β = 0 — are then evaluated on the data.

Least squares beyond memory without squaring the condition number: the rows are compressed to a triangle.

The QR factorisations of the blocks, merged pair by pair, leave the triangle R of all weighted rows √w [1, x, y]. The
least squares problem with the at most d + k + 1 rows of R in place of the n rows of the data is the same problem,
with or without a penalty or a sign constraint. Memory: O(d²) a thread.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, lapack

from ...core import Array, DataError, NDArray, interruptible, one_thread_blas
from ...data.blocks import Block, Blocks, map_reduce
from .moments import (
    CLOSED_FORM_TOLERANCE,
    Moments,
    Residuals,
    centred_moments,
    provisional_mean,
    relative_residual,
    residual_sums,
    root_weight,
    targets_of,
)
from .orthogonal import LinearFit, eliminate_intercept, orthogonal_fit, weighted_mean

_SMALL_WORK = 2e6  # n·d² below which the most accurate path costs a few milliseconds at most
_TINY_WORK = 2e5  # n·d² below which it costs less than a millisecond
_MIN_RCOND = 1e-10  # of the Gram matrix: refinement then gains at least five digits a pass
_EASY_RCOND = 1e-4  # of the Gram matrix, from which on refinement leaves errors far below rounding of the predictions
_MAX_PASSES = 4  # of refinement, at most
_SMALL_MATRIX = 500  # rows up to which one thread is enough, and leaves the cores to the next pass
_ROUNDING = 1e-14  # relative residual, per digit of the condition, that rounding leaves
_FINEST = 2.0**-54  # relative residual, half the rounding of a number: another pass would follow noise
_LARGEST_SPARSE_GRAM = 3000  # columns; more would fill the memory with a dense d×d matrix
_LARGEST_SPARSE_RIDGE = 500  # columns; with a penalty conjugate gradients certify their result too, and are faster
_ONE_SWEEP_RCOND = 1e-4  # of the Gram matrix, from which on the moments alone give all digits that anybody asks for
_ONE_SWEEP_RESIDUAL = 1e-6  # Σ w r² against Σ w y² that the moments give with enough digits
_LARGEST_DENSE_COPY = 2e7  # elements of sparse data that may be made dense


def least_squares(
    blocks: Blocks, alpha: float = 0.0, *, intercept: bool = True, n_jobs: int | None = None
) -> LinearFit | None:
    """Solve the problem of the module's docstring directly.

    Parameters
    ----------
    blocks : Blocks
        Rows with targets and optional weights.
    alpha : float
        The penalty, at least 0.
    intercept : bool
        Whether b is free (and never penalised) or zero.
    n_jobs : int or None
        Threads of the passes over the rows.

    Returns
    -------
    LinearFit or None
        None where only an iterative method will do: sparse data too wide for a Gram matrix and too large to be dense.
    """
    if not blocks.in_memory:
        moments = centred_moments(blocks, intercept=intercept, n_jobs=n_jobs)
        found = gram_fit(blocks, moments, alpha, intercept=intercept, n_jobs=n_jobs)
        return found or compressed_fit(blocks, alpha, intercept=intercept, n_jobs=n_jobs)
    n = blocks.n_rows
    d = blocks.n_columns
    most = _LARGEST_SPARSE_RIDGE if alpha > 0 else _LARGEST_SPARSE_GRAM
    if blocks.sparse and n * d * d > _SMALL_WORK and d > most:
        return None
    fit = None
    if n >= d + intercept and n * d * d > _TINY_WORK:
        careful = n * d * d <= _SMALL_WORK
        with one_thread_blas() if careful else nullcontext():  # every pass asks for it; together they ask once
            moments = centred_moments(blocks, intercept=intercept, n_jobs=n_jobs)
            fit = gram_fit(blocks, moments, alpha, intercept=intercept, n_jobs=n_jobs, careful=careful)
    elif n < d + intercept and n * d * d > _SMALL_WORK and not blocks.sparse:
        fit = dual_fit(blocks, alpha, intercept=intercept)
    if fit is not None:
        return fit
    if blocks.sparse and n * d > _LARGEST_DENSE_COPY:
        return None
    return orthogonal_fit(*dense_rows(blocks), alpha, intercept=intercept)


def gram_fit(
    blocks: Blocks,
    moments: Moments,
    alpha: float,
    *,
    intercept: bool,
    n_jobs: int | None = None,
    careful: bool = False,
) -> LinearFit | None:
    """Solve by Cholesky of S + αI; None when the matrix is too ill-conditioned to be trusted.

    `careful` trusts well-conditioned ones only, and refines as long as that helps: for tables so small that another
    path costs little.
    """
    diagonal = np.diag(moments.gram) + alpha
    active = diagonal > 0
    varying_y = moments.y_square > 0
    if not _safe_range(np.r_[diagonal[active], moments.y_square[varying_y]]):
        return None
    if not _really_constant(blocks, ~active) or not _constant_targets(blocks, ~varying_y):
        return None
    scale = np.exp2(-np.round(0.5 * np.log2(diagonal[active])))
    A = moments.gram[np.ix_(active, active)] + alpha * np.eye(int(active.sum()))
    factor = _cholesky(A * np.outer(scale, scale))
    if factor is None or (careful and factor[1] < _EASY_RCOND):
        return None
    R, rcond = factor

    def solve(right: Array) -> Array:
        out = np.zeros_like(right)
        out[active] = scale[:, None] * cho_solve((R, False), scale[:, None] * right[active], check_finite=False)
        return out

    with one_thread_blas():
        coef = solve(moments.cross)
        level = moments.y_mean.copy()
    mean = moments.x_mean if intercept else np.zeros(blocks.n_columns)
    x = np.sqrt(np.maximum(np.diag(moments.gram), 0.0)), mean
    y = np.sqrt(np.maximum(moments.y_square, 0.0)), moments.y_mean
    best: LinearFit | None = None
    one_sweep = not blocks.in_memory and rcond >= _ONE_SWEEP_RCOND and _leaves_enough(moments, coef)
    for passes in range(1, 2 if one_sweep else _MAX_PASSES + 1):
        if one_sweep:
            sums = _residuals_from_moments(moments, coef)
        else:
            sums = residual_sums(blocks, moments.x_mean, level, coef, n_jobs=n_jobs)
        total = sums.total if intercept else np.zeros_like(sums.total)
        gradient = sums.cross - alpha * coef
        offset = level - mean @ coef
        values = relative_residual(
            gradient,
            total,
            x=x,
            y=y,
            coef=coef,
            intercept=offset,
            penalty=alpha * np.abs(coef).max(axis=0),
            weight=moments.weight,
        )
        value = float(values.max(initial=0.0))
        norm = np.sqrt(np.maximum(sums.square, 0.0))
        improved = best is None or value < 0.5 * best.value
        if best is None or value < best.value:
            best = LinearFit(coef, offset, int(active.sum()), None, mean, norm, value, passes)
        if value <= (_FINEST if careful else _ROUNDING * rcond) or not improved:
            break  # the error, at most value/rcond, is at rounding level, or no longer falls
        coef = coef + solve(gradient)
        level = level + total / moments.weight
    if best is None or not best.value <= CLOSED_FORM_TOLERANCE:
        return None
    full = np.zeros((len(active),) * 2)
    full[np.ix_(active, active)] = np.triu(R) / scale
    return best._replace(factor=full if alpha == 0 else None)


def dual_fit(blocks: Blocks, alpha: float, *, intercept: bool) -> LinearFit | None:
    """Solve with fewer rows than columns through (K + αI)a = y, K = ZZᵀ, β = Zᵀa, Z the rows without the intercept.

    With α = 0 this is the solution of minimum norm. None when the matrix is too ill-conditioned to be trusted.
    """
    X, y, weight = dense_rows(blocks)
    x_mean = weighted_mean(X, weight, intercept)
    y_mean = weighted_mean(y, weight, intercept)
    with np.errstate(over="ignore", invalid="ignore"), one_thread_blas():
        Z, t = eliminate_intercept(X, y, weight, x_mean, y_mean, intercept)
        x_norm = np.sqrt(np.einsum("ij,ij->j", Z, Z))
        y_norm = np.linalg.norm(t, axis=0)
    tiny = (x_norm == 0) & Z.any(axis=0)
    if tiny.any() or ((y_norm == 0) & t.any(axis=0)).any():
        return None
    if not _safe_range(np.r_[x_norm[x_norm > 0], y_norm[y_norm > 0]] ** 2):
        return None
    K = interruptible(np.matmul, Z, Z.T)
    K.flat[:: len(K) + 1] += alpha
    factor = _cholesky(K)
    if factor is None:
        return None
    weight_sum = float(len(X) if weight is None else weight.sum())
    a = np.zeros_like(t)
    rest = t
    best = None
    with one_thread_blas():
        for passes in range(1, _MAX_PASSES + 1):
            a = a + cho_solve((factor[0], False), rest, check_finite=False)
            coef = Z.T @ a
            r = t - Z @ coef
            rest = r - alpha * a
            offset = y_mean - x_mean @ coef
            values = relative_residual(
                Z.T @ rest,
                np.zeros(y.shape[1]),
                x=(x_norm, x_mean),
                y=(y_norm, y_mean),
                coef=coef,
                intercept=offset,
                penalty=alpha * np.abs(coef).max(axis=0),
                weight=weight_sum,
            )
            value = float(values.max(initial=0.0))
            norm = np.linalg.norm(r, axis=0)
            improved = best is None or value < 0.5 * best.value
            if best is None or value < best.value:
                best = LinearFit(coef, offset, len(Z), None, x_mean, norm, value, passes)
            if value <= _ROUNDING * factor[1] or not improved:
                break
    if best is None or not best.value <= CLOSED_FORM_TOLERANCE:
        return None
    return best._replace(factor=np.triu(factor[0]) if alpha == 0 else None)


def dense_rows(blocks: Blocks) -> tuple[Array, Array, Array | None]:
    """Return all rows as dense float64 arrays X (n, d), y (n, k) and the weights; views where they are that already."""
    X, y, weight = blocks.joined()
    X = X.toarray() if blocks.sparse else X
    return np.ascontiguousarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1), weight


def _cholesky(A: Array) -> tuple[Array, float] | None:
    """Return the upper factor and 1/κ₁ of a positive definite matrix that is well enough conditioned, else None."""
    norm = float(np.abs(A).sum(axis=0).max(initial=0.0))
    if len(A) == 0:
        return np.zeros((0, 0)), 1.0
    if len(A) <= _SMALL_MATRIX:
        with one_thread_blas():
            R, info = lapack.dpotrf(A, lower=0, clean=0)
    else:
        R, info = interruptible(lapack.dpotrf, A, lower=0, clean=0)
    if info != 0:
        return None
    rcond, _ = lapack.dpocon(R, norm, uplo="U")
    return (R, float(rcond)) if rcond >= _MIN_RCOND else None


def _safe_range(squares: Array) -> bool:
    """Tell whether sums of squares are far from overflow and underflow."""
    squares = np.asarray(squares)
    return bool(np.isfinite(squares).all() and (squares < 1e250).all() and (squares > 1e-250).all())


def _residuals_from_moments(moments: Moments, coef: Array) -> Residuals:
    """Return the sums over the residuals without looking at the rows again."""
    cross = moments.cross - moments.gram @ coef
    square = moments.y_square - np.einsum("dk,dk->k", coef, moments.cross + cross)
    return Residuals(cross, np.zeros(coef.shape[1]), square)


def _leaves_enough(moments: Moments, coef: Array) -> bool:
    left = _residuals_from_moments(moments, coef).square
    return bool((left >= _ONE_SWEEP_RESIDUAL * moments.y_square).all())


def _constant_targets(blocks: Blocks, targets: NDArray[np.bool_]) -> bool:
    """Tell whether targets of no variance are constant, and not only tiny."""
    if not targets.any():
        return True
    first = targets_of(blocks.head())[0]

    def is_first(block: Block) -> bool:
        return bool((targets_of(block) == first)[:, targets].all())

    return map_reduce(blocks, is_first, _both)


def _really_constant(blocks: Blocks, columns: NDArray[np.bool_]) -> bool:
    """Tell whether columns of no variance are constant, and not only tiny."""
    numbers = np.flatnonzero(columns)
    if numbers.size == 0:
        return True
    first = blocks.head().X[[0]][:, numbers]
    first = first.toarray() if blocks.sparse else first

    def is_first(block: Block) -> bool:
        X = block.X[:, numbers]
        return bool(((X.toarray() if hasattr(X, "indptr") else X) == first).all())

    return map_reduce(blocks, is_first, _both)


def _both(a: bool, b: bool) -> bool:
    return a and b


_LARGEST_NONNEGATIVE = 2e8  # elements of sparse data that may be made dense


def nonnegative_fit(blocks: Blocks, alpha: float, *, intercept: bool = True) -> LinearFit:
    """Solve the problem of the module's docstring; `LinearFit.value` is the relative KKT residual."""
    if blocks.sparse and blocks.n_rows * blocks.n_columns > _LARGEST_NONNEGATIVE:
        raise DataError("positive=True needs dense rows, and these sparse ones are too many to be made dense.")
    if not blocks.in_memory:
        return compressed_fit(blocks, alpha, intercept=intercept, nonnegative=True)
    return orthogonal_fit(*dense_rows(blocks), alpha, intercept=intercept, nonnegative=True)


class Triangle(NamedTuple):
    """All rows, compressed: least squares with these instead of the data is the same problem."""

    rows: Array  #: (m, d), what is left of √w(x − x̄); m ≤ d + k + 1
    targets: Array  #: (m, k), what is left of √w(y − ȳ)
    weight: float  #: Σ w
    x_mean: Array  #: (d,); zero without an intercept
    y_mean: Array  #: (k,); zero without an intercept


def compress(blocks: Any, *, intercept: bool = True, n_jobs: int | None = None) -> Triangle:
    """Return the triangle of all rows, in one sweep."""
    head = blocks.head()
    d = head.X.shape[1]
    k = targets_of(head).shape[1]
    x_shift = np.zeros(d)
    y_shift = np.zeros(k)
    if intercept:
        x_shift = provisional_mean(head.X)
        y_shift = provisional_mean(targets_of(head))
    statistic = partial(_triangle, x_shift=x_shift, y_shift=y_shift)
    R = map_reduce(blocks, statistic, _merge_triangles, n_jobs=n_jobs)
    R = np.pad(R, ((0, max(0, 2 - len(R))), (0, 0)))  # one row leaves nothing below the intercept's
    x = R[:, 1 : d + 1]
    y = R[:, d + 1 :]
    weight = float(R[0, 0] ** 2)
    if not intercept:  # the column of ones is the first: it only records the weight
        return Triangle(np.ascontiguousarray(x), np.ascontiguousarray(y), weight, x_shift, y_shift)
    means = x_shift + x[0] / R[0, 0], y_shift + y[0] / R[0, 0]
    return Triangle(np.ascontiguousarray(x[1:]), np.ascontiguousarray(y[1:]), weight, *means)


def compressed_fit(
    blocks: Any, alpha: float = 0.0, *, intercept: bool = True, nonnegative: bool = False, n_jobs: int | None = None
) -> LinearFit:
    """Minimise Σ w (y − b − xᵀβ)² + α‖β‖² over any source of blocks, with β ≥ 0 if asked for."""
    rows, targets, weight, x_mean, y_mean = compress(blocks, intercept=intercept, n_jobs=n_jobs)
    small = orthogonal_fit(rows, targets, None, alpha, intercept=False, nonnegative=nonnegative)
    sums = residual_sums(blocks, x_mean, y_mean, small.coef, n_jobs=n_jobs)
    gradient = sums.cross - alpha * small.coef
    if nonnegative:
        gradient = np.where(small.coef > 0, gradient, np.maximum(gradient, 0.0))
    offset = y_mean - x_mean @ small.coef
    values = relative_residual(
        gradient,
        sums.total if intercept else np.zeros_like(sums.total),
        x=(np.sqrt(np.einsum("ij,ij->j", rows, rows)), x_mean),
        y=(np.sqrt(np.einsum("ij,ij->j", targets, targets)), y_mean),
        coef=small.coef,
        intercept=offset,
        penalty=alpha * np.abs(small.coef).max(axis=0, initial=0.0),
        weight=weight,
    )
    norm = np.sqrt(np.maximum(sums.square, 0.0))
    value = float(values.max(initial=0.0))
    return LinearFit(small.coef, offset, small.rank, small.factor, x_mean, norm, value, small.n_iter)


def _triangle(block: Block, x_shift: Array, y_shift: Array) -> Array:
    """Return R of the rows √w [1, x − shift, y − shift]; no wider than high only if there are enough rows."""
    m = block.X.shape[0]
    T = np.column_stack([np.ones(m), block.X - x_shift, targets_of(block) - y_shift])
    return np.asarray(np.linalg.qr(T * root_weight(block), mode="r"))


def _merge_triangles(a: Array, b: Array) -> Array:
    return np.asarray(np.linalg.qr(np.vstack([a, b]), mode="r"))
