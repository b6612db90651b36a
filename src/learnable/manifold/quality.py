r"""How much of the neighbourhoods a picture keeps.

Trustworthiness is 1 − c Σᵢ Σ_j max(0, r(i, j) − k) over the k nearest rows j of i in the picture, r(i, j) the rank of j
by distance in the data and c = 2/(nk(2n − 3k − 1)): low where the picture shows neighbours that are none. Continuity
is the same with data and picture exchanged: low where neighbours were torn apart.

Reference: J. Venna and S. Kaski, Neighborhood preservation in nonlinear projection methods, ICANN 2001.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.errors import DataError, ParameterError

Array = NDArray[np.float64]

_BLOCK = 256


def trustworthiness(X: Any, X_embedded: Any, *, n_neighbors: int = 5) -> float:
    """Return how far neighbours in a picture are neighbours in the data, from 0 to 1.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    X_embedded : array of shape (n_samples, n_components)
        The picture.
    n_neighbors : int
        k, less than half the rows. Distances are Euclidean; memory O(n).

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import trustworthiness
    >>> X = np.arange(20.0)[:, None]
    >>> trustworthiness(X, 3.0 * X), round(trustworthiness(X, X % 10), 2)
    (1.0, 0.53)
    """
    return _kept(_rows_of(X), _rows_of(X_embedded), n_neighbors, "trustworthiness")


def continuity(X: Any, X_embedded: Any, *, n_neighbors: int = 5) -> float:
    """Return how far neighbours in the data are neighbours in a picture, from 0 to 1; see `trustworthiness`.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    X_embedded : array of shape (n_samples, n_components)
        The picture.
    n_neighbors : int
        k, less than half the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import continuity
    >>> X = np.arange(20.0)[:, None]
    >>> continuity(X, -X)
    1.0
    """
    return _kept(_rows_of(X_embedded), _rows_of(X), n_neighbors, "continuity")


def _rows_of(X: Any) -> Array:
    rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    return rows[:, None] if rows.ndim == 1 else rows


def _kept(truth: Array, shown: Array, k: int, owner: str) -> float:
    n = len(truth)
    if len(shown) != n:
        raise DataError(f"{owner}: the data have {n} rows, the picture {len(shown)}; pass the same rows.")
    if not 1 <= k < n / 2:
        raise ParameterError(f"{owner}: n_neighbors must be at least 1 and less than n_samples / 2 = {n / 2}; got {k}.")
    penalty = 0
    for start in range(0, n, _BLOCK):
        part = np.arange(start, min(n, start + _BLOCK))
        own = (np.arange(len(part)), part)
        D = cdist(truth[part], truth)
        D[own] = np.inf
        ranks = np.empty(D.shape, dtype=np.int64)
        np.put_along_axis(ranks, np.argsort(D, axis=1, kind="stable"), np.arange(1, n + 1)[None], axis=1)
        D = cdist(shown[part], shown)
        D[own] = np.inf
        nearest = np.argsort(D, axis=1, kind="stable")[:, :k]
        penalty += int(np.maximum(np.take_along_axis(ranks, nearest, axis=1) - k, 0).sum())
    return float(1.0 - penalty * 2.0 / (n * k * (2.0 * n - 3.0 * k - 1.0)))
