"""Graphs of neighbours, one builder for all embeddings: edges, connected parts, shortest paths.

An edge joins two rows if one is among the nearest of the other. Lengths of zero (equal rows) are edges too.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from ..core.errors import DataError
from ..core.threads import resolve_n_jobs, run_tasks
from ..neighbors import NearestNeighbors
from ._kernels import LANES, nearby_order, shortest_paths

Array = NDArray[Any]

_BUCKETS = 4096  # of waiting nodes, at most
_SOURCES = 4 * LANES  # paths from so many nodes are one task: 10 to 100 ms


def fit_neighbours(owner: str, X: Any, n_neighbors: int | None, n_jobs: int | None, **options: Any) -> NearestNeighbors:
    """Return the search over the rows; raise where there are too few rows for so many neighbours."""
    n = X.shape[0]
    if n_neighbors is not None and n_neighbors >= n:
        raise DataError(
            f"{owner}: Expected n_neighbors < n_samples, but n_neighbors = {n_neighbors}, n_samples = {n}. Ask "
            "for fewer neighbours, or fit more rows."
        )
    return NearestNeighbors(n_neighbors=n_neighbors or 5, n_jobs=n_jobs, **options).fit(X)


def symmetric_graph(n: int, queries: Array, rows: Array, lengths: Array) -> sp.csr_array:
    """Return the graph with every edge in both directions, once; zeros stay."""
    starts = np.concatenate([queries, rows]).astype(np.int64)
    ends = np.concatenate([rows, queries]).astype(np.int64)
    both = np.concatenate([lengths, lengths])
    codes, first = np.unique(starts * n + ends, return_index=True)
    indptr = np.searchsorted(codes, np.arange(n + 1) * n)
    return sp.csr_array((both[first], codes % n, indptr), shape=(n, n))


def neighbour_graph(nbrs: NearestNeighbors, n_neighbors: int | None, radius: float | None) -> sp.csr_array:
    """Return the graph of the k nearest rows, or of all within a radius, with distances as lengths."""
    n = nbrs.n_samples_fit_
    if n_neighbors is not None:
        distances, rows = nbrs.kneighbors(n_neighbors=n_neighbors)
        return symmetric_graph(n, np.repeat(np.arange(n), n_neighbors), rows.ravel(), distances.ravel())
    away, found = nbrs.radius_neighbors(radius=radius)
    counts = np.array([len(run) for run in found])
    return symmetric_graph(n, np.repeat(np.arange(n), counts), np.concatenate(found), np.concatenate(away))


def join_parts(owner: str, graph: sp.csr_array, nbrs: NearestNeighbors, on_parts: str) -> tuple[sp.csr_array, int]:
    """Return the graph with its parts joined by shortest edges, and how many parts there were.

    Every part gets its shortest edge to the others, until one part is left (O. Borůvka, 1926).
    """
    n_parts, labels = connected_components(graph, directed=False)
    found = int(n_parts)
    if found == 1:
        return graph, 1
    advice = "raise n_neighbors or radius"
    if on_parts == "error" or (nbrs.effective_metric_ == "precomputed" and sp.issparse(nbrs.rows_)):
        raise DataError(f"{owner}: the graph of neighbours has {found} connected components, not one; {advice}.")
    warnings.warn(
        f"{owner}: The number of connected components of the neighbors graph is {found} > 1; they were joined by their "
        f"shortest edges, which decide how the components lie to each other. {advice.capitalize()} to avoid it.",
        ConvergenceWarning,
        stacklevel=4,
    )
    n = graph.shape[0]
    while n_parts > 1:
        edges = [_shortest_edge(nbrs, np.flatnonzero(labels == part), labels != part) for part in range(n_parts)]
        starts, ends, lengths = (np.array(column) for column in zip(*edges, strict=True))
        old = np.repeat(np.arange(n), np.diff(graph.indptr))
        graph = symmetric_graph(
            n, np.append(old, starts), np.append(graph.indices, ends), np.append(graph.data, lengths)
        )
        n_parts, labels = connected_components(graph, directed=False)
    return graph, found


def _shortest_edge(nbrs: NearestNeighbors, own: Array, others: Array) -> tuple[int, int, float]:
    """Return the shortest edge from some rows to others."""
    from sklearn.metrics import pairwise_distances

    outside = np.flatnonzero(others)
    best = (int(own[0]), int(outside[0]), np.inf)
    metric = nbrs.effective_metric_
    for start in range(0, len(own), 256):
        some = own[start : start + 256]
        if metric == "precomputed":
            D = np.asarray(nbrs.rows_)[np.ix_(some, outside)]
        else:
            D = pairwise_distances(
                nbrs.rows_[some], nbrs.rows_[outside], metric=metric, **nbrs.effective_metric_params_
            )
        at = int(D.argmin())
        if D.flat[at] < best[2]:
            best = (int(some[at // len(outside)]), int(outside[at % len(outside)]), float(D.flat[at]))
    return best


def paths_from(graph: sp.csr_array, sources: Array, n_jobs: int | None) -> Array:
    """Return the (m, n) lengths of shortest paths from some nodes to all, on threads."""
    n = graph.shape[0]
    out = np.empty((len(sources), n))
    # Nodes that lie together get numbers that follow each other: neighbours then share lines of the cache, and sources
    # that are served together see the graph in nearly the same order.
    columns = _nearby_order(graph)
    number = _inverse(columns)
    renumbered = graph[columns][:, columns]
    indptr = renumbered.indptr.astype(np.int64)
    indices = renumbered.indices.astype(np.int32)
    lengths = np.asarray(renumbered.data, dtype=np.float64)
    longest = float(lengths.max(initial=0.0))
    positive = lengths[lengths > 0]
    # A mean edge per bucket: few nodes are taken twice, and few buckets are empty. Far outliers do not multiply them.
    width = max(float(positive.mean()), longest / _BUCKETS) if len(positive) else 1.0
    n_buckets = int(longest / width) + 3 + 8  # sources that are served together are some edges apart
    rows = np.argsort(number[sources], kind="stable")
    starts = number[np.asarray(sources)[rows]]

    def work(task: int) -> None:
        part = slice(task * _SOURCES, (task + 1) * _SOURCES)
        shortest_paths(indptr, indices, lengths, starts[part], width, n_buckets, rows[part], columns, out)

    run_tasks(work, -(-len(sources) // _SOURCES), resolve_n_jobs(n_jobs))
    return out


def _nearby_order(graph: sp.csr_array) -> Array:
    """Return the nodes in an order in which those that lie together follow each other."""
    order = np.empty(graph.shape[0], dtype=np.int64)
    nearby_order(graph.indptr.astype(np.int64), graph.indices.astype(np.int32), LANES, order)
    return order


def _inverse(order: Array) -> Array:
    """Return the place of each number in a permutation."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def paths_of_new_rows(
    graph: sp.csr_array, distances: list[Array], rows: list[Array], targets: Array, n_jobs: int | None
) -> Array:
    """Return the path lengths from new rows, each joined to its neighbours, to some nodes of the graph.

    A new row without neighbours is at an infinite distance from all.
    """
    n = graph.shape[0]
    found = np.empty((len(rows), len(targets)))
    place = _inverse(_nearby_order(graph))
    # Rows whose nearest lie together are served together.
    order = np.argsort([place[near[0]] if len(near) else n for near in rows], kind="stable")
    for start in range(0, len(rows), 256):
        part = order[start : start + 256]
        m = len(part)
        # The new rows are nodes n, n + 1, …, whose edges lead into the graph and not back.
        counts = np.cumsum([len(rows[i]) for i in part])
        indptr = np.concatenate([graph.indptr, graph.indptr[-1] + counts])
        indices = np.concatenate([graph.indices, *(rows[i] for i in part)])
        lengths = np.concatenate([graph.data, *(distances[i] for i in part)])
        wider = sp.csr_array((lengths, indices, indptr), shape=(n + m, n + m))
        found[part] = paths_from(wider, np.arange(n, n + m), n_jobs)[:, targets]
    return found
