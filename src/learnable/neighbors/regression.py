"""Regression by the nearest rows: the mean of the targets of the k rows nearest to x estimates E(y | x).

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 2.3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..core.declare import fitted
from ..data.sources import NamedScore, rowwise
from .base import neighbors_door
from .voting import VotingModel

Array = NDArray[Any]


class KNeighborsRegressor(NamedScore, MultiOutputMixin, RegressorMixin, VotingModel):
    """The (weighted) mean target of the k nearest training rows.

    Neighbours are exact, with ties by row number. Memory and time are those of `KNeighborsClassifier`. Columns count in
    their own units: scale them first.

    Examples
    --------
    >>> from learnable import KNeighborsRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0]
    >>> KNeighborsRegressor(n_neighbors=2).fit(X, y).predict([[1.4]])
    array([2.5])
    >>> KNeighborsRegressor(n_neighbors=2, weights="distance").fit(X, y).predict([[1.25]])
    array([1.75])
    """

    _theory = "neighbours"

    targets_: Array = fitted("(n_samples_fit_,) or (n_samples_fit_, n_targets)", "Their targets.")

    _door = staticmethod(neighbors_door(target="numeric", multi_output=True))

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the mean target of the neighbours; None predicts each training row from the others."""
        check_is_fitted(self)
        rows, votes = self._votes(X)
        shares = votes / votes.sum(axis=1, keepdims=True)
        targets = self.targets_[rows]
        return np.einsum("ij,ij...->i...", shares, targets)
