r"""The problem of the linear support vector machines, its dual, and the gap between the two.

    P(w) = ½‖w‖² + Σᵢ cᵢ Σₖ (pₖᵢ − σₖᵢ zᵢ)₊^q,      zᵢ = w₀·bias + wᵀxᵢ,   q = 1 or 2

One sum of shortfalls covers classification (one side: p = 1, σ = y = ±1) and regression (two sides: p = ±y − ε, σ =
±1). The intercept w₀·bias is penalised like every other weight, as in LIBLINEAR. With u(α) = Σ ασ(bias, x) the dual is

    D(α) = Σ pα − ½‖u(α)‖² − [q = 2] Σ α²/(4c),      0 ≤ α  (and α ≤ c if q = 1),

a box: no constraint ties the variables together, so that every clipped α gives a bound.

Crammer and Singer's joint problem of all classes, its dual, and the gap between the two.

    P(W) = ½ Σₖ ‖wₖ‖² + Σᵢ cᵢ max_k (1[k ≠ yᵢ] + zᵢₖ − zᵢ,yᵢ),     zᵢₖ = wₖᵀ(bias, xᵢ)

    D(α) = −½ ‖U(α)‖² − Σᵢ Σ_{k≠yᵢ} αᵢₖ,     U(α) = Σᵢ (bias, xᵢ) ⊗ αᵢ,     Σₖ αᵢₖ = 0,   αᵢₖ ≤ cᵢ 1[k = yᵢ]

One simplex per row, and no constraint ties the rows together, so that every α is soon made feasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray
from ...data.blocks import Block, Blocks, map_reduce, unsigned
from ...risk.objective import relative_gap
from ...risk.shortfall import weighted_gram
from ...solvers.systems.moments import add_in_place
from ._kernels import back_project_rows, project_rows, row_squares


class DualPair(NamedTuple):
    """A primal and a dual point, with what they prove."""

    w: Array  #: (1 + d,), the intercept's weight first
    alpha: Array  #: (sides, n)
    primal: float
    dual: float
    gap: float  #: (P − D)/max(D, 1e-8·P₀)
    n_iter: int = 0


@dataclass(frozen=True)
class MarginTask:
    """Rows in memory with their shortfalls.

    Attributes
    ----------
    blocks : Blocks
        The rows x.
    sign, offset : (sides, n) arrays
        σ and p.
    cost : (n,) array
        c.
    bias : float
        The constant in front of the rows; 0 without an intercept.
    squared : bool
        q = 2.
    n_jobs : int or None
        Threads.
    """

    blocks: Blocks
    sign: Array
    offset: Array
    cost: Array
    bias: float
    squared: bool
    n_jobs: int | None = None

    @cached_property
    def start_value(self) -> float:
        """P(0)."""
        return float((self.cost * np.maximum(self.offset, 0.0) ** self.power).sum())

    @property
    def power(self) -> int:
        """Q."""
        return 2 if self.squared else 1

    @property
    def width(self) -> int:
        """Length of w."""
        return self.blocks.n_columns + 1

    @cached_property
    def upper(self) -> Array:
        """The box's upper ends, (sides, n)."""
        return np.broadcast_to(np.inf if self.squared else self.cost, self.sign.shape).copy()

    @cached_property
    def ridge(self) -> Array:
        """What the squared loss adds to the curvature of a dual variable, (sides, n): 1/(2c)."""
        return np.broadcast_to(0.5 / self.cost if self.squared else 0.0, self.sign.shape).copy()

    @cached_property
    def row_norms(self) -> Array:
        """‖(bias, x)‖² of every row."""
        out = np.empty(self.blocks.n_rows)

        def statistic(block: Block) -> int:
            X = block.X
            place = out[block.start : block.start + block.X.shape[0]]
            if self.blocks.sparse:
                row_squares(X.data, unsigned(X.indptr), place)
            else:
                np.einsum("ij,ij->i", X, X, out=place)
            return 0

        map_reduce(self.blocks, statistic, _first, n_jobs=self.n_jobs)
        return out + self.bias**2

    def scores(self, w: Array) -> Array:
        """Return z of every row."""
        out = np.empty(self.blocks.n_rows)
        weights = np.ascontiguousarray(w[1:])

        def statistic(block: Block) -> int:
            X = block.X
            z = out[block.start : block.start + block.X.shape[0]]
            if self.blocks.sparse:
                project_rows(X.data, unsigned(X.indices), unsigned(X.indptr), weights, 0.0, z)
            else:
                np.matmul(X, weights, out=z)
            return 0

        map_reduce(self.blocks, statistic, _first, n_jobs=self.n_jobs)
        return out + self.bias * w[0]

    def back_project(self, r: Array) -> Array:
        """Return Σ rᵢ(bias, xᵢ)."""

        def statistic(block: Block) -> Array:
            X = block.X
            part = r[block.start : block.start + block.X.shape[0]]
            total = np.zeros(self.width)
            total[0] = self.bias * part.sum()
            if self.blocks.sparse:  # SciPy's transpose would copy the block
                back_project_rows(X.data, unsigned(X.indices), unsigned(X.indptr), part, total[1:])
            else:
                total[1:] = X.T @ part
            return total

        return map_reduce(self.blocks, statistic, add_in_place, n_jobs=self.n_jobs)

    def gram(self, weight: Array) -> Array:
        """Return Σ wᵢ (bias, xᵢ)(bias, xᵢ)ᵀ; rows of weight zero cost nothing."""

        def statistic(block: Block) -> Array:
            return weighted_gram(block.X, weight[block.start : block.start + block.X.shape[0]], self.bias)

        return map_reduce(self.blocks, statistic, add_in_place, n_jobs=self.n_jobs)

    def loss(self, scores: Array) -> float:
        """Return Σ c (p − σz)₊^q."""
        short = np.maximum(self.offset - self.sign * scores, 0.0)
        return float((self.cost * (short * short if self.squared else short)).sum())

    def weights_of(self, alpha: Array) -> Array:
        """Return u(α)."""
        return self.back_project((alpha * self.sign).sum(axis=0))

    def dual_value(self, alpha: Array, u: Array) -> float:
        """Return D(α) for u = u(α)."""
        value = float((self.offset * alpha).sum()) - 0.5 * float(u @ u)
        return value - 0.5 * float((self.ridge * alpha * alpha).sum()) if self.squared else value

    def pair(self, alpha: Array, w: Array | None = None, n_iter: int = 0) -> DualPair:
        """Clip α into the box and return what it proves about w (about u(α), if None)."""
        alpha = np.clip(alpha, 0.0, self.upper)
        if len(alpha) == 2:  # a row misses on one side only; what both sides have in common only lowers D
            alpha = alpha - alpha.min(axis=0)
        u = self.weights_of(alpha)
        w = u if w is None else w
        primal = 0.5 * float(w @ w) + self.loss(self.scores(w))
        return self.judged(w, alpha, primal, self.dual_value(alpha, u), n_iter)

    def judged(self, w: Array, alpha: Array, primal: float, dual: float, n_iter: int) -> DualPair:
        """Put a pair together with its relative gap."""
        return DualPair(w, alpha, primal, dual, relative_gap(primal, dual, self.start_value), n_iter)


def better(a: DualPair | None, b: DualPair, start_value: float) -> DualPair:
    """Return the better primal point with the better dual point: each stands on its own."""
    if a is None:
        return b
    primal = a if a.primal < b.primal else b
    dual = a if a.dual > b.dual else b
    gap = relative_gap(primal.primal, dual.dual, start_value)
    return DualPair(primal.w, dual.alpha, primal.primal, dual.dual, gap, b.n_iter)


def _first(a: int, b: int) -> int:
    return a


@dataclass(frozen=True)
class JointTask:
    """Rows in memory with their classes.

    Attributes
    ----------
    blocks : Blocks
        The rows x.
    y : (n,) array of int
        Class codes.
    n_classes : int
        K.
    cost : (n,) array
        c.
    bias : float
        The constant in front of the rows; 0 without an intercept.
    n_jobs : int or None
        Threads.
    """

    blocks: Blocks
    y: NDArray[np.int64]
    n_classes: int
    cost: Array
    bias: float
    n_jobs: int | None = None

    @property
    def width(self) -> int:
        """Length of one w."""
        return self.blocks.n_columns + 1

    @cached_property
    def start_value(self) -> float:
        """P(0)."""
        return float(self.cost.sum())

    @cached_property
    def own(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the rows' own classes stand in (n, K)."""
        return np.arange(len(self.y)), self.y

    @cached_property
    def upper(self) -> Array:
        """The upper ends of α, (n, K)."""
        out = np.zeros((len(self.y), self.n_classes))
        out[self.own] = self.cost
        return out

    @cached_property
    def row_norms(self) -> Array:
        """‖(bias, x)‖² of every row."""
        X = self.blocks.joined().X
        out = np.empty(len(self.y))
        if self.blocks.sparse:
            row_squares(X.data.astype(np.float64, copy=False), unsigned(X.indptr), out)
        else:
            np.einsum("ij,ij->i", X, X, out=out)
        return out + self.bias**2

    def scores(self, W: Array) -> Array:
        """Return z, (n, K)."""
        out = np.empty((len(self.y), W.shape[1]))

        def statistic(block: Block) -> int:
            out[block.start : block.start + block.X.shape[0]] = block.X @ W[1:] + self.bias * W[0]
            return 0

        map_reduce(self.blocks, statistic, min, n_jobs=self.n_jobs)
        return out

    def weights_of(self, alpha: Array) -> Array:
        """Return U(α), (1 + d, K)."""

        def statistic(block: Block) -> Array:
            part = alpha[block.start : block.start + block.X.shape[0]]
            return np.vstack([self.bias * part.sum(axis=0), block.X.T @ part])

        return np.ascontiguousarray(map_reduce(self.blocks, statistic, add_in_place, n_jobs=self.n_jobs))

    def loss(self, scores: Array) -> float:
        """Return Σ c max_k (1[k ≠ y] + zₖ − z_y)."""
        others = scores + 1.0
        others[self.own] -= 1.0
        return float(self.cost @ (others.max(axis=1) - scores[self.own]))

    def feasible(self, alpha: Array) -> Array:
        """Return the point with these αₖ, k ≠ y, where they are negative; rows that are too long are shortened."""
        others = np.minimum(alpha, 0.0)
        others[self.own] = 0.0
        total = -others.sum(axis=1)
        share = np.where(total > self.cost, self.cost / np.maximum(total, 1e-300), 1.0)
        others *= share[:, None]
        others[self.own] = np.minimum(-others.sum(axis=1), self.cost)
        return others

    def dual_value(self, alpha: Array, U: Array) -> float:
        """Return D(α) for U = U(α)."""
        return float(alpha[self.own].sum()) - 0.5 * float((U * U).sum())

    def pair(self, alpha: Array, W: Array | None = None, n_iter: int = 0) -> DualPair:
        """Make α feasible and return what it proves about W (about U(α), if None)."""
        alpha = self.feasible(alpha)
        U = self.weights_of(alpha)
        W = U if W is None else W
        primal = 0.5 * float((W * W).sum()) + self.loss(self.scores(W))
        dual = self.dual_value(alpha, U)
        return DualPair(W, alpha, primal, dual, relative_gap(primal, dual, self.start_value), n_iter)


def joint_task(blocks: Any, n_classes: int, C: float, bias: float, n_jobs: int | None = None) -> JointTask:
    """Return the problem of rows in memory."""
    _, y, weight = blocks.joined()
    cost = C * (np.ones(blocks.n_rows) if weight is None else weight)
    return JointTask(blocks, np.asarray(y, dtype=np.int64), n_classes, cost, bias, n_jobs)
