r"""Locally linear embedding: coordinates in which every row is the same mixture of its neighbours as in the data.

Each row is written as Σⱼ wᵢⱼxⱼ over its k neighbours with Σⱼ wᵢⱼ = 1 and the least error; the coordinates with
YᵀY = I and mean zero that keep the weights best, min ‖Y − WY‖², are the eigenvectors of M = (I − W)ᵀ(I − W) of least
eigenvalue, without the constant one. The variants sum other forms over neighbourhoods: the modified method uses all
mixtures that are nearly as good as the best, LTSA what is left outside the tangent plane, Hessian eigenmaps the squared
second derivatives in tangent coordinates.

Of the modified method: with the local products G = VΛVᵀ, λ₁ ≥ λ₂ ≥ …, the s directions of least eigenvalue (those whose
sum is at most a share η of the others', η the median over all rows of Σ_{j>d} λⱼ / Σ_{j≤d} λⱼ) hardly change the error.
With P the projector on them, α = √(1ᵀP1/s) and w the best mixture, the s mixtures are the columns of W = V_s H +
(1 − α)w1ᵀ, H the reflection that makes their sums one. The form needs only WWᵀ and W1, and in these H drops out:
W1 = P1/α + (1 − α)sw and WWᵀ = P + (1 − α)/α (P1 wᵀ + w(P1)ᵀ) + (1 − α)²s wwᵀ.

References: S. Roweis and L. Saul, Nonlinear dimensionality reduction by locally linear embedding, Science 290 (2000);
Z. Zhang and H. Zha, Principal manifolds and nonlinear dimensionality reduction via tangent space alignment, 2004;
D. Donoho and C. Grimes, Hessian eigenmaps, PNAS 100 (2003); Z. Zhang and J. Wang, MLLE: modified locally linear
embedding using multiple weights, NIPS 2006.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import N_JOBS, RANDOM_STATE, TOLERANCE, Number, Options, fitted, param, tags
from ..core.errors import ParameterError
from ..core.estimator import Run
from ..core.loaded import laws
from ..data.door import Table, door, read_features
from ..neighbors import NearestNeighbors
from ..solvers.eigen import PAIR_TOLERANCE, symmetric_pairs
from .base import SEARCHES_ROWS, Embedding, rows_in_memory
from .graphs import fit_neighbours

Array = NDArray[np.float64]

#: Numbers of one batch of neighbourhoods: 32 MB.
_BATCH = 2**22
#: Sums of unit vectors below this are rounding: above it they have nine digits, which the modified method divides by.
_NO_SUM = 1e-7
#: Squares of singular values below this share of their sum are rounding.
_NO_SQUARE = 1e-24
#: Shift of the sparse factor as a share of the largest entry of M: below the eigenvalues wanted, which may be 1e-8.
_SHIFT = 1e-10


class LocallyLinearEmbedding(Embedding):
    r"""Locally linear embedding: coordinates that keep how rows are made of their neighbours.

    Neighbourhoods keep their shape up to linear maps; scales and far distances in the picture mean nothing. `transform`
    writes a new row as a mixture of its neighbours and mixes their coordinates; a row of the fit gets its own. A graph
    of several components gives coordinates that only tell them apart, with a warning. Time and memory O(nk²).

    Unlike in scikit-learn, "hessian" takes the second derivatives alone (there it is LTSA under another name), and
    the eigenpairs are found to machine precision.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import LocallyLinearEmbedding
    >>> angle = np.linspace(0.0, 5.0, 60)
    >>> curve = np.column_stack([np.cos(angle), np.sin(angle), angle])
    >>> y = LocallyLinearEmbedding(n_neighbors=4, n_components=1).fit_transform(curve).ravel()
    >>> bool((np.diff(y) > 0).all() or (np.diff(y) < 0).all())  # the order along the curve
    True
    """

    _theory = "locally-linear"

    n_neighbors: int = param(Number(low=1, integer=True), "k, neighbours of each row.", default=5)
    n_components: int = param(Number(low=1, integer=True), "Dimensions.", default=2)
    reg: float = param(
        Number(low=0.0), "What is added to the diagonal of the local products, as a share of their trace.", default=1e-3
    )
    eigen_solver: str = param(
        Options("auto", "arpack", "dense"), "Lanczos with a sparse factor, or LAPACK.", default="auto"
    )
    tol: float = param(TOLERANCE, "Kept for compatibility; eigenpairs have machine precision.", default=1e-6)
    max_iter: int = param(Number(low=1, integer=True), "Kept for compatibility.", default=100)
    method: str = param(
        Options("standard", "hessian", "modified", "ltsa"),
        "Mixtures of neighbours; Hessian eigenmaps; several mixtures for each row; alignment of tangent planes.",
        default="standard",
    )
    hessian_tol: float = param(
        TOLERANCE, "Below it the sum of a local second derivative is not divided by.", default=1e-4
    )
    modified_tol: float = param(TOLERANCE, "Kept for compatibility; nothing is divided by it.", default=1e-12)
    neighbors_algorithm: str = param(
        Options("auto", "brute", "kd_tree", "ball_tree"), "How neighbours are searched.", default="auto"
    )
    random_state: Any = param(RANDOM_STATE, "Kept for compatibility; nothing is random.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads of the search; the result does not depend on it.", default=None)

    embedding_: Array = fitted("(n_rows, n_components)", "Y, orthonormal columns.")
    eigenvalues_: Array = fitted("(n_components,)", "Of M, the smallest first, without the constant one's.")
    reconstruction_error_: float = fitted("()", "Sum of the eigenvalues: ‖Y − WY‖² of the standard method.", low=0.0)
    n_parts_: int = fitted("int", "Connected components of the graph of neighbours.")
    nbrs_: NearestNeighbors = fitted("NearestNeighbors", "The search over the rows.")
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖My − λy‖ (by the size of M) and |yᵢᵀyⱼ − [i = j]|."
    )

    _door = staticmethod(door(target="none", sparse=False))
    _tags = tags(sparse=False)

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = "LocallyLinearEmbedding"
        X = rows_in_memory(owner, table, least=1)
        n = table.n_rows
        k = self.n_neighbors
        d = self.n_components
        if d > table.n_columns:
            raise ParameterError(f"{owner}: n_components={d} must be at most the {table.n_columns} columns of X.")
        self.nbrs_ = fit_neighbours(owner, X, k, self.n_jobs, algorithm=self.neighbors_algorithm)
        if self.method == "hessian" and k <= d * (d + 3) // 2:
            raise ParameterError(
                f"{owner}: for method='hessian', n_neighbors must be greater than n_components (n_components + 3) / 2 "
                f"= {d * (d + 3) // 2}; got {k}."
            )
        if self.method in ("ltsa", "modified") and k < d:
            raise ParameterError(
                f"{owner}: for method={self.method!r}, n_neighbors must be at least n_components; got {k}."
            )
        rows = self.nbrs_.kneighbors(n_neighbors=k, return_distance=False)
        M = self._form(np.asarray(X, dtype=np.float64), rows)
        starts = np.arange(n + 1) * k
        self.n_parts_ = int(connected_components(sp.csr_array((np.ones(rows.size), rows.ravel(), starts), (n, n)))[0])
        if self.n_parts_ > 1:
            warnings.warn(
                f"{owner}: the graph of neighbours has {self.n_parts_} connected components, which the first "
                "coordinates tell apart; raise n_neighbors.",
                ConvergenceWarning,
                stacklevel=3,
            )
        method = {"arpack": "shift-invert"}.get(self.eigen_solver, self.eigen_solver)
        shift = -_SHIFT * float(M.diagonal().max())
        pairs = symmetric_pairs(M, min(d + 1, n), largest=False, shift=shift, method=method, owner=owner)
        self.embedding_ = np.ascontiguousarray(pairs.vectors[:, 1:])
        self.eigenvalues_ = np.maximum(pairs.values[1:], 0.0)
        self.reconstruction_error_ = float(self.eigenvalues_.sum())
        return Certificate("closed-form", pairs.worst, PAIR_TOLERANCE)

    def _form(self, X: Array, rows: Array) -> sp.csr_array:
        """Return M, the sum of the forms of all neighbourhoods."""
        n, k = rows.shape
        if self.method == "standard":
            weights = mixture_weights(X, X, rows, self.reg)
            W = sp.csr_array((weights.ravel(), rows.ravel(), np.arange(n + 1) * k), shape=(n, n))
            left = sp.csr_array(sp.eye_array(n) - W)
            return sp.csr_array(left.T @ left)
        if self.method == "modified":
            blocks = modified_forms(X, rows, self.n_components, self.reg)
            rows = np.column_stack([np.arange(n), rows])
        else:
            blocks = np.empty((n, k, k))
            for part in _batches(n, k * max(k, X.shape[1])):
                blocks[part] = self._local_forms(X[rows[part]])
        i = np.broadcast_to(rows[:, :, None], blocks.shape).ravel()
        j = np.broadcast_to(rows[:, None, :], blocks.shape).ravel()
        M = sp.csr_array(sp.coo_array((blocks.ravel(), (i, j)), shape=(n, n)))
        return sp.csr_array((M + M.T) / 2.0)

    def _local_forms(self, local: Array) -> Array:
        """Return the (m, k, k) forms of m neighbourhoods of k rows."""
        m, k = local.shape[:2]
        d = self.n_components
        centred = local - local.mean(axis=1, keepdims=True)
        vectors, roots, _ = np.linalg.svd(centred, full_matrices=False)
        tangent = vectors[:, :, :d]
        if self.method == "ltsa":
            # Equal rows have no tangent: directions without any length are rounding.
            least = 16.0 * k * np.finfo(np.float64).eps * np.abs(local).max(axis=(1, 2))
            tangent = tangent * (roots[:, None, :d] > least[:, None, None])
            basis = np.concatenate([np.full((m, k, 1), 1.0 / np.sqrt(k)), tangent], axis=2)
            return np.asarray(np.eye(k) - basis @ basis.transpose(0, 2, 1))
        i, j = np.triu_indices(d)
        products = tangent[:, :, i] * tangent[:, :, j]
        columns = np.concatenate([np.ones((m, k, 1)), tangent, products], axis=2)
        second = np.linalg.qr(columns)[0][:, :, d + 1 :]
        sums = second.sum(axis=1, keepdims=True)
        second = second / np.where(np.abs(sums) < self.hessian_tol, 1.0, sums)
        return np.asarray(second @ second.transpose(0, 2, 1))

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new rows, mixed from those of their neighbours.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Coordinates; of a row of the fit, its own. Float32 for float32.
        """
        check_is_fitted(self)
        new = read_features(self, X, sparse=False)
        distances, rows = self.nbrs_.kneighbors(new, n_neighbors=self.n_neighbors)
        weights = mixture_weights(np.asarray(new, dtype=np.float64), self.nbrs_.rows_, rows, self.reg)
        same = distances[:, 0] == 0
        weights[same] = np.eye(rows.shape[1])[0]
        found = np.einsum("ij,ijk->ik", weights, self.embedding_[rows])
        return np.asarray(found, dtype=new.dtype)

    _laws = laws(
        SEARCHES_ROWS,
    )


def mixture_weights(Q: Array, X: Array, rows: Array, reg: float) -> Array:
    """Return the weights w with Σw = 1 that make ‖q − Σ wⱼxⱼ‖² + r‖w‖² smallest, r = reg · trace of the products."""
    n, k = rows.shape
    found = np.empty((n, k))
    diagonal = np.arange(k)
    for part in _batches(n, k * max(k, X.shape[1])):
        away = np.asarray(X[rows[part]], dtype=np.float64) - Q[part, None]
        G = away @ away.transpose(0, 2, 1)
        trace = np.trace(G, axis1=1, axis2=2)
        # Equal rows have no products; any weights are right, and equal ones are the smallest.
        ridge = np.where(trace > 0, max(reg, 1e-12) * trace, 1.0)
        G[:, diagonal, diagonal] += ridge[:, None]
        w = np.linalg.solve(G, np.ones((len(G), k, 1)))[:, :, 0]
        found[part] = w / w.sum(axis=1, keepdims=True)
    return found


def modified_forms(X: Array, rows: Array, d: int, reg: float) -> Array:
    """Return the (n, 1 + k, 1 + k) forms of the modified method, each of a row and its neighbours."""
    n, k = rows.shape
    directions = np.empty((n, k, k))
    values = np.zeros((n, k))
    for part in _batches(n, k * max(k, X.shape[1])):
        away = X[rows[part]] - X[part, None]
        vectors, roots, _ = np.linalg.svd(away, full_matrices=True)
        directions[part] = vectors[:, :, :k]
        values[part, : roots.shape[1]] = roots**2
    weights = mixture_weights(X, X, rows, reg)
    total = values.sum(axis=1)
    large = values[:, :d].sum(axis=1)
    share = float(np.median(np.where(large > 0, (total - large) / np.where(large > 0, large, 1.0), 0.0)))
    first = np.cumsum(values, axis=1)[:, :-1]
    last = np.cumsum(values[:, ::-1], axis=1)[:, -2::-1]  # not total − first, which loses them beside a far row
    # How many of the last directions together have less than that share of the others; of equal rows, all but one.
    # A row whose share is the median itself is a tie, which rounding must not decide.
    few = last < (1.0 - 1e-9) * share * first
    none = last <= _NO_SQUARE * total[:, None]  # all directions without any variance, or none: rounding orders them
    s = np.clip((few | none).sum(axis=1), max(1, k - X.shape[1]), k)
    directions *= np.arange(k) >= (k - s)[:, None, None]
    forms = np.empty((n, 1 + k, 1 + k))
    for part in _batches(n, (1 + k) ** 2):
        P = directions[part] @ directions[part].transpose(0, 2, 1)
        w = weights[part]
        ones = P.sum(axis=2)
        count = s[part].astype(np.float64)
        # Of neighbours that are equal to each other, or far away together, the sums are zero but for rounding, and any
        # reflection of the directions would do: their mean is taken, in which the directions do not mix with w.
        length = np.sqrt((ones**2).sum(axis=1))
        alpha = np.where(length > _NO_SUM * np.sqrt(k), length, 0.0) / np.sqrt(count)
        left = (1.0 - alpha)[:, None]
        scaled = np.where(alpha[:, None] > 0, ones / np.where(alpha > 0, alpha, 1.0)[:, None], 0.0)
        cross = (left * scaled)[:, :, None] * w[:, None, :]
        square = (left[:, 0] ** 2 * count)[:, None, None] * w[:, :, None] * w[:, None, :]
        sums = scaled + left * count[:, None] * w
        forms[part, 0, 0] = count
        forms[part, 0, 1:] = -sums
        forms[part, 1:, 0] = -sums
        forms[part, 1:, 1:] = P + cross + cross.transpose(0, 2, 1) + square
    return forms


def _batches(n: int, size: int) -> list[slice]:
    height = max(1, _BATCH // max(1, size))
    return [slice(start, min(n, start + height)) for start in range(0, n, height)]
