r"""Whether a linear rule separates the classes.

The unpenalised likelihood has a maximum exactly if there is no direction θ ≠ 0 (in the space the data span) along
which no row's own score falls behind another's: z_y ≥ z_k for all k, with one strict. Complete separation shows
itself in the coefficients, which then classify every row rightly; quasi-complete separation, with ties, is decided
by a linear program.

Reference: A. Albert and J. Anderson, Biometrika 71 (1984).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..solvers.problem import Solution
from .likelihood import LogisticProblem

Array = NDArray[np.float64]

_LARGE_MARGIN = 12.0  # e⁻¹² = 6e-6: a row this certain hints at a direction without end
_LARGEST_PROGRAM = 2e7  # entries


def is_separable(problem: LogisticProblem, solution: Solution) -> bool:
    """Tell whether the likelihood increases for ever, looking at where the solver arrived."""
    codes = np.asarray(problem.blocks.joined().y)
    scores = problem.scores(solution.x)
    if problem.n_scores == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    own = scores[np.arange(len(codes)), codes]
    rivals = scores.copy()
    rivals[np.arange(len(codes)), codes] = -np.inf
    margins = own - rivals.max(axis=1)
    if (margins > 0).all():
        return True
    if margins.max() < _LARGE_MARGIN:
        return False  # the solver has converged at moderate scores
    return _some_direction_separates(problem, codes)


def _some_direction_separates(problem: LogisticProblem, codes: NDArray[np.int64]) -> bool:
    """Maximise Σ min(z_y − z_k, 1) subject to z_y ≥ z_k over all directions: positive exactly if one separates."""
    tiles = [X for i in range(len(problem.blocks)) for _, _, X in problem._tiles(problem.blocks[i])]
    X = sp.vstack(tiles).toarray() if problem.blocks.sparse else np.concatenate(tiles)
    design = np.column_stack([np.ones(len(X)), X]) if problem.intercept else X
    size = np.abs(design).max(axis=0)
    design = design / np.where(size > 0, size, 1.0)
    n, width = design.shape
    if n * width * problem.n_classes > _LARGEST_PROGRAM:
        return False
    if problem.n_scores == 1:
        differences = sp.csr_array(design * np.where(codes == 1, 1.0, -1.0)[:, None])
    else:
        pairs = []
        for rival in range(problem.n_classes):
            rows = np.flatnonzero(codes != rival)
            place = np.zeros((len(rows), problem.n_classes))
            place[np.arange(len(rows)), codes[rows]] = 1.0
            place[:, rival] = -1.0
            pairs.append(sp.csr_array((place[:, :, None] * design[rows][:, None, :]).reshape(len(rows), -1)))
        differences = sp.vstack(pairs, format="csr")
    m, p = differences.shape
    gain = sp.hstack([-differences, sp.eye_array(m)], format="csr")  # t ≤ z_y − z_k, 0 ≤ t ≤ 1
    result = linprog(
        np.r_[np.zeros(p), -np.ones(m)],
        A_ub=gain,
        b_ub=np.zeros(m),
        bounds=[(-1e6, 1e6)] * p + [(0.0, 1.0)] * m,
        method="highs",
    )
    return bool(result.status == 0 and -result.fun > 1e-6)
