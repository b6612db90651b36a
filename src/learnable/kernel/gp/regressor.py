r"""Gaussian process regression: a prior over functions, conditioned on noisy values of one.

    y = m(x) + f(x) + ε,   f ~ GP(0, k),   ε ~ N(0, σ²).

The posterior of f is a Gaussian process again (`posterior.py`). Hyperparameters of k, noise included if k has a
`White`
part, are those of greatest marginal likelihood (`likelihood.py`, `search.py`). Its mean is kernel ridge
regression with
the penalty σ². For many rows, inducing points carry the information (`sparse.py`).

Reference: C. Rasmussen and C. Williams, Gaussian Processes for Machine Learning, 2006, §2 and §5.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpocon
from sklearn.base import MultiOutputMixin, RegressorMixin

from ...core import (
    Array,
    ArrayLike,
    Boolean,
    Certificate,
    DataError,
    Number,
    Run,
    fitted,
    one_thread_blas,
    optional,
    param,
    tags,
)
from ...data.door import Table
from ...data.sources import NamedScore
from ...probability.normal import Normal
from ...risk.kernels.base import Kernel
from ...solvers.systems.moments import CLOSED_FORM_TOLERANCE
from .likelihood import (
    WORST,
    Evidence,
    Objective,
    Observations,
    evidence,
    needed_jitter,
    per_row,
    refuse_huge,
    units_of,
)
from .posterior import MEAN, Posterior, Trend, chosen_kernel, fitted_mean, precision_diagonal, trend_of
from .search import Pace, log_bounds, maximise, share_of, warn_at_bounds
from .sparse import fit_sparse
from .structures import GaussianProcess, own_points, process_door


class GaussianProcessRegressor(NamedScore, Posterior, MultiOutputMixin, RegressorMixin, GaussianProcess):
    r"""Gaussian process regression with any kernel and mean function.

    n³ operations an evaluation of the marginal likelihood. Memory: five matrices of n × n with a Gaussian kernel
    (n = 2,000: 160 MB), ten with another one of distances, five more for each further kernel in a sum or product; and
    2p + 6 of at most 600 × 600 for p hyperparameters.

    With `inducing`, m points instead: O(nm²) operations and, besides the rows, O(m²) memory and 20 MB per thread, for
    rows in memory, on disk or Dask; of those elsewhere, at most 65,536 are kept, on which the search begins. A million
    rows of 5 columns and 50 points took 31 s of processor time from memory and 40 s from a file, and 70 and 30 MB.

    The mean is that of `KernelRidge(alpha=σ²)`: in the form n⁻¹ΣV + λΩ (V squared loss, Ω = ‖f‖²), λ = σ²/n.

    Examples
    --------
    >>> from learnable import GaussianProcessRegressor
    >>> from learnable.risk.kernels import Gaussian, White
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 0.8, 0.9, 0.1, -0.8]
    >>> model = GaussianProcessRegressor(1.0 * Gaussian(1.0) + White(0.01)).fit(X, y)
    >>> model.predict([[2.5]]).round(1)
    array([0.6])
    >>> model.certificate_.kind
    'stationarity'
    """

    _theory = "gaussian-process"

    alpha: Any = param(
        Number(low=0.0) | ArrayLike(Number(low=0.0)),
        "Variance of the noise that is known, of all rows or of each; in the units of `normalize_y`.",
        default=1e-10,
    )
    normalize_y: bool = param(Boolean(), "Whether y is first brought to mean 0 and variance 1.", default=False)
    n_targets: int | None = param(
        optional(Number(low=1, integer=True)),
        "Columns of y; needed only to draw several targets from the prior.",
        default=None,
    )
    mean: Any = param(
        MEAN,
        "m. Coefficients of a constant and a line have a flat prior; a regressor is fitted first, and then "
        "taken as given.",
        default="zero",
    )
    inducing: Any = param(
        optional(Number(low=1, integer=True) | ArrayLike()),
        "Inducing points, or how many to choose among the rows: the variational bound of Titsias is maximised instead.",
        default=None,
    )

    X_train_: Any = fitted(
        "array of shape (n, n_features)",
        "The rows; with `inducing`, there is `inducing_points_` instead.",
        optional=True,
    )
    y_train_: Array = fitted(
        "array of shape (n,) or (n, n_targets)",
        "The targets in the units of `normalize_y`; not with `inducing`.",
        optional=True,
    )
    inducing_points_: Array = fitted("array of shape (m, n_features)", "The m points of `inducing`.", optional=True)
    kernel_: Kernel = fitted("Kernel", "k with the hyperparameters found.")
    L_: Array = fitted("array of shape (n, n)", "Cholesky factor of K = k(X, X) + Λ.")
    alpha_: Array = fitted("array of shape (n,) or (n, n_targets)", "K⁻¹(y − m).")
    beta_: Array = fitted("array", "Coefficients of the mean.")
    log_marginal_likelihood_value_: float = fitted("float", "log p(y), or its lower bound with `inducing`.")
    jitter_: float = fitted(
        "float", "What was added to the diagonal of K because it was singular to working precision; mostly 0."
    )
    certificate_: Certificate = fitted(
        "Certificate",
        "`stationarity` of the marginal likelihood, or `closed-form` residual of Kα = y − m if nothing was learned.",
    )

    _door = staticmethod(process_door(target="numeric", multi_output=True))
    _remedy = "raise max_iter, add restarts, or give the kernel a White part"
    _tags = tags(requires_fit=False)

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Condition the process on rows; the noise of a row, not a weight, says how much it counts.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features); with `inducing` also a path or Dask collection
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str
            Targets; with a dataframe or path, the name of a column.

        Returns
        -------
        self
            The fitted estimator. If the fit fails or is interrupted, the estimator stays as it was.
        """
        return super().fit(X, y)  # type: ignore[no-any-return]

    def _fit(self, table: Table, run: Run) -> Certificate:
        kernel = chosen_kernel(self.kernel)
        if self.inducing is not None:
            return fit_sparse(self, table, kernel, run)
        with one_thread_blas():  # large matrices are cut into tiles, the same ones for any number of threads
            return self._fit_exact(table, kernel, run)

    def _fit_exact(self, table: Table, kernel: Kernel, run: Run) -> Certificate:
        table.require_memory(
            f"{type(self).__name__}: an exact process needs all rows in memory; pass inducing=, how many points "
            "are to stand for them."
        )
        X = own_points(self, table.X)
        y = self._take_units(table.y)
        refuse_huge(type(self).__name__, y=y)
        noise = per_row(type(self).__name__, self.alpha, len(y))
        self.trend_: Trend = trend_of(type(self).__name__, self.mean, X)
        self.mean_ = fitted_mean(self.mean, X, y)
        residual = y if self.mean_ is None else y - np.asarray(self.mean_.predict(X)).reshape(y.shape)
        data = Observations(X, residual, noise, self.trend_.basis(X), self.trend_.log_units)
        self.jitter_ = needed_jitter(type(self).__name__, kernel, data)
        data = data.with_jitter(self.jitter_)
        bounds = log_bounds(kernel)
        n_iter = 1
        value = np.inf
        learns = self.optimizer is not None and len(kernel.theta) > 0
        if learns:
            kernel, n_iter, value = self._learn(kernel, data, bounds, run)
            warn_at_bounds(kernel)
        found = evidence(kernel, data, gradient=False)
        if found is None:  # only rounding can tell the search and this apart
            raise DataError(f"{type(self).__name__}: K is not positive definite at the kernel found; raise alpha.")
        self._store(kernel, data, y, found)
        self.n_iter_ = n_iter
        if not learns:
            return Certificate("closed-form", self._residual(kernel, data, found), CLOSED_FORM_TOLERANCE)
        return Certificate("stationarity", value, self._tolerance(kernel, data, found), n_iter=n_iter)

    def _learn(self, kernel: Kernel, data: Observations, bounds: Array, run: Run) -> tuple[Kernel, int, float]:
        """Return the kernel of greatest marginal likelihood, the steps that led there, and the relative gradient."""
        if not callable(self.optimizer):
            pace = Pace(run, len(data.y), share_of(self, run, 1))
            found = maximise(
                kernel, data, bounds, restarts=self.n_restarts_optimizer, random_state=_generator(self.random_state),
                tol=self.tol, max_iter=self.max_iter, progress=run.progress, stop=pace, timed=pace.timed,
                owner=type(self).__name__,
            )  # fmt: skip
            return kernel.with_theta(found.theta), max(1, found.n_iter), found.measure
        objective = Objective(kernel, data, bounds)

        def function(theta: Array, eval_gradient: bool = True) -> Any:
            if not eval_gradient:
                return objective.value(np.asarray(theta))
            found = objective.evaluate(np.asarray(theta))
            return found.value, found.gradient

        theta, _ = self.optimizer(function, kernel.theta, bounds=bounds)
        theta = np.clip(np.asarray(theta, dtype=np.float64), *bounds.T)
        return kernel.with_theta(theta), objective.n_evaluations, objective.evaluate(theta).measure

    def _take_units(self, y: Array) -> Array:
        """Return y of shape (n, t) in the units of the fit; remember them."""
        columns = y.reshape(len(y), -1)
        if self.n_targets is not None and columns.shape[1] != self.n_targets:
            raise DataError(
                f"{type(self).__name__}: The number of targets seen in `y` is another one: it has {columns.shape[1]} "
                f"targets, but n_targets={self.n_targets}; leave None."
            )
        mean = np.zeros(columns.shape[1])
        std = np.ones(columns.shape[1])
        if self.normalize_y:
            mean, std = units_of(columns)
        one = columns.shape[1] == 1  # a single column is one target, as in scikit-learn
        self.y_mean_, self.y_std_ = (mean.reshape(()), std.reshape(())) if one else (mean, std)
        return np.asarray((columns - mean) / std)

    def _store(self, kernel: Kernel, data: Observations, y: Array, found: Evidence) -> None:
        one = y.shape[1] == 1
        # Files hold arrays in C order: a loaded model has then the same bits.
        self.kernel_ = kernel
        self.X_train_ = np.ascontiguousarray(data.X)
        self.y_train_ = np.ascontiguousarray(y[:, 0] if one else y)
        self.alpha_ = np.ascontiguousarray(found.alpha[:, 0] if one else found.alpha)
        self.beta_ = np.ascontiguousarray(found.beta[:, 0] if one else found.beta)
        self.L_ = np.ascontiguousarray(found.L)
        self.W_ = np.ascontiguousarray(found.W)
        self.log_marginal_likelihood_value_ = found.value

    def _residual(self, kernel: Kernel, data: Observations, found: Evidence) -> float:
        """Return the largest residual of Kα + Hβ = y, relative to the terms that cancel in it."""
        product = kernel.products(data.X, found.alpha, n_jobs=self.n_jobs) + data.noise[:, None] * found.alpha
        left = data.y - data.H @ found.beta - product
        size = float(kernel.diagonal(data.X).max() + data.noise.max()) * np.abs(found.alpha).sum(axis=0)
        size = size + np.abs(data.y).max(axis=0) + np.abs(data.H @ found.beta).max(axis=0, initial=0.0)
        return float((np.abs(left).max(axis=0) / np.where(size > 0.0, size, 1.0)).max())

    def _tolerance(self, kernel: Kernel, data: Observations, found: Evidence) -> float:
        """Return `tol`, or what rounding leaves of a gradient where K is nearly singular."""
        norm = float(np.abs(kernel(data.X)).sum(axis=0).max() + data.noise.max())
        inverse_condition, _ = dpocon(found.L, norm, uplo="L")
        return max(self.tol, min(np.finfo(float).eps / max(float(inverse_condition), 1e-300), WORST))

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """Return log p(y) at hyperparameters θ, and its gradient if asked for; without θ, at those found.

        Parameters
        ----------
        theta : array of shape (p,) or None
            Logarithms of the hyperparameters of `kernel_`.
        eval_gradient : bool
            Whether to return the pair (value, gradient); needs θ.
        clone_kernel : bool
            If False, `kernel_` is left at θ, as in scikit-learn; predictions are then none of the fit.
        """
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return np.float64(self.log_marginal_likelihood_value_)
        kernel = self.kernel_.with_theta(theta)
        if not clone_kernel:
            self.kernel_ = kernel
        found = evidence(kernel, self._observations(), gradient=eval_gradient)
        if found is None:
            return (-np.inf, np.zeros(len(kernel.theta))) if eval_gradient else -np.inf
        value = np.float64(found.value)
        return (value, found.gradient) if eval_gradient else value

    def leave_one_out(self) -> Normal:
        """Return the distribution of each row given all others, with the kernel as it is: exact, from one factor.

        With P = K⁻¹ − K⁻¹H A⁻¹HᵀK⁻¹: mean yᵢ − (Py)ᵢ/Pᵢᵢ and variance 1/Pᵢᵢ (Rasmussen and Williams, 5.12).
        """
        data = self._observations()
        precision = precision_diagonal(self.L_)
        if data.H.shape[1]:
            Q = solve_triangular(self.L_, self.W_, lower=True, trans=1)
            half = solve_triangular(np.linalg.cholesky(self.W_.T @ self.W_), Q.T, lower=True)
            precision -= np.einsum("ij,ij->j", half, half)
        left = self.alpha_ / (precision if self.alpha_.ndim == 1 else precision[:, None])
        y = self.y_train_ - left
        return Normal(y * self.y_std_ + self.y_mean_, self._deviations(1.0 / precision))

    def loo_log_density(self) -> float:
        """Return Σ log p(yᵢ | all other rows), what leave-one-out says of the kernel."""
        return float(np.sum(self.leave_one_out().logpdf(self.y_train_ * self.y_std_ + self.y_mean_)))

    def _observations(self) -> Observations:
        if not hasattr(self, "X_train_"):
            raise AttributeError(
                f"{type(self).__name__}: this needs an exact fit; call fit without inducing points first."
            )
        X = self.X_train_
        y = self.y_train_.reshape(len(self.X_train_), -1)
        y = y if self.mean_ is None else y - np.asarray(self.mean_.predict(X)).reshape(y.shape)
        noise = per_row(type(self).__name__, self.alpha, len(y)) + self.jitter_
        return Observations(X, y, noise, self.trend_.basis(X), self.trend_.log_units)

    def _check_loaded(self) -> None:
        self._check_posterior()


def _generator(random_state: Any) -> Any:
    return int(random_state.randint(2**31)) if isinstance(random_state, np.random.RandomState) else random_state
