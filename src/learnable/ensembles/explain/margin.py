"""Margins of voted classifiers, the bound on their training error, and the largest margin that votes can reach.

The margin of (x, y) is the share of the votes for y minus the largest share for another class, in [−1, 1]; it is
positive exactly where the vote is right. For h_t ∈ ±1 it is y Σ α_t h_t(x)/Σ α_t. Boosting goes on enlarging the small
margins when no training row is wrong any more (R. Schapire, Y. Freund, P. Bartlett and W. Lee, Boosting the margin,
Annals of Statistics 26, 1998).

The largest smallest margin over all votes α ≥ 0, Σα = 1 is a linear program, by von Neumann's theorem equal to the
smallest edge that some distribution leaves to the best learner:

    max_α min_i Σ_t α_t y_i h_t(x_i)  =  min_D max_t Σ_i D_i y_i h_t(x_i).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ...core import Array, DataError, NDArray
from ...data.arrays import sound_csr


class MarginOptimum(NamedTuple):
    """The solution of the linear program."""

    margin: float  #: largest smallest margin
    votes: Array  #: (T,) that reach it, with sum one
    distribution: Array  #: (n,) under which no learner has a larger edge than that


def margins(model: Any, X: Any, y: Any) -> Array:
    """Return the margin of every row.

    Parameters
    ----------
    model : fitted classifier
        One with `margins(X, y)`, or with `estimators_` that vote, by `estimator_weights_` or all alike; for members on
        some columns only, `estimators_features_` is heeded.
    X : (n, d) array
        Rows.
    y : (n,) array
        Their labels.

    Examples
    --------
    >>> from learnable.ensembles import AdaBoostClassifier, margins
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0]
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> bool((margins(model, X, y) > 0).all()), model.score(X, y)
    (True, 1.0)
    """
    check_is_fitted(model)
    if hasattr(model, "margins"):
        return np.asarray(model.margins(X, y), dtype=np.float64)
    X = sound_csr("margins", X) if sp.issparse(X) else np.asarray(X)
    classes = model.classes_
    members = model.estimators_
    weights = np.broadcast_to(getattr(model, "estimator_weights_", 1.0), (len(members),))
    columns = getattr(model, "estimators_features_", None)
    scores = np.zeros((X.shape[0], len(classes)))
    rows = np.arange(X.shape[0])
    for t, member in enumerate(members):
        named = np.asarray(member.predict(X if columns is None else X[:, columns[t]]))
        scores[rows, _codes_of_votes(named, member, classes)] += weights[t]
    return vote_margins(scores / weights.sum(), label_codes(y, classes, "margins"))


def vote_margins(shares: Array, codes: NDArray[np.int64]) -> Array:
    """Return the share of the own class minus the largest share of another.

    Examples
    --------
    >>> import numpy as np
    >>> vote_margins(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([0, 2]))
    array([ 0.2, -0.3])
    """
    rows = np.arange(len(codes))
    others = shares.copy()
    others[rows, codes] = -np.inf
    return shares[rows, codes] - others.max(axis=1)


def training_bound(errors: Any, n_classes: int = 2) -> Array:
    r"""Return the bound on the training error after each round, Π K√(ε(1−ε)/(K−1)); for two classes Π 2√(ε(1−ε)).

    With ε = ½ − γ the bound for two classes is at most exp(−2Σγ²): log(m)/(2γ²) rounds leave no error on m rows.

    Parameters
    ----------
    errors : (T,) array
        Weighted errors of the learners.
    n_classes : int, default=2
        K.

    Examples
    --------
    >>> from learnable.ensembles import training_bound
    >>> training_bound([0.3, 0.2]).round(4)
    array([0.9165, 0.7332])
    """
    e = np.asarray(errors, dtype=np.float64)
    if e.ndim != 1 or not ((e >= 0) & (e <= 1)).all():
        raise DataError(f"training_bound: errors must be a list of numbers between 0 and 1; got {errors!r}.")
    return np.cumprod(n_classes * np.sqrt(e * (1.0 - e) / (n_classes - 1)))


def margin_optimum(outputs: Any) -> MarginOptimum:
    """Solve max_α min_i (Uα)_i over α ≥ 0, Σα = 1.

    Parameters
    ----------
    outputs : (n, T) array
        U: y_i·h_t(x_i) for every row and learner.

    Returns
    -------
    MarginOptimum
        The margin, the votes and the distribution over the rows that proves it.

    Examples
    --------
    >>> from learnable.ensembles import margin_optimum
    >>> found = margin_optimum([[1, 1, -1], [1, -1, 1], [-1, 1, 1]])
    >>> round(found.margin, 6), found.votes.round(4).tolist()
    (0.333333, [0.3333, 0.3333, 0.3333])
    """
    from scipy.optimize import linprog

    U = np.asarray(outputs, dtype=np.float64)
    if U.ndim != 2 or 0 in U.shape or not np.isfinite(U).all():
        raise DataError(f"margin_optimum: outputs must be a table of finite numbers; got shape {np.shape(outputs)}.")
    n, T = U.shape
    found = linprog(
        np.r_[np.zeros(T), -1.0],
        A_ub=np.column_stack([-U, np.ones(n)]),
        b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(T), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * T + [(None, None)],
        method="highs",
    )
    D = np.maximum(-found.ineqlin.marginals, 0.0)
    return MarginOptimum(float(found.x[-1]), found.x[:-1], D / D.sum())


def label_codes(y: Any, classes: NDArray[Any], owner: str) -> NDArray[np.int64]:
    """Return the positions of labels in `classes`; a label that is none of them is refused."""
    labels = np.asarray(y).ravel()
    codes = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
    unknown = classes[codes] != labels
    if np.any(unknown):
        raise DataError(f"{owner}: y has the label {labels[np.argmax(unknown)]!r}, which the fit has not seen.")
    return codes.astype(np.int64)


def _codes_of_votes(named: NDArray[Any], member: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the classes that a member names; some ensembles fit their members to codes instead of labels."""
    own = np.asarray(getattr(member, "classes_", classes))
    if own.dtype.kind != classes.dtype.kind or not np.isin(own, classes).all():
        return named.astype(np.int64)
    return label_codes(named, classes, "margins")
