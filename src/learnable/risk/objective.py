r"""An empirical risk: a loss, a penalty and rows, joined into one function of the weights.

    P(θ) = c Σᵢ sᵢ V(yᵢ, zᵢ) + Ω(w),      z = b + (x − centre)ᵀw,      θ = (b, w) for each score

`Risk(loss, penalty, rows)` takes an object of `risk.losses`, one of `risk.penalties` and blocks of rows, in memory, in
files or on Dask. It gives the value, the gradient, the Hessian and products with it, a feasible dual point and the gap.
The engines in `solvers` work on it and know neither loss nor penalty.

With the slopes u = ∂V/∂z, every u with Σ s u = 0 (if b is free) and Ω* finite at v = −c Σ s u (x − centre) bounds the
optimum from below by D(u) = −c Σ s V*(y, u) − Ω*(v). The slopes at θ are moved by their mean, and shrunk until Ω* is
finite.

The class itself is the definition, in NumPy. Where a compiled sweep over the rows is measurably faster, a subclass with
that sweep is registered for a loss with half a squared norm (`FUSED`), and `Risk(loss, …)` makes one. The plain class
is its test oracle.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from ..core import Array, resolve
from ..data.blocks import Block, Blocks, Part, map_reduce
from ..data.memory import part_memory
from ..solvers.problem import Evaluation
from ..solvers.systems.moments import centred_products, dense_products, provisional_mean, sparse_products
from .penalties import L2Penalty

#: Losses whose sums over rows are compiled: where the subclass of `Risk` lives. Processor time of a sweep over 10⁵ rows
#: of 30 columns, compiled and plain, on one thread: logistic 4.2 and 9.2 ms, softmax of three classes 11 and 30 ms, the
#: deviances of power 1 and 1.5, gap included, 5.0 and 8.9 ms, 7.7 and 10.1 ms.
FUSED: dict[str, str] = {
    "LogisticLoss": "learnable.risk.classes:ClassRisk",
    "SoftmaxLoss": "learnable.risk.classes:ClassRisk",
    "DevianceLoss": "learnable.risk.deviance:DevianceRisk",
}
TILE_ROWS = 2048  # rows whose scores and slopes stay in the cache between the two products
FIRST_ROWS = 1024  # enough for a provisional mean
_DIGIT = 2.0**-53  # relative rounding of one operation
_ROUNDED = 1e-13  # share of its terms' size below which a gradient may be rounding
_SHARES = np.array(
    [1.0, 1 - 1e-12, 1 - 1e-9, 1 - 1e-6, 1 - 1e-3, 0.5, 0.0]
)  # of a dual point, the best of which counts
_HALVINGS = 60  # of the search for a dual point in the domain of the penalty's conjugate
_DEPENDENT = 1e-13  # share of the largest eigenvalue, of unit-norm columns, that rounding leaves of a zero
_MOST_KEPT = 2**16  # numbers of a table, half a megabyte, that is kept a second time about its centre
_MOST_COLUMNS = 2000  # for which the null space of the columns is computed


class Risk:
    """A penalised sum of losses of linear scores.

    Parameters
    ----------
    loss : ConvexLoss
        V; with a curvature where Newton's method is to be used.
    penalty : Penalty
        Ω, of the weights without the intercept; with a gradient where the risk is to be smooth.
    rows : Blocks
        Rows with targets, as the loss defines them, and weights s.
    cost : float, optional
        c; by default 1/Σs, so that the risk is a mean.
    intercept : bool
        Whether b is free or zero.
    centre : (d,) array, optional
        What is subtracted from every row, of sparse rows implicitly; by default their weighted mean if b is free.
    n_jobs : int or None
        Threads.
    n_scores : int
        How many scores a row has: one for each class where the loss has rows of scores.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.data.blocks import Blocks, Part
    >>> from learnable.risk import HuberLoss, L2Penalty, Risk
    >>> from learnable.solvers import newton
    >>> rows = Blocks([Part(np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([0.0, 1.0, 2.0, 0.0]), None)])
    >>> risk = Risk(HuberLoss(), L2Penalty(0.01), rows)
    >>> found = newton(risk, np.zeros(2), tol=1e-8)
    >>> found.converged, found.measure < 1e-8
    (True, True)
    """

    _kept: tuple[Array, Array] | None = None  # the rows of a small table about a centre, and that centre

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the fused subclass where one is registered for the loss; a copy from another process is what it was."""
        loss, penalty = (*args, None, None)[:2]
        fused = FUSED.get(type(loss).__name__) if cls is Risk and isinstance(penalty, L2Penalty) else None
        chosen: Any = resolve(fused) if fused else cls
        made: Self = super().__new__(chosen)
        return made

    @classmethod
    def plain(cls, *args: Any, **kwargs: Any) -> Risk:
        """Return the risk by its definition, whatever is registered for the loss."""
        made = object.__new__(Risk)
        Risk.__init__(made, *args, **kwargs)
        return made

    def __init__(
        self,
        loss: Any,
        penalty: Any,
        rows: Blocks,
        *,
        cost: float | None = None,
        intercept: bool = True,
        centre: Array | None = None,
        n_jobs: int | None = None,
        n_scores: int = 1,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.blocks = rows
        self.intercept = intercept
        self.n_jobs = n_jobs
        self.n_scores = n_scores
        self.name = secrets.token_hex(8)  # of what workers remember
        self.strength = float(penalty.strength) if isinstance(penalty, L2Penalty) else 0.0  # ρ of ½ρ‖w‖²
        self.width = rows.n_columns + 1
        self.shape = (n_scores, self.width)
        self.sparse = rows.sparse
        self.centre = self._mean() if centre is None else centre
        self.weight: Array | None = None
        self.state: Array | None = None  # curvature of the rows' losses where they were last evaluated
        if rows.in_memory:
            weight = rows.joined().weight if rows.parts[0].weight is not None else None
            self.weight = np.ones(rows.n_rows) if weight is None else weight
            self.state = np.empty(self._state_shape(rows.n_rows))
        self.cost = 1.0 / self.moments[0] if cost is None else float(cost)
        self.at: Array | None = None  # where the state was computed
        self.gradient_unit = np.inf  # solvers stop when, beside the proven measure, max|g|/unit is at most `tol`
        self.proven = np.inf  # the measure that a certificate states, at the last evaluation
        self._measured: tuple[Array, float] = np.zeros(0), 0.0  # there: sizes of the gradient's terms, and the value

    # --- what the engines ask ---

    def evaluate(self, x: Array) -> Evaluation:
        """Return P, its gradient, and the relative duality gap (P − D)/max(D, 1e-8·P₀)."""
        theta = x.reshape(self.shape)
        loss, slopes = self.sweep(theta)
        w = theta[:, 1:]
        gradient = self.cost * slopes
        gradient[:, 1:] += self.penalty.gradient(w) if hasattr(self.penalty, "gradient") else 0.0
        if not self.intercept:
            gradient[:, 0] = 0.0
        value = self.cost * loss + self.penalty.value(w)
        total, _, squares = self.moments
        size = self.cost * np.tile(np.sqrt(total * np.r_[total, squares]), self.n_scores)
        if isinstance(self.penalty, L2Penalty) and self.strength == 0.0:  # no gap is finite
            measure = float(np.max(np.abs(gradient).ravel() / np.where(size > 0, size, 1.0)))
        else:
            measure = relative_gap(value, self.dual_value(theta, slopes), self.null_value)
        return Evaluation(value, gradient.ravel(), self._stopping_measure(measure, gradient, size, value))

    def value(self, x: Array) -> float:
        """Return P."""
        theta = x.reshape(self.shape)
        return self.cost * float(self.sweep(theta)[0]) + float(self.penalty.value(theta[:, 1:]))

    def sweep(self, theta: Array) -> tuple[float, Array]:
        """Return Σ s V and Σ s u ⊗ (1, x − centre) at θ; leaves the rows' curvature in `state`."""
        found = map_reduce(self.blocks, partial(self._sweep, theta=theta), add_sums, n_jobs=self.n_jobs)
        self.at = theta.ravel().copy()
        return found[0], found[1]

    def dual_value(self, theta: Array, slopes: Array) -> float:
        """Return D at the best of a few feasible points near the slopes of the losses at θ.

        Moving the slopes by their mean may take some out of the domain of V*; a share of all of them lies in it.
        """
        total, first, _ = self.moments
        shift = slopes[:, 0] / total if self.intercept else np.zeros(self.n_scores)
        v = -self.cost * (slopes[:, 1:] - np.outer(shift, first))
        shares = share_in_domain(self.penalty, v) * _SHARES
        statistic = partial(self._conjugates, theta=theta, shift=shift, shares=shares)
        conjugates = map_reduce(self.blocks, statistic, np.add, n_jobs=self.n_jobs)
        of_penalty = np.array([self.penalty.conjugate(share * v) for share in shares])
        return float(np.max(-self.cost * conjugates - of_penalty))

    def thinned(self, stride: int) -> Risk | None:
        """Return the risk on every `stride`-th row, with the weights scaled up; None if that has no solution."""
        return self._of_few(self.blocks.every(stride))

    def _of_few(self, rows: Part) -> Risk:
        """Return the risk on some of the rows, with the weights scaled up."""
        X, y, weight = rows
        weight = np.ones(X.shape[0]) if weight is None else weight
        weight = weight * (self.moments[0] / weight.sum())
        # Few rows, many parameters: small blocks for all threads. One centre for both, so that θ means the same.
        return self._like(Blocks([Part(X, y, weight)], rows=TILE_ROWS), self.centre)

    def on_rows(self, X: Array) -> Risk:
        """Return the risk with other columns: X holds the rows in other coordinates, already centred."""
        part = self.blocks.joined()
        return self._like(Blocks([Part(X, part.y, part.weight)]), np.zeros(X.shape[1]))

    def curvature_bound(self) -> Array:
        """Return (about) an upper bound on the Hessian's diagonal, by which coordinates are scaled."""
        smoothness = self.loss.smoothness
        bend = smoothness if np.isfinite(smoothness) else 1.0
        bound = bend * self.cost * np.r_[self.moments[0], self.moments[2]] + self.strength
        return np.tile(np.where(bound > 0, bound, 1.0), self.n_scores)

    def minimum_norm(self, x: Array) -> Array:
        """Return the parameters with the same scores on every row and the smallest ‖w‖.

        Without a penalty, columns that depend on each other leave w undetermined along the null space of the centred
        rows, and where a solver stops there depends on the solver.
        """
        if self.width - 1 > _MOST_COLUMNS:
            return x
        null = _null_space(self.gram()[1:, 1:])
        if not null.shape[1]:
            return x
        theta = x.reshape(self.shape).copy()
        for _ in range(2):  # the second time removes the rounding of the first
            theta[:, 1:] -= (theta[:, 1:] @ null) @ null.T
        return theta.ravel()

    def gram(self) -> Array:
        """Return Σ s (1, x − centre)(1, x − centre)ᵀ."""
        return np.asarray(map_reduce(self.blocks, self._gram, np.add, n_jobs=self.n_jobs))

    @cached_property
    def moments(self) -> tuple[float, Array, Array]:
        """Σ s, Σ s (x − centre) and Σ s (x − centre)² of all rows."""
        total, first, second = map_reduce(self.blocks, self._moments_of, add_sums, n_jobs=self.n_jobs)
        return float(total), first, second

    @cached_property
    def null_value(self) -> float:
        """P₀, the value at θ = 0."""
        at_zero = map_reduce(self.blocks, partial(self._losses, theta=np.zeros(self.shape)), np.add, n_jobs=self.n_jobs)
        return self.cost * float(at_zero)

    def certified(self, x: Array) -> float:
        """Return the measure of optimality at x that a certificate states."""
        if self.at is None or not np.array_equal(self.at, x):
            self.evaluate(x)
        return max(self.proven, self.blur)

    @property
    def blur(self) -> float:
        """What rounding of the gradient may add to a relative gap, its square, at the last evaluation."""
        size, value = self._measured
        if not (self.strength > 0 and value > 0):
            return 0.0
        with np.errstate(over="ignore"):
            rounding = float(np.sum((_DIGIT * size) ** 2)) / (2 * self.strength)
        unit = max(value, 1e-8 * self.null_value, self.finest_loss())  # what the gap is a share of
        return min(rounding, value) / unit  # losses are never negative: no fit is better by more than P

    def _stopping_measure(self, proven: float, gradient: Array, size: Array, value: float) -> float:
        """Return the larger of the proven measure and the gradient in its unit, where it is more than rounding.

        A gap of ε leaves coefficients known to √ε only; a gradient of ε, to ε. `size` is what the terms of each
        entry of the gradient can add up to.
        """
        self.proven = proven
        self._measured = size, value
        if np.isinf(self.gradient_unit):
            return proven
        g = np.abs(gradient).ravel()
        return max(proven, float(np.max(np.where(g > _ROUNDED * size.ravel(), g, 0.0))) / self.gradient_unit)

    def finest_loss(self) -> float:
        """Return a loss below which a fit counts as exact; where only P₀ sets the scale, zero."""
        return 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without the rows."""
        return self.__dict__ | {"blocks": None, "_kept": None}

    def hessian(self, x: Array) -> Array:
        """Return the Hessian as a matrix, in the order of θ."""
        self._ensure_state(x)
        statistic = partial(self._curvature, theta=x.reshape(self.shape))
        H: Array = self.cost * map_reduce(self.blocks, statistic, np.add, n_jobs=self.n_jobs)
        penalised = np.zeros(self.shape)
        penalised[:, 1:] = self._bend_of_penalty(x)
        H.flat[:: len(H) + 1] += penalised.ravel()
        if not self.intercept:
            fixed = np.arange(self.n_scores) * self.width
            H[fixed] = H[:, fixed] = 0.0
            H[fixed, fixed] = 1.0
        return H

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """Return v ↦ Hv, at the cost of one gradient per product."""
        self._ensure_state(x)
        state = None if self.state is None else self.state.copy()
        theta = x.reshape(self.shape)
        bend = self._bend_of_penalty(x)

        def product(v: Array) -> Array:
            V = v.reshape(self.shape)
            if not self.intercept:
                V = V * np.r_[0.0, np.ones(self.width - 1)]
            statistic = partial(self._curvature_product, theta=theta, state=state, V=V)
            out: Array = self.cost * map_reduce(self.blocks, statistic, np.add, n_jobs=self.n_jobs)
            out[:, 1:] += bend * V[:, 1:]
            out[:, 0] = out[:, 0] if self.intercept else v.reshape(self.shape)[:, 0]
            return out.ravel()

        return product

    def _bend_of_penalty(self, x: Array) -> Any:
        """Return the second derivatives of Ω by each weight, a number where they are all the same."""
        if self.strength or not hasattr(self.penalty, "curvature"):
            return self.strength
        return self.penalty.curvature(x.reshape(self.shape)[:, 1:])

    def _sweep(self, block: Block, theta: Array) -> Any:
        """Return the loss of a block and its gradient; leaves the rows' curvature in `state`."""
        return self._sweep_into(block, theta, *self._rows(block))

    def _sweep_into(self, block: Block, theta: Array, weight: Array, state: Array) -> Any:
        loss = 0.0
        out = np.zeros(self.shape)
        for rows, X in self._tiles(block):
            y = np.asarray(block.y)[rows]
            z = self._scores_for_loss(X, theta)
            slopes = self.loss.gradient(y, z).reshape(len(y), -1)
            loss += float(weight[rows] @ self.loss.value(y, z))
            out += self._back_project(X, weight[rows][:, None] * slopes)
            if hasattr(self.loss, "curvature"):
                state[rows] = weight[rows] * self.loss.curvature(y, z)
        return [loss, out]

    def _scores_for_loss(self, X: Any, theta: Array) -> Array:
        """Return the scores as the loss takes them: one number per row, or a row of them."""
        z = self._scores(X, theta)
        return z[:, 0] if self.n_scores == 1 else z

    def _losses(self, block: Block, theta: Array) -> float:
        weight = self._rows(block)[0]
        return sum(
            float(weight[rows] @ self.loss.value(np.asarray(block.y)[rows], self._scores_for_loss(X, theta)))
            for rows, X in self._tiles(block)
        )

    def _conjugates(self, block: Block, theta: Array, shift: Array, shares: Array) -> Array:
        """Return Σ s V*(y, share·(u − shift)) of a block for each share, u the slopes of its losses at θ."""
        weight = self._rows(block)[0]
        total = np.zeros(len(shares))
        for rows, X in self._tiles(block):
            y = np.asarray(block.y)[rows]
            u = self.loss.gradient(y, self._scores_for_loss(X, theta))
            moved = u - (shift if u.ndim > 1 else shift[0])
            total += [float(weight[rows] @ self.loss.conjugate(y, share * moved)) for share in shares]
        return total

    def _mean(self) -> Array:
        """Return the weighted mean of the rows, zero without an intercept."""
        if not self.intercept:
            return np.zeros(self.width - 1)
        first = provisional_mean(self.blocks.head().X[:FIRST_ROWS]) if not self.sparse else np.zeros(self.width - 1)
        self.centre = first
        total, moved, _ = map_reduce(self.blocks, self._moments_of, add_sums, n_jobs=self.n_jobs)
        return np.asarray(first + moved / total)

    def _moments_of(self, block: Block) -> list[Any]:
        weight = np.ones(block.X.shape[0]) if block.weight is None else block.weight
        total = 0.0
        first = np.zeros(self.width - 1)
        second = np.zeros(self.width - 1)
        for rows, X in self._tiles(block):
            s = weight[rows]
            part = X.T @ s
            square = (X * X).T @ s
            if self.sparse:
                square = square - 2 * self.centre * part + s.sum() * self.centre**2
                part = part - s.sum() * self.centre
            total = total + float(s.sum())
            first = first + part
            second = second + square
        return [total, first, second]

    def _gram(self, block: Block) -> Array:
        return self._second_moment(block, np.ones(block.X.shape[0]) if block.weight is None else block.weight)

    def _like(self, rows: Blocks, centre: Array) -> Risk:
        """Return the same risk of other rows."""
        return type(self)(
            self.loss,
            self.penalty,
            rows,
            cost=self.cost,
            intercept=self.intercept,
            centre=centre,
            n_jobs=self.n_jobs,
            n_scores=self.n_scores,
        )

    def _rows(self, block: Block) -> tuple[Array, Array]:
        """Return the weights of a block's rows, and where their curvature belongs."""
        m = block.X.shape[0]
        if self.weight is None or self.state is None:
            return self._rows_elsewhere(block)[:2]
        place = slice(block.start, block.start + m)
        return self.weight[place], self.state[place]

    def _rows_at(self, block: Block, theta: Array, state: Array | None = None) -> tuple[Array, Array]:
        """Return the weights of a block's rows and their curvature at θ: what `state` holds, or computed again."""
        if self.state is None:
            weight, own, at = self._rows_elsewhere(block)
            if at is None or not np.array_equal(at, theta):
                self._sweep_into(block, theta, weight, own)
                self._remember(block, None)
            return weight, own
        weight, own = self._rows(block)
        return weight, own if state is None else state[block.start : block.start + block.X.shape[0]]

    def _rows_elsewhere(self, block: Block) -> tuple[Array, Array, Array | None]:
        """Return the weights of rows beyond memory, room for their curvature, and the θ that it stands for, if any."""
        memory = part_memory()
        held = {} if memory is None else memory.setdefault("risk", {})
        if held.get("owner") != self.name:
            held.clear()
            held["owner"] = self.name
        if block.start not in held:
            m = block.X.shape[0]
            weight = np.ones(m) if block.weight is None else block.weight
            held[block.start] = [weight, np.empty(self._state_shape(m)), None]
        found: tuple[Array, Array, Array | None] = tuple(held[block.start])
        return found

    def _remember(self, block: Block, theta: Array | None) -> None:
        """Note that the curvature of these rows stands for θ, or for none that the next pass may ask for."""
        memory = part_memory()
        if memory is not None and block.start in memory.get("risk", {}):
            memory["risk"][block.start][2] = None if theta is None else theta.copy()

    def _state_shape(self, n_rows: int) -> tuple[int, ...]:
        """Return the shape of what is kept for the rows: one number each, or one for each score."""
        return (n_rows,) if self.n_scores == 1 else (n_rows, self.n_scores)

    def _curvature(self, block: Block, theta: Array) -> Array:
        """Return Σ s ℓ″ (1, x − centre)(1, x − centre)ᵀ of one block."""
        return self._second_moment(block, self._rows_at(block, theta)[1])

    def _second_moment(self, block: Block, weight: Array) -> Array:
        if (weight < 0).any():  # a loss that is not convex
            return self._second_moment(block, np.maximum(weight, 0.0)) - self._second_moment(
                block, np.maximum(-weight, 0.0)
            )
        centred = self._centred(block)
        if centred is not None:
            return centred_products(centred, weight)
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
        centred = self._centred(block)
        for start in range(0, m, step):
            rows = slice(start, min(start + step, m))
            if centred is not None:
                yield rows, centred[rows]
            else:
                yield rows, block.X if self.sparse else block.X[rows] - self.centre

    def _centred(self, block: Block) -> Array | None:
        """Return X − centre of a small table, which every pass needs; None where it is made tile by tile."""
        blocks = self.blocks  # none in another process
        is_small = blocks is not None and blocks.in_memory and len(blocks) == 1 and block.X.size <= _MOST_KEPT
        if self.sparse or not is_small:
            return None
        if self._kept is None or self._kept[1] is not self.centre:
            self._kept = block.X - self.centre, self.centre
        return self._kept[0]

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


def relative_gap(primal: float, dual: float, null: float) -> float:
    """Return (P − D)/max(D, 1e-8·P₀), at least zero; infinite where D is minus infinity."""
    excess = max(0.0, primal - dual)
    if not np.isfinite(excess):
        return np.inf
    return excess / max(dual, 1e-8 * abs(null), 1e-300) if excess > 0 else 0.0


def share_in_domain(penalty: Any, v: Array) -> float:
    """Return (about) the largest share in [0, 1] of v at which the conjugate of the penalty is finite."""
    if np.isfinite(penalty.conjugate(v)):
        return 1.0
    low = 0.0
    high = 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.isfinite(penalty.conjugate(middle * v)) else (low, middle)
    return low


def add_sums(a: Any, b: Any) -> Any:
    """Add two sequences of sums, term by term."""
    return type(a)(p + q for p, q in zip(a, b, strict=True))


def _null_space(G: Array) -> Array:
    """Return an orthonormal basis (d, k) of the null space."""
    diagonal = np.diag(G)
    scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
    used = np.flatnonzero(scale)
    values, V = np.linalg.eigh(G[np.ix_(used, used)] * np.outer(scale[used], scale[used]))
    kept = values <= _DEPENDENT * len(G) * values.max(initial=0.0)
    dependent = np.zeros((len(G), int(kept.sum())))
    dependent[used] = scale[used, None] * V[:, kept]
    if dependent.size:
        dependent /= np.linalg.norm(dependent, axis=0)
        dependent = np.linalg.qr(dependent)[0]
    return np.column_stack([dependent, np.eye(len(G))[:, scale == 0]])  # a constant column carries no score at all
