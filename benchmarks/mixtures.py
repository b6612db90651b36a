"""k-means and Gaussian mixtures against scikit-learn, scikit-learn-intelex and faiss, from the same start.

The quality is the objective computed here from the centres, or the mean log-likelihood from the parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .harness import OURS, Row, blas_threads
from .linear import INTELEX, SKLEARN

FAISS = "faiss-cpu"
CLUSTERS = {OURS: "learnable.mixtures", SKLEARN: "sklearn.cluster", INTELEX: "sklearnex.cluster"}
MIXTURES = {OURS: "learnable.mixtures", SKLEARN: "sklearn.mixture"}


class Data(NamedTuple):
    X: np.ndarray
    start: np.ndarray


def blobs(n: int, d: int, K: int) -> Callable[[bool], Data]:
    """Return overlapping clusters, and K rows to start from."""

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        rows = n // 50 if quick else n
        X = rng.normal(size=(K, d))[rng.integers(K, size=rows)] + rng.normal(size=(rows, d))
        return Data(X, X[rng.choice(rows, K, replace=False)].copy())

    return make


def cluster(library: str) -> Callable[[Data], Any]:
    def fit(data: Data) -> SimpleNamespace:
        if library == INTELEX:
            import_module("daal4py").daalinit(blas_threads())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = import_module(CLUSTERS[library]).KMeans(len(data.start), init=data.start, n_init=1, max_iter=50)
            model.fit(data.X)
        return SimpleNamespace(centres=model.cluster_centers_, certificate_=getattr(model, "certificate_", None))

    return fit


def faiss_clusters(data: Data) -> SimpleNamespace:
    """Cluster by faiss, in float32, with all rows and as many iterations."""
    faiss = import_module("faiss")
    faiss.omp_set_num_threads(blas_threads())
    K, d = data.start.shape
    model = faiss.Kmeans(d, K, niter=50, max_points_per_centroid=len(data.X))
    model.train(data.X.astype(np.float32), init_centroids=data.start.astype(np.float32))
    return SimpleNamespace(centres=model.centroids)


def inertia(found: Any, data: Data) -> dict[str, float]:
    total, centres = 0.0, np.asarray(found.centres, dtype=np.float64)
    for start in range(0, len(data.X), 8192):
        X = data.X[start : start + 8192]
        squares = (X * X).sum(axis=1)[:, None] + (centres * centres).sum(axis=1) - 2 * X @ centres.T
        total += float(squares.min(axis=1).sum())
    return {"objective": total}


def mixture(library: str, kind: str) -> Callable[[Data], Any]:
    def fit(data: Data) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (
                import_module(MIXTURES[library])
                .GaussianMixture(
                    len(data.start),
                    covariance_type=kind,
                    means_init=data.start,
                    init_params="random_from_data",
                    max_iter=20,
                    tol=0.0,
                    random_state=0,
                    weights_init=np.full(len(data.start), 1 / len(data.start)),
                    precisions_init=_identity(kind, *data.start.shape),
                )
                .fit(data.X)
            )

    return fit


def _identity(kind: str, K: int, d: int) -> np.ndarray:
    return np.stack([np.eye(d)] * K) if kind == "full" else np.ones((K, d))


def log_likelihood(found: Any, data: Data) -> dict[str, float]:
    return {"objective": -float(np.mean(found.score_samples(data.X[:50_000])))}


def clusters_row(name: str, K: int, targets: dict[str, float]) -> Row:
    contenders = {library: cluster(library) for library in (OURS, SKLEARN, INTELEX)} | {FAISS: faiss_clusters}
    return Row(
        name,
        "KMeans, 50 iterations at most",
        f"500,000 × 32, k = {K}",
        blobs(500_000, 32, K),
        contenders,
        inertia,
        targets,
        tolerance=1e-5,
        same_steps=True,
    )


def mixture_row(name: str, kind: str, target: float) -> Row:
    return Row(
        name,
        f"GaussianMixture, {kind}, 20 steps",
        "200,000 × 16, k = 20",
        blobs(200_000, 16, 20),
        {library: mixture(library, kind) for library in (OURS, SKLEARN)},
        log_likelihood,
        {SKLEARN: target},
        tolerance=1e-3,
        same_steps=True,
    )


ROWS = [
    clusters_row("kmeans", 100, {SKLEARN: 1.0, INTELEX: 1.0, FAISS: 1.0}),
    clusters_row("kmeans_many", 1000, {SKLEARN: 2.0}),
    mixture_row("gaussian_mixture", "full", 3.0),
    mixture_row("gaussian_mixture_diag", "diag", 4.0),
]
