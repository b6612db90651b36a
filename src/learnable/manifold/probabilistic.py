r"""Probabilistic principal components: the normal density whose covariance is a plane of factors plus equal noise.

x = μ + Wz + ε with z ~ N(0, I_k) and ε ~ N(0, σ²I). Of complete rows the likelihood is greatest at μ = x̄, at σ² = the
mean of the d − k smallest eigenvalues of the covariance S = Σ w(x − x̄)(x − x̄)ᵀ/W, and at W = V(Λ − σ²I)^½ with its k
largest eigenpairs. Where values are missing there is no closed form; EM climbs the likelihood of what was observed.

Reference: M. Tipping and C. Bishop, Probabilistic principal component analysis, JRSS B 61 (1999), 611–622.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import MAX_ITER, MAX_SECONDS, N_JOBS, TOLERANCE, Number, fitted, optional, param
from ..core.errors import DataError, ParameterError
from ..core.estimator import Estimator, Run
from ..core.loaded import law, laws
from ..data.door import Table, door, refuse_extreme_sizes
from ..meta.splits import as_generator
from ..solvers.eigen import PAIR_TOLERANCE, fix_signs, symmetric_pairs
from ..solvers.systems.moments import centred_moments
from .factor_model import FactorModel
from .factors import FLOOR, Factors, fit_factors, principal_factors, start_of_gaps

Array = NDArray[np.float64]


class Incomplete(NamedTuple):
    """The maximum of the likelihood of rows with gaps, as principal components."""

    mean: Array  #: (d,), μ
    values: Array  #: (k,), λ = the eigenvalues of WWᵀ, plus σ²; the largest first
    vectors: Array  #: (d, k), V, signs fixed
    noise: float  #: σ²
    history: Array  #: (n_iter + 1,), log-likelihood per unit of weight after each step
    rise: float  #: what one more step adds to it
    n_iter: int


def has_gaps(table: Table) -> bool:
    """Tell whether values are missing; of tables that are not in memory the first pass counts rows with NaN."""
    if table.X is not None:
        return not sp.issparse(table.X) and bool(np.isnan(table.X).any())
    return bool(table.blocks.scanned().scan.bad_rows)


def fit_incomplete(
    owner: str, table: Table, k: int, run: Run, *, tol: float, max_iter: int, n_jobs: int | None
) -> Incomplete:
    """Return the k principal components of greatest likelihood of rows with gaps."""
    d = table.n_columns
    if not 1 <= k < d:
        raise ParameterError(
            f"{owner}: with missing values n_components must be from 1 to the number of columns minus one, {d - 1}; "
            f"got {k}."
        )
    first = start_of_gaps(owner, table.blocks, n_jobs)
    variance = float(np.diag(first.covariance).mean()) or 1.0
    floor = np.full(d, FLOOR * variance)
    start = principal_factors(first, k, floor[0])
    weight = first.weight
    found = fit_factors(
        owner,
        table.blocks,
        start,
        floor,
        isotropic=True,
        weight=weight,
        tol=tol,
        max_iter=max_iter,
        n_jobs=n_jobs,
        run=run,
    )
    p = found.parameters
    vectors, sizes, _ = np.linalg.svd(p.loadings, full_matrices=False)
    vectors = np.ascontiguousarray(vectors)
    fix_signs(vectors)
    noise = float(p.noise[0])
    rise = max(found.rise, 0.0) / weight
    return Incomplete(p.mean, sizes**2 + noise, vectors, noise, found.history / weight, rise, max(1, found.n_iter))


class ProbabilisticPCA(FactorModel, DensityMixin, Estimator):
    r"""Principal components as a density: x ~ N(μ, WWᵀ + σ²I) with k columns of W.

    Rows may have gaps (NaN), on the assumption that what is missing does not depend on its own value: `transform` uses
    what was observed (of complete rows it is (x − μ)ᵀv √(λ − σ²)/λ), `impute` fills the rest with its conditional mean,
    `score_samples` is the density of what was observed. Complete rows have a closed form; otherwise EM, whose
    likelihood never falls (`loglike_`). Rows may be on disk or on Dask. `PCA` divides variances by W − 1, this class by
    W, the maximum of the likelihood.
    Memory: O(dk²) for each thread with gaps, O(d²) without.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import ProbabilisticPCA
    >>> X = np.array([[1.0, 2.0, 3.1], [2.0, 4.1, 6.0], [3.0, 5.9, 9.0], [4.0, 8.0, np.nan], [5.0, 10.1, 15.0]])
    >>> model = ProbabilisticPCA(1).fit(X)
    >>> model.impute(X)[3].round()
    array([ 4.,  8., 12.])
    >>> bool((np.diff(model.loglike_) >= 0).all())
    True
    """

    _theory = "probabilistic-components"

    n_components: int | None = param(
        optional(Number(low=1, integer=True)), "k < d; None is min(n, d) − 1.", default=None, kw_only=False
    )
    tol: float = param(
        TOLERANCE, "EM ends when a step adds no more than this to the log-likelihood per unit of weight.", default=1e-8
    )
    max_iter: int = param(MAX_ITER, "Steps of EM.", default=1000)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)

    components_: Array = fitted("(n_components, n_features)", "V, orthonormal, the largest variance first.")
    explained_variance_: Array = fitted("(n_components,)", "λ, variance along each component, with the noise.", low=0.0)
    noise_variance_: float = fitted("()", "σ².", low=0.0)
    mean_: Array = fitted("(n_features,)", "μ.")
    loglike_: Array = fitted("(n_steps,)", "Mean log-likelihood at the start and after each step; never falls.")
    n_iter_: int = fitted("int", "Steps of EM; 1 without gaps.")
    n_features_in_: int = fitted("int", "Number of columns.")
    certificate_: Certificate = fitted(
        "Certificate",
        "Complete rows: `closed-form`, the largest of ‖Sv − λv‖/λ₁ and |vᵢᵀvⱼ − [i = j]|. With gaps: `ascent`, what "
        "one more step adds to the log-likelihood per unit of weight.",
    )

    _door = staticmethod(door(target="none", sparse=False, missing=True))
    _remedy = "raise max_iter or tol"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of greatest likelihood; y is ignored."""
        return super().fit(X, None, sample_weight)

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = "ProbabilisticPCA"
        if table.n_rows < 2:
            raise DataError(f"{owner}: found n_samples = {table.n_rows}; a variance needs at least two rows.")
        if table.X is not None:
            refuse_extreme_sizes(np.nan_to_num(table.X), table.weight, owner)
        d = table.n_columns
        k = max(1, min(table.n_rows, d) - 1) if self.n_components is None else self.n_components
        if not k < d:
            raise ParameterError(
                f"{owner}: n_components={k} must be less than n_features={d}: what is left is the noise."
            )
        if has_gaps(table):
            found = fit_incomplete(owner, table, k, run, tol=self.tol, max_iter=self.max_iter, n_jobs=self.n_jobs)
            self._set(found.mean, found.values, found.vectors, found.noise)
            self.loglike_ = found.history
            self.n_iter_ = found.n_iter
            return Certificate("ascent", found.rise, self.tol, n_iter=found.n_iter)
        moments = centred_moments(table.blocks, n_jobs=self.n_jobs)
        S = moments.gram / moments.weight
        S = (S + S.T) / 2.0
        pairs = symmetric_pairs(S, k, owner=owner)
        total = float(S.trace())
        values = np.maximum(pairs.values, 0.0)
        noise = max((total - float(values.sum())) / (d - k), FLOOR * total / d)
        if total == 0:
            raise DataError(f"{owner}: all rows are equal; a density needs variance.")
        self._set(moments.x_mean, np.maximum(values, noise), pairs.vectors, noise)
        p = self._factors()
        log_det = np.log(self.explained_variance_).sum() + (d - k) * np.log(noise)
        trace = float((values / self.explained_variance_).sum()) + (total - float(values.sum())) / noise
        self.loglike_ = np.array([-0.5 * (len(p.mean) * np.log(2.0 * np.pi) + log_det + trace)])
        self.n_iter_ = 1
        return Certificate("closed-form", pairs.worst, PAIR_TOLERANCE)

    def _set(self, mean: Array, values: Array, vectors: Array, noise: float) -> None:
        self.mean_ = mean
        self.explained_variance_ = values
        self.components_ = np.ascontiguousarray(vectors.T)
        self.noise_variance_ = noise

    def _factors(self) -> Factors:
        check_is_fitted(self)
        sizes = np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 0.0))
        d = self.components_.shape[1]
        return Factors(self.mean_, self.components_.T * sizes, np.full(d, self.noise_variance_))

    def inverse_transform(self, X: Any) -> Array:
        """Return μ + Wz, the mean of rows with these factors."""
        p = self._factors()
        z = np.asarray(X, dtype=np.float64)
        if z.ndim != 2 or z.shape[1] != p.loadings.shape[1]:
            raise DataError(
                f"ProbabilisticPCA: inverse_transform needs {p.loadings.shape[1]} columns; got shape {z.shape}."
            )
        return np.asarray(p.mean + z @ p.loadings.T)

    def get_precision(self) -> Array:
        """Return the inverse of `get_covariance`."""
        beyond = 1.0 / self.explained_variance_ - 1.0 / self.noise_variance_
        d = self.components_.shape[1]
        return np.asarray((self.components_.T * beyond) @ self.components_ + np.eye(d) / self.noise_variance_)

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> Array:
        """Return rows drawn from the density.

        Parameters
        ----------
        n_samples : int
            How many.
        random_state : None, int, RandomState or Generator
            Of the draws.
        """
        p = self._factors()
        rng = as_generator(random_state)
        z = rng.standard_normal((n_samples, p.loadings.shape[1]))
        return np.asarray(p.mean + z @ p.loadings.T + rng.standard_normal((n_samples, len(p.mean))) * np.sqrt(p.noise))

    _laws = laws(
        law(
            "noise_variance_ must be positive and at most every explained_variance_",
            lambda model: model.noise_variance_ > 0 and (model.explained_variance_ >= model.noise_variance_).all(),
        ),
    )
