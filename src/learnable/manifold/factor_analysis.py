r"""Factor analysis: columns that vary together through few hidden factors, and each by itself.

x = μ + Wz + ε with z ~ N(0, I_k) and ε ~ N(0, Ψ), Ψ diagonal: the covariance is WWᵀ + Ψ. Unlike in principal components
every column has its own noise, so that the result follows a change of units. The likelihood is climbed by EM, on the
covariance of the rows alone where no value is missing; see `factors`. W is known up to a rotation: by default the one
with WᵀΨ⁻¹W diagonal, or that of largest varimax or quartimax criterion, Σⱼ Σᵢ w_ij⁴ − (γ/d) Σⱼ (Σᵢ w_ij²)², γ = 1 or 0.

References: D. Rubin and D. Thayer, EM algorithms for ML factor analysis, Psychometrika 47 (1982), 69–76; H. Kaiser, The
varimax criterion for analytic rotation in factor analysis, Psychometrika 23 (1958), 187–200.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.certificate import Certificate
from ..core.declare import (
    MAX_ITER,
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    Boolean,
    Matches,
    Number,
    Options,
    fitted,
    optional,
    param,
)
from ..core.errors import DataError, ParameterError
from ..core.estimator import Estimator, Run
from ..core.loaded import law, laws
from ..data.door import Table, door, refuse_extreme_sizes
from ..solvers.eigen import fix_signs
from ..solvers.systems.moments import centred_moments
from .factor_model import FactorModel
from .factors import FLOOR, Factors, Scatter, best_factors, fit_factors, start_of_gaps
from .probabilistic import has_gaps

Array = NDArray[np.float64]

#: Rounds of a rotation, and the rise of its criterion at which it ends.
_ROUNDS = 1000
_SETTLED = 1e-14


class FactorAnalysis(FactorModel, Estimator):
    r"""Factor analysis: x ~ N(μ, WWᵀ + Ψ) with k columns of W and a noise for each column, of greatest likelihood.

    EM never lets the likelihood fall; it ends at a local maximum. Rows may have gaps (NaN), and may be on disk or on
    Dask; complete rows are read once. Unlike scikit-learn's, `tol` is the rise of the log-likelihood per row, and by
    default small enough that the loadings are known to some digits. Memory: O(d²), or O(dk²) for each thread with gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.manifold import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)) @ np.array([[1.0, 2.0, 3.0, 4.0]]) + rng.normal(size=(500, 4)) * [1, 2, 1, 2]
    >>> model = FactorAnalysis(1).fit(X)
    >>> model.components_.round(1), model.noise_variance_.round(1)
    (array([[1. , 2. , 3.1, 4. ]]), array([1. , 3.5, 1. , 4.1]))
    """

    _theory = "probabilistic-components"

    n_components: int | None = param(
        optional(Number(low=0, integer=True)), "k; None is the number of columns.", default=None, kw_only=False
    )
    tol: float = param(
        TOLERANCE, "EM ends when a step adds no more than this to the log-likelihood per unit of weight.", default=1e-8
    )
    copy: bool = param(Boolean(), "Kept for compatibility; X is never changed.", default=True)
    max_iter: int = param(MAX_ITER, "Steps of EM.", default=1000)
    noise_variance_init: Any = param(
        Matches(lambda v: v is None or np.ndim(v) == 1, "None or an array of positive numbers"),
        "Ψ to start from; None is half of each column's variance.",
        default=None,
    )
    svd_method: str = param(Options("lapack", "randomized"), "Kept for compatibility.", default="randomized")
    iterated_power: int = param(Number(low=0, integer=True), "Kept for compatibility.", default=3)
    rotation: Any = param(
        optional(Options("varimax", "quartimax")), "Which rotation of W; None has WᵀΨ⁻¹W diagonal.", default=None
    )
    random_state: Any = param(RANDOM_STATE, "Kept for compatibility; nothing is random.", default=0)
    max_seconds: float | None = param(MAX_SECONDS, "Time after which the best so far is returned.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)

    components_: Array = fitted("(n_components, n_features)", "Wᵀ.")
    noise_variance_: Array = fitted("(n_features,)", "ψ.", low=0.0)
    mean_: Array = fitted("(n_features,)", "μ.")
    loglike_: Array = fitted("(n_steps,)", "Log-likelihood at the start and after each step; never falls.")
    n_iter_: int = fitted("int", "Steps of EM.")
    n_features_in_: int = fitted("int", "Number of columns.")
    certificate_: Certificate = fitted(
        "Certificate", "`ascent`: what one more step adds to the log-likelihood per unit of weight."
    )

    _door = staticmethod(door(target="none", sparse=False, missing=True))
    _remedy = "FactorAnalysis did not converge. You might want to increase max_iter or tol"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the loadings of greatest likelihood; y is ignored."""
        return super().fit(X, None, sample_weight)

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = "FactorAnalysis"
        if table.n_rows < 2:
            raise DataError(f"{owner}: found n_samples = {table.n_rows}; a variance needs at least two rows.")
        gaps = has_gaps(table)
        if table.X is not None:
            refuse_extreme_sizes(np.nan_to_num(table.X) if gaps else table.X, table.weight, owner)
        d = table.n_columns
        k = d if self.n_components is None else self.n_components
        if k > d:
            raise ParameterError(f"{owner}: n_components={k} must be at most the {d} columns of X.")
        blocks = table.blocks
        if gaps:
            scatter = start_of_gaps(owner, table.blocks, self.n_jobs)
        else:
            moments = centred_moments(table.blocks, n_jobs=self.n_jobs)
            scatter = Scatter(moments.weight, moments.x_mean, moments.gram / moments.weight)
            blocks = [scatter]
        variance = np.diag(scatter.covariance)
        floor = FLOOR * np.where(variance > 0, variance, 1.0)
        found = fit_factors(
            owner,
            blocks,
            self._start(scatter, k, floor),
            floor,
            isotropic=False,
            weight=scatter.weight,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            run=run,
        )
        p = found.parameters
        loadings = rotated(canonical(p.loadings, p.noise), self.rotation)
        fix_signs(loadings)
        self.components_ = np.ascontiguousarray(loadings.T)
        self.noise_variance_ = p.noise
        self.mean_ = p.mean
        self.loglike_ = found.history
        self.n_iter_ = max(1, found.n_iter)
        return Certificate("ascent", max(found.rise, 0.0) / scatter.weight, self.tol, n_iter=self.n_iter_)

    def _start(self, scatter: Scatter, k: int, floor: Array) -> Factors:
        """Return the loadings of greatest likelihood given the noise to start from."""
        d = len(scatter.mean)
        variance = np.diag(scatter.covariance)
        if self.noise_variance_init is None:
            noise = np.maximum(0.5 * variance, floor)
        else:
            noise = np.asarray(self.noise_variance_init, dtype=np.float64)
            if noise.shape != (d,) or not (noise > 0).all():
                raise ParameterError(
                    f"FactorAnalysis: noise_variance_init dimension does not match the data: it must hold {d} "
                    f"positive numbers; got shape {noise.shape}."
                )
            noise = np.maximum(noise, floor)
        return best_factors(scatter, noise, k)

    def _factors(self) -> Factors:
        check_is_fitted(self)
        return Factors(self.mean_, self.components_.T, self.noise_variance_)

    def get_precision(self) -> Array:
        """Return the inverse of `get_covariance`."""
        return np.asarray(np.linalg.inv(self.get_covariance()))

    _laws = laws(
        law("noise_variance_ must be positive", lambda model: (model.noise_variance_ > 0).all()),
    )


def canonical(loadings: Array, noise: Array) -> Array:
    """Return the rotation of the loadings with WᵀΨ⁻¹W diagonal, the largest first."""
    root = np.sqrt(noise)[:, None]
    left, sizes, _ = np.linalg.svd(loadings / root, full_matrices=False)
    k = loadings.shape[1]
    return np.ascontiguousarray((left[:, :k] * sizes[:k]) * root)


def rotated(loadings: Array, rotation: str | None) -> Array:
    """Return the rotation of loadings with the largest varimax or quartimax criterion, the longest factor first."""
    d, k = loadings.shape
    if rotation is None or k < 2:
        return loadings
    share = 1.0 / d if rotation == "varimax" else 0.0
    turn = np.eye(k)
    reached = 0.0
    for _ in range(_ROUNDS):
        shown = loadings @ turn
        gradient = shown**3 - share * shown * (shown**2).sum(axis=0)
        left, sizes, right = np.linalg.svd(loadings.T @ gradient)
        turn = left @ right
        before = reached
        reached = float(sizes.sum())
        if reached <= before * (1.0 + _SETTLED):
            break
    found = loadings @ turn
    return np.ascontiguousarray(found[:, np.argsort(-(found**2).sum(axis=0), kind="stable")])
