r"""Whether a linear rule separates the classes.

The unpenalised likelihood has a maximum exactly if there is no direction θ ≠ 0 (in the space the data span) along
which no row's own score falls behind another's: z_y ≥ z_k for all k, with one strict. Complete separation shows
itself in the coefficients, which then classify every row rightly; quasi-complete separation, with ties, is decided
by a linear program.

Reference: A. Albert and J. Anderson, Biometrika 71 (1984).
"""

from __future__ import annotations

import operator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..solvers.conjugate_gradient import conjugate_gradient
from ..solvers.least_squares import dense_rows
from ..solvers.newton import factorised
from ..solvers.problem import Solution
from .likelihood import LogisticProblem

Array = NDArray[np.float64]

_LARGEST_PROGRAM = 2e6  # entries
_LONGEST_PROGRAM = 20.0  # seconds
_LARGEST_HESSIAN = 1500  # parameters


def is_separable(problem: LogisticProblem, solution: Solution) -> bool:
    """Tell whether the likelihood increases for ever, looking at where the solver arrived."""
    if problem.over_scores(solution.x, _all_right, operator.and_):
        return True
    if _maximum_exists(problem, solution):
        return False
    verdict = _some_direction_separates(problem)
    return solution.converged if verdict is None else verdict  # a "converged" fit that is not near a maximum has none


def _maximum_exists(problem: LogisticProblem, solution: Solution) -> bool:
    """Prove that no direction separates: positive weights on all rows under which the gradient vanishes exactly.

    Such weights are the residuals after one more (linearised) Newton step; they are positive if the step changes every
    score by less than one half.
    """
    size = problem.n_scores * problem.width
    if size <= _LARGEST_HESSIAN:
        step = factorised(problem.hessian(solution.x))(solution.gradient)
    else:
        step = conjugate_gradient(problem.hessian_product(solution.x), solution.gradient, tol=1e-10).x
    rest = problem.hessian_product(solution.x)(step) - solution.gradient
    if not np.linalg.norm(rest) <= 1e-3 * np.linalg.norm(solution.gradient):
        return not solution.gradient.any()
    return problem.over_scores(step, _largest_change, max) < 0.5


def _all_right(scores: Array, codes: NDArray[np.int64]) -> bool:
    """Tell whether every row's own score is above the others."""
    rows = np.arange(len(codes))
    own, rivals = scores[rows, codes], scores.copy()
    rivals[rows, codes] = -np.inf
    return bool((own > rivals.max(axis=1)).all())


def _largest_change(change: Array, codes: NDArray[np.int64]) -> float:
    return float(np.abs(change - change.mean(axis=1, keepdims=True)).max())


def _some_direction_separates(problem: LogisticProblem) -> bool | None:
    """Maximise Σ min(z_y − z_k, 1) subject to z_y ≥ z_k over all directions: positive exactly if one separates.

    None where the program is too large to be solved.
    """
    size = problem.blocks.n_rows * problem.width * problem.n_classes
    if size > _LARGEST_PROGRAM or not problem.blocks.in_memory:
        return None
    codes = np.asarray(problem.blocks.joined().y)
    X = dense_rows(problem.blocks)[0] - problem.sums.centre
    design = np.column_stack([np.ones(len(X)), X]) if problem.intercept else X
    size = np.abs(design).max(axis=0)
    design = design / np.where(size > 0, size, 1.0)
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
        options={"time_limit": _LONGEST_PROGRAM},
    )
    return bool(-result.fun > 1e-6) if result.status == 0 else None
