r"""Independent check of the sigmoids of a support vector classifier.

The machines of the folds are not stored. They are made again, and each is judged as the machine itself is: by its
optimality conditions, with kernel values from the formulas. Of the scores that follow, A and B must be the optimum:
the log-odds As + B are compared with those of an optimum that is found here, by least squares on the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from ..core.run import Run
from ..solvers.conic.smo import Team
from .svm.platt import N_FOLDS, fold_fits
from .svm.program import small_matrix
from .svm.svc import rows_of

Array = NDArray[Any]

_LOG_ODDS = 1e-5  # by which log-odds may differ, relative to the largest

#: (rows of the table, y = ±1, β, b, costs) -> the violation of that machine, and the rounding of it.
Judge = Callable[[Array, Array, Array, Any, Array], tuple[float, float]]


def sigmoids_agree(
    model: Any,
    data: tuple[Any, Any, Any],
    pairs: list[tuple[Array, Array, Array]],
    judge: Judge,
    score: Callable[[Array, Array, Array], Array],
) -> tuple[bool, list[tuple[float, float]]]:
    """Tell whether A and B are optimal, and return the violations of the folds' machines with their rounding.

    Parameters
    ----------
    model : SVC or NuSVC
        Fitted with `probability`.
    data : (X, y, sample_weight)
        As they were given.
    pairs : list of (members, sign, cost)
        Rows of each pair of classes, with the first class positive.
    judge : callable
        (rows, sign, β, b, cost) → violation and rounding of a machine.
    score : callable
        (rows, other rows, β of these) → Σ β k.
    """
    sigmoids = np.asarray(model.sigmoids_)
    if sigmoids.shape != (len(pairs), 2):
        return False, []
    draft = model._draft()
    table = type(model)._door(draft, *data, Run())
    points = draft._points(table)  # which sets γ
    kernel, X = small_matrix(draft._mercer(), points)
    solver = draft._pair_solver(Run())
    found, agree = [], True
    with Team(model.n_jobs) as team:
        for (members, sign, cost), (slope, offset) in zip(pairs, sigmoids, strict=True):
            fits, _ = fold_fits(solver, kernel, rows_of(X, members, kernel), sign, cost, team)
            scores = np.zeros(len(members))
            for number, (train, test, fit) in enumerate(fits):
                if not np.array_equal(test, _dealt(sign, number)):
                    return False, []
                if fit is not None:
                    found.append(judge(members[train], sign[train], fit.beta, fit.b, cost[train]))
                    scores[test] = score(members[test], members[train], fit.beta) + fit.b
                elif len(test) and len(train):
                    one = np.unique(sign[train])
                    scores[test] = one[0] if len(one) == 1 else 0.0
            agree &= _is_optimal(scores, sign, slope, offset)
    return agree, found


def _dealt(sign: Array, number: int) -> Array:
    """Return the rows of a fold: those of the first class are dealt out in turn, then those of the second."""
    deck = np.concatenate([np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)])
    return np.sort(deck[number::N_FOLDS])


def _is_optimal(scores: Array, sign: Array, slope: float, offset: float) -> bool:
    """Compare the log-odds with those of the optimum for Platt's targets."""
    n_first, n_second = (sign > 0).sum(), (sign < 0).sum()
    target = np.where(sign > 0, (n_first + 1) / (n_first + 2), 1 / (n_second + 2))
    size = max(abs(scores).max(initial=0.0), np.finfo(float).tiny)
    basis = np.column_stack([scores / size, np.ones(len(scores))])

    def gradient(w: Array) -> Array:
        return basis.T @ (1.0 / (1.0 + np.exp(-basis @ w)) - target) / len(scores)

    def hessian(w: Array) -> Array:
        p = 1.0 / (1.0 + np.exp(-basis @ w))
        return (basis * (p * (1 - p))[:, None]).T @ basis / len(scores)

    start = np.array([-slope * size, -offset])  # a convex problem: every start leads to the same optimum
    best = least_squares(gradient, start, jac=hessian, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    best = best if np.isfinite(best).all() else start + np.inf
    odds = basis @ best
    return bool(abs(-(slope * scores + offset) - odds).max() <= _LOG_ODDS * max(1.0, abs(odds).max()))
