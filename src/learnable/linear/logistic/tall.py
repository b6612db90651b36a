r"""L1 logistic regression of many rows and not so many columns: few looks at all rows, Hessians from some of them.

A proximal Newton step needs the gradient of all rows, but converges almost as fast with a Hessian H̃ of m of them: the
gap of a step falls about by k/m for k working columns. So no step ever forms the whole Hessian. The first point comes
from problems on few and on more of the rows, which leave two or three looks at all of them. Where a look shows that the
gap fell by less than expected, the next Hessian has twice as many rows.

A look at columns that lie one after the other in memory reads those of non-zero coefficients for the scores and all of
them for the gradient; no block of rows is copied.

Reference: F. Roosta-Khorasani and M. W. Mahoney, Sub-sampled Newton methods, Mathematical Programming 174, 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core import Array, NDArray, Progress, no_progress
from ...core.jit import kernel
from ...data.blocks import map_reduce
from ...risk.classes import ClassRisk
from ...solvers.composite.designs import run_on, slices
from ...solvers.problem import Evaluation, backtrack
from .columns import logistic_rows

Columns = NDArray[np.intp]

_TILE = 4096  # rows of a tile whose scores stay in the cache
_STRETCH = 2**15  # rows of one task of a look
_CHUNK = 2**20  # numbers of X that one task of a product with all columns reads
_SAMPLE = 2**14  # rows of a Hessian, at least
_FAR = 0.3  # gap from which a step with the smallest sample does as well
_NEAR = 0.01  # gap below which the last Hessian is used again
_SLOW = 0.05  # share of the gap left by a step from which the next Hessian gets twice the rows
_SAMPLE_TILE = 2**13  # rows of one task of the Hessian's sum
_HALVINGS = 30  # 2⁻³⁰ of a step moves nothing that float64 could tell
_ENOUGH = 0.9  # share of the gap below which a step counts where P itself does not fall any more


@kernel
def add_columns(X: Array, columns: NDArray[np.uint64], w: Array, z: Array) -> None:
    """IN/OUT z (m,) += Σ wⱼxⱼ over some of the columns, which lie as rows (d, m)."""
    for start in range(0, z.size, _TILE):
        out = z[start : start + _TILE]
        for a in range(columns.size):
            column = X[columns[a], start : start + out.size]
            for i in range(out.size):
                out[i] += w[a] * column[i]


class Looks:
    """Loss and gradient of two classes at sparse coefficients; leaves the rows' curvature in `curvature`."""

    def __init__(self, problem: ClassRisk) -> None:
        self.problem = problem
        X, y, _ = problem.blocks.joined()
        if not (X.flags.c_contiguous or X.flags.f_contiguous):
            X = np.asfortranarray(X)
        self.X = X
        self.by_columns = X.dtype == np.float64 and X.flags.f_contiguous and not X.flags.c_contiguous
        self.y = np.asarray(y, dtype=np.float64)
        self.slope = np.empty(len(self.y))
        self.curvature: Any = np.empty(len(self.y)) if self.by_columns else problem.state

    def __call__(self, theta: Array) -> Evaluation:
        """Return Σ s·loss and its gradient at θ (1, 1 + d)."""
        if not self.by_columns:
            return self.problem.evaluate(theta.ravel())
        problem = self.problem
        w = theta[0, 1:]
        support = np.flatnonzero(w)
        z = np.full(len(self.y), float(theta[0, 0] - problem.sums.centre[support] @ w[support]))
        products = np.empty(len(w))

        def of_rows(rows: slice) -> float:
            add_columns(self.X.T[:, rows], support.astype(np.uint64), w[support], z[rows])
            weight = problem.weight[rows]  # type: ignore[index]
            return logistic_rows(z[rows], self.y[rows], weight, self.slope[rows], self.curvature[rows])

        def of_columns(part: slice) -> None:
            np.dot(self.X.T[part], self.slope, out=products[part])

        loss = map_reduce(slices(len(z), _STRETCH), of_rows, lambda a, b: a + b, n_jobs=problem.n_jobs)
        run_on(slices(len(w), max(1, _CHUNK // len(z))), of_columns, problem.n_jobs)
        total = float(self.slope.sum())
        gradient = np.r_[-total if problem.intercept else 0.0, total * problem.sums.centre - products]
        return Evaluation(float(loss), gradient, np.nan)

    def hessian(self, columns: Columns, stride: int) -> Array:
        """Return the Hessian in the intercept and some columns at the last look, from every `stride`-th row."""
        centre = self.problem.sums.centre[columns, None]
        bend = self.curvature[::stride]

        def products(rows: slice) -> Array:
            own = slice(rows.start * stride, rows.stop * stride, stride)
            A = self.X.T[:, own][columns] if self.by_columns else np.ascontiguousarray(self.X[own][:, columns].T)
            root = np.sqrt(bend[rows])
            if centre.any():
                A -= centre
            A *= root
            total = np.empty((1 + len(A),) * 2)
            total[0, 0] = root @ root
            total[0, 1:] = total[1:, 0] = A @ root
            total[1:, 1:] = A @ A.T
            return total

        H: Array = map_reduce(slices(len(bend), _SAMPLE_TILE), products, np.add, n_jobs=self.problem.n_jobs)
        return H * (float(self.curvature.sum()) / max(float(bend.sum()), 1e-300))


def _affordable(k: int, shape: tuple[int, int]) -> int:
    """Return the rows for which a Hessian of k columns takes about as long as a look at all rows and columns.

    A row costs k numbers to gather and k² products; about sixteen of those take the time of one number read.
    """
    return int(shape[0] * shape[1] / (k + k * k / 16))


class TallFit(NamedTuple):
    """Where the steps ended."""

    theta: Array  #: (1, 1 + d)
    value: float  #: relative duality gap
    n_iter: int
    at: Evaluation


def tall_newton(
    composite: Any,
    theta: Array,
    grown: Callable[..., Columns],
    *,
    tol: float,
    max_iter: int,
    progress: Progress = no_progress,
) -> TallFit:
    """Take proximal Newton steps until the relative gap is at most `tol`; `grown` chooses their columns."""
    look = Looks(composite.likelihood)
    n = len(look.y)
    at = look(theta)
    gap, value = composite.gap(theta, at)
    columns = np.zeros(0, dtype=np.intp)
    H = np.zeros((1, 1))
    n_iter = 0
    more = 1  # times the rows of a Hessian
    stopped = False
    slow = True  # whether the last step fell short, or there was none
    while value > tol and n_iter < max_iter and not stopped:
        last = columns
        columns = grown(composite, theta, at, last)
        rows = more * (_SAMPLE if value > _FAR else max(_SAMPLE, _affordable(len(columns), look.X.shape)))
        # Close to the optimum the Hessian hardly changes any more.
        if slow or value > _NEAR or not np.array_equal(columns, last):
            H = look.hessian(columns, max(1, n // rows))
        taken = _step(composite, look, theta, at, gap, columns, H)
        n_iter += 1
        if taken is None and rows >= n and not slow:
            slow = True
        elif taken is None and rows >= n:
            break  # no more progress: rounding limit
        elif taken is None:
            look(theta)  # a Hessian is taken where the last look was
            slow = True
            more *= 4
        else:
            slow = taken.gap > _SLOW * gap
            more *= 2 if slow else 1
            theta, at, gap, value = taken
        stopped = progress(n_iter, value)
    return TallFit(theta, value, n_iter, at)


class _Taken(NamedTuple):
    """A step that counts."""

    theta: Array
    at: Evaluation
    gap: float
    value: float


def _step(
    composite: Any, look: Looks, theta: Array, at: Evaluation, gap: float, columns: Columns, H: Array
) -> _Taken | None:
    """Return where a proximal Newton step leads, halved until P falls, or, where that drowns in rounding, the gap."""
    places = np.r_[0, 1 + columns]
    move = np.zeros_like(theta)
    move[0, places] = composite.step(H, at.gradient[places], theta[0, places], at.value, gap)
    here = composite.value(theta, at)
    noise = composite.rounding * here

    def trial(length: float) -> _Taken | None:
        new = theta + length * move
        found = look(new)
        reached, value = composite.gap(new, found)
        low = composite.value(new, found)
        drowned = low <= here + noise and reached < _ENOUGH * gap
        return _Taken(new, found, reached, value) if low < here - noise or drowned else None

    return backtrack(trial, most=_HALVINGS)
