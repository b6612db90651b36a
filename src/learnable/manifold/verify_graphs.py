r"""Independent checks of embeddings of graphs: distances by SciPy, paths by SciPy, equations by plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist

from ..core.checking import Recheck, relative
from ..data.checking import read_table
from .verify import ROUNDING, embedding_error, signs_are_fixed

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
    embedding = np.asarray(model.embedding_)
    values = np.asarray(model.eigenvalues_)
    value, facts = embedding_error(B, embedding[marks], values)
    size = float(values.max(initial=0.0)) or 1.0
    k = min(model.n_components, len(marks))
    top = np.linalg.eigvalsh((B + B.T) / 2.0)[::-1][:k] if len(marks) <= 2000 else values
    some = np.arange(0, len(marks), -(-len(marks) // 1000))
    shown = cdist(embedding[marks[some]], embedding)
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
    r = np.corrcoef(paths[some].ravel(), shown.ravel())[0, 1] if shown.any() else 1.0
    facts.append(relative(np.asarray(float(model.residual_variance_)), np.asarray(1.0 - r * r), 1.0))
    return Recheck(value if max(facts) <= 1e-7 else max(value, 1.0, *facts), ROUNDING, table.fingerprint)


def walk_error(
    S: Array, root: Array, coordinates: Array, values: Array, size: float, scale: float = 1.0
) -> tuple[float, list[float]]:
    """Return the residual of u = root·y/scale as eigenvectors of S, and whether their signs are fixed."""
    U = coordinates * root[:, None] / scale
    residual = np.linalg.norm(S @ U - U * values, axis=0).max(initial=0.0) / size
    inner = np.abs(U.T @ U - np.eye(U.shape[1])).max(initial=0.0)
    peak = np.abs(coordinates).max(axis=0)
    largest = np.abs(coordinates) >= (1.0 - 1e-6) * peak
    signs = ((coordinates > 0) & largest).any(axis=0) | (peak == 0)
    return float(max(residual, inner)), [0.0 if signs.all() else np.inf]


@np.errstate(all="ignore")
def spectral_embedding(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a SpectralEmbedding."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    facts = [_rows_error(model.X_fit_, table.X), affinity_error(model, table.X)]
    A = dense_rows(model.affinity_matrix_).copy()
    np.fill_diagonal(A, 0.0)
    degrees = A.sum(axis=1)
    facts.append(relative(model.degrees_, degrees, degrees.max(initial=0.0) or 1.0))
    joined = np.where(degrees > 0, degrees, 1.0)
    L = np.diag(degrees) - A
    root = np.ones(n)
    if model.normalized:
        root = np.sqrt(joined)
        L = L / root / root[:, None]
    values = np.asarray(model.eigenvalues_)
    size = max(float(np.abs(values).max(initial=0.0)), float(np.abs(L).max(initial=0.0))) or 1.0
    value, more = walk_error(L, root, np.asarray(model.embedding_), values, size)
    every = np.linalg.eigvalsh((L + L.T) / 2.0) if n <= 2000 else None
    k = min(model.n_components, n - 1)
    gamma = 1.0 / table.n_columns if model.gamma is None else model.gamma
    facts += more
    facts.append(0.0 if len(values) == k and np.isclose(model.gamma_, gamma, rtol=1e-12, atol=0.0) else np.inf)
    facts.append(0.0 if model.n_parts_ == connected_components(sp.csr_array(A), directed=False)[0] else np.inf)
    if every is not None:
        facts.append(relative(values, np.maximum(every[1 : k + 1], 0.0), size))
    worst = max(facts)
    return Recheck(value if worst <= 1e-8 else max(value, 1.0, worst), ROUNDING, table.fingerprint)


def _rows_error(stored: Any, X: Any) -> float:
    same = stored.shape == X.shape and stored.dtype == X.dtype and abs(stored - X).max() == 0
    return 0.0 if same else np.inf


def affinity_error(model: Any, X: Any) -> float:
    """Return how far the stored affinities are from those that the parameters state."""
    A = dense_rows(model.affinity_matrix_)
    n = X.shape[0]
    if A.shape != (n, n):
        return np.inf
    if callable(model.affinity):
        stated = np.asarray(model.affinity(X))
        return relative(A, (stated + stated.T) / 2.0, 1.0)
    rows = dense_rows(X)
    if model.affinity == "precomputed":
        return relative(A, (rows + rows.T) / 2.0, np.abs(rows).max(initial=0.0) or 1.0)
    if model.affinity == "rbf":
        return relative(A, np.exp(-model.gamma_ * cdist(rows, rows) ** 2), 1.0)
    if "neighbors" not in model.affinity:
        from sklearn.metrics.pairwise import pairwise_kernels

        given = {**(model.kernel_params or {}), "gamma": model.gamma_, "degree": model.degree, "coef0": model.coef0}
        stated = pairwise_kernels(rows, metric=model.affinity, filter_params=True, **given)
        return relative(A, (stated + stated.T) / 2.0, np.abs(stated).max(initial=0.0) or 1.0)
    wanted = max(n // 10, 2) if model.n_neighbors is None else model.n_neighbors
    if model.n_neighbors_ != min(n, wanted):
        return np.inf
    k = max(int(model.n_neighbors_) - 1, 1)
    D = rows.copy() if model.affinity == "precomputed_nearest_neighbors" else cdist(rows, rows)
    if model.affinity == "precomputed_nearest_neighbors":
        D[D == 0] = np.inf
    np.fill_diagonal(D, np.inf)
    reach = np.partition(D, k - 1, axis=1)[:, k - 1]
    error = relative(model.reach_, reach, reach.max(initial=0.0) or 1.0)
    near = reach[:, None] * (1.0 - 1e-9) > D
    allowed = reach[:, None] * (1.0 + 1e-9) >= D
    # Ties may be broken either way: an affinity lies between that of the certain and that of the possible neighbours.
    low = 0.5 * near + 0.5 * near.T + np.eye(n)
    high = 0.5 * allowed + 0.5 * allowed.T + np.eye(n)
    return error if (low <= A).all() and (high >= A).all() and abs(A.sum() - n - n * k) < 0.5 else np.inf


@np.errstate(all="ignore")
def spectral_clustering(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a SpectralClustering."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    A = dense_rows(model.affinity_matrix_).copy()
    facts = [_rows_error(model.X_fit_, table.X), affinity_error(model, table.X)]
    np.fill_diagonal(A, 0.0)
    degrees = A.sum(axis=1)
    root = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    L = (np.diag(degrees) - A) / root / root[:, None]
    values = np.asarray(model.eigenvalues_)
    Y = np.asarray(model.embedding_)
    size = max(float(np.abs(values).max(initial=0.0)), float(np.abs(L).max(initial=0.0))) or 1.0
    value, _ = walk_error(L, root, Y, values, size)
    centers = np.asarray(model.cluster_centers_)
    K = len(centers)
    labels = np.asarray(model.labels_)
    members = np.eye(K)[labels]
    volume = members.T @ degrees
    leaving = np.maximum(volume - np.diag(members.T @ A @ members), 0.0)
    cut = float((leaving / np.where(volume > 0, volume, 1.0)).sum())
    means = members.T @ Y / np.maximum(members.sum(axis=0), 1.0)[:, None]
    facts += [
        relative(model.degrees_, degrees, degrees.max(initial=0.0) or 1.0),
        relative(values, np.maximum(np.linalg.eigvalsh(L)[: len(values)], 0.0), size),
        relative(centers, means, np.abs(Y).max(initial=0.0) or 1.0),
        relative(np.asarray(float(model.normalized_cut_)), np.asarray(cut), 1.0),
        0.0 if signs_are_fixed(Y * root[:, None]) and np.isclose(model.gamma_, model.gamma) else np.inf,
        0.0 if model.n_parts_ == connected_components(sp.csr_array(A), directed=False)[0] else np.inf,
        0.0 if model.n_clusters in (K, "eigengap") and len(labels) == n else np.inf,
    ]
    if model.assign_labels == "kmeans":
        away = ((Y[:, None] - centers) ** 2).sum(axis=2)
        spread = (Y**2).sum(axis=1).max()
        facts.append(0.0 if (away[np.arange(n), labels] <= away.min(axis=1) + 1e-3 * spread).all() else np.inf)
    worst = max(facts)
    return Recheck(value if worst <= 1e-8 else max(value, 1.0, worst), ROUNDING, table.fingerprint)


@np.errstate(all="ignore")
def diffusion_maps(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a DiffusionMaps."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    D = cdist(dense_rows(table.X), dense_rows(table.X))
    epsilon = model.epsilon
    if epsilon == "auto":
        away = np.sort(D + np.diag(np.full(n, np.inf)), axis=1)[:, min(7, n - 1) - 1] ** 2
        epsilon = 2.0 * np.median(away) or away.max() or 1.0
    K = np.exp(-(D**2) / model.epsilon_)
    density = K.sum(axis=1)
    K = K / np.outer(density, density) ** model.alpha
    degrees = K.sum(axis=1)
    root = np.sqrt(degrees)
    S = K / np.outer(root, root)
    values = np.asarray(model.eigenvalues_)
    shown = np.asarray(model.embedding_)
    kept = values > 1e-6
    psi = shown[:, kept] / values[kept] ** model.time
    value, facts = walk_error(S, root, psi, values[kept], 1.0, float(np.sqrt(degrees.sum())))
    k = min(model.n_components, n - 1)
    facts += [
        _rows_error(model.X_fit_, table.X),
        relative(np.asarray(float(model.epsilon_)), np.asarray(float(epsilon))),
        relative(model.density_, density),
        relative(model.degrees_, degrees),
        0.0 if shown.shape == (n, k) else np.inf,
        relative(shown[:, values <= 0], 0.0 * shown[:, values <= 0], 1.0) if model.time > 0 else 0.0,
    ]
    if n <= 2000:
        facts.append(relative(values, np.minimum(np.linalg.eigvalsh((S + S.T) / 2.0)[::-1][1 : k + 1], 1.0), 1.0))
    worst = max(facts)
    return Recheck(value if worst <= 1e-8 else max(value, 1.0, worst), 1e-10, table.fingerprint)


@np.errstate(all="ignore")
def locally_linear(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a LocallyLinearEmbedding, one neighbourhood after the other."""
    table = read_table(model, X, None, sample_weight)
    rows = dense_rows(table.X)
    n = table.n_rows
    k = model.n_neighbors
    D = all_distances(model.nbrs_, table.X)
    near = np.asarray(model.nbrs_.kneighbors(n_neighbors=k, return_distance=False))
    others = D + np.where(np.eye(n, dtype=bool), np.inf, 0.0)
    nearest = np.sort(others, axis=1)[:, :k]
    facts = [
        relative(np.take_along_axis(others, near, axis=1), nearest, D.max(initial=0.0) or 1.0),
        np.inf if search_flaw(model.nbrs_, table.X, {"metric": "minkowski", "p": 2}) else 0.0,
    ]
    M = np.zeros((n, n))
    share = _median_share(rows, near, model.n_components) if model.method == "modified" else 0.0
    for i in range(n):
        if model.method == "modified":
            W = _several_mixtures(rows[near[i]] - rows[i], share, model.reg)
            at = np.append(i, near[i])
            M[np.ix_(at, at)] += W @ W.T
        elif model.method == "standard":
            row = np.zeros(n)
            row[i] = 1.0
            row[near[i]] -= _mixture(rows[near[i]] - rows[i], model.reg)
            at = np.append(near[i], i)
            M[np.ix_(at, at)] += np.outer(row[at], row[at])
        else:
            M[np.ix_(near[i], near[i])] += _local_form(rows[near[i]], model)
    Y = np.asarray(model.embedding_)
    values = np.asarray(model.eigenvalues_)
    every = np.linalg.eigvalsh(M)
    count = min(model.n_components + 1, n) - 1
    size = max(float(np.abs(M).max()), float(every[count]))
    residual = np.linalg.norm(M @ Y - Y * values, axis=0).max(initial=0.0) / size
    inner = np.abs(Y.T @ Y - np.eye(Y.shape[1])).max(initial=0.0)
    graph = sp.csr_array((np.ones(near.size), near.ravel(), np.arange(n + 1) * k), shape=(n, n))
    facts += [
        relative(values, np.maximum(every[1 : count + 1], 0.0), size),
        relative(np.asarray(float(model.reconstruction_error_)), np.asarray(values.sum()), max(values.sum(), 1e-300)),
        0.0 if signs_are_fixed(Y) and model.n_parts_ == connected_components(graph)[0] else np.inf,
    ]
    value = float(max(residual, inner))
    worst = max(facts)
    return Recheck(value if worst <= 1e-9 else max(value, 1.0, worst), 1e-10, table.fingerprint)


def _mixture(away: Array, reg: float) -> Array:
    """Return the weights of one neighbourhood, by the definition."""
    G = away @ away.T
    trace = float(np.trace(G))
    G = G + np.eye(len(G)) * (max(reg, 1e-12) * trace if trace > 0 else 1.0)
    w = np.linalg.lstsq(G, np.ones(len(G)), rcond=None)[0]
    return np.asarray(w / w.sum())


def _median_share(rows: Array, near: Array, d: int) -> float:
    """Return η of the modified method: the median of the variance outside d directions, by that along them."""
    shares = []
    for i, own in enumerate(near):
        squares = np.linalg.svd(rows[own] - rows[i], compute_uv=False) ** 2
        along = squares[:d].sum()
        shares.append(squares[d:].sum() / along if along > 0 else 0.0)
    return float(np.median(shares))


def _several_mixtures(away: Array, share: float, reg: float) -> Array:
    """Return (1 + k, s) weights of a row (−1) and of its neighbours, by Householder's reflection as in the paper."""
    k, width = away.shape
    V, roots, _ = np.linalg.svd(away)
    squares = np.zeros(k)
    squares[: len(roots)] = roots**2
    s = max(1, k - width)
    while s < k - 1 and squares[k - s - 1 :].sum() < (1.0 - 1e-9) * share * squares[: k - s - 1].sum():
        s += 1
    if squares.sum() == 0:
        s = max(s, k - 1)
    last = V[:, k - s :]
    alpha = np.linalg.norm(last.sum(axis=0)) / np.sqrt(s)
    h = alpha - last.sum(axis=0)
    length = np.linalg.norm(h)
    h = h / length if length > 1e-12 else 0.0 * h
    W = last - 2.0 * np.outer(last @ h, h) + (1.0 - alpha) * _mixture(away, reg)[:, None]
    return np.vstack([-np.ones(s), W])


def _local_form(local: Array, model: Any) -> Array:
    """Return the form of one neighbourhood: outside the tangent plane, or of second derivatives."""
    d = model.n_components
    k = len(local)
    tangent = np.linalg.svd(local - local.mean(axis=0), full_matrices=False)[0][:, :d]
    if model.method == "ltsa":
        basis = np.column_stack([np.full(k, 1.0 / np.sqrt(k)), tangent])
        return np.asarray(np.eye(k) - basis @ basis.T)
    products = [tangent[:, i] * tangent[:, j] for i in range(d) for j in range(i, d)]
    second = np.linalg.qr(np.column_stack([np.ones(k), tangent, *products]))[0][:, d + 1 :]
    sums = second.sum(axis=0)
    second = second / np.where(np.abs(sums) < model.hessian_tol, 1.0, sums)
    return np.asarray(second @ second.T)
