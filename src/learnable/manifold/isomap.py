r"""Isomap: classical scaling of distances along the manifold, measured as shortest paths in the graph of neighbours.

The graph joins every row to its k nearest; the length of the shortest path between two rows stands for their distance
on the manifold. Classical scaling of these lengths (see `scaling`) gives the coordinates. With landmarks, paths are
measured from some rows only, these are scaled, and all rows are placed by their distances to them.

References: J. Tenenbaum, V. de Silva and J. Langford, A global geometric framework for nonlinear dimensionality
reduction, Science 290 (2000); V. de Silva and J. Tenenbaum, Global versus local methods in nonlinear dimensionality
reduction, NIPS 2002 (landmarks).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from ..core.declare import N_JOBS, TOLERANCE, Number, Options, fitted, optional, param, tags
from ..core.errors import DataError, ParameterError
from ..core.estimator import Certificate, Run
from ..core.loaded import law, laws
from ..data.door import Table, read_features
from ..neighbors import NearestNeighbors
from ..solvers.eigen import PAIR_TOLERANCE, symmetric_pairs
from .base import SEARCHES_ROWS, Embedding, rows_in_memory
from .graphs import fit_neighbours, join_parts, neighbour_graph, paths_from, paths_of_new_rows
from .scaling import METRIC, METRIC_PARAMS, centred_products, place_by_distances

Array = NDArray[np.float64]

#: Rows from which on landmarks are used, and how many: 500 columns of 100,000 distances are 400 MB.
_MANY_ROWS = 20_000
_SHORTEST = 1e-70  # of a longest path: the norm of the products has its fourth power
_LANDMARKS = 500
#: Landmarks from which on the products B (32 MB) are read from memory, and components up to which blocks of vectors
#: need fewer readings than Lanczos: 7 for 49 with 10,000 rows of a swiss roll, 1.3 s of one core for 1.95.
_BEYOND_CACHE = 2000
_FEW_COMPONENTS = 4
#: Landmarks, at most, whose distances in the picture are compared with the paths.
_COMPARED = 1000


class Isomap(Embedding):
    r"""Isomap: coordinates whose distances are those along the graph of neighbours, as nearly as possible.

    Distances in the picture stand for distances along the manifold; `residual_variance_` says how much of these they do
    not explain (1 − their squared correlation). `transform` joins a new row to its neighbours and places it by the
    lengths of its paths. A graph of several components is joined by shortest edges, with a warning; or it is an error.
    Unlike in scikit-learn, equal rows are neighbours at distance zero. Memory: 8n² bytes, or 8mn with m landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import Isomap
    >>> angle = np.linspace(0.0, 1.5 * np.pi, 40)
    >>> arc = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = Isomap(n_neighbors=2, n_components=1).fit(arc)
    >>> bool(model.residual_variance_ < 1e-3)
    True
    >>> bool(np.allclose(model.transform(arc[:1]), model.embedding_[:1]))
    True
    """

    _theory = "isomap"

    n_neighbors: int | None = param(
        optional(Number(low=1, integer=True)), "Neighbours of each row; None with `radius`.", default=5
    )
    radius: float | None = param(
        optional(Number(low=0.0, finite=False)),
        "Rows within this distance are neighbours, instead of the nearest; infinity joins all.",
        default=None,
    )
    n_components: int = param(Number(low=1, integer=True), "Dimensions.", default=2)
    eigen_solver: str = param(
        Options("auto", "arpack", "dense"), "Lanczos for a few components, LAPACK for all.", default="auto"
    )
    tol: float = param(TOLERANCE, "Of Lanczos; 0 is machine precision.", default=0)
    max_iter: int | None = param(optional(Number(low=1, integer=True)), "Of Lanczos.", default=None)
    path_method: str = param(
        Options("auto", "FW", "D"), "Kept for compatibility; always Dijkstra's algorithm.", default="auto"
    )
    neighbors_algorithm: str = param(
        Options("auto", "brute", "kd_tree", "ball_tree"), "How neighbours are searched.", default="auto"
    )
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    metric: Any = param(METRIC, 'A metric of `NearestNeighbors`, or "precomputed".', default="minkowski")
    p: float = param(Number(low=0.0, low_open=True, finite=False), "Power of the Minkowski distance.", default=2)
    metric_params: Any = param(METRIC_PARAMS, "Further parameters of the metric.", default=None)
    n_landmarks: int | None = param(
        optional(Number(low=2, integer=True)),
        "Rows from which paths are measured, spread evenly over the table; None is all, or 500 from 20,000 rows on.",
        default=None,
    )
    on_parts: str = param(Options("join", "error"), "What to do with a graph of several components.", default="join")

    eigenvalues_: Array = fitted("(n_components,)", "Of the centred squared path lengths, the largest first.")
    graph_: Any = fitted("(n_rows, n_rows)", "Edges and their lengths, a CSR array.", low=0.0)
    landmarks_: NDArray[np.int64] = fitted("(n_landmarks,)", "Rows from which paths were measured.", kind="i", low=0)
    mean_squares_: Array = fitted("(n_landmarks,)", "Mean squared path length of each landmark to all.", low=0.0)
    residual_variance_: float = fitted(
        "()", "1 − squared correlation of path lengths with distances in the picture.", low=0.0, high=1.0
    )
    product_norm_: float = fitted("()", "Frobenius norm of the centred products B.", low=0.0)
    n_parts_: int = fitted("int", "Connected components of the graph before they were joined.")
    nbrs_: NearestNeighbors = fitted("NearestNeighbors", "The search over the rows.")
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖Bu − λu‖/λ₁ and |uᵢᵀuⱼ − [i = j]|."
    )
    _tags = tags(pairwise=lambda model: model.metric == "precomputed")

    def _fit(self, table: Table, run: Run) -> Certificate:
        if (self.n_neighbors is None) == (self.radius is None):
            raise ParameterError(
                "Isomap: Both n_neighbors and radius are provided, or neither. Use n_neighbors=None with a radius."
            )
        self.nbrs_ = fit_neighbours(
            "Isomap",
            rows_in_memory("Isomap", table, least=1),
            self.n_neighbors,
            self.n_jobs,
            algorithm=self.neighbors_algorithm,
            metric=self.metric,
            p=self.p,
            metric_params=self.metric_params,
        )
        graph = neighbour_graph(self.nbrs_, self.n_neighbors, self.radius)
        self.graph_, self.n_parts_ = join_parts("Isomap", graph, self.nbrs_, self.on_parts)
        n = table.n_rows
        m = self.n_landmarks or (n if n < _MANY_ROWS else _LANDMARKS)
        self.landmarks_ = np.unique(np.linspace(0, n - 1, min(m, n)).astype(np.int64))
        square = paths_from(self.graph_, self.landmarks_, self.n_jobs)
        m = len(self.landmarks_)
        longest = float(square.max(initial=0.0))
        if 0 < longest < _SHORTEST:
            raise DataError(
                f"Isomap: the longest path between rows is {longest:.3g}, and its powers leave the range of float64; "
                "divide X by its spread."
            )
        some = np.arange(0, m, -(-m // _COMPARED))
        compared = square[some]  # before the others are squared and centred in place
        square *= square
        between = square if m == n else square[:, self.landmarks_]
        self.mean_squares_ = between.mean(axis=0)
        B = centred_products(between)
        self.product_norm_ = float(np.linalg.norm(B))
        method = {"arpack": "lanczos"}.get(self.eigen_solver, self.eigen_solver)
        if method == "auto" and m > _BEYOND_CACHE and self.n_components <= _FEW_COMPONENTS:
            method = "block"
        pairs = symmetric_pairs(
            B, min(self.n_components, m), method=method, tol=self.tol, max_iter=self.max_iter, owner="Isomap"
        )
        noise = 10.0 * m * float(np.finfo(np.float64).eps) * pairs.size
        self.eigenvalues_ = np.where(pairs.values > noise, pairs.values, 0.0)
        of_landmarks = pairs.vectors * np.sqrt(self.eigenvalues_)
        if m == n:
            self.embedding_ = of_landmarks
        else:
            self.embedding_ = place_by_distances(square.T, self.mean_squares_, of_landmarks)
            self.embedding_[self.landmarks_] = of_landmarks
        self.residual_variance_ = residual_variance(compared, of_landmarks[some], self.embedding_)
        return Certificate("closed-form", pairs.worst, max(PAIR_TOLERANCE, self.tol))

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new rows, placed by the lengths of their paths through their nearest neighbours.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with metric="precomputed" their distances to the rows of the fit.

        Returns
        -------
        array of shape (n_samples, n_components)
            Coordinates; of a row of the fit, its own. Float32 for float32.
        """
        check_is_fitted(self)
        rows = read_features(self, X)
        if self.n_neighbors is not None:
            k = min(self.n_neighbors, self.nbrs_.n_samples_fit_)
            distances, nearest = self.nbrs_.kneighbors(rows, n_neighbors=k)
        else:
            distances, nearest = self.nbrs_.radius_neighbors(rows, radius=self.radius, sort_results=True)
            if any(len(near) == 0 for near in nearest):
                raise DataError(f"Isomap: a row has no neighbour within radius={self.radius}; raise it for the fit.")
        paths = paths_of_new_rows(self.graph_, list(distances), list(nearest), self.landmarks_, self.n_jobs)
        found = place_by_distances(paths**2, self.mean_squares_, self.embedding_[self.landmarks_])
        return np.asarray(found, dtype=rows.dtype)

    def reconstruction_error(self) -> float:
        """Return ‖B − UΛUᵀ‖/n, what the dimensions leave of the centred products (as scikit-learn defines it)."""
        check_is_fitted(self)
        left = self.product_norm_**2 - float((self.eigenvalues_**2).sum())
        return float(np.sqrt(max(left, 0.0)) / len(self.landmarks_))

    @property
    def dist_matrix_(self) -> Array:
        """Lengths of the shortest paths between all rows, (n, n); computed when asked for."""
        return paths_from(self.graph_, np.arange(self.graph_.shape[0]), self.n_jobs)

    _laws = laws(
        law(
            "graph_ must be a CSR array with a row for each row of embedding_",
            lambda model: model.graph_.format == "csr" and model.graph_.shape[0] == len(model.embedding_),
        ),
        law(
            "landmarks_ must be numbers of rows",
            lambda model: model.landmarks_.size and model.landmarks_.max() < model.graph_.shape[0],
        ),
        SEARCHES_ROWS,
    )


def residual_variance(paths: Array, of_landmarks: Array, embedding: Array) -> float:
    """Return 1 − R² between path lengths (m, n) and the distances of the coordinates, in one pass."""
    sums = np.zeros(6)
    for start in range(0, len(paths), 64):
        true = paths[start : start + 64]
        shown = cdist(of_landmarks[start : start + 64], embedding)
        sums += [true.size, true.sum(), shown.sum(), (true**2).sum(), (shown**2).sum(), (true * shown).sum()]
    count, a, b, aa, bb, ab = sums.tolist()
    variance = (aa - a * a / count) * (bb - b * b / count)
    if variance <= 0:
        return 0.0
    return float(np.clip(1.0 - (ab - a * b / count) ** 2 / variance, 0.0, 1.0))
