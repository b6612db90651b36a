r"""Independent checks of embeddings of graphs: distances by SciPy, paths by SciPy, equations by plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ..core.checking import Recheck, relative
from ..data.checking import read_table
from .verify import ROUNDING, embedding_error, signs_are_fixed

Array = NDArray[Any]


def dense_rows(X: Any) -> Array:
    """Return rows as a float64 array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


#: Rows of a block of distances, rows up to which all eigenvalues are computed again, and columns up to which a k-d tree
#: finds neighbours sooner than all distances do.
_BLOCK = 512
_ALL_PAIRS = 2000
_TREE_COLUMNS = 15


class Distances:
    """Distances between rows by a metric, some at a time: a check needs no table of all of them."""

    def __init__(self, X: Any, metric: Any, metric_params: dict[str, Any]) -> None:
        self.rows = dense_rows(X)
        self.metric = metric
        self.params = metric_params
        self.n = len(self.rows)
        if metric == "precomputed" and sp.issparse(X):
            self.rows = np.where(self.rows == 0, np.inf, self.rows)  # what a sparse table leaves out is no neighbour

    def between(self, some: Array, others: Array | slice = slice(None)) -> Array:
        """Return the distances of some rows to others."""
        from sklearn.metrics import pairwise_distances

        if self.metric == "precomputed":
            return np.asarray(self.rows[some][:, others])
        if self.metric == "euclidean":
            return np.asarray(cdist(self.rows[some], self.rows[others]))
        found = pairwise_distances(self.rows[some], self.rows[others], metric=self.metric, **self.params)
        return np.asarray(found, dtype=np.float64)

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Yield runs of row numbers and their distances to all rows, infinite to themselves."""
        for start in range(0, self.n, _BLOCK):
            part = np.arange(start, min(self.n, start + _BLOCK))
            D = self.between(part).copy()
            D[np.arange(len(part)), part] = np.inf
            yield part, D

    def pairs(self, i: Array, j: Array) -> Array:
        """Return the distances of rows i to rows j, pair by pair."""
        if self.metric == "precomputed":
            return np.asarray(self.rows[i, j])
        if self.metric == "euclidean":
            return np.asarray(np.sqrt(((self.rows[i] - self.rows[j]) ** 2).sum(axis=1)))
        found = np.empty(len(i))
        order = np.argsort(i, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(i[order])) + 1):
            if len(own):
                found[own] = self.between(i[own[:1]], j[own])[0]
        return found

    def nearest(self, k: int) -> tuple[Array, Array]:
        """Return the k smallest distances of every row to others, ascending, and to whom."""
        if self.metric == "euclidean" and self.rows.shape[1] <= _TREE_COLUMNS:
            away, who = cKDTree(self.rows).query(self.rows, k + 1)
            own = who == np.arange(self.n)[:, None]
            own[~own.any(axis=1), -1] = True  # equal rows hide the row itself: any of them may go
            return away[~own].reshape(self.n, k), who[~own].reshape(self.n, k)
        away = np.empty((self.n, k))
        who = np.empty((self.n, k), dtype=np.int64)
        for part, D in self.blocks():
            who[part] = np.argpartition(D, k - 1, axis=1)[:, :k]
            away[part] = np.take_along_axis(D, who[part], axis=1)
        order = np.argsort(away, axis=1, kind="stable")
        return np.take_along_axis(away, order, axis=1), np.take_along_axis(who, order, axis=1)


def distances_of(nbrs: Any, X: Any) -> Distances:
    """Return the distances between rows by the metric of a search."""
    return Distances(X, nbrs.effective_metric_, dict(nbrs.effective_metric_params_))


def search_flaw(nbrs: Any, X: Any, options: dict[str, Any]) -> bool:
    """Tell whether a stored search is not one over these rows with these options."""
    rows = nbrs.rows_
    same = rows.shape == X.shape and rows.dtype == X.dtype and abs(rows - X).max() == 0
    return not same or any(getattr(nbrs, name) != value for name, value in options.items())


def graph_error(graph: Any, D: Distances, n_neighbors: int | None, radius: float | None, n_parts: int) -> float:
    """Return the largest error of the edges: lengths, every near pair joined, no others but those that join parts."""
    n = D.n
    starts = np.repeat(np.arange(n), np.diff(graph.indptr))
    ends = np.asarray(graph.indices)
    codes = np.sort(starts * n + ends)
    if not np.array_equal(codes, np.sort(ends * n + starts)) or (starts == ends).any():
        return np.inf
    true = D.pairs(starts, ends)
    size = float(true.max(initial=0.0)) or 1.0
    error = relative(graph.data, true, size)
    slack = 1e-9 * size
    if n_neighbors is not None:
        away, who = D.nearest(n_neighbors)
        reach = away[:, -1]
        certain = away < reach[:, None] - slack
        near = (np.repeat(np.arange(n), n_neighbors).reshape(n, -1) * n + who)[certain]
    else:
        reach = np.full(n, float(radius or 0.0))
        near = np.concatenate([(part[:, None] * n + np.arange(n))[reach[0] - slack > E] for part, E in D.blocks()])
    if not np.isin(near, codes, assume_unique=False).all():
        return np.inf
    extra = (true > reach[starts] + slack) & (true > reach[ends] + slack)
    plain = sp.csr_array((np.ones((~extra).sum()), (starts[~extra], ends[~extra])), shape=(n, n))
    parts, labels = connected_components(plain, directed=False)
    if parts != n_parts or connected_components(graph, directed=False)[0] != 1:
        return np.inf
    if n_neighbors is not None and (np.diff(graph.indptr) < n_neighbors).any():
        return np.inf
    for i, j, length in zip(starts[extra], ends[extra], true[extra], strict=True):
        own = np.flatnonzero(labels == labels[i])
        other = np.flatnonzero(labels == labels[j])
        if length > D.between(own, other).min() + slack:
            return np.inf
    return error


@np.errstate(all="ignore")
def isomap(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of an Isomap."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    flawed = search_flaw(model.nbrs_, table.X, {"metric": model.metric, "p": model.p})
    D = distances_of(model.nbrs_, table.X)
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
    top = np.linalg.eigvalsh((B + B.T) / 2.0)[::-1][:k] if len(marks) <= _ALL_PAIRS else values
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
    placed = 0.5 * (means - paths.T**2) @ (weights - weights.mean(axis=0))  # they sum to zero but for rounding
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
    A, degrees, root, L = laplacian(model, bool(model.normalized))
    facts.append(relative(model.degrees_, degrees, degrees.max(initial=0.0) or 1.0))
    values = np.asarray(model.eigenvalues_)
    size = max(float(np.abs(values).max(initial=0.0)), float(abs(L).max())) or 1.0
    value, more = walk_error(L, root, np.asarray(model.embedding_), values, size)
    k = min(model.n_components, n - 1)
    gamma = 1.0 / table.n_columns if model.gamma is None else model.gamma
    facts += more
    facts.append(0.0 if len(values) == k and np.isclose(model.gamma_, gamma, rtol=1e-12, atol=0.0) else np.inf)
    facts.append(0.0 if model.n_parts_ == connected_components(sp.csr_array(A), directed=False)[0] else np.inf)
    every = smallest_values(L, k + 1)
    if every is not None:
        facts.append(relative(values, np.maximum(every[1:], 0.0), size))
    worst = max(facts)
    return Recheck(value if worst <= 1e-8 else max(value, 1.0, worst), ROUNDING, table.fingerprint)


def laplacian(model: Any, normalised: bool) -> tuple[Any, Array, Array, Any]:
    """Return the affinities without their diagonal, degrees, the scale of the coordinates, and the Laplacian."""
    A = model.affinity_matrix_
    if sp.issparse(A):
        A = sp.csr_array(A - sp.diags_array(A.diagonal()))
    else:
        A = np.asarray(A, dtype=np.float64) - np.diag(np.diag(A))
    degrees = np.asarray(A.sum(axis=1)).ravel()
    D = sp.diags_array(degrees) if sp.issparse(A) else np.diag(degrees)
    if not normalised:
        return A, degrees, np.ones(len(degrees)), D - A
    root = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    scale = sp.diags_array(1.0 / root)
    return A, degrees, root, scale @ (D - A) @ scale


def smallest_values(L: Any, k: int) -> Array | None:
    """Return the k smallest eigenvalues of a symmetric matrix, by LAPACK; None where that would take too long."""
    if L.shape[0] > _ALL_PAIRS:
        return None
    dense = dense_rows(L)
    return np.asarray(np.linalg.eigvalsh((dense + dense.T) / 2.0)[:k])


def _rows_error(stored: Any, X: Any) -> float:
    same = stored.shape == X.shape and stored.dtype == X.dtype and abs(stored - X).max() == 0
    return 0.0 if same else np.inf


def affinity_error(model: Any, X: Any) -> float:
    """Return how far the stored affinities are from those that the parameters state."""
    n = X.shape[0]
    if model.affinity_matrix_.shape != (n, n):
        return np.inf
    if isinstance(model.affinity, str) and "neighbors" in model.affinity:
        return _neighbour_affinity_error(model, X)
    A = dense_rows(model.affinity_matrix_)
    if callable(model.affinity):
        stated = np.asarray(model.affinity(X))
        return relative(A, (stated + stated.T) / 2.0, 1.0)
    rows = dense_rows(X)
    if model.affinity == "precomputed":
        return relative(A, (rows + rows.T) / 2.0, np.abs(rows).max(initial=0.0) or 1.0)
    if model.affinity == "rbf":
        return relative(A, np.exp(-model.gamma_ * cdist(rows, rows) ** 2), 1.0)
    from sklearn.metrics.pairwise import pairwise_kernels

    given = {**(model.kernel_params or {}), "gamma": model.gamma_, "degree": model.degree, "coef0": model.coef0}
    stated = pairwise_kernels(rows, metric=model.affinity, filter_params=True, **given)
    return relative(A, (stated + stated.T) / 2.0, np.abs(stated).max(initial=0.0) or 1.0)


def _neighbour_affinity_error(model: Any, X: Any) -> float:
    """Return the error of affinities that are ½ for each row that has the other among its nearest, and 1 to itself."""
    n = X.shape[0]
    wanted = max(n // 10, 2) if model.n_neighbors is None else model.n_neighbors
    if model.n_neighbors_ != min(n, wanted):
        return np.inf
    k = max(int(model.n_neighbors_) - 1, 1)
    known = model.affinity == "precomputed_nearest_neighbors"
    D = Distances(sp.csr_array(X) if known else X, "precomputed" if known else "euclidean", {})
    away, who = D.nearest(k)
    reach = away[:, -1]
    error = relative(model.reach_, reach, reach.max(initial=0.0) or 1.0)
    A = sp.coo_array(sp.csr_array(model.affinity_matrix_))
    i = A.row.astype(np.int64)
    j = A.col.astype(np.int64)
    off = i != j
    if not (A.data[~off] == 1.0).all() or off.sum() + n != len(i):
        return np.inf
    i = i[off]
    j = j[off]
    found = A.data[off]
    # Ties may be broken either way: an affinity lies between that of the certain and that of the possible neighbours.
    length = D.pairs(i, j)
    back = D.pairs(j, i)
    low = 0.5 * (length < reach[i] * (1.0 - 1e-9)) + 0.5 * (back < reach[j] * (1.0 - 1e-9))
    high = 0.5 * (length <= reach[i] * (1.0 + 1e-9)) + 0.5 * (back <= reach[j] * (1.0 + 1e-9))
    near = (np.repeat(np.arange(n), k).reshape(n, k) * n + who)[away < reach[:, None] * (1.0 - 1e-9)]
    joined = bool(np.isin(near, i * n + j).all()) and bool((low <= found).all()) and bool((high >= found).all())
    return error if joined and abs(found.sum() - n * k) < 0.5 else np.inf


@np.errstate(all="ignore")
def spectral_clustering(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Recheck:
    """Recompute the certificate of a SpectralClustering."""
    table = read_table(model, X, None, sample_weight)
    n = table.n_rows
    facts = [_rows_error(model.X_fit_, table.X), affinity_error(model, table.X)]
    A, degrees, root, L = laplacian(model, True)
    values = np.asarray(model.eigenvalues_)
    Y = np.asarray(model.embedding_)
    size = max(float(np.abs(values).max(initial=0.0)), float(abs(L).max())) or 1.0
    value, _ = walk_error(L, root, Y, values, size)
    centers = np.asarray(model.cluster_centers_)
    K = len(centers)
    labels = np.asarray(model.labels_)
    members = np.eye(K)[labels]
    volume = members.T @ degrees
    leaving = np.maximum(volume - np.diag(members.T @ (A @ members)), 0.0)
    cut = float((leaving / np.where(volume > 0, volume, 1.0)).sum())
    means = members.T @ Y / np.maximum(members.sum(axis=0), 1.0)[:, None]
    facts += [
        relative(model.degrees_, degrees, degrees.max(initial=0.0) or 1.0),
        relative(centers, means, np.abs(Y).max(initial=0.0) or 1.0),
        relative(np.asarray(float(model.normalized_cut_)), np.asarray(cut), 1.0),
        0.0 if signs_are_fixed(Y * root[:, None]) and np.isclose(model.gamma_, model.gamma) else np.inf,
        0.0 if model.n_parts_ == connected_components(sp.csr_array(A), directed=False)[0] else np.inf,
        0.0 if model.n_clusters in (K, "eigengap") and len(labels) == n else np.inf,
    ]
    every = smallest_values(L, len(values))
    if every is not None:
        facts.append(relative(values, np.maximum(every, 0.0), size))
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
    near = np.asarray(model.nbrs_.kneighbors(n_neighbors=k, return_distance=False))
    D = distances_of(model.nbrs_, table.X)
    nearest = D.nearest(k)[0]
    shown = np.sort(D.pairs(np.repeat(np.arange(n), k), near.ravel()).reshape(n, k), axis=1)
    facts = [
        relative(shown, nearest, nearest.max(initial=0.0) or 1.0),
        np.inf if search_flaw(model.nbrs_, table.X, {"metric": "minkowski", "p": 2}) else 0.0,
    ]
    share = _median_share(rows, near, model.n_components) if model.method == "modified" else 0.0
    entries: list[tuple[Array, Array]] = []
    for i in range(n):
        at = np.append(i, near[i])
        if model.method == "modified":
            W = _several_mixtures(rows[near[i]] - rows[i], share, model.reg)
            entries.append((at, W @ W.T))
        elif model.method == "standard":
            row = np.append(1.0, -_mixture(rows[near[i]] - rows[i], model.reg))
            entries.append((at, np.outer(row, row)))
        else:
            entries.append((near[i], _local_form(rows[near[i]], model)))
    first = np.concatenate([np.repeat(at, len(at)) for at, _ in entries])
    second = np.concatenate([np.tile(at, len(at)) for at, _ in entries])
    M = sp.csr_array(sp.coo_array((np.concatenate([form.ravel() for _, form in entries]), (first, second)), (n, n)))
    Y = np.asarray(model.embedding_)
    values = np.asarray(model.eigenvalues_)
    count = min(model.n_components + 1, n) - 1
    every = smallest_values(M, count + 1)
    size = max(float(abs(M).max()), float(values.max(initial=0.0)))
    residual = np.linalg.norm(M @ Y - Y * values, axis=0).max(initial=0.0) / size
    inner = np.abs(Y.T @ Y - np.eye(Y.shape[1])).max(initial=0.0)
    graph = sp.csr_array((np.ones(near.size), near.ravel(), np.arange(n + 1) * k), shape=(n, n))
    if every is not None:
        facts.append(relative(values, np.maximum(every[1:], 0.0), size))
    facts += [
        0.0 if len(values) == count else np.inf,
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
    none = 1e-24 * squares.sum()
    while s < k - 1 and squares[k - s - 1 :].sum() <= none:  # directions without variance go together
        s += 1
    while s < k - 1 and squares[k - s - 1 :].sum() < (1.0 - 1e-9) * share * squares[: k - s - 1].sum():
        s += 1
    last = V[:, k - s :]
    sums = last.sum(axis=0)
    w = _mixture(away, reg)[:, None]
    if np.linalg.norm(sums) <= 1e-7 * np.sqrt(k):  # any reflection does: the mean of two opposite ones needs no choice
        return np.sqrt(0.5) * np.vstack([-np.ones(2 * s), np.hstack([w + last, w - last])])
    alpha = np.linalg.norm(sums) / np.sqrt(s)
    h = alpha - sums
    length = np.linalg.norm(h)
    h = h / length if length > 1e-12 else 0.0 * h
    W = last - 2.0 * np.outer(last @ h, h) + (1.0 - alpha) * w
    return np.vstack([-np.ones(s), W])


def _local_form(local: Array, model: Any) -> Array:
    """Return the form of one neighbourhood: outside the tangent plane, or of second derivatives."""
    d = model.n_components
    k = len(local)
    vectors, roots, _ = np.linalg.svd(local - local.mean(axis=0), full_matrices=False)
    tangent = vectors[:, :d]
    if model.method == "ltsa":
        flat = roots[:d] > 16.0 * k * np.finfo(np.float64).eps * np.abs(local).max()
        basis = np.column_stack([np.full(k, 1.0 / np.sqrt(k)), tangent[:, flat]])
        return np.asarray(np.eye(k) - basis @ basis.T)
    products = [tangent[:, i] * tangent[:, j] for i in range(d) for j in range(i, d)]
    second = np.linalg.qr(np.column_stack([np.ones(k), tangent, *products]))[0][:, d + 1 :]
    sums = second.sum(axis=0)
    second = second / np.where(np.abs(sums) < model.hessian_tol, 1.0, sums)
    return np.asarray(second @ second.T)
