r"""Linear models by gradient descent (`solver="gd"`) and by mini-batches (`solver="sgd"`).

Both work in coordinates u = w/s in which every diagonal entry of the Hessian is (at most) one: gradient descent needs a
number of steps in proportion to the condition number, and this is what a change of units can do about it.

- `gd` goes along the negative gradient as far as a backtracking line search allows: two or three sweeps over the rows a
  step.
- `sgd` goes through all rows in random mini-batches with steps η₀, then η₀/epoch, and averages the second half.
  η₀ = 1/(2ℒ) for the expected smoothness ℒ = L + (L_max − L)/b of a batch of b rows. An epoch costs a sweep, and one
  more for the certificate.

Neither is the fastest way to the optimum; the certificate says how far they came.

References: L. Bottou, F. Curtis and J. Nocedal, SIAM Review 60 (2018); R. Gower et al., SGD: general analysis and
improved rates, ICML 2019.

Kernels of stochastic gradient descent on linear models: one epoch of mini-batches in one call.

A row's scores are z = b + (x − centre)ᵀw, one per target or class. θ holds (b, w) of each, (k, 1 + d). Batch t moves

    θ ← θ − ηₜ s² ∘ ((n/B) c Σ sᵢ rᵢ ⊗ (1, xᵢ − centre) + ρ (0, w)),        r = ∂ℓ/∂z,

which is a plain gradient step of length ηₜ in the coordinates u = θ/s.
"""

from __future__ import annotations

from math import exp
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax

from ..core import Array, DataError, NDArray, Progress, one_thread_blas
from ..core.jit import kernel
from ..data.blocks import Block, Blocks, unsigned
from ..risk.classes import ClassRisk
from ..solvers.lab.first_order import Batches, GradientDescent, descend, generator_of
from ..solvers.lab.objective import Objective, Recorder, largest_eigenvalue
from ..solvers.lab.steps import Backtracking, Constant, InverseDecay
from ..solvers.problem import Evaluation, Moment, Solution
from ..solvers.systems.moments import Residuals, block_residuals, residual_sums
from ..solvers.systems.normal_equations import column_sums, normal_product, optimality
from ..solvers.systems.orthogonal import LinearFit

Index = NDArray[np.uint32] | NDArray[np.uint64]
Order = NDArray[np.int64]

# Losses that the kernel knows.
SQUARES = 0
LOGISTIC = 1
SOFTMAX = 2


@kernel
def slopes_of(kind: int, target: Array, z: Array) -> None:
    """IN/OUT z (k,): scores become ∂ℓ/∂z. IN target: k numbers, 0 or 1, or the number of the class."""
    if kind == SQUARES:
        for c in range(z.size):
            z[c] -= target[c]
    elif kind == LOGISTIC:
        z[0] = 1.0 / (1.0 + exp(-z[0])) - target[0]
    else:
        largest = z.max()
        total = 0.0
        for c in range(z.size):
            z[c] = exp(z[c] - largest)
            total += z[c]
        for c in range(z.size):
            z[c] = z[c] / total - (1.0 if c == target[0] else 0.0)


@kernel
def descend_theta(rate: float, cost: float, penalty: float, square: Array, slope: Array, theta: Array) -> None:
    """IN/OUT theta (k, 1 + d): one step. IN/OUT slope: used up, zero again."""
    k, width = theta.shape
    for c in range(k):
        row = theta[c]
        slopes = slope[c]
        scale = square[c]
        row[0] -= rate * scale[0] * (cost * slopes[0])
        slopes[0] = 0.0
        for j in range(1, width):
            row[j] -= rate * scale[j] * (cost * slopes[j] + penalty * row[j])
            slopes[j] = 0.0


@kernel
def epoch_dense(
    X: Array, centre: Array, target: Array, weight: Array, batches: Order, rates: Array, form: tuple[int, float, float],
    square: Array, theta: Array, total: Array,
) -> None:  # fmt: skip
    """One step a batch, (m, B) row numbers. IN/OUT theta (k, 1 + d). OUT total += Σ θ before each step."""
    k = theta.shape[0]
    d = X.shape[1]
    kind, cost, penalty = form
    slope = np.zeros_like(theta)
    z = np.empty(k)
    for t in range(batches.shape[0]):
        total += theta
        for i in batches[t]:
            row = X[i]
            for c in range(k):
                w = theta[c, 1:]
                s = theta[c, 0]
                for j in range(d):
                    s += (row[j] - centre[j]) * w[j]
                z[c] = s
            slopes_of(kind, target[i], z)
            for c in range(k):
                r = weight[i] * z[c]
                out = slope[c, 1:]
                slope[c, 0] += r
                for j in range(d):
                    out[j] += r * (row[j] - centre[j])
        descend_theta(rates[t], cost, penalty, square, slope, theta)


@kernel
def epoch_sparse(
    data: Array, indices: Index, indptr: Index, centre: Array, target: Array, weight: Array, batches: Order,
    rates: Array, form: tuple[int, float, float], square: Array, theta: Array, total: Array,
) -> None:  # fmt: skip
    """Do the same over CSR rows, centred implicitly; a batch costs its entries and one pass over θ."""
    k = theta.shape[0]
    d = centre.size
    kind, cost, penalty = form
    slope = np.zeros_like(theta)
    z = np.empty(k)
    level = np.empty(k)
    for t in range(batches.shape[0]):
        for c in range(k):
            level[c] = theta[c, 0]
            for j in range(d):
                total[c, 1 + j] += theta[c, 1 + j]
                level[c] -= centre[j] * theta[c, 1 + j]
            total[c, 0] += theta[c, 0]
        for i in batches[t]:
            for c in range(k):
                w = theta[c, 1:]
                s = level[c]
                for e in range(indptr[i], indptr[i + 1]):
                    s += data[e] * w[indices[e]]
                z[c] = s
            slopes_of(kind, target[i], z)
            for c in range(k):
                r = weight[i] * z[c]
                out = slope[c, 1:]
                slope[c, 0] += r
                for e in range(indptr[i], indptr[i + 1]):
                    out[indices[e]] += r * data[e]
        for c in range(k):
            for j in range(d):
                slope[c, 1 + j] -= slope[c, 0] * centre[j]
        descend_theta(rates[t], cost, penalty, square, slope, theta)


SOLVERS = ("gd", "sgd")
BATCH_SIZE = 32  # rows of a batch, the usual default
_MOST_STEPS = 10_000  # steps without a `max_iter`
_MOST_EPOCHS = 100  # passes over the rows without a `max_iter`
_CHUNK = 2**14  # rows that are copied at a time
_CHUNK_ENTRIES = 2**24  # of X between two looks for Ctrl-C


class _Scaled(Protocol):
    """A sum over rows in scaled coordinates."""

    n_rows: int

    def evaluate(self, u: Array) -> Evaluation:
        """Return value, gradient and measure over all rows."""

    def gradient(self, u: Array, rows: Any) -> Array:
        """Return an unbiased estimate of the gradient from some rows."""

    def smoothness(self) -> tuple[float, float]:
        """Return L of the whole function and L_max of the worst single row, both on the scale of the whole."""

    def epoch(self, u: Array, batches: NDArray[np.int64], rates: Array) -> tuple[Array, Array]:
        """Return u after one gradient step a batch, (m, b) row numbers, and the mean of the points before each step."""


class LeastSquares:
    r"""½Σ wᵢrᵢ² + ½α‖β‖² about the means, as a function of u = β/s, s = (Σ w(x − x̄)² + α)^(−½); k targets."""

    def __init__(self, blocks: Blocks, alpha: float, *, intercept: bool, tol: float, n_jobs: int | None) -> None:
        self.blocks = blocks
        self.alpha = alpha
        self.intercept = intercept
        self.tol = tol
        self.n_jobs = n_jobs
        self.sums = column_sums(blocks, intercept=intercept, n_jobs=n_jobs)
        if not (np.isfinite(self.sums.x_square).all() and np.isfinite(self.sums.y_square).all()):
            raise OverflowError("the squares of these columns or targets overflow")
        curvature = self.sums.x_square + alpha
        self.scale = 1.0 / np.sqrt(np.where(curvature > 0, curvature, 1.0))
        self.n_rows = blocks.n_rows
        self.shape = (blocks.n_columns, len(self.sums.y_mean))
        self.last: Residuals | None = None
        self._rows: tuple[Any, Array, Array] | None = None

    def coef(self, u: Array) -> Array:
        """Return β (d, k)."""
        return self.scale[:, None] * u.reshape(self.shape)

    def evaluate(self, u: Array) -> Evaluation:
        """Return ½P, its gradient in u, and the relative gap (α > 0) or residual."""
        B = self.coef(u)
        level = self.sums.y_mean
        state = self.last = residual_sums(self.blocks, self.sums.x_mean, level, B, n_jobs=self.n_jobs)
        value = 0.5 * float(state.square.sum()) + 0.5 * self.alpha * float((B * B).sum())
        gradient = self.scale[:, None] * (self.alpha * B - state.cross)
        measure = optimality(self.sums, state, B, level, self.alpha, self.intercept, self.tol)
        return Evaluation(value, gradient.ravel(), measure)

    def gradient(self, u: Array, rows: Any) -> Array:
        """Return the gradient estimated from some rows."""
        X, y, weight = self._in_memory()
        B = self.coef(u)
        batch = Block(X[rows], y[rows], weight[rows], 0)
        cross = block_residuals(batch, self.sums.x_mean, self.sums.y_mean, B).cross
        share = self.n_rows / batch.X.shape[0]
        return (self.scale[:, None] * (self.alpha * B - share * cross)).ravel()

    def smoothness(self) -> tuple[float, float]:
        """Return L and L_max."""
        X, _, weight = self._in_memory()
        penalty = self.alpha * self.scale**2
        L = largest_eigenvalue(
            lambda v: (
                self.scale * normal_product(self.blocks, self.sums.x_mean, self.scale * v, n_jobs=self.n_jobs)
                + penalty * v
            ),
            self.shape[0],
        )
        largest = self.n_rows * float((weight * _row_squares(X, self.sums.x_mean, self.scale)).max())
        return L, max(L, largest + float(penalty.max(initial=0.0)))

    def epoch(self, u: Array, batches: NDArray[np.int64], rates: Array) -> tuple[Array, Array]:
        """Make the steps of `gradient` over all batches in one kernel."""
        X, y, weight = self._in_memory()
        theta = np.zeros((self.shape[1], 1 + self.shape[0]))
        scale = np.r_[0.0, self.scale]
        theta[:, 1:] = self.coef(u).T
        form = SQUARES, self.n_rows / batches.shape[1], float(self.alpha)
        square = np.tile(scale**2, (len(theta), 1))
        mean = _step_through(X, self.sums.x_mean, y - self.sums.y_mean, weight, batches, rates, form, square, theta)
        return tuple((part[:, 1:].T / self.scale[:, None]).ravel() for part in (theta, mean))  # type: ignore[return-value]

    def _in_memory(self) -> tuple[Any, Array, Array]:
        if self._rows is None:
            self._rows = _plain_rows("Ridge" if self.alpha else "LinearRegression", self.blocks)
        return self._rows


class Likelihood:
    """The penalised logistic likelihood as a function of u = θ/s, with the gradient over some rows."""

    def __init__(self, problem: ClassRisk) -> None:
        self.problem = problem
        self.scale = 1.0 / np.sqrt(problem.curvature_bound())
        self.n_rows = problem.blocks.n_rows
        self._rows: tuple[Any, Array, Array] | None = None

    def evaluate(self, u: Array) -> Evaluation:
        """Return value, gradient in u, and measure."""
        at = self.problem.evaluate(self.scale * u)
        return at._replace(gradient=self.scale * at.gradient)

    def gradient(self, u: Array, rows: Any) -> Array:
        """Return the gradient estimated from some rows."""
        problem = self.problem
        centre = self.problem.sums.centre
        X, y, weight = self._in_memory()
        theta = (self.scale * u).reshape(problem.shape)
        w = theta[:, 1:]
        Z = X[rows]
        codes = y[rows].astype(np.intp)
        s = weight[rows]
        scores = np.asarray(Z @ w.T) + (theta[:, 0] - w @ centre)
        if problem.n_scores == 1:
            r = (expit(scores[:, 0]) - codes)[:, None]
        else:
            r = softmax(scores, axis=1)
            r[np.arange(len(codes)), codes] -= 1.0
        r *= (problem.cost * self.n_rows / len(s)) * s[:, None]
        slope = np.empty(problem.shape)
        slope[:, 0] = r.sum(axis=0) * problem.intercept
        slope[:, 1:] = (Z.T @ r).T - np.outer(r.sum(axis=0), centre) + problem.strength * w
        return np.asarray(self.scale * slope.ravel())

    def smoothness(self) -> tuple[float, float]:
        """Return L and L_max, from p(1 − p) ≤ ¼ for two classes and diag(p) − ppᵀ ≤ ½ for more."""
        problem = self.problem
        X, _, weight = self._in_memory()
        product = problem.hessian_product(np.zeros(len(self.scale)))  # at zero p = 1/K: the bound is K/2 times that
        share = 1.0 if problem.n_scores == 1 else problem.n_scores / 2
        L = share * largest_eigenvalue(lambda v: self.scale * product(self.scale * v), len(self.scale))
        scale = self.scale[: problem.width]
        squares = scale[0] ** 2 * problem.intercept + _row_squares(X, problem.sums.centre, scale[1:])
        curvature = 0.25 if problem.n_scores == 1 else 0.5
        return L, max(L, problem.cost * self.n_rows * curvature * float((weight * squares).max()) + 1.0)

    def epoch(self, u: Array, batches: NDArray[np.int64], rates: Array) -> tuple[Array, Array]:
        """Make the steps of `gradient` over all batches in one kernel."""
        problem = self.problem
        X, y, weight = self._in_memory()
        theta = (self.scale * u).reshape(problem.shape)
        scale = self.scale.reshape(problem.shape)
        square = scale**2
        square[:, 0] *= problem.intercept
        kind = LOGISTIC if problem.n_scores == 1 else SOFTMAX
        form = kind, problem.cost * self.n_rows / batches.shape[1], float(problem.strength)
        mean = _step_through(X, problem.sums.centre, y[:, None], weight, batches, rates, form, square, theta)
        return (theta / scale).ravel(), (mean / scale).ravel()

    def _in_memory(self) -> tuple[Any, Array, Array]:
        if self._rows is None:
            X, y, weight = _plain_rows("LogisticRegression", self.problem.blocks)
            self._rows = X, y[:, 0], weight
        return self._rows


@one_thread_blas()
def descend_least_squares(
    blocks: Blocks,
    alpha: float,
    solver: str,
    *,
    intercept: bool,
    tol: float,
    max_iter: int | None,
    batch_size: int,
    random_state: Any,
    n_jobs: int | None,
    progress: Progress,
) -> LinearFit:
    """Solve (ridge) least squares; `LinearFit.value` is the gap (α > 0) or the relative residual."""
    problem = LeastSquares(blocks, alpha, intercept=intercept, tol=tol, n_jobs=n_jobs)
    start = np.zeros(problem.shape).ravel()
    found = run_descent(problem, start, solver, tol, max_iter, batch_size, random_state, progress)
    coef = problem.coef(found.x)
    sums = problem.sums
    problem.evaluate(found.x)
    square = np.zeros(problem.shape[1]) if problem.last is None else problem.last.square
    rank = min(int(np.count_nonzero(sums.x_square)), blocks.n_rows - intercept)
    level = sums.y_mean - sums.x_mean @ coef
    norm = np.sqrt(np.maximum(square, 0.0))
    kind = "gap" if alpha > 0 else "stationarity"
    return LinearFit(coef, level, rank, None, sums.x_mean, norm, found.measure, max(1, found.n_iter), kind)


@one_thread_blas()
def descend_likelihood(
    problem: ClassRisk,
    x0: Array,
    solver: str,
    *,
    tol: float,
    max_iter: int,
    random_state: Any = None,
    progress: Progress,
) -> Solution:
    """Minimise the penalised likelihood by first-order steps."""
    scaled = Likelihood(problem)
    found = run_descent(scaled, x0 / scaled.scale, solver, tol, max_iter, BATCH_SIZE, random_state, progress)
    return found._replace(x=scaled.scale * found.x, gradient=found.gradient / scaled.scale)


def run_descent(
    problem: _Scaled,
    u0: Array,
    solver: str,
    tol: float,
    max_iter: int | None,
    batch_size: int,
    random_state: Any,
    progress: Progress,
) -> Solution:
    """Minimise a sum over rows in scaled coordinates by "gd" or "sgd"."""
    objective = Objective(problem)
    done = 0

    def watch(moment: Moment) -> bool:
        return moment.iteration > 0 and progress(done + moment.iteration, moment.measure)

    if solver == "gd":
        recorder = Recorder(objective, watch, keep_path=False)
        return descend(
            objective,
            u0,
            GradientDescent(),
            Backtracking(),
            recorder=recorder,
            tol=tol,
            max_iter=max_iter or _MOST_STEPS,
        )
    batches = Batches(problem.n_rows, min(batch_size, problem.n_rows))
    random = generator_of(type(problem).__name__, random_state)
    epochs = max_iter or _MOST_EPOCHS
    L, largest = problem.smoothness()
    smoothness = L + (largest - L) / batches.batch_size
    rate = 0.5 / smoothness if smoothness > 0 else 1.0  # no column varies: there is nothing to learn

    def phase(start: Array, step: Constant | InverseDecay, most: int, average: bool) -> Solution:
        decay = step.decay if isinstance(step, InverseDecay) else 0.0

        def leap(u: Array, t: int, generator: np.random.Generator) -> tuple[Array, Array, float]:
            rates = rate / (1.0 + decay * np.arange(t, t + batches.per_epoch, dtype=np.float64))
            objective.evaluations += batches.per_epoch * batches.batch_size / batches.n_rows
            return *problem.epoch(u, batches.row_numbers(generator), rates), float(rates[-1])

        return descend(
            objective, start, GradientDescent(), step, recorder=Recorder(objective, watch, keep_path=False),
            batches=batches, generator=random, average=average, tol=tol, max_iter=most,
            leap=leap if batches.batch_size < batches.n_rows else None,  # one batch of all rows is gradient descent
        )  # fmt: skip

    first = phase(u0, Constant(rate), max(1, epochs // 2), average=False)
    done = first.n_iter
    if first.converged or done < epochs // 2 or epochs == 1:
        return first
    last = phase(first.x, InverseDecay(rate, 1.0 / batches.per_epoch), epochs - done, average=True)
    best = last if last.converged else min(first, last, key=lambda found: found.value)
    return best._replace(n_iter=done + last.n_iter)


def _plain_rows(owner: str, blocks: Blocks) -> tuple[Any, Array, Array]:
    """Return X, y (n, k) and weights of rows in memory, float64."""
    if not blocks.in_memory:
        raise DataError(
            f"{owner}: solver='sgd' draws rows at random and needs them in memory, got a source of blocks; use "
            "solver='gd' or 'auto' for files and Dask."
        )
    X, y, weight = blocks.joined()
    X = sp.csr_array(X, dtype=np.float64) if blocks.sparse else np.ascontiguousarray(X, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1)
    return X, y, np.ones(X.shape[0]) if weight is None else np.asarray(weight)


def _step_through(
    X: Any,
    centre: Array,
    target: Array,
    weight: Array,
    batches: NDArray[np.int64],
    rates: Array,
    form: tuple[int, float, float],
    square: Array,
    theta: Array,
) -> Array:
    """Change θ by a step for each batch, some at a time, so that Ctrl-C is heard; return the mean of the θ before."""
    total = np.zeros_like(theta)
    entries = len(X.data) / max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
    most = max(1, int(_CHUNK_ENTRIES / ((1 + entries) * batches.shape[1] * len(theta))))
    target = np.ascontiguousarray(target)
    for start in range(0, len(batches), most):
        part = slice(start, start + most)
        rest = centre, target, weight, batches[part], rates[part], form, square, theta, total
        if sp.issparse(X):
            epoch_sparse(X.data, unsigned(X.indices), unsigned(X.indptr), *rest)
        else:
            epoch_dense(X, *rest)
    return total / len(batches)


def _row_squares(X: Any, centre: Array, scale: Array) -> Array:
    """Return ‖s(x − x̄)‖² of every row."""
    square = scale**2
    if sp.issparse(X):
        return np.asarray((X * X) @ square - 2 * (X @ (square * centre)) + float(square @ centre**2))
    return np.concatenate(
        [(X[start : start + _CHUNK] - centre) ** 2 @ square for start in range(0, X.shape[0], _CHUNK)]
    )
