r"""Laplacian eigenmaps: the smoothest functions on a graph of similar rows as their coordinates.

With affinities aᵢⱼ ≥ 0 (aᵢᵢ left out), degrees dᵢ = Σⱼ aᵢⱼ and D = diag(d), coordinates y with yᵀDy = 1 that make
½ Σᵢⱼ aᵢⱼ(yᵢ − yⱼ)² = yᵀ(D − A)y smallest solve (D − A)y = λDy; with u = D^{1/2}y this is Lu = λu for the normalised
Laplacian L = I − D^{−1/2}AD^{−1/2}. The first, constant one is left out. The number of zero eigenvalues is the number
of connected components. A new row with affinities a(x, ·) gets y(x) = Σⱼ a(x, j)yⱼ / (d(x)(1 − λ)), which the rows obey
themselves (Y. Bengio et al., Out-of-sample extensions, 2003).

Reference: M. Belkin and P. Niyogi, Laplacian eigenmaps for dimensionality reduction and data representation, 2003.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..core.declare import (
    N_JOBS,
    RANDOM_STATE,
    Boolean,
    Matches,
    Nothing,
    Number,
    Options,
    fitted,
    optional,
    param,
    tags,
)
from ..core.errors import DataError
from ..core.estimator import Certificate, Estimator, Run
from ..core.loaded import law, laws
from ..data.door import Table, door, read_features
from ..solvers.eigen import PAIR_TOLERANCE, EigenPairs, fix_signs, symmetric_pairs
from ._kernels import widest_level
from .base import Embedding, dense_rows, kept_rows, rows_in_memory
from .graphs import fit_neighbours

Array = NDArray[np.float64]

AFFINITY = Options("nearest_neighbors", "rbf", "precomputed", "precomputed_nearest_neighbors") | Matches(
    callable, "a function of a table that gives affinities"
)
#: Entries per row up to which a sparse factor may be quicker than Lanczos on the affinities.
_THIN = 60
#: Nodes at one distance from a node on the border that cut the graph: a factor costs at least their cube. It is quicker
#: than Lanczos up to five times √n of them: 10,000 rows with ten neighbours of a swiss roll have 1.2 √n (48 ms with a
#: factor, 483 without), of a noisy one in fifty columns 2.6 (116, 250), of a cube 7.5 (264, 230), of a cube of four
#: dimensions 10.5 (210, 74), of handwritten digits 30. So few nodes as the last are a small factor in any case.
_CUT = 5.0
_SMALL_CUT = 500
#: Restarts of Lanczos before the factor is tried in any case: of 20,000 rows in ten dimensions with ten clusters,
#: twelve took 0.1 s and the factor 10 s.
_RESTARTS = 100
#: Shift of the factor, below the spectrum of a Laplacian: (L − σI)⁻¹ has a condition number of at most 2e4.
_SHIFT = -1e-4


def without_diagonal(A: Any) -> Any:
    """Return affinities with a zero diagonal, CSR or dense."""
    if sp.issparse(A):
        A = sp.csr_array(A)
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        kept = (rows != A.indices) & (A.data != 0)
        counts = np.concatenate([[0], np.cumsum(kept)])
        return sp.csr_array((A.data[kept], A.indices[kept], counts[A.indptr]), shape=A.shape)
    A = np.array(A, dtype=np.float64)
    np.fill_diagonal(A, 0.0)
    return A


def check_affinities(owner: str, A: Any, n: int) -> None:
    """Raise DataError unless affinities are square and not negative; warn if they are not symmetric."""
    if A.shape != (n, n):
        raise DataError(f"{owner}: the affinity must be a square matrix with a row for each row; got {A.shape}.")
    numbers = A.data if sp.issparse(A) else A
    size = float(np.abs(numbers).max(initial=0.0))
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise DataError(f"{owner}: affinities must be finite and not negative; Negative values in data passed to X.")
    if abs(A - A.T).max() > 1e-8 * size:
        warnings.warn(
            f"{owner}: Array is not symmetric: affinities differ from their transpose; (A + A.T)/2 is used.",
            UserWarning,
            stacklevel=4,
        )


def laplacian_of(A: Any, degrees: Array, normalized: bool) -> Any:
    """Return D − A, or D^{−1/2}(D − A)D^{−1/2}; a row without affinities has an eigenvalue zero of its own."""
    n = len(degrees)
    if not normalized:
        return sp.csr_array(sp.diags_array(degrees) - A) if sp.issparse(A) else np.diag(degrees) - A
    root = np.where(degrees > 0, 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
    ones = (degrees > 0).astype(np.float64)
    if sp.issparse(A):
        scale = sp.diags_array(root)
        return sp.csr_array(sp.diags_array(ones) - scale @ A @ scale)
    L = -root[:, None] * A * root
    L.flat[:: n + 1] += ones
    return L


def smallest_pairs(owner: str, L: Any, k: int, tol: float) -> EigenPairs:
    """Return the k smallest eigenpairs of a Laplacian, by a sparse factor where it stays sparse.

    Graphs of neighbours of rows on a sheet are cut by few nodes, and their factors stay thin, whatever the number of
    columns; in more dimensions they fill up, and Lanczos without a factor has the first try.
    """
    thin = sp.issparse(L) and L.nnz <= _THIN * L.shape[0] and _is_cut_by_few(L)
    return symmetric_pairs(L, k, largest=False, shift=_SHIFT, tol=tol, budget=0 if thin else _RESTARTS, owner=owner)


def _is_cut_by_few(L: sp.csr_array) -> bool:
    """Tell whether all nodes at one distance from a node on the border of the graph are few."""
    n = L.shape[0]
    indptr = L.indptr.astype(np.int64)
    indices = L.indices.astype(np.int32)
    depth = np.empty(n, dtype=np.int32)
    queue = np.empty(n, dtype=np.int32)
    widest_level(indptr, indices, 0, depth, queue)
    return widest_level(indptr, indices, int(queue[0]), depth, queue) <= max(_CUT * np.sqrt(n), _SMALL_CUT)


class AffinityModel(Estimator):
    """What models of a graph of affinities share: the affinities of the rows, and of new rows to them."""

    affinity_matrix_: Any = fitted("(n_rows, n_rows)", "A with its diagonal, an array or a CSR array.", low=0.0)
    degrees_: Array = fitted("(n_rows,)", "d.", low=0.0)
    reach_: Array = fitted("(n_rows,)", "Distance of each row's last neighbour.", optional=True, low=0.0)
    X_fit_: Any = fitted("(n_rows, n_features)", "The rows, for affinities to new ones.")
    gamma_: float = fitted("()", "γ.")
    n_neighbors_: int = fitted("int", "Neighbours, the row itself among them.")
    n_parts_: int = fitted("int", "Connected components of the graph.")
    n_features_in_: int = fitted("int", "Number of columns.")

    _door = staticmethod(door(target="none"))
    _tags = tags(sparse=True, pairwise=lambda model: model._is_given(), positive_only=lambda model: model._is_given())

    def _is_given(self) -> bool:
        return self.affinity in ("precomputed", "precomputed_nearest_neighbors")

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Fit the model to the rows of X; y is ignored."""
        return super().fit(X)

    def _graph(self, table: Table) -> Any:
        """Set what is known of the graph, and return the affinities without their diagonal."""
        owner = type(self).__name__
        X = rows_in_memory(owner, table)
        n = table.n_rows
        self.gamma_ = 1.0 / table.n_columns if self.gamma is None else float(self.gamma)
        self.n_neighbors_ = min(n, max(n // 10, 2) if self.n_neighbors is None else self.n_neighbors)
        self.X_fit_ = kept_rows(X)
        given = self._affinities(owner)
        if isinstance(self.affinity, str) and "neighbors" in self.affinity:
            self.affinity_matrix_ = given  # symmetric as it is made
        else:
            check_affinities(owner, given, n)
            self.affinity_matrix_ = (given + given.T) / 2.0
        A = without_diagonal(self.affinity_matrix_)
        self.degrees_ = np.asarray(A.sum(axis=1), dtype=np.float64).ravel()
        self.n_parts_ = int(
            connected_components(sp.csr_array(A), directed=False)[0]
        )  # of a dense A, SciPy drops weights below 1e-8
        return A

    def _affinities(self, owner: str) -> Any:
        """Return the affinities of the rows as the parameter states them."""
        X = self.X_fit_
        if callable(self.affinity):
            return np.asarray(self.affinity(X), dtype=np.float64)
        if self.affinity == "precomputed":
            return sp.csr_array(X.astype(np.float64)) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        if self.affinity == "rbf":
            rows = dense_rows(X)
            return np.exp(-self.gamma_ * cdist(rows, rows, "sqeuclidean"))
        if "neighbors" not in self.affinity:
            return self._kernel_values(X, X)
        n = X.shape[0]
        k = self.n_neighbors_ - 1
        if self.affinity == "precomputed_nearest_neighbors":
            nbrs = fit_neighbours(owner, X, max(k, 1), self.n_jobs, metric="precomputed")
        else:
            nbrs = fit_neighbours(owner, X, max(k, 1), self.n_jobs)
        distances, rows = nbrs.kneighbors(n_neighbors=max(k, 1))
        self.reach_ = distances[:, -1].copy()
        ends = np.arange(n + 1) * rows.shape[1]
        graph = sp.csr_array((np.ones(rows.size), rows.ravel(), ends), shape=(n, n))
        return sp.csr_array((graph + graph.T) * 0.5 + sp.eye_array(n))

    def _kernel_values(self, X: Any, Y: Any) -> Array:
        """Return the values of a named kernel between rows."""
        from sklearn.metrics.pairwise import pairwise_kernels

        given = dict(self.kernel_params or {})
        given |= {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        found = pairwise_kernels(X, Y, metric=self.affinity, filter_params=True, **given)
        return np.asarray(found, dtype=np.float64)

    def _new_affinities(self, rows: Array) -> Array:
        """Return the affinities of new rows to those of the fit; a row of the fit has none to itself."""
        if self.affinity == "precomputed":
            return rows
        if callable(self.affinity):
            raise DataError(
                f"{type(self).__name__}: an affinity that is a function of one table has none for new rows; use 'rbf'."
            )
        if self.affinity != "rbf" and "neighbors" not in self.affinity:
            return self._kernel_values(rows, self.X_fit_)
        known = self.affinity == "precomputed_nearest_neighbors"
        D = rows.copy() if known else cdist(rows, dense_rows(self.X_fit_))
        if known:
            D[D == 0] = np.inf
        else:
            same = D == 0
            first = same.argmax(axis=1)
            found = same.any(axis=1)
            D[np.flatnonzero(found), first[found]] = np.inf
        if self.affinity == "rbf":
            return np.exp(-self.gamma_ * D**2)
        k = max(self.n_neighbors_ - 1, 1)
        reach = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
        slack = 1.0 + 1e-12  # a row at exactly the distance of the last neighbour is one
        return np.asarray(0.5 * (reach * slack >= D) + 0.5 * (self.reach_ * slack >= D))

    _laws = laws(
        law(
            "reach_ is missing",
            lambda model: (
                hasattr(model, "reach_") or not (isinstance(model.affinity, str) and "neighbors" in model.affinity)
            ),
        ),
    )


class SpectralEmbedding(AffinityModel, Embedding):
    r"""Laplacian eigenmaps: coordinates that change least between similar rows.

    Rows that are joined lie near each other in the picture; distances between far rows mean nothing. A graph of several
    components gives coordinates that only tell them apart, with a warning (`n_parts_`). `transform` extends the
    eigenfunctions to new rows; a row of the fit gets its own coordinates. Memory: the affinities.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import SpectralEmbedding
    >>> A = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    >>> model = SpectralEmbedding(n_components=1, affinity="precomputed", normalized=False).fit(A)
    >>> np.allclose(model.eigenvalues_, 2 - 2 * np.cos(np.pi / 5))  # a path of five nodes
    True
    """

    _theory = "spectral-embedding"

    n_components: int = param(Number(low=1, integer=True), "Dimensions.", default=2, kw_only=False)
    affinity: Any = param(
        AFFINITY,
        'How similar rows are: "nearest_neighbors" (1 if each is among the nearest of the other, ½ if one is), "rbf" '
        '(exp(−γ‖x − z‖²)), "precomputed" (X holds the affinities), "precomputed_nearest_neighbors" (X is a sparse '
        "graph of distances), or a function.",
        default="nearest_neighbors",
    )
    gamma: float | None = param(optional(Number(low=0.0)), 'γ of "rbf"; None is 1/n_features.', default=None)
    random_state: Any = param(RANDOM_STATE, "Kept for compatibility; nothing is random.", default=None)
    eigen_solver: Any = param(
        Options("arpack", "lobpcg", "amg") | Nothing(), "Kept for compatibility; chosen by the graph.", default=None
    )
    eigen_tol: Any = param(
        Options("auto") | Number(low=0.0), 'Of Lanczos; "auto" is machine precision.', default="auto"
    )
    n_neighbors: int | None = param(
        optional(Number(low=1, integer=True)), "Neighbours, the row itself among them; None is n/10.", default=None
    )
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)
    normalized: bool = param(Boolean(), "Whether the Laplacian is normalised by the degrees.", default=True)

    embedding_: Array = fitted("(n_rows, n_components)", "y.")
    eigenvalues_: Array = fitted("(n_components,)", "λ, the smallest first, without the constant one.")
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖Lu − λu‖ (by ‖L‖) and |uᵢᵀuⱼ − [i = j]|."
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        A = self._graph(table)
        n = table.n_rows
        if self.n_parts_ > 1:
            warnings.warn(
                f"{owner}: Graph is not fully connected, spectral embedding may not work as expected: it has "
                f"{self.n_parts_} parts, which the first coordinates tell apart; raise n_neighbors, or lower gamma.",
                ConvergenceWarning,
                stacklevel=3,
            )
        k = min(self.n_components, n - 1)
        tol = 0.0 if self.eigen_tol == "auto" else float(self.eigen_tol)
        L = laplacian_of(A, self.degrees_, self.normalized)
        pairs = smallest_pairs(owner, L, k + 1, tol)
        self.eigenvalues_ = np.maximum(pairs.values[1:], 0.0)
        self.embedding_ = np.ascontiguousarray(pairs.vectors[:, 1:] / self._roots()[:, None])
        fix_signs(self.embedding_)
        return Certificate("closed-form", pairs.worst, max(PAIR_TOLERANCE, tol))

    def _roots(self) -> Array:
        """Return √d where the Laplacian is normalised, one for rows without affinities."""
        if not self.normalized:
            return np.ones(len(self.degrees_))
        return np.sqrt(np.where(self.degrees_ > 0, self.degrees_, 1.0))

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new rows: weighted means of those of similar rows, divided by 1 − λ.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows; with precomputed affinities or distances, those to the rows of the fit (to itself zero affinity).

        Returns
        -------
        array of shape (n_samples, n_components)
            Coordinates; zero for a row that is similar to none. Float32 for float32.
        """
        check_is_fitted(self)
        rows = read_features(self, X)
        a = self._new_affinities(dense_rows(rows))
        degree = a.sum(axis=1, keepdims=True)
        # Of L y: d(x) y(x) − Σ a(x, j) yⱼ = λ d(x) y(x), or λ y(x) where the Laplacian is not normalised.
        divisor = degree * (1.0 - self.eigenvalues_) if self.normalized else degree - self.eigenvalues_
        small = np.abs(divisor) <= 1e-12 * (1.0 + degree)
        found = np.where(small, 0.0, (a @ self.embedding_) / np.where(small, 1.0, divisor))
        return np.asarray(found, dtype=rows.dtype)


class LaplacianEigenmaps(SpectralEmbedding):
    r"""Laplacian eigenmaps under the name of the paper, with its affinities exp(−γ‖x − z‖²) by default.

    Everything else is that of `SpectralEmbedding`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import LaplacianEigenmaps
    >>> X = np.linspace(0.0, 1.0, 12)[:, None]
    >>> y = LaplacianEigenmaps(n_components=1, gamma=20.0).fit_transform(X).ravel()
    >>> bool((np.diff(y) > 0).all() or (np.diff(y) < 0).all())  # the order along the line
    True
    """

    _theory = "spectral-embedding"

    affinity: Any = param(AFFINITY, "How similar rows are; see `SpectralEmbedding`.", default="rbf")
