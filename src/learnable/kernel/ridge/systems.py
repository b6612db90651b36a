r"""Solve (K + D) C = Y, K a kernel matrix and D a positive diagonal, to the last digits.

Every method is the same loop: conjugate gradients with a preconditioner, restarted from the true residual until that is
small enough. What differs is the preconditioner.

    Woodbury    a partial Cholesky factor F of K, in float32 where the penalty is not lost in its rounding; exact where
                K = FFᵀ, as for the linear kernel
    dense       a Cholesky factor in float32: half the time of float64, and a few steps make up for its lost digits

The size of a residual R = Y − (K + D)C is ‖R‖/(‖Y‖ + (10⁻¹⁴/tol) S), column by column, where S is the norm of
√kᵢᵢ Σⱼ √kⱼⱼ|cⱼ| + dᵢ|cᵢ|: what rounding blurs when the terms of an equation are much larger than their sum
cannot be asked.

Reference: G. Golub and C. Van Loan, Matrix Computations, 4th ed., sections 3.5.3 and 11.5.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, lapack

from ...core import Array, Progress, interruptible, no_progress, one_thread_blas
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE
from ..operators import Operator, OutOfTimeError, Woodbury, as_double, partial_cholesky

Apply = Callable[[Array], Array]
Product = Callable[[Array, Callable[[], bool]], Array]  #: V ↦ KV that asks a function whether to stop

_ROUNDING = 1e-14  # share of the terms of a residual that rounding leaves
_EPSILON = 2.0**-52  # distance from one to the next float64
_SMALLEST_SINGLE = 1500  # rows from which a factor in float32 pays
_SMALLEST_PARTIAL = 3000  # rows from which a factor of low rank may pay
_PARTIAL_RANK = 512  # columns of the partial factor that preconditions
_ROWS_A_STEP = 80  # a whole factor of n rows takes the time of about n/80 products with the matrix
_FIRST_STEPS = 10  # after which the rate of convergence is known
_ROUGH_REDUCTION = 1e-4  # what a pass of steps with six digits may be asked for
_MOST_PASSES = 12  # of refinement, at most
_FACTOR_STEPS = 60  # more steps with a factor in float32 than this, and one in float64 is the better one
_FACTOR_BYTES = 6e8  # of a partial factor
_MOST_RANK = 1500  # columns of a partial factor, at most
_LARGEST_SINGLE = 1e6  # trace of K, relative to the least penalty, up to which that factor is float32
_ROUGH_SPEED = 3.0  # products of six digits that take the time of an exact one
_SAMPLE_ROWS = 4096  # whose product tells how long one of all rows takes
_CAUTION = 1.2  # factor on the time that a step is expected to take


class KernelSolution(NamedTuple):
    """A solution of (K + D) C = Y and how good it is."""

    coef: Array  #: C, (n, t)
    residual: Array  #: Y − (K + D)C
    value: float  #: the relative size of the residual, the largest of all columns
    tolerance: float  #: what it had to be
    n_iter: int
    definite: bool  #: whether K + D has shown no negative curvature


def relative_size(residual: Array, Y: Array, coef: Array, diagonal: Array, d: Array, tol: float) -> float:
    """Return the relative size of a residual, as the module defines it; all arrays (n, t), diagonals (n,)."""
    root = np.sqrt(np.abs(diagonal))
    terms = root[:, None] * (root @ np.abs(coef)) + d[:, None] * np.abs(coef)
    size = _norms(Y) + _ROUNDING / tol * _norms(terms)
    norm = _norms(residual)
    ratio = np.where(norm > 0, norm / np.where(size > 0, size, 1.0), 0.0)
    return float(np.max(np.where((norm > 0) & (size == 0), np.inf, ratio), initial=0.0))


def solve_dense(
    operator: Operator,
    d: Array,
    Y: Array,
    weight: Array | None = None,
    *,
    whole: bool = False,
    progress: Progress = no_progress,
) -> KernelSolution:
    """Solve with a factor of low rank, of the whole matrix in float32, or in float64: the first that is enough.

    With `whole` the first is left out. What is not positive definite (without a penalty, or without a Mercer kernel) is
    left to the eigenvectors.
    """
    K = operator.matrix
    if K is None:
        raise TypeError("solve_dense needs a matrix that is kept")
    found = None
    if operator.n >= _SMALLEST_PARTIAL and d.all() and not whole:
        found = _solve_by_partial_factor(operator, d, Y, progress)
        if found is not None:
            return found
    scale = _inverse_root(operator.diagonal + d)
    precisions = (np.float32, np.float64) if operator.n >= _SMALLEST_SINGLE else (np.float64,)
    for dtype in precisions if (scale > 0).all() else ():
        precondition = _factorised(K, d, scale, dtype)
        if precondition is None:
            continue
        steps = _FACTOR_STEPS if dtype == np.float32 else 20
        found = refine(operator, precondition, d, Y, tol=CLOSED_FORM_TOLERANCE, max_iter=steps, progress=progress)
        if found.value <= CLOSED_FORM_TOLERANCE:
            return found
        del precondition
    last = solve_by_eigenvectors(operator, d, Y, weight)
    return last if found is None or last.value < found.value else found


def _solve_by_partial_factor(operator: Operator, d: Array, Y: Array, progress: Progress) -> KernelSolution | None:
    """Solve by steps with a factor of low rank, if they are soon known to take less time than a whole factor."""
    most = operator.n // _ROWS_A_STEP
    inverse = Woodbury(partial_cholesky(operator, _PARTIAL_RANK)[0], d)

    def watch(step: int, value: float) -> bool:
        needed = step * np.log(CLOSED_FORM_TOLERANCE) / np.log(value) if 0.0 < value < 1.0 else np.inf
        return bool(progress(step, value)) or (step >= _FIRST_STEPS and needed > most)

    found = refine(operator, inverse, d, Y, tol=CLOSED_FORM_TOLERANCE, max_iter=most, progress=watch)
    return found if found.value <= CLOSED_FORM_TOLERANCE else None


def solve_iteratively(
    operator: Operator,
    d: Array,
    Y: Array,
    *,
    tol: float,
    max_iter: int | None = None,
    progress: Progress = no_progress,
    seconds_left: Callable[[], float] = lambda: np.inf,
) -> KernelSolution:
    """Solve by conjugate gradients; K is recomputed in tiles unless it is kept, and is never factorised whole.

    The preconditioner is exact for the linear kernel of few columns, else a partial Cholesky factor with D, to which a
    quarter of the time is given. `seconds_left` is asked between tiles.
    """
    limit = 10 * operator.n if max_iter is None else max_iter
    floor = max(tol, CLOSED_FORM_TOLERANCE)
    diagonal = _inverse_root(operator.diagonal + d)[:, None] ** 2
    rough = operator.rough if operator.has_rough else None
    precondition: Apply = lambda R: diagonal * R  # noqa: E731
    rank, dtype = _affordable_rank(operator, d)
    clock = _ProductClock(operator, seconds_left)
    if operator.is_linear and operator.matrix is None:
        if operator.X.shape[1] <= min(operator.n, 4000) and d.all():
            floor = CLOSED_FORM_TOLERANCE
            precondition = Woodbury(as_double(operator.X), d, n_jobs=operator.n_jobs)
    elif d.all() and rank > 0 and not clock.hurry():
        least = clock.reserve + 0.75 * (seconds_left() - clock.reserve)
        factor = partial_cholesky(operator, rank, dtype=dtype, stop=lambda: seconds_left() < least)[0]
        precondition = Woodbury(factor, d, overwrite=True, n_jobs=operator.n_jobs)
    return refine(
        operator,
        precondition,
        d,
        Y,
        rough=rough,
        tol=floor,
        max_iter=limit,
        progress=progress,
        clock=clock,
    )


def _affordable_rank(operator: Operator, d: Array) -> tuple[int, Any]:
    """Return the rank of the partial factor and its type: float32 unless the penalty is lost in its rounding."""
    least = float(d.min(initial=np.inf))
    single = least > 0.0 and float(np.abs(operator.diagonal).sum()) <= _LARGEST_SINGLE * least
    size = 4 if single else 8
    return int(min(operator.n, _MOST_RANK, _FACTOR_BYTES / size / operator.n)), np.float32 if single else np.float64


def refine(
    apply: Operator,
    precondition: Apply,
    d: Array,
    Y: Array,
    *,
    tol: float,
    max_iter: int,
    rough: Product | None = None,
    progress: Progress = no_progress,
    clock: _ProductClock | None = None,
) -> KernelSolution:
    """Repeat conjugate gradients on the true residual until its relative size is at most `tol`.

    Parameters
    ----------
    apply : Operator
        V ↦ KV.
    precondition : function
        R ↦ M⁻¹R with M ≈ K + D.
    d : (n,) array
        Diagonal of D.
    Y : (n, t) array
        Right-hand sides.
    tol, max_iter, progress
        As for every solver; steps of all repetitions count.
    rough : function, optional
        V ↦ KV to a few digits, for the steps in between.
    clock : _ProductClock, optional
        Keeps the time that a product in full precision takes for measuring the result.
    """
    C = np.zeros_like(Y)
    R = Y.copy()
    value = relative_size(R, Y, C, apply.diagonal, d, tol)
    spent = 0
    definite = True
    clock = clock or _ProductClock(apply, lambda: np.inf)
    for _ in range(_MOST_PASSES):
        if value <= tol or spent >= max_iter or clock.hurry():
            break
        wanted = 0.2 * tol / value
        product = clock.timed(apply, 1.0) if rough is None else clock.timed(rough, _ROUGH_SPEED)
        reduction = max(wanted, _ROUGH_REDUCTION if rough is not None else 1e-10)
        shifted = partial(_shifted_product, product, d)
        report = partial(_report, progress, clock.hurry, spent, value)
        E, steps, positive, stopped = _descend(shifted, precondition, R, reduction, max_iter - spent, report)
        spent += steps
        definite = definite and (positive or rough is not None)
        new_C = C + E
        if stopped and (steps == 0 or clock.late()):
            break
        try:
            new_R = Y - apply(new_C, clock.late) - d[:, None] * new_C
        except OutOfTimeError:
            break
        new = relative_size(new_R, Y, new_C, apply.diagonal, d, tol)
        slow = not new <= 0.3 * value
        if new < value:
            C = new_C
            R = new_R
            value = new
        if stopped or (slow and rough is None):
            break
        if slow:
            rough = None  # the lost digits matter
    return KernelSolution(C, R, value, tol, max(1, spent), definite)


class _ProductClock:
    """How long a product in full precision takes, and whether there is time for more than one that measures the result.

    Foreseen from the product of a few rows, then from those of all rows; asked only where time is limited.
    """

    def __init__(self, operator: Operator, seconds_left: Callable[[], float]) -> None:
        self.left = seconds_left
        self.reserve = 0.0
        if operator.matrix is None and not operator.is_linear and np.isfinite(seconds_left()):
            for m in (2, min(operator.n, _SAMPLE_ROWS)):  # the first product loads the kernels
                few = Operator(operator.kernel, operator.X[:m], keep=False)
                start = time.perf_counter()
                few(np.ones((len(few.diagonal), 1)))
                self.reserve = _CAUTION * (operator.n / m) ** 2 * (time.perf_counter() - start)

    def timed(self, product: Product, times: float) -> Apply:
        """Return a product that is timed, and stopped when only the reserve is left; an exact one takes `times`."""

        def apply(V: Array) -> Array:
            start = time.perf_counter()
            out = product(V, self.hurry)
            self.reserve = _CAUTION * times * (time.perf_counter() - start)
            return out

        return apply

    def late(self) -> bool:
        """Tell whether even that would last much longer than foreseen."""
        return self.left() < -0.25 * self.reserve

    def hurry(self) -> bool:
        """Tell whether only the time for measuring the result is left."""
        return self.left() <= self.reserve


def _shifted_product(product: Apply, d: Array, P: Array) -> Array:
    return product(P) + d[:, None] * P


def _report(progress: Progress, hurry: Callable[[], bool], spent: int, value: float, step: int, share: float) -> bool:
    return progress(spent + step, value * share) or hurry()


def _descend(
    apply: Apply, precondition: Apply, B: Array, reduction: float, max_iter: int, progress: Progress
) -> tuple[Array, int, bool, bool]:
    """Return X ≈ A⁻¹B, each column by its own conjugate gradients; the steps; whether definite; whether stopped."""
    X = np.zeros_like(B)
    R = B.copy()
    start = _norms(B)
    goal = reduction * start
    Z = precondition(R)
    P = Z.copy()
    rz = _dots(R, Z)
    share = 1.0
    definite = True
    for step in range(1, max_iter + 1):
        active = (_norms(R) > goal) & (rz > 0)
        if not active.any():
            return X, step - 1, definite, False
        try:
            AP = apply(P)
        except OutOfTimeError:
            return X, step - 1, definite, True
        curvature = _dots(P, AP)
        negative = active & ~(curvature > 0)
        definite = definite and not negative.any()
        active &= curvature > 0
        if not active.any() or not np.isfinite(curvature).all():
            return X, step, definite, False
        length = np.where(active, rz / np.where(active, curvature, 1.0), 0.0)
        X += length * P
        R -= length * AP
        Z = precondition(R)
        new = _dots(R, Z)
        P = Z + np.where(active & (rz > 0), new / np.where(rz > 0, rz, 1.0), 0.0) * P
        rz = np.where(active, new, 0.0)
        share = float(np.max(_norms(R) / np.where(start > 0, start, 1.0)))
        if progress(step, share):
            return X, step, definite, True
    return X, max_iter, definite, False


def _factorised(K: Array, d: Array, scale: Array, dtype: Any) -> Apply | None:
    """Return R ↦ (K + D)⁻¹R from a Cholesky factor of the matrix scaled to a unit diagonal; None if there is none."""
    A = np.empty(K.shape, dtype=dtype)
    for start in range(0, len(K), 512):
        rows = slice(start, start + 512)
        A[rows] = K[rows] * (scale[rows, None] * scale)
    A.flat[:: len(A) + 1] = (K.diagonal() + d) * scale**2
    if dtype == np.float32:
        A.flat[:: len(A) + 1] *= 1.0 + 1e-6  # its own rounding must not make it indefinite
    potrf, potrs = (lapack.spotrf, lapack.spotrs) if dtype == np.float32 else (lapack.dpotrf, lapack.dpotrs)
    L, info = interruptible(potrf, A.T, lower=1, overwrite_a=1, clean=0)  # A is symmetric; its transpose is Fortran's
    if info != 0:
        return None

    def solve(R: Array) -> Array:
        S = scale[:, None] * R
        size = np.abs(S).max(axis=0, initial=0.0)
        size = np.where(size > 0, size, 1.0)
        with one_thread_blas():
            x, _ = potrs(L, np.asfortranarray(S / size, dtype=dtype), lower=1, overwrite_b=1)
        return np.asarray(scale[:, None] * x.astype(np.float64) * size)

    return solve


def solve_by_eigenvectors(operator: Operator, d: Array, Y: Array, weight: Array | None = None) -> KernelSolution:
    """Solve by the eigenvectors of K with rows and columns scaled, so that D = I: any symmetric matrix has them.

    Without a penalty (D = 0) the equations need not have a solution: C is then the (weighted) least squares solution of
    minimum norm, and the residual is measured in the normal equations √w K w(Y − KC) = 0, relative to Σ wᵢkᵢᵢ.
    """
    K = operator.matrix if operator.matrix is not None else operator.kernel(operator.X)
    w = np.ones_like(d) if weight is None else weight / weight.max()
    root = 1.0 / np.sqrt(d) if d.all() else np.sqrt(w)
    values, U = interruptible(eigh, K * (root[:, None] * root), driver="evd", check_finite=False)
    shifted = values + (1.0 if d.all() else 0.0)
    kept = np.abs(shifted) > 4.0 * _EPSILON * len(K) * np.abs(shifted).max(initial=0.0)
    inverse = np.where(kept, 1.0 / np.where(kept, shifted, 1.0), 0.0)[:, None]
    C = np.zeros_like(Y)
    R = Y
    value = np.inf
    best = C, R
    for _ in range(3):
        with one_thread_blas():
            C = C + root[:, None] * (U @ (inverse * (U.T @ (root[:, None] * R))))
        R = Y - operator(C) - d[:, None] * C
        new = relative_size(R, Y, C, operator.diagonal, d, CLOSED_FORM_TOLERANCE)
        if not d.any():
            new = min(new, _normal_size(operator, R, Y, C, root[:, None]))
        if not new < value:
            break
        value = new
        best = (C, R)
    return KernelSolution(*best, value, CLOSED_FORM_TOLERANCE, 1, bool(shifted.min(initial=0.0) >= 0.0))


def _normal_size(operator: Operator, R: Array, Y: Array, C: Array, root: Array) -> float:
    """Return the relative size of √w K w R, where `root` is √w."""
    diagonal = operator.diagonal * root[:, 0] ** 2
    trace = float(np.abs(diagonal).sum())
    again = root * operator(root**2 * R) / (trace if trace > 0 else 1.0)
    return relative_size(again, root * Y, C / root, diagonal, np.zeros(len(R)), CLOSED_FORM_TOLERANCE)


def _inverse_root(values: Array) -> Array:
    return np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)


def _norms(A: Array) -> Array:
    return np.sqrt(np.einsum("ij,ij->j", A, A))


def _dots(A: Array, B: Array) -> Array:
    return np.einsum("ij,ij->j", A, B)
