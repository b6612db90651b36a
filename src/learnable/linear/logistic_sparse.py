r"""Logistic regression with an L1 or elastic net penalty, by proximal Newton steps on the coordinate descent engine.

    P(W, b) = C Σᵢ sᵢ ℓ(yᵢ, b + W(xᵢ − x̄)) + λ₁‖W‖₁ + ½λ₂‖W‖²

A step minimises the penalised quadratic model of P; the intercepts are eliminated from it exactly (a Schur complement).
Working sets keep the models small: rounds on few columns, then a look at all of them.

For class probabilities u with Σᵢ sᵢ(uᵢ − e_{yᵢ}) = 0 and slopes V = C Σᵢ sᵢ (uᵢ − e_{yᵢ}) ⊗ (xᵢ − x̄), and for any
0 ≤ τ ≤ 1, the dual value at e + τ(u − e) is at least τ·CΣᵢsᵢH(uᵢ) − Ω*(τV), because the entropy H is concave and zero
at e. The model's own probabilities are mixed with a constant distribution until they obey the constraint; the better of
τ = 1 and the largest τ with τ|V| ≤ λ₁ counts.

Reference: J. Lee, Y. Sun and M. Saunders, Proximal Newton-type methods for minimizing composite functions, SIAM J.
Optimization 24, 2014.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.run import Progress, no_progress
from ..core.threads import one_thread_blas
from ..data.blocks import Block, Blocks, Part
from ..solvers.coordinate import GramQuadratic, Penalty, descend
from ..solvers.moments import sparse_products
from ..solvers.problem import Evaluation
from .likelihood import ClassSums, LogisticProblem

Array = NDArray[np.float64]

_FIRST = 50  # columns of the first working set
_MOST_THINNED = 1500  # coefficients for which a problem with few of the rows gives the start
_THIN = 16  # rows a coefficient of a thinned problem
_FEWEST_THINNED = 4096
_ROUGH = 0.01
_MOST_ROUNDS = 60


class SparseSolution(NamedTuple):
    """Where the solver stopped."""

    theta: Array  #: (n_scores, 1 + d)
    value: float  #: relative duality gap
    n_iter: int


class Composite:
    """P as a likelihood, which has no penalty of its own, and the penalty."""

    def __init__(self, likelihood: LogisticProblem, C: float, l1: float, l2: float) -> None:
        self.likelihood, self.C, self.l1, self.l2 = likelihood, C, l1, l2

    def value(self, theta: Array, at: Evaluation) -> float:
        """Return P."""
        w = theta[:, 1:]
        return self.C * at.value + self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float((w * w).sum())

    def gap(self, theta: Array, at: Evaluation) -> tuple[float, float]:
        """Return P − D and its relative size, (P − D)/max(D, 1e-8·P₀)."""
        problem, C = self.likelihood, self.C
        sums = problem.sums
        slopes = at.gradient.reshape(problem.shape)
        total = float(sums.weight.sum())
        V, members = slopes[:, 1:], sums.x[1:] if problem.n_scores == 1 else sums.x
        entropy = at.value - float((slopes * theta).sum())
        if problem.intercept:
            excess = np.array([-slopes[0, 0], slopes[0, 0]]) if problem.n_scores == 1 else slopes[:, 0]
            share = excess / np.maximum(sums.weight + excess, 1e-300)
            mix = min(1.0, float(share.max(initial=0.0)) * (1 + 1e-9))
            if mix > 0:
                v = np.maximum(mix * (sums.weight + excess) - excess, 0.0)
                v /= v.sum()
                own = -total * float(np.sum(v * np.log(np.maximum(v, 1e-300))))
                entropy, V = (1 - mix) * entropy + mix * own, (1 - mix) * V - mix * members
        V = C * np.abs(V)
        most = min(1.0, self.l1 / max(float(V.max(initial=0.0)), 1e-300))
        dual = most * C * entropy
        if self.l2 > 0:
            free = C * entropy - 0.5 * float((np.maximum(V - self.l1, 0.0) ** 2).sum()) / self.l2
            dual = max(dual, free)
        gap = max(0.0, self.value(theta, at) - dual)
        return gap, gap / max(dual, 1e-8 * C * total * float(np.log(problem.n_classes)))

    def restricted(self, columns: NDArray[np.intp]) -> Composite:
        """Return the problem in some columns."""
        problem = self.likelihood
        parts = [Part(_take(part.X, columns), part.y, part.weight) for part in problem.blocks.parts]
        sums = problem.sums
        some = ClassSums(sums.weight, sums.x[:, columns], sums.square[columns], sums.centre[columns])
        blocks = Blocks(parts)
        inner = _WorkingLikelihood(blocks, some, np.inf, intercept=problem.intercept, n_jobs=problem.n_jobs)
        return Composite(inner, self.C, self.l1, self.l2)

    def thinned(self, stride: int) -> Composite | None:
        """Return the problem on every `stride`-th row."""
        inner = self.likelihood.thinned(stride)
        return None if inner is None else Composite(inner, self.C, self.l1, self.l2)


class _WorkingLikelihood(LogisticProblem):
    """The likelihood in working columns, of which there may be thousands: its Hessian is centred in O(k²)."""

    def _second_moment(self, block: Block, weight: Array) -> Array:
        if not self.sparse:
            return super()._second_moment(block, weight)
        M = sparse_products(Block(block.X, None, weight, block.start), self.centre, np.zeros(0))
        if self.centre.any():
            first = M[0].copy()
            first[1:] -= self.centre * first[0]  # Σ s (1, x − c)
            M[1:, 1:] -= np.outer(self.centre, M[0, 1:]) + np.outer(first[1:], self.centre)
            M[0], M[:, 0] = first, first
        return M


def _take(X: Any, columns: NDArray[np.intp]) -> Any:
    return X[:, columns] if hasattr(X, "indptr") else np.ascontiguousarray(X[:, columns])


@one_thread_blas()
def solve_sparse(
    composite: Composite,
    start: Array | None,
    *,
    tol: float,
    max_iter: int,
    progress: Progress = no_progress,
) -> SparseSolution:
    """Minimise P by proximal Newton steps on working sets, from `start` (n_scores, 1 + d)."""
    problem = composite.likelihood
    theta = np.zeros(problem.shape) if start is None else start.copy()
    d = problem.width - 1
    if start is None and problem.n_scores * d <= _MOST_THINNED:
        theta = _rough_start(composite, theta)
    if d <= _FIRST or not problem.blocks.in_memory:
        theta, at, n_iter, _ = proximal_newton(composite, theta, tol=tol, max_iter=max_iter, progress=progress)
        return SparseSolution(theta, composite.gap(theta, at)[1], n_iter)
    at = problem.evaluate(theta.ravel())
    n_iter, columns, stopped = 0, np.zeros(0, dtype=np.intp), False
    for _ in range(_MOST_ROUNDS):
        value = composite.gap(theta, at)[1]
        if value <= tol or n_iter >= max_iter or stopped:
            break
        columns = _grown(composite, theta, at, columns)
        small = composite.restricted(columns)
        inner = np.column_stack([theta[:, :1], theta[:, 1 + columns]])
        # The working problem need not be solved far beyond what the columns outside allow.
        goal = max(0.2 * tol, 0.02 * value)
        inner, _, spent, stopped = proximal_newton(
            small, inner, tol=goal, max_iter=max_iter - n_iter,
            progress=lambda step, reached, done=n_iter: progress(done + step, reached),  # type: ignore[misc]
        )  # fmt: skip
        n_iter += spent
        theta = np.zeros(problem.shape)
        theta[:, 0], theta[:, 1 + columns] = inner[:, 0], inner[:, 1:]
        at = problem.evaluate(theta.ravel())
    return SparseSolution(theta, composite.gap(theta, at)[1], n_iter)


def _grown(composite: Composite, theta: Array, at: Evaluation, columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the columns in use and the steepest others, twice as many as there are coefficients."""
    slopes = at.gradient.reshape(theta.shape)[:, 1:]
    steepness = np.abs(composite.C * slopes + composite.l2 * theta[:, 1:]).max(axis=0)
    support = np.flatnonzero(theta[:, 1:].any(axis=0))
    steepness[support] = np.inf
    wrong = int(np.count_nonzero(steepness > composite.l1))
    number = min(len(steepness), max(_FIRST, 2 * len(support), min(wrong, 2 * len(columns))))
    chosen = np.argpartition(-steepness, number - 1)[:number]
    return np.unique(np.concatenate([chosen, support]))


def _rough_start(composite: Composite, theta: Array) -> Array:
    """Return the optimum of a problem with few of the rows, where there are many."""
    problem = composite.likelihood
    rows = max(_FEWEST_THINNED, _THIN * theta.size)
    if problem.blocks.n_rows < 4 * rows:
        return theta
    thinned = composite.thinned(problem.blocks.n_rows // rows)
    return theta if thinned is None else proximal_newton(thinned, theta, tol=_ROUGH, max_iter=20)[0]


def proximal_newton(
    composite: Composite, theta: Array, *, tol: float, max_iter: int, progress: Progress = no_progress
) -> tuple[Array, Evaluation, int, bool]:
    """Return θ with a gap of at most `tol`, its evaluation, the steps taken, and whether it was told to stop."""
    problem = composite.likelihood
    at = problem.evaluate(theta.ravel())
    n_iter, stopped = 0, False
    while n_iter < max_iter and not stopped:
        gap, value = composite.gap(theta, at)
        if value <= tol:
            break
        direction = _model_minimum(composite, theta, at, gap) - theta
        taken = _line_search(composite, theta, at, direction)
        if taken is None:
            break
        theta, at = taken
        n_iter += 1
        stopped = progress(n_iter, value)
    return theta, at, n_iter, stopped


def _model_minimum(composite: Composite, theta: Array, at: Evaluation, gap: float) -> Array:
    """Return the minimiser of the quadratic model of P at θ, intercepts eliminated."""
    problem, C = composite.likelihood, composite.C
    H = C * problem.hessian(theta.ravel())
    g = C * at.gradient
    free = np.arange(problem.n_scores) * problem.width
    bound = np.delete(np.arange(len(g)), free)
    w = theta.ravel()[bound]
    inverse = np.linalg.pinv(H[np.ix_(free, free)], rcond=1e-12) if problem.intercept else np.zeros((len(free),) * 2)
    cross = inverse @ H[np.ix_(free, bound)]
    reduced = H[np.ix_(bound, bound)] - H[np.ix_(bound, free)] @ cross
    slope = g[bound] - cross.T @ g[free]
    product = reduced @ w
    c = product - slope
    # ½‖b − Aw‖² = C·loss at w: the model's own dual then measures the gap in the units of P.
    square = float(w @ (c + c - product)) + 2.0 * C * at.value
    model = GramQuadratic(np.ascontiguousarray(reduced), c[:, None], square, w[:, None])
    penalty = Penalty(np.full(len(w), composite.l1), np.full(len(w), composite.l2))
    # The model's gap falls with the square of what is left to do, that of the likelihood in proportion to it.
    goal = 0.01 * gap * min(1.0, gap / max(C * at.value, 1e-300))
    descend(model, penalty, goal=max(goal, 1e-16 * C * at.value), max_epochs=500)
    new = theta.ravel().copy()
    new[bound] = model.W[:, 0]
    new[free] -= inverse @ g[free] + cross @ (model.W[:, 0] - w)
    return new.reshape(theta.shape)


def _line_search(
    composite: Composite, theta: Array, at: Evaluation, direction: Array
) -> tuple[Array, Evaluation] | None:
    """Halve the step until P falls, or, where the fall drowns in rounding, until the gap does."""
    here, gap = composite.value(theta, at), composite.gap(theta, at)[0]
    length = 1.0
    for _ in range(30):
        point = theta + length * direction
        new = composite.likelihood.evaluate(point.ravel())
        value = composite.value(point, new)
        if value < here - 1e-12 * abs(here) or (
            value <= here + 1e-12 * abs(here) and composite.gap(point, new)[0] < 0.9 * gap
        ):
            return point, new
        length /= 2
    return None
