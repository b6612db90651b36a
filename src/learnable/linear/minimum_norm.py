r"""Among all coefficients with the same scores, those of the smallest norm.

Without a penalty, columns that depend on each other leave the coefficients undetermined along the null space of the
(centred) rows, and where a solver stops there depends on the solver. The solution meant is the one with the smallest
‖w‖, which has no part in the null space.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block, map_reduce
from .scores import ScoreProblem

Array = NDArray[np.float64]

_DEPENDENT = 1e-13  # share of the largest eigenvalue, of columns of length one, that rounding leaves of a zero
_MOST_COLUMNS = 2000


def gram_matrix(problem: ScoreProblem) -> Array:
    """Return Σ s (1, x − centre)(1, x − centre)ᵀ."""
    return np.asarray(map_reduce(problem.blocks, partial(_gram, problem), np.add, n_jobs=problem.n_jobs))


def _gram(problem: ScoreProblem, block: Block) -> Array:
    weight = np.ones(block.X.shape[0]) if block.weight is None else block.weight
    return problem._second_moment(block, weight)


def with_minimum_norm(problem: ScoreProblem, x: Array) -> Array:
    """Return the parameters with the same scores on every row and the smallest ‖w‖.

    Without an intercept the rows are not centred, and neither are the sums.
    """
    if problem.width - 1 > _MOST_COLUMNS:
        return x
    null = _null_space(gram_matrix(problem)[1:, 1:])
    if not null.shape[1]:
        return x
    theta = x.reshape(problem.shape).copy()
    for _ in range(2):  # the second time removes the rounding of the first
        theta[:, 1:] -= (theta[:, 1:] @ null) @ null.T
    return theta.ravel()


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
