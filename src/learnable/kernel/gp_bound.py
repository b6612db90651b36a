r"""The variational bound of Titsias: m inducing points Z stand for all rows.

With k(Z, Z) = LLᵀ, vᵢ = L⁻¹k(Z, xᵢ) and the noise λᵢ of row i, everything is in five sums over the rows,

    A = Σ vᵢvᵢᵀ/λᵢ,   b = Σ vᵢyᵢ/λᵢ,   s = Σ yᵢ²/λᵢ,   δ = Σ (k(xᵢ, xᵢ) − ‖vᵢ‖²)/λᵢ,   ℓ = Σ log λᵢ,

and the bound of log p(y), which is log p(y) itself if Z are all rows, is

    F = −½ (n log 2π + ℓ + log|I + A| + s − bᵀ(I + A)⁻¹b + δ).

Its gradient takes a second pass, in which row i has the weights L⁻ᵀ(2Gvᵢ + w yᵢ)/λᵢ, w = (I + A)⁻¹b, G = ∂F/∂A. The
passes run on blocks of rows: in memory, from files, on Dask, with the same bits. O(nm²) operations a pass, O(m²)
memory and a block.

Reference: M. Titsias, Variational learning of inducing variables in sparse Gaussian processes, AISTATS 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtrmm

from ..data.blocks import Block, Blocks, Part, map_reduce
from ..risk.kernels.base import Kernel
from ..risk.kernels.tape import record, record_diagonal
from ..solvers.problem import Evaluation
from .gp_likelihood import Objective, Observations, small_blas, stationarity
from .gp_pairs import pairs_of

Array = NDArray[np.float64]

START = 512  #: rows of the exact process whose hyperparameters are the start
_CHUNK = 2**15  # kernel values that a thread works on at a time: four arrays of 256 kB stay in the cache
_DIGITS = 32.0 * np.finfo(float).eps  # nearly singular P lose five bits more than the last one
_NUDGE = 1e-13
_LOG_2PI = float(np.log(2.0 * np.pi))


class Sums(NamedTuple):
    """What the bound needs of the rows; sums of blocks add."""

    n: int
    A: Array  #: (m, m)
    b: Array  #: (m, t)
    s: float
    delta: float
    ell: float

    def __add__(self, other: Any) -> Sums:  # type: ignore[override]
        return Sums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Solved(NamedTuple):
    """The bound at one kernel, and what predictions need."""

    value: float
    w: Array  #: (m, t)
    L: Array  #: (m, m) factor of k(Z, Z)
    B: Array  #: (m, m) factor of I + A
    size: float  #: nt + s − bᵀw, what a gradient is measured against
    rounding: float  #: of the value: last digits of the terms that cancel in it


@dataclass(frozen=True)
class Rows:
    """How a block of rows is read: targets in units of the fit, without the mean, and their noise."""

    alpha: Array  #: (1,) or (n,)
    level: Array  #: (t,) what is subtracted from y
    unit: Array  #: (t,) what it is then divided by
    mean: Any = None  #: fitted regressor or None

    def targets(self, block: Block) -> Array:
        """Return y (·, t)."""
        y = (np.asarray(block.y).reshape(len(block.X), -1) - self.level) / self.unit
        return y if self.mean is None else y - np.asarray(self.mean.predict(block.X)).reshape(y.shape)

    def noise(self, block: Block) -> Array:
        """Return alpha, (1,) or (·,)."""
        return self.alpha if self.alpha.size == 1 else self.alpha[block.start : block.start + len(block.X)]


@dataclass(frozen=True)
class _OfBlocks:
    """What a pass over the rows needs at every block."""

    kernel: Kernel
    Z: Array
    inverse: Array  #: L⁻¹
    rows: Rows


@dataclass(frozen=True)
class Forward(_OfBlocks):
    """The five sums of one block."""

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is not finite is refused at the end
    def __call__(self, block: Block) -> Sums:
        """Return them."""
        m, t, pairs = len(self.Z), len(self.rows.level), pairs_of(self.kernel, self.Z)
        y, prior = self.rows.targets(block), record_diagonal(self.kernel, block.X, noise=False).k
        noise = self.kernel._diagonal(block.X) - prior + self.rows.noise(block)
        root = 1.0 / np.sqrt(noise)
        A, b, used = np.zeros((m, m)), np.zeros((m, t)), np.empty(len(y))
        y = y * root[:, None]
        for rows in _chunks(len(y), m):
            V = _lower_times(pairs.factor, self.inverse, pairs.values(block.X[rows]))
            V *= root[rows, None]
            used[rows] = np.einsum("ij,ij->i", V, V)
            A += V.T @ V
            b += V.T @ y[rows]
        delta = float(np.sum(prior / noise - used))
        return Sums(len(y), A, b, float(np.sum(y * y)), delta, float(np.log(noise).sum()))


@dataclass(frozen=True)
class Backward(_OfBlocks):
    """The share of one block in the gradient of the bound."""

    G: Array  #: (m, m) ∂F/∂A
    w: Array  #: (m, t) ∂F/∂b

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def __call__(self, block: Block) -> Array:
        """Return it, of shape (p,)."""
        (m, t), pairs = self.w.shape, pairs_of(self.kernel, self.Z)
        y, whole = self.rows.targets(block), record_diagonal(self.kernel, block.X)
        prior = record_diagonal(self.kernel, block.X, noise=False)
        noise = whole.k - prior.k + self.rows.noise(block)
        by_v, by_y, share = 2.0 * self.G @ self.inverse, self.w.T @ self.inverse, 1.0 / noise
        inside, weights = np.empty(len(y)), np.empty((_chunk_rows(m), m))
        for rows in _chunks(len(y), m):
            own = y[rows]
            V = _lower_times(pairs.factor, self.inverse, pairs.values(block.X[rows]).copy())
            T = np.matmul(V, by_v, out=weights[: len(own)])
            T += own @ by_y
            sums = pairs.back(T, share[rows])  # 2vᵀGv + vᵀw y
            inside[rows] = 0.5 * (sums + np.einsum("ij,ij->i", own, V @ self.w - own))
        by_noise = -(inside - 0.5 * t * prior.k) * share**2 - 0.5 * t * share
        return np.asarray(pairs.slopes() + whole.back(by_noise) - prior.back(by_noise + 0.5 * t * share))


def _chunk_rows(m: int) -> int:
    return max(1, _CHUNK // m)


def _chunks(n: int, m: int) -> Iterator[slice]:
    """Yield ranges of rows that a thread works on at a time."""
    step = _chunk_rows(m)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _lower_times(factor: float, inverse: Array, K: Array) -> Array:
    """Return factor K L⁻ᵀ, in the memory of K (c, m)."""
    return np.asarray(dtrmm(factor, inverse, K.T, lower=1, overwrite_b=1).T)


class Bound:
    """−F as a function of θ in a box, for solvers."""

    def __init__(self, kernel: Kernel, data: SparseData, bounds: Array) -> None:
        self.kernel, self.data, self.bounds = kernel, data, bounds

    def evaluate(self, theta: Array) -> Evaluation:
        """Return value, gradient and measure; infinite where a matrix is not positive definite."""
        kernel, data = self.kernel.with_theta(theta), self.data
        try:
            with small_blas(len(data.Z)):
                L, sums = data.sums(kernel)
                solved = solve(L, sums)
                gradient = data.gradient(kernel, sums, solved)
        except np.linalg.LinAlgError:
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        if not (np.isfinite(gradient).all() and np.isfinite(solved.value)):
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        measure = stationarity(theta, gradient, self.bounds, solved.size)
        return Evaluation(-solved.value, -gradient, measure, solved.rounding)

    def value(self, theta: Array) -> float:
        """Return −F alone."""
        kernel = self.kernel.with_theta(theta)
        try:
            found = -solve(*self.data.sums(kernel)).value
        except np.linalg.LinAlgError:
            return np.inf
        return found if np.isfinite(found) else np.inf

    def rounding(self, theta: Array) -> float:
        """Return what rounding leaves of the relative gradient: twice its spread over θ that differ in a last digit."""
        nudges = _NUDGE * np.random.default_rng(0).standard_normal((3, len(theta)))
        slopes = np.array([self.evaluate(theta + nudge).gradient for nudge in nudges])
        size = solve(*self.data.sums(self.kernel.with_theta(theta))).size
        return 2.0 * float(np.ptp(slopes, axis=0).max(initial=0.0)) / size

    def curvature(self, theta: Array) -> Array:
        """Return the Fisher information of an exact process of a few rows, scaled to all."""
        few = self.data.sample.some(np.arange(min(START, len(self.data.sample.y))))
        with small_blas(len(few.y)):
            return len(self.data.y) / len(few.y) * Objective(self.kernel, few, self.bounds).curvature(theta)


@dataclass(frozen=True)
class SparseData:
    """The rows as blocks, the inducing points, and a sample of the rows in memory."""

    share: ClassVar[int] = 8  #: a search on an eighth of the rows comes first: time grows with their number
    blocks: Any
    rows: Rows
    Z: Array
    jitter: float  #: share of the prior's mean variance that is added to the diagonal of k(Z, Z)
    sample: Observations
    n_jobs: int | None = None
    stand_ins: Observations | None = None  #: more rows in memory, of a table that is not

    @property
    def y(self) -> range:
        """One entry a row, for counting."""
        return range(self.blocks.n_rows)

    def some(self, chosen: NDArray[np.int64]) -> SparseData:
        """Return some rows; of a table that is not in memory, those that stand for it."""
        if not self.blocks.in_memory:
            few = self.stand_ins or self.sample
            units = Rows(few.noise, np.zeros_like(self.rows.level), np.ones_like(self.rows.unit))
            return replace(self, blocks=Blocks([Part(few.X, few.y)]), rows=units)
        part = self.blocks.joined()
        alpha = self.rows.alpha if self.rows.alpha.size == 1 else self.rows.alpha[chosen]
        blocks = Blocks([Part(part.X[chosen], part.y[chosen])])
        return replace(self, blocks=blocks, rows=replace(self.rows, alpha=alpha))

    def sums(self, kernel: Kernel) -> tuple[Array, Sums]:
        """Return L and the sums over all rows; raise LinAlgError where k(Z, Z) is not positive definite."""
        P = kernel._between(self.Z, self.Z)
        P.flat[:: len(P) + 1] += self.jitter * float(np.mean(record_diagonal(kernel, self.Z, noise=False).k))
        if not np.isfinite(P).all():
            raise np.linalg.LinAlgError("not finite")
        L = cholesky(P, lower=True)
        through = Forward(kernel, self.Z, _inverse(L), self.rows)
        return L, map_reduce(self.blocks, through, Sums.__add__, n_jobs=self.n_jobs)

    def gradient(self, kernel: Kernel, sums: Sums, solved: Solved) -> Array:
        """Return ∂F/∂θ."""
        G, middle, inverse = _slopes(sums, solved)
        through = Backward(kernel, self.Z, inverse, self.rows, G, solved.w)
        by_P = inverse.T @ middle @ inverse
        rest = record(kernel, self.Z, self.Z.copy()).back(by_P)  # as different points: without noise
        share = np.full(len(self.Z), self.jitter * float(np.trace(by_P)) / len(self.Z))
        rest = rest + record_diagonal(kernel, self.Z, noise=False).back(share)
        return np.asarray(map_reduce(self.blocks, through, np.add, n_jobs=self.n_jobs) + rest)


def _slopes(sums: Sums, solved: Solved) -> tuple[Array, Array, Array]:
    """Return G = ∂F/∂A, L ∂F/∂P Lᵀ = G − ½tA and L⁻¹."""
    t, half = solved.w.shape[1], _inverse(solved.B)
    G = 0.5 * (t * (np.eye(len(half)) - half.T @ half) - solved.w @ solved.w.T)
    return G, G - 0.5 * t * sums.A, _inverse(solved.L)


def solve(L: Array, sums: Sums) -> Solved:
    """Return the bound and its weights; raise LinAlgError where the sums are not finite."""
    m, t = sums.b.shape
    if not np.isfinite(sums.A).all():
        raise np.linalg.LinAlgError("not finite")
    B = cholesky(sums.A + np.eye(m), lower=True)
    c = solve_triangular(B, sums.b, lower=True)
    w = solve_triangular(B, c, lower=True, trans=1)
    fit = sums.s - float(np.sum(c * c))
    log_det = sums.ell + 2.0 * float(np.log(np.diagonal(B)).sum())
    value = -0.5 * (t * (sums.n * _LOG_2PI + log_det + sums.delta) + fit)
    terms = t * (sums.n * _LOG_2PI + abs(log_det) + abs(sums.delta) + float(np.trace(sums.A))) + sums.s
    return Solved(value, w, L, B, sums.n * t + fit, _DIGITS * terms)


def _inverse(L: Array) -> Array:
    return np.asfortranarray(solve_triangular(L, np.eye(len(L)), lower=True))
