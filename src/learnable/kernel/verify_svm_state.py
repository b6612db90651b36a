r"""What a support vector machine stores beside its multipliers: each array must be what the data and the others define.

Predictions read `support_vectors_`, `gamma_` and `n_support_`, the certificate's value does not: it is a function of β,
b and the data. So these are compared here with the rows, the classes and the parameters.

Independent check of the sigmoids of a support vector classifier.

The machines of the folds are not stored. They are made again, and each is judged as the machine itself is: by its
optimality conditions, with kernel values from the formulas. Of the scores that follow, A and B must be the optimum:
the log-odds As + B are compared with those of an optimum that is found here, by least squares on the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import least_squares

from ..core import AnyArray, VerificationError
from ..data.checking import Rows, class_weights_of

_FOLDS = 5  # of which each row's score comes from the one that has not seen it
_LOG_ODDS = 1e-5  # by which log-odds may differ, relative to the largest

#: (rows of the table, y = ±1, β, b, costs) -> the violation of that machine, and the rounding of it.
Judge = Callable[[AnyArray, AnyArray, AnyArray, Any, AnyArray], tuple[float, float]]


def sigmoids_agree(
    model: Any,
    data: tuple[Any, Any, Any],
    pairs: list[tuple[AnyArray, AnyArray, AnyArray]],
    judge: Judge,
    score: Callable[[AnyArray, AnyArray, AnyArray], AnyArray],
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
    found = []
    agree = True
    folds = model._folds_again(data, pairs)
    for (members, sign, cost), (slope, offset), fits in zip(pairs, sigmoids, folds, strict=True):
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


def _dealt(sign: AnyArray, number: int) -> AnyArray:
    """Return the rows of a fold: those of the first class are dealt out in turn, then those of the second."""
    deck = np.concatenate([np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)])
    return np.sort(deck[number::_FOLDS])


def _is_optimal(scores: AnyArray, sign: AnyArray, slope: float, offset: float) -> bool:
    """Compare the log-odds with those of the optimum for Platt's targets."""
    n_first = (sign > 0).sum()
    n_second = (sign < 0).sum()
    target = np.where(sign > 0, (n_first + 1) / (n_first + 2), 1 / (n_second + 2))
    size = max(abs(scores).max(initial=0.0), np.finfo(float).tiny)
    basis = np.column_stack([scores / size, np.ones(len(scores))])

    def gradient(w: AnyArray) -> AnyArray:
        return basis.T @ (1.0 / (1.0 + np.exp(-basis @ w)) - target) / len(scores)

    def hessian(w: AnyArray) -> AnyArray:
        p = 1.0 / (1.0 + np.exp(-basis @ w))
        return (basis * (p * (1 - p))[:, None]).T @ basis / len(scores)

    start = np.array([-slope * size, -offset])  # a convex problem: every start leads to the same optimum
    best = least_squares(gradient, start, jac=hessian, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    best = best if np.isfinite(best).all() else start + np.inf
    odds = basis @ best
    return bool(abs(-(slope * scores + offset) - odds).max() <= _LOG_ODDS * max(1.0, abs(odds).max()))


_AT_BOUND = 1e-9  # share of its box, and of the largest one, by which a multiplier at a bound may be off
_GAMMA = 1e-9  # relative difference of two ways to sum the variance


def stored_state_agrees(model: Any, rows: Rows, kept: AnyArray, n_given: int, gamma: float, given: bool) -> bool:
    """Tell whether support vectors, their numbers, their counts and γ are those of the data.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Fitted.
    rows : Rows
        The rows with weight; `y` holds class codes if the model has classes.
    kept : (n,) array of int
        Their numbers among those given.
    n_given : int
        How many were given.
    gamma : float
        γ as the parameters and the data define it.
    given : bool
        Whether X is a matrix of kernel values, which leaves no support vectors to store.
    """
    codes = rows.y if hasattr(model, "classes_") else np.zeros(len(kept), dtype=np.int64)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 1
    n_pairs = max(1, n_classes * (n_classes - 1) // 2)
    support = np.asarray(model.support_)
    coef = dense(model.dual_coef_)
    if support.ndim != 1 or coef.shape != (max(1, n_classes - 1), len(support)):
        return False
    if model.shape_fit_[0] != n_given:
        raise VerificationError(f"verify: the fit had {model.shape_fit_[0]} rows; the data have {n_given}.")
    if np.shape(model.intercept_) != (n_pairs,) or tuple(model.shape_fit_) != (n_given, rows.n_columns):
        return False
    places = np.minimum(np.searchsorted(kept, support), max(0, len(kept) - 1))
    if len(support) and not (kept[places] == support).all():
        return False
    own = codes[places]
    order = np.lexsort((support, own))  # by class, then as the rows stand
    if not (order == np.arange(len(support))).all() or len(np.unique(support)) != len(support):
        return False
    if not np.array_equal(np.asarray(model.n_support_), np.bincount(own, minlength=n_classes)):
        return False
    if not coef.any(axis=0).all():
        return False
    if not np.isclose(model.gamma_, gamma, rtol=_GAMMA, atol=0.0):
        return False
    if hasattr(model, "classes_") and not _class_weights_agree(model, rows):
        return False
    X = next(iter(rows.pieces()))
    expected = np.empty((0, 0)) if given else dense(X[places])
    return np.array_equal(dense(model.support_vectors_), expected)


def offset_agrees(pull: AnyArray, beta: AnyArray, low: AnyArray, high: AnyArray, b: Any, allowance: float) -> bool:
    """Tell whether b is the mean pull of the multipliers inside their box or, without any, the middle of the rest."""
    room = _AT_BOUND * np.minimum(high - low, np.abs(beta).max(initial=0.0))
    below = beta < high - room
    above = beta > low + room
    if (below & above).any():
        expected = pull[below & above].mean()
    else:
        top = np.max(pull, where=below, initial=-np.inf)
        bottom = np.min(pull, where=above, initial=np.inf)
        ends = [end for end in (top, bottom) if np.isfinite(end)]
        expected = np.mean(ends) if ends else 0.0
    return bool(abs(b - expected) <= allowance)


def dense(X: Any) -> AnyArray:
    """Return a dense array of the same numbers."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _class_weights_agree(model: Any, rows: Rows) -> bool:
    found = np.asarray(model.class_weight_)
    expected = class_weights_of(model.class_weight, model.classes_, rows)
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-9, atol=0.0)
