r"""The squared shortfall as a smooth problem for Newton's method: sums over blocks of rows, in memory or not.

    P(θ) = ½‖θ‖² + Σᵢ cᵢ vᵢ²,     v = (1 − yz)₊ or (|y − z| − ε)₊,    z = θ₀·bias + wᵀx,   θ = (θ₀, w)

P is piecewise quadratic: Hessian I + 2 Σ_{v>0} c (bias, x)(bias, x)ᵀ. The dual point α = 2cv is feasible wherever θ
is, and there P − D = ½‖∇P‖²: the gradient is the certificate.

One compiled sweep gives loss, gradient and the rows that fall short; the plain `Risk` of the same loss is its reference
(`tests/risk/test_shortfall.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core import Array, NDArray
from ..core.jit import kernel
from ..data.blocks import Block, Blocks, Part, map_reduce, unsigned
from ..solvers.problem import Evaluation
from .losses import SquaredEpsilonInsensitiveLoss, SquaredHingeLoss
from .objective import TILE_ROWS, Risk, add_sums, relative_gap
from .penalties import L2Penalty

Index = NDArray[np.uint32] | NDArray[np.uint64]  # unsigned: no test for negative indices in the loop
Mask = NDArray[np.uint8]


@kernel
def shortfall_point(z: float, y: float, epsilon: float, regression: bool) -> tuple[float, float]:
    """Return by how much a score misses, v = max(0, 1 − yz) or max(0, |z − y| − ε), and dv/dz."""
    if regression:
        r = z - y
        v = abs(r) - epsilon
        return (v, 1.0 if r > 0 else -1.0) if v > 0 else (0.0, 0.0)
    v = 1.0 - y * z
    return (v, -y) if v > 0 else (0.0, 0.0)


@kernel
def squared_dense(
    X: Array,
    y: Array,
    cost: Array,
    w: Array,
    level: float,
    epsilon: float,
    regression: bool,
    slope: Array,
    active: Mask,
) -> tuple[float, float]:
    """Return Σ c v² and Σ 2cv·v′. OUT slope (d,) += Σ 2cv·v′·x; active (n,): whether v > 0. One sweep."""
    n, d = X.shape
    loss = 0.0
    total = 0.0
    for i in range(n):
        row = X[i]
        z = level
        for j in range(d):
            z += row[j] * w[j]
        v, direction = shortfall_point(z, y[i], epsilon, regression)
        active[i] = v > 0
        if v > 0:
            r = 2.0 * cost[i] * v * direction
            for j in range(d):
                slope[j] += r * row[j]
            loss += cost[i] * v * v
            total += r
    return loss, total


@kernel
def squared_sparse(
    data: Array,
    indices: Index,
    indptr: Index,
    y: Array,
    cost: Array,
    w: Array,
    level: float,
    epsilon: float,
    regression: bool,
    slope: Array,
    active: Mask,
) -> tuple[float, float]:
    """Return the same sums for CSR rows."""
    loss = 0.0
    total = 0.0
    for i in range(indptr.size - 1):
        z = level
        for k in range(indptr[i], indptr[i + 1]):
            z += data[k] * w[indices[k]]
        v, direction = shortfall_point(z, y[i], epsilon, regression)
        active[i] = v > 0
        if v > 0:
            r = 2.0 * cost[i] * v * direction
            for k in range(indptr[i], indptr[i + 1]):
                slope[indices[k]] += r * data[k]
            loss += cost[i] * v * v
            total += r
    return loss, total


@kernel
def curvature_sparse(
    data: Array, indices: Index, indptr: Index, weight: Array, v: Array, level: float, z: Array, out: Array
) -> float:
    """Return Σ hz of z = level + xᵀv. OUT z (n,): hz; out (d,) += Σ hz·x; rows of curvature h = 0 are skipped.

    Two loops instead of one: v and out, each as long as a row is wide, take turns in the cache.
    """
    n = indptr.size - 1
    total = 0.0
    for i in range(n):
        z[i] = 0.0
        if weight[i] != 0.0:
            s = level
            for k in range(indptr[i], indptr[i + 1]):
                s += data[k] * v[indices[k]]
            z[i] = weight[i] * s
            total += z[i]
    for i in range(n):
        if z[i] != 0.0:
            s = z[i]
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += s * data[k]
    return total


class Target(NamedTuple):
    """What the scores should reach: labels ±1 of one class against the rest, or numbers within ε."""

    positive: int | None  #: code of the class; None for regression
    epsilon: float = 0.0

    def of(self, y: Any) -> Array:
        """Return a block's targets as numbers."""
        if self.positive is None:
            return np.asarray(y, dtype=np.float64)
        return np.where(np.asarray(y) == self.positive, 1.0, -1.0)

    def start_losses(self, y: Any) -> Array:
        """Return v² at the score zero."""
        return np.maximum(np.abs(self.of(y)) - self.epsilon, 0.0) ** 2


class ShortfallRisk(Risk):
    """P of a squared shortfall with half a squared norm, the intercept penalised like every weight.

    Parameters
    ----------
    loss : SquaredHingeLoss or SquaredEpsilonInsensitiveLoss
        v².
    penalty : L2Penalty
        Of strength one.
    rows : Blocks
        Rows with class codes or numbers, and weights.
    cost : float
        C: cᵢ is C times the weight of the row.
    bias : float
        The constant in front of every row; 0 without an intercept.
    positive : int or None
        The class that counts as +1, where the targets are codes.
    """

    def __init__(
        self,
        loss: Any,
        penalty: Any,
        rows: Any,
        *,
        cost: float = 1.0,
        bias: float = 1.0,
        positive: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        centre = np.zeros(rows.n_columns)
        super().__init__(loss, penalty, rows, cost=cost, intercept=bias != 0.0, centre=centre, n_jobs=n_jobs)
        self.bias = bias
        self.target = Target(positive, getattr(loss, "epsilon", 0.0))
        self.start_value, self._squares = map_reduce(rows, self._scale_of, add_sums, n_jobs=n_jobs)
        # Which rows fall short at the last evaluation, and the Hessian of some earlier set of rows, to be updated.
        self.active = np.zeros(rows.n_rows if rows.in_memory else 0, dtype=np.uint8)
        self._counted: NDArray[np.uint8] | None = None
        self._sum: Array | None = None

    @classmethod
    def of(cls, rows: Any, target: Target, C: float, *, bias: float, n_jobs: int | None = None) -> ShortfallRisk:
        """Return ½‖θ‖² + C Σ s v²."""
        regression = target.positive is None
        loss = SquaredEpsilonInsensitiveLoss(target.epsilon) if regression else SquaredHingeLoss()
        limits: dict[str, Any] = {"positive": target.positive, "n_jobs": n_jobs}
        return cls(loss, L2Penalty(1.0), rows, cost=C, bias=bias, **limits)

    def evaluate(self, x: Array) -> Evaluation:
        """Return P, its gradient and the relative duality gap ½‖∇P‖²/max(P − ½‖∇P‖², 1e-8·P₀)."""
        loss, slope = self.losses(x)
        gradient = x + slope
        if self.bias == 0.0:
            gradient[0] = 0.0
        value = 0.5 * float(x @ x) + loss
        excess = 0.5 * float(gradient @ gradient)
        return Evaluation(value, gradient, relative_gap(value, value - excess, self.start_value))

    def l1_gap(self, x: Array, loss: float, slope: Array) -> tuple[float, float, float]:
        """Return P, P − D and its relative size where ‖x‖₁ stands for half the squared norm; loss, slope from `losses`.

        The dual point is the best feasible multiple of α = 2c·shortfall: |Σ αy(bias, x)| ≤ 1.
        """
        total = max(0.0, 2.0 * loss - float(slope @ x))  # Σα
        value = float(np.abs(x).sum()) + loss
        dual = l1_dual(loss, total, float(np.abs(slope).max()))
        return value, max(0.0, value - dual), relative_gap(value, dual, self.start_value)

    def losses(self, x: Array) -> tuple[float, Array]:
        """Return Σ c v² and its gradient, without the penalty."""
        loss, slope = map_reduce(self.blocks, partial(self._sweep, theta=x), add_sums, n_jobs=self.n_jobs)
        self.at = x.copy()
        return loss, slope

    def hessian(self, x: Array) -> Array:
        """Return the Hessian of P."""
        H = self.curvature(x)
        H.flat[:: len(H) + 1] += 1.0
        return H

    def curvature(self, x: Array) -> Array:
        """Return the Hessian of the losses; in memory, only rows that began or ceased to fall short are summed."""
        self._ensure_active(x)
        if not self.blocks.in_memory:
            return map_reduce(self.blocks, partial(self._curvature, theta=x), np.add, n_jobs=self.n_jobs)
        counted = np.zeros_like(self.active) if self._counted is None else self._counted
        changed = self.active.astype(np.int8) - counted
        if self._sum is not None and np.count_nonzero(changed) < 0.5 * np.count_nonzero(self.active):
            self._sum = self._sum + self._gram_of(changed > 0) - self._gram_of(changed < 0)
        else:
            self._sum = self._gram_of(self.active > 0)
        self._counted = self.active.copy()
        return self._sum.copy()

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """Return v ↦ Hv."""
        self._ensure_active(x)
        active = self.active.copy()
        return lambda v: (
            v
            + map_reduce(
                self.blocks, partial(self._marked_product, x=x, active=active, v=v), np.add, n_jobs=self.n_jobs
            )
        )

    def curvature_bound(self) -> Array:
        """Return an upper bound on the Hessian's diagonal: every row falls short."""
        return np.asarray(1.0 + 2.0 * self.cost * self._squares)

    def thinned(self, stride: int) -> ShortfallRisk:
        """Return the risk on every `stride`-th row, with the costs scaled up."""
        rows = Blocks([Part(*self.blocks.every(stride))])
        return ShortfallRisk.of(rows, self.target, self.cost * stride, bias=self.bias, n_jobs=self.n_jobs)

    def _costs(self, block: Block) -> Array:
        return self.cost * (np.ones(block.X.shape[0]) if block.weight is None else block.weight)

    def _scale_of(self, block: Block) -> tuple[float, Array]:
        """Return P₀ and Σ s (bias, x)² of a block."""
        s = self._costs(block) / self.cost
        X = block.X
        squares = (X.multiply(X).T @ s) if self.sparse else np.einsum("ij,ij,i->j", X, X, s)
        return float(self.cost * (s @ self.target.start_losses(block.y))), np.r_[self.bias**2 * s.sum(), squares]

    def _sweep(self, block: Block, theta: Array) -> tuple[float, Array]:
        return self._sweep_marks(block, theta, self._place(block))

    def _sweep_marks(self, block: Block, x: Array, active: NDArray[np.uint8]) -> tuple[float, Array]:
        y = self.target.of(block.y)
        cost = self._costs(block)
        slope = np.zeros(self.width)
        level = self.bias * x[0]
        w = np.ascontiguousarray(x[1:])
        epsilon = self.target.epsilon
        regression = self.target.positive is None
        if self.sparse:
            X = block.X
            rows = X.data, unsigned(X.indices), unsigned(X.indptr)
            loss, total = squared_sparse(*rows, y, cost, w, level, epsilon, regression, slope[1:], active)
        else:
            loss, total = squared_dense(block.X, y, cost, w, level, epsilon, regression, slope[1:], active)
        slope[0] = self.bias * total
        return loss, slope

    def _place(self, block: Block) -> NDArray[np.uint8]:
        """Return where a block's marks belong."""
        m = block.X.shape[0]
        return self.active[block.start : block.start + m] if len(self.active) else np.empty(m, dtype=np.uint8)

    def _curvature(self, block: Block, theta: Array) -> Array:
        active = np.empty(block.X.shape[0], dtype=np.uint8)
        self._sweep_marks(block, theta, active)
        return weighted_gram(block.X, 2.0 * self._costs(block) * active, self.bias)

    def _gram_of(self, rows: NDArray[np.bool_]) -> Array:
        def statistic(block: Block) -> Array:
            chosen = rows[block.start : block.start + block.X.shape[0]]
            return weighted_gram(block.X, 2.0 * self._costs(block) * chosen, self.bias)

        return map_reduce(self.blocks, statistic, np.add, n_jobs=self.n_jobs)

    def _marked_product(self, block: Block, x: Array, active: NDArray[np.uint8], v: Array) -> Array:
        own = active[block.start : block.start + block.X.shape[0]]
        if not len(active):
            own = np.empty(block.X.shape[0], dtype=np.uint8)
            self._sweep_marks(block, x, own)
        h = 2.0 * self._costs(block) * own
        out = np.zeros(self.width)
        level = self.bias * v[0]
        if self.sparse:
            X = block.X
            rows = X.data, unsigned(X.indices), unsigned(X.indptr)
            out[0] = curvature_sparse(*rows, h, np.ascontiguousarray(v[1:]), level, np.empty(len(h)), out[1:])
        else:
            hz = h * (block.X @ v[1:] + level)
            out[0] = hz.sum()
            out[1:] = block.X.T @ hz
        out[0] *= self.bias
        return out

    def _ensure_active(self, x: Array) -> None:
        if self.blocks.in_memory and (self.at is None or not np.array_equal(self.at, x)):
            self.evaluate(x)


def l1_dual(loss: Any, total: Any, steepest: Any) -> Any:
    """Return D at the best multiple τ of α with τ·steepest ≤ 1: τΣα − τ²·loss, where loss = Σ α²/4c."""
    share = min(1.0 / max(steepest, 1e-300), total / max(2.0 * loss, 1e-300))
    return share * total - share**2 * loss


def weighted_gram(X: Any, weight: Array, bias: float) -> Array:
    """Return Σ wᵢ (bias, xᵢ)(bias, xᵢ)ᵀ over the rows with positive weight."""
    if hasattr(X, "indptr"):
        rows = np.flatnonzero(weight)
        X = X[rows]
        scaled = X * weight[rows][:, None]
        total = np.empty((X.shape[1] + 1,) * 2)
        total[1:, 1:] = (X.T @ scaled).toarray()
        total[0, 1:] = total[1:, 0] = bias * scaled.sum(axis=0)
        total[0, 0] = bias * bias * weight.sum()
        return total
    total = np.zeros((X.shape[1] + 1,) * 2)
    for start in range(0, len(X), TILE_ROWS):
        part = weight[start : start + TILE_ROWS]
        T = X[start : start + TILE_ROWS]
        if not part.all():
            rows = np.flatnonzero(part)
            part = part[rows]
            T = T[rows]
        root = np.sqrt(part)[:, None]
        tile = np.empty((len(T), X.shape[1] + 1))
        tile[:, :1] = bias * root
        np.multiply(T, root, out=tile[:, 1:])
        total += tile.T @ tile
    return total
