r"""Crammer and Singer's joint problem of all classes, its dual, and the gap between the two.

    P(W) = ½ Σₖ ‖wₖ‖² + Σᵢ cᵢ max_k (1[k ≠ yᵢ] + zᵢₖ − zᵢ,yᵢ),     zᵢₖ = wₖᵀ(bias, xᵢ)

    D(α) = −½ ‖U(α)‖² − Σᵢ Σ_{k≠yᵢ} αᵢₖ,     U(α) = Σᵢ (bias, xᵢ) ⊗ αᵢ,     Σₖ αᵢₖ = 0,   αᵢₖ ≤ cᵢ 1[k = yᵢ]

One simplex a row, and no constraint ties the rows together, so that every α is soon made feasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block, Blocks, map_reduce, unsigned
from ..solvers.systems.moments import add_in_place
from ._svm_kernels import row_squares
from .margin import DualPair, relative_gap

Array = NDArray[np.float64]


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
        X, out = self.blocks.joined().X, np.empty(len(self.y))
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
        primal, dual = 0.5 * float((W * W).sum()) + self.loss(self.scores(W)), self.dual_value(alpha, U)
        return DualPair(W, alpha, primal, dual, relative_gap(primal, dual, self.start_value), n_iter)


def joint_task(blocks: Any, n_classes: int, C: float, bias: float, n_jobs: int | None = None) -> JointTask:
    """Return the problem of rows in memory."""
    _, y, weight = blocks.joined()
    cost = C * (np.ones(blocks.n_rows) if weight is None else weight)
    return JointTask(blocks, np.asarray(y, dtype=np.int64), n_classes, cost, bias, n_jobs)
