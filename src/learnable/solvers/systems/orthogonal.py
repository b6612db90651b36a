r"""Least squares by orthogonal factorisation: the path for small, ill-conditioned and rank-deficient problems.

Solves  min ‖√w (y − b − Xβ)‖² + α‖β‖²  on a dense copy of the data.

- Columns, targets and weights are scaled by powers of two (exact), and the rank is decided after scaling.
- A full-rank problem is refined in extended precision (Björck's iteration on the augmented system), which makes the
  solution accurate to the last digits that the float64 data allow.
- A rank-deficient or wide problem gets its solution of minimum norm, in the columns' own units.

Reference: Å. Björck, Numerical Methods for Least Squares Problems, 1996, sections 2.7 and 2.9. Memory: O(nd + d²).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular
from scipy.optimize import nnls

from ...core import Array, NDArray, interruptible, one_thread_blas
from .moments import relative_residual

Exponents = NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)
_MAX_REFINEMENTS = 4  # of the triangle's solution, at most
_SAFETY = 1e9  # of the forecast that no further refinement changes a digit: the forecast is a matter of order
_CHUNK = 2**18  # elements converted to extended precision at a time


class LinearFit(NamedTuple):
    """A solved linear least squares or ridge problem with k targets."""

    coef: Array  #: (d, k)
    intercept: Array  #: (k,)
    rank: int  #: of the centred X, after scaling its columns
    factor: Array | None  #: upper triangular, with the singular values of the centred √w X; (d, d) where n > d
    x_mean: Array  #: (d,); zero without an intercept
    residual_norm: Array  #: (k,), √Σ w r²
    value: float  #: largest relative residual of the defining equations
    n_iter: int  #: factorisations and refinements
    kind: str = "closed-form"  #: of the certificate: "gap" and "stationarity" are those of iterative methods
    #: Whether an iterative method worked in scaled columns: of several minimisers this may not be the shortest.
    scaled: bool = False


class _Problem(NamedTuple):
    """The data and the powers of two that bring every column of them to order one."""

    X: Array
    y: Array
    weight: Array  #: (n,), largest in [¼, 1)
    alpha: float  #: the penalty against the scaled weights
    intercept: bool
    x_mean: Array
    y_mean: Array
    x_exponents: Exponents  #: (d,)
    y_exponents: Exponents  #: (k,)
    weight_exponent: int

    def x_rows(self, part: slice) -> Array:
        """Return some rows of X, scaled."""
        return _scaled_down(self.X[part], self.x_exponents)

    def y_rows(self, part: slice) -> Array:
        """Return some rows of y, scaled."""
        return _scaled_down(self.y[part], self.y_exponents)


def orthogonal_fit(
    X: Array,
    y: Array,
    weight: Array | None,
    alpha: float = 0.0,
    *,
    intercept: bool = True,
    nonnegative: bool = False,
) -> LinearFit:
    """Solve the problem of the module's docstring for dense X (n, d) and y (n, k); with `nonnegative`, over β ≥ 0."""
    problem = _scaled_problem(X, y, weight, alpha, intercept)
    n, d = X.shape
    if n + (d if problem.alpha else 0) >= d + intercept:
        return _tall_fit(problem, nonnegative)
    x_mean = np.ldexp(problem.x_mean, -problem.x_exponents)
    y_mean = np.ldexp(problem.y_mean, -problem.y_exponents)
    everything = slice(None)
    A, b = eliminate_intercept(
        problem.x_rows(everything), problem.y_rows(everything), problem.weight, x_mean, y_mean, intercept
    )
    if nonnegative:
        return _finish(problem, _nonnegative(A, b), nonnegative=True)
    common = int(problem.x_exponents.max(initial=0))
    coef, rank, factor = _minimum_norm(A, b, problem.x_exponents - common)
    with np.errstate(over="ignore"):
        factor = np.ldexp(factor, common + problem.weight_exponent // 2)
    return _finish(problem, coef, rank=rank, factor=factor, n_iter=2)


def weighted_mean(rows: Array, weight: Array | None, wanted: bool = True) -> Array:
    """Return the column means to the last digit, safe from overflow; zero unless `wanted`."""
    if not wanted:
        return np.zeros(rows.shape[1])
    w = np.ones(rows.shape[0]) if weight is None else weight
    if rows.size > _CHUNK // 64:  # twice in float64 is as exact as once in extended precision, and much faster
        with np.errstate(over="ignore", invalid="ignore"), one_thread_blas():
            mean = w @ rows / w.sum()
            mean += sum(w[part] @ (rows[part] - mean) for part in _row_chunks(rows)) / w.sum()
        if np.isfinite(mean).all():
            return np.asarray(mean)
    total = np.zeros(rows.shape[1], dtype=np.longdouble)
    for part in _row_chunks(rows):
        total += w[part].astype(np.longdouble) @ rows[part].astype(np.longdouble)
    return np.asarray(total / w.astype(np.longdouble).sum(), dtype=np.float64)


def eliminate_intercept(
    X: Array, y: Array, weight: Array | None, x_mean: Array, y_mean: Array, intercept: bool
) -> tuple[Array, Array]:
    """Return √w(X − x̄) and √w(y − ȳ), turned so that the intercept's equation is the first row, without it."""
    v = np.ones(len(X)) if weight is None else np.sqrt(weight)
    A = v[:, None] * (X - x_mean)
    b = v[:, None] * (y - y_mean)
    if not intercept:
        return A, b
    u = v / np.linalg.norm(v)
    u[0] += 1.0  # a Householder vector that maps v to the first axis
    scale = 2.0 / (u @ u)
    return (A - np.outer(u, scale * (u @ A)))[1:], (b - np.outer(u, scale * (u @ b)))[1:]


def _scaled_problem(X: Array, y: Array, weight: Array | None, alpha: float, intercept: bool) -> _Problem:
    w = np.ones(len(X)) if weight is None else weight
    exponent = 2 * int(np.frexp(w.max())[1] // 2)  # even, so that its square root is a power of two as well
    alpha = float(np.ldexp(alpha, -exponent))
    largest = np.maximum(np.abs(X).max(axis=0), np.sqrt(alpha))
    x_exponents = np.frexp(largest)[1].astype(np.int64)
    y_exponents = np.frexp(np.abs(y).max(axis=0))[1].astype(np.int64)
    means = weighted_mean(X, weight, intercept), weighted_mean(y, weight, intercept)
    return _Problem(X, y, np.ldexp(w, -exponent), alpha, intercept, *means, x_exponents, y_exponents, exponent)


def _tall_fit(problem: _Problem, nonnegative: bool) -> LinearFit:
    """Factorise A = √w [1, X] with the penalty's rows √α I below, all scaled."""
    n, d = problem.X.shape
    c = int(problem.intercept)
    root = np.sqrt(problem.weight)[:, None]
    alpha = problem.alpha
    height = n + (d if alpha else 0)
    A = np.zeros((height, d + c), order="F")
    b = np.zeros((height, problem.y.shape[1]), order="F")
    A[:n, :c] = root
    A[:n, c:] = root * problem.x_rows(slice(None))
    b[:n] = root * problem.y_rows(slice(None))
    if alpha:
        np.fill_diagonal(A[n:, c:], np.ldexp(np.sqrt(alpha), -problem.x_exponents))
    factors, tau, R = _householder(A)
    noise = _EPS * min(max(A.shape), 1000) * max(1e-300, float(np.linalg.norm(R, axis=0).max()))
    with np.errstate(over="ignore"):
        factor = np.ldexp(R[c:, c:], problem.x_exponents + problem.weight_exponent // 2)
    projected = _apply_q(factors, tau, b, transpose=True)[c : d + c]
    if nonnegative:
        # min ‖R₂₂β − c₂‖ is the problem without the intercept, whose column is the first of R.
        return _finish(problem, _nonnegative(R[c:, c:], projected), nonnegative=True)
    rcond = reciprocal_condition(R)
    if rcond > _EPS * min(max(A.shape), 1000):
        x, n_iter = _refined_solution(A, b, factors, tau, R, rcond)
        level = x[0] if problem.intercept else None
        return _finish(problem, x[c:], level=level, rank=d, factor=factor, n_iter=n_iter)
    coef, rank = _rank_deficient_solution(R[c:, c:], projected, problem.x_exponents, noise)
    return _finish(problem, coef, rank=rank, factor=factor, n_iter=2)


@one_thread_blas()  # a few columns: waking other threads takes longer than the work
def _refined_solution(A: Array, b: Array, factors: Array, tau: Array, R: Array, rcond: float) -> tuple[Array, int]:
    """Solve the augmented system r + Ax = b, Aᵀr = 0, with extended-precision residuals, until it stops improving."""
    p = R.shape[0]
    x = np.zeros((p, b.shape[1]), dtype=np.longdouble)
    r = np.zeros(b.shape, dtype=np.longdouble)
    last = np.inf
    rows: Any = A.astype(np.longdouble) if A.size <= _CHUNK else A
    for iteration in range(1 + _MAX_REFINEMENTS):
        f, g = _augmented_residual(rows, b, x, r) if iteration > 0 else (b, np.zeros(x.shape))
        h = _solve_upper(R, g, transpose=True)
        d = _apply_q(factors, tau, f, transpose=True)
        dx = _solve_upper(R, d[:p] - h)
        d[:p] = h
        dr = _apply_q(factors, tau, d, transpose=False)
        size = float(np.max(np.abs(dx) / (np.abs(x + dx) + np.finfo(float).tiny), initial=0.0))
        if iteration > 0 and not size < 0.5 * last:
            break  # rounding has taken over
        x = x + dx
        r = r + dr
        if iteration > 0 and (size < _EPS / 4 or _SAFETY * np.abs(dx).max() < rcond * np.abs(x).min()):
            break  # each correction is about eps/rcond of the last one: the next would be far below the last digit
        last = size if iteration > 0 else np.inf
    return np.asarray(x), iteration + 1


def _augmented_residual(A: Any, b: Array, x: Any, r: Any) -> tuple[Array, Array]:
    """Return f = b − r − Ax and g = −Aᵀr, accumulated in extended precision."""
    f = np.empty(b.shape, order="F")
    g = np.zeros((A.shape[1], b.shape[1]), dtype=np.longdouble)
    for part in _row_chunks(A):
        rows = A[part].astype(np.longdouble, copy=False)
        f[part] = b[part] - r[part] - np.dot(rows, x)
        g -= np.dot(rows.T, r[part])
    return f, np.asarray(g, dtype=np.float64)


def _minimum_norm(A: Array, b: Array, exponents: Exponents) -> tuple[Array, int, Array]:
    """Minimise ‖β̃·2^−exponents‖ subject to Aβ̃ = b, A wide with columns scaled to order one.

    Returns β̃, the rank, and a factor with the singular values of A·2^exponents.
    """
    m, d = A.shape
    if m == 0:
        return np.zeros((d, b.shape[1])), 0, np.zeros((0, 0))
    own = np.ldexp(A, exponents)
    row_exponents = np.frexp(np.abs(own).max(axis=1))[1]
    rows = np.ldexp(own, -row_exponents[:, None])
    right = np.ldexp(b, -row_exponents[:, None])
    factors, tau, R = _householder(rows.T)
    factor = np.ldexp(R, row_exponents)
    if reciprocal_condition(R) <= _EPS * min(d, 1000):
        noise = _EPS * min(d, 1000) * max(1e-300, float(np.linalg.norm(A, axis=0).max()))
        return *_rank_deficient_solution(A, b, exponents, noise), factor
    coef = np.zeros((d, b.shape[1]), dtype=np.longdouble)
    for _ in range(2):  # the solution, and one refinement
        done = np.vstack([rows[part].astype(np.longdouble) @ coef for part in _row_chunks(rows)])
        padded = np.zeros((d, b.shape[1]), order="F")
        padded[:m] = solve_triangular(R, np.asarray(right - done, dtype=np.float64), trans="T", check_finite=False)
        coef = coef + _apply_q(factors, tau, padded, transpose=False)
    return np.ldexp(np.asarray(coef, dtype=np.float64), exponents[:, None]), m, factor


def _rank_deficient_solution(A: Array, b: Array, exponents: Exponents, noise: float) -> tuple[Array, int]:
    """Minimise ‖β̃·2^−exponents‖ among the minimisers of ‖Aβ̃ − b‖, by a complete orthogonal decomposition.

    Directions in which A is below `noise` count as dependent. Returns β̃ and the rank. Where the columns differ so much
    in size that rounding would spoil the fit, the shortest scaled solution is taken.
    """
    Q, R, order = interruptible(qr, A, mode="economic", pivoting=True, check_finite=False)
    rank = int(np.count_nonzero(np.abs(np.diag(R)) > noise))
    if rank == 0:
        return np.zeros((A.shape[1], b.shape[1])), 0
    rows = np.empty((rank, A.shape[1]))
    right = Q[:, :rank].T @ b
    rows[:, order] = R[:rank]
    coef = _shortest(rows, right, exponents - exponents.max())
    with np.errstate(over="ignore", invalid="ignore"):
        missed = np.abs(rows @ coef - right).max()
    if not missed <= 1e-12 * np.abs(right).max():
        coef = _shortest(rows, right, np.zeros_like(exponents))
    return coef, rank


def _shortest(rows: Array, right: Array, shift: Exponents) -> Array:
    """Minimise ‖β̃·2^−shift‖ subject to rows·β̃ = right."""
    tallest = np.argsort(-shift, kind="stable")  # sizes may differ: the large ones first, and pivoting
    Q, R, order = qr(np.ldexp(rows, shift).T[tallest], mode="economic", pivoting=True, check_finite=False)
    coef = np.empty((rows.shape[1], right.shape[1]))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.diag(R).all():
            return np.full_like(coef, np.inf)
        coef[tallest] = Q @ solve_triangular(R, right[order], trans="T", check_finite=False)
    return np.ldexp(coef, shift[:, None])


def _nonnegative(A: Array, b: Array) -> Array:
    """Minimise ‖Aβ − b‖ over β ≥ 0 by the active-set method of Lawson and Hanson."""
    if len(A) == 0:
        return np.zeros((A.shape[1], b.shape[1]))
    return np.column_stack([nnls(A, b[:, k])[0] for k in range(b.shape[1])])


def _finish(
    problem: _Problem,
    coef: Any,
    *,
    level: Any = None,
    rank: int = 0,
    factor: Array | None = None,
    n_iter: int = 1,
    nonnegative: bool = False,
) -> LinearFit:
    """Undo the scaling, compute the intercept if it is missing, and evaluate the defining equations on the data."""
    x_mean: Any = np.ldexp(problem.x_mean, -problem.x_exponents).astype(np.longdouble)
    y_mean: Any = np.ldexp(problem.y_mean, -problem.y_exponents).astype(np.longdouble)
    centre = x_mean.astype(np.float64)
    constant = (problem.x_rows(slice(None)) == centre).all(axis=0)
    coef = np.where(constant[:, None] & problem.intercept, 0.0, np.asarray(coef, dtype=np.float64))
    if not problem.intercept:
        level = np.zeros(problem.y.shape[1])
    elif level is None or constant.any():
        level = y_mean - x_mean @ coef
    level = np.asarray(level, dtype=np.float64)
    gradient = np.zeros(coef.shape, dtype=np.longdouble)
    total = np.zeros(len(level), dtype=np.longdouble)
    r_square = np.zeros(len(level), dtype=np.longdouble)
    # sizes to compare with: float64 will do
    x_square = np.zeros(len(coef))
    y_square = np.zeros(len(level))
    for part in _row_chunks(problem.X):
        w = problem.weight[part, None]
        X = problem.x_rows(part)
        y = problem.y_rows(part)
        extended = X.astype(np.longdouble)
        r = y - level - np.dot(extended, coef)  # `dot` is faster than `@` in extended precision
        wr = w * r
        gradient += np.dot(extended.T, wr) - np.outer(x_mean, wr.sum(axis=0))
        total += wr.sum(axis=0)
        r_square += (wr * r).sum(axis=0)
        x_square += (w * (X - centre) ** 2).sum(axis=0)
        y_square += (w * (y - y_mean.astype(np.float64)) ** 2).sum(axis=0)
    own = np.ldexp(coef.astype(np.longdouble), -problem.x_exponents[:, None])  # β, but for the scale of y
    gradient -= np.ldexp(problem.alpha * own, -problem.x_exponents[:, None])
    if nonnegative:
        gradient = np.where(coef > 0, gradient, np.maximum(gradient, 0.0))
    weight = float(problem.weight.sum())
    value = relative_residual(
        gradient,
        np.where(problem.intercept, total, 0),
        x=(np.sqrt(x_square), x_mean),
        y=(np.sqrt(y_square), y_mean),
        coef=coef,
        intercept=level,
        penalty=np.ldexp(problem.alpha * np.abs(own).max(axis=0), -problem.x_exponents[:, None]),
        weight=weight,
    )
    with np.errstate(over="ignore"):
        return LinearFit(
            np.ldexp(coef, problem.y_exponents - problem.x_exponents[:, None]),
            np.ldexp(level, problem.y_exponents),
            rank,
            None if problem.alpha else factor,
            problem.x_mean,
            np.ldexp(np.sqrt(r_square).astype(np.float64), problem.y_exponents + problem.weight_exponent // 2),
            float(value.max(initial=0.0)),
            n_iter,
        )


def reciprocal_condition(R: Array) -> float:
    """Return LAPACK's estimate of 1/κ₁ of an upper triangular matrix."""
    if not np.isfinite(R).all():
        return 0.0
    rcond, _ = lapack.dtrcon(R, norm="1", uplo="U", diag="N")
    return float(rcond)


def _householder(A: Array) -> tuple[Array, Array, Array]:
    """Return LAPACK's factored form of Q and the triangular R of a tall matrix."""
    transposed, tau = interruptible(np.linalg.qr, A, mode="raw")
    factors = transposed.T
    return factors, tau, np.triu(factors[: A.shape[1]])


def _solve_upper(R: Array, right: Array, *, transpose: bool = False) -> Array:
    """Solve with an upper triangular matrix, or its transpose, in either memory order."""
    if R.flags.f_contiguous:
        out, info = lapack.dtrtrs(R, right, lower=0, trans=transpose)
    else:
        out, info = lapack.dtrtrs(R.T, right, lower=1, trans=not transpose)
    if info != 0:
        raise ArithmeticError(f"dtrtrs failed with code {info}")
    return out  # type: ignore[no-any-return]


def _apply_q(factors: Array, tau: Array, c: Array, *, transpose: bool) -> Array:
    out, _, info = lapack.dormqr("L", "T" if transpose else "N", factors, tau, c, lwork=max(1, 64 * c.shape[1]))
    if info != 0:
        raise ArithmeticError(f"dormqr failed with code {info}")
    return out  # type: ignore[no-any-return]


def _scaled_down(values: Array, exponents: Exponents) -> Array:
    """Return values·2^−exponents: where the power is a float64, as a product, which is much faster than ldexp."""
    if np.abs(exponents).max(initial=0) < 1000:
        return values * np.ldexp(1.0, -exponents)
    return np.asarray(np.ldexp(values, -exponents))


def _row_chunks(A: Array) -> list[slice]:
    """Cut the rows so that a chunk in extended precision stays small."""
    step = max(1, _CHUNK // max(1, A.shape[1]))
    return [slice(start, start + step) for start in range(0, max(1, A.shape[0]), step)]
