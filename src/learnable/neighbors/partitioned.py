"""Nearest neighbours among rows that stay on a cluster, or in files: every partition is asked, and answers are merged.

The k nearest of all rows are among the k nearest of each partition. So each partition searches its own rows with
`NearestNeighbors`, and sends k distances and row numbers per query; the client keeps the k smallest, with ties by row
number. The rows do not travel, the queries do. What is found is what one search over all rows finds, to the bit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core import AnyArray, DataError, ParameterError
from ..data import Block, Files, map_reduce
from ..data.door import is_external
from ..data.sources import open_files, open_source
from .nearest import NearestNeighbors

Answer = tuple[AnyArray, AnyArray]

_OWNER = "neighbors_in_partitions"


def neighbors_in_partitions(X: Any, queries: Any, n_neighbors: int = 5, **options: Any) -> Answer:
    """Return distances and row numbers of the nearest rows of X, which stay where they are.

    Parameters
    ----------
    X : Dask array or dataframe, or path, glob or `Files`
        The rows to be searched; all columns are features. Each partition is held in the memory of one worker.
    queries : array of shape (n_queries, n_features)
        New rows, few enough that k answers for each fit into memory once per partition in work.
    n_neighbors : int
        k, at most the number of rows.
    **options
        As in `NearestNeighbors`: metric, p, algorithm, …

    Returns
    -------
    distances, rows : arrays of shape (n_queries, k)
        In ascending order; of equal distances the smaller row number comes first.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from learnable.neighbors import neighbors_in_partitions
    >>> X = da.from_array(np.arange(10.0)[:, None], chunks=(3, 1))
    >>> neighbors_in_partitions(X, [[4.2]], n_neighbors=3)[1]
    array([[4, 5, 3]])
    """
    if not isinstance(n_neighbors, (int, np.integer)) or n_neighbors < 1:
        raise ParameterError(f"{_OWNER}: n_neighbors must be a whole number >= 1; got {n_neighbors!r}.")
    if not is_external(X):
        raise DataError(f"{_OWNER}: X must be a Dask collection or files; use NearestNeighbors for rows in memory.")
    asked = np.atleast_2d(np.asarray(queries, dtype=np.float64))
    source = X if not isinstance(X, str) and not hasattr(X, "__fspath__") else open_files(_OWNER, X)
    if isinstance(source, Files):
        source.in_memory_bytes = 0
    blocks = open_source(_OWNER, source, None, None, "none").blocks
    if asked.shape[1] != blocks.n_columns:
        raise DataError(f"{_OWNER}: queries have {asked.shape[1]} columns, X has {blocks.n_columns}.")
    n_rows = blocks.n_rows  # this pass also numbers the rows
    if n_neighbors > n_rows:
        raise DataError(f"{_OWNER}: n_neighbors={n_neighbors} exceeds the {n_rows} rows of X; ask for fewer.")
    search = partial(_nearest_of_block, asked, int(n_neighbors), options)
    distances, rows = map_reduce(blocks, search, partial(_nearer, int(n_neighbors)))
    return distances, rows


def _nearest_of_block(queries: AnyArray, k: int, options: dict[str, Any], block: Block) -> Answer:
    model = NearestNeighbors(n_neighbors=min(k, len(block.X)), n_jobs=1, **options).fit(block.X)
    distances, rows = model.kneighbors(queries)
    return distances, rows + block.start


def _nearer(k: int, a: Answer, b: Answer) -> Answer:
    """Return the k nearest of two answers, with ties by row number."""
    distances, rows = (np.concatenate(pair, axis=1) for pair in zip(a, b, strict=True))
    order = np.lexsort((rows, distances), axis=1)[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)
