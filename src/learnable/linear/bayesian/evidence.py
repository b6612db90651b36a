r"""The evidence of Bayesian linear regression, through one eigendecomposition.

With S = V diag(s) Vᵀ the Gram matrix of the (centred) rows, c = Vᵀ Σ w (x − x̄)(y − ȳ) and ρ = λ/α the ratio of the
prior's precision λ to the noise's precision α, everything the model needs is a sum over the eigenvalues:

    Q(ρ) = min_β RSS(β) + ρ‖β‖² = r + Σⱼ ρ cⱼ²/(sⱼ(sⱼ + ρ)),    r the residual sum of squares of least squares,
    2 log p(y | α, λ) = N log α − N log 2π + Σⱼ log(ρ/(sⱼ + ρ)) − α Q(ρ)   (− log W for a flat intercept),

where N is the total weight W, less one with an intercept. The best α is N/Q(ρ), which leaves one number to find:

    d/d log ρ:   γ(ρ) − λ‖β‖² = 0,   γ(ρ) = Σⱼ sⱼ/(sⱼ + ρ), the effective number of coefficients.

A step costs O(d), so that the whole line of ρ is searched: the maximum is the global one, not the nearest.

Reference: C. Bishop, Pattern Recognition and Machine Learning, 2006, section 3.5; D. MacKay, *Bayesian
interpolation*, 1992.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaln

from ...core import Array, interruptible, one_thread_blas

#: ρ is sought between these multiples of the largest eigenvalue.
LEAST = 1e-12
MOST = 1e12
_GRID = 97  # points a quarter of a decade apart
_GRADED = 1e6  # quotient of squared sizes of columns
_LOG_2PI = math.log(2.0 * math.pi)
_NOISE_FLOOR = 1e-14  # of the size of y: a fit without residuals has no noise, a distribution some


class RowMoments(NamedTuple):
    """All that a Bayesian regression needs of its rows; moments of several runs of rows merge."""

    rows: int  #: how many
    weight: float  #: W
    x_mean: Array  #: (d,); zero without an intercept
    y_mean: float
    values: Array  #: (r,), the positive eigenvalues s of the Gram matrix
    basis: Array  #: (d, r), V
    cross: Array  #: (d,), Σ w (x − x̄)(y − ȳ)
    y_square: float  #: Σ w (y − ȳ)²


class Problem(NamedTuple):
    """The evidence as a function of ρ."""

    values: Array  #: (r,), s
    squares: Array  #: (r,), c²/s
    rest: float  #: r, the residual sum of squares of least squares
    n: float  #: N
    d: int
    offset: float  #: log W for a flat intercept, else 0
    floor: float  #: the least Q that is not taken for rounding

    def q(self, rho: Array | float) -> Array:
        """Return Q(ρ)."""
        rho = np.asarray(rho, dtype=np.float64)[..., None]
        return np.maximum(self.rest + np.sum(self.squares * (rho / (self.values + rho)), axis=-1), self.floor)

    def penalty(self, rho: Array | float) -> Array:
        """Return ρ‖β(ρ)‖²."""
        rho = np.asarray(rho, dtype=np.float64)[..., None]
        share = self.values / (self.values + rho)
        return np.asarray(np.sum(self.squares * share * (rho / (self.values + rho)), axis=-1))

    def gamma(self, rho: Array | float) -> Array:
        """Return γ(ρ), the effective number of coefficients."""
        rho = np.asarray(rho, dtype=np.float64)[..., None]
        return np.asarray(np.sum(self.values / (self.values + rho), axis=-1))

    def log_ratio(self, rho: Array | float) -> Array:
        """Return Σⱼ log(ρ/(sⱼ + ρ))."""
        rho = np.asarray(rho, dtype=np.float64)[..., None]
        return np.asarray(-np.sum(np.log1p(self.values / rho), axis=-1))

    def slope(self, rho: Array | float) -> Array:
        """Return γ − λ‖β‖² with the best α: twice the derivative of the log-evidence in log ρ."""
        return self.gamma(rho) - self.n * self.penalty(rho) / self.q(rho)

    def profile(self, rho: Array | float) -> Array:
        """Return twice the log-evidence with the best α, up to a constant."""
        return self.log_ratio(rho) - self.n * np.log(self.q(rho))

    def log_evidence(self, alpha: float, rho: float) -> float:
        """Return log p(y | α, λ = αρ); with a flat intercept the density of its prior is one."""
        twice = self.n * (math.log(alpha) - _LOG_2PI) + self.log_ratio(rho) - alpha * self.q(rho) - self.offset
        return 0.5 * float(twice)

    def log_evidence_unknown(self, shape: float, rate: float, rho: float) -> float:
        """Return log p(y) for σ² ~ IG(shape, rate) and β | σ² ~ N(0, σ²/ρ)."""
        after_shape = shape + 0.5 * self.n
        after_rate = rate + 0.5 * float(self.q(rho))
        value = 0.5 * (self.log_ratio(rho) - self.n * _LOG_2PI - self.offset)
        value += shape * math.log(rate) - after_shape * math.log(after_rate) + gammaln(after_shape) - gammaln(shape)
        return float(value)


def spectral(
    rows: int, weight: float, x_mean: Array, y_mean: float, gram: Array, cross: Array, y_square: float
) -> RowMoments:
    """Return the moments of rows whose Gram matrix is known."""
    found = _graded(gram) if _is_graded(np.diag(gram)) else None
    if found is None:
        found = _positive(*interruptible(np.linalg.eigh, gram), len(gram))
    return RowMoments(rows, weight, x_mean, y_mean, *found, cross, y_square)


def thin(rows: int, weight: float, x_mean: Array, y_mean: float, A: Array, cross: Array, y_square: float) -> RowMoments:
    """Return the moments of rows whose Gram matrix is AᵀA, for an A of fewer rows than columns."""
    # With Aᵀ = QR and R = UΣWᵀ, AᵀA = (QU)Σ²(QU)ᵀ: nothing is squared, and the basis is orthonormal.
    Q, R = interruptible(np.linalg.qr, A.T)
    small, sigma, _ = interruptible(np.linalg.svd, R)
    values, small = _positive(sigma[::-1] ** 2, small[:, ::-1], 1)
    basis = np.ascontiguousarray(interruptible(np.matmul, Q, small))
    return RowMoments(rows, weight, x_mean, y_mean, values, basis, cross, y_square)


def _positive(values: Array, vectors: Array, size: int) -> tuple[Array, Array]:
    """Return the eigenvalues above rounding, and their vectors."""
    noise = np.finfo(float).eps * size * max(float(values[-1]) if len(values) else 0.0, np.finfo(float).tiny)
    kept = values > noise
    return np.ascontiguousarray(values[kept]), np.ascontiguousarray(vectors[:, kept])


def _is_graded(squares: Array) -> bool:
    """Tell whether columns are of so different sizes that the small ones would drown in the rounding of the large."""
    positive = squares[squares > 0.0]
    return bool(positive.size and positive.max() > _GRADED * positive.min())


def _graded(gram: Array) -> tuple[Array, Array] | None:
    """Return eigenvalues, each to its own digits, and vectors of a Gram matrix of columns of very different sizes.

    S = RᵀR with R = (Cholesky factor of the correlations)·diag(sizes); one-sided Jacobi rotations of R keep the small
    singular values (Drmač and Veselić, 2008). None where the correlations are singular.
    """
    size = np.sqrt(np.diag(gram))
    active = size > 0.0
    scaled = (gram / np.where(active, size, 1.0)[:, None] / np.where(active, size, 1.0))[np.ix_(active, active)]
    factor, info = lapack.dpotrf(scaled, lower=0, clean=1)
    if info != 0 or np.diagonal(factor).min() < 1e-6:
        return None
    # The left vectors of Rᵀ are the eigenvectors of RᵀR; rows of different sizes do no harm (joba=2).
    transposed = np.asfortranarray((factor * size[active]).T)
    jacobi = interruptible(lapack.dgejsv, transposed, joba=2, jobu=0, jobv=3, jobr=0, jobt=0)
    sigma, left, _, work, _, info = jacobi
    if info != 0:
        return None
    sigma = sigma * (work[0] / work[1])
    order = np.argsort(sigma)
    basis = np.zeros((len(size), len(order)))
    basis[active] = left[:, order]
    values = np.square(sigma[order])
    kept = values > 0.0
    return np.ascontiguousarray(values[kept]), np.ascontiguousarray(basis[:, kept])


def merge(a: RowMoments, b: RowMoments, intercept: bool) -> RowMoments:
    """Return the moments of two runs of rows together."""
    weight = a.weight + b.weight
    pull = a.weight / weight * b.weight if intercept else 0.0
    dx = b.x_mean - a.x_mean
    dy = b.y_mean - a.y_mean
    share = b.weight / weight
    head = a.rows + b.rows, weight, a.x_mean + share * dx, a.y_mean + share * dy
    cross = a.cross + b.cross + pull * dx * dy
    y_square = a.y_square + b.y_square + pull * dy * dy
    rows = [(part.basis * np.sqrt(part.values)).T for part in (a, b)]
    A = np.vstack([*rows, math.sqrt(pull) * dx])
    if len(A) < A.shape[1]:
        return thin(*head, A, cross, y_square)
    with one_thread_blas():
        gram = A.T @ A
    return spectral(*head, gram, cross, y_square)


def problem_of(moments: RowMoments, intercept: bool, rest: float | None = None) -> Problem:
    """Return the evidence of some moments; `rest` is r where it is known better than they give it."""
    with one_thread_blas():
        c = moments.basis.T @ moments.cross
    squares = c * c / moments.values
    n = moments.weight - intercept
    if rest is None:
        rest = moments.y_square - float(squares.sum())
    if len(moments.values) >= moments.rows - intercept:
        rest = 0.0  # as many directions as rows: nothing is left
    size = moments.y_square / moments.weight + moments.y_mean**2
    floor = max(n, 1.0) * _NOISE_FLOOR**2 * (size if size > 0.0 else 1.0)
    offset = math.log(moments.weight) if intercept else 0.0
    return Problem(moments.values, squares, max(rest, 0.0), n, len(moments.cross), offset, floor)


def maximise(problem: Problem) -> float:
    """Return the ρ of greatest evidence, between 1e-12 and 1e12 times the largest eigenvalue."""
    if len(problem.values) == 0:
        return 1.0  # no column varies: the data say nothing about the prior
    top = float(problem.values[-1])
    low = math.log(LEAST * top)
    high = math.log(MOST * top)
    t = np.linspace(low, high, _GRID)
    slope = problem.slope(np.exp(t))
    value = problem.profile(np.exp(t))
    best = t[int(np.argmax(value))]
    best_value = float(value.max())
    for i in np.flatnonzero((slope[:-1] > 0.0) & (slope[1:] <= 0.0)):  # a maximum lies between
        found = _root(problem, t[i], t[i + 1])
        at = float(problem.profile(math.exp(found)))
        if at >= best_value - 1e-12 * abs(best_value):
            best = found
            best_value = max(at, best_value)
    return float(np.clip(math.exp(best), LEAST * top, MOST * top))


def _root(problem: Problem, low: float, high: float) -> float:
    """Return where the slope falls through zero, by bisection in between secant steps."""
    f_low = float(problem.slope(math.exp(low)))
    f_high = float(problem.slope(math.exp(high)))
    for i in range(200):
        middle = 0.5 * (low + high)
        if i % 3 and f_low > f_high:
            secant = low + (high - low) * f_low / (f_low - f_high)
            middle = min(max(secant, low), high)
        f = float(problem.slope(math.exp(middle)))
        if f == 0.0 or not low < middle < high:
            return middle
        if f > 0.0:
            low = middle
            f_low = f
        else:
            high = middle
            f_high = f
        if high - low <= 4.0 * np.finfo(float).eps * max(1.0, abs(low)):
            break
    return low if f_low < -f_high else high


def stationarity(problem: Problem, alpha: float, rho: float) -> float:
    """Return the relative residual of the two equations of greatest evidence; beyond an end of ρ's range, none."""
    noise = abs(problem.n - alpha * float(problem.q(rho))) / problem.n
    gamma = float(problem.gamma(rho))
    drawn = alpha * float(problem.penalty(rho))
    top = float(problem.values[-1]) if len(problem.values) else 0.0
    slope = gamma - drawn
    if rho >= MOST * top * (1.0 - 1e-9):
        slope = min(slope, 0.0)
    elif rho <= LEAST * top * (1.0 + 1e-9):
        slope = max(slope, 0.0)
    return max(noise, abs(slope) / max(gamma, drawn, 1e-6))
