r"""Independent checks of embeddings of graphs: distances by SciPy, paths by SciPy, equations by plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path

from ..core.checking import Recheck, relative
from ..data.checking import read_table
from .verify import ROUNDING, embedding_error

Array = NDArray[Any]


def dense_rows(X: Any) -> Array:
    """Return rows as a float64 array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def all_distances(nbrs: Any, X: Any) -> Array:
    """Return the distances between all rows by the metric of a search."""
    from sklearn.metrics import pairwise_distances

    rows = dense_rows(X)
    if nbrs.effective_metric_ == "precomputed":
        return rows
    if nbrs.effective_metric_ == "euclidean":
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(rows, rows))
    found = pairwise_distances(rows, metric=nbrs.effective_metric_, **nbrs.effective_metric_params_)
    return np.asarray(found, dtype=np.float64)


def search_flaw(nbrs: Any, X: Any, options: dict[str, Any]) -> bool:
    """Tell whether a stored search is not one over these rows with these options."""
    rows = nbrs.rows_
    same = rows.shape == X.shape and rows.dtype == X.dtype and abs(rows - X).max() == 0
    return not same or any(getattr(nbrs, name) != value for name, value in options.items())


def graph_error(graph: Any, D: Array, n_neighbors: int | None, radius: float | None, n_parts: int) -> float:
    """Return the largest error of the edges: lengths, every near pair joined, no others but those that join parts."""
    n = len(D)
    size = float(D.max(initial=0.0)) or 1.0
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    edges = np.zeros((n, n), dtype=bool)
    edges[rows, graph.indices] = True
    if not np.array_equal(edges, edges.T) or edges.diagonal().any():
        return np.inf
    error = relative(graph.data, D[rows, graph.indices], size)
    others = D + np.where(np.eye(n, dtype=bool), np.inf, 0.0)
    if n_neighbors is not None:
        reach = np.partition(others, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    else:
        reach = np.full(n, float(radius or 0.0))
    slack = 1e-9 * size
    near = others < reach[:, None] - slack
    allowed = others <= reach[:, None] + slack
    if (near & ~edges).any():
        return np.inf
    extra = edges & ~(allowed | allowed.T)
    parts, labels = connected_components(sp.csr_array(edges & ~extra), directed=False)
    if parts != n_parts or connected_components(graph, directed=False)[0] != 1:
        return np.inf
    if n_neighbors is not None and (np.diff(graph.indptr) < n_neighbors).any():
        return np.inf
    for i, j in zip(*np.nonzero(extra), strict=True):
        own = labels == labels[i]
        other = labels == labels[j]
        outward = D[own][:, ~own].min(initial=np.inf)
        inward = D[other][:, ~other].min(initial=np.inf)
        joined = D[np.ix_(own, other)].min()
        if D[i, j] > joined + slack or (parts == 2 and D[i, j] > min(outward, inward) + slack):
            return np.inf
    return error


@np.errstate(all="ignore")
def isomap(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of an Isomap."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    flawed = search_flaw(model.nbrs_, table.X, {"metric": model.metric, "p": model.p})
    D = all_distances(model.nbrs_, table.X)
    marks = np.asarray(model.landmarks_)
    paths = shortest_path(model.graph_, method="D", directed=False, indices=marks)
    B = -0.5 * paths[:, marks] ** 2
    means = (paths[:, marks] ** 2).mean(axis=0)
    B = B - B.mean(axis=0)
    B = B - B.mean(axis=1, keepdims=True)
    embedding, values = np.asarray(model.embedding_), np.asarray(model.eigenvalues_)
    value, facts = embedding_error(B, embedding[marks], values)
    size = float(values.max(initial=0.0)) or 1.0
    k = min(model.n_components, len(marks))
    top = np.linalg.eigvalsh((B + B.T) / 2.0)[::-1][:k] if len(marks) <= 2000 else values
    shown = np.sqrt(((embedding[marks][:, None] - embedding) ** 2).sum(axis=2)) if n <= 2000 else None
    facts += [
        graph_error(model.graph_, D, model.n_neighbors, model.radius, int(model.n_parts_)),
        relative(model.mean_squares_, means, means.max(initial=0.0) or 1.0),
        relative(np.asarray(float(model.product_norm_)), np.asarray(np.linalg.norm(B)), size),
        relative(values, np.maximum(top, 0.0), size) if embedding.shape == (n, k) else np.inf,
        np.inf if flawed else 0.0,
    ]
    weights = np.where(values > 0, embedding[marks] / np.where(values > 0, values, 1.0), 0.0)
    placed = 0.5 * (means - paths.T**2) @ weights
    facts.append(relative(embedding, placed, np.sqrt(size)))
    if shown is not None:
        r = np.corrcoef(paths.ravel(), shown.ravel())[0, 1] if shown.any() else 1.0
        facts.append(relative(np.asarray(float(model.residual_variance_)), np.asarray(1.0 - r * r), 1.0))
    return Recheck(value if max(facts) <= 1e-7 else max(value, 1.0, *facts), ROUNDING, table.fingerprint)
