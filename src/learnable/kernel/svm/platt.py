r"""Probabilities of a support vector classifier: a sigmoid of each pair's score, and one distribution from all pairs.

Scores s of rows that a machine was not fitted to come from five folds. With targets t that are not quite 0 and 1,

    P(first class | s) = 1/(1 + exp(As + B)),      (A, B) = argmin −Σ [t log p + (1 − t) log(1 − p)],

a convex problem. Of K classes, with rᵢⱼ the probability of i among i and j, p minimises Σᵢⱼ (rⱼᵢpᵢ − rᵢⱼpⱼ)² on Σp = 1.
Folds are not drawn: rows are dealt out class by class, so that the same rows give the same probabilities. Weights enter
the machines and not the sigmoids, as in LIBSVM.

References: J. Platt, Probabilistic outputs for support vector machines, 1999; H.-T. Lin, C.-J. Lin and R. Weng, A note
on Platt's probabilistic outputs, 2007; T.-F. Wu, C.-J. Lin and R. Weng, Probability estimates for multi-class
classification by pairwise coupling, JMLR 5, 2004.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...core.errors import DataError
from ...risk.kernels import Kernel, Precomputed
from ...solvers.conic.smo import Team
from ..rows import kernel_scores
from .base import Array, Fit, Rows

N_FOLDS = 5  # LIBSVM's
_LEAST = 1e-7  # probability that a pair gives a class at least, as in LIBSVM
_CHUNK = 2**16  # rows whose pairs are coupled at a time
_STEPS = 100  # of Newton's method, at most: LIBSVM's
_RIDGE = 1e-12  # keeps the Hessian regular where all scores are equal
_FLAT = 1e-12  # gradient, relative to the number of rows, at which the sigmoid is optimal


class FoldFit(NamedTuple):
    """The machine of all rows but one fold's; None where these are of one class, or have no margin."""

    train: Rows
    test: Rows
    fit: Fit | None


def folds_of(y: Array) -> NDArray[np.int64]:
    """Return the fold of each row: rows of the first class are dealt out, then those of the second.

    Examples
    --------
    >>> folds_of(np.array([1.0, -1.0, 1.0, -1.0]))
    array([0, 2, 1, 3])
    """
    order = np.argsort(-y, kind="stable")
    fold = np.empty(len(y), dtype=np.int64)
    fold[order] = np.arange(len(y)) % N_FOLDS
    return fold


def fold_fits(
    solver: Callable[..., Fit], kernel: Kernel, X: Any, y: Array, cost: Array, team: Team
) -> tuple[list[FoldFit], Array]:
    """Return the machines of the folds, and the score of every row by the machine that has not seen it."""
    fold = folds_of(y)
    scores = np.zeros(len(y))
    fits = []
    for number in range(N_FOLDS):
        train = np.flatnonzero(fold != number)
        test = np.flatnonzero(fold == number)
        fit = _fit_without(solver, kernel, X, y, cost, team, train) if len(test) else None
        fits.append(FoldFit(train, test, fit))
        if fit is not None:
            scores[test] = _scores_of(kernel, X, train, test, fit)
        elif len(train) and len(test):
            scores[test] = lone_class_score(y[train])
    return fits, scores


def lone_class_score(y: Array) -> float:
    """Return the score by rows of one class, ±1; of both classes without a margin, 0."""
    return float(y[0]) if (y == y[0]).all() else 0.0


def _fit_without(
    solver: Callable[..., Fit], kernel: Kernel, X: Any, y: Array, cost: Array, team: Team, train: Rows
) -> Fit | None:
    if not len(train) or (y[train] == y[train[0]]).all():
        return None
    part = X[np.ix_(train, train)] if isinstance(kernel, Precomputed) else X[train]
    try:
        return solver(kernel, part, y[train], cost[train], team)
    except DataError:  # without this fold there is no margin
        return None


def _scores_of(kernel: Kernel, X: Any, train: Rows, test: Rows, fit: Fit) -> Array:
    used = np.flatnonzero(fit.beta)
    if isinstance(kernel, Precomputed):
        return np.asarray(X[np.ix_(test, train[used])] @ fit.beta[used] + fit.b)
    beta = fit.beta[used][:, None]
    return kernel_scores(kernel, X[test], X[train[used]], beta, [(0, len(used))], n_jobs=1)[0][:, 0] + fit.b


def fit_sigmoid(scores: Array, y: Array) -> tuple[float, float]:
    """Return A and B of P(y = 1 | s) = 1/(1 + exp(As + B)).

    Examples
    --------
    >>> A, B = fit_sigmoid(np.array([-1.0, -1.0, 1.0, 1.0]), np.array([-1.0, -1.0, 1.0, 1.0]))
    >>> round(float(expit(-(A + B))), 4)  # (2 + 1)/(2 + 2)
    0.75
    """
    positive = int((y > 0).sum())
    negative = int((y < 0).sum())
    target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
    size = max(float(np.abs(scores).max(initial=0.0)), np.finfo(float).tiny)
    s = scores / size  # so that both directions have one scale
    w = np.array([0.0, np.log((negative + 1.0) / (positive + 1.0))])
    value = _sigmoid_loss(w, s, target)
    for _ in range(_STEPS):
        p = expit(-(w[0] * s + w[1]))
        slope = target - p
        curve = p * (1.0 - p)
        gradient = np.array([slope @ s, slope.sum()])
        if np.abs(gradient).max() <= _FLAT * len(y):
            break
        hessian = np.array([[curve @ s**2, curve @ s], [curve @ s, curve.sum()]]) + _RIDGE * np.eye(2)
        step = -np.linalg.solve(hessian, gradient)
        length = 1.0
        while (trial := _sigmoid_loss(w + length * step, s, target)) > value and length > 1e-10:
            length *= 0.5
        if not trial < value:
            break  # rounding limit
        w = w + length * step
        value = trial
    return float(w[0] / size), float(w[1])


def _sigmoid_loss(w: Array, s: Array, target: Array) -> float:
    """Return −Σ [t log p + (1 − t) log(1 − p)] for p = 1/(1 + exp(z)), z = w₀s + w₁."""
    z = w[0] * s + w[1]
    return float((np.logaddexp(0.0, z) - (1.0 - target) * z).sum())


def pair_probabilities(scores: Array, slopes: Array, offsets: Array) -> Array:
    """Return the probability of each pair's first class, of shape (n, n_pairs)."""
    return np.clip(expit(-(scores * slopes + offsets)), _LEAST, 1.0 - _LEAST)


def couple(first: Array, n_classes: int) -> Array:
    """Return the distribution over the classes that fits the probabilities of all pairs best: (n, n_classes)."""
    if n_classes == 2:
        return np.column_stack([first[:, 0], 1.0 - first[:, 0]])
    return np.concatenate(
        [_couple_some(first[start : start + _CHUNK], n_classes) for start in range(0, len(first), _CHUNK)]
        or [np.empty((0, n_classes))]
    )


def _couple_some(first: Array, n_classes: int) -> Array:
    n = len(first)
    system = np.zeros((n, n_classes + 1, n_classes + 1))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        r_ij = first[:, k]
        r_ji = 1.0 - first[:, k]
        system[:, i, i] += r_ji**2
        system[:, j, j] += r_ij**2
        system[:, i, j] = system[:, j, i] = -r_ij * r_ji
    system[:, -1, :-1] = system[:, :-1, -1] = 1.0
    right = np.zeros((n, n_classes + 1, 1))
    right[:, -1] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :-1, 0], 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
