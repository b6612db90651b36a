"""Regression by the nearest rows: the mean of the targets of the k rows nearest to x estimates E(y | x).

Reference: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2nd ed., section 2.3.2.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..core.errors import ModelFileError
from ..core.parameters import Rule
from ..data.sources import NamedScore, rowwise
from .base import COMMON_PARAMETERS, WEIGHTS, neighbors_door
from .voting import VotingModel

Array = NDArray[Any]


class KNeighborsRegressor(NamedScore, MultiOutputMixin, RegressorMixin, VotingModel):
    """The (weighted) mean target of the k nearest training rows.

    Neighbours are exact, with ties by row number. Memory and time are those of `KNeighborsClassifier`. Columns count in
    their own units: scale them first.

    Parameters
    ----------
    n_neighbors : int, default=5
        k.
    weights : {"uniform", "distance"} or callable, default="uniform"
        Weights of the neighbours: one each, 1/distance, or a function from an array of distances to one of weights.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How to search; the neighbours are the same.
    leaf_size : int, default=30
        Rows of a leaf of the tree.
    p : float, default=2
        Power of the Minkowski distance.
    metric : str or callable, default="minkowski"
        Any metric of scikit-learn, a function of two rows, or "precomputed". With "nan_euclidean" X may hold NaN: the
        distance is that of the columns missing in neither row, as a share of all; infinite if there are none.
    metric_params : dict, default=None
        Further parameters of the metric.
    n_jobs : int or None, default=None
        Threads; None uses all that BLAS may use. The result does not depend on it.

    Attributes
    ----------
    effective_metric_ : str or callable
        The metric; Minkowski's with p = 1, 2, ∞ by its own name.
    effective_metric_params_ : dict
        Its parameters.
    n_samples_fit_ : int
        Number of training rows.
    rows_ : array or CSR array of shape (n_samples_fit_, n_features)
        The training rows.
    targets_ : array of shape (n_samples_fit_,) or (n_samples_fit_, n_targets)
        Their targets.
    row_weights_ : array of shape (n_samples_fit_,)
        Their weights, if weights were given: a row of weight w counts as w rows.
    certificate_ : Certificate
        Largest relative error of the distances of a few rows' neighbours.

    Examples
    --------
    >>> from learnable import KNeighborsRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0]
    >>> KNeighborsRegressor(n_neighbors=2).fit(X, y).predict([[1.4]])
    array([2.5])
    >>> KNeighborsRegressor(n_neighbors=2, weights="distance").fit(X, y).predict([[1.25]])
    array([1.75])
    """

    _parameters: ClassVar[dict[str, Rule]] = COMMON_PARAMETERS | {"weights": WEIGHTS}
    _door = staticmethod(neighbors_door(target="numeric", multi_output=True))

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    @rowwise
    def predict(self, X: Any) -> Array:
        """Return the mean target of the neighbours; None predicts each training row from the others."""
        check_is_fitted(self)
        rows, votes = self._votes(X)
        shares = votes / votes.sum(axis=1, keepdims=True)
        targets = self.targets_[rows]
        return np.einsum("ij,ij...->i...", shares, targets)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        y = getattr(self, "targets_", None)
        if not isinstance(y, np.ndarray) or y.dtype != np.float64 or y.ndim not in (1, 2):
            raise ModelFileError("load: targets_ must be a float64 array.")
        if len(y) != self.n_samples_fit_ or not np.isfinite(y).all():
            raise ModelFileError("load: targets_ must hold finite numbers, one row of them for each row of rows_.")
