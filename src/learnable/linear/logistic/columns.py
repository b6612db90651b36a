r"""Proximal Newton steps for the L1-penalised logistic likelihood in few sparse columns, without a Hessian matrix.

    P(W, b)/C = Σᵢ sᵢ ℓ(yᵢ, b + Wxᵢ) + (λ₁/C)‖W‖₁ + (λ₂/2C)‖W‖²

A step minimises the penalised quadratic model of P by coordinate descent over the columns: an epoch costs one visit to
their entries. The scores follow the step, so that a line search costs O(n) a trial. For two classes the intercept is
eliminated from the model; for more it is solved for once an epoch, and the coefficients of a feature are shifted to
where their penalty is least, because the softmax does not see a common shift.

Reference: G.-X. Yuan, C.-H. Ho and C.-J. Lin, An improved GLMNET for L1-regularized logistic regression, JMLR 13, 2012.

The compiled epochs go over the sparse columns of the quadratic model at a point. The model of the loss is
½Σᵢ uᵢᵀHᵢuᵢ − Σᵢ ρᵢᵀuᵢ, uᵢ = b + δᵀxᵢ: for two classes ρ = s(y − p) and H = D = s·p(1 − p), for more ρ = s(e_y − p) and
H = s(diag p − ppᵀ). Epochs keep ρ − Hu up to date and never divide by a row's curvature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import Array, NDArray, Progress, no_progress
from ...core.jit import kernel
from ...data.blocks import unsigned
from ...risk.classes import ClassSums, Penalties, logistic_point, penalised_gap, softmax_rows
from ...solvers.composite._kernels import shrunk, sparse_products_with
from ...solvers.composite.coordinate import anderson_weights
from ...solvers.problem import backtrack

Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop


Visited = NDArray[np.uint64]


@kernel
def logistic_rows(z: Array, y: Array, weight: Array, rho: Array, D: Array) -> float:
    """Return Σ s·loss of the scores z (n,). OUT rho = s(y − p) and D = s·p(1 − p)."""
    loss = 0.0
    for i in range(z.size):
        value, slope, bend = logistic_point(z[i], y[i])
        loss += weight[i] * value
        rho[i] = -weight[i] * slope
        D[i] = weight[i] * bend
    return loss


@kernel
def logistic_loss(z: Array, y: Array, weight: Array) -> float:
    """Return Σ s·loss alone."""
    loss = 0.0
    for i in range(z.size):
        loss += weight[i] * logistic_point(z[i], y[i])[0]
    return loss


@kernel
def curved_moments(data: Array, indices: Index, indptr: Index, D: Array, moments: Array) -> None:
    """OUT moments (2, k): Σ D x and Σ D x² of CSC columns."""
    for j in range(moments.shape[1]):
        first = 0.0
        second = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            v = D[indices[p]] * data[p]
            first += v
            second += v * data[p]
        moments[0, j] = first
        moments[1, j] = second


@kernel
def curved_epoch(
    data: Array, indices: Index, indptr: Index, D: Array, l1: float, l2: float,
    moments: Array, visited: Visited, w: Array, rho: Array, total: Array,
) -> float:  # fmt: skip
    """One epoch over the visited columns for two classes, the intercept eliminated; return a slope's largest change.

    IN/OUT w (k,), rho = ρ − D·Xδ (n,), total = (Σ rho, 1/ΣD), or (…, 0) without an intercept. IN moments (2, k): XᵀD,
    and the curvatures that eliminating the intercept leaves.
    """
    largest = 0.0
    for j in visited:
        h = moments[1, j]
        if h <= 0.0:
            continue
        u = h * w[j] - moments[0, j] * total[0] * total[1]
        for p in range(indptr[j], indptr[j + 1]):
            u += data[p] * rho[indices[p]]
        new = shrunk(u, l1, h + l2, False)
        step = new - w[j]
        if step != 0.0:
            w[j] = new
            for p in range(indptr[j], indptr[j + 1]):
                rho[indices[p]] -= step * D[indices[p]] * data[p]
            total[0] -= step * moments[0, j]
            largest = max(largest, abs(step) * (h + l2))
    return largest


@kernel
def softmax_moments(data: Array, indices: Index, indptr: Index, P: Array, weight: Array, curvature: Array) -> None:
    """OUT curvature (k, K): Σ s·p(1 − p)x² of CSC columns, for class probabilities P (n, K)."""
    n_classes = P.shape[1]
    for j in range(curvature.shape[0]):
        for c in range(n_classes):
            curvature[j, c] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            v = weight[i] * data[p] * data[p]
            for c in range(n_classes):
                curvature[j, c] += v * P[i, c] * (1.0 - P[i, c])


@kernel
def softmax_epoch(
    data: Array, indices: Index, indptr: Index, P: Array, weight: Array, l1: float, l2: float,
    curvature: Array, W: Array, R: Array,
) -> float:  # fmt: skip
    """One epoch for K classes. IN/OUT W (k, K) and R = ρ − HXδ (n, K). Returns the largest change of a slope."""
    n_classes = W.shape[1]
    largest = 0.0
    for j in range(W.shape[0]):
        for c in range(n_classes):
            h = curvature[j, c]
            if h <= 0.0:
                continue
            u = h * W[j, c]
            for p in range(indptr[j], indptr[j + 1]):
                u += data[p] * R[indices[p], c]
            new = shrunk(u, l1, h + l2, False)
            step = new - W[j, c]
            if step != 0.0:
                W[j, c] = new
                for p in range(indptr[j], indptr[j + 1]):
                    i = indices[p]
                    v = step * data[p] * weight[i] * P[i, c]
                    for m in range(n_classes):
                        R[i, m] += v * P[i, m]
                    R[i, c] -= v
                largest = max(largest, abs(step) * (h + l2))
        recentre(W[j], l1, l2)
    return largest


@kernel
def recentre(v: Array, l1: float, l2: float) -> None:
    """IN/OUT v (K,): add the c that minimises λ₁Σ|v + c| + ½λ₂Σ(v + c)².

    The softmax does not see a common shift of the scores. c is where a coefficient becomes zero, or a stationary point
    between two such places, where m coefficients are positive.
    """
    n_classes = v.size
    total = 0.0
    least = 0.0
    moved = False
    for k in range(n_classes):
        total += v[k]
        least += l1 * abs(v[k]) + 0.5 * l2 * v[k] * v[k]
        moved = moved or v[k] != 0.0
    if not moved:
        return
    best = 0.0
    for m in range(n_classes if l2 == 0.0 else 2 * n_classes + 1):
        c = -v[m] if m < n_classes else -(l1 / l2 * (2 * (m - n_classes) - n_classes) + total) / n_classes
        value = 0.0
        for k in range(n_classes):
            value += l1 * abs(v[k] + c) + 0.5 * l2 * (v[k] + c) ** 2
        if value < least:
            best = c
            least = value
    for k in range(n_classes):
        v[k] += best


@kernel
def recentre_rows(W: Array, l1: float, l2: float) -> None:
    """IN/OUT W (d, K): the same for every row."""
    for j in range(W.shape[0]):
        recentre(W[j], l1, l2)


_EPOCHS = 60  # of one model, at most
_BATCH = 5  # epochs after which all columns are visited, and iterates extrapolated
_SLACK = 0.1  # share of the violation at which a model is left
_NOISE = 1e-12  # share of Σ D x² below which the curvature about the mean is rounding
_HALVINGS = 40  # 2⁻⁴⁰ of a step moves nothing that float64 could tell
_STUCK = 3  # steps after which, without progress beyond rounding, nothing more is to be had
_ROUNDING = 1e-12  # share of P


class Columns:
    """Some columns of a CSC matrix."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.entries = (X.data, unsigned(X.indices), unsigned(X.indptr))

    def back(self, v: Array) -> Array:
        """Return Xᵀv for v (n,) or (n, K), as (K, k)."""
        out = np.empty((1 if v.ndim == 1 else v.shape[1], self.X.shape[1]))
        for row, column in zip(out, v.reshape(len(v), -1).T, strict=True):
            sparse_products_with(*self.entries, np.ascontiguousarray(column), row)
        return out


class Model(Protocol):
    """The loss at scores z, and its quadratic model there."""

    slope: Array  #: minus the derivative by each score

    def evaluate(self, z: Array) -> float:
        """Return the loss; remember slopes and curvatures."""

    def loss(self, z: Array) -> float:
        """Return the loss alone."""

    def minimise(
        self, W: Array, l1: float, l2: float, least: float, *, extrapolate: bool = True
    ) -> tuple[Array, Array]:
        """Return the W (n_scores, k) and the change of the intercepts that about minimise the penalised model."""


class BinaryModel:
    """Two classes: one score."""

    def __init__(self, columns: Columns, y: Array, weight: Array, intercept: bool) -> None:
        self.columns = columns
        self.y = y.astype(np.float64)
        self.weight = weight
        self.intercept = intercept
        self.slope = np.empty(len(y))
        self.D = np.empty(len(y))

    def evaluate(self, z: Array) -> float:
        """Return the loss."""
        return logistic_rows(z, self.y, self.weight, self.slope, self.D)

    def loss(self, z: Array) -> float:
        """Return the loss alone."""
        return logistic_loss(z, self.y, self.weight)

    def minimise(
        self, W: Array, l1: float, l2: float, least: float, *, extrapolate: bool = True
    ) -> tuple[Array, Array]:
        """Run epochs until no slope changes by more than `least`."""
        moments = np.empty((2, W.shape[1]))
        rho = self.slope.copy()
        w = W[0].copy()
        curved_moments(*self.columns.entries, self.D, moments)
        mass = max(float(self.D.sum()), 1e-300)
        total = np.array([rho.sum(), 1.0 / mass]) if self.intercept else np.zeros(2)
        if self.intercept:
            raw = moments[1].copy()
            moments[1] -= moments[0] ** 2 / mass
            moments[1][moments[1] <= _NOISE * raw] = 0.0
        every = np.arange(len(w), dtype=np.uint64)

        def epoch(full: bool) -> float:
            visited = every if full else every[w != 0]
            return curved_epoch(*self.columns.entries, self.D, l1, l2, moments, visited, w, rho, total)

        _run_epochs(epoch, least, (w, rho, total), extrapolate)
        return w[None], np.array([total[0] * total[1]])


class SoftmaxModel:
    """Several classes: one score each."""

    def __init__(self, columns: Columns, y: Any, weight: Array, n_classes: int, intercept: bool) -> None:
        self.columns = columns
        self.y = y
        self.weight = weight
        self.intercept = intercept
        self.slope = np.empty((len(y), n_classes))
        self.P = np.empty((len(y), n_classes))

    def evaluate(self, z: Array) -> float:
        """Return the loss."""
        self.slope[:] = z
        loss = softmax_rows(self.slope, self.y, self.weight, self.P)
        np.negative(self.slope, out=self.slope)
        return loss

    def loss(self, z: Array) -> float:
        """Return the loss alone."""
        return softmax_rows(z.copy(), self.y, self.weight, np.empty_like(self.P))

    def minimise(
        self, W: Array, l1: float, l2: float, least: float, *, extrapolate: bool = True
    ) -> tuple[Array, Array]:
        """Run epochs, each after a step of the intercepts, until no slope changes by more than `least`."""
        R = self.slope.copy()
        w = W.T.copy()
        curvature = np.empty_like(w)
        change = np.zeros(W.shape[0])
        softmax_moments(*self.columns.entries, self.P, self.weight, curvature)
        spread = self.weight[:, None] * self.P
        inverse = np.linalg.pinv(np.diag(spread.sum(axis=0)) - self.P.T @ spread, rcond=1e-12, hermitian=True)

        def epoch(full: bool) -> float:
            if self.intercept:
                step = inverse @ R.sum(axis=0)
                R[:] -= spread * (step - (self.P @ step)[:, None])
                change[:] += step
            return softmax_epoch(*self.columns.entries, self.P, self.weight, l1, l2, curvature, w, R)

        _run_epochs(epoch, least, (w, R, change), extrapolate)
        return np.ascontiguousarray(w.T), change


def _run_epochs(epoch: Callable[[bool], float], least: float, state: tuple[Array, ...], extrapolate: bool) -> None:
    """Run epochs until one over all columns changes no slope by more than `least`.

    Most of the work is on the support, so that the other columns are visited every few epochs only. The state is affine
    in its first array, the coefficients: extrapolating those extrapolates all of it. Where an extrapolation makes the
    next epoch larger it is taken back.
    """
    iterates: list[tuple[Array, ...]] = []
    kept: tuple[Array, ...] | None = None
    largest = np.inf
    settled = False
    for number in range(_EPOCHS):
        full = number % _BATCH == 0 or settled
        before = largest
        largest = epoch(full)
        if kept is not None and not largest <= before:
            _restore(state, kept)
            largest = before
        kept = None
        if full and largest <= least:
            return
        settled = largest <= least
        if not extrapolate:
            continue
        iterates.append(tuple(part.copy() for part in state))
        if len(iterates) > _BATCH:
            weights = anderson_weights(np.stack([iterate[0].ravel() for iterate in iterates]))
            if weights is not None:
                kept = iterates[-1]
                _restore(
                    state,
                    tuple(np.tensordot(weights, parts[1:], 1) for parts in map(np.stack, zip(*iterates, strict=True))),
                )
            iterates = []


def _restore(state: tuple[Array, ...], values: tuple[Array, ...]) -> None:
    for part, value in zip(state, values, strict=True):
        part[:] = value


class ColumnFit(NamedTuple):
    """Where the steps ended."""

    theta: Array  #: (n_scores, 1 + k)
    n_iter: int
    stopped: bool  #: whether they were told to


def column_newton(
    model: Model,
    columns: Columns,
    theta: Array,
    sums: ClassSums,
    penalty: Penalties,
    *,
    intercept: bool,
    tol: float,
    max_iter: int,
    progress: Progress = no_progress,
) -> ColumnFit:
    """Minimise P in these columns until the relative gap is at most `tol`; θ and `sums` are about `sums.centre`."""
    l1 = penalty.l1 / penalty.C
    l2 = penalty.l2 / penalty.C
    W = theta[:, 1:].copy()
    b = theta[:, 0] - theta[:, 1:] @ sums.centre
    z = (columns.X @ W.T) + b
    z = np.ascontiguousarray(z[:, 0] if len(W) == 1 else z)
    n_iter = 0
    stopped = False
    best = np.inf
    least_value = np.inf
    stuck = 0
    while True:
        loss = model.evaluate(z)
        slopes = np.empty_like(theta)
        slopes[:, 0] = -model.slope.sum(axis=0)
        slopes[:, 1:] = -columns.back(model.slope) - np.outer(slopes[:, 0], sums.centre)
        if not intercept:
            slopes[:, 0] = 0.0
        here = np.column_stack([b + W @ sums.centre, W])
        gap, value = penalised_gap(here, loss, slopes, sums, penalty, intercept=intercept)
        reached = penalty.C * loss + penalty.of(W)
        stuck = 0 if reached < least_value * (1 - _ROUNDING) or gap < 0.9 * best else stuck + 1
        best = min(best, gap)
        least_value = min(least_value, reached)
        if value <= tol or n_iter >= max_iter or stopped or stuck >= _STUCK:
            return ColumnFit(here, n_iter, stopped)
        least = _SLACK * _violation(W, slopes[:, 1:], l1, l2)
        for extrapolate in (True, False):  # epochs alone always descend
            new, change = model.minimise(W, l1, l2, least, extrapolate=extrapolate)
            move = columns.X @ (new - W).T + change
            move = move[:, 0] if len(W) == 1 else move
            slope = -float((model.slope * move).sum())
            length = _line_search(model, z, move, loss, slope, W, new - W, (l1, l2))
            if length > 0:
                break
        if length > 0:
            W = W + length * (new - W) if length < 1 else new
            b = b + length * change
            z = z + length * move
        n_iter += 1
        stopped = progress(n_iter, value)


def _violation(W: Array, slopes: Array, l1: float, l2: float) -> float:
    """Return how far the slopes are from the subdifferential of the penalty, at most."""
    steep = slopes + l2 * W
    excess = np.where(W != 0, np.abs(steep + l1 * np.sign(W)), np.maximum(np.abs(steep) - l1, 0.0))
    return float(excess.max(initial=0.0))


def _line_search(
    model: Model, z: Array, move: Array, loss: float, slope: float, W: Array, step: Array, penalty: tuple[float, float]
) -> float:
    """Return the first of 1, ½, ¼ … with enough descent, 0 where there is none.

    Where the descent that is left drowns in rounding it is 1.
    """
    of = Penalties(1.0, *penalty).of
    start = loss + of(W)
    promised = slope + of(W + step) - of(W)
    if not promised <= _ROUNDING * start:
        return 0.0
    if promised > -_ROUNDING * start:
        return 1.0

    def trial(length: float) -> float | None:
        value = model.loss(z + length * move) + of(W + length * step)
        return length if value <= start + 0.01 * length * promised else None

    return backtrack(trial, most=_HALVINGS) or 0.0
