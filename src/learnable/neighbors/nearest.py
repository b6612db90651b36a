"""The search for neighbours by itself: no target, only distances.

Reference: J. Friedman, J. Bentley and R. Finkel, An algorithm for finding best matches in logarithmic expected time,
ACM Transactions on Mathematical Software 3 (1977), 209–226 (the tree); the screening is described in `search.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.errors import ParameterError
from ..core.parameters import Number, Rule
from .base import COMMON_PARAMETERS, NeighborsModel, neighbors_door

Array = NDArray[Any]


class NearestNeighbors(NeighborsModel):
    """Exact nearest neighbours among fixed rows.

    The neighbours are those of distances in float64, with ties by row number, whatever the algorithm and the number of
    threads. Memory O(nd): the rows, and half as much again (float32) for the search by BLAS, or once more for a tree.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many neighbours `kneighbors` returns.
    radius : float, default=1.0
        How far `radius_neighbors` looks.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How to search. Both trees are a k-d tree; "auto" takes it where it is quicker.
    leaf_size : int, default=30
        Rows of a leaf of the tree.
    metric : str or callable, default="minkowski"
        Any metric of scikit-learn, a function of two rows, or "precomputed". With "nan_euclidean" X may hold NaN: the
        distance is that of the columns missing in neither row, as a share of all; infinite if there are none.
    p : float, default=2
        Power of the Minkowski distance.
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
        Number of rows.
    rows_ : array or CSR array of shape (n_samples_fit_, n_features)
        The rows.
    certificate_ : Certificate
        Largest relative error of the distances of a few rows' neighbours.

    Examples
    --------
    >>> from learnable import NearestNeighbors
    >>> search = NearestNeighbors(n_neighbors=2).fit([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> distances, rows = search.kneighbors([[0.0, 0.0]])
    >>> distances, rows
    (array([[0., 1.]]), array([[0, 2]]))
    >>> search.kneighbors_graph(n_neighbors=1).toarray()
    array([[0., 0., 1.], [0., 0., 1.], [1., 0., 0.]])
    """

    _parameters: ClassVar[dict[str, Rule]] = COMMON_PARAMETERS | {"radius": Number(low=0.0, finite=False)}
    _door = staticmethod(neighbors_door(target="none"))

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        radius: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Store the rows and prepare the search.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            The rows; square distances with metric="precomputed".
        y : ignored
            For compatibility.
        """
        return super().fit(X)

    def radius_neighbors(
        self, X: Any = None, radius: float | None = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """Return all rows within a radius of each row of X.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_queries, n_features), or None
            Queries; None: the training rows, each of which is then not its own neighbour.
        radius : float or array of shape (n_queries,), optional
            By default the model's `radius`. A row at exactly this distance is within it.
        return_distance : bool
            Whether distances are returned too.
        sort_results : bool
            Whether the rows are sorted by distance; otherwise by row number.

        Returns
        -------
        distances : array of shape (n_queries,) of arrays
            Only if `return_distance`.
        rows : array of shape (n_queries,) of arrays
            Numbers of training rows.
        """
        if sort_results and not return_distance and self.metric != "precomputed":
            raise ParameterError("NearestNeighbors: return_distance must be True if sort_results is True.")
        distances, rows, counts = self._within(X, radius)
        ends = np.cumsum(counts)
        found = np.empty((2, len(counts)), dtype=object)
        for i, (end, count) in enumerate(zip(ends, counts, strict=True)):
            run = slice(end - count, end)
            order = np.argsort(distances[run], kind="stable") if sort_results else slice(None)
            found[0, i], found[1, i] = distances[run][order], rows[run][order]
        return (found[0], found[1]) if return_distance else found[1]

    def radius_neighbors_graph(
        self, X: Any = None, radius: float | None = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """Return the graph of rows within a radius as a sparse matrix of shape (n_queries, n_samples_fit).

        Parameters
        ----------
        X, radius, sort_results
            As in `radius_neighbors`.
        mode : {"connectivity", "distance"}
            Whether an edge is 1.0 or the distance.
        """
        self._check_mode(mode)
        distances, rows = self.radius_neighbors(X, radius, sort_results=sort_results)
        counts = np.array([len(run) for run in rows])
        values = np.ones(counts.sum()) if mode == "connectivity" else np.concatenate(distances)
        return self._graph(values, np.concatenate(rows), counts)

    def _within(self, X: Any, radius: Any) -> tuple[Array, Array, Array]:
        check_is_fitted(self)
        radius = self.radius if radius is None else radius
        numbers = np.asarray(radius)
        if numbers.ndim > 1 or numbers.dtype.kind not in "iuf" or not (numbers >= 0).all():
            raise ParameterError(f"NearestNeighbors: radius must be a number >= 0, or one per query; got {radius!r}.")
        index = self._searching()
        Q, own = (self.rows_, np.arange(self.n_samples_fit_)) if X is None else (self._queries(X), None)
        Q = index.prepare(Q)
        if numbers.ndim == 1 and len(numbers) != Q.shape[0]:
            raise ParameterError(f"NearestNeighbors: radius must have one number per query, {Q.shape[0]} of them.")
        limits = np.ascontiguousarray(np.broadcast_to(numbers, Q.shape[0]), dtype=np.float64)
        return index.within(Q, limits, own, self.n_jobs)
