r"""Logistic regression with an L1 or elastic net penalty, by proximal Newton steps on the coordinate descent engine.

    P(W, b) = C Σᵢ sᵢ ℓ(yᵢ, b + W(xᵢ − x̄)) + λ₁‖W‖₁ + ½λ₂‖W‖²

A step minimises the penalised quadratic model of P; the intercepts are eliminated from it exactly (a Schur complement).
Working sets keep the models small: rounds on few columns, then a look at all of them.

The duality gap is that of the risk (`risk/classes.py`): the model's own probabilities, mixed with a constant
distribution until they obey the intercept's constraint, and shrunk until |V| ≤ λ₁.

Reference: J. Lee, Y. Sun and M. Saunders, Proximal Newton-type methods for minimizing composite functions, SIAM J.
Optimization 24, 2014.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from ...core import Array, NDArray, Progress, no_progress, one_thread_blas
from ...data.blocks import Block, Blocks, Part, map_reduce
from ...risk.classes import ClassRisk, ClassSums, Penalties
from ...risk.objective import relative_gap
from ...solvers.composite.coordinate import GramQuadratic, Penalty
from ...solvers.composite.proximal_newton import CompositePoint, proximal_newton, quadratic_minimum
from ...solvers.problem import Evaluation
from .columns import BinaryModel, Columns, SoftmaxModel, column_newton, recentre_rows
from .tall import tall_newton

# columns of the first working set, at least, and as a share of all
_FIRST = 50
_FIRST_SHARE = 50
_FEW = 10  # dense columns that may always enter
_GROWTH = 2  # times the working set that may enter at once
_MOST_THINNED = 1500  # coefficients for which a problem with few of the rows gives the start
_THIN = 16  # rows a coefficient of a thinned problem
_FEWEST_THINNED = 4096  # rows of a thinned problem, at least
_ROUGH = 0.01  # gap to which it is solved
_EARLY = 0.05  # share of the gap to which a working problem is solved while columns enter
_MOST_ROUNDS = 60  # rounds of working sets: a guard against a cycle that rounding might make
_MOST_GRAM = 2000  # coefficients for which a Hessian is formed
_EPSILON = float(np.finfo(np.float64).eps)
_DEVIATIONS = 12.0  # of a sum of rounding errors: what is claimed is checked with 8
_POLISH = 3  # Newton steps for the intercepts
_CHUNK = 2**19  # numbers of extended precision at a time
# rounding of the gap at least, and of the loss at zero
_FLOOR = 1e-13
_OF_NULL = 3e-13
# C/C_min from which smaller C come first, their ratio, their gap
_NEAR = 100.0
_STEP = 10.0
_LOOSE = 0.1


class SparseSolution(NamedTuple):
    """Where the solver stopped."""

    theta: Array  #: (n_scores, 1 + d)
    value: float  #: relative duality gap
    n_iter: int
    at: Evaluation  #: the likelihood at θ


class Composite:
    """P as a likelihood, which has no penalty of its own, and the penalty."""

    rounding = 1e-12

    def __init__(self, likelihood: ClassRisk, C: float, l1: float, l2: float) -> None:
        self.likelihood = likelihood
        self.C = C
        self.l1 = l1
        self.l2 = l2
        self.penalty = Penalties(C, l1, l2)

    def value(self, theta: Array, at: Evaluation) -> float:
        """Return P."""
        return self.C * at.value + self.penalty.of(theta[:, 1:])

    def gap(self, theta: Array, at: Evaluation) -> tuple[float, float]:
        """Return P − D and its relative size, (P − D)/max(D, 1e-8·P₀)."""
        return self.likelihood.penalised_gap(theta, at, self.penalty)

    def at(self, x: Array) -> CompositePoint:
        """Evaluate P; the detail is the likelihood's evaluation."""
        at = self.likelihood.evaluate(x)
        theta = x.reshape(self.likelihood.shape)
        return CompositePoint(x, self.value(theta, at), *self.gap(theta, at), at)

    def model_minimum(self, point: CompositePoint) -> Array:
        """Return the minimiser of the quadratic model of P at θ, intercepts eliminated."""
        problem = self.likelihood
        C = self.C
        at = point.detail
        H = C * problem.hessian(point.x)
        g = C * at.gradient
        free = np.arange(problem.n_scores) * problem.width
        kind = GramQuadratic if problem.n_scores == 1 else partial(_SoftmaxQuadratic, problem.n_scores)
        return self._minimum(H, g, point.x, free, C * at.value, point.gap, kind)

    def step(self, H: Array, gradient: Array, x: Array, loss: float, gap: float) -> Array:
        """Return the step to the minimiser of the model in an intercept and some coefficients x (1 + k,) of one score.

        `H`, `gradient` and `loss` are those of the likelihood there, and `gap` is P − D.
        """
        C = self.C
        return self._minimum(C * H, C * gradient, x, np.zeros(1, dtype=np.intp), C * loss, gap, GramQuadratic) - x

    def _minimum(
        self, H: Array, g: Array, x: Array, free: NDArray[np.intp], loss: float, gap: float, kind: Any
    ) -> Array:
        # The model's gap falls with the square of what is left to do, that of the likelihood in proportion to it.
        goal = max(0.01 * gap * min(1.0, gap / max(loss, 1e-300)), 1e-16 * loss)
        bound = np.delete(np.arange(len(g)), free)
        w = x[bound]
        inverse: Any = np.zeros((len(free),) * 2)
        if self.likelihood.intercept:
            inverse = np.linalg.pinv(H[np.ix_(free, free)], rcond=1e-12)
        cross = inverse @ H[np.ix_(free, bound)]
        reduced = H[np.ix_(bound, bound)] - H[np.ix_(bound, free)] @ cross
        penalty = Penalty(np.full(len(w), self.l1), np.full(len(w), self.l2))
        v = quadratic_minimum(reduced, g[bound] - cross.T @ g[free], w, loss, penalty, goal=goal, model=kind)
        new = x.copy()
        new[bound] = v
        new[free] -= inverse @ g[free] + cross @ (v - w)
        return new

    def restricted(self, columns: NDArray[np.intp]) -> Composite:
        """Return the problem in some columns."""
        problem = self.likelihood
        parts = [Part(_take(part.X, columns), part.y, part.weight) for part in problem.blocks.parts]
        some = _some_sums(problem.sums, columns)
        inner = ClassRisk.of(Blocks(parts), some, np.inf, intercept=problem.intercept, n_jobs=problem.n_jobs)
        return Composite(inner, self.C, self.l1, self.l2)

    def thinned(self, stride: int) -> Composite | None:
        """Return the problem on every `stride`-th row, penalised in proportion to the noise of its slopes."""
        inner = self.likelihood.thinned(stride)
        return None if inner is None else Composite(inner, self.C, self.l1 * float(np.sqrt(stride)), self.l2)


def proven(composite: Composite, found: SparseSolution, tol: float) -> float:
    """Return the relative gap; computed afresh in more digits where rounding in 53 may be above `tol`.

    With a large C the slopes are differences of large numbers, and must be below λ₁ for a dual point: rounded slopes
    may seem to be, which another order of summation would not confirm.
    """
    blocks = composite.likelihood.blocks
    if blocks.in_memory and _rounding_of_gap(composite, found.theta, found.at, tol) > tol:
        return _long_gap(composite, found.theta)
    return found.value


def _long_gap(composite: Composite, theta: Array) -> float:
    """Return the relative gap from sums in extended precision, with the dual point of the best intercept."""
    problem = composite.likelihood
    C = composite.C
    here = theta.astype(np.longdouble)
    loss, slopes, curvature = _long_sums(problem, here)
    primal = C * float(loss) + composite.penalty.of(theta[:, 1:])
    for _ in range(_POLISH if problem.intercept else 0):
        here[:, 0] -= np.linalg.lstsq(curvature.astype(float), slopes[:, 0].astype(float))[0]
        loss, slopes, curvature = _long_sums(problem, here)
    best = here.astype(float)
    rounded = slopes.astype(float)
    gap, relative = problem.penalised_gap(best, Evaluation(float(loss), rounded, 0.0), composite.penalty)
    dual = C * float(loss) + composite.penalty.of(theta[:, 1:]) - gap
    null = C * float(problem.sums.weight.sum()) * float(np.log(len(problem.sums.weight)))
    return max(relative, relative_gap(primal, dual, null))


def _long_sums(problem: ClassRisk, theta: Any) -> tuple[Any, Any, Any]:
    """Return loss, slopes and the curvature by the intercepts, in extended precision."""
    X, y, weight = problem.blocks.joined()
    K = problem.n_classes
    n = X.shape[0]
    width = problem.width
    loss = np.longdouble(0)
    slopes = np.zeros(theta.shape, dtype=np.longdouble)
    curvature = np.zeros((len(theta), len(theta)), dtype=np.longdouble)
    step = max(1, _CHUNK // width)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        part = X[rows].toarray() if problem.sparse else X[rows]
        Z = np.column_stack([np.ones(part.shape[0]), part.astype(np.longdouble) - problem.sums.centre])
        s = np.ones(len(Z)) if weight is None else weight[rows]
        z = Z @ theta.T
        z = np.column_stack([0 * z[:, 0], z[:, 0]]) if len(theta) == 1 else z
        z = z - z.max(axis=1, keepdims=True)
        e = np.exp(z)
        total = e.sum(axis=1, keepdims=True)
        own = np.eye(K)[np.asarray(y)[rows]]
        loss += s @ (np.log1p(total[:, 0] - 1) - (own * z).sum(axis=1))
        p = e / total
        r = (s[:, None] * (p - own))[:, -len(theta) :]
        p = p[:, -len(theta) :]
        slopes += r.T @ Z
        curvature += np.diag(s @ p) - p.T @ (s[:, None] * p)
    if not problem.intercept:
        slopes[:, 0] = 0
    return loss, slopes, curvature


def _rounding_of_gap(composite: Composite, theta: Array, at: Evaluation, tol: float) -> float:
    """Return how much rounding may change the relative gap; a bound from sums where that is at most `tol` already."""
    problem = composite.likelihood
    P = composite.value(theta, at)
    sums = problem.sums
    null = composite.C * float(sums.weight.sum()) * float(np.log(len(sums.weight)))
    size = max(P - composite.gap(theta, at)[0], 1e-8 * null)
    floor = _FLOOR + _OF_NULL * null / size

    def of_slopes(noise: Array) -> float:
        """Return what errors of the slopes, (K, d), do to the better of the two dual points."""
        blur = _DEVIATIONS * _EPSILON * composite.C * noise
        scaled = float(blur.max(initial=0.0)) / composite.l1 * min(1.0, P / size)
        return scaled if composite.l2 == 0 else min(scaled, 0.5 * float((blur * blur).sum()) / (composite.l2 * size))

    W = theta[:, 1:]
    b = theta[:, 0] - W @ sums.centre
    spread = np.sqrt(sums.square + float(sums.weight.sum()) * sums.centre**2)
    heaviest = 1.0 if problem.weight is None else float(np.max(problem.weight))
    longest = np.sqrt(heaviest) * (1.0 + float((np.abs(W) @ spread + np.abs(b)).max(initial=0.0)))
    if problem.blocks.in_memory and floor + of_slopes(longest * np.tile(spread, (len(W), 1))) <= tol:
        return tol

    def statistic(block: Block) -> Array:
        X = block.X
        s = np.ones(block.X.shape[0]) if block.weight is None else block.weight
        z = np.asarray(X @ W.T + b)
        z = np.column_stack([np.zeros(len(z)), z[:, 0]]) if len(W) == 1 else z
        p = softmax(z, axis=1)
        terms = (np.asarray(abs(X) @ np.abs(W).T) + np.abs(b)).max(axis=1, keepdims=True)
        slope = np.abs(p - np.eye(p.shape[1])[np.asarray(block.y)])
        # A score is off by its last digit; so then is the slope, in proportion to the curvature.
        blur = s[:, None] * (slope + p * (1.0 - p) * terms)
        return np.asarray((X * X).T @ (blur * blur)).T

    return floor + of_slopes(np.sqrt(map_reduce(problem.blocks, statistic, np.add, n_jobs=problem.n_jobs)))


def _take(X: Any, columns: NDArray[np.intp]) -> Any:
    return X[:, columns] if hasattr(X, "indptr") else np.take(X, columns, axis=1)


@one_thread_blas()
@np.errstate(over="ignore", invalid="ignore")  # an extrapolation that diverges is refused by its value
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
    if is_tall(problem):
        return _solve_tall(composite, theta, start is None, tol=tol, max_iter=max_iter, progress=progress)
    if start is None and problem.n_scores * d <= _MOST_THINNED:
        theta = _rough_start(composite, theta)
    if (d <= _FIRST and not problem.sparse) or not problem.blocks.in_memory:
        start_point = composite.at(theta.ravel())
        found, n_iter, _ = proximal_newton(composite, start_point, tol=tol, max_iter=max_iter, progress=progress)
        return SparseSolution(found.x.reshape(problem.shape), found.relative, n_iter, found.detail)
    rounds = _Rounds(composite, theta, max_iter, progress)
    for C in rounds.approach():
        rounds.solve(Composite(problem, C, composite.l1, composite.l2), _LOOSE)
    value = rounds.solve(composite, tol)
    return SparseSolution(rounds.theta, value, rounds.n_iter, rounds.at)


def is_tall(problem: ClassRisk) -> bool:
    """Tell whether there are two classes and so many dense rows that Hessians of some of them do."""
    enough = problem.blocks.n_rows >= 4 * max(_FEWEST_THINNED, _THIN * problem.width)
    few = problem.n_scores == 1 and problem.width <= _MOST_THINNED
    return few and enough and problem.blocks.in_memory and not problem.sparse


def _solve_tall(
    composite: Composite, theta: Array, rough: bool, *, tol: float, max_iter: int, progress: Progress
) -> SparseSolution:
    """Solve on few of the rows, on more of them, then on all."""
    n = composite.likelihood.blocks.n_rows
    rows = max(_FEWEST_THINNED, _THIN * theta.size)
    if rough and (few := composite.thinned(n // rows)) is not None:
        theta = tall_newton(few, theta, _grown, tol=_ROUGH, max_iter=20).theta
    found = tall_newton(composite, theta, _grown, tol=tol, max_iter=max_iter, progress=progress)
    return SparseSolution(found.theta, found.value, found.n_iter, found.at)


class _Rounds:
    """Rounds on working sets: solve in few columns, look at all of them, add the steepest."""

    def __init__(self, composite: Composite, theta: Array, max_iter: int, progress: Progress) -> None:
        self.composite = composite
        self.problem = composite.likelihood
        self.theta = theta
        self.at = self.problem.evaluate(theta.ravel())
        self.max_iter = max_iter
        self.progress = progress
        self.columns = np.zeros(0, dtype=np.intp)
        self.n_iter = 0
        self.stopped = False
        self.working: Any = None  # the rows in the working columns, as the solver wants them
        self.by_columns = _by_columns(self.problem.blocks) if self.problem.sparse else None

    def approach(self) -> list[float]:
        """Return smaller values of C to begin with: far from zero the support is hard to find at once."""
        composite = self.composite
        slopes = self.at.gradient.reshape(self.theta.shape)[:, 1:]
        ratio = composite.C * float(np.abs(slopes).max(initial=0.0)) / composite.l1
        if self.theta[:, 1:].any() or ratio <= _NEAR:
            return []
        number = 1 + int(np.log(ratio) / np.log(_STEP))
        return (composite.C * np.geomspace(_STEP / ratio, 1.0, number)[:-1]).tolist()

    def solve(self, composite: Composite, tol: float) -> float:
        """Go on until the relative gap is at most `tol`; return it."""
        idle = 0
        for _ in range(_MOST_ROUNDS):
            value = composite.gap(self.theta, self.at)[1]
            if value <= tol or self.n_iter >= self.max_iter or self.stopped or idle > 1:
                break
            columns = _grown(composite, self.theta, self.at, self.columns)
            same = np.array_equal(columns, self.columns)
            if not same:
                self.columns = columns
                self.working = None
            # The working problem need not be solved far beyond what the columns outside allow.
            spent = self._solve_working(composite, 0.2 * tol if same else max(0.2 * tol, _EARLY * value))
            idle = idle + 1 if same and spent == 0 else 0
            self.n_iter += spent
            self.at = self.problem.evaluate(self.theta.ravel())
        return value

    def _solve_working(self, composite: Composite, goal: float) -> int:
        """Solve in the working columns; return the steps taken."""
        columns = self.columns
        done = self.n_iter
        inner = np.column_stack([self.theta[:, :1], self.theta[:, 1 + columns]])

        def progress(step: int, reached: float) -> bool:
            return self.progress(done + step, reached)

        most = self.max_iter - done
        if self.by_columns is None and inner.size <= _MOST_GRAM:
            if self.working is None:
                self.working = composite.restricted(columns).likelihood
            small = Composite(self.working, composite.C, composite.l1, composite.l2)
            found, spent, self.stopped = proximal_newton(
                small, small.at(inner.ravel()), tol=goal, max_iter=most, progress=progress
            )
            inner = found.x.reshape(inner.shape)
        else:
            inner, spent, self.stopped = self._by_columns(composite, inner, goal, most, progress)
        self.theta = np.zeros(self.problem.shape)
        self.theta[:, 0] = inner[:, 0]
        self.theta[:, 1 + columns] = inner[:, 1:]
        return spent

    def _by_columns(
        self, composite: Composite, inner: Array, goal: float, most: int, progress: Progress
    ) -> tuple[Array, int, bool]:
        """Solve without a Hessian matrix; dense columns are centred first."""
        problem = self.problem
        columns = self.columns
        sums = _some_sums(problem.sums, columns)
        X, y, _ = problem.blocks.joined()
        if self.working is None and self.by_columns is not None:
            self.working = Columns(self.by_columns[:, columns])
        elif self.working is None:
            self.working = Columns(sp.csc_array(X[:, columns] - sums.centre))
        if self.by_columns is None:
            sums = sums._replace(centre=np.zeros(len(columns)))
        chosen = self.working
        weight = np.asarray(problem.weight)
        free = problem.intercept
        model: BinaryModel | SoftmaxModel
        if problem.n_scores == 1:
            model = BinaryModel(chosen, np.asarray(y), weight, free)
        else:
            model = SoftmaxModel(chosen, np.asarray(y), weight, problem.n_classes, free)
        found = column_newton(
            model, chosen, inner, sums, composite.penalty, intercept=free, tol=goal, max_iter=most, progress=progress
        )
        return found.theta, found.n_iter, found.stopped


def _by_columns(blocks: Blocks) -> Any:
    """Return sparse rows as float64 columns."""
    X = blocks.joined().X if blocks.by_columns is None else blocks.by_columns
    return sp.csc_array(X, dtype=np.float64)


def _some_sums(sums: ClassSums, columns: NDArray[np.intp]) -> ClassSums:
    return ClassSums(sums.weight, sums.x[:, columns], sums.square[columns], sums.centre[columns])


def _grown(composite: Composite, theta: Array, at: Evaluation, columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the working columns and the steepest others: those that are too steep, up to a multiple of the set."""
    slopes = at.gradient.reshape(theta.shape)[:, 1:]
    steepness = np.abs(composite.C * slopes + composite.l2 * theta[:, 1:]).max(axis=0)
    d = len(steepness)
    inside = np.asarray(theta[:, 1:].any(axis=0))
    by_hessian = not composite.likelihood.sparse and inside.any()
    if not by_hessian:
        inside[columns] = True
    steepness[inside] = -np.inf
    present = int(np.count_nonzero(inside))
    wrong = int(np.count_nonzero(steepness > composite.l1))
    if by_hessian:  # which costs the square of the set: what became zero leaves it
        number = min(d - present, max(_FEW, min(wrong, present)))
    else:
        first = max(_FIRST, d // _FIRST_SHARE)
        number = min(d - present, max(first - present, min(wrong, max(first, _GROWTH * present))))
    if number > 0:
        inside[np.argpartition(-steepness, number - 1)[:number]] = True
    return np.flatnonzero(inside)


def _rough_start(composite: Composite, theta: Array) -> Array:
    """Return the optimum of a problem with few of the rows, where there are many."""
    problem = composite.likelihood
    rows = max(_FEWEST_THINNED, _THIN * theta.size)
    if problem.blocks.n_rows < 4 * rows:
        return theta
    thinned = composite.thinned(problem.blocks.n_rows // rows)
    if thinned is None:
        return theta
    return proximal_newton(thinned, thinned.at(theta.ravel()), tol=_ROUGH, max_iter=20)[0].x.reshape(theta.shape)


class _SoftmaxQuadratic(GramQuadratic):
    """The model of a softmax: a common shift of a feature's coefficients changes its penalty alone."""

    def __init__(self, n_classes: int, *args: Any) -> None:
        super().__init__(*args)
        self.n_classes = n_classes

    def epochs(self, penalty: Penalty, n_epochs: int, floor: float) -> float:
        """Visit every coordinate, then shift."""
        largest = super().epochs(penalty, n_epochs, floor)
        rows = np.ascontiguousarray(self.W.reshape(self.n_classes, -1).T)
        recentre_rows(rows, float(penalty.l1[0]), float(penalty.l2[0]))
        self.W[:, 0] = rows.T.ravel()
        return largest
