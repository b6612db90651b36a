"""Principal components, factors, scaling, Isomap, locally linear embedding, spectral methods against their peers.

The quality is measured here, by code that no contender uses: the variance that the components leave out; what an
embedding leaves of the equations that define it; the normalised cut of clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .harness import OURS, Row, blas_threads
from .linear import INTELEX, SKLEARN

MODULES = {
    OURS: {"PCA": "learnable.manifold", "other": "learnable.manifold"},
    SKLEARN: {
        "PCA": "sklearn.decomposition",
        "FactorAnalysis": "sklearn.decomposition",
        "NMF": "sklearn.decomposition",
        "SpectralClustering": "sklearn.cluster",
        "other": "sklearn.manifold",
    },
    INTELEX: {"PCA": "sklearnex.decomposition", "other": "sklearnex"},
}
OPENTSNE = "openTSNE"


class Data(NamedTuple):
    X: Any
    y: np.ndarray | None = None


def contender(library: str, name: str, **parameters: Any) -> Callable[[Data], Any]:
    """Return the function that imports the class, builds it and fits it."""

    def fit(data: Data) -> Any:
        if library == INTELEX:
            import_module("daal4py").daalinit(blas_threads())
        places = MODULES[library]
        return getattr(import_module(places.get(name, places["other"])), name)(**parameters).fit(data.X)

    return fit


def decaying(n: int, d: int, n_quick: int, d_quick: int) -> Callable[[bool], Data]:
    """Return a maker of normal rows whose columns are mixed and have decaying variances."""

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        rows, columns = (n_quick, d_quick) if quick else (n, d)
        mixing = np.linalg.qr(rng.normal(size=(columns, columns)))[0] * np.linspace(1.0, 0.1, columns)[:, None]
        return Data(rng.normal(size=(rows, columns)) @ mixing + 1.0)

    return make


def sparse_rows(quick: bool) -> Data:
    """Return rows of which one entry in a thousand is not zero."""
    n, d = (5_000, 1_000) if quick else (100_000, 20_000)
    return Data(sp.random_array((n, d), density=1e-3, rng=np.random.default_rng(0), format="csr"))


def roll(n: int, n_quick: int) -> Callable[[bool], Data]:
    """Return a maker of the swiss roll, with the position along it."""

    def make(quick: bool) -> Data:
        from sklearn.datasets import make_swiss_roll

        return Data(*make_swiss_roll(n_quick if quick else n, random_state=0))

    return make


def blobs(quick: bool) -> Data:
    """Return ten round clusters."""
    from sklearn.datasets import make_blobs

    return Data(*make_blobs(2_000 if quick else 20_000, n_features=10, centers=10, cluster_std=3.0, random_state=0))


def wide_roll(quick: bool) -> Data:
    """Return a swiss roll that bends in fifty dimensions, with noise in all of them, and the position along it."""
    from sklearn.datasets import make_swiss_roll

    rows, position = make_swiss_roll(1_000 if quick else 10_000, random_state=0)
    rng = np.random.default_rng(0)
    turned = rows @ np.linalg.qr(rng.normal(size=(50, 3)))[0].T
    return Data(turned + 0.3 * rng.normal(size=turned.shape), position)


def factors(quick: bool) -> Data:
    """Return rows of ten factors in a hundred columns, each with its own noise."""
    rng = np.random.default_rng(0)
    n, d = (2_000, 40) if quick else (100_000, 100)
    noise = np.linspace(0.5, 2.0, d)
    return Data(rng.normal(size=(n, 10)) @ rng.normal(size=(10, d)) + rng.normal(size=(n, d)) * noise)


def parts(quick: bool) -> Data:
    """Return sums of ten parts that are not negative, with noise."""
    rng = np.random.default_rng(0)
    n, d = (500, 50) if quick else (10_000, 500)
    return Data(rng.gamma(0.5, size=(n, 10)) @ rng.gamma(0.3, size=(10, d)) + 0.1 * rng.random((n, d)))


def cloud(n: int, n_quick: int) -> Callable[[bool], Data]:
    """Return a maker of normal rows in ten dimensions."""

    def make(quick: bool) -> Data:
        return Data(np.random.default_rng(0).normal(size=(n_quick if quick else n, 10)))

    return make


def curved_clusters(quick: bool) -> Data:
    """Return ten clusters in fifty columns, each a bent sheet of five dimensions with noise."""
    rng = np.random.default_rng(0)
    n = 1_000 if quick else 20_000
    label = rng.integers(0, 10, n)
    centres = 1.5 * rng.normal(size=(10, 50))
    frames = rng.normal(size=(10, 5, 50))
    bent = 0.75 * np.sin(rng.normal(size=(n, 5)))
    X = centres[label] + np.einsum("ni,nij->nj", bent, frames[label]) + 0.3 * rng.normal(size=(n, 50))
    return Data(X, label)


def open_tsne(data: Data) -> Any:
    """Fit openTSNE as it is: 250 steps with exaggeration, 500 without; ours gets as many."""
    found = import_module("openTSNE").TSNE(n_jobs=blas_threads(), random_state=0).fit(data.X)
    return SimpleNamespace(embedding_=np.asarray(found, dtype=np.float64))


def divergence(model: Any, data: Data) -> dict[str, float]:
    """Return KL(P‖Q) by all pairs, P of the 91 true neighbours of each row and perplexity 30."""
    from scipy.spatial.distance import cdist
    from sklearn.manifold._utils import _binary_search_perplexity
    from sklearn.neighbors import NearestNeighbors

    n = len(data.X)
    away, who = NearestNeighbors(n_neighbors=91).fit(data.X).kneighbors()
    given = _binary_search_perplexity((away**2).astype(np.float32), 30.0, 0)
    P = sp.csr_array((given.ravel(), who.ravel(), np.arange(n + 1) * 91), shape=(n, n))
    P = sp.coo_array((P + P.T) / (2.0 * n))
    Y = model.embedding_
    total = -float(n)
    for start in range(0, n, 1000):
        total += float((1.0 / (1.0 + cdist(Y[start : start + 1000], Y, "sqeuclidean"))).sum())
    between = ((Y[P.row] - Y[P.col]) ** 2).sum(axis=1)
    return {"objective": float((P.data * np.log(P.data * (1.0 + between) * total)).sum())}


def deviance(model: Any, data: Data) -> dict[str, float]:
    """Return minus the mean log-density of the rows."""
    away = data.X - data.X.mean(axis=0)
    covariance = model.components_.T @ model.components_ + np.diag(model.noise_variance_)
    fit = np.einsum("ij,ij->", away @ np.linalg.inv(covariance), away) / len(away)
    return {"objective": 0.5 * float(fit + np.linalg.slogdet(2.0 * np.pi * covariance)[1])}


def error_left(model: Any, data: Data) -> dict[str, float]:
    """Return the squared error that the best sums of the parts leave, as a share."""
    W = model.transform(data.X)
    return {"objective": float(((data.X - W @ model.components_) ** 2).sum() / (data.X**2).sum())}


def stress(ordinal: bool) -> Callable[[Any, Data], dict[str, float]]:
    """Return a measure of the distances in the picture: the raw stress, or Stress-1 after isotonic regression."""

    def measure(model: Any, data: Data) -> dict[str, float]:
        from scipy.spatial.distance import pdist
        from sklearn.isotonic import IsotonicRegression

        given, shown = pdist(data.X), pdist(model.embedding_)
        if not ordinal:
            return {"objective": float(((given - shown) ** 2).sum() / (given**2).sum())}
        wanted = IsotonicRegression().fit_transform(given, shown)
        return {"objective": float(np.sqrt(((wanted - shown) ** 2).sum() / (shown**2).sum()))}

    return measure


def left_out(model: Any, data: Data) -> dict[str, float]:
    """Return the variance of the rows outside the plane of the components."""
    V = np.linalg.qr(np.asarray(model.components_, dtype=np.float64).T)[0]
    X, n = data.X, data.X.shape[0]
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij->", X, X)
    image = np.asarray(X @ V) - mean @ V
    return {"objective": float((square - n * (mean @ mean) - (image**2).sum()) / (n - 1))}


def order_along(model: Any, data: Data) -> dict[str, float]:
    """Return 1 − the rank correlation of the best linear function of the coordinates with the position on the roll."""
    design = np.column_stack([np.ones(len(data.X)), model.embedding_])
    fit = design @ np.linalg.lstsq(design, data.y, rcond=None)[0]
    ranks = [np.argsort(np.argsort(values)) for values in (fit, data.y)]
    return {"objective": float(1.0 - abs(np.corrcoef(*ranks)[0, 1]))}


def cut(model: Any, data: Data) -> dict[str, float]:
    """Return the normalised cut of the labels in the graph of ten neighbours."""
    from sklearn.neighbors import kneighbors_graph

    A = kneighbors_graph(data.X, 10, include_self=True)
    A = sp.csr_array((A + A.T) * 0.5 - sp.eye_array(A.shape[0]))
    members = np.eye(int(model.labels_.max()) + 1)[model.labels_]
    volume = members.T @ np.asarray(A.sum(axis=1)).ravel()
    inside = (members * (A @ members)).sum(axis=0)
    return {"objective": float(((volume - inside) / volume).sum())}


def three(name: str, **parameters: Any) -> dict[str, Callable[[Data], Any]]:
    """Return ours and scikit-learn's with the same parameters."""
    return {OURS: contender(OURS, name, **parameters), SKLEARN: contender(SKLEARN, name, **parameters)}


ROWS = [
    Row(
        "pca_full",
        "PCA, 20 components",
        "1,000,000 × 100",
        decaying(1_000_000, 100, 20_000, 50),
        {
            OURS: contender(OURS, "PCA", n_components=20),
            SKLEARN: contender(SKLEARN, "PCA", n_components=20, svd_solver="covariance_eigh"),
            INTELEX: contender(INTELEX, "PCA", n_components=20),
        },
        left_out,
        {SKLEARN: 1.0, INTELEX: 1.0},
    ),
    Row(
        "pca_wide",
        "PCA, 50 components",
        "20,000 × 2,000",
        decaying(20_000, 2_000, 2_000, 300),
        {
            OURS: contender(OURS, "PCA", n_components=50),
            f"{SKLEARN} (covariance)": contender(SKLEARN, "PCA", n_components=50, svd_solver="covariance_eigh"),
            f"{SKLEARN} (randomized)": contender(SKLEARN, "PCA", n_components=50, svd_solver="randomized"),
        },
        left_out,
        {SKLEARN: 1.0},
        tolerance=1e-6,
    ),
    Row(
        "pca_sparse",
        "PCA, sparse rows centred implicitly, 50 components",
        "100,000 × 20,000, one in a thousand",
        sparse_rows,
        {
            OURS: contender(OURS, "PCA", n_components=50),
            SKLEARN: contender(SKLEARN, "PCA", n_components=50, svd_solver="arpack"),
        },
        left_out,
        {SKLEARN: 1.5},
        tolerance=1e-6,
    ),
    Row(
        "factor_analysis",
        "FactorAnalysis, ten factors",
        "100,000 × 100",
        factors,
        {
            OURS: contender(OURS, "FactorAnalysis", n_components=10),
            SKLEARN: contender(SKLEARN, "FactorAnalysis", n_components=10),
        },
        deviance,
        {SKLEARN: 1.0},
        tolerance=1e-6,
    ),
    Row(
        "nmf",
        "NMF, ten parts",
        "10,000 × 500",
        parts,
        {
            OURS: contender(OURS, "NMF", n_components=10, random_state=0),
            SKLEARN: contender(SKLEARN, "NMF", n_components=10, random_state=0),
        },
        error_left,
        {SKLEARN: 1.0},
        tolerance=1e-2,
    ),
    *(
        Row(
            f"mds_{kind}",
            f"MDS, {kind}, from classical scaling",
            f"{n:,} × 10",
            cloud(n, n // 10),
            three("MDS", metric_mds=kind == "metric", init="classical_mds", n_init=1),
            stress(kind == "ordinal"),
            {SKLEARN: 1.0},
            tolerance=1e-2,
        )
        for kind, n in (("metric", 2_000), ("ordinal", 1_000))
    ),
    Row(
        "isomap",
        "Isomap, swiss roll, ten neighbours",
        "10,000 × 3",
        roll(10_000, 1_000),
        three("Isomap", n_neighbors=10),
        order_along,
        {SKLEARN: 5.0},
        tolerance=1e-3,
        floor=1e-3,
    ),
    Row(
        "isomap_landmarks",
        "Isomap, swiss roll, 500 landmarks, under 2 GB",
        "100,000 × 3",
        roll(100_000, 3_000),
        {OURS: contender(OURS, "Isomap", n_neighbors=10, n_landmarks=500)},
        order_along,
    ),
    Row(
        "locally_linear",
        "LocallyLinearEmbedding, swiss roll, LTSA",
        "10,000 × 3",
        roll(10_000, 1_000),
        three("LocallyLinearEmbedding", n_neighbors=12, method="ltsa"),
        order_along,
        {SKLEARN: 5.0},
        tolerance=1e-3,
        floor=1e-2,
    ),
    Row(
        "spectral_embedding",
        "SpectralEmbedding, swiss roll, ten neighbours",
        "10,000 × 3",
        roll(10_000, 1_000),
        three("SpectralEmbedding", n_neighbors=10),
        order_along,
        {SKLEARN: 5.0},
        tolerance=1e-3,
        floor=1e-2,
    ),
    Row(
        "spectral_embedding_wide",
        "SpectralEmbedding, a noisy roll in many dimensions, ten neighbours",
        "10,000 × 50",
        wide_roll,
        three("SpectralEmbedding", n_neighbors=10),
        order_along,
        {SKLEARN: 5.0},
        tolerance=1e-3,
        floor=1e-2,
    ),
    Row(
        "tsne",
        "TSNE, ten bent clusters, 750 steps",
        "20,000 × 50",
        curved_clusters,
        {OURS: contender(OURS, "TSNE", max_iter=750), OPENTSNE: open_tsne},
        divergence,
        {OPENTSNE: 1.0},
        tolerance=1e-2,
    ),
    Row(
        "spectral_clustering",
        "SpectralClustering, ten clusters, graph of ten neighbours",
        "20,000 × 10",
        blobs,
        three("SpectralClustering", n_clusters=10, affinity="nearest_neighbors", random_state=0),
        cut,
        {SKLEARN: 3.0},
        tolerance=1e-2,
        floor=1e-2,
    ),
]
