"""Where climbs of Gaussian emissions begin: clusters of the rows, and the covariance of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mixtures.kmeans import KMeans

Array = NDArray[Any]

_MOST_ROWS = 20_000  # clusters of a start need no more


def whole_rows(X: Array) -> Array:
    """Return the rows without missing entries, or as many as a start needs, spread over the sequences."""
    whole = X[~np.isnan(X).any(axis=1)]
    if len(whole) > _MOST_ROWS:
        whole = whole[np.linspace(0, len(whole) - 1, _MOST_ROWS).astype(int)]
    return whole


def centre_and_spread(X: Array) -> tuple[Array, Array]:
    """Return the mean and the variance of each column, over the entries that are there."""
    n = np.maximum((~np.isnan(X)).sum(axis=0), 1)
    centre = np.nansum(X, axis=0) / n
    return centre, np.nansum((X - centre) ** 2, axis=0) / n


def cluster_rows(rows: Array, K: int, rng: Any) -> tuple[Array, Array] | None:
    """Return K centres and each row's cluster, or None where there are too few distinct rows for clusters."""
    if len(np.unique(rows, axis=0)) < K:
        return None
    clusters = KMeans(n_clusters=K, n_init=1, random_state=int(rng.randint(2**31 - 1))).fit(rows)
    return np.asarray(clusters.cluster_centers_, dtype=float), np.asarray(clusters.labels_)


def draw_means(X: Array, K: int, rng: Any) -> Array:
    """Return K means: centres of clusters, or draws about the centre of all rows."""
    found = cluster_rows(whole_rows(X), K, rng)
    if found is not None:
        return found[0]
    centre, spread = centre_and_spread(X)
    return np.asarray(centre + rng.standard_normal((K, X.shape[1])) * np.sqrt(spread))


def first_covariance(X: Array, least: float) -> Array:
    """Return the covariance of the rows, with `least` added to its diagonal."""
    whole, d = whole_rows(X), X.shape[1]
    cov = np.cov(whole.T, bias=True).reshape(d, d) if len(whole) > d else np.diag(centre_and_spread(X)[1])
    return np.asarray(cov + least * np.eye(d))
