"""Rows compressed to a triangle: subsets of columns have the same least squares there, at the cost of p rows.

    ‖y − b − Xβ‖²_w + α‖β‖² = ‖target − rows·(β·scale)‖²  for the best b,

with unit-norm columns. Dependent columns get a row of `_SHIFT` each, so that every subset has one solution; it moves
the residual sum of squares by `_SHIFT`² times the squared norm of the scaled coefficients, which is below `FLOOR`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import Array, DataError, ParameterError
from ...data.blocks import Blocks, Part
from ...data.door import Table, refuse_extreme_sizes, refuse_tiny_sizes
from ...solvers.systems.least_squares import compress, dense_rows
from ...solvers.systems.orthogonal import orthogonal_fit, reciprocal_condition

#: Share of the total sum of squares below which a fit counts as exact: of dependent columns it is known no better.
FLOOR = 1e-10
_SHIFT = 1e-8  # balances the shift's own error, its square, against that of rounding, (2e-16/shift)²
_DEPENDENT = 1e-8  # reciprocal condition of unit-norm columns below which some count as dependent


class Compressed(NamedTuple):
    """A least squares problem in as many rows as columns, or one more."""

    rows: Array  #: (m, p) centred, weighted, in the units of the data
    target: Array  #: (m,)
    scale: Array  #: (p,) norms of the columns; one for a constant column
    alpha: float
    weight: float  #: Σ w
    x_mean: Array  #: (p,)
    y_mean: float
    total: float  #: Σ w (y − ȳ)²
    dependent: bool

    def design(self) -> tuple[Array, Array]:
        """Return the unit-norm columns, with a row for each penalty, and the target."""
        p = len(self.scale)
        parts = [self.rows / self.scale]
        if self.alpha > 0:
            parts.append(np.diag(np.sqrt(self.alpha) / self.scale))
        if self.dependent:
            parts.append(_SHIFT * np.eye(p))
        A = np.vstack(parts)
        return A, np.r_[self.target, np.zeros(len(A) - len(self.target))]

    def coefficients(self, columns: Any) -> tuple[Array, float]:
        """Return β (p,), zero outside the columns, and b of the least squares fit on them."""
        coef = np.zeros(len(self.scale))
        columns = np.sort(np.asarray(columns, dtype=np.int64))
        if len(columns):
            part = np.ascontiguousarray(self.rows[:, columns])
            coef[columns] = orthogonal_fit(part, self.target[:, None], None, self.alpha, intercept=False).coef[:, 0]
        return coef, float(self.y_mean - self.x_mean @ coef)

    def objective(self, coef: Array) -> float:
        """Return Σ w r² + α‖β‖² for the best intercept."""
        return float(((self.target - self.rows @ coef) ** 2).sum() + self.alpha * (coef**2).sum())


def compressed(owner: str, table: Table, *, intercept: bool, alpha: float = 0.0, n_jobs: int | None) -> Compressed:
    """Read a table of one target once."""
    return compressed_targets(owner, table, intercept=intercept, alpha=alpha, n_jobs=n_jobs)[0]


def compressed_targets(
    owner: str, table: Table, *, intercept: bool, alpha: float = 0.0, n_jobs: int | None
) -> list[Compressed]:
    """Read a table once and return the problem of each target; their rows are the same array."""
    blocks = table.blocks
    if table.in_memory:
        refuse_extreme_sizes(table.X, table.weight, owner)
        refuse_extreme_sizes(table.y, None, owner, "y")
        refuse_tiny_sizes(owner, X=table.X.data if blocks.sparse else table.X, y=table.y)
        if blocks.sparse:
            X, _, weight = dense_rows(blocks)
            blocks = Blocks([Part(X, table.y, weight)])
    elif getattr(blocks, "sparse", False):
        raise DataError(f"{owner}: sparse rows must be in memory; pass one sparse array.")
    if table.in_memory and table.n_rows <= table.n_columns:  # a triangle would have no fewer rows
        rows, targets, weight_sum, x_mean, y_mean = _centred(blocks, intercept)
    else:
        rows, targets, weight_sum, x_mean, y_mean = compress(blocks, intercept=intercept, n_jobs=n_jobs)
    norm = np.sqrt(np.einsum("ij,ij->j", rows, rows))
    # A constant column is zero but for the rounding of its mean.
    scale = np.where(norm > 1e-14 * np.sqrt(weight_sum) * np.abs(x_mean), norm, 0.0)
    if (scale == 0).any():
        rows = np.where(scale > 0, rows, 0.0)
        scale = np.where(scale > 0, scale, 1.0)
    problems = []
    for k in range(targets.shape[1]):
        target = np.ascontiguousarray(targets[:, k])
        total = float(target @ target)
        problems.append(
            Compressed(rows, target, scale, float(alpha), weight_sum, x_mean, float(y_mean[k]), total, False)
        )
    dependent = _is_dependent(problems[0])
    return [problem._replace(dependent=dependent) for problem in problems]


def _centred(blocks: Blocks, intercept: bool) -> tuple[Array, Array, float, Array, Array]:
    """Return √w(x − x̄), √w(y − ȳ), Σ w, x̄ and ȳ."""
    X, y, weight = dense_rows(blocks)
    X = np.asarray(X, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    w = np.ones(len(X)) if weight is None else weight
    total = float(w.sum())
    x_mean = w @ X / total if intercept else np.zeros(X.shape[1])
    y_mean = w @ y / total if intercept else np.zeros(y.shape[1])
    rows = X - x_mean
    targets = y - y_mean
    if weight is not None:
        root = np.sqrt(w)[:, None]
        rows *= root
        targets *= root
    return rows, targets, total, x_mean, y_mean


def _is_dependent(problem: Compressed) -> bool:
    """Tell whether some unit-norm columns, with their rows of the penalty, count as dependent."""
    p = len(problem.scale)
    if problem.alpha > 0:
        ridge = np.sqrt(problem.alpha) / problem.scale  # no singular value is below the least of these
        if ridge.min(initial=np.inf) / np.sqrt(p + float((ridge**2).max(initial=0.0))) >= _DEPENDENT:
            return False
    elif len(problem.rows) < p:
        return True
    A, _ = problem.design()
    return bool(reciprocal_condition(np.asarray(np.linalg.qr(A, mode="r"))) < _DEPENDENT)


def column_numbers(owner: str, name: str, wanted: Any, model: Any) -> list[int]:
    """Return columns given by number or by name as sorted numbers."""
    if wanted is None:
        return []
    known = [str(label) for label in getattr(model, "feature_names_in_", [])]
    found = set()
    for item in wanted:
        if isinstance(item, str):
            if item not in known:
                raise ParameterError(f"{owner}: {name} names {item!r}, which is no column of X; columns: {known}.")
            found.add(known.index(item))
        elif not 0 <= int(item) < model.n_features_in_:
            raise ParameterError(
                f"{owner}: {name} must hold column numbers from 0 to {model.n_features_in_ - 1}; got {item!r}."
            )
        else:
            found.add(int(item))
    return sorted(found)
