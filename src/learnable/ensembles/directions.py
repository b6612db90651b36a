"""Directions of descent: what a weak learner answers to the negative gradient −g of the loss.

A regressor is fitted to −g. A classifier, and the stump over all columns and thresholds, get the labels sign(−g) and
the weights |g|: of all h ∈ ±1 that they can return, the one of least weighted error has the largest −⟨g, h⟩.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from ..core.errors import DataError
from ..data.rows import weight_keyword
from ..trees.decision_tree import DecisionTreeRegressor
from .stumps import Stump, StumpSearch, stump_outputs
from .weak_learners import seed_parts

Array = NDArray[np.float64]

#: A direction whose slope is this small against ‖g‖‖h‖ does not descend: sums are not more exact.
NO_SLOPE = 1e-10
_BITS = 40  # of the largest entry of the gradient that learners see


class Direction(NamedTuple):
    """One direction and what it says of the training rows."""

    outputs: Array  #: (n, K)
    stump: Stump | None
    models: list[Any]  #: one for each of the K scores, where it is no stump


Find = Callable[[Array], "Direction | None"]


def direction_of(
    learner: Any,
    X: Any,
    y: NDArray[Any],
    given: Array | None,
    n_scores: int,
    seed: int,
    n_jobs: int | None,
    signs: bool,
) -> Find:
    """Return the function that answers −g (n, K) with a direction, or None where nothing descends.

    Parameters
    ----------
    learner : estimator or None
        Cloned; None is a stump.
    X, y, given : arrays
        Rows; targets as the loss takes them; weights or None, which the learners get as they are.
    n_scores : int
        K.
    seed : int
        Of the ensemble.
    n_jobs : int or None
        Threads of the search for stumps.
    signs : bool
        Whether targets are ±1.
    """
    weight = np.ones(len(y)) if given is None else given
    if learner is None and signs:
        search = StumpSearch(X, (y > 0).astype(np.int64), 2, n_jobs=n_jobs)
        return lambda towards: _stump(search, towards, weight, y)
    model = DecisionTreeRegressor(max_depth=1) if learner is None else learner
    if is_classifier(model) and n_scores > 1:
        raise DataError(
            f"ForwardStagewiseAdditive: {type(model).__name__} names one of two signs, but there are {n_scores} scores "
            "a row; use a regressor as learner."
        )
    weighted = given is not None or is_classifier(model)
    keyword = weight_keyword("ForwardStagewiseAdditive", model) if weighted else None
    count = iter(range(2**62))

    def fit(towards: Array) -> Any:
        one = clone(model)
        seed_parts(one, seed, next(count))
        if is_classifier(one):
            return one.fit(X, np.where(towards > 0, 1, -1), **{str(keyword): weight * np.abs(towards)})
        return one.fit(X, towards) if keyword is None else one.fit(X, towards, **{keyword: weight})

    def find(towards: Array) -> Direction | None:
        if is_classifier(model) and ((towards > 0).all() or (towards <= 0).all()):
            return None
        size = float(np.abs(towards).max(initial=0.0))
        if not (0.0 < size < np.inf):
            return None
        # Without the last bits, so that equal residuals are equal and ties do not depend on how they were computed.
        unit = 2.0 ** (np.floor(np.log2(size)) - _BITS)
        rounded = np.rint(towards / unit) * unit if unit > 0.0 else towards
        models = [fit(rounded[:, k]) for k in range(n_scores)]
        return _if_it_descends(Direction(direction_outputs(models, X), None, models), towards, weight)

    return find


def direction_outputs(learners: list[Any], X: Any) -> Array:
    """Return what the learners of one round say of rows, (n, K)."""
    if isinstance(learners[0], Stump):
        return stump_outputs(learners[0], X)
    return np.column_stack([np.asarray(model.predict(X), dtype=np.float64).ravel() for model in learners])


def _stump(search: StumpSearch, towards: Array, weight: Array, y: Array) -> Direction | None:
    D = weight * towards[:, 0] * y  # negative where the loss pulls away from the label
    total = float(np.abs(D).sum())
    if not (0.0 < total < np.inf):
        return None
    stump, right = search.find(D / total)
    outputs = stump.value[right.astype(np.int64)]
    return _if_it_descends(Direction(outputs, stump, []), towards, weight)


def _if_it_descends(direction: Direction, towards: Array, weight: Array) -> Direction | None:
    h, g = direction.outputs, towards
    largest, steepest = float(np.abs(h).max(initial=0.0)), float(np.abs(g).max(initial=0.0))
    if not (0.0 < largest < np.inf and 0.0 < steepest < np.inf):
        return None
    h, g = h / largest, g / steepest  # no square overflows
    slope = float(weight @ (h * g).sum(axis=1))
    sizes = np.sqrt(float(weight @ (h * h).sum(axis=1)) * float(weight @ (g * g).sum(axis=1)))
    return direction if slope > NO_SLOPE * sizes else None
