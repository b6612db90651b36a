r"""Diffusion maps: coordinates in which Euclidean distance is that of random walks along the data.

From a kernel k(x, z) = exp(−‖x − z‖²/ε) with densities qᵢ = Σⱼ kᵢⱼ, the α-normalised kernel kᵢⱼ/(qᵢqⱼ)^α has row sums d
and the walk P = D⁻¹K^{(α)}. Its eigenfunctions Pψ = λψ, of unit norm under the stationary law π = d/Σd, give the map
x ↦ (λ₁ᵗψ₁(x), λ₂ᵗψ₂(x), …), in which ‖x − z‖² = Σ_y (pᵗ(x, y) − pᵗ(z, y))²/π(y), the diffusion distance after t steps,
if all are kept. α = 1 takes the density of the rows out: the generator is then the Laplace–Beltrami operator; α = 0 is
the normalised graph Laplacian.

Reference: R. Coifman and S. Lafon, Diffusion maps, Applied and Computational Harmonic Analysis 21 (2006), 5–30.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import N_JOBS, Number, Options, fitted, param
from ..core.estimator import Run
from ..data.door import Table, read_features
from ..solvers.eigen import PAIR_TOLERANCE, fix_signs, symmetric_pairs
from .base import Embedding, dense_rows, kept_rows, rows_in_memory
from .graphs import fit_neighbours

Array = NDArray[np.float64]

#: Whose distance sets the width of the kernel by default (L. Zelnik-Manor and P. Perona, 2004, take the seventh too).
_NEIGHBOUR = 7


class DiffusionMaps(Embedding):
    r"""Diffusion maps: λᵗψ(x) for the slowest eigenfunctions of a random walk on the rows.

    Distances in the picture are diffusion distances after t steps, up to the dimensions left out. `transform` extends
    the eigenfunctions to new rows (Nyström): ψ(x) = Σⱼ p(x, j)ψⱼ/λ; a row of the fit gets its own. Memory 8n² bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import DiffusionMaps
    >>> angle = 2 * np.pi * np.arange(100) / 100
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = DiffusionMaps(n_components=6, epsilon=0.05).fit(X)
    >>> speed = -np.log(model.eigenvalues_)
    >>> (speed / speed[0]).round(1)  # of a circle: 1, 1, 4, 4, 9, 9
    array([1., 1., 4., 4., 9., 9.])
    """

    _theory = "spectral-embedding"

    n_components: int = param(Number(low=1, integer=True), "Dimensions.", default=2, kw_only=False)
    alpha: float = param(
        Number(low=0.0, high=1.0), "How much of the density of the rows is taken out, 0 to 1.", default=1.0
    )
    time: float = param(Number(low=0.0), "t, the number of steps of the walk.", default=1.0)
    epsilon: Any = param(
        Options("auto") | Number(low=0.0, low_open=True),
        'ε of the kernel; "auto" is twice the median squared distance to the seventh neighbour.',
        default="auto",
    )
    n_jobs: int | None = param(N_JOBS, "Threads of the search; the result does not depend on it.", default=None)

    embedding_: Array = fitted("(n_rows, n_components)", "λᵗψ.")
    eigenvalues_: Array = fitted("(n_components,)", "λ of the walk, the largest first, without λ₀ = 1.", high=1.0)
    density_: Array = fitted("(n_rows,)", "q.", low=0.0)
    degrees_: Array = fitted("(n_rows,)", "d.", low=0.0)
    epsilon_: float = fitted("()", "ε.", low=0.0)
    X_fit_: Any = fitted("(n_rows, n_features)", "The rows.")
    certificate_: Certificate = fitted(
        "Certificate", "`closed-form`: the largest of ‖Su − λu‖ and |uᵢᵀuⱼ − [i = j]|, S = D^{1/2}PD^{−1/2}."
    )

    def _fit(self, table: Table, run: Run) -> Certificate:
        n = table.n_rows
        self.X_fit_ = kept_rows(rows_in_memory("DiffusionMaps", table))
        self.epsilon_ = self._width()
        rows = dense_rows(self.X_fit_)
        S = cdist(rows, rows, "sqeuclidean")
        S /= -self.epsilon_
        np.exp(S, out=S)
        self.density_ = S.sum(axis=1)
        power = self.density_**-self.alpha
        S *= power
        S *= power[:, None]
        self.degrees_ = S.sum(axis=1)
        root = np.sqrt(self.degrees_)
        S /= root
        S /= root[:, None]
        S = (S + S.T) / 2.0
        k = min(self.n_components, n - 1)
        pairs = symmetric_pairs(S, k + 1, owner="DiffusionMaps")
        self.eigenvalues_ = np.minimum(pairs.values[1:], 1.0)
        functions = pairs.vectors[:, 1:] / root[:, None] * np.sqrt(self.degrees_.sum())
        fix_signs(functions)
        self.embedding_ = np.ascontiguousarray(functions * self._slowed())
        return Certificate("closed-form", pairs.worst, PAIR_TOLERANCE)

    def _slowed(self) -> Array:
        """Return λᵗ; of an eigenvalue that is not positive, zero unless t is 0."""
        positive = np.maximum(self.eigenvalues_, 0.0)
        return np.asarray(positive**self.time)

    def _width(self) -> float:
        """Return ε."""
        if self.epsilon != "auto":
            return float(self.epsilon)
        n = self.X_fit_.shape[0]
        k = min(_NEIGHBOUR, n - 1)
        nbrs = fit_neighbours("DiffusionMaps", self.X_fit_, k, self.n_jobs)
        squares = nbrs.kneighbors(n_neighbors=k)[0][:, -1] ** 2
        median = float(np.median(squares))
        if median > 0:
            return 2.0 * median
        return float(squares.max()) or 1.0  # most rows are equal

    def transform(self, X: Any) -> Array:
        """Return the coordinates of new rows, Σⱼ p(x, j)ψⱼ λᵗ⁻¹.

        Parameters
        ----------
        X : array, sparse array or dataframe of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Coordinates; of a row of the fit, its own. Float32 for float32.
        """
        check_is_fitted(self)
        rows = read_features(self, X)
        square = cdist(dense_rows(rows), dense_rows(self.X_fit_), "sqeuclidean")
        # Far from all rows every kernel value underflows; the nearest then decides alone.
        exponent = (square.min(axis=1, keepdims=True) - square) / self.epsilon_
        weights = np.exp(exponent) * self.density_**-self.alpha  # q(x)^α cancels in p(x, ·)
        weights /= weights.sum(axis=1, keepdims=True)
        positive = self.eigenvalues_ > 0
        found = weights @ self.embedding_ / np.where(positive, self.eigenvalues_, 1.0)
        return np.asarray(np.where(positive, found, 0.0), dtype=rows.dtype)
