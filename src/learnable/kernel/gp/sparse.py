r"""Gaussian processes of many rows: m inducing points Z stand for them, by the variational bound of Titsias.

Z are rows, chosen one by one where the variance given those before is largest, and then fixed.

With k(Z, Z) = LLᵀ, vᵢ = L⁻¹k(Z, xᵢ) and the noise λᵢ of row i, everything is in five sums over the rows,

    A = Σ vᵢvᵢᵀ/λᵢ,   b = Σ vᵢyᵢ/λᵢ,   s = Σ yᵢ²/λᵢ,   δ = Σ (k(xᵢ, xᵢ) − ‖vᵢ‖²)/λᵢ,   ℓ = Σ log λᵢ,

and the bound of log p(y), which is log p(y) itself if Z are all rows, is

    F = −½ (n log 2π + ℓ + log|I + A| + s − bᵀ(I + A)⁻¹b + δ).

Its gradient takes a second pass, in which row i has the weights L⁻ᵀ(2Gvᵢ + w yᵢ)/λᵢ, w = (I + A)⁻¹b, G = ∂F/∂A. The
passes run on blocks of rows: in memory, from files, on Dask, with the same bits. O(nm²) operations per pass, O(m²)
memory and a block.

Reference: M. Titsias, Variational learning of inducing variables in sparse Gaussian processes, AISTATS 2009.

Values k(xᵢ, zₖ) lead back to the hyperparameters. A Gaussian kernel, with a variance and with noise besides, is done by
matrix products and two compiled loops: with a = (x − c)/ℓ√2, b = (z − c)/ℓ√2 the values are exp(2⟨a, b⟩ − ‖a‖² − ‖b‖²),
and with M = S∘K

    Σᵢₖ Mᵢₖ(xᵢⱼ − zₖⱼ)²/ℓⱼ² = 2 Σᵢ (aᵢⱼ² Mᵢ1 − 2aᵢⱼ Mᵢbⱼ + Mᵢbⱼ²),

where one product M[1, b, b²] gives all three. Every other kernel goes through its tape (`risk.kernels.tape`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtrmm

from ...core import Array, Certificate, DataError, NDArray, ParameterError, Run
from ...data.blocks import Block, Blocks, Part, map_reduce
from ...risk.kernels.base import Gaussian, Kernel
from ...risk.kernels.composed import Product, Scaled, Sum
from ...risk.kernels.elementary import Constant
from ...risk.kernels.tape import record, record_diagonal
from ...solvers.problem import Evaluation
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE
from ..rows import gauss_tile64
from .likelihood import WORST, Objective, Observations, multiply_rows, per_row, refuse_huge, small_blas, stationarity
from .posterior import fitted_mean, noise_free, trend_of
from .search import Pace, climb, log_bounds, share_of, warn_at_bounds

_SAMPLE = 4096  # rows among which inducing points are chosen
# rows, and numbers in them, of a table elsewhere on which a search begins
_STAND_INS = 2**15
_NUMBERS = 2**22
_JITTER = 1e-10  # share of the prior's variance on the diagonal of P, without which P⁻¹ is rounding


def fit_sparse(model: Any, table: Any, kernel: Kernel, run: Run) -> Certificate:
    """Fit a GaussianProcessRegressor with inducing points."""
    owner = type(model).__name__
    if isinstance(model.mean, str) and model.mean != "zero":
        raise ParameterError(
            f"{owner}: mean={model.mean!r} has coefficients to integrate out, which inducing points do not; pass a "
            "regressor, such as LinearRegression(), or normalize_y=True."
        )
    data, level = _prepared(model, table, kernel)
    bounds = log_bounds(kernel)
    n_iter = 1
    learns = model.optimizer is not None and len(kernel.theta) > 0
    if callable(model.optimizer):
        raise ParameterError(f"{owner}: optimizer must be 'fmin_l_bfgs_b' or None with inducing points.")
    if learns:
        exact = data.sample.some(np.arange(min(START, len(data.sample.y))))
        rough = climb(
            lambda some: Objective(kernel, some, bounds), exact, kernel.theta, bounds,
            tol=1e-3, max_iter=model.max_iter, progress=run.progress, stop=run.should_stop,
        )  # fmt: skip
        kernel = kernel.with_theta(np.clip(rough.x, *bounds.T)) if np.isfinite(rough.value) else kernel
    Z = _chosen_points(owner, model.inducing, data.sample.X, kernel)
    data = replace(data, Z=Z, jitter=_JITTER)
    if learns:
        pace = Pace(run, len(data.y), share_of(model, run, 1), power=1)
        found = climb(
            lambda some: pace.timed(Bound(kernel, some, bounds)), data, kernel.theta, bounds,
            tol=model.tol, max_iter=model.max_iter, progress=run.progress, stop=pace,
        )  # fmt: skip
        value = found.measure
        tolerance = model.tol
        if value > tolerance and found.n_iter < model.max_iter and not run.should_stop():  # only rounding ends it so
            tolerance = max(tolerance, min(Bound(kernel, data, bounds).rounding(found.x), WORST))
        kernel = kernel.with_theta(np.clip(found.x, *bounds.T))
        n_iter = max(1, found.n_iter)
        warn_at_bounds(kernel)
    try:
        with small_blas(len(Z)):
            L, sums = data.sums(kernel)
            solved = solve(L, sums)
    except np.linalg.LinAlgError as error:
        raise DataError(f"{owner}: {kernel.formula} is not positive definite at the inducing points.") from error
    _store(model, kernel, data, solved, one=level)
    model.n_iter_ = n_iter
    if learns:
        return Certificate("stationarity", value, tolerance, n_iter=n_iter)
    size = (1.0 + np.abs(sums.A).max()) * np.abs(solved.w).sum(axis=0) + np.abs(sums.b).max(axis=0)
    left = np.abs(solved.w + sums.A @ solved.w - sums.b).max(axis=0)
    residual = left / np.where(size > 0.0, size, 1.0)
    return Certificate("closed-form", float(residual.max()), CLOSED_FORM_TOLERANCE)


def _prepared(model: Any, table: Any, kernel: Kernel) -> tuple[SparseData, bool]:
    """Return the rows with their units, a sample of them, and whether y is a vector."""
    owner = type(model).__name__
    blocks = table.blocks
    n = blocks.n_rows
    stride = 1
    while n // stride > _SAMPLE:
        stride *= 2
    finer = stride
    while not table.in_memory and finer > 1 and n // finer < min(_STAND_INS, _NUMBERS // blocks.n_columns):
        finer //= 2
    part = blocks.every(finer)
    alpha = np.asarray(model.alpha, dtype=np.float64).ravel()
    if alpha.size > 1:
        alpha = per_row(owner, model.alpha, n)
    X = np.asarray(part.X, dtype=np.float64)
    y = np.asarray(part.y, dtype=np.float64).reshape(len(part.X), -1)
    one = y.shape[1] == 1
    level = np.zeros(y.shape[1])
    unit = np.ones(y.shape[1])
    if model.normalize_y:
        size = map_reduce(blocks, _largest, np.maximum, n_jobs=model.n_jobs)
        size = np.where(size > 0.0, size, 1.0)
        level = map_reduce(blocks, _Powers(size), np.add, n_jobs=model.n_jobs) / n
        unit = np.sqrt(map_reduce(blocks, _Powers(size, level), np.add, n_jobs=model.n_jobs) / n)
        unit = np.where(unit > 1e-14 * np.abs(level), size * unit, 1.0)
        level = size * level
    model.y_mean_, model.y_std_ = (level.reshape(()), unit.reshape(())) if one else (level, unit)
    y = (y - level) / unit
    refuse_huge(
        owner,
        X=table.X if table.in_memory else X,
        y=np.asarray(table.y).reshape(n, -1) / unit if table.in_memory else y,
    )
    if not isinstance(model.mean, str) and not table.in_memory:
        raise ParameterError(f"{owner}: a mean that is a regressor needs the rows in memory; use mean='zero'.")
    whole = y if stride == 1 or not table.in_memory else (np.asarray(table.y).reshape(n, -1) - level) / unit
    mean = fitted_mean(model.mean, table.X, whole) if table.in_memory else None
    model.trend_ = trend_of(owner, "zero", X)
    model.mean_ = mean
    y = y if mean is None else y - np.asarray(mean.predict(X)).reshape(y.shape)
    if not (kernel.diagonal(X) - record_diagonal(kernel, X, noise=False).k + alpha.min() > 0.0).all():
        raise ParameterError(f"{owner}: inducing points need noise; give the kernel a White part, or alpha > 0.")
    own = np.broadcast_to(alpha if alpha.size == 1 else alpha[::finer], (len(X),))
    noise = np.maximum(own, 1e-10 * float(np.mean(kernel.diagonal(X))))  # an exact process of few rows needs some
    every = Observations(X, y, noise, np.zeros((len(X), 0)))
    few = np.arange(0, len(X), stride // finer)
    sample = every.some(few[np.random.default_rng(0).permutation(len(few))])
    stand_ins = None if table.in_memory else replace(every, noise=np.array(own))
    rows = Rows(alpha, level, unit, mean)
    return SparseData(blocks, rows, X[:0], 0.0, sample, model.n_jobs, stand_ins), one


def _chosen_points(owner: str, inducing: Any, X: Array, kernel: Kernel) -> Array:
    """Return the points given, or rows where the variance given those before is largest (a pivoted Cholesky factor)."""
    if np.ndim(inducing) > 0:
        Z = np.array(inducing, dtype=np.float64, order="C")
        if Z.ndim != 2 or Z.shape[1] != X.shape[1] or not np.isfinite(Z).all():
            raise ParameterError(
                f"{owner}: inducing points must be a finite matrix with {X.shape[1]} columns; got {Z.shape}."
            )
        return Z
    left = record_diagonal(kernel, X, noise=False).k.copy()
    floor = 1e-12 * float(left.max())
    chosen = []
    factor = np.zeros((min(int(inducing), len(X)), len(X)))
    for j in range(len(factor)):
        pivot = int(np.argmax(left))
        if left[pivot] <= floor:
            break  # the rest is told by the points chosen
        row = kernel._between(X[pivot : pivot + 1], X)[0] - factor[:j, pivot] @ factor[:j]
        factor[j] = row / np.sqrt(left[pivot])
        left = np.maximum(left - factor[j] ** 2, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    if not chosen:
        raise DataError(
            f"{owner}: the kernel {kernel.formula} has no variance without its noise; nothing can be induced."
        )
    return np.ascontiguousarray(X[chosen])


def _store(model: Any, kernel: Kernel, data: SparseData, solved: Solved, *, one: bool) -> None:
    model.kernel_ = kernel
    model.inducing_points_ = data.Z
    model.jitter_ = data.jitter * float(np.mean(record_diagonal(kernel, data.Z, noise=False).k))
    weights = solve_triangular(solved.L, solved.w, lower=True, trans=1)
    model.alpha_ = np.ascontiguousarray(weights[:, 0] if one else weights)
    model.beta_ = np.zeros(0 if one else (0, solved.w.shape[1]))
    model.L_ = solved.L
    model.B_ = solved.B
    model.W_ = np.zeros((len(data.Z), 0))
    model.log_marginal_likelihood_value_ = solved.value


def _largest(block: Block) -> Array:
    return np.asarray(np.abs(_columns(block)).max(axis=0, initial=0.0))


def _columns(block: Block) -> Array:
    return np.asarray(block.y).reshape(len(block.X), -1)


@dataclass(frozen=True)
class _Powers:
    """Sums of the targets in units of their largest, or of squares of their distances from a level."""

    size: Array
    level: Array | None = None

    def __call__(self, block: Block) -> Array:
        y = _columns(block) / self.size
        return np.asarray(y.sum(axis=0) if self.level is None else np.square(y - self.level).sum(axis=0))


START = 512  #: rows of the exact process whose hyperparameters are the start
_CHUNK = 2**15  # kernel values that a thread works on at a time: four arrays of 256 kB stay in the cache
_DIGITS = 32.0 * np.finfo(float).eps  # nearly singular P lose five bits more than the last one
_NUDGE = 1e-13  # relative change of the parameters by which the rounding of the bound is felt
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
        m = len(self.Z)
        t = len(self.rows.level)
        pairs = pairs_of(self.kernel, self.Z)
        y = self.rows.targets(block)
        prior = record_diagonal(self.kernel, block.X, noise=False).k
        noise = self.kernel._diagonal(block.X) - prior + self.rows.noise(block)
        root = 1.0 / np.sqrt(noise)
        A = np.zeros((m, m))
        b = np.zeros((m, t))
        used = np.empty(len(y))
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
        m, t = self.w.shape
        pairs = pairs_of(self.kernel, self.Z)
        y = self.rows.targets(block)
        whole = record_diagonal(self.kernel, block.X)
        prior = record_diagonal(self.kernel, block.X, noise=False)
        noise = whole.k - prior.k + self.rows.noise(block)
        by_v = 2.0 * self.G @ self.inverse
        by_y = self.w.T @ self.inverse
        share = 1.0 / noise
        inside = np.empty(len(y))
        weights = np.empty((_chunk_rows(m), m))
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
        self.kernel = kernel
        self.data = data
        self.bounds = bounds

    def evaluate(self, theta: Array) -> Evaluation:
        """Return value, gradient and measure; infinite where a matrix is not positive definite."""
        kernel = self.kernel.with_theta(theta)
        data = self.data
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
        """One entry per row, for counting."""
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
    t = solved.w.shape[1]
    half = _inverse(solved.B)
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


class Pairs(Protocol):
    """Kernel values of some rows with the inducing points, up to a factor, and the way back."""

    factor: float  #: k = factor × values

    def values(self, X: Array) -> Array:
        """Return the values of some rows, (c, m); they and the rows are remembered for `back`."""

    def back(self, T: Array, share: Array) -> Array:
        """Return Σₖ Tᵢₖ kᵢₖ of each row, and remember Σᵢₖ shareᵢ Tᵢₖ ∂kᵢₖ/∂θ; T may be overwritten."""

    def slopes(self) -> Array:
        """Return the sum of all that was remembered, (p,)."""


def pairs_of(kernel: Kernel, Z: Array) -> Pairs:
    """Return the fastest way to the values of a kernel; white parts count nothing, because points differ."""
    inside = noise_free(kernel)
    scale = inside.scale if isinstance(inside, Scaled) else 1.0
    inside = inside.inner if isinstance(inside, Scaled) else inside
    return _GaussianPairs(kernel, inside, scale, Z) if isinstance(inside, Gaussian) else _TapedPairs(kernel, Z)


class _TapedPairs:
    """Any kernel."""

    factor = 1.0

    def __init__(self, kernel: Kernel, Z: Array) -> None:
        self.kernel = kernel
        self.Z = Z
        self.total = np.zeros(len(kernel.theta))

    def values(self, X: Array) -> Array:
        self.tape = record(self.kernel, X, self.Z)
        return self.tape.K

    def back(self, T: Array, share: Array) -> Array:
        sums = np.einsum("ij,ij->i", T, self.tape.K)
        T *= share[:, None]
        self.total += self.tape.back(T)
        return sums

    def slopes(self) -> Array:
        return self.total


class _GaussianPairs:
    """A Gaussian kernel times a number, besides noise."""

    def __init__(self, kernel: Kernel, gaussian: Gaussian, scale: float, Z: Array) -> None:
        self.kernel = kernel
        self.factor = scale
        self.per_column = np.ndim(gaussian.length_scale) > 0
        self.unit = np.sqrt(2.0) * gaussian.length_scale
        self.centre = Z.mean(axis=0)
        self.B = np.ascontiguousarray((Z - self.centre) / self.unit)
        self.squares = np.einsum("ij,ij->i", self.B, self.B)
        self.right = np.column_stack([np.ones(len(Z)), self.B, self.B**2])
        self.by_scale = 0.0
        self.by_length = np.zeros(Z.shape[1])
        self._work: Any = None

    def values(self, X: Array) -> Array:
        self.A = (X - self.centre) / self.unit
        c = len(X)
        if self._work is None or len(self._work.values) < c:
            shape = c, len(self.B)
            self._work = _Work(np.empty(shape), np.empty(shape), np.arange(c))
        dots, out, slots = (array[:c] for array in self._work)
        np.matmul(self.A, self.B.T, out=dots)
        gauss_tile64(dots, np.einsum("ij,ij->i", self.A, self.A), self.squares, out, slots, 0)
        return np.asarray(out)

    def back(self, T: Array, share: Array) -> Array:
        A = self.A
        c, d = self.A.shape
        M = self._work.dots[:c]
        sums = np.empty(c)
        multiply_rows(T, self._work.values[:c], self.factor * share, M, sums)
        right = M @ self.right
        self.by_scale += float(right[:, 0].sum())
        self.by_length += right[:, 0] @ (A * A) - 2.0 * np.einsum("ij,ij->j", A, right[:, 1 : d + 1])
        self.by_length += right[:, d + 1 :].sum(axis=0)
        sums *= self.factor
        return sums

    def slopes(self) -> Array:
        by_length = 2.0 * self.by_length
        return _in_order(self.kernel, self.by_scale, by_length if self.per_column else by_length.sum(keepdims=True))


class _Work(NamedTuple):
    dots: Array  #: (c, m)
    values: Array  #: (c, m)
    slots: NDArray[np.int64]  #: (c,)


def _in_order(kernel: Kernel, by_scale: float, by_length: Array) -> Array:
    """Return the slopes of a variance and of length scales where the kernel's own θ has them, else zeros."""
    if noise_free(kernel) is None:
        return np.zeros(len(kernel.theta))
    if isinstance(kernel, (Sum, Product)):
        parts = [_in_order(part, by_scale, by_length) for part in (kernel.left, kernel.right)]
        return np.concatenate(parts)
    if isinstance(kernel, Scaled):
        own = [by_scale] if kernel._free() else []
        return np.r_[own, _in_order(kernel.inner, by_scale, by_length)]
    if isinstance(kernel, Gaussian):
        return by_length if kernel._free() else np.zeros(0)
    return np.array([by_scale] if isinstance(kernel, Constant) and kernel._free() else [])
