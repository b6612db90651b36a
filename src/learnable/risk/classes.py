r"""The penalised logistic likelihood as a problem for the solvers, with its duality gap.

    P(w, b) = ½ρ‖w‖² + c Σᵢ sᵢ ℓ(yᵢ, b + (xᵢ − x̄)ᵀw)

with K − 1 = 1 score for two classes and K scores otherwise. For class probabilities u the dual value is

    D(u) = −½ρ‖w_u‖² + c Σᵢ sᵢ H(uᵢ),   w_u = −(c/ρ) Σᵢ sᵢ (uᵢ − e_{yᵢ}) ⊗ (xᵢ − x̄),

for every u in the simplices with Σᵢ sᵢ(uᵢ − e_{yᵢ}) = 0 (the free intercept's constraint). At u = the model's own
probabilities P − D = ‖∇_w P‖²/(2ρ) + bᵀ∇_b P. Those probabilities miss the constraint by rounding or, early on, by
more; they are then mixed with one constant distribution, θ of it, so that it holds: the entropy is concave, which
bounds D below.

One compiled sweep over the rows gives loss, gradient and curvature; the plain `Risk` of the same loss is its reference
(`tests/risk/test_objective.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from math import exp, log, log1p
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from ..core import Array, NDArray, one_thread_blas
from ..core.jit import kernel
from ..data.blocks import Block, Blocks, map_reduce, unsigned
from ..solvers.composite._kernels import column_sums
from ..solvers.composite.designs import run_on, slices
from ..solvers.problem import Evaluation, Solution
from ..solvers.systems.moments import provisional_mean
from .losses import LogisticLoss, SoftmaxLoss
from .objective import FIRST_ROWS, Risk, add_sums, relative_gap
from .penalties import L2Penalty

Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop


@kernel
def class_products(
    X: Array, shift: Array, codes: NDArray[np.int64], weight: Array, x_sum: Array, square: Array
) -> None:
    """OUT x_sum (K, d) += Σ s (x − shift) by class; square (d,) += Σ s (x − shift)². One sweep."""
    n, d = X.shape
    for i in range(n):
        row = X[i]
        s = weight[i]
        own = x_sum[codes[i]]
        for j in range(d):
            moved = row[j] - shift[j]
            own[j] += s * moved
            square[j] += s * moved * moved


@kernel
def logistic_point(z: float, y: float) -> tuple[float, float, float]:
    """Return the loss log(1 + e^z) − yz, its slope p − y and its curvature p(1 − p)."""
    e = exp(-abs(z))
    small = e / (1.0 + e)
    large = 1.0 / (1.0 + e)
    p, q = (large, small) if z >= 0 else (small, large)
    wrong = q if y > 0.5 else p
    # log(1 + e^z) − yz = log(1 + e^{−|z|}) + max(z, 0) − yz, where the last two terms are 0 or |z|.
    excess = abs(z) if (z >= 0) != (y > 0.5) else 0.0
    return log1p(e) + excess, -wrong if y > 0.5 else wrong, small * large


@kernel
def logistic_dense(
    X: Array, centre: Array, y: Array, weight: Array, w: Array, b: float, gradient: Array, curvature: Array
) -> tuple[float, float]:
    """Return Σ s·loss and Σ s·slope. OUT gradient (d,) += Σ s·slope·(x − centre); curvature (n,)."""
    n, d = X.shape
    loss = 0.0
    total = 0.0
    for i in range(n):
        row = X[i]
        z = b
        for j in range(d):
            z += (row[j] - centre[j]) * w[j]
        value, slope, bend = logistic_point(z, y[i])
        r = weight[i] * slope
        for j in range(d):
            gradient[j] += r * (row[j] - centre[j])
        loss += weight[i] * value
        total += r
        curvature[i] = weight[i] * bend
    return loss, total


@kernel
def logistic_sparse(
    data: Array,
    indices: Index,
    indptr: Index,
    y: Array,
    weight: Array,
    w: Array,
    b: float,
    gradient: Array,
    curvature: Array,
) -> tuple[float, float]:
    """Return the same sums for CSR rows; b already holds −centreᵀw, and the gradient is not moved."""
    loss = 0.0
    total = 0.0
    for i in range(indptr.size - 1):
        z = b
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        value, slope, bend = logistic_point(z, y[i])
        r = weight[i] * slope
        for k in range(indptr[i], indptr[i + 1]):
            gradient[indices[k]] += r * data[k]
        loss += weight[i] * value
        total += r
        curvature[i] = weight[i] * bend
    return loss, total


@kernel
def softmax_rows(scores: Array, y: NDArray[np.int64], weight: Array, probability: Array) -> float:
    """Return Σ s·(log Σₖ e^{zₖ} − z_y). IN/OUT scores (n, K) become s·(p − e_y); OUT probability (n, K)."""
    n, n_classes = scores.shape
    loss = 0.0
    for i in range(n):
        z = scores[i]
        top = z[0]
        for k in range(1, n_classes):
            top = max(top, z[k])
        own = z[y[i]]
        norm = 0.0
        others = 0.0
        for k in range(n_classes):
            e = exp(z[k] - top)
            probability[i, k] = e
            norm += e
            others += e if k != y[i] else 0.0
        loss += weight[i] * (np.log(norm) + (top - own))
        for k in range(n_classes):
            probability[i, k] /= norm
            z[k] = weight[i] * probability[i, k]
        # p_y − 1 = −Σ_{k≠y} p_k, without cancellation
        z[y[i]] = -weight[i] * (others / norm)
    return loss


S = TypeVar("S")

_COLUMN_CHUNK = 2**20  # numbers of X that one task of sums by columns reads


class ClassSums(NamedTuple):
    """What the gap has to know about the classes: sums over the rows of each."""

    weight: Array  #: (K,), Σ s
    x: Array  #: (K, d), Σ s (x − centre)
    square: Array  #: (d,), Σ s (x − centre)² over all classes
    centre: Array  #: (d,)


def class_sums(
    blocks: Blocks, n_classes: int, *, intercept: bool, n_jobs: int | None, by_columns: bool = False
) -> ClassSums:
    """Return the sums about the weighted mean (about zero without an intercept, or for sparse rows)."""
    d = blocks.n_columns
    sparse = blocks.sparse
    shift = provisional_mean(blocks.head().X[:FIRST_ROWS]) if intercept and not sparse else np.zeros(d)

    def statistic(block: Block) -> list[Array]:
        codes = _codes(block.y, n_classes)
        s = np.ones(len(codes)) if block.weight is None else block.weight
        weight = np.asarray(np.bincount(codes, s, n_classes), dtype=np.float64)
        x = np.zeros((n_classes, d))
        square = np.zeros(d)
        if sparse:
            members = sp.csr_array((s, (codes, np.arange(len(s)))), shape=(n_classes, len(s)))
            return [weight, (members @ block.X).toarray(), (block.X * block.X).T @ s]
        class_products(block.X, shift, codes, s, x, square)
        return [weight, x, square]

    if by_columns and n_classes == 2 and blocks.in_memory and _lies_by_columns(blocks):
        weight, x, square = _sums_by_columns(blocks, shift, n_jobs)
    else:
        weight, x, square = map_reduce(blocks, statistic, add_sums, n_jobs=n_jobs)
    if not intercept:
        return ClassSums(weight, x, square, shift)
    with np.errstate(over="ignore", invalid="ignore"):  # callers check the squares for inf and NaN
        offset = x.sum(axis=0) / weight.sum()
        square = square - weight.sum() * offset**2
        if sparse:
            return ClassSums(weight, x - np.outer(weight, offset), np.maximum(square, 0.0), offset)
        return ClassSums(weight, x - np.outer(weight, offset), square, shift + offset)


def _lies_by_columns(blocks: Blocks) -> bool:
    """Tell whether the rows are one float64 table whose columns lie one after the other."""
    X = blocks.parts[0].X
    dense = len(blocks.parts) == 1 and not blocks.sparse and X.dtype == np.float64
    return bool(dense and X.flags.f_contiguous and not X.flags.c_contiguous)


def _sums_by_columns(blocks: Blocks, shift: Array, n_jobs: int | None) -> list[Array]:
    """Return the sums of two classes without copying blocks of rows."""
    X, y, s = blocks.parts[0]
    codes = _codes(y, 2)
    s = np.ones(len(codes)) if s is None else np.ascontiguousarray(s, dtype=np.float64)
    sums = np.zeros((X.shape[1], 3))
    second = np.ascontiguousarray((s * codes)[None])

    def of_columns(part: slice) -> None:
        column_sums(X.T[part], s, second, shift[part], sums[part])

    run_on(slices(X.shape[1], max(1, _COLUMN_CHUNK // len(codes))), of_columns, n_jobs)
    weight = np.asarray(np.bincount(codes, s, 2), dtype=np.float64)
    return [weight, np.stack([sums[:, 0] - sums[:, 2], sums[:, 2]]), sums[:, 1].copy()]


def _codes(y: Any, n_classes: int) -> NDArray[np.int64]:
    """Return class codes; of two classes, −1 counts as 0."""
    return np.asarray(y) if n_classes > 2 else (np.asarray(y) > 0).astype(np.int64)


class ClassRisk(Risk):
    """P of the logistic or softmax loss with half a squared norm, with compiled sweeps.

    Parameters
    ----------
    loss : LogisticLoss or SoftmaxLoss
        For two classes, or for more.
    penalty : L2Penalty
        With a strength of zero the measure is the relative gradient instead of the gap.
    rows : Blocks
        Rows with class codes, or −1 and 1 for two classes, and weights.
    cost : float, optional
        c; by default 1/Σs.
    intercept : bool
        Whether b is free or zero.
    sums : ClassSums, optional
        Of the same rows; θ is about their centre.
    n_classes : int
        K; needed where `sums` are not given.
    """

    def __init__(
        self,
        loss: Any,
        penalty: Any,
        rows: Blocks,
        *,
        cost: float | None = None,
        intercept: bool = True,
        sums: ClassSums | None = None,
        n_classes: int = 2,
        n_jobs: int | None = None,
    ) -> None:
        self.sums = class_sums(rows, n_classes, intercept=intercept, n_jobs=n_jobs) if sums is None else sums
        self.n_classes = len(self.sums.weight)
        super().__init__(
            *(loss, penalty, rows),
            cost=cost,
            intercept=intercept,
            centre=self.sums.centre,
            n_jobs=n_jobs,
            n_scores=1 if self.n_classes == 2 else self.n_classes,
        )
        self.slope = np.zeros(self.n_scores)  # the intercepts' derivatives at the last evaluation

    @property
    def moments(self) -> tuple[float, Array, Array]:  # type: ignore[override]
        """Σ s, Σ s (x − centre) and Σ s (x − centre)² of all rows."""
        return float(self.sums.weight.sum()), self.sums.x.sum(axis=0), self.sums.square

    @classmethod
    def of(cls, rows: Blocks, sums: ClassSums, C: float, *, intercept: bool, n_jobs: int | None = None) -> ClassRisk:
        """Return C Σ s V + ½‖w‖²; for C = inf, Σ s V alone."""
        loss = LogisticLoss() if len(sums.weight) == 2 else SoftmaxLoss()
        cost, penalty = (1.0, L2Penalty(0.0)) if np.isinf(C) else (float(C), L2Penalty(1.0))
        return cls(loss, penalty, rows, cost=cost, intercept=intercept, sums=sums, n_jobs=n_jobs)

    def evaluate(self, x: Array) -> Evaluation:
        """Return P, its gradient, and the relative duality gap (or relative gradient without a penalty)."""
        theta = x.reshape(self.shape)
        loss, slopes = map_reduce(self.blocks, partial(self._sweep, theta=theta), add_sums, n_jobs=self.n_jobs)
        self.at = x.copy()
        self.slope = slopes[:, 0].copy()
        w = theta[:, 1:]
        gradient = self.cost * slopes
        gradient[:, 1:] += self.strength * w
        if not self.intercept:
            gradient[:, 0] = 0.0
        value = 0.5 * self.strength * _total(w * w) + self.cost * loss
        measure = self._gap(theta, gradient, value, loss) if self.strength else self._relative_gradient(gradient)
        size = self.cost * self._slope_sizes + self.strength * np.abs(theta)
        return Evaluation(value, gradient.ravel(), self._stopping_measure(measure, gradient, size, value))

    def intercept_step(self, x: Array) -> Array:
        """Return the change of the intercepts that makes them optimal for the coefficients, by Newton's method.

        Softmax probabilities follow a change of intercept without a sweep over the rows: p ← p·e^δ, normalised. For two
        classes, and for rows beyond memory, one step is returned.
        """
        self._ensure_state(x)
        if self.state is None or self.weight is None:
            statistic = partial(self._intercept_curvature, theta=x.reshape(self.shape))
            H = map_reduce(self.blocks, statistic, np.add, n_jobs=self.n_jobs)
            return np.asarray(-np.linalg.lstsq(H, self.slope, rcond=1e-12)[0])
        if self.n_scores == 1:
            return -self.slope / max(float(self.state.sum()), 1e-300)
        p = self.state.copy()
        step = np.zeros(self.n_classes)
        for _ in range(10):
            weighted = self.weight[:, None] * p
            slope = weighted.sum(axis=0) - self.sums.weight
            if np.abs(slope).max() <= 1e-15 * self.sums.weight.sum():
                break
            change = np.linalg.lstsq(np.diag(weighted.sum(axis=0)) - p.T @ weighted, slope, rcond=1e-12)[0]
            step -= change
            p *= np.exp(-change)
            p /= p.sum(axis=1, keepdims=True)
        return step

    @one_thread_blas()
    def polished(self, solution: Solution) -> Solution:
        """Make the intercept optimal for the coefficients.

        The dual point that the certificate uses then satisfies its constraint up to rounding, and the gap is the
        smallest that these coefficients can prove.
        """
        floor = 1e-14 * self.cost * self.sums.weight.sum()
        for _ in range(3):
            slope = solution.gradient.reshape(self.shape)[:, 0]
            if not self.intercept or np.abs(slope).max() <= floor:
                break
            theta = solution.x.reshape(self.shape).copy()
            theta[:, 0] += self.intercept_step(solution.x)
            moved = self.evaluate(x := theta.ravel())
            if not np.abs(moved.gradient.reshape(self.shape)[:, 0]).max() < np.abs(slope).max():
                break
            solution = Solution(x, moved.value, moved.gradient, moved.measure, solution.n_iter, solution.converged)
        return solution

    def thinned(self, stride: int) -> ClassRisk | None:
        """Return the risk on every `stride`-th row, with the weights scaled up; None if a class would vanish."""
        rows = self.blocks.every(stride)
        lasting = np.bincount(_codes(rows.y, self.n_classes), weights=rows.weight, minlength=self.n_classes).all()
        return cast(ClassRisk, self._of_few(rows)) if lasting else None

    def _sweep(self, block: Block, theta: Array) -> Any:
        found = super()._sweep(block, theta)
        self._remember(block, theta)  # the Hessian, or the step of the intercept, may be asked for at the same point
        return found

    def _like(self, rows: Blocks, centre: Array) -> ClassRisk:
        sums = class_sums(rows, self.n_classes, intercept=self.intercept, n_jobs=self.n_jobs)
        moved = sums.centre - centre
        sums = sums._replace(x=sums.x + np.outer(sums.weight, moved), centre=centre)
        limits: dict[str, Any] = {"cost": self.cost, "intercept": self.intercept, "n_jobs": self.n_jobs}
        return ClassRisk(self.loss, self.penalty, rows, sums=sums, **limits)

    def curvature_bound(self) -> Array:
        """Return an upper bound on the Hessian's diagonal: p(1 − p) ≤ ¼ of the columns' squares, plus the penalty."""
        bound = 0.25 * self.cost * np.r_[self.sums.weight.sum(), self.sums.square] + self.strength
        return np.tile(np.where(bound > 0, bound, 1.0), self.n_scores)

    def over_scores(self, x: Array, question: Callable[[Array, Any], S], merge: Callable[[S, S], S]) -> S:
        """Return what `question(scores, codes)` says of the scores (m, K) of each block's rows, merged."""
        return map_reduce(self.blocks, partial(self._ask, theta=x.reshape(self.shape), question=question), merge)

    def _ask(self, block: Block, theta: Array, question: Callable[[Array, Any], S]) -> S:
        scores = np.concatenate([self._scores(X, theta) for _, X in self._tiles(block)])
        if self.n_scores == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
        return question(scores, block.y)

    def _sweep_into(self, block: Block, theta: Array, weight: Array, state: Array) -> tuple[float, Array]:
        if self.n_scores == 1:
            return self._binary_sweep(block, theta, weight, state)
        loss = 0.0
        slope = np.zeros(self.shape)
        codes = np.asarray(block.y)
        for rows, X in self._tiles(block):
            scores = self._scores(X, theta)
            loss += softmax_rows(scores, codes[rows], weight[rows], state[rows])
            slope += self._back_project(X, scores)
        return loss, slope

    def _binary_sweep(self, block: Block, theta: Array, weight: Array, state: Array) -> tuple[float, Array]:
        b = theta[0, 0]
        w = np.ascontiguousarray(theta[0, 1:])
        y = block.y.astype(np.float64)  # type: ignore[union-attr]
        centre = self.centre  # type: ignore[union-attr]
        slope = np.zeros(self.width)
        if self.sparse:
            X = block.X
            b = b - centre @ w
            loss, slope[0] = logistic_sparse(
                X.data, unsigned(X.indices), unsigned(X.indptr), y, weight, w, b, slope[1:], state
            )
            slope[1:] -= slope[0] * centre
        else:
            loss, slope[0] = logistic_dense(block.X, centre, y, weight, w, b, slope[1:], state)
        return loss, slope[None, :]

    def _intercept_curvature(self, block: Block, theta: Array) -> Array:
        weight, state = self._rows_at(block, theta)
        if self.n_scores == 1:
            return np.array([[state.sum()]])
        weighted = weight[:, None] * state
        return np.asarray(np.diag(weighted.sum(axis=0)) - state.T @ weighted)

    def _curvature(self, block: Block, theta: Array) -> Array:
        """Return Σ s (diag(p) − ppᵀ) ⊗ (1, x − centre)(1, x − centre)ᵀ of one block."""
        if self.n_scores == 1:
            return super()._curvature(block, theta)
        weight, state = self._rows_at(block, theta)
        total = np.zeros((self.n_scores * self.width,) * 2)
        for rows, X in self._tiles(block):
            s = weight[rows]
            p = state[rows]
            T = np.column_stack([np.ones(len(s)), X.toarray() - self.centre if self.sparse else X])
            spread = (np.sqrt(s)[:, None] * p)[:, :, None] * T[:, None, :]
            spread = spread.reshape(len(T), -1)
            total -= spread.T @ spread
            for k in range(self.n_classes):
                own = slice(k * self.width, (k + 1) * self.width)
                scaled = np.sqrt(s * p[:, k])[:, None] * T
                total[own, own] += scaled.T @ scaled
        return total

    def _curvature_product(self, block: Block, theta: Array, state: Array | None, V: Array) -> Array:
        if self.n_scores == 1:
            return super()._curvature_product(block, theta, state, V)
        out = np.zeros(self.shape)
        weight, at = self._rows_at(block, theta, state)
        for rows, X in self._tiles(block):
            u = self._scores(X, V)
            p = at[rows]
            u = weight[rows][:, None] * p * (u - (p * u).sum(axis=1, keepdims=True))
            out += self._back_project(X, u)
        return out

    def _gap(self, theta: Array, gradient: Array, value: float, loss: float) -> float:
        """Return (P − D)/max(D, 1e-8·P₀) at the feasible dual point that the model's probabilities give.

        P − D is summed from small terms, so that it keeps its digits far below the rounding of P.
        """
        c = self.cost
        rho = self.strength
        N = self.sums.weight
        total, x_total = self._totals
        w = theta[:, 1:]
        g_w = gradient[:, 1:]
        g_b = gradient[:, 0]
        at_intercept = float(theta[:, 0] @ g_b)
        gap = 0.5 * _total(g_w * g_w) / rho + at_intercept
        mix, v = feasible_mix(N, _by_class(g_b / c)) if self.intercept else (0.0, N)
        if mix > 0:
            entropy = c * loss - _total(w * (g_w - rho * w)) - at_intercept
            mixed_entropy = -c * total * _total(v * np.log(np.maximum(v, 1e-300)))
            target, members = (v[1:], self.sums.x[1:]) if self.n_scores == 1 else (v, self.sums.x)
            w_u = w - g_w / rho
            w_v = -(c / rho) * (target[:, None] * x_total - members)
            move = mix * (w_v - w_u)
            gap += rho * _total(w_u * move) + 0.5 * rho * _total(move * move)
            gap -= mix * (mixed_entropy - entropy)
        return max(0.0, gap) / max(value - gap, 1e-8 * c * total * log(self.n_classes))

    @cached_property
    def null_value(self) -> float:
        """P₀: with equal scores every row loses log K."""
        return self.cost * self._totals[0] * log(self.n_classes)

    @cached_property
    def _totals(self) -> tuple[float, Array]:
        """Σ s and Σ s (x − centre) of all classes."""
        return float(self.sums.weight.sum()), self.sums.x.sum(axis=0)

    def penalised_gap(self, theta: Array, at: Evaluation, penalty: Penalties) -> tuple[float, float]:
        """Return P − D and its relative size with a penalty that this risk, which has none, does not know."""
        slopes = at.gradient.reshape(self.shape)
        return penalised_gap(theta, at.value, slopes, self.sums, penalty, intercept=self.intercept)

    def _relative_gradient(self, gradient: Array) -> float:
        """Return max_j |gⱼ| / √(Σ s · Σ s(xⱼ − x̄ⱼ)²): at most one by Cauchy–Schwarz, in any units of xⱼ."""
        size = self._slope_sizes
        return float(np.max(np.divide(np.abs(gradient), size, out=np.zeros_like(gradient), where=size > 0)))

    @cached_property
    def _slope_sizes(self) -> Array:
        """Return √(Σ s · Σ s(xⱼ − x̄ⱼ)²), the most that each entry of the likelihood's gradient can be."""
        total = self.sums.weight.sum()
        return np.asarray(np.sqrt(total * np.r_[total, self.sums.square]))


# --------------------------------------------------------------------------------------------------------------------
# Dual points of class probabilities.


def feasible_mix(weight: Array, excess: Array) -> tuple[float, Array]:
    """Return how much of which constant distribution makes probabilities u obey Σ s(u − e_y) = 0.

    Parameters
    ----------
    weight : (K,)
        Σ s of each class.
    excess : (K,)
        Σ s(u − e_y) of each class.

    Returns
    -------
    float, (K,)
        θ and v, such that (1 − θ)u + θv obeys the constraint; θ is zero where u does.
    """
    pairs = zip(weight.tolist(), excess.tolist(), strict=True)  # a few numbers, which Python divides sooner than NumPy
    mix = min(1.0, max(0.0, *(over / max(own + over, 1e-300) for own, over in pairs)) * (1 + 1e-9))
    if mix == 0.0:
        return mix, weight
    v = np.maximum(mix * (weight + excess) - excess, 0.0)  # N − (1 − mix)(N + excess)
    return mix, v / v.sum()


def _total(terms: Array) -> float:
    """Return the sum of a small array: what `sum` does, without its search for options."""
    return float(np.add.reduce(terms, axis=None))


def _by_class(slopes: Array) -> Array:
    """Return the slopes by the intercepts, (n_scores,), for each class: two of them share one score."""
    return np.array([-slopes[0], slopes[0]]) if len(slopes) == 1 else slopes


class Penalties(NamedTuple):
    """The constants of C Σ s ℓ + λ₁‖w‖₁ + ½λ₂‖w‖²."""

    C: float
    l1: float
    l2: float

    def of(self, w: Array) -> float:
        """Return λ₁‖w‖₁ + ½λ₂‖w‖²."""
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float((w * w).sum())


def penalised_gap(
    theta: Array, loss: float, slopes: Array, sums: ClassSums, penalty: Penalties, *, intercept: bool
) -> tuple[float, float]:
    """Return P − D and its relative size, (P − D)/max(D, 1e-8·P₀), for an L1 or elastic net penalty.

    `loss` is Σ s ℓ at θ (n_scores, 1 + d) and `slopes` its gradient, in columns about `sums.centre`. With slopes
    V = C Σ s(u − e_y) ⊗ (x − x̄) the dual value at e + τ(u − e) is at least τ·CΣsH(u) − Ω*(τV) for 0 ≤ τ ≤ 1, because
    the entropy H is concave and zero at e. The better of τ = 1 and the largest τ with τ|V| ≤ λ₁ counts.
    """
    C, l1, l2 = penalty
    total = float(sums.weight.sum())
    V = slopes[:, 1:]
    entropy = loss - float((slopes * theta).sum())
    mix, v = feasible_mix(sums.weight, _by_class(slopes[:, 0])) if intercept else (0.0, sums.weight)
    if mix > 0:
        own = -total * float(np.sum(v * np.log(np.maximum(v, 1e-300))))
        entropy = (1 - mix) * entropy + mix * own
        V = (1 - mix) * V - mix * (sums.x[1:] if len(theta) == 1 else sums.x)
    V = C * np.abs(V)
    dual = min(1.0, l1 / max(float(V.max(initial=0.0)), 1e-300)) * C * entropy
    if l2 > 0:
        dual = max(dual, C * entropy - 0.5 * float((np.maximum(V - l1, 0.0) ** 2).sum()) / l2)
    value = C * loss + penalty.of(theta[:, 1:])
    return max(0.0, value - dual), relative_gap(value, dual, C * total * float(np.log(len(sums.weight))))
