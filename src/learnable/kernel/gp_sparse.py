r"""Gaussian processes of many rows: m inducing points Z stand for them, by the variational bound of Titsias.

With k(Z, Z) = LLᵀ, vᵢ = L⁻¹k(Z, xᵢ) and the noise λᵢ of row i, everything is in five sums over the rows,

    A = Σ vᵢvᵢᵀ/λᵢ,   b = Σ vᵢyᵢ/λᵢ,   s = Σ yᵢ²/λᵢ,   τ = Σ k(xᵢ, xᵢ)/λᵢ,   ℓ = Σ log λᵢ,

and the bound of log p(y), which is log p(y) itself if Z are all rows, is

    F = −½ (n log 2π + ℓ + log|I + A| + s − bᵀ(I + A)⁻¹b + τ − tr A).

Its gradient takes a second pass, in which row i has the weights L⁻ᵀ(2Gvᵢ + w yᵢ)/λᵢ, w = (I + A)⁻¹b, G = ∂F/∂A. The
passes run on blocks of rows: in memory, from files, on Dask, with the same bits. O(nm²) operations a pass,
O(m²) memory and a block.

Z are rows, chosen one by one where the variance given those before is largest, and then fixed.

Reference: M. Titsias, Variational learning of inducing variables in sparse Gaussian processes, AISTATS 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from ..core.certificate import Certificate
from ..core.errors import DataError, ParameterError
from ..core.run import Run
from ..data.blocks import Block, Blocks, Part, map_reduce
from ..risk.kernels.base import Kernel
from ..risk.kernels.tape import record, record_diagonal
from ..solvers.problem import Evaluation
from ..solvers.residuals import CLOSED_FORM_TOLERANCE
from .gp_likelihood import Objective, Observations, per_row, refuse_huge, stationarity
from .gp_means import fitted_mean, trend_of
from .gp_posterior import lower_times
from .gp_search import climb, log_bounds

Array = NDArray[np.float64]

_CHUNK = 2**18  # kernel values that a thread works on at a time
_SAMPLE = 4096  # rows among which inducing points are chosen
_START = 512  # rows of the exact process whose hyperparameters are the start
_JITTER = 1e-10  # share of the prior's variance on the diagonal of P, without which P⁻¹ is rounding
_LOG_2PI = float(np.log(2.0 * np.pi))


class Sums(NamedTuple):
    """What the bound needs of the rows; sums of blocks add."""

    n: int
    A: Array  #: (m, m)
    b: Array  #: (m, t)
    s: float
    tau: float
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


@dataclass(frozen=True)
class Rows:
    """How a block of rows is read: targets in units of the fit, without the mean, and their noise."""

    alpha: Array  #: (1,) or (n,)
    level: Array  #: (t,) what is subtracted from y
    unit: Array  #: (t,) what it is then divided by
    mean: Any = None  #: fitted regressor or None

    def chunks(self, block: Block, m: int) -> Any:
        """Yield X, y (·, t) and alpha of some rows at a time."""
        step = max(1, _CHUNK // m)
        for start in range(0, len(block.X), step):
            part = slice(start, start + step)
            X, y = block.X[part], block.y[part]  # type: ignore[index]
            y = (y.reshape(len(X), -1) - self.level) / self.unit
            if self.mean is not None:
                y = y - np.asarray(self.mean.predict(X)).reshape(y.shape)
            own = self.alpha if self.alpha.size == 1 else self.alpha[block.start + start : block.start + start + len(X)]
            yield X, y, own


@dataclass(frozen=True)
class Forward:
    """The five sums of one block."""

    kernel: Kernel
    Z: Array
    inverse: Array  #: L⁻¹
    rows: Rows

    def __call__(self, block: Block) -> Sums:
        """Return them."""
        total: Any = None
        for X, y, alpha in self.rows.chunks(block, len(self.Z)):
            V = lower_times(self.inverse, self.kernel._between(X, self.Z))
            prior = record_diagonal(self.kernel, X, noise=False).k
            noise = self.kernel._diagonal(X) - prior + alpha
            weighted = V / noise[:, None]
            found = Sums(
                len(X), weighted.T @ V, weighted.T @ y, float(np.sum(y * y / noise[:, None])),
                float(np.sum(prior / noise)), float(np.log(noise).sum()),
            )  # fmt: skip
            total = found if total is None else total + found
        return total  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Backward:
    """The share of one block in the gradient of the bound."""

    kernel: Kernel
    Z: Array
    inverse: Array  #: L⁻¹
    rows: Rows
    G: Array  #: (m, m) ∂F/∂A
    w: Array  #: (m, t) ∂F/∂b

    def __call__(self, block: Block) -> Array:
        """Return it, of shape (p,)."""
        total, t = np.zeros(len(self.kernel.theta)), self.w.shape[1]
        for X, y, alpha in self.rows.chunks(block, len(self.Z)):
            K, back, _ = record(self.kernel, X, self.Z)
            whole, prior = record_diagonal(self.kernel, X), record_diagonal(self.kernel, X, noise=False)
            noise = whole.k - prior.k + alpha
            V = lower_times(self.inverse, K)
            VG = V @ self.G
            total += back(((2.0 * VG + y @ self.w.T) / noise[:, None]) @ self.inverse)
            inside = np.einsum("ij,ij->i", VG, V) + np.einsum("ij,ij->i", y, V @ self.w - 0.5 * y) - 0.5 * t * prior.k
            by_noise = -inside / noise**2 - 0.5 * t / noise
            total += whole.back(by_noise) - prior.back(by_noise + 0.5 * t / noise)
        return total


class Bound:
    """−F as a function of θ in a box, for solvers."""

    def __init__(self, kernel: Kernel, data: SparseData, bounds: Array) -> None:
        self.kernel, self.data, self.bounds = kernel, data, bounds

    def evaluate(self, theta: Array) -> Evaluation:
        """Return value, gradient and measure; infinite where a matrix is not positive definite."""
        kernel, data = self.kernel.with_theta(theta), self.data
        try:
            L, sums = data.sums(kernel)
            solved = solve(L, sums)
            gradient = data.gradient(kernel, sums, solved)
        except np.linalg.LinAlgError:
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        if not (np.isfinite(gradient).all() and np.isfinite(solved.value)):
            return Evaluation(np.inf, np.zeros_like(theta), np.inf)
        return Evaluation(-solved.value, -gradient, stationarity(theta, gradient, self.bounds, solved.size))

    def value(self, theta: Array) -> float:
        """Return −F alone."""
        kernel = self.kernel.with_theta(theta)
        try:
            found = -solve(*self.data.sums(kernel)).value
        except np.linalg.LinAlgError:
            return np.inf
        return found if np.isfinite(found) else np.inf

    def curvature(self, theta: Array) -> Array:
        """Return the Fisher information of an exact process of a few rows, scaled to all."""
        few = self.data.sample.some(np.arange(min(_START, len(self.data.sample.y))))
        return len(self.data.y) / len(few.y) * Objective(self.kernel, few, self.bounds).curvature(theta)


@dataclass(frozen=True)
class SparseData:
    """The rows as blocks, the inducing points, and a sample of the rows in memory."""

    blocks: Any
    rows: Rows
    Z: Array
    jitter: float  #: share of the prior's mean variance that is added to the diagonal of k(Z, Z)
    sample: Observations
    n_jobs: int | None = None

    @property
    def y(self) -> range:
        """One entry a row, for counting."""
        return range(self.blocks.n_rows)

    def some(self, chosen: NDArray[np.int64]) -> SparseData:
        """Return some rows; of a table that is not in memory, the sample."""
        if not self.blocks.in_memory:
            alpha = self.rows.alpha
            units = Rows(alpha, np.zeros_like(self.rows.level), np.ones_like(self.rows.unit))
            return replace(self, blocks=Blocks([Part(self.sample.X, self.sample.y)]), rows=units)
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
        t, one = solved.w.shape[1], np.eye(len(self.Z))
        inverse, half = _inverse(solved.L), _inverse(solved.B)
        G = 0.5 * (t * (one - half.T @ half) - solved.w @ solved.w.T)
        through = Backward(kernel, self.Z, inverse, self.rows, G, solved.w)
        by_P = inverse.T @ (G - 0.5 * t * sums.A) @ inverse
        rest = record(kernel, self.Z, self.Z.copy()).back(by_P)  # as different points: without noise
        share = np.full(len(self.Z), self.jitter * float(np.trace(by_P)) / len(self.Z))
        rest = rest + record_diagonal(kernel, self.Z, noise=False).back(share)
        return np.asarray(map_reduce(self.blocks, through, np.add, n_jobs=self.n_jobs) + rest)


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
    value = -0.5 * (t * (sums.n * _LOG_2PI + log_det + sums.tau - float(np.trace(sums.A))) + fit)
    return Solved(value, w, L, B, sums.n * t + fit)


def _inverse(L: Array) -> Array:
    return np.ascontiguousarray(solve_triangular(L, np.eye(len(L)), lower=True))


def fit_sparse(model: Any, table: Any, kernel: Kernel, run: Run) -> Certificate:
    """Fit a GaussianProcessRegressor with inducing points."""
    owner = type(model).__name__
    if isinstance(model.mean, str) and model.mean != "zero":
        raise ParameterError(
            f"{owner}: mean={model.mean!r} has coefficients to integrate out, which inducing points do not; pass a "
            "regressor, such as LinearRegression(), or normalize_y=True."
        )
    data, level = _prepared(model, table, kernel)
    bounds, n_iter = log_bounds(model.kernel, kernel), 1
    learns = model.optimizer is not None and len(kernel.theta) > 0
    if callable(model.optimizer):
        raise ParameterError(f"{owner}: optimizer must be 'fmin_l_bfgs_b' or None with inducing points.")
    if learns:
        exact = data.sample.some(np.arange(min(_START, len(data.sample.y))))
        rough = climb(
            lambda some: Objective(kernel, some, bounds), exact, kernel.theta, bounds,
            tol=1e-3, max_iter=model.max_iter, progress=run.progress,
        )  # fmt: skip
        kernel = kernel.with_theta(np.clip(rough.x, *bounds.T)) if np.isfinite(rough.value) else kernel
    Z = _chosen_points(owner, model.inducing, data.sample.X, kernel)
    data = replace(data, Z=Z, jitter=_JITTER)
    if learns:
        found = climb(
            lambda some: Bound(kernel, some, bounds), data, kernel.theta, bounds,
            tol=model.tol, max_iter=model.max_iter, progress=run.progress,
        )  # fmt: skip
        kernel, n_iter = kernel.with_theta(np.clip(found.x, *bounds.T)), max(1, found.n_iter)
        value = found.measure
    try:
        L, sums = data.sums(kernel)
        solved = solve(L, sums)
    except np.linalg.LinAlgError as error:
        raise DataError(f"{owner}: {kernel.formula} is not positive definite at the inducing points.") from error
    _store(model, kernel, data, solved, one=level)
    model.n_iter_ = n_iter
    if learns:
        return Certificate("stationarity", value, model.tol, n_iter=n_iter)
    size = (1.0 + np.abs(sums.A).max()) * np.abs(solved.w).sum(axis=0) + np.abs(sums.b).max(axis=0)
    left = np.abs(solved.w + sums.A @ solved.w - sums.b).max(axis=0)
    residual = left / np.where(size > 0.0, size, 1.0)
    return Certificate("closed-form", float(residual.max()), CLOSED_FORM_TOLERANCE)


def _prepared(model: Any, table: Any, kernel: Kernel) -> tuple[SparseData, bool]:
    """Return the rows with their units, a sample of them, and whether y is a vector."""
    owner, blocks = type(model).__name__, table.blocks
    n, stride = blocks.n_rows, 1
    if table.in_memory:
        y = np.asarray(table.y).reshape(n, -1)
        refuse_huge(owner, X=table.X, y=y)
    while n // stride > _SAMPLE:
        stride *= 2
    part = blocks.every(stride)
    alpha = np.asarray(model.alpha, dtype=np.float64).ravel()
    if alpha.size > 1:
        alpha = per_row(owner, model.alpha, n)
    X, y = np.asarray(part.X, dtype=np.float64), np.asarray(part.y, dtype=np.float64).reshape(len(part.X), -1)
    one = np.ndim(part.y) == 1
    level, unit = np.zeros(y.shape[1]), np.ones(y.shape[1])
    if model.normalize_y:
        count, total = map_reduce(blocks, _totals, _merge, n_jobs=model.n_jobs)
        level = total / count
        square = map_reduce(blocks, _Squares(level), np.add, n_jobs=model.n_jobs)
        unit = np.sqrt(square / count)
        unit = np.where(unit > 1e-14 * np.abs(level), unit, 1.0)
    model.y_mean_, model.y_std_ = (level.reshape(()), unit.reshape(())) if one else (level, unit)
    y = (y - level) / unit
    if not isinstance(model.mean, str) and not table.in_memory:
        raise ParameterError(f"{owner}: a mean that is a regressor needs the rows in memory; use mean='zero'.")
    whole = y if stride == 1 or not table.in_memory else (np.asarray(table.y).reshape(n, -1) - level) / unit
    mean = fitted_mean(model.mean, table.X, whole) if table.in_memory else None
    model.trend_, model.mean_ = trend_of(owner, "zero", X), mean
    y = y if mean is None else y - np.asarray(mean.predict(X)).reshape(y.shape)
    order = np.random.default_rng(0).permutation(len(X))
    noise = np.broadcast_to(alpha if alpha.size == 1 else alpha[::stride], (len(X),))
    sample = Observations(X, y, np.array(noise), np.zeros((len(X), 0))).some(order)
    sample = replace(sample, noise=np.maximum(sample.noise, 1e-10 * float(np.mean(kernel.diagonal(X)))))
    return SparseData(blocks, Rows(alpha, level, unit, mean), X[:0], 0.0, sample, model.n_jobs), one


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
    floor, chosen = 1e-12 * float(left.max()), []
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
    model.kernel_, model.inducing_points_ = kernel, data.Z
    model.jitter_ = data.jitter * float(np.mean(record_diagonal(kernel, data.Z, noise=False).k))
    weights = solve_triangular(solved.L, solved.w, lower=True, trans=1)
    model.alpha_ = np.ascontiguousarray(weights[:, 0] if one else weights)
    model.beta_ = np.zeros(0 if one else (0, solved.w.shape[1]))
    model.L_, model.B_, model.W_ = solved.L, solved.B, np.zeros((len(data.Z), 0))
    model.log_marginal_likelihood_value_ = solved.value


def _totals(block: Block) -> tuple[int, Array]:
    y = np.asarray(block.y).reshape(len(block.X), -1)
    return len(y), y.sum(axis=0)


def _merge(a: tuple[int, Array], b: tuple[int, Array]) -> tuple[int, Array]:
    return a[0] + b[0], a[1] + b[1]


@dataclass(frozen=True)
class _Squares:
    level: Array

    def __call__(self, block: Block) -> Array:
        return np.asarray(np.square(np.asarray(block.y).reshape(len(block.X), -1) - self.level).sum(axis=0))
