r"""Gaussian mixtures by expectation–maximisation.

    p(x) = Σₖ πₖ N(x; μₖ, Σₖ)

The fit climbs Σᵢ wᵢ log p(xᵢ), plus the logarithm of a prior if there is one, to a local maximum (`normals.py` has the
two steps, `solvers/em.py` the driver). Without a prior the likelihood has no global maximum: it grows beyond every
bound as a component shrinks onto one row. `reg_covar` keeps variances away from zero; `prior="default"` does so in the
scale of the data, and no component can collapse.

Reference: C. Bishop, Pattern Recognition and Machine Learning (2006), section 9.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import (
    AnyArray,
    ArrayLike,
    Certificate,
    DataError,
    Matches,
    Nothing,
    Number,
    Options,
    fitted,
    is_array,
    law,
    laws,
    optional,
    param,
    tags,
)
from ..data import Blocks, Part, Table, door, map_reduce, read_features
from ..meta.splits import as_generator
from ..solvers.em import em_in_time
from .base import InformationCriteria, MixtureBase, precisions_of
from .narration import VERBOSE, MixtureNarrator
from .normals import Density, Mixture, NormalMixture, log_joint_incomplete
from .starts import (
    check_enough_rows,
    covariances_of,
    default_prior,
    given_prior,
    sample_rows,
    seconds_left,
    start_mixture,
)

KINDS = ("full", "tied", "diag", "spherical")


class GaussianMixture(InformationCriteria, MixtureBase):
    """A mixture of normal densities, fitted by EM: max Σᵢ wᵢ log Σₖ πₖ N(xᵢ; μₖ, Σₖ) + log prior.

    NaN entries of X are integrated out. Rows whose component is known are given by `labels` in `fit`. Memory besides X:
    O(Kd²) and a few thousand rows. Files and Dask are read once an iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import GaussianMixture
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(model.means_[:, 0]).round(3)
    array([ 1., 10.])
    >>> model.predict_proba([[0.0, 0.0]]).max().round(3)
    np.float64(1.0)
    """

    _theory = "mixture"

    covariance_type: str = param(
        Options(*KINDS), "Σₖ free; one Σ for all; diagonal; a multiple of the identity.", default="full"
    )
    reg_covar: float = param(
        Number(low=0.0),
        "Added to the variances. As part of the objective it is −½·reg_covar·(W/K)·Σₖ tr Σₖ⁻¹ with W = Σᵢ wᵢ, "
        "which adds reg_covar·(W/K)/Nₖ to a component of weight Nₖ: scikit-learn's amount where components "
        "weigh the same.",
        default=1e-6,
    )
    max_iter: int = param(Number(low=0, integer=True), "Steps of one restart.", default=100)
    weights_init: Any = param(optional(ArrayLike(Number(low=0.0))), "Where π starts instead.", default=None)
    means_init: Any = param(optional(ArrayLike()), "Where μ starts instead.", default=None)
    precisions_init: Any = param(optional(ArrayLike() | Number(low=0.0)), "Where Σ⁻¹ starts instead.", default=None)
    verbose: int = param(
        VERBOSE, "1 prints the starts and every `verbose_interval` steps, 2 their time and rise, too.", default=0
    )
    verbose_interval: int = param(Number(low=1, integer=True), "Steps between two lines that are printed.", default=10)
    prior: Any = param(
        Nothing() | Options("default") | Matches(lambda v: isinstance(v, dict), "a dict"),
        "A dict may have `alpha` (π ~ Dirichlet(alpha, …)); `dof` ν and `scale` Ψ (Σ ~ inverse Wishart); "
        '`mean` m and `kappa` κ (μ | Σ ~ N(m, Σ/κ)). "default" is Fraley and Raftery\'s: ν = d + 2, Ψ = '
        "cov(X)/K^(2/d), m the mean, κ = 0.01. The fit is then the most probable one (MAP-EM).",
        default=None,
    )

    _door = staticmethod(door(target="none", sparse=False, missing=True))
    _remedy = (
        "Best performing initialization did not converge. Try different init parameters, or increase max_iter, tol, or "
        "check for degenerate data"
    )
    weights_: AnyArray = fitted("(n_components,)", "π, the shares of the components.", kind="f8", low=0.0, high=1.0)
    means_: AnyArray = fitted("(n_components, n_features)", "μ.", kind="f8")
    covariances_: AnyArray = fitted("array", "Σ: (K, d, d), (d, d), (K, d) or (K,) by covariance type.")
    precisions_: AnyArray = fitted("array", "Σ⁻¹ in the same shape.")
    precisions_cholesky_: AnyArray = fitted(
        "array", "Upper triangular U with UUᵀ = Σ⁻¹ (its root for diagonal types), in the same shape."
    )
    _sizes = ("n_components",)
    _tags = tags(allow_nan=True)

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner = type(self).__name__
        K = self.n_components
        if not table.in_memory:
            table.blocks.expect_passes()
        check_enough_rows(owner, table.n_rows, max(2, K), "n_components" if K > 1 else "2 rows; n_components")
        if table.X is not None and not float(np.nanmax(np.abs(table.X), initial=0.0)) < 1e150:
            raise DataError(f"{owner}: X has numbers whose squares overflow. Divide the columns by their spread.")
        if table.X is not None and self.reg_covar == 0 and 0 < float(np.nanmax(np.abs(table.X), initial=0.0)) < 1e-150:
            raise DataError(f"{owner}: squares of X underflow. Divide the columns by their spread, or raise reg_covar.")
        blocks, known = self._blocks(table)
        problem = self._problem(table, blocks)
        rng = as_generator(self.random_state)
        if self.warm_start and hasattr(run.previous, "means_"):
            starts = iter([run.previous._mixture()])
        else:
            X, weight = sample_rows(blocks, int(blocks.n_rows))
            starts = (
                start_mixture(self, problem, X, weight, known, rng, seconds_left(self.max_seconds, run))
                for _ in range(self.n_init)
            )
        narrator = MixtureNarrator(self.verbose, self.verbose_interval, problem.weight)
        found = em_in_time(
            problem,
            blocks,
            map(narrator.begin, starts),
            run.should_stop if self.max_seconds is not None else None,
            owner=type(self).__name__,
            rounding=1e-8 * problem.weight,  # columns that repeat each other cost digits
            tol=self.tol * problem.weight,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            flag=run.flag,
            progress=narrator.report(run.progress),
        )
        narrator.end(bool(found.converged))
        self._set_mixture(found.parameters)
        if known is not None:
            self.known_labels_ = known
        self.converged_ = bool(found.converged)
        self.n_iter_ = max(1, found.n_iter)
        self.lower_bound_ = found.bound / problem.weight
        self.bound_history_ = found.history / problem.weight
        rise = max(found.rise, 0.0) / problem.weight
        return Certificate("ascent", value=rise, tolerance=self.tol, n_iter=self.n_iter_)

    def _draw(self, counts: AnyArray, rng: np.random.Generator) -> AnyArray:
        labels = np.repeat(np.arange(self.n_components), counts)
        factors = [np.linalg.cholesky(_matrix(self, k)) for k in range(self.n_components)]
        noise = rng.standard_normal((len(labels), self.means_.shape[1]))
        rows = [noise[labels == k] @ factors[k].T + self.means_[k] for k in range(self.n_components)]
        return np.concatenate(rows)

    def _n_parameters(self) -> int:
        K, d = self.means_.shape
        of_covariances = {"full": K * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": K * d, "spherical": K}
        return of_covariances[self.covariance_type] + K * d + K - 1

    def _log_joint(self, X: Any) -> AnyArray:
        X = read_features(self, X, sparse=False, missing=True)
        mixture = self._mixture()
        density = Density(self.covariance_type, mixture)
        out = np.empty((self.n_components, X.shape[0]))

        def work(block: Any) -> None:
            part = out[:, block.start : block.start + len(block.X)]
            gaps = np.isnan(block.X).any(axis=1)
            part[:, ~gaps] = density.log_joint(np.ascontiguousarray(block.X[~gaps].T))
            if gaps.any():
                part[:, gaps] = log_joint_incomplete(self.covariance_type, mixture, block.X[gaps])

        map_reduce(Blocks([Part(X)]), work, lambda a, b: None, n_jobs=self.n_jobs)
        return out

    def _problem(self, table: Table, blocks: Any) -> NormalMixture:
        K = self.n_components
        d = table.n_columns
        weight = float(table.weight_sum)
        if self.prior is None:
            prior = None
        elif isinstance(self.prior, str):
            prior = default_prior(blocks, K, self.covariance_type, self.n_jobs)
        else:
            prior = given_prior(type(self).__name__, self.prior, d)
        return NormalMixture(self.covariance_type, K, d, weight, self.reg_covar, prior)

    def _mixture(self) -> Mixture:
        return Mixture(self.weights_, self.means_, self.covariances_)

    def _set_mixture(self, mixture: Mixture) -> None:
        self.weights_, self.means_, self.covariances_ = (np.ascontiguousarray(each) for each in mixture)
        found = precisions_of(type(self).__name__, self.covariance_type, self.covariances_)
        self.precisions_, self.precisions_cholesky_ = found

    _laws = laws(
        law(
            "{owner}: covariances_ must be a finite float64 array of the shape of {model.covariance_type}",
            lambda m: is_array(
                m.covariances_, covariances_of(m.covariance_type, m.n_components, m.n_features_in_), finite=True
            ),
        ),
    )


def _matrix(model: GaussianMixture, k: int) -> AnyArray:
    d = model.means_.shape[1]
    if model.covariance_type in ("full", "tied"):
        return np.asarray(model.covariances_[k] if model.covariance_type == "full" else model.covariances_)
    return np.diag(np.broadcast_to(model.covariances_[k], d))
