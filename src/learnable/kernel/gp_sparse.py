r"""Gaussian processes of many rows: m inducing points Z stand for them, by the variational bound of `gp_bound.py`.

Z are rows, chosen one by one where the variance given those before is largest, and then fixed.

Reference: M. Titsias, Variational learning of inducing variables in sparse Gaussian processes, AISTATS 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ..core.certificate import Certificate
from ..core.errors import DataError, ParameterError
from ..core.run import Run
from ..data.blocks import Block, map_reduce
from ..risk.kernels.base import Kernel
from ..risk.kernels.tape import record_diagonal
from ..solvers.systems.moments import CLOSED_FORM_TOLERANCE
from .gp_bound import START, Bound, Rows, Solved, SparseData, solve
from .gp_likelihood import WORST, Objective, Observations, per_row, refuse_huge, small_blas
from .gp_means import fitted_mean, trend_of
from .gp_pace import Pace, share_of
from .gp_search import climb, log_bounds, warn_at_bounds

Array = NDArray[np.float64]

_SAMPLE = 4096  # rows among which inducing points are chosen
_STAND_INS, _NUMBERS = 2**15, 2**22  # rows, and numbers in them, of a table elsewhere on which a search begins
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
    bounds, n_iter = log_bounds(kernel), 1
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
        value, tolerance = found.measure, model.tol
        if value > tolerance and found.n_iter < model.max_iter and not run.should_stop():  # only rounding ends it so
            tolerance = max(tolerance, min(Bound(kernel, data, bounds).rounding(found.x), WORST))
        kernel, n_iter = kernel.with_theta(np.clip(found.x, *bounds.T)), max(1, found.n_iter)
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
    owner, blocks = type(model).__name__, table.blocks
    n, stride = blocks.n_rows, 1
    while n // stride > _SAMPLE:
        stride *= 2
    finer = stride
    while not table.in_memory and finer > 1 and n // finer < min(_STAND_INS, _NUMBERS // blocks.n_columns):
        finer //= 2
    part = blocks.every(finer)
    alpha = np.asarray(model.alpha, dtype=np.float64).ravel()
    if alpha.size > 1:
        alpha = per_row(owner, model.alpha, n)
    X, y = np.asarray(part.X, dtype=np.float64), np.asarray(part.y, dtype=np.float64).reshape(len(part.X), -1)
    one = y.shape[1] == 1
    level, unit = np.zeros(y.shape[1]), np.ones(y.shape[1])
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
    model.trend_, model.mean_ = trend_of(owner, "zero", X), mean
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
