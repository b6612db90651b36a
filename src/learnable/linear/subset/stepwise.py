r"""Stepwise least squares: one column in, or one column out, at a time, each step the best of its candidates.

    forward:   S ← S ∪ argmin_j RSS(S ∪ {j}),        backward:   S ← S \ argmin_j RSS(S \ {j}),

over the whole path, of which one size is kept: a given one, that of the least AIC or BIC, or where an F-test ends. The
path need not pass through the best subsets; where there are few columns, the certificate's bound says what it misses.

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 3.3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import f as f_distribution
from sklearn.base import RegressorMixin

from ...core import (
    Array,
    Certificate,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    hook,
    optional,
    param,
)
from ...data.door import Table, door
from ...data.sources import NamedScore
from ..base import LinearRegressorModel
from ..least_squares.ridge_cv import row_order
from . import _kernels
from .best_subset import COLUMNS, fold_errors, penalty_of, start_search, triangle
from .compressed import FLOOR, Compressed, column_numbers, compressed

#: Share by which a step may fall short of the best: two columns that are equally good differ by their rounding.
TOLERANCE = 1e-8
_EQUAL = 1e-9  # of the residual sum of squares: what two columns may differ by and count as equal
_INDEPENDENT = 1e-8  # norm of what the chosen columns leave of a unit-norm column, below which it depends on them
_MOST_COMPARED = 16  # columns up to which the best subset is found too: it takes milliseconds
_SLICE = 10**9  # operations: enough for every tree of so few columns


class StepwiseModel(NamedScore, RegressorMixin, LinearRegressorModel):
    """What the forward and the backward path share."""

    size: int | None = param(
        optional(Number(low=0, integer=True)),
        "Columns to keep, or fewer where those are all that help; None leaves it to `criterion`.",
        default=None,
        kw_only=False,
    )
    criterion: str = param(
        Options("bic", "aic", "f", "cv"),
        'What chooses the size: least n log(RSS/n) + c·k; "f" stops at the first step whose F-test says so; "cv" has '
        "the least squared error on folds, each with its own path.",
        default="bic",
    )
    p_value: float = param(Number(low=0.0, high=1.0), 'Level of the F-test of "f".', default=0.05)
    required: Any = param(COLUMNS, "Columns, by number or name, that are always in.", default=None)
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        'Folds of "cv"; None is 5.',
        default=None,
    )
    coef_: Any = fitted("(n_features,)", "β of the chosen subset.")
    support_: Any = fitted("(n_features,)", "The chosen columns.", kind="b")
    order_: Any = fitted(
        "(n_steps,)",
        "Columns in the order of the path, required ones first: the first k are its subset of size k.",
        kind="iu",
        low=0,
        below="n_features",
    )
    objective_path_: Any = fitted("(n_sizes,)", "Σ w r² of the path, from the required columns alone upwards.", low=0.0)
    cv_errors_: Any = fitted(
        "(n_sizes, n_folds)", 'Mean squared errors on the folds, with "cv".', optional=True, low=0.0
    )
    row_order_: int = fitted("int", "Checksum of the targets in their order, by which `verify` finds the folds again.")
    certificate_: Certificate = fitted(
        "Certificate",
        "`greedy`: by how much a step falls short of its best candidate. Its bound, with at most 16 columns, is the "
        "relative gap to the best subset of the same size.",
    )

    _door = staticmethod(door(target="numeric"))
    max_seconds = None
    alpha = 0.0

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        required = column_numbers(owner, "required", self.required, self)
        if self.size is not None and not len(required) <= self.size <= table.n_columns:
            raise ParameterError(
                f"{owner}: size must lie between the number of required columns, {len(required)}, and that of all, "
                f"{table.n_columns}; got {self.size}."
            )
        problem = compressed(owner, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        self.order_ = self._path(problem, required)
        k = len(required)
        # One triangle of the columns in this order has the residuals of all its leading subsets.
        squares = triangle(*problem.design(), self.order_)[:, -1] ** 2
        self.objective_path_ = np.cumsum(squares[::-1])[::-1][k:].copy()
        floored = np.maximum(self.objective_path_, max(FLOOR * problem.total, np.finfo(float).tiny))
        self.row_order_ = row_order(table) if table.in_memory else 0
        if self.criterion == "cv" and self.size is None:
            self.cv_errors_ = self._fold_errors(table, required, len(floored))
        size = k + self._choose(floored, k, problem.weight)
        columns = self.order_[:size]
        coef, intercept = problem.coefficients(columns)
        self._set_coefficients(coef[:, None], np.array([intercept]), ())
        self.support_ = np.isin(np.arange(table.n_columns), columns)
        bound = _gap_to_best(problem, required, size, floored[size - k])
        return Certificate("greedy", 0.0, TOLERANCE, bound, max(1, len(self.order_)), by_construction=True)

    def _fold_errors(self, table: Table, required: list[int], n_sizes: int) -> Array:
        """Return errors on the folds of the sizes of their own paths; where one ends early, of its last."""

        def solve(problem: Compressed) -> Array:
            order = self._path(problem, required)
            sizes = len(required) + np.arange(n_sizes)
            return np.column_stack([problem.coefficients(order[:size])[0] for size in sizes.tolist()])

        return fold_errors(type(self).__name__, self, table, solve)

    _path = hook("(problem, required) → NDArray[np.int64]")

    def _choose(self, rss: Array, k: int, n: float) -> int:
        """Return the place on the path that is kept."""
        if self.size is not None:
            return min(self.size - k, len(rss) - 1)
        sizes = k + np.arange(len(rss))
        if self.criterion == "cv":
            return int(np.argmin(self.cv_errors_.mean(axis=1)))
        if self.criterion != "f":
            return int(np.argmin(n * np.log(rss) + penalty_of(self.criterion, n) * sizes))
        small = entry_p_values(rss, k, n - self.fit_intercept) <= self.p_value
        if self._upwards:
            return int(np.argmin(np.r_[small, False]))
        return len(small) - int(np.argmax(np.r_[small[::-1], True]))

    _upwards = True


class ForwardStepwise(StepwiseModel):
    r"""Forward stepwise: from no column on, add the one that lowers Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² most.

    In the form n⁻¹ΣV + λΩ it is a greedy descent for Ω = ‖β‖₀. Columns that depend on those chosen never enter, and an
    exact fit ends the path. The
    whole path takes O(p³) time after one QR of the rows, O(np²); memory O(p²) besides the data.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import ForwardStepwise
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> model = ForwardStepwise().fit(X, X[:, 3] + 2 * X[:, 1] + 0.1 * np.cos(np.arange(50)))
    >>> model.order_[:2].tolist(), int(model.support_.sum()), model.certificate_.bound
    ([1, 3], 2, 0.0)
    """

    _theory = "forward-stepwise"

    def _path(self, problem: Compressed, required: list[int]) -> NDArray[np.int64]:
        """Add columns by modified Gram–Schmidt, until those that are left depend on those chosen."""
        A = problem.rows / problem.scale
        r = problem.target.copy()
        order: list[int] = []
        p = A.shape[1]
        free = np.ones(p, dtype=bool)
        while len(order) < p:
            squares = np.einsum("ij,ij->j", A, A)
            able = free & (squares > _INDEPENDENT**2)
            if len(order) < len(required):
                j = required[len(order)]
            elif able.any() and r @ r > FLOOR * problem.total:
                gains = np.where(able, (r @ A) ** 2 / np.where(able, squares, 1.0), -1.0)
                j = int(np.flatnonzero(gains >= gains.max() - _tie(problem, r @ r - gains.max()))[0])
            else:
                break
            free[j] = False
            order.append(j)
            if squares[j] > _INDEPENDENT**2:
                q = A[:, j] / np.sqrt(squares[j])
                A -= np.outer(q, q @ A)
                r -= q * (q @ r)
        return np.array(order, dtype=np.int64)


class BackwardStepwise(StepwiseModel):
    r"""Backward stepwise: from all columns on, drop the one that raises Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² least.

    In the form n⁻¹ΣV + λΩ it is a greedy descent for Ω = ‖β‖₀. Where columns depend on each other some of them leave
    first, at no cost. O(p) triangles of O(p³) time after one QR of the rows, O(np²); memory O(p²) besides the data.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import BackwardStepwise
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> model = BackwardStepwise(size=2).fit(X, X[:, 3] + 2 * X[:, 1] + 0.1 * np.cos(np.arange(50)))
    >>> np.flatnonzero(model.support_).tolist(), model.certificate_.kind
    ([1, 3], 'greedy')
    """

    _theory = "backward-stepwise"
    _upwards = False

    def _path(self, problem: Compressed, required: list[int]) -> NDArray[np.int64]:
        """Drop columns one by one: RSS grows by β²/((RᵀR)⁻¹)ⱼⱼ."""
        A, y = problem.design()
        R = np.asarray(np.linalg.qr(np.column_stack([A, y]), mode="r"))
        kept = list(range(A.shape[1]))
        left: list[int] = []
        while len(kept) > len(required):
            m = len(kept)
            inverse = solve_triangular(R[:m, :m], np.eye(m), check_finite=False)
            growth = (inverse @ R[:m, m]) ** 2 / (inverse**2).sum(axis=1)
            growth[np.isin(kept, required)] = np.inf
            rss = float((R[m:, m] ** 2).sum()) + growth.min()
            j = int(np.flatnonzero(growth <= growth.min() + _tie(problem, rss))[-1])
            left.append(kept.pop(j))
            R = np.asarray(np.linalg.qr(np.delete(R[: m + 1], j, axis=1), mode="r"))
        return np.array([*required, *reversed(left)], dtype=np.int64)


def _tie(problem: Compressed, rss: float) -> float:
    """Return by how much two candidates may differ and count as equal: then the first column in X is kept."""
    return _EQUAL * max(rss, 1e-6 * problem.total)


def entry_p_values(rss: Array, k: int, n: float) -> Array:
    """Return the p-value of the F-test of each step of a path from k columns upwards; 1 without degrees of freedom."""
    freedom = n - (k + 1 + np.arange(len(rss) - 1))
    enough = freedom > 0
    freedom = np.where(enough, freedom, 1.0)
    statistic = np.maximum(rss[:-1] - rss[1:], 0.0) * freedom / rss[1:]
    return np.asarray(np.where(enough, f_distribution.sf(statistic, 1.0, freedom), 1.0))


def _gap_to_best(problem: Compressed, required: list[int], size: int, rss: float) -> float | None:
    """Return how far the subset is above the best of its size, where there are few columns."""
    if len(problem.scale) > _MOST_COMPARED:
        return None
    if problem.total == 0:
        return 0.0
    search = start_search(problem, required, size, size, -1.0, 0.0)
    _kernels.walk(search, _SLICE)
    best = float(search.best[size])
    gap = max(0.0, (rss - best) / max(best, 1e-8 * problem.total))
    return gap if gap > TOLERANCE else 0.0
