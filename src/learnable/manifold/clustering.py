r"""Spectral clustering: rows grouped by the smoothest functions on their graph.

The normalised cut of a partition, Σ_c (weight of the edges that leave c) / (sum of the degrees in c), is least over
indicator functions; over all functions the first K eigenvectors of L = I − D^{−1/2}AD^{−1/2} are best. Rows are
clustered by their coordinates there. Of a graph of K components these coordinates are constant on each, and the
clusters are exact.

References: J. Shi and J. Malik, Normalized cuts and image segmentation, 2000; A. Ng, M. Jordan and Y. Weiss, On
spectral clustering, NIPS 2001; S. Yu and J. Shi, Multiclass spectral clustering, 2003 (discretisation); A. Damle,
V. Minden and L. Ying, Simple, direct and efficient multi-way spectral clustering, 2019 (pivoted QR); U. von Luxburg, A
tutorial on spectral clustering, 2007 (eigengap).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import polar, qr
from scipy.spatial.distance import cdist
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from ..core.declare import N_JOBS, RANDOM_STATE, Boolean, Matches, Nothing, Number, Options, fitted, optional, param
from ..core.errors import DataError
from ..core.estimator import Certificate, Run
from ..data.door import Table, read_features
from ..meta.splits import as_generator
from ..mixtures import KMeans
from ..solvers.eigen import PAIR_TOLERANCE
from .base import dense_rows
from .spectral import AFFINITY, AffinityModel, laplacian_of, smallest_pairs

Array = NDArray[np.float64]

_KERNELS = Options("linear", "poly", "polynomial", "sigmoid", "cosine", "laplacian", "chi2", "additive_chi2")
#: Clusters that the eigengap chooses among, at most.
_MOST_CLUSTERS = 20
#: Eigenvalues below this are zeros.
_ZERO = 1e-6
#: Rotations and rounds of the discretisation.
_ROTATIONS = 10
_ROUNDS = 50


class SpectralClustering(ClusterMixin, AffinityModel):
    r"""Clusters of a graph of similar rows with a small normalised cut.

    The eigenvectors are certified; the last step, from coordinates to labels, is a heuristic. `normalized_cut_` is the
    cut that was reached, and the sum of `eigenvalues_` a lower bound of every cut into as many clusters. `predict`
    extends the eigenvectors to new rows and takes the nearest cluster mean.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import SpectralClustering
    >>> X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> model = SpectralClustering(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_[:3] == model.labels_[0], model.labels_[3:] == model.labels_[0]
    (array([ True,  True,  True]), array([False, False, False]))
    """

    _theory = "spectral-clustering"

    n_clusters: Any = param(
        Number(low=1, integer=True) | Options("eigengap"),
        'K; "eigengap" takes the number, from 2 to 20, after which the eigenvalues rise most, relative to the next.',
        default=8,
        kw_only=False,
    )
    eigen_solver: Any = param(
        Options("arpack", "lobpcg", "amg") | Nothing(), "Kept for compatibility; chosen by the graph.", default=None
    )
    n_components: int | None = param(
        optional(Number(low=1, integer=True)), "Eigenvectors used; None is as many as clusters.", default=None
    )
    random_state: Any = param(RANDOM_STATE, "Of k-means and the rotations.", default=None)
    n_init: int = param(Number(low=1, integer=True), "Starts of k-means.", default=10)
    gamma: float = param(Number(low=0.0), "γ of the kernels.", default=1.0)
    affinity: Any = param(
        AFFINITY | _KERNELS, "How similar rows are; see `SpectralEmbedding`. Or another kernel.", default="rbf"
    )
    n_neighbors: int = param(Number(low=1, integer=True), "Neighbours, the row itself among them.", default=10)
    eigen_tol: Any = param(
        Options("auto") | Number(low=0.0), 'Of Lanczos; "auto" is machine precision.', default="auto"
    )
    assign_labels: str = param(
        Options("kmeans", "discretize", "cluster_qr"), "From coordinates to clusters.", default="kmeans"
    )
    degree: float = param(Number(low=0.0), "Of the polynomial kernel.", default=3)
    coef0: float = param(Number(), "Of the polynomial and sigmoid kernels.", default=1)
    kernel_params: Any = param(
        Matches(lambda v: v is None or isinstance(v, dict), "a dict, or None"), "Of another kernel.", default=None
    )
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    verbose: int = param(
        Boolean() | Number(low=0, integer=True), "Whether the steps of the last part are printed.", default=False
    )

    labels_: NDArray[np.int32] = fitted("(n_rows,)", "Cluster of each row.", kind="i", low=0)
    embedding_: Array = fitted("(n_rows, n_components)", "Coordinates D^{−1/2}u, of the constant one too.")
    eigenvalues_: Array = fitted("(n_components,)", "Of L, the smallest first.")
    cluster_centers_: Array = fitted("(n_clusters, n_components)", "Mean coordinates of the clusters.")
    normalized_cut_: float = fitted("()", "Of the clusters.", low=0.0)
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖Lu − λu‖ (by ‖L‖) and |uᵢᵀuⱼ − [i = j]|."
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        A = self._graph(table)
        n = table.n_rows
        tol = 0.0 if self.eigen_tol == "auto" else float(self.eigen_tol)
        L = laplacian_of(A, self.degrees_, True)
        if self.n_clusters == "eigengap":
            first = smallest_pairs("SpectralClustering", L, min(_MOST_CLUSTERS + 1, n), tol).values
            rise = np.diff(first)[1:] / np.maximum(first[2:], _ZERO)
            K = 2 + int(rise.argmax()) if len(rise) else len(first)
        else:
            K = int(self.n_clusters)
        if n < K:
            raise DataError(f"SpectralClustering: n_samples={n} should be >= n_clusters={K}.")
        pairs = smallest_pairs("SpectralClustering", L, min(self.n_components or K, n), tol)
        root = np.sqrt(np.where(self.degrees_ > 0, self.degrees_, 1.0))
        self.eigenvalues_ = np.maximum(pairs.values, 0.0)
        self.embedding_ = np.ascontiguousarray(pairs.vectors / root[:, None])
        self.labels_ = self._label(pairs.vectors, K)
        members = np.eye(K)[self.labels_]
        count = np.maximum(members.sum(axis=0), 1.0)
        self.cluster_centers_ = members.T @ self.embedding_ / count[:, None]
        self.normalized_cut_ = normalized_cut(A, self.degrees_, members)
        return Certificate("closed-form", pairs.worst, max(PAIR_TOLERANCE, tol))

    def _label(self, vectors: Array, K: int) -> NDArray[np.int32]:
        """Return the clusters of rows by their coordinates."""
        if self.verbose:
            print(f"Computing label assignment using {self.assign_labels}")
        if self.assign_labels == "cluster_qr":
            return pivoted_labels(vectors[:, :K], K)
        if self.assign_labels == "discretize":
            return discrete_labels(self.embedding_[:, :K], K, as_generator(self.random_state))
        size = float(np.abs(self.embedding_).max(initial=0.0)) or 1.0
        means = KMeans(
            K, n_init=self.n_init, random_state=self.random_state, n_jobs=self.n_jobs, verbose=int(self.verbose)
        )
        return np.asarray(means.fit(self.embedding_ / size).labels_, dtype=np.int32)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the clusters of new rows.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with precomputed affinities or distances, those to the rows of the fit.

        Returns
        -------
        array of shape (n_samples,)
            Number of the nearest cluster mean, in the coordinates of the eigenvectors.
        """
        check_is_fitted(self)
        rows = read_features(self, X)
        a = self._new_affinities(dense_rows(rows))
        degree = a.sum(axis=1, keepdims=True)
        rate = np.maximum(1.0 - self.eigenvalues_, 1e-12)
        found = np.where(degree > 0, a @ self.embedding_ / np.where(degree > 0, degree, 1.0) / rate, 0.0)
        return np.asarray(cdist(found, self.cluster_centers_).argmin(axis=1), dtype=np.int32)


def normalized_cut(A: Any, degrees: Array, members: Array) -> float:
    """Return Σ_c (weight of the edges that leave c) / (sum of the degrees in c)."""
    volume = members.T @ degrees
    inside = (members * np.asarray(A @ members)).sum(axis=0)
    leaving = np.maximum(volume - inside, 0.0)
    return float((leaving / np.where(volume > 0, volume, 1.0)).sum())


def pivoted_labels(vectors: Array, K: int) -> NDArray[np.int32]:
    """Return clusters by a pivoted QR factorisation of the rows (Damle, Minden and Ying)."""
    chosen = qr(vectors.T, pivoting=True, mode="economic")[2][:K]
    rotation = polar(vectors[chosen].T)[0]
    return np.asarray(np.abs(vectors @ rotation).argmax(axis=1), dtype=np.int32)


def discrete_labels(coordinates: Array, K: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the clusters whose indicator matrix is nearest to a rotation of the coordinates (Yu and Shi)."""
    length = np.linalg.norm(coordinates, axis=1, keepdims=True)
    rows = coordinates / np.where(length > 0, length, 1.0)
    best = np.zeros(len(rows), dtype=np.int32)
    best_fit = -np.inf
    for _ in range(_ROTATIONS):
        rotation = _spread_start(rows, K, rng)
        fit = -np.inf
        for _ in range(_ROUNDS):
            labels = (rows @ rotation).argmax(axis=1)
            left, values, right = np.linalg.svd(np.eye(K)[labels].T @ rows)
            if values.sum() <= fit + 1e-12:
                break
            fit = float(values.sum())
            rotation = right[:K].T @ left.T
        if fit > best_fit + 1e-12:
            best_fit = fit
            best = labels.astype(np.int32)
    return best


def _spread_start(rows: Array, K: int, rng: np.random.Generator) -> Array:
    """Return K rows, the first at random, each as orthogonal to those before as can be, as columns."""
    chosen = [int(rng.integers(len(rows)))]
    overlap = np.zeros(len(rows))
    for _ in range(K - 1):
        overlap += np.abs(rows @ rows[chosen[-1]])
        chosen.append(int(overlap.argmin()))
    return np.asarray(rows[chosen].T)
