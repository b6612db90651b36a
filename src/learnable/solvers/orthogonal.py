r"""Least squares by orthogonal factorisation: the path for small, ill-conditioned and rank-deficient problems.

Solves  min ‖√w (y − b − Xβ)‖² + α‖β‖²  on a dense copy of the data.

- Columns are scaled by powers of two (exact), and the rank is decided after scaling.
- A full-rank problem is refined in extended precision (Björck's iteration on the augmented system), which makes the
  solution accurate to the last digits that the float64 data allow.
- A rank-deficient or wide problem gets its solution of minimum norm, in the columns' own units.

Reference: Å. Björck, Numerical Methods for Least Squares Problems, 1996, sections 2.7 and 2.9. Memory: O(nd + d²).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr, solve_triangular

from ..core.threads import interruptible
from .residuals import relative_residual

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_MAX_REFINEMENTS = 4
_LARGE = 2**18  # elements
_CHUNK = 2**18  # elements converted to extended precision at a time


class LinearFit(NamedTuple):
    """A solved linear least squares or ridge problem with k targets."""

    coef: Array  #: (d, k)
    intercept: Array  #: (k,)
    rank: int  #: of the centred X, after scaling its columns
    factor: Array | None  #: (d, d) upper triangular, factorᵀfactor = centred Gram matrix; None if rank-deficient
    x_mean: Array  #: (d,); zero without an intercept
    residual_norm: Array  #: (k,), √Σ w r²
    value: float  #: largest relative residual of the defining equations
    n_iter: int  #: factorisations and refinements


def orthogonal_fit(
    X: Array, y: Array, weight: Array | None, alpha: float = 0.0, *, intercept: bool = True
) -> LinearFit:
    """Solve the problem of the module's docstring for dense X (n, d) and y (n, k)."""
    n, d = X.shape
    x_mean, y_mean = weighted_mean(X, weight, intercept), weighted_mean(y, weight, intercept)
    if n + (d if alpha else 0) >= d + intercept:
        return _tall_fit(X, y, weight, alpha, intercept, x_mean, y_mean)
    coef, rank, n_iter = _minimum_norm(*eliminate_intercept(X, y, weight, x_mean, y_mean, intercept))
    return _finish(X, y, weight, alpha, intercept, coef, None, rank, None, x_mean, y_mean, n_iter)


def weighted_mean(rows: Array, weight: Array | None, wanted: bool = True) -> Array:
    """Return the column means to the last digit, safe from overflow; zero unless `wanted`."""
    if not wanted:
        return np.zeros(rows.shape[1])
    w = np.ones(rows.shape[0]) if weight is None else weight
    if rows.size > _LARGE:  # twice in float64 is as exact as once in extended precision, and much faster
        with np.errstate(over="ignore", invalid="ignore"):
            mean = w @ rows / w.sum()
            mean += sum(w[part] @ (rows[part] - mean) for part in _row_chunks(rows)) / w.sum()
        if np.isfinite(mean).all():
            return np.asarray(mean)
    total = np.zeros(rows.shape[1], dtype=np.longdouble)
    for part in _row_chunks(rows):
        total += w[part].astype(np.longdouble) @ rows[part].astype(np.longdouble)
    return np.asarray(total / w.astype(np.longdouble).sum(), dtype=np.float64)


def _tall_fit(
    X: Array, y: Array, weight: Array | None, alpha: float, intercept: bool, x_mean: Array, y_mean: Array
) -> LinearFit:
    A, exponents = _design(X, weight, alpha, intercept)
    b, y_exponents = _scaled_targets(y, weight, A.shape[0])
    p, c = A.shape[1], int(intercept)
    (factors, tau), R = interruptible(qr, A, mode="raw", check_finite=False)
    R = R[:p]
    if reciprocal_condition(R) > _EPS * max(A.shape):
        x, n_iter = _refined_solution(A, b, factors, tau, R)
        solution = np.ldexp(x, (y_exponents[None, :] - exponents[:, None]))
        with np.errstate(over="ignore"):
            factor = np.ldexp(R[c:, c:], exponents[c:])
        level = solution[0] if intercept else np.zeros(y.shape[1])
        return _finish(X, y, weight, alpha, intercept, solution[c:], level, p - c, factor, x_mean, y_mean, n_iter)
    # min ‖R₂₂β − c₂‖ is the problem with the intercept eliminated: its first column of R belongs to the ones.
    projected = _apply_q(factors, tau, b, transpose=True)[c:p]
    coef, rank = _rank_deficient_solution(R[c:, c:], projected, exponents[c:])
    coef = np.ldexp(coef, y_exponents)
    return _finish(X, y, weight, alpha, intercept, coef, None, rank, None, x_mean, y_mean, 2)


def _design(X: Array, weight: Array | None, alpha: float, intercept: bool) -> tuple[Array, NDArray[np.int64]]:
    """Return A = √w [1, X] with the penalty's rows √α I below, columns scaled to a largest entry in [½, 1)."""
    n, d = X.shape
    c = int(intercept)
    A = np.zeros((n + (d if alpha else 0), d + c), order="F")
    A[:n, :c] = 1.0
    A[:n, c:] = X
    if weight is not None:
        A[:n] *= np.sqrt(weight)[:, None]
    largest = np.maximum(np.abs(A).max(axis=0), np.sqrt(alpha) * (np.arange(d + c) >= c))
    exponents = np.frexp(largest)[1].astype(np.int64)
    A[:n] = np.ldexp(A[:n], -exponents)
    if alpha:
        np.fill_diagonal(A[n:, c:], np.ldexp(np.sqrt(alpha), -exponents[c:]))
    return A, exponents


def _scaled_targets(y: Array, weight: Array | None, height: int) -> tuple[Array, NDArray[np.int64]]:
    b = np.zeros((height, y.shape[1]), order="F")
    b[: len(y)] = y if weight is None else y * np.sqrt(weight)[:, None]
    exponents = np.frexp(np.abs(b).max(axis=0))[1].astype(np.int64)
    return np.asfortranarray(np.ldexp(b, -exponents)), exponents


def _refined_solution(A: Array, b: Array, factors: Array, tau: Array, R: Array) -> tuple[Array, int]:
    """Solve the augmented system r + Ax = b, Aᵀr = 0, with extended-precision residuals, until it stops improving."""
    p = R.shape[0]
    x = np.zeros((p, b.shape[1]), dtype=np.longdouble)
    r = np.zeros(b.shape, dtype=np.longdouble)
    last = np.inf
    for iteration in range(1 + _MAX_REFINEMENTS):
        f, g = _augmented_residual(A, b, x, r)
        h = solve_triangular(R, g, trans="T", check_finite=False)
        d = _apply_q(factors, tau, f, transpose=True)
        dx = solve_triangular(R, d[:p] - h, check_finite=False)
        d[:p] = h
        dr = _apply_q(factors, tau, d, transpose=False)
        size = float(np.max(np.abs(dx) / (np.abs(x + dx) + np.finfo(float).tiny), initial=0.0))
        if iteration > 0 and not size < 0.5 * last:
            break  # rounding has taken over
        x, r = x + dx, r + dr
        if iteration > 0 and size < _EPS / 4:
            break
        last = size if iteration > 0 else np.inf
    return np.asarray(x, dtype=np.float64), iteration + 1


def _augmented_residual(A: Array, b: Array, x: Any, r: Any) -> tuple[Array, Array]:
    """Return f = b − r − Ax and g = −Aᵀr, accumulated in extended precision."""
    f = np.empty(b.shape, order="F")
    g = np.zeros((A.shape[1], b.shape[1]), dtype=np.longdouble)
    for part in _row_chunks(A):
        rows = A[part].astype(np.longdouble)
        f[part] = b[part] - r[part] - rows @ x
        g -= rows.T @ r[part]
    return f, np.asarray(g, dtype=np.float64)


def _minimum_norm(A: Array, b: Array) -> tuple[Array, int, int]:
    """Return the minimum-norm solution of a wide system, its rank, and the number of steps."""
    exponents = np.frexp(np.abs(A).max(axis=1, initial=0.0))[1]
    A, b = np.ldexp(A, -exponents[:, None]), np.ldexp(b, -exponents[:, None])
    m, d = A.shape
    if m == 0:
        return np.zeros((d, b.shape[1])), 0, 1
    (factors, tau), R = interruptible(qr, A.T, mode="raw", check_finite=False)
    R = R[:m]
    if reciprocal_condition(R) <= _EPS * d:
        column_exponents = np.frexp(np.abs(A).max(axis=0))[1].astype(np.int64)
        return *_rank_deficient_solution(np.ldexp(A, -column_exponents), b, column_exponents), 2
    coef = np.zeros((d, b.shape[1]), dtype=np.longdouble)
    for _ in range(2):  # the solution, and one refinement
        rest = np.asarray(b - np.vstack([A[p].astype(np.longdouble) @ coef for p in _row_chunks(A)]), dtype=np.float64)
        padded = np.zeros((d, b.shape[1]), order="F")
        padded[:m] = solve_triangular(R, rest, trans="T", check_finite=False)
        coef = coef + _apply_q(factors, tau, padded, transpose=False)
    return np.asarray(coef, dtype=np.float64), m, 2


def eliminate_intercept(
    X: Array, y: Array, weight: Array | None, x_mean: Array, y_mean: Array, intercept: bool
) -> tuple[Array, Array]:
    """Return √w(X − x̄) and √w(y − ȳ), turned so that the intercept's equation is the first row, without it."""
    v = np.ones(len(X)) if weight is None else np.sqrt(weight)
    A, b = v[:, None] * (X - x_mean), v[:, None] * (y - y_mean)
    if not intercept:
        return A, b
    u = v / np.linalg.norm(v)
    u[0] += 1.0  # a Householder vector that maps v to the first axis
    scale = 2.0 / (u @ u)
    return (A - np.outer(u, scale * (u @ A)))[1:], (b - np.outer(u, scale * (u @ b)))[1:]


def _rank_deficient_solution(A: Array, b: Array, exponents: NDArray[np.int64]) -> tuple[Array, int]:
    """Return the minimum-norm solution, in the units of A·2^exponents, by a complete orthogonal decomposition."""
    Q, R, order = interruptible(qr, A, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > _EPS * max(A.shape) * max(diagonal[0], np.finfo(float).tiny)))
    k, d = b.shape[1], A.shape[1]
    if rank == 0:
        return np.zeros((d, k)), 0
    rows = np.empty((rank, d))
    rows[:, order] = R[:rank]
    rows = np.ldexp(rows, exponents - exponents.max())  # back to the columns' own units, up to one common factor
    Q2, R2 = qr(rows.T, mode="economic", check_finite=False)
    coef = Q2 @ solve_triangular(R2, Q[:, :rank].T @ b, trans="T", check_finite=False)
    return np.ldexp(coef, -exponents.max()), rank


def _finish(
    X: Array,
    y: Array,
    weight: Array | None,
    alpha: float,
    intercept: bool,
    coef: Array,
    level: Array | None,
    rank: int,
    factor: Array | None,
    x_mean: Array,
    y_mean: Array,
    n_iter: int,
) -> LinearFit:
    """Compute the intercept where it is still missing, the residuals and the certificate's value, free of overflow."""
    x_exponents = np.frexp(np.abs(X - x_mean).max(axis=0, initial=0.0))[1]
    y_exponents = np.frexp(np.maximum(np.abs(y - y_mean).max(axis=0), np.finfo(float).tiny))[1]
    scaled_coef = np.ldexp(coef, x_exponents[:, None] - y_exponents)
    if level is None:
        level = y_mean - np.asarray(x_mean.astype(np.longdouble) @ coef.astype(np.longdouble), dtype=np.float64)
        shift = np.zeros(y.shape[1], dtype=np.longdouble)
    else:
        # y − level − xβ = (y − ȳ) − (x − x̄)β − (level − ȳ + x̄β): the last term is zero up to rounding.
        shift = level - y_mean + x_mean.astype(np.longdouble) @ coef.astype(np.longdouble)
    if not intercept:
        level = np.zeros(y.shape[1])
        shift = np.zeros(y.shape[1], dtype=np.longdouble)
    w = np.ones((len(X), 1)) if weight is None else weight[:, None]
    gradient = np.zeros(coef.shape, dtype=np.longdouble)
    x_square, y_square, r_square, total = (np.zeros(s) for s in (X.shape[1], y.shape[1], y.shape[1], y.shape[1]))
    for part in _row_chunks(X):
        Z = np.ldexp(X[part] - x_mean, -x_exponents)
        t = np.ldexp(y[part] - y_mean, -y_exponents)
        r = t - Z.astype(np.longdouble) @ scaled_coef - np.ldexp(shift, -y_exponents)
        gradient += Z.T.astype(np.longdouble) @ (w[part] * r)
        x_square += (w[part] * Z**2).sum(axis=0)
        y_square += (w[part] * t**2).sum(axis=0)
        r_square += np.asarray((w[part] * r**2).sum(axis=0), dtype=np.float64)
        total += np.asarray((w[part] * r).sum(axis=0), dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        penalty = np.ldexp(alpha, -2 * x_exponents)[:, None]
        gradient -= penalty * scaled_coef
        residual_norm = np.ldexp(np.sqrt(r_square), y_exponents)
    if not intercept:
        total[:] = 0.0
    value = relative_residual(
        np.asarray(gradient, dtype=np.float64),
        total,
        np.sqrt(x_square),
        np.sqrt(y_square),
        scaled_coef,
        penalty,
        w.sum(),
    )
    return LinearFit(coef, level, rank, factor, x_mean, residual_norm, float(value.max(initial=0.0)), n_iter)


def reciprocal_condition(R: Array) -> float:
    """Return LAPACK's estimate of 1/κ₁ of an upper triangular matrix."""
    if not np.isfinite(R).all():
        return 0.0
    rcond, _ = lapack.dtrcon(R, norm="1", uplo="U", diag="N")
    return float(rcond)


def _apply_q(factors: Array, tau: Array, c: Array, *, transpose: bool) -> Array:
    out, _, info = lapack.dormqr("L", "T" if transpose else "N", factors, tau, c, lwork=max(1, 64 * c.shape[1]))
    if info != 0:
        raise ArithmeticError(f"dormqr failed with code {info}")
    return out  # type: ignore[no-any-return]


def _row_chunks(A: Array) -> list[slice]:
    """Cut the rows so that a chunk in extended precision stays small."""
    step = max(1, _CHUNK // max(1, A.shape[1]))
    return [slice(start, start + step) for start in range(0, max(1, A.shape[0]), step)]
