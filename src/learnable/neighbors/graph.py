"""Search in distances that are given: a table of all of them, or a sparse graph of some.

In a graph an entry is an edge, also where its distance is zero; rows without an edge are no neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..core.errors import DataError
from ._kernels import scan_keys
from .search import Search

Array = NDArray[Any]


class GraphSearch(Search):
    """Search by given distances of the queries to the n rows; the keys are the distances."""

    has_range = False

    def __init__(self, owner: str, n_rows: int, checked: Callable[[Any], Any]) -> None:
        self.owner, self.n_rows, self.checked = owner, n_rows, checked

    def units(self, Q: Any) -> Array:
        """Return ones."""
        return np.ones(Q.shape[0])

    def _scan(self, Q: Any, own: Array, keys: Array, rows: Array) -> None:
        D = self.checked(Q)
        if not sp.issparse(D):
            scan_keys(D, 0, own, keys, rows)
            return
        k = keys.shape[1]
        needed = k + int((own >= 0).any())
        fewest = int(np.diff(D.indptr).min())
        if fewest < needed:
            raise DataError(
                f"{self.owner}: {needed} neighbors per samples are required, but some samples have only {fewest} "
                "neighbors in precomputed graph matrix. Decrease number of neighbors used or recompute the graph with "
                "more neighbors."
            )
        for i in range(D.shape[0]):
            edges = slice(D.indptr[i], D.indptr[i + 1])
            near, distances = D.indices[edges], D.data[edges]
            kept = near != own[i]
            near, distances = near[kept], distances[kept]
            best = np.lexsort((near, distances))[:k][::-1]  # a heap: the worst first
            keys[i], rows[i] = distances[best], near[best]

    def _pairs(self, Q: Any, limit: Array) -> tuple[Array, Array, Array]:
        D = self.checked(Q)
        if sp.issparse(D):
            queries = np.repeat(np.arange(D.shape[0]), np.diff(D.indptr))
            kept = D.data <= limit[queries]
            return queries[kept], D.indices[kept].astype(np.int64), D.data[kept]
        queries, rows = np.nonzero(limit[:, None] >= D)
        return queries, rows, D[queries, rows]
