r"""Classical scaling: points whose distances are those given, as nearly as a few dimensions allow.

With squared dissimilarities D² and J = I − 11ᵀ/n, the matrix B = −½JD²J holds the inner products of points centred at
zero. Its largest eigenpairs Bu = λu give the coordinates √λ u; negative eigenvalues say that no points in any space
have these distances. Of Euclidean distances the coordinates are the scores of PCA. A new point with squared distances
δ² to the rows has the coordinates ½ λ^{−1/2} uᵀ(b̄ − δ²), with b̄ the row means of D² (J. Gower, 1968).

Reference: W. Torgerson, Multidimensional scaling: I. Theory and method, Psychometrika 17 (1952).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from ..core.declare import Matches, Number, fitted, param, tags
from ..core.errors import DataError
from ..core.estimator import Certificate, Run
from ..core.loaded import law, laws
from ..data.door import Table, read_features
from ..solvers.eigen import PAIR_TOLERANCE, symmetric_pairs
from .base import Embedding, dense_rows, kept_rows, rows_in_memory

Array = NDArray[np.float64]

#: Columns up to which Euclidean distances are summed term by term: ‖x‖² − 2xᵀz + ‖z‖² by a matrix product is quicker
#: in many, but loses half of the digits between near rows.
_FEW_COLUMNS = 100

METRIC = Matches(lambda v: isinstance(v, str) or callable(v), "the name of a metric, or a function of two rows")
METRIC_PARAMS = Matches(lambda v: v is None or isinstance(v, dict), "a dict of the metric's parameters, or None")


def distances_between(owner: str, X: Any, Y: Any, metric: Any, metric_params: Any) -> Array:
    """Return the distances of rows of X to rows of Y (to X itself if Y is None), by scikit-learn's metrics."""
    from sklearn.metrics import pairwise_distances

    if metric == "euclidean" and not metric_params and not sp.issparse(X) and X.shape[1] <= _FEW_COLUMNS:
        return np.asarray(cdist(X, X if Y is None else Y))
    try:
        found = pairwise_distances(X, Y, metric=metric, **(metric_params or {}))
    except (ValueError, TypeError) as error:
        raise DataError(f"{owner}: the metric {metric!r} gives no distances here: {error}") from error
    return np.asarray(found, dtype=np.float64)


def check_dissimilarities(owner: str, D: Array) -> Array:
    """Return square, symmetric, non-negative dissimilarities with a zero diagonal, or raise DataError."""
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise DataError(f"{owner}: precomputed dissimilarities must be a square matrix; got shape {D.shape}.")
    size = float(np.abs(D).max(initial=0.0))
    if not np.abs(D - D.T).max(initial=0.0) <= 1e-8 * size:
        raise DataError(
            f"{owner}: Array must be symmetric: dissimilarities differ from their transpose; pass (D + D.T)/2."
        )
    if (D < 0).any():
        raise DataError(f"{owner}: dissimilarities must not be negative; Negative values in data passed to X.")
    return np.asarray((D + D.T) / 2.0)


def centred_products(square: Array) -> Array:
    """Turn squared dissimilarities into B = −½JD²J, in place."""
    mean = square.mean(axis=0)
    square -= mean
    square -= mean[:, None] - mean.mean()
    square *= -0.5
    return square


class DistanceModel(Embedding):
    """What models of a table of dissimilarities share: its metric, the table, the distances of new rows."""

    n_components: int = param(Number(low=1, integer=True), "Dimensions.", default=2, kw_only=False)
    metric: Any = param(
        METRIC,
        'A metric of scikit-learn, a function of two rows, or "precomputed": X holds the dissimilarities.',
        default="euclidean",
    )
    metric_params: Any = param(METRIC_PARAMS, "Further parameters of the metric.", default=None)

    dissimilarity_matrix_: Array = fitted("(n_rows, n_rows)", "D.", low=0.0)
    X_fit_: Any = fitted("(n_rows, n_features)", "The rows, for distances to new ones.")
    _tags = tags(
        pairwise=lambda model: model._named_metric() == "precomputed",
        positive_only=lambda model: model._named_metric() == "precomputed",
    )

    def _dissimilarities(self, table: Table) -> Array:
        """Return D, and keep it and the rows."""
        owner = type(self).__name__
        X = rows_in_memory(owner, table)
        metric = self._named_metric()
        if metric == "precomputed":
            D = check_dissimilarities(owner, dense_rows(X))
        else:
            D = distances_between(owner, X, None, metric, self.metric_params)
            D = (D + D.T) / 2.0
        self.dissimilarity_matrix_ = D
        self.X_fit_ = kept_rows(X)
        return D

    def _named_metric(self) -> Any:
        """Return the metric."""
        return self.metric

    def _distances_of_new(self, rows: Any) -> Array:
        """Return the (m, n) dissimilarities of new rows to those of the fit."""
        metric = self._named_metric()
        if metric == "precomputed":
            return dense_rows(rows)
        return distances_between(type(self).__name__, rows, self.X_fit_, metric, self.metric_params)

    _laws = laws(
        law(
            "precomputed dissimilarities must be a square table",
            lambda model: model._named_metric() != "precomputed" or model.X_fit_.shape[0] == model.X_fit_.shape[1],
        ),
    )


class ClassicalMDS(DistanceModel):
    r"""Classical multidimensional scaling: coordinates whose inner products are nearest to B = −½JD²J.

    Distances in the picture are at most those given when the distances are Euclidean; the rest is in the dimensions
    that were left out. `negative_share_` says how far the dissimilarities are from being Euclidean: the negative
    eigenvalues as a share of all, in absolute value. `transform` places new rows by Gower's formula. Time O(n²k) for
    a few components (O(n³) for many, and for that share up to 2,000 rows, unless the metric is Euclidean), memory 16n²
    bytes. A component of eigenvalue zero or less has coordinates zero.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import ClassicalMDS
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
    >>> model = ClassicalMDS(n_components=1, metric="precomputed").fit(D)
    >>> model.embedding_.ravel().round(3)
    array([-1.333, -0.333,  1.667])
    """

    _theory = "multidimensional-scaling"

    embedding_: Array = fitted("(n_rows, n_components)", "Coordinates, √λ u.")
    eigenvalues_: Array = fitted("(n_components,)", "λ, the largest first; the variances times n.")
    negative_share_: float = fitted(
        "()", "Σ|λ| of the negative eigenvalues as a share of all; 0 for Euclidean distances.", low=0.0, high=1.0
    )
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖Bu − λu‖/λ₁ and |uᵢᵀuⱼ − [i = j]|."
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        D = self._dissimilarities(table)
        n = table.n_rows
        k = min(self.n_components, n)
        B = centred_products(D**2)
        pairs = symmetric_pairs(B, k, owner="ClassicalMDS")
        noise = 10.0 * n * float(np.finfo(np.float64).eps) * pairs.size
        values = np.where(np.abs(pairs.values) <= noise, 0.0, pairs.values)
        self.eigenvalues_ = values
        self.embedding_ = pairs.vectors * np.sqrt(np.maximum(values, 0.0))
        # Euclidean distances of rows have none (Schoenberg), so that the O(n³) of the whole spectrum is not spent.
        self.negative_share_ = 0.0 if self.metric == "euclidean" else _negative_share(B, noise)
        return Certificate("closed-form", pairs.worst, PAIR_TOLERANCE)

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new rows by Gower's formula.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with metric="precomputed" their dissimilarities to the rows of the fit.

        Returns
        -------
        array of shape (n_samples, n_components)
            Coordinates; of a row of the fit, its own. Float32 for float32.
        """
        check_is_fitted(self)
        rows = read_features(self, X)
        away = self._distances_of_new(rows)
        found = place_by_distances(away**2, (self.dissimilarity_matrix_**2).mean(axis=0), self.embedding_)
        return np.asarray(found, dtype=rows.dtype)


def place_by_distances(square: Array, mean_square: Array, embedding: Array) -> Array:
    """Return ½Λ⁻¹Yᵀ(b̄ − δ²) for rows of squared distances δ² to points Y = √λ u; zero where λ is."""
    values = (embedding**2).sum(axis=0)
    directions = np.where(values > 0, embedding / np.where(values > 0, values, 1.0), 0.0)
    # Eigenvectors of centred products sum to zero, but for rounding that far points would multiply by their squares.
    directions = directions - directions.mean(axis=0)
    return np.asarray(0.5 * (mean_square - square) @ directions)


def _negative_share(B: Array, noise: float) -> float:
    """Return Σ|λ⁻|/Σ|λ|. Beyond 2000 rows only the least of the negative eigenvalues, a lower bound, is known."""
    if len(B) <= 2000:
        values = np.linalg.eigvalsh(B)
        below = float(-values[values < -noise].sum())
        total = float(np.abs(values).sum())
        return below / total if total > 0 else 0.0
    least = float(symmetric_pairs(B, 1, largest=False).values[0])
    total = float(B.trace())
    return -least / (total - 2.0 * least) if least < -noise else 0.0
