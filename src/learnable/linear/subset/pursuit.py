r"""Orthogonal matching pursuit: one column at a time, the one that correlates most with the residual of the last fit.

    S ← S ∪ argmax_j |Σᵢ wᵢ (xᵢⱼ − x̄ⱼ) rᵢ|,      β = argmin Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)²  over β that is zero off S.

Unlike forward stepwise regression, which takes the column that lowers the residual sum of squares most, the columns are
compared as they are: their units count.

Reference: S. Mallat and Z. Zhang, Matching pursuits with time-frequency dictionaries, IEEE Transactions on Signal
Processing 41, 1993.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import MultiOutputMixin, RegressorMixin

from ...core import (
    Array,
    Boolean,
    Certificate,
    Matches,
    NDArray,
    Nothing,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    law,
    laws,
    optional,
    param,
)
from ...data import Blocks, Part, Table, door, map_reduce
from ...data.sources import NamedScore
from ..base import VERBOSE, LinearRegressorModel
from ..choosing import ChoosingModel, Fold
from ..least_squares.ridge_cv import row_order
from .compressed import FLOOR, Compressed, compressed, compressed_targets

#: Share of the greatest correlation by which a step's may fall short: the last digits decide between equal columns.
TOLERANCE = 1e-8
_DEPENDENT = 1e-7  # share of a unit-norm column outside the chosen ones, below which it cannot be chosen


class Pursuit(NamedTuple):
    """Columns in the order in which they were chosen, and the coefficients after each step."""

    order: NDArray[np.int64]  #: (k,)
    coefs: Array  #: (p, k + 1), the first column zero


class PursuitModel(NamedScore, RegressorMixin, LinearRegressorModel):
    """What the two estimators share."""

    coef_: Any = fitted("(n_features,) or (n_targets, n_features)", "β.")
    order_: Any = fitted(
        "array of shape (n_nonzero_coefs,), or a list of one per target",
        "The columns, in the order in which they were chosen.",
    )
    n_nonzero_coefs_: Any = fitted("int or None", "Columns that were asked for; None if `tol` decided.")
    n_iter_: Any = fitted("int, or a list of one per target", "Steps.")
    certificate_: Certificate = fitted(
        "Certificate", "`greedy`: by how much a step's correlation falls short of the greatest."
    )

    _door = staticmethod(door(target="numeric"))
    max_seconds = None

    _flattens_one_column = True

    def _keep(self, problems: list[Compressed], found: list[Pursuit], y_shape: tuple[int, ...] = ()) -> Certificate:
        """Store the end of each target's path, as lists if there are several."""
        coef = np.column_stack([one.coefs[:, -1] for one in found])
        level = [problem.y_mean - problem.x_mean @ coef[:, k] for k, problem in enumerate(problems)]
        self._set_coefficients(coef, np.array(level), y_shape)
        orders = [one.order for one in found]
        counts = [len(order) for order in orders]
        several = len(found) > 1
        self.order_ = orders if several else orders[0]
        self.n_iter_ = counts if several else counts[0]
        return Certificate("greedy", 0.0, TOLERANCE, None, max(1, sum(counts)), by_construction=True)

    _laws = laws(
        law(
            "order_ and n_iter_ are lists exactly for several targets, with one entry per target",
            lambda model: (
                not hasattr(model, "coef_")
                or all(
                    isinstance(found, list) == (np.ndim(model.coef_) == 2)
                    and (not isinstance(found, list) or len(found) == len(model.coef_))
                    for found in (model.order_, model.n_iter_)
                )
            ),
            "order_",
        ),
        law(
            "order_ must hold column numbers that the model has",
            lambda model: all(
                order.ndim == 1
                and order.dtype.kind in "iu"
                and order.min(initial=0) >= 0
                and order.max(initial=-1) < model.n_features_in_
                for order in (model.order_ if isinstance(model.order_, list) else [model.order_])
            ),
            "order_",
        ),
    )


class OrthogonalMatchingPursuit(MultiOutputMixin, PursuitModel):
    r"""Orthogonal matching pursuit: greedy least squares, min Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)² with few nonzero coefficients.

    In the form n⁻¹ΣV + λΩ it is a greedy descent for Ω = ‖β‖₀. O(pk) per step after one QR of the rows, O(np²); memory
    O(p²). Several targets have an order each. Columns that depend on those chosen are never chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import OrthogonalMatchingPursuit
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> model = OrthogonalMatchingPursuit(n_nonzero_coefs=2).fit(X, X[:, 3] + 2 * X[:, 1])
    >>> model.order_.tolist(), model.coef_[[1, 3]].round(6)
    ([1, 3], array([2., 1.]))
    """

    _theory = "forward-stepwise"

    n_nonzero_coefs: int | None = param(
        optional(Number(low=1, integer=True)), "k; None is a tenth of the columns, at least one.", default=None
    )
    tol: float | None = param(
        optional(Number(low=0.0)), "Σ w r² at which to stop; overrides `n_nonzero_coefs`.", default=None
    )
    precompute: Any = param(Boolean() | Options("auto"), "Kept for compatibility.", default="auto")

    _door = staticmethod(door(target="numeric", multi_output=True))

    def _fit(self, table: Table, run: Run) -> Certificate:
        p = table.n_columns
        most = max(int(0.1 * p), 1) if self.n_nonzero_coefs is None else int(self.n_nonzero_coefs)
        if self.tol is None and most > p:
            raise ParameterError(
                f"{type(self).__name__}: The number of atoms cannot be more than the number of features: "
                f"n_nonzero_coefs is {most}, X has {p} columns."
            )
        problems = compressed_targets(type(self).__name__, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        found = [pursue(problem, p if self.tol is not None else most, self.tol) for problem in problems]
        self.n_nonzero_coefs_ = most if self.tol is None else None
        return self._keep(problems, found, table.y_shape)


class OrthogonalMatchingPursuitCV(ChoosingModel, PursuitModel):
    r"""Orthogonal matching pursuit with its number of columns chosen by cross-validation.

    The k with the least mean squared error over the folds of min Σᵢ wᵢ (yᵢ − b − xᵢᵀβ)², greedily with k nonzero
    coefficients; in the form n⁻¹ΣV + λΩ, Ω = ‖β‖₀.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import OrthogonalMatchingPursuitCV
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> model = OrthogonalMatchingPursuitCV().fit(X, X[:, 3] + 2 * X[:, 1] + 0.1 * np.cos(np.arange(50)))
    >>> model.n_nonzero_coefs_, model.mse_path_.shape
    (2, (5, 5))
    """

    _theory = "forward-stepwise"

    copy: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    max_iter: int | None = param(
        optional(Number(low=1, integer=True)), "Most columns; None is a tenth of them, at least five.", default=None
    )
    cv: Any = param(
        Nothing() | Matches(lambda v: not isinstance(v, (str, float, bool)), "a number of folds or a splitter"),
        "Folds; None is 5.",
        default=None,
    )
    verbose: int = param(VERBOSE, "Kept for compatibility.", default=False)
    mse_path_: Array = fitted("(n_sizes, n_folds)", "Mean squared errors on the folds for 1, 2, … columns.", low=0.0)
    row_order_: int = fitted(
        "int", "Checksum of the targets in their order, by which `verify` knows whether it can draw the folds again."
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        table.require_memory(f"{owner}: cross-validation needs the rows in memory; use {owner[:-2]} or read the table.")
        p = table.n_columns
        most = min(max(int(0.1 * p), 5), p) if self.max_iter is None else min(int(self.max_iter), p)
        folds = self._folds(table, run, self._metadata(table))

        def errors(fold: Fold) -> list[Array]:
            weight = None if table.weight is None else table.weight[fold.train]
            X = table.X[fold.train]
            y = table.y[fold.train]
            part = replace(table, blocks=Blocks([Part(X, y, weight)]), X=X, y=y, weight=weight, kept=None)
            problem = compressed(owner, part, intercept=self.fit_intercept, n_jobs=1)
            coefs = pursue(problem, most, None).coefs[:, 1:]
            level = problem.y_mean - problem.x_mean @ coefs
            residual = table.y[fold.test][:, None] - (table.X[fold.test] @ coefs + level)
            heavy = None if table.weight is None else table.weight[fold.test]
            heavy = np.ones(len(residual)) if heavy is None else heavy
            return [heavy @ residual**2 / heavy.sum()]  # of no size at all, where no column says anything

        found = map_reduce(folds, errors, lambda a, b: a + b, n_jobs=self.n_jobs)
        reached = min(len(one) for one in found)
        self.mse_path_ = np.column_stack([one[:reached] for one in found])
        self.n_nonzero_coefs_ = int(np.argmin(self.mse_path_.mean(axis=1))) + 1 if len(self.mse_path_) else 1
        self.row_order_ = row_order(table)
        problem = compressed(owner, table, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        return self._keep([problem], [pursue(problem, self.n_nonzero_coefs_, None)])


def pursue(problem: Compressed, most: int, tol: float | None) -> Pursuit:
    """Choose columns until there are `most`, until Σ w r² ≤ tol, or until those left depend on those chosen."""
    A = problem.rows
    y = problem.target
    p = A.shape[1]
    norm = np.where((A * A).sum(axis=0) > 0, problem.scale, np.inf)
    Q = np.zeros((len(A), 0))
    r = y.copy()
    order: list[int] = []
    coefs = [np.zeros(p)]
    free = np.isfinite(norm)
    floor = FLOOR * problem.total if tol is None else tol
    while len(order) < most and free.any() and r @ r > floor:
        correlation = np.where(free, np.abs(r @ A), -1.0)
        j = int(np.argmax(correlation))
        free[j] = False
        away = A[:, j] - Q @ (Q.T @ A[:, j])
        away -= Q @ (Q.T @ away)
        length = np.sqrt(away @ away)
        if length <= _DEPENDENT * norm[j]:
            continue
        q = away / length
        Q = np.column_stack([Q, q])
        r = r - q * (q @ r)
        order.append(j)
        R = Q.T @ A[:, order]
        beta = np.zeros(p)
        beta[order] = solve_triangular(np.triu(R), Q.T @ y, check_finite=False)
        coefs.append(beta)
    return Pursuit(np.array(order, dtype=np.int64), np.column_stack(coefs))
