r"""Working sets for coordinate descent: solve on few columns, look at all, add those that matter.

A round solves the problem in the working columns, then computes Aᵀr of all columns once. That gives a duality gap for
the whole problem and, by the gap-safe rule, columns that are zero in every solution: those with

    τ‖Âⱼᵀr̂‖ + ‖Âⱼ‖ √(2(P − D)) < λ₁ⱼ.

Of the others the closest to the boundary enter, about as many as there are non-zero coefficients. Along a path the
set, its Gram matrix and the coefficients are kept, and the columns with ‖Âⱼᵀr̂‖ ≥ 2λ₁ − λ₁(last) enter at once (the
sequential strong rule: a guess that the next look at all columns checks).

Reference: R. Tibshirani et al., Strong rules for discarding predictors in lasso-type problems, JRSS B 74, 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import Array, NDArray, Progress, no_progress, one_thread_blas
from ...data.blocks import Blocks
from ..systems.moments import Moments, centred_moments
from .coordinate import FLOOR, Gap, GramQuadratic, Penalty, Quadratic, descend, extrapolate, objective, penalised_gap
from .designs import NOISE, DenseDesign, SparseDesign

Rows = NDArray[np.intp]

# columns of the first working set, at least, and as a share of all
_FIRST = 100
_FIRST_SHARE = 100
_GROWTH = 0.5  # times the working set that may enter at once
_SPARE = 1.25  # columns per coefficient that is not zero
_INNER = 0.2  # share of the tolerance to which the working problem is solved in the end
_EARLY = 0.05  # share of the gap to which it is solved before that
_MOST_ROUNDS = 200  # rounds of working sets: a guard against a cycle that rounding might make
_MOST_MOMENTS = 32  # columns for which one pass for all second moments is cheaper than passes for working sets
# the same for so many penalties
_MANY_LOOKS = 20
_MOST_REPEATED = 512
_ROUGH = 0.01  # gap to which a problem with few of the rows is solved
_CLOSE = 0.8  # share of λ₁ from which its columns are taken over


class Design(Protocol):
    """What the working-set solver asks of the data."""

    square: float  #: ‖b‖²
    norm: Array  #: (d,), ‖Aⱼ‖²; zero for a constant column, which never enters
    cross: Array  #: (d, t), Aᵀb
    work: int  #: numbers that a look at all columns reads
    whole: bool  #: whether a working set brings nothing, because all columns are in the first model
    shape: tuple[int, int]  #: (d, t)
    x_mean: Array  #: (d,)
    y_mean: Array  #: (t,)
    weight: float  #: Σ s

    def thinned(self) -> Design | None:
        """Return the design of few of the rows, where there are so many that it pays to solve that first."""

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return the quadratic in some columns at W (k, t); `last` is one of the first of these columns, or None."""

    def residual(self, model: Any, columns: Rows, level: Array | None = None) -> tuple[Array, float]:
        """Return Aᵀ(b − AW) of all columns (d, t), and ‖b − AW‖².

        Of columns that are surely below `level` (d,) only about half the digits may be right.
        """


class MomentDesign:
    """A design of which only the second moments are known: any number of rows, from anywhere."""

    whole = True

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.shape = moments.cross.shape
        self.square = float(moments.y_square.sum())
        diagonal = moments.gram.diagonal().copy()
        diagonal[diagonal <= (NOISE * np.abs(moments.x_mean)) ** 2 * moments.weight] = 0.0
        self.norm = np.maximum(diagonal, 0.0)
        self.cross = np.where(self.norm[:, None] > 0, moments.cross, 0.0)
        self.work = diagonal.size**2
        self.x_mean = moments.x_mean
        self.y_mean = moments.y_mean
        self.weight = moments.weight

    def thinned(self) -> Design | None:
        """Return None: there are no rows."""
        return None

    def model(self, columns: Rows, W: Array, last: Any) -> Quadratic:
        """Return the quadratic in all columns."""
        G = self.moments.gram
        C = self.moments.cross
        kept = self.norm > 0
        if not kept.all():
            G = np.where(np.outer(kept, kept), G, 0.0)
            C = np.where(kept[:, None], C, 0.0)
        return GramQuadratic(np.ascontiguousarray(G), np.ascontiguousarray(C), self.square, W)

    def residual(self, model: Any, columns: Rows, level: Array | None = None) -> tuple[Array, float]:
        """Return C − GW, and ‖b − AW‖²."""
        return np.asarray(model.gradient()), model.residual_square()


def design_of(blocks: Blocks, *, intercept: bool = True, n_jobs: int | None = None, n_looks: int = 1) -> Design:
    """Return the design that suits the shape: moments of tall tables and of those beyond memory, else the rows.

    `n_looks` is the number of penalties for which it will be solved.
    """
    d = blocks.n_columns
    few = 0
    if blocks.in_memory:  # counting other rows would take a pass
        few = min(blocks.n_rows, _MOST_MOMENTS) if n_looks < _MANY_LOOKS else _MOST_REPEATED
    if not blocks.in_memory or (not blocks.sparse and d <= few):
        return MomentDesign(centred_moments(blocks, intercept=intercept, n_jobs=n_jobs))
    X, y, weight = blocks.joined()
    if blocks.sparse:
        X = X if blocks.by_columns is None else blocks.by_columns
        return SparseDesign(X, np.asarray(y), weight, intercept=intercept, n_jobs=n_jobs)
    return DenseDesign(X, np.asarray(y), weight, intercept=intercept, n_jobs=n_jobs, n_looks=n_looks)


class SparseFit(NamedTuple):
    """Where the solver stopped."""

    W: Array  #: (d, t)
    value: float  #: relative duality gap
    n_iter: int  #: epochs
    converged: bool
    gap: Gap


class WorkingSet:
    """A solver that remembers its columns and coefficients from one penalty to the next."""

    def __init__(self, design: Design, start: Array | None = None) -> None:
        self.design = design
        self.columns: Rows = np.zeros(0, dtype=np.intp)
        self.model: Quadratic | None = None
        self.last_l1: Array | None = None
        self.guided = False  # whether few of the rows have said which columns matter
        self.trail: list[tuple[Penalty, Array]] = []  # the last two penalties and the working coefficients there
        self.in_set = np.zeros(design.shape[0], dtype=bool)
        first = np.zeros(0, dtype=np.intp)
        if design.whole:
            first = np.arange(design.shape[0])
        elif start is not None:
            first = np.flatnonzero(start.any(axis=1) & (design.norm > 0))
        self._add(first, None if start is None else start[first])
        if start is None:
            self.gradient = design.cross.copy()
            self.square = design.square
        else:
            self.gradient, self.square = design.residual(self.model, self.columns)

    def coefficients(self) -> Array:
        """Return W of all columns."""
        W = np.zeros(self.design.shape)
        if self.model is not None:
            W[self.columns] = self.model.W
        return W

    @one_thread_blas()
    def solve(
        self,
        penalty: Penalty,
        *,
        tol: float = 1e-6,
        max_iter: int = 1000,
        progress: Progress = no_progress,
        exact: bool = True,
    ) -> SparseFit:
        """Minimise for one penalty, starting where the last one ended.

        Where all columns are in the model, a last Newton step usually ends at the optimum itself; `exact` asks for it.
        """
        design = self.design
        base = 0.5 * self.design.square
        if design.whole and self.model is not None:
            return self._solve_whole(self.model, penalty, tol, max_iter, progress, exact)
        norm = np.sqrt(design.norm + penalty.l2)
        alive = design.norm > 0
        strong = self._strong_columns(penalty)
        self._foresee(penalty)
        if strong is None and not len(self.columns):
            strong = self._rough_columns(penalty, progress)
            self.guided = strong is not None
        n_epochs = 0
        stopped = False
        stalled = 0
        for _ in range(_MOST_ROUNDS):
            W = self.coefficients()
            gap = penalised_gap(W, self.gradient, self.square, penalty)
            value = gap.relative(base)
            if value <= tol or n_epochs >= max_iter or stopped or stalled > 1:
                break
            if gap.tau > 0:
                alive &= gap.tau * gap.size + norm * np.sqrt(2.0 * gap.gap) >= penalty.l1
            chosen = self._choose(gap, penalty, norm, alive, strong)
            strong = None
            if len(chosen):
                self._add(chosen)
            size = max(gap.primal - gap.gap, FLOOR * base)
            found = descend(
                self.model,  # type: ignore[arg-type]
                penalty.at(self.columns),
                goal=max(_INNER * tol * size, _EARLY * gap.gap if not design.whole else 0.0),
                max_epochs=max_iter - n_epochs,
                progress=lambda epochs, inner, done=n_epochs: progress(done + epochs, inner),  # type: ignore[misc]
            )
            n_epochs = n_epochs + found.n_epochs
            stopped = found.stopped
            stalled = 0 if len(chosen) or found.n_epochs else stalled + 1
            self.gradient, self.square = design.residual(self.model, self.columns, penalty.l1)
        self.trail = [*self.trail[-1:], (penalty, self.model.W.copy() if self.model is not None else W[:0])]
        self.last_l1 = penalty.l1
        return SparseFit(W, value, n_epochs, value <= tol, gap)

    def _solve_whole(
        self, model: Quadratic, penalty: Penalty, tol: float, max_iter: int, progress: Progress, exact: bool
    ) -> SparseFit:
        base = 0.5 * self.design.square
        found = descend(model, penalty, goal=_INNER * tol, max_epochs=max_iter, progress=progress, start=base)
        gap = found.gap
        if exact and gap.gap > 0:
            extrapolate(model, penalty, [model.W.copy()] * 3)
            gap = penalised_gap(model.W, model.gradient(), model.residual_square(), penalty)
        value = gap.relative(base)
        return SparseFit(self.coefficients(), value, found.n_epochs, value <= tol, gap)

    def _add(self, columns: Rows, W: Array | None = None) -> None:
        """Put more columns into the set, with coefficients zero unless given."""
        old = np.zeros((0, self.design.shape[1])) if self.model is None else self.model.W
        new = np.zeros((len(columns), self.design.shape[1])) if W is None else W
        self.columns = np.concatenate([self.columns, columns])
        self.in_set[columns] = True
        self.model = self.design.model(self.columns, np.ascontiguousarray(np.vstack([old, new])), self.model)

    def _strong_columns(self, penalty: Penalty) -> NDArray[np.bool_] | None:
        """Return the columns that the sequential strong rule keeps."""
        if self.last_l1 is None or self.design.whole:
            return None
        reduced = self.gradient - penalty.l2[:, None] * self.coefficients()
        size = np.sqrt((reduced * reduced).sum(axis=1))
        return np.asarray(size >= 2.0 * penalty.l1 - self.last_l1)

    def _foresee(self, penalty: Penalty) -> None:
        """Move on along the line through the last two solutions, where that lowers P.

        Coefficients are piecewise linear in λ: on a support that stays the next ones lie on this line.
        """
        if len(self.trail) < 2 or self.model is None:
            return
        (older, first), (old, _) = self.trail
        share = _share_of_way(older, old, penalty)
        if share <= 0.0:
            return
        here = self.model.W
        way = here.copy()
        way[: len(first)] -= first
        point = here + share * way
        point[point * here <= 0] = 0.0
        inside = penalty.at(self.columns)
        start = objective(self.model, inside)
        held = self.model.held.copy()
        kept = here.copy()
        self.model.move(point)
        if not objective(self.model, inside) < start:
            self.model.W[:] = kept
            self.model.held[:] = held

    def _rough_columns(self, penalty: Penalty, progress: Progress) -> NDArray[np.bool_] | None:
        """Return the columns that matter to the problem with few of the rows, where there are many."""
        few = self.design.thinned()
        if few is None:
            return None
        share = few.weight / self.design.weight
        rough = Penalty(share * penalty.l1, share * penalty.l2, penalty.positive)
        solver = WorkingSet(few)
        found = solver.solve(rough, tol=_ROUGH, progress=progress)
        return np.asarray(found.W.any(axis=1) | (found.gap.size >= _CLOSE * rough.l1))

    def _choose(
        self, gap: Gap, penalty: Penalty, norm: Array, alive: NDArray[np.bool_], strong: NDArray[np.bool_] | None
    ) -> Rows:
        """Return the columns to add: those of the strong rule, or the closest to the boundary of the dual."""
        outside = np.flatnonzero(alive & ~self.in_set)
        if strong is not None:
            return outside[strong[outside]]
        support = int(np.count_nonzero(self.model.W.any(axis=1)))  # type: ignore[union-attr]
        size = gap.size[outside]
        l1 = penalty.l1[outside]
        wrong = int(np.count_nonzero(size > l1))
        present = len(self.columns)
        first = max(_FIRST, len(alive) // _FIRST_SHARE)
        enough = int(_SPARE * support) if self.guided else max(first, int(_SPARE * support))
        number = max(enough - present, min(wrong, max(first, int(_GROWTH * present))))
        if number >= len(outside):
            return outside
        distance = (l1 - gap.tau * size) / norm[outside]
        return np.sort(outside[np.argpartition(distance, number)[:number]]) if number > 0 else outside[:0]


def _share_of_way(older: Penalty, old: Penalty, new: Penalty) -> float:
    """Return (λ₁(new) − λ₁(old))/(λ₁(old) − λ₁(older)) where the three lie on a line of penalties, else 0."""
    last = old.l1 - older.l1
    step = new.l1 - old.l1
    largest = int(np.argmax(np.abs(last)))
    if last[largest] == 0.0:
        return 0.0
    share = float(step[largest] / last[largest])
    straight = bool((np.abs(step - share * last) <= 1e-9 * np.abs(step)).all()) and np.array_equal(old.l2, new.l2)
    return share if straight and old.positive == new.positive else 0.0
