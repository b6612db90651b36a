"""The search for neighbours by itself: no target, only distances.

Reference: J. Friedman, J. Bentley and R. Finkel, An algorithm for finding best matches in logarithmic expected time,
ACM Transactions on Mathematical Software 3 (1977), 209–226 (the tree); the screening is described in `search.py`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core import AnyArray, Number, ParameterError, param
from .base import N_NEIGHBORS, NeighborsModel, neighbors_door


class NearestNeighbors(NeighborsModel):
    """Exact nearest neighbours among fixed rows.

    The neighbours are those of distances in float64, with ties by row number, whatever the algorithm and the number of
    threads. Memory O(nd): the rows, and half as much again (float32) for the search by BLAS, or once more for a tree.

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

    _theory = "neighbour-search"

    n_neighbors: int = param(N_NEIGHBORS, "How many neighbours `kneighbors` returns.", default=5)
    radius: float = param(Number(low=0.0, finite=False), "How far `radius_neighbors` looks.", default=1.0)

    _door = staticmethod(neighbors_door(target="none"))

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
            found[0, i] = distances[run][order]
            found[1, i] = rows[run][order]
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

    def _within(self, X: Any, radius: Any) -> tuple[AnyArray, AnyArray, AnyArray]:
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
