r"""What every model of the form ½ρ‖w‖² + c Σᵢ sᵢ ℓ(yᵢ, zᵢ), z = b + (x − centre)ᵀw, shares: sweeps over blocks of rows.

A problem is a function of θ = (b, w) for each of its scores. Its evaluation leaves the curvature of each row's loss in
`state`, from which the Hessian, and products with it, follow. Of rows beyond memory no state is kept; it is computed
again where it is needed. Statistics of blocks are methods, so that they pickle, without the rows, to other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block, Blocks, map_reduce
from ..solvers.problem import Evaluation
from ..solvers.systems.moments import dense_products, sparse_products

Array = NDArray[np.float64]

TILE_ROWS = 2048
FIRST_ROWS = 1024  # enough for a provisional mean
_DIGIT = 2.0**-53
_ROUNDED = 1e-13  # share of its terms' size below which a gradient may be rounding

#: The tolerance that nobody asked for. Its type tells it from a number that somebody did, which may well be 1e-8 too.
DEFAULT_TOLERANCE = np.float64(1e-8)

#: Share of an explicit tolerance that the gradient may have: another solver may land anywhere below the tolerance.
GRADIENT_MARGIN = 0.1


def is_explicit(tol: float) -> bool:
    """Tell whether a tolerance was given: the gradient then counts as well as the gap, as in scikit-learn."""
    return not (isinstance(tol, np.float64) and tol == DEFAULT_TOLERANCE)


class ScoreProblem:
    """A penalised sum of losses of linear scores; a subclass says what the loss is.

    A subclass defines `evaluate`, `_sweep_into` (loss and gradient of a block; writes the rows' curvature), `thinned`,
    `on_rows` and `curvature_bound`.

    Parameters
    ----------
    blocks : Blocks
        Rows with targets and weights.
    centre : (d,) array
        What is subtracted from every row; of sparse rows, implicitly.
    cost, penalty : float
        c and ρ.
    intercept : bool
        Whether b is free or zero.
    n_scores : int
        How many scores a row has.
    state_width : int
        Numbers kept for each row: 1, or one for each class.
    """

    def __init__(
        self,
        blocks: Blocks,
        centre: Array,
        cost: float,
        penalty: float,
        *,
        intercept: bool,
        n_jobs: int | None = None,
        n_scores: int = 1,
        state_width: int = 1,
    ) -> None:
        self.blocks, self.centre, self.intercept, self.n_jobs = blocks, centre, intercept, n_jobs
        self.cost, self.penalty, self.n_scores, self.state_width = cost, penalty, n_scores, state_width
        self.width = blocks.n_columns + 1
        self.shape = (n_scores, self.width)
        self.sparse = blocks.sparse
        self.weight: Array | None = None
        self.state: Array | None = None
        if blocks.in_memory:
            weight = blocks.joined().weight if blocks.parts[0].weight is not None else None
            self.weight = np.ones(blocks.n_rows) if weight is None else weight
            self.state = np.empty(self._state_shape(blocks.n_rows))
        self.at: Array | None = None  # where the state was computed
        self.gradient_unit = np.inf  # solvers stop when, beside the proven measure, max|g|/unit is at most `tol`
        self.blur = 0.0  # what rounding of the gradient may add to a relative gap, its square, at the last evaluation
        self.proven = np.inf  # the measure that a certificate states, at the last evaluation

    def certified(self, x: Array) -> float:
        """Return the measure of optimality at x that a certificate states."""
        if self.at is None or not np.array_equal(self.at, x):
            self.evaluate(x)
        return max(self.proven, self.blur)

    def _stopping_measure(self, proven: float, gradient: Array, size: Array, value: float) -> float:
        """Return the larger of the proven measure and the gradient in its unit, where it is more than rounding.

        A gap of ε leaves coefficients known to √ε only; a gradient of ε, to ε. `size` is what the terms of each
        entry of the gradient can add up to.
        """
        self.proven = proven
        if self.penalty > 0 and value > 0:
            with np.errstate(over="ignore"):
                self.blur = float(np.sum((_DIGIT * size) ** 2)) / (2 * self.penalty) / value
        if np.isinf(self.gradient_unit):
            return proven
        g = np.abs(gradient).ravel()
        return max(proven, float(np.max(np.where(g > _ROUNDED * size.ravel(), g, 0.0))) / self.gradient_unit)

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without the rows."""
        return self.__dict__ | {"blocks": None}

    def evaluate(self, x: Array) -> Evaluation:
        """Return the value, its gradient and the measure of optimality."""
        raise TypeError(f"{type(self).__name__} does not define evaluate")

    def thinned(self, stride: int) -> ScoreProblem | None:
        """Return the problem on every `stride`-th row, with the weights scaled up; None if that has no solution."""
        raise TypeError(f"{type(self).__name__} does not define thinned")

    def on_rows(self, X: Array) -> ScoreProblem:
        """Return the problem with other columns: X holds the rows in other coordinates, already centred."""
        raise TypeError(f"{type(self).__name__} does not define on_rows")

    def curvature_bound(self) -> Array:
        """Return (about) an upper bound on the Hessian's diagonal, by which coordinates are scaled."""
        raise TypeError(f"{type(self).__name__} does not define curvature_bound")

    def hessian(self, x: Array) -> Array:
        """Return the Hessian as a matrix, in the order of θ."""
        self._ensure_state(x)
        statistic = partial(self._curvature, theta=x.reshape(self.shape))
        H = self.cost * map_reduce(self.blocks, statistic, np.add, n_jobs=self.n_jobs)
        penalised = np.full(self.shape, self.penalty)
        penalised[:, 0] = 0.0
        H.flat[:: len(H) + 1] += penalised.ravel()
        if not self.intercept:
            fixed = np.arange(self.n_scores) * self.width
            H[fixed] = H[:, fixed] = 0.0
            H[fixed, fixed] = 1.0
        return H

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """Return v ↦ Hv, at the cost of one gradient a product."""
        self._ensure_state(x)
        state = None if self.state is None else self.state.copy()
        theta = x.reshape(self.shape)

        def product(v: Array) -> Array:
            V = v.reshape(self.shape)
            if not self.intercept:
                V = V * np.r_[0.0, np.ones(self.width - 1)]
            statistic = partial(self._curvature_product, theta=theta, state=state, V=V)
            out = self.cost * map_reduce(self.blocks, statistic, np.add, n_jobs=self.n_jobs)
            out[:, 1:] += self.penalty * V[:, 1:]
            out[:, 0] = out[:, 0] if self.intercept else v.reshape(self.shape)[:, 0]
            return out.ravel()

        return product

    def _sweep(self, block: Block, theta: Array) -> Any:
        """Return the loss of a block and its gradient; leaves the rows' curvature in `state`."""
        return self._sweep_into(block, theta, *self._rows(block))

    def _sweep_into(self, block: Block, theta: Array, weight: Array, state: Array) -> Any:
        raise TypeError(f"{type(self).__name__} does not define _sweep_into")

    def _rows(self, block: Block) -> tuple[Array, Array]:
        """Return the weights of a block's rows, and where their curvature belongs."""
        m = block.X.shape[0]
        if self.weight is None or self.state is None:
            return np.ones(m) if block.weight is None else block.weight, np.empty(self._state_shape(m))
        place = slice(block.start, block.start + m)
        return self.weight[place], self.state[place]

    def _rows_at(self, block: Block, theta: Array, state: Array | None = None) -> tuple[Array, Array]:
        """Return the weights of a block's rows and their curvature at θ: what `state` holds, or computed again."""
        weight, own = self._rows(block)
        if self.state is None:
            self._sweep_into(block, theta, weight, own)
            return weight, own
        return weight, own if state is None else state[block.start : block.start + block.X.shape[0]]

    def _state_shape(self, n_rows: int) -> tuple[int, ...]:
        return (n_rows,) if self.state_width == 1 else (n_rows, self.state_width)

    def _curvature(self, block: Block, theta: Array) -> Array:
        """Return Σ s ℓ″ (1, x − centre)(1, x − centre)ᵀ of one block."""
        return self._second_moment(block, self._rows_at(block, theta)[1])

    def _second_moment(self, block: Block, weight: Array) -> Array:
        weighted = Block(block.X, None, weight, block.start)
        nothing = np.zeros(0)
        if not self.sparse:
            return dense_products(weighted, self.centre, nothing)
        M = sparse_products(weighted, self.centre, nothing)
        shift = np.eye(len(M))
        shift[1:, 0] = -self.centre  # (1, x − c) = shift · (1, x)
        return shift @ M @ shift.T

    def _curvature_product(self, block: Block, theta: Array, state: Array | None, V: Array) -> Array:
        out = np.zeros(self.shape)
        at = self._rows_at(block, theta, state)[1]
        for rows, X in self._tiles(block):
            out += self._back_project(X, self._scores(X, V) * at[rows][:, None])
        return out

    def _tiles(self, block: Block) -> Iterator[tuple[slice, Any]]:
        """Yield some rows of the block, and their centred (or sparse, as it is) X."""
        m = block.X.shape[0]
        step = m if self.sparse else TILE_ROWS
        for start in range(0, m, step):
            rows = slice(start, min(start + step, m))
            yield rows, block.X if self.sparse else block.X[rows] - self.centre

    def _scores(self, X: Any, theta: Array) -> Array:
        w = theta[:, 1:]
        if self.sparse:
            return np.ascontiguousarray(X @ w.T + (theta[:, 0] - w @ self.centre))
        return np.asarray(X @ w.T + theta[:, 0])

    def _back_project(self, X: Any, r: Array) -> Array:
        """Return Σ r ⊗ (1, x − centre)."""
        out = np.empty(self.shape)
        out[:, 0] = r.sum(axis=0)
        if self.sparse:
            out[:, 1:] = (X.T @ r).T - np.outer(out[:, 0], self.centre)
        else:
            out[:, 1:] = r.T @ X
        return out

    def _ensure_state(self, x: Array) -> None:
        if self.state is None and self.at is not None:
            return  # nothing is kept that could be stale
        if self.at is None or not np.array_equal(self.at, x):
            self.evaluate(x)


def add_sums(a: Any, b: Any) -> Any:
    """Add two sequences of sums, term by term."""
    return type(a)(p + q for p, q in zip(a, b, strict=True))
